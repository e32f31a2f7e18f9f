//! The two words of a bootstrap token: an identifier that may be shown, and a secret.

/// Letters of an identifier.
pub(super) const ID_LENGTH: usize = 6;
/// Letters of a secret.
pub(super) const SECRET_LENGTH: usize = 16;
/// Of what both are made.
pub(super) const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Whether a word has so many of these letters, and no others.
pub(super) fn is_word(word: &str, length: usize) -> bool {
    word.len() == length && word.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// Whether a word can be the identifier of a bootstrap token.
pub fn is_id(word: &str) -> bool {
    is_word(word, ID_LENGTH)
}

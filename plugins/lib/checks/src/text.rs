//! Words of others, made short and harmless.

use ocm_core::address;
use ocm_core::shell::shell;

/// What stands for a value that no command can be given.
const UNSAYABLE: &str = "NAME";

/// A command of words with blanks between, of which each `{}` is one of the values. A value that would be taken for a flag,
/// or that no command line can hold, is left to whoever types the command.
pub(crate) fn command(words: &'static str, values: &[&str]) -> String {
    let mut values = values.iter().copied();
    let mut filled = |word: &str| {
        let mut parts = word.split("{}");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let value = values.next().unwrap_or_default();
            let is_flag = whole.is_empty() && value.starts_with('-');
            whole += if value.is_empty() || is_flag || value.contains('\0') { UNSAYABLE } else { value };
            whole += part;
        }
        shell(&whole)
    };
    words.split(' ').map(&mut filled).collect::<Vec<_>>().join(" ")
}

/// Names with commas between.
pub(crate) fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The host of a URL, without brackets and port.
pub(crate) fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host.to_ascii_lowercase(),
        None => authority.split(':').next().unwrap_or_default().to_ascii_lowercase(),
    }
}

/// Whether a URL is of the machine on which somebody dials it.
pub(crate) fn is_loopback(url: &str) -> bool {
    address::is_loopback(&host(url))
}

/// The port of a URL: the one of its scheme where it names none.
pub(crate) fn port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let behind = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    match behind.rsplit_once(':') {
        Some((_, port)) => port.parse().ok(),
        None if scheme == "https" => Some(443),
        None if scheme == "http" => Some(80),
        None if scheme == "socks5" => Some(1080),
        None => None,
    }
}

/// The beginning of a text, of at most so many characters.
pub(crate) fn head(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of a text, of at most so many characters: errors end with what matters.
pub(crate) fn tail(text: &str, characters: usize) -> String {
    let text = text.trim().replace('\n', " ");
    match text.char_indices().rev().nth(characters) {
        Some((start, c)) => format!("…{}", &text[start + c.len_utf8()..]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_leaves_its_word_or_becomes_a_flag() {
        let line = |value| command("kubectl delete csr/{} -n {}", &[value, value]);
        assert_eq!(line("a"), "kubectl delete csr/a -n a");
        assert_eq!(line("a; rm -rf $(b)|c"), "kubectl delete 'csr/a; rm -rf $(b)|c' -n 'a; rm -rf $(b)|c'");
        assert_eq!(line("it's"), r"kubectl delete 'csr/it'\''s' -n 'it'\''s'");
        assert_eq!(line("``x```;touch owned"), "kubectl delete 'csr/``x```;touch owned' -n '``x```;touch owned'");
        assert_eq!(
            command("kubectl get csr/{}", &["it's\n\\\u{200b}\u{9b}"]),
            r"kubectl get $'csr/it\047s\n\\\342\200\213\302\233'"
        );
        assert_eq!(line("a\0b"), "kubectl delete csr/NAME -n NAME");
        assert_eq!(line("--all"), "kubectl delete csr/--all -n NAME");
        assert_eq!(line(""), "kubectl delete csr/NAME -n NAME");
        assert_eq!(command("kubectl delete csr -l {}={},!{}", &["k", "v w", "x"]), "kubectl delete csr -l 'k=v w,!x'");
    }

    #[test]
    fn hosts_are_taken_out_of_urls() {
        for (url, wanted) in [
            ("https://127.0.0.1:6443", "127.0.0.1"),
            ("https://[::1]:6443/", "::1"),
            ("https://user:word@Hub.example/path", "hub.example"),
            ("localhost:8443", "localhost"),
        ] {
            assert_eq!(host(url), wanted);
        }
    }

    #[test]
    fn ports_are_taken_out_of_urls() {
        for (url, wanted) in [
            ("https://127.0.0.1:6443", Some(6443)),
            ("https://[::1]:6443/", Some(6443)),
            ("https://[::1]", Some(443)),
            ("https://user:word@Hub.example/path", Some(443)),
            ("http://proxy", Some(80)),
            ("socks5://proxy", Some(1080)),
            ("a proxy whose address cannot be read", None),
            ("localhost:8443", None),
        ] {
            assert_eq!(port(url), wanted, "{url}");
        }
    }

    #[test]
    fn long_texts_keep_their_beginning() {
        assert_eq!((head("äöü", 3), head("äöüß", 3)), ("äöü".to_owned(), "äöü…".to_owned()));
    }

    #[test]
    fn long_texts_keep_their_end() {
        assert_eq!(tail("abc", 3), "abc");
        assert_eq!(tail("abcd", 3), "…bcd");
        assert_eq!(tail("äöü\n", 2), "…öü");
    }
}

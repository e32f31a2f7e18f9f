//! Words of others, made short and harmless.

use ocm_core::token::{is_visible, shell};

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
        quoted(&whole)
    };
    words.split(' ').map(&mut filled).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it. One with characters that cannot be seen, which no terminal would be shown as they are, is
/// written with escapes, `$'…'`: what is pasted is what is meant.
fn quoted(word: &str) -> String {
    if word.chars().all(is_visible) {
        return shell(word);
    }
    let mut text = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            '\n' => text += "\\n",
            c if is_visible(c) => text.push(c),
            c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text += &format!("\\{byte:03o}")),
        }
    }
    text + "'"
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

/// What an error of a connection to the hub means, and why it comes about: the words are Go's.
pub(crate) fn connection(message: &str) -> (&'static str, &'static str) {
    let has = |words: &str| message.contains(words);
    match () {
        () if has("proxyconnect") && has("x509") => {
            ("the proxy's certificate is not trusted", "the proxy's CA is not in the agent's kubeconfig")
        }
        () if has("proxyconnect") => ("the proxy cannot be reached", "the proxy is down, or its address is wrong"),
        () if has("Proxy Authentication Required") => {
            ("the proxy demands credentials", "the proxy's address in the kubeconfig has no user and password")
        }
        () if has("no such host") => ("the hub's name cannot be resolved", "the DNS of the agent's network lacks it"),
        () if has("connection refused") => {
            ("connection refused", "no API server listens at that address, as seen from the agent")
        }
        () if has("i/o timeout") || has("deadline exceeded") || has("no route to host") => {
            ("no answer", "a firewall, or an address that the agent's network does not reach")
        }
        () if has("certificate signed by unknown authority") => (
            "the hub's certificate is not signed by the agent's CA",
            "the CA in the agent's kubeconfig is not that of the address, or was replaced",
        ),
        () if has("x509: certificate is valid for") || has("doesn't contain any IP SANs") => {
            ("the hub's certificate is not valid for this hostname", "the certificate does not name the address")
        }
        () if has("expired or is not yet valid") => {
            ("a certificate is not valid now", "it has expired, or the clocks differ")
        }
        () if has("is forbidden: User") || has("is not allowed with") => (
            "the hub forbids it",
            "the hub's RBAC for this agent is missing: the cluster was denied, deleted or never accepted",
        ),
        () if has("Unauthorized") => (
            "the hub does not know the credential",
            "the token or the certificate has ended, was revoked, or is another hub's",
        ),
        // A bare phrase behind the URL is the answer of a proxy to CONNECT.
        () if message.trim_end().ends_with(": Forbidden") || message.trim_end().ends_with(": Filtered") => {
            ("a proxy refuses the connection", "the proxy does not allow CONNECT to the hub; this is not RBAC")
        }
        () => ("it failed", "the words of the operator say more"),
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
            r"kubectl get $'csr/it\'s\n\\\342\200\213\302\233'"
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
    fn long_texts_keep_their_beginning() {
        assert_eq!((head("äöü", 3), head("äöüß", 3)), ("äöü".to_owned(), "äöü…".to_owned()));
    }

    #[test]
    fn long_texts_keep_their_end() {
        assert_eq!(tail("abc", 3), "abc");
        assert_eq!(tail("abcd", 3), "…bcd");
        assert_eq!(tail("äöü\n", 2), "…öü");
    }

    #[test]
    fn a_proxys_refusal_is_not_rbac() {
        let url = r#"Post "https://hub:6443/apis/authorization.k8s.io/v1/selfsubjectaccessreviews""#;
        assert_eq!(connection(&format!("{url}: Forbidden")).0, "a proxy refuses the connection");
        assert_eq!(connection(&format!("{url}: Filtered")).0, "a proxy refuses the connection");
        let rbac = "leases is forbidden: User \"x\" cannot get resource: Forbidden";
        assert_eq!(connection(rbac).0, "the hub forbids it");
        assert_eq!(connection(&format!("{url}: Proxy Authentication Required")).0, "the proxy demands credentials");
        let untrusted = format!("{url}: proxyconnect tcp: tls: x509: certificate signed by unknown authority");
        assert_eq!(connection(&untrusted).0, "the proxy's certificate is not trusted");
    }
}

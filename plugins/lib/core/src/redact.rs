//! Words of others without what may be a credential: logs, conditions and errors quote whatever their writers were given.
//!
//! What is recognised: user and password in a URL, JSON Web Tokens, bootstrap tokens, what follows `Bearer` or `Basic`, and
//! private keys in PEM, whole or in parts. A password that stands there as a word of its own is not.

/// What stands for what was taken away.
pub const HIDDEN: &str = "[redacted]";

/// As long are the lines of PEM, but for the last one.
const PEM_LINE: usize = 60;

/// The text without what may be a credential. Twice is the same as once.
pub fn redact(text: &str) -> String {
    words(&user_info(&private_keys(text)))
}

/// Without private keys, from the line that begins one to the line that ends it; of a part, up to or from such a line.
fn private_keys(text: &str) -> String {
    const LABEL: &str = "PRIVATE KEY-----";
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(label) = rest.find(LABEL) {
        let marker = rest[..label].rfind("-----").unwrap_or(label);
        let after = &rest[label + LABEL.len()..];
        if rest[marker..label].contains("BEGIN") {
            shown += &rest[..marker];
            rest = after.find(LABEL).map_or("", |end| &after[end + LABEL.len()..]);
        } else {
            rest = after;
        }
        shown += HIDDEN;
    }
    shown + rest
}

/// Without user and password in URLs.
fn user_info(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(scheme) = rest.find("://") {
        let (before, after) = rest.split_at(scheme + 3);
        shown += before;
        let url = &after[..after.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(after.len())];
        let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        let host = match authority.rfind('@') {
            Some(at) => Some(at),
            // A password with a slash in it ends the authority before its time; a port has digits alone.
            None => {
                let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
                let is_port = port.bytes().all(|byte| byte.is_ascii_digit() || byte == b']');
                url.rfind('@').filter(|_| !is_port)
            }
        };
        rest = match host {
            Some(host) => {
                shown += HIDDEN;
                &after[host..]
            }
            None => after,
        };
    }
    shown + rest
}

/// Without words that are credentials by their form, or by the word before them.
fn words(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.+/~".contains(c);
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    let mut is_announced = false;
    while !rest.is_empty() {
        let (between, from) = rest.split_at(rest.find(is_word).unwrap_or(rest.len()));
        is_announced &= between.chars().all(char::is_whitespace);
        shown += between;
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        // Sentences speak of bearer tokens, too.
        let is_prose = word.len() < 20 && word.trim_end_matches('.').bytes().all(|byte| byte.is_ascii_lowercase());
        if is_announced && !is_prose && !word.is_empty() {
            shown += HIDDEN;
            rest = after.trim_start_matches('=');
        } else {
            shown += &credential(word).unwrap_or_else(|| word.to_owned());
            rest = after;
        }
        is_announced = ["bearer", "basic"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    }
    shown
}

/// What is shown of a word that has the form of a credential.
fn credential(word: &str) -> Option<String> {
    let tokens: Vec<&str> = word.split('/').collect();
    if let Some(at) = tokens.iter().position(|token| is_web_token(token)) {
        let mut tokens = tokens;
        tokens[at] = HIDDEN;
        return Some(tokens.join("/"));
    }
    let plain = word.trim_end_matches('.');
    if let crate::token::Content::Bootstrap(id) = crate::token::read(plain) {
        return Some(format!("{id}.{HIDDEN}{}", &word[plain.len()..]));
    }
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    // Digests are as long, in hex digits of one case; paths have dots and dashes.
    let is_base64 = word.len() >= PEM_LINE
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit);
    is_base64.then(|| HIDDEN.to_owned())
}

/// Whether a word is a JSON Web Token, or begins as one: its header and its claims are JSON objects in base64.
fn is_web_token(word: &str) -> bool {
    let is_object = |part: &&str| ["ey", "e3", "ew"].iter().any(|begin| part.starts_with(begin));
    let parts: Vec<&str> = word.split('.').collect();
    let claims = parts.get(1).filter(|part| part.len() >= 10);
    (is_object(&parts[0]) && claims.is_some_and(is_object))
        || parts.iter().any(|part| part.starts_with("eyJ") && part.len() >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_of_words_of_others() {
        for (text, wanted) in [
            ("Get \"https://me:canary@hub:6443/x\": EOF", "Get \"https://[redacted]@hub:6443/x\": EOF"),
            ("proxy http://me:can/ary@p:3128, and so on", "proxy http://[redacted]@p:3128, and so on"),
            ("http://canary@p and socks5://u:c@n@ry@q", "http://[redacted]@p and socks5://[redacted]@q"),
            ("token abcdef.0123456789canary.", "token abcdef.[redacted]."),
            ("--token=abcdef.0123456789canary", "--token=abcdef.[redacted]"),
            ("Authorization: Bearer ab+canary/x=", "Authorization: Bearer [redacted]"),
            ("authorization: basic Y2FuYXJ5==", "authorization: basic [redacted]"),
            ("token=e30.eyJzdWIiOiJjYW5hcnkifQ.c2ln end", "token=[redacted] end"),
            ("eyJhbGciOiJSUzI1NiIsImtpZCI6 cut", "[redacted] cut"),
            ("a -----BEGIN EC PRIVATE KEY----- canary -----END EC PRIVATE KEY----- b", "a [redacted] b"),
            ("a -----BEGIN PRIVATE KEY-----\ncanary", "a [redacted]"),
            ("canary\n-----END RSA PRIVATE KEY----- b", "[redacted] b"),
            ("MHcCAQEEIIrYSSNQFaA2HwfXcanaryAwEHoUQDQgAEYWJjZGVmZ2hpamtsbW5vcA / x", "[redacted] / x"),
        ] {
            let once = redact(text);
            assert_eq!(once, wanted);
            assert_eq!(redact(&once), once);
        }
    }

    #[test]
    fn words_that_are_none_stay() {
        let digest = "0123456789abcdef".repeat(4);
        for text in [
            "image quay.io/open-cluster-management/registration@sha256:{digest}: ErrImagePull",
            "Get \"https://[::1]:6443/api?x=a@b\": dial tcp [::1]:6443: connect: connection refused",
            "https://hub.example:6443: Forbidden; invalid bearer token, Unauthorized",
            "x509: certificate signed by unknown authority (possibly because of \"crypto/rsa: verification error\")",
            "system:serviceaccount:open-cluster-management:agent-registration-bootstrap since 2026-03-01T12:00:00Z",
            "c1-registration-agent-5d9c7b8f6d-abcde ümläute – 3 of 4",
            "",
        ] {
            let text = text.replace("{digest}", &digest);
            assert_eq!(redact(&text), text);
        }
    }
}

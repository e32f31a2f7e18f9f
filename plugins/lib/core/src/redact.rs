//! Words of others without what may be a credential: logs, conditions and errors quote whatever their writers were given.
//!
//! What is recognised: user and password in a URL, JSON Web Tokens, bootstrap tokens, tokens of OpenShift, what follows `Bearer`
//! or `Basic`, and private keys in PEM, whole or in parts. A password that stands there as a word of its own is not.

use std::borrow::Cow;

/// What stands for what was taken away.
pub const HIDDEN: &str = "[redacted]";

/// How much of one text [`redact_start`] keeps: bytes.
pub const LONGEST: usize = 4 << 10;

/// How tokens of OpenShift begin.
const OPENSHIFT: &str = "sha256~";

/// As long are the lines of PEM, but for the last one.
const PEM_LINE: usize = 60;

/// The text without what may be a credential. Twice is the same as once.
pub fn redact(text: &str) -> String {
    words(&user_info(&private_keys(text)))
}

/// The beginning of a text, of at most [`LONGEST`] bytes, without what may be a credential: anybody may have written any
/// amount of it.
pub fn redact_start(text: &str) -> String {
    let start = whole_words(text, LONGEST);
    if start.len() == text.len() { redact(text) } else { format!("{} …", redact(start)) }
}

/// The beginning of a text, of at most so many bytes. Where it is cut it ends with a whole word: half a credential is not
/// recognised any more.
pub fn whole_words(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = &text[..text.floor_char_boundary(most)];
    cut.rfind(char::is_whitespace).map_or("", |end| cut[..end].trim_end())
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
    let is_end = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
    let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
    // The end of the word that is looked at, and the last @ in it. A word may hold any number of addresses: both are found
    // once for all of them.
    let (mut end, mut last_at) = (0, None);
    while let Some(scheme) = text[from..].find("://") {
        let after = from + scheme + 3;
        shown += &text[from..after];
        if after > end {
            end = text[after..].find(is_end).map_or(text.len(), |length| after + length);
            last_at = text[after..end].rfind('@').map(|at| after + at);
        }
        let url = &text[after..end];
        let authority = &url[..url.find(['/', '?', '#']).unwrap_or(url.len())];
        let host = match authority.rfind('@') {
            Some(at) => Some(after + at),
            // A password with a slash in it ends the authority before its time; a port has digits alone.
            None => {
                let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
                let is_port = port.bytes().all(|byte| byte.is_ascii_digit() || byte == b']');
                last_at.filter(|at| *at >= after && !is_port)
            }
        };
        from = match host {
            Some(host) => {
                shown += HIDDEN;
                host
            }
            None => after,
        };
    }
    shown + &text[from..]
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

/// What is shown of a word in which something has the form of a credential. Slashes join words to paths, of which each part may
/// be one; other credentials have slashes in them.
fn credential(word: &str) -> Option<String> {
    let (mut shown, mut from, mut at) = (String::new(), 0, 0);
    for part in word.split('/') {
        let end = at + part.len();
        if let Some(token) = token(part) {
            shown += &longer(&word[from..at]);
            shown += &token;
            from = end;
        }
        at = end + 1;
    }
    shown += &longer(&word[from..]);
    (shown != word).then_some(shown)
}

/// What is shown of a JSON Web Token or a bootstrap token.
fn token(part: &str) -> Option<String> {
    if is_web_token(part) { Some(HIDDEN.to_owned()) } else { bootstrap(part) }
}

/// What is shown of parts of a word that are none of these.
fn longer(parts: &str) -> Cow<'_, str> {
    if let Some(at) = parts.find(OPENSHIFT).map(|at| at + OPENSHIFT.len()).filter(|at| *at < parts.len()) {
        return Cow::Owned(format!("{}{HIDDEN}", &parts[..at]));
    }
    let has = |is: fn(&u8) -> bool| parts.bytes().any(|byte| is(&byte));
    // Digests are as long, in hex digits of one case; paths have dots and dashes.
    let is_base64 = parts.len() >= PEM_LINE
        && parts.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit);
    Cow::Borrowed(if is_base64 { HIDDEN } else { parts })
}

/// What is shown of a bootstrap token: its id. Where the end of a line before it is escaped, the letter of that comes first.
fn bootstrap(word: &str) -> Option<String> {
    let plain = word.trim_end_matches('.');
    let begins = [plain, plain.strip_prefix(['n', 'r', 't']).unwrap_or(plain)];
    begins.into_iter().find_map(|token| match crate::token::read(token) {
        crate::token::Content::Bootstrap(id) => {
            let before = &plain[..plain.len() - token.len()];
            Some(format!("{before}{id}.{HIDDEN}{}", &word[plain.len()..]))
        }
        _ => None,
    })
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
    fn long_texts_are_cut_between_words_before_they_are_read() {
        assert_eq!(whole_words("ab cd", 5), "ab cd");
        assert_eq!(whole_words("ab cd", 4), "ab");
        assert_eq!((whole_words("abcd", 3), whole_words("ä b", 1)), ("", ""));
        let credential = "https://me:canary@hub";
        for blanks in LONGEST - 30..=LONGEST + 1 {
            let text = format!("{}{credential} and so on", " x".repeat(blanks / 2));
            let start = redact_start(&text);
            assert!(
                !start.contains("canary") && start.len() <= LONGEST + HIDDEN.len() + " …".len(),
                "{blanks}: {start}"
            );
        }
        assert_eq!(redact_start(credential), "https://[redacted]@hub");
    }

    /// A megabyte of addresses in one word: this comes to an end only if the word is not read anew for each of them.
    #[test]
    fn a_word_is_read_once_however_many_addresses_are_in_it() {
        let many = "://".repeat(400_000);
        assert_eq!(redact(&many), many);
        assert_eq!(user_info(&format!("{many}me:canary@hub x")), format!("{many}[redacted]@hub x"));
        assert_eq!(redact("a://b://c:d@e f://g@h"), "a://b://[redacted]@e f://[redacted]@h");
    }

    #[test]
    fn tokens_are_recognised_after_an_escaped_end_of_a_line_in_a_path_and_of_openshift() {
        for (text, shown) in [
            (r#""lines: a\nabcdef.0123456789abcdef\nb""#, r#""lines: a\nabcdef.[redacted]\nb""#),
            ("tokens/abcdef.0123456789abcdef.", "tokens/abcdef.[redacted]."),
            ("--token=sha256~QWxhZGRpbjpvcGVuIHNlc2FtZS1f-Zg x", "--token=sha256~[redacted] x"),
        ] {
            assert_eq!(redact(text), shown);
            assert_eq!(redact(shown), shown);
        }
    }

    #[test]
    fn each_of_several_tokens_that_slashes_join_is_hidden() {
        let web = "e30.eyJzdWIiOiJjYW5hcnkifQ.c2ln";
        let (bootstrap, openshift) = ("abcdef.0123456789canary", "sha256~canary0123456789");
        let key = "MHcCAQEEIIrYSSNQFaA2HwfXcanaryAwEHoUQDQgAEYWJjZGVmZ2hpamtsbW5vcA";
        for (text, shown) in [
            (format!("{web}/{web}"), "[redacted]/[redacted]"),
            (format!("{web}/x/{web}/"), "[redacted]/x/[redacted]/"),
            (format!("{web}/{bootstrap}/{web}"), "[redacted]/abcdef.[redacted]/[redacted]"),
            (format!("{bootstrap}/{bootstrap}."), "abcdef.[redacted]/abcdef.[redacted]."),
            (format!("{web}/{openshift}"), "[redacted]/sha256~[redacted]"),
            (format!("{openshift}/{web}/{openshift}"), "sha256~[redacted][redacted]/sha256~[redacted]"),
            (format!("{key}/{web}/{key}"), "[redacted][redacted][redacted]"),
        ] {
            assert_eq!(redact(&text), shown);
            assert_eq!(redact(shown), shown);
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

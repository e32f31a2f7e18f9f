//! The forms that Kubernetes gives to names, keys and values.

pub use ocm_rules::name::is_dns_label;

/// Bytes that all annotations of an object may have together, keys and values.
pub const ANNOTATIONS_BYTES: usize = 256 * 1024;

/// A DNS subdomain (RFC 1123): labels with dots between them.
pub fn is_dns_subdomain(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let label =
        |part: &str| !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-');
    // Kubernetes bounds the whole, not each part.
    text.len() <= 253 && text.split('.').all(label)
}

/// The part of a key behind the slash.
pub fn is_name_part(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// A key of labels, annotations and taints: a name, with or without a DNS subdomain and a slash before it.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// A value of a label.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// The code of a reason, in the form that conditions of Kubernetes give theirs: letters and digits in CamelCase.
pub fn is_code(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Lower-case words of letters and digits with single hyphens between them.
pub fn is_kebab(text: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    text.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_qualified_names() {
        for good in ["a", "A.b_c-1", "example.com/team", "1.2/x", &format!("{}/y", "a".repeat(253))] {
            assert!(is_qualified_name(good), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "a.", "Example.com/a", "a b", "ä", &"x".repeat(64), "a..b/c"] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
    }

    #[test]
    fn values_may_be_empty_and_codes_may_not() {
        assert!(is_label_value("") && is_label_value("eu-1") && !is_label_value("a b") && !is_label_value("-"));
        assert!(is_kebab("wrong-region-2") && !is_kebab("") && !is_kebab("a--b") && !is_kebab("A") && !is_kebab("a-"));
        assert!(
            is_code("NameTaken") && is_code("R8") && !is_code("") && !is_code("name-taken") && !is_code("nameTaken")
        );
        assert!(!is_code("Name_Taken") && !is_code("Ä"));
        assert!(is_dns_label("c1") && !is_dns_label("c.1") && !is_dns_label(&"c".repeat(64)));
    }
}

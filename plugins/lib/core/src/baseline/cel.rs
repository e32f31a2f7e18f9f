//! Pieces of CEL expressions.

use serde_json::Value;

/// A text as a CEL literal. Every escape of JSON is one of CEL
/// (<https://github.com/google/cel-spec/blob/master/doc/langdef.md#string-and-bytes-values>).
pub(crate) fn text(text: &str) -> String {
    Value::from(text).to_string()
}

/// Texts as a CEL list.
pub(crate) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", texts.into_iter().map(text).collect::<Vec<_>>().join(", "))
}

/// Whether `key` stands below a domain of the hub, of Kubernetes or of these commands: as
/// [`ocm_rules::name::is_system_key`].
const SYSTEM_KEY: &str = r"^(?i:([^/]*\.)?(open-cluster-management\.io|kubernetes\.io|k8s\.io|kubectl-ocm(\.dev)?))/";

/// Whether one of several holds.
pub(super) fn any(conditions: impl IntoIterator<Item = String>) -> String {
    let some: Vec<String> = conditions.into_iter().filter(|condition| condition != NEVER).collect();
    if some.is_empty() { NEVER.to_owned() } else { some.join(" || ") }
}

/// What never holds.
const NEVER: &str = "false";

/// An expression that tells whether one of the patterns grants the key that `key` evaluates to: as
/// [`ocm_rules::cluster::grants`].
pub(super) fn grants(patterns: &[String], key: &str) -> String {
    let free = format!("!{key}.matches({})", text(SYSTEM_KEY));
    let one = |pattern: &String| {
        let reaches = match pattern.split_once('/') {
            Some((domain, _)) => format!("({free} || {key}.startsWith({}))", text(&format!("{domain}/"))),
            None => free.clone(),
        };
        format!("({key}.matches({}) && {reaches})", text(&regex(pattern)))
    };
    any(patterns.iter().map(one))
}

/// An expression that tells whether what `value` evaluates to is of one of the patterns.
pub(super) fn of_any(patterns: &[String], value: &str) -> String {
    any(patterns.iter().map(|pattern| format!("{value}.matches({})", text(&regex(pattern)))))
}

/// A pattern of [`ocm_rules::glob`] as a regular expression (RE2) that fits the same texts, which are ASCII.
fn regex(pattern: &str) -> String {
    let mut regex = String::from("^");
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let class = rest.strip_prefix('[').and_then(|inner| {
            let end = inner.find(']').filter(|end| *end > 0)?;
            Some((&inner[..end], &inner[end + 1..]))
        });
        if let Some((members, after)) = class {
            regex += &class_regex(members);
            rest = after;
            continue;
        }
        match first {
            '*' => regex += "(?s:.*)",
            '?' => regex += "(?s:.)",
            // Without its other half it fits nothing.
            '[' => regex += NOTHING,
            other => regex += &letter(other),
        }
        rest = &rest[first.len_utf8()..];
    }
    regex + "$"
}

/// Fits no letter.
const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// What stands between brackets.
fn class_regex(members: &str) -> String {
    let (members, negated) = match members.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (members, false),
    };
    let members: Vec<char> = members.chars().collect();
    let (mut left, mut class) = (&members[..], String::new());
    while let [from, rest @ ..] = left {
        if let ['-', to, after @ ..] = rest {
            if from <= to {
                class += &format!("{}-{}", letter(*from), letter(*to));
            }
            left = after;
        } else {
            class += &letter(*from);
            left = rest;
        }
    }
    match (class.is_empty(), negated) {
        (true, true) => "(?s:.)".to_owned(),
        (true, false) => NOTHING.to_owned(),
        (false, true) => format!("[^{class}]"),
        (false, false) => format!("[{class}]"),
    }
}

/// A letter that stands for itself.
fn letter(letter: char) -> String {
    match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' => letter.to_string(),
        other => format!("\\x{{{:x}}}", u32::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use ocm_rules::{cluster, glob, name};
    use proptest::prelude::*;

    use super::*;

    fn fits(regex: &str, text: &str) -> bool {
        regex::Regex::new(regex).unwrap().is_match(text)
    }

    proptest! {
        #[test]
        fn patterns_mean_the_same_to_the_api_server(pattern in r"[ab\-/.*?!\[\]]{0,8}", text in r"[ab\-/.!\[\]]{0,6}") {
            prop_assert_eq!(fits(&regex(&pattern), &text), glob::fits(&pattern, &text), "{} {}", regex(&pattern), text);
        }

        #[test]
        fn system_keys_are_the_same(
            domain in r"(x|x\.|X)?(open-cluster-management\.io|Kubernetes\.io|k8s\.io|kubectl-ocm(\.dev|xdev)?|k8sxio)?\.?",
            slash in "/?",
        ) {
            let key = format!("{domain}{slash}a");
            prop_assert_eq!(fits(SYSTEM_KEY, &key), name::is_system_key(&key), "{}", key);
        }
    }

    #[test]
    fn a_key_is_granted_by_the_pattern_of_its_own_domain() {
        // What `grants` puts together, read back: the parts are those of the rules.
        let patterns = [cluster::AGENT_ANNOTATIONS.to_owned(), "team-*".to_owned()];
        let expression = grants(&patterns, "k");
        assert!(expression.contains(r#"k.startsWith("agent.open-cluster-management.io/")"#), "{expression}");
        assert_eq!(expression.matches("!k.matches(").count(), 2);
        assert_eq!((grants(&[], "k"), of_any(&[], "k")), ("false".to_owned(), "false".to_owned()));
    }
}

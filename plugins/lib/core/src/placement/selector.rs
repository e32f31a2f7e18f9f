//! Selectors as kubectl writes them: `env=prod,region in (eu,us),!draining`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::order::Collect as _;
use crate::work::is_object_name;

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A requirement is empty.
    #[error("it has an empty requirement")]
    Empty,
    /// A key is none.
    #[error("{0:?} cannot be a key")]
    Key(String),
    /// A value is none.
    #[error("{0:?} cannot be a value")]
    Value(String),
}

/// Reads a selector. All requirements have to be met.
///
/// # Errors
/// What is wrong with it.
pub fn requirements(text: &str) -> Result<Vec<LabelSelectorRequirement>, SelectorError> {
    parts(text).into_iter().map(|part| requirement(part.trim())).collect()
}

/// The same as the selector of labels that upstream's objects hold: keys with one value under `matchLabels`.
///
/// # Errors
/// What is wrong with it.
pub fn label_selector(text: &str) -> Result<LabelSelector, SelectorError> {
    let all = requirements(text)?;
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<String> =
        all.iter().filter(|one| !seen.insert(one.key.as_str())).map(|one| one.key.clone()).collect_set();
    let (mut labels, mut expressions) = (BTreeMap::new(), Vec::new());
    for one in all {
        match (one.operator.as_str(), one.values.as_deref()) {
            ("In", Some([value])) if !repeated.contains(&one.key) => {
                labels.insert(one.key, value.clone());
            }
            _ => expressions.push(one),
        }
    }
    Ok(LabelSelector {
        match_labels: (!labels.is_empty()).then_some(labels),
        match_expressions: (!expressions.is_empty()).then_some(expressions),
    })
}

/// The parts between commas that stand outside of parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut inside, mut begin, mut parts) = (false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

fn requirement(part: &str) -> Result<LabelSelectorRequirement, SelectorError> {
    let one = |key: &str, operator: &str, values: Option<Vec<&str>>| {
        let key = key.trim();
        if !is_key(key) {
            return Err(SelectorError::Key(key.to_owned()));
        }
        let values: Option<Vec<&str>> = values.map(|all| all.into_iter().map(str::trim).collect());
        if let Some(bad) = values.iter().flatten().find(|value| !is_value(value)) {
            return Err(SelectorError::Value((*bad).to_owned()));
        }
        let values = values.map(|all| all.into_iter().map(str::to_owned).collect());
        Ok(LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values })
    };
    if part.is_empty() {
        return Err(SelectorError::Empty);
    }
    if let Some(key) = part.strip_prefix('!') {
        return one(key, "DoesNotExist", None);
    }
    if let Some((head, list)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let (key, word) = head.trim().rsplit_once(char::is_whitespace).unwrap_or((head, ""));
        let values = Some(list.split(',').collect());
        return match word {
            "in" => one(key, "In", values),
            "notin" => one(key, "NotIn", values),
            _ => Err(SelectorError::Key(head.trim().to_owned())),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return one(key, "NotIn", Some(vec![value]));
    }
    match part.split_once("==").or_else(|| part.split_once('=')) {
        Some((key, value)) => one(key, "In", Some(vec![value])),
        None => one(part, "Exists", None),
    }
}

/// Kubernetes: a name of at most 63 characters, behind a DNS subdomain and a slash if there is one.
pub(super) fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => is_object_name(domain) && !name.is_empty() && is_value(name),
        None => !key.is_empty() && is_value(key),
    }
}

/// Kubernetes: letters, digits, `-`, `_` and `.` between letters or digits, at most 63 of them; or nothing.
fn is_value(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let ends = is_end(bytes.first()) && is_end(bytes.last());
    value.is_empty() || (value.len() <= 63 && value.bytes().all(inner) && ends)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_are_read_as_kubectl_reads_them() {
        let read = |text: &str| serde_json::to_value(requirements(text).unwrap()).unwrap();
        assert_eq!(
            read("a=1, b==2,c!=3,x.io/d in (e, f),g notin (h),i,!j"),
            json!([
                {"key": "a", "operator": "In", "values": ["1"]},
                {"key": "b", "operator": "In", "values": ["2"]},
                {"key": "c", "operator": "NotIn", "values": ["3"]},
                {"key": "x.io/d", "operator": "In", "values": ["e", "f"]},
                {"key": "g", "operator": "NotIn", "values": ["h"]},
                {"key": "i", "operator": "Exists"},
                {"key": "j", "operator": "DoesNotExist"},
            ])
        );
        assert_eq!(read("a="), json!([{"key": "a", "operator": "In", "values": [""]}]));
    }

    #[test]
    fn what_is_no_selector_is_told() {
        let error = |text: &str| requirements(text).unwrap_err();
        assert_eq!(error(""), SelectorError::Empty);
        assert_eq!(error("a=1,"), SelectorError::Empty);
        assert_eq!(error("a b"), SelectorError::Key("a b".to_owned()));
        assert_eq!(error("a within (b)"), SelectorError::Key("a within".to_owned()));
        assert_eq!(error("=b"), SelectorError::Key(String::new()));
        assert_eq!(error("a=b c"), SelectorError::Value("b c".to_owned()));
        assert_eq!(error("a in (b,-)"), SelectorError::Value("-".to_owned()));
        assert_eq!(error("A/b/c"), SelectorError::Key("A/b/c".to_owned()));
    }

    #[test]
    fn single_values_are_labels_unless_a_key_stands_twice() {
        let read = |text: &str| serde_json::to_value(label_selector(text).unwrap()).unwrap();
        assert_eq!(read("env=prod,region=eu"), json!({"matchLabels": {"env": "prod", "region": "eu"}}));
        assert_eq!(
            read("env=prod,gpu"),
            json!({"matchLabels": {"env": "prod"}, "matchExpressions": [{"key": "gpu", "operator": "Exists"}]})
        );
        let both = read("env=prod,env=dev");
        assert!(both.get("matchLabels").is_none() && both["matchExpressions"].as_array().unwrap().len() == 2, "{both}");
    }
}

//! What labels and claims lack to match a selector.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

type Values = BTreeMap<String, String>;

/// What labels lack; none if they match. An empty selector matches everything.
pub(crate) fn unmet(selector: &LabelSelector, labels: &Values) -> Option<String> {
    let equal = selector.match_labels.iter().flatten();
    let equal = equal.map(|(key, value)| among(key, std::slice::from_ref(value), labels, "label"));
    let expressions = selector.match_expressions.iter().flatten();
    equal.chain(expressions.map(|one| unmet_by(one, labels, "label"))).flatten().next()
}

/// The selector as the API server reads it in a query; none if it matches nothing. Kubernetes: `labels.Parse`.
pub(super) fn written(selector: &LabelSelector) -> Option<String> {
    let equal = selector.match_labels.iter().flatten().map(|(key, value)| Some(format!("{key}={value}")));
    let expressions = selector.match_expressions.iter().flatten().map(written_one);
    let all: Option<Vec<String>> = equal.chain(expressions).collect();
    all.map(|all| all.join(","))
}

fn written_one(one: &LabelSelectorRequirement) -> Option<String> {
    let (key, values) = (&one.key, one.values.as_deref().unwrap_or_default().join(","));
    match one.operator.as_str() {
        "In" => Some(format!("{key} in ({values})")),
        "NotIn" => Some(format!("{key} notin ({values})")),
        "Exists" => Some(key.clone()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

/// What values, called `what` in messages, lack to match one requirement. Kubernetes: `labels.Requirement.Matches`.
pub(super) fn unmet_by(one: &LabelSelectorRequirement, all: &Values, what: &str) -> Option<String> {
    let key = one.key.as_str();
    let values = one.values.as_deref().unwrap_or_default();
    match (one.operator.as_str(), all.get(key)) {
        ("In", _) => among(key, values, all, what),
        ("NotIn", Some(value)) => values.contains(value).then(|| format!("{what} {key} is {value:?}")),
        ("Exists", None) => Some(format!("it has no {what} {key}")),
        ("DoesNotExist", Some(_)) => Some(format!("it has the {what} {key}")),
        ("NotIn" | "DoesNotExist", None) | ("Exists", Some(_)) => None,
        (operator, _) => Some(format!("{operator:?} is no operator for the {what} {key}")),
    }
}

fn among(key: &str, values: &[String], all: &Values, what: &str) -> Option<String> {
    match (all.get(key), values) {
        (Some(value), values) if values.contains(value) => None,
        (Some(value), [one]) => Some(format!("{what} {key} is {value:?}, not {one:?}")),
        (Some(value), values) => Some(format!("{what} {key} is {value:?}, none of {}", values.join(", "))),
        (None, _) => Some(format!("it has no {what} {key}")),
    }
}

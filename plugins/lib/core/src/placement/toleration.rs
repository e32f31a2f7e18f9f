//! Taints in spite of which clusters are selected.

use ocm_api::cluster::TaintEffect;
use ocm_api::placement::{Toleration, TolerationOperator};

use super::selector::is_key;

/// The toleration of every taint of this key.
pub fn of_taint(key: &str) -> Toleration {
    Toleration { key: Some(key.to_owned()), operator: Some(TolerationOperator::Exists), ..Toleration::default() }
}

/// Reads `KEY[=VALUE][:EFFECT]`, as kubectl writes taints; none for what is no taint.
pub fn parse_toleration(text: &str) -> Option<Toleration> {
    let (taint, effect) = match text.rsplit_once(':') {
        Some((taint, effect)) => (taint, Some(TaintEffect::from(effect))),
        None => (text, None),
    };
    let is_known = effect.as_ref().is_none_or(|effect| TaintEffect::KNOWN.contains(&effect.as_str()));
    let (key, value) = match taint.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (taint, None),
    };
    if !is_key(key) || !is_known || value.is_some_and(str::is_empty) {
        return None;
    }
    let toleration = Toleration { effect, ..of_taint(key) };
    Some(match value {
        Some(value) => {
            Toleration { operator: Some(TolerationOperator::Equal), value: Some(value.to_owned()), ..toleration }
        }
        None => toleration,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tolerations_are_taints() {
        let read = |text: &str| -> Value { serde_json::to_value(parse_toleration(text).unwrap()).unwrap() };
        assert_eq!(read("a.io/gpu"), json!({"key": "a.io/gpu", "operator": "Exists"}));
        assert_eq!(read("gpu=old"), json!({"key": "gpu", "operator": "Equal", "value": "old"}));
        assert_eq!(
            read("gpu=old:NoSelect"),
            json!({"key": "gpu", "operator": "Equal", "value": "old", "effect": "NoSelect"})
        );
        assert_eq!(read("gpu:NoSelectIfNew"), json!({"key": "gpu", "operator": "Exists", "effect": "NoSelectIfNew"}));
        for bad in ["", "=a", "a=", "a:NoSchedule", "a b", ":NoSelect"] {
            assert_eq!(parse_toleration(bad), None, "{bad}");
        }
    }
}

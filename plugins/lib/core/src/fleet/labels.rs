//! The labels that the hub's object of a cluster is to have.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::order::Collect as _;

/// Those of the wanted labels that an object does not have, or has with another value. Others of it stay.
pub fn missing_labels(object: &Value, wanted: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let labels = &object["metadata"]["labels"];
    let lacks = |(key, value): &(&String, &String)| labels[key.as_str()] != value.as_str();
    wanted.iter().filter(lacks).map(|(key, value)| (key.clone(), value.clone())).collect_map()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_that_are_there_are_not_written_again() {
        let wanted = [("a", "1"), ("b", "2")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let of = |labels: Value| missing_labels(&json!({"metadata": {"labels": labels}}), &wanted);
        assert_eq!(of(json!({"a": "1", "b": "2", "c": "3"})), BTreeMap::new());
        assert_eq!(of(json!({"a": "1", "b": "3"})), [("b".to_owned(), "2".to_owned())].into());
        assert_eq!(of(Value::Null), wanted);
    }
}

//! A part of a spec over a spec, and what of it does not stand there in the end.

use serde_json::Value;

/// How a list is laid over another one.
enum List {
    /// Entry by entry, told apart by this member; those of the other one stay.
    Added(&'static str),
    /// So, and only its own entries stay.
    Chosen(&'static str),
    /// As one value.
    Whole,
}

impl List {
    fn of(member: &str) -> Self {
        match member {
            "featureGates" => Self::Added("feature"),
            "registrationDrivers" => Self::Chosen("authType"),
            _ => Self::Whole,
        }
    }
}

/// Whether an object is one value: a selector says which nodes, and half of another one says which others; amounts of CPU and
/// memory fit each other.
pub(crate) fn is_whole(member: &str) -> bool {
    matches!(member, "nodeSelector" | "resourceRequirements")
}

fn find<'a>(list: &'a [Value], key: &str, like: &Value) -> Option<&'a Value> {
    list.iter().find(|entry| entry[key] == like[key])
}

/// Lays `values` over `base`, which is the value of this member.
pub(crate) fn lay(base: &mut Value, values: &Value, member: &str) {
    match (base, values) {
        (Value::Object(base), Value::Object(values)) if !is_whole(member) => {
            for (name, value) in values {
                match base.get_mut(name) {
                    Some(slot) => lay(slot, value, name),
                    None => {
                        base.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(base), Value::Array(values)) => match List::of(member) {
            List::Whole => base.clone_from(values),
            List::Added(key) => {
                for value in values {
                    match base.iter_mut().find(|entry| entry[key] == value[key]) {
                        Some(entry) => entry.clone_from(value),
                        None => base.push(value.clone()),
                    }
                }
            }
            List::Chosen(key) => {
                let laid = |value: &Value| match find(base, key, value) {
                    Some(entry) => {
                        let mut entry = entry.clone();
                        lay(&mut entry, value, "");
                        entry
                    }
                    None => value.clone(),
                };
                let chosen = values.iter().map(laid).collect();
                *base = chosen;
            }
        },
        (base, values) => base.clone_from(values),
    }
}

/// The paths of what `values` say and `spec` does not.
pub(crate) fn differences(values: &Value, spec: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    differ(values, spec, ("", ""), &mut paths);
    paths
}

/// Adds the paths of what `values` say and `spec` does not. The second part of a place is the name of the member.
fn differ(values: &Value, spec: &Value, (path, member): (&str, &str), paths: &mut Vec<String>) {
    let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (values, spec, List::of(member)) {
        (Value::Object(values), Value::Object(spec), _) if !is_whole(member) => {
            for (name, value) in values {
                let other = spec.get(name).unwrap_or(&Value::Null);
                differ(value, other, (inner(name).as_str(), name.as_str()), paths);
            }
        }
        (Value::Array(values), Value::Array(spec), List::Added(key) | List::Chosen(key)) => {
            for value in values {
                let other = find(spec, key, value).unwrap_or(&Value::Null);
                let entry = format!("{path}[{}]", value[key].as_str().unwrap_or_default());
                differ(value, other, (entry.as_str(), ""), paths);
            }
            let is_chosen = matches!(List::of(member), List::Chosen(_));
            if is_chosen && spec.iter().any(|entry| find(values, key, entry).is_none()) {
                paths.push(path.to_owned());
            }
        }
        (values, spec, _) if values == spec => {}
        _ => paths.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn laid(mut base: Value, values: &Value) -> Value {
        lay(&mut base, values, "");
        base
    }

    #[test]
    fn members_are_laid_one_by_one_and_lists_as_a_whole() {
        let base = json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "nodePlacement": {"nodeSelector": {"x": "1"}, "tolerations": []}});
        let values = json!({"a": {"c": 3, "d": 4}, "l": [3], "nodePlacement": {"nodeSelector": {"y": "2"}}});
        let expected = json!({"a": {"b": 1, "c": 3, "d": 4}, "l": [3],
            "nodePlacement": {"nodeSelector": {"y": "2"}, "tolerations": []}});
        assert_eq!(laid(base, &values), expected);
        assert_eq!(differences(&values, &expected), [""; 0]);
    }

    #[test]
    fn gates_are_added_by_name_and_drivers_are_chosen() {
        let base = json!({"featureGates": [{"feature": "A", "mode": "Enable"}, {"feature": "B", "mode": "Enable"}],
            "registrationDrivers": [{"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}, {"authType": "awsirsa"}]});
        let values = json!({"featureGates": [{"feature": "B", "mode": "Disable"}, {"feature": "C", "mode": "Enable"}],
            "registrationDrivers": [{"authType": "grpc"}, {"authType": "csr"}]});
        let after = laid(base, &values);
        assert_eq!(
            after,
            json!({"featureGates": [{"feature": "A", "mode": "Enable"}, {"feature": "B", "mode": "Disable"},
                {"feature": "C", "mode": "Enable"}],
                "registrationDrivers": [{"authType": "grpc"}, {"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}]})
        );
        assert_eq!(differences(&values, &after), [""; 0]);
    }

    #[test]
    fn what_does_not_stand_there_in_the_end_is_told_with_its_path() {
        let values = json!({"a": {"b": 1, "c": 2}, "l": [1], "featureGates": [{"feature": "A", "mode": "Enable"}],
            "registrationDrivers": [{"authType": "csr"}]});
        let spec = json!({"a": {"b": 1, "c": 3}, "l": [1, 2], "featureGates": [{"feature": "A", "mode": "Disable"}],
            "registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]});
        let mut found = differences(&values, &spec);
        found.sort_unstable();
        assert_eq!(found, ["a.c", "featureGates[A].mode", "l", "registrationDrivers"]);
        assert_eq!(differences(&json!({"x": 1}), &json!({})), ["x"]);
    }
}

//! What to delete: objects of ours, and none that somebody else gave the same name.

use serde_json::Value;

use crate::plan::Found;

/// What is done about an object that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing: it is not there.
    Absent,
    /// The object with this UID is deleted, and none that takes its name meanwhile.
    Delete(String),
    /// Nothing: it lacks a label that the planned one has, so somebody else made it.
    Foreign,
}

/// Decides for one object. The labels of the planned one tell whose the live one is.
pub fn removal(found: &Found) -> Removal {
    let Some(live) = &found.live else { return Removal::Absent };
    let labels = |object: &Value| object.pointer("/metadata/labels").and_then(Value::as_object).cloned();
    let (mark, labels) = (labels(found.manifest.body()).unwrap_or_default(), labels(live).unwrap_or_default());
    let is_ours = !mark.is_empty() && mark.iter().all(|(key, value)| labels.get(key) == Some(value));
    match live.pointer("/metadata/uid").and_then(Value::as_str) {
        Some(uid) if is_ours => Removal::Delete(uid.to_owned()),
        _ => Removal::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use ocm_api::Manifest;
    use serde_json::json;

    use super::*;

    fn removed(planned: Value, live: Option<Value>) -> Removal {
        let mut manifest = Manifest::of(&ConfigMap::default());
        manifest.body_mut()["metadata"] = json!({"name": "a", "labels": planned});
        let live = live.map(|labels| json!({"metadata": {"name": "a", "uid": "1", "labels": labels}}));
        removal(&Found { manifest, live })
    }

    #[test]
    fn only_what_carries_every_label_of_ours_is_deleted() {
        let mark = json!({"part-of": "us", "kind-of": "x"});
        assert_eq!(removed(mark.clone(), None), Removal::Absent);
        let more = json!({"part-of": "us", "kind-of": "x", "more": "y"});
        assert_eq!(removed(mark.clone(), Some(more)), Removal::Delete("1".to_owned()));
        for labels in [json!(null), json!({}), json!({"part-of": "us"}), json!({"part-of": "us", "kind-of": "z"})] {
            assert_eq!(removed(mark.clone(), Some(labels.clone())), Removal::Foreign, "{labels}");
        }
    }

    #[test]
    fn without_labels_of_its_own_nothing_is_ours() {
        for mark in [json!(null), json!({})] {
            assert_eq!(removed(mark.clone(), Some(json!({"part-of": "us"}))), Removal::Foreign, "{mark}");
        }
    }
}

//! Whose an object is: the label that says which add-on it was made for, and who has set it.

use ocm_api::Manifest;
use serde_json::{Map, Value};

use super::content::text;
use crate::order;
use crate::plan::Outcome;
use crate::reconcile::{FIELD_MANAGER, Reconciled, is_applied, reconcile};

/// The label of every object that is installed for an add-on: its value is the name that was given to the add-on.
pub const LABEL: &str = "kubectl-ocm.dev/hub-addon";
/// The annotation of those that somebody else had made before: they are not deleted with the add-on.
pub const WAS_THERE: &str = "kubectl-ocm.dev/was-there-before";

/// How an object that is there stands to the planned one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    New,
    /// It was made for this add-on.
    Ours,
    /// Somebody else had made it, and it was changed for this add-on.
    Shared,
    /// It is somebody else's and may stay as it is; whose, for people.
    Same(String),
    /// It is somebody else's and says something else; whose, for people.
    Theirs(String),
    /// It was installed for another add-on, and says something else; the name of that one.
    Another(String),
}

/// The add-on for which an object was installed; none if nobody says so, or somebody else does: a copy of an object carries
/// the label, too.
pub fn maker(object: &Value) -> Option<&str> {
    let label = object["metadata"]["labels"].get(LABEL)?.as_str()?;
    let is_ours = |entry: &&Value| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply";
    let field = format!("f:{LABEL}");
    let sets_it = |entry: &Value| entry["fieldsV1"]["f:metadata"]["f:labels"].get(&field).is_some();
    entries(object).filter(is_ours).any(sets_it).then_some(label)
}

/// Whether an object was installed for this add-on.
pub fn is_marked(object: &Value, name: &str) -> bool {
    maker(object) == Some(name)
}

/// Whether somebody else had made it before.
pub(super) fn was_there(object: &Value) -> bool {
    object["metadata"]["annotations"].get(WAS_THERE).is_some()
}

/// How the live object stands to the planned one, which has no label yet.
pub fn standing(planned: &Manifest, live: Option<&Value>, name: &str) -> Standing {
    let Some(live) = live else { return Standing::New };
    let maker = maker(live);
    let whose = match maker {
        Some(own) if own == name => return if was_there(live) { Standing::Shared } else { Standing::Ours },
        Some(other) => format!("belongs to hub add-on {other:?}"),
        None => match managers(live).as_slice() {
            [] => "was made by somebody else".to_owned(),
            managers => format!("was written by {}", managers.join(", ")),
        },
    };
    let may_stay = match planned.kind() {
        // Whatever it says besides, objects can be in it.
        "Namespace" => true,
        "CustomResourceDefinition" => matches!(reconcile(planned, Some(live)), Reconciled::Keep(_)),
        _ => false,
    };
    // As the other add-on would apply it.
    let is_same = match maker {
        Some(other) => is_applied(&marked(planned, other, was_there(live)), live),
        None => is_applied(planned, live),
    };
    match maker {
        _ if may_stay || is_same => Standing::Same(whose),
        Some(other) => Standing::Another(other.to_owned()),
        None => Standing::Theirs(whose),
    }
}

/// What an apply of a planned object would come to, without asking a server.
pub fn tried(planned: &Manifest, live: Option<&Value>) -> Outcome {
    let Some(before) = live else { return Outcome::Created };
    match reconcile(planned, live) {
        Reconciled::Keep(reason) => Outcome::Kept(reason),
        Reconciled::Apply(manifest) => {
            // Of what is applied as it stands, too, the server fills in defaults.
            let written = Manifest::written(manifest.plural(), manifest.body().clone());
            if written.is_some_and(|written| is_applied(&written, before)) {
                Outcome::Unchanged
            } else {
                Outcome::Configured
            }
        }
    }
}

/// Who has written an object, but for what is written into its status: field managers, each once.
pub(super) fn managers(object: &Value) -> Vec<String> {
    let mut managers: Vec<String> = entries(object).map(|entry| text(entry, "/manager").to_owned()).collect();
    managers.retain(|manager| !manager.is_empty());
    order::sort(&mut managers);
    managers.dedup();
    managers
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter(|entry| entry["subresource"].as_str().unwrap_or_default().is_empty())
}

/// The planned object with the label of its add-on. `was_there` notes down that somebody else had made it.
///
/// It is applied as it stands, so that what a later version of the add-on does not say any more goes; but for definitions,
/// of which an apply keeps what people's objects may use.
pub fn labelled(planned: &Manifest, name: &str, was_there: bool) -> Manifest {
    let manifest = marked(planned, name, was_there);
    if manifest.kind() == "CustomResourceDefinition" { manifest } else { manifest.exactly() }
}

fn marked(planned: &Manifest, name: &str, was_there: bool) -> Manifest {
    let mut manifest = planned.clone();
    if let Some(metadata) = manifest.body_mut()["metadata"].as_object_mut() {
        set(metadata, "labels", LABEL, name);
        if was_there {
            set(metadata, "annotations", WAS_THERE, "true");
        }
    }
    manifest
}

fn set(metadata: &mut Map<String, Value>, member: &str, key: &str, value: &str) {
    let all = metadata.entry(member).or_insert_with(|| Value::Object(Map::new()));
    if let Some(all) = all.as_object_mut() {
        all.insert(key.to_owned(), Value::from(value));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A ConfigMap as these managers have written it; the first one has set its labels.
    pub(in super::super) fn live(labels: Value, managers: &[&str]) -> Value {
        let owned: Map<String, Value> =
            labels.as_object().into_iter().flatten().map(|(key, _)| (format!("f:{key}"), json!({}))).collect();
        let entry = |(index, manager): (usize, &&str)| {
            let fields = if index == 0 { json!({"f:metadata": {"f:labels": owned}}) } else { json!({"f:data": {}}) };
            json!({"manager": manager, "operation": "Apply", "fieldsV1": fields})
        };
        let entries: Vec<Value> = managers.iter().enumerate().map(entry).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
            "metadata": {"name": "c", "namespace": "n", "uid": "u", "labels": labels, "managedFields": entries}})
    }

    fn planned(data: &str) -> Manifest {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"},
            "data": {"a": data}});
        Manifest::written("configmaps", object).unwrap()
    }

    #[test]
    fn an_object_is_ours_if_we_have_labelled_it() {
        let ours = live(json!({LABEL: "hello"}), &[FIELD_MANAGER, "other"]);
        assert_eq!(standing(&planned("2"), Some(&ours), "hello"), Standing::Ours);
        assert_eq!(standing(&planned("2"), None, "hello"), Standing::New);
        assert_eq!(standing(&planned("2"), Some(&ours), "other"), Standing::Another("hello".to_owned()));
        let same = "belongs to hub add-on \"hello\"".to_owned();
        assert_eq!(standing(&planned("1"), Some(&ours), "other"), Standing::Same(same));
        let mut shared = ours;
        shared["metadata"]["annotations"] = json!({WAS_THERE: "true"});
        assert_eq!(standing(&planned("2"), Some(&shared), "hello"), Standing::Shared);
        // Somebody has copied it, label and all.
        let copy = live(json!({LABEL: "hello"}), &["kubectl"]);
        assert!(!is_marked(&copy, "hello"));
        assert_eq!(
            standing(&planned("2"), Some(&copy), "hello"),
            Standing::Theirs("was written by kubectl".to_owned())
        );
    }

    #[test]
    fn what_was_there_before_may_stay_if_it_says_the_same() {
        let theirs = live(json!({}), &["helm"]);
        assert_eq!(standing(&planned("1"), Some(&theirs), "hello"), Standing::Same("was written by helm".to_owned()));
        assert_eq!(standing(&planned("2"), Some(&theirs), "hello"), Standing::Theirs("was written by helm".to_owned()));
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}});
        let space = Manifest::written("namespaces", space).unwrap();
        let bare = json!({"metadata": {"name": "n"}});
        assert_eq!(standing(&space, Some(&bare), "hello"), Standing::Same("was made by somebody else".to_owned()));
    }

    #[test]
    fn what_an_apply_would_come_to_is_told_without_a_server() {
        let wanted = labelled(&planned("1"), "hello", false);
        assert_eq!(tried(&wanted, None), Outcome::Created);
        let mut live = live(json!({LABEL: "hello"}), &[FIELD_MANAGER]);
        assert_eq!(tried(&wanted, Some(&live)), Outcome::Unchanged);
        assert_eq!(tried(&labelled(&planned("2"), "hello", false), Some(&live)), Outcome::Configured);
        // What we have set, and do not say any more, would go.
        live["data"]["b"] = "2".into();
        live["metadata"]["managedFields"][0]["fieldsV1"]["f:data"] = json!({"f:a": {}, "f:b": {}});
        assert_eq!(tried(&wanted, Some(&live)), Outcome::Configured);
    }

    #[test]
    fn every_object_says_for_which_add_on_it_was_made() {
        let manifest = labelled(&planned("1"), "hello", false);
        assert!(manifest.is_exact());
        assert_eq!(manifest.body()["metadata"]["labels"], json!({LABEL: "hello"}));
        assert_eq!(manifest.body()["metadata"].get("annotations"), None);
        let manifest = labelled(&planned("1"), "hello", true);
        assert_eq!(manifest.body()["metadata"]["annotations"], json!({WAS_THERE: "true"}));
    }
}

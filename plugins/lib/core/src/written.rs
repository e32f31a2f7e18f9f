//! Objects that a command writes as a whole: whether one that is there is as it is to be, and whose it is.

use ocm_api::Manifest;
use serde_json::{Map, Value, json};

use crate::order::Collect as _;
use crate::work::{Owner, owner};

/// How an object that is there stands to the planned one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    New,
    /// It is ours.
    Ours,
    /// Others have written it, and it says the same.
    Same,
    /// Others have written it, and it says something else.
    Theirs(Owner),
}

/// How the live object stands to the planned one.
pub fn standing(planned: &Manifest, live: Option<&Value>) -> Standing {
    let Some(live) = live else { return Standing::New };
    // What others have added counts, too: the object is to be as planned, and nothing besides.
    match owner(live, live) {
        Owner::Ours => Standing::Ours,
        _ if is_same(planned, live) => Standing::Same,
        owner => Standing::Theirs(owner),
    }
}

/// Whether an object says what the planned one says: the same spec, and its labels and annotations.
fn is_same(planned: &Manifest, live: &Value) -> bool {
    let body = planned.body();
    let holds = |member: &str| {
        let wanted = body["metadata"][member].as_object();
        wanted.is_none_or(|all| all.iter().all(|(key, value)| live["metadata"][member].get(key) == Some(value)))
    };
    let spec = |object: &Value| plain(planned.kind(), &object["spec"]);
    holds("labels") && holds("annotations") && spec(body) == spec(live)
}

/// A spec without what says nothing: members that are empty, and what the server fills in.
fn plain(kind: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    // In the others whole objects of any kind are, in which an empty member may mean something.
    if ["ClusterManagementAddOn", "Placement"].contains(&kind) {
        without_empty(&mut spec);
    }
    if let Some(members) = spec.as_object_mut() {
        for (_, member, default) in defaults().iter().filter(|(of, ..)| *of == kind) {
            if members.get(*member) == Some(default) {
                members.remove(*member);
            }
        }
    }
    spec
}

/// Defaults of the schemas, and what clients write in Go that mean none.
fn defaults() -> [(&'static str, &'static str, Value); 6] {
    let groups = |clusters: Value| json!({"groupStrategy": {"clustersPerDecisionGroup": clusters}});
    [
        ("ManifestWorkReplicaSet", "cascadeDeletionPolicy", json!("Background")),
        ("Placement", "sortBy", json!("ClusterName")),
        ("Placement", "scoreRateLimit", json!("1m")),
        ("Placement", "prioritizerPolicy", json!({"mode": "Additive"})),
        ("Placement", "decisionStrategy", groups(json!("100%"))),
        ("Placement", "decisionStrategy", groups(json!(0))),
    ]
}

fn without_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(without_empty);
            members.retain(|_, member| match member {
                Value::Null => false,
                Value::Object(members) => !members.is_empty(),
                Value::Array(items) => !items.is_empty(),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(without_empty),
        _ => {}
    }
}

/// A merge patch that makes the spec of a live object the planned one, and keeps what else it holds.
pub fn replacement(planned: &Manifest, live: &Value) -> Value {
    let mut metadata = Map::new();
    for member in ["labels", "annotations"] {
        if let Some(all) = planned.body()["metadata"].get(member) {
            metadata.insert(member.to_owned(), all.clone());
        }
    }
    json!({"metadata": metadata, "spec": difference(&planned.body()["spec"], &live["spec"])})
}

fn difference(planned: &Value, live: &Value) -> Value {
    let (Value::Object(planned), Value::Object(live)) = (planned, live) else { return planned.clone() };
    let gone = live.keys().filter(|key| !planned.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let kept =
        planned.iter().map(|(key, value)| (key.clone(), difference(value, live.get(key).unwrap_or(&Value::Null))));
    Value::Object(kept.chain(gone).collect_object())
}

#[cfg(test)]
mod tests {
    use ocm_api::Placement;
    use ocm_api::placement::PlacementSpec;

    use super::*;
    use crate::placement::{PlacementOptions, plan};

    fn planned(count: Option<i32>) -> Manifest {
        let options = PlacementOptions { count, ..PlacementOptions::default() };
        plan("team", "web", &options).objects().next().unwrap().clone()
    }

    /// As a client in Go stores it.
    fn theirs(spec: Value) -> Value {
        let mut live = Manifest::of(&Placement::new("web", PlacementSpec::default())).body().clone();
        live["spec"] = spec;
        live["metadata"]["managedFields"] = json!([{"manager": "other", "operation": "Update",
            "fieldsV1": {"f:spec": {".": {}, "f:numberOfClusters": {}, "f:sortBy": {}}}}]);
        live
    }

    #[test]
    fn what_others_have_written_is_the_same_if_it_says_the_same() {
        let go = json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}}, "numberOfClusters": 2,
            "prioritizerPolicy": {"mode": "Additive"}, "scoreRateLimit": "1m", "sortBy": "ClusterName", "spreadPolicy": {}});
        assert_eq!(standing(&planned(Some(2)), Some(&theirs(go.clone()))), Standing::Same);
        let owner = Owner::Others(vec!["other".to_owned()]);
        assert_eq!(standing(&planned(Some(3)), Some(&theirs(go.clone()))), Standing::Theirs(owner.clone()));
        assert_eq!(standing(&planned(None), Some(&theirs(go))), Standing::Theirs(owner));
        assert_eq!(standing(&planned(None), None), Standing::New);
        // An empty predicate selects everything, and none at all does, too; a placement with one is another one.
        let every = json!({"numberOfClusters": 2, "predicates": [{"requiredClusterSelector": {}}]});
        assert!(matches!(standing(&planned(Some(2)), Some(&theirs(every))), Standing::Theirs(_)));
    }

    #[test]
    fn what_we_have_written_is_ours() {
        let mut live = theirs(json!({"numberOfClusters": 2, "sortBy": "ClusterName"}));
        live["metadata"]["managedFields"][0]["manager"] = "kubectl-ocm".into();
        live["metadata"]["managedFields"][0]["operation"] = "Apply".into();
        assert_eq!(standing(&planned(Some(3)), Some(&live)), Standing::Ours);
    }

    #[test]
    fn labels_and_annotations_count_if_they_are_planned() {
        let mut planned = planned(Some(2));
        planned.body_mut()["metadata"]["labels"] = json!({"a": "b"});
        let mut live = theirs(json!({"numberOfClusters": 2, "sortBy": "ClusterName"}));
        assert!(matches!(standing(&planned, Some(&live)), Standing::Theirs(_)));
        live["metadata"]["labels"] = json!({"a": "b", "c": "d"});
        assert_eq!(standing(&planned, Some(&live)), Standing::Same);
    }

    #[test]
    fn a_replacement_takes_away_what_is_not_planned() {
        let live = theirs(json!({"clusterSets": ["a"], "numberOfClusters": 2}));
        assert_eq!(
            replacement(&planned(Some(3)), &live),
            json!({"metadata": {}, "spec": {"clusterSets": null, "numberOfClusters": 3, "predicates": []}})
        );
    }
}

//! Changes, together and one by one.

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Edit, EditGrant, Operation, Request, Taint, TaintEffect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::PolicyError;
use crate::review;
use crate::syntax::ANNOTATIONS_BYTES;

pub(crate) fn label(key: &str, value: &str) -> Edit {
    Edit::SetLabel { key: key.into(), value: value.into() }
}

fn taint(key: &str, value: &str, effect: TaintEffect) -> Edit {
    Edit::AddTaint { key: key.into(), value: value.into(), effect }
}

fn object() -> Value {
    json!({
        "metadata": {"name": "c1", "labels": {"team": "a", "example.com/x~y": "1"}},
        "spec": {
            "hubAcceptsClient": false,
            "leaseDurationSeconds": 60,
            "taints": [
                {"key": "new", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"},
                {"key": "old", "value": "1", "effect": "NoSelect"},
                {"key": "old", "effect": "PreferNoSelect"},
            ],
        },
    })
}

fn request(operation: Operation) -> Request<'static> {
    let object = json!({"metadata": {"name": "c1"}});
    let asked = review::of_cluster(Operation::Accept, &object, Default::default(), &review::Asking::default());
    Request { operation, ..asked.unwrap().into_owned() }
}

#[test]
fn both_sides_have_to_permit() {
    let (edits, grants) = ([label("team", "b")], [EditGrant::Label { key: "team".into() }]);
    let request = request(Operation::Create);
    assert_eq!(check(&edits, &request, &grants, &grants), Ok(()));
    for (manifest, administrator) in [(&grants[..], &[][..]), (&[], &grants), (&[], &[])] {
        let error = check(&edits, &request, manifest, administrator).unwrap_err();
        assert!(matches!(&error, PolicyError::EditRefused(what) if what.starts_with("label team: ")), "{error}");
    }
    assert_eq!(check(&[], &request, &[], &[]), Ok(()));
}

#[test]
fn only_what_is_written_can_be_edited() {
    let (edits, grants) = ([label("team", "b")], [EditGrant::Label { key: "*".into() }]);
    for operation in Operation::ALL {
        let writes = matches!(operation, Operation::Create | Operation::Update | Operation::Accept | Operation::Join);
        assert_eq!(check(&edits, &request(operation), &grants, &grants).is_ok(), writes, "{operation:?}");
    }
    let mut status = request(Operation::Update);
    status.resource.as_mut().unwrap().subresource = Some("status".into());
    assert!(check(&edits, &status, &grants, &grants).is_err());
}

#[test]
fn system_keys_have_to_be_named_in_full() {
    for key in [
        "open-cluster-management.io/x",
        "agent.open-cluster-management.io/x",
        "kubectl.kubernetes.io/last-applied-configuration",
        "topology.kubernetes.io/region",
        "Agent.Open-Cluster-Management.IO/x",
        "kubectl-ocm/creator-credential",
        "policy.kubectl-ocm.dev/x",
    ] {
        let edits = [Edit::SetAnnotation { key: key.into(), value: String::new() }];
        let grant = |key: &str| [EditGrant::Annotation { key: key.into() }];
        let request = request(Operation::Update);
        let pattern = format!("{}*", &key[..key.len() - 1]);
        for wild in ["*", &pattern] {
            assert!(check(&edits, &request, &grant(wild), &grant(key)).is_err(), "{key} {wild}");
            assert!(check(&edits, &request, &grant(key), &grant(wild)).is_err(), "{key} {wild}");
        }
        assert_eq!(check(&edits, &request, &grant(key), &grant(key)), Ok(()));
    }
    for key in ["x", "example.com/x", "notopen-cluster-management.io/x", "open-cluster-management.io.example.com/x"] {
        let (edits, grant) = (
            [Edit::SetAnnotation { key: key.into(), value: String::new() }],
            EditGrant::Annotation { key: "*".into() },
        );
        assert_eq!(
            check(&edits, &request(Operation::Update), std::slice::from_ref(&grant), std::slice::from_ref(&grant)),
            Ok(()),
            "{key}"
        );
    }
}

#[test]
fn the_cluster_set_has_a_grant_of_its_own() {
    let set = [Edit::SetClusterSet { name: "prod".into() }];
    let request = request(Operation::Create);
    let named = [EditGrant::Label { key: CLUSTER_SET.into() }];
    assert_eq!(check(&set, &request, &[EditGrant::ClusterSet], &[EditGrant::ClusterSet]), Ok(()));
    assert!(check(&set, &request, &named, &[EditGrant::ClusterSet]).is_err());
    let all = [named[0].clone(), EditGrant::ClusterSet];
    for edit in [label(CLUSTER_SET, "prod"), Edit::RemoveLabel { key: CLUSTER_SET.into() }] {
        assert!(check(&[edit], &request, &all, &all).is_err());
    }
}

#[test]
fn the_same_edits_merge_and_others_conflict() {
    let [one, two] = [label("team", "a"), label("team", "b")];
    let (one, two) = ([one], [two]);
    assert_eq!(merge([("p", &one[..]), ("q", &one)]).unwrap(), one);
    let conflicts = merge([("q", &one[..]), ("p", &two)]).unwrap_err();
    assert_eq!(conflicts, [Conflict { policies: ["p".into(), "q".into()], target: "label team".into() }]);
    assert_eq!(
        PolicyError::from(&conflicts[0]).to_string(),
        "policies disagree about a change: p and q want different things of label team"
    );
    let remove = Edit::RemoveTaint { key: "k".into() };
    let add = |effect| taint("k", "", effect);
    assert!(clash(&remove, &add(TaintEffect::NoSelect)) && !clash(&remove, &remove));
    assert!(!clash(&add(TaintEffect::NoSelect), &add(TaintEffect::PreferNoSelect)));
    assert!(clash(&add(TaintEffect::NoSelect), &taint("k", "v", TaintEffect::NoSelect)));
    assert!(clash(&Edit::SetClusterSet { name: "a".into() }, &label(CLUSTER_SET, "b")));
    assert!(!clash(&label("team", "a"), &Edit::SetAnnotation { key: "team".into(), value: "b".into() }));
}

#[test]
fn patches_are_small_and_escaped() {
    let patch = |edits: &[Edit]| render(&object(), edits).unwrap();
    let path = "/metadata/labels/example.com~1x~0y";
    assert_eq!(patch(&[label("example.com/x~y", "2")]), [json!({"op": "replace", "path": path, "value": "2"})]);
    for nothing in [
        label("team", "a"),
        Edit::RemoveLabel { key: "none".into() },
        Edit::RemoveAnnotation { key: "none".into() },
        taint("new", "", TaintEffect::NoSelect),
        Edit::SetLeaseDuration { seconds: 60 },
    ] {
        assert_eq!(patch(std::slice::from_ref(&nothing)), Vec::<Value>::new(), "{nothing:?}");
    }
    assert_eq!(
        patch(&[Edit::SetAnnotation { key: "a".into(), value: "b".into() }]),
        [json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}})]
    );
    let changed = patch(&[taint("old", "2", TaintEffect::NoSelect), taint("x", "", TaintEffect::NoSelect)]);
    assert_eq!(changed[0]["path"], "/spec/taints/1");
    assert_eq!(changed[1]["path"], "/spec/taints/-");
    let bare = render(&json!({"metadata": {}}), &[Edit::SetLeaseDuration { seconds: 5 }]).unwrap();
    assert_eq!(bare[0], json!({"op": "add", "path": "/spec", "value": {}}));
}

#[test]
fn what_is_no_cluster_is_not_patched() {
    for (object, path) in [
        (json!({}), "/metadata"),
        (json!({"metadata": {"labels": []}}), "/metadata/labels"),
        (json!({"metadata": {}, "spec": {"taints": {}}}), "/spec/taints"),
    ] {
        let error = render(&object, &[label("a", "b")]).unwrap_err();
        assert!(matches!(&error, PolicyError::EditRefused(what) if what.starts_with(path)), "{error}");
    }
    let large = json!({"metadata": {"annotations": {"a": "x".repeat(ANNOTATIONS_BYTES - 4)}}});
    let add = |value: &str| render(&large, &[Edit::SetAnnotation { key: "b".into(), value: value.into() }]);
    assert!(add("12").is_ok() && add("123").is_err());
}

fn any_key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "team",
        "a",
        "new",
        "old",
        "example.com/x~y",
        "example.com/team",
        "kubernetes.io/x",
        "open-cluster-management.io/automatically-accepted-on",
        "cluster.open-cluster-management.io/clusterset",
        "feature.open-cluster-management.io/addon-x",
    ])
    .prop_map(str::to_owned)
}

pub(crate) fn any_edit() -> impl Strategy<Value = Edit> {
    let value = || prop::sample::select(vec!["", "1", "a", "b"]).prop_map(str::to_owned);
    let effect =
        prop::sample::select(vec![TaintEffect::NoSelect, TaintEffect::PreferNoSelect, TaintEffect::NoSelectIfNew]);
    prop_oneof![
        (any_key(), value()).prop_map(|(key, value)| Edit::SetLabel { key, value }),
        any_key().prop_map(|key| Edit::RemoveLabel { key }),
        (any_key(), value()).prop_map(|(key, value)| Edit::SetAnnotation { key, value }),
        any_key().prop_map(|key| Edit::RemoveAnnotation { key }),
        (any_key(), value(), effect).prop_map(|(key, value, effect)| Edit::AddTaint { key, value, effect }),
        any_key().prop_map(|key| Edit::RemoveTaint { key }),
        value().prop_map(|name| Edit::SetClusterSet { name }),
        (1u32..90).prop_map(|seconds| Edit::SetLeaseDuration { seconds }),
    ]
}

fn any_grant() -> impl Strategy<Value = EditGrant> {
    let key = || {
        prop_oneof![any_key(), any_key().prop_map(|key| format!("{}*", &key[..key.len() / 2])), Just("*".to_owned()),]
    };
    prop_oneof![
        key().prop_map(|key| EditGrant::Label { key }),
        key().prop_map(|key| EditGrant::Annotation { key }),
        key().prop_map(|key| EditGrant::Taint { key }),
        Just(EditGrant::ClusterSet),
        Just(EditGrant::LeaseDuration),
    ]
}

fn any_object() -> impl Strategy<Value = Value> {
    let map = || prop::option::of(prop::collection::btree_map(any_key(), "[ab]", 0..4));
    let taints = prop::option::of(prop::collection::btree_map(
        (any_key(), prop::sample::select(vec!["NoSelect", "PreferNoSelect"])),
        "[ab]?",
        0..4,
    ));
    (map(), map(), taints, prop::option::of(1..90), any::<bool>()).prop_map(
        |(labels, annotations, taints, lease, no_spec)| {
            let taints = taints.map(|taints| {
                let taint = |((key, effect), value)| json!({"key": key, "effect": effect, "value": value});
                taints.into_iter().map(taint).collect::<Vec<_>>()
            });
            let mut object = json!({
                "metadata": {"name": "c1", "labels": labels, "annotations": annotations},
                "spec": {"taints": taints, "leaseDurationSeconds": lease},
            });
            if no_spec {
                object.as_object_mut().unwrap().remove("spec");
            }
            object
        },
    )
}

/// Edits that do not clash, as a checked decision has them.
fn peaceful(edits: Vec<Edit>) -> Vec<Edit> {
    edits.into_iter().fold(Vec::new(), |mut kept, edit| {
        if !kept.iter().any(|other| clash(other, &edit)) {
            kept.push(edit);
        }
        kept
    })
}

proptest! {
    #[test]
    fn nothing_outside_of_the_lists_gets_through(
        edits in prop::collection::vec(any_edit(), 0..6),
        manifest in prop::collection::vec(any_grant(), 0..4),
        administrator in prop::collection::vec(any_grant(), 0..4),
    ) {
        // Said once more in other words, as the oracle.
        let reaches = |grant: &EditGrant, edit: &Edit| {
            let fits = |pattern: &str, key: &str| match pattern.strip_suffix('*') {
                Some(start) => key.starts_with(start) && !key.contains("kubernetes.io/") && !key.contains("management.io/"),
                None => pattern == key,
            };
            match (grant, edit) {
                (EditGrant::Label { key: pattern }, Edit::SetLabel { key, .. } | Edit::RemoveLabel { key }) =>
                    fits(pattern, key) && key != CLUSTER_SET,
                (EditGrant::Annotation { key: pattern }, Edit::SetAnnotation { key, .. } | Edit::RemoveAnnotation { key }) =>
                    fits(pattern, key),
                (EditGrant::Taint { key: pattern }, Edit::AddTaint { key, .. } | Edit::RemoveTaint { key }) =>
                    fits(pattern, key),
                (EditGrant::ClusterSet, Edit::SetClusterSet { .. }) => true,
                (EditGrant::LeaseDuration, Edit::SetLeaseDuration { .. }) => true,
                _ => false,
            }
        };
        let right = edits.iter().all(|edit| {
            manifest.iter().any(|grant| reaches(grant, edit)) && administrator.iter().any(|grant| reaches(grant, edit))
        });
        prop_assert_eq!(check(&edits, &request(Operation::Create), &manifest, &administrator).is_ok(), right);
    }

    #[test]
    fn a_patched_object_is_the_edited_cluster(
        object in any_object(),
        edits in prop::collection::vec(any_edit(), 0..8),
    ) {
        let edits = peaceful(edits);
        let mut typed = review::cluster(&object).unwrap();
        apply(&mut typed, &edits);
        let patched = written(&object, &edits).unwrap();
        let (mut read, mut typed) = (review::cluster(&patched).unwrap(), typed);
        // Which taint stands first says nothing.
        let order = |taint: &Taint<'_>| (taint.key.to_string(), taint.effect.to_string());
        read.taints.sort_by_key(order);
        typed.taints.sort_by_key(order);
        prop_assert_eq!(&read, &typed);
        // What is so already needs no second patch, in whatever order.
        let again: Vec<Edit> = edits.iter().rev().cloned().collect();
        prop_assert_eq!(render(&patched, &again).unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn adapted_mutations_are_the_edits_that_made_them(
        object in any_object(),
        edits in prop::collection::vec(any_edit(), 0..6),
    ) {
        let mut patched = object.clone();
        let patch: json_patch::Patch =
            serde_json::from_value(render(&object, &peaceful(edits)).unwrap().into()).unwrap();
        json_patch::patch(&mut patched, &patch).unwrap();
        if let Ok(found) = crate::adapt::diff(&object, &patched) {
            let mut again = object.clone();
            let patch: json_patch::Patch = serde_json::from_value(render(&object, &found).unwrap().into()).unwrap();
            json_patch::patch(&mut again, &patch).unwrap();
            let (mut one, mut other) = (review::cluster(&again).unwrap(), review::cluster(&patched).unwrap());
            let order = |taint: &Taint<'_>| (taint.key.to_string(), taint.effect.to_string());
            one.taints.sort_by_key(order);
            other.taints.sort_by_key(order);
            prop_assert_eq!(one, other);
        }
    }
}

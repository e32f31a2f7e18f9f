//! Changes to a cluster: who may make which, what becomes of several, and how they are written down.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Cluster, Edit, EditGrant, Map, Operation, Request, Taint, TaintEffect, Text};
use serde_json::{Map as Object, Value, json};

use crate::fault::Fault;
use crate::json::{is_empty, step};
use crate::syntax::ANNOTATIONS_BYTES;

/// Domains whose keys the hub, its agents, Kubernetes or our own policies act upon. A grant reaches such a key only by its full name.
const SYSTEM_DOMAINS: [&str; 4] = ["open-cluster-management.io", "kubernetes.io", "k8s.io", "kubectl-ocm"];

/// Whether a key of labels, annotations or taints belongs to a system: it stands below one of its domains.
pub fn is_system_key(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    let domain = domain.to_ascii_lowercase();
    SYSTEM_DOMAINS
        .iter()
        .any(|known| domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Checks edits against what the policy's manifest announces and what the administrator permits: both have to cover
/// each edit, and system keys ([`is_system_key`]) have to be named in full by both. The label of the cluster set is
/// reached by [`EditGrant::ClusterSet`] alone.
///
/// Only a ManagedCluster that is about to be written can be edited: with create, update, accept and join, and not
/// through a subresource, which would drop the changes in silence.
///
/// # Errors
/// [`Fault::EditRefused`] names the first edit that is not covered.
pub fn check(
    edits: &[Edit],
    request: &Request<'_>,
    manifest: &[EditGrant],
    administrator: &[EditGrant],
) -> Result<(), Fault> {
    let Some(first) = edits.first() else { return Ok(()) };
    let writes =
        matches!(request.operation, Operation::Create | Operation::Update | Operation::Accept | Operation::Join);
    if !writes || request.resource.as_ref().is_some_and(|resource| resource.subresource.is_some()) {
        let what = request.operation.word();
        return Err(Fault::EditRefused(format!("{}: nothing can be edited with this {what}", target(first))));
    }
    let missing = |edit: &&Edit| !permitted(edit, manifest) || !permitted(edit, administrator);
    match edits.iter().find(missing) {
        None => Ok(()),
        Some(edit) if permitted(edit, manifest) => {
            Err(Fault::EditRefused(format!("{}: the administrator does not permit it", target(edit))))
        }
        Some(edit) => Err(Fault::EditRefused(format!("{}: its manifest does not announce it", target(edit)))),
    }
}

/// Whether one of these grants reaches the edit.
fn permitted(edit: &Edit, grants: &[EditGrant]) -> bool {
    let system = key(edit).is_some_and(is_system_key);
    grants.iter().any(|grant| grant.covers(edit) && !(system && is_wildcard(grant)))
}

fn is_wildcard(grant: &EditGrant) -> bool {
    match grant {
        EditGrant::Label { key } | EditGrant::Annotation { key } | EditGrant::Taint { key } => key.ends_with('*'),
        EditGrant::ClusterSet | EditGrant::LeaseDuration => false,
    }
}

fn key(edit: &Edit) -> Option<&str> {
    match edit {
        Edit::SetLabel { key, .. }
        | Edit::RemoveLabel { key }
        | Edit::SetAnnotation { key, .. }
        | Edit::RemoveAnnotation { key }
        | Edit::AddTaint { key, .. }
        | Edit::RemoveTaint { key } => Some(key),
        Edit::SetClusterSet { .. } | Edit::SetLeaseDuration { .. } => None,
    }
}

/// What an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target<'a> {
    /// A label.
    Label(&'a str),
    /// An annotation.
    Annotation(&'a str),
    /// The taint of a key and an effect; without effect all of the key.
    Taint(&'a str, Option<TaintEffect>),
    /// The lease duration.
    LeaseDuration,
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(key) => write!(f, "label {key}"),
            Self::Annotation(key) => write!(f, "annotation {key}"),
            Self::Taint(key, None) => write!(f, "taint {key}"),
            Self::Taint(key, Some(effect)) => write!(f, "taint {key}:{effect:?}"),
            Self::LeaseDuration => f.write_str("lease duration"),
        }
    }
}

/// What an edit changes. A cluster set is the label that it is stored as.
pub fn target(edit: &Edit) -> Target<'_> {
    match edit {
        Edit::SetLabel { key, .. } | Edit::RemoveLabel { key } => Target::Label(key),
        Edit::SetAnnotation { key, .. } | Edit::RemoveAnnotation { key } => Target::Annotation(key),
        Edit::AddTaint { key, effect, .. } => Target::Taint(key, Some(*effect)),
        Edit::RemoveTaint { key } => Target::Taint(key, None),
        Edit::SetClusterSet { .. } => Target::Label(CLUSTER_SET),
        Edit::SetLeaseDuration { .. } => Target::LeaseDuration,
    }
}

/// Whether two edits want different things of the same target.
pub fn clash(one: &Edit, other: &Edit) -> bool {
    let same = match (target(one), target(other)) {
        // Adding one taint and removing all of its key excludes each other; different effects do not.
        (Target::Taint(one, effect), Target::Taint(other, effect_too)) => {
            one == other && (effect.is_none() || effect_too.is_none() || effect == effect_too)
        }
        (one, other) => one == other,
    };
    same && !alike(one, other)
}

/// Whether two edits have the same outcome.
fn alike(one: &Edit, other: &Edit) -> bool {
    match (one, other) {
        (Edit::SetClusterSet { name }, Edit::SetLabel { key, value })
        | (Edit::SetLabel { key, value }, Edit::SetClusterSet { name }) => key == CLUSTER_SET && name == value,
        _ => one == other,
    }
}

/// Two policies that want different things of the same target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The policies, in the order of their names.
    pub policies: [String; 2],
    /// What they disagree about.
    pub target: String,
}

impl From<&Conflict> for Fault {
    fn from(conflict: &Conflict) -> Self {
        let [one, other] = &conflict.policies;
        Self::EditConflict(format!("{one} and {other} want different things of {}", conflict.target))
    }
}

/// Puts the edits of several policies together: what they agree about once, sorted.
///
/// # Errors
/// Every pair of policies that disagrees, and about what.
pub fn merge<'a>(answers: impl IntoIterator<Item = (&'a str, &'a [Edit])>) -> Result<Vec<Edit>, Vec<Conflict>> {
    let all: Vec<(&str, &Edit)> =
        answers.into_iter().flat_map(|(policy, edits)| edits.iter().map(move |edit| (policy, edit))).collect();
    let mut conflicts = BTreeSet::new();
    for (index, (policy, edit)) in all.iter().enumerate() {
        for (other, _) in all[..index].iter().filter(|(_, before)| clash(edit, before)) {
            let mut policies = [(*policy).to_owned(), (*other).to_owned()];
            policies.sort();
            // A removed taint and an added one have two names; the shorter covers both.
            let target = match target(edit) {
                Target::Taint(key, _) => Target::Taint(key, None).to_string(),
                target => target.to_string(),
            };
            conflicts.insert(Conflict { policies, target });
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts.into_iter().collect());
    }
    Ok(all.into_iter().map(|(_, edit)| edit.clone()).collect::<BTreeSet<_>>().into_iter().collect())
}

/// Writes edits as a JSON patch (RFC 6902) of the object. What is already so is left out. The edits must not clash.
///
/// # Errors
/// [`Fault::EditRefused`] if the object has not the shape of a ManagedCluster, or would get more annotations than
/// Kubernetes stores.
pub fn render(object: &Value, edits: &[Edit]) -> Result<Vec<Value>, Fault> {
    let mut patch = Vec::new();
    let metadata = member(object, "", "metadata")?;
    if metadata.is_none() {
        return Err(Fault::EditRefused("/metadata: there is none".to_owned()));
    }
    let mut labels = Vec::new();
    let mut annotations = Vec::new();
    for edit in edits {
        match edit {
            Edit::SetLabel { key, value } => labels.push((key.as_str(), Some(value.as_str()))),
            Edit::RemoveLabel { key } => labels.push((key, None)),
            Edit::SetClusterSet { name } => labels.push((CLUSTER_SET, Some(name))),
            Edit::SetAnnotation { key, value } => annotations.push((key.as_str(), Some(value.as_str()))),
            Edit::RemoveAnnotation { key } => annotations.push((key, None)),
            _ => {}
        }
    }
    let metadata = metadata.unwrap_or(&Value::Null);
    render_map(member(metadata, "/metadata", "labels")?, "/metadata/labels", &labels, &mut patch);
    let old = member(metadata, "/metadata", "annotations")?;
    bounded(old, &annotations)?;
    render_map(old, "/metadata/annotations", &annotations, &mut patch);
    render_spec(object, edits, &mut patch)?;
    Ok(patch)
}

/// What edits set, as values by JSON pointer: told to policies at the validating stage, so that they know what other
/// policies wrote.
pub fn values(edits: &[Edit]) -> Map<'static, Text<'static>> {
    let at = |member: &str, key: &str| format!("/metadata/{member}/{}", step(key));
    let value = |edit: &Edit| match edit {
        Edit::SetLabel { key, value } => Some((at("labels", key), value.clone())),
        Edit::SetClusterSet { name } => Some((at("labels", CLUSTER_SET), name.clone())),
        Edit::SetAnnotation { key, value } => Some((at("annotations", key), value.clone())),
        Edit::SetLeaseDuration { seconds } => Some(("/spec/leaseDurationSeconds".to_owned(), seconds.to_string())),
        Edit::AddTaint { key, value, effect } => {
            Some((format!("/spec/taints/{}:{}", step(key), effect.word()), value.clone()))
        }
        Edit::RemoveLabel { .. } | Edit::RemoveAnnotation { .. } | Edit::RemoveTaint { .. } => None,
    };
    edits.iter().filter_map(value).map(|(pointer, value)| (pointer, Text::from(value))).collect()
}

/// A member that is an object; null is none.
fn member<'v>(parent: &'v Value, path: &str, name: &str) -> Result<Option<&'v Value>, Fault> {
    match parent.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(found) if found.is_object() => Ok(Some(found)),
        Some(_) => Err(Fault::EditRefused(format!("{path}/{name}: it is no object"))),
    }
}

/// Refuses what would make the annotations larger than Kubernetes stores.
fn bounded(old: Option<&Value>, changes: &[(&str, Option<&str>)]) -> Result<(), Fault> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for (key, value) in old.and_then(Value::as_object).into_iter().flatten() {
        sizes.insert(key, key.len() + value.as_str().map_or(0, str::len));
    }
    for (key, value) in changes {
        match value {
            Some(value) => sizes.insert(key, key.len() + value.len()),
            None => sizes.remove(key),
        };
    }
    let total: usize = sizes.values().sum();
    if changes.is_empty() || total <= ANNOTATIONS_BYTES {
        return Ok(());
    }
    Err(Fault::EditRefused(format!("annotations of {total} bytes, {ANNOTATIONS_BYTES} allowed")))
}

fn render_map(old: Option<&Value>, path: &str, changes: &[(&str, Option<&str>)], patch: &mut Vec<Value>) {
    let Some(old) = old else {
        let new: Object<_, _> =
            changes.iter().filter_map(|(key, value)| Some(((*key).to_owned(), Value::from((*value)?)))).collect();
        if !new.is_empty() {
            patch.push(json!({"op": "add", "path": path, "value": new}));
        }
        return;
    };
    // Sorted and each once: the same edits give the same patch.
    let changes: BTreeMap<_, _> = changes.iter().copied().collect();
    for (key, value) in changes {
        let at = format!("{path}/{}", step(key));
        match (old.get(key), value) {
            (Some(was), Some(value)) if was != value => {
                patch.push(json!({"op": "replace", "path": at, "value": value}));
            }
            (None, Some(value)) => patch.push(json!({"op": "add", "path": at, "value": value})),
            (Some(_), None) => patch.push(json!({"op": "remove", "path": at})),
            _ => {}
        }
    }
}

fn render_spec(object: &Value, edits: &[Edit], patch: &mut Vec<Value>) -> Result<(), Fault> {
    let spec = member(object, "", "spec")?;
    let mut ops = Vec::new();
    for edit in edits {
        if let Edit::SetLeaseDuration { seconds } = edit {
            let old = spec.and_then(|spec| spec.get("leaseDurationSeconds")).filter(|old| !old.is_null());
            if old != Some(&Value::from(*seconds)) {
                let op = if old.is_some() { "replace" } else { "add" };
                ops.push(json!({"op": op, "path": "/spec/leaseDurationSeconds", "value": seconds}));
            }
        }
    }
    render_taints(spec.and_then(|spec| spec.get("taints")), edits, &mut ops)?;
    if spec.is_none() && !ops.is_empty() {
        patch.push(json!({"op": "add", "path": "/spec", "value": {}}));
    }
    patch.append(&mut ops);
    Ok(())
}

fn render_taints(old: Option<&Value>, edits: &[Edit], patch: &mut Vec<Value>) -> Result<(), Fault> {
    let taints: &[Value] = match old {
        None | Some(Value::Null) => &[],
        Some(Value::Array(taints)) => taints,
        Some(_) => return Err(Fault::EditRefused("/spec/taints: it is no list".to_owned())),
    };
    let says = |taint: &Value, name: &str, text: &str| taint.get(name).and_then(Value::as_str).unwrap_or("") == text;
    let mut removed = BTreeSet::new();
    let mut added = Vec::new();
    for edit in edits {
        match edit {
            Edit::RemoveTaint { key } => {
                removed.extend((0..taints.len()).filter(|index| says(&taints[*index], "key", key)));
            }
            Edit::AddTaint { key, value, effect } => {
                let effect = effect.word();
                // Without `timeAdded`: the hub's webhook writes it, and takes it from nobody else.
                let mut taint = json!({"key": key, "effect": effect});
                if !value.is_empty() {
                    taint["value"] = json!(value);
                }
                let place = taints.iter().position(|old| says(old, "key", key) && says(old, "effect", effect));
                match place {
                    Some(index) if says(&taints[index], "value", value) => {}
                    Some(index) => {
                        patch.push(json!({"op": "replace", "path": format!("/spec/taints/{index}"), "value": taint}));
                    }
                    None if added.contains(&taint) => {}
                    None => added.push(taint),
                }
            }
            _ => {}
        }
    }
    // From the back, so that the places of the others stay.
    for index in removed.into_iter().rev() {
        patch.push(json!({"op": "remove", "path": format!("/spec/taints/{index}")}));
    }
    if is_empty(old) && !matches!(old, Some(Value::Array(_))) {
        if !added.is_empty() {
            patch.push(json!({"op": "add", "path": "/spec/taints", "value": added}));
        }
    } else {
        patch.extend(added.into_iter().map(|taint| json!({"op": "add", "path": "/spec/taints/-", "value": taint})));
    }
    Ok(())
}

/// Makes the edits to the facts of a cluster, so that who is asked next sees them. The edits must not clash.
pub fn apply(cluster: &mut Cluster<'_>, edits: &[Edit]) {
    for edit in edits {
        match edit {
            Edit::SetLabel { key, value } => set(&mut cluster.labels, key, Some(value)),
            Edit::RemoveLabel { key } => set(&mut cluster.labels, key, None),
            Edit::SetClusterSet { name } => set(&mut cluster.labels, CLUSTER_SET, Some(name)),
            Edit::SetAnnotation { key, value } => set(&mut cluster.annotations, key, Some(value)),
            Edit::RemoveAnnotation { key } => set(&mut cluster.annotations, key, None),
            Edit::AddTaint { key, value, effect } => {
                let effect = effect.word();
                match cluster.taints.iter_mut().find(|taint| taint.key == *key.as_str() && taint.effect == effect) {
                    Some(taint) => taint.value = value.clone().into(),
                    None => cluster.taints.push(Taint {
                        key: key.clone().into(),
                        value: value.clone().into(),
                        effect: effect.into(),
                        added: None,
                    }),
                }
            }
            Edit::RemoveTaint { key } => cluster.taints.retain(|taint| taint.key != *key.as_str()),
            Edit::SetLeaseDuration { seconds } => cluster.lease_duration_seconds = Some(i64::from(*seconds)),
        }
    }
}

/// Sets or removes an entry and keeps the keys sorted, as facts that were read from an object are.
fn set(map: &mut Map<'_, Text<'_>>, key: &str, value: Option<&str>) {
    let mut entries: BTreeMap<String, Text<'_>> =
        map.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    match value {
        Some(value) => entries.insert(key.to_owned(), value.to_owned().into()),
        None => entries.remove(key),
    };
    *map = entries.into_iter().collect();
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::review;

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
            let fault = check(&edits, &request, manifest, administrator).unwrap_err();
            assert!(matches!(&fault, Fault::EditRefused(what) if what.starts_with("label team: ")), "{fault}");
        }
        assert_eq!(check(&[], &request, &[], &[]), Ok(()));
    }

    #[test]
    fn only_what_is_written_can_be_edited() {
        let (edits, grants) = ([label("team", "b")], [EditGrant::Label { key: "*".into() }]);
        for operation in Operation::ALL {
            let writes =
                matches!(operation, Operation::Create | Operation::Update | Operation::Accept | Operation::Join);
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
        for key in ["x", "example.com/x", "notopen-cluster-management.io/x", "open-cluster-management.io.example.com/x"]
        {
            assert!(!is_system_key(key), "{key}");
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
            Fault::from(&conflicts[0]).to_string(),
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
            let fault = render(&object, &[label("a", "b")]).unwrap_err();
            assert!(matches!(&fault, Fault::EditRefused(what) if what.starts_with(path)), "{fault}");
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
            prop_oneof![
                any_key(),
                any_key().prop_map(|key| format!("{}*", &key[..key.len() / 2])),
                Just("*".to_owned()),
            ]
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
            let mut patched = object.clone();
            let patch: json_patch::Patch = serde_json::from_value(render(&object, &edits).unwrap().into()).unwrap();
            json_patch::patch(&mut patched, &patch).unwrap();
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
}

//! Changes to a cluster: who may make which, what becomes of several, and how they are written down.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ocm_api::names::labels::CLUSTER_SET;
use ocm_policy_abi::{Cluster, Edit, EditGrant, Map, Operation, Request, Taint, TaintEffect, Text};
use serde_json::{Map as Object, Value, json};

use crate::json::{is_empty, step};
use crate::outcome::{Fault, Outcome};
use crate::syntax::ANNOTATIONS_BYTES;

/// Domains whose keys the hub, its agents or Kubernetes act upon. A grant reaches such a key only by its full name.
const SYSTEM_DOMAINS: [&str; 3] = ["open-cluster-management.io", "kubernetes.io", "k8s.io"];

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

impl Outcome {
    /// The same outcome if its edits are permitted, see [`check`]; otherwise the fault.
    #[must_use]
    pub fn permit(mut self, request: &Request<'_>, manifest: &[EditGrant], administrator: &[EditGrant]) -> Self {
        if let Ok(decision) = &self.result
            && let Err(fault) = check(&decision.edits, request, manifest, administrator)
        {
            self.result = Err(fault);
        }
        self
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
                let effect = effect_word(*effect);
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

const fn effect_word(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
    }
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
                let effect = effect_word(*effect);
                match cluster.taints.iter_mut().find(|taint| taint.key == *key.as_str() && taint.effect == effect) {
                    Some(taint) => taint.value = value.clone().into(),
                    None => cluster.taints.push(Taint {
                        key: key.clone().into(),
                        value: value.clone().into(),
                        effect: effect.into(),
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

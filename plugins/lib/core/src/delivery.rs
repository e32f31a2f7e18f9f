//! What a hub brings to managed clusters, works and add-ons, and what keeps it from being there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::conditions::{self, managed_cluster_add_on, manifest_work};
use ocm_api::work::{ManifestCondition, ManifestResourceMeta};
use ocm_api::{Condition, ManagedClusterAddOn, ManifestWork};

/// The status of a condition; none if nobody has set it.
pub fn status<'a>(all: &'a [Condition], kind: &str) -> Option<&'a str> {
    find(all, kind).map(|condition| condition.status.as_str())
}

pub(crate) fn find<'a>(all: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    all.iter().find(|condition| condition.type_ == kind)
}

fn is_true(all: &[Condition], kind: &str) -> bool {
    status(all, kind) == Some(conditions::TRUE)
}

pub(crate) fn told(condition: &Condition) -> String {
    match condition.message.trim() {
        "" => condition.reason.clone(),
        message => format!("{}: {message}", condition.reason),
    }
}

/// `Deployment default/web`, for people.
fn object(meta: &ManifestResourceMeta) -> String {
    let kind = if meta.kind.is_empty() { &meta.resource } else { &meta.kind };
    object_named(kind, &meta.namespace, &meta.name)
}

/// The same of any object; the namespace is empty where there is none.
pub(crate) fn object_named(kind: &str, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// Why something that is being deleted is still there.
pub(crate) fn leaving(metadata: &ObjectMeta) -> Option<String> {
    metadata.deletion_timestamp.as_ref()?;
    let finalizers = metadata.finalizers.iter().flatten().cloned().collect::<Vec<_>>();
    Some(format!("is being deleted: waits for {}", finalizers.join(", ")))
}

/// What keeps a work from being there; none if everything of it is.
pub fn work(work: &ManifestWork) -> Option<String> {
    if let Some(why) = leaving(&work.metadata) {
        return Some(why);
    }
    let Some(status) = work.status.as_ref().filter(|status| !status.conditions.is_empty()) else {
        return Some("no agent has looked at it yet".to_owned());
    };
    // What the agent has said last is about what the work was then.
    let generation = work.metadata.generation.unwrap_or_default();
    let is_older = |kind: &&str| {
        let seen = find(&status.conditions, kind).and_then(|condition| condition.observed_generation);
        seen.is_some_and(|seen| seen < generation)
    };
    if [manifest_work::APPLIED, manifest_work::AVAILABLE].iter().any(is_older) {
        return Some("the agent has not looked at its latest content yet".to_owned());
    }
    let manifests = status.resource_status.iter().flat_map(|all| &all.manifests).collect::<Vec<_>>();
    let broken = [manifest_work::APPLIED, manifest_work::AVAILABLE].into_iter().find_map(|kind| {
        if is_true(&status.conditions, kind) {
            return None;
        }
        let fails = |one: &&&ManifestCondition| {
            find(&one.conditions, kind).is_some_and(|found| found.status != conditions::TRUE)
        };
        let failing: Vec<_> = manifests.iter().filter(fails).collect();
        let Some(first) = failing.first() else {
            return Some(find(&status.conditions, kind).map_or_else(|| format!("{kind} is not known yet"), told));
        };
        let why = find(&first.conditions, kind).map(told).unwrap_or_default();
        let more = if failing.len() > 1 { format!(" (and {} more)", failing.len() - 1) } else { String::new() };
        Some(format!("{}: {why}{more}", object(&first.resource_meta)))
    });
    // The agent may have judged the whole before it has looked at new objects.
    let (available, all) = objects(work);
    broken.or_else(|| (available < all).then(|| format!("the agent has told of {available} of {all} objects yet")))
}

/// How many objects of a work are available, and how many there are.
pub fn objects(work: &ManifestWork) -> (usize, usize) {
    let all = work.spec.workload.manifests.len();
    let status = work.status.iter().flat_map(|status| &status.resource_status).flat_map(|status| &status.manifests);
    (status.filter(|one| is_true(&one.conditions, manifest_work::AVAILABLE)).count(), all)
}

/// What keeps an add-on from being well; none if it is.
pub fn addon(addon: &ManagedClusterAddOn) -> Option<String> {
    if let Some(why) = leaving(&addon.metadata) {
        return Some(why);
    }
    let all = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let broken = [
        managed_cluster_add_on::CONFIGURED,
        managed_cluster_add_on::REGISTRATION_APPLIED,
        managed_cluster_add_on::MANIFEST_APPLIED,
        managed_cluster_add_on::AVAILABLE,
    ];
    // In the order in which one needs the other.
    let broken =
        broken.iter().filter_map(|kind| find(all, kind)).find(|condition| condition.status != conditions::TRUE);
    match broken {
        Some(condition) => Some(format!("{}: {}", condition.type_, told(condition))),
        None if !is_true(all, managed_cluster_add_on::AVAILABLE) => Some("its agent has not reported yet".to_owned()),
        None => find(all, managed_cluster_add_on::DEGRADED)
            .filter(|condition| condition.status == conditions::TRUE)
            .map(|condition| format!("{}: {}", condition.type_, told(condition))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn a_work(conditions: Value, manifests: Value) -> ManifestWork {
        serde_json::from_value(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": "w", "namespace": "c1"},
            "spec": {"workload": {"manifests": [{}, {}]}},
            "status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}},
        }))
        .unwrap()
    }

    fn manifest(name: &str, applied: &str, available: &str) -> Value {
        json!({"resourceMeta": {"kind": "ConfigMap", "name": name, "namespace": "default"}, "conditions": [
            condition("Applied", applied, "A"), condition("Available", available, "B")]})
    }

    #[test]
    fn what_a_work_lacks_is_told_of_its_first_object() {
        let good = json!([condition("Applied", "True", "A"), condition("Available", "True", "B")]);
        let well = a_work(good.clone(), json!([manifest("a", "True", "True"), manifest("b", "True", "True")]));
        assert_eq!((work(&well), objects(&well)), (None, (2, 2)));
        let early = a_work(good, json!([manifest("a", "True", "True")]));
        assert_eq!(work(&early).unwrap(), "the agent has told of 1 of 2 objects yet");
        assert_eq!(work(&a_work(json!([]), json!([]))).unwrap(), "no agent has looked at it yet");
        let bad = json!([condition("Applied", "False", "A"), condition("Available", "False", "B")]);
        let failed = a_work(bad.clone(), json!([manifest("a", "True", "True"), manifest("b", "False", "False")]));
        assert_eq!(work(&failed).unwrap(), "ConfigMap default/b: A: m");
        assert_eq!(objects(&failed), (1, 2));
        let both = a_work(bad.clone(), json!([manifest("a", "False", "False"), manifest("b", "False", "False")]));
        assert!(work(&both).unwrap().ends_with("(and 1 more)"));
        assert_eq!(work(&a_work(bad, json!([]))).unwrap(), "A: m");
        let missing = json!([condition("Applied", "True", "A"), condition("Available", "False", "B")]);
        let gone = a_work(missing, json!([manifest("a", "True", "False"), manifest("b", "True", "True")]));
        assert_eq!(work(&gone).unwrap(), "ConfigMap default/a: B: m");
        let mut changed = well.clone();
        changed.metadata.generation = Some(2);
        changed.status.as_mut().unwrap().conditions[0].observed_generation = Some(1);
        assert_eq!(work(&changed).unwrap(), "the agent has not looked at its latest content yet");
        changed.status.as_mut().unwrap().conditions[0].observed_generation = Some(2);
        assert_eq!(work(&changed), None);
        let mut leaving = well;
        leaving.metadata = serde_json::from_value(json!({"name": "w", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["f"]}))
        .unwrap();
        assert_eq!(work(&leaving).unwrap(), "is being deleted: waits for f");
    }

    fn an_addon(conditions: Value) -> ManagedClusterAddOn {
        serde_json::from_value(json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": {"name": "a", "namespace": "c1"}, "spec": {}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn what_an_add_on_lacks_is_what_comes_first() {
        let told = |conditions: Value| addon(&an_addon(conditions));
        assert_eq!(told(json!([])).unwrap(), "its agent has not reported yet");
        assert_eq!(told(json!([condition("Available", "True", "B")])), None);
        let both = json!([condition("Available", "False", "B"), condition("ManifestApplied", "False", "A")]);
        assert_eq!(told(both).unwrap(), "ManifestApplied: A: m");
        assert_eq!(told(json!([condition("Available", "Unknown", "B")])).unwrap(), "Available: B: m");
        let degraded = json!([condition("Available", "True", "B"), condition("Degraded", "True", "D")]);
        assert_eq!(told(degraded).unwrap(), "Degraded: D: m");
    }
}

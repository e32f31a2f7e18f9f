//! What a hub holds of one cluster, and in which order it goes.
//!
//! Deleting a ManagedCluster has the hub delete the cluster's add-ons, and when these are gone its works, those with the
//! lowest cleanup priority first (upstream: feature gate `ResourceCleanup`, `gcController`). Each waits for the agent, which
//! removes what it has applied. Where the hub does not do it, whoever detaches the cluster does, in the same order.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::names::{annotations, finalizers};
use ocm_api::{ManagedCluster, ManagedClusterAddOn, Manifest, ManifestWork};
use serde_json::Value;

use super::{meta, some};
use crate::agent_lease::is_recent;
use crate::duration::human;
use crate::managed::has_joined;
use crate::{Failure, Remedy};

/// What an agent has to clean up. In this order they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ManagedClusterAddOn.
    AddOn,
    /// ManifestWork.
    Work,
}

/// An add-on or a work of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Which of the two.
    pub kind: Kind,
    /// The cluster's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The version that was looked at.
    pub version: String,
    /// Its cleanup priority: 0, which goes first, to 100.
    pub priority: u8,
    /// Whether it is being deleted.
    pub leaving: bool,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

/// Whether the agent is there to clean up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// It has renewed its lease in time.
    Heard,
    /// It has not; when it was heard of last.
    Silent(Option<Timestamp>),
}

impl Agent {
    /// What is known from the cluster and the lease that its agent renews. Who is not joined was never there. Of a cluster that is
    /// being deleted the hub takes the right to renew the lease away at once: what was known then is all that there is (upstream:
    /// `managedClusterController`).
    pub fn of(cluster: Option<&ManagedCluster>, renewed: Option<Timestamp>, now: Timestamp) -> Self {
        let deleted = cluster.and_then(|cluster| cluster.metadata.deletion_timestamp.as_ref());
        let now = deleted.map_or(now, |deleted| now.min(deleted.0));
        match (cluster, renewed) {
            (Some(cluster), Some(renewed)) if has_joined(cluster) && is_recent(cluster, renewed, now) => Self::Heard,
            (Some(cluster), Some(_)) if !has_joined(cluster) => Self::Silent(None),
            // Of a cluster that is gone already nobody says how often its agent renews: as usual.
            (None, Some(renewed)) if is_recent(&ManagedCluster::default(), renewed, now) => Self::Heard,
            (_, renewed) => Self::Silent(renewed),
        }
    }

    /// For people, behind the cluster's name: `has not been heard of for 12m`.
    pub fn told(self, now: Timestamp) -> String {
        match self {
            Self::Heard => "is heard of".to_owned(),
            Self::Silent(None) => "was never heard of".to_owned(),
            Self::Silent(Some(last)) => {
                let ago = now.duration_since(last).unsigned_abs();
                format!("has not been heard of for {}", human(ago))
            }
        }
    }
}

impl Remaining {
    /// From the metadata of an object.
    pub fn of(kind: Kind, metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let priority = metadata.annotations.as_ref().and_then(|all| all.get(annotations::CLEANUP_PRIORITY));
        // As the hub reads it: what is no number from 0 to 100 counts as 0.
        let priority = priority.and_then(|text| text.parse::<u8>().ok()).filter(|number| *number <= 100);
        Self {
            kind,
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            version: text(&metadata.resource_version),
            priority: priority.unwrap_or_default(),
            leaving: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
        }
    }

    /// The object by its name alone.
    pub fn manifest(&self) -> Manifest {
        let metadata = meta(Some(&self.namespace), &self.name);
        match self.kind {
            Kind::AddOn => Manifest::with::<ManagedClusterAddOn>(&metadata, Value::Null),
            Kind::Work => Manifest::with::<ManifestWork>(&metadata, Value::Null),
        }
    }

    /// `work "w1"`, for people.
    pub fn told(&self) -> String {
        let kind = match self.kind {
            Kind::AddOn => "add-on",
            Kind::Work => "work",
        };
        format!("{kind} {:?}", self.name)
    }

    /// The finalizers for which the agent is needed: those that a forced removal takes away.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        let known: &[&str] = match self.kind {
            Kind::AddOn => &[
                finalizers::ADDON_PRE_DELETE,
                finalizers::ADDON_HOSTING_PRE_DELETE,
                finalizers::ADDON_HOSTING_MANIFESTS,
            ],
            Kind::Work => &[finalizers::MANIFEST_WORK],
        };
        self.finalizers.iter().map(String::as_str).filter(move |one| known.contains(one))
    }

    /// What is left of its finalizers after a forced removal: somebody else's.
    pub fn others(&self) -> Vec<String> {
        let agents: Vec<&str> = self.agents().collect();
        self.finalizers.iter().filter(|one| !agents.contains(&one.as_str())).cloned().collect()
    }
}

/// Those that go next: of the first kind that there is, those with the lowest priority.
pub fn next(all: &[Remaining]) -> Vec<&Remaining> {
    let first = all.iter().map(|one| (one.kind, one.priority)).min();
    all.iter().filter(|one| Some((one.kind, one.priority)) == first).collect()
}

/// `2 works and 1 add-on`; none where there is nothing.
pub fn count(all: &[Remaining]) -> Option<String> {
    let of = |kind: Kind, word: &str| match all.iter().filter(|one| one.kind == kind).count() {
        0 => None,
        1 => Some(format!("1 {word}")),
        many => Some(format!("{many} {word}s")),
    };
    let parts: Vec<String> = [of(Kind::AddOn, "add-on"), of(Kind::Work, "work")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// What holds up the removal, for people who wait for it.
pub fn hold_up(all: &[Remaining], agent: Agent, now: Timestamp) -> String {
    let Some(count) = count(all) else {
        return "the hub's registration controller has not let go of it yet".to_owned();
    };
    let names: Vec<String> = next(all).iter().map(|one| one.told()).collect();
    let foreign = next(all).into_iter().find(|one| one.leaving && one.agents().next().is_none());
    match (foreign.and_then(|one| one.finalizers.first()), agent) {
        (Some(finalizer), _) => format!("{count} to go, now {}: waiting for whoever set {finalizer}", some(&names)),
        (None, Agent::Heard) => format!("{count} to go, now {}: its agent removes what it has applied", some(&names)),
        (None, silent) => format!("{count} to go, now {}: its agent {}", some(&names), silent.told(now)),
    }
}

/// Refuses to detach a cluster whose agent is not there to clean up what waits for it. With `force` it may go on, and what
/// is then taken away is told.
///
/// # Errors
/// A refusal that names every finalizer.
pub fn may_leave(
    cluster: &str,
    remaining: &[Remaining],
    agent: Agent,
    force: bool,
    now: Timestamp,
) -> Result<Vec<String>, Failure> {
    let needed: Vec<String> = remaining
        .iter()
        .filter_map(|one| {
            let agents: Vec<&str> = one.agents().collect();
            (!agents.is_empty()).then(|| format!("{} ({})", one.told(), agents.join(", ")))
        })
        .collect();
    if needed.is_empty() || agent == Agent::Heard {
        return Ok(Vec::new());
    }
    if force {
        return Ok(needed);
    }
    let sentence = format!(
        "cluster {cluster:?} {}, and its agent has to clean up {}: nothing was deleted",
        agent.told(now),
        count(remaining).unwrap_or_default()
    );
    Err(Failure::refused(sentence)
        .because(format!("finalizers of {}", needed.join("; ")))
        .hint(Remedy::FindCause)
        .hint(Remedy::Force))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::Reason;

    fn one(kind: Kind, name: &str, priority: Option<&str>, finalizers: &[&str]) -> Remaining {
        let annotations = priority.map(|value| json!({annotations::CLEANUP_PRIORITY: value}));
        let metadata = json!({"namespace": "c1", "name": name, "uid": "u", "resourceVersion": "1",
            "annotations": annotations, "finalizers": finalizers});
        Remaining::of(kind, &serde_json::from_value(metadata).unwrap())
    }

    fn names(all: &[Remaining]) -> Vec<&str> {
        next(all).into_iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn add_ons_go_first_and_then_works_with_the_lowest_priority() {
        let mut all = vec![
            one(Kind::Work, "late", Some("100"), &[]),
            one(Kind::Work, "none", None, &[]),
            one(Kind::Work, "wrong", Some("101"), &[]),
            one(Kind::Work, "minus", Some("-1"), &[]),
            one(Kind::Work, "five", Some("5"), &[]),
            one(Kind::AddOn, "a", Some("7"), &[]),
        ];
        assert_eq!(names(&all), ["a"]);
        assert_eq!(count(&all).unwrap(), "1 add-on and 5 works");
        all.pop();
        assert_eq!(names(&all), ["none", "wrong", "minus"]);
        all.retain(|one| one.priority > 0);
        assert_eq!(names(&all), ["five"]);
        assert_eq!(count(&[]), None);
    }

    fn cluster(joined: bool) -> ManagedCluster {
        let conditions = if joined {
            json!([{"type": "ManagedClusterJoined", "status": "True", "reason": "r", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        } else {
            json!([])
        };
        serde_json::from_value(json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1"}, "spec": {"leaseDurationSeconds": 60}, "status": {"conditions": conditions}}))
        .unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn an_agent_is_there_if_it_has_renewed_its_lease_in_time() {
        let now = at("2026-01-01T00:10:00Z");
        let of = |cluster: Option<&ManagedCluster>, renewed: Option<&str>| Agent::of(cluster, renewed.map(at), now);
        assert_eq!(of(Some(&cluster(true)), Some("2026-01-01T00:09:00Z")), Agent::Heard);
        let silent = of(Some(&cluster(true)), Some("2026-01-01T00:05:00Z"));
        assert_eq!(silent.told(now), "has not been heard of for 5m");
        // The hub makes the first lease of a cluster itself.
        assert_eq!(of(Some(&cluster(false)), Some("2026-01-01T00:09:59Z")), Agent::Silent(None));
        // What a run that was killed left may still be cleaned up.
        assert_eq!(of(None, Some("2026-01-01T00:09:59Z")), Agent::Heard);
        assert_eq!(of(None, Some("2026-01-01T00:05:59Z")), Agent::Silent(Some(at("2026-01-01T00:05:59Z"))));
        assert_eq!(of(Some(&cluster(true)), None), Agent::Silent(None));
        // Since a cluster is being deleted its agent may not renew the lease.
        let mut leaving = cluster(true);
        leaving.metadata.deletion_timestamp = Some(Time(at("2026-01-01T00:05:30Z")));
        assert_eq!(of(Some(&leaving), Some("2026-01-01T00:05:00Z")), Agent::Heard);
        assert_eq!(of(Some(&leaving), Some("2026-01-01T00:03:00Z")), Agent::Silent(Some(at("2026-01-01T00:03:00Z"))));
    }

    #[test]
    fn what_a_silent_agent_would_have_to_clean_up_is_refused_and_named() {
        let now = at("2026-01-01T00:10:00Z");
        let all = [
            one(Kind::Work, "w1", None, &[finalizers::MANIFEST_WORK, "example.com/mine"]),
            one(Kind::Work, "w2", None, &[]),
            one(Kind::AddOn, "a1", None, &[finalizers::ADDON_PRE_DELETE]),
        ];
        let silent = Agent::Silent(None);
        let failure = may_leave("c1", &all, silent, false, now).unwrap_err();
        assert_eq!(failure.reason, Reason::Refused);
        assert_eq!(
            failure.message,
            "cluster \"c1\" was never heard of, and its agent has to clean up 1 add-on and 2 works: nothing was deleted"
        );
        let named = format!("work \"w1\" ({})", finalizers::MANIFEST_WORK);
        assert!(failure.causes[0].contains(&named) && !failure.causes[0].contains("w2"), "{:?}", failure.causes);
        assert!(!failure.causes[0].contains("example.com/mine"), "{:?}", failure.causes);
        assert_eq!(may_leave("c1", &all, silent, true, now).unwrap().len(), 2);
        assert_eq!(may_leave("c1", &all, Agent::Heard, false, now), Ok(Vec::new()));
        assert_eq!(may_leave("c1", &all[1..2], silent, false, now), Ok(Vec::new()));
        assert_eq!(all[0].others(), ["example.com/mine"]);
    }

    #[test]
    fn whoever_waits_hears_what_for() {
        let now = at("2026-01-01T00:10:00Z");
        let mut work = one(Kind::Work, "w1", None, &[finalizers::MANIFEST_WORK]);
        let told = |all: &[Remaining], agent| hold_up(all, agent, now);
        assert!(told(&[], Agent::Heard).contains("registration controller"));
        assert!(told(std::slice::from_ref(&work), Agent::Heard).contains("its agent removes"));
        assert!(told(std::slice::from_ref(&work), Agent::Silent(None)).contains("was never heard of"));
        work.leaving = true;
        work.finalizers = vec!["example.com/mine".to_owned()];
        assert!(told(&[work], Agent::Heard).ends_with("waiting for whoever set example.com/mine"));
    }
}

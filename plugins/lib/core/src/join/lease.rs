//! Leader leases whose holder is gone.
//!
//! An operator or agent that was killed does not give its lease back, and its successor sits ready and idle until the
//! lease runs out: more than two minutes. That is another pod, or the same with its container started anew: agents end by
//! themselves when what they register with has changed.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Manifest;
use ocm_api::names::{agent, operators};
use ocm_api::operator::KlusterletMode;
use ocm_api::parts::Lease;
use serde_json::Value;

/// How long a leader lease stands that was not renewed, where it does not say. Upstream: library-go's
/// `LeaderElectionDefaulting`.
pub const LASTS: SignedDuration = SignedDuration::from_secs(137);
/// Time between two attempts to take a leader lease. Upstream: as above.
pub const RETRY: SignedDuration = SignedDuration::from_secs(26);

/// A leader lease that may hold up a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Name of the lease.
    pub name: &'static str,
    /// The Deployment whose pods take it.
    pub deployment: String,
}

/// The operator's lock, in its namespace.
pub fn of_operator() -> Vec<Lock> {
    vec![Lock { name: operators::KLUSTERLET_LOCK, deployment: operators::KLUSTERLET.to_owned() }]
}

/// The locks of the agents of a Klusterlet, in their namespace.
pub fn of_agents(klusterlet: &str) -> Vec<Lock> {
    let locks = [
        (agent::REGISTRATION_LOCK, "registration-agent"),
        (agent::WORK_LOCK, "work-agent"),
        (agent::SINGLETON_LOCK, "agent"),
    ];
    locks.map(|(name, of)| Lock { name, deployment: format!("{klusterlet}-{of}") }).into()
}

/// The locks of agents that a Klusterlet has in another mode than this one: one agent in the place of two, or two in the place
/// of one.
pub fn of_other_agents(klusterlet: &str, mode: &KlusterletMode) -> Vec<Lock> {
    let is_one = matches!(mode, KlusterletMode::Singleton | KlusterletMode::SingletonHosted);
    of_agents(klusterlet).into_iter().filter(|lock| (lock.name == agent::SINGLETON_LOCK) != is_one).collect()
}

/// The leader leases of a namespace, and the pods that were in it after they had been read.
#[derive(Clone, Debug)]
pub struct LeaseFacts {
    /// The namespace.
    pub namespace: String,
    /// The leases that are there.
    pub leases: Vec<(Lock, Lease)>,
    /// All pods.
    pub pods: Vec<Running>,
}

/// A pod, and since when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its name.
    pub pod: String,
    /// Since when all of its containers run that were started anew, by the clock of its node; none: one of them does not run, or
    /// was not, or it is not known.
    pub since: Option<Timestamp>,
}

/// A leader lease whose holder is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleLease {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: &'static str,
    /// The pod that held it.
    pub pod: String,
    /// Which object it was.
    pub uid: Option<String>,
    /// How it was.
    pub resource_version: Option<String>,
}

/// The leases whose holders are gone. Nobody's is among them whose holder could still be there.
pub fn stale(facts: &LeaseFacts) -> Vec<StaleLease> {
    let gone = |(lock, lease): &(Lock, Lease)| stale_holder(lease, &lock.deployment, &facts.pods);
    picked(facts, gone)
}

/// The leases that nobody holds: those whose holders are gone, and those that were given back, which name no pod.
pub fn unheld(facts: &LeaseFacts) -> Vec<StaleLease> {
    let unheld = |(lock, lease): &(Lock, Lease)| match holder(lease) {
        None => Some(String::new()),
        Some(_) => stale_holder(lease, &lock.deployment, &facts.pods),
    };
    picked(facts, unheld)
}

/// The leases of which something names the pod that held them.
fn picked(facts: &LeaseFacts, pod: impl Fn(&(Lock, Lease)) -> Option<String>) -> Vec<StaleLease> {
    let of = |one: &(Lock, Lease)| {
        let (lock, lease) = one;
        Some(StaleLease {
            namespace: facts.namespace.clone(),
            name: lock.name,
            pod: pod(one)?,
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        })
    };
    facts.leases.iter().filter_map(of).collect()
}

/// Who holds a lease, if anybody does.
fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// A lease by its name alone, as whoever deletes it names it.
pub fn manifest(namespace: &str, name: &str) -> Manifest {
    let metadata =
        ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
    Manifest::with::<Lease>(&metadata, Value::Null)
}

/// The holder's pod, if the process that holds the lease has ended: the pod does not exist, or all of its containers were
/// started after the lease was renewed.
///
/// `pods` are all pods of the lease's namespace. Who is not recognised as a pod of the Deployment is left alone: it
/// may be a process that runs somewhere else.
pub fn stale_holder(lease: &Lease, deployment: &str, pods: &[Running]) -> Option<String> {
    let holder = holder(lease)?;
    // Leaders call themselves by their host's name, which is the pod's, and a random number.
    let host = holder.rsplit_once('_').map_or(holder, |(host, _)| host);
    let ours = is_of(host, deployment);
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    // Both times are by the clock of one node, which is not known to have been set back.
    let is_new = |pod: &Running| pod.since.zip(renewed).is_some_and(|(since, renewed)| since > renewed);
    let holds = |pod: &Running| hostname(&pod.pod) == host && !is_new(pod);
    (ours && !pods.iter().any(holds)).then(|| host.to_owned())
}

/// Whether a pod is called as those of a Deployment are.
pub fn is_of(pod: &str, deployment: &str) -> bool {
    pod.starts_with(cut(&format!("{deployment}-"), GENERATED))
}

/// How much of a Deployment's name the API server keeps in the generated names of its pods.
const GENERATED: usize = 58;
/// How long the kubelet lets a host's name be.
const HOSTNAME: usize = 63;

/// A pod's name as the kubelet gives it to the pod as the name of its host.
fn hostname(pod: &str) -> &str {
    if pod.len() <= HOSTNAME { pod } else { cut(pod, HOSTNAME).trim_end_matches(['-', '.']) }
}

/// The beginning of a name; names are ASCII.
fn cut(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use ocm_api::parts::LeaseSpec;

    use super::*;

    fn held_by(holder: Option<&str>) -> Lease {
        let spec = LeaseSpec { holder_identity: holder.map(str::to_owned), ..LeaseSpec::default() };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    fn running(pod: &str) -> Running {
        Running { pod: pod.to_owned(), since: None }
    }

    #[test]
    fn only_a_lease_of_a_pod_that_is_gone_is_stale() {
        let pods = vec![running("klusterlet-1-a")];
        let stale = |holder| stale_holder(&held_by(holder), "klusterlet", &pods);
        assert_eq!(stale(Some("klusterlet-0-z_6b6a")).as_deref(), Some("klusterlet-0-z"));
        assert_eq!(stale(Some("klusterlet-1-a_6b6a")), None);
        assert_eq!(stale(Some("")), None);
        assert_eq!(stale(None), None);
        assert_eq!(stale(Some("developers-laptop_6b6a")), None);
        assert_eq!(stale_holder(&Lease::default(), "klusterlet", &[]), None);
    }

    #[test]
    fn a_pod_that_was_started_anew_does_not_hold_what_it_held_before() {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let mut lease = held_by(Some("klusterlet-1-a_6b6a"));
        let since = |since: Option<&str>| [Running { since: since.map(time), ..running("klusterlet-1-a") }];
        let stale = |lease: &Lease, pods: &[Running]| stale_holder(lease, "klusterlet", pods);
        let started = since(Some("2026-03-01T12:00:00Z"));
        assert_eq!(stale(&lease, &started), None, "nobody knows when it was renewed");
        let renewed = |text: &str| Some(MicroTime(time(text)));
        lease.spec.as_mut().unwrap().renew_time = renewed("2026-03-01T11:59:59.5Z");
        assert_eq!(stale(&lease, &started).as_deref(), Some("klusterlet-1-a"));
        assert_eq!(stale(&lease, &since(None)), None, "nobody knows since when it runs");
        lease.spec.as_mut().unwrap().renew_time = renewed("2026-03-01T12:00:00.5Z");
        assert_eq!(stale(&lease, &started), None);
    }

    #[test]
    fn each_lock_is_compared_with_the_deployment_that_takes_it() {
        let locks = of_agents("k");
        assert_eq!(locks[1].deployment, "k-work-agent");
        let leases: Vec<_> = locks.into_iter().zip(["k-registration-agent-1_x", "k-work-agent-1_x"]).collect();
        let leases = leases.into_iter().map(|(lock, holder)| (lock, held_by(Some(holder)))).collect();
        let pods = vec![running("k-registration-agent-1")];
        let facts = LeaseFacts { namespace: "n".to_owned(), leases, pods };
        let found = stale(&facts);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name, found[0].pod.as_str()), (agent::WORK_LOCK, "k-work-agent-1"));
    }

    #[test]
    fn in_each_mode_the_locks_of_the_other_ones_agents_are_left() {
        let names = |mode: KlusterletMode| {
            of_other_agents("k", &mode).into_iter().map(|lock| lock.deployment).collect::<Vec<_>>()
        };
        assert_eq!(names(KlusterletMode::Singleton), ["k-registration-agent", "k-work-agent"]);
        assert_eq!(names(KlusterletMode::Default), ["k-agent"]);
    }

    #[test]
    fn a_lease_that_was_given_back_is_held_by_nobody() {
        let locks = of_agents("k");
        let holders = [Some("k-registration-agent-1_x"), Some(""), Some("k-agent-1_x")];
        let leases = locks.into_iter().zip(holders).map(|(lock, holder)| (lock, held_by(holder))).collect();
        let pods = vec![running("k-registration-agent-1")];
        let facts = LeaseFacts { namespace: "n".to_owned(), leases, pods };
        let names =
            |leases: Vec<StaleLease>| leases.into_iter().map(|lease| (lease.name, lease.pod)).collect::<Vec<_>>();
        let of_one = (agent::SINGLETON_LOCK, "k-agent-1".to_owned());
        assert_eq!(names(stale(&facts)), std::slice::from_ref(&of_one));
        assert_eq!(names(unheld(&facts)), [(agent::WORK_LOCK, String::new()), of_one]);
    }

    #[test]
    fn names_are_compared_as_the_kubelet_cuts_them() {
        let deployment = format!("{}-work-agent", "k".repeat(50));
        let live = format!("{deployment}-5d9c7b8f6d-abcde");
        let held = |holder: &str| held_by(Some(&format!("{}_6b6a", &holder[..63])));
        assert_eq!(stale_holder(&held(&live), &deployment, &[running(&live)]), None);
        assert!(stale_holder(&held(&live), &deployment, &[]).is_some());
        // What is cut off may end in a character in which no host's name ends.
        let dashed = format!("{deployment}-{}", "-abcde");
        assert_eq!(dashed.as_bytes()[62], b'-');
        let holder = held_by(Some(&format!("{}_6b6a", dashed[..63].trim_end_matches('-'))));
        assert_eq!(stale_holder(&holder, &deployment, &[running(&dashed)]), None);
        // A name that the API server generated has lost the end of the Deployment's.
        let long = format!("{}-registration-agent", "k".repeat(60));
        let generated = format!("{}abcde", "k".repeat(58));
        assert_eq!(stale_holder(&held_by(Some(&format!("{generated}_1"))), &long, &[]), Some(generated));
    }
}

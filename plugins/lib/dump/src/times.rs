//! The newest time that a dump shows: its clock. Whoever judges a dump by the time of another machine finds every lease old.

use jiff::Timestamp;
use serde_json::Value;

use crate::kind::{ADDONS, CLUSTERS, EVENTS, Kind, LEASES, WORKS};

/// A time, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) time: Timestamp,
    pub(crate) place: String,
}

/// The newest times so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// By the clocks of the cluster itself, and of whoever took the dump.
    own: Option<Seen>,
    /// By the clocks of agents of other clusters, any of which may be wrong.
    of_agents: Option<Seen>,
    /// Whether something tells the time of the dump that is written all the time while a cluster runs.
    has_clock: bool,
}

/// The members that hold times which were past when they were written.
const PAST: [&str; 13] = [
    "lastTransitionTime",
    "lastUpdateTime",
    "lastHeartbeatTime",
    "lastProbeTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "renewTime",
    "acquireTime",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "lastObservedTime",
];

/// Namespaces whose leases the cluster's own nodes and controllers renew.
const OWN_LEASES: [&str; 2] = ["kube-node-lease", "kube-system"];

impl Times {
    /// The newest time. That of an agent counts only where nothing tells the time of the cluster.
    pub(crate) fn newest(&self) -> Option<&Seen> {
        let of_agents = self.of_agents.as_ref().filter(|_| !self.has_clock);
        self.own.iter().chain(of_agents).max_by_key(|seen| seen.time)
    }

    /// Takes what another part of the same cluster's dump shows.
    pub(crate) fn merge(&mut self, other: Self) {
        other.own.into_iter().for_each(|seen| newer(&mut self.own, seen.time, || seen.place));
        other.of_agents.into_iter().for_each(|seen| newer(&mut self.of_agents, seen.time, || seen.place));
        self.has_clock |= other.has_clock;
    }

    /// Takes the times of an object; its kind is one of those that are kept, or none.
    pub(crate) fn take(&mut self, kind: Option<&Kind>, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let place = |member: &str| {
            let slash = if text("/metadata/namespace").is_empty() { "" } else { "/" };
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            format!("{member} of {} {namespace}{slash}{name}", text("/kind"))
        };
        let parsed = |text: &str| text.parse::<Timestamp>().ok();
        if let Some(time) = parsed(text("/metadata/creationTimestamp")) {
            newer(&mut self.own, time, || place("creationTimestamp"));
        }
        let is_lease = kind == Some(&LEASES);
        for entry in object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten() {
            if let Some(time) = entry.get("time").and_then(Value::as_str).and_then(parsed) {
                self.has_clock |= is_lease && entry.pointer("/fieldsV1/f:spec/f:renewTime").is_some();
                newer(&mut self.own, time, || place("managedFields"));
            }
        }
        let is_of_agent = match kind {
            Some(kind) if is_lease => {
                let is_own = OWN_LEASES.contains(&text("/metadata/namespace"));
                self.has_clock |= is_own && parsed(text("/spec/renewTime")).is_some();
                *kind == LEASES && text("/metadata/name") == ocm_api::names::hub::MANAGED_CLUSTER_LEASE
            }
            // Agents write Events, too, to the namespaces of their clusters, and which these are is not known yet.
            Some(kind) => [&CLUSTERS, &WORKS, &ADDONS, &EVENTS].contains(&kind),
            None => false,
        };
        let slot = if is_of_agent { &mut self.of_agents } else { &mut self.own };
        let parts: &[&str] = match kind {
            Some(kind) if *kind == LEASES => &["spec"],
            Some(kind) if *kind == EVENTS => &["firstTimestamp", "lastTimestamp", "eventTime", "series"],
            _ => &["status"],
        };
        for part in parts {
            if let Some(value) = object.get(part) {
                walk(part, value, &mut |member, text| {
                    if let Some(time) = parsed(text) {
                        newer(slot, time, || place(member));
                    }
                });
            }
        }
    }

    /// Takes the times of the last lines of a log; each begins with one.
    pub(crate) fn take_log(&mut self, text: &str, place: impl Fn() -> String) {
        let times = text.lines().filter_map(|line| line.split_once(' ')?.0.parse::<Timestamp>().ok());
        if let Some(time) = times.max() {
            self.has_clock = true;
            newer(&mut self.own, time, place);
        }
    }

    /// Takes a must-gather's file `timestamp`: when it began and when it ended, as Go writes times.
    pub(crate) fn take_timestamp(&mut self, text: &str) {
        if let Some(time) = text.lines().filter_map(of_go).max() {
            self.has_clock = true;
            newer(&mut self.own, time, || "the file timestamp".to_owned());
        }
    }
}

fn newer(newest: &mut Option<Seen>, time: Timestamp, place: impl FnOnce() -> String) {
    if newest.as_ref().is_none_or(|seen| seen.time < time) {
        *newest = Some(Seen { time, place: place() });
    }
}

/// The times within a value: as deep as the parser lets documents be.
fn walk(member: &str, value: &Value, seen: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) if PAST.contains(&member) => seen(member, text),
        Value::Array(items) => items.iter().for_each(|item| walk("", item, seen)),
        Value::Object(members) => members.iter().for_each(|(member, value)| walk(member, value, seen)),
        _ => {}
    }
}

/// `2026-03-01 12:00:00.5 +0000 UTC m=+0.1`.
fn of_go(line: &str) -> Option<Timestamp> {
    let mut words = line.split_whitespace();
    let (date, time, offset) = (words.next()?, words.next()?, words.next()?);
    format!("{date}T{time}{offset}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(namespace: &str, name: &str, renewed: &str) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": namespace, "name": name},
            "spec": {"renewTime": renewed}})
    }

    fn newest(times: &Times) -> (String, &str) {
        let seen = times.newest().unwrap();
        (seen.time.to_string(), seen.place.as_str())
    }

    #[test]
    fn the_newest_time_is_the_clock() {
        let mut times = Times::default();
        assert_eq!(times.newest(), None);
        let cluster = json!({"kind": "ManagedCluster", "metadata": {"name": "c1", "creationTimestamp": "2026-03-01T10:00:00Z"},
            "spec": {"until": "2030-01-01T00:00:00Z"}, "status": {"conditions": [{"lastTransitionTime": "2026-03-01T11:00:00Z"}],
            "expirationTime": "2040-01-01T00:00:00Z"}});
        times.take(Some(&CLUSTERS), &cluster);
        assert_eq!(newest(&times), ("2026-03-01T11:00:00Z".to_owned(), "lastTransitionTime of ManagedCluster c1"));
        times.take(Some(&LEASES), &lease("c1", "managed-cluster-lease", "2026-03-01T11:59:30.000000Z"));
        assert_eq!(newest(&times).1, "renewTime of Lease c1/managed-cluster-lease");
        // A pod that is being deleted has a time to come.
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "deletionTimestamp": "2026-03-01T13:00:00Z"}});
        times.take(None, &pod);
        assert_eq!(newest(&times).0, "2026-03-01T11:59:30Z");
    }

    #[test]
    fn one_agent_with_a_wrong_clock_does_not_make_all_others_late() {
        let mut times = Times::default();
        times.take(Some(&LEASES), &lease("c1", "managed-cluster-lease", "2026-03-01T14:00:00Z"));
        assert_eq!(newest(&times).0, "2026-03-01T14:00:00Z");
        times.take(Some(&LEASES), &lease("kube-node-lease", "n1", "2026-03-01T12:00:00Z"));
        assert_eq!(newest(&times), ("2026-03-01T12:00:00Z".to_owned(), "renewTime of Lease kube-node-lease/n1"));
        // Of an Event the API server's clock tells when it was made, and nothing else.
        let metadata = json!({"namespace": "c1", "name": "e", "creationTimestamp": "2026-03-01T12:00:01Z"});
        let of = |member: &str, value: Value| json!({"apiVersion": "v1", "kind": "Event", "metadata": metadata, member: value});
        let late = json!("2026-03-01T13:00:00Z");
        for member in ["firstTimestamp", "lastTimestamp", "eventTime"] {
            times.take(Some(&EVENTS), &of(member, late.clone()));
        }
        times.take(Some(&EVENTS), &of("series", json!({"count": 2, "lastObservedTime": late})));
        assert_eq!(newest(&times), ("2026-03-01T12:00:01Z".to_owned(), "creationTimestamp of Event c1/e"));
        // Where nothing else tells the time, they do.
        let mut times = Times::default();
        times.take(Some(&EVENTS), &of("lastTimestamp", late));
        assert_eq!(newest(&times), ("2026-03-01T13:00:00Z".to_owned(), "lastTimestamp of Event c1/e"));
    }

    #[test]
    fn logs_and_the_file_timestamp_tell_the_time() {
        let mut times = Times::default();
        times.take_log("2026-03-01T12:00:00.123456789Z I0301 x\nno time\n", || "the log of n/p".to_owned());
        assert_eq!(newest(&times), ("2026-03-01T12:00:00.123456789Z".to_owned(), "the log of n/p"));
        times.take_timestamp("2026-03-01 12:01:02.5 +0100 CET m=+0.3\n2026-03-01 13:01:02.5 +0100 CET m=+60.3\n");
        assert_eq!(newest(&times), ("2026-03-01T12:01:02.5Z".to_owned(), "the file timestamp"));
    }
}

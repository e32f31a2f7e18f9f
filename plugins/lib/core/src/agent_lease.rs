//! The lease that an agent renews on its hub: when it was heard of last, and what that says of it now.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use ocm_api::ManagedCluster;
use ocm_api::parts::Lease;

use crate::join::lease::{LASTS, RETRY};
use crate::managed::has_joined;

/// When an agent has renewed its lease last, by its own clock.
pub fn renewed(lease: &Lease) -> Option<Timestamp> {
    lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0)
}

/// When a lease was renewed last, by the clock of the API server: it notes when somebody last changed each of the fields. None
/// where it does not.
pub fn written(lease: &Lease) -> Option<Timestamp> {
    let renews = |entry: &&ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer("/f:spec/f:renewTime").is_some())
    };
    let entries = lease.metadata.managed_fields.iter().flatten();
    entries.filter(renews).filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// When somebody has renewed a lease last: by the hub's clock where the lease tells, else by the clock of who did.
pub fn last_renewal(lease: &Lease) -> Option<Timestamp> {
    renewed(lease).map(|renewed| written(lease).unwrap_or(renewed))
}

/// When a hub last heard from an agent: by the hub's clock where the lease tells, else by the agent's. None: nobody has renewed
/// the lease, or the hub has made it itself, as it does when it accepts a cluster (upstream: `leaseController`).
pub fn heard(cluster: &ManagedCluster, renewed: Option<Timestamp>, written: Option<Timestamp>) -> Option<Timestamp> {
    renewed.filter(|_| has_joined(cluster)).map(|renewed| written.unwrap_or(renewed))
}

/// Time between two renewals of the lease: `leaseDurationSeconds`, a minute where nobody says.
pub fn lease_period(cluster: &ManagedCluster) -> SignedDuration {
    let seconds = cluster.spec.lease_duration_seconds.filter(|seconds| *seconds > 0).unwrap_or(60);
    SignedDuration::from_secs(i64::from(seconds))
}

/// Whether an agent that was heard of then is there now. Two periods: one renewal may be on its way, and clocks differ.
pub fn is_recent(cluster: &ManagedCluster, heard: Timestamp, now: Timestamp) -> bool {
    now.duration_since(heard) < lease_period(cluster) * 2
}

/// Whether an agent that was heard of then has been silent for so long that no restart explains it: a new pod waits until the
/// leader lease of the former one has run out, and renews at its next turn.
pub fn is_silent(cluster: &ManagedCluster, heard: Timestamp, now: Timestamp) -> bool {
    let period = lease_period(cluster);
    now.duration_since(heard) >= (period + LASTS + RETRY).max(period * 2)
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn cluster(joined: &str, period: Option<i32>) -> ManagedCluster {
        serde_json::from_value(json!({"metadata": {"name": "c1"}, "spec": {"leaseDurationSeconds": period},
            "status": {"conditions": [{"type": "ManagedClusterJoined", "status": joined, "reason": "R", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}))
        .unwrap()
    }

    #[test]
    fn the_hubs_clock_counts_before_the_agents() {
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {"managedFields": [
                {"time": at(300), "fieldsV1": {"f:spec": {"f:renewTime": {}}}},
                {"time": at(200), "fieldsV1": {"f:spec": {"f:renewTime": {}}}},
                {"time": at(400), "fieldsV1": {"f:metadata": {"f:labels": {}}}},
            ]},
            "spec": {"renewTime": "1970-01-01T00:00:10.000000Z"},
        }))
        .unwrap();
        assert_eq!((renewed(&lease), written(&lease)), (Some(at(10)), Some(at(300))));
        assert_eq!(last_renewal(&lease), Some(at(300)));
        let joined = cluster("True", None);
        assert_eq!(heard(&joined, renewed(&lease), written(&lease)), Some(at(300)));
        assert_eq!(heard(&joined, renewed(&lease), None), Some(at(10)));
        assert_eq!(heard(&joined, None, written(&lease)), None, "nobody has renewed it");
        assert_eq!(heard(&cluster("False", None), renewed(&lease), written(&lease)), None, "the hub has made it");
        assert_eq!((renewed(&Lease::default()), written(&Lease::default())), (None, None));
        let by_agent: Lease =
            serde_json::from_value(json!({"spec": {"renewTime": "1970-01-01T00:00:10.000000Z"}})).unwrap();
        assert_eq!(last_renewal(&by_agent), Some(at(10)));
        let never = Lease { spec: None, ..lease };
        assert_eq!(last_renewal(&never), None, "it was taken away again");
    }

    #[test]
    fn an_agent_is_there_for_two_periods_and_silent_when_no_restart_explains_it() {
        for (period, recent, silent) in
            [(None, 120, 223), (Some(0), 120, 223), (Some(60), 120, 223), (Some(600), 1200, 1200)]
        {
            let cluster = cluster("True", period);
            let after = |seconds: i64| at(0) + seconds.seconds();
            assert!(
                is_recent(&cluster, at(0), after(recent - 1)) && !is_recent(&cluster, at(0), after(recent)),
                "{period:?}"
            );
            assert!(
                !is_silent(&cluster, at(0), after(silent - 1)) && is_silent(&cluster, at(0), after(silent)),
                "{period:?}"
            );
        }
    }
}

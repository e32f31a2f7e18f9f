//! Where a managed cluster stands in its life, as one word and the reason for it.

use std::fmt;

use ocm_api::Condition;
use ocm_api::cluster::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};

/// Where a managed cluster stands. Later words imply the earlier ones, but for the last four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It has registered and waits for acceptance.
    Pending,
    /// The hub has accepted it; its agent has not joined yet.
    Accepted,
    /// Its agent holds a certificate and has joined; whether it is healthy is not known yet.
    Joined,
    /// Its agent reports and its API server is well.
    Available,
    /// Its agent reports that its API server is not well.
    Unavailable,
    /// Its agent has stopped reporting.
    Unknown,
    /// The hub has denied it.
    Denied,
    /// It is being removed from the hub.
    Detaching,
}

impl Phase {
    /// Every phase, for documentation and tests.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Accepted,
        Self::Joined,
        Self::Available,
        Self::Unavailable,
        Self::Unknown,
        Self::Denied,
        Self::Detaching,
    ];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "Pending",
            Self::Accepted => "Accepted",
            Self::Joined => "Joined",
            Self::Available => "Available",
            Self::Unavailable => "Unavailable",
            Self::Unknown => "Unknown",
            Self::Denied => "Denied",
            Self::Detaching => "Detaching",
        })
    }
}

/// A phase and why it is that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The phase.
    pub phase: Phase,
    /// The condition's reason, or ours where no condition speaks.
    pub reason: String,
    /// The condition's message, or what to do next.
    pub message: String,
}

/// Why the agent of a cluster may not be there, as a sentence; none if it reports.
pub fn unavailable(cluster: &ManagedCluster) -> Option<String> {
    let standing = standing(cluster);
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    (standing.phase != Phase::Available)
        .then(|| format!("cluster {name:?} is {}: {}", standing.phase, standing.message))
}

/// Reads the phase off a managed cluster.
pub fn standing(cluster: &ManagedCluster) -> Standing {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let find = |kind: &str| conditions::find(conditions, kind);
    let of = |phase, condition: &Condition| Standing {
        phase,
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    };
    let ours = |phase, reason: &str, message: String| Standing { phase, reason: reason.to_owned(), message };
    if cluster.metadata.deletion_timestamp.is_some() {
        return match find(managed_cluster::DELETING) {
            Some(condition) => of(Phase::Detaching, condition),
            None => ours(Phase::Detaching, "Deleting", "it is being removed from the hub".to_owned()),
        };
    }
    if !cluster.spec.hub_accepts_client.unwrap_or_default() {
        return match find(managed_cluster::HUB_ACCEPTED) {
            Some(condition) if condition.status == "False" => of(Phase::Denied, condition),
            // The hub still has to act on a denial.
            Some(condition) if condition.status == "True" => {
                ours(Phase::Denied, "Denying", "the hub is withdrawing its acceptance".to_owned())
            }
            _ => ours(Phase::Pending, "NotAccepted", format!("waits for: kubectl ocm accept {name}")),
        };
    }
    let joined = find(managed_cluster::JOINED).filter(|condition| condition.status == "True");
    match (find(managed_cluster::AVAILABLE), joined) {
        (Some(condition), _) if condition.status == "True" => of(Phase::Available, condition),
        (Some(condition), _) if condition.status == "False" => of(Phase::Unavailable, condition),
        // The hub also says so of clusters that were never heard of, five lease periods after it has accepted them
        // (upstream: `leaseController`, which makes the first lease itself).
        (Some(condition), Some(_)) => of(Phase::Unknown, condition),
        (None, Some(condition)) => of(Phase::Joined, condition),
        (_, None) => {
            ours(Phase::Accepted, "NotJoined", "waits for its agent to fetch its certificate and join".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn cluster(accepted: bool, conditions: &[(&str, &str)]) -> ManagedCluster {
        let mut cluster = ManagedCluster::default();
        cluster.metadata.name = Some("c1".to_owned());
        cluster.spec.hub_accepts_client = Some(accepted);
        let condition = |(kind, status): &(&str, &str)| Condition {
            type_: (*kind).to_owned(),
            status: (*status).to_owned(),
            reason: "Because".to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        };
        cluster.status.get_or_insert_default().conditions = conditions.iter().map(condition).collect();
        cluster
    }

    #[test]
    fn every_phase_is_read_off_a_cluster() {
        use managed_cluster::{AVAILABLE, HUB_ACCEPTED, JOINED};
        let phase = |accepted, conditions: &[(&str, &str)]| standing(&cluster(accepted, conditions)).phase;
        assert_eq!(phase(false, &[]), Phase::Pending);
        assert_eq!(phase(false, &[(HUB_ACCEPTED, "False"), (JOINED, "True"), (AVAILABLE, "True")]), Phase::Denied);
        assert_eq!(phase(false, &[(HUB_ACCEPTED, "True")]), Phase::Denied);
        assert_eq!(phase(true, &[(HUB_ACCEPTED, "True")]), Phase::Accepted);
        assert_eq!(phase(true, &[(JOINED, "True")]), Phase::Joined);
        assert_eq!(phase(true, &[(JOINED, "True"), (AVAILABLE, "True")]), Phase::Available);
        assert_eq!(phase(true, &[(JOINED, "True"), (AVAILABLE, "False")]), Phase::Unavailable);
        assert_eq!(phase(true, &[(JOINED, "True"), (AVAILABLE, "Unknown")]), Phase::Unknown);
        assert_eq!(phase(true, &[(HUB_ACCEPTED, "True"), (AVAILABLE, "Unknown")]), Phase::Accepted);
        let mut leaving = cluster(true, &[(AVAILABLE, "True")]);
        leaving.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(standing(&leaving).phase, Phase::Detaching);
        assert!(standing(&cluster(false, &[])).message.contains("kubectl ocm accept c1"));
    }
}

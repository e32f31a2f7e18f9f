//! Whether the name of a cluster that has joined may go from the key of its agent to a new one without a person.
//!
//! The name is the cluster's on two conditions: the hub itself takes the certificate that the cluster holds for one of that name,
//! and the new key is that of its agent for certain. Anybody may write a certificate of any name into a Secret of a cluster, and
//! anybody who holds a token of the hub may ask in any name.

use jiff::{SignedDuration, Timestamp};
use ocm_api::names::identity;

/// How much earlier than it is issued a certificate of the API server's signer begins, for clocks that are behind. Upstream:
/// `backdate` of kube-controller-manager's signers. The hub's gRPC signer lets it begin at once.
pub const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// How far the clocks of a signer and an API server of one hub may differ.
const CLOCKS: SignedDuration = SignedDuration::from_secs(10);

/// When a certificate was issued that begins then, by whichever signer of a hub: it may have been a little earlier.
pub fn issued_at_the_latest(begins: Timestamp) -> Timestamp {
    begins + BACKDATE
}

/// Whether a certificate is of an earlier cluster than the one that the hub has of its name: `issued` is when it was issued,
/// `registered` since when the hub has the managed cluster.
pub fn is_of_earlier(issued: Timestamp, registered: Timestamp) -> bool {
    issued + CLOCKS < registered
}

/// Why the certificate that a cluster holds does not show that the cluster has the name `name` on its hub; none: it does.
///
/// `user` is who the hub says that its holder is, `issued` when it was issued, and `registered` since when the hub has the
/// managed cluster: an earlier certificate is of an earlier cluster of that name.
pub fn doubt(name: &str, user: &str, issued: Timestamp, registered: Timestamp) -> Option<String> {
    if identity::parse_agent_user(user).is_none_or(|(cluster, _)| cluster != name) {
        return Some(format!("to the hub the certificate that its agent holds is that of {user:?}"));
    }
    is_of_earlier(issued, registered).then(|| {
        format!(
            "the hub has managed cluster {name:?} since {registered}, and the certificate that its agent holds is older: somebody \
             else may have got the name"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn only_an_agent_of_that_name_shows_that_its_cluster_has_it() {
        let of = |user: &str| doubt("c1", user, NOW, NOW);
        assert_eq!(of("system:open-cluster-management:c1:a1"), None);
        for other in [
            "system:open-cluster-management:c2:a1",
            "system:open-cluster-management:c1",
            "system:open-cluster-management:c1:addon:x:agent:a1",
            "system:anonymous",
            "kubernetes-admin",
            "",
        ] {
            assert!(of(other).is_some_and(|why| why.contains(&format!("{other:?}"))), "{other}");
        }
    }

    #[test]
    fn a_certificate_of_an_earlier_cluster_of_that_name_shows_nothing() {
        let at = |seconds: i64| NOW + SignedDuration::from_secs(seconds);
        let of = |registered: Timestamp| doubt("c1", "system:open-cluster-management:c1:a1", NOW, registered);
        assert_eq!((of(at(-60)), of(at(10))), (None, None));
        assert!(of(at(11)).is_some_and(|why| why.contains("1970-01-01T00:00:11Z")));
    }
}

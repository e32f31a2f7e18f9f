//! Which approval lets pass, in an emergency, what policies refuse.

use std::collections::BTreeSet;

use ocm_policy_abi::{Csr, Operation, Request};
use ocm_rules::csr::Asked;
use serde_json::Value;

use crate::review::{asked_by, cluster_of, clusters_of_csr};

/// The approval with breakGlass by which whoever makes this request may approve or accept what policies refuse; none: no
/// policy is passed over.
///
/// `uid` is that of the ManagedCluster which the hub has of the name, and `requests` are the certificate requests that name
/// it. `approvals` are facts, as [`evidence::approval`](crate::evidence::approval) has them, of approvals whose authors are
/// proved.
///
/// It is the author's own, for this cluster and for somebody else who asks for its certificate, and has not ended. Where
/// several are, it is the one that ends last.
///
/// An acceptance does not tell who asked for the certificate. It counts where nobody but whom the approval names was given one.
/// Whoever still waits gets none by it.
pub fn break_glass_approval<'a>(
    request: &Request<'_>,
    uid: &str,
    requests: &[Csr<'_>],
    approvals: impl IntoIterator<Item = &'a Value>,
) -> Option<&'a Value> {
    let cluster = cluster_of(request)?;
    let let_in: Vec<&str> = match request.operation {
        Operation::Approve => {
            let csr = request.csr.as_ref()?;
            // Whoever approves a request that names two clusters lets both in.
            let only = clusters_of_csr(csr) == BTreeSet::from([cluster]);
            if !only || csr.adds_condition.as_deref() != Some("Approved") {
                return None;
            }
            vec![asked_by(csr)]
        }
        Operation::Accept => {
            // The hub may know of a former one of the name still.
            if request.cluster.as_ref()?.uid.as_deref() != Some(uid) {
                return None;
            }
            requests.iter().filter(|csr| is_given(csr, cluster)).map(asked_by).collect()
        }
        _ => return None,
    };
    let is = |approval: &Value, member: &str, text: &str| approval[member].as_str() == Some(text);
    let counts = |approval: &&Value| {
        approval["breakGlass"].as_bool() == Some(true)
            && is(approval, "approver", &request.requester.username)
            && is(approval, "cluster", cluster)
            && is(approval, "clusterUid", uid)
            && approval["requester"].as_str().is_some_and(|named| {
                request.requester.username != named && let_in.iter().all(|requester| *requester == named)
            })
            && approval["expires"].as_i64().is_some_and(|end| end > request.now)
    };
    approvals.into_iter().filter(counts).max_by_key(|approval| approval["expires"].as_i64())
}

/// Whether somebody who had none of the cluster was given a certificate with the rights of its agent on the hub.
fn is_given(csr: &Csr<'_>, cluster: &str) -> bool {
    let asked = Asked {
        signer: &csr.signer,
        asked_by: asked_by(csr),
        is_readable: csr.unreadable.is_none(),
        common_names: &csr.common_names,
        organizations: &csr.organizations,
    };
    matches!(&*csr.state, "Approved" | "Issued") && asked.lets_into(cluster)
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Cluster, Requester};
    use ocm_rules::csr::API_SIGNER;
    use serde_json::json;

    use super::*;

    fn approval() -> Value {
        json!({
            "metadata": {"name": "c1-x"}, "cluster": "c1", "clusterUid": "u", "requester": "agent", "approver": "ann",
            "groups": [], "created": 1, "expires": 100, "breakGlass": true,
        })
    }

    fn by_ann(operation: Operation) -> Request<'static> {
        let requester = |name: &str| Requester { username: name.to_owned().into(), ..Requester::default() };
        let mut request = Request::new(operation, requester("ann"));
        request.now = 99;
        if operation == Operation::Approve {
            request.csr = Some(Csr {
                common_names: vec!["system:open-cluster-management:c1:a".into()],
                requester: requester("agent"),
                adds_condition: Some("Approved".into()),
                ..Csr::default()
            });
        } else {
            request.cluster = Some(Cluster { name: "c1".into(), uid: Some("u".into()), ..Cluster::default() });
        }
        request
    }

    fn breaks(request: &Request<'_>, approval: &Value) -> bool {
        break_glass_approval(request, "u", &[], [approval]).is_some()
    }

    /// A certificate request of `c1`.
    fn asked(user: &str, state: &str) -> Csr<'static> {
        Csr {
            common_names: vec!["system:open-cluster-management:c1:a".into()],
            signer: API_SIGNER.into(),
            requester: Requester { username: user.to_owned().into(), ..Requester::default() },
            state: state.to_owned().into(),
            ..Csr::default()
        }
    }

    #[test]
    fn its_author_approves_and_accepts_the_cluster_that_it_names() {
        for operation in Operation::ALL {
            let expected = matches!(operation, Operation::Approve | Operation::Accept);
            assert_eq!(breaks(&by_ann(operation), &approval()), expected, "{operation:?}");
        }
        let (mut longer, mut other) = (approval(), approval());
        longer["expires"] = json!(200);
        other["approver"] = json!("bob");
        let all = [approval(), longer.clone(), other];
        assert_eq!(break_glass_approval(&by_ann(Operation::Accept), "u", &[], &all), Some(&longer));
    }

    #[test]
    fn no_other_one_counts() {
        for (member, value) in [
            ("breakGlass", json!(false)),
            ("breakGlass", Value::Null),
            ("approver", json!("bob")),
            ("cluster", json!("c2")),
            ("clusterUid", json!("former")),
            ("requester", json!("ann")),
            ("requester", Value::Null),
            ("expires", json!(99)),
            ("expires", Value::Null),
        ] {
            let mut other = approval();
            other[member] = value;
            for operation in [Operation::Approve, Operation::Accept] {
                assert!(!breaks(&by_ann(operation), &other), "{member} {operation:?}");
            }
        }
        let mut other = approval();
        other["requester"] = json!("stranger");
        assert!(!breaks(&by_ann(Operation::Approve), &other), "somebody else asks");
        assert!(break_glass_approval(&by_ann(Operation::Approve), "u", &[], &[]).is_none());
    }

    #[test]
    fn whoever_accepts_lets_in_nobody_but_whom_the_approval_names() {
        let (accept, approval) = (by_ann(Operation::Accept), approval());
        let agent = |state: &str| asked("agent", state);
        let other = |state: &str| asked("stranger", state);
        let mut of_another = other("Issued");
        of_another.common_names = vec!["system:open-cluster-management:c2:a".into()];
        let renewal = asked("system:open-cluster-management:c1:a", "Issued");
        let (mut by_groups, mut unreadable, mut elsewhere) = (other("Issued"), other("Issued"), other("Issued"));
        by_groups.common_names = vec!["bob".into()];
        by_groups.organizations = vec!["system:open-cluster-management:c1".into()];
        unreadable.common_names.clear();
        unreadable.unreadable = Some("no".into());
        elsewhere.signer = "example.com/own".into();
        let mut second_name = other("Issued");
        second_name.common_names.insert(0, "system:open-cluster-management:c2:a".into());
        for (requests, expected) in [
            (vec![agent("Pending")], true),
            (vec![agent("Issued")], true),
            (vec![other("Pending")], true),
            (vec![other("Approved")], false),
            (vec![agent("Issued"), other("Issued")], false),
            (vec![agent("Approved"), other("Approved")], false),
            // It is not let in by this, and whoever approves it is asked for an approval of its own.
            (vec![agent("Issued"), other("Pending")], true),
            (vec![agent("Issued"), other("Denied"), other("Failed")], true),
            (vec![other("Denied")], true),
            (vec![agent("Issued"), of_another, renewal], true),
            (vec![agent("Issued"), second_name], false),
            (vec![agent("Issued"), asked("system:open-cluster-management:c2:a", "Issued")], false),
            (vec![by_groups], false),
            (vec![unreadable], false),
            // What another signer gives is no identity on the hub.
            (vec![elsewhere], true),
        ] {
            let found = break_glass_approval(&accept, "u", &requests, [&approval]).is_some();
            assert_eq!(found, expected, "{requests:?}");
        }
        // Of a request that is approved, its own word counts.
        let approve = by_ann(Operation::Approve);
        assert!(break_glass_approval(&approve, "u", &[other("Issued")], [&approval]).is_some());
    }

    #[test]
    fn a_cluster_of_which_the_hub_knows_a_former_one_is_not_accepted_by_its_approval() {
        let mut accept = by_ann(Operation::Accept);
        for uid in [None, Some("new".into())] {
            accept.cluster.as_mut().unwrap().uid = uid;
            assert!(!breaks(&accept, &approval()));
        }
    }

    #[test]
    fn no_request_is_approved_that_names_two_clusters_or_is_denied() {
        let mut two = by_ann(Operation::Approve);
        two.csr.as_mut().unwrap().common_names.push("system:open-cluster-management:c2:a".into());
        assert!(!breaks(&two, &approval()));
        let mut denied = by_ann(Operation::Approve);
        denied.csr.as_mut().unwrap().adds_condition = Some("Denied".into());
        assert!(!breaks(&denied, &approval()));
    }
}

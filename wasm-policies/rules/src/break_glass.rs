//! Which approval lets pass, in an emergency, what policies refuse.

use std::collections::BTreeSet;

use ocm_policy_abi::{Operation, Request};
use serde_json::Value;

use crate::review::{asked_by, cluster_of, clusters_of_csr};

/// The approval with breakGlass by which whoever makes this request may approve or accept what policies refuse; none: no
/// policy is passed over.
///
/// `uid` is that of the ManagedCluster which the hub has of the name. `approvals` are facts, as
/// [`evidence::approval`](crate::evidence::approval) has them, of approvals whose authors are proved.
///
/// It is the author's own, for this cluster and for who asks for its certificate, and has not ended. Where several are,
/// it is the one that ends last.
pub fn break_glass_approval<'a>(
    request: &Request<'_>,
    uid: &str,
    approvals: impl IntoIterator<Item = &'a Value>,
) -> Option<&'a Value> {
    let cluster = cluster_of(request)?;
    match request.operation {
        Operation::Approve => {
            let csr = request.csr.as_ref()?;
            // Whoever approves a request that names two clusters lets both in.
            let only = clusters_of_csr(csr) == BTreeSet::from([cluster]);
            if !only || csr.adds_condition.as_deref() != Some("Approved") {
                return None;
            }
        }
        Operation::Accept => {}
        _ => return None,
    }
    let requester = request.csr.as_ref().map(asked_by);
    let is = |approval: &Value, member: &str, text: &str| approval[member].as_str() == Some(text);
    let counts = |approval: &&Value| {
        approval["breakGlass"].as_bool() == Some(true)
            && is(approval, "approver", &request.requester.username)
            && is(approval, "cluster", cluster)
            && is(approval, "clusterUid", uid)
            && requester.is_none_or(|requester| is(approval, "requester", requester))
            && approval["expires"].as_i64().is_some_and(|end| end > request.now)
    };
    approvals.into_iter().filter(counts).max_by_key(|approval| approval["expires"].as_i64())
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::{Cluster, Csr, Requester};
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
        break_glass_approval(request, "u", [approval]).is_some()
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
        assert_eq!(break_glass_approval(&by_ann(Operation::Accept), "u", &all), Some(&longer));
    }

    #[test]
    fn no_other_one_counts() {
        for (member, value) in [
            ("breakGlass", json!(false)),
            ("breakGlass", Value::Null),
            ("approver", json!("bob")),
            ("cluster", json!("c2")),
            ("clusterUid", json!("former")),
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
        assert!(break_glass_approval(&by_ann(Operation::Approve), "u", &[]).is_none());
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

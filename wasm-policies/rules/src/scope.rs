//! Which requests a policy is asked about, as its administrator narrowed it.

use ocm_api::policy::{HubPolicySpec, PolicyMatch, PolicyOperation};
use ocm_policy_abi::{Cluster, Operation, Request};

use crate::evidence::Selector;

/// Which requests a policy is asked about, of those that its module judges. The default takes all.
///
/// Whatever a request does not tell is taken: whoever is asked too often may say that it has no opinion, and whoever is not
/// asked cannot object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// None: all.
    operations: Option<Vec<Operation>>,
    signers: Vec<String>,
    groups: Vec<String>,
    clusters: Option<Selector>,
}

impl From<&HubPolicySpec> for Scope {
    fn from(spec: &HubPolicySpec) -> Self {
        let PolicyMatch { signers, requester_groups, cluster_selector } = &spec.matches;
        let operation = |word: &PolicyOperation| Operation::of(word.as_str());
        // A word of a newer release: who knows what it means by the others?
        let operations: Option<Vec<Operation>> = spec.operations.iter().map(operation).collect();
        Self {
            operations: operations.filter(|some| !some.is_empty()),
            signers: signers.clone(),
            groups: requester_groups.clone(),
            clusters: cluster_selector.as_ref().map(Selector::of),
        }
    }
}

impl Scope {
    /// Whether the policy is asked about a request.
    pub fn covers(&self, request: &Request<'_>) -> bool {
        let Self { operations, signers, groups, clusters } = self;
        operations.as_ref().is_none_or(|some| some.contains(&request.operation))
            && (signers.is_empty()
                || request.csr.as_ref().is_none_or(|csr| signers.iter().any(|one| *one == *csr.signer)))
            && (groups.is_empty()
                || request.requester.groups.iter().any(|group| groups.iter().any(|one| *one == **group)))
            && clusters.as_ref().is_none_or(|selector| selects(selector, request))
    }
}

/// Whether a cluster is selected as it was or as it is to be; one leaves a selection under the eyes of the policy.
fn selects(selector: &Selector, request: &Request<'_>) -> bool {
    let selected = |cluster: &Cluster<'_>| {
        selector.matches(|key| cluster.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str()))
    };
    let mut shown = [request.cluster.as_ref(), request.previous.as_ref()].into_iter().flatten().peekable();
    shown.peek().is_none() || shown.any(selected)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    fn scope(mut spec: Value) -> Scope {
        spec["module"] = json!({"builtin": "b"});
        Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap())
    }

    fn request(mut value: Value) -> Request<'static> {
        let base =
            json!({"id": "1", "now": 0, "obligations": [], "requester": {"username": "u", "groups": ["a", "b"]}});
        for (key, default) in base.as_object().unwrap() {
            value.as_object_mut().unwrap().entry(key.clone()).or_insert_with(|| default.clone());
        }
        Request::deserialize(value).unwrap()
    }

    fn cluster(operation: &str, labels: Value, former: Option<Value>) -> Request<'static> {
        let mut value = json!({"operation": operation, "cluster": {"name": "c", "labels": labels}});
        if let Some(former) = former {
            value["previous"] = json!({"name": "c", "labels": former});
        }
        request(value)
    }

    fn csr(signer: &str) -> Request<'static> {
        request(
            json!({"operation": "approve", "csr": {"signer": signer, "requester": {"username": "u", "groups": []}}}),
        )
    }

    #[test]
    fn without_a_word_everything_is_covered() {
        let all = scope(json!({}));
        assert_eq!(all, Scope::default());
        assert!(all.covers(&cluster("create", json!({}), None)) && all.covers(&csr("example.com/s")));
    }

    #[test]
    fn operations_are_those_that_are_named_unless_one_is_not_known() {
        let some = scope(json!({"operations": ["join", "accept"]}));
        assert!(some.covers(&cluster("accept", json!({}), None)) && !some.covers(&cluster("create", json!({}), None)));
        let newer = scope(json!({"operations": ["join", "migrate"]}));
        assert!(newer.covers(&cluster("create", json!({}), None)), "it may mean this");
    }

    #[test]
    fn signers_and_groups_are_compared_where_a_request_tells_them() {
        let signers = scope(json!({"match": {"signers": ["kubernetes.io/kube-apiserver-client"]}}));
        assert!(signers.covers(&csr("kubernetes.io/kube-apiserver-client")) && !signers.covers(&csr("example.com/s")));
        assert!(signers.covers(&cluster("create", json!({}), None)));
        let groups = |group: &str| scope(json!({"match": {"requesterGroups": ["x", group]}}));
        assert!(groups("b").covers(&csr("s")) && !groups("c").covers(&csr("s")));
    }

    #[test]
    fn a_cluster_is_selected_as_it_was_and_as_it_is_to_be() {
        let selector = json!({
            "matchLabels": {"env": "prod"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["0"]}, {"key": "x", "operator": "Newer"}],
        });
        let prod = scope(json!({"match": {"clusterSelector": selector}}));
        assert!(prod.covers(&cluster("create", json!({"env": "prod"}), None)));
        for labels in [json!({}), json!({"env": "dev"}), json!({"env": "prod", "tier": "0"})] {
            assert!(!prod.covers(&cluster("create", labels.clone(), None)), "{labels}");
            // Whoever leaves the selection is seen doing so, and so is whoever comes into it.
            assert!(prod.covers(&cluster("update", labels.clone(), Some(json!({"env": "prod"})))), "{labels}");
            assert!(prod.covers(&cluster("update", json!({"env": "prod"}), Some(labels))));
        }
        assert!(prod.covers(&csr("s")), "a certificate request shows no labels of its cluster");
    }
}

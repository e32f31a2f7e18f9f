//! Which requests a policy is asked about, as its administrator narrowed it.

use std::cell::Cell;

use ocm_api::policy::{HubPolicySpec, MatchCondition, PolicyMatch, PolicyOperation};
use ocm_policy_abi::{Cluster, Operation, Request};
use ocm_rules::Code;
use serde_json::json;

use crate::evidence::Selector;
use crate::review::is_grpc_server;

/// Which requests a policy is asked about, of those that its module judges. The default takes all.
///
/// Whatever a request does not tell is taken: whoever is not asked cannot object. Where groups or labels of a cluster are there and
/// not told, nothing is allowed by it: it is [`Coverage::Unknown`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// None: all.
    operations: Option<Vec<Operation>>,
    signers: Vec<String>,
    groups: Vec<String>,
    clusters: Option<Selector>,
    conditions: Vec<MatchCondition>,
}

/// Whether a request is one that a policy is asked about. The least stands first: of several parts the least counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// It is not.
    Outside,
    /// The request does not tell. The policy is asked and may object; what it allows does not count, see
    /// [`Outcome::without_allow`](crate::Outcome::without_allow).
    Unknown,
    /// It is.
    Inside,
}

impl From<bool> for Coverage {
    fn from(is_inside: bool) -> Self {
        if is_inside { Self::Inside } else { Self::Outside }
    }
}

/// The policy that comes along and tells whether conditions are met.
pub const CONDITIONS: &str = "cel";

/// The code of its reasons for a condition that is false; any other is of one that cannot be evaluated.
pub const CONDITION_FALSE: &str = "RuleViolated";

/// The code of its reasons for a condition that looks at something of the cluster of which a part is not shown.
pub const CONDITION_UNKNOWN: &str = Code::EvidenceIncomplete.word();

impl From<&HubPolicySpec> for Scope {
    fn from(spec: &HubPolicySpec) -> Self {
        let PolicyMatch { signers, requester_groups, cluster_selector, conditions } = &spec.matches;
        let operation = |word: &PolicyOperation| Operation::of(word.as_str());
        // A word of a newer release: who knows what it means by the others?
        let operations: Option<Vec<Operation>> = spec.operations.iter().map(operation).collect();
        Self {
            operations: operations.filter(|some| !some.is_empty()),
            signers: signers.clone(),
            groups: requester_groups.clone(),
            clusters: cluster_selector.as_ref().map(Selector::of),
            conditions: conditions.clone(),
        }
    }
}

impl Scope {
    /// The settings with which [`CONDITIONS`] tells whether the conditions are met, and by their names which are false; none:
    /// there are none.
    pub fn conditions(&self) -> Option<String> {
        let all = Operation::ALL.map(Operation::word);
        let rule = |MatchCondition { name, expression }: &MatchCondition| json!({"name": name, "expression": expression, "operations": all, "message": name});
        let rules: Vec<_> = self.conditions.iter().map(rule).collect();
        // What is not shown hides no cluster from a policy.
        (!rules.is_empty()).then(|| json!({ "rules": rules, "alwaysHold": true }).to_string())
    }

    /// Whether the policy is asked about requests of this kind at all.
    pub fn judges(&self, operation: Operation) -> bool {
        self.operations.as_ref().is_none_or(|some| some.contains(&operation))
    }

    /// Whether the policy is asked about a request, if its conditions are met.
    pub fn covers(&self, request: &Request<'_>) -> Coverage {
        let Self { operations: _, signers, groups, clusters, conditions: _ } = self;
        let is_judged = self.judges(request.operation)
            && (signers.is_empty()
                || request.csr.as_ref().is_none_or(|csr| signers.iter().any(|one| *one == *csr.signer)));
        let selected = clusters.as_ref().map_or(Coverage::Inside, |selector| selects(selector, request));
        Coverage::from(is_judged).min(asks_for(groups, request)).min(selected)
    }
}

/// Whether the requester is in one of these groups; without any, whoever asks.
fn asks_for(groups: &[String], request: &Request<'_>) -> Coverage {
    if groups.is_empty() {
        return Coverage::Inside;
    }
    let is_member = request.requester.groups.iter().any(|group| groups.iter().any(|one| *one == **group));
    // It writes for users of whose groups it tells nothing.
    if !is_member && is_grpc_server(&request.requester) {
        return Coverage::Unknown;
    }
    is_member.into()
}

/// Whether a cluster is selected as it was or as it is to be; one leaves a selection under the eyes of the policy. A label that
/// may have been left out may be any. A request that shows no cluster is taken.
fn selects(selector: &Selector, request: &Request<'_>) -> Coverage {
    let selected = |cluster: &Cluster<'_>| {
        let is_cut = cluster.truncated.iter().any(|member| *member == "labels");
        let unknown = Cell::new(false);
        let label = |key: &str| {
            let found = cluster.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str());
            unknown.set(unknown.get() || (is_cut && found.is_none()));
            found
        };
        let matches = selector.matches(label);
        if unknown.get() { Coverage::Unknown } else { matches.into() }
    };
    let shown = [request.cluster.as_ref(), request.previous.as_ref()].into_iter().flatten();
    shown.map(selected).max().unwrap_or(Coverage::Inside)
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

    fn is_asked(scope: &Scope, request: &Request<'_>) -> bool {
        scope.covers(request) != Coverage::Outside
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
    fn a_label_that_may_have_been_left_out_hides_no_cluster_from_a_policy() {
        let prod = scope(json!({"match": {"clusterSelector": {"matchLabels": {"env": "prod"}}}}));
        let cut = |labels: Value| {
            let mut request = cluster("create", labels, None);
            request.cluster.as_mut().unwrap().truncated = vec!["labels".into()];
            prod.covers(&request)
        };
        assert_eq!(cut(json!({})), Coverage::Unknown);
        assert_eq!(cut(json!({"env": "prod"})), Coverage::Inside);
        assert_eq!(cut(json!({"env": "dev"})), Coverage::Outside);
        let without = scope(
            json!({"match": {"clusterSelector": {"matchExpressions": [{"key": "quarantine", "operator": "DoesNotExist"}]}}}),
        );
        let mut request = cluster("join", json!({}), None);
        assert_eq!(without.covers(&request), Coverage::Inside);
        request.cluster.as_mut().unwrap().truncated = vec!["labels".into()];
        assert_eq!(without.covers(&request), Coverage::Unknown, "it may be there");
        assert!(!is_asked(&prod, &cluster("create", json!({}), None)));
    }

    #[test]
    fn without_a_word_everything_is_covered() {
        let all = scope(json!({}));
        assert_eq!(all, Scope::default());
        assert!(is_asked(&all, &cluster("create", json!({}), None)) && is_asked(&all, &csr("example.com/s")));
    }

    #[test]
    fn operations_are_those_that_are_named_unless_one_is_not_known() {
        let some = scope(json!({"operations": ["join", "accept"]}));
        assert!(
            is_asked(&some, &cluster("accept", json!({}), None))
                && !is_asked(&some, &cluster("create", json!({}), None))
        );
        let newer = scope(json!({"operations": ["join", "migrate"]}));
        assert!(is_asked(&newer, &cluster("create", json!({}), None)), "it may mean this");
    }

    #[test]
    fn conditions_are_rules_about_every_operation() {
        assert_eq!(scope(json!({})).conditions(), None);
        let one = scope(json!({"match": {"conditions": [{"name": "n", "expression": "true"}]}})).conditions().unwrap();
        let settings: Value = serde_json::from_str(&one).unwrap();
        assert_eq!((&settings["rules"][0]["name"], &settings["rules"][0]["expression"]), (&json!("n"), &json!("true")));
        assert_eq!(settings["rules"][0]["operations"].as_array().unwrap().len(), Operation::ALL.len());
        assert_eq!(settings["alwaysHold"], true);
    }

    #[test]
    fn signers_and_groups_are_compared_where_a_request_tells_them() {
        let signers = scope(json!({"match": {"signers": ["kubernetes.io/kube-apiserver-client"]}}));
        assert!(
            is_asked(&signers, &csr("kubernetes.io/kube-apiserver-client"))
                && !is_asked(&signers, &csr("example.com/s"))
        );
        assert!(is_asked(&signers, &cluster("create", json!({}), None)));
        let groups = |group: &str| scope(json!({"match": {"requesterGroups": ["x", group]}}));
        assert!(is_asked(&groups("b"), &csr("s")) && !is_asked(&groups("c"), &csr("s")));
    }

    #[test]
    fn groups_of_users_behind_the_grpc_server_are_not_known() {
        let admins = scope(json!({"match": {"requesterGroups": ["admins"]}}));
        let user = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";
        let groups = ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management-hub"];
        let by = |requester: Value| request(json!({"operation": "request", "requester": requester}));
        let server = json!({"username": user, "uid": "u", "groups": groups});
        assert_eq!(admins.covers(&by(server.clone())), Coverage::Unknown);
        assert_eq!(scope(json!({})).covers(&by(server.clone())), Coverage::Inside, "no group is asked for");
        let others = scope(json!({"operations": ["accept"], "match": {"requesterGroups": ["admins"]}}));
        assert_eq!(others.covers(&by(server)), Coverage::Outside, "another part tells");
        assert!(!is_asked(&admins, &by(json!({"username": user, "groups": groups}))), "somebody acts as it");
    }

    #[test]
    fn a_cluster_is_selected_as_it_was_and_as_it_is_to_be() {
        let selector = json!({
            "matchLabels": {"env": "prod"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["0"]}, {"key": "x", "operator": "Newer"}],
        });
        let prod = scope(json!({"match": {"clusterSelector": selector}}));
        assert!(is_asked(&prod, &cluster("create", json!({"env": "prod"}), None)));
        for labels in [json!({}), json!({"env": "dev"}), json!({"env": "prod", "tier": "0"})] {
            assert!(!is_asked(&prod, &cluster("create", labels.clone(), None)), "{labels}");
            // Whoever leaves the selection is seen doing so, and so is whoever comes into it.
            assert!(is_asked(&prod, &cluster("update", labels.clone(), Some(json!({"env": "prod"})))), "{labels}");
            assert!(is_asked(&prod, &cluster("update", json!({"env": "prod"}), Some(labels))));
        }
        assert!(is_asked(&prod, &csr("s")), "a certificate request shows no labels of its cluster");
    }
}

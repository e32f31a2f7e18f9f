//! Whether a hub refuses another key for the name of a cluster that has joined, as far as its policies and the configuration of
//! their webhook tell it before anybody asks. Only the policy that comes along for this is known here; what others would say
//! is seen when they are asked.

use ocm_api::HubPolicy;
use ocm_api::conditions::TRUE;
use ocm_api::conditions::hub_policy::{ENFORCING, LOADED};
use ocm_api::policy::{BreakGlass, Module, PolicyMatch, PolicyMode, PolicyOperation};
use serde_json::Value;

use super::condition;
use crate::policy_engine::webhooks;

/// The policy that comes along and keeps a name for the key that joined with it. Whether it denies another one or holds it
/// (`holdTaken`), the webhook refuses the approval, whoever approves.
const NAME_CLAIM: &str = "name-claim";

/// The ValidatingWebhookConfiguration by which the API server asks policies.
#[derive(Clone, Copy, Debug)]
pub enum Configuration<'a> {
    /// There is none: policies are not asked.
    Missing,
    /// It could not be read.
    Unread,
    /// What it holds.
    Live(&'a Value),
}

/// What is known of the agent that asks with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// Whether the hub says that an agent of the cluster has joined.
    pub has_joined: bool,
    /// Whether it may have asked already, so that its request may be approved.
    pub has_begun: bool,
}

/// A policy that refuses another key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Name of the HubPolicy.
    pub policy: String,
    /// Why it is not certain that it comes to that; none: it does.
    pub doubt: Option<&'static str>,
}

/// The policy that refuses another key, one that certainly does before one that may. None: as far as can be told, nobody
/// refuses it.
pub fn another_key(policies: &[HubPolicy], configuration: Configuration<'_>, agent: Asking) -> Option<Objection> {
    let doubt_of_all = match configuration {
        Configuration::Missing => return None,
        Configuration::Unread => Some("the configuration of the policy webhook could not be read"),
        Configuration::Live(live) if !webhooks::approvals_wait(live) => {
            Some("not all approvals wait for the policy webhook")
        }
        Configuration::Live(_) if !agent.has_joined => Some("the hub does not say that its agent has joined"),
        Configuration::Live(_) if agent.has_begun => Some("the request of the agent may have been approved before"),
        Configuration::Live(_) => None,
    };
    let objections = policies.iter().filter(|policy| objects(policy)).map(|policy| Objection {
        policy: policy.metadata.name.clone().unwrap_or_default(),
        doubt: doubt_of_all.or_else(|| doubt(policy)),
    });
    objections.min_by_key(|objection| objection.doubt.is_some())
}

/// Whether it is a policy that refuses another key where it is asked, and whose word counts.
fn objects(policy: &HubPolicy) -> bool {
    let spec = &policy.spec;
    let is_about = |operation: &PolicyOperation| {
        matches!(operation, PolicyOperation::Request | PolicyOperation::Approve | PolicyOperation::Other(_))
    };
    let counts = !matches!(spec.mode, PolicyMode::Warn | PolicyMode::Audit);
    let is_asked = spec.operations.is_empty() || spec.operations.iter().any(is_about);
    counts && is_asked && spec.module.module() == Some(Module::Builtin(NAME_CLAIM))
}

/// Why it is not certain that such a policy is asked about the approval, or that its answer stands.
fn doubt(policy: &HubPolicy) -> Option<&'static str> {
    let spec = &policy.spec;
    let is_asked = spec.operations.is_empty() || spec.operations.contains(&PolicyOperation::Approve);
    let is_shared = spec.candidate.as_ref().is_some_and(|candidate| candidate.share > 0);
    let holds = |type_: &str| condition(policy, type_) == Some(TRUE);
    let doubts = [
        (spec.mode != PolicyMode::Enforce, "this release does not know its mode"),
        (!is_asked, "it is not asked about approvals"),
        (spec.matches != PolicyMatch::default(), "it is asked about some requests only"),
        (is_shared, "a candidate decides in its place for some clusters"),
        (spec.break_glass != BreakGlass::Never, "an approval with breakGlass passes over it"),
        (!holds(LOADED), "the policy controller does not say that it is loaded"),
        (!holds(ENFORCING), "the policy controller does not say that requests wait for it"),
    ];
    doubts.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::standing::tests::policy;
    use super::*;
    use crate::policy_engine::{FailurePolicy, POLICIES, Trust, configurations};

    const ASKS: Asking = Asking { has_joined: true, has_begun: false };

    fn live(failure: FailurePolicy) -> Value {
        let plan = configurations(&Trust::Bundle("authority".to_owned()), failure);
        let judges = plan.objects().find(|object| object.kind() == "ValidatingWebhookConfiguration");
        judges.unwrap().body().clone()
    }

    fn status(generation: i64, loaded: &str, enforcing: &str) -> Value {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "m",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        json!({"observedGeneration": generation,
               "conditions": [condition("Loaded", loaded), condition("Enforcing", enforcing)]})
    }

    /// The policy as an installation makes it, with these members of its spec besides.
    fn with(members: Value) -> HubPolicy {
        let mut spec = json!({"module": {"builtin": NAME_CLAIM}, "mode": "Enforce"});
        let members = members.as_object().unwrap().clone();
        spec.as_object_mut().unwrap().extend(members);
        policy(spec, status(3, "True", "True"))
    }

    fn judged(policy: HubPolicy) -> Option<Option<&'static str>> {
        let configuration = live(FailurePolicy::Fail);
        let found = another_key(&[policy], Configuration::Live(&configuration), ASKS);
        found.map(|Objection { policy, doubt }| {
            assert_eq!(policy, "p");
            doubt
        })
    }

    #[test]
    fn a_policy_in_force_that_the_hub_waits_for_refuses_another_key_for_certain() {
        assert!(POLICIES.contains(&NAME_CLAIM));
        for members in [
            json!({}),
            json!({"settings": {"holdTaken": true}}),
            json!({"operations": ["approve"]}),
            json!({"operations": ["create", "request", "approve", "join"]}),
            json!({"autoApprove": true, "onError": "Hold"}),
            json!({"candidate": {"settings": {"holdTaken": true}}}),
        ] {
            assert_eq!(judged(with(members.clone())), Some(None), "{members}");
        }
    }

    #[test]
    fn a_policy_whose_word_does_not_count_or_is_not_asked_for_refuses_nothing() {
        for members in [
            json!({"mode": "Audit"}),
            json!({"mode": "Warn"}),
            json!({"operations": ["create", "join"]}),
            json!({"module": {"builtin": "csr-hygiene"}}),
            json!({"module": {"path": "name-claim"}}),
        ] {
            assert_eq!(judged(with(members.clone())), None, "{members}");
        }
    }

    #[test]
    fn what_may_pass_a_policy_leaves_a_doubt() {
        let condition = json!({"conditions": [{"name": "c", "expression": "true"}]});
        for (members, why) in [
            (json!({"mode": "Canary"}), "this release does not know its mode"),
            (json!({"operations": ["request"]}), "it is not asked about approvals"),
            (json!({"operations": ["join", "migrate"]}), "it is not asked about approvals"),
            (json!({"match": {"requesterGroups": ["g"]}}), "it is asked about some requests only"),
            (json!({"match": condition}), "it is asked about some requests only"),
            (json!({"candidate": {"settings": {}, "share": 1}}), "a candidate decides in its place for some clusters"),
            (json!({"breakGlass": "Allowed"}), "an approval with breakGlass passes over it"),
            (json!({"breakGlass": "Twice"}), "an approval with breakGlass passes over it"),
        ] {
            assert_eq!(judged(with(members.clone())), Some(Some(why)), "{members}");
        }
    }

    #[test]
    fn only_what_the_controller_says_of_the_present_version_is_certain() {
        let of = |status: Value| judged(policy(json!({"module": {"builtin": NAME_CLAIM}}), status));
        assert_eq!(of(status(3, "True", "True")), Some(None));
        let unloaded = Some(Some("the policy controller does not say that it is loaded"));
        for former in [json!({}), status(2, "True", "True"), status(3, "False", "True"), status(3, "Unknown", "True")] {
            assert_eq!(of(former.clone()), unloaded, "{former}");
        }
        let unasked = Some(Some("the policy controller does not say that requests wait for it"));
        assert_eq!(of(status(3, "True", "False")), unasked);
    }

    #[test]
    fn without_a_configuration_that_has_requests_wait_nothing_is_certain_or_refused() {
        let policies = [with(json!({}))];
        let of = |configuration: Configuration<'_>| another_key(&policies, configuration, ASKS).map(|one| one.doubt);
        let [fails, passes] = [FailurePolicy::Fail, FailurePolicy::Ignore].map(live);
        assert_eq!(of(Configuration::Live(&fails)), Some(None));
        let mut narrowed = vec![passes, json!({})];
        for (member, value) in [
            ("matchConditions", json!([{"name": "c", "expression": "false"}])),
            ("objectSelector", json!({"matchLabels": {"a": "b"}})),
            ("namespaceSelector", json!({"matchLabels": {"a": "b"}})),
            ("rules", json!([])),
            ("name", json!("approve.example")),
        ] {
            let mut live = fails.clone();
            let entries = live["webhooks"].as_array_mut().unwrap();
            let approve = entries.iter_mut().find(|entry| entry["name"] == "approve.policy.kubectl-ocm.dev");
            approve.unwrap()[member] = value;
            narrowed.push(live);
        }
        for live in narrowed {
            let doubt = Some(Some("not all approvals wait for the policy webhook"));
            assert_eq!(of(Configuration::Live(&live)), doubt, "{live}");
        }
        let mut defaulted = fails.clone();
        for entry in defaulted["webhooks"].as_array_mut().unwrap() {
            entry["objectSelector"] = json!({});
            entry["namespaceSelector"] = json!({});
        }
        assert_eq!(of(Configuration::Live(&defaulted)), Some(None), "as the API server fills it in");
        assert_eq!(of(Configuration::Unread), Some(Some("the configuration of the policy webhook could not be read")));
        assert_eq!(of(Configuration::Missing), None, "the engine is gone, and its policies have stayed");
        assert_eq!(another_key(&[], Configuration::Live(&fails), ASKS), None);
    }

    #[test]
    fn an_agent_that_may_have_been_approved_or_has_not_joined_is_not_refused_for_certain() {
        let (policies, configuration) = ([with(json!({}))], live(FailurePolicy::Fail));
        let of = |has_joined, has_begun| {
            let found = another_key(&policies, Configuration::Live(&configuration), Asking { has_joined, has_begun });
            found.and_then(|one| one.doubt)
        };
        assert_eq!(of(true, false), None);
        assert_eq!(of(true, true), Some("the request of the agent may have been approved before"));
        assert_eq!(of(false, false), Some("the hub does not say that its agent has joined"));
    }

    #[test]
    fn of_several_policies_the_one_that_certainly_refuses_is_told() {
        let configuration = live(FailurePolicy::Fail);
        let mut certain = with(json!({}));
        certain.metadata.name = Some("certain".to_owned());
        let policies = [with(json!({"mode": "Audit"})), with(json!({"breakGlass": "Allowed"})), certain];
        let found = another_key(&policies, Configuration::Live(&configuration), ASKS);
        assert_eq!(found, Some(Objection { policy: "certain".to_owned(), doubt: None }));
    }
}

//! 8xxx: the policy engine.

use ocm_api::conditions;
use ocm_api::registration::RegistrationVerdict;
use ocm_core::phase::Phase;

use super::workload::unwell;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, Side};
use crate::text;

/// The checks of the policy engine.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(8101),
        slug: "policy-engine-runs",
        title: "the policy engine runs",
        category: Category::Policies,
        severity: Severity::Error,
        inputs: &[Input::PolicyEngine],
        after: &[Id(1116)],
        rule: Rule::Hub(policy_engine_runs),
        page: Page {
            means: "Webhook or controller of the policy engine do not run. Without the webhook the API server refuses what it has \
                    to ask about: the hub is closed. Without the controller nobody is let in by policies.",
            happens: "An image that cannot be pulled, no room, a crash, a scale to 0.",
            mend: "Do what the evidence says. In an emergency: `kubectl ocm policy emergency --reason TEXT`.",
            mended: "`kubectl get deployments -n ocm-policy-engine` shows them ready.",
        },
    },
    Check {
        id: Id(8102),
        slug: "policies-allow",
        title: "the hub's policies let the cluster in",
        category: Category::Policies,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Registrations],
        after: &[Id(8101), Id(8103), Id(2203)],
        rule: Rule::Cluster(policies_allow),
        page: Page {
            means: "The policy engine has decided about the cluster, and it is held, denied, or a policy failed.",
            happens: "A policy wants something that is not there yet: a label, an approval, another window of time, a place in an \
                      inventory.",
            mend: "`kubectl ocm policy explain NAME` says which policy, why, and what would change its mind.",
            mended: "`kubectl ocm get registrations NAME` says Allow.",
        },
    },
    Check {
        id: Id(8103),
        slug: "policies-in-force",
        title: "every policy of the hub is in force",
        category: Category::Policies,
        severity: Severity::Error,
        inputs: &[Input::HubPolicies],
        after: &[Id(8101), Id(1116)],
        rule: Rule::Hub(policies_in_force),
        page: Page {
            means: "A HubPolicy is not loaded, or degraded. What a policy that is not loaded judges is refused.",
            happens: "Its module cannot be fetched or verified, its settings are refused, its test cases fail, what it asks for of \
                      the hub cannot be read, the API server does not ask the webhook, or the hub's own webhooks do not answer.",
            mend: "`kubectl ocm policy describe NAME` says which; put it right and apply it again. Where the API server does not ask \
                   the webhook, `kubectl ocm troubleshoot --context HUB --fix=OCM8103` applies the webhook configurations as an \
                   installation makes them; where nobody answers there, see OCM8101.",
            mended: "`kubectl ocm policy list` shows it as loaded and enforcing.",
        },
    },
];

fn policy_engine_runs(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let workloads = hub.policy_engine.read().map(Vec::as_slice).unwrap_or_default();
    if workloads.is_empty() {
        return Outcome::skip("the hub has no policy engine");
    }
    Outcome::of(workloads.iter().filter_map(|workload| unwell(Side::Hub, workload)).collect())
}

fn policies_allow(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let Some(registration) = cluster.registration else {
        return Outcome::skip("no policy engine has decided about it");
    };
    // Of whom the hub has let in, policies judge the requests as they come; those are for the check of requests.
    if cluster.phase() != Some(Phase::Pending) {
        return Outcome::skip("the cluster does not wait for acceptance");
    }
    let Some(status) = &registration.status else { return Outcome::skip("no policy engine has decided about it") };
    let what = match &status.verdict {
        RegistrationVerdict::Hold => "the hub's policies hold the cluster",
        RegistrationVerdict::Deny => "the hub's policies deny the cluster",
        RegistrationVerdict::Error => "a policy of the hub failed to decide about the cluster",
        _ => return Outcome::Pass,
    };
    let waiting = status.waiting_for.clone().unwrap_or_default();
    let summary = if waiting.is_empty() { what.to_owned() } else { format!("{what}: {waiting}") };
    let finding = Finding::error(summary)
        .on(Side::Hub, "Registration", None, cluster.name)
        .because("a policy wants something that is not there yet")
        .run(Side::Hub, "kubectl ocm policy explain {}", &[cluster.name]);
    Outcome::Found(vec![finding])
}

fn policies_in_force(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let policies = hub.policies.read().map(Vec::as_slice).unwrap_or_default();
    if policies.is_empty() {
        return Outcome::skip("the hub has no policies");
    }
    let unwell = policies.iter().filter_map(|policy| {
        let name = policy.metadata.name.as_deref().unwrap_or_default();
        let list = policy.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let loaded = conditions::find(list, "Loaded").filter(|loaded| loaded.status == conditions::FALSE);
        let degraded = conditions::find(list, "Degraded").filter(|degraded| degraded.status == conditions::TRUE);
        let (condition, what) = match (loaded, degraded) {
            (Some(loaded), _) => (loaded, "is not loaded"),
            (None, Some(degraded)) => (degraded, "is degraded"),
            (None, None) => return None,
        };
        let text = format!("policy {name} {what}");
        let finding = if what == "is degraded" { Finding::warning(text) } else { Finding::error(text) };
        Some(
            finding
                .on(Side::Hub, "HubPolicy", None, name)
                .seen(format!("{}: {}", condition.reason, text::tail(&condition.message, 240)))
                .run(Side::Hub, "kubectl ocm policy describe {}", &[name]),
        )
    });
    Outcome::of(unwell.collect())
}

//! The static baseline: what the API server itself refuses on a hub, by ValidatingAdmissionPolicies.
//!
//! They are the rules of [`ocm_rules`], as far as CEL can judge them, with the same codes. No pod answers for them, so
//! they cannot be down. They cannot look into a certificate request or at other objects: what needs that is left to
//! `accept` and to policies. Nothing is refused here that the rules allow, but for what takes a right of its own: that OCM's
//! webhook asks for as well, which may be missing.
//!
//! Nothing of these policies matches deletions, statuses, leases, or the certificate requests of kubelets and people:
//! whatever is wrong with them, the hub works on.

pub mod approvals;
pub(crate) mod cel;
pub(crate) mod certificate_requests;
mod clusters;
pub(crate) mod identities;
mod policy;
mod removal;
mod works;

use ocm_api::{ManagedCluster, Manifest, crds};
use ocm_rules::{cluster, csr};
use serde_json::json;

use crate::plan::{Plan, Stage};

use policy::Policy;
pub use policy::{NAMES, POLICY_KIND};
pub use removal::{Effect, effects, is_answer, removal};

/// First minor release of Kubernetes 1 that serves ValidatingAdmissionPolicies without a feature gate (KEP-3488).
pub const FIRST_MINOR: u32 = 30;

/// Name of a managed cluster that the baseline refuses whoever creates it: to see whether it is in force. A prefix of the
/// hub's own namespaces, so that no hub has such a cluster, which could be written to and not created.
const PROBE: &str = "open-cluster-management-baseline-probe";

/// What becomes of a request that breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// It is refused, and the audit log says why.
    #[default]
    Deny,
    /// It is let through; its sender gets a warning, and the audit log says why.
    Audit,
}

/// What is chosen about the baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of a request that breaks a rule.
    pub enforcement: Enforcement,
    /// What those who register clusters may bring.
    pub clusters: cluster::Settings,
    /// What agents may change of their own cluster.
    pub agents: cluster::AgentSettings,
    /// What may be asked for in a certificate request, and who registers clusters besides the hub's own bootstrap
    /// identities.
    pub requests: csr::Settings,
}

/// The policies and their bindings. A policy without a binding does nothing, so bindings come last.
///
/// Watches tell of changes to one kind in the order in which they were made. What [`probe`] asks of each kind is changed
/// last: an API server that answers by it has seen the others.
pub fn plan(settings: &Settings) -> Plan {
    let mut definition = crds::registration_approval_manifest();
    let (key, value) = policy::MARK;
    definition.body_mut()["metadata"]["labels"] = json!({ key: value });
    let [policies, bindings] = stages(settings);
    let definitions = Stage::new("the definition of approvals", vec![definition]);
    Plan::new([definitions].into_iter().chain(policies).chain(bindings))
}

/// Policies, then bindings; of each what [`probe`] asks comes last.
fn stages(settings: &Settings) -> [[Stage; 2]; 2] {
    let others = [certificate_requests::policy(settings), works::policy(settings), approvals::policy()];
    let probed = [clusters::policy(settings)];
    let policies = |policies: &[Policy]| policies.iter().map(|policy| Manifest::of(&policy.object())).collect();
    let bindings = |policies: &[Policy]| {
        policies.iter().map(|policy| Manifest::of(&policy.binding(enforcement(policy, settings)))).collect()
    };
    [
        [Stage::new("policies", policies(&others)), Stage::new("the policy of managed clusters", policies(&probed))],
        [Stage::new("bindings", bindings(&others)), Stage::new("the binding of managed clusters", bindings(&probed))],
    ]
}

/// What becomes of a request that breaks a rule of this policy. Nothing that people have is refused by the guard of
/// approvals, and one that somebody forged while it only warned would count later.
fn enforcement(policy: &Policy, settings: &Settings) -> Enforcement {
    if policy.name == approvals::GUARD { Enforcement::Deny } else { settings.enforcement }
}

/// A managed cluster that the baseline refuses, with a message that carries [`mark`].
pub fn probe() -> Manifest {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    Manifest::of(&cluster)
}

/// What tells these settings, as this release writes them, from all others.
pub fn mark(settings: &Settings) -> String {
    let policies = [
        clusters::rules(settings),
        certificate_requests::policy(settings),
        works::policy(settings),
        approvals::policy(),
    ];
    let text: String = policies.iter().map(|policy| Manifest::of(&policy.object()).body().to_string()).collect();
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    format!("baseline {}", digest.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn expressions(plan: &Plan) -> Vec<&str> {
        let texts = |object: &'_ Manifest| -> Vec<&str> {
            let list = |member: &str| object.body()["spec"][member].as_array().into_iter().flatten();
            ["matchConditions", "variables", "validations"]
                .into_iter()
                .flat_map(list)
                .flat_map(|one| [&one["expression"], &one["messageExpression"]])
                .filter_map(Value::as_str)
                .map(|text| -> &str { Box::leak(text.to_owned().into_boxed_str()) })
                .collect()
        };
        plan.objects().flat_map(texts).collect()
    }

    #[test]
    fn every_variable_is_defined_before_it_is_used() {
        for object in plan(&Settings::default()).objects().filter(|object| object.kind() == POLICY_KIND) {
            let spec = &object.body()["spec"];
            let (mut known, mut used) = (BTreeSet::new(), BTreeSet::new());
            let names = |expression: &str| -> Vec<String> {
                let found = expression.split("variables.").skip(1);
                found.map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
            };
            for variable in spec["variables"].as_array().into_iter().flatten() {
                for name in names(variable["expression"].as_str().unwrap()) {
                    assert!(known.contains(&name), "{}: {name}", object.name());
                    used.insert(name);
                }
                known.insert(variable["name"].as_str().unwrap().to_owned());
            }
            for validation in spec["validations"].as_array().unwrap() {
                for member in ["expression", "messageExpression"] {
                    for name in names(validation[member].as_str().unwrap_or_default()) {
                        assert!(known.contains(&name), "{}: {name}", object.name());
                        used.insert(name);
                    }
                }
            }
            assert_eq!(used, known, "{}: what nobody uses", object.name());
            assert!(spec["matchConditions"].as_array().map_or(0, Vec::len) <= 64);
        }
    }

    #[test]
    fn no_expression_about_a_managed_cluster_is_an_error_where_there_is_no_spec() {
        // With the check of addresses.
        let agents = cluster::AgentSettings { client_configs: false, ..cluster::AgentSettings::default() };
        let settings = Settings { agents, ..Settings::default() };
        let policy = Manifest::of(&clusters::policy(&settings).object());
        let plan = Plan::new([Stage::new("the policy of managed clusters", vec![policy])]);
        let all = expressions(&plan);
        assert!(all.iter().all(|text| !text.contains(".spec")), "{all:?}");
        assert!(all.iter().any(|text| text.contains("oldObject.?spec.?managedClusterClientConfigs")));
    }

    #[test]
    fn what_users_choose_cannot_end_a_text() {
        let hostile = "x\") || true || (\"".to_owned();
        let mut settings = Settings::default();
        settings.requests.requesters.push(hostile.clone());
        let plan = plan(&settings);
        let all = expressions(&plan);
        assert!(all.iter().all(|text| !text.contains(&hostile)));
        assert!(all.iter().any(|text| text.contains(r#""x\") || true || (\"""#)));
    }

    #[test]
    fn an_audit_refuses_nothing_but_forged_approvals() {
        let actions = |enforcement, guard: bool| -> BTreeSet<String> {
            let plan = plan(&Settings { enforcement, ..Settings::default() });
            let bindings = plan.objects().filter(|object| object.kind() == "ValidatingAdmissionPolicyBinding");
            let bindings = bindings.filter(|binding| (binding.name() == approvals::GUARD) == guard);
            bindings.map(|binding| binding.body()["spec"]["validationActions"].to_string()).collect()
        };
        let set = |actions: &str| BTreeSet::from([actions.to_owned()]);
        assert_eq!(actions(Enforcement::Audit, false), set(r#"["Warn","Audit"]"#));
        assert_eq!(actions(Enforcement::Audit, true), set(r#"["Deny","Audit"]"#));
        for guard in [false, true] {
            assert_eq!(actions(Enforcement::Deny, guard), set(r#"["Deny","Audit"]"#));
        }
    }
}

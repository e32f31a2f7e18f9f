//! The objects of the baseline: every policy with its binding, and the definition of approvals.

use ocm_api::{Manifest, crds};
use serde_json::json;

use super::policy::{MARK, Policy};
use super::settings::{Enforcement, Settings};
use super::{approvals, certificate_requests, clusters, in_force, works};
use crate::plan::{Plan, Stage};

/// Names of the policies, and of their bindings.
pub const NAMES: [&str; 4] = [clusters::NAME, certificate_requests::NAME, works::NAME, approvals::GUARD];

/// The policies and their bindings. A policy without a binding does nothing, so bindings come last.
///
/// Watches tell of changes to one kind in the order in which they were made. What [`probe`](super::probe) asks of each kind
/// is changed last: an API server that answers by it has seen the others.
pub fn plan(settings: &Settings) -> Plan {
    let mut definition = crds::registration_approval_manifest();
    let (key, value) = MARK;
    definition.body_mut()["metadata"]["labels"] = json!({ key: value });
    let [policies, bindings] = stages(settings);
    let definitions = Stage::new("the definition of approvals", vec![definition]);
    Plan::new([definitions].into_iter().chain(policies).chain(bindings))
}

/// Policies, then bindings; of each what [`probe`](super::probe) asks comes last.
pub(super) fn stages(settings: &Settings) -> [[Stage; 2]; 2] {
    let others = [certificate_requests::policy(settings), works::policy(settings), approvals::policy()];
    let probed = [in_force::policy(settings)];
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ocm_rules::cluster;
    use serde_json::Value;

    use super::super::policy::POLICY_KIND;
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
        let policy = Manifest::of(&in_force::policy(&settings).object());
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

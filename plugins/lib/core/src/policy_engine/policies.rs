//! The HubPolicies that a hub gets at first: they say what the rules say.

use ocm_api::policy::{HubPolicySpec, ModuleSource, PolicyMode};
use ocm_api::{HubPolicy, Manifest};
use serde_json::json;

use super::names::meta;

/// Each is named after its module.
pub const NAMES: [&str; 4] = ["agent-self-edit", "cluster-hygiene", "csr-hygiene", "name-claim"];

/// Those of which a setting names users who register clusters besides the hub's bootstrap identities.
pub(super) const WITH_REQUESTERS: [&str; 3] = ["cluster-hygiene", "csr-hygiene", "name-claim"];

/// Gives a policy that is about to be made these users as such.
pub(super) fn set_requesters(policy: &mut Manifest, users: &[String]) {
    policy.body_mut()["spec"]["settings"] = json!({ "requesters": users });
}

/// The mode is said in both directions, so that an audit ends with the next run. Settings are whoever's they are.
pub(super) fn manifests(audit: bool) -> Vec<Manifest> {
    let mode = || if audit { PolicyMode::Audit } else { PolicyMode::Enforce };
    let one = |name: &str| {
        let module = ModuleSource { builtin: Some(name.to_owned()), ..ModuleSource::default() };
        let mut policy = HubPolicy::new(name, HubPolicySpec { module, mode: mode(), ..HubPolicySpec::default() });
        policy.metadata = meta(name);
        let mut manifest = Manifest::of(&policy);
        // What an error counts for stays as somebody chose it.
        if let Some(spec) = manifest.body_mut()["spec"].as_object_mut() {
            spec.remove("onError");
        }
        manifest
    };
    NAMES.map(one).to_vec()
}

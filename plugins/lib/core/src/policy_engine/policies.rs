//! The HubPolicies that a hub gets at first: they say what the rules say.

use ocm_api::policy::{HubPolicySpec, ModuleSource, PolicyMode};
use ocm_api::{HubPolicy, Manifest};

use super::names::meta;

/// Each is named after its module.
pub const NAMES: [&str; 4] = ["agent-self-edit", "cluster-hygiene", "csr-hygiene", "name-claim"];

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

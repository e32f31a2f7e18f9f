//! Taking the baseline away: what goes, in which order, and what is no longer refused then.

use ocm_api::Manifest;
use serde_json::Value;

use super::objects::stages;
use super::{Enforcement, Settings, approvals, certificate_requests, clusters, works};
use crate::admission::{Admission, Objection};
use crate::plan::{Found, Plan};

/// What [`plan`](super::plan) has made but for the definition of approvals, with which all of them would go; in the order in
/// which it is deleted. Bindings go first: without its binding a
/// policy does nothing, so it takes effect at once and not policy by policy. An API server that no longer answers
/// [`probe`](super::probe) by the baseline has seen that the other bindings are gone as well.
pub fn removal() -> Plan {
    let [policies, bindings] = stages(&Settings::default());
    Plan::new(bindings.into_iter().chain(policies))
}

/// What a policy does on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What it refuses, for people.
    pub what: &'static str,
    /// Whether it does, or warns.
    pub enforcement: Enforcement,
}

/// What the objects that were found do together: of every policy that is there and has its binding.
pub fn effects(found: &[Found]) -> Vec<Effect> {
    let live = |name: &str, policy: bool| {
        let is_it = |found: &&Found| found.manifest.name() == name && is_policy(&found.manifest) == policy;
        found.iter().find(is_it).and_then(|found| found.live.as_ref())
    };
    let all = [
        (
            clusters::NAME,
            "managed clusters with wrong names or leases, or that are registered with more than a name; acceptances and \
             changes of sets without the right to them; agents' changes to what is not theirs",
        ),
        (
            certificate_requests::NAME,
            "certificate requests by those who may not ask for that cluster, or for signers, usages and lifetimes that \
             agents do not need",
        ),
        (works::NAME, "agents' changes to ManifestWorks beyond their finalizers"),
        (approvals::GUARD, "approvals of registrations in others' names, or without the right to approve"),
    ];
    let effect = |(name, what)| {
        let (binding, _) = (live(name, false)?, live(name, true)?);
        let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array)?;
        let enforcement =
            if actions.iter().any(|action| action == "Deny") { Enforcement::Deny } else { Enforcement::Audit };
        Some(Effect { what, enforcement })
    };
    all.into_iter().filter_map(effect).collect()
}

fn is_policy(manifest: &Manifest) -> bool {
    manifest.kind() == super::POLICY_KIND
}

/// Whether the baseline, with whatever settings, has a part in what was said about [`probe`](super::probe).
pub fn is_answer(said: &Objection) -> bool {
    matches!(&said.by, Admission::Policy(name) if name == clusters::NAME)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ocm_api::crds;

    use super::super::{NAMES, plan};
    use super::*;

    #[test]
    fn what_is_made_is_deleted_and_no_policy_before_its_binding() {
        let references = |plan: &Plan| plan.objects().map(Manifest::reference).collect::<Vec<_>>();
        let (mut made, deleted) = (references(&plan(&Settings::default())), references(&removal()));
        // People's approvals stay.
        assert_eq!(
            made.remove(0),
            format!("customresourcedefinition.apiextensions.k8s.io/{}", crds::REGISTRATION_APPROVAL_NAME)
        );
        assert_eq!(made.iter().collect::<BTreeSet<_>>(), deleted.iter().collect::<BTreeSet<_>>());
        let order: Vec<bool> = removal().objects().map(is_policy).collect();
        assert_eq!(order, [false, false, false, false, true, true, true, true]);
        assert_eq!(removal().objects().nth(3).map(Manifest::name), Some(clusters::NAME));
    }

    #[test]
    fn only_a_policy_with_its_binding_does_anything() {
        let found = |enforcement, there: &dyn Fn(&Manifest) -> bool| -> Vec<Enforcement> {
            let plan = plan(&Settings { enforcement, ..Settings::default() });
            let live = |manifest: &Manifest| there(manifest).then(|| manifest.body().clone());
            let found: Vec<Found> =
                plan.objects().map(|manifest| Found { manifest: manifest.clone(), live: live(manifest) }).collect();
            effects(&found).into_iter().map(|effect| effect.enforcement).collect()
        };
        assert_eq!(found(Enforcement::Deny, &|_| true), [Enforcement::Deny; 4]);
        let audit = [Enforcement::Audit, Enforcement::Audit, Enforcement::Audit, Enforcement::Deny];
        assert_eq!(found(Enforcement::Audit, &|_| true), audit, "forged approvals are always refused");
        assert_eq!(found(Enforcement::Deny, &|manifest| is_policy(manifest)), []);
        assert_eq!(found(Enforcement::Deny, &|manifest| !is_policy(manifest)), []);
        let but_one = |manifest: &Manifest| is_policy(manifest) || manifest.name() != NAMES[0];
        assert_eq!(found(Enforcement::Deny, &but_one).len(), NAMES.len() - 1);
    }
}

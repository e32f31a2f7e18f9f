//! What still keeps a cluster out whose request is right: how it was chosen, its name's past, and what it brought.

use jiff::Timestamp;
use ocm_rules::claim;
use ocm_rules::cluster as content;

use super::case::{Case, Chosen};
use super::outcome::{Decision, Help, Refusal};
use crate::csr::{Code, Violation};
use crate::registration;

/// What still keeps a cluster out that would be let in, or be given its first certificate.
pub(super) fn admit(case: &Case<'_>, decision: Decision) -> Decision {
    let Decision::Act { accept, stands_on, .. } = decision else { return decision };
    let refusal = match case.options.chosen {
        Chosen::InBulk => case.in_bulk(accept, stands_on),
        Chosen::ByName => None,
    };
    // Whose agent has joined was let in with what it has.
    let refusal = refusal.or_else(|| if case.holder.joined { None } else { case.unjoined() });
    refusal.map_or(decision, Decision::from)
}

impl Case<'_> {
    /// What only somebody who names the cluster may do.
    fn in_bulk(&self, accept: bool, stands_on: Option<usize>) -> Option<Refusal> {
        let standing = if accept { claim::standing(Some(&self.holder)) } else { None };
        let violation = standing.or_else(|| self.denied()).or_else(|| {
            // A person let it in, with a request that is gone or before there was any: for whom, the hub does not tell.
            let unknown =
                self.holder.accepted_by_person() && !self.holder.joined && self.granted_now().next().is_none();
            unknown.then(|| {
                let detail = "it was accepted before, and the hub does not know for which key";
                Violation::new(Code::NameTaken, "spec.hubAcceptsClient", detail)
            })
        });
        let violation = violation.or_else(|| self.noted_another(stands_on));
        violation.map(|Violation { code, detail, .. }| Refusal::new(code, detail, Help::ByName(self.name.to_owned())))
    }

    /// What keeps a cluster out whose agent has not joined.
    fn unjoined(&self) -> Option<Refusal> {
        if !self.options.reuse_name
            && let Some(violation) = claim::used_before(&self.holder, &self.facts, self.claimants())
        {
            let help = Help::ReuseName(self.old_certificates_end());
            return Some(Refusal::new(violation.code, violation.detail, help));
        }
        // What a person let in was looked at, but not by a selector.
        if self.holder.accepted_by_person() && self.options.chosen == Chosen::ByName {
            return None;
        }
        let found = registration::violations(self.cluster, &self.options.cluster_sets);
        let (sets, others): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|violation| violation.code == Code::ClusterSet);
        let (found, help) = match sets.is_empty() {
            false => {
                let labels = self.cluster.metadata.labels.as_ref();
                let set = labels.and_then(|labels| labels.get(content::CLUSTER_SET)).cloned().unwrap_or_default();
                (sets, Help::ClusterSet(set))
            }
            true if self.options.as_registered => return None,
            true => (others, Help::AsRegistered),
        };
        let code = found.first()?.code;
        let details: Vec<String> = found.into_iter().map(|violation| violation.detail).collect();
        let detail = format!("whoever registered it brought what only administrators give: {}", details.join("; "));
        Some(Refusal::new(code, detail, help))
    }

    /// Until when certificates of the former holder may be valid: where nobody noted it, the last one was given before
    /// this registration.
    fn old_certificates_end(&self) -> Option<Timestamp> {
        if let Some(until) = self.facts.noted_until() {
            return Timestamp::from_millisecond(until).ok();
        }
        let longest = self.settings.max_lifetime_seconds.max(self.settings.signer_default_seconds);
        let created = self.cluster.metadata.creation_timestamp.as_ref()?.0;
        created.checked_add(jiff::SignedDuration::from_secs(longest)).ok()
    }
}

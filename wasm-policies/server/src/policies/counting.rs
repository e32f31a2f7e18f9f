//! Policies that count: those whose word depends on what others are let do at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use ocm_policy_abi::{EvidenceSource, Operation, Request};
use ocm_policy_engine::{Policy, Slot};
use ocm_policy_rules::Mode;

use super::Policies;
use super::let_in::is_accepted_at_once;

/// The policies in force that count (`countsBy`) and may refuse.
pub(crate) struct Counting {
    slots: Arc<BTreeMap<String, Slot>>,
    places: Vec<String>,
}

impl Policies {
    /// Those that count, of what is in force now.
    pub(crate) fn counting(&self) -> Counting {
        let slots = self.registry.slots();
        let counts = |slot: &Slot| slot.enforcement.mode == Mode::Enforce && counting(slot).next().is_some();
        let places = slots.iter().filter(|(_, slot)| counts(slot)).map(|(place, _)| place.clone()).collect();
        Counting { slots, places }
    }
}

/// The policies of a place that count.
fn counting(slot: &Slot) -> impl Iterator<Item = &Arc<Policy>> {
    let candidate = slot.candidate.as_ref().map(|(candidate, _)| candidate);
    slot.active.as_ref().ok().into_iter().chain(candidate).filter(|policy| !policy.manifest().counts_by.is_empty())
}

impl Counting {
    /// All places with what is in force in them.
    pub(crate) fn slots(&self) -> &BTreeMap<String, Slot> {
        &self.slots
    }

    /// Their places.
    pub(crate) fn places(&self) -> &[String] {
        &self.places
    }

    fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.places.iter().filter_map(|place| self.slots.get(place)).flat_map(counting)
    }

    /// What they count.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &EvidenceSource> {
        self.policies().flat_map(|policy| &policy.manifest().evidence).map(|query| &query.source)
    }

    /// Whether one of them is asked about a request, or may be about what it does besides.
    pub(crate) fn judge(&self, request: &Request<'_>) -> bool {
        if self.places.is_empty() {
            return false;
        }
        let besides: &[Operation] = match request.operation {
            Operation::Create if is_accepted_at_once(request) => &[Operation::Accept],
            Operation::Accept => &[Operation::Update, Operation::Join],
            Operation::Approve => &[Operation::Join],
            _ => &[],
        };
        let is_asked = |policy: &Arc<Policy>| {
            policy.is_asked(request) || besides.iter().any(|operation| policy.is_asked_about(*operation))
        };
        self.policies().any(is_asked)
    }
}

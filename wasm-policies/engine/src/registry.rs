//! The policies that are in force, and how others take their place.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use ocm_policy_rules::cohort;
use ocm_policy_rules::outcome::{Fault, Outcome, PolicyId};

use crate::policy::{Answered, Policy};
use crate::question::Question;

/// One place in the registry.
#[derive(Clone)]
pub struct Slot {
    /// The policy in force. One that could not be loaded answers everything with its fault: a gate that is missing is
    /// closed.
    pub active: Result<Arc<Policy>, Fault>,
    /// The one before, for going back.
    pub former: Option<Arc<Policy>>,
    /// One that is being tried, and for which share of the clusters it decides, in hundredths of a percent.
    pub candidate: Option<(Arc<Policy>, u16)>,
}

/// Where a candidate says something else than the policy in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The place in the registry.
    pub slot: String,
    /// What is in force.
    pub active: Outcome,
    /// What would be.
    pub candidate: Outcome,
}

/// All policies of a hub. Whoever asks sees one state of it, whole.
#[derive(Default)]
pub struct Registry {
    slots: RwLock<Arc<BTreeMap<String, Slot>>>,
}

impl Registry {
    /// What is in force now.
    pub fn slots(&self) -> Arc<BTreeMap<String, Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Slot>) -> T) -> T {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = (**slots).clone();
        let result = change(&mut next);
        *slots = Arc::new(next);
        result
    }

    /// Puts a policy in force once `proof` holds, which runs its own test cases. Otherwise everything stays as it was,
    /// except that a place that holds nothing yet is closed.
    ///
    /// # Errors
    /// What did not hold.
    pub fn install(
        &self,
        slot: &str,
        policy: Result<Arc<Policy>, Fault>,
        proof: impl FnOnce(&Arc<Policy>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match policy.and_then(|policy| proof(&policy).map(|()| policy)) {
            Ok(policy) => {
                self.change(|slots| {
                    let former = slots.remove(slot).and_then(|slot| slot.active.ok());
                    slots.insert(slot.to_owned(), Slot { active: Ok(policy), former, candidate: None });
                });
                Ok(())
            }
            Err(fault) => {
                self.change(|slots| {
                    slots.entry(slot.to_owned()).or_insert(Slot {
                        active: Err(fault.clone()),
                        former: None,
                        candidate: None,
                    });
                });
                Err(fault)
            }
        }
    }

    /// Goes back to the former policy of a place. `false` where there is none.
    pub fn roll_back(&self, slot: &str) -> bool {
        self.change(|slots| {
            let Some(slot) = slots.get_mut(slot) else { return false };
            let Some(former) = slot.former.take() else { return false };
            slot.former = std::mem::replace(&mut slot.active, Ok(former)).ok();
            true
        })
    }

    /// Tries a policy beside the one in force: it decides for a share of the clusters and is only compared for the
    /// others. The share is in hundredths of a percent; nothing is a shadow. `false` where there is no such place.
    pub fn propose(&self, slot: &str, policy: Arc<Policy>, share: u16) -> bool {
        self.change(|slots| slots.get_mut(slot).map(|slot| slot.candidate = Some((policy, share))).is_some())
    }

    /// Puts the candidate of a place in force. `false` where there is none.
    pub fn promote(&self, slot: &str) -> bool {
        self.change(|slots| {
            let Some(slot) = slots.get_mut(slot) else { return false };
            let Some((candidate, _)) = slot.candidate.take() else { return false };
            slot.former = std::mem::replace(&mut slot.active, Ok(candidate)).ok();
            true
        })
    }

    /// Gives up the candidate of a place. `false` where there is none.
    pub fn withdraw(&self, slot: &str) -> bool {
        self.change(|slots| slots.get_mut(slot).is_some_and(|slot| slot.candidate.take().is_some()))
    }

    /// Removes a place. `false` where there is none.
    pub fn remove(&self, slot: &str) -> bool {
        self.change(|slots| slots.remove(slot).is_some())
    }

    /// Asks every policy that has an opinion about such questions. A place whose policy could not be loaded answers too.
    pub fn decide(&self, question: &Question) -> Vec<Decided> {
        let slots = self.slots();
        let operation = question.request().operation;
        let chosen = slots.iter().filter_map(|(name, slot)| match chosen(name, slot, question) {
            Ok(policy) if !policy.judges(operation) => None,
            Ok(policy) => Some(Decided::By(policy.decide(question))),
            Err(fault) => Some(Decided::Closed(Outcome {
                policy: PolicyId { name: name.clone(), version: String::new() },
                result: Err(fault.clone()),
                fuel: 0,
            })),
        });
        chosen.collect()
    }

    /// Lets candidates decide beside the policies in force and tells where they differ. For after the answer.
    pub fn compare(&self, question: &Question) -> Vec<Difference> {
        let slots = self.slots();
        let operation = question.request().operation;
        let differ = slots.iter().filter_map(|(name, slot)| {
            let (Ok(active), Some((candidate, _))) = (&slot.active, &slot.candidate) else { return None };
            if !active.judges(operation) && !candidate.judges(operation) {
                return None;
            }
            let (active, candidate) =
                (active.decide(question).outcome.clone(), candidate.decide(question).outcome.clone());
            let differs = active.result != candidate.result;
            differs.then(|| Difference { slot: name.clone(), active, candidate })
        });
        differ.collect()
    }
}

/// Who decides in a place for the cluster of this question.
fn chosen<'s>(name: &str, slot: &'s Slot, question: &Question) -> Result<&'s Arc<Policy>, &'s Fault> {
    let request = question.request();
    let cluster = request.cluster.as_ref().or(request.previous.as_ref()).map(|cluster| cluster.name.as_str());
    match (&slot.candidate, cluster) {
        (Some((candidate, share)), Some(cluster)) if cohort::in_canary(name, cluster, *share) => Ok(candidate),
        _ => slot.active.as_ref(),
    }
}

/// An answer of one place.
pub enum Decided {
    /// By its policy.
    By(Answered),
    /// By nobody: the policy could not be loaded.
    Closed(Outcome),
}

impl Decided {
    /// What was said.
    pub fn outcome(&self) -> &Outcome {
        match self {
            Self::By(answered) => &answered.outcome,
            Self::Closed(outcome) => outcome,
        }
    }
}

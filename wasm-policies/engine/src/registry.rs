//! The policies that are in force, and how others take their place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ocm_policy_abi::{Operation, Request};
use ocm_policy_rules::{Enforcement, PolicyError, canary, review};

use crate::policy::Policy;

/// One place in the registry.
#[derive(Clone)]
pub struct Slot {
    /// The policy in force. One that could not be loaded answers everything with its error: a gate that is missing is
    /// closed.
    pub active: Result<Arc<Policy>, PolicyError>,
    /// The one before, for going back.
    pub former: Option<Arc<Policy>>,
    /// One that is being tried, and for which share of the clusters it decides, in hundredths of a percent.
    pub candidate: Option<(Arc<Policy>, u16)>,
    /// How much the word of all of them counts.
    pub enforcement: Enforcement,
    /// Which change of the registry made it what it is; a later one has a larger number.
    pub generation: u64,
}

/// Whether a change may take operations away that the policy in force judges. Whoever is not asked does not object, so a
/// place that stops to judge something opens a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operations {
    /// All that are judged must be judged, but for those that its administrator does not have the new policy asked about.
    #[default]
    Keep,
    /// Fewer may be judged, but not none; the administrator has said so.
    MayShrink,
}

/// A change that has begun. Of two for the same place, the one that began later wins, whichever is ready first.
#[derive(Clone, Debug)]
pub struct Installation {
    place: String,
    generation: u64,
    operations: Operations,
    judged: Vec<Operation>,
    enforcement: Enforcement,
}

impl Installation {
    /// The same, with a word about operations that would be judged no more.
    #[must_use]
    pub fn operations(self, operations: Operations) -> Self {
        Self { operations, ..self }
    }

    /// The same, with what was judged in this place before besides, whatever the word about the policy in force is: a process
    /// that has ended, or another one, had a policy in force that judges it.
    #[must_use]
    pub fn judged(self, judged: Vec<Operation>) -> Self {
        Self { judged, ..self }
    }

    /// The same, with how much the word of the policy counts; without, it is enforced and its errors refuse.
    #[must_use]
    pub fn enforcement(self, enforcement: Enforcement) -> Self {
        Self { enforcement, ..self }
    }
}

/// All policies of a hub. Whoever asks sees one state of it, whole.
#[derive(Default)]
pub struct Registry {
    slots: RwLock<Arc<BTreeMap<String, Slot>>>,
    generations: AtomicU64,
    /// Which change removed a place: what began before does not bring it back.
    removed: Mutex<BTreeMap<String, u64>>,
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

    fn generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins to put a policy in force, before it is loaded.
    pub fn begin(&self, place: &str) -> Installation {
        Installation {
            place: place.to_owned(),
            generation: self.generation(),
            operations: Operations::Keep,
            judged: Vec::new(),
            enforcement: Enforcement::default(),
        }
    }

    /// Puts a policy in force once `proof` holds, which runs its own test cases. Otherwise everything stays as it was,
    /// except that a place that holds nothing yet is closed.
    ///
    /// # Errors
    /// What did not hold: the policy, its proof, that it was loaded for this place, that it judges what was judged there
    /// before, or that nobody else was faster with something newer.
    pub fn install(
        &self,
        installation: Installation,
        policy: Result<Arc<Policy>, PolicyError>,
        proof: impl FnOnce(&Arc<Policy>) -> Result<(), PolicyError>,
    ) -> Result<(), PolicyError> {
        let Installation { place, generation, operations, judged, enforcement } = installation;
        let proven = policy.and_then(|policy| proof(&policy).map(|()| policy));
        self.change(|slots| {
            let before = slots.get(&place);
            let accepted = proven.and_then(|policy| {
                belongs(&policy, &place)?;
                if before.map(|slot| slot.generation).or_else(|| self.removed(&place)) > Some(generation) {
                    return Err(PolicyError::Load(format!("something newer was put into the place {place} meanwhile")));
                }
                keeps(&policy, before, operations, &judged)?;
                Ok(policy)
            });
            match accepted {
                Ok(policy) => {
                    let former = slots.remove(&place).and_then(|slot| slot.active.ok());
                    self.removals().remove(&place);
                    slots.insert(place, Slot { active: Ok(policy), former, candidate: None, enforcement, generation });
                    Ok(())
                }
                Err(error) => {
                    let error = error.bounded();
                    if self.removed(&place) < Some(generation) {
                        let active = Err(error.clone());
                        let closed = Slot { active, former: None, candidate: None, enforcement, generation };
                        slots.entry(place).or_insert(closed);
                    }
                    Err(error)
                }
            }
        })
    }

    /// Goes back to the former policy of a place.
    ///
    /// # Errors
    /// When there is none, or it judges less than the one in force.
    pub fn roll_back(&self, place: &str, operations: Operations) -> Result<(), PolicyError> {
        let generation = self.generation();
        self.change(|slots| {
            let slot = slots.get_mut(place).ok_or_else(|| nothing(place))?;
            let former = slot
                .former
                .clone()
                .ok_or_else(|| PolicyError::Load(format!("nothing was in force in {place} before")))?;
            keeps(&former, Some(slot), operations, &[])?;
            slot.former = std::mem::replace(&mut slot.active, Ok(former)).ok();
            // It was compared with what was in force; this may judge more.
            slot.candidate = None;
            slot.generation = generation;
            Ok(())
        })
    }

    /// Tries a policy beside the one in force: it decides for a share of the clusters and is only compared for the
    /// others. The share is in hundredths of a percent; nothing is a shadow.
    ///
    /// # Errors
    /// When there is no such place, the policy was loaded for another one, or it judges less than the one in force.
    pub fn propose(
        &self,
        place: &str,
        policy: Arc<Policy>,
        share: u16,
        operations: Operations,
    ) -> Result<(), PolicyError> {
        self.change(|slots| {
            let slot = slots.get_mut(place).ok_or_else(|| nothing(place))?;
            belongs(&policy, place)?;
            keeps(&policy, Some(slot), operations, &[])?;
            slot.candidate = Some((policy, share));
            Ok(())
        })
    }

    /// Puts the candidate of a place in force. `false` where there is none.
    pub fn promote(&self, place: &str) -> bool {
        let generation = self.generation();
        self.change(|slots| {
            let Some(slot) = slots.get_mut(place) else { return false };
            let Some((candidate, _)) = slot.candidate.take() else { return false };
            slot.former = std::mem::replace(&mut slot.active, Ok(candidate)).ok();
            slot.generation = generation;
            true
        })
    }

    /// Closes a place in which no policy is in force: it answers everything with this error, and at no time with nothing.
    /// `false` where a policy is in force.
    pub fn close(&self, place: &str, error: PolicyError, enforcement: Enforcement) -> bool {
        let generation = self.generation();
        self.change(|slots| {
            if slots.get(place).is_some_and(|slot| slot.active.is_ok()) {
                return false;
            }
            let active = Err(error.bounded());
            let closed = Slot { active, former: None, candidate: None, enforcement, generation };
            slots.insert(place.to_owned(), closed);
            self.removals().remove(place);
            true
        })
    }

    /// Changes how much the word of a place counts. `false` where there is no such place.
    pub fn enforce(&self, place: &str, enforcement: Enforcement) -> bool {
        self.change(|slots| slots.get_mut(place).map(|slot| slot.enforcement = enforcement).is_some())
    }

    /// Gives up the candidate of a place. `false` where there is none.
    pub fn withdraw(&self, place: &str) -> bool {
        self.change(|slots| slots.get_mut(place).is_some_and(|slot| slot.candidate.take().is_some()))
    }

    /// Removes a place. `false` where there is none.
    pub fn remove(&self, place: &str) -> bool {
        let generation = self.generation();
        self.change(|slots| {
            let removed = slots.remove(place).is_some();
            if removed {
                self.removals().insert(place.to_owned(), generation);
            }
            removed
        })
    }

    fn removed(&self, place: &str) -> Option<u64> {
        self.removals().get(place).copied()
    }

    fn removals(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nothing(place: &str) -> PolicyError {
    PolicyError::Load(format!("there is no place {place}"))
}

/// Whether a policy speaks in the name of this place.
fn belongs(policy: &Policy, place: &str) -> Result<(), PolicyError> {
    let own = &policy.manifest().name;
    if own == place {
        Ok(())
    } else {
        Err(PolicyError::Load(format!("it was loaded for the place {own}, not for {place}")))
    }
}

/// Whether a policy judges something, and all that was judged in a place before: by the policy in force, unless it may be
/// less than that, and what is named. What its administrator does not have it asked about is no loss.
fn keeps(
    policy: &Policy,
    before: Option<&Slot>,
    operations: Operations,
    judged: &[Operation],
) -> Result<(), PolicyError> {
    if policy.manifest().operations.is_empty() {
        return Err(PolicyError::Load("it judges no operation at all, so it would never be asked".to_owned()));
    }
    let active = before.and_then(|slot| slot.active.as_ref().ok()).filter(|_| operations == Operations::Keep);
    let active = active.map(|active| active.manifest().operations.as_slice()).unwrap_or_default();
    let is_lost = |operation: &Operation| !policy.judges(*operation) && policy.is_wanted_for(*operation);
    let lost: BTreeSet<Operation> = active.iter().chain(judged).copied().filter(is_lost).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let lost: Vec<&str> = lost.into_iter().map(Operation::word).collect();
    Err(PolicyError::StopsToJudge(lost.join(", ")))
}

impl Slot {
    /// Who decides in this place about a request. Where no cluster is named, the object or the requester stands for it,
    /// so that a canary sees such requests as well.
    pub(crate) fn chosen(&self, place: &str, request: &Request<'_>) -> Result<&Arc<Policy>, &PolicyError> {
        let Some((candidate, share)) = &self.candidate else { return self.active.as_ref() };
        let previous = || Some(request.previous.as_ref()?.name.as_str());
        // Of a certificate request as well: its object's name is whatever the requester chooses.
        let cluster = review::cluster_of(request).or_else(previous);
        let object = || request.resource.as_ref().and_then(|resource| resource.name.as_deref());
        let key = cluster.or_else(object).unwrap_or(&request.requester.username);
        if canary::chosen(place, key, *share) { Ok(candidate) } else { self.active.as_ref() }
    }
}

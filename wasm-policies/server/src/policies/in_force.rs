//! What is wanted is put in force: each policy in its place of the registry, with what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use ocm_policy_abi::{Operation, Query};
use ocm_policy_engine::{Cache, Compiler, Engine, Operations, Policy, PolicyError, Registry};
use ocm_policy_rules::canary::BUCKETS;
use ocm_policy_rules::{Enforcement, Mode};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::compare::Compared;
use super::decisions::Counted;
use super::loader::{Loader, NotLoaded};
use super::module::NoModule;
use super::source::{OfPolicy, Source};
use super::state::{CandidateState, State, With};
use super::wanted::{Candidate, Wanted};
use crate::evidence::{Knowledge, break_glass_queries, registering_queries};
use crate::metrics::{Metrics, OfModule};

/// How long a policy waits for the evidence that it asks for before it is put in force all the same: then it answers
/// with an error until the evidence is there.
const EVIDENCE: Duration = Duration::from_secs(5);
/// How long the hub may take to hand out a module.
const FETCH: Duration = Duration::from_secs(10);
/// How many modules are read and compiled at once: each may be large, and a machine has few cores.
const AT_ONCE: usize = 2;

/// Why a module is not there that only the controller can get.
const NOT_FETCHED: &str = "the policy controller has not fetched its module yet; the status of the HubPolicy says why";

/// After how long a module that could not be loaded is tried again: compiling costs time, and what failed may have been
/// the machine.
const RETRY: Duration = Duration::from_secs(60);
/// How often that doubles for a module that fails again and again.
const DOUBLED: u32 = 4;

/// After how long what failed so often is tried again.
fn retry(failures: u32) -> Duration {
    RETRY * 2u32.pow(failures.saturating_sub(1).min(DOUBLED))
}

/// The policies of a hub.
pub struct Policies {
    client: Client,
    loader: Arc<Loader>,
    /// Where modules lie that are files; none: nowhere.
    folder: Option<PathBuf>,
    pub(super) registry: Registry,
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) metrics: Arc<Metrics>,
    /// Whose turn it is to read and compile a module.
    turns: Semaphore,
    places: Mutex<BTreeMap<String, Place>>,
    /// How much each is to count by what is wanted now, also while what was wanted before is still being loaded.
    newest: Mutex<BTreeMap<String, Enforcement>>,
    /// What candidates said, by place.
    pub(super) compared: Mutex<BTreeMap<String, Compared>>,
    /// What questions came to, by place.
    pub(super) counted: Mutex<BTreeMap<String, Counted>>,
    complete: AtomicBool,
    confirmed: Mutex<Option<Instant>>,
}

/// What was put into a place.
struct Place {
    /// What is in force, or was tried in vain, and when: the same is not tried again, or not before [`retry`].
    tried: Option<(Tried, Instant)>,
    /// How often in a row that was in vain.
    failures: u32,
    /// What was wanted last.
    wanted: Wanted,
    /// Of the policy that is in force, or was to be the first.
    uid: Option<String>,
    state: State,
    /// The candidate beside what is in force, or why it is not.
    proposed: Option<Proposed>,
}

/// A candidate that was loaded, or not: the same is not loaded again, or not before [`retry`].
#[derive(Clone)]
struct Proposed {
    tried: Tried,
    at: Instant,
    /// How often in a row it was not.
    failures: u32,
    result: Result<(), PolicyError>,
}

impl Proposed {
    /// What is known of it without loading it again; `policy` is what the registry has of it.
    fn known(&self, policy: Option<&Arc<Policy>>) -> Option<Result<Arc<Policy>, PolicyError>> {
        match &self.result {
            Ok(()) => policy.cloned().map(Ok),
            Err(error) => (self.at.elapsed() < retry(self.failures)).then(|| Err(error.clone())),
        }
    }
}

impl Place {
    /// Whether what was tried is in force.
    fn is_in_force(&self) -> bool {
        self.state.failed.is_none()
    }

    /// Whether there is nothing to be done for this, but for how much it counts. What is in force has to judge also what another
    /// process has had in force since.
    fn is_done(&self, now: &Tried) -> bool {
        let Some((before, at)) = &self.tried else { return false };
        let stays = || match self.state.failed {
            None => now.wanted.keeps(&self.state.operations),
            Some(_) => before.wanted.judged == now.wanted.judged && at.elapsed() < retry(self.failures),
        };
        before.is_same(now) && stays()
    }
}

#[derive(Clone, PartialEq)]
struct Tried {
    sha256: String,
    wanted: Wanted,
}

impl Tried {
    /// Whether the same was tried, but for how much it counts.
    fn is_same(&self, other: &Self) -> bool {
        self.sha256 == other.sha256 && self.wanted.is_but_for_enforcement(&other.wanted)
    }
}

impl Policies {
    /// None yet.
    pub fn new(
        client: Client,
        engine: Engine,
        compiler: Compiler,
        cache: Option<Cache>,
        knowledge: Arc<Knowledge>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            client,
            loader: Arc::new(Loader { engine, compiler, cache }),
            folder: None,
            registry: Registry::default(),
            knowledge,
            metrics,
            turns: Semaphore::new(AT_ONCE),
            places: Mutex::default(),
            newest: Mutex::default(),
            compared: Mutex::default(),
            counted: Mutex::default(),
            complete: AtomicBool::new(false),
            confirmed: Mutex::default(),
        }
    }

    /// Has modules that are files come from this directory.
    #[must_use]
    pub fn with_modules_of(self, folder: Option<PathBuf>) -> Self {
        Self { folder, ..self }
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How long ago it was last known which policies the hub wants; none: never.
    pub fn age(&self) -> Option<Duration> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    /// What the hub wants is known.
    pub(crate) fn confirm(&self) {
        *self.confirmed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether every policy that the hub wants was tried once.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    /// Whether modules are waited for that the policy controller fetches.
    pub(super) fn awaits_modules(&self) -> bool {
        !self.awaited().is_empty()
    }

    /// Whose modules are waited for that the policy controller fetches.
    fn awaited(&self) -> BTreeSet<OfPolicy> {
        let mut awaited = BTreeSet::new();
        for (name, Place { state, .. }) in self.places().iter() {
            let of = |candidate| OfPolicy { name: name.clone(), candidate };
            if state.with == With::Fetching {
                awaited.insert(of(false));
            }
            if state.candidate.as_ref().is_some_and(|candidate| candidate.with == With::Fetching) {
                awaited.insert(of(true));
            }
        }
        awaited
    }

    /// Where the modules of policies and of their candidates come from.
    pub fn sources(&self) -> BTreeMap<OfPolicy, Source> {
        let mut sources = BTreeMap::new();
        for (name, place) in self.places().iter() {
            let of = |candidate| OfPolicy { name: name.clone(), candidate };
            sources.insert(of(false), place.wanted.source.clone());
            if let Some(candidate) = &place.wanted.candidate {
                sources.insert(of(true), candidate.source.clone());
            }
        }
        sources
    }

    /// Where the modules come from that a rollback puts in force again: nobody needs them now.
    pub fn former_sources(&self) -> Vec<Source> {
        self.places().values().filter_map(|place| place.wanted.former.clone()).collect()
    }

    /// What became of each.
    pub fn states(&self) -> BTreeMap<String, State> {
        let mut states: BTreeMap<String, State> =
            self.places().iter().map(|(name, place)| (name.clone(), place.state.clone())).collect();
        for (name, compared) in self.compared.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(state) = states.get_mut(name).and_then(|state| state.candidate.as_mut()) {
                compared.tell(state);
            }
        }
        let slots = self.registry.slots();
        for (name, state) in &mut states {
            if let Some(Ok(policy)) = slots.get(name).map(|slot| slot.active.as_ref()) {
                state.unread = self.knowledge.unread(&policy.manifest().evidence);
            }
        }
        states
    }

    /// Another version is compared, or with another one: what was said before does not count for it.
    fn compare_anew(&self, name: &str) {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Those whose newest version is not in force, with the reason.
    pub fn failed(&self) -> Vec<(String, String)> {
        let failed = |(name, state): (String, State)| Some((name, state.failed?));
        self.states().into_iter().filter_map(failed).collect()
    }

    /// The same for whoever may not read the policies.
    pub(crate) fn failed_in_short(&self) -> Vec<(String, String)> {
        let failed = |(name, place): (&String, &Place)| Some((name.clone(), place.state.failed_in_short()?.to_owned()));
        self.places().iter().filter_map(failed).collect()
    }

    /// Notes what the engine does, for a scrape.
    pub(crate) fn measure_engine(&self) {
        let slots = self.registry.slots();
        let prepared = slots.iter().filter_map(|(name, slot)| {
            let took = slot.active.as_ref().ok()?.prepared_in();
            (!took.is_zero()).then(|| (name.clone(), took))
        });
        self.metrics.engine(self.loader.engine.load(), prepared);
    }

    /// Has whatever is to be stricter be so at once; what is to be looser waits for the policy that it is said of, if that is another
    /// one than the one in force. A place in which nothing is in force yet is closed.
    pub(super) fn tighten(&self, wanted: &[Wanted]) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) =
            wanted.iter().map(|one| (one.name.clone(), one.enforcement)).collect();
        for one in wanted {
            if self.places().get(&one.name).is_some_and(|place| place.wanted.is_but_for_enforcement(one)) {
                // Whoever asks again because of that has to see of which version it is.
                self.observe(one);
            }
            if self.counts_otherwise(one) || self.has_in_force(one) {
                self.enforce(one, one.enforcement);
                continue;
            }
            let now = self.registry.slots().get(&one.name).map(|slot| slot.enforcement);
            match now {
                Some(now) => self.enforce(one, now.tightened(one.enforcement)),
                None => self.close(one),
            }
        }
        // One that was never in force and is gone refuses nobody.
        let closed: Vec<String> = {
            let places = self.places();
            let slots = self.registry.slots();
            slots.keys().filter(|name| !places.contains_key(*name) && !self.is_wanted(name)).cloned().collect()
        };
        for name in closed {
            self.registry.remove(&name);
        }
    }

    /// Makes what is in force what is wanted. What cannot be loaded leaves in force what was, no looser than before. A
    /// place in which nothing is in force yet is closed until something is.
    pub async fn apply(&self, wanted: &[Wanted]) {
        self.tighten(wanted);
        futures::future::join_all(wanted.iter().map(async |one| {
            self.place(one).await;
            self.propose(one).await;
        }))
        .await;
        wanted.iter().for_each(|one| self.observe(one));
        // Last: a policy that took another's part is in force by now. One that has come meanwhile is closed, and stays so.
        let in_place: BTreeSet<String> = self.registry.slots().keys().chain(self.places().keys()).cloned().collect();
        let gone = in_place.into_iter().filter(|name| !self.is_wanted(name));
        for name in gone {
            self.registry.remove(&name);
            self.places().remove(&name);
            self.compare_anew(&name);
        }
        self.read_evidence();
        self.complete.store(true, Ordering::Relaxed);
        self.report();
    }

    /// Puts in force, of what was wanted the last time, those versions whose modules were waited for and are there now.
    pub async fn apply_fetched(&self, wanted: &[Wanted]) {
        let awaited = self.awaited();
        let is_awaited = |one: &Wanted, candidate| awaited.contains(&OfPolicy { name: one.name.clone(), candidate });
        futures::future::join_all(wanted.iter().map(async |one| {
            let (policy, candidate) = (is_awaited(one, false), is_awaited(one, true));
            if policy {
                self.place(one).await;
            }
            if policy || candidate {
                self.propose(one).await;
            }
        }))
        .await;
        self.read_evidence();
        self.report();
    }

    /// Has all that be read which policies ask for, and nothing else.
    fn read_evidence(&self) {
        let queries = self.queries();
        self.knowledge.keep(&queries);
        // Nobody waits for it: until it is read, nobody passes over a policy.
        self.knowledge.begin(&queries);
    }

    /// The state of a place is that of this version.
    fn observe(&self, wanted: &Wanted) {
        if let Some(place) = self.places().get_mut(&wanted.name) {
            place.state.observed = (wanted.uid.clone(), wanted.generation);
            place.wanted.former.clone_from(&wanted.former);
        }
    }

    fn enforce(&self, wanted: &Wanted, enforcement: Enforcement) {
        self.registry.enforce(&wanted.name, self.no_looser(&wanted.name, enforcement));
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// This, and no looser than what is wanted now.
    fn no_looser(&self, name: &str, enforcement: Enforcement) -> Enforcement {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        newest.map_or(enforcement, |newest| enforcement.tightened(newest))
    }

    /// Closes a place that nothing was ever put into.
    fn close(&self, wanted: &Wanted) {
        self.registry.close(&wanted.name, PolicyError::Loading, wanted.enforcement);
    }

    /// Whether only how much it counts was changed. Whoever does that means what is in force, too, where the rest cannot be put in
    /// force.
    fn counts_otherwise(&self, wanted: &Wanted) -> bool {
        self.places().get(&wanted.name).is_some_and(|place| {
            place.wanted.enforcement != wanted.enforcement && place.wanted.is_but_for_enforcement(wanted)
        })
    }

    /// Whether what is in force is this, but for how much it counts.
    fn has_in_force(&self, wanted: &Wanted) -> bool {
        let is = |place: &Place| place.is_in_force() && place.wanted.is_but_for_enforcement(wanted);
        self.places().get(&wanted.name).is_some_and(is)
    }

    /// Puts one policy into its place.
    async fn place(&self, wanted: &Wanted) {
        if self.counts_otherwise(wanted) {
            self.enforce(wanted, wanted.enforcement);
        }
        // A module that is always the same is not read again to see so.
        let known = self.places().get(&wanted.name).and_then(|place| Some(place.tried.as_ref()?.0.clone()));
        if let Some(Tried { sha256, .. }) = known.filter(|_| wanted.source.is_fixed())
            && self.is_done(wanted, &Tried { sha256, wanted: wanted.clone() })
        {
            return;
        }
        let turn = self.turn().await;
        let (module, sha256) = match self.module(wanted).await {
            Ok(found) => found,
            Err(NoModule::Error(error)) => return self.fail(wanted, None, error),
            Err(NoModule::NotFetched) => {
                self.fail(wanted, None, PolicyError::Load(NOT_FETCHED.to_owned()));
                return self.lies_with(wanted, With::Fetching);
            }
        };
        let tried = Tried { sha256, wanted: wanted.clone() };
        if self.is_done(wanted, &tried) {
            return;
        }
        // Another policy of the same name owes the former one nothing.
        let operations = match self.places().get(&wanted.name) {
            Some(Place { uid, .. }) if *uid != wanted.uid => Operations::MayShrink,
            _ => Operations::Keep,
        };
        let installation = self.registry.begin(&wanted.name).operations(operations).judged(wanted.judged.clone());
        let (loaded, with) = match self.load(module, wanted, turn).await {
            Ok(policy) => (Ok(policy), With::Policy),
            Err(NotLoaded { error, with }) => (Err(error), with),
        };
        let (kind, operations) = match &loaded {
            Ok(policy) => (Some(policy.header().kind.word()), policy.manifest().operations.clone()),
            Err(_) => (None, Vec::new()),
        };
        let installation = installation.enforcement(self.no_looser(&wanted.name, wanted.enforcement));
        match self.registry.install(installation, loaded, |_| Ok(())) {
            Ok(()) => {
                let (sha256, left_out) = (Some(tried.sha256.clone()), wanted.left_out());
                let state = State { sha256, kind, operations, left_out, ..State::of(wanted) };
                let place = Place {
                    tried: Some((tried, Instant::now())),
                    failures: 0,
                    wanted: wanted.clone(),
                    uid: wanted.uid.clone(),
                    state,
                    // What was tried beside the former version is tried beside this one anew.
                    proposed: None,
                };
                self.places().insert(wanted.name.clone(), place);
            }
            Err(error) => {
                let with = if matches!(error, PolicyError::StopsToJudge(_)) { With::Operations } else { with };
                self.fail(wanted, Some(tried), error);
                self.lies_with(wanted, with);
            }
        }
    }

    fn lies_with(&self, wanted: &Wanted, with: With) {
        if let Some(place) = self.places().get_mut(&wanted.name) {
            place.state.with = with;
        }
    }

    /// Whether nothing is to be loaded for this. How much it counts is changed without loading anything.
    fn is_done(&self, wanted: &Wanted, tried: &Tried) -> bool {
        let done =
            self.places().get(&wanted.name).filter(|place| place.is_done(tried)).map(|place| place.is_in_force());
        if done == Some(true) {
            self.enforce(wanted, wanted.enforcement);
        }
        done.is_some()
    }

    /// Waits until it may be read and compiled; none: nobody waits any more.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// The module that is wanted, and its SHA-256.
    async fn module(&self, wanted: &Wanted) -> Result<(Vec<u8>, String), NoModule> {
        if let (None, Some(why)) = (&wanted.sha256, wanted.source.has_to_be_pinned()) {
            Err(PolicyError::Load(format!("its module needs sha256: {why}")))?;
        }
        let fetched = tokio::time::timeout(FETCH, wanted.source.module(&self.client, self.folder.as_deref())).await;
        let late = |_| PolicyError::Load(format!("its module did not come within {} seconds", FETCH.as_secs()));
        let module = fetched.map_err(late)??;
        let hashed = tokio::task::spawn_blocking(move || (ocm_policy_engine::digest(&module), module)).await;
        let (sha256, module) = hashed.map_err(|_| PolicyError::Load("reading it was interrupted".to_owned()))?;
        match &wanted.sha256 {
            Some(expected) if *expected != sha256 => {
                let why = format!("the SHA-256 of the module is {sha256}, and {expected} is wanted");
                Err(PolicyError::Load(why).into())
            }
            _ => Ok((module, sha256)),
        }
    }

    /// Loads a module, has it pass its test cases, which ends the turn, and waits for what it asks for.
    async fn load(
        &self,
        module: Vec<u8>,
        wanted: &Wanted,
        turn: Option<SemaphorePermit<'_>>,
    ) -> Result<Arc<Policy>, NotLoaded> {
        let (loader, one) = (self.loader.clone(), wanted.clone());
        let loaded = tokio::task::spawn_blocking(move || loader.tested(&module, &one)).await;
        drop(turn);
        let interrupted = |_| Err(PolicyError::Load("loading it was interrupted".to_owned()).into());
        let policy = loaded.unwrap_or_else(interrupted)?;
        // Without evidence it answers with an error, which is what the administrator has to see.
        let _ = self.knowledge.follow(&policy.manifest().evidence, EVIDENCE).await;
        Ok(policy)
    }

    /// Tries the candidate of a policy beside what is in force, or ends that. One that cannot be tried decides nothing.
    async fn propose(&self, wanted: &Wanted) {
        if let Some(place) = self.places().get_mut(&wanted.name) {
            place.wanted.candidate.clone_from(&wanted.candidate);
        }
        let (proposed, state) = match &wanted.candidate {
            None => (None, None),
            Some(candidate) => {
                let (proposed, result) = self.try_candidate(wanted, candidate).await;
                let state = match result {
                    Ok(sha256) => {
                        CandidateState { sha256: Some(sha256), share: candidate.share, ..CandidateState::default() }
                    }
                    Err(NoModule::Error(error)) => {
                        CandidateState { failed: Some(error.to_string()), ..CandidateState::default() }
                    }
                    Err(NoModule::NotFetched) => CandidateState {
                        failed: Some(NOT_FETCHED.to_owned()),
                        with: With::Fetching,
                        ..CandidateState::default()
                    },
                };
                (proposed, Some(state))
            }
        };
        if state.as_ref().is_none_or(|state| state.failed.is_some()) {
            self.registry.withdraw(&wanted.name);
            self.compare_anew(&wanted.name);
        }
        if let Some(place) = self.places().get_mut(&wanted.name) {
            (place.proposed, place.state.candidate) = (proposed, state);
        }
    }

    /// Loads a candidate, unless that was done already, and has it decide for its share. Its SHA-256.
    async fn try_candidate(
        &self,
        wanted: &Wanted,
        candidate: &Candidate,
    ) -> (Option<Proposed>, Result<String, NoModule>) {
        let before = match self.places().get(&wanted.name) {
            Some(place) if place.is_in_force() => place.proposed.clone(),
            _ => {
                let why = "the version that it is to be compared with is not in force";
                return (None, Err(PolicyError::Load(why.to_owned()).into()));
            }
        };
        let one = wanted.tried(candidate);
        let there = self.registry.slots().get(&wanted.name).and_then(|slot| slot.candidate.clone());
        let before = before.filter(|before| before.tried.wanted.is_but_for_enforcement(&one));
        let failed = before.as_ref().map(|before| (before.tried.sha256.clone(), before.failures));
        let known = before.and_then(|before| Some((before.known(there.as_ref().map(|(policy, _)| policy))?, before)));
        let (policy, tried, at, failures) = match known {
            // A module that is always the same is not read again to see so. That it cannot be read now ends nothing.
            Some((policy, before)) if one.source.is_fixed() => (policy, before.tried, before.at, before.failures),
            known => {
                let turn = self.turn().await;
                let (module, sha256) = match self.module(&one).await {
                    Ok(found) => found,
                    Err(error) => return (None, Err(error)),
                };
                let tried = Tried { sha256, wanted: one };
                match known.filter(|(_, before)| before.tried.sha256 == tried.sha256) {
                    Some((policy, before)) => (policy, tried, before.at, before.failures),
                    None => {
                        self.compare_anew(&wanted.name);
                        let loaded = self.load(module, &tried.wanted, turn).await;
                        let before = failed.filter(|(sha256, _)| *sha256 == tried.sha256);
                        let failures = before.map_or(0, |(_, failures)| failures).saturating_add(1);
                        (loaded.map_err(|not| not.error), tried, Instant::now(), failures)
                    }
                }
            }
        };
        let share = u16::from(candidate.share.min(100)) * (BUCKETS / 100);
        let result = policy.and_then(|policy| match there {
            Some((known, now)) if now == share && Arc::ptr_eq(&known, &policy) => Ok(()),
            _ => self.registry.propose(&wanted.name, policy, share, Operations::Keep),
        });
        let sha256 = tried.sha256.clone();
        let failures = if result.is_ok() { 0 } else { failures };
        let proposed = Proposed { tried, at, failures, result: result.clone() };
        (Some(proposed), result.map(|()| sha256).map_err(NoModule::Error))
    }

    /// Notes why a policy is not in force as it is wanted.
    fn fail(&self, wanted: &Wanted, tried: Option<Tried>, error: PolicyError) {
        if !self.is_wanted(&wanted.name) && !self.places().contains_key(&wanted.name) {
            return;
        }
        let failed = error.to_string();
        let in_short = match &error {
            PolicyError::Settings(_) => error.in_short().to_owned(),
            _ => failed.clone(),
        };
        let mut places = self.places();
        let before = places.get(&wanted.name);
        let sha256 = before.and_then(|place| place.state.sha256.clone());
        let kind = before.and_then(|place| place.state.kind);
        let uid = before.map_or_else(|| wanted.uid.clone(), |place| place.uid.clone());
        // What another policy of the same name judges is not held against this one.
        let operations = before.filter(|place| place.uid == wanted.uid);
        let operations = operations.map(|place| place.state.operations.clone()).unwrap_or_default();
        if sha256.is_none() {
            // Nothing is in force but a refusal, which says why and counts as it is wanted.
            self.registry.close(&wanted.name, error, self.no_looser(&wanted.name, wanted.enforcement));
        }
        let again = before.zip(tried.as_ref()).filter(|(before, now)| {
            before.state.failed.is_some() && before.tried.as_ref().is_some_and(|(tried, _)| tried.is_same(now))
        });
        let failures = again.map_or(0, |(before, _)| before.failures).saturating_add(1);
        let tried = tried.map(|tried| (tried, Instant::now()));
        let (failed, in_short) = (Some(failed), Some(in_short));
        let state = State { sha256, kind, operations, failed, in_short, ..State::of(wanted) };
        let place = Place { tried, failures, wanted: wanted.clone(), uid, state, proposed: None };
        places.insert(wanted.name.clone(), place);
    }

    /// What the policies in force, and those that are tried, ask for.
    fn queries(&self) -> Vec<Query> {
        let slots = self.registry.slots();
        let policies = slots.values().flat_map(|slot| {
            let candidate = slot.candidate.as_ref().map(|(candidate, _)| candidate);
            [slot.active.as_ref().ok(), candidate]
        });
        let asked = policies.flatten().flat_map(|policy: &Arc<Policy>| policy.manifest().evidence.clone());
        let breaks = slots.values().any(|slot| slot.enforcement.break_glass);
        let breaks = breaks.then(break_glass_queries).into_iter().flatten();
        let joins = self.judge_joins().then(registering_queries).into_iter().flatten();
        asked.chain(breaks).chain(joins).collect()
    }

    /// Whether a policy that may refuse is asked whether clusters join.
    pub(crate) fn judge_joins(&self) -> bool {
        let joins = |policy: &Arc<Policy>| policy.is_asked_about(Operation::Join);
        let slots = self.registry.slots();
        slots.values().filter(|slot| slot.enforcement.mode == Mode::Enforce).any(|slot| {
            slot.active.as_ref().is_ok_and(joins)
                || slot.candidate.as_ref().is_some_and(|(candidate, _)| joins(candidate))
        })
    }

    fn report(&self) {
        self.metrics.policies.clear();
        for (name, slot) in self.registry.slots().iter() {
            let Ok(policy) = &slot.active else { continue };
            let sha256 = self.states().get(name).and_then(|state| state.sha256.clone()).unwrap_or_default();
            let labels = OfModule {
                policy: name.clone(),
                version: policy.manifest().version.clone(),
                sha256,
                mode: slot.enforcement.mode.word(),
            };
            self.metrics.policies.get_or_create(&labels).set(1);
        }
        self.metrics.failed_policies.set(i64::try_from(self.failed().len()).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fails_again_and_again_is_tried_less_and_less_often() {
        let minutes: Vec<u64> = [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(|times| retry(times).as_secs() / 60).into();
        assert_eq!(minutes, [1, 1, 2, 4, 8, 16, 16, 16]);
        let policy = json!({"metadata": {"name": "p"}, "spec": {"module": {"builtin": "x"}}});
        let wanted = Wanted::of(&serde_json::from_value(policy).unwrap());
        let tried = |sha256: &str| Tried { sha256: sha256.to_owned(), wanted: wanted.clone() };
        let place = |failures: u32, seconds: u64| Place {
            tried: Instant::now().checked_sub(Duration::from_secs(seconds)).map(|at| (tried("a"), at)),
            failures,
            wanted: wanted.clone(),
            uid: None,
            state: State { failed: Some("why".to_owned()), ..State::of(&wanted) },
            proposed: None,
        };
        assert!(place(1, 50).is_done(&tried("a")) && !place(1, 70).is_done(&tried("a")));
        assert!(place(2, 70).is_done(&tried("a")) && !place(2, 130).is_done(&tried("a")));
        // Another module is no repetition.
        assert!(!place(2, 70).is_done(&tried("b")));
    }
}

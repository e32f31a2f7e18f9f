//! One policy that can be asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ocm_policy_abi::{EditGrant, Manifest, Operation, Request, Verdict};
use ocm_policy_rules::record::{self, Circumstances, Record};
use ocm_policy_rules::{CONDITION_FALSE, CONDITION_UNKNOWN, Coverage, Outcome, PolicyError, PolicyId, Scope};

use crate::artifact::{Artifact, Header};
use crate::background::Replenish;
use crate::concurrency::{Reserved, Speed};
use crate::deadline::Deadline;
use crate::engine::Engine;
use crate::limits::{Ceiling, Limits};
use crate::question::Question;
use crate::runtime::{MachineCode, Program, Ready, load};

/// A policy with its settings, loaded.
pub struct Policy {
    loaded: Arc<LoadedPolicy>,
    /// Answers hold the policy, and threads that count them in one place wait for each other: each shard counts its own.
    held: Box<[Arc<Held>]>,
}

/// What an administrator has a policy asked about.
#[derive(Clone, Default)]
pub struct Asked {
    scope: Scope,
    conditions: Option<Arc<Policy>>,
}

impl Asked {
    /// What lies in a scope and fulfils its conditions. `artifact` makes the module
    /// [`CONDITIONS`](ocm_policy_rules::CONDITIONS) with settings, where there are conditions.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn of(
        scope: Scope,
        engine: &Engine,
        artifact: impl FnOnce(&str, &Ceiling) -> Result<Artifact, PolicyError>,
    ) -> Result<Self, PolicyError> {
        let Some(settings) = scope.conditions() else { return Ok(scope.into()) };
        let ceiling = Ceiling::default();
        let made = artifact(&settings, &ceiling).and_then(|made| Policy::load(engine, &made, &ceiling, &[]));
        let conditions = made.map_err(|error| match error {
            PolicyError::Settings(why) => PolicyError::Condition(why),
            error => PolicyError::Condition(error.to_string()),
        })?;
        Ok(Self { scope, conditions: Some(conditions) })
    }
}

impl From<Scope> for Asked {
    fn from(scope: Scope) -> Self {
        Self { scope, conditions: None }
    }
}

/// Why a policy is not asked about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// Its module does not judge such operations, or its administrator has it asked about others.
    OtherOperations,
    /// Its administrator has it asked about requests of other signers, users or clusters.
    OtherRequests,
    /// The names of conditions of its administrator that are false.
    Conditions(Vec<String>),
}

impl NotAsked {
    /// The names of the conditions that are false.
    pub fn unmet(&self) -> &[String] {
        match self {
            Self::OtherOperations | Self::OtherRequests => &[],
            Self::Conditions(unmet) => unmet,
        }
    }
}

/// One handle of a policy, in a line of the caches of its own.
#[repr(align(128))]
struct Held(Arc<LoadedPolicy>);

/// What all handles of a policy lead to.
struct LoadedPolicy {
    engine: Engine,
    header: Header,
    /// The name that the module gives itself.
    claimed_name: String,
    limits: Limits,
    /// What the administrator lets it change; its manifest stands beside it.
    edits: Vec<EditGrant>,
    /// What the administrator has it asked about, of what its manifest says.
    asked: Asked,
    /// One for each shard of the engine.
    per_shard: Box<[PerShard]>,
    /// What a shard that asks for the first time loads.
    code: MachineCode,
    speed: Speed,
    /// Microseconds that making the last instance took.
    prepared_in: AtomicU64,
}

/// A policy in one shard: its code, and the instance that waits for its request. None shares a line of the caches with
/// another: processors would take it from each other.
#[repr(align(128))]
struct PerShard {
    /// Its name and version, which every answer carries.
    id: Arc<PolicyId>,
    program: OnceLock<Box<dyn Program>>,
    ready: Mutex<Option<Box<dyn Ready>>>,
    reserved: Reserved,
}

impl PerShard {
    fn new(id: &PolicyId) -> Self {
        Self {
            id: Arc::new(id.clone()),
            program: OnceLock::default(),
            ready: Mutex::default(),
            reserved: Reserved::default(),
        }
    }

    fn ready(&self) -> MutexGuard<'_, Option<Box<dyn Ready>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer. When it is dropped, the instance that gave it is taken apart and the next one is made, so whoever answers
/// somebody does that first. No code of a guest runs then: where making an instance takes that, a thread of the engine
/// does it.
pub struct Answered {
    /// What the policy said, or what went wrong.
    pub outcome: Outcome,
    /// The instance that gave it, and in which shard it lies.
    spent: Option<(usize, Box<dyn Ready>)>,
    /// Whether the shard counts the instance among those that may stay for a while.
    counted: bool,
    policy: Arc<Held>,
}

impl Answered {
    /// What whoever was asked was made of.
    pub(crate) fn header(&self) -> &Header {
        &self.policy.0.header
    }

    /// Writes down what was said about a question, and what that depended on.
    ///
    /// # Errors
    /// When the policy could not have been asked: a table or an object is missing.
    pub fn record(&self, question: &Question, micros: u64) -> Result<Record, PolicyError> {
        self.policy.0.record(question, &self.outcome, micros)
    }

    /// Lets the instance that gave the answer stay while other policies are asked, or takes it apart where too many do
    /// already: nobody keeps so many that others find none.
    pub(crate) fn set_aside(&mut self) {
        let Some((shard, _)) = &self.spent else { return };
        self.counted = self.policy.0.engine.shards()[*shard].keep_spent();
        if !self.counted {
            self.retire();
        }
    }

    /// Takes the instance apart that gave the answer, so that others can be made in its place.
    fn retire(&mut self) {
        let Some((shard, instance)) = self.spent.take() else { return };
        drop(instance);
        self.policy.0.engine.concurrency().given_back();
        if std::mem::take(&mut self.counted) {
            self.policy.0.engine.shards()[shard].spent_gone();
        }
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.retire();
        self.policy.0.replenish_soon();
    }
}

impl Policy {
    /// Loads a policy and gets its first instance ready. It may use what the ceiling leaves it, and change what both its
    /// manifest and the administrator's `edits` name.
    ///
    /// # Errors
    /// When the code does not fit the engine, or no instance of it can be made within its limits.
    pub fn load(
        engine: &Engine,
        artifact: &Artifact,
        ceiling: &Ceiling,
        edits: &[EditGrant],
    ) -> Result<Arc<Self>, PolicyError> {
        Self::load_as(&artifact.header().manifest.name, engine, artifact, ceiling, edits, Scope::default())
    }

    /// As [`Policy::load`], for a place in the registry. Everything that the policy says is said in the name of its
    /// place: what a module calls itself is its own word. It is asked about what the administrator says, of what it judges.
    ///
    /// # Errors
    /// As [`Policy::load`], and where a scope has conditions that nobody evaluates.
    pub fn load_as(
        place: &str,
        engine: &Engine,
        artifact: &Artifact,
        ceiling: &Ceiling,
        edits: &[EditGrant],
        asked: impl Into<Asked>,
    ) -> Result<Arc<Self>, PolicyError> {
        let asked = asked.into();
        if asked.conditions.is_none() && asked.scope.conditions().is_some() {
            return Err(PolicyError::Load("its conditions cannot be evaluated here".to_owned()));
        }
        let mut header = artifact.header().clone();
        let limits = ceiling.grant(&header.manifest.limits);
        let claimed_name = std::mem::replace(&mut header.manifest.name, place.to_owned());
        let id = PolicyId { name: place.to_owned(), version: header.manifest.version.clone() };
        let loaded = Arc::new(LoadedPolicy {
            engine: engine.clone(),
            header,
            claimed_name,
            limits,
            edits: edits.to_vec(),
            asked,
            per_shard: engine.shards().iter().map(|_| PerShard::new(&id)).collect(),
            code: MachineCode::new(artifact.code()),
            speed: Speed::default(),
            prepared_in: AtomicU64::new(0),
        });
        let own = engine.own_shard();
        let permit = engine.concurrency().enter(None, &Deadline::NONE)?;
        let first = loaded.prepare_when_free(own, &Deadline::NONE)?;
        drop(permit);
        loaded.put(own, first);
        let held = engine.shards().iter().map(|_| Arc::new(Held(loaded.clone()))).collect();
        Ok(Arc::new(Self { loaded, held }))
    }

    /// What it says of itself, under the name of its place.
    pub fn manifest(&self) -> &Manifest {
        &self.loaded.header.manifest
    }

    /// The name that the module gives itself.
    pub fn claimed_name(&self) -> &str {
        &self.loaded.claimed_name
    }

    /// What it was made of.
    pub fn header(&self) -> &Header {
        &self.loaded.header
    }

    /// What it may use.
    pub fn limits(&self) -> &Limits {
        &self.loaded.limits
    }

    /// How long making the last instance took.
    pub fn prepared_in(&self) -> Duration {
        Duration::from_micros(self.loaded.prepared_in.load(Ordering::Relaxed))
    }

    /// Its name and version.
    pub(crate) fn id(&self) -> Arc<PolicyId> {
        self.loaded.id()
    }

    /// Whether it has an opinion about such questions.
    pub fn judges(&self, operation: Operation) -> bool {
        self.manifest().operations.contains(&operation)
    }

    /// Whether it is asked about requests of this kind at all: it judges such, and its administrator has it asked.
    pub fn is_asked_about(&self, operation: Operation) -> bool {
        self.judges(operation) && self.is_wanted_for(operation)
    }

    /// Whether its administrator has it asked about requests of this kind, if it judges such.
    pub(crate) fn is_wanted_for(&self, operation: Operation) -> bool {
        self.loaded.asked.scope.judges(operation)
    }

    /// Whether it is asked about a request, if its conditions are met: it judges such, and its administrator has it asked.
    pub fn is_asked(&self, request: &Request<'_>) -> bool {
        self.judges(request.operation) && self.loaded.asked.scope.covers(request) != Coverage::Outside
    }

    /// Why it is not asked, conditions included; none: it is. One that is false outweighs others that cannot be evaluated. What a
    /// condition looks at and is not shown hides no update and no deletion of a cluster from the policy.
    ///
    /// # Errors
    /// When none is false and one cannot be evaluated, or not before the deadline: the policy answers with that. Also where something
    /// that a condition looks at is not shown, and the policy may let in the cluster.
    pub fn not_asked(&self, question: &Question, deadline: &Deadline) -> Result<Option<NotAsked>, PolicyError> {
        self.measured_not_asked(question, deadline, &mut 0)
    }

    /// The same, and adds the fuel that the conditions use.
    pub(crate) fn measured_not_asked(
        &self,
        question: &Question,
        deadline: &Deadline,
        fuel: &mut u64,
    ) -> Result<Option<NotAsked>, PolicyError> {
        let request = question.request();
        if !self.is_asked_about(request.operation) {
            return Ok(Some(NotAsked::OtherOperations));
        }
        if !self.is_asked(request) {
            return Ok(Some(NotAsked::OtherRequests));
        }
        let Some(conditions) = &self.loaded.asked.conditions else { return Ok(None) };
        let answered = conditions.decide_before(question, deadline);
        *fuel = fuel.saturating_add(answered.outcome.fuel);
        let decision = match &answered.outcome.result {
            Ok(decision) => decision.clone(),
            Err(error @ (PolicyError::DeadlineExceeded | PolicyError::Overloaded(_))) => return Err(error.clone()),
            Err(error) => return Err(PolicyError::Condition(error.to_string())),
        };
        if decision.verdict == Verdict::Allow {
            return Ok(None);
        }
        let (unmet, failed): (Vec<_>, Vec<_>) =
            decision.reasons.into_iter().partition(|reason| reason.code == CONDITION_FALSE);
        if !unmet.is_empty() {
            return Ok(Some(NotAsked::Conditions(unmet.into_iter().map(|reason| reason.message).collect())));
        }
        let is_unknown = !failed.is_empty() && failed.iter().all(|reason| reason.code == CONDITION_UNKNOWN);
        if is_unknown && matches!(request.operation, Operation::Update | Operation::Delete) {
            return Ok(None);
        }
        let why = failed.into_iter().next().map(|reason| reason.message);
        Err(PolicyError::Condition(why.unwrap_or_default()))
    }

    /// Whether it may change anything: its manifest announces edits, and the administrator grants some.
    pub fn may_edit(&self) -> bool {
        !self.loaded.edits.is_empty() && !self.manifest().edits.is_empty()
    }

    /// Whether its last decision was quick, and that about its conditions. Before the first it is not known to be.
    pub fn is_quick(&self) -> bool {
        let conditions = self.loaded.asked.conditions.as_ref();
        self.loaded.speed.is_quick()
            && !self.loaded.prepares_with_guest_code()
            && conditions.is_none_or(|conditions| conditions.is_quick())
    }

    /// Asks. Every answer comes from an instance that has never been asked before.
    pub fn decide(&self, question: &Question) -> Answered {
        self.decide_before(question, &Deadline::NONE)
    }

    /// Asks, and gives up when the deadline passes. Where it is not known whether its administrator has it asked about the request,
    /// it allows nothing.
    pub fn decide_before(&self, question: &Question, deadline: &Deadline) -> Answered {
        let policy = self.held[self.loaded.engine.own_shard()].clone();
        let (mut spent, mut fuel) = (None, 0);
        let result = policy.0.run(question, deadline, &mut spent, &mut fuel);
        let outcome = Outcome { policy: policy.0.id(), result, fuel };
        let outcome = outcome.permit(question.request(), &policy.0.header.manifest.edits, &policy.0.edits);
        let outcome = if policy.0.only_objects(question) { outcome.without_allow() } else { outcome };
        Answered { outcome, spent, counted: false, policy }
    }
}

impl LoadedPolicy {
    fn manifest(&self) -> &Manifest {
        &self.header.manifest
    }

    /// Its name and version.
    fn id(&self) -> Arc<PolicyId> {
        self.per_shard[self.engine.own_shard()].id.clone()
    }

    /// Whether it could only object to what is asked.
    fn only_objects(&self, question: &Question) -> bool {
        self.asked.scope.covers(question.request()) == Coverage::Unknown
    }

    /// Writes down what it said about a question, and what that depended on. It could not have been asked where a table or
    /// an object is missing: that is an error.
    fn record(&self, question: &Question, outcome: &Outcome, micros: u64) -> Result<Record, PolicyError> {
        let request = question.text_for(self.manifest())?;
        let Limits { fuel, ticks, memory_bytes, table_elements, host_bytes } = self.limits;
        let circumstances = Circumstances {
            module_sha256: self.header.module_digest.clone(),
            settings: self.header.settings.clone(),
            evidence_revision: question.revision(self.manifest())?,
            request: request.to_string(),
            limits: record::Limits { fuel, memory_bytes, millis: ticks, table_elements, host_bytes },
            only_objects: self.only_objects(question),
            micros: Some(micros),
        };
        Ok(Record::new(outcome, circumstances))
    }

    fn run(
        &self,
        question: &Question,
        deadline: &Deadline,
        spent: &mut Option<(usize, Box<dyn Ready>)>,
        fuel: &mut u64,
    ) -> Result<ocm_policy_abi::Decision, PolicyError> {
        deadline.check()?;
        let own = self.engine.own_shard();
        let waits = self.take(own);
        // Without such an instance, one is made here, and that counts as well.
        let quick = self.speed.is_quick() && (waits.is_some() || !self.prepares_with_guest_code());
        let permit = match self.engine.concurrency().enter(quick.then_some(&self.per_shard[own].reserved), deadline) {
            Ok(permit) => permit,
            Err(error) => {
                if let Some((shard, ready)) = waits {
                    self.put(shard, ready);
                }
                return Err(error);
            }
        };
        let (shard, mut ready) = match waits {
            Some(waited) => waited,
            None => {
                // Nobody waits for code where another shard has it.
                let shards = self.per_shard.len();
                let mut near = (0..shards).map(|further| (own + further) % shards);
                let shard = near.find(|shard| self.per_shard[*shard].program.get().is_some()).unwrap_or(own);
                (shard, self.prepare_when_free(shard, deadline)?)
            }
        };
        ready.clock().bind(deadline);
        let result = ready.decide(question, self.manifest(), &self.limits);
        *fuel = ready.fuel_used();
        *spent = Some((shard, ready));
        self.speed.took(match result {
            Err(PolicyError::TimedOut | PolicyError::DeadlineExceeded) => u64::MAX,
            _ => *fuel,
        });
        drop(permit);
        result
    }

    /// The nearest instance that waits, and where it did.
    fn take(&self, own: usize) -> Option<(usize, Box<dyn Ready>)> {
        let shards = self.per_shard.len();
        (0..shards).map(|further| (own + further) % shards).find_map(|shard| {
            let ready = self.per_shard[shard].ready().take()?;
            self.engine.shards()[shard].released();
            Some((shard, ready))
        })
    }

    /// Lets an instance wait for its request, unless one waits there or enough do.
    fn put(&self, shard: usize, instance: Box<dyn Ready>) {
        let mut ready = self.per_shard[shard].ready();
        if ready.is_none() && self.engine.shards()[shard].keep() {
            *ready = Some(instance);
        }
    }

    /// Makes an instance. Where no room is left for one, it waits until another one was taken apart.
    fn prepare_when_free(&self, shard: usize, deadline: &Deadline) -> Result<Box<dyn Ready>, PolicyError> {
        /// Without a deadline of the question, nobody waits for longer.
        const LONGEST: Duration = Duration::from_secs(2);
        let longest = Deadline::after(LONGEST);
        loop {
            let mut limits = self.limits;
            if let Some(left) = deadline.left() {
                limits.ticks = limits.ticks.min(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)).max(1);
            }
            match self.prepare(shard, &limits) {
                Err(error @ PolicyError::Overloaded(_)) => longest.check().map_err(|_| error)?,
                Err(PolicyError::TimedOut) if deadline.check().is_err() => return Err(PolicyError::DeadlineExceeded),
                made => return made,
            }
            self.engine.concurrency().pause(deadline)?;
        }
    }

    /// Makes an instance in a shard. The first one there brings the code with it.
    fn prepare(&self, shard: usize, limits: &Limits) -> Result<Box<dyn Ready>, PolicyError> {
        let (engine, prepared) = (&self.engine.shards()[shard].engine, &self.per_shard[shard]);
        let program = match prepared.program.get() {
            Some(program) => program,
            None => {
                let program = load(engine, &self.header, &self.code)?;
                prepared.program.get_or_init(|| program)
            }
        };
        if !program.prepares_with_guest_code() {
            return program.prepare(engine, limits);
        }
        let begun = Instant::now();
        let made = program.prepare(engine, limits);
        self.prepared_in.store(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        made
    }

    fn prepares_with_guest_code(&self) -> bool {
        self.per_shard
            .iter()
            .find_map(|prepared| prepared.program.get())
            .is_none_or(|program| program.prepares_with_guest_code())
    }

    /// Makes the next instance where this thread looks first, or has it made if that runs code of the guest.
    fn replenish_soon(self: &Arc<Self>) {
        let own = self.engine.own_shard();
        let prepared = &self.per_shard[own];
        match prepared.program.get() {
            Some(program) if !program.prepares_with_guest_code() => {
                // What fails now fails again when somebody asks, and is said then.
                if prepared.ready().is_none()
                    && let Ok(next) = program.prepare(&self.engine.shards()[own].engine, &self.limits)
                {
                    self.put(own, next);
                }
            }
            _ if prepared.ready().is_some() => {}
            _ => {
                let policy = Arc::downgrade(self);
                self.engine.background().order(policy, own);
            }
        }
    }
}

impl Replenish for LoadedPolicy {
    fn replenish(&self, shard: usize) {
        if self.per_shard[shard].ready().is_some() {
            return;
        }
        let Ok(permit) = self.engine.concurrency().enter(None, &Deadline::NONE) else { return };
        if let Ok(next) = self.prepare(shard, &self.limits) {
            self.put(shard, next);
        }
        drop(permit);
    }
}

impl Drop for LoadedPolicy {
    fn drop(&mut self) {
        for (prepared, shard) in self.per_shard.iter_mut().zip(self.engine.shards()) {
            if prepared.ready().take().is_some() {
                shard.released();
            }
        }
        self.engine.concurrency().given_back();
    }
}

//! The way of a request through the policies of a hub: who is asked, with which evidence, and what the answer is.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ocm_policy_abi::{Decision, Edit, Query, Request, Table, Verdict};
use ocm_policy_rules::record::Record;
use ocm_policy_rules::{Combined, Enforcement, Mode, Outcome, PolicyError, PolicyId, conclude};
use serde_json::Value;

use crate::artifact::Header;
use crate::deadline::Deadline;
use crate::policy::{Answered, NotAsked, Policy};
use crate::question::Question;
use crate::registry::{Registry, Slot};

/// What knows the hub.
pub trait EvidenceReader: Sync {
    /// The rows that a query of a policy finds for a request. Each table is of one state of its source; others may be of
    /// another moment.
    ///
    /// # Errors
    /// When it cannot be told, or not before the deadline. The policy is not asked then, and that is an error.
    fn table(
        &self,
        policy: &str,
        query: &Query,
        request: &Request<'_>,
        deadline: &Deadline,
    ) -> Result<Arc<Table<'static>>, PolicyError>;
}

/// For policies that ask for nothing: every query is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvidence;

impl EvidenceReader for NoEvidence {
    fn table(&self, _: &str, query: &Query, _: &Request<'_>, _: &Deadline) -> Result<Arc<Table<'static>>, PolicyError> {
        Err(PolicyError::Evidence(format!("the evidence {:?} is missing", query.name)))
    }
}

/// The final answer to a request. Instances that gave it are taken apart when it is dropped, so whoever answers somebody
/// does that first.
pub struct Final {
    /// Verdict, reasons, obligations, patch.
    pub answer: Combined,
    question: Question,
    slots: Arc<BTreeMap<String, Slot>>,
    asked: Vec<Evaluated>,
    not_asked: Vec<(String, NotAsked)>,
    /// Fuel of the conditions of those that were not asked.
    unasked_fuel: Vec<(String, u64)>,
}

/// What came of asking the policy of one place.
pub struct Evaluated {
    by: By,
    candidate: bool,
    enforcement: Enforcement,
    /// Fuel of its conditions.
    conditions_fuel: u64,
    micros: u64,
}

enum By {
    Policy(Answered),
    /// The policy of the place could not be loaded, or it cannot be told whether it is asked.
    Nobody(Outcome),
}

impl Evaluated {
    /// The place in the registry: every policy speaks in the name of its own.
    pub fn place(&self) -> &str {
        &self.outcome().policy.name
    }

    /// What was said.
    pub fn outcome(&self) -> &Outcome {
        match &self.by {
            By::Policy(answered) => &answered.outcome,
            By::Nobody(outcome) => outcome,
        }
    }

    /// Whether it was the candidate of the place that was asked.
    pub fn is_candidate(&self) -> bool {
        self.candidate
    }

    /// How much its word counts.
    pub fn enforcement(&self) -> Enforcement {
        self.enforcement
    }

    /// The outcome as it counts, if it does.
    fn counts(&self) -> Option<Cow<'_, Outcome>> {
        self.enforcement.counts(self.outcome())
    }

    /// How long it took, in microseconds: its conditions and its decision, waiting included.
    pub fn micros(&self) -> u64 {
        self.micros
    }

    /// The fuel that its conditions and its decision used.
    pub fn fuel(&self) -> u64 {
        self.outcome().fuel.saturating_add(self.conditions_fuel)
    }

    /// What the policy was made of; none where it could not be asked.
    pub fn header(&self) -> Option<&Header> {
        match &self.by {
            By::Policy(answered) => Some(answered.header()),
            By::Nobody(_) => None,
        }
    }
}

/// What a candidate says beside the policy in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The place in the registry.
    pub slot: String,
    /// What is in force.
    pub active: Outcome,
    /// What would be.
    pub candidate: Outcome,
}

impl Comparison {
    /// Whether they differ: in the verdict, the codes of its reasons, or what follows from it. Sentences may differ.
    pub fn differs(&self) -> bool {
        match (&self.active.result, &self.candidate.result) {
            (Ok(active), Ok(candidate)) => without_sentences(active) != without_sentences(candidate),
            (Err(active), Err(candidate)) => active.code() != candidate.code(),
            _ => true,
        }
    }
}

fn without_sentences(decision: &Decision) -> Decision {
    let mut decision = decision.clone();
    decision.reasons.iter_mut().for_each(|reason| reason.message.clear());
    decision.warnings.clear();
    decision.audit.clear();
    decision
}

/// Asks every policy of the registry that judges such requests, with the evidence that it needs, and gives the final
/// answer. After the deadline nobody is asked any more, and what is missing then is an error. Whatever goes wrong is in
/// the answer, and never allows anything.
pub fn evaluate(
    registry: &Registry,
    request: Request<'static>,
    evidence: &dyn EvidenceReader,
    deadline: &Deadline,
) -> Final {
    evaluate_question(registry, Question::new(request), evidence, deadline)
}

/// What policies in force want to change, and what it took to tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedEdits {
    /// The edits.
    pub edits: Vec<Edit>,
    /// The fuel of each policy that was asked, with that of its conditions, by its place.
    pub fuel: Vec<(String, u64)>,
}

/// The edits that policies in force want of the object of a request, whatever others say about it. None but those whose
/// edits can be granted are asked.
pub fn wanted_edits(
    registry: &Registry,
    request: &Request<'static>,
    evidence: &dyn EvidenceReader,
    deadline: &Deadline,
) -> WantedEdits {
    let slots = registry.slots();
    let mut chosen = editors(&slots, request).peekable();
    let mut found = WantedEdits::default();
    if chosen.peek().is_none() {
        return found;
    }
    let mut question = Question::new(request.clone());
    // A table that came with the request may also be meant for policies that change nothing.
    informed(&slots, &mut question);
    for (place, policy) in chosen {
        let mut fuel = 0;
        // Where that cannot be told, it says why when it is asked.
        if policy.measured_not_asked(&question, deadline, &mut fuel) == Ok(None) {
            give_evidence(&mut question, place, policy, evidence, deadline);
            let answered = policy.decide_before(&question, deadline);
            fuel = fuel.saturating_add(answered.outcome.fuel);
            if let Ok(Decision { verdict: Verdict::Allow, edits: wanted, .. }) = &answered.outcome.result {
                found.edits.extend(wanted.iter().cloned());
            }
        }
        found.fuel.push((place.clone(), fuel));
    }
    found
}

/// Whether a policy in force is asked about a request whose edits of its object can be granted.
pub fn may_edit(registry: &Registry, request: &Request<'_>) -> bool {
    editors(&registry.slots(), request).next().is_some()
}

/// The policies whose edits can be granted, with their places: those whose word counts, and that judge such requests.
fn editors<'s>(
    slots: &'s BTreeMap<String, Slot>,
    request: &Request<'_>,
) -> impl Iterator<Item = (&'s String, &'s Arc<Policy>)> {
    let enforced = slots.iter().filter(|(_, slot)| slot.enforcement.mode == Mode::Enforce);
    enforced.filter_map(|(place, slot)| {
        let edits = |policy: &&Arc<Policy>| policy.may_edit() && policy.is_asked(request);
        Some((place, slot.chosen(place, request).ok().filter(edits)?))
    })
}

/// As [`evaluate`], for a question that was made before, such as one that is asked again.
pub fn evaluate_question(
    registry: &Registry,
    mut question: Question,
    evidence: &dyn EvidenceReader,
    deadline: &Deadline,
) -> Final {
    let slots = registry.slots();
    let mut chosen = Vec::with_capacity(slots.len());
    let (mut not_asked, mut unasked_fuel) = (Vec::new(), Vec::new());
    let mut clock = Laps::new();
    for (place, slot) in slots.iter() {
        let mut fuel = 0;
        let policy = slot.chosen(place, question.request()).map_err(PolicyError::clone);
        let asked = policy.and_then(|policy| Ok((policy.measured_not_asked(&question, deadline, &mut fuel)?, policy)));
        let conditions = Conditions { fuel, took: clock.lap() };
        match asked {
            Ok((Some(why), _)) => {
                not_asked.push((place.clone(), why));
                unasked_fuel.extend((fuel > 0).then(|| (place.clone(), fuel)));
            }
            Ok((None, policy)) => chosen.push((place, slot, Ok(policy), conditions)),
            Err(error) => chosen.push((place, slot, Err(error), conditions)),
        }
    }
    // Evidence first: policies do not wait for the hub while they hold instances. Whoever is only compared is told the same of it.
    for (place, policy) in informed(&slots, &mut question) {
        give_evidence(&mut question, place, policy, evidence, deadline);
    }
    let mut asked: Vec<Evaluated> = Vec::with_capacity(chosen.len());
    let mut clock = Laps::new();
    for (place, slot, policy, conditions) in chosen {
        let tried = slot.candidate.as_ref().map(|(candidate, _)| candidate);
        let candidate = tried.is_some_and(|tried| policy.as_ref().is_ok_and(|policy| Arc::ptr_eq(policy, tried)));
        let by = match policy {
            Ok(policy) => {
                // Whoever asked has the answer before instances are taken apart, unless others need the room.
                if let Some(Evaluated { by: By::Policy(last), .. }) = asked.last_mut() {
                    last.set_aside();
                }
                By::Policy(policy.decide_before(&question, deadline))
            }
            Err(error) => By::Nobody(Outcome {
                policy: Arc::new(PolicyId { name: place.clone(), version: String::new() }),
                result: Err(error),
                fuel: 0,
            }),
        };
        let micros = u64::try_from((conditions.took + clock.lap()).as_micros()).unwrap_or(u64::MAX);
        let (enforcement, conditions_fuel) = (slot.enforcement, conditions.fuel);
        asked.push(Evaluated { by, candidate, enforcement, conditions_fuel, micros });
    }
    let answer = concluded(&asked, &question);
    Final { answer, question, slots, asked, not_asked, unasked_fuel }
}

/// What it took to tell whether a policy is asked.
struct Conditions {
    fuel: u64,
    took: Duration,
}

/// How long each of several things takes that follow each other: where one ends the next one begins, with one look at the clock.
struct Laps(Instant);

impl Laps {
    fn new() -> Self {
        Self(Instant::now())
    }

    /// How long it took since the last one ended.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now.saturating_duration_since(std::mem::replace(&mut self.0, now))
    }
}

/// The answer of those whose word counts, and what the others would have said.
fn concluded(asked: &[Evaluated], question: &Question) -> Combined {
    let counting: Vec<Cow<'_, Outcome>> = asked.iter().filter_map(Evaluated::counts).collect();
    let mut answer = conclude(&counting, question.request(), question.object());
    asked.iter().for_each(|one| one.enforcement.note(one.outcome(), &mut answer));
    answer
}

/// The policies that judge what a question is about, those that are only compared as well, with their places. From here on the
/// question knows the queries of all of them.
fn informed<'s>(slots: &'s BTreeMap<String, Slot>, question: &mut Question) -> Vec<(&'s String, &'s Arc<Policy>)> {
    let both = slots.iter().flat_map(|(place, slot)| {
        let candidate = slot.candidate.as_ref().map(|(candidate, _)| candidate);
        slot.active.as_ref().ok().into_iter().chain(candidate).map(move |policy| (place, policy))
    });
    let informed: Vec<_> = both.filter(|(_, policy)| policy.is_asked(question.request())).collect();
    let queries = informed
        .iter()
        .flat_map(|(place, policy)| policy.manifest().evidence.iter().map(|query| (place.as_str(), query)));
    question.asked_by(queries);
    informed
}

fn give_evidence(
    question: &mut Question,
    place: &str,
    policy: &Policy,
    evidence: &dyn EvidenceReader,
    deadline: &Deadline,
) {
    for query in &policy.manifest().evidence {
        // What the request brings itself counts: it was read with the request.
        if question.own_evidence(place, query).is_none() && !question.is_recorded() {
            let table = evidence.table(place, query, question.request(), deadline);
            question.answer(place, query, table);
        }
    }
}

impl Final {
    /// The request, without objects and evidence.
    pub fn request(&self) -> &Request<'static> {
        self.question.request()
    }

    /// The object that it is about, if the asker had it.
    pub fn object(&self) -> Option<&Value> {
        self.question.object()
    }

    /// Those that were asked, in the order of their places.
    pub fn asked(&self) -> &[Evaluated] {
        &self.asked
    }

    /// Places whose policies were not asked, and why.
    pub fn not_asked(&self) -> &[(String, NotAsked)] {
        &self.not_asked
    }

    /// The fuel that was used for each place, conditions included: also where its conditions have its policy not asked.
    pub fn fuel(&self) -> impl Iterator<Item = (&str, u64)> {
        let asked = self.asked.iter().map(|one| (one.place(), one.fuel()));
        asked.chain(self.unasked_fuel.iter().map(|(place, fuel)| (place.as_str(), *fuel)))
    }

    /// Whether a policy objects that an approval with breakGlass passes over.
    pub fn can_be_passed_over(&self) -> bool {
        self.asked.iter().any(|one| one.enforcement.passed_over(one.outcome()) != one.enforcement)
    }

    /// Answers as it follows where an approval with breakGlass was given: policies that may be passed over only warn.
    /// Everybody else's word counts as before.
    pub fn break_glass(&mut self) {
        for one in &mut self.asked {
            one.enforcement = one.enforcement.passed_over(one.outcome());
        }
        self.answer = concluded(&self.asked, &self.question);
    }

    /// Has the answer make the changes of another question about the same write as well, see [`Combined::edit_also`].
    pub fn edit_also(&mut self, other: &Self) {
        self.answer.edit_also(&other.answer, self.question.object());
    }

    /// What every policy said and what that depended on, to be kept and decided again. Of a policy that could not be
    /// asked there is none: the answer holds why.
    pub fn records(&self) -> Vec<Record> {
        let record = |one: &Evaluated| match &one.by {
            By::Policy(answered) => answered.record(&self.question, one.micros).ok(),
            By::Nobody(_) => None,
        };
        self.asked.iter().filter_map(record).collect()
    }

    /// Lets candidates decide beside the policies in force. For after the answer. `spend` is told the place and the fuel of whatever
    /// runs for it, conditions included, also where nothing comes of it.
    pub fn compare(&self, deadline: &Deadline, mut spend: impl FnMut(&str, u64)) -> Vec<Comparison> {
        let compared = self.slots.iter().filter_map(|(place, slot)| {
            let mut fuel = 0;
            let comparison = self.comparison(place, slot, deadline, &mut fuel);
            if fuel > 0 {
                spend(place.as_str(), fuel);
            }
            comparison
        });
        compared.collect()
    }

    /// What the candidate of a place says beside its policy in force; none: it has no candidate, or neither of them is asked. Adds
    /// the fuel that this uses.
    fn comparison(&self, place: &str, slot: &Slot, deadline: &Deadline, fuel: &mut u64) -> Option<Comparison> {
        let (Ok(active), Some((candidate, _))) = (&slot.active, &slot.candidate) else { return None };
        // Where that cannot be told, neither says anything.
        let asked = [active, candidate].map(|policy| policy.measured_not_asked(&self.question, deadline, fuel));
        let [active_asked, candidate_asked] = asked.map(|why| why.ok().map(|why| why.is_none()));
        let (active_asked, candidate_asked) = (active_asked?, candidate_asked?);
        if !active_asked && !candidate_asked {
            return None;
        }
        // Whoever does not judge such requests has no opinion, as if it were in force.
        let mut ask = |policy: &Arc<Policy>, is_asked: bool| {
            if !is_asked {
                return Outcome { policy: policy.id(), result: Ok(Decision::default()), fuel: 0 };
            }
            let outcome = policy.decide_before(&self.question, deadline).outcome.clone();
            *fuel = fuel.saturating_add(outcome.fuel);
            outcome
        };
        // What one of them has said already needs not be asked again.
        let said = self.asked.iter().find(|one| one.place() == place).map(|one| one.outcome().clone());
        let (active, candidate) = match (said, slot.chosen(place, self.request())) {
            (Some(said), Ok(by)) if Arc::ptr_eq(by, candidate) => (ask(active, active_asked), said),
            (Some(said), _) => (said, ask(candidate, candidate_asked)),
            (None, _) => (ask(active, active_asked), ask(candidate, candidate_asked)),
        };
        Some(Comparison { slot: place.to_owned(), active, candidate })
    }
}

//! One review: from the bytes of the API server to the bytes of the answer.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ocm_core::policy_engine;
use ocm_policy_abi::{Cluster, Decision, Operation, Request, Stage, Verdict};
use ocm_policy_engine::{Comparison, Deadline, Evaluated, Final, Policy, Slot, evaluate};
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_rules::{Answer, PolicyError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::evidence::{Knowledge, Shown};
use crate::log::DecisionLog;
use crate::metrics::{Metrics, word};
use crate::parsed;
use crate::policies::{Counting, Objection, Policies, beside, is_accepted_at_once};
use crate::turn::{Taken, Turn};

/// How long a line about a refusal waits for a reader of the log.
const LOG_WAITS: Duration = Duration::from_secs(1);
/// Characters of what a request says of itself in the log: names of the API are not longer.
const LOGGED: usize = 256;

/// The key of the audit annotation that names the approval by which policies were passed over. It is none of a policy's:
/// those have a dot behind their names.
const BREAK_GLASS: &str = "break-glass";
/// What metrics and the log call a request that cannot be read.
const UNREADABLE: &str = "unreadable";

/// Answers reviews.
pub trait Judge: Send + Sync {
    /// Whether it knows what to answer by. Before that nobody objects to anything, which is no answer.
    fn is_open(&self) -> bool;

    /// Answers one review, for as long as somebody waits for the answer.
    fn review(self: Arc<Self>, body: &[u8], stage: Stage, deadline: &Deadline) -> Review;

    /// Writes down what was decided, when the answer is on its way.
    fn note(&self, _: &Decided, _: Stage) {}
}

/// Answers reviews by the policies in force.
pub struct Gate {
    policies: Arc<Policies>,
    knowledge: Arc<Knowledge>,
    metrics: Arc<Metrics>,
    log: Arc<DecisionLog>,
    has_controller: bool,
    /// Whose turn it is of those that policies which count are asked about.
    turn: Turn,
}

/// How far the answer to a review has come.
pub enum Review {
    /// There it is.
    Answered(Reviewed),
    /// The rest may wait: for the hub, or for a policy that is slow.
    Waits(Box<dyn FnOnce() -> Reviewed + Send>),
}

/// The answer to a review.
pub struct Reviewed {
    /// HTTP status: 400 where the request is no review, and nobody can tell what it was about; 503 where nobody waits any more.
    pub status: u16,
    /// The AdmissionReview, or a sentence; nothing for nobody.
    pub body: Vec<u8>,
    /// What was decided. Drop it when the answer is on its way: then the policies are made ready for the next one.
    pub decided: Option<Decided>,
}

/// What was decided about a review.
pub enum Decided {
    /// What policies say.
    Judged(Box<Final>),
    /// It is refused, and this is why: policies let it pass as far as they could be asked, and more had to be asked.
    Unjudged(Box<Final>, String),
    /// It is refused: nobody could be asked about it.
    Unread(Box<Unread>),
}

impl Decided {
    /// What policies said; none where nobody could be asked.
    pub fn made(&self) -> Option<&Final> {
        match self {
            Self::Judged(made) | Self::Unjudged(made, _) => Some(made),
            Self::Unread(_) => None,
        }
    }

    /// Why it is refused, where it is not for what policies said.
    fn why(&self) -> Option<&str> {
        match self {
            Self::Judged(_) => None,
            Self::Unjudged(_, why) => Some(why),
            Self::Unread(unread) => Some(&unread.why),
        }
    }
}

/// What the answer to a review needs of it.
#[derive(Deserialize)]
struct Named {
    request: Uid,
}

#[derive(Deserialize)]
struct Uid {
    #[serde(default)]
    uid: String,
}

/// A request that cannot be read, as far as it can.
pub struct Unread {
    at: Timestamp,
    uid: String,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    requester: String,
    dry_run: bool,
    why: String,
}

impl Unread {
    fn new(request: &Value, why: &str) -> Self {
        let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).map(|text| cut(text).to_owned());
        Self {
            at: Timestamp::now(),
            uid: text("/uid").unwrap_or_default(),
            resource: text("/resource/resource"),
            namespace: text("/namespace"),
            name: text("/name"),
            requester: text("/userInfo/username").unwrap_or_default(),
            dry_run: request.get("dryRun").and_then(Value::as_bool).unwrap_or_default(),
            why: cut(why).to_owned(),
        }
    }
}

impl Gate {
    /// Decides by the policies in force and what is known of the hub. Each decision is a line of JSON for the log.
    pub fn new(
        policies: Arc<Policies>,
        knowledge: Arc<Knowledge>,
        metrics: Arc<Metrics>,
        log: Arc<DecisionLog>,
    ) -> Self {
        Self { policies, knowledge, metrics, log, has_controller: false, turn: Turn::default() }
    }

    /// Whether a controller acts on the hub: it carries out the obligations that policies want to follow. Without it a policy
    /// that wants any answers with an error.
    #[must_use]
    pub fn with_controller(self, has_controller: bool) -> Self {
        Self { has_controller, ..self }
    }

    /// What is asked, or the answer to what cannot be read.
    fn read(&self, body: &[u8], stage: Stage) -> Result<Request<'static>, Reviewed> {
        let bad = |why: &str| {
            self.metrics.count(UNREADABLE, 400);
            Reviewed { status: 400, body: why.as_bytes().to_vec(), decided: None }
        };
        let is_no_json = |error| bad(&format!("the body is not valid JSON: {error}\n"));
        if parsed::size(body) > parsed::MOST {
            let named: Named = serde_json::from_slice(body).map_err(is_no_json)?;
            return Err(self.unreadable(body, &json!({ "uid": named.request.uid }), stage, "it is of too many parts"));
        }
        // What an API server notes of writers may be nested deeper than is read.
        let mut review: Value = serde_json::from_slice(body)
            .map_err(|error| self.passage(body, stage, "it is nested too deep").unwrap_or_else(|| is_no_json(error)))?;
        let request = review::request_of(&review).map_err(|error| bad(&format!("the body is no review: {error}\n")))?;
        let asking = Asking {
            now: Timestamp::now().as_millisecond(),
            stage: Some(stage),
            carries_out: self.has_controller,
            ..Asking::default()
        };
        let read = review::from_admission(request, &asking).map(Request::into_owned);
        let mut asked = read.map_err(|error| self.unreadable(body, request, stage, &error.to_string()))?;
        // Whole objects are moved: they may be large.
        let mut object =
            |name: &str| Some(review.get_mut("request")?.get_mut(name)?.take()).filter(|one| !one.is_null());
        (asked.object, asked.previous_object) = (object("object"), object("oldObject"));
        Ok(asked)
    }

    /// The answer to a request that cannot be read, where it takes away: that is let pass, as it is where policies fail. Whoever
    /// inflates what is theirs, or writes there what nobody can read, must not keep the hub from taking it from them.
    fn passage(&self, body: &[u8], stage: Stage, why: &str) -> Option<Reviewed> {
        let review = parsed::thin(body).ok()?;
        let asking = Asking { now: Timestamp::now().as_millisecond(), stage: Some(stage), ..Asking::default() };
        let asked = review::from_admission(review::request_of(&review).ok()?, &asking).ok()?;
        if !review::takes_away(&asked) {
            return None;
        }
        self.metrics.count(UNREADABLE, 200);
        let warning = format!("no policy was evaluated: the review cannot be read: {why}");
        Some(answered(&review::passage(&asked.id, &warning), None))
    }

    /// The answer to a request that cannot be read.
    fn unreadable(&self, body: &[u8], request: &Value, stage: Stage, why: &str) -> Reviewed {
        self.passage(body, stage, why).unwrap_or_else(|| {
            let uid = request.get("uid").and_then(Value::as_str).unwrap_or_default();
            self.metrics.count(UNREADABLE, 403);
            let why = format!("the review cannot be read: {why}");
            let answer = review::refusal(uid, &why);
            answered(&answer, Some(Decided::Unread(Box::new(Unread::new(request, &why)))))
        })
    }

    /// The answer to whoever tries who is asked; none: it is about something else. No policy is asked about it.
    fn probed(&self, asked: &Request<'_>, stage: Stage) -> Option<Reviewed> {
        let is_created = asked.resource.as_ref().is_some_and(|resource| resource.operation == "CREATE");
        // Whoever may create a request of this name to try it, and approve requests, must not get a certificate by that.
        let is_approved = asked.operation == Operation::Approve && !review::takes_away(asked);
        let (cluster, csr) = (asked.cluster.as_ref(), asked.csr.as_ref());
        let name = cluster.map(|cluster| &cluster.name).or_else(|| csr?.name.as_ref())?;
        let is_tried = is_created || is_approved;
        if !is_tried || *name != policy_engine::PROBE {
            return None;
        }
        // Nothing is stored of what is only tried.
        let annotated = |cluster: &Cluster<'_>| cluster.annotations.get(policy_engine::PROBE_OF_OTHERS).is_some();
        let of_others = asked.dry_run && cluster.is_some_and(annotated);
        let (answer, code) = if stage == Stage::Mutating || of_others {
            (review::unchanged(&asked.id), 200)
        } else {
            let (why, code) = (policy_engine::PROBE_SENTENCE, policy_engine::PROBE_CODE);
            (review::refusal_for_programs(&asked.id, why, code), 403)
        };
        self.metrics.count("probe", code);
        Some(answered(&answer, None))
    }

    /// Whether deciding may take long: evidence about what is approved or accepted is waited for, and so are policies that
    /// are not known to be quick, and whoever is judged before where policies count.
    fn waits(&self, asked: &Request<'_>, stage: Stage, counting: &Counting) -> bool {
        let is_slow = |policy: &Arc<Policy>| policy.is_asked(asked) && !policy.is_quick();
        let has_slow = |slot: &Slot| {
            slot.active.as_ref().is_ok_and(is_slow)
                || slot.candidate.as_ref().is_some_and(|(policy, _)| is_slow(policy))
        };
        matches!(asked.operation, Operation::Approve | Operation::Accept)
            || is_accepted_at_once(asked)
            || is_in_turn(asked, stage, counting)
            || counting.slots().values().any(has_slow)
    }

    /// Has the answer pass over policies where somebody may: whoever makes the request has an approval with breakGlass.
    /// Whether it does.
    fn break_glass(&self, made: &mut Final) -> bool {
        if matches!(made.answer.verdict, Answer::Allow | Answer::NoOpinion) || !made.can_be_passed_over() {
            return false;
        }
        let Some(approval) = self.knowledge.break_glass_approval(made.request()) else { return false };
        made.break_glass();
        let name = approval.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        made.answer.audit.insert(BREAK_GLASS.to_owned(), name.to_owned());
        true
    }

    /// The answer for nobody.
    fn gone(&self) -> Reviewed {
        self.metrics.gone();
        Reviewed { status: 503, body: Vec::new(), decided: None }
    }

    /// What is known of the hub, as the policies of this gate are shown it.
    fn shown<'g>(&'g self, counting: &'g Counting, has_waited: bool) -> Shown<'g> {
        Shown { knowledge: &self.knowledge, counting: counting.places(), is_newest: false, has_waited }
    }

    /// The turn of a request that policies are asked about which count: each must see what the one before was let do. None where
    /// there are no such policies, and where nobody waits for the answer any more, who is let do nothing by those that are asked.
    fn turn(&self, asked: &Request<'_>, stage: Stage, counting: &Counting, deadline: &Deadline) -> Option<Taken<'_>> {
        if !is_in_turn(asked, stage, counting) {
            return None;
        }
        // What has to be waited for is waited for by itself.
        self.knowledge.arrive(asked, deadline);
        self.turn.take(deadline).ok()
    }

    fn decide(&self, asked: Request<'static>, stage: Stage, counting: &Counting, deadline: &Deadline) -> Reviewed {
        match stage {
            Stage::Mutating => self.change(asked, counting, deadline),
            Stage::Validating => self.judge(asked, counting, deadline),
        }
    }

    /// The answer at the mutating stage: what policies change, in all that is asked about the write. Where none may change
    /// anything, none is asked before it is judged.
    fn change(&self, asked: Request<'static>, counting: &Counting, deadline: &Deadline) -> Reviewed {
        let shown = self.shown(counting, false);
        let also = beside(&asked);
        if ![Some(&asked), also.as_ref()].into_iter().flatten().any(|asked| self.policies.may_change(asked)) {
            self.metrics.count(asked.operation.word(), 200);
            return answered(&review::unchanged(&asked.id), None);
        }
        let evaluated = |asked| {
            let mut made = evaluate(self.policies.registry(), asked, &shown, deadline);
            self.break_glass(&mut made);
            made
        };
        let mut made = evaluated(asked);
        let mut other = also.map(evaluated);
        if let Some(other) = &mut other {
            // The stronger of both is the answer: where one of them is no allow, nothing is changed.
            if other.answer.verdict > made.answer.verdict {
                std::mem::swap(&mut made, other);
            }
            made.edit_also(other);
        }
        if deadline.is_cancelled() {
            return self.gone();
        }
        let answer = review::response(made.request(), &made.answer);
        self.metrics.count(made.request().operation.word(), 200);
        other.iter().chain([&made]).for_each(|made| self.metrics.measure(made));
        answered(&answer, Some(Decided::Judged(Box::new(made))))
    }

    /// The answer at the validating stage.
    fn judge(&self, mut asked: Request<'static>, counting: &Counting, deadline: &Deadline) -> Reviewed {
        let by_the_hub = self.policies.joins_by_the_hub(&asked).then(|| asked.clone());
        let passing = (!asked.dry_run).then(|| self.knowledge.passing(counting.sources(), &asked)).flatten();
        let turn = self.turn(&asked, Stage::Validating, counting, deadline);
        let shown = self.shown(counting, turn.is_some());
        // What policies have changed in the write is theirs, and no change of whoever accepts.
        let mut also = beside(&asked).filter(|_| !self.policies.change_all_else(&asked, &shown, deadline));
        self.policies.tell_what_is_set([&mut asked].into_iter().chain(&mut also), &shown, deadline);
        let mut made = evaluate(self.policies.registry(), asked, &shown, deadline);
        let mut passed_over = self.break_glass(&mut made);
        let mut refused = review::is_refused(made.request(), &made.answer);
        // Where policies were asked twice, one of both answers, and tells what the other one has to tell.
        let (mut other, mut unjudged) = (None, None);
        // A denial is told rather than an error, such as that of changes which were not made because of it.
        if let Some(also) = also.filter(|_| !refused || made.answer.verdict == Answer::Error) {
            let mut second = evaluate(self.policies.registry(), also, &shown, deadline);
            passed_over |= self.break_glass(&mut second);
            if review::is_refused(second.request(), &second.answer)
                && (!refused || second.answer.verdict > made.answer.verdict)
            {
                std::mem::swap(&mut made, &mut second);
                refused = true;
            }
            made.answer.tell_also(&second.answer);
            other = Some(second);
        }
        let mut is_measured = false;
        if let Some(request) = by_the_hub.filter(|_| !refused) {
            match self.policies.join_by_the_hub(&request, deadline) {
                Ok(joins) => joins.iter().for_each(|joins| made.answer.tell_also(joins)),
                Err(Objection::Policies(judged)) => {
                    let first = std::mem::replace(&mut made, *judged);
                    made.answer.tell_also(&first.answer);
                    (other, refused, is_measured) = (Some(first), true, true);
                }
                Err(Objection::Unknown(why)) => {
                    unjudged = Some(format!("policies decide whether it joins, and cannot yet: {why}"));
                    refused = true;
                }
            }
        }
        // Policies that were ended said nothing about the request: no refusal, no error, no difference. Later than here whoever got
        // the answer ends the work as well.
        if deadline.is_cancelled() {
            return self.gone();
        }
        if let Some(passing) = passing.filter(|_| !refused) {
            passing.pass();
        }
        drop(turn);
        let answer = match &unjudged {
            Some(why) => review::unjudged(made.request(), &made.answer, why),
            None => review::response(made.request(), &made.answer),
        };
        self.metrics.count(made.request().operation.word(), if refused { 403 } else { 200 });
        if passed_over && !refused && !made.request().dry_run {
            self.metrics.break_glass_admissions.inc();
        }
        // Joins were measured when they were asked about.
        other.iter().chain((!is_measured).then_some(&made)).for_each(|made| self.metrics.measure(made));
        let made = Box::new(made);
        let decided = match unjudged {
            Some(why) => Decided::Unjudged(made, why),
            None => Decided::Judged(made),
        };
        answered(&answer, Some(decided))
    }
}

impl Judge for Gate {
    fn is_open(&self) -> bool {
        self.policies.is_complete()
    }

    fn review(self: Arc<Self>, body: &[u8], stage: Stage, deadline: &Deadline) -> Review {
        let asked = match self.read(body, stage) {
            Ok(asked) => asked,
            Err(answer) => return Review::Answered(answer),
        };
        if let Some(answer) = self.probed(&asked, stage) {
            return Review::Answered(answer);
        }
        let counting = self.policies.counting();
        if self.waits(&asked, stage, &counting) {
            let deadline = deadline.clone();
            // By then others may count.
            return Review::Waits(Box::new(move || self.decide(asked, stage, &self.policies.counting(), &deadline)));
        }
        Review::Answered(self.decide(asked, stage, &counting, deadline))
    }

    /// Lines about what passed may be lost when nobody reads them; all others are waited for, for a while.
    fn note(&self, decided: &Decided, stage: Stage) {
        let (line, plain) = match decided {
            Decided::Unread(unread) => (serde_json::to_string(&Line::unread(unread, stage)), false),
            Decided::Judged(made) | Decided::Unjudged(made, _) => {
                let is_refused = || stage == Stage::Validating && review::is_refused(made.request(), &made.answer);
                let refused = decided.why().is_some() || is_refused();
                let passed_over = made.answer.audit.contains_key(BREAK_GLASS);
                let differences = self.policies.compare(made);
                let plain = !refused
                    && !passed_over
                    && differences.is_empty()
                    && made.answer.errors.is_empty()
                    && made.asked().iter().all(is_plain);
                let line = Line::new(made, stage, refused, &differences).because(decided.why());
                (serde_json::to_string(&line), plain)
            }
        };
        // A line is made of texts and numbers.
        let Ok(line) = line else { return };
        if !self.log.add(line, if plain { Duration::ZERO } else { LOG_WAITS }) {
            self.metrics.lost_lines.inc();
        }
    }
}

/// Whether a request is judged when others have been: it changes something, and policies are asked about it that count.
fn is_in_turn(asked: &Request<'_>, stage: Stage, counting: &Counting) -> bool {
    stage == Stage::Validating && !asked.dry_run && counting.judge(asked)
}

fn is_plain(one: &Evaluated) -> bool {
    let result = one.outcome().result.as_ref();
    result.is_ok_and(|decision| matches!(decision.verdict, Verdict::Allow | Verdict::NoOpinion))
}

fn answered(review: &Value, decided: Option<Decided>) -> Reviewed {
    Reviewed { status: 200, body: review.to_string().into_bytes(), decided }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LOGGED).map_or(text, |(end, _)| &text[..end])
}

/// What the decision log holds of a decision. Neither evidence nor settings: they may hold what is none of the log's
/// readers' business.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'d> {
    time: String,
    uid: &'d str,
    stage: &'static str,
    operation: &'static str,
    resource: Option<&'d str>,
    namespace: Option<&'d str>,
    name: Option<&'d str>,
    cluster: Option<&'d str>,
    requester: &'d str,
    dry_run: bool,
    verdict: &'static str,
    refused: bool,
    message: Option<String>,
    /// The approval by which policies were passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    break_glass: Option<&'d str>,
    policies: Vec<PolicyLine<'d>>,
    /// What candidates would have said, where it is something else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateLine<'d>>,
}

/// What it holds of a candidate that says something else than the policy in force.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CandidateLine<'d> {
    name: &'d str,
    version: &'d str,
    verdict: &'static str,
    reasons: Vec<&'d str>,
    in_force: &'static str,
}

/// What it holds of the decision of one policy.
#[derive(Serialize)]
struct PolicyLine<'d> {
    name: &'d str,
    version: &'d str,
    mode: &'static str,
    verdict: &'static str,
    reasons: Vec<&'d str>,
    error: Option<String>,
    fuel: u64,
    micros: u64,
}

impl<'d> Line<'d> {
    fn new(made: &'d Final, stage: Stage, refused: bool, differences: &'d [Comparison]) -> Self {
        let request = made.request();
        let resource = request.resource.as_ref();
        Self {
            time: Timestamp::from_millisecond(request.now).map(|time| time.to_string()).unwrap_or_default(),
            uid: cut(&request.id),
            stage: stage.word(),
            operation: request.operation.word(),
            resource: resource.map(|resource| cut(&resource.resource)),
            namespace: resource.and_then(|resource| resource.namespace.as_deref().map(cut)),
            name: resource.and_then(|resource| resource.name.as_deref().map(cut)),
            cluster: review::cluster_of(request).map(cut),
            requester: cut(&request.requester.username),
            dry_run: request.dry_run,
            verdict: made.answer.verdict.word(),
            refused,
            message: refused.then(|| review::sentence(&made.answer)),
            break_glass: made.answer.audit.get(BREAK_GLASS).map(|name| cut(name)),
            policies: made.asked().iter().map(PolicyLine::new).collect(),
            candidates: differences.iter().map(CandidateLine::new).collect(),
        }
    }

    /// The same where it is refused for another reason than what policies said.
    fn because(self, why: Option<&str>) -> Self {
        match why {
            None => self,
            Some(why) => Self { verdict: Answer::Error.word(), message: Some(why.to_owned()), ..self },
        }
    }

    fn unread(unread: &'d Unread, stage: Stage) -> Self {
        Self {
            time: unread.at.to_string(),
            uid: &unread.uid,
            stage: stage.word(),
            operation: UNREADABLE,
            resource: unread.resource.as_deref(),
            namespace: unread.namespace.as_deref(),
            name: unread.name.as_deref(),
            cluster: None,
            requester: &unread.requester,
            dry_run: unread.dry_run,
            verdict: Answer::Error.word(),
            refused: true,
            message: Some(unread.why.clone()),
            break_glass: None,
            policies: Vec::new(),
            candidates: Vec::new(),
        }
    }
}

impl<'d> CandidateLine<'d> {
    fn new(one: &'d Comparison) -> Self {
        Self {
            name: &one.slot,
            version: cut(&one.candidate.policy.version),
            verdict: word(&one.candidate.result),
            reasons: codes(&one.candidate.result),
            in_force: word(&one.active.result),
        }
    }
}

/// The codes of the reasons, or of the error.
fn codes(result: &Result<Decision, PolicyError>) -> Vec<&str> {
    match result {
        Ok(decision) => decision.reasons.iter().map(|reason| reason.code.as_str()).collect(),
        Err(error) => vec![error.code()],
    }
}

impl<'d> PolicyLine<'d> {
    fn new(one: &'d Evaluated) -> Self {
        let outcome = one.outcome();
        let error = outcome.result.as_ref().err().map(|error| match error {
            // It may quote them.
            PolicyError::Settings(_) => error.in_short().to_owned(),
            error => cut(&error.to_string()).to_owned(),
        });
        Self {
            name: one.place(),
            version: cut(&outcome.policy.version),
            mode: one.enforcement().mode.word(),
            verdict: word(&outcome.result),
            reasons: codes(&outcome.result),
            error,
            fuel: one.fuel(),
            micros: one.micros(),
        }
    }
}

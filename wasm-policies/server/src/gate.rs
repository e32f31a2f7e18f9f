//! One review: from the bytes of the API server to the bytes of the answer.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ocm_policy_abi::{Decision, Operation, Request, Stage, Verdict};
use ocm_policy_engine::{Deadline, Evaluated, Final, evaluate};
use ocm_policy_rules::edits;
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_rules::{Mode, PolicyError};
use serde_json::{Value, json};

use crate::evidence::Knowledge;
use crate::metrics::{Metrics, OfDecision, OfError, OfPolicy};
use crate::policies::Policies;

/// Kept of the time that the API server waits, for the way back.
const WAY_BACK: Duration = Duration::from_millis(200);
/// The API server's own limits of that time, in seconds (`timeoutSeconds` of a webhook), and what holds without.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=30;
const USUAL_SECONDS: u64 = 10;

/// How long a line about a refusal waits for a reader of the log, and how often it looks.
const LOG_WAITS: Duration = Duration::from_secs(1);
const LOG_LOOKS: Duration = Duration::from_millis(5);
/// Characters of what a request says of itself in the log: names of the API are not longer.
const LOGGED: usize = 256;

/// Answers reviews.
pub trait Judge: Send + Sync {
    /// Whether it knows what to answer by. Before that nobody objects to anything, which is no answer.
    fn is_open(&self) -> bool;

    /// Answers one review. `timeout` is what the API server says in the query of the URL, `10s` for instance.
    fn review(&self, body: &[u8], stage: Stage, timeout: Option<&str>) -> Reviewed;

    /// Writes down what was decided, when the answer is on its way.
    fn note(&self, _: &Final, _: Stage) {}
}

/// Answers reviews by the policies in force.
pub struct Gate {
    policies: Arc<Policies>,
    knowledge: Arc<Knowledge>,
    metrics: Arc<Metrics>,
    log: SyncSender<String>,
}

/// The answer to a review.
pub struct Reviewed {
    /// HTTP status: 400 where the request is no review, and nobody can tell what it was about.
    pub status: u16,
    /// The AdmissionReview, or a sentence.
    pub body: Vec<u8>,
    /// What was decided. Drop it when the answer is on its way: then the policies are made ready for the next one.
    pub decided: Option<Final>,
}

impl Gate {
    /// Decides by the policies in force and what is known of the hub. Each decision is a line of JSON for the log.
    pub fn new(
        policies: Arc<Policies>,
        knowledge: Arc<Knowledge>,
        metrics: Arc<Metrics>,
        log: SyncSender<String>,
    ) -> Self {
        Self { policies, knowledge, metrics, log }
    }

    /// The changes that policies want to make of an object at the mutating stage, whoever has made them already. Whether
    /// all policies together allow it does not matter: some may object to just what others have set.
    fn wanted(&self, asked: &Request<'static>, deadline: &Deadline) -> Vec<ocm_policy_abi::Edit> {
        let mut before = asked.clone();
        before.stage = Some(Stage::Mutating);
        let made = evaluate(self.policies.registry(), before, &*self.knowledge, deadline);
        let enforced = made.asked().iter().filter(|one| one.enforcement().mode == Mode::Enforce);
        let decisions = enforced.filter_map(|one| one.outcome().result.as_ref().ok());
        let allowing = decisions.filter(|decision| decision.verdict == Verdict::Allow);
        allowing.flat_map(|decision| decision.edits.iter().cloned()).collect()
    }

    fn measure(&self, made: &Final) {
        let operation = made.request().operation.word();
        for one in made.asked() {
            let policy = one.place().to_owned();
            let (verdict, mode) = (word(&one.outcome().result), mode(one.enforcement().mode));
            self.metrics
                .decisions
                .get_or_create(&OfDecision { policy: policy.clone(), operation, verdict, mode })
                .inc();
            #[expect(clippy::cast_precision_loss, reason = "microseconds of a decision are few")]
            let seconds = one.micros() as f64 / 1e6;
            self.metrics.seconds.get_or_create(&OfPolicy { policy: policy.clone() }).observe(seconds);
            if let Err(error) = &one.outcome().result {
                self.metrics.errors.get_or_create(&OfError { policy, error: error.code() }).inc();
            }
        }
    }
}

impl Judge for Gate {
    fn is_open(&self) -> bool {
        self.policies.is_complete()
    }

    fn review(&self, body: &[u8], stage: Stage, timeout: Option<&str>) -> Reviewed {
        let deadline = Deadline::after(time(timeout));
        let bad = |why: &str| Reviewed { status: 400, body: why.as_bytes().to_vec(), decided: None };
        let review: Value = match serde_json::from_slice(body) {
            Ok(review) => review,
            Err(error) => return bad(&format!("the body is no JSON: {error}\n")),
        };
        let request = match review::request_of(&review) {
            Ok(request) => request,
            Err(error) => return bad(&format!("the body is no review: {error}\n")),
        };
        let asking = Asking {
            now: Timestamp::now().as_millisecond(),
            wants_object: true,
            stage: Some(stage),
            ..Asking::default()
        };
        let mut asked = match review::from_admission(request, &asking) {
            Ok(asked) => asked.into_owned(),
            Err(error) => {
                let uid = request.get("uid").and_then(Value::as_str).unwrap_or_default();
                self.metrics.count("unreadable", 403);
                return answered(&review::refusal(uid, &format!("the review cannot be read: {error}")), None);
            }
        };
        // What policies set before is theirs and nobody else's claim. They say it again, about the object as it is now.
        if stage == Stage::Validating && asked.operation == Operation::Create {
            asked.set_by_policies = edits::values(&self.wanted(&asked, &deadline));
        }
        let made = evaluate(self.policies.registry(), asked, &*self.knowledge, &deadline);
        let refused = stage == Stage::Validating && review::is_refused(made.request(), &made.answer);
        let answer = review::response(made.request(), &made.answer);
        self.metrics.count(made.request().operation.word(), if refused { 403 } else { 200 });
        self.measure(&made);
        answered(&answer, Some(made))
    }

    /// Lines about what passed may be lost when nobody reads them; all others are waited for, for a while.
    fn note(&self, made: &Final, stage: Stage) {
        let refused = stage == Stage::Validating && review::is_refused(made.request(), &made.answer);
        let plain = !refused && made.answer.errors.is_empty() && made.asked().iter().all(is_plain);
        let mut line = line(made, stage, refused).to_string();
        let begun = Instant::now();
        while let Err(TrySendError::Full(again)) = self.log.try_send(line) {
            if plain || begun.elapsed() > LOG_WAITS {
                self.metrics.lost_lines.inc();
                return;
            }
            line = again;
            std::thread::sleep(LOG_LOOKS);
        }
    }
}

fn is_plain(one: &Evaluated) -> bool {
    let result = one.outcome().result.as_ref();
    result.is_ok_and(|decision| matches!(decision.verdict, Verdict::Allow | Verdict::NoOpinion))
}

fn answered(review: &Value, decided: Option<Final>) -> Reviewed {
    Reviewed { status: 200, body: review.to_string().into_bytes(), decided }
}

/// How long the work on an answer may take.
fn time(timeout: Option<&str>) -> Duration {
    let seconds = timeout.and_then(|text| text.strip_suffix('s')?.parse::<u64>().ok()).unwrap_or(USUAL_SECONDS);
    Duration::from_secs(seconds.clamp(*SECONDS.start(), *SECONDS.end())).saturating_sub(WAY_BACK)
}

pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "Enforce",
        Mode::Warn => "Warn",
        Mode::Audit => "Audit",
    }
}

fn word(result: &Result<Decision, PolicyError>) -> &'static str {
    result.as_ref().map_or("error", |decision| decision.verdict.word())
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LOGGED).map_or(text, |(end, _)| &text[..end])
}

/// What the decision log holds of a decision. Neither evidence nor settings: they may hold what is none of the log's
/// readers' business.
fn line(made: &Final, stage: Stage, refused: bool) -> Value {
    let request = made.request();
    let policy = |one: &Evaluated| {
        let outcome = one.outcome();
        let reasons = outcome.result.as_ref().map_or_else(
            |error| vec![error.code().to_owned()],
            |decision| decision.reasons.iter().map(|reason| reason.code.clone()).collect(),
        );
        json!({
            "name": one.place(),
            "version": outcome.policy.version,
            "mode": mode(one.enforcement().mode),
            "verdict": word(&outcome.result),
            "reasons": reasons,
            "error": outcome.result.as_ref().err().map(|error| match error {
                // It may quote them.
                PolicyError::Settings(_) => error.in_short().to_owned(),
                error => cut(&error.to_string()).to_owned(),
            }),
            "fuel": outcome.fuel,
            "micros": one.micros(),
        })
    };
    let resource = request.resource.as_ref();
    json!({
        "time": Timestamp::from_millisecond(request.now).map(|time| time.to_string()).unwrap_or_default(),
        "uid": cut(&request.id),
        "stage": stage.word(),
        "operation": request.operation.word(),
        "resource": resource.map(|resource| cut(&resource.resource)),
        "namespace": resource.and_then(|resource| resource.namespace.as_deref().map(cut)),
        "name": resource.and_then(|resource| resource.name.as_deref().map(cut)),
        "cluster": review::cluster_of(request).map(cut),
        "requester": cut(&request.requester.username),
        "dryRun": request.dry_run,
        "verdict": made.answer.verdict.word(),
        "refused": refused,
        "message": refused.then(|| review::sentence(&made.answer)),
        "policies": made.asked().iter().map(policy).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_before_the_api_server_gives_up() {
        let millis = |said| time(said).as_millis();
        assert_eq!(
            [Some("3s"), Some("900s"), Some("0s"), Some("x"), None].map(millis),
            [2800, 29_800, 800, 9800, 9800]
        );
    }
}

//! One answer of several policies.
//!
//! Deny beats error, error beats hold, hold beats allow, and allow beats having no opinion. The order in which the
//! policies were asked does not matter. Only [`Answer::Allow`] lets anything happen: what becomes of a question that no
//! policy has an opinion about is up to whoever asks, who may not take it for an approval.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ocm_policy_abi::{Decision, Edit, Obligation, Operation, Reason, Request, Stage, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edits::{self, Conflict, merge};
use crate::error::PolicyError;
use crate::json::canonical_of;
use crate::outcome::Outcome;

/// The code of the reason that stands alone where no policy has an opinion.
pub const NOBODY_ALLOWS: &str = "NoPolicyAllows";

/// Bytes of all audit annotations of an answer together.
pub(crate) const AUDIT_BYTES: usize = 4096;
/// So many of them are left for what an answer says of itself: verdict, policies and reasons.
const OF_ITSELF: usize = 1024;
/// What stands between two values of one annotation.
const AND: &str = "; ";

/// The answer of all policies together. The weakest stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// No policy has an opinion: nobody objects, and nobody allows it.
    NoOpinion,
    /// It may happen.
    Allow,
    /// Not now.
    Hold,
    /// A policy is broken, or two disagree: it does not happen, and somebody has to look.
    Error,
    /// It must not happen.
    Deny,
}

impl Answer {
    /// Every answer, the strongest last.
    pub const ALL: [Self; 5] = [Self::NoOpinion, Self::Allow, Self::Hold, Self::Error, Self::Deny];

    /// Its word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoOpinion => "no-opinion",
            Self::Allow => "allow",
            Self::Hold => "hold",
            Self::Error => "error",
            Self::Deny => "deny",
        }
    }

    /// What one policy's outcome counts for; none: it has no opinion.
    pub const fn of(result: &Result<Decision, PolicyError>) -> Option<Self> {
        match result {
            Err(_) => Some(Self::Error),
            Ok(Decision { verdict: Verdict::Deny, .. }) => Some(Self::Deny),
            Ok(Decision { verdict: Verdict::Hold, .. }) => Some(Self::Hold),
            Ok(Decision { verdict: Verdict::Allow, .. }) => Some(Self::Allow),
            Ok(Decision { verdict: Verdict::NoOpinion, .. }) => None,
        }
    }
}

/// One answer, and what each policy had to do with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Combined {
    /// The answer.
    pub verdict: Answer,
    /// The policies that it comes from. None: nobody had an opinion.
    pub deciding: Vec<String>,
    /// The reasons of all policies, those that decide first.
    pub reasons: Vec<GivenReason>,
    /// What the requester should know.
    pub warnings: Vec<GivenWarning>,
    /// Changes to the object; only with allow.
    pub edits: Vec<Edit>,
    /// The same as a JSON patch (RFC 6902) of the object, without what is so already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<Value>,
    /// What any of the policies wants to follow; [`Combined::due`] are those that the answer is about.
    pub obligations: Vec<GivenObligation>,
    /// For the audit log, `<policy>.<key>`.
    pub audit: BTreeMap<String, String>,
    /// What went wrong.
    pub errors: Vec<Problem>,
    /// With hold: after how many seconds to ask again, the smallest number that a policy gave.
    pub ask_again_seconds: Option<u32>,
}

/// A reason and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenReason {
    /// Whose; none: it follows from the combination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What that policy decided.
    pub verdict: Verdict,
    /// The reason.
    #[serde(flatten)]
    pub reason: Reason,
}

/// A warning and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenWarning {
    /// Whose.
    pub policy: String,
    /// The warning.
    pub message: String,
}

/// An obligation and who wants it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenObligation {
    /// Who wants it.
    pub policies: Vec<String>,
    /// What those policies decided.
    pub verdict: Verdict,
    /// The obligation.
    pub obligation: Obligation,
}

/// Something that went wrong, and with whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The policies.
    pub policies: Vec<String>,
    /// What went wrong.
    pub error: PolicyError,
}

/// Whether values that are joined have this one among them, which may be joined itself.
fn tells(joined: &str, value: &str) -> bool {
    format!("{AND}{joined}{AND}").contains(&format!("{AND}{value}{AND}"))
}

impl Combined {
    /// The obligations of the policies that decided: what an overruled policy wanted to follow from its own answer
    /// does not follow from this one.
    pub fn due(&self) -> impl Iterator<Item = &GivenObligation> {
        let verdict = match self.verdict {
            Answer::Allow => Some(Verdict::Allow),
            Answer::Hold => Some(Verdict::Hold),
            Answer::Deny => Some(Verdict::Deny),
            Answer::Error | Answer::NoOpinion => None,
        };
        self.obligations.iter().filter(move |given| Some(given.verdict) == verdict)
    }

    /// Adds what another answer about the same API request tells besides its verdict: its warnings, and its entries for the
    /// audit log. What is the same is told once, and what this answer tells itself comes first. Of entries there are not more
    /// than an answer has room for.
    pub fn tell_also(&mut self, other: &Self) {
        for warning in &other.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        let mut bytes: usize = self.audit.iter().map(|(key, value)| key.len() + value.len()).sum();
        for (key, value) in &other.audit {
            let added = value.len() + key.len().max(AND.len());
            if bytes + added > AUDIT_BYTES - OF_ITSELF {
                continue;
            }
            match self.audit.entry(key.clone()) {
                Entry::Vacant(free) => {
                    free.insert(value.clone());
                }
                Entry::Occupied(own) if tells(own.get(), value) => {
                    continue;
                }
                Entry::Occupied(mut own) => {
                    let own = own.get_mut();
                    own.push_str(AND);
                    own.push_str(value);
                }
            }
            bytes += added;
        }
    }

    /// Has an answer that allows make the changes of another answer about the same write as well. Where both cannot be made
    /// in this object, none is: whoever judges the write finds them missing.
    pub fn edit_also(&mut self, other: &Self, object: Option<&Value>) {
        if self.verdict != Answer::Allow || other.edits.is_empty() {
            return;
        }
        let both = merge([("", self.edits.as_slice()), ("", other.edits.as_slice())]).ok();
        let written = both.zip(object).and_then(|(edits, object)| Some((edits::render(object, &edits).ok()?, edits)));
        (self.patch, self.edits) = written.unwrap_or_default();
    }
}

/// The final answer to a request: what the policies say together, with the patch that their edits are. What cannot be
/// carried out is no allow: edits that cannot be written into the object make the answer an error.
///
/// A request that is about no object of the API (`resource`) has nothing that could be patched.
pub fn conclude<O: Borrow<Outcome>>(outcomes: &[O], request: &Request<'_>, object: Option<&Value>) -> Combined {
    let mut combined = combine(outcomes);
    let written = match object {
        _ if combined.edits.is_empty() => Ok(Vec::new()),
        Some(object) => edits::render(object, &combined.edits).and_then(|patch| still_counts(patch, request)),
        None if request.resource.is_none() => Ok(Vec::new()),
        None => Err(PolicyError::EditRefused("the object is missing".to_owned())),
    };
    match written {
        Ok(patch) => combined.patch = patch,
        Err(error) => {
            let edits = |outcome: &&Outcome| outcome.result.as_ref().is_ok_and(|decision| !decision.edits.is_empty());
            let outcomes = outcomes.iter().map(Borrow::borrow).filter(edits);
            let mut policies: Vec<String> = outcomes.map(|outcome: &Outcome| outcome.policy.name.clone()).collect();
            policies.sort();
            policies.dedup();
            combined.verdict = Answer::Error;
            combined.edits.clear();
            combined.deciding.clone_from(&policies);
            combined.errors.push(Problem { policies, error });
        }
    }
    combined
}

/// The patch, if it can still be applied: the API server takes none at the validating stage. There the edits have to
/// be in the object already, by the mutating stage.
fn still_counts(patch: Vec<Value>, request: &Request<'_>) -> Result<Vec<Value>, PolicyError> {
    let change = patch.first().filter(|_| request.stage == Some(Stage::Validating));
    let Some((path, value)) = change.and_then(|change| Some((change["path"].as_str()?, change.get("value")))) else {
        return Ok(patch);
    };
    Err(PolicyError::EditRefused(match (request.operation, value) {
        (Operation::Accept | Operation::Update, Some(value)) => {
            format!("{path} has to be {value}, and the mutating stage has not written it")
        }
        _ => format!("{path}: nothing can be changed at the validating stage any more"),
    }))
}

/// Combines what came of asking several policies. Edits must have been checked before, see [`Outcome::permit`].
pub fn combine<O: Borrow<Outcome>>(outcomes: &[O]) -> Combined {
    let mut outcomes: Vec<&Outcome> = outcomes.iter().map(Borrow::borrow).collect();
    // Places are named differently, so what they said is hardly ever looked at for this.
    outcomes.sort_by(|one, other| one.policy.cmp(&other.policy).then_with(|| tie(one).cmp(&tie(other))));

    let allowed = decisions(&outcomes).filter(|(_, decision)| decision.verdict == Verdict::Allow);
    let merged = merge(allowed.map(|(policy, decision)| (policy, decision.edits.as_slice())));
    let (edits, conflicts) = merged.map_or_else(|conflicts| (Vec::new(), conflicts), |edits| (edits, Vec::new()));

    let strongest = outcomes.iter().filter_map(|outcome| Answer::of(&outcome.result)).max();
    let verdict = match strongest {
        // Without an opinion there are no edits, so there can be no conflict either.
        None => Answer::NoOpinion,
        Some(strongest) if !conflicts.is_empty() => strongest.max(Answer::Error),
        Some(strongest) => strongest,
    };
    let ask_again = decisions(&outcomes).filter_map(|(_, decision)| decision.ask_again_seconds).min();
    Combined {
        verdict,
        deciding: deciding(&outcomes, verdict, &conflicts),
        reasons: reasons(&outcomes, verdict, strongest.is_none()),
        warnings: decisions(&outcomes)
            .flat_map(|(policy, decision)| decision.warnings.iter().map(move |warning| (policy, warning)))
            .map(|(policy, message)| GivenWarning { policy: policy.to_owned(), message: message.clone() })
            .collect(),
        edits: if verdict == Answer::Allow { edits } else { Vec::new() },
        patch: Vec::new(),
        obligations: obligations(&outcomes),
        audit: decisions(&outcomes)
            .flat_map(|(policy, decision)| decision.audit.iter().map(move |entry| (policy, entry)))
            .map(|(policy, (key, value))| (format!("{policy}.{key}"), value.clone()))
            .collect(),
        errors: problems(&outcomes, &conflicts),
        ask_again_seconds: ask_again.filter(|_| verdict == Answer::Hold),
    }
}

/// What tells outcomes of the same policy apart, so that even their order is not left to chance.
fn tie(outcome: &Outcome) -> String {
    match &outcome.result {
        Ok(decision) => canonical_of(decision),
        Err(error) => canonical_of(error),
    }
}

fn decisions<'o>(outcomes: &'o [&'o Outcome]) -> impl Iterator<Item = (&'o str, &'o Decision)> {
    outcomes.iter().filter_map(|outcome| Some((outcome.policy.name.as_str(), outcome.result.as_ref().ok()?)))
}

fn deciding(outcomes: &[&Outcome], verdict: Answer, conflicts: &[Conflict]) -> Vec<String> {
    let mut names: Vec<String> = outcomes
        .iter()
        .filter(|outcome| Answer::of(&outcome.result) == Some(verdict))
        .map(|outcome| outcome.policy.name.clone())
        .collect();
    if verdict == Answer::Error {
        names.extend(conflicts.iter().flat_map(|conflict| conflict.policies.iter().cloned()));
        names.sort();
    }
    names.dedup();
    names
}

fn reasons(outcomes: &[&Outcome], verdict: Answer, nobody: bool) -> Vec<GivenReason> {
    let mut reasons: Vec<GivenReason> = decisions(outcomes)
        .flat_map(|(policy, decision)| decision.reasons.iter().map(move |reason| (policy, decision.verdict, reason)))
        .map(|(policy, verdict, reason)| GivenReason {
            policy: Some(policy.to_owned()),
            verdict,
            reason: reason.clone(),
        })
        .collect();
    // Stable: within a verdict the policies stay in the order of their names, and each one's reasons in its own.
    reasons.sort_by_key(|given| (given.verdict.word() != verdict.word(), std::cmp::Reverse(given.verdict)));
    if nobody {
        let message = "no policy has an opinion about it, so none allows it".to_owned();
        let reason = Reason { code: NOBODY_ALLOWS.to_owned(), message, field: None };
        reasons.insert(0, GivenReason { policy: None, verdict: Verdict::NoOpinion, reason });
    }
    reasons
}

fn obligations(outcomes: &[&Outcome]) -> Vec<GivenObligation> {
    let mut found: BTreeMap<(String, Verdict), GivenObligation> = BTreeMap::new();
    for (policy, decision) in decisions(outcomes) {
        for obligation in &decision.obligations {
            let given = found.entry((canonical_of(obligation), decision.verdict)).or_insert_with(|| GivenObligation {
                policies: Vec::new(),
                verdict: decision.verdict,
                obligation: obligation.clone(),
            });
            given.policies.push(policy.to_owned());
            given.policies.dedup();
        }
    }
    found.into_values().collect()
}

fn problems(outcomes: &[&Outcome], conflicts: &[Conflict]) -> Vec<Problem> {
    let errors = outcomes.iter().filter_map(|outcome| {
        let error = outcome.result.as_ref().err()?.clone();
        Some(Problem { policies: vec![outcome.policy.name.clone()], error })
    });
    let conflicts = conflicts
        .iter()
        .map(|conflict| Problem { policies: conflict.policies.to_vec(), error: PolicyError::from(conflict) });
    errors.chain(conflicts).collect()
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::Requester;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::edits::tests::{any_edit, label};
    use crate::outcome::PolicyId;

    fn outcome(name: &str, result: Result<Decision, PolicyError>) -> Outcome {
        Outcome { policy: PolicyId { name: name.into(), version: "1.0.0".into() }.into(), result, fuel: 1 }
    }

    fn says(name: &str, verdict: Verdict) -> Outcome {
        let reason = Reason { code: "Because".into(), message: name.into(), field: None };
        outcome(name, Ok(Decision { verdict, reasons: vec![reason], ..Decision::default() }))
    }

    fn edits(name: &str, edits: Vec<Edit>) -> Outcome {
        outcome(name, Ok(Decision { verdict: Verdict::Allow, edits, ..Decision::default() }))
    }

    #[test]
    fn the_strongest_decides() {
        let all = [
            outcome("broken", Err(PolicyError::OutOfFuel)),
            says("yes", Verdict::Allow),
            says("wait", Verdict::Hold),
            says("no", Verdict::Deny),
            says("silent", Verdict::NoOpinion),
        ];
        let without = |names: &[&str]| {
            let left: Vec<_> =
                all.iter().filter(|outcome| !names.contains(&outcome.policy.name.as_str())).cloned().collect();
            let combined = combine(&left);
            (combined.verdict, combined.deciding)
        };
        assert_eq!(without(&[]), (Answer::Deny, vec!["no".to_owned()]));
        assert_eq!(without(&["no"]), (Answer::Error, vec!["broken".to_owned()]));
        assert_eq!(without(&["no", "broken"]), (Answer::Hold, vec!["wait".to_owned()]));
        assert_eq!(without(&["no", "broken", "wait"]), (Answer::Allow, vec!["yes".to_owned()]));
        assert_eq!(without(&["no", "broken", "wait", "yes"]), (Answer::NoOpinion, vec![]));
    }

    #[test]
    fn what_two_answers_to_one_request_tell_is_told_once_and_within_bounds() {
        let told = |name: &str, warnings: &[&str], audit: &[(&str, &str)]| {
            let audit = audit.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let warnings = warnings.iter().map(|text| (*text).to_owned()).collect();
            outcome(name, Ok(Decision { warnings, audit, verdict: Verdict::Allow, ..Decision::default() }))
        };
        let mut answer = combine(&[told("p", &["one"], &[("same", "a"), ("other", "a")])]);
        let second = combine(&[
            told("p", &["one", "two"], &[("same", "a"), ("other", "b; d"), ("new", "c")]),
            told("q", &["one"], &[]),
        ]);
        // Told again, it is the same.
        for _ in 0..2 {
            answer.tell_also(&second);
            let warnings: Vec<_> =
                answer.warnings.iter().map(|given| format!("{}: {}", given.policy, given.message)).collect();
            assert_eq!(warnings, ["p: one", "p: two", "q: one"]);
            let audit: Vec<_> = answer.audit.iter().map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(audit, ["p.new=c", "p.other=a; b; d", "p.same=a"]);
        }
        assert_eq!((answer.verdict, &answer.deciding[..]), (Answer::Allow, &["p".to_owned()][..]), "it decides alone");
        let long = "x".repeat(AUDIT_BYTES);
        answer.tell_also(&combine(&[told("r", &[], &[("long", &long), ("short", "d")])]));
        assert_eq!((answer.audit.get("r.long"), answer.audit["r.short"].as_str()), (None, "d"));
    }

    #[test]
    fn where_nobody_has_an_opinion_nothing_is_allowed() {
        for outcomes in [vec![], vec![outcome("silent", Ok(Decision::default()))]] {
            let combined = combine(&outcomes);
            assert_eq!((combined.verdict, &*combined.reasons[0].reason.code), (Answer::NoOpinion, NOBODY_ALLOWS));
        }
    }

    #[test]
    fn a_conflict_is_an_error_that_names_both() {
        let (one, other) = (edits("p", vec![label("team", "a")]), edits("q", vec![label("team", "b")]));
        let combined = combine(&[one.clone(), other.clone()]);
        assert_eq!((combined.verdict, &combined.edits[..]), (Answer::Error, &[][..]));
        assert_eq!(combined.deciding, ["p", "q"]);
        assert_eq!(
            (&combined.errors[0].policies[..], combined.errors[0].error.code()),
            (&["p".to_owned(), "q".to_owned()][..], "edit-conflict")
        );
        // Whoever holds does not hide that two disagree; whoever denies does not need them to agree.
        assert_eq!(combine(&[one.clone(), other.clone(), says("r", Verdict::Hold)]).verdict, Answer::Error);
        assert_eq!(combine(&[one.clone(), other, says("r", Verdict::Deny)]).verdict, Answer::Deny);
        assert_eq!(combine(&[one.clone(), edits("q", vec![label("team", "a")])]).edits, [label("team", "a")]);
        assert_eq!(combine(&[one, says("r", Verdict::Hold)]).edits, []);
    }

    #[test]
    fn what_belongs_to_answers_stays_with_whose_it_is() {
        let obligation = Obligation { name: "expire-acceptance".into(), ..Obligation::default() };
        let mut yes = Decision { verdict: Verdict::Allow, obligations: vec![obligation], ..Decision::default() };
        yes.audit.insert("team".into(), "a".into());
        yes.warnings.push("soon full".into());
        let wait = |name: &str, seconds| {
            let mut outcome = says(name, Verdict::Hold);
            if let Ok(decision) = &mut outcome.result {
                decision.ask_again_seconds = seconds;
            }
            outcome
        };
        let [p, q] = ["p", "q"].map(|name| outcome(name, Ok(yes.clone())));
        let allowed = combine(&[q.clone(), p.clone()]);
        assert_eq!(allowed.obligations.len(), 1);
        assert_eq!(allowed.due().next().unwrap().policies, ["p", "q"]);
        assert_eq!(allowed.audit.keys().collect::<Vec<_>>(), ["p.team", "q.team"]);
        assert_eq!(allowed.warnings[0].policy, "p");
        let held = combine(&[p.clone(), wait("r", Some(60)), wait("s", Some(30)), wait("t", None)]);
        assert_eq!((held.ask_again_seconds, held.obligations.len(), held.due().count()), (Some(30), 1, 0));
        let denied = combine(&[p, wait("r", Some(60)), says("x", Verdict::Deny)]);
        assert_eq!((denied.ask_again_seconds, denied.reasons[0].policy.as_deref()), (None, Some("x")));
    }

    #[test]
    fn what_cannot_be_written_into_the_object_is_no_allow() {
        let mut request = Request::new(Operation::Create, Requester::default());
        let object = json!({"metadata": {"name": "c", "annotations": {"old": "x".repeat(200 << 10)}}});
        let annotate = |name: &str, bytes: usize| {
            edits(name, vec![Edit::SetAnnotation { key: format!("example.com/{name}"), value: "y".repeat(bytes) }])
        };
        let good = conclude(&[annotate("p", 3)], &request, Some(&object));
        assert_eq!(good.verdict, Answer::Allow);
        assert_eq!(good.patch, [json!({"op": "add", "path": "/metadata/annotations/example.com~1p", "value": "yyy"})]);
        request.stage = Some(Stage::Validating);
        let late = conclude(&[annotate("p", 3)], &request, Some(&object));
        assert_eq!((late.verdict, late.patch.len()), (Answer::Error, 0), "nobody would write it");
        request.operation = Operation::Accept;
        let late = conclude(&[annotate("p", 3)], &request, Some(&object));
        let why = "/metadata/annotations/example.com~1p has to be \"yyy\", and the mutating stage has not written it";
        assert_eq!(late.errors[0].error, PolicyError::EditRefused(why.to_owned()));
        request.operation = Operation::Create;
        let written = json!({"metadata": {"name": "c", "annotations": {"example.com/p": "yyy"}}});
        assert_eq!(conclude(&[annotate("p", 3)], &request, Some(&written)).verdict, Answer::Allow);
        request.stage = Some(Stage::Mutating);
        // Each fits, and both do not.
        let both = [annotate("q", 40 << 10), annotate("p", 40 << 10), says("other", Verdict::Allow)];
        let large = conclude(&both, &request, Some(&object));
        assert_eq!((large.verdict, large.errors[0].error.code()), (Answer::Error, "edit-refused"));
        assert_eq!(
            (large.deciding.as_slice(), large.edits.len(), large.patch.len()),
            (&["p", "q"].map(str::to_owned)[..], 0, 0)
        );
        let none: Option<&Value> = None;
        assert_eq!(conclude(&both, &request, none).verdict, Answer::Allow, "there is no object of the API");
        request.resource = Some(ocm_policy_abi::Resource::default());
        assert_eq!(conclude(&both, &request, none).verdict, Answer::Error, "there is one, and it is not at hand");
        assert_eq!(conclude(&[says("p", Verdict::Allow)], &request, none).verdict, Answer::Allow, "nothing is changed");
        let denied = [annotate("p", 300 << 10), says("x", Verdict::Deny)];
        assert_eq!(conclude(&denied, &request, Some(&object)).verdict, Answer::Deny);
    }

    #[test]
    fn two_answers_about_one_write_change_it_together_or_not_at_all() {
        let object = json!({"metadata": {"name": "c", "labels": {}}});
        let mut request = Request::new(Operation::Accept, Requester::default());
        request.stage = Some(Stage::Mutating);
        let answer = |outcome: Outcome| conclude(&[outcome], &request, Some(&object));
        let allowed = |key: &str, value: &str| answer(edits("p", vec![label(key, value)]));
        let with = |mut one: Combined, other: &Combined| {
            one.edit_also(other, Some(&object));
            one.patch.iter().map(|change| change["path"].to_string()).collect::<Vec<_>>()
        };
        let silent = answer(outcome("p", Ok(Decision::default())));
        let (a, b) = ("\"/metadata/labels/a\"", "\"/metadata/labels/b\"");
        assert_eq!(with(allowed("a", "1"), &allowed("b", "2")), [a, b]);
        assert_eq!(with(allowed("a", "1"), &allowed("a", "1")), [a]);
        assert_eq!(with(allowed("a", "1"), &silent), [a]);
        assert_eq!(with(allowed("a", "1"), &allowed("a", "2")), [""; 0], "they disagree");
        for no in [says("p", Verdict::Deny), says("p", Verdict::Hold), outcome("p", Err(PolicyError::OutOfFuel))] {
            assert_eq!(with(answer(no), &allowed("b", "2")), [""; 0]);
        }
        let mut without = allowed("a", "1");
        without.edit_also(&allowed("b", "2"), None);
        assert_eq!((without.patch.len(), without.edits.len()), (0, 0), "nobody knows what it would be written into");
    }

    fn any_outcome() -> impl Strategy<Value = Outcome> {
        let verdict = prop::sample::select(Verdict::ALL.to_vec());
        let name = prop::sample::select(vec!["p", "q", "r"]);
        (name, prop::option::weighted(0.8, verdict), prop::collection::vec(any_edit(), 0..3), 1u32..4).prop_map(
            |(name, verdict, mut edits, number)| {
                if verdict != Some(Verdict::Allow) {
                    edits.clear();
                }
                let result = verdict.ok_or(PolicyError::Exit(number as i32)).map(|verdict| Decision {
                    verdict,
                    edits,
                    ask_again_seconds: Some(number).filter(|_| verdict == Verdict::Hold),
                    reasons: vec![Reason { code: "C".into(), message: format!("m{number}"), field: None }],
                    audit: [("k".to_owned(), number.to_string())].into(),
                    obligations: vec![Obligation { name: format!("o{number}"), ..Obligation::default() }],
                    ..Decision::default()
                });
                outcome(name, result)
            },
        )
    }

    fn several() -> impl Strategy<Value = Vec<Outcome>> {
        prop::collection::vec(any_outcome(), 0..6)
    }

    proptest! {
        #[test]
        fn order_does_not_matter((outcomes, shuffled) in several().prop_flat_map(|all| {
            (Just(all.clone()), Just(all).prop_shuffle())
        })) {
            prop_assert_eq!(combine(&outcomes), combine(&shuffled));
        }

        #[test]
        fn one_more_policy_never_opens_what_was_shut(outcomes in several(), more in any_outcome()) {
            let before = combine(&outcomes).verdict;
            let mut outcomes = outcomes;
            outcomes.push(more);
            let after = combine(&outcomes).verdict;
            if before == Answer::Deny { prop_assert_eq!(after, Answer::Deny) }
            if before == Answer::Error { prop_assert!(after >= Answer::Error) }
        }

        #[test]
        fn only_allow_allows_and_edits(outcomes in several()) {
            let combined = combine(&outcomes);
            let clean = outcomes.iter().all(|outcome| match &outcome.result {
                Ok(decision) => matches!(decision.verdict, Verdict::Allow | Verdict::NoOpinion),
                Err(_) => false,
            });
            if combined.verdict == Answer::Allow {
                prop_assert!(clean && combined.errors.is_empty() && !combined.deciding.is_empty());
            } else {
                prop_assert!(combined.edits.is_empty());
            }
        }
    }
}

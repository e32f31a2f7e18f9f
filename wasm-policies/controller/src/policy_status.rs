//! What is written down of a policy: neither clock nor client.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::Condition;
use ocm_api::conditions::hub_policy::reasons::STOPS_TO_JUDGE;
use ocm_api::conditions::hub_policy::{DEGRADED, ENFORCING, LOADED, TESTS_PASSED};
use ocm_api::conditions::{FALSE, TRUE, UNKNOWN, find};
use ocm_api::policy::{CandidateStatus, HubPolicyStatus, PolicyDecisions, PolicyOperation};
use ocm_policy_abi::Operation;
use ocm_policy_server::{CandidateState, Decisions, State, With};

use crate::enforcement::{self, Enforcement, Problem};
use crate::status::sentence;

/// The reason while a module is on its way to the hub.
const FETCHING: &str = "Fetching";
/// The reason while evidence cannot be told.
const EVIDENCE_UNREAD: &str = "EvidenceUnread";
/// The reason while test cases fail.
const TESTS_FAILED: &str = "TestsFailed";
/// How many digits of a digest tell modules apart at a glance.
const DIGITS: usize = 12;

/// What is to be said of one aspect.
struct Said {
    status: &'static str,
    reason: String,
    message: String,
}

fn said(status: &'static str, reason: &str, message: impl Into<String>) -> Said {
    Said { status, reason: reason.to_owned(), message: sentence(&message.into()) }
}

/// The status of a policy of this mode, of which `before` was known.
pub(crate) fn status(
    state: &State,
    mode: &str,
    seen: &Enforcement,
    decisions: Option<Decisions>,
    before: &HubPolicyStatus,
    now: Timestamp,
) -> HubPolicyStatus {
    let generation = Some(state.observed.1);
    let condition = |type_: &str, said: Said| {
        let former = find(&before.conditions, type_).filter(|former| former.status == said.status);
        Condition {
            type_: type_.to_owned(),
            status: said.status.to_owned(),
            reason: said.reason,
            message: said.message,
            observed_generation: generation,
            last_transition_time: former.map_or(Time(now), |former| former.last_transition_time.clone()),
        }
    };
    let previous = match &before.sha256 {
        Some(former) if before.sha256 != state.sha256 => Some(former.clone()),
        _ => before.previous_sha256.clone(),
    };
    HubPolicyStatus {
        observed_generation: generation,
        conditions: vec![
            condition(LOADED, loaded(state)),
            condition(ENFORCING, enforcing(state, mode, seen)),
            condition(DEGRADED, degraded(state, mode, seen)),
            condition(TESTS_PASSED, tests_passed(state)),
        ],
        sha256: state.sha256.clone(),
        digest: state.sha256.as_ref().map(|sha256| sha256.chars().take(DIGITS).collect()),
        previous_sha256: previous,
        kind: state.kind.map(str::to_owned),
        operations: operations(state, &before.operations),
        decisions: decisions.map(counted),
        candidate: state.candidate.as_ref().map(candidate),
    }
}

/// What is judged, and what was judged before and has to be: only the administrator takes that away.
fn operations(state: &State, before: &[PolicyOperation]) -> Vec<PolicyOperation> {
    let before = before.iter().filter_map(|word| Operation::of(word.as_str()));
    let before = before.filter(|operation| !state.left_out.contains(operation));
    let all: BTreeSet<Operation> = before.chain(state.operations.iter().copied()).collect();
    all.into_iter().map(|operation| PolicyOperation::from(operation.word())).collect()
}

fn counted(decisions: Decisions) -> PolicyDecisions {
    let Decisions { allowed, held, denied, errors, no_opinion, p50_micros, p99_micros, p99_fuel } = decisions;
    PolicyDecisions { allowed, held, denied, errors, no_opinion, p50_micros, p99_micros, p99_fuel }
}

fn candidate(state: &CandidateState) -> CandidateStatus {
    let CandidateState { sha256, share, failed, with: _, compared, differed, last_difference } = state.clone();
    CandidateStatus {
        sha256,
        share,
        failed: failed.map(|why| sentence(&why)),
        compared,
        differed,
        last_difference: last_difference.map(|difference| sentence(&difference)),
    }
}

fn loaded(state: &State) -> Said {
    let (word, reason) = match state.with {
        With::Policy => (FALSE, "LoadFailed"),
        With::Tests => (FALSE, TESTS_FAILED),
        With::Operations => (FALSE, STOPS_TO_JUDGE),
        With::Source(reason) => (FALSE, reason),
        With::Fetching => (UNKNOWN, FETCHING),
    };
    match (&state.failed, &state.sha256) {
        (None, _) => said(TRUE, "Loaded", "the version that is wanted is in force"),
        (Some(why), Some(former)) => {
            let former: String = former.chars().take(DIGITS).collect();
            said(word, reason, format!("module {former} stays in force, since the new version cannot be: {why}"))
        }
        (Some(why), None) => {
            said(word, reason, format!("no version is in force, so it answers everything with an error: {why}"))
        }
    }
}

/// What [`LOADED`] says, for whoever may read events and not the policies, whose settings it may quote.
pub(crate) fn loaded_in_short(state: &State) -> String {
    let failed = match state.with {
        With::Policy | With::Tests | With::Operations => state.failed_in_short().map(str::to_owned),
        With::Fetching | With::Source(_) => state.failed.clone(),
    };
    loaded(&State { failed, ..state.clone() }).message
}

fn tests_passed(state: &State) -> Said {
    match (&state.failed, state.with) {
        _ if !state.has_tests => said(UNKNOWN, "NoTests", "spec.tests holds no test cases"),
        (None, _) => said(TRUE, "Passed", "the version in force passes all its test cases"),
        (Some(why), With::Tests) => said(FALSE, TESTS_FAILED, why),
        (Some(_), _) => said(UNKNOWN, "NotLoaded", "the version that is wanted cannot be asked, as Loaded says"),
    }
}

/// What it is asked about.
fn asked(state: &State) -> Vec<Operation> {
    state.operations.iter().copied().filter(|operation| !state.left_out.contains(operation)).collect()
}

fn enforcing(state: &State, mode: &str, seen: &Enforcement) -> Said {
    match seen.of(&asked(state)) {
        // Whatever the hub does, this one refuses nothing.
        _ if mode == "Warn" => said(FALSE, "Mode", "mode Warn: who sent a request is warned, and nothing is refused"),
        _ if mode == "Audit" => said(FALSE, "Mode", "mode Audit: verdicts are recorded, and nothing is refused"),
        Some(problem) if problem.reason == enforcement::UNKNOWN => said(UNKNOWN, problem.reason, &problem.message),
        Some(problem) => said(FALSE, problem.reason, &problem.message),
        None if state.sha256.is_none() => {
            said(FALSE, "NotLoaded", "requests get an error from it, since no version of it is in force")
        }
        None => said(TRUE, "Answered", "the API server was seen to ask the webhook, and waits for its answer"),
    }
}

/// That it asks for what cannot be told.
fn unread(state: &State) -> Option<Problem> {
    let message = format!(
        "it answers with errors, or no approval counts, until it is told what it asks for: let webhook and controller list and \
         watch that, and have the hub serve it: {}",
        state.unread.join("; ")
    );
    (!state.unread.is_empty()).then_some(Problem { reason: EVIDENCE_UNREAD, message })
}

fn degraded(state: &State, mode: &str, seen: &Enforcement) -> Said {
    let ours = seen.of(&asked(state)).filter(|_| !matches!(mode, "Warn" | "Audit"));
    let unread = unread(state);
    match (&state.failed, state.with) {
        (None, _) => {}
        (Some(why), With::Policy) => {
            return said(TRUE, "LoadFailed", format!("put right module or settings of this HubPolicy: {why}"));
        }
        (Some(why), With::Tests) => {
            return said(TRUE, TESTS_FAILED, format!("put right the test cases, or what they are about: {why}"));
        }
        (Some(why), With::Operations) => {
            let what = "take a module that judges all that the one before it judges, or set spec.operations to what the policy is \
                        to be evaluated for";
            return said(TRUE, STOPS_TO_JUDGE, format!("{what}: {why}"));
        }
        (Some(why), With::Source(reason)) => return said(TRUE, reason, why),
        (Some(why), With::Fetching) => return said(UNKNOWN, FETCHING, why),
    }
    let problems = || [ours, unread.as_ref(), seen.hub.as_ref()].into_iter().flatten();
    // What is known to be wrong is told before what nobody can tell, which may follow from it.
    match problems().find(|problem| problem.reason != enforcement::UNKNOWN).or_else(|| problems().next()) {
        Some(problem) if problem.reason == enforcement::UNKNOWN => said(UNKNOWN, problem.reason, &problem.message),
        Some(problem) => said(TRUE, problem.reason, &problem.message),
        None => match state.candidate.as_ref().and_then(|tried| Some((tried.failed.as_ref()?, tried.with))) {
            Some((why, With::Fetching)) => said(UNKNOWN, FETCHING, format!("the candidate is not tried yet: {why}")),
            Some((why, _)) => said(TRUE, "CandidateFailed", format!("put right or give up the candidate: {why}")),
            None => said(FALSE, "AsWanted", "nothing is to be done"),
        },
    }
}

#[cfg(test)]
mod tests {
    use ocm_core::policy_engine::webhooks;

    use super::*;

    const ALL_WELL: Enforcement = Enforcement { ours: None, entries: Vec::new(), hub: None };

    fn state(sha256: Option<&str>, failed: Option<&str>) -> State {
        State {
            observed: (Some("u".to_owned()), 3),
            sha256: sha256.map(|digit| digit.repeat(64)),
            kind: sha256.map(|_| "component"),
            operations: sha256.map(|_| vec![Operation::Create, Operation::Join]).unwrap_or_default(),
            left_out: Vec::new(),
            failed: failed.map(str::to_owned),
            in_short: None,
            with: With::Policy,
            unread: Vec::new(),
            has_tests: false,
            candidate: None,
        }
    }

    /// Status and reason of each condition but that of test cases.
    fn words(status: &HubPolicyStatus) -> Vec<(&str, &str)> {
        let all = status.conditions.iter().filter(|one| one.type_ != TESTS_PASSED);
        all.map(|one| (one.status.as_str(), one.reason.as_str())).collect()
    }

    fn of(state: &State, mode: &str, seen: &Enforcement) -> HubPolicyStatus {
        status(state, mode, seen, None, &HubPolicyStatus::default(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_is_told_in_events_quotes_no_settings() {
        let quotes = "it refuses its settings: the token s3cret is no number";
        let failed = State { in_short: Some("it cannot be loaded".to_owned()), ..state(Some("a"), Some(quotes)) };
        for with in [With::Policy, With::Tests, With::Operations] {
            let failed = State { with, ..failed.clone() };
            assert!(of(&failed, "Enforce", &ALL_WELL).conditions[0].message.contains("s3cret"));
            let told = loaded_in_short(&failed);
            assert!(told.starts_with("module aaaaaaaaaaaa stays in force") && !told.contains("s3cret"), "{told}");
        }
        // Where a module comes from stands in none.
        let missing =
            State { with: With::Source("SourceUnreachable"), ..state(None, Some("there is no such ConfigMap")) };
        assert!(loaded_in_short(&missing).ends_with("there is no such ConfigMap"));
        let well = state(Some("a"), None);
        assert_eq!(loaded_in_short(&well), of(&well, "Enforce", &ALL_WELL).conditions[0].message);
    }

    #[test]
    fn each_condition_says_one_thing() {
        let good = state(Some("a"), None);
        let well = of(&good, "Enforce", &ALL_WELL);
        assert_eq!(words(&well), [("True", "Loaded"), ("True", "Answered"), ("False", "AsWanted")]);
        assert_eq!((well.observed_generation, well.digest.as_deref()), (Some(3), Some("aaaaaaaaaaaa")));
        assert_eq!(words(&of(&good, "Audit", &ALL_WELL))[1], ("False", "Mode"));
        // A word of a newer release counts for Enforce.
        assert_eq!(words(&of(&good, "Canary", &ALL_WELL))[1], ("True", "Answered"));
        let failed = of(&state(Some("a"), Some("no")), "Enforce", &ALL_WELL);
        assert_eq!(words(&failed), [("False", "LoadFailed"), ("True", "Answered"), ("True", "LoadFailed")]);
        assert!(failed.conditions[0].message.starts_with("module aaaaaaaaaaaa stays in force"), "{failed:?}");
        let never = of(&state(None, Some("no")), "Enforce", &ALL_WELL);
        assert_eq!(words(&never)[..2], [("False", "LoadFailed"), ("False", "NotLoaded")]);
        let coming = State { with: With::Fetching, ..state(None, Some("not yet")) };
        let said = [("Unknown", "Fetching"), ("False", "NotLoaded"), ("Unknown", "Fetching")];
        assert_eq!(words(&of(&coming, "Enforce", &ALL_WELL)), said);
        let missing = State { with: With::Source("ModuleNotFound"), ..state(Some("a"), Some("r does not have it")) };
        let missing = of(&missing, "Enforce", &ALL_WELL);
        assert_eq!(words(&missing), [("False", "ModuleNotFound"), ("True", "Answered"), ("True", "ModuleNotFound")]);
        assert_eq!(missing.conditions[2].message, "r does not have it");
    }

    #[test]
    fn test_cases_that_fail_are_told_as_such() {
        let tests = |state: &State| {
            let status = of(state, "Enforce", &ALL_WELL);
            let said = find(&status.conditions, TESTS_PASSED).expect("it is said").clone();
            (said.status, said.reason)
        };
        let word = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
        let good = State { has_tests: true, ..state(Some("a"), None) };
        assert_eq!(tests(&state(Some("a"), None)), word("Unknown", "NoTests"));
        assert_eq!(tests(&good), word("True", "Passed"));
        let failed = State { failed: Some("case 1 fails".to_owned()), with: With::Tests, ..good.clone() };
        assert_eq!(tests(&failed), word("False", "TestsFailed"));
        let status = of(&failed, "Enforce", &ALL_WELL);
        assert_eq!(words(&status), [("False", "TestsFailed"), ("True", "Answered"), ("True", "TestsFailed")]);
        assert!(status.conditions[2].message.ends_with("case 1 fails"), "{status:?}");
        assert_eq!(tests(&State { failed: Some("no".to_owned()), ..good }), word("Unknown", "NotLoaded"));
    }

    #[test]
    fn what_was_judged_is_kept_until_the_administrator_says_otherwise() {
        let of = |state: &State, before: &HubPolicyStatus| {
            let now = status(state, "Enforce", &ALL_WELL, None, before, Timestamp::UNIX_EPOCH);
            let judged: Vec<String> = now.operations.iter().map(ToString::to_string).collect();
            (now, judged.join(" "))
        };
        let (first, judged) = of(&state(Some("a"), None), &HubPolicyStatus::default());
        assert_eq!(judged, "create join");
        // A controller that starts and refuses the version that is wanted, whatever is left out for that version.
        let fewer = State { with: With::Operations, ..state(None, Some("it would no longer be asked about join")) };
        let (closed, judged) = of(&fewer, &first);
        assert_eq!((judged.as_str(), closed.sha256.as_ref()), ("create join", None));
        assert_eq!(closed.previous_sha256, first.sha256, "it is known whose they are");
        let said = [("False", "StopsToJudge"), ("False", "NotLoaded"), ("True", "StopsToJudge")];
        assert_eq!(words(&closed), said);
        assert!(closed.conditions[2].message.contains("set spec.operations to"), "{closed:?}");
        // One that has another version in force, which judges less.
        let slow = State { operations: vec![Operation::Create], ..state(Some("b"), None) };
        assert_eq!(of(&slow, &closed).1, "create join");
        let left_out = State { left_out: vec![Operation::Join, Operation::Admit], ..slow };
        assert_eq!(of(&left_out, &closed).1, "create");
        let more = State { operations: vec![Operation::Admit, Operation::Create], ..state(Some("b"), None) };
        assert_eq!(of(&more, &first).1, "create join admit");
        // This release asks nobody about what it does not know.
        let newer = HubPolicyStatus { operations: vec![PolicyOperation::Other("migrate".to_owned())], ..first };
        assert_eq!(of(&state(Some("a"), None), &newer).1, "create join");
    }

    #[test]
    fn a_candidate_that_fails_is_told_where_nothing_worse_is() {
        let tried = CandidateState { failed: Some("no".to_owned()), ..CandidateState::default() };
        let good = State { candidate: Some(tried), ..state(Some("a"), None) };
        let told = of(&good, "Enforce", &ALL_WELL);
        assert_eq!(words(&told), [("True", "Loaded"), ("True", "Answered"), ("True", "CandidateFailed")]);
        assert_eq!(told.candidate.and_then(|candidate| candidate.failed).as_deref(), Some("no"));
        let mut coming = good.clone();
        coming.candidate.as_mut().expect("one").with = With::Fetching;
        assert_eq!(words(&of(&coming, "Enforce", &ALL_WELL))[2], ("Unknown", "Fetching"));
        let broken = State { failed: Some("worse".to_owned()), ..good };
        assert_eq!(words(&of(&broken, "Enforce", &ALL_WELL))[2], ("True", "LoadFailed"));
    }

    #[test]
    fn what_is_wrong_with_the_hub_is_told_where_it_matters() {
        let good = state(Some("a"), None);
        let problem = |reason| Some(Problem { reason, message: "m".to_owned() });
        let missing = Enforcement { ours: problem("ConfigurationMissing"), ..ALL_WELL };
        let of_both = |seen: &Enforcement, mode: &str| {
            let status = of(&good, mode, seen);
            words(&status)[1..].iter().map(|(status, reason)| format!("{status} {reason}")).collect::<Vec<_>>()
        };
        assert_eq!(of_both(&missing, "Enforce"), ["False ConfigurationMissing", "True ConfigurationMissing"]);
        assert_eq!(of_both(&missing, "Audit"), ["False Mode", "False AsWanted"]);
        let unknown = Enforcement { ours: problem(enforcement::UNKNOWN), ..ALL_WELL };
        assert_eq!(of_both(&unknown, "Enforce"), ["Unknown CannotTell", "Unknown CannotTell"]);
        let hub = Enforcement { hub: problem("ConfigurationMissing"), ..ALL_WELL };
        assert_eq!(of_both(&hub, "Enforce"), ["True Answered", "True ConfigurationMissing"]);
        // Where the hub's own webhook does not answer, nobody gets to ours.
        let both = Enforcement { ours: problem(enforcement::UNKNOWN), hub: problem("NoAnswer"), ..ALL_WELL };
        assert_eq!(of_both(&both, "Enforce"), ["Unknown CannotTell", "True NoAnswer"]);
    }

    #[test]
    fn evidence_that_cannot_be_told_is_told_whatever_the_mode_is() {
        let unread = vec!["inventory (map): permission denied".to_owned(), "csrs (csrs): no".to_owned()];
        let asks = State { unread, ..state(Some("a"), None) };
        let told = |mode: &str, seen: &Enforcement| {
            let status = of(&asks, mode, seen);
            let degraded = find(&status.conditions, DEGRADED).expect("it is said").clone();
            (format!("{} {}", words(&status)[1].0, degraded.reason), degraded.message)
        };
        let (word, message) = told("Enforce", &ALL_WELL);
        assert_eq!(word, "True EvidenceUnread", "an error refuses, too");
        assert!(message.contains("list and watch") && message.contains("permission denied; csrs"), "{message}");
        assert_eq!(told("Audit", &ALL_WELL).0, "False EvidenceUnread");
        let problem = |reason| Some(Problem { reason, message: "m".to_owned() });
        let hub = Enforcement { hub: problem("NoAnswer"), ..ALL_WELL };
        assert_eq!(told("Enforce", &hub).0, "True EvidenceUnread");
        let ours = Enforcement { ours: problem("ConfigurationMissing"), ..ALL_WELL };
        assert_eq!(told("Enforce", &ours).0, "False ConfigurationMissing", "nobody asks it");
        let unknown = Enforcement { ours: problem(enforcement::UNKNOWN), ..ALL_WELL };
        assert_eq!(told("Enforce", &unknown).0, "Unknown EvidenceUnread");
    }

    #[test]
    fn an_entry_that_is_wrong_is_told_by_the_policies_that_are_asked_about_what_it_brings() {
        let problem = Problem { reason: "NotAsked", message: "m".to_owned() };
        let seen = |entry| Enforcement { entries: vec![(entry, problem.clone())], ..ALL_WELL };
        let good = state(Some("a"), None);
        let told = |state: &State, entry| {
            let status = of(state, "Enforce", &seen(entry));
            words(&status)[1..].iter().map(|(status, reason)| format!("{status} {reason}")).collect::<Vec<_>>()
        };
        assert_eq!(told(&good, webhooks::REGISTER), ["False NotAsked", "True NotAsked"]);
        assert_eq!(told(&good, webhooks::WORK), ["True Answered", "False AsWanted"]);
        // What the administrator does not have it asked about is nothing that it misses.
        let joins = State { left_out: vec![Operation::Create], ..good };
        assert_eq!(told(&joins, webhooks::REGISTER), ["True Answered", "False AsWanted"]);
        assert_eq!(told(&joins, webhooks::APPROVE), ["False NotAsked", "True NotAsked"]);
        let alone = |operation| State { operations: vec![operation], ..state(Some("a"), None) };
        for (operation, entry) in [
            (Operation::Create, webhooks::REGISTER),
            (Operation::Accept, webhooks::ACCEPT),
            (Operation::Accept, webhooks::REGISTER),
            (Operation::Update, webhooks::UPDATE),
            (Operation::Update, webhooks::SELF_EDIT),
            (Operation::Delete, webhooks::DELETE),
            (Operation::Request, webhooks::REQUEST),
            (Operation::Approve, webhooks::APPROVE),
            (Operation::Join, webhooks::ACCEPT),
            (Operation::Join, webhooks::APPROVE),
            (Operation::Admit, webhooks::WORK),
        ] {
            assert_eq!(told(&alone(operation), entry), ["False NotAsked", "True NotAsked"], "{operation:?} {entry}");
        }
        for (operation, entry) in [
            (Operation::Approve, webhooks::REGISTER),
            (Operation::Request, webhooks::APPROVE),
            (Operation::Delete, webhooks::UPDATE),
        ] {
            assert_eq!(told(&alone(operation), entry), ["True Answered", "False AsWanted"], "{operation:?} {entry}");
        }
    }

    #[test]
    fn times_and_former_digests_are_kept() {
        let later = Timestamp::from_second(60).expect("a time");
        let first = of(&state(Some("a"), None), "Enforce", &ALL_WELL);
        assert_eq!(
            status(&state(Some("a"), None), "Enforce", &ALL_WELL, None, &first, later),
            first,
            "time alone is no news"
        );
        let second = status(&state(Some("b"), None), "Enforce", &ALL_WELL, None, &first, later);
        assert_eq!((second.previous_sha256.clone(), second.sha256.clone()), (first.sha256, Some("b".repeat(64))));
        let third = status(&state(Some("b"), Some("no")), "Enforce", &ALL_WELL, None, &second, later);
        assert_eq!(third.previous_sha256, second.previous_sha256);
        assert_eq!(third.conditions[0].last_transition_time, Time(later));
        assert_eq!(third.conditions[1].last_transition_time, Time(Timestamp::UNIX_EPOCH));
    }
}

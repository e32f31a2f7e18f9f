//! From an answer back to the API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocm_policy_abi::{CHANGES_SHOWN, Cluster, Operation, Request, Stage, Text, Verdict};
use serde_json::{Map, Value, json};

use crate::combine::{AUDIT_BYTES, Answer, Combined, GivenReason};

/// Causes of a refusal; people read the first reason, machines all of them.
const MOST_CAUSES: usize = 16;
/// Warnings of one answer, and characters of each: past 4096 in all the API server cuts them itself
/// (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
const MOST_WARNINGS: usize = 16;
const WARNING_CHARACTERS: usize = 256;
/// Characters of the sentence of a refusal.
const MESSAGE_CHARACTERS: usize = 2048;
/// How the key ends of what a policy would have decided whose word does not count.
const WOULD: &str = ".would";
/// Characters of the key of an audit annotation: the name of a qualified name.
const AUDIT_KEY: usize = 63;

/// Whether an answer stops an API request.
///
/// A hold admits what only asks, a cluster that is created and a certificate request, and stops what grants; a cluster
/// that is created as accepted asks for nothing any more. A deletion and an acceptance that is taken back are stopped by a
/// policy that denies them, and by none that fails; a certificate request may always be denied.
pub fn is_refused(request: &Request<'_>, answer: &Combined) -> bool {
    let only_asks = match request.operation {
        Operation::Create => !is_accepted(&request.cluster),
        Operation::Request => true,
        _ => false,
    };
    match answer.verdict {
        Answer::NoOpinion | Answer::Allow => false,
        Answer::Deny => !denies(request),
        Answer::Error => request.operation != Operation::Request && !takes_away(request),
        Answer::Hold => !only_asks && !takes_away(request),
    }
}

fn is_accepted(cluster: &Option<Cluster<'_>>) -> bool {
    cluster.as_ref().is_some_and(|cluster| cluster.accepted)
}

/// Whether it denies a certificate request, or says that signing it failed.
fn denies(request: &Request<'_>) -> bool {
    let added = request.csr.as_ref().and_then(|csr| csr.adds_condition.as_deref());
    request.operation == Operation::Approve && matches!(added, Some("Denied" | "Failed"))
}

/// Whether it can only make less: a deletion, the steps of one, a denial, or an acceptance that is taken back with nothing
/// else.
pub fn takes_away(request: &Request<'_>) -> bool {
    let deleted = request.resource.as_ref().is_some_and(|resource| resource.operation == "DELETE");
    deleted || denies(request) || (request.operation == Operation::Update && closes(request))
}

fn closes(request: &Request<'_>) -> bool {
    let (Some(before), Some(after)) = (&request.previous, &request.cluster) else { return false };
    // What is being deleted loses its finalizers by updates. It cannot be accepted by them: that is another operation.
    if before.deleting {
        return true;
    }
    // What was left out hides no change where all that the update changes of it is shown.
    let shown = after.more.get(CHANGES_SHOWN).and_then(Value::as_array);
    let is_shown = |member: &Text<'_>| shown.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(&**member)));
    let mut expected = before.clone();
    expected.accepted = false;
    expected.resource_version.clone_from(&after.resource_version);
    expected.generation = after.generation;
    expected.more.clone_from(&after.more);
    before.accepted && after.truncated.iter().all(is_shown) && expected == *after
}

/// The AdmissionReview that answers a request.
///
/// At the mutating stage nothing is refused: what the object will be is not certain yet, and of a certificate request the
/// names of who asks are still the client's own words. There the changes of an allow are made, but none of what only takes away,
/// which they would make more of; the rest is judged when the object is complete.
pub fn response(request: &Request<'_>, answer: &Combined) -> Value {
    let mut response = json!({"uid": request.id, "allowed": true});
    if request.stage == Some(Stage::Mutating) {
        if answer.verdict == Answer::Allow && !answer.patch.is_empty() && !takes_away(request) {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(Value::from(answer.patch.clone()).to_string()));
        }
        return envelope(response);
    }
    let refused = is_refused(request, answer);
    if refused {
        response["allowed"] = json!(false);
        response["status"] = json!({
            "status": "Failure",
            // Without, the API server says 400.
            "code": 403,
            "reason": "Forbidden",
            "message": shortened(&sentence(answer), MESSAGE_CHARACTERS),
            "details": {"causes": causes(answer)},
        });
    }
    let held = (!refused && matches!(answer.verdict, Answer::Hold | Answer::Error)).then(|| sentence(answer));
    let warnings = answer.warnings.iter().map(|given| format!("{}: {}", given.policy, given.message));
    let warnings = held.into_iter().chain(warnings).filter_map(|text| printable(&text, WARNING_CHARACTERS));
    let warnings: Vec<String> = warnings.take(MOST_WARNINGS).collect();
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    response["auditAnnotations"] = Value::Object(audit(answer));
    envelope(response)
}

/// The AdmissionReview that changes nothing of a request at the mutating stage.
pub fn unchanged(uid: &str) -> Value {
    envelope(json!({"uid": uid, "allowed": true}))
}

/// The AdmissionReview that lets pass what cannot be asked about, with a warning.
pub fn passage(uid: &str, why: &str) -> Value {
    envelope(json!({"uid": uid, "allowed": true, "warnings": [shortened(why, WARNING_CHARACTERS)]}))
}

/// The AdmissionReview that refuses what cannot be asked about.
pub fn refusal(uid: &str, why: &str) -> Value {
    envelope(json!({"uid": uid, "allowed": false, "status": forbidden(why)}))
}

/// The AdmissionReview that refuses a request for a reason that is none of a policy's, with a word by which programs know it.
/// The API server hands on the status that a webhook gives (`ToStatusErr` of `k8s.io/apiserver`), but for its message.
pub fn refusal_for_programs(uid: &str, why: &str, code: &str) -> Value {
    let mut review = refusal(uid, why);
    review["response"]["status"]["details"] = json!({"causes": [{"reason": code}]});
    review
}

/// The AdmissionReview that refuses what policies would let pass as far as they could be asked. What they said is told.
pub fn unjudged(request: &Request<'_>, answer: &Combined, why: &str) -> Value {
    let mut review = response(request, answer);
    let response = &mut review["response"];
    response["allowed"] = json!(false);
    response["status"] = forbidden(why);
    // Whoever let it pass did not decide.
    if let Some(audit) = response["auditAnnotations"].as_object_mut() {
        audit.retain(|key, _| key != "policies" && key != "reasons");
        audit.insert("verdict".to_owned(), json!(Answer::Error.word()));
    }
    review
}

fn forbidden(why: &str) -> Value {
    let message = shortened(why, MESSAGE_CHARACTERS);
    json!({"status": "Failure", "code": 403, "reason": "Forbidden", "message": message})
}

fn envelope(response: Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// Why, in a sentence: who decided and its first reason.
pub fn sentence(answer: &Combined) -> String {
    let by = match answer.deciding.as_slice() {
        [] => return "no policy decided".to_owned(),
        [one] => format!("policy {one}"),
        several => format!("policies {}", several.join(", ")),
    };
    if answer.verdict == Answer::Error {
        let why = answer.errors.first().map_or("", |problem| problem.error.in_short());
        return format!("{by}: {why}");
    }
    let word = if answer.verdict == Answer::Hold { "held by" } else { "denied by" };
    match decisive(answer).next() {
        Some(given) => format!("{word} {by}: {} ({})", given.reason.message, given.reason.code),
        None => format!("{word} {by}"),
    }
}

/// The reasons of those who decided.
fn decisive(answer: &Combined) -> impl Iterator<Item = &GivenReason> {
    let verdict = match answer.verdict {
        Answer::Deny => Verdict::Deny,
        Answer::Hold => Verdict::Hold,
        Answer::Allow => Verdict::Allow,
        Answer::Error | Answer::NoOpinion => Verdict::NoOpinion,
    };
    answer.reasons.iter().filter(move |given| given.verdict == verdict)
}

fn causes(answer: &Combined) -> Vec<Value> {
    let reasons = decisive(answer).map(|given| {
        let mut cause = json!({"reason": given.reason.code, "message": shortened(&given.reason.message, 512)});
        if let Some(field) = &given.reason.field {
            cause["field"] = json!(field);
        }
        cause
    });
    let errors = answer.errors.iter().filter(|_| answer.verdict == Answer::Error);
    let errors = errors.map(|problem| json!({"reason": problem.error.code(), "message": problem.error.in_short()}));
    reasons.chain(errors).take(MOST_CAUSES).collect()
}

/// What the audit log holds. Nothing that differs when the same request is reviewed again: the API server drops a second
/// value of a key.
fn audit(answer: &Combined) -> Map<String, Value> {
    let mut held = Map::new();
    let mut bytes = 0;
    let codes: Vec<&str> = decisive(answer).map(|given| given.reason.code.as_str()).collect();
    let own = [
        ("verdict".to_owned(), answer.verdict.word().to_owned()),
        ("policies".to_owned(), answer.deciding.join(",")),
        ("reasons".to_owned(), codes.join(",")),
    ];
    // What would have been decided comes before what policies say beside.
    let (would, beside): (Vec<_>, Vec<_>) = answer.audit.clone().into_iter().partition(|(key, _)| key.ends_with(WOULD));
    for (key, value) in own.into_iter().chain(would).chain(beside) {
        let all = bytes + key.len() + value.len();
        if !value.is_empty() && key.len() <= AUDIT_KEY && is_qualified(&key) && all <= AUDIT_BYTES {
            bytes = all;
            held.insert(key, json!(value));
        }
    }
    held
}

/// Whether this is the name of a qualified name.
fn is_qualified(key: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [key.bytes().next(), key.bytes().next_back()];
    key.bytes().all(inner) && ends.into_iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

/// The text without control characters, with which the API server would drop it, and not longer than that.
fn printable(text: &str, most: usize) -> Option<String> {
    let text: String = text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect();
    let text = shortened(text.trim(), most);
    (!text.is_empty()).then_some(text)
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ocm_policy_abi::{Csr, Decision, Edit, Reason, Requester, Resource};

    use super::*;
    use crate::error::PolicyError;
    use crate::outcome::{Outcome, PolicyId};
    use crate::review::{Asking, from_admission};
    use crate::{combine, conclude};

    fn outcome(name: &str, result: Result<Decision, PolicyError>) -> Outcome {
        Outcome { policy: Arc::new(PolicyId { name: name.into(), version: "1.0.0".into() }), result, fuel: 1 }
    }

    fn says(verdict: Verdict) -> Outcome {
        let reason = Reason { code: "NameTaken".into(), message: "it is taken".into(), field: Some("a.b".into()) };
        outcome("p", Ok(Decision { verdict, reasons: vec![reason], ..Decision::default() }))
    }

    fn asked(operation: Operation) -> Request<'static> {
        let mut request = Request::new(operation, Requester::default());
        request.stage = Some(Stage::Validating);
        request.id = "7".into();
        request
    }

    fn refused(request: &Request<'_>) -> [bool; 4] {
        let broken = outcome("p", Err(PolicyError::OutOfFuel));
        let answers = [says(Verdict::Allow), says(Verdict::Hold), broken, says(Verdict::Deny)];
        answers.map(|outcome| is_refused(request, &combine(&[outcome])))
    }

    #[test]
    fn what_asks_may_wait_and_what_grants_may_not() {
        let mut create = asked(Operation::Create);
        assert_eq!(refused(&create), [false, false, true, true]);
        create.cluster = Some(Cluster { accepted: true, ..Cluster::default() });
        assert_eq!(refused(&create), [false, true, true, true], "it asks for nothing any more");
        assert_eq!(refused(&asked(Operation::Request)), [false, false, false, true]);
        for grants in [Operation::Accept, Operation::Approve, Operation::Update, Operation::Admit, Operation::Join] {
            assert_eq!(refused(&asked(grants)), [false, true, true, true], "{grants:?}");
        }
    }

    #[test]
    fn nothing_that_fails_keeps_a_door_open() {
        let mut delete = asked(Operation::Delete);
        delete.resource = Some(Resource { operation: "DELETE".into(), ..Resource::default() });
        assert_eq!(refused(&delete), [false, false, false, true]);
        let mut back = asked(Operation::Update);
        back.previous = Some(Cluster { accepted: true, ..Cluster::default() });
        back.cluster = Some(Cluster { generation: Some(2), ..Cluster::default() });
        assert_eq!(refused(&back), [false, false, false, true]);
        back.cluster = Some(Cluster { finalizers: vec!["a".into()], ..Cluster::default() });
        assert_eq!(refused(&back), [false, true, true, true], "something comes with it");
        back.previous = Some(Cluster { deleting: true, finalizers: vec!["a".into()], ..Cluster::default() });
        assert_eq!(refused(&back), [false, false, false, true], "it goes");
        let mut denied = asked(Operation::Approve);
        denied.csr = Some(Csr { adds_condition: Some("Denied".into()), ..Csr::default() });
        assert_eq!(refused(&denied), [false; 4], "whoever denies needs no leave");
        denied.csr = Some(Csr { adds_condition: Some("Approved".into()), ..Csr::default() });
        assert_eq!(refused(&denied), [false, true, true, true]);
    }

    #[test]
    fn what_is_left_out_closes_a_door_only_where_it_may_hide_a_change() {
        let group = "cluster.open-cluster-management.io";
        let taken_back = |[place, member]: [&str; 2], before: Value, after: Value| {
            let cluster = |accepted: bool, told: Value| {
                let mut cluster =
                    json!({"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": accepted}, "status": {}});
                cluster[place][member] = told;
                cluster
            };
            let review = json!({
                "uid": "7", "operation": "UPDATE", "userInfo": {"username": "eva"},
                "kind": {"group": group, "version": "v1", "kind": "ManagedCluster"},
                "resource": {"group": group, "version": "v1", "resource": "managedclusters"},
                "object": cluster(false, after), "oldObject": cluster(true, before),
            });
            refused(&from_admission(&review, &Asking::default()).unwrap())
        };
        let long = |last: &str| "m".repeat(2 << 10) + last;
        let conditions = |last: &str| json!([{"type": "A", "status": "True", "message": long(last)}]);
        let claims = |last: &str| {
            let claims = (0..200).map(|at| json!({"name": format!("c{at}"), "value": "v"}));
            Value::Array(claims.chain([json!({"name": last, "value": "v"})]).collect())
        };
        let entries = |last: &str| {
            let entries = (0..2000).map(|at| (format!("a-{at}"), json!("")));
            Value::Object(entries.chain([(last.to_owned(), json!(""))]).collect())
        };
        for (place, of) in [
            (["status", "conditions"], &conditions as &dyn Fn(&str) -> Value),
            (["status", "clusterClaims"], &claims),
            (["metadata", "annotations"], &entries),
        ] {
            assert_eq!(taken_back(place, of("x"), of("x")), [false, false, false, true], "{place:?}");
            assert_eq!(
                taken_back(place, of("x"), of("y")),
                [false, true, true, true],
                "{place:?}: something comes with it"
            );
            assert_eq!(taken_back(place, Value::Null, of("x")), [false, true, true, true], "{place:?}: it is inflated");
        }
    }

    #[test]
    fn a_refusal_says_who_and_why() {
        let answer = combine(&[says(Verdict::Deny)]);
        let review = response(&asked(Operation::Accept), &answer);
        let expected = json!({
            "uid": "7", "allowed": false,
            "status": {
                "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": "denied by policy p: it is taken (NameTaken)",
                "details": {"causes": [{"reason": "NameTaken", "message": "it is taken", "field": "a.b"}]},
            },
            "auditAnnotations": {"verdict": "deny", "policies": "p", "reasons": "NameTaken"},
        });
        assert_eq!(review["response"], expected);
        assert_eq!(
            (&review["kind"], &review["apiVersion"]),
            (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
        );
        let broken = combine(&[outcome("q", Err(PolicyError::OutOfFuel))]);
        let review = response(&asked(Operation::Accept), &broken);
        assert_eq!(review["response"]["status"]["message"], "policy q: the policy used up its fuel");
        assert_eq!(review["response"]["status"]["details"]["causes"][0]["reason"], "out-of-fuel");
        // What only administrators should know stays with them.
        let settings = PolicyError::Settings("the token s3cret is no number".into());
        let review = response(&asked(Operation::Accept), &combine(&[outcome("q", Err(settings))]));
        assert!(!review.to_string().contains("s3cret"), "{review}");
    }

    #[test]
    fn what_could_not_be_judged_is_refused_with_all_that_policies_said() {
        let decision = Decision { warnings: vec!["look".into()], verdict: Verdict::Allow, ..Decision::default() };
        let audited = Decision { audit: [("k".to_owned(), "v".to_owned())].into_iter().collect(), ..decision };
        let review = unjudged(&asked(Operation::Accept), &combine(&[outcome("p", Ok(audited))]), "nobody knows");
        let expected = json!({
            "uid": "7", "allowed": false,
            "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "nobody knows"},
            "warnings": ["p: look"], "auditAnnotations": {"verdict": "error", "p.k": "v"},
        });
        assert_eq!(review["response"], expected);
    }

    #[test]
    fn what_is_held_is_told_to_whoever_asks() {
        let review = response(&asked(Operation::Create), &combine(&[says(Verdict::Hold)]));
        assert_eq!(review["response"]["allowed"], true);
        assert_eq!(review["response"]["warnings"], json!(["held by policy p: it is taken (NameTaken)"]));
    }

    #[test]
    fn changes_are_made_at_the_mutating_stage_alone() {
        let edit = Edit::SetLabel { key: "a".into(), value: "b".into() };
        let allow = Decision { verdict: Verdict::Allow, edits: vec![edit], ..Decision::default() };
        let object = json!({"metadata": {"name": "c"}});
        let mut request = asked(Operation::Create);
        request.stage = Some(Stage::Mutating);
        let with = |outcomes: &[Outcome], request: &Request<'_>| {
            response(request, &conclude(outcomes, request, Some(&object)))["response"].clone()
        };
        let made = with(&[outcome("p", Ok(allow.clone()))], &request);
        let patch = STANDARD.decode(made["patch"].as_str().unwrap()).unwrap();
        let patch: Value = serde_json::from_slice(&patch).unwrap();
        assert_eq!(patch, json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]));
        // What is refused later is not changed now.
        let nothing = json!({"uid": "7", "allowed": true});
        assert_eq!(with(&[outcome("p", Ok(allow.clone())), says(Verdict::Deny)], &request), nothing);
        request.stage = Some(Stage::Validating);
        let late = with(&[outcome("p", Ok(allow.clone()))], &request);
        assert_eq!((&late["allowed"], &late["patch"]), (&json!(false), &Value::Null));
    }

    #[test]
    fn what_takes_an_acceptance_back_is_changed_by_no_policy() {
        let edit = Edit::SetLabel { key: "a".into(), value: "b".into() };
        let allow = Decision { verdict: Verdict::Allow, edits: vec![edit], ..Decision::default() };
        let object = json!({"metadata": {"name": "c"}});
        let mut request = asked(Operation::Update);
        request.stage = Some(Stage::Mutating);
        let is_changed = |request: &Request<'_>| {
            let answer = conclude(&[outcome("p", Ok(allow.clone()))], request, Some(&object));
            response(request, &answer)["response"].get("patch").is_some()
        };
        request.previous = Some(Cluster { accepted: true, ..Cluster::default() });
        request.cluster = Some(Cluster { accepted: true, lease_duration_seconds: Some(7), ..Cluster::default() });
        assert!(is_changed(&request));
        request.cluster = Some(Cluster::default());
        assert!(!is_changed(&request), "it is to pass whatever becomes of policies");
        request.previous = Some(Cluster { deleting: true, ..Cluster::default() });
        assert!(!is_changed(&request), "it goes");
    }

    #[test]
    fn the_bounds_of_the_api_server_are_kept() {
        let long = "ä\n".repeat(3000);
        let audit = [
            ("a/b".to_owned(), "x".to_owned()),
            ("k".repeat(64), "x".to_owned()),
            ("a".to_owned(), "z".repeat(5000)),
            ("z.would".to_owned(), "z".to_owned()),
        ];
        let decision = Decision {
            verdict: Verdict::Deny,
            reasons: vec![Reason { code: "Long".into(), message: long.clone(), field: None }; 40],
            warnings: vec![long; 40],
            audit: audit.into_iter().collect(),
            ..Decision::default()
        };
        let review = response(&asked(Operation::Accept), &combine(&[outcome("p", Ok(decision))]));
        let response = &review["response"];
        assert_eq!(response["status"]["message"].as_str().unwrap().chars().count(), MESSAGE_CHARACTERS);
        assert_eq!(response["status"]["details"]["causes"].as_array().unwrap().len(), MOST_CAUSES);
        let warnings = response["warnings"].as_array().unwrap();
        assert_eq!(
            (warnings.len(), warnings[0].as_str().unwrap().chars().count()),
            (MOST_WARNINGS, WARNING_CHARACTERS)
        );
        assert!(!warnings[0].as_str().unwrap().contains('\n'));
        let keys: Vec<&String> = response["auditAnnotations"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["p.z.would", "policies", "reasons", "verdict"]);
    }
}

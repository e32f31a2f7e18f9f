use csr_fixtures::Fixture;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::{HubPolicy, ManagedCluster, Registration, RegistrationApproval};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::csr::Request;
use crate::{Failure, Hint, Reason, Remedy};

const DECIDED: &str = "2026-06-01T10:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

/// A cluster that waits, of the UID `u1`.
fn cluster(accepted: bool) -> ManagedCluster {
    read(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1", "uid": "u1", "creationTimestamp": "2026-06-01T09:00:00Z"},
        "spec": {"hubAcceptsClient": accepted},
    }))
}

fn written(status: Value) -> Registration {
    read(json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration", "metadata": {"name": "c1"}, "spec": {},
        "status": status,
    }))
}

/// What the controller writes of a cluster that two policies were asked about.
fn decided(verdict: &str) -> Value {
    let opinion = |policy: &str, verdict: &str| json!({"policy": policy, "verdict": verdict, "codes": ["Because"], "moduleSha256": "a".repeat(64), "generation": 1});
    json!({
        "verdict": verdict, "clusterUid": "u1",
        "requester": {"username": "agent", "credentialId": "JTI=1"},
        "request": {"name": "c1-x", "uid": "r1", "spkiSha256": "b".repeat(64)},
        "decision": {
            "at": DECIDED, "policies": [opinion("fine", "Allow"), opinion("strict", verdict)], "record": "{}",
        },
    })
}

fn with(mut value: Value, member: &str, to: Value) -> Value {
    value[member] = to;
    value
}

/// A status that waits for this, kept out by the one who is named in it.
fn kept_out(status: Value, why: &str) -> Value {
    let (by, policies) = match why.split(": ").next().unwrap_or_default() {
        "a person" => ("Person", Vec::new()),
        "the hub" => ("Hub", Vec::new()),
        policy => ("Policies", policy.split(' ').skip(1).collect()),
    };
    with(with(status, "waitingFor", json!(why)), "keptOutBy", json!({"who": by, "policies": policies}))
}

fn policy(name: &str) -> HubPolicy {
    read(json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
        "metadata": {"name": name, "generation": 1, "creationTimestamp": "2026-05-01T00:00:00Z"},
        "spec": {"module": {"builtin": name}, "mode": "Enforce", "autoApprove": true},
        "status": {"observedGeneration": 1, "sha256": "a".repeat(64), "conditions": [{
            "type": "Loaded", "status": "True", "reason": "Loaded", "message": "",
            "lastTransitionTime": "2026-05-01T00:00:00Z",
        }]},
    }))
}

/// A request of the cluster's agent that waits.
fn request() -> CertificateSigningRequest {
    let mut object = CertificateSigningRequest::default();
    object.metadata.name = Some("c1-x".to_owned());
    object.metadata.uid = Some("r1".to_owned());
    object.metadata.creation_timestamp = Some(Time(time("2026-06-01T09:30:00Z")));
    object.metadata.labels = Some([("open-cluster-management.io/cluster-name".to_owned(), "c1".to_owned())].into());
    object.spec.request = ByteString(Fixture::agent("c1", "a1").pem().into_bytes());
    object.spec.signer_name = "kubernetes.io/kube-apiserver-client".to_owned();
    object.spec.username = Some("agent".to_owned());
    object
}

fn approved(mut object: CertificateSigningRequest) -> Request {
    let condition = CertificateSigningRequestCondition { type_: "Approved".to_owned(), ..Default::default() };
    object.status.get_or_insert_default().conditions = Some(vec![condition]);
    Request::read(&object)
}

fn facts(cluster: ManagedCluster, status: Option<Value>) -> Facts {
    Facts {
        name: "c1".to_owned(),
        cluster: Ok(Some(cluster)),
        registration: Ok(status.map(written)),
        requests: Ok(vec![Request::read(&request())]),
        policies: Ok(vec![policy("fine"), policy("strict")]),
        approvals: Ok(Vec::new()),
        now: time("2026-06-02T00:00:00Z"),
    }
}

fn forbidden<T>() -> Result<T, Failure> {
    Err(Failure::new(Reason::Forbidden, "permission denied"))
}

fn not_served<T>() -> Result<T, Failure> {
    Err(Failure::new(Reason::KindNotServed, "not served"))
}

fn finding(facts: &Facts) -> Finding {
    explain(facts).finding
}

fn remedies(facts: &Facts) -> Vec<Remedy> {
    let hints = explain(facts).next.into_iter();
    hints.filter_map(|hint| if let Hint::Remedy(remedy) = hint { Some(remedy) } else { None }).collect()
}

fn waits(why: &str) -> Finding {
    Finding::Waits { why: why.to_owned() }
}

#[test]
fn whom_policies_let_in_is_told_with_them() {
    let status = with(decided("Allow"), "approvedBy", json!(["strict"]));
    let explained = explain(&facts(cluster(true), Some(status.clone())));
    let let_in = Finding::LetIn { policies: vec!["strict".to_owned()], at: Some(DECIDED.to_owned()) };
    assert_eq!((&explained.finding, explained.next.len()), (&let_in, 0));
    let deciding: Vec<_> =
        explained.opinions.iter().map(|opinion| (opinion.policy.as_str(), opinion.decides)).collect();
    assert_eq!(deciding, [("fine", false), ("strict", true)]);
    assert!(explained.has_record && explained.unread.is_empty());
    // It is on its way.
    let intent = json!({"accept": true, "clusterVersion": "1", "holder": "h", "at": DECIDED});
    let on_its_way = facts(cluster(false), Some(with(status, "intent", intent)));
    let expected = Finding::BeingLetIn { policies: vec!["strict".to_owned()], since: DECIDED.to_owned() };
    assert_eq!(finding(&on_its_way), expected);
}

#[test]
fn policies_that_were_not_asked_are_named_and_those_that_would_let_in_are_looked_at() {
    let passed_over = |policy: &str, generation: u32, unmet: &[&str]| json!({"policy": policy, "generation": generation, "unmetConditions": unmet});
    let mut status = kept_out(decided("NoOpinion"), "a person: no policy that approves allowed it");
    let passed = [passed_over("fine", 1, &["in-europe"]), passed_over("strict", 0, &[]), passed_over("gone", 1, &[])];
    status["decision"] = json!({"at": DECIDED, "notAsked": passed});
    let mut facts = facts(cluster(false), Some(status));
    if let Ok(all) = &mut facts.policies {
        all[1].spec.auto_approve = false;
    }
    let explained = explain(&facts);
    let all: Vec<_> = explained
        .unasked
        .iter()
        .map(|one| (one.policy.as_str(), one.unmet.len(), one.now.is_some(), one.doubts.clone()))
        .collect();
    let expected =
        [("fine", 1, true, vec![]), ("strict", 0, true, vec![Doubt::Changed]), ("gone", 0, false, vec![Doubt::Gone])];
    assert_eq!((all.as_slice(), explained.opinions.len()), (expected.as_slice(), 0));
    let (look, accept) = (Remedy::SeePolicy("fine".to_owned()), Remedy::Accept("c1".to_owned()));
    assert_eq!(remedies(&facts), [look, Remedy::SeeRequests("c1".to_owned()), accept]);
    // Of an earlier cluster of the name.
    let other = with(serde_json::to_value(cluster(false)).unwrap(), "metadata", json!({"name": "c1", "uid": "u2"}));
    facts.cluster = Ok(Some(read(other)));
    assert!(explain(&facts).unasked.is_empty());
}

#[test]
fn an_acceptance_with_an_end_is_told_with_it_and_one_that_has_ended_as_such() {
    let limit = json!({
        "name": "expire-acceptance", "policy": "strict", "due": "2026-06-03T00:00:00Z", "withinSeconds": 60,
        "reason": "a trial", "clusterUid": "u1",
    });
    let status = with(with(decided("Allow"), "approvedBy", json!(["strict"])), "obligations", json!([limit]));
    let explained = explain(&facts(cluster(true), Some(status.clone())));
    let told: Vec<_> = explained.limits.iter().map(|limit| (limit.policy.as_str(), limit.due.as_str())).collect();
    assert_eq!(told, [("strict", "2026-06-03T00:00:00Z")]);
    assert!(explain(&facts(cluster(false), Some(status.clone()))).limits.is_empty(), "it is not accepted");
    // It is being withdrawn: nobody lets it in.
    let intent = json!({"accept": false, "withdraw": true, "clusterVersion": "1", "holder": "h", "at": DECIDED});
    let between = facts(cluster(false), Some(with(status, "intent", intent)));
    assert!(!matches!(finding(&between), Finding::BeingLetIn { .. }), "{:?}", finding(&between));
    let expired = json!({"at": "2026-06-03T00:00:00Z", "policies": ["strict"], "reason": "a trial"});
    let waiting = kept_out(decided("Hold"), "a person: its acceptance ended (AcceptanceExpired)");
    let ended = facts(cluster(false), Some(with(waiting, "expired", expired)));
    let (at, policies) = ("2026-06-03T00:00:00Z".to_owned(), vec!["strict".to_owned()]);
    assert_eq!(finding(&ended), Finding::Expired { at, policies, reason: Some("a trial".to_owned()) });
    assert_eq!(remedies(&ended), [Remedy::SeePolicy("strict".to_owned()), Remedy::Accept("c1".to_owned())]);
}

#[test]
fn whom_no_policy_let_in_a_person_did_or_the_hub() {
    let accepted = |is_certain| Finding::Accepted { is_certain };
    // Held before, and then a person came.
    let mut held = facts(cluster(true), Some(decided("Hold")));
    held.requests = Ok(vec![approved(request())]);
    assert_eq!(finding(&held), accepted(true));
    assert_eq!(finding(&facts(cluster(true), None)), accepted(true));
    let mut unread = facts(cluster(true), None);
    unread.registration = forbidden();
    assert_eq!(finding(&unread), accepted(false));
    unread.registration = not_served();
    assert_eq!(finding(&unread), accepted(true));
}

#[test]
fn what_the_controller_has_not_seen_yet_is_over() {
    let status = kept_out(decided("Hold"), "policy strict: no (Because)");
    let mut late = facts(cluster(true), Some(status));
    assert_eq!(finding(&late), Finding::RequestWaits { why: "policy strict: no (Because)".to_owned() });
    late.requests = Ok(vec![approved(request())]);
    assert_eq!(finding(&late), Finding::Accepted { is_certain: true });
    // Its request was approved and the cluster was not accepted: it waits.
    let mut half = Facts { cluster: Ok(Some(cluster(false))), ..late };
    assert_eq!(finding(&half), waits("policy strict: no (Because)"));
    half.requests = forbidden();
    assert_eq!(finding(&half), waits("policy strict: no (Because)"));
}

#[test]
fn what_keeps_a_cluster_out_comes_with_what_to_do() {
    let of = |verdict: &str, why: &str| facts(cluster(false), Some(kept_out(decided(verdict), why)));
    let (see, accept) = (Remedy::SeePolicy("strict".to_owned()), Remedy::Accept("c1".to_owned()));
    let held = of("Hold", "policy strict: no (Because)");
    assert_eq!(
        (finding(&held), remedies(&held)),
        (waits("policy strict: no (Because)"), vec![see.clone(), accept.clone()])
    );
    let denied = of("Deny", "policy strict: no (Because)");
    let expected = Finding::Denied { why: "policy strict: no (Because)".to_owned() };
    assert_eq!((finding(&denied), remedies(&denied)), (expected, vec![see.clone()]));
    let broken = of("Error", "policy strict: broken (out-of-fuel)");
    assert_eq!(remedies(&broken), [see.clone(), accept.clone()]);
    let nobody = of("Allow", "a person: no policy that approves allowed it");
    assert_eq!(remedies(&nobody), std::slice::from_ref(&accept));

    // Past those who allow it, if all do.
    let passes = |allowed: &[&str], decided: Value| {
        let mut facts = facts(cluster(false), Some(kept_out(decided, "policy strict: no (Because)")));
        for policy in facts.policies.as_mut().expect("they were read") {
            let name = policy.metadata.name.as_deref().expect("a name");
            policy.spec.break_glass = if allowed.contains(&name) { "Allowed".into() } else { "Never".into() };
        }
        remedies(&facts).contains(&Remedy::BreakGlass("c1".to_owned()))
    };
    assert!(passes(&["strict"], decided("Deny")) && passes(&["strict"], decided("Hold")));
    assert!(!passes(&["fine"], decided("Deny")), "the one that allows decides nothing");
    let mut both = decided("Deny");
    both["decision"]["policies"][0]["verdict"] = json!("Deny");
    assert!(!passes(&["strict"], both.clone()) && passes(&["strict", "fine"], both));

    // A rule of accept refuses it before anybody is asked.
    let two_keys = kept_out(json!({"verdict": "Hold", "clusterUid": "u1"}), "a person: 2 keys (TwoKeys)");
    let two_keys = facts(cluster(false), Some(two_keys));
    assert_eq!(finding(&two_keys), waits("a person: 2 keys (TwoKeys)"));
    assert_eq!(remedies(&two_keys), [Remedy::SeeRequests("c1".to_owned()), accept.clone()]);

    // People have to approve it.
    let coded = |code: &str| {
        let mut status = kept_out(decided("Hold"), "policy strict: 0 of 2");
        status["decision"]["policies"][1]["codes"] = json!([code]);
        remedies(&facts(cluster(false), Some(status)))
    };
    assert_eq!(coded("ApprovalsMissing"), [Remedy::ApproveOnly("c1".to_owned()), see.clone(), accept.clone()]);
    assert_eq!(coded("ApprovalsUnproved"), [Remedy::InstallBaseline, see, accept]);
}

#[test]
fn a_person_is_refused_by_the_last_word_of_policies_that_still_count() {
    let of = |verdict: &str, why: &str| facts(cluster(false), Some(kept_out(decided(verdict), why)));
    let refused = |facts: &Facts| explain(facts).refused_by_policies();
    const WHY: &str = "policy strict: no (Because)";
    for verdict in ["Hold", "Error", "Deny"] {
        assert_eq!(refused(&of(verdict, WHY)).as_deref(), Some(WHY), "{verdict}");
    }
    assert_eq!(refused(&of("Allow", "a person: no policy that approves allowed it")), None);
    assert_eq!(refused(&of("Hold", "a person: 2 keys ask for this name (TwoKeys)")), None);
    assert_eq!(refused(&facts(cluster(true), None)), None);
    // Of an accepted cluster: its request waits.
    let waits = facts(cluster(true), Some(kept_out(decided("Hold"), WHY)));
    assert_eq!(refused(&waits).as_deref(), Some(WHY));

    type Change = fn(&mut HubPolicy);
    let changes: [(bool, Change); 6] = [
        (false, |policy| policy.spec.mode = "Warn".into()),
        (false, |policy| policy.spec.mode = "Audit".into()),
        (true, |policy| policy.spec.mode = "Newer".into()),
        (false, |policy| policy.spec.operations = vec!["join".into()]),
        (true, |policy| policy.spec.operations = vec!["join".into(), "accept".into()]),
        (true, |policy| policy.spec.operations = vec!["approve".into()]),
    ];
    for (index, (expected, change)) in changes.into_iter().enumerate() {
        let mut facts = of("Deny", WHY);
        change(&mut facts.policies.as_mut().expect("they were read")[1]);
        assert_eq!(refused(&facts).is_some(), expected, "{index}");
    }
    let mut gone = of("Deny", WHY);
    gone.policies = Ok(vec![policy("fine")]);
    assert_eq!(refused(&gone), None);
    gone.policies = forbidden();
    assert!(refused(&gone).is_some(), "what was not read may count");
}

/// A status of opinions, `fine`'s and `strict`'s, under this verdict.
fn said(verdict: &str, fine: &str, strict: &str, why: &str) -> Value {
    let mut status = kept_out(decided(verdict), why);
    for (index, said) in [fine, strict].into_iter().enumerate() {
        status["decision"]["policies"][index]["verdict"] = json!(said);
    }
    status
}

fn refused(status: Value) -> Option<String> {
    explain(&facts(cluster(false), Some(status))).refused_by_policies()
}

#[test]
fn what_the_hub_refuses_the_controller_is_no_word_of_policies() {
    const HUB: &str = "the hub: etcdserver: request timed out";
    assert_eq!(refused(said("Allow", "Allow", "Allow", HUB)), None);
    assert_eq!(refused(said("NoOpinion", "NoOpinion", "NoOpinion", HUB)), None);
    let nobody_asked = kept_out(json!({"verdict": "Hold", "clusterUid": "u1"}), HUB);
    assert_eq!(refused(nobody_asked), None);
    // What they said before still is their last word.
    assert_eq!(refused(said("Deny", "Allow", "Deny", HUB)).as_deref(), Some("policy strict denies it (Because)"));
}

#[test]
fn who_kept_a_cluster_out_is_told_by_the_decision_where_an_older_release_wrote_of_it() {
    let older = |status: Value, why: &str| with(kept_out(status, why), "keptOutBy", Value::Null);
    const WHY: &str = "policy strict: no (Because)";
    let own_words = Some("policy strict holds it (Because)".to_owned());
    assert_eq!(refused(older(decided("Hold"), WHY)), own_words);
    let newer = with(kept_out(decided("Hold"), WHY), "keptOutBy", json!({"who": "Newer"}));
    assert_eq!(refused(newer), own_words);
    let two_keys = older(json!({"verdict": "Hold", "clusterUid": "u1"}), "a person: 2 keys (TwoKeys)");
    assert_eq!(refused(two_keys.clone()), None);
    assert_eq!(remedies(&facts(cluster(false), Some(two_keys)))[0], Remedy::SeeRequests("c1".to_owned()));
}

#[test]
fn whom_policies_gave_no_more_time_a_person_lets_in_only_where_they_do_not_object() {
    let expired = |verdict: &str| {
        let status = said(verdict, "Allow", verdict, "a person: its acceptance ended (AcceptanceExpired)");
        with(status, "expired", json!({"at": "2026-06-01T00:00:00Z", "policies": ["strict"]}))
    };
    assert!(matches!(finding(&facts(cluster(false), Some(expired("Deny")))), Finding::Expired { .. }));
    for (verdict, why) in [("Deny", "denies it"), ("Hold", "holds it"), ("Error", "gives no usable answer")] {
        assert_eq!(refused(expired(verdict)), Some(format!("policy strict {why} (Because)")));
    }
    assert_eq!(refused(expired("Allow")), None);
    assert_eq!(refused(with(expired("Hold"), "decision", Value::Null)), None, "nobody was asked");
    let mut warns = facts(cluster(false), Some(expired("Deny")));
    warns.policies.as_mut().expect("they were read")[1].spec.mode = "Warn".into();
    assert_eq!(explain(&warns).refused_by_policies(), None);
}

#[test]
fn a_policy_whose_failure_holds_decides_and_refuses() {
    let status = said("Hold", "Allow", "Error", "policy strict: out of fuel (PolicyFailed)");
    let explained = explain(&facts(cluster(false), Some(status.clone())));
    let deciding: Vec<bool> = explained.opinions.iter().map(|opinion| opinion.decides).collect();
    assert_eq!(deciding, [false, true]);
    assert_eq!(refused(status.clone()).as_deref(), Some("policy strict: out of fuel (PolicyFailed)"));
    let mut warns = facts(cluster(false), Some(status));
    warns.policies.as_mut().expect("they were read")[1].spec.mode = "Warn".into();
    assert_eq!(explain(&warns).refused_by_policies(), None, "it does not count any more");
}

#[test]
fn who_did_not_decide_may_refuse_a_person_all_the_same() {
    let status = said("Deny", "Deny", "Hold", "policy fine: no (Because)");
    let mut both = facts(cluster(false), Some(status));
    assert_eq!(explain(&both).refused_by_policies().as_deref(), Some("policy fine: no (Because)"));
    // The one that decides is not asked about people.
    both.policies.as_mut().expect("they were read")[0].spec.operations = vec!["join".into()];
    assert_eq!(explain(&both).refused_by_policies().as_deref(), Some("policy strict holds it (Because)"));
    both.policies.as_mut().expect("they were read")[1].spec.mode = "Audit".into();
    assert_eq!(explain(&both).refused_by_policies(), None);
}

#[test]
fn of_whom_nothing_was_decided_it_is_told_why() {
    let mut nothing = facts(cluster(false), None);
    assert_eq!(finding(&nothing), Finding::NotDecided);
    let accept = Remedy::Accept("c1".to_owned());
    assert_eq!(remedies(&nothing), [Remedy::PolicyController, accept.clone()]);
    let asking = explain(&nothing).asking.expect("somebody asks");
    assert_eq!((asking.requester.as_str(), asking.request.as_deref()), ("agent", Some("c1-x")));
    nothing.registration = not_served();
    nothing.policies = not_served();
    nothing.approvals = not_served();
    assert_eq!(finding(&nothing), Finding::NoPolicyEngine);
    assert_eq!(remedies(&nothing), [Remedy::SeeRequests("c1".to_owned()), accept]);
    assert!(explain(&nothing).unread.is_empty(), "what is not there can be read by nobody");
    nothing.requests = Ok(Vec::new());
    assert_eq!((finding(&nothing), explain(&nothing).next.len()), (Finding::NoRequest, 1));
    nothing.requests = Ok(vec![Request::read(&request())]);
    nothing.registration = forbidden();
    assert_eq!((finding(&nothing), explain(&nothing).unread[0].what), (Finding::Unknown, "registrations"));
    nothing.requests = forbidden();
    nothing.registration = Ok(None);
    assert_eq!(finding(&nothing), Finding::NotDecided);
}

#[test]
fn whom_the_hub_denied_or_lets_go_is_told_before_what_policies_said() {
    let mut denied = cluster(false);
    denied.status.get_or_insert_default().conditions = read(json!([{
        "type": "HubAcceptedManagedCluster", "status": "False", "reason": "HubClusterAdminDenied", "message": "no",
        "lastTransitionTime": DECIDED,
    }]));
    let status = with(decided("Allow"), "approvedBy", json!(["strict"]));
    let denied = facts(denied, Some(status.clone()));
    assert_eq!((finding(&denied), remedies(&denied)), (Finding::NotAccepted, vec![Remedy::Accept("c1".to_owned())]));
    // Its agent, or whoever else writes conditions, has taken away what tells it.
    let seen = |uid: &str| with(status.clone(), "acceptedBefore", json!({"clusterUid": uid, "at": DECIDED}));
    let taken_back = facts(cluster(false), Some(seen("u1")));
    assert_eq!((finding(&taken_back), remedies(&taken_back)), (Finding::NotAccepted, remedies(&denied)));
    assert_ne!(finding(&facts(cluster(false), Some(seen("another")))), Finding::NotAccepted);
    assert!(matches!(finding(&facts(cluster(true), Some(seen("u1")))), Finding::LetIn { .. }));
    let mut leaving = cluster(true);
    leaving.metadata.deletion_timestamp = Some(Time(time(DECIDED)));
    assert_eq!(finding(&facts(leaving, Some(status))), Finding::Detaching);
}

#[test]
fn of_a_name_whose_cluster_is_gone_it_is_told_until_when_it_is_kept() {
    let keys = json!([
        {"spkiSha256": "a", "until": "2026-07-01T00:00:00Z"}, {"spkiSha256": "b", "until": "2026-06-01T00:00:00Z"},
    ]);
    let status = with(with(decided("Allow"), "keys", keys), "approvedBy", json!(["strict"]));
    let mut gone = facts(cluster(true), Some(with(status.clone(), "removedAt", json!(DECIDED))));
    gone.cluster = Ok(None);
    let expected = |at: Option<&str>| Finding::Removed {
        at: at.map(str::to_owned),
        until: Some("2026-07-01T00:00:00Z".to_owned()),
    };
    assert_eq!(finding(&gone), expected(Some(DECIDED)));
    assert!(!explain(&gone).keys.of_earlier);
    gone.cluster = forbidden();
    assert_eq!(finding(&gone), expected(Some(DECIDED)));
    let unseen = Facts { cluster: Ok(None), registration: Ok(Some(written(status.clone()))), ..gone.clone() };
    assert_eq!(finding(&unseen), expected(None));
    let ended = Facts { now: time("2026-08-01T00:00:00Z"), ..gone };
    assert_eq!(finding(&ended), Finding::Removed { at: Some(DECIDED.to_owned()), until: None });

    // A cluster of the same name is another one: nothing of that is its.
    let earlier = with(status, "clusterUid", json!("u0"));
    let again = explain(&facts(cluster(true), Some(earlier.clone())));
    assert_eq!((again.finding, again.opinions.len()), (Finding::Accepted { is_certain: true }, 0));
    assert!(again.keys.of_earlier && again.keys.all.len() == 2 && !again.has_record);
    let waiting = explain(&facts(cluster(false), Some(earlier.clone())));
    assert_eq!(waiting.finding, Finding::NotDecided);
    // What the controller says of the request that waits is about this one, though it keeps the UID of the other.
    let used = "a person: a cluster of this name was here before (NameUsedBefore)";
    let person = with(kept_out(earlier, used), "decision", Value::Null);
    let mut person = facts(cluster(false), Some(person));
    assert_eq!(finding(&person), waits(used));
    person.requests = Ok(Vec::new());
    assert_eq!(finding(&person), Finding::NoRequest, "it spoke of the other one's");
}

#[test]
fn who_may_read_only_what_the_controller_wrote_is_told_that() {
    let only = |status: Value| Facts {
        cluster: forbidden(),
        requests: forbidden(),
        policies: forbidden(),
        approvals: forbidden(),
        ..facts(cluster(true), Some(status))
    };
    let held = only(kept_out(decided("Hold"), "policy strict: no (Because)"));
    let explained = explain(&held);
    assert_eq!(explained.finding, waits("policy strict: no (Because)"));
    let unread: Vec<_> = explained.unread.iter().map(|unread| unread.what).collect();
    let expected = ["managedclusters", "certificatesigningrequests", "hubpolicies", "registrationapprovals"];
    assert_eq!((unread, explained.standing), (expected.to_vec(), None));
    assert!(explained.opinions.iter().all(|opinion| opinion.doubts == [Doubt::Unread]), "{:?}", explained.opinions);
    let let_in = only(with(decided("Allow"), "approvedBy", json!(["strict"])));
    assert!(matches!(finding(&let_in), Finding::LetIn { .. }));
    assert_eq!(finding(&only(decided("NoOpinion"))), Finding::Unknown);
}

#[test]
fn an_opinion_that_is_not_in_force_is_doubted() {
    let doubts = |change: &dyn Fn(&mut HubPolicy)| {
        let mut strict = policy("strict");
        change(&mut strict);
        let mut facts = facts(cluster(false), Some(decided("Hold")));
        facts.policies = Ok(vec![policy("fine"), strict]);
        let opinions = explain(&facts).opinions;
        assert!(opinions[0].doubts.is_empty(), "the other one is as it was");
        opinions[1].doubts.clone()
    };
    assert!(doubts(&|_| {}).is_empty());
    assert_eq!(doubts(&|policy| policy.metadata.name = Some("other".to_owned())), [Doubt::Gone]);
    let status = |policy: &mut HubPolicy| policy.status.clone().expect("it has one");
    assert_eq!(
        doubts(&|policy| {
            let status = status(policy);
            policy.status = Some(ocm_api::policy::HubPolicyStatus { sha256: Some("c".repeat(64)), ..status });
        }),
        [Doubt::OtherModule]
    );
    assert_eq!(
        doubts(&|policy| {
            policy.metadata.generation = Some(2);
            policy.status.get_or_insert_default().observed_generation = Some(2);
        }),
        [Doubt::Changed]
    );
    assert_eq!(doubts(&|policy| policy.metadata.generation = Some(2)), [Doubt::Changed, Doubt::NotObserved]);
    let newer = |policy: &mut HubPolicy| policy.metadata.creation_timestamp = Some(Time(time("2026-06-01T10:00:01Z")));
    assert_eq!(doubts(&newer), [Doubt::Newer]);
    assert_eq!(
        doubts(&|policy| {
            let loaded = &mut policy.status.get_or_insert_default().conditions[0];
            (loaded.status, loaded.message) = ("False".to_owned(), "no such module".to_owned());
        }),
        [Doubt::NotLoaded("no such module".to_owned())]
    );
    let mut none = facts(cluster(false), Some(decided("Hold")));
    none.policies = not_served();
    assert!(explain(&none).opinions.iter().all(|opinion| opinion.doubts == [Doubt::Gone] && opinion.now.is_none()));
}

#[test]
fn approvals_are_told_once_for_each_person_and_whether_they_may_count() {
    let approval = |approver: &str, change: Value| -> RegistrationApproval {
        let mut spec = json!({
            "cluster": {"name": "c1", "uid": "u1"}, "requester": "agent", "approver": approver,
            "expiresAt": "2026-06-03T00:00:00Z",
        });
        for (member, value) in change.as_object().expect("members") {
            spec[member] = value.clone();
        }
        read(json!({
            "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "RegistrationApproval",
            "metadata": {"name": approver}, "spec": spec,
        }))
    };
    let mut withdrawn = approval("gus", json!({}));
    withdrawn.metadata.deletion_timestamp = Some(Time(time(DECIDED)));
    let mut facts = facts(cluster(false), Some(decided("Hold")));
    facts.approvals = Ok(vec![
        approval("ann", json!({"expiresAt": "2026-06-01T00:00:00Z"})),
        approval("ann", json!({})),
        approval("ann", json!({"expiresAt": "2026-06-02T12:00:00Z"})),
        approval("bob", json!({"expiresAt": "2026-06-02T00:00:00Z"})),
        approval("carl", json!({"requester": "other"})),
        approval("agent", json!({})),
        approval("dora", json!({"breakGlass": true, "reason": "a reason that is long enough"})),
        approval("eva", json!({"cluster": {"name": "c1", "uid": "u0"}})),
        approval("fred", json!({"expiresAt": "never"})),
        withdrawn,
    ]);
    let given = explain(&facts).approvals;
    let told: Vec<_> = given.iter().map(|given| (given.approver.as_str(), given.counted.word())).collect();
    let expected = [
        ("agent", "OwnRequest"),
        ("ann", "Yes"),
        ("bob", "Ended"),
        ("carl", "OtherRequester"),
        ("dora", "BreakGlass"),
        ("fred", "Ended"),
        ("gus", "Withdrawn"),
    ];
    assert_eq!(told, expected);
    assert_eq!(given[1].expires_at, "2026-06-03T00:00:00Z", "the one that counts longest");
}

#[test]
fn requests_besides_the_one_that_is_told_are_counted() {
    let mut other = request();
    (other.metadata.name, other.metadata.uid) = (Some("c1-y".to_owned()), Some("r2".to_owned()));
    let status = kept_out(decided("Hold"), "policy strict: no (Because)");
    let mut facts = facts(cluster(false), Some(status));
    facts.requests = Ok(vec![Request::read(&request()), Request::read(&other), approved(other.clone())]);
    let explained = explain(&facts);
    let asking = explained.asking.expect("somebody asks");
    let state = asking.state.map(|state| state.to_string());
    assert_eq!((asking.request.as_deref(), state.as_deref(), explained.others), (Some("c1-x"), Some("Pending"), 1));
    assert_eq!(asking.spki_sha256, Some("b".repeat(64)));
    facts.requests = Ok(vec![Request::read(&other)]);
    assert_eq!(explain(&facts).asking.and_then(|asking| asking.state), None, "it is gone");
}

//! What policies change of a cluster that somebody accepts or changes, and what nobody else may change with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocm_api::policy::HubPolicySpec;
use ocm_policy_abi::{EditGrant, Stage};
use ocm_policy_engine::Deadline;
use ocm_policy_rules::review::{Asking, from_admission};
use ocm_policy_rules::{Answer, Enforcement, Mode, Scope};
use ocm_policy_server::{Source, Wanted};
use serde_json::{Value, json};

use crate::support::{self, Parts, names, review};
use crate::{HUB, asked_about, refused_review, reviewed_at};

const SET: &str = "cluster.open-cluster-management.io/clusterset";
/// The policy controller.
const CONTROLLER: &str = "system:serviceaccount:ocm-policy-engine:ocm-policy-controller";

fn builtin(name: &str, settings: &Value, edits: &[EditGrant]) -> Wanted {
    let source = Source::Builtin(name.to_owned());
    Wanted { source, settings: settings.to_string(), edits: edits.to_vec(), ..names(name, "*") }
}

/// Puts clusters into the set eu.
fn routes() -> Wanted {
    let settings = json!({"rules": [{"clusterSet": "eu", "names": ["*"]}]});
    builtin("cluster-set-routing", &settings, &[EditGrant::ClusterSet])
}

/// Gives clusters the label team where they have none.
fn labels() -> Wanted {
    let settings = json!({"required": [{"key": "team", "default": "a"}]});
    builtin("required-labels", &settings, &[EditGrant::Label { key: "team".to_owned() }])
}

/// The same, asked about what somebody writes and not about joins: nobody knows the certificate requests of clusters here.
fn of_writes(wanted: Wanted) -> Wanted {
    let spec = json!({"module": {"builtin": "b"}, "operations": ["create", "update", "accept"]});
    Wanted { scope: Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).unwrap()), ..wanted }
}

/// Has nobody but a controller change a cluster.
fn no_update() -> Wanted {
    let rule =
        json!({"name": "none", "operations": ["update"], "expression": "false", "message": "nothing is changed"});
    let settings = json!({"rules": [rule]}).to_string();
    let source = Source::Builtin("cel".to_owned());
    Wanted { name: "no-update".to_owned(), source, settings, ..asked_about("update") }
}

/// The review of a write by this user, of a cluster that was so before and is so now.
fn write(user: &str, before: &Value, now: &Value) -> String {
    let mut review: Value = serde_json::from_str(&review("c1")).unwrap();
    let request = &mut review["request"];
    request["operation"] = "UPDATE".into();
    request["userInfo"]["username"] = user.into();
    (request["object"], request["oldObject"]) = (now.clone(), before.clone());
    review.to_string()
}

fn cluster(accepted: bool, labels: &Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1", "uid": "u", "labels": labels}, "spec": {"hubAcceptsClient": accepted},
    })
}

/// The changes that policies make of a write.
fn changes(parts: &Parts, review: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_slice(&reviewed_at(parts, review, Stage::Mutating).body).unwrap();
    assert_eq!(answer["response"]["allowed"], true, "nothing is refused at this stage");
    let Some(patch) = answer["response"]["patch"].as_str() else { return Vec::new() };
    serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap()
}

/// What becomes of a write by this user: the labels as they are stored, or why it is refused.
fn written(parts: &Parts, user: &str, before: &Value, now: &Value) -> Result<Value, String> {
    let patch: json_patch::Patch = serde_json::from_value(changes(parts, &write(user, before, now)).into()).unwrap();
    let mut now = now.clone();
    json_patch::patch(&mut now, &patch).unwrap();
    let review = write(user, before, &now);
    assert_eq!(changes(parts, &review), Vec::<Value>::new(), "what is so is not changed again");
    refused_review(parts, &review).map_or(Ok(now["metadata"]["labels"].clone()), Err)
}

#[tokio::test]
async fn an_acceptance_is_written_with_what_policies_change_and_nothing_else_that_nobody_may_change() {
    let parts = support::parts();
    parts.policies.apply(&[of_writes(routes()), of_writes(labels()), no_update()]).await;
    assert_eq!(parts.policies.failed(), []);
    let before = cluster(false, &json!({SET: "default", "old": "o"}));
    let right = json!({SET: "eu", "team": "a", "old": "o"});
    for user in ["alice", HUB, CONTROLLER] {
        assert_eq!(written(&parts, user, &before, &cluster(true, &before["metadata"]["labels"])), Ok(right.clone()));
    }
    // Nobody made the changes: then it is not accepted without them.
    let unchanged = write("alice", &before, &cluster(true, &before["metadata"]["labels"]));
    let why = refused_review(&parts, &unchanged).unwrap();
    assert_eq!(why, "policies cluster-set-routing, required-labels: the policy may not make a change that it wants");
    // Whatever else stands in the write is somebody's own, also beside what policies write.
    for labels in [
        json!({SET: "eu", "team": "a", "old": "o", "more": "m"}),
        json!({SET: "eu", "team": "a"}),
        json!({SET: "eu", "team": "a", "old": "other"}),
        json!({SET: "eu", "team": "b", "old": "o"}),
    ] {
        let why = written(&parts, "alice", &before, &cluster(true, &labels)).unwrap_err();
        assert!(why.contains("nothing is changed"), "{labels}: {why}");
    }
    let mut lease = cluster(true, &before["metadata"]["labels"]);
    lease["spec"]["leaseDurationSeconds"] = 7.into();
    assert!(written(&parts, "alice", &before, &lease).unwrap_err().contains("nothing is changed"));
    assert!(written(&parts, "alice", &before, &cluster(true, &json!({SET: "prod", "old": "o"}))).is_err());
}

#[tokio::test]
async fn what_policies_set_is_no_move_where_whoever_accepts_changes_something_else() {
    let parts = support::parts();
    parts.policies.apply(&[routes(), labels()]).await;
    let before = cluster(false, &json!({SET: "default", "team": "b"}));
    // Of both questions about it the changes are made: the set of the acceptance, the label of the update.
    let now = cluster(true, &json!({SET: "default", "more": "m"}));
    let right = json!({SET: "eu", "team": "a", "more": "m"});
    assert_eq!(written(&parts, "alice", &before, &now), Ok(right));
    // Nobody moves it by writing what the policy would write, after it was accepted.
    let (accepted, moved) = (cluster(true, &json!({SET: "x"})), cluster(true, &json!({SET: "eu"})));
    assert!(written(&parts, "alice", &accepted, &moved).unwrap_err().contains("SetChanged"));
    // Nor in the write that accepts it: as it was, the policy would not have moved it.
    let foreign = cluster(false, &json!({SET: "x"}));
    assert!(written(&parts, "alice", &foreign, &moved).unwrap_err().contains("SetChanged"));
}

#[tokio::test]
async fn an_update_is_written_with_what_policies_change_and_one_that_takes_the_acceptance_back_as_it_is() {
    let parts = support::parts();
    parts.policies.apply(&[labels()]).await;
    let before = cluster(true, &json!({"team": "b"}));
    assert_eq!(written(&parts, "alice", &before, &cluster(true, &json!({}))), Ok(json!({"team": "a"})));
    assert_eq!(written(&parts, "alice", &before, &cluster(false, &json!({"team": "b"}))), Ok(json!({"team": "b"})));
    // What is deleted is changed no more.
    let mut deleted = before.clone();
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(changes(&parts, &write("alice", &deleted, &cluster(true, &json!({})))), Vec::<Value>::new());
}

#[tokio::test]
async fn who_creates_a_cluster_as_accepted_gets_what_policies_change_of_acceptances() {
    let parts = support::parts();
    let scope = asked_about("accept").scope;
    parts.policies.apply(&[Wanted { scope, ..routes() }]).await;
    let mut created: Value = serde_json::from_str(&review("c1")).unwrap();
    created["request"]["object"]["spec"]["hubAcceptsClient"] = true.into();
    let patch = changes(&parts, &created.to_string());
    assert_eq!(patch, [json!({"op": "add", "path": "/metadata/labels", "value": {SET: "eu"}})]);
    assert!(refused_review(&parts, &created.to_string()).is_some());
    created["request"]["object"]["metadata"]["labels"] = json!({SET: "eu"});
    assert_eq!(refused_review(&parts, &created.to_string()), None);
}

#[tokio::test]
async fn where_policies_disagree_or_one_refuses_nothing_is_changed() {
    let parts = support::parts();
    let other = json!({"rules": [{"clusterSet": "us", "names": ["*"]}]});
    let other = Wanted { name: "other".to_owned(), ..builtin("cluster-set-routing", &other, &[EditGrant::ClusterSet]) };
    let before = cluster(false, &json!({}));
    let review = write("alice", &before, &cluster(true, &json!({})));
    parts.policies.apply(&[routes(), other]).await;
    assert_eq!((changes(&parts, &review), refused_review(&parts, &review).is_some()), (Vec::new(), true));
    parts.policies.apply(&[routes(), names("names", "prod-*")]).await;
    assert_eq!(changes(&parts, &review), Vec::<Value>::new());
    assert!(refused_review(&parts, &review).unwrap().contains("denied by policy names"));
    // Who counts for nothing changes nothing, and is in nobody's way.
    let warns = Enforcement { mode: Mode::Warn, ..Enforcement::default() };
    parts.policies.apply(&[Wanted { enforcement: warns, ..routes() }]).await;
    assert_eq!((changes(&parts, &review), refused_review(&parts, &review)), (Vec::new(), None));
}

#[tokio::test]
async fn where_no_policy_may_change_anything_none_is_asked_before_the_write_is_judged() {
    let parts = support::parts();
    let review = write("alice", &cluster(false, &json!({})), &cluster(true, &json!({})));
    let decides = |parts: &Parts| reviewed_at(parts, &review, Stage::Mutating).decided.is_some();
    parts.policies.apply(&[names("names", "*")]).await;
    assert!(!decides(&parts));
    parts.policies.apply(&[Wanted { edits: Vec::new(), ..routes() }]).await;
    assert!(!decides(&parts), "nothing is granted");
    parts.policies.apply(&[routes()]).await;
    assert!(decides(&parts));
}

#[tokio::test]
async fn what_would_become_of_a_write_is_asked_about_as_policies_change_it() {
    let parts = support::parts();
    parts.policies.apply(&[routes()]).await;
    let review: Value =
        serde_json::from_str(&write("alice", &cluster(false, &json!({})), &cluster(true, &json!({})))).unwrap();
    let asking = Asking { stage: Some(Stage::Validating), wants_object: true, ..Asking::default() };
    let request = from_admission(&review["request"], &asking).unwrap().into_owned();
    let deadline = Deadline::NONE;
    let verdict = |request| parts.policies.evaluate(request, &deadline).answer.verdict;
    let changed = parts.policies.as_changed(request.clone(), &deadline);
    assert_eq!(changed.object.as_ref().unwrap()["metadata"]["labels"], json!({SET: "eu"}));
    assert_eq!((verdict(request.clone()), verdict(changed)), (Answer::Error, Answer::Allow));
    parts.policies.apply(&[]).await;
    assert_eq!(parts.policies.as_changed(request.clone(), &deadline), request);
}

//! The way of a request through the policies of a hub: evidence, edits, obligations, the answer and its records.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ocm_api::policy::HubPolicySpec;
use ocm_policy_abi::{EditGrant, Operation, Query, Request, Resource, Row, Table, Verdict};
use ocm_policy_engine::{
    Asked, Ceiling, Comparison, Deadline, Engine, EvidenceReader, Final, Limits, NoEvidence, NotAsked, Operations,
    Policy, PolicyError, Registry, WantedEdits, compile_here, evaluate, may_edit, wanted_edits,
};
use ocm_policy_rules::{Answer, Enforcement, Mode, Scope, approving, record};
use serde_json::json;
use support::{Guest, ask, engine, request};

fn placed(engine: &Engine, place: &str, guest: &Guest, settings: &str) -> Arc<Policy> {
    let (ceiling, edits) = (Ceiling::default(), [EditGrant::Annotation { key: "example.com/*".into() }]);
    let artifact = compile_here(&guest.module(), settings, &ceiling).expect("it compiles");
    Policy::load_as(place, engine, &artifact, &ceiling, &edits, Scope::default()).expect("it loads")
}

fn install(registry: &Registry, place: &str, policy: Arc<Policy>) {
    registry.install(registry.begin(place), Ok(policy), |_| Ok(())).expect("it is taken");
}

/// A policy that asks for these fields of clusters, under the same name as everybody, and allows.
fn asking(fields: &[&str]) -> Guest {
    let evidence = json!([{"name": "clusters", "source": {"kind": "clusters"}, "fields": fields}]);
    Guest { manifest: Guest::manifest("p", &format!(r#","evidence":{evidence}"#)), ..Guest::answering(ALLOW) }
}

const ALLOW: &str = r#"{"verdict":"allow"}"#;
const DENY: &str = r#"{"verdict":"deny","reasons":[{"code":"No","message":"n"}]}"#;

/// Answers as a hub with one cluster, and counts how often it is asked.
#[derive(Default)]
struct OneCluster {
    asked: AtomicUsize,
    /// Values too few in each row.
    missing: usize,
}

impl EvidenceReader for OneCluster {
    fn table(&self, _: &str, query: &Query, _: &Request<'_>, _: &Deadline) -> Result<Arc<Table<'static>>, PolicyError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let values = query.fields.iter().skip(self.missing).map(|field| json!(field)).collect();
        let row = Row { namespace: None, name: "c1".into(), values, complete: true };
        Ok(Arc::new(Table { revision: "7".into(), complete: true, rows: vec![row] }))
    }
}

#[test]
fn every_policy_gets_the_answers_to_its_own_queries() {
    let (engine, registry) = (engine(), Registry::default());
    install(&registry, "narrow", placed(&engine, "narrow", &asking(&["/a"]), "{}"));
    install(&registry, "wide", placed(&engine, "wide", &asking(&["/a", "/b"]), "{}"));
    let hub = OneCluster::default();
    let answer = evaluate(&registry, request("c"), &hub, &Deadline::NONE);
    assert_eq!(answer.answer.verdict, Answer::Allow);
    let texts: Vec<String> = answer.records().into_iter().map(|record| record.request).collect();
    let values = |text: &String| {
        let request: serde_json::Value = serde_json::from_str(text).unwrap();
        request["evidence"]["clusters"]["rows"][0]["values"].clone()
    };
    assert_eq!(texts.iter().map(values).collect::<Vec<_>>(), [json!(["/a"]), json!(["/a", "/b"])]);
    assert_eq!(answer.records()[0].evidence_revision.as_deref(), Some("7"));

    // What a candidate asks for under the same name is asked once as well, beside what is in force.
    let candidate = placed(&engine, "narrow", &asking(&["/a", "/b", "/c"]), "{}");
    registry.propose("narrow", candidate, 0, Operations::Keep).unwrap();
    let hub = OneCluster::default();
    let answer = evaluate(&registry, request("c"), &hub, &Deadline::NONE);
    let differs: Vec<bool> = answer.compare(&Deadline::NONE, |_, _| ()).iter().map(Comparison::differs).collect();
    assert_eq!(differs, [false]);
    assert_eq!(hub.asked.load(Ordering::Relaxed), 3);
    assert_eq!(values(&answer.records()[0].request), json!(["/a"]), "the record is of what is in force");
}

#[test]
fn evidence_that_is_missing_or_of_another_form_is_an_error() {
    let (engine, registry) = (engine(), Registry::default());
    install(&registry, "p", placed(&engine, "p", &asking(&["/a", "/b"]), "{}"));
    for hub in [&NoEvidence as &dyn EvidenceReader, &OneCluster { missing: 1, ..OneCluster::default() }] {
        let answer = evaluate(&registry, request("c"), hub, &Deadline::NONE);
        assert_eq!((answer.answer.verdict, answer.answer.errors[0].error.code()), (Answer::Error, "evidence"));
        assert!(answer.records().is_empty(), "it could not be asked");
    }
    // Tables that come with a request are found by name, and have to fit as well.
    let mut with = request("c");
    let row = |values: Vec<serde_json::Value>| Row { namespace: None, name: "c1".into(), values, complete: true };
    for (values, verdict) in [(vec![json!(1)], Answer::Error), (vec![json!(1), json!(2)], Answer::Allow)] {
        let table = Table { revision: "1".into(), complete: true, rows: vec![row(values)] };
        with.evidence = [("clusters".to_owned(), table)].into_iter().collect();
        assert_eq!(evaluate(&registry, with.clone(), &NoEvidence, &Deadline::NONE).answer.verdict, verdict);
    }
}

#[test]
fn a_table_that_two_policies_may_mean_is_none_of_theirs() {
    let (engine, registry) = (engine(), Registry::default());
    install(&registry, "names", placed(&engine, "names", &asking(&["/metadata/name"]), "{}"));
    install(&registry, "labels", placed(&engine, "labels", &asking(&["/metadata/labels"]), "{}"));
    let row = Row { namespace: None, name: "c1".into(), values: vec![json!("x")], complete: true };
    let table = Table { revision: "1".into(), complete: true, rows: vec![row] };
    let given = |names: &[&str]| {
        let mut with = request("c");
        with.evidence = names.iter().map(|name| ((*name).to_owned(), table.clone())).collect();
        let answer = evaluate(&registry, with, &NoEvidence, &Deadline::NONE).answer;
        answer.errors.into_iter().map(|problem| (problem.policies, problem.error.to_string())).collect::<Vec<_>>()
    };
    let both = given(&["clusters"]);
    assert_eq!(both.len(), 2);
    for (policies, why) in &both {
        assert!(why.contains("different things") && why.contains(&format!("{}/clusters", policies[0])), "{why}");
    }
    assert!(matches!(&*given(&["clusters", "names/clusters"]), [(policies, _)] if *policies == ["labels"]));
    assert_eq!(given(&["labels/clusters", "names/clusters"]), []);
    // The same query is the same table for both.
    install(&registry, "labels", placed(&engine, "labels", &asking(&["/metadata/name"]), "{}"));
    assert_eq!(given(&["clusters"]), []);
}

#[test]
fn whoever_judges_objects_is_not_asked_without() {
    let (engine, registry) = (engine(), Registry::default());
    let wants = Guest { manifest: Guest::manifest("p", r#","wantsObject":true"#), ..Guest::answering(ALLOW) };
    install(&registry, "p", placed(&engine, "p", &wants, "{}"));
    let ask = |resource: bool, object: bool| {
        let mut request = request("c");
        request.resource = resource.then(|| Resource { operation: "CREATE".into(), ..Resource::default() });
        request.object = request.object.filter(|_| object);
        evaluate(&registry, request, &NoEvidence, &Deadline::NONE).answer.verdict
    };
    assert_eq!([ask(true, true), ask(true, false), ask(false, false)], [Answer::Allow, Answer::Error, Answer::Allow]);
}

#[test]
fn what_the_hub_cannot_carry_out_is_no_allow() {
    let (engine, registry) = (engine(), Registry::default());
    let annotate = |value: &str| {
        let edits = r#","edits":[{"edit":"annotation","key":"example.com/*"}]"#;
        let answer =
            json!({"verdict": "allow", "edits": [{"op": "set-annotation", "key": "example.com/a", "value": value}]});
        Guest { manifest: Guest::manifest("p", edits), ..Guest::answering(&answer.to_string()) }
    };
    install(&registry, "p", placed(&engine, "p", &annotate("x"), "{}"));
    let answer = ask(&registry, "c").answer;
    assert_eq!(answer.verdict, Answer::Allow);
    assert_eq!(answer.patch, [json!({"op": "add", "path": "/metadata/annotations", "value": {"example.com/a": "x"}})]);
    // The object is full already.
    let mut full = request("c");
    let object = json!({"metadata": {"name": "c", "annotations": {"old": "x".repeat(256 << 10)}}});
    full.object = Some(object);
    let answer = evaluate(&registry, full, &NoEvidence, &Deadline::NONE).answer;
    assert_eq!((answer.verdict, answer.errors[0].error.code(), answer.patch.len()), (Answer::Error, "edit-refused", 0));

    let oblige = |name: &str| {
        Guest::answering(&format!(r#"{{"verdict":"allow","obligations":[{{"name":"{name}","withinSeconds":60}}]}}"#))
    };
    install(&registry, "p", placed(&engine, "p", &oblige("expire-acceptence"), "{}"));
    let mut knows = request("c");
    knows.obligations = vec!["expire-acceptance".into()];
    let answer = evaluate(&registry, knows.clone(), &NoEvidence, &Deadline::NONE).answer;
    assert_eq!((answer.verdict, answer.errors[0].error.code()), (Answer::Error, "unknown-obligation"));
    install(&registry, "p", placed(&engine, "p", &oblige("expire-acceptance"), "{}"));
    let answer = evaluate(&registry, knows, &NoEvidence, &Deadline::NONE).answer;
    assert_eq!((answer.verdict, answer.due().count()), (Answer::Allow, 1));
}

#[test]
fn edits_are_told_whatever_others_say_and_nobody_else_is_asked() {
    let (engine, registry) = (engine(), Registry::default());
    let manifest = |name: &str, edits: bool| {
        let evidence = r#","evidence":[{"name":"clusters","source":{"kind":"clusters"},"fields":["/a"]}]"#;
        let edits = if edits { r#","edits":[{"edit":"annotation","key":"example.com/*"}]"# } else { "" };
        Guest::manifest(name, &format!("{evidence}{edits}"))
    };
    let edit = json!({"op": "set-annotation", "key": "example.com/a", "value": "x"});
    let allows = json!({"verdict": "allow", "edits": [edit]}).to_string();
    let annotates = Guest { manifest: manifest("annotates", true), ..Guest::answering(&allows) };
    let denies = Guest { manifest: manifest("denies", false), ..Guest::answering(r#"{"verdict":"deny"}"#) };
    install(&registry, "denies", placed(&engine, "denies", &denies, "{}"));
    let hub = OneCluster::default();
    let wanted = |hub: &OneCluster| wanted_edits(&registry, &request("c"), hub, &Deadline::NONE);
    let may_edit = || may_edit(&registry, &request("c"));
    assert_eq!((wanted(&hub), hub.asked.load(Ordering::Relaxed)), (WantedEdits::default(), 0), "it may change nothing");
    assert!(!may_edit());
    install(&registry, "annotates", placed(&engine, "annotates", &annotates, "{}"));
    let found = wanted(&hub);
    assert_eq!((found.edits.len(), hub.asked.load(Ordering::Relaxed)), (1, 1));
    assert!(matches!(&*found.fuel, [(place, 1..)] if place == "annotates"), "{:?}", found.fuel);
    assert!(may_edit());
    // A table that came with the request, and that another policy may mean, is not read here either.
    let mut with = request("c");
    let row = Row { namespace: None, name: "c1".into(), values: vec![json!("x")], complete: true };
    let table = Table { revision: "1".into(), complete: true, rows: vec![row] };
    with.evidence = [("clusters".to_owned(), table)].into_iter().collect();
    let given = || wanted_edits(&registry, &with, &NoEvidence, &Deadline::NONE).edits.len();
    assert_eq!(given(), 1);
    install(&registry, "other", placed(&engine, "other", &asking(&["/other"]), "{}"));
    assert_eq!(given(), 0);
    assert!(registry.remove("other"));
    // What is only recorded changes nothing.
    let audit = Enforcement { mode: Mode::Audit, ..Enforcement::default() };
    let again = registry.begin("annotates").enforcement(audit);
    registry.install(again, Ok(placed(&engine, "annotates", &annotates, "{}")), |_| Ok(())).unwrap();
    assert!(wanted(&hub) == WantedEdits::default() && !may_edit());
}

#[test]
fn whoever_is_only_asked_since_a_request_does_not_tell_objects_and_allows_nothing() {
    let (engine, registry, ceiling) = (engine(), Registry::default(), Ceiling::default());
    let grants = [EditGrant::Annotation { key: "example.com/*".into() }];
    let edits = r#"{"verdict":"allow","edits":[{"op":"set-annotation","key":"example.com/a","value":"b"}]}"#;
    let announced = r#","edits":[{"edit":"annotation","key":"example.com/*"}]"#;
    let groups = json!({"requesterGroups": ["admins"]});
    let labels = json!({"clusterSelector": {"matchLabels": {"env": "prod"}}});
    let place = |says: &str, matches: &serde_json::Value| {
        let spec = json!({"module": {"builtin": "p"}, "match": matches});
        let scope = Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).expect("it is a policy"));
        let guest = Guest { manifest: Guest::manifest("p", announced), ..Guest::answering(says) };
        let artifact = compile_here(&guest.module(), "{}", &ceiling).expect("it compiles");
        let policy = Policy::load_as("p", &engine, &artifact, &ceiling, &grants, scope).expect("it loads");
        let enforcement = Enforcement { auto_approve: true, ..Enforcement::default() };
        registry.install(registry.begin("p").enforcement(enforcement), Ok(policy), |_| Ok(())).expect("it is taken");
    };
    let mut by_server = request("c");
    by_server.requester.username = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa".into();
    by_server.requester.uid = Some("u".into());
    by_server.requester.groups =
        vec!["system:serviceaccounts".into(), "system:serviceaccounts:open-cluster-management-hub".into()];
    let mut by_admin = request("c");
    by_admin.requester.groups = vec!["admins".into()];
    let with = |labels: &[(&'static str, &'static str)], cut: bool| {
        let mut request = request("c");
        let cluster = request.cluster.as_mut().expect("a cluster");
        cluster.labels = labels.iter().map(|(key, value)| (*key, (*value).into())).collect();
        cluster.truncated = cut.then(|| "labels".into()).into_iter().collect();
        request
    };
    for (matches, known, unknown) in
        [(groups, by_admin, by_server), (labels, with(&[("env", "prod")], true), with(&[], true))]
    {
        let said = |request: &Request<'static>| evaluate(&registry, request.clone(), &NoEvidence, &Deadline::NONE);
        let approves = |made: &Final| {
            let said = made.asked().iter().map(|one| (one.enforcement(), one.outcome()));
            !approving(made.answer.verdict, said).is_empty()
        };
        place(edits, &matches);
        let allowed = said(&known);
        assert_eq!((allowed.answer.verdict, allowed.answer.edits.len()), (Answer::Allow, 1), "{matches}");
        assert!(approves(&allowed) && !allowed.records()[0].only_objects);
        let silent = said(&unknown);
        assert_eq!((silent.answer.verdict, silent.answer.edits.len()), (Answer::NoOpinion, 0), "{matches}");
        assert!(!approves(&silent) && silent.not_asked().is_empty());
        let record = &silent.records()[0];
        let record::Answered::Decision(decision) = &record.answer else { panic!("{record:?}") };
        assert_eq!((record.only_objects, decision.verdict), (true, Verdict::NoOpinion));
        assert!(wanted_edits(&registry, &unknown, &NoEvidence, &Deadline::NONE).edits.is_empty(), "{matches}");
        place(DENY, &matches);
        assert_eq!(said(&unknown).answer.verdict, Answer::Deny, "{matches}");
    }
}

/// What has a policy asked under a condition, of which this is the answer.
fn under(engine: &Engine, answer: &str) -> Asked {
    let spec = json!({"module": {"builtin": "p"}, "match": {"conditions": [{"name": "n", "expression": "true"}]}});
    let scope = Scope::from(&serde_json::from_value::<HubPolicySpec>(spec).expect("it is a policy"));
    let reasons =
        r#","reasons":[{"code":"EvidenceIncomplete","description":"d"},{"code":"RuleViolated","description":"d"}]"#;
    let guest = Guest { manifest: Guest::manifest("cel", reasons), ..Guest::answering(answer) };
    Asked::of(scope, engine, |settings, ceiling| compile_here(&guest.module(), settings, ceiling)).expect("it loads")
}

fn placed_under(engine: &Engine, condition: &str) -> Arc<Policy> {
    let ceiling = Ceiling::default();
    let operations = r#""operations":["create","update","delete","accept"]"#;
    let guest = Guest::answering(DENY);
    let manifest = guest.manifest.replace(r#""operations":["create","update"]"#, operations);
    let artifact = compile_here(&Guest { manifest, ..guest }.module(), "{}", &ceiling).expect("it compiles");
    Policy::load_as("p", engine, &artifact, &ceiling, &[], under(engine, condition)).expect("it loads")
}

#[test]
fn what_a_condition_is_not_shown_hides_no_change_from_a_policy_and_lets_nobody_in() {
    let (engine, registry) = (engine(), Registry::default());
    let unknown = r#"{"verdict":"hold","reasons":[{"code":"EvidenceIncomplete","message":"m"}]}"#;
    install(&registry, "p", placed_under(&engine, unknown));
    for (operation, verdict) in [
        (Operation::Update, Answer::Deny),
        (Operation::Delete, Answer::Deny),
        (Operation::Create, Answer::Error),
        (Operation::Accept, Answer::Error),
    ] {
        let asked = Request { operation, ..request("c") };
        let answer = evaluate(&registry, asked, &NoEvidence, &Deadline::NONE).answer;
        assert_eq!(answer.verdict, verdict, "{operation:?}: {:?}", answer.errors);
    }
}

#[test]
fn what_conditions_cost_counts_for_their_policy_whether_it_is_asked_or_not() {
    let (engine, registry) = (engine(), Registry::default());
    let fuel = |made: &Final| made.fuel().map(|(place, fuel)| (place.to_owned(), fuel)).collect::<Vec<_>>();
    install(&registry, "p", placed(&engine, "p", &Guest::answering(DENY), "{}"));
    let plain = ask(&registry, "c").asked()[0].fuel();
    install(&registry, "p", placed_under(&engine, r#"{"verdict":"allow"}"#));
    let asked = ask(&registry, "c");
    let one = &asked.asked()[0];
    assert_eq!(one.outcome().fuel, plain, "a record is of the decision alone");
    assert!(one.fuel() > plain && fuel(&asked) == [("p".to_owned(), one.fuel())]);
    let unmet = r#"{"verdict":"deny","reasons":[{"code":"RuleViolated","message":"n"}]}"#;
    install(&registry, "p", placed_under(&engine, unmet));
    let left_alone = ask(&registry, "c");
    assert_eq!(left_alone.not_asked(), [("p".to_owned(), NotAsked::Conditions(vec!["n".to_owned()]))]);
    assert!(matches!(&*fuel(&left_alone), [(place, 1..)] if place == "p"));
}

#[test]
fn nobody_asked_is_no_opinion_and_records_hold_what_was_given() {
    let (engine, registry) = (engine(), Registry::default());
    let nobody = ask(&registry, "c");
    assert_eq!((nobody.answer.verdict, nobody.asked().len()), (Answer::NoOpinion, 0));
    install(&registry, "p", placed(&engine, "p", &Guest::answering(ALLOW), r#"{ "b" : 1 }"#));
    let answer = ask(&registry, "c");
    let records = answer.records();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert!(record.is_whole() && record.settings == r#"{ "b" : 1 }"#);
    assert_eq!(record.policy.name, "p");
    let Limits { fuel, ticks, memory_bytes, table_elements, host_bytes } = Ceiling::default().usual;
    let limits = record::Limits { fuel, memory_bytes, millis: ticks, table_elements, host_bytes };
    assert_eq!(record.limits, limits);
    let asked = answer.asked();
    assert_eq!(asked[0].outcome().result.as_ref().map(|decision| decision.verdict), Ok(Verdict::Allow));
    let mut deletion = request("c");
    deletion.operation = Operation::Delete;
    let answer = evaluate(&registry, deletion, &NoEvidence, &Deadline::NONE);
    assert_eq!(answer.not_asked(), [("p".to_owned(), NotAsked::OtherOperations)]);
    assert_eq!(answer.answer.verdict, Answer::NoOpinion);
}

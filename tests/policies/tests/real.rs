//! Policies that were written for other engines, and programs that know of none.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use ocm_policy_abi::{Decision, Edit, Operation, Row, Table, Verdict};
use ocm_policy_engine::{
    Ceiling, Engine, EngineSettings, Kind, Outcome, Policy, PolicyError, Question, annotate, compile_here,
};
use ocm_policy_rules::Bounds;
use ocm_policy_rules::adapt;
use serde_json::{Value, json};

use asked::{kubewarden, request};

#[path = "support/asked.rs"]
mod asked;
#[path = "../guests/kubewarden/src/judge.rs"]
mod judge;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    Engine::new(&EngineSettings { instances: 32, ..EngineSettings::default() }).expect("it runs here")
});

fn cache() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn load(module: &[u8], settings: &Value) -> Result<Arc<Policy>, PolicyError> {
    let artifact = compile_here(module, &settings.to_string(), &Ceiling::default())?;
    Policy::load(&ENGINE, &artifact, &Ceiling::default(), &artifact.header().manifest.edits)
}

fn question(name: &str) -> Question {
    Question::new(request(name, &json!({"env": "prod"})))
}

/// The answer, which must be the same, for the same fuel, when it is asked for again.
fn ask(policy: &Arc<Policy>, question: &Question) -> Outcome {
    let first = policy.decide(question).outcome.clone();
    assert_eq!(policy.decide(question).outcome, first);
    first
}

#[test]
fn a_go_program() {
    let module = policy_tests::go(cache());
    let with = |settings: Value| load(&module, &settings).expect("it can be loaded");
    let policy = with(json!({"prefix": "prod-"}));
    assert_eq!(policy.header().kind, Kind::WasiCommand);
    assert_eq!((policy.manifest().name.as_str(), policy.judges(Operation::Update)), ("go-prefix", false));
    let allowed = ask(&policy, &question("prod-1")).result.expect("it decides");
    assert_eq!((allowed.verdict, allowed.audit["year"].as_str()), (Verdict::Allow, "2026"));
    let denied = ask(&policy, &question("dev-1")).result.expect("it decides");
    assert_eq!(
        (denied.verdict, denied.reasons[0].message.as_str()),
        (Verdict::Deny, "dev-1 does not begin with prod-")
    );
    assert_ne!(allowed.audit["drawn"], denied.audit["drawn"], "other requests, other numbers");
    for (way, error) in [
        ("panic", "exit"),
        ("exit", "exit"),
        ("loop", "out-of-fuel"),
        ("memory", "out-of-memory"),
        ("print", "too-large"),
    ] {
        let outcome = ask(&with(json!({"prefix": "", "break": way})), &question("prod-1"));
        assert_eq!(outcome.result.map_err(|error| error.code()).map(|d| d.verdict), Err(error), "{way}");
    }
    let slept = ask(&with(json!({"prefix": "", "break": "sleep"})), &question("prod-1"));
    assert_eq!(slept.result.expect("an hour is over at once").verdict, Verdict::Allow);
}

#[test]
fn a_rust_program() {
    let policy = load(&policy_tests::rust(cache()), &json!({})).expect("it can be loaded");
    assert!(policy.manifest().name.starts_with("wasi-command-"));
    assert_eq!(ask(&policy, &question("prod-1")).result.expect("it decides").verdict, Verdict::Allow);
    assert_eq!(ask(&policy, &question("dev-1")).result.expect("it decides").verdict, Verdict::Deny);
    let Err(PolicyError::Trap(said)) = ask(&policy, &question("panic please")).result else { panic!("no trap") };
    assert!(said.contains("as was asked"), "{said}");
}

#[test]
fn a_kubewarden_policy_decides_as_its_own_logic_does() {
    let [called, program] = kubewarden(cache());
    let settings = [json!({"prefix": "prod-"}), json!({"prefix": "dev", "default_region": "eu"})];
    let kinds = [(&called, Kind::KubewardenWapc), (&program, Kind::KubewardenWasi)];
    for ((module, kind), settings) in kinds.iter().flat_map(|kind| settings.iter().map(move |one| (kind, one))) {
        let policy = load(module, settings).expect("it can be loaded");
        assert_eq!((policy.header().kind, policy.manifest().name.as_str()), (*kind, "prefix"));
        let own: judge::Settings = serde_json::from_value(settings.clone()).expect("they are settings");
        assert_eq!(judge::check(&own), Ok(()));
        for name in ["prod-1", "dev-1", "x"] {
            for labels in [json!({}), json!({"region": "us"}), json!({"env": "ä\"\\\u{1F600}"})] {
                let request = request(name, &labels);
                let object = request.object.clone().expect("there is an object");
                let natively = judge::judge(&object, &own);
                let question = Question::new(request);
                let decision = ask(&policy, &question).result.expect("it decides");
                match natively {
                    Err(why) => {
                        assert_eq!((decision.verdict, &decision.reasons[0].message), (Verdict::Deny, &why));
                        assert_eq!(decision.audit["code"], "403");
                    }
                    // That there is nothing against it is no opinion.
                    Ok(None) => assert_eq!(decision, Decision::default()),
                    Ok(Some(changed)) => {
                        let edits = adapt::diff(&object, &changed).expect("it can be done by edits");
                        assert_eq!(edits, [Edit::SetLabel { key: "region".to_owned(), value: "eu".to_owned() }]);
                        assert_eq!((decision.verdict, decision.edits), (Verdict::Allow, edits));
                    }
                }
            }
        }
    }
}

#[test]
fn a_kubewarden_policy_judges_its_settings_and_may_not_ask() {
    let [called, program] = kubewarden(cache());
    for module in [&called, &program] {
        let refused = load(module, &json!({"prefix": ""})).err();
        assert_eq!(refused, Some(PolicyError::Settings("the prefix must not be empty".to_owned())));
        let wrong = load(module, &json!({"prefix": 5})).err().expect("it is refused").to_string();
        assert!(wrong.contains("it cannot judge its settings"), "{wrong}");
    }
    let policy = load(&called, &json!({"prefix": "prod-", "look_up": true})).expect("it can be loaded");
    let Err(PolicyError::HostCall(name)) = ask(&policy, &question("prod-1")).result else {
        panic!("it was not denied")
    };
    assert_eq!(name, "net/v1/dns_lookup_host");
}

#[test]
fn rego_decides_as_opa_does() {
    let (module, _) = policy_tests::rego(cache(), "plain.rego", "ocm/decision");
    let settings = json!({"prefix": "prod-"});
    let policy = load(&module, &settings).expect("it can be loaded");
    assert_eq!(policy.header().kind, Kind::Opa);
    for name in ["prod-1", "dev-1"] {
        for labels in [json!({}), json!({"env": "forbidden"}), json!({"env": "%v \"quoted\" ä"})] {
            let request = request(name, &labels);
            let data = json!({"settings": settings}).to_string();
            let input = adapt::opa_input(&request).to_string();
            let value = policy_tests::opa_eval(cache(), "plain.rego", "data.ocm.decision", &data, &input);
            let theirs = format!("[{{\"result\":{value}}}]");
            let theirs = adapt::opa_result(theirs.as_bytes(), "ocm/decision", &Bounds::default());
            let ours = ask(&policy, &Question::new(request)).result;
            assert_eq!(ours, theirs, "{name} {labels}");
        }
    }
}

#[test]
fn functions_of_the_host_answer_as_those_of_opa() {
    let (module, _) = policy_tests::rego(cache(), "functions.rego", "ocm/deny");
    let policy = load(&module, &json!({})).expect("it can be loaded");
    let request = request("prod-1", &json!({"env": "prod"}));
    let data = json!({"settings": {}}).to_string();
    let input = adapt::opa_input(&request).to_string();
    let value = policy_tests::opa_eval(cache(), "functions.rego", "data.ocm.deny", &data, &input);
    let messages: Vec<String> = serde_json::from_str(&value).expect("OPA says why");
    assert!(messages.len() == 19 && messages.contains(&"sets".to_owned()), "{messages:?}");
    let theirs = adapt::opa_result(format!("[{{\"result\":{value}}}]").as_bytes(), "ocm/deny", &Bounds::default());
    // Sets of strings have different orders.
    let sorted = |result: Result<Decision, PolicyError>| {
        let mut decision = result.expect("it decides");
        decision.reasons.sort_by(|a, b| a.message.cmp(&b.message));
        decision
    };
    assert_eq!(sorted(ask(&policy, &Question::new(request)).result), sorted(theirs));
}

#[test]
fn gatekeeper_decides_as_opa_does() {
    let (module, _) = policy_tests::rego(cache(), "gatekeeper.rego", "k8srequired/violation");
    let metadata = json!({"protocolVersion": "v1", "executionMode": "gatekeeper", "rules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]});
    let module = annotate(&module, "io.kubewarden.metadata", metadata.to_string().as_bytes());
    for parameters in [json!({"labels": ["owner"]}), json!({"labels": ["owner", "team", "env"]}), json!({"labels": []})]
    {
        let policy = load(&module, &parameters).expect("it can be loaded");
        assert_eq!(policy.header().kind, Kind::Gatekeeper);
        for labels in [json!({}), json!({"owner": "me"}), json!({"owner": "a", "team": "b", "env": "c"})] {
            let request = request("prod-1", &labels);
            let input = adapt::gatekeeper_input(&request, &parameters).to_string();
            let query = "data.k8srequired.violation";
            let value = policy_tests::opa_eval(cache(), "gatekeeper.rego", query, "{}", &input);
            let theirs = format!("[{{\"result\":{value}}}]");
            let theirs = adapt::gatekeeper_result(theirs.as_bytes(), &Bounds::default());
            let ours = ask(&policy, &Question::new(request)).result;
            assert_eq!(ours, theirs, "{parameters} {labels}");
        }
    }
}

/// A template that knows of other objects, in the words of Kubewarden.
fn aware(resources: Value) -> Vec<u8> {
    let (module, _) = policy_tests::rego(cache(), "inventory.rego", "k8suniqueteam/violation");
    let metadata = json!({"protocolVersion": "v1", "executionMode": "gatekeeper", "contextAwareResources": resources,
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]});
    annotate(&module, "io.kubewarden.metadata", metadata.to_string().as_bytes())
}

#[test]
fn a_template_with_an_inventory_decides_as_opa_does() {
    let silent = load(&aware(json!([])), &json!({})).err().expect("it is refused").to_string();
    assert!(silent.contains("data.inventory"), "{silent}");
    let parameters = json!({"registries": ["quay.io/", "registry.k8s.io/"]});
    let module = aware(json!([{"apiVersion": "v1", "kind": "Namespace"}]));
    let policy = load(&module, &parameters).expect("it can be loaded");
    let namespace = |name: &str, team: &str| {
        json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"team": team}}})
    };
    for (verb, labels, image, there, violations) in [
        ("CREATE", json!({"team": "a"}), "quay.io/x", vec![], 0),
        ("CREATE", json!({"team": "a"}), "quay.io/x", vec![namespace("other", "a")], 1),
        ("CREATE", json!({"team": "a"}), "docker.io/x", vec![namespace("other", "b"), namespace("more", "a")], 2),
        ("DELETE", json!({"team": "a", "protected": "true"}), "quay.io/x", vec![], 1),
        ("DELETE", json!({"team": "a"}), "quay.io/x", vec![], 0),
    ] {
        let mut request = request("prod-1", &labels);
        let mut object = request.object.take().expect("there is an object");
        object["metadata"]["annotations"] = json!({"image": image});
        let resource = request.resource.as_mut().expect("there is a resource");
        resource.operation = verb.into();
        match verb {
            "DELETE" => request.previous_object = Some(object),
            _ => request.object = Some(object),
        }
        let input = adapt::gatekeeper_input(&request, &parameters).to_string();
        let row = |value: &Value| Row {
            namespace: None,
            name: value["metadata"]["name"].as_str().expect("it has a name").to_owned().into(),
            values: vec![value.clone()],
            complete: true,
        };
        let table = Table { revision: "1".into(), complete: true, rows: there.iter().map(row).collect() };
        let query = &policy.manifest().evidence[0];
        let inventory = adapt::inventory([(query, &table)]).expect("it is whole");
        let data = json!({"inventory": inventory}).to_string();
        let value = policy_tests::opa_eval(cache(), "inventory.rego", "data.k8suniqueteam.violation", &data, &input);
        let theirs = format!("[{{\"result\":{value}}}]");
        let theirs = adapt::gatekeeper_result(theirs.as_bytes(), &Bounds::default()).expect("it decides");
        assert_eq!(theirs.reasons.len(), violations, "{verb} {labels} {image}");
        // Without the table there is no answer, with it there is the one of OPA.
        let missing = ask(&policy, &Question::new(request.clone())).result;
        assert_eq!(missing.map_err(|error| error.code()).map(|d| d.verdict), Err("evidence"));
        request.evidence.insert("v1-namespace", Table { complete: false, ..table.clone() });
        let cut = ask(&policy, &Question::new(request.clone())).result;
        assert_eq!(cut.map_err(|error| error.code()).map(|d| d.verdict), Err("evidence"));
        request.evidence.insert("v1-namespace", table);
        // A set has no order.
        let sorted = |mut decision: Decision| {
            decision.reasons.sort_by(|a, b| a.message.cmp(&b.message));
            decision
        };
        let ours = ask(&policy, &Question::new(request)).result.map(sorted);
        assert_eq!(ours, Ok(sorted(theirs)), "{verb} {labels} {image}");
    }
}

#[test]
fn rego_that_wants_the_network_is_refused() {
    let (module, _) = policy_tests::rego(cache(), "network.rego", "ocm/allow");
    let refused = load(&module, &json!({})).err();
    let why = "it needs built-in functions that are not there: http.send";
    assert_eq!(refused, Some(PolicyError::Load(why.to_owned())));
}

//! `policy explain CLUSTER` against a server that answers as a hub, and words that cannot be acted upon.

use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, Run, check, kubeconfig};
use serde_json::{Value, json};

use crate::guest::Guest;

const POLICIES: &str = "/apis/policy.kubectl-ocm.dev/v1alpha1";
const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn digest(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": "c1", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "hubAcceptsClient": false },
    })
}

/// What the controller wrote of a cluster that waits for people.
fn registration() -> Value {
    let opinion = |policy: &str, verdict: &str, codes: &[&str]| json!({ "policy": policy, "verdict": verdict, "codes": codes, "moduleSha256": digest('a'), "generation": 1 });
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration", "metadata": { "name": "c1" },
        "spec": {},
        "status": {
            "verdict": "Hold", "clusterUid": "u1",
            "waitingFor": "policy two: 1 of 2 approvals for this cluster and who asks for it (ApprovalsMissing)",
            "keptOutBy": { "who": "Policies", "policies": ["two"] },
            "requester": { "username": "system:bootstrap:abcdef", "credentialId": "JTI=1" },
            "request": { "name": "c1-x", "uid": "r1", "spkiSha256": digest('b') },
            "keys": [{ "until": "2027-01-01T00:00:00Z", "spkiSha256": digest('c') }],
            "decision": {
                "at": "2026-01-02T00:00:00Z", "record": "{}", "recordSha256": digest('d'),
                "policies": [
                    opinion("changed", "Allow", &[]), opinion("gone", "NoOpinion", &[]),
                    opinion("two", "Hold", &["ApprovalsMissing"]), opinion("unloaded", "Error", &["out-of-fuel"]),
                ],
                "notAsked": [{ "policy": "elsewhere" }, { "policy": "two", "unmetConditions": ["in-europe", "at-night"] }],
            },
        },
    })
}

fn policy(name: &str, generation: i64, sha256: char, loaded: &str) -> Value {
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
        "metadata": { "name": name, "generation": generation, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "module": { "builtin": name }, "mode": "Enforce", "autoApprove": name == "two",
            "breakGlass": if name == "changed" { "Never" } else { "Allowed" } },
        "status": { "observedGeneration": generation, "sha256": digest(sha256), "conditions": [{
            "type": "Loaded", "status": loaded, "reason": "Loaded", "message": "the module is not there",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    })
}

fn approval(approver: &str, expires: &str) -> Value {
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "RegistrationApproval",
        "metadata": { "name": approver },
        "spec": { "cluster": { "name": "c1", "uid": "u1" }, "requester": "system:bootstrap:abcdef",
            "approver": approver, "groups": ["admins"], "reason": "ticket 4711", "expiresAt": expires },
    })
}

fn list(items: Vec<Value>) -> Reply {
    let list = json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "1" }, "items": items });
    Reply::Json(200, list.to_string())
}

fn status(code: u16, reason: &str) -> Reply {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    Reply::Json(code, status.to_string())
}

/// A hub that holds a cluster.
fn hub(asked: &Asked) -> Reply {
    let path = asked.line.strip_prefix("GET ").and_then(|line| line.split('?').next()).unwrap_or_default();
    let object = |object: Value| Reply::Json(200, object.to_string());
    match path.strip_prefix(POLICIES).unwrap_or(path) {
        "/registrations/c1" => object(registration()),
        "/hubpolicies" => list(vec![
            policy("changed", 2, 'e', "True"),
            policy("two", 1, 'a', "True"),
            policy("unloaded", 1, 'a', "False"),
        ]),
        "/registrationapprovals" => {
            list(vec![approval("ann", "2126-01-01T00:00:00Z"), approval("bob", "2026-01-01T00:00:00Z")])
        }
        REQUESTS => list(Vec::new()),
        CLUSTERS => list(vec![cluster()]),
        path if path == format!("{CLUSTERS}/c1") => object(cluster()),
        _ => status(404, "NotFound"),
    }
}

fn explain(server: &Server, words: &[&str]) -> (Cli, Run) {
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run([&["policy", "explain"], words].concat());
    (cli, run)
}

#[test]
fn an_explanation_in_every_format() {
    let server = Server::start(|_, asked| hub(asked));
    for format in ["table", "wide", "json", "yaml", "name"] {
        let (cli, run) = explain(&server, &["c1", "-o", format]);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{run}");
        check!(format!("policy-explain-cluster-{format}"), cli, run);
    }
}

#[test]
fn each_kind_is_asked_for_once_and_only_what_is_about_the_cluster() {
    let server = Server::start(|_, asked| hub(asked));
    let (_, run) = explain(&server, &["c1"]);
    assert_eq!(run.exit, 0, "{run}");
    let mut lines = server.lines();
    lines.sort();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let labelled = lines.iter().find(|line| line.contains("certificatesigningrequests")).expect("requests are read");
    assert!(labelled.contains("labelSelector=open-cluster-management.io%2Fcluster-name%3Dc1"), "{labelled}");
}

#[test]
fn what_the_hub_does_not_tell_is_said_and_the_rest_is_explained() {
    let forbids = |part: &'static str| {
        Server::start(move |_, asked| match asked.line.contains(part) {
            true => status(403, "Forbidden"),
            false => hub(asked),
        })
    };
    let (cli, run) = explain(&forbids("hubpolicies"), &["c1"]);
    check!("policy-explain-cluster-unread", cli, run);
    let (_, run) = explain(&forbids("/"), &["c1"]);
    assert!(run.exit == 1 && run.stdout.is_empty() && run.stderr.contains("permission denied"), "{run}");
    // A hub that cannot answer is none that was read.
    let busy = Server::start(|_, asked| match asked.line.contains(CLUSTERS) {
        true => status(401, "Unauthorized"),
        false => hub(asked),
    });
    let (_, run) = explain(&busy, &["c1"]);
    assert!(run.exit == 1 && run.stdout.is_empty(), "{run}");
    let (_, run) = explain(&Server::start(|_, asked| hub(asked)), &["1c"]);
    assert!(run.exit == 1 && run.stderr.contains("hint: did you mean c1?"), "{run}");
}

#[test]
fn a_record_of_the_hub_is_replayed() {
    const MORE: &str = r#","description":"A test","reasons":[{"code":"No","description":"It says no"}]"#;
    let home = Cli::new();
    let said = r#"{"verdict": "hold", "reasons": [{"code": "No", "message": "not now"}]}"#;
    let module = Guest { manifest: Guest::manifest("two", MORE), answer: said.to_owned(), ..Guest::deciding("") };
    std::fs::write(home.home().join("two.wasm"), module.module()).expect("a module can be written");
    home.write("cluster.yaml", "kind: ManagedCluster\nmetadata: {name: c1}\n");
    let run = home.run(["policy", "run", "two.wasm", "-f", "cluster.yaml", "--record", "r.jsonl"]);
    assert_eq!(run.exit, 3, "{run}");
    let record = std::fs::read_to_string(home.home().join("r.jsonl")).expect("a record");
    let mut written = registration();
    written["status"]["decision"]["record"] = json!(record.trim_end());
    let server = Server::start(move |_, asked| match asked.line.contains("/registrations/") {
        true => Reply::Json(200, written.to_string()),
        false => status(403, "Forbidden"),
    });
    let (_, run) = explain(&server, &["c1", "--record"]);
    assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (0, record.as_str(), ""), "{run}");
    home.write("of-hub.jsonl", &run.stdout);
    let run = home.run(["policy", "replay", "of-hub.jsonl", "--policy", "two.wasm"]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, "note: 1 record repeated byte for byte\n"), "{run}");
}

#[test]
fn a_cluster_and_modules_are_not_confused() {
    let cli = Cli::new();
    cli.write("cluster.yaml", "kind: ManagedCluster\nmetadata: {name: c1}\n");
    cli.write("prod.wasm", "");
    let all: String = [
        &["prod.wasm"][..],
        &["./prod.wasm=settings.yaml"],
        &["c1", "c2"],
        &["c1\u{1b}[31m"],
        &["c1", "-f", "cluster.yaml"],
        &["prod.wasm", "-f", "cluster.yaml", "--context", "hub"],
        &["prod.wasm", "-f", "cluster.yaml", "--record"],
        &["c1", "--record", "-o", "json"],
        &["c1", "--settings", "{}"],
        &["c1", "--as-user", "eva"],
        &["c1", "--as-group", "night"],
        &[],
    ]
    .iter()
    .map(|words| {
        let run = cli.run([&["policy", "explain"], *words].concat());
        assert!(run.exit == 2 && run.stdout.is_empty(), "{words:?}: {run}");
        format!("$ kubectl ocm policy explain {}\n{run}", words.join(" ").escape_debug())
    })
    .collect();
    check!("policy-explain-wrong", cli, all);
}

//! `kubectl ocm accept` against a hub that changes whenever something is written.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use csr_fixtures::Fixture;
use serde_json::{Value, json};

/// How often a decision is taken in all.
const TRIES: usize = 5;

fn list(kind: &str, items: &[Value]) -> Reply {
    let (group, kind) = kind.rsplit_once('/').unwrap_or_default();
    let list = json!({"apiVersion": group, "kind": kind, "metadata": {"resourceVersion": "1"}, "items": items});
    Reply::Json(200, list.to_string())
}

fn status(code: u16, reason: &str) -> Reply {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": reason});
    Reply::Json(code, status.to_string())
}

/// The method that approves a request, as the first line of a request begins with it.
const APPROVES: &str = "PUT ";

/// The method that accepts a cluster.
const ACCEPTS: &str = "PATCH ";

/// A hub on which everything by the method `write` is a conflict, and of which a cluster is denied after `conflicts` of
/// them. It counts those that were tried.
fn hub(write: &'static str, conflicts: usize) -> (Server, Arc<AtomicUsize>) {
    let tried = Arc::new(AtomicUsize::new(0));
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "r1", "uid": "r1", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:10Z",
            "labels": {"open-cluster-management.io/cluster-name": "c1"}},
        "spec": {
            "request": STANDARD.encode(Fixture::agent("c1", "a1").pem()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"],
            "username": "system:bootstrap:abcdef",
            "groups": ["system:bootstrappers:managedcluster"],
        },
    });
    let (counted, approved) = (tried.clone(), AtomicBool::new(false));
    let server = Server::start(move |_, asked| {
        let path = asked.line.split(['?', ' ']).nth(1).unwrap_or_default();
        let kind = path.split('/').find(|part| {
            matches!(
                *part,
                "managedclusters"
                    | "certificatesigningrequests"
                    | "selfsubjectaccessreviews"
                    | "namespaces"
                    | "clusterroles"
            )
        });
        let denied = counted.load(Ordering::SeqCst) >= conflicts;
        let condition = json!({"type": "HubAcceptedManagedCluster", "status": "False", "reason": "HubClusterAdminDenied",
            "message": "", "lastTransitionTime": "2026-01-01T00:01:00Z"});
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "uid": "c1", "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"hubAcceptsClient": false},
            "status": {"conditions": if denied { vec![condition] } else { Vec::new() }},
        });
        let mut request = request.clone();
        if approved.load(Ordering::SeqCst) {
            let condition = json!({"type": "Approved", "status": "True", "lastUpdateTime": "2026-01-01T00:00:20Z",
                "lastTransitionTime": "2026-01-01T00:00:20Z"});
            request["status"] = json!({"conditions": [condition]});
        }
        match kind {
            _ if asked.line.starts_with(write) => {
                counted.fetch_add(1, Ordering::SeqCst);
                status(409, "Conflict")
            }
            _ if asked.line.starts_with(APPROVES) => {
                approved.store(true, Ordering::SeqCst);
                Reply::Json(200, request.to_string())
            }
            Some("selfsubjectaccessreviews") => {
                let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {}, "status": {"allowed": true}});
                Reply::Json(201, review.to_string())
            }
            _ if !asked.line.starts_with("GET ") => status(500, "InternalError"),
            Some("managedclusters") if path.ends_with("/c1") => Reply::Json(200, cluster.to_string()),
            Some("managedclusters") => list("cluster.open-cluster-management.io/v1/ManagedClusterList", &[cluster]),
            // Those of a signer are asked for that do not carry the label.
            Some("certificatesigningrequests") if asked.line.contains("fieldSelector") => {
                list("certificates.k8s.io/v1/CertificateSigningRequestList", &[])
            }
            Some("certificatesigningrequests") => {
                list("certificates.k8s.io/v1/CertificateSigningRequestList", &[request])
            }
            Some("namespaces" | "clusterroles") if path.ends_with("s") => {
                list("meta.k8s.io/v1/PartialObjectMetadataList", &[])
            }
            _ => status(404, "NotFound"),
        }
    });
    (server, tried)
}

#[test]
fn a_denial_counts_for_what_was_selected_at_whichever_try_it_is_seen() {
    for conflicts in 1..=TRIES {
        let (server, tried) = hub(APPROVES, conflicts);
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        let run = cli.run(["accept", "--all-pending", "--yes", "-o", "json"]);
        let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        // After the last try nobody looks again.
        let (exit, code) = if conflicts < TRIES { (3, "DeniedBefore") } else { (1, "Conflict") };
        assert_eq!((run.exit, &document["clusters"][0]["code"]), (exit, &json!(code)), "{conflicts}: {run}");
        assert_eq!(tried.load(Ordering::SeqCst), conflicts, "{run}");
        let accepted = server.lines().into_iter().filter(|line| line.starts_with(ACCEPTS));
        assert_eq!(accepted.count(), 0, "{conflicts}");
    }
}

#[test]
fn that_its_request_was_approved_is_told_of_a_cluster_that_could_not_be_accepted_after_that() {
    for (conflicts, exit, code) in [(1, 3, "DeniedBefore"), (TRIES, 1, "Conflict")] {
        let (server, tried) = hub(ACCEPTS, conflicts);
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        let run = cli.run(["accept", "--all-pending", "--yes", "-o", "json"]);
        let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        let row = &document["clusters"][0];
        let got = (run.exit, &row["code"], &row["accepted"], &row["request"]);
        assert_eq!(got, (exit, &json!(code), &json!(false), &json!("r1")), "{conflicts}: {run}");
        let detail = row["detail"].as_str().unwrap_or_default();
        assert!(detail.ends_with("; its request r1 was approved before that"), "{conflicts}: {run}");
        assert_eq!(tried.load(Ordering::SeqCst), conflicts, "{run}");
        let approvals = server.lines().into_iter().filter(|line| line.starts_with(APPROVES));
        assert_eq!(approvals.count(), 1, "{conflicts}");
    }
}

/// A hub that accepts `c1` and `c2` and holds a request for `c1`, on which reading of the kind `broken` fails with a status, and on
/// which nobody may withdraw the acceptance of the cluster `lacks`.
fn accepting(broken: &'static str, code: &Arc<AtomicUsize>, lacks: &'static str) -> (Server, Cli) {
    let request = asks("r1", 10, BOOTSTRAP, &Fixture::agent("c1", "a1"));
    let (code, withdrawn) = (code.clone(), Mutex::new(BTreeSet::new()));
    let server = Server::start(move |_, asked| {
        let path = asked.line.split(['?', ' ']).nth(1).unwrap_or_default();
        let (name, code) = (path.rsplit('/').next().unwrap_or_default(), code.load(Ordering::SeqCst));
        if code != 0 && asked.line.starts_with("GET ") && path.split('/').any(|part| part == broken) {
            let reason = match code {
                403 => "Forbidden",
                410 => "Expired",
                _ => "InternalError",
            };
            return status(u16::try_from(code).unwrap_or(500), reason);
        }
        if path.ends_with("/selfsubjectaccessreviews") {
            let asked: Value = serde_json::from_str(&asked.body).unwrap_or_default();
            let about = asked["spec"]["resourceAttributes"]["name"].as_str();
            let allowed = lacks.is_empty() || about.is_some_and(|name| name != lacks);
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {}, "status": {"allowed": allowed}});
            return Reply::Json(201, review.to_string());
        }
        if path.contains("/managedclusters/") {
            let mut withdrawn = withdrawn.lock().expect("nobody panics");
            if asked.line.starts_with(ACCEPTS) {
                withdrawn.insert(name.to_owned());
            }
            let cluster = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": name, "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"hubAcceptsClient": !withdrawn.contains(name)},
            });
            return Reply::Json(200, cluster.to_string());
        }
        match name {
            "certificatesigningrequests" => {
                list("certificates.k8s.io/v1/CertificateSigningRequestList", std::slice::from_ref(&request))
            }
            _ if path.contains("/certificatesigningrequests/") => Reply::Json(200, request.to_string()),
            _ => status(404, "NotFound"),
        }
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    (server, cli)
}

/// How many requests by a method the server was sent.
fn sent(server: &Server, method: &str) -> usize {
    server.lines().iter().filter(|line| line.starts_with(method)).count()
}

#[test]
fn a_denial_withdraws_acceptance_also_where_requests_cannot_be_read() {
    for code in [403, 410, 500] {
        let status = Arc::new(AtomicUsize::new(code));
        let (server, cli) = accepting("certificatesigningrequests", &status, "");
        let run = cli.run(["accept", "c1", "--deny", "no", "-o", "json"]);
        let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        let detail = document["clusters"][0]["detail"].as_str().unwrap_or_default();
        let told = "c1 is not accepted any more, but its requests could not be read: ";
        assert!(run.exit == 1 && detail.starts_with(told), "{code}: {run}");
        assert_eq!((sent(&server, ACCEPTS), sent(&server, APPROVES)), (1, 0), "{code}: {run}");
        // Without anything to withdraw that is all that failed.
        let run = cli.run(["accept", "c1", "--deny", "no"]);
        assert!(run.exit == 1 && run.stderr.contains("error: "), "{code}: {run}");
        // A later run finishes.
        status.store(0, Ordering::SeqCst);
        let run = cli.run(["accept", "c1", "--deny", "no"]);
        assert!(run.exit == 0 && run.stdout.contains("managedcluster/c1 denied: r1 denied"), "{code}: {run}");
        assert_eq!((sent(&server, ACCEPTS), sent(&server, APPROVES)), (1, 1), "{code}: {run}");
    }
}

#[test]
fn a_denial_needs_nothing_that_only_an_acceptance_looks_at() {
    for broken in ["namespaces", "clusterroles", "clusterrolebindings", "registrations"] {
        for code in [403, 410, 500] {
            let (server, cli) = accepting(broken, &Arc::new(AtomicUsize::new(code)), "");
            let run = cli.run(["accept", "c1", "--deny", "no"]);
            assert_eq!(
                (run.exit, sent(&server, ACCEPTS), sent(&server, APPROVES)),
                (0, 1, 1),
                "{broken} {code}: {run}"
            );
        }
    }
}

#[test]
fn a_dry_run_of_a_denial_withdraws_nothing() {
    let (server, cli) = accepting("", &Arc::new(AtomicUsize::new(0)), "");
    let run = cli.run(["accept", "c1", "--deny", "no", "--dry-run=client"]);
    assert!(run.exit == 0 && run.stdout.contains("it is no longer accepted, and r1 denied"), "{run}");
    assert_eq!((sent(&server, ACCEPTS), sent(&server, APPROVES)), (0, 0), "{run}");
    let run = cli.run(["accept", "c1", "--deny", "no", "--dry-run=server"]);
    let writes = |line: &String| line.starts_with(ACCEPTS) || line.starts_with(APPROVES);
    let lines: Vec<String> = server.lines().into_iter().filter(writes).collect();
    assert!(
        run.exit == 0 && lines.len() == 2 && lines.iter().all(|line| line.contains("dryRun=All")),
        "{lines:?} {run}"
    );
}

#[test]
fn every_cluster_is_denied_for_which_the_right_is_there() {
    let (server, cli) = accepting("", &Arc::new(AtomicUsize::new(0)), "c2");
    let run = cli.run(["accept", "c1", "c2", "--deny", "no"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stdout.contains("managedcluster/c1 denied: it is no longer accepted, and r1 denied"), "{run}");
    let (failed, right) =
        ("managedcluster/c2 failed, Forbidden: your user lacks rights to deny clusters", "managedclusters");
    assert!(run.stdout.contains(failed) && run.stdout.contains(&format!("may not patch {right}")), "{run}");
    assert!(run.stderr.contains("hint: docs/reference/rbac.md"), "{run}");
    let patches: Vec<String> = server.lines().into_iter().filter(|line| line.starts_with(ACCEPTS)).collect();
    assert!(patches.len() == 1 && patches[0].contains("/managedclusters/c1"), "{patches:?}");
    // Where nothing can be done without it, nothing is.
    let run = cli.run(["accept", "c2", "--deny", "no"]);
    assert!(run.exit == 1 && run.stderr.contains("error: your user lacks rights to deny clusters"), "{run}");
}

#[test]
fn to_approve_only_goes_with_nothing_that_decides_and_its_flags_with_nothing_else() {
    // Nothing is asked of a hub before.
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]));
    for (words, sentence) in [
        (&["c1", "--approve-only", "--wait"][..], "'--approve-only' cannot be used with '--wait'"),
        (&["c1", "--approve-only", "--deny", "no"], "'--approve-only' cannot be used with '--deny <REASON>'"),
        (&["c1", "--approve-only", "--without-request"], "'--approve-only' cannot be used with '--without-request'"),
        (&["c1", "--reason", "because"], "--approve-only"),
        (&["c1", "--expires", "1h"], "--approve-only"),
        (&["c1", "--group", "admins"], "--approve-only"),
        (&["c1", "--approve-only", "--expires", "31d"], "an approval counts for 30 days at most"),
        (&["c1", "--approve-only", "--expires", "0s"], "for a second at least"),
        (&["c1", "--approve-only", "--reason", " "], "--reason is empty"),
        (&["--all-pending", "--approve-only"], "need --yes where stdin is not a terminal"),
    ] {
        let run = cli.run([&["accept"], words].concat());
        assert!(run.exit == 2 && run.stderr.contains(sentence), "{words:?}: {run}");
    }
    let run = cli.run(["accept", "c1", "--approve-only", "--expires", "1h", "--reason", "because"]);
    assert_eq!(run.exit, 1, "it asks the hub: {run}");
}

const POLICIES: &str = "/apis/policy.kubectl-ocm.dev/v1alpha1";

/// A request of somebody for the name `c1`.
fn asks(name: &str, second: u32, user: &str, fixture: &Fixture) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1",
            "creationTimestamp": format!("2026-01-01T00:00:{second}Z"),
            "labels": {"open-cluster-management.io/cluster-name": "c1"}},
        "spec": {
            "request": STANDARD.encode(fixture.pem()), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"], "username": user,
            "groups": ["system:bootstrappers:managedcluster"],
        },
    })
}

/// What the policy controller wrote of `c1`.
fn denied_by(policy: &str) -> Value {
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration", "metadata": {"name": "c1"}, "spec": {},
        "status": {
            "verdict": "Deny", "clusterUid": "c1", "waitingFor": format!("policy {policy}: not ours (NotOurs)"),
            "keptOutBy": {"who": "Policies", "policies": [policy]},
            "requester": {"username": "system:bootstrap:abcdef"},
            "request": {"name": "right", "uid": "right", "spkiSha256": "a".repeat(64)},
            "decision": {"at": "2026-01-02T00:00:00Z",
                "policies": [{"policy": policy, "verdict": "Deny", "codes": ["NotOurs"], "generation": 1}]},
        },
    })
}

/// A hub with a cluster that has these labels, that holds these requests for it, and on which `engine` answers for the kinds
/// of the policy engine.
fn explaining(
    labels: &Value,
    requests: Vec<Value>,
    engine: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> (Server, Cli) {
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1", "uid": "c1", "resourceVersion": "1", "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"hubAcceptsClient": false},
    });
    let server = Server::start(move |_, asked| {
        let path = asked.line.split(['?', ' ']).nth(1).unwrap_or_default();
        match path.rsplit('/').next().unwrap_or_default() {
            "selfsubjectaccessreviews" => {
                let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {}, "status": {"allowed": true}});
                Reply::Json(201, review.to_string())
            }
            _ if !asked.line.starts_with("GET ") => status(500, "InternalError"),
            _ if path.starts_with(POLICIES) => engine(path.trim_start_matches(POLICIES)),
            "c1" if path.contains("/managedclusters/") => Reply::Json(200, cluster.to_string()),
            "managedclusters" => {
                list("cluster.open-cluster-management.io/v1/ManagedClusterList", std::slice::from_ref(&cluster))
            }
            "certificatesigningrequests" => list("certificates.k8s.io/v1/CertificateSigningRequestList", &requests),
            "namespaces" | "clusterroles" => list("meta.k8s.io/v1/PartialObjectMetadataList", &[]),
            "clusterrolebindings" => list("rbac.authorization.k8s.io/v1/ClusterRoleBindingList", &[]),
            _ => status(404, "NotFound"),
        }
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    (server, cli)
}

/// A hub without a policy engine.
fn no_engine(_: &str) -> Reply {
    Reply::Json(404, "404 page not found\n".to_owned())
}

/// Explains `c1`, which writes nothing, and returns the exit code and the cluster's part of the document.
fn explained(server: &Server, cli: &Cli, words: &[&str]) -> (i32, Value) {
    let run = cli.run([&["accept", "c1", "--explain", "-o", "json"], words].concat());
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
    assert!(server.lines().iter().all(|line| line.starts_with("GET ")), "{:#?}", server.lines());
    assert_eq!(document["dryRun"], json!("client"));
    (run.exit, document["clusters"][0].clone())
}

const BOOTSTRAP: &str = "system:bootstrap:abcdef";

#[test]
fn an_explanation_is_the_dry_run_with_the_requests_it_stands_on() {
    let right = Fixture::agent("c1", "a1");
    let requests = vec![asks("right", 10, BOOTSTRAP, &right), asks("wrong", 20, "eve", &Fixture::agent("c1", "a2"))];
    let (server, cli) = explaining(&json!({}), requests, no_engine);
    let dry = cli.run(["accept", "c1", "--dry-run=client", "-o", "json"]);
    let dry: Value = serde_json::from_str(&dry.stdout).unwrap_or_else(|_| panic!("{dry}"));
    // The dry run asks whether the user may do it; whoever wants to know why needs no such right.
    let asks_for_rights = || server.lines().iter().filter(|line| !line.starts_with("GET ")).count();
    let before = asks_for_rights();
    let run = cli.run(["accept", "c1", "--explain", "-o", "json"]);
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
    assert!(before > 0 && asks_for_rights() == before, "{:#?}", server.lines());
    let told = &document["clusters"][0];
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{run}");
    if let Some(members) = dry["clusters"][0].as_object() {
        members.iter().for_each(|(name, value)| assert_eq!(&told[name], value, "{name}"));
    }
    assert_eq!(
        (&told["code"], &told["inTheWay"], &told["policies"], &told["next"]),
        (&json!("Accepted"), &json!([]), &Value::Null, &json!(["to let it in: kubectl ocm accept c1"]))
    );
    let request = |index: usize| &told["requests"][index];
    assert_eq!((&request(0)["part"], &request(0)["violations"]), (&json!("Approve"), &json!([])));
    assert_eq!(request(0)["fingerprint"], told["fingerprint"]);
    let violation = json!({"code": "Requester", "rule": "R6", "field": "spec.username",
        "detail": "\"eve\" may not register clusters"});
    assert_eq!((&request(1)["part"], &request(1)["violations"]), (&json!("Asks"), &json!([violation])));

    let run = cli.run(["accept", "c1", "--explain"]);
    let lines: Vec<Vec<&str>> = run.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(run.exit == 0 && run.stdout.starts_with("managedcluster/c1 would be accepted: its request"), "{run}");
    let of = |name: &str| lines.iter().filter(|line| line.first() == Some(&name)).collect::<Vec<_>>();
    let fingerprint = told["fingerprint"].as_str().unwrap_or_default();
    assert_eq!(of("right")[0][3..], [BOOTSTRAP, fingerprint, "-", "to", "be", "approved"], "{run}");
    assert_eq!(of("wrong")[0][5..], ["Requester", "-"], "{run}");
    assert_eq!(of("wrong")[1][1..4], ["R6", "Requester", "spec.username"], "{run}");
    let run = cli.run(["accept", "--all-pending", "--explain", "-o", "name"]);
    assert_eq!(
        (run.exit, run.stdout.as_str()),
        (0, "managedcluster.cluster.open-cluster-management.io/c1\n"),
        "nobody is asked whether it is meant: {run}"
    );
}

#[test]
fn all_that_is_in_the_way_is_told_with_the_command_past_it() {
    let labels = json!({"cluster.open-cluster-management.io/clusterset": "prod", "env": "prod"});
    let requests = vec![asks("right", 10, BOOTSTRAP, &Fixture::agent("c1", "a1"))];
    let (server, cli) = explaining(&labels, requests, no_engine);
    let (exit, told) = explained(&server, &cli, &[]);
    let codes: Vec<&Value> =
        told["inTheWay"].as_array().into_iter().flatten().map(|obstacle| &obstacle["code"]).collect();
    assert_eq!((exit, &told["code"], &told["accepted"]), (3, &json!("ClusterSet"), &json!(false)), "{told:#}");
    assert_eq!(codes, ["ClusterSet", "Labels"], "{told:#}");
    let command = "to let it in: kubectl ocm accept c1 --as-registered --cluster-set prod";
    assert_eq!(told["next"].as_array().and_then(|next| next.last()), Some(&json!(command)));
    let (exit, told) = explained(&server, &cli, &["--as-registered", "--cluster-set", "prod"]);
    assert_eq!((exit, &told["code"], &told["inTheWay"]), (0, &json!("Accepted"), &json!([])), "{told:#}");
    let run = cli.run(["accept", "c1", "--explain", "-o", "name"]);
    assert_eq!((run.exit, run.stdout.as_str()), (3, ""), "{run}");

    let (server, cli) = explaining(&json!({}), Vec::new(), no_engine);
    let (exit, told) = explained(&server, &cli, &[]);
    assert_eq!((exit, &told["code"], &told["inTheWay"][0]["code"]), (3, &json!("NoRequest"), &json!("NoRequest")));
}

#[test]
fn the_last_word_of_policies_is_in_the_way_while_they_count() {
    let requests = || vec![asks("right", 10, BOOTSTRAP, &Fixture::agent("c1", "a1"))];
    let engine = |mode: &'static str| {
        move |path: &str| {
            let policy = json!({
                "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
                "metadata": {"name": "strict", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"module": {"builtin": "strict"}, "mode": mode, "breakGlass": "Allowed"},
                "status": {"observedGeneration": 1},
            });
            match path {
                "/registrations/c1" => Reply::Json(200, denied_by("strict").to_string()),
                "/hubpolicies" => list("policy.kubectl-ocm.dev/v1alpha1/HubPolicyList", &[policy]),
                _ => list("policy.kubectl-ocm.dev/v1alpha1/RegistrationApprovalList", &[]),
            }
        }
    };
    let (server, cli) = explaining(&json!({}), requests(), engine("Enforce"));
    let (exit, told) = explained(&server, &cli, &[]);
    assert_eq!((exit, &told["code"], &told["accepted"]), (3, &json!("Accepted"), &json!(false)), "{told:#}");
    assert_eq!(told["refusedByPolicies"], json!("policy strict: not ours (NotOurs)"));
    assert_eq!(
        (&told["policies"]["finding"], &told["policies"]["opinions"][0]["policy"]),
        (&json!("Denied"), &json!("strict"))
    );
    assert_eq!(
        told["next"],
        json!([
            "look at the policy: kubectl ocm policy describe strict",
            "in an emergency, with the right for it: kubectl ocm accept c1 --break-glass REASON",
            "to have the hub ask its policies about you: kubectl ocm accept c1 --dry-run=server",
        ])
    );
    let run = cli.run(["accept", "c1", "--explain"]);
    assert!(run.stdout.contains("\n  in the way: policy strict: not ours (NotOurs)\n"), "{run}");
    assert!(run.stdout.contains("\nPolicies:  c1 is denied by policy strict: not ours (NotOurs)\n"), "{run}");
    assert!(!run.stdout.contains("Asked by:"), "the requests are in a table: {run}");

    let (server, cli) = explaining(&json!({}), requests(), engine("Warn"));
    let (exit, told) = explained(&server, &cli, &[]);
    assert_eq!((exit, &told["accepted"], &told["refusedByPolicies"]), (0, &json!(true), &Value::Null), "{told:#}");

    // What may not be read is told, and is no obstacle.
    let served = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "policy.kubectl-ocm.dev/v1alpha1",
        "resources": [{
            "name": "registrations", "singularName": "", "namespaced": false, "kind": "Registration", "verbs": [],
        }],
    });
    let forbidden = move |path: &str| match path {
        "" => Reply::Json(200, served.to_string()),
        _ => status(403, "Forbidden"),
    };
    let (server, cli) = explaining(&json!({}), requests(), forbidden);
    let (exit, told) = explained(&server, &cli, &[]);
    let unread: Vec<&Value> =
        told["policies"]["unread"].as_array().into_iter().flatten().map(|unread| &unread["what"]).collect();
    assert_eq!(
        (exit, unread),
        (0, vec![&json!("registrations"), &json!("hubpolicies"), &json!("registrationapprovals")])
    );
    let run = cli.run(["accept", "c1", "--explain"]);
    assert!(run.stderr.contains("does not count here"), "{run}");
    // Who may not read it on a hub that has no such kind lacks nothing.
    let (server, cli) = explaining(&json!({}), requests(), |path| match path {
        "" => no_engine(path),
        _ => status(403, "Forbidden"),
    });
    assert_eq!(explained(&server, &cli, &[]).1["policies"], Value::Null);
}

#[test]
fn an_explanation_goes_with_nothing_that_acts() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]));
    for words in [
        &["--yes"][..],
        &["--deny", "no"],
        &["--approve-only"],
        &["--break-glass", "a long enough reason"],
        &["--wait"],
        &["--timeout", "1m"],
        &["--dry-run=client"],
        &["--concurrency", "3"],
    ] {
        let run = cli.run([&["accept", "c1", "--explain"], words].concat());
        assert!(run.exit == 2 && run.stderr.contains("cannot be used with"), "{words:?}: {run}");
    }
    let run = cli.run(["accept", "c1", "--explain"]);
    assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "it asks the hub: {run}");
}

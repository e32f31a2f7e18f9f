//! Lists and watches against a server that does what a test says.

use std::sync::atomic::{AtomicUsize, Ordering};

use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, kubeconfig};
use serde_json::{Value, json};

const PATH: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";

fn cluster(name: &str, version: &str, accepted: bool) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": name, "uid": name, "resourceVersion": version,
            "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "hubAcceptsClient": accepted },
    })
}

fn list(clusters: &[Value]) -> Reply {
    let list = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedClusterList",
        "metadata": { "resourceVersion": "10" }, "items": clusters,
    });
    Reply::Json(200, list.to_string())
}

fn status(code: u16, reason: &str) -> Reply {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    Reply::Json(code, status.to_string())
}

fn is_watch(asked: &Asked) -> bool {
    asked.line.contains("watch=true")
}

/// A watch of a server that ends it with "forbidden" at last.
fn watch(server: &Server, words: &[&str]) -> cli_tests::Run {
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run([&["get", "clusters", "--watch"], words].concat());
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("error: cannot watch (context \"hub\")"), "{run}");
    run
}

#[test]
fn a_watch_that_begins_again_shows_only_what_has_changed() {
    let (lists, watches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let server = Server::start(move |_, asked| match is_watch(asked) {
        // The first watch sees one cluster go, and then the client must list again.
        true => {
            let gone = json!({ "type": "DELETED", "object": cluster("c2", "5", false) }).to_string();
            let expired = json!({ "type": "ERROR", "object": {
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
                "message": "too old",
            } });
            let first = watches.fetch_add(1, Ordering::SeqCst) == 0;
            Reply::Lines(first.then_some(gone).into_iter().chain([expired.to_string()]).collect())
        }
        false => match lists.fetch_add(1, Ordering::SeqCst) {
            0 => list(&[cluster("c1", "1", false), cluster("c2", "2", false), cluster("c3", "3", false)]),
            1 => list(&[cluster("c3", "7", true), cluster("c4", "8", false)]),
            _ => status(403, "Forbidden"),
        },
    });
    let run = watch(&server, &["--no-headers"]);
    let rows: Vec<(&str, bool)> = run
        .stdout
        .lines()
        .map(|line| (line.split(' ').next().unwrap_or_default(), line.ends_with("(removed)")))
        .collect();
    let expected =
        [("c1", false), ("c2", false), ("c3", false), ("c2", true), ("c3", false), ("c4", false), ("c1", true)];
    assert_eq!(rows, expected, "{run}");
}

#[test]
fn a_server_that_is_away_is_told_once_and_not_besieged() {
    let server = Server::start(|number, asked| match number {
        0..3 => Reply::Drop,
        3 if !is_watch(asked) => list(&[cluster("c1", "1", false)]),
        _ => status(403, "Forbidden"),
    });
    let run = watch(&server, &["--no-headers"]);
    // Three that were dropped, the list, and the watch that ended it: nobody came in between.
    assert_eq!(server.lines().len(), 5, "{:#?}", server.lines());
    let warnings = run.stderr.lines().filter(|line| line.starts_with("warning:")).count();
    assert_eq!(warnings, 1, "{run}");
    assert!(run.stderr.contains("note: the watch goes on"), "{run}");
    assert_eq!(run.stdout.lines().count(), 1, "{run}");
}

#[test]
fn a_name_is_read_alone() {
    let server = Server::start(|_, asked| match asked.line.strip_prefix("GET ") {
        Some(line) if line == format!("{PATH}/c1") => Reply::Json(200, cluster("c1", "1", true).to_string()),
        Some(line) if line.starts_with(&format!("{PATH}/")) => status(404, "NotFound"),
        _ => list(&[cluster("c1", "1", true)]),
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["get", "clusters", "c1", "-o", "name"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, "managedcluster.cluster.open-cluster-management.io/c1\n"), "{run}");
    assert_eq!(server.lines(), [format!("GET {PATH}/c1")]);
    assert!(cli.run(["get", "clusters", "1c"]).stderr.contains("hint: did you mean c1?"));
}

#[test]
fn a_request_is_read_by_its_name_or_its_clusters() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = |name: &str, cluster: Option<&str>| {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": { "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": cluster.map(|cluster| json!({ "open-cluster-management.io/cluster-name": cluster })) },
            "spec": { "request": "eA==", "signerName": "kubernetes.io/kube-apiserver-client",
                "username": "system:serviceaccount:open-cluster-management:agent-registration-bootstrap" },
        })
    };
    let server = Server::start(move |_, asked| {
        let Some(rest) = asked.line.strip_prefix("GET ").and_then(|line| line.strip_prefix(REQUESTS)) else {
            return list(&[]);
        };
        let items = match rest {
            "/r1" => return Reply::Json(200, request("r1", Some("c1")).to_string()),
            "/other" => return Reply::Json(200, request("other", None).to_string()),
            _ if rest.starts_with('/') => return status(404, "NotFound"),
            // The requests for c1, and nothing for other names.
            _ if rest.contains("c1") => json!([request("r1", Some("c1")), request("r2", Some("c1"))]),
            _ => json!([]),
        };
        let list = json!({ "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequestList",
            "metadata": { "resourceVersion": "1" }, "items": items });
        Reply::Json(200, list.to_string())
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let asked = |names: &[&str]| {
        let before = server.lines().len();
        let run = cli.run([&["get", "csr", "-o", "name"], names].concat());
        let mut lines: Vec<String> =
            server.lines().split_off(before).iter().map(|line| line.replacen("GET ", "", 1)).collect();
        lines.sort();
        (run, lines)
    };
    let of = |names: &str| {
        let selector = format!("open-cluster-management.io%2Fcluster-name+in+%28{names}%29");
        format!("{REQUESTS}?&labelSelector={selector}&limit=100")
    };

    let (run, lines) = asked(&["r1"]);
    assert_eq!((run.exit, run.stdout.lines().count()), (0, 1), "{run}");
    assert_eq!(lines, [format!("{REQUESTS}/r1"), of("r1")]);
    // A name that is a request's and one that is its cluster's, and one twice: each row once.
    let (run, lines) = asked(&["c1", "r1", "c1"]);
    assert_eq!((run.exit, run.stdout.lines().count()), (0, 2), "{run}");
    let all = [format!("{REQUESTS}/c1"), format!("{REQUESTS}/r1"), of("c1%2Cr1")];
    assert_eq!(lines, all);
    // Many names are still few questions, and short ones.
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    let (run, lines) = asked(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((run.exit, lines.len()), (1, 100 + 2 + 1), "{run}");

    let (run, _) = asked(&["r1", "nosuch"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("error: no certificate request is, or is for, \"nosuch\""), "{run}");
    let (run, _) = asked(&["other"]);
    assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
    assert!(run.stderr.contains("error: certificate request \"other\" is for no managed cluster"), "{run}");
}

const REGISTRATIONS: &str = "/apis/policy.kubectl-ocm.dev/v1alpha1/registrations";

fn registration(name: &str, status: Value) -> Value {
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration",
        "metadata": { "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {}, "status": status,
    })
}

/// A hub with a cluster that was let in, one that waits, and one that nobody was asked about.
fn hub_with_registrations() -> Server {
    let all = [
        registration(
            "c1",
            json!({
                "verdict": "Allow", "approvedBy": ["team-a", "team-b"], "requester": { "username": "bootstrap" },
                "request": { "name": "c1-x", "uid": "u", "spkiSha256": "k" },
                "keys": [{ "spkiSha256": "k", "until": "2027-01-01T00:00:00Z" }, { "spkiSha256": "l", "until": "2026-02-01T00:00:00Z" }],
                "obligations": [{
                    "name": "expire-acceptance", "policy": "team-a", "due": "2026-12-01T00:00:00Z", "withinSeconds": 60,
                    "clusterUid": "u",
                }],
            }),
        ),
        registration(
            "c2",
            json!({
                "verdict": "Hold", "waitingFor": "policy names: the name\u{1b}[31m is not known (Unknown)",
                "requester": { "username": "bootstrap" },
            }),
        ),
        json!({ "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration",
            "metadata": { "name": "c3" }, "spec": {} }),
    ];
    Server::start(move |_, asked| {
        let Some(rest) = asked.line.strip_prefix("GET ").and_then(|line| line.strip_prefix(REGISTRATIONS)) else {
            return status(500, "InternalError");
        };
        if let Some(name) = rest.strip_prefix('/') {
            let found = all.iter().find(|object| object["metadata"]["name"] == name);
            return found.map_or_else(|| status(404, "NotFound"), |object| Reply::Json(200, object.to_string()));
        }
        let list = json!({ "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "RegistrationList",
            "metadata": { "resourceVersion": "1" }, "items": all });
        Reply::Json(200, list.to_string())
    })
}

#[test]
fn registrations_tell_who_let_a_cluster_in_and_what_it_waits_for() {
    let server = hub_with_registrations();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["get", "registrations", "-o", "wide"]);
    assert_eq!(run.exit, 0, "{run}");
    // Two or more blanks end a cell; ages depend on the day.
    let cells: Vec<Vec<&str>> = run
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(
        cells[0],
        [
            "NAME",
            "VERDICT",
            "APPROVED BY",
            "REQUESTER",
            "AGE",
            "WAITING FOR",
            "REQUEST",
            "VALID UNTIL",
            "EXPIRES",
            "DECIDED",
            "REMOVED",
        ]
    );
    assert_eq!(cells[1][..4], ["c1", "Allow", "team-a,team-b", "bootstrap"], "{run}");
    let ends = ["2027-01-01T00:00:00Z", "2026-12-01T00:00:00Z"];
    assert_eq!(cells[1][5..], ["<none>", "c1-x", ends[0], ends[1], "<none>", "<none>"], "{run}");
    assert_eq!(cells[2][..4], ["c2", "Hold", "<none>", "bootstrap"], "{run}");
    assert_eq!(cells[2][5], "policy names: the name\\u{1b}[31m is not known (Unknown)", "{run}");
    assert_eq!(cells[3][..6], ["c3", "NoOpinion", "<none>", "<none>", "<none>", "<none>"], "{run}");

    let run = cli.run(["get", "registrations", "c2", "c1", "c2", "-o", "name"]);
    let names = "registration.policy.kubectl-ocm.dev/c1\nregistration.policy.kubectl-ocm.dev/c2\n";
    assert_eq!((run.exit, run.stdout.as_str()), (0, names), "{run}");
    let run = cli.run(["get", "registrations", "c2", "-o", "json"]);
    let object: Value = serde_json::from_str(&run.stdout).expect("one object");
    assert_eq!((&object["metadata"]["name"], &object["status"]["verdict"]), (&json!("c2"), &json!("Hold")), "{run}");

    let run = cli.run(["get", "registrations", "c9"]);
    assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
    assert!(run.stderr.contains("error: the hub has no registration of a cluster \"c9\""), "{run}");
    let run = cli.run(["get", "registrations", "--sort-by", "verdict", "--no-headers", "-o", "table"]);
    assert!(run.stdout.starts_with("c1"), "{run}");
    assert_eq!(cli.run(["get", "registrations", "--sort-by", "size"]).exit, 2);
}

#[test]
fn without_a_policy_engine_it_is_said_what_to_type() {
    let server = Server::start(|_, _| Reply::Json(404, "404 page not found\n".to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for words in [
        &["get", "registrations"][..],
        &["get", "hreg", "c1"],
        &["get", "registrations", "--watch"],
        &["policy", "list"],
        &["policy", "list", "p1"],
        &["policy", "list", "--watch"],
        &["policy", "describe", "p1"],
    ] {
        let run = cli.run(words);
        assert_eq!((run.exit, run.stdout.lines().count() < 2), (1, true), "{run}");
        assert!(run.stderr.contains("error: the policy engine is not installed on this cluster"), "{run}");
        assert!(run.stderr.contains("kubectl ocm install policy-engine"), "{run}");
    }
}

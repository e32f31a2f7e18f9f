//! Lists and watches against a server that does what a test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, check, kubeconfig};
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
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = times.clone();
    let server = Server::start(move |number, asked| {
        seen.lock().expect("nobody panics").push(Instant::now());
        match number {
            0..3 => Reply::Drop,
            3 if !is_watch(asked) => list(&[cluster("c1", "1", false)]),
            _ => status(403, "Forbidden"),
        }
    });
    let run = watch(&server, &["--no-headers"]);
    // Three that were dropped, the list, and the watch that ended it: nobody came in between.
    assert_eq!(server.lines().len(), 5, "{:#?}", server.lines());
    // The first pause of the client's library is 800 ms, each further one twice as long, and it adds something to each.
    let times = times.lock().expect("nobody panics").clone();
    let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).take(3).collect();
    let least = [800, 1600, 3200].map(Duration::from_millis);
    assert!(pauses.iter().zip(least).all(|(pause, least)| *pause >= least), "{pauses:?}");
    let warnings = run.stderr.lines().filter(|line| line.starts_with("warning:")).count();
    assert_eq!(warnings, 1, "{run}");
    assert!(run.stderr.contains("note: the watch goes on"), "{run}");
    assert_eq!(run.stdout.lines().count(), 1, "{run}");
}

#[test]
fn a_server_that_ends_watches_at_once_is_not_besieged() {
    const WATCHES: usize = 5;
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = times.clone();
    let server = Server::start(move |_, asked| match is_watch(asked) {
        true => {
            let mut times = seen.lock().expect("nobody panics");
            times.push(Instant::now());
            if times.len() < WATCHES { Reply::Lines(Vec::new()) } else { status(403, "Forbidden") }
        }
        false => list(&[cluster("c1", "1", false)]),
    });
    let run = watch(&server, &["--no-headers"]);
    let times = times.lock().expect("nobody panics").clone();
    let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    let least = [100, 200, 400, 800].map(Duration::from_millis);
    assert!(
        pauses.len() == least.len() && pauses.iter().zip(least).all(|(pause, least)| *pause >= least),
        "{pauses:?}"
    );
    assert!(run.exit == 1 && run.stdout.lines().count() == 1, "{run}");
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
            _ if rest.contains("c2") => json!([request("r3", Some("c2"))]),
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
    // A request's own name is that of one object, a cluster's of however many it has.
    let document = |name: &str| {
        let run = cli.run(["get", "csr", name, "-o", "json"]);
        serde_json::from_str::<Value>(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
    };
    assert_eq!(document("r1")["metadata"]["name"], "r1");
    assert_eq!(document("c2")["items"][0]["metadata"]["name"], "r3");
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

/// Two clusters: one with labels, one without.
fn hub_with_labels() -> Server {
    Server::start(|_, asked| {
        let mut labelled = cluster("c1", "1", true);
        labelled["metadata"]["labels"] = json!({ "env": "prod", "app.kubernetes.io/name": "web" });
        labelled["metadata"]["annotations"] = json!({ "note": "red\u{1b}[31m" });
        match asked.line.strip_prefix("GET ").and_then(|line| line.strip_prefix(PATH)) {
            Some("/c1") => Reply::Json(200, labelled.to_string()),
            Some(rest) if !rest.starts_with('/') => list(&[labelled, cluster("c2", "2", false)]),
            _ => status(404, "NotFound"),
        }
    })
}

#[test]
fn templates_and_columns_are_those_of_kubectl() {
    let server = hub_with_labels();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let get = |words: &[&str]| {
        let run = cli.run([&["get", "clusters"], words].concat());
        assert_eq!(run.exit, 0, "{words:?}: {run}");
        run.stdout
    };
    assert_eq!(get(&["-o", "jsonpath={.items[*].metadata.name}"]), "c1 c2");
    assert_eq!(get(&["c1", "-o", r"jsonpath={.metadata.labels.app\.kubernetes\.io/name}"]), "web");
    let range = r#"jsonpath={range .items[*]}{.metadata.name}{"\t"}{.standing.phase}{"\n"}{end}"#;
    assert_eq!(get(&["-o", range]), "c1\tAccepted\nc2\tPending\n");
    assert_eq!(get(&["-o", "jsonpath={.items[?(@.metadata.labels.env==\"prod\")].metadata.name}"]), "c1");
    assert_eq!(get(&["-o", "jsonpath={.items[*].metadata.nothing}"]), "");
    assert_eq!(get(&["-o", "jsonpath={.items[0].metadata.annotations.note}"]), "red\\u{1b}[31m");
    let columns = "custom-columns=NAME:.metadata.name,ENV:metadata.labels.env,OK:{.spec.hubAcceptsClient}";
    assert_eq!(get(&["-o", columns]), "NAME   ENV      OK\nc1     prod     true\nc2     <none>   false\n");
    assert_eq!(get(&["-o", "custom-columns=NAME:.metadata.name", "--no-headers"]), "c1\nc2\n");
    assert_eq!(get(&["-o", "name", "--sort-by", "{.metadata.labels['env']}"]).lines().count(), 2);
}

#[test]
fn labels_are_the_last_column() {
    let server = hub_with_labels();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["get", "clusters", "--show-labels"]);
    let last: Vec<&str> = run.stdout.lines().filter_map(|line| line.split_whitespace().next_back()).collect();
    assert_eq!(last, ["LABELS", "app.kubernetes.io/name=web,env=prod", "<none>"], "{run}");
    assert!(!cli.run(["get", "clusters"]).stdout.contains("LABELS"));
}

#[test]
fn a_bad_template_says_where_before_anybody_is_asked() {
    let server = hub_with_labels();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for (output, why) in [
        ("jsonpath={.items[*]", "character 11: } is missing"),
        ("jsonpath={range .items[*]}", "character 1: {range} has no {end}"),
        ("jsonpath=.metadata.name", "the template has no path in braces"),
        ("custom-columns=NAME", "character 1: a column is HEADING:PATH"),
        ("custom-columns=NAME:.a,", "character 9: a column is HEADING:PATH"),
    ] {
        let run = cli.run(["get", "clusters", "-o", output]);
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{run}");
        assert!(run.stderr.contains(why), "{output}: {run}");
    }
    assert_eq!(server.lines(), [""; 0]);
}

/// A hub with the cluster c1, which answers with this code when it is asked for clusters by their names, and nothing else.
fn hub_with_one_cluster(code: u16) -> Server {
    Server::start(move |_, asked| {
        let path = asked.line.strip_prefix("GET ").unwrap_or_default().split('?').next().unwrap_or_default();
        match path.strip_prefix(PATH) {
            Some("") => list(&[cluster("c1", "1", true)]),
            Some(_) if code != 200 => status(code, "Forbidden"),
            Some("/c1") => Reply::Json(200, cluster("c1", "1", true).to_string()),
            Some(_) => status(404, "NotFound"),
            None => {
                let list =
                    json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "1" }, "items": [] });
                Reply::Json(200, list.to_string())
            }
        }
    })
}

#[test]
fn of_a_cluster_that_the_hub_does_not_have_there_are_not_just_no_works() {
    let server = hub_with_one_cluster(200);
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for (what, none) in [("works", "no work matches"), ("addons", "no add-on on a cluster matches")] {
        let run = cli.run(["get", what, "-c", "c1"]);
        assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{run}");
        assert!(run.stderr.contains(none), "{run}");
        for names in [&["-c", "c1,c11"][..], &["web", "-n", "c11"]] {
            let run = cli.run([&["get", what], names].concat());
            assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
            assert!(run.stderr.contains("error: the hub has no managed cluster \"c11\""), "{run}");
            assert!(run.stderr.contains("did you mean c1?"), "{run}");
        }
    }
    // Only a list of all of them says what the hub has.
    for (words, none) in [
        (&["works"][..], "note: the hub has no works\n"),
        (&["works", "-l", "env=x"], "note: no work matches\n"),
        (&["csr"], "note: the hub has no certificate requests of clusters\n"),
        (&["csr", "--pending"], "note: no certificate request of a cluster matches\n"),
        (&["clustersets", "-l", "env=x"], "note: no set of clusters matches\n"),
        (&["placements", "-A"], "note: the hub has no placements\n"),
        (
            &["placements"],
            "note: no placement matches\nnote: only namespace default was read; --all-namespaces shows those of all \
             namespaces\n",
        ),
    ] {
        let run = cli.run([&["get"], words].concat());
        assert_eq!((run.exit, run.stdout.as_str(), run.stderr.as_str()), (0, "", none), "{run}");
    }
    // Who may not read clusters is told of works alone.
    let server = hub_with_one_cluster(403);
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    assert_eq!(cli.run(["get", "works", "-c", "c11"]).exit, 0);
}

#[test]
fn works_of_all_clusters_and_of_one_are_asked_for_as_with_kubectl() {
    let server = hub_with_one_cluster(200);
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    assert_eq!(cli.run(["get", "works", "-A"]).exit, 0);
    assert_eq!(cli.run(["get", "works", "-n", "c1"]).exit, 0);
    let lines = server.lines();
    for path in ["/v1/manifestworks", "/v1/namespaces/c1/manifestworks"] {
        assert!(lines.iter().any(|line| line.contains(path)), "{path}: {lines:?}");
    }
    assert_eq!(cli.run(["get", "works", "-A", "-c", "c1"]).exit, 2);
}

#[test]
fn of_some_clusters_only_their_namespaces_are_watched() {
    let server = Server::start(|_, _| status(403, "Forbidden"));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    // More are watched as one.
    let many = (0..33).map(|number| format!("c{number}")).collect::<Vec<_>>().join(",");
    for (what, plural) in [("works", "manifestworks"), ("addons", "managedclusteraddons")] {
        for (clusters, path) in [
            ("c1".to_owned(), format!("/namespaces/c1/{plural}?")),
            ("c1,c1".to_owned(), format!("/namespaces/c1/{plural}?")),
            (many.clone(), format!("/{plural}?")),
        ] {
            let run = cli.run(["get", what, "--watch", "-c", &clusters]);
            assert_eq!(run.exit, 1, "{run}");
            let line = server.lines().pop().unwrap_or_default();
            assert!(line.contains(&path) && line.contains("namespaces") == path.contains("namespaces"), "{line}");
        }
        let before = server.lines().len();
        assert_eq!(cli.run(["get", what, "--watch", "-c", "c1,c2"]).exit, 1);
        let lines = server.lines().split_off(before);
        let is_of =
            |line: &String| ["c1", "c2"].iter().any(|one| line.contains(&format!("/namespaces/{one}/{plural}?")));
        assert!(!lines.is_empty() && lines.iter().all(is_of), "{lines:?}");
    }
}

#[test]
fn a_name_that_several_objects_may_have_is_a_list_of_however_many_have_it() {
    let server = Server::start(|_, asked| {
        let path = asked.line.strip_prefix("GET ").unwrap_or_default().split('?').next().unwrap_or_default();
        if path.contains("/managedclusters") {
            return status(403, "Forbidden");
        }
        let web = json!({ "metadata": { "namespace": "c1", "name": "web" }, "spec": {} });
        let of = |kinds: &[&str]| kinds.iter().any(|kind| path.ends_with(kind));
        let items =
            if of(&["/manifestworks", "/managedclusteraddons", "/placements"]) { json!([web]) } else { json!([]) };
        let list =
            json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "1" }, "items": items });
        Reply::Json(200, list.to_string())
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for (what, everywhere, one) in [
        ("works", &[][..], &["-c", "c1"]),
        ("works", &["-c", "c1,c2"], &["-n", "c1"]),
        ("addons", &["-A"], &["-c", "c1"]),
        ("placements", &["-A"], &["-n", "c1"]),
    ] {
        let name = |path: &str, more: &[&str]| {
            let run = cli.run([&["get", what, "web", "-o", path], more].concat());
            assert_eq!(run.exit, 0, "{run}");
            run.stdout
        };
        assert_eq!(name("jsonpath={.items[*].metadata.name}", everywhere), "web", "{what} {everywhere:?}");
        assert_eq!(name("jsonpath={.metadata.name}", one), "web", "{what} {one:?}");
    }
}

/// A cluster that serves one ClusterManager, its Deployments, and one definition.
fn hub_with_manager() -> Server {
    const APPS: &str = "/apis/apps/v1/namespaces/open-cluster-management";
    const DEFINITION: &str = "managedclusters.cluster.open-cluster-management.io";
    let deployment = |namespace: &str, name: &str, image: &str, ready: i32| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name, "namespace": namespace, "generation": 1 },
            "spec": { "replicas": 1, "selector": { "matchLabels": { "app": name } },
                "template": { "spec": { "containers": [{ "name": "x", "image": image, "args": ["/registration-operator", "hub"] }] } } },
            "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready,
                "availableReplicas": ready },
        })
    };
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "AsExpected", "message": "all is well",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let manager = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
        "metadata": { "name": "cluster-manager", "generation": 1 },
        "spec": {
            "registrationImagePullSpec": "r/registration:v1.2.0", "workImagePullSpec": "r/work:v1.2.0",
            "placementImagePullSpec": "r/placement:v1.2.0", "addOnManagerImagePullSpec": "r/addon-manager:v1.2.0",
            "registrationConfiguration": {
                "featureGates": [{ "feature": "ManagedClusterAutoApproval", "mode": "Enable" }],
                "registrationDrivers": [{ "authType": "csr" }, { "authType": "grpc" }],
            },
        },
        "status": { "observedGeneration": 1, "conditions": [condition("Applied", "True"),
            condition("Progressing", "False"), condition("HubRegistrationDegraded", "False"),
            condition("HubPlacementDegraded", "False")] },
    });
    let operator = deployment("open-cluster-management", "cluster-manager", "r/registration-operator:v1.2.0", 1);
    let controller =
        deployment("open-cluster-management-hub", "cluster-manager-placement-controller", "r/placement:v1.2.0", 0);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": DEFINITION },
        "spec": { "versions": [{ "name": "v1", "served": true, "storage": true }] },
        "status": { "storedVersions": ["v1"] },
    });
    Server::start(move |_, asked| {
        let path = asked.line.strip_prefix("GET ").unwrap_or_default();
        let list = |version: &str, kind: &str, items: &[&Value]| {
            let list =
                json!({ "apiVersion": version, "kind": kind, "metadata": { "resourceVersion": "1" }, "items": items });
            Reply::Json(200, list.to_string())
        };
        match path.split('?').next().unwrap_or_default() {
            "/apis/operator.open-cluster-management.io/v1/clustermanagers" => {
                list("operator.open-cluster-management.io/v1", "ClusterManagerList", &[&manager])
            }
            path if path == format!("{APPS}/deployments/cluster-manager") => Reply::Json(200, operator.to_string()),
            path if path == format!("{APPS}-hub/deployments") => list("apps/v1", "DeploymentList", &[&controller]),
            "/api/v1/namespaces/open-cluster-management-hub/pods" => list("v1", "PodList", &[]),
            path if path.ends_with(DEFINITION) => Reply::Json(200, definition.to_string()),
            _ => status(404, "NotFound"),
        }
    })
}

#[test]
fn a_hub_is_shown_with_what_runs_there_and_what_is_missing() {
    let server = hub_with_manager();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    check!("get-hub-info", cli, cli.run(["get", "hub-info"]));
    check!("get-hub-info-wide", cli, cli.run(["get", "hub-info", "-o", "wide"]));
    let run = cli.run(["get", "hub-info", "cluster-manager", "-o", "json"]);
    let info: Value = serde_json::from_str(&run.stdout).expect("one object");
    // Without a name it is a list, also of one.
    let all: Value = serde_json::from_str(&cli.run(["get", "hub-info", "-o", "json"]).stdout).expect("a list");
    assert_eq!((&all["kind"], &all["items"]), (&json!("List"), &json!([info])));
    let run = cli.run(["get", "hub-info", "other", "-o", "json"]);
    assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
    assert!(run.stderr.contains("there is no ClusterManager \"other\""), "{run}");
    let run = cli.run(["get", "hub-info", "cluster-manager", "-o", "json"]);
    assert_eq!((&info["release"], &info["registrationDrivers"]), (&json!("v1.2.0"), &json!(["csr", "grpc"])), "{run}");
    let deployment = &info["deployments"][1];
    assert_eq!((&deployment["ready"], &deployment["wanted"]), (&json!(0), &json!(1)), "{run}");
    let gates = info["featureGates"].as_array().expect("a list");
    let approval = gates.iter().find(|gate| gate["name"] == "ManagedClusterAutoApproval").expect("a known gate");
    assert_eq!((&approval["enabled"], &approval["source"]), (&json!(true), &json!("Spec")), "{run}");
    assert_eq!(info["definitions"][0]["stored"], json!(["v1"]), "{run}");
    assert_eq!(info["missing"].as_array().map(Vec::len), Some(1), "{run}");
    assert!(server.lines().iter().all(|line| line.starts_with("GET ")), "it only reads: {:#?}", server.lines());
    assert_eq!(cli.run(["get", "hub-info", "-o", "jsonpath={.items[0].images.work}"]).stdout, "r/work:v1.2.0");
    let run = cli.run(["get", "hub-info", "-o", "custom-columns=NAME:.name,RELEASE:.release"]);
    assert_eq!(run.stdout, "NAME              RELEASE\ncluster-manager   v1.2.0\n", "{run}");
    let run = cli.run(["get", "hub-info", "-o", "name"]);
    assert_eq!(run.stdout, "clustermanager.operator.open-cluster-management.io/cluster-manager\n", "{run}");
}

#[test]
fn what_is_neither_hub_nor_managed_cluster_is_told_as_such() {
    let server = Server::start(|_, asked| match asked.line.starts_with("GET /apis/apps/") {
        true => status(404, "NotFound"),
        false => Reply::Json(404, "404 page not found\n".to_owned()),
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for (what, why) in [("hub-info", "there is no ClusterManager"), ("klusterlet-info", "there is no Klusterlet")] {
        let run = cli.run(["get", what]);
        assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{run}");
        assert!(run.stderr.contains(why), "{run}");
    }
}

#[test]
fn tokens_are_those_of_token_list() {
    let server = Server::start(|_, _| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": { "name": "bootstrap-token-abc123", "namespace": "kube-system",
                "labels": { "app.kubernetes.io/managed-by": "kubectl-ocm" } },
            "data": { "token-id": "YWJjMTIz", "usage-bootstrap-authentication": "dHJ1ZQ==" },
        });
        let list = json!({ "apiVersion": "v1", "kind": "SecretList", "metadata": { "resourceVersion": "1" }, "items": [secret] });
        Reply::Json(200, list.to_string())
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for output in ["table", "wide", "json", "yaml", "name"] {
        let tokens = cli.run(["get", "tokens", "-o", output]);
        assert_eq!(tokens, cli.run(["token", "list", "-o", output]));
        assert!(tokens.exit == 0 && tokens.stdout.contains("abc123"), "{tokens}");
    }
}

//! Reports of a fleet, of bundles, and of what may not be read, against a server that does what a test says.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, Run, authority, kubeconfig};
use serde_json::{Value, json};

const CLUSTERS: usize = 1000;
/// How many objects one page of the server's lists has at most, whatever is asked for.
const PAGE: usize = 500;
/// The time of the server.
const NOW: &str = "2026-03-01T12:00:00Z";

fn list(kind: &str, items: &[Value], next: Option<usize>) -> Reply {
    let list = json!({"apiVersion": "v1", "kind": format!("{kind}List"),
        "metadata": {"resourceVersion": "1", "continue": next.map(|next| next.to_string())}, "items": items});
    Reply::Json(200, list.to_string())
}

fn forbidden(what: &str) -> Reply {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": format!("{what} is forbidden: User \"x\" cannot list resource")});
    Reply::Json(403, status.to_string())
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn cluster(number: usize) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": format!("c{number:04}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
        "status": {"conditions": [condition("HubAcceptedManagedCluster", "True"), condition("ManagedClusterJoined", "True"),
            condition("ManagedClusterConditionAvailable", "True")]}})
}

/// Every hundredth cluster is silent.
fn lease(number: usize) -> Value {
    let renewed = if number % 100 == 7 { "2026-03-01T11:00:00.000000Z" } else { "2026-03-01T11:59:30.000000Z" };
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "managed-cluster-lease", "namespace": format!("c{number:04}")}, "spec": {"renewTime": renewed}})
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "spec": {"replicas": 1, "selector": {}, "template": {"spec": {"containers": [{"image": format!("r/{name}:v1.3.1")}]}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}})
}

/// A page of many objects.
fn page(kind: &str, line: &str, of: fn(usize) -> Value) -> Reply {
    let from = line.split("continue=").nth(1).and_then(|rest| rest.split('&').next()?.parse().ok()).unwrap_or(0);
    let until = (from + PAGE).min(CLUSTERS);
    let items: Vec<Value> = (from..until).map(of).collect();
    list(kind, &items, (until < CLUSTERS).then_some(until))
}

/// A hub of a thousand clusters.
fn hub(asked: &Asked) -> Reply {
    const WEBHOOKS: [(&str, &str, &str); 4] = [
        ("mutating", "managedclustermutators.admission.cluster.open-cluster-management.io", "registration"),
        ("validating", "managedclustervalidators.admission.cluster.open-cluster-management.io", "registration"),
        (
            "validating",
            "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
            "registration",
        ),
        ("validating", "manifestworkvalidators.admission.work.open-cluster-management.io", "work"),
    ];
    let line = asked.line.as_str();
    let has = |part: &str| line.contains(part);
    let webhooks = |kind: &str| {
        let of = WEBHOOKS.iter().filter(|(own, ..)| *own == kind);
        let items: Vec<Value> = of
            .map(|(_, name, _)| {
                json!({"metadata": {"name": name}, "webhooks": [{"name": name,
                "clientConfig": {"caBundle": STANDARD.encode(authority())}, "admissionReviewVersions": ["v1"], "sideEffects": "None"}]})
            })
            .collect();
        list("WebhookConfiguration", &items, None)
    };
    match () {
        () if line.starts_with("POST") => {
            let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
                "metadata": {"creationTimestamp": NOW}, "status": {"userInfo": {"username": "u"}}});
            Reply::Json(201, review.to_string())
        }
        () if line.ends_with("/apis/cluster.open-cluster-management.io/v1") => {
            let found = json!({"kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "cluster.open-cluster-management.io/v1", "resources": [{"name": "managedclusters",
                "singularName": "", "namespaced": false, "kind": "ManagedCluster", "verbs": ["list"]}]});
            Reply::Json(200, found.to_string())
        }
        () if has("/managedclusters/c0001") => Reply::Json(200, cluster(1).to_string()),
        () if has("/managedclusters") => page("ManagedCluster", line, cluster),
        () if has("/leases?") => page("Lease", line, lease),
        () if has("/clustermanagers") => list(
            "ClusterManager",
            &[json!({
            "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
            "metadata": {"name": "cluster-manager", "generation": 1}, "spec": {},
            "status": {"observedGeneration": 1, "conditions": [condition("Applied", "True")]}})],
            None,
        ),
        () if has("/deployments/cluster-manager") => {
            Reply::Json(200, deployment("open-cluster-management", "cluster-manager").to_string())
        }
        () if has("/namespaces/open-cluster-management-hub/deployments") => list(
            "Deployment",
            &[deployment("open-cluster-management-hub", "cluster-manager-registration-controller")],
            None,
        ),
        () if has("/mutatingwebhookconfigurations") => webhooks("mutating"),
        () if has("/validatingwebhookconfigurations") => webhooks("validating"),
        () if has("/endpointslices") => {
            let slice = |service: &str| {
                json!({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}],
                "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}}})
            };
            let services = ["cluster-manager-registration-webhook", "cluster-manager-work-webhook"];
            list("EndpointSlice", &services.map(slice), None)
        }
        () if has("/configmaps/ca-bundle-configmap") => {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca-bundle-configmap"},
                "data": {"ca-bundle.crt": authority()}});
            Reply::Json(200, map.to_string())
        }
        () if has("/customresourcedefinitions/")
            || has("/configmaps/")
            || has("/secrets/")
            || has("/leases/")
            || has("/namespaces/kube-system") =>
        {
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "not found"});
            Reply::Json(404, status.to_string())
        }
        () => list("Thing", &[], None),
    }
}

fn fleet() -> (Server, Cli) {
    let server = Server::start(|_, asked| hub(asked));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    (server, cli)
}

fn troubleshoot(cli: &Cli, words: &[&str]) -> Run {
    cli.run([&["troubleshoot"], words].concat())
}

#[test]
fn a_thousand_clusters_take_as_many_requests_as_there_are_kinds_and_are_grouped_by_cause() {
    let (server, cli) = fleet();
    let run = troubleshoot(&cli, &["--all-clusters", "--context", "hub"]);
    assert_eq!(run.exit, 3, "{run}");
    let requests = server.lines().len();
    assert!(requests <= 35, "{requests} requests: {:#?}", server.lines());
    let mut lines = run.stdout.lines();
    assert_eq!(lines.next(), Some("1000 clusters: 990 joined and available, 10 not"), "{run}");
    let found: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("OCM")).collect();
    assert_eq!(found, ["OCM3101 error 10 clusters: the agent has not been heard of since 60m"], "{run}");
    assert!(run.stdout.contains("  clusters: c0007, c0107, c0207, c0307, c0407 and 5 more\n"), "{run}");
    assert!(run.stdout.contains("still calls the cluster Available"), "{run}");
}

#[test]
fn a_bundle_gives_the_same_report_elsewhere_in_every_format() {
    let (_server, cli) = fleet();
    let file = cli.home().join("bundle.json");
    let path = file.display().to_string();
    let live = troubleshoot(&cli, &["--context", "hub", "--bundle", &path]);
    assert_eq!(live.exit, 3, "{live}");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let nobody = Cli::new();
    let from = |words: &[&str]| troubleshoot(&nobody, &[&["--from", &path], words].concat());
    assert_eq!(from(&["--context", "hub"]).stdout, live.stdout);
    let again = troubleshoot(&cli, &["--context", "hub", "--bundle", &path]);
    assert!(again.exit == 2 && again.stderr.contains("bundles do not replace files"), "{again}");
    assert_eq!(again.stdout, "", "nothing was looked at");

    let json: Value = serde_json::from_str(&from(&["-o", "json"]).stdout).expect("JSON");
    assert_eq!(json["verdict"], "findings");
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(10));
    assert_eq!(json["findings"][0]["id"], "OCM3101");
    assert!(json["findings"][0]["next"].to_string().contains("kubectl"), "{}", json["findings"][0]);
    let lines = from(&["-o", "jsonl"]).stdout;
    assert_eq!(lines.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(), 11);
    assert!(from(&["-o", "yaml"]).stdout.contains("verdict: findings"));
    assert_eq!(from(&["-o", "name"]).stdout.lines().next(), Some("OCM3101:c0007"));
    let junit = from(&["-o", "junit"]).stdout;
    assert!(junit.contains("failures=\"1\"") && junit.contains("<failure type=\"error\""), "{junit}");
    // What does not count for the exit code is no failure either.
    let junit = from(&["-o", "junit", "--fail-on", "never"]);
    assert!(junit.exit == 0 && junit.stdout.contains("failures=\"0\" errors=\"0\""), "{junit}");
    assert!(junit.stdout.contains("<system-out>error: OCM3101:c0007: the agent has not been heard of"), "{junit}");
    let sarif: Value = serde_json::from_str(&from(&["-o", "sarif"]).stdout).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(10));
    // Nothing in it is loaded or run.
    let html = from(&["-o", "html"]).stdout;
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"), "{html}");
    assert!(["<script", "src=", "href=", "url("].iter().all(|word| !html.contains(word)), "{html}");
    assert!(html.contains("OCM3101 <span class=\"severity\">error</span>: the agent has not been heard of"), "{html}");
    assert_eq!(html.matches("<ol class=\"chain\">").count(), 10, "the chains of those that are not well");
    assert_eq!(html.matches("aria-current=\"step\"").count(), 10, "{html}");
    let markdown = from(&["-o", "markdown"]).stdout;
    assert!(markdown.contains("### OCM3101 error: `the agent has not been heard of"), "{markdown}");
    assert!(markdown.starts_with("**`1000 clusters: 990 joined and available, 10 not`**\n"), "{markdown}");
    let wide = from(&["-o", "wide"]).stdout;
    assert!(wide.contains("left out, the managed cluster was not looked at: OCM2101"), "{wide}");

    let one = from(&["c0001"]);
    assert!(one.exit == 0 && one.stdout.starts_with("c0001: joined and available, heard of 30s ago\n"), "{one}");
    let other = from(&["C_1"]);
    assert!(other.exit == 2 && other.stderr.contains("does not tell of cluster \"C_1\""), "{other}");
    let silent = ["OCM3101=2026-03-01,the site is off"];
    let suppressed = from(&["--suppress", silent[0]]);
    assert!(suppressed.exit == 0 && suppressed.stdout.contains("10 suppressed"), "{suppressed}");
    assert_eq!(from(&["--fail-on", "never"]).exit, 0);
    let known = cli.write("known", &format!("# known\n\n{}\n", silent[0])).display().to_string();
    assert_eq!(from(&["--suppress-file", &known]).exit, 0);
    assert_eq!(from(&["--suppress", "OCM3101=2026-02-28,ended"]).exit, 3);
}

#[test]
fn a_bundle_tells_of_its_clusters_alone_and_never_in_the_reports_place() {
    let (_server, cli) = fleet();
    let file = cli.home().join("two.json").display().to_string();
    // More names than are read one by one.
    let names: Vec<String> = (1..=9).map(|number| format!("c000{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let live = troubleshoot(&cli, &[&names[..], &["--context", "hub", "--bundle", &file]].concat());
    assert!(live.exit == 3 && live.stderr.contains("without values of Secrets"), "{live}");
    assert_eq!(troubleshoot(&cli, &["--from", &file, "c0002"]).exit, 0);
    let other = troubleshoot(&cli, &["--from", &file, "c0100"]);
    assert!(other.exit == 2 && other.stderr.contains("it tells of: c0001, c0002"), "{other}");

    let nowhere = cli.home().join("no/such/folder.json").display().to_string();
    let run = troubleshoot(&cli, &["--context", "hub", "--bundle", &nowhere]);
    assert!(run.exit == 1 && run.stderr.contains("cannot write"), "{run}");
    assert!(run.stdout.starts_with("1000 clusters: 990 joined"), "{run}");
    // A device that is full.
    let full = troubleshoot(&cli, &["--context", "hub", "--bundle", "/dev/full"]);
    assert!(full.exit == 2 && full.stderr.contains("bundles do not replace files"), "{full}");

    let large = cli.home().join("large.json");
    std::fs::File::create(&large).and_then(|file| file.set_len((64 << 20) + 1)).expect("a sparse file");
    let run = troubleshoot(&cli, &["--from", &large.display().to_string()]);
    assert!(run.exit == 2 && run.stderr.contains("larger than 64 MiB"), "{run}");
    // Small objects, and many of them; then enough of them to take all memory before they are counted.
    for (count, why) in
        [(200_001, "it has 200001 objects"), (1_200_001, "it has 1200005 values, and at most 1200000 are read")]
    {
        let works = vec!["{}"; count].join(",");
        let bundle = format!(
            r#"{{"kind": "TroubleshootBundle", "snapshot": {{"format": 1, "observed": "{NOW}", "hub": {{"works": {{"read": [{works}]}}}}}}}}"#
        );
        let many = cli.write("many.json", &bundle).display().to_string();
        let run = troubleshoot(&cli, &["--from", &many]);
        assert!(run.exit == 2 && run.stderr.contains(why), "{run}");
    }
    // Longer than any clock goes.
    let run = troubleshoot(&cli, &["--context", "hub", "--timeout", "18446744073709551615"]);
    assert_eq!(run.exit, 3, "{run}");
}

#[test]
fn credentials_in_words_of_others_are_in_no_output_and_in_no_bundle() {
    const WORDS: &str = "failed: Get \"https://me:s3cr3t@hub:6443\": Bearer s3cr3t.0 abcdef.0123456789s3cr3t";
    // A container that crashes, and says why.
    let pod = json!({"metadata": {"name": "p", "labels": {}}, "spec": {"nodeName": "n", "containers": []},
        "status": {"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": WORDS}}}]}});
    let server = Server::start(move |_, asked| {
        if asked.line.contains("/pods?") {
            return list("Pod", std::slice::from_ref(&pod), None);
        }
        let Reply::Json(code, text) = hub(asked) else { return hub(asked) };
        let text = text.replace(r#""availableReplicas":1"#, r#""availableReplicas":0"#);
        let text = text.replace(r#""message":"m""#, &format!(r#""message":{}"#, json!(WORDS)));
        Reply::Json(code, text.replace(r#""status":"True","type":"Applied""#, r#""status":"False","type":"Applied""#))
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let file = cli.home().join("bundle.json");
    let live = troubleshoot(&cli, &["--context", "hub", "-o", "json", "--bundle", &file.display().to_string()]);
    let bundle = std::fs::read_to_string(&file).expect("it was written");
    assert!(bundle.contains("its last log lines: failed: Get"), "the words are in it: {bundle}");
    for text in [&live.stdout, &live.stderr, &bundle] {
        assert!(!text.contains("s3cr3t"), "{live}");
    }
}

/// A pod of the hub's registration controller.
fn controller(name: &str, status: &Value) -> Value {
    json!({"metadata": {"name": name, "labels": {"pod-template-hash": "1a"}, "ownerReferences": [{"apiVersion": "apps/v1",
            "kind": "ReplicaSet", "name": "cluster-manager-registration-controller-1a", "uid": "u"}]},
        "spec": {"nodeName": "n", "containers": []}, "status": status})
}

#[test]
fn logs_are_in_a_bundle_without_credentials_and_make_no_difference_to_its_report() {
    const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgs3cr3t0123456789";
    let status = |state: Value, last: Value| {
        json!({"phase": "Running", "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": true,
            "restartCount": 1, "state": state, "lastState": last}]})
    };
    let pods = [
        controller("restarted", &status(json!({"running": {}}), json!({"terminated": {"exitCode": 1}}))),
        controller("closed", &status(json!({"running": {}}), json!({}))),
        controller("waiting", &status(json!({"waiting": {"reason": "ContainerCreating"}}), json!({}))),
        controller("pending", &json!({"phase": "Pending"})),
        // One of somebody else.
        json!({"metadata": {"name": "other"}, "spec": {"containers": []}, "status": {"phase": "Running"}}),
    ];
    let lines = |lines: &[&str]| Reply::Lines(lines.iter().map(|line| (*line).to_owned()).collect());
    let server = Server::start(move |_, asked| {
        let has = |part: &str| asked.line.contains(part);
        match () {
            () if has("/namespaces/open-cluster-management-hub/pods?") => list("Pod", &pods, None),
            () if has("/pods/closed/log?") => forbidden("pods \"closed\""),
            () if has("/pods/restarted/log?") && has("previous=true") => {
                lines(&["before", "-----BEGIN PRIVATE KEY-----", KEY, "s3cr3t==", "-----END PRIVATE KEY-----", "after"])
            }
            () if has("/pods/restarted/log?") => lines(&[
                "Authorization: Bearer s3cr3t0123456789-abcdef",
                "Get \"https://me:s3cr3t@hub:6443\": EOF",
                "token eyJhbGciOiJSUzI1NiJ9.eyJzM2NyM3QiOiJzM2NyM3QifQ.s3cr3t",
            ]),
            () => hub(asked),
        }
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let is_log = |line: &String| line.contains("/log?");
    let plain = troubleshoot(&cli, &["c0001", "--context", "hub"]);
    assert!(plain.exit == 0 && !server.lines().iter().any(is_log), "{plain}");
    let file = cli.home().join("bundle.json");
    let live = troubleshoot(&cli, &["c0001", "--context", "hub", "--bundle", &file.display().to_string()]);
    assert!(live.exit == 0 && live.stdout == plain.stdout, "{live}");
    assert!(live.stderr.contains("are not there: `logs` in the file says why"), "{live}");
    let asked: Vec<String> = server.lines().into_iter().filter(is_log).collect();
    assert_eq!(asked.len(), 3, "{asked:#?}");
    assert!(asked.iter().all(|line| line.contains("tailLines=") && line.contains("limitBytes=")), "{asked:#?}");

    let text = std::fs::read_to_string(&file).expect("it was written");
    assert!(!text.contains("s3cr3t") && !text.contains("MIGHAgEA"), "{text}");
    let mut bundle: Value = serde_json::from_str(&text).expect("JSON");
    let logs = bundle["logs"].as_array().cloned().expect("it has logs");
    let of = |pod: &str| logs.iter().filter(|log| log["pod"] == pod).collect::<Vec<_>>();
    let [earlier, present] = of("restarted")[..] else { panic!("{logs:#?}") };
    assert_eq!(earlier["log"]["read"], json!(["before", "[redacted]", "after"]));
    assert_eq!((&earlier["previous"], &present["previous"]), (&json!(true), &Value::Null));
    assert_eq!(present["log"]["read"].as_array().map(Vec::len), Some(3), "{present}");
    let trouble = |pod: &str| of(pod)[0]["log"]["trouble"].clone();
    assert_eq!(trouble("closed")["rule"]["resource"], "pods/log", "{logs:#?}");
    assert_eq!(trouble("waiting")["message"], "the container was not started: ContainerCreating");
    assert_eq!(trouble("pending")["message"], "the pod is Pending, and none of its containers was started");
    assert!(of("other").is_empty(), "{logs:#?}");
    assert!(logs.iter().any(|log| log["deployment"] == "cluster-manager" && log["log"]["trouble"].is_object()));

    // Bundles without logs, as they were before, are read, too.
    bundle.as_object_mut().and_then(|bundle| bundle.remove("logs")).expect("it had logs");
    let without = cli.write("without.json", &bundle.to_string());
    for file in [file, without] {
        let run = troubleshoot(&cli, &["--context", "hub", "--from", &file.display().to_string()]);
        assert_eq!((run.exit, run.stdout), (0, live.stdout.clone()));
    }
}

#[test]
fn what_may_not_be_read_makes_the_outcome_inconclusive_and_names_the_right() {
    let server = Server::start(|_, asked| match asked.line.contains("/leases?") {
        true => forbidden("leases.coordination.k8s.io"),
        false => hub(asked),
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = troubleshoot(&cli, &["--context", "hub"]);
    assert_eq!(run.exit, 4, "{run}");
    assert!(run.stdout.contains("OCM3101, OCM3103, OCM3108, OCM3110 could not be checked"), "{run}");
    assert!(run.stdout.contains("this right would allow it: list leases.coordination.k8s.io\n"), "{run}");
    assert_eq!(troubleshoot(&cli, &["--context", "hub", "--fail-on", "never"]).exit, 0);
    // Rights do not come by themselves.
    let run = troubleshoot(&cli, &["--context", "hub", "--wait", "--timeout", "1h"]);
    assert_eq!(run.exit, 4, "{run}");
}

#[test]
fn every_right_that_is_missing_is_named_as_itself() {
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "clustermanager-lock",
        "namespace": "open-cluster-management"}, "spec": {"holderIdentity": "cluster-manager-1-a_b"}});
    for (part, rule) in [
        ("/pods?", "list pods in namespace open-cluster-management"),
        ("/mutatingwebhookconfigurations", "list mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("/validatingwebhookconfigurations", "list validatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("/endpointslices", "list endpointslices.discovery.k8s.io in namespace open-cluster-management-hub"),
    ] {
        let lease = lease.to_string();
        let server = Server::start(move |_, asked| match asked.line.as_str() {
            // The metadata of pods is read without a query.
            line if line.contains(part) || (part == "/pods?" && line.ends_with("/pods")) => forbidden("it"),
            line if line.contains("/leases/clustermanager-lock") => Reply::Json(200, lease.clone()),
            line if line.contains("/pods") => list("Pod", &[], None),
            _ => hub(asked),
        });
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        let run = troubleshoot(&cli, &["c0001", "--context", "hub"]);
        assert!(run.stdout.contains(&format!("this right would allow it: {rule}\n")), "{part}: {run}");
    }
}

#[test]
fn nobody_needs_the_right_to_the_private_keys_of_webhooks() {
    // Of whoever may read one of the Secrets, that one is looked at.
    let look = |may_read: bool| {
        let server = Server::start(move |_, asked| match asked.line.as_str() {
            line if may_read && line.contains("/secrets/work-webhook-serving-cert") => expired(),
            line if line.contains("/secrets/") => forbidden("secrets"),
            _ => hub(asked),
        });
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        let run = troubleshoot(&cli, &["c0001", "--context", "hub", "-o", "json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("JSON: {run}"));
        (run.exit, report)
    };
    let (exit, report) = look(false);
    assert_eq!((exit, &report["unknown"]), (0, &json!([])), "{report:#}");
    let skipped = report["skipped"].as_array().expect("a list");
    let own = skipped.iter().find(|skipped| skipped["ids"] == json!(["OCM1118"])).expect("it is left out");
    assert!(own["why"].to_string().contains("whoever may read them is told"), "{own:#}");
    let (exit, report) = look(true);
    assert_eq!((exit, &report["findings"][0]["id"]), (3, &json!("OCM1118")), "{report:#}");
    assert!(!report.to_string().contains("s3cr3t"), "{report:#}");
}

/// What a webhook serves with, and its certificate has expired.
fn expired() -> Reply {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2025, 1, 1), rcgen::date_time_ymd(2025, 2, 1));
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let data = json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode("s3cr3t")});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "work-webhook-serving-cert",
        "namespace": "open-cluster-management-hub"}, "data": data});
    Reply::Json(200, secret.to_string())
}

#[test]
fn a_webhook_behind_a_name_outside_of_the_hub_is_not_said_to_have_no_server() {
    /// What the hub says of the Service that somebody's webhook is asked at.
    fn look(service: fn() -> Reply) -> Run {
        let server = Server::start(move |_, asked| match asked.line.as_str() {
            line if line.contains("/validatingwebhookconfigurations") => {
                let Reply::Json(code, text) = hub(asked) else { panic!("it is a list") };
                let mut found: Value = serde_json::from_str(&text).expect("JSON");
                let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["managedclusters"],
                    "operations": ["*"]}]);
                let hook = json!({"name": "a.b.c", "clientConfig": {"service": {"namespace": "outside", "name": "there"}},
                    "rules": rules, "admissionReviewVersions": ["v1"], "sideEffects": "None"});
                let others = json!({"metadata": {"name": "others"}, "webhooks": [hook]});
                found["items"].as_array_mut().expect("a list").push(others);
                Reply::Json(code, found.to_string())
            }
            line if line.contains("/namespaces/outside/services/there") => service(),
            _ => hub(asked),
        });
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        troubleshoot(&cli, &["c0001", "--context", "hub"])
    }
    fn of_type(kind: &str) -> Reply {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "there", "namespace": "outside"},
            "spec": {"type": kind, "externalName": "there.example"}});
        Reply::Json(200, service.to_string())
    }
    let outside = look(|| of_type("ExternalName"));
    assert!(outside.exit == 0 && !outside.stdout.contains("OCM1117"), "{outside}");
    let silent = look(|| of_type("ClusterIP"));
    let words = ["OCM1117 error", "nothing is behind Service outside/there"];
    assert!(silent.exit == 3 && words.iter().all(|words| silent.stdout.contains(words)), "{silent}");
    assert!(!silent.stdout.contains("ExternalName"), "{silent}");
    // Whoever may not read its type is told so.
    let unread = look(|| forbidden("services"));
    assert!(unread.exit == 3 && unread.stdout.contains("its type was not read: one of type ExternalName"), "{unread}");
}

#[test]
fn where_the_policy_engine_is_not_served_nobody_needs_rights_for_it() {
    let hub_of = |is_served: bool| {
        Server::start(move |_, asked| match asked.line.as_str() {
            line if line.ends_with("/apis/policy.kubectl-ocm.dev") && !is_served => {
                Reply::Json(404, "404 page not found\n".to_owned())
            }
            line if line.contains("/apis/policy.kubectl-ocm.dev/") || line.contains("/ocm-policy-engine/") => {
                forbidden("it")
            }
            _ => hub(asked),
        })
    };
    let run = |server: &Server| {
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        troubleshoot(&cli, &["c0001", "--context", "hub"])
    };
    let absent = run(&hub_of(false));
    assert!(absent.exit == 0 && !absent.stdout.contains("could not be checked"), "{absent}");
    let there = run(&hub_of(true));
    assert!(there.stdout.contains("list hubpolicies.policy.kubectl-ocm.dev"), "{there}");
}

#[test]
fn an_operator_in_another_namespace_is_the_operator() {
    let hub_of = |namespaces: &'static [&'static str]| {
        Server::start(move |_, asked| match asked.line.as_str() {
            line if line.contains("/open-cluster-management/deployments/cluster-manager") => {
                let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404,
                    "reason": "NotFound", "message": "not found"});
                Reply::Json(404, status.to_string())
            }
            line if line.contains("/apis/apps/v1/deployments?") => {
                let found: Vec<Value> = namespaces.iter().map(|of| deployment(of, "cluster-manager")).collect();
                list("Deployment", &found, None)
            }
            _ => hub(asked),
        })
    };
    let cli_of = |server: &Server| Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let server = hub_of(&["operators"]);
    let elsewhere = troubleshoot(&cli_of(&server), &["c0001", "--context", "hub"]);
    assert!(elsewhere.exit == 0 && !elsewhere.stdout.contains("it does not exist"), "{elsewhere}");

    let server = hub_of(&[]);
    let cli = cli_of(&server);
    let file = cli.home().join("bundle.json").display().to_string();
    let missing = troubleshoot(&cli, &["c0001", "--context", "hub", "--bundle", &file]);
    assert!(missing.stdout.contains("it does not exist") && missing.stdout.contains(" --context hub\n"), "{missing}");
    // The contexts of whoever wrote the bundle are not those of whoever pastes the commands.
    let from = |words: &[&str]| troubleshoot(&Cli::new(), &[&["--from", &file], words].concat());
    let theirs = from(&[]);
    assert!(!theirs.stdout.contains(" --context hub") && theirs.stderr.contains("name no context"), "{theirs}");
    let mine = from(&["--context", "mine"]);
    assert!(mine.stdout.contains(" --context mine\n") && !mine.stderr.contains("name no context"), "{mine}");
}

#[test]
fn of_one_cluster_nothing_of_others_is_in_its_bundle() {
    let (_server, cli) = fleet();
    let file = cli.home().join("one.json");
    let run = troubleshoot(&cli, &["c0001", "--context", "hub", "--bundle", &file.display().to_string()]);
    assert_eq!(run.exit, 0, "{run}");
    let bundle = std::fs::read_to_string(&file).expect("it was written");
    assert!(bundle.contains("c0001") && !bundle.contains("c0002"), "{bundle}");
}

#[test]
fn mistakes_are_told_before_anything_is_asked() {
    let (server, cli) = fleet();
    for (words, said) in [
        (&["--explain", "OCM310"][..], "is not the id of a check"),
        (&["--explain", "OCM3199"], "did you mean"),
        (&["--from", "nowhere.json"], "cannot read nowhere.json"),
        (&["--suppress", "OCM3101"], "ID[:CLUSTER]=UNTIL,REASON"),
        (&["--timeout", "soon"], "--timeout"),
        (&["--list", "-o", "sarif"], "--list has no such format"),
        (&["c1", "--all-clusters"], "cannot be used with"),
        (&["--fix", "--from", "x.json"], "cannot be used with"),
        (&["--fix", "--bundle", "x.json"], "cannot be used with"),
        (&["--fix", "--list"], "cannot be used with"),
        (&["--fix", "--dry-run", "--wait"], "cannot be used with"),
        (&["--yes"], "--fix"),
        (&["--dry-run"], "--fix"),
        (&["--fix", "-o", "sarif"], "--fix has no such format"),
        (&["--fix=OCM1103,OCM3101"], "--fix mends no findings of OCM3101"),
        (&["--fix=lease"], "is not the id of a check"),
    ] {
        let run = troubleshoot(&cli, words);
        assert!(run.exit == 2 && run.stderr.contains(said), "{words:?}: {run}");
    }
    let other = cli.write("other.json", "{\"kind\": \"List\"}").display().to_string();
    let run = troubleshoot(&cli, &["--from", &other]);
    assert!(
        run.exit == 2 && run.stderr.contains("is neither a bundle of kubectl ocm troubleshoot nor a dump"),
        "{run}"
    );
    assert_eq!(server.lines(), Vec::<String>::new());
    let run = troubleshoot(&cli, &["C_1", "--context", "hub"]);
    assert!(run.exit == 2 && run.stderr.contains("cannot be the name of a managed cluster"), "{run}");
    let page = troubleshoot(&cli, &["--explain", "ocm3101"]);
    assert!(page.exit == 0 && page.stdout.starts_with("# OCM3101 heard-of\n"), "{page}");
}

/// What a hub does whose operator waits for the leader lease of a pod that is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deletes {
    /// It deletes the lease.
    Yes,
    /// Somebody has taken the lease since it was read.
    Taken,
    /// The user may not.
    Forbidden,
    /// It deletes the lease, and lets nobody look at it afterwards.
    Blindly,
}

fn stuck_hub(deletes: Deletes) -> (Server, Cli) {
    let gone = Mutex::new(false);
    let server = Server::start(move |_, asked| {
        let mut gone = gone.lock().expect("nobody panics");
        let line = asked.line.as_str();
        let status = |code: u16, reason: &str| {
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
                "message": "words of the server"});
            Reply::Json(code, status.to_string())
        };
        match () {
            () if line.contains("selfsubjectaccessreviews") => {
                let mut review: Value = serde_json::from_str(&asked.body).expect("a review");
                review["status"] = json!({"allowed": deletes != Deletes::Forbidden});
                Reply::Json(201, review.to_string())
            }
            () if line.contains("/leases/clustermanager-lock") && *gone && deletes == Deletes::Blindly => {
                status(403, "Forbidden")
            }
            () if line.contains("/leases/clustermanager-lock") && *gone => status(404, "NotFound"),
            () if line.starts_with("DELETE") && deletes == Deletes::Taken => status(409, "Conflict"),
            () if line.starts_with("DELETE") => {
                assert!(line.contains("/namespaces/open-cluster-management/leases/clustermanager-lock"), "{line}");
                *gone = !asked.body.contains("dryRun");
                Reply::Json(200, json!({"apiVersion": "v1", "kind": "Status", "status": "Success"}).to_string())
            }
            () if line.contains("/leases/clustermanager-lock") => {
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": "clustermanager-lock", "namespace": "open-cluster-management", "uid": "u-1",
                        "resourceVersion": "7"},
                    "spec": {"holderIdentity": "cluster-manager-1-a_b", "renewTime": "2026-03-01T11:59:30.000000Z"}});
                Reply::Json(200, lease.to_string())
            }
            () if line.contains("/clustermanagers") => {
                let seen = i32::from(*gone);
                let manager = json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
                    "metadata": {"name": "cluster-manager", "generation": 1}, "spec": {},
                    "status": {"observedGeneration": seen, "conditions": [condition("Applied", "True")]}});
                list("ClusterManager", &[manager], None)
            }
            () if line.contains("/pods") => list("Pod", &[], None),
            () => hub(asked),
        }
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    (server, cli)
}

fn fix(cli: &Cli, flags: &[&str]) -> Run {
    troubleshoot(cli, &[&["c0001", "--context", "hub"], flags].concat())
}

/// Whatever was sent that is neither a read nor a question.
fn changes(server: &Server) -> Vec<Asked> {
    let is_change = |asked: &Asked| !asked.line.starts_with("GET") && !asked.line.contains("/selfsubject");
    server.asked().into_iter().filter(is_change).collect()
}

#[test]
fn what_can_be_mended_is_mended_after_a_yes_and_as_it_was_looked_at() {
    let (server, cli) = stuck_hub(Deletes::Yes);
    let looked = fix(&cli, &[]);
    assert_eq!(looked.exit, 3, "{looked}");
    assert!(looked.stderr.contains("the same command with --fix can mend OCM1103\n"), "{looked}");
    let unasked = fix(&cli, &["--fix"]);
    assert!(unasked.exit == 2 && unasked.stderr.contains("add --yes to skip the confirmation"), "{unasked}");
    let sentence = "  OCM1103: delete Lease open-cluster-management/clustermanager-lock, which a process of pod \
                    cluster-manager-1-a holds that has ended (context \"hub\")\n";
    assert!(unasked.stdout.contains(sentence), "{unasked}");
    let tried = fix(&cli, &["--fix", "--dry-run"]);
    let row = "lease.coordination.k8s.io/clustermanager-lock deleted (dry run)\n";
    assert!(tried.exit == 3 && tried.stdout.contains(row) && !tried.stdout.contains("mended: "), "{tried}");
    assert!(changes(&server).is_empty(), "{:?}", changes(&server));
    // Another check is meant.
    let other = fix(&cli, &["--fix=OCM2116", "--yes"]);
    assert!(other.exit == 3 && other.stdout.contains("Nothing that --fix can mend"), "{other}");
    assert!(changes(&server).is_empty(), "{:?}", changes(&server));
    let tried = fix(&cli, &["--fix", "--dry-run=server"]);
    assert!(tried.exit == 3 && tried.stdout.contains("clustermanager-lock deleted (server dry run)\n"), "{tried}");
    assert!(matches!(changes(&server).as_slice(), [one] if one.body.contains("dryRun")), "{:?}", changes(&server));

    let mended = fix(&cli, &["--fix", "--yes"]);
    assert_eq!(mended.exit, 0, "{mended}");
    assert!(mended.stdout.contains("\nmended: OCM1103\n"), "{mended}");
    assert!(
        mended.stdout.trim_end().ends_with("could not be checked") || mended.stdout.contains("0 errors"),
        "{mended}"
    );
    let sent = changes(&server);
    let last: Value = serde_json::from_str(&sent.last().expect("it was sent").body).expect("JSON");
    assert_eq!(last["preconditions"], json!({"uid": "u-1", "resourceVersion": "7"}));
    // Once more there is nothing to do, and nobody to ask.
    let again = fix(&cli, &["--fix"]);
    assert!(again.exit == 0 && again.stdout.contains("Nothing that --fix can mend"), "{again}");
    assert_eq!(changes(&server).len(), sent.len());
}

#[test]
fn what_cannot_be_looked_at_again_is_not_called_mended() {
    let (server, cli) = stuck_hub(Deletes::Blindly);
    let said = fix(&cli, &["--fix", "--yes", "--wait", "--timeout=2s"]);
    assert!(said.stdout.contains("lease.coordination.k8s.io/clustermanager-lock deleted\n"), "{said}");
    assert!(said.exit != 0 && !said.stdout.contains("mended: "), "{said}");
    assert_eq!(changes(&server).len(), 1);
}

#[test]
fn plan_and_result_of_a_fix_are_data() {
    let (server, cli) = stuck_hub(Deletes::Yes);
    let tried = fix(&cli, &["--fix", "--dry-run", "-o", "json"]);
    let read =
        |run: &Run| -> Value { serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}")) };
    let fixed = &read(&tried)["fix"];
    assert_eq!((tried.exit, &fixed["dryRun"], &fixed["changed"]), (3, &json!("client"), &json!(false)));
    assert_eq!(fixed["changes"][0]["objects"][0]["outcome"], "deleted");
    assert!(changes(&server).is_empty());
    let mended = fix(&cli, &["--fix", "--yes", "-o", "json"]);
    let value = read(&mended);
    assert_eq!((mended.exit, &value["verdict"], &value["findings"]), (0, &json!("ok"), &json!([])), "{mended}");
    let done = json!([{"mends": ["OCM1103"], "side": "hub", "context": "hub", "does": "delete Lease \
        open-cluster-management/clustermanager-lock, which a process of pod cluster-manager-1-a holds that has ended",
        "objects": [{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "open-cluster-management",
            "name": "clustermanager-lock", "outcome": "deleted"}]}]);
    let fixed = json!({"dryRun": "none", "changed": true, "changes": done, "left": [], "mended": ["OCM1103"]});
    assert_eq!(value["fix"], fixed, "{mended}");
}

#[test]
fn what_somebody_has_taken_since_or_what_the_user_may_not_is_left_alone() {
    let (server, cli) = stuck_hub(Deletes::Taken);
    let kept = fix(&cli, &["--fix", "--yes"]);
    assert!(kept.exit == 3 && kept.stdout.contains("lease.coordination.k8s.io/clustermanager-lock kept\n"), "{kept}");
    assert!(kept.stderr.contains("stays as it is: it has changed since it was looked at"), "{kept}");
    assert!(!kept.stdout.contains("mended: "), "{kept}");
    assert_eq!(changes(&server).len(), 1);

    let (server, cli) = stuck_hub(Deletes::Forbidden);
    let left = fix(&cli, &["--fix", "--yes"]);
    assert_eq!(left.exit, 3, "{left}");
    let why = "  OCM1103: left alone, for your user lacks rights to delete the lease (context \"hub\"): may not get \
               leases.coordination.k8s.io \"clustermanager-lock\" in namespace open-cluster-management";
    assert!(left.stdout.contains("Nothing that --fix can mend") && left.stdout.contains(why), "{left}");
    assert!(changes(&server).is_empty());
}

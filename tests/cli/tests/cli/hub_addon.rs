//! `install hub-addon`, `uninstall hub-addon` and `get hub-addons`: wrong input, manifests for which no hub is looked at, and
//! lists of a server that does what a test says.

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run, kubeconfig};
use serde_json::{Value, json};

/// Renders objects as the hub's side of the add-on hello.
fn render(objects: &[Value], more: &[&str]) -> Run {
    let cli = Cli::new();
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    cli.write("hello.json", &text.join("\n"));
    cli.run(["install", "hub-addon", "hello", "-f", "hello.json", "--render"].iter().chain(more))
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

#[test]
fn what_cannot_be_a_hubs_side_of_an_add_on_is_a_usage_error() {
    let long = "a".repeat(64);
    let cli = Cli::new();
    cli.write("empty.yaml", "");
    cli.write("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    for (words, why) in [
        (&["install", "hub-addon"][..], "required"),
        (&["install", "hub-addon", "hello"], "--filename"),
        (&["install", "hub-addon", "-f", "map.yaml"], "NAME"),
        (&["install", "hub-addon", "hello", "-f", "none.yaml", "--render"], "cannot read the file none.yaml"),
        (&["install", "hub-addon", "hello", "-f", "empty.yaml", "--render"], "the files hold no objects"),
        (&["install", "hub-addon", "Hello", "-f", "map.yaml", "--render"], "cannot be the name of a hub add-on"),
        (&["install", "hub-addon", &long, "-f", "map.yaml", "--render"], "63 characters at most"),
        (
            &["install", "hub-addon", "hello", "-f", "map.yaml", "-n", "A", "--render"],
            "cannot be the name of a namespace",
        ),
        (&["install", "hub-addon", "hello", "-f", "map.yaml", "-f", "map.yaml", "--render"], "is there twice"),
        (&["install", "hub-addon", "hello", "-f", "map.yaml", "--diff", "--wait"], "--wait"),
        (&["uninstall", "hub-addon"], "NAME"),
        (&["uninstall", "hub-addon", "hello_"], "cannot be the name of a hub add-on"),
        (&["uninstall", "hub-addon", "hello", "--timeout=soon"], "--timeout"),
    ] {
        let run = cli.run(words);
        assert!(run.exit == 2 && run.stderr.contains(why), "{words:?}: {run}");
        assert_eq!(run.stdout, "", "{words:?}");
    }
}

#[test]
fn objects_that_make_up_the_hub_are_refused() {
    let run = render(
        &[
            object("operator.open-cluster-management.io/v1", "ClusterManager", "cluster-manager"),
            object("cluster.open-cluster-management.io/v1", "ManagedCluster", "c1"),
            object("v1", "ConfigMap", "a"),
        ],
        &[],
    );
    assert_eq!((run.exit, run.stdout.as_str()), (3, ""), "{run}");
    for why in [
        "ClusterManager cluster-manager belongs to the hub itself",
        "ManagedCluster c1 decides who registers at the hub",
    ] {
        assert!(run.stderr.contains(why), "{run}");
    }
    assert!(!run.stderr.contains("ConfigMap"), "{run}");
}

#[test]
fn manifests_are_rendered_with_their_label_and_in_their_order() {
    let mut secret = object("v1", "Secret", "hello");
    secret["stringData"] = json!({"token": "hello"});
    let mut hook = object("v1", "Pod", "hello-test");
    hook["metadata"]["annotations"] = json!({"helm.sh/hook": "test"});
    let objects = [
        object("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn", "hello"),
        object("example.com/v1", "Greeting", "hello"),
        object("v1", "ServiceAccount", "hello"),
        secret,
        hook,
    ];
    let run = render(&objects, &["--namespace=own", "--create-namespace"]);
    assert_eq!(run.exit, 0, "{run}");
    let kinds: Vec<&str> = run.stdout.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    assert_eq!(kinds, ["Namespace", "ServiceAccount", "Secret", "Greeting", "ClusterManagementAddOn"]);
    assert_eq!(run.stdout.matches("kubectl-ocm.dev/hub-addon: hello").count(), 5, "{run}");
    assert_eq!(run.stdout.matches("namespace: own").count(), 2, "{run}");
    // In base64, as the server has it.
    assert!(!run.stdout.contains("aGVsbG8=") && run.stderr.contains("--show-secrets"), "{run}");
    for note in ["Pod hello-test (test)", "whether these need a namespace", "Greeting hello"] {
        assert!(run.stderr.contains(note), "{note}: {run}");
    }
    let run = render(&objects, &["--show-secrets", "--output=name"]);
    assert!(run.exit == 0 && run.stdout.contains("serviceaccount/hello\n"), "{run}");
    assert!(!run.stdout.contains("namespace/"), "{run}");
    let run = render(&objects, &["--show-secrets"]);
    assert!(run.stdout.contains("aGVsbG8=") && run.stdout.contains("namespace: open-cluster-management"), "{run}");
}

/// A hub that offers two add-ons, one of which a cluster has.
fn hub() -> Server {
    let label = "kubectl-ocm.dev/hub-addon";
    let labels = json!({"f:metadata": {"f:labels": {(format!("f:{label}")): {}}}});
    let hello = json!({"metadata": {"name": "hello", "labels": {(label): "greeter"}, "managedFields": [
            {"manager": "kubectl-ocm", "operation": "Apply", "fieldsV1": labels}]},
        "spec": {"addOnMeta": {"displayName": "Hello"}}});
    let other = json!({"metadata": {"name": "other", "managedFields": [{"manager": "helm", "operation": "Update"}]},
        "spec": {"installStrategy": {"type": "Placements", "placements": [{"namespace": "team", "name": "web"}]}}});
    let on = |cluster: &str, status: &str| {
        json!({"metadata": {"namespace": cluster, "name": "other"}, "spec": {}, "status": {"conditions": [
            {"type": "Available", "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    };
    let on = [on("c1", "True"), on("c2", "False")];
    Server::start(move |_, asked| {
        let list = |items: &[Value]| {
            let metadata = json!({"resourceVersion": "1"});
            let list = json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": items});
            Reply::Json(200, list.to_string())
        };
        match asked.line.split('?').next().unwrap_or_default().rsplit('/').next() {
            Some("clustermanagementaddons") => list(&[other.clone(), hello.clone()]),
            Some("managedclusteraddons") => list(&on),
            _ => Reply::Json(404, "{}".to_owned()),
        }
    })
}

#[test]
fn add_ons_of_a_hub_are_listed_with_who_has_installed_them() {
    let server = hub();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["get", "hub-addons", "--no-headers", "-o", "wide"]);
    assert_eq!(run.exit, 0, "{run}");
    let rows: Vec<String> =
        run.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        rows,
        [
            "hello Hello Manual 0/0 <none> kubectl-ocm (hub-addon greeter) <none> <none>",
            "other <none> Placements 1/2 <none> helm team/web c1, c2",
        ]
    );
    let run = cli.run(["get", "hub-addon", "-o", "name"]);
    assert!(run.stdout.starts_with("clustermanagementaddon.addon.open-cluster-management.io/hello\n"), "{run}");
    let run = cli.run(["get", "hub-addons", "other", "-o", "jsonpath={.standing.enabled}"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, r#"["c1","c2"]"#), "{run}");
    let run = cli.run(["get", "hub-addons", "helo"]);
    assert!(run.exit == 1 && run.stderr.contains("did you mean hello?"), "{run}");
}

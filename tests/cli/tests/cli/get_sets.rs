//! Sets of clusters, what is in them, and trees, against a server that does what a test says.

use cli_tests::server::{Reply, Server};
use cli_tests::terminal::Terminal;
use cli_tests::{Cli, binary, kubeconfig};
use serde_json::{Value, json};

const PATH: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const SETS: &str = "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets";

/// A hub with the set prod, in which c1 is, and the set eu, which chooses clusters by labels.
fn hub_with_sets() -> Server {
    let set = |name: &str, spec: Value| {
        json!({ "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
            "metadata": { "name": name, "creationTimestamp": "2026-01-01T00:00:00Z" }, "spec": spec })
    };
    let prod = set("prod", json!({ "managedNamespaces": [{ "name": "logging" }] }));
    let chosen = json!({ "selectorType": "LabelSelector", "labelSelector": { "matchLabels": { "region": "eu" } } });
    let eu = set("eu", json!({ "clusterSelector": chosen }));
    let c1 = json!({ "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": { "name": "c1", "labels": { "cluster.open-cluster-management.io/clusterset": "prod" } },
        "spec": { "hubAcceptsClient": true } });
    let binding = json!({ "metadata": { "namespace": "team", "name": "prod" }, "spec": { "clusterSet": "prod" } });
    Server::start(move |_, asked| {
        let path = asked.line.strip_prefix("GET ").unwrap_or_default().split('?').next().unwrap_or_default();
        let list = |items: &[&Value]| {
            let list =
                json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "1" }, "items": items });
            Reply::Json(200, list.to_string())
        };
        let is_of_nobody = asked.line.contains("region");
        match path {
            PATH if is_of_nobody => list(&[]),
            PATH => list(&[&c1]),
            SETS => list(&[&prod, &eu]),
            _ if path == format!("{SETS}/prod") => Reply::Json(200, prod.to_string()),
            _ if path == format!("{SETS}/eu") => Reply::Json(200, eu.to_string()),
            _ if path.ends_with("/managedclustersetbindings") => list(&[&binding]),
            _ => {
                let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404,
                    "reason": "NotFound", "message": "not found" });
                Reply::Json(404, status.to_string())
            }
        }
    })
}

#[test]
fn clusters_of_a_set_are_asked_for_by_what_the_set_chooses() {
    let server = hub_with_sets();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let asked = |words: &[&str]| {
        let run = cli.run([&["get", "clusters"], words].concat());
        (run, server.lines().pop().unwrap_or_default())
    };
    let (run, line) = asked(&["--cluster-set", "prod", "-o", "name"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, "managedcluster.cluster.open-cluster-management.io/c1\n"), "{run}");
    assert!(line.contains("labelSelector=cluster.open-cluster-management.io%2Fclusterset%3Dprod&"), "{line}");
    // As clusteradm has it, with a selector besides.
    let (run, line) = asked(&["--clusterset=eu", "-l", "env=dev"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{run}");
    assert!(run.stderr.contains("note: no such cluster is in set eu"), "{run}");
    assert!(line.contains("labelSelector=region%3Deu%2Cenv%3Ddev"), "{line}");
    let (run, _) = asked(&["--cluster-set", "prd"]);
    assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
    assert!(run.stderr.contains("error: the hub has no set of clusters \"prd\""), "{run}");
    assert!(run.stderr.contains("did you mean prod?"), "{run}");
    assert_eq!(asked(&["--cluster-set", "Prod"]).0.exit, 2);
    assert_eq!(asked(&["c1", "--cluster-set", "prod"]).0.exit, 2);
}

#[test]
fn trees_show_what_belongs_to_what() {
    let server = hub_with_sets();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    // Ages depend on the day.
    let tree = |what: &str| {
        let run = cli.run(["get", what, "-o", "tree"]);
        assert_eq!(run.exit, 0, "{run}");
        run.stdout.lines().filter(|line| !line.contains("AGE: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let sets = [
        "eu",
        "├── SELECTOR: LabelSelector",
        "├── NAMESPACES (0)",
        "└── CLUSTERS (0)",
        "prod",
        "├── SELECTOR: ExclusiveClusterSetLabel",
        "├── NAMESPACES (1)",
        "│   └── team",
        "├── MANAGED NAMESPACES (1)",
        "│   └── logging",
        "└── CLUSTERS (1)",
        "    └── c1",
    ];
    assert_eq!(tree("clustersets"), sets);
    let clusters = tree("clusters");
    assert_eq!(clusters[0], "c1  Accepted", "{clusters:?}");
    for line in ["├── ACCEPTED: True", "├── CLUSTERSET: prod"] {
        assert!(clusters.iter().any(|own| own == line), "{line}: {clusters:?}");
    }
    // What has nothing below it has no tree.
    let run = cli.run(["get", "csr", "-o", "tree"]);
    assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{run}");
}

#[test]
fn that_the_hub_is_away_is_told_while_it_is() {
    let server = Server::start(|_, _| Reply::Drop);
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for what in ["clustersets", "hub-addons"] {
        let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &["get", what, "--watch"]);
        terminal.wait_for("trying again");
        terminal.press("\u{3}");
        let (exit, seen) = terminal.end();
        assert_eq!(exit, 130, "{seen}");
    }
}

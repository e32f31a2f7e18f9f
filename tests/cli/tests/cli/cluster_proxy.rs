//! `kubectl ocm proxy` against a hub that answers as a test says: what a real one shows only with the images of the add-on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, Run, kubeconfig};
use serde_json::{Value, json};

/// How the hub is.
struct Hub {
    /// Whether a proxy server is ready.
    ready: bool,
    /// Whether the Secrets of its clients may be read.
    secrets: bool,
    /// What it answers to those who want a port forwarded.
    forward: u16,
    /// The ManagedServiceAccounts of c1.
    accounts: Vec<Value>,
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Because", "message": "words",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn cluster(name: &str) -> Value {
    let conditions: Vec<Value> =
        ["HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"]
            .iter()
            .map(|kind| condition(kind, "True"))
            .collect();
    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"hubAcceptsClient": true}, "status": {"conditions": conditions}})
}

fn addon(cluster: &str, available: &str) -> Value {
    json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "cluster-proxy", "namespace": cluster, "resourceVersion": "1"}, "spec": {},
        "status": {"namespace": "agents", "conditions": [condition("Available", available)]}})
}

fn list(kind: &str, version: &str, items: Vec<Value>) -> Reply {
    let list = json!({"apiVersion": version, "kind": kind, "metadata": {"resourceVersion": "1"}, "items": items});
    Reply::Json(200, list.to_string())
}

fn status(code: u16, reason: &str) -> Reply {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": reason});
    Reply::Json(code, status.to_string())
}

fn found(object: &Value) -> Reply {
    Reply::Json(200, object.to_string())
}

/// A certificate and its key, in PEM.
fn identity() -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["proxy-client".to_owned()]).expect("parameters");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn secret(entries: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        entries.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data})
}

impl Hub {
    /// A hub whose proxy server is ready, and whose Secrets may be read.
    fn well() -> Self {
        Self { ready: true, secrets: true, forward: 500, accounts: Vec::new() }
    }

    fn start(self) -> Server {
        let (certificate, key) = identity();
        Server::start(move |_, asked| self.reply(asked, (certificate.as_str(), key.as_str())))
    }

    fn reply(&self, asked: &Asked, (certificate, key): (&str, &str)) -> Reply {
        const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1";
        const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
        const ACCOUNTS: &str =
            "/apis/authentication.open-cluster-management.io/v1beta1/namespaces/c1/managedserviceaccounts";
        let path = asked.line.trim_start_matches("GET ").split('?').next().unwrap_or_default();
        let replicas = i32::from(self.ready);
        if let Some(rest) = path.strip_prefix(ADDONS) {
            return match rest {
                "/clustermanagementaddons/cluster-proxy" => found(&json!({
                    "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
                    "metadata": {"name": "cluster-proxy"}, "spec": {"installStrategy": {"type": "Placements", "placements": [
                        {"namespace": "ocm", "name": "all"}]}}})),
                "/managedclusteraddons" => list(
                    "ManagedClusterAddOnList",
                    "addon.open-cluster-management.io/v1alpha1",
                    vec![addon("c1", "True"), addon("c2", "False")],
                ),
                "/namespaces/c1/managedclusteraddons" => list(
                    "ManagedClusterAddOnList",
                    "addon.open-cluster-management.io/v1alpha1",
                    vec![addon("c1", "True")],
                ),
                _ => status(404, "NotFound"),
            };
        }
        match path {
            "/apis/proxy.open-cluster-management.io/v1alpha1/managedproxyconfigurations/cluster-proxy" => {
                found(&json!({
                "apiVersion": "proxy.open-cluster-management.io/v1alpha1", "kind": "ManagedProxyConfiguration",
                "metadata": {"name": "cluster-proxy"}, "spec": {"proxyServer": {"namespace": "proxies", "entrypoint": {
                    "type": "Hostname", "hostname": {"value": "hub.example"}, "port": 8091}}},
                "status": {"conditions": [condition("ProxyServerDeployed", "True")]}}))
            }
            CLUSTERS => list(
                "ManagedClusterList",
                "cluster.open-cluster-management.io/v1",
                ["c1", "c2", "c3"].map(cluster).to_vec(),
            ),
            "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1" => found(&cluster("c1")),
            "/apis/apps/v1/namespaces/proxies/deployments/cluster-proxy" => found(&json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "cluster-proxy", "namespace": "proxies", "generation": 1},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}},
                "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": replicas}})),
            "/api/v1/namespaces/proxies/pods" => {
                let is_ready = if self.ready { "True" } else { "False" };
                let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server-0"}, "spec": {},
                    "status": {"conditions": [condition("Ready", is_ready)]}});
                list("PodList", "v1", vec![pod])
            }
            "/api/v1/namespaces/proxies/secrets/proxy-server-ca" if self.secrets => {
                found(&secret(&[("ca.crt", certificate)]))
            }
            "/api/v1/namespaces/proxies/secrets/proxy-client" if self.secrets => {
                found(&secret(&[("tls.crt", certificate), ("tls.key", key)]))
            }
            ACCOUNTS => list(
                "ManagedServiceAccountList",
                "authentication.open-cluster-management.io/v1beta1",
                self.accounts.clone(),
            ),
            "/api/v1/namespaces/c1/secrets/reader" => found(&secret(&[("token", "t0ken"), ("ca.crt", certificate)])),
            _ if path.ends_with("/portforward") => status(self.forward, "Refused"),
            _ if path.contains("/secrets/") => status(403, "Forbidden"),
            _ => status(404, "NotFound"),
        }
    }
}

fn proxy(server: &Server, words: &[&str]) -> Run {
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    cli.run([&["proxy"], words].concat())
}

/// The cells of the row of a cluster.
fn row<'a>(run: &'a Run, name: &str) -> Vec<&'a str> {
    let line = run.stdout.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {run}"))
        .split("   ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn it_is_told_what_keeps_each_cluster_from_being_reached() {
    let server = Hub::well().start();
    let run = proxy(&server, &["health", "--no-probe"]);
    assert_eq!(run.exit, 3, "{run}");
    assert_eq!(row(&run, "c1"), ["c1", "True", "True", "<none>", "<none>"]);
    assert_eq!(row(&run, "c2"), ["c2", "True", "False", "<none>", "<none>", "Available: Because: words"]);
    let without = "it does not have the add-on: the hub installs it by ocm/all";
    assert_eq!(row(&run, "c3"), ["c3", "False", "<none>", "<none>", "<none>", without]);
    assert!(
        run.stdout.contains("proxies") && run.stdout.contains("1/1") && run.stdout.contains("hub.example:8091"),
        "{run}"
    );
    assert!(
        run.stderr.contains("c3: see what it makes of each cluster: kubectl ocm get placements all -n ocm --explain"),
        "{run}"
    );
    assert!(run.stderr.contains("c2: on the cluster: kubectl get pods -n agents -l"), "{run}");
    assert!(!server.lines().iter().any(|line| line.contains("/secrets/")), "{:?}", server.lines());

    let run = proxy(&server, &["health", "c1", "--no-probe", "-o", "json"]);
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        (run.exit, &told["clusters"]),
        (0, &json!([{"name": "c1", "installed": true, "available": "True"}])),
        "{run}"
    );
    let run = proxy(&server, &["health", "c9", "--no-probe"]);
    assert!(run.exit == 1 && run.stderr.contains("c9"), "{run}");
}

#[test]
fn who_may_not_try_is_told_so() {
    let server = Hub { secrets: false, ..Hub::well() }.start();
    let run = proxy(&server, &["health", "c1"]);
    assert_eq!((run.exit, row(&run, "c1").len()), (4, 5), "{run}");
    assert!(run.stderr.contains("warning: no cluster was tried: cannot read Secret proxies/"), "{run}");
    let run = proxy(&server, &["health"]);
    assert_eq!(run.exit, 3, "what is known to be wrong counts more: {run}");
    let server = Hub { forward: 403, ..Hub::well() }.start();
    let run = proxy(&server, &["health", "c1"]);
    assert_eq!((run.exit, row(&run, "c1").len()), (4, 5), "{run}");
    assert!(run.stderr.contains("warning: no cluster was tried: cannot open a connection to port 8090"), "{run}");
}

#[test]
fn a_cluster_that_is_not_reached_says_why() {
    let server = Hub::well().start();
    let run = proxy(&server, &["health", "c1"]);
    assert_eq!(run.exit, 3, "{run}");
    let cells = row(&run, "c1");
    assert_eq!(cells[3], "False", "{run}");
    assert!(
        cells[5].contains("port 8090 of pod proxies/server-0") && cells[5].ends_with("by hub.example:8091"),
        "{run}"
    );
}

#[test]
fn proxy_servers_that_are_not_ready_are_told() {
    let server = Hub { ready: false, ..Hub::well() }.start();
    let run = proxy(&server, &["health", "c1"]);
    assert_eq!(run.exit, 3, "{run}");
    assert!(run.stdout.contains("0/1") && run.stdout.contains("proxy servers: 0 of 1 pods are ready"), "{run}");
    assert!(!server.lines().iter().any(|line| line.contains("/secrets/")), "nothing is tried: {:?}", server.lines());
}

#[test]
fn kubectl_is_not_started_where_it_is_not_clear_as_whom_or_there_is_no_way() {
    let account = |name: &str, status: Value| json!({"metadata": {"name": name, "namespace": "c1"}, "status": status});
    let valid = json!({"tokenSecretRef": {"name": "reader"}, "expirationTimestamp": "2999-01-01T00:00:00Z"});
    let kubectl = |accounts: Vec<Value>| {
        let server = Hub { accounts, ..Hub::well() }.start();
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        // Whoever starts it leaves a trace.
        let program = cli.write("bin/kubectl", "#!/bin/sh\ntouch \"$HOME/started\"\n");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it may be run");
        let path = cli.home().join("bin").display().to_string();
        let cli = cli.env("PATH", format!("{path}:/usr/bin:/bin"));
        let run = cli.run(["proxy", "kubectl", "c1", "--", "get", "nodes"]);
        assert!(!cli.home().join("started").exists(), "{run}");
        assert!(!format!("{run}").contains("t0ken"), "{run}");
        run
    };
    let run = kubectl(Vec::new());
    assert!(run.exit == 3 && run.stderr.contains("no ManagedServiceAccount with a valid token"), "{run}");
    let run = kubectl(vec![account("a", valid.clone()), account("b", valid.clone())]);
    assert!(run.exit == 3 && run.stderr.contains("several ManagedServiceAccounts: a, b"), "{run}");
    assert!(run.stderr.contains("--sa NAME"), "{run}");
    let old = json!({"tokenSecretRef": {"name": "reader"}, "expirationTimestamp": "2001-01-01T00:00:00Z"});
    let run = kubectl(vec![account("a", old)]);
    assert!(run.exit == 3 && run.stderr.contains("no ManagedServiceAccount with a valid token"), "{run}");
    // The account is clear, and the way is not there.
    let run = kubectl(vec![account("a", valid)]);
    assert!(run.exit == 1 && run.stderr.contains("cluster \"c1\" is not reached through the proxy servers"), "{run}");
    assert!(run.stderr.contains("kubectl ocm proxy health"), "{run}");
}

#[test]
fn a_proxy_that_agents_cannot_go_through_is_a_usage_error() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]));
    for (words, told) in [
        ("--clusters=c1", "nothing is said of proxies"),
        ("--https-proxy=http://p:1", "--clusters"),
        ("--clusters=c1 --default --https-proxy=http://p:1", "--default"),
        ("--clusters=c1 --https-proxy=http://localhost:3128", "--https-proxy cannot be the proxy of an agent"),
        ("--clusters=c1 --http-proxy=http://p:1 --no-proxy=http://a", "\"http://a\" is no host"),
        ("--default --http-proxy=http://p:1 --managed-context=c1", "go with one cluster"),
        ("--clusters=c1 --https-proxy=http://p:1 --proxy-ca-file=ca", "goes with an https"),
        ("--placement=x --http-proxy=http://p:1", "--placement \"x\" is not NAMESPACE/NAME"),
    ] {
        let run = cli.run(["addon", "proxy-config", "hello"].into_iter().chain(words.split_whitespace()));
        assert!(run.exit == 2 && run.stderr.contains(told), "{words}: {run}");
    }
}

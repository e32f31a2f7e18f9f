//! `kubectl ocm token` on a real API server.

use std::io::Write as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use e2e_tests::join_support::Ticket;
use e2e_tests::{Said, kubectl_ocm, object, resource_versions, run};
use serde_json::Value;

/// What the hub's installation has that tokens need.
const HUB: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: open-cluster-management}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent-registration-bootstrap, namespace: open-cluster-management, labels: {kept: "yes"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "open-cluster-management:bootstrap"}
rules: []
"#;

fn apply(cluster: &Cluster, text: &str) {
    let mut command = cluster.kubectl_command();
    command.args(["apply", "--filename=-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("kubectl starts");
    child.stdin.take().expect("it reads").write_all(text.as_bytes()).expect("it takes the manifests");
    assert!(child.wait().expect("it ends").success());
}

fn token(cluster: &Cluster, words: &[&str]) -> Said {
    run(kubectl_ocm("token", cluster.kubeconfig()).args(words))
}

/// The address of these clusters is one of this machine alone, so agents are told another one; nobody is there, which
/// is known at once.
fn address(cluster: &Cluster) -> String {
    let server = cluster.server();
    let port = server.rsplit(':').next().unwrap_or_default();
    format!("--hub-apiserver=https://0.0.0.1:{port}")
}

/// Who the API server takes the holder of a token for; none if it does not accept it.
fn whoami(cluster: &Cluster, token: &str) -> Option<String> {
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    let ca = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(ca.path(), cluster.ca_pem()).expect("written");
    let mut command = cluster.kubectl_command();
    command.env("KUBECONFIG", kubeconfig.path()).args([
        "auth",
        "whoami",
        "--output=jsonpath={.status.userInfo.username}",
    ]);
    command.arg(format!("--kubeconfig={}", kubeconfig.path().display()));
    command.arg(format!("--server={}", cluster.server())).arg(format!("--token={token}"));
    command.arg(format!("--certificate-authority={}", ca.path().display()));
    let said = run(&mut command);
    (said.code == Some(0)).then_some(said.stdout)
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited 30 s for: {what}");
        sleep(Duration::from_millis(200));
    }
}

#[test]
fn tokens_from_making_to_revoking() {
    let hub = Cluster::start(&Spec::api("tokens")).expect("a cluster");
    let address = address(&hub);
    let loopback = token(&hub, &["create"]);
    assert_eq!(loopback.code, Some(1), "{loopback:?}");
    assert!(
        loopback.stderr.contains("is no hub yet") && loopback.stderr.contains("kubectl ocm install"),
        "{loopback:?}"
    );
    apply(&hub, HUB);
    let loopback = token(&hub, &["create"]);
    assert_eq!(loopback.code, Some(2), "{loopback:?}");
    assert!(loopback.stderr.contains("--hub-apiserver https://HOST:PORT"), "{loopback:?}");

    // Of the service account.
    let ticket = Ticket::create(&hub, &[&address]);
    let user = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    assert_eq!(whoami(&hub, &ticket.token).as_deref(), Some(user));
    assert!(ticket.pin.starts_with("sha256:") && ticket.ca.is_some(), "{ticket:?}");
    let line = token(&hub, &["create", &address]);
    assert!(line.stdout.starts_with("kubectl ocm join <cluster_name> --hub-token ey"), "{line:?}");
    assert!(line.stdout.contains(&format!("--hub-ca-pin {} --hub-ca-data ", ticket.pin)), "{line:?}");
    assert!(line.stderr.contains("for 59m") || line.stderr.contains("for 60m"), "{line:?}");
    let words = token(&hub, &["create", &address, "--format=clusteradm"]).stdout;
    let words: Vec<&str> = words.split_whitespace().collect();
    assert_eq!((&words[..3], words.len()), (&["clusteradm", "join", "--hub-token"][..], 8), "{words:?}");
    assert_eq!((words[4], &words[6..]), ("--hub-apiserver", &["--cluster-name", "<cluster_name>"][..]));
    let short = token(&hub, &["create", &address, "--ttl=5m"]);
    assert_eq!(short.code, Some(2), "{short:?}");

    // Bootstrap tokens.
    let made =
        token(&hub, &["create", "--kind=bootstrap", "--ttl=2h", "--description=store 17", &address, "--output=json"]);
    let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
    let (id, whole) = (made["token-id"].as_str().expect("an identifier"), made["hub-token"].as_str().expect("a token"));
    eventually("the API server to know the token", || {
        whoami(&hub, whole).is_some_and(|user| user == format!("system:bootstrap:{id}"))
    });
    let binding = object(&hub, &["clusterrolebinding", "open-cluster-management:bootstrap:managedcluster"]);
    assert_eq!(binding["roleRef"]["name"], "open-cluster-management:bootstrap");
    let list = token(&hub, &["list", "--output=wide"]);
    let secret = whole.split('.').nth(1).expect("a secret half");
    assert!(list.stdout.contains(id) && list.stdout.contains("store 17") && !list.stdout.contains(secret), "{list:?}");
    assert!(!token(&hub, &["list", "--output=json"]).stdout.contains(secret));
    let shown = token(&hub, &["show", id, &address, "--token-only"]);
    assert_eq!(shown.stdout.trim(), whole, "{shown:?}");
    let missing = token(&hub, &["show", "zzzzzz", &address]);
    assert_eq!(missing.code, Some(1), "{missing:?}");

    // Nothing changes by asking what would be.
    let before = resource_versions(&hub);
    let tokens = hub.kubectl(&["get", "secrets", "--namespace=kube-system", "--output=name"]).expect("secrets");
    for words in [
        &["create", "--dry-run", &address][..],
        &["create", "--kind=bootstrap", "--dry-run=server", &address],
        &["revoke", id, "--dry-run=client"],
        &["revoke", "--all", "--dry-run=server"],
        &["revoke", "--service-account", "--dry-run=server"],
    ] {
        let said = token(&hub, words);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(resource_versions(&hub), before, "{words:?}");
        let after = hub.kubectl(&["get", "secrets", "--namespace=kube-system", "--output=name"]).expect("secrets");
        assert_eq!(after, tokens, "{words:?}");
    }

    // A file is its owner's alone.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("join.sh");
    std::fs::write(&file, "old").expect("written");
    let written = token(&hub, &["create", &address, "--output-file", file.to_str().expect("text")]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written:?}");
    assert!(std::fs::read_to_string(&file).expect("a line").starts_with("kubectl ocm join"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    }

    // Revoked tokens are worth nothing. A second time the hub does not know the token, and nothing is said to be revoked.
    let revoked = token(&hub, &["revoke", whole]);
    assert_eq!(revoked.stdout, format!("bootstrap-token/{id} revoked\n"), "{revoked:?}");
    assert!(!format!("{revoked:?}").contains(secret));
    eventually("the API server to forget the token", || whoami(&hub, whole).is_none());
    let twice = token(&hub, &["revoke", id]);
    assert_eq!((twice.code, twice.stdout.as_str()), (Some(1), ""), "{twice:?}");
    let named = token(&hub, &["revoke", id, "--output", "name"]);
    assert_eq!((named.code, named.stdout.as_str()), (Some(1), ""), "{named:?}");
    // Tokens of other tools stay.
    let others = "--from-literal=token-id=others --from-literal=token-secret=0123456789abcdef \
                  --from-literal=usage-bootstrap-authentication=true \
                  --from-literal=auth-extra-groups=system:bootstrappers:managedcluster";
    let mut create = vec!["create", "secret", "generic", "bootstrap-token-others", "--namespace=kube-system"];
    create.extend(["--type=bootstrap.kubernetes.io/token"].into_iter().chain(others.split_whitespace()));
    hub.kubectl(&create).expect("a token of another tool");
    let all = token(&hub, &["revoke", "--all", "--yes"]);
    assert_eq!(all.code, Some(0), "{all:?}");
    hub.kubectl(&["get", "secret", "bootstrap-token-others", "--namespace=kube-system"]).expect("it is still there");
    let asked = token(&hub, &["revoke", "--service-account"]);
    assert_eq!(asked.code, Some(2), "nobody is there to ask: {asked:?}");
    let anew = token(&hub, &["revoke", "--service-account", "--yes"]);
    assert_eq!(anew.code, Some(0), "{anew:?}");
    eventually("the API server to forget the old account", || whoami(&hub, &ticket.token).is_none());
    let account =
        object(&hub, &["serviceaccount", "agent-registration-bootstrap", "--namespace=open-cluster-management"]);
    assert_eq!(account["metadata"]["labels"]["kept"], "yes");
    assert_eq!(whoami(&hub, &Ticket::create(&hub, &[&address]).token).as_deref(), Some(user));
}

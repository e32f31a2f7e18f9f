//! `kubectl ocm token` on a real API server.

use control_plane::{Cluster, Spec};
use e2e_tests::accept_support::{managed_cluster, token_kubeconfig};
use e2e_tests::join_support::JoinCommand;
use e2e_tests::manifests::pipe;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, kubectl_ocm, object, resource_versions, run, unchanged, until};
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
    // Nor are bootstrap tokens made there, and nothing is left behind.
    let kept = || {
        let kinds = "secrets,clusterrolebindings,clusterroles";
        hub.kubectl(&["get", kinds, "--all-namespaces", "--output=name"]).expect("objects")
    };
    let before = kept();
    let refused = token(&hub, &["create", "--kind=bootstrap", &address]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("is no hub yet"), "{refused:?}");
    assert_eq!(kept(), before);
    assert!(pipe(&hub, &[], HUB));
    let shared = token(&hub, &["create", "--cluster-set=prod", &address]);
    assert_eq!(shared.code, Some(2), "{shared:?}");
    assert!(shared.stderr.contains("--cluster-set needs --kind bootstrap"), "{shared:?}");
    let loopback = token(&hub, &["create"]);
    assert_eq!(loopback.code, Some(2), "{loopback:?}");
    assert!(loopback.stderr.contains("--hub-apiserver https://HOST:PORT"), "{loopback:?}");

    // Of the service account.
    let join_command = JoinCommand::create(&hub, &[&address]);
    let user = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    assert_eq!(whoami(&hub, &join_command.token).as_deref(), Some(user));
    assert!(join_command.pin.starts_with("sha256:") && join_command.ca.is_some(), "{join_command:?}");
    let line = token(&hub, &["create", &address]);
    assert!(line.stdout.starts_with("kubectl ocm join CLUSTER_NAME --hub-token ey"), "{line:?}");
    assert!(line.stdout.contains(&format!("--hub-ca-pin {} --hub-ca-data ", join_command.pin)), "{line:?}");
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
    until("the API server to know the token", || {
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
        unchanged(&hub, &before, words);
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
    until("the API server to forget the token", || whoami(&hub, whole).is_none());
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
    until("the API server to forget the old account", || whoami(&hub, &join_command.token).is_none());
    let account =
        object(&hub, &["serviceaccount", "agent-registration-bootstrap", "--namespace=open-cluster-management"]);
    assert_eq!(account["metadata"]["labels"]["kept"], "yes");
    assert_eq!(whoami(&hub, &JoinCommand::create(&hub, &[&address]).token).as_deref(), Some(user));
}

#[test]
fn tokens_register_into_the_default_set_and_into_those_that_they_were_made_for() {
    let hub = e2e_tests::join_support::hub();
    let minter = user_with(hub, "minter", &["token.yaml"]);
    let token_of = |flags: &[&str]| {
        let said = run(kubectl_ocm("token", &minter).args(["create", "--output=json"]).args(flags));
        assert_eq!(said.code, Some(0), "{said:?}");
        JoinCommand::read(&said.stdout).token
    };
    let number = std::cell::Cell::new(0);
    // The hub's own webhook decides.
    let registers = |token: &str, set: &str| {
        number.set(number.get() + 1);
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), token_kubeconfig(hub, token)).expect("written");
        let mut cluster = serde_json::to_value(managed_cluster(&format!("set-{}", number.get()))).expect("JSON");
        cluster["metadata"]["labels"] = serde_json::json!({"cluster.open-cluster-management.io/clusterset": set});
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), cluster.to_string()).expect("written");
        let kubectl = control_plane::binaries().expect("the binaries are there").kubectl().to_owned();
        let mut command = std::process::Command::new(kubectl);
        command.arg("create").arg("--kubeconfig").arg(kubeconfig.path()).arg("--filename").arg(file.path());
        let said = run(&mut command);
        assert!(said.code == Some(0) || said.stderr.contains("managedclustersets"), "{said:?}");
        said.code == Some(0)
    };
    let account = token_of(&[]);
    let plain = token_of(&["--kind=bootstrap"]);
    let prod = token_of(&["--kind=bootstrap", "--cluster-set=prod"]);
    let both = token_of(&["--kind=bootstrap", "--cluster-set=prod", "--cluster-set=test"]);
    until("the hub to know the last token", || whoami(hub, &both).is_some());
    for (token, default, prod, test) in [
        (&account, true, false, false),
        (&plain, true, false, false),
        (&prod, true, true, false),
        (&both, true, true, true),
    ] {
        let reached = ["default", "prod", "test"].map(|set| registers(token, set));
        assert_eq!(reached, [default, prod, test], "{token:.6}");
    }
    // Of ConfigMaps it reads those that tell where the hub is and who vouches for it, and no others.
    let agent = "--as=system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    let reads = |namespace: &str, name: &str| {
        let (namespace, name) = (format!("--namespace={namespace}"), format!("configmaps/{name}"));
        hub.kubectl(&["auth", "can-i", "get", &name, &namespace, agent]).is_ok()
    };
    let told = ["cluster-info", "kube-root-ca.crt"].map(|name| reads("kube-public", name));
    let others = [("kube-system", "extension-apiserver-authentication"), ("default", "mine")];
    assert_eq!((told, others.map(|(namespace, name)| reads(namespace, name))), ([true; 2], [false; 2]));

    // A role of that name that grants more is nobody's to hand out.
    let role = "open-cluster-management:bootstrap:clusterset:prod";
    let more = r#"[{"op": "remove", "path": "/rules/0/resourceNames"}]"#;
    hub.kubectl(&["patch", "clusterrole", role, "--type=json", "--patch", more]).expect("patched");
    let said = run(kubectl_ocm("token", &minter).args(["create", "--kind=bootstrap", "--cluster-set=prod"]));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("grants something else"), "{said:?}");

    // An earlier version of ours let every token into every set; installing again takes that back.
    let role = "open-cluster-management:bootstrap";
    let rules = || object(hub, &["clusterrole", role])["rules"].clone();
    let before = rules();
    let mut wide = before.as_array().cloned().expect("rules");
    for rule in &mut wide {
        if rule["resources"][0] == "managedclustersets/join" {
            rule.as_object_mut().expect("a rule").remove("resourceNames");
        }
    }
    let own = serde_json::json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    wide.push(own.clone());
    let wide = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role}, "rules": wide,
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), wide.to_string()).expect("written");
    let path = file.path().to_str().expect("text");
    let words = ["apply", "--server-side", "--force-conflicts", "--field-manager=kubectl-ocm", "--filename", path];
    hub.kubectl(&words).expect("applied");
    assert!(registers(&account, "prod"));
    let version = format!("--bundle-version={}", e2e_tests::bundle());
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", &version]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let after = rules();
    let after = after.as_array().expect("rules");
    assert!(before.as_array().expect("rules").iter().all(|rule| after.contains(rule)), "{after:#?}");
    assert!(after.contains(&own) && after.len() == wide["rules"].as_array().map_or(0, Vec::len), "{after:#?}");
    until("the hub to take the right back", || !registers(&account, "prod"));
}

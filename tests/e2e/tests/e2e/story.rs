//! The main job as people do it, each command run by a user who holds only the rights that the documentation names:
//! install, token, join (with a token, and with access to both clusters), accept, get; and every command a second time.

use std::fs;
use std::path::Path;

use control_plane::{Cluster, Spec};
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::{HYGIENE, Webhook, policy, prepare};
use e2e_tests::{Said, all_settled, bundle, kubectl_ocm, log_lines, run, settled, unchanged, until};
use serde_json::Value;

/// Both kubeconfigs in one file, with the contexts `hub` and `managed`.
fn both(hub: &Path, managed: &Path, into: &Path) {
    let one = |path: &Path, name: &str| -> Value {
        let kubectl = control_plane::binaries().expect("the binaries are there").kubectl().to_owned();
        let output = std::process::Command::new(kubectl)
            .args(["config", "view", "--raw", "--output=json", "--kubeconfig"])
            .arg(path)
            .output()
            .expect("kubectl runs");
        let mut config: Value = serde_json::from_slice(&output.stdout).expect("kubectl prints JSON");
        for list in ["clusters", "users", "contexts"] {
            config[list][0]["name"] = name.into();
        }
        config["contexts"][0]["context"]["cluster"] = name.into();
        config["contexts"][0]["context"]["user"] = name.into();
        config
    };
    let (hub, managed) = (one(hub, "hub"), one(managed, "managed"));
    let mut config = hub.clone();
    for list in ["clusters", "users", "contexts"] {
        config[list] = Value::Array(vec![hub[list][0].clone(), managed[list][0].clone()]);
    }
    config["current-context"] = "".into();
    fs::write(into, config.to_string()).expect("the kubeconfig can be written");
}

#[track_caller]
fn ok(said: &Said) {
    assert_eq!(said.code, Some(0), "stdout:\n{}\nstderr:\n{}", said.stdout, said.stderr);
}

fn available(hub: &Cluster, name: &str) {
    let wanted = format!("managedcluster/{name}");
    hub.kubectl(&["wait", &wanted, "--for=condition=ManagedClusterConditionAvailable", "--timeout=120s"])
        .unwrap_or_else(|error| panic!("{name} does not become available: {error}"));
}

/// The words that ask `kubectl` whether the agent of a line of a log has the right by now that it lacked then.
fn asked_again(line: &str) -> Option<Vec<String>> {
    let line = line.replace('\\', "");
    let between = |before: &str, after: &str| Some(line.split_once(before)?.1.split_once(after)?.0);
    let user = between("User \"", "\"")?;
    let cluster = user.strip_prefix("system:open-cluster-management:")?.split_once(':')?.0;
    let own = format!("system:open-cluster-management:{cluster}");
    let mut what = format!("{}.{}", between("resource \"", "\"")?, between("API group \"", "\"")?);
    if let Some(name) = between(&format!("{what} \""), "\" is forbidden") {
        what = format!("{what}/{name}");
    }
    let mut words = vec!["auth", "can-i", between("cannot ", " resource")?, &what, "--as", user, "--as-group", &own];
    words.extend(["--as-group", "system:open-cluster-management:managed-clusters"]);
    match between("in the namespace \"", "\"") {
        Some(namespace) => words.extend(["--namespace", namespace]),
        None => between("at the cluster", "scope").map(|_| words.push("--all-namespaces"))?,
    }
    Some(words.into_iter().map(str::to_owned).collect())
}

/// Whether a line of a log is about a right that an agent has by now. Agents begin to work as soon as they have their
/// certificate, and the hub's own controllers grant them their rights moments later; on a busy machine they notice.
fn granted_since(hub: &Cluster, line: &str) -> bool {
    let words = asked_again(line);
    let granted = |words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        hub.kubectl(&words).is_ok_and(|said| said.trim() == "yes")
    };
    words.is_some_and(granted)
}

/// A line as the agent of cluster `two` writes it into its log when it may not list something.
fn lacking(resource: &str, group: &str, name: &str, scope: &str) -> String {
    let user = r#"User \"system:open-cluster-management:two:83c3\""#;
    format!(
        r#"err="failed to list: {resource}.{group}{name} is forbidden: {user} cannot list resource \"{resource}\" in API group \"{group}\" {scope}""#
    )
}

const CSRS: [&str; 2] = ["certificatesigningrequests", "certificates.k8s.io"];
const CLUSTERS: [&str; 2] = ["managedclusters", "cluster.open-cluster-management.io"];
const WORKS: [&str; 2] = ["manifestworks", "work.open-cluster-management.io"];
const EVERYWHERE: &str = "at the cluster scope";
const WITHIN: &str = r#"in the namespace \"two\""#;
const TWO: &str = r#" \"two\""#;

#[test]
fn lines_about_missing_rights_are_read() {
    let who = "--as system:open-cluster-management:two:83c3 --as-group system:open-cluster-management:two \
               --as-group system:open-cluster-management:managed-clusters";
    let read = |[resource, group]: [&str; 2], name: &str, scope: &str, asked: &str| {
        let words = asked_again(&lacking(resource, group, name, scope)).expect("it is about an agent");
        let (what, space) = asked.split_once(' ').expect("a scope");
        assert_eq!(words.join(" "), format!("auth can-i list {resource}.{group}{what} {who} {space}"));
    };
    read(CSRS, "", EVERYWHERE, " --all-namespaces");
    read(CLUSTERS, TWO, EVERYWHERE, "/two --all-namespaces");
    read(WORKS, "", WITHIN, " --namespace two");
    let stranger = lacking("pods", "", "", EVERYWHERE).replace("system:open-cluster-management:two:83c3", "jane");
    assert_eq!(asked_again(&stranger), None);
}

#[test]
fn from_nothing_to_available_with_the_documented_rights() {
    let specs = [Spec::node("story-hub"), Spec::node("story-one"), Spec::node("story-two")];
    let clusters = Cluster::start_all(&specs).expect("the clusters start");
    let [hub, one, two] = clusters.as_slice() else { panic!("three clusters were asked for") };
    let scratch = tempfile::tempdir().expect("there is room for a file");

    // A hub.
    let installer = user_with(hub, "installer", &["install.yaml"]);
    let install = || run(kubectl_ocm("install", &installer).args(["hub", "--bundle-version", bundle(), "--wait"]));
    let said = install();
    ok(&said);
    assert!(
        said.stdout.contains("clustermanager.operator.open-cluster-management.io/cluster-manager created"),
        "{}",
        said.stdout
    );
    let before = settled(hub);
    ok(&install());
    unchanged(hub, &before, "a second install changes nothing");

    // Everything that follows is right, so the API server lets it pass.
    let keeper = user_with(hub, "keeper", &["install-baseline.yaml"]);
    let said = run(kubectl_ocm("install", &keeper).args(["baseline", "--wait"]));
    ok(&said);
    assert!(said.stderr.contains("the API server refuses what breaks the rules"), "{said:?}");

    // And so do the policies that say what the rules say.
    prepare(hub);
    for name in HYGIENE {
        policy(hub, name, serde_json::json!({"module": {"builtin": name}}));
    }
    let webhook = Webhook::start(hub, &[]);
    webhook.configure(hub);

    // A token, and a cluster that joins with it.
    let minter = user_with(hub, "minter", &["token.yaml"]);
    let said = run(kubectl_ocm("token", &minter).args(["create", "-o", "json"]));
    ok(&said);
    let token: Value = serde_json::from_str(&said.stdout).expect("token create -o json prints JSON");
    let text = |key: &str| token[key].as_str().unwrap_or_default().to_owned();
    let joiner = user_with(one, "joiner", &["join.yaml"]);
    let join = |wait: &str| {
        let mut command = kubectl_ocm("join", &joiner);
        command.args(["one", "--hub-apiserver", &text("hub-apiserver"), "--hub-ca-pin", &text("hub-ca-pin")]);
        if !text("hub-ca-data").is_empty() {
            command.args(["--hub-ca-data", &text("hub-ca-data")]);
        }
        // The token stands in no process list.
        let file = scratch.path().join("token");
        fs::write(&file, text("hub-token")).expect("the token can be written");
        command.arg("--hub-token-file").arg(&file);
        run(command.args(["--bundle-version", bundle(), wait]))
    };
    let said = join("--wait");
    ok(&said);
    assert!(
        !said.stdout.contains(&text("hub-token")) && !said.stderr.contains(&text("hub-token")),
        "the token is not told"
    );

    // The hub's administrator sees it, lets it in, and sees it available.
    let viewer = user_with(hub, "viewer", &["get.yaml"]);
    let phase = |name: &str| {
        let said = run(kubectl_ocm("get", &viewer).args(["clusters", name, "-o", "json"]));
        ok(&said);
        let cluster: Value = serde_json::from_str(&said.stdout).expect("get -o json prints JSON");
        cluster["standing"]["phase"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(phase("one"), "Pending");
    let said = run(kubectl_ocm("get", &viewer).args(["csr", "one"]));
    ok(&said);
    assert!(said.stdout.contains("Sound"), "{}", said.stdout);
    let acceptor = user_with(hub, "acceptor", &["accept.yaml"]);
    let accept = || run(kubectl_ocm("accept", &acceptor).args(["one", "--wait"]));
    ok(&accept());
    available(hub, "one");
    assert_eq!(phase("one"), "Available");
    let said = accept();
    ok(&said);
    assert!(said.stdout.contains("already accepted"), "{}", said.stdout);

    // Joining again changes nothing on either side.
    let [hub_before, one_before] = all_settled([hub, one]);
    ok(&join("--wait=available"));
    unchanged(one, &one_before, "a second join changes nothing on the cluster");
    unchanged(hub, &hub_before, "a second join changes nothing on the hub");

    // With access to both clusters, as a single agent: one command from nothing to available.
    let hub_access = scratch.path().join("both");
    let hub_joiner = user_with(hub, "hub-joiner", &["join-hub.yaml", "accept.yaml"]);
    let two_joiner = user_with(two, "two-joiner", &["join.yaml"]);
    both(&hub_joiner, &two_joiner, &hub_access);
    let join_two = || {
        let words = [
            "two",
            "--context",
            "managed",
            "--hub-context",
            "hub",
            "--singleton",
            "--accept",
            "--wait",
            "--bundle-version",
            bundle(),
        ];
        run(kubectl_ocm("join", &hub_access).args(words))
    };
    ok(&join_two());
    assert_eq!(phase("two"), "Available");
    let [hub_before, two_before] = all_settled([hub, two]);
    ok(&join_two());
    unchanged(two, &two_before, "a second join changes nothing on the cluster");
    unchanged(hub, &hub_before, "a second join changes nothing on the hub");

    let said = run(kubectl_ocm("get", &viewer).args(["clusters"]));
    ok(&said);
    assert_eq!(said.stdout.lines().filter(|line| line.contains("Available")).count(), 2, "{}", said.stdout);
    let phases = r#"jsonpath={range .items[*]}{.metadata.name}={.standing.phase}{"\n"}{end}"#;
    let said = run(kubectl_ocm("get", &viewer).args(["clusters", "-o", phases]));
    ok(&said);
    assert_eq!(said.stdout, "one=Available\ntwo=Available\n");

    // What runs on each of the three, and that nothing of it is missing.
    for (cluster, what, deployments, driver) in
        [(hub, "hub-info", 6, "csr"), (one, "klusterlet-info", 3, "csr"), (two, "klusterlet-info", 2, "csr")]
    {
        let viewer = user_with(cluster, "info-viewer", &["get-info.yaml"]);
        ok(&run(kubectl_ocm("get", &viewer).arg(what)));
        let look = || {
            let said = run(kubectl_ocm("get", &viewer).args([what, "-o", "json"]));
            ok(&said);
            let list = serde_json::from_str::<Value>(&said.stdout).expect("get -o json prints JSON");
            (list["items"][0].clone(), said)
        };
        // The operator gives the work agent its pod some time after the cluster has its certificate.
        let pods = |info: &Value| info["deployments"].as_array().expect("a list").clone();
        until("its pods are ready", || pods(&look().0).iter().all(|one| one["ready"] == one["wanted"]));
        let (info, said) = look();
        assert_eq!(info["missing"], serde_json::json!([]), "{}", said.stdout);
        let running = info["deployments"].as_array().expect("a list");
        assert!(running.len() >= deployments, "{}", said.stdout);
        assert!(running.iter().all(|one| one["ready"] == one["wanted"]), "{}", said.stdout);
        assert_eq!(info["registrationDrivers"], serde_json::json!([driver]), "{}", said.stdout);
        assert!(info["release"].as_str().is_some_and(|release| release.ends_with(bundle())), "{}", said.stdout);
        let definitions = info["definitions"].as_array().expect("a list");
        let is_stored = |one: &Value| one["stored"].as_array().is_some_and(|stored| stored.contains(&one["storage"]));
        assert!(!definitions.is_empty() && definitions.iter().all(is_stored), "{}", said.stdout);
    }
    let lister = user_with(hub, "token-lister", &["get-tokens.yaml"]);
    ok(&run(kubectl_ocm("get", &lister).args(["tokens", "-o", "json"])));
    let log = webhook.log.lock().expect("nobody failed");
    let wrong: Vec<String> =
        log.iter().filter(|line| line["refused"] == true || line["verdict"] == "error").map(Value::to_string).collect();
    assert!(wrong.is_empty(), "refused although it was right, or not judged:\n{}", wrong.join("\n"));
    for operation in ["create", "update", "request", "approve", "accept"] {
        assert!(log.iter().any(|line| line["operation"] == operation), "nobody was asked about {operation}");
    }
    drop(log);
    // What agents were granted late is told apart from what nobody granted.
    for ([resource, group], name, scope) in [(CSRS, "", EVERYWHERE), (CLUSTERS, TWO, EVERYWHERE), (WORKS, "", WITHIN)] {
        assert!(granted_since(hub, &lacking(resource, group, name, scope)), "{resource}");
    }
    for ([resource, group], name, scope) in [(CLUSTERS, "", EVERYWHERE), (WORKS, "", EVERYWHERE)] {
        assert!(!granted_since(hub, &lacking(resource, group, name, scope)), "{resource}");
    }
    for cluster in [hub, one, two] {
        let mut lines = log_lines(cluster, "forbidden");
        lines.retain(|line| !granted_since(hub, line));
        assert!(lines.is_empty(), "{}: somebody lacks a right:\n{}", cluster.name(), lines.join("\n"));
    }
}

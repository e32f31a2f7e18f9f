//! `kubectl ocm join` on real clusters.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use control_plane::{Cluster, Spec};
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, know_registrations, managed_cluster, note, token_kubeconfig};
use e2e_tests::join_support::{JoinCommand, alone, hub, hub_access, join};
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::node;
use e2e_tests::{Said, bundle, ends_as, kubectl_ocm, object, resource_versions, run, settled, unchanged, until_within};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use serde_json::{Value, json};

/// How long an agent may take on a busy machine.
const SLOW: Duration = Duration::from_secs(90);

/// Refused or failed with this exit code and these words, and nothing is different.
fn nothing_happens<S: AsRef<std::ffi::OsStr>>(
    cluster: &Cluster,
    name: &str,
    flags: &[S],
    code: i32,
    words: &[&str],
) -> Said {
    let before = resource_versions(cluster);
    let said = join(cluster, name, flags);
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
    assert_eq!(said.stdout, "", "{words:?}");
    unchanged(cluster, &before, words);
    said
}

/// Requests for certificates and managed clusters on the hub, whoever they are of.
fn on_hub(name: &str) -> String {
    let words = ["get", "managedclusters,csr", "--output=name"];
    let all = hub().kubectl(&words).expect("the hub lists");
    all.lines().filter(|line| line.contains(&format!("/{name}"))).collect()
}

fn is_available(said: &Said, name: &str) {
    assert_eq!(said.code, Some(0), "{said:?}");
    let line = format!("managedcluster.cluster.open-cluster-management.io/{name} available\n");
    assert!(said.stdout.ends_with(&line), "{said:?}");
    let cluster = object(hub(), &["managedcluster", name]);
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_true =
        |kind: &str| conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True");
    assert!(is_true("ManagedClusterJoined") && is_true("ManagedClusterConditionAvailable"), "{cluster}");
}

#[test]
fn with_both_kubeconfigs_a_cluster_is_available_and_stays_as_it_is() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let hub_access = hub_access(hub);

    let (before, tokens) = (resource_versions(&cluster), resource_versions(hub));
    for (promise, code) in [("--dry-run=client", 0), ("--dry-run=server", 0), ("--diff", 3), ("--render", 0)] {
        let said = join(&cluster, "both", &[hub_access.as_str(), promise]);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(said.stdout.contains("bootstrap-hub-kubeconfig"), "{said:?}");
        assert!(!said.stdout.contains("configured"), "{said:?}");
        unchanged(&cluster, &before, promise);
        unchanged(hub, &tokens, promise);
    }

    let annotated = ["foo=bar", "agent.open-cluster-management.io/test=value"];
    let annotated = annotated.map(|pair| format!("--klusterlet-annotation={pair}"));
    let said = join(&cluster, "both", &[hub_access.as_str(), "--render", &annotated[0], &annotated[1]]);
    for line in ["agent.open-cluster-management.io/foo: bar", "agent.open-cluster-management.io/test: value"] {
        assert!(said.code == Some(0) && said.stdout.contains(line), "{said:?}");
    }

    // Nobody vouches for what an unverified hub tells.
    let unverified = tempfile::NamedTempFile::new().expect("a file");
    let mut config: Value =
        serde_json::from_str(&hub.kubectl(&["config", "view", "--raw", "--output=json"]).expect("it is shown"))
            .expect("JSON");
    let entry = &mut config["clusters"][0]["cluster"];
    entry.as_object_mut().expect("a cluster").retain(|key, _| key == "server");
    entry["insecure-skip-tls-verify"] = true.into();
    std::fs::write(unverified.path(), config.to_string()).expect("written");
    let flag = format!("--hub-kubeconfig={}", unverified.path().display());
    let words = ["is not verified: its kubeconfig says insecure-skip-tls-verify", "--hub-insecure-skip-tls-verify"];
    nothing_happens(&cluster, "both", &[&flag], 1, &words);
    let said = join(&cluster, "both", &[flag.as_str(), "--hub-insecure-skip-tls-verify", "--dry-run=client"]);
    assert!(said.code == Some(0) && said.stderr.contains("warning: ") && said.stderr.contains(words[0]), "{said:?}");

    let ca = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(ca.path(), hub.ca_pem()).expect("written");
    let ca = format!("--ca-file={}", ca.path().display());
    let said = join(&cluster, "both", &[flag.as_str(), ca.as_str(), "--dry-run=client"]);
    assert!(said.code == Some(0) && !said.stderr.contains(words[0]), "the CA that is given verifies it: {said:?}");

    // Of a file with the authorities of two clusters, agents get that of their hub.
    let both = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(both.path(), format!("{}{}", cluster.ca_pem(), hub.ca_pem())).expect("written");
    let both = format!("--ca-file={}", both.path().display());
    // What is said of the cluster comes to the hub with it, below the domain of agents. Not more than one here: OCM 1.3.1
    // gives several to its agent in any order, another one each time, and starts it anew with that. Upstream: ocm#1644.
    let flags = [hub_access.as_str(), &both, "--accept", "--wait", "--klusterlet-annotation=foo=bar"];
    let said = join(&cluster, "both", &flags);
    is_available(&said, "both");
    assert_eq!(annotation(hub, "both", "agent.open-cluster-management.io/foo"), "bar");
    let secret = object(&cluster, &["secret", "bootstrap-hub-kubeconfig", "--namespace=open-cluster-management-agent"]);
    let kubeconfig = secret.pointer("/data/kubeconfig").and_then(Value::as_str).expect("a kubeconfig");
    let kubeconfig = String::from_utf8(STANDARD.decode(kubeconfig).expect("base64")).expect("text");
    let authority = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let authority = STANDARD.decode(authority.expect("a CA").trim()).expect("base64");
    let text = |pem: &[u8]| String::from_utf8_lossy(pem).split_whitespace().collect::<String>();
    assert_eq!(text(&authority), text(hub.ca_pem().as_bytes()));
    assert!(!format!("{said:?}").contains("eyJ"), "a token is shown: {said:?}");

    let join_command = JoinCommand::create(hub, &[]).flags();
    let diff = vec![hub_access.clone(), "--diff".into()];
    let before = settled(&cluster);
    for flags in
        [vec![hub_access.clone(), "--accept".into(), "--wait".into()], join_command, vec![hub_access.clone()], diff]
    {
        let said = join(&cluster, "both", &flags);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains("already; nothing is changed"), "{said:?}");
        unchanged(&cluster, &before, "nothing is changed");
    }
    nothing_happens(&cluster, "other", &[&hub_access], 3, &["as \"both\", not as \"other\"", "kubectl ocm join both"]);

    // Another hub: this cluster does not even have to be one to be recognised.
    let other = Cluster::start(&Spec::api("other")).expect("a cluster");
    let flag = format!("--hub-kubeconfig={}", other.kubeconfig().display());
    let address = format!("--hub-apiserver={}", other.server().replace("127.0.0.1", "localhost"));
    let said = join(&cluster, "both", &[flag.as_str(), &address]);
    assert_eq!(said.code, Some(2), "an address of this machine alone: {said:?}");
    let itself = format!("--hub-kubeconfig={}", cluster.kubeconfig().display());
    nothing_happens(&cluster, "both", &[&itself], 2, &["is the hub itself", "--self"]);
    let flags = [itself.as_str(), &both, "--self"];
    nothing_happens(&cluster, "both", &flags, 3, &["has joined another hub", "kubectl ocm unjoin both"]);
}

/// An annotation of a cluster, as the hub holds it.
fn annotation(hub: &Cluster, name: &str, key: &str) -> Value {
    object(hub, &["managedcluster", name])["metadata"]["annotations"][key].clone()
}

#[test]
fn with_a_token_a_cluster_registers_and_every_trouble_has_its_sentence() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let join_command = JoinCommand::create(hub, &[]);
    let flags = join_command.flags();
    let with = |change: &dyn Fn(&mut JoinCommand)| {
        let mut join_command = join_command.clone();
        change(&mut join_command);
        join_command.flags()
    };

    let claims = URL_SAFE_NO_PAD.encode(r#"{"exp":1000000000}"#);
    let expired = with(&|join_command| join_command.token = format!("e30.{claims}.c2ln"));
    nothing_happens(&cluster, "t1", &expired, 1, &["has expired", "2001-09-09", "kubectl ocm token create"]);
    let unknown = with(&|join_command| join_command.token = "abcdef.0123456789abcdef".to_owned());
    nothing_happens(&cluster, "t1", &unknown, 1, &["does not accept bootstrap token \"abcdef\""]);
    let forged = with(&|join_command| {
        join_command.token = join_command.token[..join_command.token.len() - 8].to_owned() + "AAAAAAAA"
    });
    nothing_happens(&cluster, "t1", &forged, 1, &["does not accept the token", "not copied whole"]);
    let pin = with(&|join_command| join_command.pin = format!("sha256:{}", "0".repeat(64)));
    ends_as!("errors-wrong-pin", nothing_happens(&cluster, "t1", &pin, 1, &["does not have the pinned key"]));
    let other = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(other.path(), cluster.ca_pem()).expect("written");
    let [token, server] = [&flags[0], &flags[1]];
    let file = format!("--ca-file={}", other.path().display());
    nothing_happens(&cluster, "t1", &[token, server, &file], 1, &["the trusted CA did not sign"]);
    nothing_happens(
        &cluster,
        "t1",
        &[token, server],
        1,
        &["is not verified, so the token was not sent", "--hub-ca-pin"],
    );
    let nobody = with(&|join_command| join_command.server = join_command.server.replace("6443", "6444"));
    let unreachable = nothing_happens(&cluster, "t1", &nobody, 1, &["cannot be reached: connection refused"]);
    ends_as!("errors-unreachable", unreachable);
    let plain = with(&|join_command| join_command.server = join_command.server.replace("https", "http"));
    nothing_happens(&cluster, "t1", &plain, 2, &["do not travel over plain http"]);
    let itself = with(&|join_command| join_command.server = "https://127.0.0.1:6443".to_owned());
    nothing_happens(&cluster, "t1", &itself, 2, &["agents cannot reach the hub"]);
    for name in ["T1", "kube-system", "a.b", &"x".repeat(64)] {
        nothing_happens(&cluster, name, &flags, 2, &["cannot be the name of a managed cluster"]);
    }
    let accept = [flags.clone(), vec!["--accept".to_owned()]].concat();
    nothing_happens(&cluster, "t1", &accept, 2, &["--accept needs the hub's kubeconfig"]);
    let no_hub = [format!("--hub-kubeconfig={}", cluster.kubeconfig().display()), "--self".to_owned()];
    nothing_happens(&cluster, "t1", &no_hub, 1, &["but no hub", "kubectl ocm install"]);
    assert_eq!(on_hub("t1"), "");

    // What is rendered or compared holds the token only where that is typed, and then it can be applied as it is.
    let render = |more: &[&str]| {
        join(&cluster, "t1", &[&flags[..], &more.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>()].concat())
    };
    let kubeconfig = |said: &Said| -> String {
        let list: Value = serde_json::from_str(&said.stdout).expect("JSON");
        let objects = list["items"].as_array().cloned().unwrap_or_default();
        let secret = objects.into_iter().find(|object| object["metadata"]["name"] == "bootstrap-hub-kubeconfig");
        secret.expect("a Secret")["data"]["kubeconfig"].as_str().expect("a text").to_owned()
    };
    let said = render(&["--render", "--output=json"]);
    assert!(STANDARD.decode(kubeconfig(&said)).is_err(), "{said:?}");
    assert!(said.stderr.contains("--show-secrets prints them"), "{said:?}");
    let shown = STANDARD.decode(kubeconfig(&render(&["--render", "--output=json", "--show-secrets"]))).expect("base64");
    assert!(String::from_utf8_lossy(&shown).contains(&join_command.token));
    let said = render(&["--diff"]);
    assert!(said.code == Some(3) && said.stdout.contains("+kind: Klusterlet"), "{said:?}");
    assert!(said.stdout.contains("changed"), "the Secret has no contents: {said:?}");
    assert!(
        !said.stdout.contains(&join_command.token) && !said.stdout.contains(&STANDARD.encode(&shown)[..64]),
        "{said:?}"
    );

    // Every command that has a plan says the same of each object.
    let said = render(&["--dry-run=server", "--output=json"]);
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&document["dryRun"], &document["changed"]), (&"server".into(), &true.into()), "{said:?}");
    assert_eq!(document["hubTrustedBy"], if join_command.ca.is_some() { "CA" } else { "Pin" }, "{said:?}");
    let klusterlet = document["objects"].as_array().and_then(|all| all.last()).expect("objects");
    assert_eq!(
        klusterlet,
        &json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
            "name": "klusterlet", "outcome": "created"})
    );

    // With a token alone, the wait ends when the hub knows the cluster and its request.
    let more = ["--wait", "--singleton", "--klusterlet-annotation=agent.open-cluster-management.io/test=value"];
    let registered = join(&cluster, "t1", &[&flags[..], &more.map(str::to_owned)].concat());
    assert_eq!(registered.code, Some(0), "{registered:?}");
    assert!(registered.stdout.ends_with("/t1 registered, pending acceptance\n"), "{registered:?}");
    assert!(registered.stderr.contains("kubectl ocm accept t1"), "{registered:?}");
    assert_eq!(annotation(hub, "t1", "agent.open-cluster-management.io/test"), "value");
    let patient = ["--wait=available", "--timeout=3s", "--output=json"].map(str::to_owned);
    let said = join(&cluster, "t1", &[&flags[..], &patient].concat());
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(said.stderr.contains("gave up waiting for acceptance"), "{said:?}");
    // What was done is told, though the wait has ended.
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert!(document["objects"].as_array().is_some_and(|all| !all.is_empty()), "{said:?}");
    // Others may hold that token, and ask in its agent's very name: to be accepted, the agent gets one of its own.
    let uid = object(&cluster, &["klusterlet", "klusterlet"])["metadata"]["uid"].as_str().expect("a UID").to_owned();
    let mut ask = Ask::with("t1", &Fixture::agent("t1", &uid));
    ask.name = Some("evil-t1".to_owned());
    Stranger::with(hub, &join_command.token).creates(&[json!(ask.object())]);
    let said = join(&cluster, "t1", &[hub_access(hub).as_str(), "--accept", "--wait"]);
    is_available(&said, "t1");
    assert!(said.stderr.contains("evil-t1 (sha256:"), "{said:?}");
    let evil = object(hub, &["csr", "evil-t1"]);
    assert!(evil.pointer("/status/conditions").is_none(), "a stranger's request was decided: {evil}");
    is_available(&join(&cluster, "t1", &[flags.clone(), vec!["--wait=available".into()]].concat()), "t1");
    cluster
        .kubectl(&["get", "deployment", "klusterlet-agent", "--namespace=open-cluster-management-agent"])
        .expect("one agent");

    // The name is taken for whoever comes next, by token and with access to both clusters.
    let late = Cluster::start(&Spec::api("late")).expect("a cluster");
    let taken = nothing_happens(&late, "t1", &flags, 3, &["already, and it is available", "choose another name"]);
    ends_as!("errors-name-taken", taken);
    nothing_happens(&late, "t1", &[hub_access(hub)], 3, &["already, and it is available"]);
}

#[test]
fn an_unclean_end_is_mended_by_the_same_command() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let hub_access = hub_access(hub);
    let bundle = format!("--bundle-version={}", bundle());
    for milliseconds in [80, 250, 900] {
        let mut child = kubectl_ocm("join", cluster.kubeconfig())
            .args(["again", &hub_access, "--accept", "--wait", &bundle])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        sleep(Duration::from_millis(milliseconds));
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
    }
    is_available(&join(&cluster, "again", &[hub_access.as_str(), "--accept", "--wait"]), "again");

    // Detached while nobody looked: the operator is gone, its lease is not.
    hub.kubectl(&["delete", "managedcluster", "again"]).expect("it goes");
    cluster.kubectl(&["delete", "klusterlet", "klusterlet"]).expect("it goes");
    let operator = "--namespace=open-cluster-management";
    cluster
        .kubectl(&["delete", "deployment", "klusterlet", operator, "--cascade=foreground", "--wait"])
        .expect("it goes");
    let gone = r#"{"spec": {"holderIdentity": "klusterlet-0123456789-abcde_7", "leaseDurationSeconds": 137}}"#;
    cluster
        .kubectl(&["patch", "lease", "klusterlet-lock", operator, "--type=merge", "--patch", gone])
        .expect("patched");
    let said = join(&cluster, "again", &[hub_access.as_str(), "--accept", "--wait"]);
    is_available(&said, "again");
    assert!(said.stderr.contains("cleared leader lease open-cluster-management/klusterlet-lock"), "{said:?}");
    assert!(said.stderr.contains("klusterlet-0123456789-abcde"), "{said:?}");
    assert!(said.stderr.contains("the name \"again\" was used on the hub before"), "{said:?}");
}

#[test]
fn an_address_of_the_cluster_that_somebody_wrote_stays_with_its_ca() {
    let _alone = alone();
    // No agent runs there: the cluster stays as a join leaves it.
    let cluster = Cluster::start(&Spec::api("urls")).expect("a cluster");
    // Who had the name before is told, also where nothing but what was noted is left.
    know_registrations(hub());
    note(hub(), "urls", "another", "2126-01-01T00:00:00Z");
    let flags = [hub_access(hub())];
    let publish = |server: &str| {
        let config = json!({"apiVersion": "v1", "kind": "Config",
            "clusters": [{"name": "", "cluster": {"server": server}}]});
        let literal = format!("--from-literal=kubeconfig={config}");
        cluster.kubectl(&["create", "configmap", "cluster-info", "--namespace=kube-public", &literal]).expect("made");
    };
    let klusterlet = || object(&cluster, &["klusterlet", "klusterlet"]);
    let urls = || klusterlet()["spec"]["externalServerURLs"].clone();
    publish("https://published.example:6443");
    let said = join(&cluster, "urls", &flags);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("earlier agents stay valid until 2126-01-01T00:00:00Z at most"), "{said:?}");
    assert_eq!(urls(), json!([{"url": "https://published.example:6443"}]));

    let written = json!([
        {"url": "https://written.example", "caBundle": STANDARD.encode(cluster.ca_pem())},
        {"url": "https://second.example"},
    ]);
    let patch = json!({"spec": {"externalServerURLs": written}}).to_string();
    cluster.kubectl(&["patch", "klusterlet", "klusterlet", "--type=merge", "--patch", &patch]).expect("patched");
    cluster.kubectl(&["delete", "configmap", "cluster-info", "--namespace=kube-public"]).expect("it goes");
    publish("https://moved.example:6443");
    let version = || klusterlet()["metadata"]["resourceVersion"].clone();
    // The first run takes the field over, the second one has nothing to do.
    let mut versions = Vec::new();
    for _ in 0..2 {
        let said = join(&cluster, "urls", &flags);
        assert_eq!((said.code, urls()), (Some(0), written.clone()), "{said:?}");
        versions.push(version());
    }
    assert_eq!(versions[0], versions[1]);
}

/// A request for a certificate in the name of a cluster.
fn asked(cluster: &str, name: &str) -> Value {
    let mut ask = Ask::agent(cluster);
    ask.name = Some(name.to_owned());
    json!(ask.object())
}

/// Somebody with a token that registers clusters, but no cluster.
struct Stranger {
    kubeconfig: tempfile::NamedTempFile,
}

impl Stranger {
    fn of(hub: &Cluster) -> Self {
        let words = ["create", "token", "agent-registration-bootstrap", "--namespace=open-cluster-management"];
        Self::with(hub, hub.kubectl(&words).expect("a token").trim())
    }

    fn with(hub: &Cluster, token: &str) -> Self {
        let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(kubeconfig.path(), token_kubeconfig(hub, token)).expect("written");
        Self { kubeconfig }
    }

    /// Creates a managed cluster, and asks for a certificate in its name.
    fn takes(&self, name: &str, request: &str) {
        self.creates(&[json!(managed_cluster(name)), asked(name, request)]);
    }

    fn creates(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), list.to_string()).expect("written");
        let kubectl = control_plane::binaries().expect("the binaries are there").kubectl().to_owned();
        let mut command = std::process::Command::new(kubectl);
        command.arg("create").arg("--kubeconfig").arg(self.kubeconfig.path()).arg("--filename").arg(file.path());
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

#[test]
fn only_the_agent_that_was_installed_is_approved() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let hub_access = hub_access(hub);

    // A namespace that is somebody else's is found before anything is installed.
    hub.kubectl(&["create", "namespace", "shop"]).expect("made");
    nothing_happens(
        &cluster,
        "shop",
        &[hub_access.as_str(), "--accept"],
        3,
        &["a namespace \"shop\"", "--adopt-namespace"],
    );
    nothing_happens(&cluster, "shop", &[hub_access.as_str(), "--dry-run=server"], 3, &["a namespace \"shop\""]);
    let said = join(&cluster, "shop", &[hub_access.as_str(), "--dry-run=client", "--adopt-namespace"]);
    assert!(said.code == Some(0) && said.stderr.contains("becomes the cluster's"), "{said:?}");

    let stranger = Stranger::of(hub);
    stranger.takes("own", "evil-own");
    let told = ["which this cluster did not register", "evil-own (sha256:"];
    let said = join(&cluster, "own", &[hub_access.as_str(), "--dry-run=client"]);
    assert!(said.code == Some(0) && told.iter().all(|words| said.stderr.contains(words)), "{said:?}");

    let said = join(&cluster, "own", &[hub_access.as_str(), "--accept", "--wait"]);
    is_available(&said, "own");
    assert!(told.iter().all(|words| said.stderr.contains(words)), "{said:?}");
    assert!(said.stderr.contains("the agent's own key is sha256:"), "{said:?}");
    let evil = object(hub, &["csr", "evil-own"]);
    assert!(evil.pointer("/status/conditions").is_none(), "a stranger's request was decided: {evil}");
    // And again: the stray request still changes nothing.
    let said = join(&cluster, "own", &[hub_access.as_str(), "--accept", "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(object(hub, &["csr", "evil-own"]).pointer("/status/conditions").is_none());

    // The hub forgets it, the cluster does not.
    hub.kubectl(&["delete", "managedcluster", "own"]).expect("it goes");
    nothing_happens(&cluster, "own", &[&hub_access], 3, &["it was removed there", "kubectl ocm unjoin own"]);
    nothing_happens(&cluster, "own", &JoinCommand::create(hub, &[]).flags(), 3, &["it was removed there"]);

    // Somebody else takes its name, later than its certificate was issued, as far as clocks can tell.
    sleep(Duration::from_secs(11));
    stranger.takes("own", "evil-own-2");
    let anew = ["was removed there and registered anew since", "kubectl ocm unjoin own --context CLUSTER"];
    nothing_happens(&cluster, "own", &[&hub_access], 3, &anew);
    nothing_happens(&cluster, "own", &JoinCommand::create(hub, &[]).flags(), 3, &anew);
    hub.kubectl(&["delete", "managedcluster", "own"]).expect("it goes");

    // A namespace that is meant for the cluster becomes its own.
    cluster.kubectl(&["delete", "klusterlet", "klusterlet"]).expect("it goes");
    let said = join(&cluster, "shop", &[hub_access.as_str(), "--adopt-namespace"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // As a run leaves it that was killed after its approval, when the request is cleaned up. Somebody else asks meanwhile.
    let asks = || {
        let ask = ["get", "csr", "--selector=open-cluster-management.io/cluster-name=shop", "--output=name"];
        let all = hub.kubectl(&ask).expect("they are listed");
        all.lines()
            .map(|line| line.trim_start_matches("certificatesigningrequest.certificates.k8s.io/").to_owned())
            .collect()
    };
    let approved = |all: Vec<String>| {
        let approves = |name: &String| hub.kubectl(&["certificate", "approve", name.as_str()]).is_ok();
        !all.is_empty() && all.iter().all(approves)
    };
    until_within(SLOW, "it asks, and is approved", String::new, || approved(asks()));
    let certificate = ["get", "secret", "hub-kubeconfig-secret", "--namespace=open-cluster-management-agent"];
    let certificate = [&certificate[..], &["--output=jsonpath={.data.tls\\.crt}"]].concat();
    let has_certificate = || cluster.kubectl(&certificate).is_ok_and(|found| !found.trim().is_empty());
    until_within(SLOW, "it has its certificate", String::new, has_certificate);
    for name in asks() {
        hub.kubectl(&["delete", "csr", &name]).expect("it goes");
    }
    stranger.creates(&[asked("shop", "evil-shop")]);
    let said = join(&cluster, "shop", &[hub_access.as_str(), "--accept", "--wait"]);
    is_available(&said, "shop");
    let evil = object(hub, &["csr", "evil-shop"]);
    assert!(evil.pointer("/status/conditions").is_none(), "a stranger's request was decided: {evil}");
}

#[test]
fn a_hub_that_still_starts_is_waited_for() {
    let _alone = alone();
    let clusters = Cluster::start_all(&["newhub", "early"].map(Spec::node)).expect("clusters");
    let [new, early] = &clusters[..] else { panic!("two clusters") };
    let key = hub_access(new);
    let no_hub = ["is a Kubernetes cluster, but no hub", "kubectl ocm install hub"];
    nothing_happens(early, "early", &[key.as_str(), "--accept"], 1, &no_hub);

    let bundle = format!("--bundle-version={}", bundle());
    let said = run(kubectl_ocm("install", new.kubeconfig()).args(["hub", &bundle]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let starting =
        ["is still starting", "has not made it serve managed clusters yet", "kubectl ocm install hub --wait"];
    nothing_happens(early, "early", &[key.as_str(), "--dry-run=server"], 1, &starting);
    // With the documented rights, which are enough to see what is missing.
    let joiner = user_with(new, "hub-joiner", &["join-hub.yaml", "accept.yaml"]);
    let joiner = format!("--hub-kubeconfig={}", joiner.display());
    let said = join(early, "early", &[joiner.as_str(), "--accept", "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let early = object(new, &["managedcluster", "early"]);
    assert_eq!(early["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"], "default", "{early}");
    new.kubectl(&["wait", "managedcluster/early", "--for=condition=ManagedClusterConditionAvailable", "--timeout=1s"])
        .expect("it is available");
}

/// The namespaces of operator and agents.
const NAMESPACES: [&str; 2] = ["open-cluster-management", "open-cluster-management-agent"];

/// Its agent holds a certificate of its name that no hub has issued and that ends then.
fn forges(cluster: &Cluster, seconds: u64) {
    let secret = ["secret", "hub-kubeconfig-secret", "--namespace", NAMESPACES[1]];
    let data = object(cluster, &secret)["data"].clone();
    let text = |key: &str| {
        let value = STANDARD.decode(data[key].as_str().expect("it is there")).expect("base64");
        String::from_utf8(value).expect("text")
    };
    let group = format!("system:open-cluster-management:{}", text("cluster-name"));
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, group.as_str());
    params.distinguished_name.push(DnType::CommonName, format!("{group}:{}", text("agent-name")));
    let now = jiff::Timestamp::now().as_second().unsigned_abs();
    let at = |second: u64| date_time_ymd(1970, 1, 1) + Duration::from_secs(second);
    (params.not_before, params.not_after) = (at(now - 3600), at(now + seconds));
    let certificate = params.self_signed(&key).expect("a certificate");
    let pair = json!({"tls.crt": STANDARD.encode(certificate.pem()), "tls.key": STANDARD.encode(key.serialize_pem())});
    let patch = format!("--patch={}", json!({"data": pair}));
    cluster.kubectl(&[&["patch", "--type=merge", &patch], &secret[..]].concat()).expect("it is patched");
}

/// A cluster is off until the certificate of its agent has expired.
fn expires(cluster: &Cluster) {
    is_off(cluster);
    forges(cluster, 1);
    sleep(Duration::from_secs(2));
    for namespace in NAMESPACES {
        scale(cluster, namespace, "--replicas=1");
    }
}

/// No operator and no agent runs there.
fn is_off(cluster: &Cluster) {
    let pods = |namespace: &str| {
        let pods = cluster.kubectl(&["get", "pods", "--namespace", namespace, "--output=name"]);
        pods.unwrap_or_else(|error| error.to_string())
    };
    for namespace in NAMESPACES {
        scale(cluster, namespace, "--replicas=0");
        until_within(Duration::from_secs(90), "its pods end", || pods(namespace), || pods(namespace).is_empty());
    }
}

fn scale(cluster: &Cluster, namespace: &str, replicas: &str) {
    let words = ["scale", "deployment", "--all", "--namespace", namespace, replicas];
    cluster.kubectl(&words).expect("it is scaled");
}

/// A person gives the name of a cluster that has joined to the new key of its agent, as the refusal of `join --accept` says.
fn approve(hub: &Cluster, name: &str, refused: &Said) {
    let words = format!("accept {name} --replace --fingerprint ");
    let (_, key) = refused.stderr.split_once(&words).expect("what to type");
    let key = key.split(';').next().unwrap_or_default();
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args([name, "--replace", "--fingerprint", key]));
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_cluster_whose_certificate_has_expired_gets_its_name_back_when_a_person_says_so() {
    let _alone = alone();
    let hub = hub();
    let cluster = node();
    let access = hub_access(hub);
    let again = |flags: &[&str]| join(&cluster, "late", &[&[access.as_str(), "--accept", "--wait"], flags].concat());
    is_available(&again(&[]), "late");
    let uid = || object(hub, &["managedcluster", "late"])["metadata"]["uid"].clone();
    let registered = uid();
    let decided = || {
        let requests =
            object(hub, &["csr", "--selector=open-cluster-management.io/cluster-name=late"])["items"].clone();
        let all = requests.as_array().cloned().unwrap_or_default();
        all.iter().filter(|request| request.pointer("/status/conditions").is_some()).count()
    };

    // By the same command, and to another mode at once.
    for flags in [&[][..], &["--singleton"]] {
        expires(&cluster);
        let before = decided();
        // Whoever has a token asks for the name, too.
        if flags.is_empty() {
            Stranger::of(hub).creates(&[asked("late", "evil-late")]);
        }
        let said = again(flags);
        assert_eq!((said.code, decided()), (Some(3), before), "{said:?}");
        assert!(said.stderr.contains("has no certificate that is valid now"), "{said:?}");
        approve(hub, "late", &said);
        is_available(&again(flags), "late");
        // It may still have to wait for the former agents of the other mode.
        is_available(&again(flags), "late");
        let said = again(flags);
        assert!(said.code == Some(0) && said.stderr.contains("already; nothing is changed"), "{said:?}");
    }
    // What the hub has not issued shows nothing.
    let access = access.as_str();
    let proxied = [access, "--singleton", "--accept", "--proxy-url=http://192.0.2.1:3128"];
    let said = join(&cluster, "late", &[&proxied[..], &["--dry-run"]].concat());
    assert!(said.code == Some(0) && said.stderr.contains("would ask for a new certificate"), "{said:?}");
    is_off(&cluster);
    forges(&cluster, 3600);
    let words = ["the hub does not let its agent in", "leave out --accept"];
    nothing_happens(&cluster, "late", &[&proxied[..], &["--dry-run"]].concat(), 3, &words);
    nothing_happens(&cluster, "late", &proxied, 3, &words);

    let mode = object(&cluster, &["klusterlet", "klusterlet"])["spec"]["deployOption"]["mode"].clone();
    assert_eq!((uid(), mode), (registered, json!("Singleton")));
    let evil = object(hub, &["csr", "evil-late"]);
    assert!(evil.pointer("/status/conditions").is_none(), "a stranger's request was decided: {evil}");
}

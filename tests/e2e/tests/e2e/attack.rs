//! A registration under attack: a token with which clusters register is in hostile hands before, during and after the
//! right clusters join. Every command of the hub's administrator is run by a user with the documented rights only.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, Who, managed_cluster, token_kubeconfig};
use e2e_tests::connection::connect;
use e2e_tests::join_support::JoinCommand;
use e2e_tests::roles::user_with;
use e2e_tests::shared_hub::hub;
use e2e_tests::{Said, bundle, kubectl_ocm, log_lines, object, run, until};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use ocm_api::names::signers;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Start of the names of agents and groups.
const PREFIX: &str = "system:open-cluster-management:";
/// Start of the name of every request that somebody hostile creates.
const HOSTILE: &str = "hostile-";
const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// Whoever holds a token with which clusters register, and a user of the hub who may create requests.
struct Hostile {
    token: Client,
    user: Client,
    runtime: Runtime,
    count: std::cell::Cell<usize>,
}

impl Hostile {
    fn new(hub: &Cluster, token: &str) -> Self {
        let file = hub.dir().expect("a cluster of this run").join("hostile.kubeconfig");
        fs::write(&file, token_kubeconfig(hub, token)).expect("written");
        let user = hub.user_kubeconfig("eve", &[]).expect("a user");
        let role = "--clusterrole=open-cluster-management:bootstrap";
        hub.kubectl(&["create", "clusterrolebinding", "eve", role, "--user=eve"]).expect("a binding");
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = |file: &Path| runtime.block_on(connect(file)).client;
        Self { token: client(&file), user: client(&user), runtime, count: 0.into() }
    }

    /// Registers a cluster with some more content; the hub may say no.
    fn registers(&self, name: &str, more: Value) -> Result<ManagedCluster, kube::Error> {
        let mut object = serde_json::to_value(managed_cluster(name)).expect("JSON");
        merge(&mut object, more);
        let object = serde_json::from_value(object).expect("a cluster");
        self.runtime.block_on(Api::all(self.token.clone()).create(&PostParams::default(), &object))
    }

    /// Changes a cluster; the hub may say no.
    fn changes(&self, name: &str, patch: Value) -> Result<ManagedCluster, kube::Error> {
        let api = Api::all(self.token.clone());
        self.runtime.block_on(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)))
    }

    /// Reads a cluster; the hub may say no.
    fn reads(&self, name: &str) -> Result<ManagedCluster, kube::Error> {
        self.runtime.block_on(Api::<ManagedCluster>::all(self.token.clone()).get(name))
    }

    fn asks_as(&self, client: &Client, mut ask: Ask) -> Result<CertificateSigningRequest, kube::Error> {
        self.count.set(self.count.get() + 1);
        ask.name = Some(format!("{HOSTILE}{}", self.count.get()));
        self.runtime.block_on(Api::all(client.clone()).create(&PostParams::default(), &ask.object()))
    }

    /// Asks, with the token.
    fn asks(&self, ask: Ask) {
        self.asks_as(&self.token, ask).expect("the hub stores it");
    }

    /// Asks for a name with a key of its own, as an agent does: nothing tells it from the right one but its key.
    fn asks_rightly(&self, name: &str) {
        self.asks(Ask::with(name, &Fixture::agent(name, "hostile")));
    }

    /// Asks for a name in ways of which each breaks a rule.
    fn asks_wrongly(&self, name: &str) {
        let own = || Fixture::agent(name, "hostile");
        self.asks(Ask::with(name, &own().organization("platform-admins")));
        self.asks(Ask { signer: "example.com/foo".to_owned(), ..Ask::agent(name) });
        self.asks_as(&self.user, Ask::with(name, &own())).expect("the hub stores it");
    }

    /// Everything else that a request for a name may pretend.
    fn asks_for_more(&self, name: &str, agent: &str) {
        let own = || Fixture::agent(name, "hostile");
        self.asks(Ask::with(name, &own().organization(&format!("{PREFIX}other"))));
        self.asks(Ask::with(name, &own().without_common_names().common_name("kubernetes-admin")));
        self.asks(Ask::with(name, &own().without_common_names().common_name(&format!("{PREFIX}other:a1"))));
        self.asks(Ask { addon: Some("x".to_owned()), ..Ask::with(name, &own()) });
        self.asks(Ask { seconds: Some(315_360_000), ..Ask::with(name, &own()) });
        // As if the joined agent renewed, in its very name.
        self.asks(Ask::with(name, &Fixture::agent(name, agent)));
        let renewal = format!("{PREFIX}{name}:{agent}");
        let claimed = Ask { annotation: Some(renewal), ..Ask::with(name, &Fixture::agent(name, agent)) };
        self.asks(claimed.clone());
        self.asks(Ask { signer: signers::GRPC.to_owned(), ..claimed });
        // Groups that only the API server gives cannot even be asked for.
        let masters = Ask::with(name, &own().organization("system:masters"));
        assert!(self.asks_as(&self.token, masters).is_err());
    }
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more,
    }
}

/// The hub's administrator: users with the documented rights of one command each.
struct Administrator {
    acceptor: PathBuf,
    viewer: PathBuf,
}

impl Administrator {
    #[track_caller]
    fn accept(&self, words: &[&str], code: i32) -> Said {
        let said = run(kubectl_ocm("accept", &self.acceptor).args(words));
        assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
        said
    }

    fn get(&self, words: &[&str]) -> String {
        let said = run(kubectl_ocm("get", &self.viewer).args(words));
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
        said.stdout
    }
}

/// Every request for a cluster that was approved.
fn approved(hub: &Cluster) -> Vec<(String, String)> {
    let list = object(hub, &["csr", "--selector=open-cluster-management.io/cluster-name"]);
    let is_approved = |item: &&Value| {
        let conditions = item.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Approved")
            || item.pointer("/status/certificate").is_some()
    };
    let text = |item: &Value, path: &str| item.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<(String, String)> = items
        .iter()
        .filter(is_approved)
        .map(|item| {
            let cluster = text(item, "/metadata/labels/open-cluster-management.io~1cluster-name");
            (cluster, text(item, "/metadata/name"))
        })
        .collect();
    found.sort();
    found
}

#[track_caller]
fn nothing_is_approved(hub: &Cluster) {
    assert_eq!(approved(hub), []);
    let accepted = "jsonpath={.items[?(@.spec.hubAcceptsClient==true)].metadata.name}";
    assert_eq!(hub.kubectl(&["get", "managedclusters", "--output", accepted]).expect("clusters"), "");
}

/// The request that the agent of a cluster says it has created, in its log on its own cluster.
fn asked_by_agent(cluster: &Cluster) -> String {
    let begun = Instant::now();
    loop {
        let lines = log_lines(cluster, "A csr ");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let after = lines.last().and_then(|line| line.split("A csr ").nth(1));
        if let Some(name) = after.and_then(|rest| rest.split(|c| !is_name(c)).find(|word| !word.is_empty())) {
            return name.to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the agent does not say what it asked for");
        sleep(Duration::from_millis(300));
    }
}

#[track_caller]
fn says(said: &Said, all: &[&str]) {
    for words in all {
        assert!(said.stdout.contains(words) || said.stderr.contains(words), "{words:?} is not said: {said:?}");
    }
}

#[track_caller]
fn forbidden<T: std::fmt::Debug>(answer: Result<T, kube::Error>, words: &str) {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => {
            assert!(status.message.contains(words), "{}", status.message);
        }
        other => panic!("not forbidden: {other:?}"),
    }
}

/// Whether the hub does not know who asks.
fn is_unauthorized<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 401)
}

#[test]
fn only_the_right_clusters_join_while_somebody_hostile_holds_their_token() {
    let specs = [Spec::node("attack-hub"), Spec::node("attack-shop"), Spec::node("attack-kiosk")];
    let clusters = Cluster::start_all(&specs).expect("the clusters start");
    let [hub, shop, kiosk] = clusters.as_slice() else { panic!("three clusters were asked for") };
    let installer = user_with(hub, "installer", &["install.yaml"]);
    let said = run(kubectl_ocm("install", &installer).args(["hub", "--bundle-version", bundle(), "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let minter = user_with(hub, "minter", &["token.yaml"]);
    let join_command = {
        let said = run(kubectl_ocm("token", &minter).args(["create", "--output=json"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        JoinCommand::read(&said.stdout)
    };
    let admin = Administrator {
        acceptor: user_with(hub, "acceptor", &["accept.yaml"]),
        viewer: user_with(hub, "viewer", &["get.yaml"]),
    };
    // The very token that the shop is to join with.
    let hostile = Hostile::new(hub, &join_command.token);

    // Before. The hub refuses sets and acceptance; the rest can be planted.
    forbidden(hostile.registers("sly", json!({"metadata": {"labels": {SET: "prod"}}})), "managedclustersets");
    forbidden(hostile.registers("sly", json!({"spec": {"hubAcceptsClient": true}})), "managedclusters");
    let prod = json!({"labels": {"env": "prod"}, "annotations": {"example.com/owner": "eve"}});
    let taint = json!({"key": "example.com/x", "effect": "NoSelect", "timeAdded": null});
    hostile.registers("shop", json!({"metadata": prod, "spec": {"taints": [taint]}})).expect("it is stored");
    hostile.registers("kiosk", json!({"metadata": {"labels": {"env": "prod"}}})).expect("it is stored");
    hostile.registers("ghost", json!({})).expect("it is stored");
    hostile.asks_rightly("shop");
    hostile.asks_wrongly("shop");
    hostile.asks_rightly("kiosk");
    hostile.asks_wrongly("ghost");
    let clusters = admin.get(&["clusters"]);
    assert_eq!(clusters.lines().filter(|line| line.contains("Pending")).count(), 3, "{clusters}");
    let requests = admin.get(&["csr", "ghost", "--output=wide"]);
    for word in ["ForeignOrganization", "Signer", "Requester"] {
        assert!(requests.contains(word), "{requests}");
    }
    let said = admin.accept(&["--all-pending", "--yes"], 3);
    says(&said, &["shop refused, Labels", "\"env\"", "kiosk refused, Labels", "ghost refused, "]);
    let said = admin.accept(&["--selector=env=prod", "--yes"], 3);
    says(&said, &["shop refused, Labels", "kiosk refused, Labels", "--as-registered"]);
    let said = admin.accept(&["shop"], 3);
    says(&said, &["shop refused, Labels"]);
    let said = admin.accept(&["ghost", "--replace", "--reuse-name", "--as-registered"], 3);
    says(&said, &["ghost refused, ", "hint: "]);
    nothing_is_approved(hub);

    // A denial denies what the administrator may deny, says what not, and holds for what is asked afterwards.
    let said = admin.accept(&["ghost", "--deny", "nobody knows it"], 1);
    says(&said, &["example.com/foo", "denied"]);
    let own = Fixture::agent("ghost", "second");
    hostile.asks(Ask::with("ghost", &own));
    let said = admin.accept(&["--all-pending", "--yes"], 3);
    says(&said, &["ghost refused, DeniedBefore"]);
    nothing_is_approved(hub);

    // The administrator removes what was planted in the shop's name; it is planted again, without labels.
    hub.kubectl(&["delete", "managedcluster", "shop"]).expect("it goes");
    hostile.registers("shop", json!({})).expect("it is stored");

    // During. The shop joins with the token: by rules alone its request is one of two.
    let shop_joiner = user_with(shop, "shop-joiner", &["join.yaml"]);
    let bundle_version = format!("--bundle-version={}", bundle());
    let join_shop = |wait: &str| {
        run(kubectl_ocm("join", &shop_joiner).args(["shop", &bundle_version, wait]).args(join_command.flags()))
    };
    let said = join_shop("--wait");
    assert_eq!(said.code, Some(0), "{said:?}");
    says(&said, &["pending acceptance"]);
    let request = asked_by_agent(shop);
    for words in [&["--all-pending", "--yes"][..], &["shop"]] {
        let said = admin.accept(words, 3);
        says(&said, &["shop refused, TwoKeys", "--fingerprint sha256:"]);
    }
    nothing_is_approved(hub);
    let row: Value = serde_json::from_str(&admin.get(&["csr", &request, "--output=json"])).expect("JSON");
    let key = find(&row, "fingerprint").expect("a fingerprint");
    let said = admin.accept(&["shop", "--fingerprint", &key], 0);
    says(&said, &["shop accepted"]);
    hostile.asks_rightly("shop");
    let said = join_shop("--wait=available");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(approved(hub), [("shop".to_owned(), request.clone())]);

    // The kiosk joins with access to both clusters: its own agent is told from everybody else.
    let hub_access = user_with(hub, "hub-joiner", &["join-hub.yaml", "accept.yaml"]);
    let kiosk_joiner = user_with(kiosk, "kiosk-joiner", &["join.yaml"]);
    let hub_access = format!("--hub-kubeconfig={}", hub_access.display());
    let join_kiosk = || {
        let words = ["kiosk", &bundle_version, &hub_access, "--accept", "--wait"];
        run(kubectl_ocm("join", &kiosk_joiner).args(words))
    };
    let said = join_kiosk();
    assert_eq!(said.code, Some(3), "{said:?}");
    says(&said, &["which this cluster did not register", "kiosk is not accepted: Labels", "\"env\""]);
    assert_eq!(approved(hub).len(), 1);
    hub.kubectl(&["label", "managedcluster", "kiosk", "env-"]).expect("an administrator changes labels");
    hostile.asks_rightly("kiosk");
    let said = join_kiosk();
    assert_eq!(said.code, Some(0), "{said:?}");
    says(&said, &["was not approved", "the agent's own key is sha256:"]);

    // After. Nothing that the token may do changes a joined cluster, and nothing more is approved.
    for (name, cluster) in [("shop", shop), ("kiosk", kiosk)] {
        let secret = object(cluster, &["secret", "hub-kubeconfig-secret", "--namespace=open-cluster-management-agent"]);
        let agent = secret.pointer("/data/agent-name").and_then(Value::as_str).expect("a name");
        let agent = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, agent).expect("base64");
        let agent = String::from_utf8(agent).expect("text");
        hostile.asks_rightly(name);
        hostile.asks_wrongly(name);
        hostile.asks_for_more(name, &agent);
        for patch in [
            json!({"metadata": {"labels": {"env": "prod", SET: "prod"}}}),
            json!({"metadata": {"annotations": {"a": "b"}}}),
            json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect"}]}}),
            json!({"spec": {"hubAcceptsClient": false}}),
        ] {
            forbidden(hostile.changes(name, patch), "cannot patch");
        }
    }
    let before = approved(hub);
    assert_eq!(before.len(), 2, "{before:?}");
    assert!(before.iter().all(|(_, request)| !request.starts_with(HOSTILE)), "{before:?}");
    let said = admin.accept(&["shop", "kiosk"], 0);
    says(&said, &["shop already accepted", "kiosk already accepted", "left alone", "--replace"]);
    let said = admin.accept(&["--selector=!env", "--yes"], 3);
    says(&said, &["shop already accepted", "kiosk already accepted", "ghost refused, DeniedBefore"]);
    admin.accept(&["--all-pending", "--yes"], 3);
    // The hub's own approvers have had their time, too.
    sleep(Duration::from_secs(3));
    let only_the_right_ones_are_in = || {
        assert_eq!(approved(hub), before);
        for name in ["shop", "kiosk"] {
            let row = admin.get(&["clusters", name]);
            assert!(row.contains("Available"), "{row}");
        }
        let joined = "jsonpath={.items[?(@.spec.hubAcceptsClient==true)].metadata.name}";
        assert_eq!(hub.kubectl(&["get", "managedclusters", "--output", joined]).expect("clusters"), "kiosk shop");
    };
    only_the_right_ones_are_in();

    // The token is ended, with all others of the service account: whoever holds one is nobody, and who has joined stays.
    let said = run(kubectl_ocm("token", &minter).arg("list"));
    assert_eq!(said.code, Some(0), "{said:?}");
    says(&said, &["kubectl ocm token revoke --service-account"]);
    hostile.reads("shop").expect("the token still counts");
    let revoke = |user: &Path| run(kubectl_ocm("token", user).args(["revoke", "--service-account", "--yes"]));
    let said = revoke(&minter);
    assert_eq!(said.code, Some(1), "whoever makes tokens cannot end those of others: {said:?}");
    let said = revoke(&user_with(hub, "revoker", &["token.yaml", "token-revoke.yaml"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    // For a moment the API server remembers whose it was.
    until("the API server to forget the token", || is_unauthorized(&hostile.reads("shop")));
    assert!(is_unauthorized(&hostile.registers("late", json!({}))));
    assert!(is_unauthorized(&hostile.asks_as(&hostile.token, Ask::agent("shop"))));
    only_the_right_ones_are_in();
}

/// The first text under a key, anywhere in a document.
fn find(value: &Value, key: &str) -> Option<String> {
    match value {
        Value::Object(members) => match members.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => members.values().find_map(|value| find(value, key)),
        },
        Value::Array(items) => items.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

/// What a client may claim about who wrote which field of an object that it creates.
fn entry(manager: &str, time: &str, metadata: Value) -> Value {
    json!({
        "manager": manager, "operation": "Update", "apiVersion": "cluster.open-cluster-management.io/v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": metadata},
    })
}

#[test]
fn labels_that_a_cluster_brings_do_not_pass_for_an_administrators() {
    let hub = Hub::start("attack-fields");
    let clusters = |who| Api::<ManagedCluster>::all(hub.client(who));
    let registers = |name: &str, manager: &str, labels: Value, entries: Vec<Value>| {
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": labels, "managedFields": entries}, "spec": {"hubAcceptsClient": false},
        });
        let object = serde_json::from_value(object).expect("a cluster");
        let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        hub.wait(clusters(Who::Bootstrap).create(&params, &object)).expect("the hub stores it");
        hub.ask(&Ask::agent(name));
    };
    let touches = |name: &str, manager: &str, patch: Value| {
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        hub.wait(clusters(Who::Admin).patch(name, &params, &Patch::Merge(patch))).expect("the hub stores it");
    };
    let env = || json!({"env": "prod", SET: "default"});
    let own = |fields: Value| json!({"f:labels": {"f:env": fields}});
    const LATER: &str = "2099-01-01T00:00:00Z";
    // Its own entry goes into that of all old ones, which has a time to come.
    let mut many: Vec<Value> = ('a'..='j')
        .map(|manager| entry(&manager.to_string(), LATER, json!({"f:annotations": {format!("f:{manager}"): {}}})))
        .collect();
    // So that something is left that seems to be from the creation.
    let mut past = entry("z", "2000-01-01T00:00:00Z", json!({"f:annotations": {"f:z": {}}}));
    past["operation"] = json!("Apply");
    many.push(past.clone());
    registers("many", "x", env(), many);
    // Others own the label, a part of it, or both.
    let claims = [own(json!({})), own(json!({"f:x": {}})), own(json!({".": {}, "f:x": {}}))];
    let claims = claims.into_iter().zip(["a", "b", "kubectl-label"]);
    let claims = claims.map(|(fields, manager)| entry(manager, LATER, fields));
    registers("claimed", "x", env(), claims.chain([past.clone()]).collect());
    // Somebody of the same name changes something else.
    registers("namesake", "kubectl-label", env(), vec![past.clone()]);
    registers("controller", "registration", env(), vec![past]);
    let taint =
        json!({"key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect", "timeAdded": null});
    // An administrator labels what waits.
    registers("right", "registration", json!({SET: "default"}), Vec::new());
    // Times are told by the second.
    sleep(Duration::from_millis(1100));
    for name in ["many", "claimed", "namesake", "controller", "right"] {
        touches(name, "registration", json!({"spec": {"taints": [taint]}}));
        touches(name, "kubectl-label", json!({"metadata": {"labels": {"tier": "one"}}}));
    }
    touches("right", "kubectl-label", json!({"metadata": {"labels": {"env": "prod"}}}));

    let run = hub.accept(&["--selector=env=prod", "--yes", "--output=json"]);
    let codes = ["many", "claimed", "namesake", "controller", "right"].map(|name| run.reason(name));
    assert_eq!(codes, ["Labels", "Labels", "Labels", "Labels", "Accepted"], "{run:?}");
    assert_eq!(hub.accepted().into_iter().collect::<Vec<_>>(), ["right"]);
}

#[test]
fn a_key_that_was_approved_under_another_label_holds_the_name() {
    let hub = hub();
    for (name, label) in [("c1", Some("c2".to_owned())), ("c3", None)] {
        hub.register(name);
        let planted = Ask { label, ..Ask::with(name, &Fixture::agent(name, "hostile")) };
        // While it only waits, it is in nobody's way.
        let planted = hub.ask(&planted);
        let run = hub.accept(&[name, "--dry-run=client", "--output=json"]);
        assert_eq!(run.reason(name), "NoRequest", "{run:?}");
        let right = hub.ask(&Ask::agent(name));
        let run = hub.accept(&[name, "--dry-run=client", "--output=json"]);
        assert_eq!(run.reason(name), "Accepted", "{run:?}");
        hub.conclude(&planted, "approve");
        for scope in [&[name][..], &["--all-pending", "--yes"]] {
            let run = hub.accept(&[scope, &["--output=json"]].concat());
            assert_eq!((run.code, run.reason(name).as_str()), (3, "NameTaken"), "{run:?}");
        }
        assert!(!hub.is("Approved", &right) && !hub.accepts(name));
    }
}

#[test]
fn what_was_done_is_told_when_a_later_cluster_fails() {
    let hub = hub();
    let acceptor = user_with(&hub.cluster, "acceptor", &["accept.yaml"]);
    // The right to approve what comes by the gRPC server is missing.
    let patch = json!([{"op": "replace", "path": "/rules/4/resourceNames", "value": [signers::KUBE_APISERVER_CLIENT]}]);
    let patch = ["patch", "clusterrole", "kubectl-ocm-accept", "--type=json", "--patch", &patch.to_string()];
    hub.cluster.kubectl(&patch).expect("the role is changed");
    hub.join("w1");
    hub.register("w2");
    let waits = std::thread::spawn(move || {
        run(kubectl_ocm("accept", &acceptor).args(["w1", "w2", "--wait", "--timeout=60s", "--output=json"]))
    });
    let begun = Instant::now();
    while !hub.accepts("w1") {
        assert!(begun.elapsed() < Duration::from_secs(30), "w1 is not accepted");
        sleep(Duration::from_millis(100));
    }
    hub.ask(&Ask::agent("w2").grpc("system:serviceaccount:open-cluster-management:agent-registration-bootstrap"));
    let said = waits.join().expect("it ends");
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains(signers::GRPC), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let rows = document["clusters"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["name"] == "w1" && row["code"] == "Accepted"), "{said:?}");
}

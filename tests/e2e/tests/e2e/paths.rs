//! Every attack by every path: what the static baseline refuses, what the webhook refuses, and what waits while nobody
//! answers for it. `docs/reference/refusals.md` is the table; `UPDATE_DOCS=1` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Hub, Who, know_registrations, managed_cluster, note, token_kubeconfig, upstream};
use e2e_tests::approval_support::guard;
use e2e_tests::attacks::{BOOTSTRAP, Make, Setting, attacks, right_requests};
use e2e_tests::connection::connect;
use e2e_tests::manifests::apply;
use e2e_tests::refusals::{Answer, CLUSTERS, Call, REQUESTS, Sender};
use e2e_tests::roles::bind_rules;
use e2e_tests::until;
use e2e_tests::webhook_support::{HYGIENE, Webhook, add_ons, policy, prepare};
use futures::StreamExt as _;
use ocm_api::names::{labels, namespaces, signers};
use serde_json::{Value, json};

/// The definition of works in upstream's API module.
const WORK: &str = "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml";
/// The path of the works of the cluster `c2`.
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c2/manifestworks";
/// The annotation that keeps the hub from accepting a cluster by itself.
const HELD: &str = "open-cluster-management.io/automatically-accepted-on";
const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";

/// An add-on whose certificates for the API server have the group of a cluster that is called so.
const PROXY: &str = "cluster-proxy";
/// The user name of the agent of the cluster `c2`.
const AGENT_OF_C2: &str = "system:open-cluster-management:c2:a1";

/// What is left to the signer of kubelets, which signs for nodes alone: nobody is asked about its requests.
const SERVING: &str = "the serving signer";

/// Where on its way a request is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A certificate is asked for.
    Ask,
    /// Such a request, which was stored before, is approved.
    Approve,
    /// Anything else.
    Change,
}

/// One request to the hub.
struct Try {
    what: &'static str,
    /// Who sends it; of an approval, who asked for the certificate.
    by: &'static str,
    step: Step,
    /// Whether it has to pass.
    right: bool,
    /// The entry that is not answered without the webhook, so that it waits.
    waits: Option<&'static str>,
    sender: Sender,
    call: Call,
}

impl Try {
    fn told(&self) -> String {
        format!("{} by {}, {:?}", self.what, self.by, self.step)
    }
}

/// What all tries came to in one state of the hub.
fn measure(hub: &Hub, tries: &[Try]) -> Vec<Answer> {
    let one = async |one: &Try| Answer::of(&one.told(), one.sender.send(&one.call, true).await);
    hub.wait(futures::stream::iter(tries).map(one).buffered(8).collect())
}

/// Everybody who sends something.
struct People<'h> {
    hub: &'h Hub,
    /// The hub's own controller, which approves and accepts where a feature gate says so.
    controller: Sender,
}

impl People<'_> {
    fn of(&self, who: Who) -> Sender {
        Sender::new(self.hub.client(who))
    }

    fn admin(&self) -> Sender {
        self.of(Who::Admin)
    }

    fn agent(&self, cluster: &str) -> Sender {
        Sender::agent(self.hub.admin.clone(), cluster)
    }

    fn aws(&self, user: &str, clusters: &[&str]) -> Sender {
        Sender::aws(self.hub.admin.clone(), user, clusters)
    }
}

/// By whom a certificate is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Account,
    Token,
    Grpc,
    Agent,
    /// By whom the attack itself says.
    Own,
}

impl Path {
    const ALL: [Self; 4] = [Self::Account, Self::Token, Self::Grpc, Self::Agent];

    const fn word(self) -> &'static str {
        match self {
            Self::Account => "bootstrap account",
            Self::Token => "bootstrap token",
            Self::Grpc => "gRPC server",
            Self::Agent => "its agent",
            Self::Own => "",
        }
    }

    /// The same by this path; none: there is no such thing.
    fn take(self, make: &Make, ask: &Ask) -> Option<Ask> {
        let by_account = ask.who == Who::Bootstrap && ask.annotation.is_none();
        match self {
            Self::Own => (!by_account).then(|| ask.clone()),
            Self::Account => by_account.then(|| ask.clone()),
            Self::Token => by_account.then(|| ask.clone().by(Who::Token)),
            Self::Grpc => {
                (by_account && ask.signer == signers::KUBE_APISERVER_CLIENT).then(|| ask.clone().grpc(BOOTSTRAP))
            }
            // Of agents there are none before a cluster has joined, and add-ons' requests are theirs.
            Self::Agent => {
                (by_account && make.setting == Setting::Registered && ask.addon.is_none()).then(|| ask.clone())
            }
        }
    }
}

/// Stores requests for certificates by every path, and tries to ask for the same again and to approve what is stored.
fn requests(people: &People<'_>, what: &'static str, prefix: &str, make: &Make, right: bool) -> Vec<Try> {
    let hub = people.hub;
    let mut tries = Vec::new();
    for path in Path::ALL.into_iter().chain([Path::Own]) {
        let name = format!("{prefix}{}", format!("{path:?}").to_lowercase());
        let asks: Option<Vec<Ask>> = make.asks(&name).iter().map(|ask| path.take(make, ask)).collect();
        let Some(asks) = asks.filter(|asks| asks.len() == 1 || path != Path::Agent) else { continue };
        let sender = |ask: &Ask| if path == Path::Agent { people.agent(&name) } else { people.of(ask.who) };
        let stored: Vec<String> = if path == Path::Agent {
            hub.register(&name);
            hub.patch(&name, json!({"spec": {"hubAcceptsClient": true}}));
            let call = Call::create(REQUESTS, json!(asks[0].object()));
            let stored =
                hub.wait(sender(&asks[0]).send(&call, false)).unwrap_or_else(|error| panic!("{what}: {error}"));
            vec![stored["metadata"]["name"].as_str().expect("a name").to_owned()]
        } else {
            make.put(hub, &name, &asks)
        };
        tries.extend(asks.iter().map(|ask| Try {
            what,
            by: path.word(),
            step: Step::Ask,
            right,
            waits: None,
            sender: sender(ask),
            call: Call::create(REQUESTS, json!(ask.object())),
        }));
        let waits = (what != SERVING).then_some("approve");
        for request in stored {
            tries.extend(approvals(people, what, path.word(), &request, &|_| ()).map(|one| Try {
                right,
                waits,
                ..one
            }));
        }
    }
    tries
}

/// Stores a request for a certificate, whose name is told, and tries to ask for the same again and to approve what is stored.
fn asked(people: &People<'_>, what: &'static str, by: &'static str, sender: &Sender, ask: &Ask) -> (String, Vec<Try>) {
    let call = Call::create(REQUESTS, json!(ask.object()));
    let stored = people.hub.wait(sender.send(&call, false)).unwrap_or_else(|error| panic!("{what}, {by}: {error}"));
    let name = stored["metadata"]["name"].as_str().expect("a name").to_owned();
    let sender = sender.clone();
    let mut tries = vec![Try { what, by, step: Step::Ask, right: false, waits: None, sender, call }];
    tries.extend(approvals(people, what, by, &name, &|_| ()));
    (name, tries)
}

/// An administrator and the hub's controller approve a request that is stored, with what `change` makes of it.
fn approvals<'p>(
    people: &'p People<'_>,
    what: &'static str,
    by: &'static str,
    request: &str,
    change: &dyn Fn(&mut Value),
) -> impl Iterator<Item = Try> + use<'p> {
    let mut stored = json!(people.hub.request(request));
    change(&mut stored);
    [people.admin(), people.controller.clone()].into_iter().map(move |sender| Try {
        what,
        by,
        step: Step::Approve,
        right: false,
        waits: Some("approve"),
        sender,
        call: Call::conclude(stored.clone(), "Approved"),
    })
}

/// A hub without anything in force, on which clusters stand at every place of their way.
fn hub() -> Hub {
    let hub = Hub::start("paths");
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    let work = upstream(WORK);
    hub.cluster.kubectl(&["apply", "--filename", work.to_str().expect("text")]).expect("works are known");
    // Nothing but admission refuses anything, but for the rights that the baseline asks for.
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters", "managedclusters/status"], "verbs": ["*"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"], "verbs": ["*"]},
    ]));
    let controller = format!("system:serviceaccount:{}:registration-controller-sa", namespaces::HUB);
    let accepts = json!([
        {"apiGroups": ["register.open-cluster-management.io"], "resources": ["managedclusters/accept"], "verbs": ["update"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]);
    bind_rules(&hub.cluster, &controller, accepts.as_array().expect("rules"));
    for words in [
        &["create", "serviceaccount", "registration-controller-sa", "--namespace", namespaces::HUB][..],
        &["create", "namespace", "c2"],
        &["label", "namespace", "c2", &format!("{}=c2", labels::CLUSTER_NAME)],
        &["create", "namespace", "taken"],
        &["create", "namespace", "foreign"],
        // What is left of a cluster that was here before.
        &[
            "create",
            "clusterrole",
            "open-cluster-management:managedcluster:used",
            "--verb=get",
            "--resource=managedclusters",
        ],
        &[
            "label",
            "clusterrole",
            "open-cluster-management:managedcluster:used",
            &format!("{}=used", labels::CLUSTER_NAME),
        ],
    ] {
        hub.cluster.kubectl(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
    // The policy controller has noted until when certificates of a cluster are valid of which nothing else is left.
    know_registrations(&hub.cluster);
    note(&hub.cluster, "noted", "another", "2126-01-01T00:00:00Z");
    let request = hub.join("c2");
    hub.conclude(&request, "approve");
    let spec = json!({"spec": {"hubAcceptsClient": true}, "metadata": {"finalizers": ["example.com/wait"]}});
    hub.patch("c2", spec);
    hub.set_conditions("c2", &[("HubAcceptedManagedCluster", "True"), ("ManagedClusterJoined", "True")]);
    // One of these has a name under which none comes in.
    for name in ["c1", "held", "taken", "leaving", PROXY] {
        hub.register(name);
    }
    hub.patch("held", json!({"metadata": {"annotations": {HELD: "2026-01-01T00:00:00Z"}}}));
    hub.patch("leaving", json!({"metadata": {"finalizers": ["example.com/wait"]}}));
    hub.remove("leaving");
    for name in ["x", PROXY] {
        let addon = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": {"name": name, "namespace": "c2"}, "spec": {},
        });
        apply(&hub.cluster, &addon);
    }
    apply(&hub.cluster, &work_of("w1"));
    hub
}

/// A work of the cluster `c2`.
fn work_of(name: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": "c2", "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]},
        "spec": {"workload": {"manifests": []}},
    })
}

/// The hub's own controller, with a real token.
fn controller(hub: &Hub) -> Sender {
    let token = ["create", "token", "registration-controller-sa", "--namespace", namespaces::HUB];
    let token = hub.cluster.kubectl(&token).expect("a token");
    let file = hub.cluster.dir().expect("a folder").join("controller.kubeconfig");
    fs::write(&file, token_kubeconfig(&hub.cluster, token.trim())).expect("written");
    Sender::new(hub.wait(connect(&file)).client)
}

/// Clusters that somebody creates who registers clusters, each wrong in one way.
fn registrations(people: &People<'_>) -> Vec<Try> {
    let metadata = |member: &str, value: Value| json!({"metadata": {member: value}});
    let spec = |member: &str, value: Value| json!({"spec": {member: value}});
    let named = |name: &str| metadata("name", json!(name));
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"}]);
    let taint = json!([{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]);
    // Whether an administrator may not do it either.
    let wrong = [
        ("a cluster that is created as accepted", spec("hubAcceptsClient", json!(true)), false),
        ("a cluster with labels of its own", metadata("labels", json!({"env": "prod"})), false),
        ("a cluster in a set of its choice", metadata("labels", json!({CLUSTER_SET: "prod"})), false),
        ("a cluster with annotations of its own", metadata("annotations", json!({"x": "y"})), false),
        ("a cluster that the hub seems to have accepted", metadata("annotations", json!({HELD: "x"})), false),
        ("a cluster with finalizers", metadata("finalizers", json!(["example.com/a"])), false),
        ("a cluster with owners", metadata("ownerReferences", owner), false),
        ("a cluster with taints", spec("taints", taint), false),
        ("a cluster with a lease of a second", spec("leaseDurationSeconds", json!(1)), true),
        ("a cluster with a lease of ten years", spec("leaseDurationSeconds", json!(315_360_000)), true),
        ("a cluster of the name of a namespace of Kubernetes", named("kube-system"), true),
        ("a cluster of a name that the hub uses itself", named("open-cluster-management-x"), true),
        ("a cluster whose name is no DNS label", named("a.b"), true),
        ("a cluster of the name of somebody's namespace", named("foreign"), true),
        ("a cluster that is called cluster-proxy", named(PROXY), true),
    ];
    let registrars =
        [("bootstrap account", Who::Bootstrap), ("bootstrap token", Who::Token), ("gRPC server", Who::Grpc)];
    let registrars =
        registrars.into_iter().chain([("agent of another cluster", Who::AgentOfC2), ("administrator", Who::Admin)]);
    let mut tries = Vec::new();
    for (by, who) in registrars {
        for (what, change, _) in wrong.iter().filter(|wrong| wrong.2 || who != Who::Admin) {
            let mut object = json!(managed_cluster("new"));
            merge(&mut object, change);
            let call = Call::create(CLUSTERS, object);
            tries.push(change_of(what, by, Some("register"), people.of(who), call));
        }
    }
    tries
}

/// Merges what differs into an object.
fn merge(object: &mut Value, change: &Value) {
    match change {
        Value::Object(change) => change.iter().for_each(|(member, value)| merge(&mut object[member], value)),
        value => *object = value.clone(),
    }
}

fn change_of(what: &'static str, by: &'static str, waits: Option<&'static str>, sender: Sender, call: Call) -> Try {
    Try { what, by, step: Step::Change, right: false, waits, sender, call }
}

/// Clusters and works that somebody changes who may not.
fn changes(people: &People<'_>) -> Vec<Try> {
    let metadata = |member: &str, value: Value| json!({"metadata": {member: value}});
    let spec = |member: &str, value: Value| json!({"spec": {member: value}});
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"}]);
    let taint = json!([{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]);
    let accept = spec("hubAcceptsClient", json!(true));
    let patch = |name: &str, body: &Value| Call::patch(CLUSTERS, name, body.clone());
    let mut tries = Vec::new();
    let for_agents = [
        ("labels of a cluster are changed", metadata("labels", json!({"env": "prod"}))),
        ("a cluster is moved to another set", metadata("labels", json!({CLUSTER_SET: "prod"}))),
        ("annotations of a cluster are changed", metadata("annotations", json!({"x": "y"}))),
        ("finalizers of a cluster are taken away", metadata("finalizers", json!([]))),
        ("a cluster gets owners", metadata("ownerReferences", owner)),
        ("a cluster gets taints", spec("taints", taint)),
        ("the lease of a cluster is changed", spec("leaseDurationSeconds", json!(30))),
        ("a cluster that was accepted is denied", spec("hubAcceptsClient", json!(false))),
    ];
    for (what, body) in &for_agents {
        for (by, sender) in [
            ("its agent", people.of(Who::AgentOfC2)),
            ("gRPC server", people.of(Who::Grpc)),
            ("agent of another cluster", people.agent("c1")),
        ] {
            tries.push(change_of(what, by, Some("self-edit"), sender, patch("c2", body)));
        }
    }
    let hers = metadata("annotations", json!({"agent.open-cluster-management.io/x": "y"}));
    tries.push(change_of(
        "an agent's annotations are changed",
        "agent of another cluster",
        Some("self-edit"),
        people.agent("c1"),
        patch("c2", &hers),
    ));
    let somebody = || people.of(Who::Eva);
    for (by, sender) in [
        ("its agent", people.agent("c1")),
        ("agent of another cluster", people.of(Who::AgentOfC2)),
        ("gRPC server", people.of(Who::Grpc)),
        ("somebody without the right", somebody()),
    ] {
        tries.push(change_of("a cluster is accepted", by, Some("accept"), sender, patch("c1", &accept)));
    }
    let move_it = metadata("labels", json!({CLUSTER_SET: "prod"}));
    tries.push(change_of(
        "a cluster is moved to another set",
        "somebody without the right",
        None,
        somebody(),
        patch("c2", &move_it),
    ));
    let release = metadata("annotations", json!({HELD: null}));
    for (by, sender) in [("its agent", people.agent("held")), ("somebody without the right", somebody())] {
        tries.push(change_of(
            "what keeps the hub from accepting a cluster is taken away",
            by,
            Some("self-edit"),
            sender,
            patch("held", &release),
        ));
    }
    for (what, name) in [
        ("a cluster with the name of somebody's namespace is accepted", "taken"),
        ("a cluster that is being removed is accepted", "leaving"),
        ("a cluster that is called cluster-proxy is accepted", PROXY),
    ] {
        for (by, sender) in [("hub's controller", people.controller.clone()), ("administrator", people.admin())] {
            tries.push(change_of(what, by, Some("accept"), sender, patch(name, &accept)));
        }
    }
    let other = json!({"spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}]}}});
    for (by, sender) in [
        ("its agent", people.of(Who::AgentOfC2)),
        ("agent of another cluster", people.agent("c1")),
        ("gRPC server", people.of(Who::Grpc)),
    ] {
        tries.push(change_of(
            "what a work deploys is changed",
            by,
            None,
            sender.clone(),
            Call::patch(WORKS, "w1", other.clone()),
        ));
        tries.push(change_of("a work is created", by, None, sender, Call::create(WORKS, work_of("w2"))));
    }
    tries
}

/// What has to pass.
fn right(people: &People<'_>) -> Vec<Try> {
    let hub = people.hub;
    let mut tries = Vec::new();
    for (index, (what, make)) in right_requests().iter().enumerate() {
        // The same name twice is another matter, and the agent of another name is another agent.
        let other = |one: &Try| *what == "a name of 70 characters" && one.by == Path::Agent.word();
        if make.asks("x").iter().all(|ask| ask.name.is_none()) {
            let all = requests(people, "a certificate", &format!("r{index}"), make, true);
            tries.extend(all.into_iter().filter(|one| !other(one)));
        }
    }
    let mut add =
        |what, by, waits, sender, call| tries.push(Try { right: true, ..change_of(what, by, waits, sender, call) });
    for (by, who) in [
        ("bootstrap account", Who::Bootstrap),
        ("bootstrap token", Who::Token),
        ("gRPC server", Who::Grpc),
        ("administrator", Who::Admin),
    ] {
        add(
            "a cluster is registered",
            by,
            Some("register"),
            people.of(who),
            Call::create(CLUSTERS, json!(managed_cluster("new"))),
        );
    }
    let patch = |body: Value, name: &str| Call::patch(CLUSTERS, name, body);
    let annotation = json!({"metadata": {"annotations": {"agent.open-cluster-management.io/x": "y"}}});
    let configs =
        json!({"spec": {"managedClusterClientConfigs": [{"url": "https://192.0.2.8:6443", "caBundle": "eA=="}]}});
    let taint = json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]}});
    let accept = json!({"spec": {"hubAcceptsClient": true}});
    let deny = json!({"spec": {"hubAcceptsClient": false}});
    let agent = || people.of(Who::AgentOfC2);
    add("an agent's annotations are changed", "its agent", Some("self-edit"), agent(), patch(annotation, "c2"));
    add("the address of a cluster is changed", "its agent", Some("self-edit"), agent(), patch(configs, "c2"));
    let automatic =
        json!({"metadata": {"annotations": {HELD: "2026-01-01T00:00:00Z"}}, "spec": {"hubAcceptsClient": true}});
    add("a cluster is accepted", "hub's controller", Some("accept"), people.controller.clone(), patch(automatic, "c1"));
    add("a cluster is accepted", "administrator", Some("accept"), people.admin(), patch(accept.clone(), "c1"));
    add(
        "a cluster that the hub shall not accept by itself is accepted",
        "administrator",
        Some("accept"),
        people.admin(),
        patch(accept, "held"),
    );
    add("a cluster that was accepted is denied", "administrator", None, people.admin(), patch(deny, "c2"));
    for (by, sender) in [("hub's controller", people.controller.clone()), ("administrator", people.admin())] {
        add("a cluster gets taints", by, None, sender, patch(taint.clone(), "c2"));
    }
    let label = json!({"metadata": {"labels": {"env": "prod", CLUSTER_SET: "prod"}}});
    add("labels and set of a cluster are changed", "administrator", None, people.admin(), patch(label, "c2"));
    let status = json!({"status": {"version": {"kubernetes": "v1.35.0"}}});
    add("the status of a cluster is changed", "its agent", None, agent(), Call::patch(CLUSTERS, "c2/status", status));
    // Over gRPC agents say that they are done with a work as well, and the server does not name them.
    for (by, sender) in [("its agent", agent()), ("gRPC server", people.of(Who::Grpc))] {
        add(
            "finalizers of a work are taken away",
            by,
            None,
            sender,
            Call::patch(WORKS, "w1", json!({"metadata": {"finalizers": []}})),
        );
    }
    let delete = |path: String| Call { method: "DELETE", path, body: json!({"dryRun": ["All"]}) };
    add("a cluster is removed", "administrator", None, people.admin(), delete(format!("{CLUSTERS}/c1")));

    // An agent's own request, those of its add-ons, and denials.
    let addon = of_addon("x", &Fixture::addon("c2", "x"));
    let proxy = of_addon(PROXY, &proxys_names());
    let agents = |what, ask: &Ask| (what, "its agent", people.of(Who::AgentOfC2), ask.clone());
    let by_grpc = |what, ask: &Ask| (what, "gRPC server", people.of(Who::Grpc), over_grpc(ask, AGENT_OF_C2));
    let by_aws = |what, ask: &Ask| (what, "agent with an AWS identity", people.aws("c2", &["c2"]), ask.clone());
    let (addons, proxys) = ("an add-on's certificate", "cluster-proxy's certificate for the API server");
    for (what, by, sender, ask) in [
        agents("a certificate", &Ask::agent("c2")),
        agents(addons, &addon),
        by_grpc(addons, &addon),
        by_aws(addons, &addon),
        agents(proxys, &proxy),
        by_grpc(proxys, &proxy),
        by_aws(proxys, &proxy),
    ] {
        let (stored, all) = asked(people, what, by, &sender, &ask);
        tries.extend(all.into_iter().map(|one| Try { right: true, ..one }));
        let call = Call::conclude(json!(hub.request(&stored)), "Denied");
        tries.push(Try {
            right: true,
            ..change_of("a certificate is denied", "administrator", None, people.admin(), call)
        });
    }
    tries
}

/// Requests for names that others have or had, and approvals that change what they approve.
fn claims(people: &People<'_>) -> Vec<Try> {
    let hub = people.hub;
    let mut tries = Vec::new();
    let asks = [
        ("bootstrap account", Ask::agent("c2")),
        ("bootstrap token", Ask::agent("c2").by(Who::Token)),
        ("gRPC server", Ask::agent("c2").grpc(BOOTSTRAP)),
    ];
    let other = |(by, ask)| ("another key for a cluster that has joined", by, ask);
    let before = [("a name that was used before", "used"), ("a name whose old certificates are valid", "noted")];
    let used = before.map(|(what, name)| (what, "bootstrap account", Ask::agent(name)));
    before.iter().for_each(|(_, name)| drop(hub.register(name)));
    for (what, by, ask) in asks.into_iter().map(other).chain(used) {
        tries.extend(asked(people, what, by, &people.of(ask.who), &ask).1);
    }
    let stored = hub.join("labelled");
    let label =
        |value: Value| move |request: &mut Value| request["metadata"]["labels"][labels::CLUSTER_NAME] = value.clone();
    let without = |request: &mut Value| drop(request["metadata"].as_object_mut().map(|meta| meta.remove("labels")));
    let claim = |request: &mut Value| {
        request["metadata"]["annotations"]["open-cluster-management.io/csr-user"] = json!(BOOTSTRAP)
    };
    let account = "bootstrap account";
    tries.extend(approvals(
        people,
        "an approval that changes the cluster's label",
        account,
        &stored,
        &label(json!("c2")),
    ));
    tries.extend(approvals(people, "an approval that takes the cluster's label away", account, &stored, &without));
    tries.extend(approvals(people, "an approval that says who asked", account, &stored, &claim));
    tries
}

/// A request for the certificate of an add-on of the cluster `c2`.
fn of_addon(addon: &str, fixture: &Fixture) -> Ask {
    Ask { addon: Some(addon.to_owned()), ..Ask::with("c2", fixture) }
}

/// What the agent of cluster-proxy asks for.
fn proxys_names() -> Fixture {
    let group = format!("open-cluster-management:{PROXY}");
    let names = Fixture::empty().organization(&group).common_name(&format!("{group}:addon-agent"));
    names.dns(&format!("{PROXY}.addon.open-cluster-management.io"))
}

/// The same request as OCM's gRPC server sends it for a user.
fn over_grpc(ask: &Ask, user: &str) -> Ask {
    Ask { annotation: Some(user.to_owned()), ..ask.clone() }
}

/// Requests for add-ons with names of their own on the hub, and of clusters with AWS identities, each wrong in one way.
fn addons(people: &People<'_>) -> Vec<Try> {
    let right = of_addon(PROXY, &proxys_names());
    let with = |fixture: Fixture| of_addon(PROXY, &fixture);
    let another = "open-cluster-management:c1";
    let agents = [
        ("cluster-proxy's name and another group", with(proxys_names().without_organizations().organization(another))),
        ("cluster-proxy's name and a second group", with(proxys_names().organization("platform-admins"))),
        ("cluster-proxy's group and another name", with(proxys_names().without_common_names().common_name("eva"))),
        ("cluster-proxy's names and the gRPC signer", Ask { signer: signers::GRPC.to_owned(), ..right.clone() }),
        ("cluster-proxy's names and another label", Ask { addon: Some("x".to_owned()), ..right.clone() }),
    ];
    let agents = agents.map(|(what, ask)| (what, "its agent", people.of(Who::AgentOfC2), ask));
    let elsewhere = Ask { label: Some("c1".to_owned()), ..right.clone() };
    let for_c1 = over_grpc(&right, "system:open-cluster-management:c1:a1");
    let (names, addons) = ("cluster-proxy's names", "an add-on's certificate");
    let addon = of_addon("x", &Fixture::addon("c2", "x"));
    let others = [
        ("cluster-proxy's names where it is not enabled", "its agent", people.agent("c1"), elsewhere),
        (names, "a user", people.of(Who::Eva), right.clone()),
        (names, "agent of another cluster", people.agent("c1"), right),
        (names, "gRPC server for another cluster", people.of(Who::Grpc), for_c1),
        (addons, "agent with the AWS identities of two clusters", people.aws("c2", &["c2", "c1"]), addon.clone()),
        (addons, "a user with the group of an AWS identity", people.aws("c20", &["c2"]), addon.clone()),
        (addons, "a user with the name of a cluster", people.aws("c2", &[]), addon.clone()),
        (addons, "gRPC server for an AWS identity", people.of(Who::Grpc), over_grpc(&addon, "c2")),
    ];
    let all = agents.into_iter().chain(others);
    all.flat_map(|(what, by, sender, ask)| asked(people, what, by, &sender, &ask).1).collect()
}

#[test]
fn no_attack_passes_by_any_path_and_each_is_refused_by_what_the_table_says() {
    let hub = hub();
    let people = People { hub: &hub, controller: controller(&hub) };
    let mut tries = Vec::new();
    // Registrations that are wrong are tried by all who register, below.
    let attacks: Vec<_> = attacks().into_iter().filter(|(.., make)| !make.is_of_registration()).collect();
    for (index, (what, _, make)) in attacks.iter().enumerate() {
        tries.extend(requests(&people, what, &format!("u{index}"), make, false));
    }
    tries.extend(claims(&people));
    tries.extend(addons(&people));
    tries.extend(registrations(&people));
    tries.extend(changes(&people));
    tries.extend(right(&people));

    // The webhook alone, then with the baseline, then while nobody answers for it, then the baseline alone.
    for name in HYGIENE {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    let mut webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    let by_webhook = measure(&hub, &tries);
    guard(&hub);
    let by_both = measure(&hub, &tries);
    webhook.kill();
    let unanswered = measure(&hub, &tries);
    let ours = ["delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "ocm-policy-webhook"];
    hub.cluster.kubectl(&ours).expect("they are deleted");
    let create = Call::create(CLUSTERS, json!(managed_cluster("new")));
    until("nobody is asked", || hub.wait(people.admin().send(&create, true)).is_ok());
    let by_baseline = measure(&hub, &tries);

    let mut wrong = Vec::new();
    let mut table = Table::default();
    for (index, one) in tries.iter().enumerate() {
        let (baseline, webhook) = (&by_baseline[index], &by_webhook[index]);
        let said = format!("{}: {baseline:?}, {webhook:?}, {:?}, {:?}", one.told(), by_both[index], unanswered[index]);
        let first = if *baseline == Answer::Passed { webhook } else { baseline };
        let waits = one.waits.map_or(Answer::Passed, |entry| Answer::Unanswered(entry.to_owned()));
        let alone = if *baseline == Answer::Passed { &waits } else { baseline };
        let left = one.step == Step::Ask || one.what == SERVING;
        let passes = by_both[index] == Answer::Passed;
        if by_both[index] != *first
            || unanswered[index] != *alone
            || (one.right && !passes)
            || (!one.right && passes && !left)
        {
            wrong.push(said);
        }
        table.add(one, baseline.baseline(), webhook.webhook());
    }
    assert!(wrong.is_empty() && table.differing.is_empty(), "{wrong:#?} {:#?}", table.differing);
    assert!(tries.len() > 500, "{}", tries.len());
    table.compare();

    // What is left to a signer: it signs nothing.
    let serving = tries.iter().find(|one| one.what == SERVING && one.step == Step::Approve).expect("it was tried");
    let name = serving.call.body.pointer("/metadata/name").and_then(Value::as_str).expect("a name");
    hub.conclude(name, "approve");
    until("its signer refuses it", || hub.is("Failed", name));
}

/// Who does something, in a cell of the table.
fn people(who: &[&str]) -> String {
    who.join(", ").replace("bootstrap account, bootstrap token, gRPC server", "all who register")
}

/// By what something is refused: of each step, the codes of the baseline and of the webhook.
type Cells = BTreeMap<Step, [String; 2]>;

/// What is refused by what.
#[derive(Default)]
struct Table {
    /// In the order of the tries: what, and of everybody who does it the cells.
    wrong: Vec<(&'static str, Vec<(&'static str, Cells)>)>,
    /// What is right, who does it, and the entry that it waits for.
    right: Vec<(String, Vec<&'static str>, Option<&'static str>)>,
    /// What differs by who approves, or between two requests of one attack.
    differing: Vec<String>,
}

impl Table {
    fn add(&mut self, one: &Try, baseline: Option<&str>, webhook: Option<&str>) {
        if one.right {
            let what = match one.step {
                Step::Ask => format!("{} is asked for", one.what),
                Step::Approve => format!("{} is approved", one.what),
                Step::Change => one.what.to_owned(),
            };
            match self.right.iter_mut().find(|(known, _, waits)| *known == what && *waits == one.waits) {
                _ if one.by.is_empty() => {}
                Some((_, by, _)) if by.contains(&one.by) => {}
                Some((_, by, _)) => by.push(one.by),
                None => self.right.push((what, vec![one.by], one.waits)),
            }
            return;
        }
        let cells = [baseline, webhook].map(|code| code.map_or_else(|| "–".to_owned(), |code| format!("`{code}`")));
        if !self.wrong.iter().any(|(what, _)| *what == one.what) {
            self.wrong.push((one.what, Vec::new()));
        }
        let (_, all) = self.wrong.iter_mut().find(|(what, _)| *what == one.what).expect("it was just added");
        if !all.iter().any(|(by, _)| *by == one.by) {
            all.push((one.by, Cells::new()));
        }
        let (_, known) = all.iter_mut().find(|(by, _)| *by == one.by).expect("it was just added");
        let before = known.insert(one.step, cells.clone());
        if before.is_some_and(|before| before != cells) {
            self.differing.push(format!("{}: {cells:?}", one.told()));
        }
    }

    /// The lines of one kind of attacks; whoever is refused in the same way stands in one line.
    fn lines(&self, requests: bool) -> String {
        let mut text = String::new();
        for (what, all) in &self.wrong {
            let mut groups: Vec<(Vec<&str>, &Cells)> = Vec::new();
            for (by, cells) in all.iter().filter(|(_, cells)| cells.contains_key(&Step::Change) != requests) {
                match groups.iter_mut().find(|(_, known)| *known == cells) {
                    Some((who, _)) => who.push(by),
                    None => groups.push((vec![by], cells)),
                }
            }
            for (who, cells) in groups {
                let none = ["".to_owned(), String::new()];
                let steps: &[Step] = if requests { &[Step::Ask, Step::Approve] } else { &[Step::Change] };
                let cells = steps.iter().map(|step| cells.get(step).unwrap_or(&none).join(" | ")).collect::<Vec<_>>();
                text += &format!("| {what} | {} | {} |\n", people(&who), cells.join(" | "));
            }
        }
        text
    }

    /// Compares the table with the documented one, or writes it.
    fn compare(&self) {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/refusals.md");
        let text = fs::read_to_string(&page).expect("the page is there");
        let mut should_be = text.clone();
        let waits =
            |entry: &Option<&str>| entry.map_or_else(|| "passes".to_owned(), |entry| format!("waits for `{entry}`"));
        let right: String = self
            .right
            .iter()
            .map(|(what, by, entry)| format!("| {what} | {} | {} |\n", people(by), waits(entry)))
            .collect();
        for (name, lines) in [("requests", self.lines(true)), ("clusters", self.lines(false)), ("right", right)] {
            let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {word} {name} -->\n"));
            let (head, rest) = should_be.split_once(&begin).expect("the page marks its tables");
            let (table, tail) = rest.split_once(&end).expect("the page marks its tables");
            let heading: String = table.lines().take(2).map(|line| format!("{line}\n")).collect();
            should_be = format!("{head}{begin}{heading}{lines}{end}{tail}");
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&page, &should_be).expect("it is written");
        } else {
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
            let (is, should) = (lines(&text), lines(&should_be));
            let differ: Vec<_> = should
                .iter()
                .filter(|line| !is.contains(line))
                .chain(is.iter().filter(|line| !should.contains(line)))
                .collect();
            assert!(
                text == should_be,
                "docs/reference/refusals.md says otherwise; UPDATE_DOCS=1 writes it: {differ:#?}"
            );
        }
    }
}

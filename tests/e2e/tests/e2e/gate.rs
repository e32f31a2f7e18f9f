//! A real hub with the feature gate ManagedClusterAutoApproval: it accepts every cluster by itself, and approves what
//! listed users ask for, such as its bootstrap service account. What keeps others out is what `accept` approves, and what
//! keeps all of them to the rules is the baseline. What policies hold it is kept from accepting, without a word in its log.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use csr_fixtures::{Fixture, Key, Kind};
use e2e_tests::accept_support::{Ask, managed_cluster, token_kubeconfig};
use e2e_tests::connection::connect;
use e2e_tests::controller_support::{Controller, holding_unknown};
use e2e_tests::join_support::JoinCommand;
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::policy;
use e2e_tests::{bundle, kubectl_ocm, log_lines, object, run, until, until_within};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::PostParams;
use kube::{Api, Client, Error};
use ocm_api::ManagedCluster;
use ocm_api::names::{identity, signers};
use ocm_rules::cluster::{ACCEPTED_BY_HUB, CLUSTER_SET, HELD};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Such a hub, and who registers clusters there.
struct Gate {
    hub: Cluster,
    runtime: Runtime,
    /// Its bootstrap service account, whose requests it approves.
    listed: Client,
    /// A bootstrap token, whose requests it leaves to people.
    unlisted: Client,
}

impl Gate {
    fn start(name: &str) -> Self {
        let hub = Cluster::start(&Spec::node(name)).expect("a cluster");
        let gate = "--feature-gates=ManagedClusterAutoApproval=true";
        let mut command = kubectl_ocm("install", hub.kubeconfig());
        let said = run(command.args(["hub", "--bundle-version", bundle(), "--wait", gate]));
        assert_eq!(said.code, Some(0), "{said:?}");
        let manager = object(&hub, &["clustermanager", "cluster-manager"]);
        assert_eq!(manager["spec"]["registrationConfiguration"]["autoApproveUsers"], json!([identity::BOOTSTRAP_USER]));
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let [listed, unlisted] = ["service-account", "bootstrap"].map(|kind| {
            let file = hub.dir().expect("a folder").join(kind);
            let token = JoinCommand::create(&hub, &["--kind", kind]).token;
            fs::write(&file, token_kubeconfig(&hub, &token)).expect("written");
            runtime.block_on(connect(&file)).client
        });
        Self { hub, runtime, listed, unlisted }
    }

    fn client(&self, kubeconfig: &Path) -> Client {
        self.runtime.block_on(connect(kubeconfig)).client
    }

    fn try_register(&self, client: &Client, cluster: &ManagedCluster) -> Result<(), Error> {
        let api: Api<ManagedCluster> = Api::all(client.clone());
        self.runtime.block_on(api.create(&PostParams::default(), cluster)).map(drop)
    }

    /// Registers a cluster and waits until the hub has accepted it by itself.
    fn register(&self, client: &Client, name: &str, labels: &[(&str, &str)]) {
        self.try_register(client, &labelled(name, labels)).expect("the hub stores it");
        let accepted = || object(&self.hub, &["managedcluster", name])["spec"]["hubAcceptsClient"] == true;
        soon(&format!("the hub accepts {name}"), accepted);
    }

    fn try_ask(&self, client: &Client, ask: &Ask) -> Result<String, Error> {
        let api: Api<CertificateSigningRequest> = Api::all(client.clone());
        let created = self.runtime.block_on(api.create(&PostParams::default(), &ask.object()))?;
        Ok(created.metadata.name.expect("it has a name"))
    }

    fn ask(&self, client: &Client, name: &str, agent: &str) -> String {
        self.try_ask(client, &Ask::with(name, &Fixture::agent(name, agent))).expect("the hub stores it")
    }

    fn is_approved(&self, request: &str) -> bool {
        let request = object(&self.hub, &["csr", request]);
        request["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "Approved"))
    }
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> ManagedCluster {
    let mut cluster = managed_cluster(name);
    cluster.metadata.labels =
        Some(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    cluster
}

fn soon(what: &str, is_so: impl Fn() -> bool) {
    until_within(Duration::from_secs(60), what, String::new, is_so);
}

/// The code with which the baseline refused.
#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Api(status)) if status.message.contains("baseline.kubectl-ocm.dev' denied request: ") => {
            status.message.trim_end_matches(')').rsplit(' ').next().unwrap_or_default().to_owned()
        }
        answer => panic!("not refused by the baseline: {answer:?}"),
    }
}

#[test]
fn what_a_hub_accepts_by_itself_is_judged_by_accept_and_by_the_baseline() {
    let gate = Gate::start("gate-hub");
    clusters_that_the_hub_accepted_are_judged(&gate);
    let said = run(kubectl_ocm("install", gate.hub.kubeconfig()).args(["baseline", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    listed_users_are_held_to_the_rules(&gate);

    // Taken away again, the hub's own webhooks are all that judge, and the command ends.
    let remover = user_with(&gate.hub, "remover", &["uninstall-baseline.yaml"]);
    let said = run(kubectl_ocm("uninstall", &remover).args(["baseline", "--wait", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    gate.register(&gate.listed, "later", &[("env", "prod")]);
}

/// Of who is not listed, the approval of the request is all that keeps somebody out.
fn clusters_that_the_hub_accepted_are_judged(gate: &Gate) {
    let acceptor = user_with(&gate.hub, "acceptor", &["accept.yaml"]);
    let accept = |words: &[&str], name: &str| {
        let said = run(kubectl_ocm("accept", &acceptor).args(words).args(["--yes", "--output=json"]));
        let document: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let rows = document["clusters"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{said:?}"));
        (said.code, row["code"].as_str().unwrap_or_default().to_owned())
    };
    // It labels itself as those that are let in by a selector.
    gate.register(&gate.unlisted, "labelled", &[("env", "prod")]);
    let request = gate.ask(&gate.unlisted, "labelled", "a1");
    for words in [&["--selector=env=prod"][..], &["labelled"]] {
        assert_eq!(accept(words, "labelled"), (Some(3), "Labels".to_owned()), "{words:?}");
    }
    assert!(!gate.is_approved(&request));

    // Somebody denied its request, and it asks with another key.
    gate.register(&gate.unlisted, "denied", &[]);
    let denied = gate.ask(&gate.unlisted, "denied", "a1");
    gate.hub.kubectl(&["certificate", "deny", &denied]).expect("it is denied");
    let again = gate.ask(&gate.unlisted, "denied", "a2");
    gate.hub.kubectl(&["label", "managedcluster", "denied", "tier=one"]).expect("a label");
    assert_eq!(accept(&["--selector=tier=one"], "denied"), (Some(3), "DeniedBefore".to_owned()));
    assert!(!gate.is_approved(&again));

    // Whoever means it lets it in, and others need no word.
    assert_eq!(accept(&["labelled", "--as-registered"], "labelled"), (Some(0), "Approved".to_owned()));
    gate.register(&gate.unlisted, "plain", &[]);
    let plain = gate.ask(&gate.unlisted, "plain", "a1");
    assert_eq!(accept(&["plain"], "plain"), (Some(0), "Approved".to_owned()));
    assert!(gate.is_approved(&request) && gate.is_approved(&plain));
}

/// The hub approves what the bootstrap service account asks for, as far as the API server lets it ask.
fn listed_users_are_held_to_the_rules(gate: &Gate) {
    // What is right passes, and nobody else has to approve it.
    gate.register(&gate.listed, "right", &[]);
    let request = gate.ask(&gate.listed, "right", "a1");
    soon("the hub approves what a listed user asks for", || gate.is_approved(&request));

    let mut accepted = labelled("wrong", &[]);
    accepted.spec.hub_accepts_client = Some(true);
    for (cluster, codes) in [
        (labelled("wrong", &[("env", "prod")]), &["Labels"][..]),
        (labelled("wrong", &[(CLUSTER_SET, "prod")]), &["ClusterSet"]),
        (labelled("open-cluster-management-hub", &[]), &["NameReserved"]),
        (accepted, &["AcceptedAtCreation", "HubAcceptsClient"]),
    ] {
        let code = refused(gate.try_register(&gate.listed, &cluster));
        assert!(codes.contains(&code.as_str()), "{code}: {cluster:?}");
    }

    let right = || Ask::with("right", &Fixture::agent("right", "a2"));
    let server = vec!["digital signature".to_owned(), "server auth".to_owned()];
    for (ask, code) in [
        (Ask { usages: server, ..right() }, "Usages"),
        (Ask { seconds: Some(63_072_000), ..right() }, "Lifetime"),
        (Ask { signer: "example.com/own".to_owned(), ..right() }, "Signer"),
        (Ask { label: None, ..right() }, "ClusterLabel"),
        (Ask { signer: signers::GRPC.to_owned(), ..right() }, "GrpcClaim"),
        (Ask { annotation: Some("system:bootstrap:abcdef".to_owned()), ..right() }, "GrpcClaim"),
    ] {
        assert_eq!(refused(gate.try_ask(&gate.listed, &ask)), code, "{:?}", Ask { pem: Vec::new(), ..ask });
    }

    // In the name of the listed user, without its credentials; and the agent of another cluster.
    let named = |user: &str, group: &str| {
        let file = gate.hub.user_kubeconfig(user, &[group]).expect("a user");
        let binding = format!("asks-{}", user.rsplit(':').next().unwrap_or_default());
        let user = format!("--user={user}");
        let words = ["create", "clusterrolebinding", &binding, "--clusterrole=asks", &user];
        gate.hub.kubectl(&words).expect("bound");
        gate.client(&file)
    };
    let role = ["create", "clusterrole", "asks", "--verb=create", "--resource=certificatesigningrequests"];
    gate.hub.kubectl(&role).expect("made");
    let pretender = named(identity::BOOTSTRAP_USER, "system:serviceaccounts");
    assert_eq!(refused(gate.try_ask(&pretender, &right())), "Impersonated");
    let neighbour = named("system:open-cluster-management:plain:a1", "system:open-cluster-management:plain");
    assert_eq!(refused(gate.try_ask(&neighbour, &right())), "OtherAgent");

    let list = object(&gate.hub, &["csr", "--selector=open-cluster-management.io/cluster-name=right"]);
    let names: Vec<&Value> =
        list["items"].as_array().into_iter().flatten().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, [&request]);
}

/// How long a hub that tries again and again is given to be caught at it.
const CALM: Duration = Duration::from_secs(20);

#[test]
fn a_cluster_that_is_held_is_not_accepted_by_the_hub() {
    let gate = Gate::start("gate-held");
    let hub = &gate.hub;
    let (webhook, controller) = holding_unknown(hub);
    let mut controller = Controller::start_as(&controller);

    let annotation = |name: &str| {
        let cluster = object(hub, &["managedcluster", name]);
        cluster["metadata"]["annotations"][ACCEPTED_BY_HUB].as_str().map(str::to_owned)
    };
    let is_accepted = |name: &str| object(hub, &["managedcluster", name])["spec"]["hubAcceptsClient"] == true;
    // Until a policy is loaded it refuses everybody.
    let register =
        |name: &str| until("it is stored", || gate.try_register(&gate.unlisted, &managed_cluster(name)).is_ok());
    let names = ["edge", "shop"];
    let keys = names.map(|_| Key::new(Kind::P256));
    let ask = |(name, key): (&&str, &Key)| {
        register(name);
        let asked = Ask::with(name, &Fixture::agent(name, "a1").key(key));
        gate.try_ask(&gate.unlisted, &asked).expect("the hub stores it")
    };
    let requests: Vec<String> = names.iter().zip(&keys).map(ask).collect();
    until("both are held", || names.iter().all(|name| annotation(name).as_deref() == Some(HELD)));
    // What it has begun may come to its end.
    sleep(Duration::from_secs(2));
    // Whoever is refused says so in its log.
    let tried = || (webhook.decisions_of("accept"), log_lines(hub, "accept.policy.kubectl-ocm.dev").len());
    let before = tried();
    assert!(!log_lines(hub, "controller").is_empty(), "what the hub's pods have logged is read");
    sleep(CALM);
    assert_eq!(tried(), before, "the hub tries again");
    assert!(!names.iter().any(|name| is_accepted(name)));
    let state = object(hub, &["registration.policy.kubectl-ocm.dev", "edge"]);
    assert!(state["status"]["waitingFor"].to_string().contains("(NotInInventory)"), "{state}");

    // Nobody but those who may accept takes the annotation away, and the webhook stands behind it.
    let strip = format!(r#"{{"metadata":{{"annotations":{{"{ACCEPTED_BY_HUB}":null}}}}}}"#);
    hub.kubectl(&["patch", "managedcluster", "shop", "--type=merge", "--patch", &strip]).expect("an administrator may");
    until("it is held again", || annotation("shop").as_deref() == Some(HELD));
    assert!(!is_accepted("shop"));

    // One that has not asked for a certificate yet is held as well.
    register("silent");
    until("it is held", || annotation("silent").as_deref() == Some(HELD));

    // Listed for another requester, or for another key, it stays out.
    let lists = |entry: Value| {
        let known = json!({"data": {"edge": entry.to_string()}}).to_string();
        hub.kubectl(&[
            "patch",
            "configmap",
            "cluster-inventory",
            "--patch",
            &known,
            "--namespace=open-cluster-management",
        ])
        .expect("it is known");
    };
    let says = |code: &str| {
        let state = object(hub, &["registration.policy.kubectl-ocm.dev", "edge"]);
        state["status"]["waitingFor"].to_string().contains(code)
    };
    let requester = object(hub, &["csr", &requests[0]])["spec"]["username"].clone();
    lists(json!({"requester": "somebody-else"}));
    until("another requester is expected", || says("(RequesterUnexpected)"));
    lists(json!({"requester": requester, "spkiSha256": "ab".repeat(32)}));
    until("another key is expected", || says("(KeyUnexpected)"));
    assert!(!is_accepted("edge"));

    // As soon as policies let it in, the hub does what it does by itself: whoever accepts need not be who asked.
    lists(json!({"requester": requester, "spkiSha256": keys[0].fingerprint()}));
    until("the hub accepts it", || is_accepted("edge"));
    until("it notes it", || annotation("edge").is_some_and(|value| value != HELD));
    assert!(!is_accepted("shop") && annotation("shop").as_deref() == Some(HELD));

    // And without a policy that holds it.
    hub.kubectl(&["delete", "hubpolicy", "inventory"]).expect("it is gone");
    until("the hub accepts both", || is_accepted("shop") && is_accepted("silent"));

    // A policy about acceptances is asked about whoever creates a cluster as accepted, too.
    let acceptors = json!({
        "module": {"builtin": "allowed-identities"}, "operations": ["accept"],
        "settings": {"rules": [{"operations": ["accept"], "groups": ["fleet-admins"]}]},
    });
    policy(hub, "acceptors", acceptors);
    let admin = gate.client(hub.kubeconfig());
    let created = |name: &str, accepted: bool| {
        let mut cluster = managed_cluster(name);
        cluster.spec.hub_accepts_client = Some(accepted);
        gate.try_register(&admin, &cluster)
    };
    // Before the webhook knows the policy it lets some in, each of a name of its own.
    let number = Cell::new(0);
    let refuses = || {
        let name = format!("at-once-{}", number.replace(number.get() + 1));
        created(&name, true).is_err_and(|error| error.to_string().contains("denied by policy acceptors"))
    };
    until("it is refused", refuses);
    created("later", false).expect("nobody accepts it yet");
    hub.kubectl(&["delete", "hubpolicy", "acceptors"]).expect("it is gone");
    until("the webhook knows", || created("at-last", true).is_ok());

    // A policy about joins is asked about what the hub does by itself: it accepts every cluster, and approves what the bootstrap
    // service account asks for.
    policy(
        hub,
        "teams",
        json!({"module": {"builtin": "name-pattern"}, "settings": {"prefixes": ["team-"]}, "operations": ["join"]}),
    );
    let loaded = ["wait", "hubpolicy/teams", "--for=condition=Loaded", "--timeout=2s"];
    until("the controller has it", || hub.kubectl(&loaded).is_ok());
    let [right, wrong] = ["team-a", "evil"].map(|name| {
        until("it is stored", || gate.try_register(&gate.listed, &managed_cluster(name)).is_ok());
        gate.ask(&gate.listed, name, "a1")
    });
    soon("the hub accepts the right one", || is_accepted("team-a") && gate.is_approved(&right));
    // It may have been accepted before it asked, and joins with nothing but its certificate.
    until("its request is refused", || webhook.decisions_of("join") > 0);
    sleep(CALM);
    assert!(!gate.is_approved(&wrong));
    hub.kubectl(&["delete", "hubpolicy", "teams"]).expect("it is gone");

    // Whoever takes an acceptance back has decided: that policies would let it in again is no reason. The hub has acted on it.
    let acted = |name: &str| {
        let conditions = object(hub, &["managedcluster", name])["status"]["conditions"].clone();
        conditions.as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "HubAcceptedManagedCluster"))
    };
    until("the hub has acted", || acted("edge") && acted("shop"));
    let back = r#"{"spec":{"hubAcceptsClient":false}}"#;
    let fresh = format!(
        r#"{{"metadata":{{"annotations":{{"{ACCEPTED_BY_HUB}":"{HELD}"}}}},"spec":{{"hubAcceptsClient":false}}}}"#
    );
    hub.kubectl(&["patch", "managedcluster", "edge", "--type=merge", "--patch", back]).expect("it is taken back");
    hub.kubectl(&["patch", "managedcluster", "shop", "--type=merge", "--patch", &fresh]).expect("it is taken back");
    sleep(Duration::from_secs(5));
    assert!(!is_accepted("edge") && !is_accepted("shop") && annotation("shop").as_deref() == Some(HELD));

    // Where the hub asks no policy because its configurations are gone, a cluster stays held; where somebody has taken policies out
    // of force, none holds it any more.
    policy(hub, "inventory", json!({"module": {"builtin": "inventory"}, "settings": {"holdUnknown": true}}));
    register("stuck");
    until("it is held", || annotation("stuck").as_deref() == Some(HELD));
    // A hub that has not seen yet that it is held tries to accept it, and nobody would refuse that afterwards.
    sleep(CALM);
    let kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
    hub.kubectl(&["delete", kinds, "ocm-policy-webhook"]).expect("they are gone");
    // For two looks of the controller.
    sleep(Duration::from_secs(12));
    assert_eq!((is_accepted("stuck"), annotation("stuck").as_deref()), (false, Some(HELD)));
    let mut command = kubectl_ocm("policy", hub.kubeconfig());
    let said = run(command.args(["emergency", "--reason", "incident 818", "--yes"]));
    assert!(said.code == Some(0) && said.stderr.contains("holds no cluster"), "{said:?}");
    until("the hub accepts it", || is_accepted("stuck"));
    assert!(!is_accepted("edge"), "what a person took back stays so");
    // Asked again, policies count again, whatever the mark says.
    webhook.configure_and_wait(hub);
    register("stuck-too");
    until("it is held", || annotation("stuck-too").as_deref() == Some(HELD));
    hub.kubectl(&["delete", "hubpolicy", "inventory"]).expect("it is gone");

    // While the gate is off nothing is written.
    let off = r#"{"spec":{"registrationConfiguration":{"featureGates":[]}}}"#;
    hub.kubectl(&["patch", "clustermanager", "cluster-manager", "--type=merge", "--patch", off]).expect("it is off");
    policy(hub, "inventory", json!({"module": {"builtin": "inventory"}, "settings": {"holdUnknown": true}}));
    sleep(Duration::from_secs(7));
    register("late");
    gate.ask(&gate.unlisted, "late", "a1");
    until("it waits", || {
        let all = object(hub, &["registrations.policy.kubectl-ocm.dev"]);
        all["items"].as_array().is_some_and(|all| all.iter().any(|one| one["metadata"]["name"] == "late"))
    });
    sleep(Duration::from_secs(1));
    assert_eq!(annotation("late"), None);
    assert_eq!(controller.terminate(), Some(0));
}

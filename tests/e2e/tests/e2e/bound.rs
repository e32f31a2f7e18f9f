//! Who may register clusters on hubs that another tool made, on a real API server: accounts of other names and namespaces,
//! by the bindings of the hub alone.
//!
//! `cargo test -p e2e-tests --test e2e bound::`; it needs no root.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use control_plane::Cluster;
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, Run, all_established, know_registrations, note, token_kubeconfig, upstream};
use e2e_tests::connection::connect;
use e2e_tests::manifests::apply;
use e2e_tests::roles::{user_with, users_without_one_right};
use e2e_tests::shared_hub::{SharedHub, hub};
use e2e_tests::{Said, kubectl_ocm, run};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

/// The role of agents that register, and its name on hubs of earlier tools.
const ROLE: &str = "open-cluster-management:bootstrap";
const FORMER_ROLE: &str = "system:open-cluster-management:bootstrap";

/// The definitions of works, add-ons, sets, and placements in upstream's API module.
const DEFINITIONS: [&str; 7] = [
    "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml",
    "addon/v1alpha1/0000_00_addon.open-cluster-management.io_clustermanagementaddons.crd.yaml",
    "addon/v1alpha1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml",
    "cluster/v1beta2/0000_00_clusters.open-cluster-management.io_managedclustersets.crd.yaml",
    "cluster/v1beta2/0000_01_clusters.open-cluster-management.io_managedclustersetbindings.crd.yaml",
    "cluster/v1beta1/0000_02_clusters.open-cluster-management.io_placements.crd.yaml",
    "cluster/v1beta1/0000_03_clusters.open-cluster-management.io_placementdecisions.crd.yaml",
];

/// A hub of another tool: its accounts in namespaces of its own, and nothing bound yet.
struct Foreign {
    hub: SharedHub,
    accepter: PathBuf,
}

impl Foreign {
    fn start() -> Self {
        let hub = hub();
        let kubectl = |words: &[&str]| hub.cluster.kubectl(words).expect("it is created");
        kubectl(&["create", "clusterrole", FORMER_ROLE, "--verb=create", "--resource=certificatesigningrequests"]);
        kubectl(&["create", "namespace", "ocm-system"]);
        kubectl(&["create", "namespace", "team"]);
        kubectl(&["create", "serviceaccount", "cluster-bootstrap", "--namespace=open-cluster-management"]);
        for namespace in ["ocm-system", "team"] {
            for account in ["agent-registration-bootstrap", "cluster-bootstrap"] {
                kubectl(&["create", "serviceaccount", account, "--namespace", namespace]);
            }
        }
        let accepter = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
        Self { hub, accepter }
    }

    fn bind(&self, name: &str, role: &str, account: &str) {
        let (role, account) = (format!("--clusterrole={role}"), format!("--serviceaccount={account}"));
        self.hub.cluster.kubectl(&["create", "clusterrolebinding", name, &role, &account]).expect("it is bound");
    }

    /// Somebody with a token of a service account.
    fn client(&self, account: &str) -> Client {
        let (namespace, name) = account.split_once(':').expect("namespace and name");
        let token = self.hub.cluster.kubectl(&["create", "token", name, "--namespace", namespace]).expect("a token");
        let file = self.hub.cluster.dir().expect("it is ours").join(format!("{namespace}-{name}.kubeconfig"));
        fs::write(&file, token_kubeconfig(&self.hub.cluster, token.trim())).expect("it is written");
        self.hub.wait(connect(&file)).client
    }

    /// The right request for a cluster, by this account.
    fn ask(&self, cluster: &str, account: &str) -> String {
        let api: Api<CertificateSigningRequest> = Api::all(self.client(account));
        let created = self.hub.wait(api.create(&PostParams::default(), &Ask::agent(cluster).object()));
        created.expect("it is created").metadata.name.expect("it has a name")
    }

    /// Registers a cluster and asks for it.
    fn join(&self, cluster: &str, account: &str) -> String {
        self.hub.register(cluster);
        self.ask(cluster, account)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = kubectl_ocm("accept", &self.accepter);
        command.args(words);
        command
    }

    fn accept(&self, words: &[&str]) -> Run {
        let Said { code, stdout, stderr } = run(&mut self.command(words));
        Run { code: code.unwrap_or(-1), stdout, stderr }
    }

    /// Exit code and reason of a cluster.
    fn reason(&self, cluster: &str) -> (i32, String) {
        let run = self.accept(&[cluster, "--yes", "--output=json"]);
        (run.code, run.reason(cluster))
    }

    fn verdict(&self, viewer: &Path, request: &str) -> String {
        let said = run(kubectl_ocm("get", viewer).args(["csr", request, "--output=json"]));
        let object: serde_json::Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        object["standing"]["verdict"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn accounts_of_other_tools_are_known_by_their_bindings_and_by_nothing_else() {
    let foreign = Foreign::start();
    let hub = &foreign.hub;
    let viewer = user_with(&hub.cluster, "viewer", &["get.yaml"]);
    let (accepted, refused) = ((0, "Accepted".to_owned()), (3, "Requester".to_owned()));

    // A name alone proves nothing, whoever's it is.
    let former = "open-cluster-management:cluster-bootstrap";
    let request = foreign.join("b1", former);
    assert_eq!((foreign.reason("b1"), foreign.verdict(&viewer, &request)), (refused.clone(), "Requester".to_owned()));
    let elsewhere = "ocm-system:agent-registration-bootstrap";
    let request = foreign.join("b2", elsewhere);
    assert_eq!(foreign.reason("b2"), refused);
    // A binding of other rights, and of the right role in one namespace, say nothing about the hub.
    foreign.bind("viewing", "view", elsewhere);
    let account = format!("--serviceaccount={elsewhere}");
    let role = format!("--clusterrole={ROLE}");
    let local = ["create", "rolebinding", "local", &role, &account, "--namespace=ocm-system"];
    hub.cluster.kubectl(&local).expect("it is bound");
    assert_eq!((foreign.reason("b2"), foreign.verdict(&viewer, &request)), (refused.clone(), "Requester".to_owned()));
    assert!(hub.approved().is_empty() && hub.accepted().is_empty());

    // As earlier tools bind it, and as the hub's operator does in another namespace.
    foreign.bind("cluster-bootstrap-sa", FORMER_ROLE, former);
    foreign.bind("open-cluster-management:bootstrap:agent-registration", ROLE, elsewhere);
    assert_eq!(foreign.verdict(&viewer, &request), "Sound");
    assert_eq!((foreign.reason("b1"), foreign.reason("b2")), (accepted.clone(), accepted.clone()));

    // The same names in a namespace of somebody, beside the bound ones: by name, and among all.
    let strangers = ["team:agent-registration-bootstrap", "team:cluster-bootstrap", "ocm-system:cluster-bootstrap"];
    let mut requests = Vec::new();
    for (index, stranger) in strangers.iter().enumerate() {
        let cluster = format!("s{index}");
        requests.push(foreign.join(&cluster, stranger));
        assert_eq!(foreign.reason(&cluster), refused, "{stranger}");
    }
    // The name of a bound account in a certificate, and the gRPC server's word for both.
    let user = format!("system:serviceaccount:{elsewhere}");
    let certificate = hub.cluster.user_kubeconfig(&user, &["system:serviceaccounts", "registrars"]).expect("a user");
    hub.register("s3");
    let api: Api<CertificateSigningRequest> = Api::all(hub.wait(connect(&certificate)).client);
    hub.wait(api.create(&PostParams::default(), &Ask::agent("s3").object())).expect("it is created");
    assert_eq!(foreign.reason("s3"), (3, "Impersonated".to_owned()));
    hub.register("s4");
    hub.ask(&Ask::agent("s4").grpc("system:serviceaccount:team:agent-registration-bootstrap"));
    assert_eq!(foreign.reason("s4"), refused);
    hub.register("b3");
    hub.ask(&Ask::agent("b3").grpc(&user));
    // A bound account still has to ask for the right thing.
    hub.register("s5");
    let wrong = Ask::with("s5", &Fixture::agent("s5", "a1").organization("platform-admins")).object();
    let api: Api<CertificateSigningRequest> = Api::all(foreign.client(elsewhere));
    hub.wait(api.create(&PostParams::default(), &wrong)).expect("it is created");

    let run = foreign.accept(&["--all-pending", "--yes"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stdout.contains("managedcluster/s5 refused, ForeignOrganization: "), "{run:?}");
    assert_eq!(hub.accepted(), ["b1", "b2", "b3"].map(str::to_owned).into(), "{run:?}");
    assert!(requests.iter().all(|request| !hub.is("Approved", request)));

    // What was bound no longer is.
    hub.cluster.kubectl(&["delete", "clusterrolebinding", "cluster-bootstrap-sa"]).expect("it is deleted");
    foreign.join("s6", former);
    assert_eq!(foreign.reason("s6"), refused);

    // Who may not read bindings goes by the usual accounts, and can still name others.
    foreign.join("b4", elsewhere);
    let blind = "kubectl-ocm-accept";
    let rights = hub.cluster.kubectl(&["get", "clusterrole", blind, "--output=json"]).expect("the role is there");
    let mut rights: serde_json::Value = serde_json::from_str(&rights).expect("kubectl prints JSON");
    let rules = rights["rules"].as_array_mut().expect("it has rules");
    rules.retain(|rule| rule["resources"][0] != "clusterrolebindings");
    let file = hub.cluster.dir().expect("it is ours").join("blind.json");
    fs::write(&file, rights.to_string()).expect("it is written");
    hub.cluster.kubectl(&["replace", "--filename", file.to_str().expect("text")]).expect("it is replaced");
    assert_eq!(foreign.reason("b4"), refused);
    let run = foreign.accept(&["b4", "--requester", &user]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn a_bound_account_is_waited_for_and_a_stranger_is_not_let_in_meanwhile() {
    let foreign = Foreign::start();
    let hub = &foreign.hub;
    foreign.bind(
        "open-cluster-management:bootstrap:agent-registration",
        ROLE,
        "ocm-system:agent-registration-bootstrap",
    );
    let mut waiting = foreign
        .command(&["w1", "--wait", "--timeout=60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = BufReader::new(waiting.stderr.take().expect("a pipe")).lines();
    let mut said = said.map(|line| line.expect("text"));
    assert!(said.any(|line| line.contains("waiting for the certificate requests of w1")));
    let stranger = foreign.join("w1", "team:agent-registration-bootstrap");
    assert!(said.any(|line| line.contains("w1: Requester, ")));
    assert!(!hub.accepts("w1") && !hub.is("Approved", &stranger));
    let request = foreign.ask("w1", "ocm-system:agent-registration-bootstrap");
    said.for_each(drop);
    assert_eq!(waiting.wait().expect("it ends").code(), Some(0));
    assert!(hub.accepts("w1"));
    assert_eq!(hub.approved(), [request].into());
}

/// Gives a cluster a work and an add-on, both named `web`, and makes a set, a placement and what offers an add-on, of its name.
fn deliver_something(hub: &Cluster, cluster: &str) {
    for file in DEFINITIONS {
        hub.kubectl(&["apply", "--filename", upstream(file).to_str().expect("text")]).expect("it is applied");
    }
    all_established(hub);
    hub.kubectl(&["create", "namespace", cluster]).expect("it is created");
    let metadata = json!({"name": "web", "namespace": cluster});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}});
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": metadata,
        "spec": {"workload": {"manifests": [map]}}});
    let add_on = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": metadata, "spec": {}});
    let set = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": cluster}, "spec": {}});
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": cluster, "namespace": "default"}, "spec": {}});
    let offered = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": cluster}, "spec": {}});
    apply(hub, &work);
    apply(hub, &offered);
    apply(hub, &add_on);
    apply(hub, &set);
    apply(hub, &placement);
}

#[test]
fn each_right_of_the_documented_role_of_get_is_needed() {
    let foreign = Foreign::start();
    let hub = &foreign.hub;
    let account = "ocm-system:agent-registration-bootstrap";
    foreign.bind("elsewhere", ROLE, account);
    let request = foreign.join("c1", account);
    know_registrations(&hub.cluster);
    note(&hub.cluster, "c1", &hub.managed("c1").metadata.uid.expect("a UID"), "2999-01-01T00:00:00Z");
    deliver_something(&hub.cluster, "c1");
    let names = [
        ("managedclusters", "clusters", "c1"),
        ("certificatesigningrequests", "csr", request.as_str()),
        ("registrations", "registrations", "c1"),
        ("manifestworks", "works", "web"),
        ("managedclusteraddons", "addons", "web"),
        ("clustermanagementaddons", "hub-addons", "c1"),
        ("managedclustersets", "clustersets", "c1"),
        ("managedclustersetbindings", "clustersets", "c1"),
        ("placements", "placements", "c1"),
        ("placementdecisions", "placements", "c1"),
    ];

    // With all of them everything is told, and nothing is missed.
    let viewer = user_with(&hub.cluster, "viewer", &["get.yaml"]);
    for (_, kind, name) in &names {
        for words in [&[*kind, name][..], &[kind], &[kind, "--output=wide"]] {
            let said = run(kubectl_ocm("get", &viewer).args(words));
            assert!(
                said.code == Some(0) && said.stdout.contains("c1") && said.stderr.is_empty(),
                "{words:?}: {said:?}"
            );
        }
    }
    assert_eq!(foreign.verdict(&viewer, &request), "Sound");

    let get =
        |user: &str, words: &[&str]| run(kubectl_ocm("get", hub.cluster.kubeconfig()).args(words).args(["--as", user]));
    let users = users_without_one_right(&hub.cluster, "get.yaml");
    assert_eq!(users.len(), 24, "{users:?}");
    for (user, missing) in users {
        let (verb, resource) = missing.trim_start_matches("may not ").split_once(' ').expect("a verb and a resource");
        let plural = resource.split('.').next().expect("a resource");
        let Some((_, kind, name)) = names.iter().find(|(known, ..)| *known == plural) else {
            // Without the bindings it is not known who may register.
            let said = get(&user, &["csr", &request, "--output=json"]);
            assert!(said.code == Some(0) && said.stdout.contains("\"Requester\""), "{missing}: {said:?}");
            continue;
        };
        let words = match verb {
            // Sets are listed whole; one is looked up for its clusters.
            "get" if plural == "managedclustersets" => vec!["clusters", "--cluster-set", name],
            "get" => vec![*kind, name],
            "list" => vec![*kind],
            _ => vec![*kind, "--watch"],
        };
        let said = get(&user, &words);
        let told = format!("cannot {verb} resource \"{plural}\"");
        assert!(said.code == Some(1) && said.stderr.contains(&told), "{missing}: {said:?}");
        // A few clusters are looked up by their names.
        if (verb, plural) == ("get", "registrations") {
            let said = get(&user, &["clusters", "--output=wide"]);
            assert!(said.code == Some(0) && said.stderr.contains("note: "), "{missing}: {said:?}");
        }
    }
}

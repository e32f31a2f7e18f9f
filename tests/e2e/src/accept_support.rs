//! A hub's API server with everybody who may ask it for certificates, and our `accept` against it.
//!
//! There are no controllers of OCM: what is looked at is what `accept` itself writes.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use fleet_sim::{Access, Fleet};
use futures::StreamExt as _;
use k8s_openapi::api::authentication::v1::{TokenRequest, UserInfo};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use ocm_api::names::{bootstrap, namespaces};
use ocm_core::yaml;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::connection::connect;
use crate::manifests::{apply, apply_with};
use crate::{SOON, until};

pub use fleet_sim::objects::{Ask, Who, managed_cluster};

/// The definition of managed clusters in upstream's API module.
const MANAGED_CLUSTERS: &str = "cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml";

/// A hub: its API server, and clients of everybody who asks.
pub struct Hub {
    /// The cluster; it ends with the hub.
    pub cluster: Cluster,
    /// What an administrator sends requests with.
    pub admin: Client,
    runtime: Runtime,
    people: BTreeMap<Who, Client>,
    files: BTreeMap<Who, PathBuf>,
}

/// How a run of `accept` ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// The exit code.
    pub code: i32,
    /// What it said on stdout.
    pub stdout: String,
    /// What it said on stderr.
    pub stderr: String,
}

impl Run {
    /// The reason code of a cluster, from the document that `-o json` prints.
    pub fn reason(&self, cluster: &str) -> String {
        let row = self.row(cluster);
        row["code"].as_str().unwrap_or_else(|| panic!("no row of {cluster}: {self:?}")).to_owned()
    }

    /// The row of a cluster, from the document that `-o json` prints.
    pub fn row(&self, cluster: &str) -> Value {
        let document: Value = serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let rows = document["clusters"].as_array().cloned().unwrap_or_default();
        rows.into_iter().find(|row| row["name"] == cluster).unwrap_or_default()
    }
}

impl Hub {
    /// Starts a hub with everybody who asks.
    pub fn start(name: &str) -> Self {
        Self::start_as(&Spec::api(name))
    }

    /// Starts a hub on such a cluster.
    pub fn start_as(spec: &Spec) -> Self {
        let cluster = Cluster::start(spec).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let dir = cluster.dir().unwrap();
        let admin = runtime.block_on(connect(cluster.kubeconfig())).client;
        runtime.block_on(async {
            let definition = fs::read_to_string(upstream(MANAGED_CLUSTERS)).unwrap();
            apply_with(&admin, &yaml::from_str(&definition).unwrap()).await;
            established(&admin).await;
            for object in bootstrap_objects() {
                apply_with(&admin, &object).await;
            }
        });
        let token_of = |namespace: &str, account: &str| runtime.block_on(token(admin.clone(), namespace, account));
        let account = bootstrap::SERVICE_ACCOUNT;
        let tokens = [
            (Who::Bootstrap, token_of(namespaces::OPERATOR, account)),
            (Who::Grpc, token_of(namespaces::HUB, "grpc-server-sa")),
            (Who::AccountElsewhere, token_of("default", account)),
            (Who::LongerAccount, token_of(namespaces::OPERATOR, &format!("{account}-more"))),
            (Who::Token, format!("abcdef.{TOKEN}")),
            (Who::TokenWithoutGroup, format!("nogrup.{TOKEN}")),
        ];
        let account = format!("system:serviceaccount:{}:{account}", namespaces::OPERATOR);
        let grpc = format!("system:serviceaccount:{}:grpc-server-sa", namespaces::HUB);
        let certificates = [
            (Who::Eva, "eva", "viewers"),
            (Who::CertificateOfAccount, &account, "system:serviceaccounts"),
            (Who::CertificateOfToken, "system:bootstrap:abcdef", bootstrap::TOKEN_GROUP),
            (Who::CertificateOfGrpc, &grpc, "system:serviceaccounts"),
            (Who::AgentOfC2, "system:open-cluster-management:c2:a1", "system:open-cluster-management:c2"),
        ];
        let mut files = BTreeMap::from([(Who::Admin, cluster.kubeconfig().to_owned())]);
        for (who, token) in tokens {
            let file = dir.join(format!("{who:?}.kubeconfig"));
            fs::write(&file, token_kubeconfig(&cluster, &token)).unwrap();
            files.insert(who, file);
        }
        for (who, user, group) in certificates {
            files.insert(who, cluster.user_kubeconfig(user, &[group, "registrars"]).unwrap());
        }
        let people: BTreeMap<Who, Client> =
            files.iter().map(|(who, file)| (*who, runtime.block_on(connect(file)).client)).collect();
        Self { admin: people[&Who::Admin].clone(), cluster, runtime, people, files }
    }

    /// Waits for something asynchronous.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The client of somebody.
    pub fn client(&self, who: Who) -> Client {
        self.people[&who].clone()
    }

    /// Simulated clusters of this hub. Those who are hostile come from everybody who asks here, and an administrator
    /// approves renewals in the place of Open Cluster Management's controller.
    pub fn fleet(&self, at_once: usize) -> Fleet {
        let mut others = self.files.clone();
        let bootstrap = others.remove(&Who::Bootstrap).unwrap();
        let approver = others.get(&Who::Admin).cloned();
        Fleet::start(&Access { bootstrap, others, approver, at_once }).unwrap()
    }

    /// Creates an object as somebody, as it is written, also where none of our types can hold it.
    pub fn create(&self, who: Who, path: &str, object: &Value) -> Result<Value, kube::Error> {
        let request = http::Request::post(path).header("content-type", "application/json");
        self.wait(self.client(who).request(request.body(object.to_string().into_bytes()).unwrap()))
    }

    /// Lets everybody do something, so that nothing but admission refuses it.
    pub fn grant(&self, rules: &Value) {
        let group = "rbac.authorization.k8s.io";
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "all"}, "rules": rules},
            {"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "all"},
             "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "all"},
             "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}]},
        ]});
        let file = self.cluster.dir().unwrap().join("all.json");
        fs::write(&file, objects.to_string()).unwrap();
        self.cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]).unwrap();
    }

    /// As whom the hub knows somebody.
    pub fn user(&self, who: Who) -> UserInfo {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("content-type", "application/json")
            .body(review.to_string().into_bytes())
            .unwrap();
        let answer: Value = self.wait(self.client(who).request(request)).unwrap();
        serde_json::from_value(answer["status"]["userInfo"].clone()).unwrap()
    }

    /// The hub as our libraries see it.
    pub fn connection(&self) -> ocm_kube::Cluster {
        self.wait(connect(self.cluster.kubeconfig()))
    }

    /// Registers a cluster, as its agent does: it asks again where a pod of the webhook is still loading a policy.
    pub fn register(&self, name: &str) -> ManagedCluster {
        let api: Api<ManagedCluster> = Api::all(self.client(Who::Bootstrap));
        let mut registered = None;
        until("the cluster is registered", || {
            match self.wait(api.create(&PostParams::default(), &managed_cluster(name))) {
                Err(kube::Error::Api(status)) if status.message.contains("the policy is being loaded") => {}
                answer => registered = Some(answer.unwrap()),
            }
            registered.is_some()
        });
        registered.unwrap()
    }

    /// Asks for a certificate; the API server may say no.
    pub fn try_ask(&self, ask: &Ask) -> Result<CertificateSigningRequest, kube::Error> {
        let api: Api<CertificateSigningRequest> = Api::all(self.client(ask.who));
        self.wait(api.create(&PostParams::default(), &ask.object()))
    }

    /// Asks for a certificate and returns the request's name.
    pub fn ask(&self, ask: &Ask) -> String {
        self.try_ask(ask).unwrap().metadata.name.unwrap()
    }

    /// Asks for many certificates, several at a time.
    pub fn ask_all(&self, asks: &[Ask]) {
        let api: Api<CertificateSigningRequest> = Api::all(self.client(Who::Bootstrap));
        let ask = async |ask: &Ask| drop(api.create(&PostParams::default(), &ask.object()).await.unwrap());
        self.wait(futures::stream::iter(asks).map(ask).buffer_unordered(8).collect::<Vec<()>>());
    }

    /// Registers a cluster that asks for a certificate as it should; returns the request's name.
    pub fn join(&self, name: &str) -> String {
        self.register(name);
        self.ask(&Ask::agent(name))
    }

    /// Registers many clusters that ask as they should, several at a time; returns the names of their requests.
    pub fn join_all(&self, names: &[String]) -> BTreeMap<String, String> {
        let client = self.client(Who::Bootstrap);
        let join = async |name: &String| {
            let clusters: Api<ManagedCluster> = Api::all(client.clone());
            clusters.create(&PostParams::default(), &managed_cluster(name)).await.unwrap();
            let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
            let request = requests.create(&PostParams::default(), &Ask::agent(name).object()).await.unwrap();
            (name.clone(), request.metadata.name.unwrap())
        };
        self.wait(futures::stream::iter(names).map(join).buffer_unordered(16).collect())
    }

    /// Every cluster that the hub accepts.
    pub fn accepted(&self) -> BTreeSet<String> {
        let api: Api<ManagedCluster> = Api::all(self.admin.clone());
        let clusters = self.wait(api.list(&ListParams::default())).unwrap().items.into_iter();
        let accepted = clusters.filter(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default());
        accepted.map(|cluster| cluster.metadata.name.unwrap()).collect()
    }

    /// Every request that was approved.
    pub fn approved(&self) -> BTreeSet<String> {
        let api: Api<CertificateSigningRequest> = Api::all(self.admin.clone());
        let requests = self.wait(api.list(&ListParams::default())).unwrap().items.into_iter();
        let conditions = |request: &CertificateSigningRequest| {
            request.status.clone().and_then(|status| status.conditions).unwrap_or_default()
        };
        let approved =
            requests.filter(|request| conditions(request).iter().any(|condition| condition.type_ == "Approved"));
        approved.map(|request| request.metadata.name.unwrap()).collect()
    }

    /// What the hub holds of a request.
    pub fn request(&self, name: &str) -> CertificateSigningRequest {
        let api: Api<CertificateSigningRequest> = Api::all(self.admin.clone());
        self.wait(api.get(name)).unwrap()
    }

    /// Whether a request has this condition.
    pub fn is(&self, kind: &str, request: &str) -> bool {
        let conditions = self.request(request).status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == kind)
    }

    /// What the hub holds of a cluster.
    pub fn managed(&self, name: &str) -> ManagedCluster {
        let api: Api<ManagedCluster> = Api::all(self.admin.clone());
        self.wait(api.get(name)).unwrap()
    }

    /// Whether the hub accepts a cluster.
    pub fn accepts(&self, name: &str) -> bool {
        let api: Api<ManagedCluster> = Api::all(self.admin.clone());
        let cluster = self.wait(api.get_opt(name)).unwrap();
        cluster.is_some_and(|cluster| cluster.spec.hub_accepts_client.unwrap_or_default())
    }

    /// Gives a request a condition, as another tool or a person would.
    pub fn conclude(&self, request: &str, verb: &str) {
        self.cluster.kubectl(&["certificate", verb, request]).unwrap();
    }

    /// Lets a cluster join, as its agent writes it.
    pub fn set_conditions(&self, name: &str, conditions: &[(&str, &str)]) {
        let now = jiff::Timestamp::now();
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status)| {
                let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now);
                json!({"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": now})
            })
            .collect();
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let api: Api<ManagedCluster> = Api::all(self.admin.clone());
        self.wait(api.patch_status(name, &PatchParams::default(), &patch)).unwrap();
    }

    /// Removes a cluster, as when it leaves.
    pub fn remove(&self, name: &str) {
        let api: Api<ManagedCluster> = Api::all(self.admin.clone());
        self.wait(api.delete(name, &DeleteParams::default())).unwrap();
    }

    /// Changes a cluster as an administrator.
    pub fn patch(&self, name: &str, patch: Value) {
        let api: Api<ManagedCluster> = Api::all(self.admin.clone());
        self.wait(api.patch(name, &PatchParams::default(), &Patch::Merge(patch))).unwrap();
    }

    /// The resource version of every cluster, request and namespace.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let all = ListParams::default();
        let mut versions = BTreeMap::new();
        let mut note = |kind: &str, meta: kube::core::ObjectMeta| {
            versions.insert(format!("{kind}/{}", meta.name.unwrap()), meta.resource_version.unwrap());
        };
        let clusters: Api<ManagedCluster> = Api::all(self.admin.clone());
        self.wait(clusters.list(&all)).unwrap().items.into_iter().for_each(|object| note("cluster", object.metadata));
        let requests: Api<CertificateSigningRequest> = Api::all(self.admin.clone());
        self.wait(requests.list(&all)).unwrap().items.into_iter().for_each(|object| note("request", object.metadata));
        let namespaces: Api<Namespace> = Api::all(self.admin.clone());
        self.wait(namespaces.list(&all))
            .unwrap()
            .items
            .into_iter()
            .for_each(|object| note("namespace", object.metadata));
        versions
    }

    /// The command `kubectl ocm accept` as an administrator of the hub, where nobody can be asked.
    pub fn accept_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(accept_binary());
        command.args(arguments).arg("--kubeconfig").arg(self.cluster.kubeconfig()).stdin(Stdio::null());
        command
    }

    /// Runs `kubectl ocm accept`.
    pub fn accept(&self, arguments: &[&str]) -> Run {
        let output = self.accept_command(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Has a hub know Registrations.
pub fn know_registrations(hub: &Cluster) {
    apply(hub, ocm_api::crds::registration_manifest().body());
    all_established(hub);
}

/// Waits until every kind that was defined is served.
pub fn all_established(hub: &Cluster) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { established(&connect(hub.kubeconfig()).await.client).await });
}

async fn established(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let is_served = |definition: &CustomResourceDefinition| {
        let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    let begun = Instant::now();
    while !api.list(&ListParams::default()).await.unwrap().items.iter().all(is_served) {
        assert!(begun.elapsed() < SOON, "a definition is not established");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Notes keys of a name as the policy controller does: those of the cluster of this UID, whose certificates end then.
pub fn note(hub: &Cluster, name: &str, uid: &str, until: &str) {
    let object = json!({"apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration",
        "metadata": {"name": name}, "spec": {}});
    apply(hub, &object);
    let keys = json!([{"spkiSha256": "ab".repeat(32), "until": until}]);
    let status = json!({"status": {"clusterUid": uid, "keys": keys}}).to_string();
    let patch = ["patch", "registration", name, "--subresource=status", "--type=merge", "--patch", &status];
    hub.kubectl(&patch).unwrap();
}

/// The secret half of the bootstrap tokens.
const TOKEN: &str = "0123456789abcdef";

/// A token of a service account.
async fn token(client: Client, namespace: &str, account: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
    let asked = accounts.create_token_request(account, &PostParams::default(), &TokenRequest::default()).await.unwrap();
    asked.status.unwrap().token
}

/// The file of upstream's API module.
pub fn upstream(file: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(upstream_folder).join(file)
}

fn upstream_folder() -> PathBuf {
    let output = Command::new("go")
        .args(["mod", "download", "-json", "open-cluster-management.io/api"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../contract/upstream-api"))
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off")
        .output()
        .expect("this test needs Go to download upstream's module");
    assert!(output.status.success(), "go mod download: {}", String::from_utf8_lossy(&output.stderr));
    let module: Value = serde_json::from_slice(&output.stdout).unwrap();
    module["Dir"].as_str().unwrap().into()
}

/// The program under test, as new as its sources and built as we are.
pub fn accept_binary() -> PathBuf {
    cli_tests::binary("kubectl-ocm-accept")
}

/// A kubeconfig of a cluster with a token.
pub fn token_kubeconfig(cluster: &Cluster, token: &str) -> String {
    let ca = cluster.dir().unwrap().join("pki/ca.crt");
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "hub",
        "clusters": [{"name": "hub", "cluster": {"server": cluster.server(), "certificate-authority": ca}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "user"}}],
    })
    .to_string()
}

/// Who may ask, and what everybody who asks may do: the ones who must not may ask as well.
fn bootstrap_objects() -> Vec<Value> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let account = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}});
    let token = |id: &str, groups: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": bootstrap::TOKEN_NAMESPACE},
            "stringData": {
                "token-id": id, "token-secret": TOKEN, "usage-bootstrap-authentication": "true",
                "auth-extra-groups": groups,
            },
        })
    };
    let group = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name});
    let mut objects = vec![
        namespace(namespaces::OPERATOR),
        namespace(namespaces::HUB),
        account(namespaces::OPERATOR, bootstrap::SERVICE_ACCOUNT),
        account(namespaces::OPERATOR, &format!("{}-more", bootstrap::SERVICE_ACCOUNT)),
        account("default", bootstrap::SERVICE_ACCOUNT),
        account(namespaces::HUB, "grpc-server-sa"),
        token("abcdef", bootstrap::TOKEN_GROUP),
        token("nogrup", "system:bootstrappers:others"),
    ];
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": bootstrap::CLUSTER_ROLE},
        "rules": [
            {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
             "verbs": ["create", "get", "list", "watch"]},
            {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"],
             "verbs": ["create", "get", "list", "watch"]},
        ],
    }));
    objects.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody-who-asks"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": bootstrap::CLUSTER_ROLE},
        "subjects": [group("registrars"), group("system:serviceaccounts"), group("system:bootstrappers")],
    }));
    objects
}

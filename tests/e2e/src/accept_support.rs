//! A hub's API server with everybody who may ask it for certificates, and our `accept` against it.
//!
//! There are no controllers of OCM: what is looked at is what `accept` itself writes.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use control_plane::{Cluster, Spec};
use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use ocm_api::names::{annotations, bootstrap, labels, namespaces, signers};
use ocm_core::Silent;
use ocm_kube::Connection;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::until;

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
}

/// Who asks for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The bootstrap service account, with a real token.
    Bootstrap,
    /// A bootstrap token in the right group.
    Token,
    /// A bootstrap token without that group.
    TokenWithoutGroup,
    /// OCM's gRPC server, with a real token.
    Grpc,
    /// A service account of the same name in another namespace.
    AccountElsewhere,
    /// A service account whose name goes on.
    LongerAccount,
    /// A user with a client certificate.
    Eva,
    /// A client certificate with the name of the bootstrap service account.
    CertificateOfAccount,
    /// A client certificate with the name and the group of a bootstrap token.
    CertificateOfToken,
    /// A client certificate with the name of OCM's gRPC server.
    CertificateOfGrpc,
    /// The agent of the cluster `c2`.
    AgentOfC2,
    /// The administrator.
    Admin,
}

impl Who {
    /// Everybody who asks on such a hub.
    pub const ALL: [Self; 12] = [
        Self::Bootstrap,
        Self::Token,
        Self::TokenWithoutGroup,
        Self::Grpc,
        Self::AccountElsewhere,
        Self::LongerAccount,
        Self::Eva,
        Self::CertificateOfAccount,
        Self::CertificateOfToken,
        Self::CertificateOfGrpc,
        Self::AgentOfC2,
        Self::Admin,
    ];
}

/// A request for a certificate.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What `spec.request` holds.
    pub pem: Vec<u8>,
    /// Who asks.
    pub who: Who,
    /// The cluster that the label names.
    pub label: Option<String>,
    /// The add-on that the label names.
    pub addon: Option<String>,
    /// The annotation of the gRPC server.
    pub annotation: Option<String>,
    /// `spec.signerName`.
    pub signer: String,
    /// `spec.usages`.
    pub usages: Vec<String>,
    /// `spec.expirationSeconds`.
    pub seconds: Option<i32>,
    /// The whole name; else the API server makes one up.
    pub name: Option<String>,
}

impl Ask {
    /// The right way to ask for a cluster, with this content.
    pub fn with(cluster: &str, fixture: &csr_fixtures::Fixture) -> Self {
        Self::raw(cluster, fixture.pem().into_bytes())
    }

    /// The right way to ask for a cluster, with this content.
    pub fn raw(cluster: &str, pem: Vec<u8>) -> Self {
        Self {
            pem,
            who: Who::Bootstrap,
            label: Some(cluster.to_owned()),
            addon: None,
            annotation: None,
            signer: signers::KUBE_APISERVER_CLIENT.to_owned(),
            usages: ["digital signature", "key encipherment", "client auth"].map(str::to_owned).to_vec(),
            seconds: None,
            name: None,
        }
    }

    /// Every way of asking for a certificate.
    pub fn every_way() -> Vec<Self> {
        let mut all = Vec::new();
        let contents = [Ask::agent("c1"), Ask::agent("c2"), Ask::with("c1", &csr_fixtures::Fixture::addon("c1", "x"))];
        for content in contents {
            for who in Who::ALL {
                for (label, addon) in [(Some("c1"), None), (Some("c2"), None), (None, None), (Some("c1"), Some("x"))] {
                    for signer in [signers::KUBE_APISERVER_CLIENT, signers::GRPC, "example.com/own"] {
                        for annotation in [None, Some("system:bootstrap:abcdef")] {
                            for (usage, seconds) in
                                [("client auth", None), ("server auth", None), ("client auth", Some(63_072_000))]
                            {
                                let mut ask = content.clone().by(who);
                                ask.label = label.map(str::to_owned);
                                ask.addon = addon.map(str::to_owned);
                                ask.signer = signer.to_owned();
                                ask.annotation = annotation.map(str::to_owned);
                                ask.usages = vec!["digital signature".to_owned(), usage.to_owned()];
                                ask.seconds = seconds;
                                all.push(ask);
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// As an agent asks.
    pub fn agent(cluster: &str) -> Self {
        Self::with(cluster, &csr_fixtures::Fixture::agent(cluster, "a1"))
    }

    /// Somebody else asks.
    #[must_use]
    pub fn by(mut self, who: Who) -> Self {
        self.who = who;
        self
    }

    /// By way of OCM's gRPC server, which names this user.
    #[must_use]
    pub fn grpc(mut self, user: &str) -> Self {
        self.signer = signers::GRPC.to_owned();
        self.annotation = Some(user.to_owned());
        self.by(Who::Grpc)
    }

    /// The object that is created.
    pub fn object(&self) -> CertificateSigningRequest {
        let mut object = CertificateSigningRequest::default();
        object.metadata.name.clone_from(&self.name);
        if self.name.is_none() {
            object.metadata.generate_name = Some(format!("{}-", self.label.as_deref().unwrap_or("nobody")));
        }
        let all = [(labels::CLUSTER_NAME, &self.label), (labels::ADDON_NAME, &self.addon)];
        object.metadata.labels =
            Some(all.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value).clone()?))).collect());
        object.metadata.annotations =
            self.annotation.as_ref().map(|user| [(annotations::CSR_USER.to_owned(), user.clone())].into());
        object.spec.request = ByteString(self.pem.clone());
        object.spec.signer_name.clone_from(&self.signer);
        object.spec.usages = Some(self.usages.clone());
        object.spec.expiration_seconds = self.seconds;
        object
    }
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
        let kubectl = |arguments: &[&str]| cluster.kubectl(arguments).unwrap();
        kubectl(&["apply", "--filename", upstream(MANAGED_CLUSTERS).to_str().unwrap()]);
        kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);
        let dir = cluster.dir().unwrap();
        let file = dir.join("bootstrap.json");
        fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": bootstrap_objects()}).to_string())
            .unwrap();
        kubectl(&["apply", "--filename", file.to_str().unwrap()]);

        let token_of = |namespace: &str, account: &str| {
            kubectl(&["create", "token", account, "--namespace", namespace]).trim().to_owned()
        };
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
            files.into_iter().map(|(who, file)| (who, runtime.block_on(connect(&file)).client)).collect();
        Self { admin: people[&Who::Admin].clone(), cluster, runtime, people }
    }

    /// Waits for something asynchronous.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// The client of somebody.
    pub fn client(&self, who: Who) -> Client {
        self.people[&who].clone()
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
        let now = k8s_openapi::jiff::Timestamp::now();
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

/// The secret half of the bootstrap tokens.
const TOKEN: &str = "0123456789abcdef";

/// A cluster as its agent creates it.
pub fn managed_cluster(name: &str) -> ManagedCluster {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name},
        "spec": {"managedClusterClientConfigs": [{"url": "https://192.0.2.7:6443", "caBundle": "eA=="}]},
    });
    serde_json::from_value(object).unwrap()
}

/// A cluster as our libraries see it, by the user of a kubeconfig.
pub async fn connect(kubeconfig: &Path) -> ocm_kube::Cluster {
    let connection = Connection { kubeconfig: Some(kubeconfig.to_owned()), ..Connection::default() };
    ocm_kube::connect(&connection, Arc::new(Silent)).await.unwrap()
}

/// The file of upstream's API module.
pub fn upstream(file: &str) -> PathBuf {
    let output = Command::new("go")
        .args(["mod", "download", "-json", "open-cluster-management.io/api"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../contract/upstream-api"))
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off")
        .output()
        .expect("this test needs Go to download upstream's module");
    assert!(output.status.success(), "go mod download: {}", String::from_utf8_lossy(&output.stderr));
    let module: Value = serde_json::from_slice(&output.stdout).unwrap();
    Path::new(module["Dir"].as_str().unwrap()).join(file)
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

//! Our webhook as a process beside a hub, and the hub configured to ask it.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use control_plane::Cluster;
use ocm_api::names::webhooks::{MANAGED_CLUSTER_MUTATOR, MANAGED_CLUSTER_VALIDATOR};
use ocm_core::policy_engine::{FailurePolicy, NAMESPACE, PROBE_SENTENCE, Pair, Trust, configurations, probe};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::accept_support::{Hub, all_established, upstream};
use crate::manifests::apply;
use crate::roles::user_with;
use crate::shared_hub::{Shared, SharedHub};
use crate::until;

/// The policies that say what the rules say.
pub const HYGIENE: [&str; 4] = ["agent-self-edit", "cluster-hygiene", "csr-hygiene", "name-claim"];
/// The definition of add-ons in upstream's API module: a policy that comes along asks for them.
const ADDONS: &str = "addon/v1alpha1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml";
/// Where the webhook is asked what policies change: it refuses nothing there.
pub const CHANGES: &str = "/v1/mutate";
/// How long the webhook may take to be ready.
const READY: Duration = Duration::from_secs(60);

/// The folder in which all clusters' servers keep what they have compiled: a module is compiled once with its settings.
#[must_use]
pub fn compiled() -> PathBuf {
    cli_tests::binary("ocm-policy-webhook").with_file_name("compiled-policies")
}

/// The webhook, which ends with this.
pub struct Webhook {
    child: Child,
    /// What it is reached at.
    pub address: String,
    health: String,
    authority: Arc<Authority>,
    own: String,
    folder: PathBuf,
    kubeconfig: PathBuf,
    /// The lines of its decision log.
    pub log: Arc<Mutex<Vec<Value>>>,
    /// What it says to people.
    pub says: Arc<Mutex<String>>,
}

/// Who signs the certificates of webhooks.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

impl Webhook {
    /// Starts it beside a hub with the documented rights, and waits until it is ready.
    pub fn start(hub: &Cluster, arguments: &[&str]) -> Self {
        Self::start_as(hub, user_with(hub, "webhook", &["policy-webhook.yaml"]), arguments)
    }

    /// Another one with the same rights, when this one has ended.
    pub fn restart(mut self, hub: &Cluster) -> Self {
        self.kill();
        Self::start_as(hub, self.kubeconfig.clone(), &[])
    }

    /// One more with the same rights and the same authority.
    pub fn another(&self, hub: &Cluster, arguments: &[&str]) -> Self {
        Self::spawn_by(hub, self.kubeconfig.clone(), arguments, self.authority.clone()).ready()
    }

    fn start_as(hub: &Cluster, kubeconfig: PathBuf, arguments: &[&str]) -> Self {
        Self::spawn(hub, kubeconfig, arguments).ready()
    }

    fn ready(self) -> Self {
        let begun = Instant::now();
        while !self.get("/readyz").starts_with("HTTP/1.1 200") {
            assert!(begun.elapsed() < READY, "it is not ready: {}", self.get("/readyz"));
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Starts it as the user of a kubeconfig.
    pub fn spawn(hub: &Cluster, kubeconfig: PathBuf, arguments: &[&str]) -> Self {
        Self::spawn_by(hub, kubeconfig, arguments, Arc::new(Authority::new()))
    }

    fn spawn_by(hub: &Cluster, kubeconfig: PathBuf, arguments: &[&str], authority: Arc<Authority>) -> Self {
        // Several at once have certificates of their own, and share what they have compiled.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = hub.dir().unwrap().join(format!("webhook-{number}"));
        fs::create_dir_all(&folder).unwrap();
        let own = own_address(hub);
        let [address, health] = [(); 2].map(|()| free(&own));
        write_certificate(&authority.issuer, &own, &folder);
        let mut command = Command::new(cli_tests::binary("ocm-policy-webhook"));
        command.args(["webhook", "--listen", &address, "--health-listen", &health]).arg("--tls-cert-file");
        command.arg(folder.join("tls.crt")).arg("--tls-private-key-file").arg(folder.join("tls.key"));
        command.arg("--cache-dir").arg(compiled()).arg("--kubeconfig");
        command.arg(&kubeconfig);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, out) = (log.clone(), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                lines.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let says = Arc::new(Mutex::new(String::new()));
        let (said, err) = (says.clone(), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                *said.lock().unwrap() += &format!("{line}\n");
            }
        });
        Self { child, address, health, authority, own, folder, kubeconfig, log, says }
    }

    /// What its address for probes and scrapes says.
    pub fn get(&self, path: &str) -> String {
        crate::get(&self.health, path)
    }

    /// Serves with another certificate of the same authority; returns its PEM.
    pub fn rotate(&self) -> String {
        write_certificate(&self.authority.issuer, &self.own, &self.folder)
    }

    /// Serves with this pair from its next look on.
    pub fn serve_with(&self, pair: &Pair) {
        write_pair(&self.folder, &pair.certificate, &pair.key);
    }

    /// The memory that it has, and the most that it had, in bytes.
    pub fn memory(&self) -> [u64; 2] {
        crate::memory(self.child.id())
    }

    /// Ends it without a word, as the kernel would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to end; returns how it did, when it has.
    pub fn terminate(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// Lets the API server ask it about what registers clusters, and waits until it does.
    pub fn configure(&self, hub: &Cluster) {
        let config =
            json!({"url": format!("https://{}/v1/validate", self.address), "caBundle": base64(&self.authority.pem)});
        let webhook = |name: &str, group: &str, resources: &[&str], operations: &[&str]| {
            json!({
                "name": format!("{name}.policy.kubectl-ocm.dev"), "clientConfig": config, "failurePolicy": "Fail",
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
                "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": resources}],
            })
        };
        let clusters = "cluster.open-cluster-management.io";
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "ocm-policy-webhook"},
            "webhooks": [
                webhook("clusters", clusters, &["managedclusters"], &["CREATE", "UPDATE", "DELETE"]),
                webhook("requests", "certificates.k8s.io", &["certificatesigningrequests"], &["CREATE"]),
                webhook("approvals", "certificates.k8s.io", &["certificatesigningrequests/approval"], &["UPDATE"]),
            ],
        });
        apply(hub, &object);
        // Each API server learns of it by its own watch.
        let before = self.reviews();
        let probe = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "probe"},
            "spec": {"hubAcceptsClient": false},
        });
        let file = self.folder.join("probe.json");
        fs::write(&file, probe.to_string()).unwrap();
        let begun = Instant::now();
        while self.reviews() == before {
            assert!(begun.elapsed() < READY, "the API server does not ask");
            let _ = hub.kubectl(&["create", "--dry-run=server", "--filename", file.to_str().unwrap()]);
        }
    }

    /// Lets the API server ask it for changes of clusters that are created.
    pub fn configure_changes(&self, hub: &Cluster) {
        let config =
            json!({"url": format!("https://{}/v1/mutate", self.address), "caBundle": base64(&self.authority.pem)});
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "ocm-policy-webhook"},
            "webhooks": [{
                "name": "changes.policy.kubectl-ocm.dev", "clientConfig": config, "failurePolicy": "Fail",
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
                "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                           "operations": ["CREATE"], "resources": ["managedclusters"]}],
            }],
        });
        apply(hub, &object);
    }

    /// Lets the API server ask it as an installation does, and waits until it was seen to.
    pub fn configure_and_wait(&self, hub: &Cluster) {
        self.configure_as_installed(hub, FailurePolicy::Fail);
        self.is_asked(hub);
    }

    /// Waits until the API server was seen to ask it.
    pub fn is_asked(&self, hub: &Cluster) {
        let file = self.folder.join("probe.json");
        fs::write(&file, probe().body().to_string()).unwrap();
        until("the API server asks", || {
            let said = hub.kubectl(&["create", "--dry-run=server", "--filename", file.to_str().unwrap()]);
            said.is_err_and(|error| error.to_string().contains(PROBE_SENTENCE))
        });
    }

    /// Lets the API server ask it as an installation does.
    pub fn configure_as_installed(&self, hub: &Cluster, failure: FailurePolicy) {
        self.configure_at(hub, &self.address, failure);
    }

    /// The same at another address of this machine, which leads to it and others with its authority.
    pub fn configure_at(&self, hub: &Cluster, address: &str, failure: FailurePolicy) {
        for object in configurations(&Trust::Bundle(self.authority.pem.clone()), failure).objects() {
            let mut body = object.body().clone();
            for entry in body["webhooks"].as_array_mut().unwrap() {
                let config = &mut entry["clientConfig"];
                let path = config["service"]["path"].as_str().unwrap().to_owned();
                *config = json!({"url": format!("https://{address}{path}"), "caBundle": config["caBundle"]});
            }
            apply(hub, &body);
        }
    }

    /// Has the API server ask it in the place of Open Cluster Management's webhooks of clusters, which are not there.
    pub fn stand_in(&self, hub: &Cluster) {
        let client =
            json!({"url": format!("https://{}{CHANGES}", self.address), "caBundle": base64(&self.authority.pem)});
        stand_in(hub, &client);
    }

    /// How many reviews it has answered.
    fn reviews(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// How many requests of this kind it has judged.
    pub fn decisions_of(&self, operation: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line["operation"] == operation).count()
    }

    /// The lines of its log about an object of this name.
    pub fn decisions(&self, name: &str) -> Vec<Value> {
        self.log.lock().unwrap().iter().filter(|line| line["name"] == name).cloned().collect()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let last: Vec<String> = log.iter().rev().take(5).map(Value::to_string).collect();
            let says = self.says.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            panic_note(&format!("{says}{}\n{}", self.get("/readyz"), last.join("\n")));
            drop((log, says));
        }
        self.kill();
    }
}

/// Makes add-ons known to a hub that is none of Open Cluster Management's: policies that come along ask for them.
pub fn add_ons(hub: &Cluster) {
    hub.kubectl(&["apply", "--filename", upstream(ADDONS).to_str().unwrap()]).unwrap();
}

/// Makes HubPolicies known to a hub, which gets the namespace of the policy engine.
pub fn prepare(hub: &Cluster) {
    apply(hub, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}));
    apply(hub, ocm_api::crds::hub_policy_manifest().body());
    all_established(hub);
}

/// A hub that knows these kinds, on a cluster that the tests of a process use one after the other: to have a namespace deleted
/// takes five seconds at least.
pub fn shared() -> SharedHub {
    static HUBS: Shared<Hub> = Shared::new(|| {
        let hub = Hub::start("webhook");
        add_ons(&hub.cluster);
        prepare(&hub.cluster);
        hub
    });
    HUBS.get()
}

/// Configures Open Cluster Management's webhooks of clusters as its operator does, with whoever answers here in their place.
pub fn stand_in(hub: &Cluster, client: &Value) {
    let rule = json!({
        "apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": ["managedclusters"],
    });
    let kinds = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
    for (kind, name) in kinds.into_iter().zip([MANAGED_CLUSTER_VALIDATOR, MANAGED_CLUSTER_MUTATOR]) {
        let entry = json!({
            "name": name, "clientConfig": client, "failurePolicy": "Fail", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 10, "rules": [rule],
        });
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "webhooks": [entry],
        });
        apply(hub, &object);
    }
}

/// Puts a policy on the hub.
pub fn policy(hub: &Cluster, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": name}, "spec": spec,
    });
    apply(hub, &object);
}

/// What a failed test shows beside.
#[expect(clippy::print_stderr, reason = "a test that failed shows why")]
fn panic_note(text: &str) {
    eprintln!("{text}");
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// The address of this machine at which a cluster reaches it.
pub fn own_address(hub: &Cluster) -> String {
    let config: Value = serde_json::from_str(&hub.kubectl(&["config", "view", "-o", "json"]).unwrap()).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Nothing is sent: the system chooses the address that it would send from.
    socket.connect(server.trim_start_matches("https://")).unwrap();
    socket.local_addr().unwrap().ip().to_string()
}

/// A port of this address that nobody listens at.
fn free(address: &str) -> String {
    TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().to_string()
}

fn write_certificate(authority: &Issuer<'static, KeyPair>, address: &str, folder: &Path) -> String {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([address.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap().pem();
    write_pair(folder, &certificate, &key.serialize_pem());
    certificate
}

fn write_pair(folder: &Path, certificate: &str, key: &str) {
    fs::write(folder.join("tls.key"), key).unwrap();
    fs::write(folder.join("tls.crt"), certificate).unwrap();
}

//! Our controller as a process beside a hub.

#![expect(clippy::print_stderr, reason = "a test that fails says what the controller said")]
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use kube::Api;
use kube::api::{ApiResource, ListParams};
use kube::core::DynamicObject;
use ocm_api::Registration;
use serde_json::{Value, json};

use crate::accept_support::{Hub, all_established};
use crate::manifests::apply;
use crate::roles::user_with;
use crate::shared_hub::{Shared, SharedHub};
use crate::webhook_support::{Webhook, add_ons, compiled, policy, prepare};

/// How long it may take to be ready.
const READY: Duration = Duration::from_secs(60);
/// The policy of the tests that approves: what the bootstrap account asks for.
pub const APPROVES: &str = "approves";

/// A hub that knows our kinds and accepts no cluster by itself, with policies about hygiene and, if wanted, one that approves.
pub fn hub(name: &str, approves: bool) -> Hub {
    hub_as(&Spec::api(name), approves)
}

/// The same on such a cluster.
pub fn hub_as(spec: &Spec, approves: bool) -> Hub {
    let hub = Hub::start_as(spec);
    know_kinds(&hub.cluster);
    judge(&hub.cluster, approves);
    hub
}

/// The same on a cluster that the tests of a process use one after the other.
pub fn shared(approves: bool) -> SharedHub {
    static HUBS: Shared<Hub> = Shared::new(|| {
        let hub = Hub::start("policies");
        know_kinds(&hub.cluster);
        hub
    });
    let hub = HUBS.get();
    judge(&hub.cluster, approves);
    hub
}

/// Has a hub know the kinds of which policies and the controller read.
fn know_kinds(hub: &Cluster) {
    add_ons(hub);
    prepare(hub);
    apply(hub, ocm_api::crds::registration_manifest().body());
    apply(hub, ocm_api::crds::cluster_manager_manifest().body());
    all_established(hub);
}

/// Has a hub accept no cluster by itself, and makes its policies.
fn judge(hub: &Cluster, approves: bool) {
    let manager = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
        "metadata": {"name": "cluster-manager"}, "spec": {},
    });
    apply(hub, &manager);
    for name in ["csr-hygiene", "name-claim"] {
        policy(hub, name, json!({"module": {"builtin": name}}));
    }
    if approves {
        policy(hub, APPROVES, approving(true));
    }
}

/// The policy that approves what the bootstrap account asks for, or allows it alone.
pub fn approving(approves: bool) -> Value {
    let account = "open-cluster-management/agent-registration-bootstrap";
    json!({
        "module": {"builtin": "allowed-identities"}, "autoApprove": approves,
        "settings": {"rules": [{"operations": ["join"], "serviceAccounts": [account]}]},
    })
}

/// The controller, which ends with this.
pub struct Controller {
    child: Child,
    health: String,
    /// The lines of its decision log.
    pub log: Arc<Mutex<Vec<Value>>>,
    /// What it says to people.
    pub says: Arc<Mutex<String>>,
}

impl Controller {
    /// Starts it with the documented rights, and waits until it is ready.
    pub fn start(hub: &Hub) -> Self {
        Self::start_as(&user_with(&hub.cluster, "controller", &["policy-controller.yaml"]))
    }

    /// Starts it as the user of a kubeconfig.
    pub fn start_as(kubeconfig: &Path) -> Self {
        let controller = Self::spawn(kubeconfig);
        let begun = Instant::now();
        while !controller.get("/readyz").starts_with("HTTP/1.1 200") {
            assert!(begun.elapsed() < READY, "it is not ready: {}", controller.get("/readyz"));
            std::thread::sleep(Duration::from_millis(20));
        }
        controller
    }

    /// Starts it.
    pub fn spawn(kubeconfig: &Path) -> Self {
        let health = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let mut command = Command::new(cli_tests::binary("ocm-policy-webhook"));
        command.args(["controller", "--health-listen", &health, "--kubeconfig"]).arg(kubeconfig);
        command.arg("--cache-dir").arg(compiled());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
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
        Self { child, health, log, says }
    }

    /// What its address for probes and scrapes says.
    pub fn get(&self, path: &str) -> String {
        crate::get(&self.health, path)
    }

    /// Whether it is the one that acts.
    pub fn leads(&self) -> bool {
        self.get("/metrics").contains("ocm_policy_leader 1")
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

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Tells it to end; returns how it did, when it has.
    pub fn terminate(&mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "{}\n{}",
                self.says.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
                self.get("/readyz")
            );
        }
        self.kill();
    }
}

/// What the controller has written of a cluster; null: nothing.
pub fn registration(hub: &Hub, name: &str) -> Value {
    let found = hub.wait(written(hub).get_opt(name)).unwrap();
    found.map_or(Value::Null, |found| found.data["status"].clone())
}

/// What the controller has written of every cluster.
pub fn registrations(hub: &Hub) -> BTreeMap<String, Value> {
    let list = hub.wait(written(hub).list(&ListParams::default())).unwrap();
    let named = |item: DynamicObject| (item.metadata.name.unwrap(), item.data["status"].clone());
    list.items.into_iter().map(named).collect()
}

/// Registrations as they are written, with what our types do not know.
fn written(hub: &Hub) -> Api<DynamicObject> {
    Api::all_with(hub.admin.clone(), &ApiResource::erase::<Registration>(&()))
}

/// How often controllers of these users have approved each request, and accepted each cluster, of an audited hub.
pub fn let_in(hub: &Hub, users: &[&str]) -> [BTreeMap<String, usize>; 2] {
    let answers: Vec<_> = users.iter().flat_map(|user| hub.cluster.answers_to(user).unwrap()).collect();
    [("update", "certificatesigningrequests/approval"), ("patch", "managedclusters")].map(|(verb, resource)| {
        let mut times = BTreeMap::new();
        for one in answers.iter().filter(|one| (&*one.verb, &*one.resource, one.code) == (verb, resource, 200)) {
            *times.entry(one.name.clone()).or_default() += 1;
        }
        times
    })
}

/// Which request is the one that fails.
enum Which {
    /// The last of so many writes. Those of leases and events count for nothing, nor do dry runs and questions who
    /// asks.
    Write(usize),
    /// One whose first line holds this.
    Naming(String),
}

/// What becomes of that request, and of the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failing {
    /// The hub has done it, and nothing passes any more.
    ForGood,
    /// The hub has done it, and everything after it passes.
    Once,
    /// Nothing passes in either direction, it included, until all of it is let pass.
    Meanwhile,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    Failed,
    Healed,
}

/// What is to fail, and whether it has.
struct Fault {
    which: Mutex<Which>,
    how: Failing,
    state: Mutex<State>,
    changed: Condvar,
}

impl Fault {
    fn has_failed(&self) -> bool {
        *self.state.lock().unwrap() != State::Well
    }

    fn becomes(&self, state: State) {
        *self.state.lock().unwrap() = state;
        self.changed.notify_all();
    }

    /// Waits while everything is held.
    fn wait(&self) {
        if self.how == Failing::Meanwhile {
            let state = self.state.lock().unwrap();
            drop(self.changed.wait_while(state, |state| *state == State::Failed).unwrap());
        }
    }

    /// Whether the request with this first line is the one that fails.
    fn is_about(&self, line: &str) -> bool {
        match &mut *self.which.lock().unwrap() {
            Which::Naming(words) => line.contains(words.as_str()),
            Which::Write(left) => {
                let counts =
                    !["/leases", "/events", "/selfsubjectreviews", "dryRun=All"].iter().any(|kind| line.contains(kind));
                let is_write = ["POST ", "PUT ", "PATCH ", "DELETE "].iter().any(|verb| line.starts_with(verb));
                *left = left.saturating_sub(usize::from(counts && is_write));
                counts && is_write && *left == 0
            }
        }
    }
}

/// A proxy between the controller and a hub that fails with one request: the hub has done it, and the controller does not hear so,
/// or it is on its way while the controller is cut off.
pub struct FailingProxy {
    kubectl: Child,
    /// The kubeconfig with which to go through it.
    pub kubeconfig: PathBuf,
    fault: Arc<Fault>,
}

impl FailingProxy {
    /// Starts it, with the rights of a kubeconfig. When the n-th write has failed, nothing passes any more.
    pub fn start(hub: &Cluster, as_user: &Path, writes: usize) -> Self {
        Self::failing(hub, as_user, Which::Write(writes), Failing::ForGood)
    }

    /// The same, but it answers that one write with a time-out, and everything after it passes.
    pub fn timing_out(hub: &Cluster, as_user: &Path, writes: usize) -> Self {
        Self::failing(hub, as_user, Which::Write(writes), Failing::Once)
    }

    /// The same with a request whose first line holds these words.
    pub fn timing_out_at(hub: &Cluster, as_user: &Path, words: &str) -> Self {
        Self::failing(hub, as_user, Which::Naming(words.to_owned()), Failing::Once)
    }

    /// From a request on whose first line holds these words, that one included, nothing passes until it heals: as where a network
    /// falls apart, and what was on its way arrives later.
    pub fn holding(hub: &Cluster, as_user: &Path, words: &str) -> Self {
        Self::failing(hub, as_user, Which::Naming(words.to_owned()), Failing::Meanwhile)
    }

    fn failing(hub: &Cluster, as_user: &Path, which: Which, how: Failing) -> Self {
        let (kubectl, behind) = kubectl_proxy(hub, as_user);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let fault = Fault { which: Mutex::new(which), how, state: Mutex::new(State::Well), changed: Condvar::new() };
        let fault = Arc::new(fault);
        let all = fault.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let fault = all.clone();
                std::thread::spawn(move || connection(stream, behind, &fault));
            }
        });
        let kubeconfig = kubeconfig_through(hub, &format!("failing-{port}"), port);
        Self { kubectl, kubeconfig, fault }
    }

    /// Whether the request came.
    pub fn failed(&self) -> bool {
        self.fault.has_failed()
    }

    /// Lets pass what is held, and everything after it.
    pub fn heal(&self) {
        self.fault.becomes(State::Healed);
    }
}

impl Drop for FailingProxy {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
        // Nobody is held for whom there is nothing left to reach.
        self.heal();
    }
}

/// A proxy between the controller and a hub that holds back what the hub tells of changes of its clusters, while it is told to.
pub struct HoldingProxy {
    kubectl: Child,
    /// The kubeconfig with which to go through it.
    pub kubeconfig: PathBuf,
    holds: Arc<AtomicBool>,
}

impl HoldingProxy {
    /// Starts it, with the rights of a kubeconfig. Everything passes.
    pub fn start(hub: &Cluster, as_user: &Path) -> Self {
        let (kubectl, behind) = kubectl_proxy(hub, as_user);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let holds = Arc::new(AtomicBool::new(false));
        let is_held = holds.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let is_held = is_held.clone();
                std::thread::spawn(move || holding(stream, behind, &is_held));
            }
        });
        Self { kubectl, kubeconfig: kubeconfig_through(hub, "holding", port), holds }
    }

    /// Holds them back, or has everything pass again.
    pub fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }
}

impl Drop for HoldingProxy {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

/// Passes everything on, and answers to a watch of clusters later. Whoever watches sends nothing else on its connection.
fn holding(client: TcpStream, behind: u16, is_held: &Arc<AtomicBool>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", behind)) else { return };
    let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let watches = Arc::new(AtomicBool::new(false));
    let (is_watch, is_held) = (watches.clone(), is_held.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(read @ 1..) = back.read(&mut buffer) {
            while is_watch.load(Ordering::Relaxed) && is_held.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
            if to_client.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let (mut client, mut server) = (client, server);
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..read]);
        let is_watch = text.starts_with("GET ")
            && text.lines().next().is_some_and(|line| line.contains("/managedclusters?") && line.contains("watch="));
        watches.store(is_watch, Ordering::Relaxed);
        if server.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}

/// Has kubectl pass requests on to a hub with the rights of a kubeconfig: its process, and the port that it listens on.
fn kubectl_proxy(hub: &Cluster, as_user: &Path) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = hub.kubectl_command();
    command.args(["proxy", "--port", &port.to_string(), "--kubeconfig"]).arg(as_user);
    let kubectl = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < READY, "kubectl proxy does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    (kubectl, port)
}

/// A kubeconfig with which to go through a proxy that listens on this port.
fn kubeconfig_through(hub: &Cluster, name: &str, port: u16) -> PathBuf {
    let kubeconfig = hub.dir().unwrap().join(format!("{name}.kubeconfig"));
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "hub",
        "clusters": [{"name": "hub", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "user", "user": {}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "user"}}],
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    kubeconfig
}

/// Passes requests on, one after the other, until the last write that is allowed.
fn connection(client: TcpStream, behind: u16, fault: &Arc<Fault>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", behind)) else { return };
    let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let mut tells = client.try_clone().unwrap();
    let last = Arc::new(Mutex::new(false));
    let (silent, holds) = (last.clone(), fault.clone());
    let (heard, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(read) = back.read(&mut buffer) {
            if read == 0 {
                break;
            }
            // The hub has done it. Nobody hears so.
            if *silent.lock().unwrap() {
                let _ = heard.send(());
                return;
            }
            holds.wait();
            if to_client.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let (mut reader, mut server) = (BufReader::new(client), server);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_err() || line.is_empty() {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let has_failed = fault.has_failed();
        if has_failed && fault.how == Failing::ForGood {
            return;
        }
        let mut ends = !has_failed && fault.is_about(head.lines().next().unwrap_or_default());
        if ends && fault.how == Failing::Meanwhile {
            fault.becomes(State::Failed);
            ends = false;
        }
        // Also where nobody waits for the answer any more: it is on its way.
        fault.wait();
        *last.lock().unwrap() = ends;
        if server.write_all(head.as_bytes()).is_err() || server.write_all(&body).is_err() {
            return;
        }
        if ends {
            let _ = hears.recv_timeout(READY);
            fault.becomes(State::Failed);
            if fault.how == Failing::Once {
                let said = "HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = tells.write_all(said.as_bytes());
                let _ = tells.shutdown(std::net::Shutdown::Both);
            }
            return;
        }
    }
}

/// Has a hub hold whatever clusters its inventory does not know. The webhook, and the kubeconfig of whoever runs the controller.
///
/// # Panics
/// When the hub does not take what this needs.
pub fn holding_unknown(hub: &Cluster) -> (Webhook, PathBuf) {
    prepare(hub);
    apply(hub, ocm_api::crds::registration_manifest().body());
    all_established(hub);
    let webhook = Webhook::start(hub, &[]);
    let controller = user_with(hub, "controller", &["policy-controller.yaml"]);
    let namespace = "--namespace=open-cluster-management";
    for words in [
        &["create", "configmap", "cluster-inventory", "--from-literal=known="][..],
        &["create", "role", "inventory", "--verb=get,list,watch", "--resource=configmaps"],
        &["create", "rolebinding", "inventory", "--role=inventory", "--user=controller", "--user=webhook"],
    ] {
        hub.kubectl(&[words, &[namespace]].concat()).expect("it is made");
    }
    policy(hub, "name-claim", json!({"module": {"builtin": "name-claim"}}));
    policy(hub, "inventory", json!({"module": {"builtin": "inventory"}, "settings": {"holdUnknown": true}}));
    webhook.configure_and_wait(hub);
    (webhook, controller)
}

//! Hubs and nodes that the tests of a process use one after the other: each finds them as they were when they had started. To start
//! one is the work of five or ten seconds.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use control_plane::{Cluster, Spec};
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::accept_support::{Hub, Who, managed_cluster};
use crate::connection::connect;
use crate::pause_after;
use crate::residue::everything;

/// How long may pass until a cluster is as it was; another one is started after that.
const LONG: Duration = Duration::from_secs(30);
/// How long one is used: the tokens of whoever asks on a hub end after an hour.
const OLD: Duration = Duration::from_secs(1800);
/// Kinds of which the cluster makes every object by itself.
const OF_CLUSTER: [&str; 10] = [
    "APIService",
    "CSINode",
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "FlowSchema",
    "IPAddress",
    "Node",
    "PriorityLevelConfiguration",
    "ServiceCIDR",
];
/// How many objects are deleted at once.
const AT_ONCE: usize = 8;
/// The group of everything that judges what is written.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// What tests use one after the other.
pub trait Reused: 'static {
    /// Waits for something asynchronous.
    fn waits<T>(&self, future: impl Future<Output = T>) -> T;

    /// What an administrator sends requests with.
    fn admin(&self) -> Client;

    /// Whether something is refused that every policy would refuse: API servers learn a little later of what is gone.
    fn is_judged(&self) -> bool;
}

impl Reused for Hub {
    fn waits<T>(&self, future: impl Future<Output = T>) -> T {
        self.wait(future)
    }

    fn admin(&self) -> Client {
        self.admin.clone()
    }

    fn is_judged(&self) -> bool {
        let mut wrong = managed_cluster("judged");
        wrong.metadata.labels = Some([("env".to_owned(), "prod".to_owned())].into());
        let api: Api<ManagedCluster> = Api::all(self.client(Who::Bootstrap));
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        self.wait(api.create(&dry, &wrong)).is_err()
    }
}

/// A node with nothing of ours on it.
pub struct Plain {
    cluster: Cluster,
    runtime: Runtime,
    admin: Client,
}

impl Plain {
    fn start() -> Self {
        let cluster = Cluster::start(&Spec::node("plain")).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let admin = runtime.block_on(connect(cluster.kubeconfig())).client;
        Self { cluster, runtime, admin }
    }
}

impl Deref for Plain {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Reused for Plain {
    fn waits<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn admin(&self) -> Client {
        self.admin.clone()
    }

    fn is_judged(&self) -> bool {
        // It knows no kind of which policies are.
        false
    }
}

/// Where the tests of a process find what is started so.
pub struct Shared<R: 'static> {
    start: fn() -> R,
    free: Mutex<Option<Kept<R>>>,
}

/// What a test has for itself, until it ends. A test that fails leaves it to nobody.
pub struct InUse<R: 'static> {
    kept: Option<Kept<R>>,
    of: &'static Shared<R>,
}

/// A hub that a test has for itself.
pub type SharedHub = InUse<Hub>;

/// A node that a test has for itself.
pub type SharedNode = InUse<Plain>;

/// A hub with everybody who asks.
pub fn hub() -> SharedHub {
    static HUBS: Shared<Hub> = Shared::new(|| Hub::start("shared"));
    HUBS.get()
}

/// A node with nothing of ours on it.
pub fn node() -> SharedNode {
    static NODES: Shared<Plain> = Shared::new(Plain::start);
    NODES.get()
}

impl<R: Reused> Shared<R> {
    /// What is started so, one for all tests that do not run beside each other.
    #[must_use]
    pub const fn new(start: fn() -> R) -> Self {
        Self { start, free: Mutex::new(None) }
    }

    /// One with nothing on it but what it has when it has started.
    pub fn get(&'static self) -> InUse<R> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = free.and_then(Kept::set_back).unwrap_or_else(|| Kept::of((self.start)()));
        InUse { kept: Some(kept), of: self }
    }
}

impl<R: 'static> Deref for InUse<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.kept.as_ref().unwrap().one
    }
}

impl<R: 'static> Drop for InUse<R> {
    fn drop(&mut self) {
        if !thread::panicking() {
            *self.of.free.lock().unwrap_or_else(PoisonError::into_inner) = self.kept.take();
        }
    }
}

/// Group and kind of an object, its namespace, and its name.
type Key = (String, String, String);

/// One, and what it held when it had started.
struct Kept<R> {
    one: R,
    since: Instant,
    before: BTreeMap<Key, DynamicObject>,
}

impl<R: Reused> Kept<R> {
    fn of(one: R) -> Self {
        let (client, since) = (one.admin(), Instant::now());
        let before = one.waits(async {
            let mut before = BTreeMap::new();
            let all = everything(&client).await.into_iter().filter(is_of_tests);
            // Events come and go.
            for (kind, metadata) in all.filter(|(kind, _)| kind.kind != "Event") {
                let whole = api(&client, &kind, &metadata).get(metadata.name.as_deref().unwrap()).await.unwrap();
                before.insert(key(&kind, &metadata), whole);
            }
            before
        });
        Self { one, since, before }
    }

    /// It, as it was; none where it does not become so.
    fn set_back(mut self) -> Option<Self> {
        if self.since.elapsed() > OLD {
            return None;
        }
        let (client, begun, mut looks) = (self.one.admin(), Instant::now(), 0);
        let kept = loop {
            let looked = Instant::now();
            let all = self.one.waits(everything(&client)).into_iter().filter(is_of_tests);
            let (kept, mut more): (Vec<_>, Vec<_>) =
                all.partition(|(kind, metadata)| self.before.contains_key(&key(kind, metadata)));
            if kept.len() < self.before.len() || begun.elapsed() > LONG {
                return None;
            }
            // A node still tells for a while what becomes of its pods.
            looks += 1;
            if more.is_empty() || (looks > 3 && more.iter().all(|(kind, _)| kind.kind == "Event")) {
                break kept;
            }
            // What judges goes first: whoever would answer for it has ended.
            if more.iter().any(|(kind, _)| kind.group == ADMISSION) {
                more.retain(|(kind, _)| kind.group == ADMISSION);
            }
            let deletions = more.iter().map(|(kind, metadata)| delete(&client, kind, metadata));
            self.one.waits(stream::iter(deletions).buffer_unordered(AT_ONCE).collect::<Vec<()>>());
            pause_after(looked);
        };
        for (kind, metadata) in kept {
            let before = self.before.get_mut(&key(&kind, &metadata))?;
            // Another one of its name, or one that goes.
            if before.metadata.uid != metadata.uid || metadata.deletion_timestamp.is_some() {
                return None;
            }
            if before.metadata.resource_version != metadata.resource_version {
                before.metadata.resource_version = metadata.resource_version.clone();
                let api = api(&client, &kind, &metadata);
                *before =
                    self.one.waits(api.replace(metadata.name.as_deref()?, &PostParams::default(), before)).ok()?;
            }
        }
        // Also where a test has deleted by itself what judged.
        while self.one.is_judged() {
            if begun.elapsed() > LONG {
                return None;
            }
            thread::sleep(Duration::from_millis(200));
        }
        Some(self)
    }
}

fn key(kind: &ApiResource, metadata: &ObjectMeta) -> Key {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (format!("{}/{}", kind.group, kind.kind), text(&metadata.namespace), text(&metadata.name))
}

fn api(client: &Client, kind: &ApiResource, metadata: &ObjectMeta) -> Api<DynamicObject> {
    match &metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
        None => Api::all_with(client.clone(), kind),
    }
}

/// Has an object deleted. What cannot be deleted yet is found again.
async fn delete(client: &Client, kind: &ApiResource, metadata: &ObjectMeta) {
    let (api, name) = (api(client, kind, metadata), metadata.name.as_deref().unwrap());
    // The API server itself waits for these until all that is in them is gone.
    let is_emptied = ["Namespace", "CustomResourceDefinition"].contains(&kind.kind.as_str());
    let deletion = match kind.kind.as_str() {
        // Nobody waits for what runs in it.
        "Pod" => DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() },
        _ => DeleteParams::background(),
    };
    if metadata.deletion_timestamp.is_none() || kind.kind == "Pod" {
        let _ = api.delete(name, &deletion).await;
    }
    if !is_emptied && metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty()) {
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = api.patch(name, &PatchParams::default(), &none).await;
    }
}

/// Whether tests have made an object, or the hub has it for them. Everything else the cluster makes by itself, and again.
fn is_of_tests((kind, metadata): &(ApiResource, ObjectMeta)) -> bool {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
    let is_of_cluster = match kind.kind.as_str() {
        kind if OF_CLUSTER.contains(&kind) => true,
        "ConfigMap" => namespace == "kube-system" || name == "kube-root-ca.crt",
        "Lease" => namespace == "kube-node-lease" || namespace == "kube-system",
        "Namespace" => name == "default" || name.starts_with("kube-"),
        "PriorityClass" => name.starts_with("system-"),
        "Service" => (namespace.as_str(), name.as_str()) == ("default", "kubernetes"),
        "ServiceAccount" => namespace == "kube-system" || name == "default",
        _ => metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("kubernetes.io/bootstrapping")),
    };
    !is_of_cluster
}

//! What the controller itself knows of the hub: everything that the rules of `accept` look at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use ocm_api::ManagedCluster;
use ocm_api::names::{hub as hub_names, labels};
use ocm_api::parts::ClusterRoleBinding;
use ocm_api::registration::RegistrationStatus;
use ocm_core::accept::Found;
use ocm_core::bootstrap;
use ocm_core::csr::{Request, State};
use ocm_policy_server::watch::Unserved;
use ocm_policy_server::{Packed, Packer, watch};
use ocm_rules::claim::Namespace;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::status;
use crate::store::Store;

/// What was not known to be so for this long is not known.
const OLDEST: Duration = Duration::from_secs(60);
/// Bytes of a request beyond which it is no agent's, and is not kept.
const LARGEST: usize = 64 << 10;
/// What is kept of a certificate, the largest part of a request: that there is one, in base64.
const CERTIFICATE: &str = "eA==";

/// Whose registration has to be looked at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// That of this cluster.
    Name(String),
    /// Those of all that wait.
    Waiting,
}

/// A certificate request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) version: String,
    /// The object, of whose certificate nothing is kept but that there is one; none where it is too large for an agent's.
    pub(crate) object: Option<Packed>,
}

/// A certificate request as it is kept: there are as many as clusters, and more, and few are looked at at the same time.
#[derive(Debug, PartialEq)]
struct KeptRequest {
    version: String,
    /// The clusters that it is for.
    clusters: Box<[String]>,
    /// The [`Request`].
    request: Packed,
    object: Option<Packed>,
}

impl KeptRequest {
    /// The request; none: it was not packed as one.
    fn read(&self) -> Option<Arc<Asked>> {
        let request = self.request.read_as()?;
        Some(Arc::new(Asked { request, version: self.version.clone(), object: self.object.clone() }))
    }
}

/// The clusters that each request is for.
type Index = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

/// Stores that follow the hub until they are dropped.
pub(crate) struct Hub {
    clusters: Arc<Store<Packed>>,
    requests: Arc<Store<Arc<KeptRequest>>>,
    by_cluster: Index,
    namespaces: Arc<Store<Namespace>>,
    roles: Arc<Store<Option<Timestamp>>>,
    bindings: Arc<Store<BTreeSet<String>>>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// What is known of one cluster, at one moment.
pub(crate) struct Snapshot {
    pub(crate) name: String,
    pub(crate) cluster: Option<ManagedCluster>,
    pub(crate) object: Option<Arc<Value>>,
    pub(crate) asked: Vec<Arc<Asked>>,
    namespace: Namespace,
    role_created: Option<Timestamp>,
    bound_accounts: Vec<String>,
}

impl Snapshot {
    /// What the rules of `accept` judge, with what is written of the cluster.
    pub(crate) fn found<'a>(
        &'a self,
        requests: &'a [&'a Request],
        written: &'a RegistrationStatus,
        now: Timestamp,
    ) -> Found<'a> {
        let uid = self.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.as_ref());
        Found {
            cluster: self.cluster.as_ref(),
            namespace: self.namespace,
            role_created: self.role_created,
            registration: Some(status::noted(written)),
            accepted_before: status::was_accepted(written, uid),
            denied_before: status::was_denied(written, uid),
            noted_keys: &written.keys,
            requests,
            bound_accounts: &self.bound_accounts,
            now: Some(now),
        }
    }
}

impl Hub {
    /// Follows the hub, and says whose registration is to be looked at.
    pub(crate) fn follow(client: &Client, wakes: &UnboundedSender<Wake>) -> Self {
        // Whoever hears of it ends together with whoever tells.
        let name = |wakes: &UnboundedSender<Wake>| {
            let wakes = wakes.clone();
            move |name: &str| drop(wakes.send(Wake::Name(name.to_owned())))
        };
        let by_cluster = Index::default();
        let clusters = {
            let (wake, packer) = (name(wakes), Packer::default());
            let store = Store::new(move |object| packer.pack(&object), Box::new(move |name, _, _| wake(name)));
            Arc::new(store.with_managed_fields())
        };
        let requests = {
            let (wake, index, packer) = (name(wakes), by_cluster.clone(), Packer::default());
            let touched = move |name: &str, before: Option<&Arc<KeptRequest>>, now: Option<&Arc<KeptRequest>>| {
                for cluster in note(&index, name, before, now) {
                    wake(&cluster);
                }
            };
            Arc::new(Store::new(move |object| read_request(&packer, object), Box::new(touched)))
        };
        let namespaces = {
            let wake = name(wakes);
            Arc::new(Store::new(read_namespace, Box::new(move |name, _, _| wake(name))))
        };
        let roles = Arc::new(Store::new(|object| created(&object), Box::new(|_, _, _| {})));
        let bindings = {
            let wakes = wakes.clone();
            let touched = move |_: &str, before: Option<&BTreeSet<String>>, now: Option<&BTreeSet<String>>| {
                if before.is_some_and(|before| !before.is_empty()) || now.is_some_and(|now| !now.is_empty()) {
                    let _ = wakes.send(Wake::Waiting);
                }
            };
            Arc::new(Store::new(read_binding, Box::new(touched)))
        };
        let rbac = "rbac.authorization.k8s.io";
        let tasks = vec![
            spawn(client, "cluster.open-cluster-management.io", "managedclusters", clusters.clone()),
            spawn(client, "certificates.k8s.io", "certificatesigningrequests", requests.clone()),
            spawn(client, "", "namespaces", namespaces.clone()),
            spawn(client, rbac, "clusterroles", roles.clone()),
            spawn(client, rbac, "clusterrolebindings", bindings.clone()),
        ];
        Self { clusters, requests, by_cluster, namespaces, roles, bindings, tasks }
    }

    /// Ends when everything was read once.
    pub(crate) async fn first_read(&self) {
        self.clusters.first_read().await;
        self.requests.first_read().await;
        self.namespaces.first_read().await;
        self.roles.first_read().await;
        self.bindings.first_read().await;
    }

    /// Why nothing can be decided by what is known; none: it is fresh.
    pub(crate) fn stale(&self) -> Option<String> {
        self.older_than(OLDEST)
    }

    /// The kind of objects that was not known to be as it is for so long, and why.
    pub(crate) fn older_than(&self, oldest: Duration) -> Option<String> {
        let all = [
            ("managedclusters", self.clusters.age(), self.clusters.lost()),
            ("certificatesigningrequests", self.requests.age(), self.requests.lost()),
            ("namespaces", self.namespaces.age(), self.namespaces.lost()),
            ("clusterroles", self.roles.age(), self.roles.lost()),
            ("clusterrolebindings", self.bindings.age(), self.bindings.lost()),
        ];
        let (kind, _, lost) = all.into_iter().find(|(_, age, _)| *age > oldest)?;
        let why = lost.unwrap_or_else(|| "the hub tells nothing".to_owned());
        Some(format!("{kind} cannot be followed: {why}"))
    }

    /// Every cluster that is there or is asked for.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let index = self.by_cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let asked: Vec<String> = index.keys().cloned().collect();
        drop(index);
        self.clusters.names().into_iter().chain(asked).collect()
    }

    /// The resource version of a cluster as it is known.
    pub(crate) fn version(&self, name: &str) -> Option<u64> {
        self.clusters.get(name)?.read().pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
    }

    /// The requests that are known to be for a cluster, by their names.
    pub(crate) fn asked(&self, name: &str) -> Vec<Arc<Asked>> {
        let index = self.by_cluster.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = index.get(name).cloned().unwrap_or_default();
        drop(index);
        // One that cannot be read is missing, and as all are compared with what the hub lists, nothing is approved then.
        requests.iter().filter_map(|request| self.requests.get(request)?.read()).collect()
    }

    /// What is known of a cluster.
    pub(crate) fn snapshot(&self, name: &str) -> Snapshot {
        let mut object = self.clusters.get(name).map(|object| object.read());
        let cluster = object.as_ref().and_then(|object| ocm_api::member::from_value(object.clone()).ok());
        // Policies are shown the same as when the webhook asks them.
        if let Some(metadata) = object.as_mut().and_then(|object| object["metadata"].as_object_mut()) {
            metadata.remove("managedFields");
        }
        let asked = self.asked(name);
        let needs_binding = asked.iter().any(|asked| bootstrap::needs_binding(&asked.request));
        let bound: BTreeSet<String> =
            if needs_binding { self.bindings.all().into_iter().flatten().collect() } else { BTreeSet::new() };
        Snapshot {
            name: name.to_owned(),
            cluster,
            object: object.map(Arc::new),
            asked,
            namespace: self.namespaces.get(name).unwrap_or_default(),
            role_created: self.roles.get(&hub_names::managed_cluster_role(name)).flatten(),
            bound_accounts: bound.into_iter().collect(),
        }
    }
}

/// Whether these are the same requests, each as it was.
pub(crate) fn are_same(known: &[Arc<Asked>], now: &[Arc<Asked>]) -> bool {
    known.iter().map(identity).eq(now.iter().map(identity))
}

fn identity(asked: &Arc<Asked>) -> (Option<&str>, &str) {
    (asked.request.uid.as_deref(), asked.version.as_str())
}

/// Remembers which clusters a request is for; those that it is or was for.
fn note(
    index: &Index,
    name: &str,
    before: Option<&Arc<KeptRequest>>,
    now: Option<&Arc<KeptRequest>>,
) -> BTreeSet<String> {
    let clusters = |kept: Option<&Arc<KeptRequest>>| -> BTreeSet<String> {
        kept.into_iter().flat_map(|kept| kept.clusters.iter()).cloned().collect()
    };
    let (was, is) = (clusters(before), clusters(now));
    let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
    for cluster in was.difference(&is) {
        if let Some(requests) = index.get_mut(cluster) {
            requests.remove(name);
            if requests.is_empty() {
                index.remove(cluster);
            }
        }
    }
    for cluster in &is {
        index.entry(cluster.clone()).or_default().insert(name.to_owned());
    }
    was.union(&is).cloned().collect()
}

/// The clusters that a request is for: the one of its label, and once it was approved, those whose agents it gives rights to.
fn clusters_of(request: &Request) -> BTreeSet<String> {
    let granted = matches!(request.state, State::Approved | State::Issued);
    let facts = request.facts();
    let named = facts.clusters_of_agents().filter(|_| granted).map(str::to_owned);
    named.chain(request.cluster_label.clone()).collect()
}

fn read_request(packer: &Packer, mut object: Value) -> Arc<KeptRequest> {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let read: CertificateSigningRequest = serde_json::from_value(object.clone()).unwrap_or_default();
    let request = Request::read(&read);
    if let Some(certificate) = object.pointer_mut("/status/certificate").filter(|_| request.state == State::Issued) {
        *certificate = CERTIFICATE.into();
    }
    let object = packer.pack(&object);
    let keep = object.size() <= LARGEST;
    Arc::new(KeptRequest {
        version,
        clusters: clusters_of(&request).into_iter().collect(),
        request: packer.pack(&request),
        object: keep.then_some(object),
    })
}

fn read_namespace(object: Value) -> Namespace {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let owner =
        object.pointer("/metadata/labels").and_then(|all| all.get(labels::CLUSTER_NAME)).and_then(Value::as_str);
    match owner == name {
        true => Namespace::Own { created: created(&object).map(Timestamp::as_millisecond) },
        false => Namespace::Foreign,
    }
}

fn read_binding(object: Value) -> BTreeSet<String> {
    let binding = serde_json::from_value::<ClusterRoleBinding>(object);
    binding.map(|binding| bootstrap::bound_accounts([&binding])).unwrap_or_default()
}

fn created(object: &Value) -> Option<Timestamp> {
    object.pointer("/metadata/creationTimestamp")?.as_str()?.parse().ok()
}

fn spawn<T: Clone + PartialEq + Send + 'static>(
    client: &Client,
    group: &str,
    plural: &str,
    store: Arc<Store<T>>,
) -> AbortHandle {
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let resource = ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version,
        // Only the words of URLs are used.
        kind: String::new(),
        plural: plural.to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    tokio::spawn(async move { watch::follow(api, None, Unserved::Lost, &*store).await }).abort_handle()
}

#[cfg(test)]
mod tests {
    use ocm_core::csr::{Names, Unreadable};
    use ocm_policy_rules::review::{Asking, join};
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_are_told_apart_by_their_label() {
        let namespace = |labels: Value| {
            read_namespace(json!({
                "metadata": {"name": "c1", "labels": labels, "creationTimestamp": "1970-01-01T00:00:01Z"},
            }))
        };
        assert_eq!(namespace(json!({labels::CLUSTER_NAME: "c1"})), Namespace::Own { created: Some(1000) });
        assert_eq!(namespace(json!({labels::CLUSTER_NAME: "c2"})), Namespace::Foreign);
        assert_eq!(namespace(Value::Null), Namespace::Foreign);
    }

    #[test]
    fn requests_are_the_same_as_long_as_none_has_come_gone_or_changed() {
        let packer = Packer::default();
        let asked = |uid: &str, version: &str| {
            let object = json!({
                "metadata": {"name": "r", "uid": uid, "resourceVersion": version},
                "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client"},
            });
            read_request(&packer, object).read().unwrap()
        };
        let known = [asked("a", "1"), asked("b", "2")];
        assert!(are_same(&known, &[asked("a", "1"), asked("b", "2")]));
        assert!(!are_same(&known, &[asked("a", "1"), asked("b", "2"), asked("c", "3")]), "another key asks");
        assert!(!are_same(&known, &[asked("a", "1")]));
        assert!(!are_same(&known, &[asked("a", "1"), asked("b", "4")]), "it has changed");
        assert!(!are_same(&known, &[asked("a", "1"), asked("c", "2")]), "it was created anew");
    }

    #[test]
    fn a_request_belongs_to_the_cluster_of_its_label_as_long_as_it_has_it() {
        let (index, packer) = (Index::default(), Packer::default());
        let asked = |label: &str| {
            let object = json!({
                "metadata": {"name": "r", "labels": {labels::CLUSTER_NAME: label}},
                "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client"},
            });
            read_request(&packer, object)
        };
        let (c1, c2) = (asked("c1"), asked("c2"));
        let names = |told: BTreeSet<String>| told.into_iter().collect::<Vec<_>>();
        assert_eq!(names(note(&index, "r", None, Some(&c1))), ["c1"]);
        assert_eq!(names(note(&index, "r", Some(&c1), Some(&c2))), ["c1", "c2"]);
        assert_eq!(index.lock().unwrap().keys().collect::<Vec<_>>(), ["c2"]);
        assert_eq!(names(note(&index, "r", Some(&c2), None)), ["c2"]);
        assert!(index.lock().unwrap().is_empty());
    }

    #[test]
    fn a_request_that_was_approved_is_for_every_cluster_whose_rights_its_certificate_gives() {
        let object = json!({
            "metadata": {"name": "r", "labels": {labels::CLUSTER_NAME: "c1"}},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client"},
        });
        let asked = |state| {
            let kept = read_request(&Packer::default(), object.clone()).read().unwrap();
            let names = Names {
                common_names: ["bob", "system:open-cluster-management:c2:a1"].map(str::to_owned).into(),
                organizations: ["viewers", "system:open-cluster-management:c3"].map(str::to_owned).into(),
            };
            clusters_of(&Request { state, content: Err(Unreadable::Pem(names)), ..kept.request.clone() })
        };
        assert_eq!(asked(State::Pending), BTreeSet::from(["c1".to_owned()]));
        assert_eq!(asked(State::Issued), ["c1", "c2", "c3"].map(str::to_owned).into());
    }

    /// A request as a hub stores it that has signed it: the request of the rules' tests, under other names.
    fn signed(number: usize) -> Value {
        let review: Value = serde_json::from_str(include_str!("../../rules/tests/data/csr-signed.json")).unwrap();
        let mut object = review["request"]["object"].clone();
        object["metadata"]["name"] = json!(format!("c{number}-x7"));
        object["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-{number:012x}"));
        object["metadata"]["resourceVersion"] = json!((number + 1).to_string());
        object["metadata"]["annotations"] = json!({"example.com/a": "b"});
        // As long as one that a hub signs.
        object["status"]["certificate"] = json!("QUJD".repeat(270));
        object
    }

    #[test]
    fn what_is_kept_of_a_request_is_all_that_rules_and_policies_see() {
        let packer = Packer::default();
        let cluster = json!({"metadata": {"name": "c1", "uid": "u"}, "spec": {}});
        let question = |csr: &Value| join(csr, &cluster, &Asking::default()).unwrap().into_owned();
        let pending = |mut object: Value| {
            object["status"] = json!({});
            object
        };
        for (object, state) in [(signed(1), State::Issued), (pending(signed(1)), State::Pending)] {
            let asked = read_request(&packer, object.clone()).read().unwrap();
            assert_eq!(asked.request, Request::read(&serde_json::from_value(object.clone()).unwrap()));
            assert_eq!((asked.request.state, asked.version.as_str()), (state, "2"));
            assert!(asked.request.content.is_ok());
            let mut kept = asked.object.as_ref().unwrap().read();
            assert_eq!(question(&kept), question(&object));
            if state == State::Issued {
                assert_eq!(kept["status"]["certificate"], CERTIFICATE);
                kept["status"]["certificate"] = object["status"]["certificate"].clone();
            }
            assert_eq!(kept, object, "what is approved is written back whole");
        }
        let mut large = signed(1);
        large["metadata"]["annotations"]["example.com/a"] = json!("x".repeat(LARGEST));
        assert_eq!(read_request(&packer, large).object, None);
    }

    #[test]
    fn thousands_of_requests_take_a_part_of_their_text() {
        let packer = Packer::default();
        let (mut kept, mut text) = (0, 0);
        for number in 0..1000 {
            let object = signed(number);
            text += object.to_string().len();
            let request = read_request(&packer, object);
            kept += request.request.kept() + request.object.as_ref().unwrap().kept();
        }
        assert!(kept * 8 < text, "{kept} bytes of {text}");
    }
}

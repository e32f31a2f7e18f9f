//! The objects of a dump, and of which kinds all are there.
//!
//! A list is all that there was of its kinds: of a kind in no namespace as a whole, of others in the namespaces of its
//! objects, and everywhere if these are of two namespaces, for one command reads one namespace or all. So is a folder of a
//! must-gather, of the kinds that it takes as a whole. An object that stands alone says nothing about others, a page of a
//! list says nothing about the next one, and a list that is empty of a kind that is not named says nothing at all.

use std::collections::{BTreeMap, BTreeSet};

use ocm_api::names::{labels, namespaces, secrets};
use ocm_core::kubeconfig::HUB_UID;
use ocm_core::order::Collect as _;
use ocm_core::{Failure, Reason};
use serde_json::{Value, json};

use crate::kind::{
    CLUSTERS, CONFIG_MAPS, DEFINITIONS, KLUSTERLETS, Kind, LEASES, MANAGERS, MUTATING, NAMESPACES, PODS,
    READ_CERTIFICATES, READ_SECRETS, REQUESTS, SECRETS, VALIDATING, WORKS,
};
use crate::layout::{LogName, Place};
use crate::room::room;
use crate::secret;
use crate::times::Times;

/// Namespace, empty for kinds that are in none, and name.
type Key = (String, String);

/// How long version and kind of a list may be together: bytes. Kubernetes has no longer ones: a group is the name of a domain.
const LONGEST: usize = 253 + 63 + 63 + 1;

/// Where all objects of a kind are there.
#[derive(Clone, Debug, Default)]
struct Scope {
    everywhere: bool,
    namespaces: BTreeSet<String>,
}

/// The objects of one cluster.
#[derive(Default)]
pub(crate) struct Store {
    objects: BTreeMap<&'static Kind, BTreeMap<Key, Value>>,
    /// How much memory these take: bytes.
    room: usize,
    scopes: BTreeMap<&'static Kind, Scope>,
    /// The folders of a must-gather that hold objects of a kind one by one, by namespace.
    folders: BTreeMap<&'static Kind, BTreeSet<Option<String>>>,
    /// The Secrets that are there without their values, or whose values are not kept.
    withheld: BTreeSet<Key>,
    /// The last lines of logs.
    logs: BTreeMap<LogName, String>,
    /// What it shows of the time.
    pub(crate) times: Times,
}

impl Store {
    /// Takes a document that was found at a place. Returns how many objects are in it, also of kinds that are not kept.
    pub(crate) fn add(&mut self, mut document: Value, place: &Place) -> usize {
        let name = document.get("kind").and_then(Value::as_str).unwrap_or_default();
        let is_list = name.ends_with("List") || matches!(place, Place::List(..));
        let typed = name.strip_suffix("List").filter(|name| !name.is_empty()).map(|name| {
            let version = document.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            (version.to_owned(), name.to_owned())
        });
        // Each of its objects gets a copy.
        let typed = typed.filter(|(version, name)| version.len() + name.len() <= LONGEST);
        let is_page =
            document.pointer("/metadata/continue").and_then(Value::as_str).is_some_and(|token| !token.is_empty());
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) if is_list => self.add_list(items, typed, is_page, place),
            _ => usize::from(self.add_one(document, place)),
        }
    }

    /// Takes a list. `typed`: version and kind of its objects, where it names them.
    fn add_list(&mut self, items: Vec<Value>, typed: Option<(String, String)>, is_page: bool, place: &Place) -> usize {
        let of_list = match place {
            Place::List(kind, _) => Some(*kind),
            _ => typed.as_ref().and_then(|(version, name)| Kind::of_object(version, name)),
        };
        let (mut found, mut is_whole) = (0, !is_page);
        let mut seen: BTreeMap<&'static Kind, BTreeSet<String>> = BTreeMap::new();
        let mut all_namespaces = BTreeSet::new();
        if let Some(kind) = of_list {
            seen.entry(kind).or_default();
        }
        for mut item in items {
            // The objects of a typed list do not repeat what they are.
            if let (Some((version, name)), Some(members)) = (&typed, item.as_object_mut()) {
                members.entry("apiVersion").or_insert_with(|| json!(version));
                members.entry("kind").or_insert_with(|| json!(name));
            }
            let namespace = item.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
            all_namespaces.extend(namespace.clone());
            let kind = kind_of(&item);
            if let Some(kind) = kind {
                seen.entry(kind).or_default().extend(namespace);
            }
            let is_taken = self.add_one(item, &Place::Plain);
            // One that cannot be read is missing from the list.
            is_whole &= is_taken || (kind.is_none() && of_list.is_none());
            found += usize::from(is_taken);
        }
        if is_whole {
            for (kind, namespaces) in seen {
                let scope = self.scopes.entry(kind).or_default();
                match place {
                    Place::List(listed, Some(namespace)) if *listed == kind => {
                        scope.namespaces.insert(namespace.clone());
                    }
                    _ => {
                        scope.everywhere |= !kind.is_namespaced || all_namespaces.len() > 1;
                        scope.namespaces.extend(namespaces);
                    }
                }
            }
        }
        found
    }

    /// Takes one object; whether it is one.
    fn add_one(&mut self, mut object: Value, place: &Place) -> bool {
        let kind = kind_of(&object);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = (text("/metadata/namespace"), text("/metadata/name"));
        if key.1.is_empty() || text("/kind").is_empty() {
            return false;
        }
        self.times.take(kind, &object);
        let Some(kind) = kind else { return true };
        if kind.is_namespaced == key.0.is_empty() {
            return false;
        }
        if let Place::One(folder, namespace) = place
            && *folder == kind
        {
            self.folders.entry(kind).or_default().insert(namespace.clone());
        }
        slim(kind, &mut object);
        let is_whole = *kind != SECRETS || secret::is_whole(&object);
        self.insert(kind, key, object, is_whole);
        true
    }

    fn insert(&mut self, kind: &'static Kind, key: Key, object: Value, is_whole: bool) {
        let of_kind = self.objects.entry(kind).or_default();
        if let Some(known) = of_kind.get(&key) {
            let version =
                |object: &Value| -> Option<u64> { object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok() };
            let is_older = matches!((version(known), version(&object)), (Some(known), Some(new)) if new < known);
            let was_whole = !self.withheld.contains(&key);
            // Values count for more than what came later.
            if *kind == SECRETS && was_whole != is_whole {
                if was_whole {
                    return;
                }
            } else if is_older {
                return;
            }
        }
        if *kind == SECRETS {
            if is_whole {
                self.withheld.remove(&key)
            } else {
                self.withheld.insert(key.clone())
            };
        }
        self.room += room(&object);
        let replaced = of_kind.insert(key, object);
        self.room = self.room.saturating_sub(replaced.as_ref().map_or(0, room));
    }

    /// Takes the last lines of a log; each begins with a time.
    pub(crate) fn add_log(&mut self, name: LogName, text: String) {
        self.times.take_log(&text, || format!("the log of {}/{}", name.namespace, name.pod));
        self.logs.insert(name, text);
    }

    /// Concludes from folders of a must-gather what is there as a whole. To be called when all of it has been taken.
    pub(crate) fn finish(&mut self) {
        // Webhook configurations are also taken one by one, for operators that name them.
        let is_of_hub = self.folders.contains_key(&MANAGERS);
        for (kind, namespaces) in std::mem::take(&mut self.folders) {
            let is_webhook = *kind == MUTATING || *kind == VALIDATING;
            if !(kind.is_gathered_whole() || (is_webhook && is_of_hub)) {
                continue;
            }
            let scope = self.scopes.entry(kind).or_default();
            scope.everywhere |= !kind.is_namespaced || namespaces.len() > 1;
            scope.namespaces.extend(namespaces.into_iter().flatten());
        }
    }

    /// Takes another part of a dump of the same cluster.
    ///
    /// # Errors
    /// Which object shows that it is another cluster.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), String> {
        let uid = |object: &Value| object.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
        for kind in [&NAMESPACES, &CLUSTERS, &MANAGERS, &KLUSTERLETS] {
            let (Some(own), Some(others)) = (self.objects.get(kind), other.objects.get(kind)) else { continue };
            let differs = |(key, object): &(&Key, &Value)| {
                let known = own.get(*key).and_then(&uid).zip(uid(object));
                known.is_some_and(|(own, other)| own != other)
            };
            if let Some((key, _)) = others.iter().find(differs) {
                return Err(format!("{} {} has another UID in each", kind.name, key.1));
            }
        }
        for (kind, objects) in other.objects {
            for (key, object) in objects {
                let is_whole = *kind != SECRETS || !other.withheld.contains(&key);
                self.insert(kind, key, object, is_whole);
            }
        }
        for (kind, scope) in other.scopes {
            let own = self.scopes.entry(kind).or_default();
            own.everywhere |= scope.everywhere;
            own.namespaces.extend(scope.namespaces);
        }
        self.logs.extend(other.logs);
        self.times.merge(other.times);
        Ok(())
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.objects.values().map(BTreeMap::len).sum()
    }

    /// How much memory the objects take: bytes.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Whether it shows a hub.
    pub(crate) fn is_hub(&self) -> bool {
        let label = format!("/metadata/labels/{}", labels::CLUSTER_NAME.replace('/', "~1"));
        let is_ours = |request: &Value| request.pointer(&label).is_some();
        self.scopes.contains_key(&CLUSTERS)
            || [&CLUSTERS, &MANAGERS].iter().any(|kind| self.objects.contains_key(*kind))
            || self.objects.get(&REQUESTS).is_some_and(|requests| requests.values().any(is_ours))
    }

    /// Whether it shows a managed cluster.
    pub(crate) fn is_managed(&self) -> bool {
        let is_agents = |(namespace, _): &Key| namespace == namespaces::AGENT;
        self.objects.contains_key(&KLUSTERLETS) || self.objects.values().any(|objects| objects.keys().any(is_agents))
    }

    /// The names of the managed clusters, and whether these are all.
    pub(crate) fn clusters(&self) -> (Vec<String>, bool) {
        let names = self.objects.get(&CLUSTERS).into_iter().flat_map(BTreeMap::keys).map(|(_, name)| name.clone());
        (names.collect(), self.knows(&CLUSTERS, None))
    }

    /// The objects of a kind, in a namespace or all.
    pub(crate) fn of<'s>(
        &'s self,
        kind: &'static Kind,
        namespace: Option<&'s str>,
    ) -> impl Iterator<Item = (&'s Key, &'s Value)> {
        let objects = self.objects.get(kind).into_iter().flatten();
        objects.filter(move |((own, _), _)| namespace.is_none_or(|namespace| namespace == own))
    }

    /// One object; none if it does not exist.
    ///
    /// # Errors
    /// The dump does not tell.
    pub(crate) fn get(
        &self,
        kind: &'static Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<&Value>, Failure> {
        let key = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        if *kind == SECRETS && self.withheld.contains(&key) {
            let why = format!("the dump has Secret {}/{} without its values", key.0, key.1);
            return Err(Failure::new(Reason::NotInDump, why));
        }
        match self.objects.get(kind).and_then(|objects| objects.get(&key)) {
            Some(found) => Ok(Some(found)),
            None if self.knows(kind, namespace) => Ok(None),
            None => Err(self.unknown(kind, namespace)),
        }
    }

    /// The log of a container.
    pub(crate) fn log(&self, name: &LogName) -> Option<&str> {
        self.logs.get(name).map(String::as_str)
    }

    /// Whether all objects of a kind are there: of a namespace, or of all.
    pub(crate) fn knows(&self, kind: &'static Kind, namespace: Option<&str>) -> bool {
        let scope = self.scopes.get(kind);
        let is_there = scope.is_some_and(|scope| {
            scope.everywhere || namespace.is_some_and(|namespace| scope.namespaces.contains(namespace))
        });
        // A namespace that does not exist has no objects.
        let is_empty = || {
            let namespace = namespace.filter(|_| kind.is_namespaced && self.knows(&NAMESPACES, None))?;
            Some(!self.objects.get(&NAMESPACES)?.contains_key(&(String::new(), namespace.to_owned())))
        };
        is_there || is_empty() == Some(true)
    }

    /// Whether the cluster served a kind; none: the dump does not tell.
    pub(crate) fn serves(&self, kind: &'static Kind) -> Option<bool> {
        let is_extra = kind.group.ends_with(".open-cluster-management.io") || kind.group.ends_with(".kubectl-ocm.dev");
        if !is_extra || self.objects.contains_key(kind) || self.scopes.contains_key(kind) {
            return Some(true);
        }
        let name = format!("{}.{}", kind.plural, kind.group);
        let defined = || self.of(&DEFINITIONS, None).any(|((_, own), _)| *own == name);
        self.knows(&DEFINITIONS, None).then(defined)
    }

    /// Why a request for objects of a kind cannot be answered.
    pub(crate) fn unknown(&self, kind: &'static Kind, namespace: Option<&str>) -> Failure {
        let of = namespace.map(|namespace| format!(" of namespace {namespace}")).unwrap_or_default();
        let why = match self.of(kind, namespace).next() {
            None => format!("the dump has no {}{of}", kind.plural),
            Some(_) => format!("the dump may not hold all {}{of}", kind.plural),
        };
        Failure::new(Reason::NotInDump, why)
    }
}

fn kind_of(object: &Value) -> Option<&'static Kind> {
    let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or_default();
    Kind::of_object(text("apiVersion"), text("kind"))
}

/// Takes away what nobody reads and what may be large or secret.
fn slim(kind: &Kind, object: &mut Value) {
    if *kind == SECRETS {
        return slim_secret(object);
    }
    let is_bundle = object.pointer("/metadata/name").and_then(Value::as_str) == Some(secrets::CA_BUNDLE_CONFIGMAP);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if *kind != LEASES {
            metadata.remove("managedFields");
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let Some(members) = object.as_object_mut() else { return };
    if *kind == CONFIG_MAPS {
        let keys: &[&str] = if is_bundle { &[secrets::CA_BUNDLE_KEY] } else { &[] };
        retain(members.get_mut("data"), keys);
        members.remove("binaryData");
    }
    // Works hold whatever they apply, pods what their environment is, and definitions are long.
    let kept: &[&str] = match kind {
        kind if *kind == WORKS => &[],
        kind if *kind == PODS => &["nodeName"],
        kind if *kind == DEFINITIONS => &[],
        _ => return,
    };
    retain(members.get_mut("spec"), kept);
}

/// Takes away what nobody reads of a Secret.
fn slim_secret(secret: &mut Value) {
    let name = secret.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let (is_read, is_served) = (READ_SECRETS.contains(&name), READ_CERTIFICATES.contains(&name));
    retain(Some(secret), &["apiVersion", "kind", "metadata", "type", "data"]);
    let metadata = &["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "annotations"];
    retain(secret.get_mut("metadata"), metadata);
    let annotations: &[&str] = if is_read { &[HUB_UID] } else { &[] };
    retain(secret.pointer_mut("/metadata/annotations"), annotations);
    if !is_read {
        let keys: &[&str] = if is_served { &[secrets::TLS_CERT_KEY] } else { &[] };
        retain(secret.get_mut("data"), keys);
    }
}

/// Takes away all members of an object but these, and whatever stands in its place.
fn retain(object: Option<&mut Value>, kept: &[&str]) {
    let Some(object) = object else { return };
    *object = match object.take() {
        Value::Object(all) => all.into_iter().filter(|(name, _)| kept.contains(&name.as_str())).collect_object().into(),
        _ => Value::Null,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(namespace: &str, name: &str) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": namespace, "name": name}})
    }

    fn cluster(name: &str, uid: &str) -> Value {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "uid": uid}})
    }

    fn list(items: Vec<Value>) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    fn plain(documents: impl IntoIterator<Item = Value>) -> Store {
        let mut store = Store::default();
        documents.into_iter().for_each(|document| {
            store.add(document, &Place::Plain);
        });
        store.finish();
        store
    }

    fn why(store: &Store, kind: &'static Kind, namespace: Option<&str>, name: &str) -> String {
        let failure = store.get(kind, namespace, name).unwrap_err();
        assert_eq!(failure.reason, Reason::NotInDump);
        failure.to_string()
    }

    #[test]
    fn what_is_not_listed_is_unknown() {
        let store = plain([list(vec![cluster("c1", "1"), lease("c1", "a")]), lease("c2", "b")]);
        assert!(
            store.get(&CLUSTERS, None, "c1").unwrap().is_some() && store.get(&CLUSTERS, None, "c2").unwrap().is_none()
        );
        // One namespace alone may be all that was asked for.
        assert!(store.get(&LEASES, Some("c1"), "x").unwrap().is_none());
        assert_eq!(why(&store, &LEASES, Some("c3"), "x"), "the dump has no leases of namespace c3");
        // An object that stands alone says nothing about others.
        assert!(store.get(&LEASES, Some("c2"), "b").unwrap().is_some());
        assert_eq!(why(&store, &LEASES, Some("c2"), "x"), "the dump may not hold all leases of namespace c2");
        assert_eq!(store.unknown(&REQUESTS, None).to_string(), "the dump has no certificatesigningrequests");
        assert!(!store.knows(&LEASES, None) && !store.knows(&REQUESTS, None) && store.knows(&CLUSTERS, None));
    }

    #[test]
    fn a_list_of_two_namespaces_is_of_all() {
        let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "n", "name": "s"}});
        let store = plain([list(vec![lease("c1", "a"), other])]);
        assert!(store.knows(&LEASES, None) && store.get(&LEASES, Some("c9"), "x").unwrap().is_none());
        assert!(!store.knows(&CONFIG_MAPS, None));
    }

    #[test]
    fn an_empty_list_tells_something_only_of_the_kind_that_it_names() {
        let store = plain([list(Vec::new())]);
        assert!(store.scopes.is_empty());
        let typed = |name: &str, version: &str, metadata: Value| json!({"apiVersion": version, "kind": name, "metadata": metadata, "items": []});
        let version = "cluster.open-cluster-management.io/v1";
        assert!(plain([typed("ManagedClusterList", version, json!({}))]).knows(&CLUSTERS, None));
        let page = typed("ManagedClusterList", version, json!({"continue": "x"}));
        assert!(!plain([page]).knows(&CLUSTERS, None), "a page is no list");
        // Of which namespace it is, it does not tell.
        assert!(!plain([typed("LeaseList", "coordination.k8s.io/v1", json!({}))]).knows(&LEASES, Some("n")));
        let mut gathered = Store::default();
        gathered
            .add(json!({"apiVersion": "v1", "kind": "List", "items": []}), &Place::List(&LEASES, Some("n".to_owned())));
        assert!(gathered.knows(&LEASES, Some("n")) && !gathered.knows(&LEASES, Some("m")));
    }

    #[test]
    fn a_list_with_what_cannot_be_read_is_not_whole() {
        let nameless = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"});
        assert!(!plain([list(vec![cluster("c1", "1"), nameless])]).knows(&CLUSTERS, None));
    }

    #[test]
    fn folders_are_lists_of_what_is_gathered_whole() {
        let one = |kind: &'static Kind, namespace: Option<&str>| Place::One(kind, namespace.map(str::to_owned));
        let mut store = Store::default();
        let webhook = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "w"}});
        store.add(cluster("c1", "1"), &one(&CLUSTERS, None));
        store.add(lease("c1", "a"), &one(&LEASES, Some("c1")));
        store.add(webhook.clone(), &one(&MUTATING, None));
        store.finish();
        assert!(store.knows(&CLUSTERS, None) && !store.knows(&LEASES, Some("c1")) && !store.knows(&MUTATING, None));
        let manager = json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
            "metadata": {"name": "cluster-manager"}});
        let mut store = Store::default();
        store.add(manager, &one(&MANAGERS, None));
        store.add(webhook, &one(&MUTATING, None));
        store.finish();
        assert!(store.knows(&MUTATING, None), "the must-gather of a hub takes all of them");
        let work = |namespace: &str| {
            json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"namespace": namespace, "name": "w"}, "spec": {"workload": "canary"}})
        };
        let mut store = Store::default();
        store.add(work("c1"), &one(&WORKS, Some("c1")));
        store.finish();
        assert!(store.knows(&WORKS, Some("c1")) && !store.knows(&WORKS, None));
        let mut store = Store::default();
        store.add(work("c1"), &one(&WORKS, Some("c1")));
        store.add(work("c2"), &one(&WORKS, Some("c2")));
        store.finish();
        assert!(store.knows(&WORKS, None));
        assert_eq!(store.get(&WORKS, Some("c1"), "w").unwrap().unwrap()["spec"], json!({}));
    }

    #[test]
    fn secrets_without_values_are_unknown_and_other_secrets_are_not_kept() {
        let secret = |name: &str, value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n", "name": name,
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "Y2FuYXJ5"}},
                "stringData": {"a": "Y2FuYXJ5"}, "data": {"kubeconfig": value}})
        };
        let elided = secret("bootstrap-hub-kubeconfig", "MTIzIGJ5dGVzIGxvbmc=");
        let store = plain([list(vec![elided.clone(), secret("other", "Y2FuYXJ5")])]);
        assert!(why(&store, &SECRETS, Some("n"), "bootstrap-hub-kubeconfig").ends_with("without its values"));
        assert!(store.get(&SECRETS, Some("n"), "hub-kubeconfig-secret").unwrap().is_none());
        // What is not kept is unknown, too.
        assert!(why(&store, &SECRETS, Some("n"), "other").ends_with("without its values"));
        let kept: Vec<String> = store.of(&SECRETS, None).map(|(_, object)| object.to_string()).collect();
        assert!(kept.len() == 2 && !kept.concat().contains("Y2FuYXJ5"), "{kept:?}");
        // Whoever adds the Secret itself is believed, in either order.
        let whole = || secret("bootstrap-hub-kubeconfig", "YXBpVmVyc2lvbjogdjEK");
        for documents in [[elided.clone(), whole()], [whole(), elided]] {
            let store = plain(documents);
            assert!(store.get(&SECRETS, Some("n"), "bootstrap-hub-kubeconfig").unwrap().is_some());
        }
    }

    #[test]
    fn of_secrets_and_config_maps_nothing_is_kept_that_nobody_reads() {
        let object = |kind: &str, name: &str, data: Value| {
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "n", "name": name, "labels": {"a": "canary"},
                "annotations": {"kubectl-ocm/hub-uid": "u1", "kubectl-ocm/other": "canary", "other": "canary"}},
                "data": data, "binaryData": {"a": "canary"}, "other": "canary"})
        };
        let kept = |kind: &'static Kind, name: &str, data: Value| {
            let store = plain([object(kind.name, name, data)]);
            store.of(kind, None).next().map(|(_, object)| object.clone()).unwrap()
        };
        let value = json!({"a": "canary"});
        let secret = kept(&SECRETS, "bootstrap-hub-kubeconfig", json!({"kubeconfig": "eA=="}));
        assert_eq!(secret["metadata"]["annotations"], json!({"kubectl-ocm/hub-uid": "u1"}));
        assert!(secret["data"]["kubeconfig"] == "eA==" && !secret.to_string().contains("canary"), "{secret}");
        for data in [value.clone(), json!(["canary"]), json!("canary")] {
            let secret = kept(&SECRETS, "other", data);
            assert!(!secret.to_string().contains("canary") && !secret.to_string().contains("u1"), "{secret}");
        }
        let bundle = kept(&CONFIG_MAPS, "ca-bundle-configmap", json!({"ca-bundle.crt": "PEM", "a": "canary"}));
        assert_eq!((&bundle["data"], bundle.get("binaryData")), (&json!({"ca-bundle.crt": "PEM"}), None));
        assert_eq!(kept(&CONFIG_MAPS, "other", value)["data"], json!({}));
    }

    #[test]
    fn a_long_name_of_a_list_is_not_copied_to_its_objects() {
        let list = |version: &str| json!({"apiVersion": version, "kind": "LeaseList", "items": [{"metadata": {"namespace": "n", "name": "l"}}]});
        let version = format!("coordination.k8s.io/{}", "v".repeat(1000));
        assert_eq!(plain([list(&version)]).len(), 0);
        assert_eq!(plain([list("coordination.k8s.io/v1")]).len(), 1);
    }

    #[test]
    fn of_what_a_webhook_serves_with_the_certificate_alone_is_kept() {
        let secret = |data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "data": data,
                "metadata": {"namespace": "n", "name": "work-webhook-serving-cert"}})
        };
        let get = |secret: Value| {
            let store = plain([secret]);
            store.get(&SECRETS, Some("n"), "work-webhook-serving-cert").map(|found| found.unwrap()["data"].clone())
        };
        let certificate = json!({"tls.crt": "Y2VydGlmaWNhdGU="});
        let whole = secret(json!({"tls.crt": "Y2VydGlmaWNhdGU=", "tls.key": "Y2FuYXJ5"}));
        assert_eq!(get(whole).unwrap(), certificate);
        // The key may have been taken out, and the certificate not.
        let elided = secret(json!({"tls.crt": "Y2VydGlmaWNhdGU=", "tls.key": "123 bytes long"}));
        assert_eq!(get(elided).unwrap(), certificate);
        for data in [json!({"tls.crt": "123 bytes long"}), json!({"tls.key": "Y2FuYXJ5"}), Value::Null] {
            assert_eq!(get(secret(data)).unwrap_err().reason, Reason::NotInDump);
        }
    }

    #[test]
    fn parts_of_one_cluster_are_joined_and_those_of_two_are_not() {
        let version = |version: &str| {
            let mut object = cluster("c1", "1");
            object["metadata"]["resourceVersion"] = json!(version);
            object
        };
        let mut store = plain([version("10")]);
        store.merge(plain([version("9"), lease("c1", "a")])).unwrap();
        assert_eq!(store.get(&CLUSTERS, None, "c1").unwrap(), Some(&version("10")));
        assert_eq!(store.len(), 2);
        let error = store.merge(plain([cluster("c1", "2")])).unwrap_err();
        assert_eq!(error, "ManagedCluster c1 has another UID in each");
    }

    #[test]
    fn what_was_not_served_has_no_objects_and_what_was_may_have_some() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "klusterlets.operator.open-cluster-management.io"}});
        let store = plain([list(vec![definition.clone()])]);
        assert_eq!((store.serves(&KLUSTERLETS), store.serves(&MANAGERS)), (Some(true), Some(false)));
        assert!(!store.knows(&KLUSTERLETS, None) && store.serves(&LEASES) == Some(true));
        assert_eq!(plain([definition]).serves(&MANAGERS), None, "one alone does not tell of others");
    }

    #[test]
    fn a_namespace_that_is_not_there_has_no_objects() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        let store = plain([list(vec![namespace.clone()])]);
        assert!(store.knows(&LEASES, Some("m")) && !store.knows(&LEASES, Some("n")) && !store.knows(&LEASES, None));
        assert!(!plain([namespace]).knows(&LEASES, Some("m")));
    }
}

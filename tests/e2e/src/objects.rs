//! Objects of a cluster, and whether anybody has written them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::thread;
use std::time::{Duration, Instant};

use control_plane::Cluster;
use serde_json::Value;

/// Kinds of which the commands of the suite create objects.
const KINDS: &str = "namespaces,customresourcedefinitions,serviceaccounts,secrets,configmaps,services,deployments,\
                     clusterroles,clusterrolebindings,roles,rolebindings,mutatingwebhookconfigurations,\
                     validatingwebhookconfigurations";

/// Every object that has to do with OCM and its resource version, by kind, namespace and name.
///
/// # Panics
///
/// When the cluster cannot be read.
pub fn resource_versions(cluster: &Cluster) -> BTreeMap<String, String> {
    seen(cluster).0
}

/// The same, and whether the operators have acted on the latest change of everything that they act on.
fn seen(cluster: &Cluster) -> (BTreeMap<String, String>, bool) {
    let (mut found, mut is_done) = (BTreeMap::new(), true);
    let mut kinds = vec![KINDS];
    let served =
        cluster.kubectl(&["api-resources", "--output=name", "--api-group=operator.open-cluster-management.io"]);
    let served = served.expect("the cluster tells its kinds").trim().replace('\n', ",");
    if !served.is_empty() {
        kinds.push(&served);
    }
    for kinds in kinds {
        let all = ["get", kinds, "--all-namespaces", "--output=json", "--show-managed-fields"];
        let list = cluster.kubectl(&all).expect("the objects are listed");
        let list: Value = serde_json::from_str(&list).expect("kubectl prints JSON");
        for object in list["items"].as_array().into_iter().flatten() {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            if ["ClusterManager", "Klusterlet"].contains(&text("/kind").as_str()) {
                is_done &= object["status"]["observedGeneration"] == object["metadata"]["generation"];
            }
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            if namespace.starts_with("open-cluster-management")
                || name.contains("open-cluster-management")
                || name.contains("cluster-manager")
            {
                let version = match text("/kind").as_str() {
                    "ClusterManager" | "Deployment" | "Klusterlet" => without_status(object),
                    _ => text("/metadata/resourceVersion"),
                };
                found.insert(format!("{} {namespace}/{name}", text("/kind")), version);
            }
        }
    }
    (found, is_done)
}

/// The same of a cluster that has come to rest: controllers still write for a moment, longer on a busy machine.
///
/// # Panics
///
/// When it does not come to rest, or cannot be read.
pub fn settled(cluster: &Cluster) -> BTreeMap<String, String> {
    let begun = Instant::now();
    let mut looked = begun;
    let mut last = resource_versions(cluster);
    loop {
        // A machine that takes long to show what there is lets operators take long to write.
        thread::sleep((looked.elapsed() * 6).max(Duration::from_secs(3)));
        looked = Instant::now();
        let (now, is_done) = seen(cluster);
        // An operator that cannot act, or does not run, never gets done.
        if now == last && (is_done || begun.elapsed() > Duration::from_secs(30)) {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(180), "the cluster does not come to rest");
        last = now;
    }
}

/// Of the objects that have to do with OCM, nobody has written any since.
///
/// # Panics
///
/// When one was, with the objects that differ, or when the cluster cannot be read.
#[track_caller]
pub fn unchanged(cluster: &Cluster, before: &BTreeMap<String, String>, what: impl fmt::Debug) {
    let now = resource_versions(cluster);
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differ = names.into_iter().filter(|name| before.get(*name) != now.get(*name));
    let differ: Vec<_> = differ.map(|name| (name, before.get(name), now.get(name))).collect();
    assert!(differ.is_empty(), "{differ:#?} differ after {what:?}");
}

/// An object as far as anybody but its controller writes it. On a busy machine a pod may miss a probe at any time, and
/// the status that tells so raises the resource version of its Deployment and of what the Deployment belongs to.
fn without_status(object: &Value) -> String {
    let mut object = object.clone();
    object["status"].take();
    // The operator gives the work agent its pod some time after the cluster has its certificate, and writes on its Deployment
    // after that. No command of ours writes there. Upstream: `runtimeReconcile.reconcile`.
    if object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-work-agent")) {
        return object["metadata"]["uid"].to_string();
    }
    let metadata = &mut object["metadata"];
    metadata["resourceVersion"].take();
    if let Some(fields) = metadata["managedFields"].as_array_mut() {
        fields.retain(|fields| fields["subresource"] != "status");
    }
    let mut hash = DefaultHasher::new();
    object.to_string().hash(&mut hash);
    format!("generation {}, {:016x}", object["metadata"]["generation"], hash.finish())
}

/// An object as JSON.
///
/// # Panics
///
/// When it is not there.
pub fn object(cluster: &Cluster, words: &[&str]) -> Value {
    let text = cluster.kubectl(&[&["get", "--output=json"], words].concat()).expect("the object is there");
    serde_json::from_str(&text).expect("kubectl prints JSON")
}

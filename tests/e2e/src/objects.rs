//! Objects of a cluster, and whether anybody has written them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use control_plane::Cluster;
use futures::future::join_all;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::connection::connect;

/// Where an API server has the kinds of which the commands of the suite create objects.
const KINDS: [(&str, &str); 15] = [
    ("/api/v1/configmaps", "ConfigMap"),
    ("/api/v1/namespaces", "Namespace"),
    ("/api/v1/secrets", "Secret"),
    ("/api/v1/serviceaccounts", "ServiceAccount"),
    ("/api/v1/services", "Service"),
    ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinition"),
    ("/apis/apps/v1/deployments", "Deployment"),
    ("/apis/operator.open-cluster-management.io/v1/clustermanagers", "ClusterManager"),
    ("/apis/operator.open-cluster-management.io/v1/klusterlets", "Klusterlet"),
    ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "ClusterRoleBinding"),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRole"),
    ("/apis/rbac.authorization.k8s.io/v1/rolebindings", "RoleBinding"),
    ("/apis/rbac.authorization.k8s.io/v1/roles", "Role"),
];

/// Those of which somebody else writes the status. What they say is looked at.
const WITH_STATUS: [&str; 3] = ["ClusterManager", "Deployment", "Klusterlet"];

/// How an API server is asked for a list without what its objects say.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Every object that has to do with OCM and its resource version, by kind, namespace and name.
///
/// # Panics
///
/// When the cluster cannot be read.
pub fn resource_versions(cluster: &Cluster) -> BTreeMap<String, String> {
    seen(cluster).0
}

/// The same, and whether the operators have acted on the latest change of everything that they act on. Tests look again and again,
/// and for kubectl that is the work of a second.
fn seen(cluster: &Cluster) -> (BTreeMap<String, String>, bool) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let lists = runtime.block_on(async {
        let client = connect(cluster.kubeconfig()).await.client;
        join_all(KINDS.map(|(path, kind)| listed(&client, path, WITH_STATUS.contains(&kind)))).await
    });
    let (mut found, mut is_done) = (BTreeMap::new(), true);
    for ((_, kind), objects) in KINDS.into_iter().zip(&lists) {
        for object in objects {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            if ["ClusterManager", "Klusterlet"].contains(&kind) {
                is_done &= object["status"]["observedGeneration"] == object["metadata"]["generation"];
            }
            let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
            if namespace.starts_with("open-cluster-management")
                || name.contains("open-cluster-management")
                || name.contains("cluster-manager")
            {
                let version = match WITH_STATUS.contains(&kind) {
                    true => without_status(object),
                    false => text("/metadata/resourceVersion"),
                };
                found.insert(format!("{kind} {namespace}/{name}"), version);
            }
        }
    }
    (found, is_done)
}

/// The objects of a kind; none where it is not served.
async fn listed(client: &Client, path: &str, is_whole: bool) -> Vec<Value> {
    let accept = if is_whole { "application/json" } else { METADATA };
    let request = Request::get(path).header("accept", accept).body(Vec::new()).expect("it is a request");
    match client.request::<Value>(request).await {
        Ok(list) => list["items"].as_array().cloned().unwrap_or_default(),
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => panic!("{path}: {error}"),
    }
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
        thread::sleep((looked.elapsed() * 20).max(Duration::from_secs(4)));
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

/// The same of several clusters, which come to rest at the same time.
///
/// # Panics
///
/// When one of them does not come to rest, or cannot be read.
pub fn all_settled<const N: usize>(clusters: [&Cluster; N]) -> [BTreeMap<String, String>; N] {
    thread::scope(|scope| {
        let resting = clusters.map(|cluster| scope.spawn(move || settled(cluster)));
        resting.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
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

/// Kinds that tests ask for again and again: the words of kubectl for each, where the API server has it, and whether its objects
/// are in namespaces.
const OFTEN: [(&[&str], [&str; 2], bool); 12] = [
    (&["managedcluster", "managedclusters"], ["apis/cluster.open-cluster-management.io/v1", "managedclusters"], false),
    (&["csr"], ["apis/certificates.k8s.io/v1", "certificatesigningrequests"], false),
    (&["klusterlet", "klusterlets"], ["apis/operator.open-cluster-management.io/v1", "klusterlets"], false),
    (&["clustermanager"], ["apis/operator.open-cluster-management.io/v1", "clustermanagers"], false),
    (&["hpol", "hubpolicy", "hubpolicies"], ["apis/policy.kubectl-ocm.dev/v1alpha1", "hubpolicies"], false),
    (
        &["registration.policy.kubectl-ocm.dev", "registrations.policy.kubectl-ocm.dev"],
        ["apis/policy.kubectl-ocm.dev/v1alpha1", "registrations"],
        false,
    ),
    (&["manifestwork"], ["apis/work.open-cluster-management.io/v1", "manifestworks"], true),
    (&["deployment", "deployments"], ["apis/apps/v1", "deployments"], true),
    (&["lease"], ["apis/coordination.k8s.io/v1", "leases"], true),
    (&["pods"], ["api/v1", "pods"], true),
    (&["secret", "secrets"], ["api/v1", "secrets"], true),
    (&["configmap"], ["api/v1", "configmaps"], true),
];

/// An object, or the objects of a kind in a list, as JSON.
///
/// # Panics
///
/// When it is not there.
pub fn object(cluster: &Cluster, words: &[&str]) -> Value {
    if let Some(path) = path(words) {
        return asked(cluster, &path);
    }
    let text = cluster.kubectl(&[&["get", "--output=json"], words].concat()).expect("the object is there");
    serde_json::from_str(&text).expect("kubectl prints JSON")
}

/// Where the API server has what these words of `kubectl get` are about; none: that is for kubectl to find out.
fn path(words: &[&str]) -> Option<String> {
    let (kind, mut rest) = words.split_first()?;
    let (_, [group, plural], has_namespaces) = OFTEN.iter().find(|(words, ..)| words.contains(kind))?;
    let (mut name, mut namespace, mut selector) = (None, None, None);
    while let Some((word, others)) = rest.split_first() {
        rest = others;
        let (flag, value) = match (word.split_once('='), others.split_first()) {
            (Some((flag, value)), _) => (flag, value),
            (None, Some((value, others))) if word.starts_with('-') => {
                rest = others;
                (*word, *value)
            }
            (None, _) if word.starts_with('-') => return None,
            (None, _) => ("", *word),
        };
        let member = match flag {
            "" => &mut name,
            "--namespace" | "-n" => &mut namespace,
            "--selector" | "-l" => &mut selector,
            _ => return None,
        };
        if member.replace(value).is_some() {
            return None;
        }
    }
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-./_=,".contains(c));
    if [name, namespace, selector].into_iter().flatten().any(|text| text.is_empty() || !is_plain(text)) {
        return None;
    }
    let space = if *has_namespaces { format!("/namespaces/{}", namespace.unwrap_or("default")) } else { String::new() };
    let (name, query) = (name.map(|name| format!("/{name}")), selector.map(|words| format!("?labelSelector={words}")));
    Some(format!("/{group}{space}/{plural}{}{}", name.unwrap_or_default(), query.unwrap_or_default()))
}

/// What the API server has there, as kubectl shows it. Tests ask while they wait, and each kubectl is the work of a tenth of a
/// second.
fn asked(cluster: &Cluster, path: &str) -> Value {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let found: Result<Value, _> = runtime.block_on(async {
        let client = connect(cluster.kubeconfig()).await.client;
        client.request(Request::get(path).body(Vec::new()).expect("it is a request")).await
    });
    let mut found = found.unwrap_or_else(|error| panic!("{path}: {error}"));
    let kind = found["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
    let Some(kind) = kind else { return shown(found) };
    let (version, items) = (found["apiVersion"].take(), found["items"].take());
    let item = |mut item: Value| {
        (item["apiVersion"], item["kind"]) = (version.clone(), json!(kind));
        shown(item)
    };
    let items: Vec<Value> = items.as_array().cloned().unwrap_or_default().into_iter().map(item).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}})
}

/// Without who has written which member.
fn shown(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_often_is_found_without_kubectl() {
        for (words, expected) in [
            (&["managedcluster", "c1"][..], "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1"),
            (&["secret", "s", "--namespace=n"], "/api/v1/namespaces/n/secrets/s"),
            (&["secret", "s", "--namespace", "n"], "/api/v1/namespaces/n/secrets/s"),
            (&["configmap", "c"], "/api/v1/namespaces/default/configmaps/c"),
            (
                &["csr", "--selector", "a.io/b=c"],
                "/apis/certificates.k8s.io/v1/certificatesigningrequests?labelSelector=a.io/b=c",
            ),
        ] {
            assert_eq!(path(words).as_deref(), Some(expected), "{words:?}");
        }
    }

    #[test]
    fn what_only_kubectl_understands_is_left_to_it() {
        for words in [
            &["placement", "p"][..],
            &["managedclusters,csr"],
            &["secrets", "--all-namespaces"],
            &["pods", "--namespace=n", "--show-managed-fields"],
            &["csr", "a", "b"],
            &["csr", "--selector", "a in (b, c)"],
            &["--namespace=n", "secret/s"],
            &["secret", ""],
        ] {
            assert_eq!(path(words), None, "{words:?}");
        }
    }
}

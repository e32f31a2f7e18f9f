//! What policies of all kinds are asked, and the one of Kubewarden as it is published.

use std::path::Path;

use ocm_policy_abi::Request;
use ocm_policy_engine::annotate;
use serde_json::{Value, json};

/// Somebody registers a cluster.
pub fn request(name: &str, labels: &Value) -> Request<'static> {
    let json = json!({
        "id": "84bd3dc3", "operation": "create", "now": 1_790_000_000_000_i64,
        "requester": {"username": "system:serviceaccount:open-cluster-management:bootstrap", "groups": ["g"]},
        "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster",
                     "resource": "managedclusters", "operation": "CREATE", "name": name},
        "cluster": {"name": name, "labels": labels},
        "object": {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                   "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false}},
    });
    serde_json::from_str(Box::leak(json.to_string().into_boxed_str())).expect("it is a request")
}

/// A policy made with the SDK of Kubewarden, with the metadata that its tools add.
pub fn kubewarden(cache: &Path) -> Vec<u8> {
    let metadata = json!({
        "protocolVersion": "v1", "mutating": true, "executionMode": "kubewarden-wapc",
        "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                   "resources": ["managedclusters"], "operations": ["CREATE", "UPDATE"]}],
        "annotations": {"io.kubewarden.policy.title": "Prefix", "io.kubewarden.policy.version": "0.1.0"},
    });
    annotate(&policy_tests::kubewarden(cache), "io.kubewarden.metadata", metadata.to_string().as_bytes())
}

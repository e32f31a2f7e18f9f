//! What policies of all kinds are asked, and the one of Kubewarden as it is published.

use std::path::Path;

use ocm_policy_abi::Request;
use ocm_policy_engine::annotate;
use serde_json::{Value, json};

/// Somebody registers a cluster.
pub fn request(name: &str, labels: &Value) -> Request<'static> {
    let text = json!({
        "id": "84bd3dc3", "operation": "create", "now": 1_790_000_000_000_i64,
        "requester": {"username": "system:serviceaccount:open-cluster-management:bootstrap", "groups": ["g"]},
        "resource": {"group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster",
                     "resource": "managedclusters", "operation": "CREATE", "name": name},
        "cluster": {"name": name, "labels": labels},
        "object": {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                   "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false}},
    })
    .to_string();
    serde_json::from_str::<Request<'_>>(&text).expect("it is a request").into_owned()
}

/// A policy made with the SDKs of Kubewarden, in both execution modes, with the metadata that its tools add.
pub fn kubewarden(cache: &Path) -> [Vec<u8>; 2] {
    let metadata = |mode: &str| {
        json!({
            "protocolVersion": "v1", "mutating": true, "executionMode": mode,
            "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                       "resources": ["managedclusters"], "operations": ["CREATE", "UPDATE"]}],
            "annotations": {"io.kubewarden.policy.title": "Prefix", "io.kubewarden.policy.version": "0.1.0"},
        })
    };
    [(policy_tests::kubewarden(cache), "kubewarden-wapc"), (policy_tests::kubewarden_go(cache), "wasi")]
        .map(|(module, mode)| annotate(&module, "io.kubewarden.metadata", metadata(mode).to_string().as_bytes()))
}

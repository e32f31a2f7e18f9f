//! What the benchmarks of policies ask.

use ocm_policy_abi::{Operation, Request};
use serde_json::json;

/// A ManagedCluster of about two kilobytes is created.
///
/// # Errors
/// When it cannot be read back.
pub fn request(name: &str) -> Result<Request<'static>, String> {
    let labels: serde_json::Map<_, _> =
        (0..10).map(|n| (format!("example.com/label-{n}"), json!(format!("value-{n}")))).collect();
    let annotations: serde_json::Map<_, _> = (0..10)
        .map(|n| (format!("example.com/annotation-{n}"), json!(format!("a longer value with some words in it, {n}"))))
        .collect();
    let request = json!({
        "id": "84bd3dc3-2675-4612-a2b0-56e3b76aaf96",
        "operation": Operation::Create,
        "now": 1_790_000_000_000_i64,
        "requester": {
            "username": "system:serviceaccount:open-cluster-management:agent-registration-bootstrap",
            "uid": "f82ca45b-5d81-4b4b-be44-bc1d99af9983",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:open-cluster-management", "system:authenticated"],
            "extra": { "authentication.kubernetes.io/credential-id": ["JTI=add664cc-4dee-49bf-8a4a-5f733f9783fe"] },
        },
        "resource": {
            "group": "cluster.open-cluster-management.io", "version": "v1", "kind": "ManagedCluster",
            "resource": "managedclusters", "name": name, "operation": "CREATE",
        },
        "cluster": {
            "name": name, "labels": labels, "annotations": annotations, "leaseDurationSeconds": 60,
            "taints": [{ "key": "example.com/new", "value": "true", "effect": "NoSelect" }],
            "clientConfigs": [{ "url": "https://10.0.0.1:6443", "caSha256": "f82ca45b5d814b4bbe44bc1d99af9983f82ca45b5d814b4bbe44bc1d99af9983" }],
        },
    });
    let text = request.to_string();
    serde_json::from_str::<Request<'_>>(&text).map(Request::into_owned).map_err(|error| error.to_string())
}

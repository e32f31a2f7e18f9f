//! Faults of works and add-ons.

use std::time::Duration;

use csr_fixtures::Fixture;
use ocm_api::names::{annotations, finalizers};
use serde_json::{Value, json};

use super::change::Change;
use super::fault::{Fault, fault};
use super::pair::On;
use super::recurring::counted;
use super::requests::{held, request};

/// What a work makes, as kubectl names it.
const MAP: &str = "configmap/of-work";
/// Takes away of a hosted add-on which cluster it is hosted on.
const LOSES_ITS_HOST: &str = "addon.open-cluster-management.io/hosting-cluster-name-";
/// Where.
const DEFAULT: &str = "--namespace=default";

/// What shows after five minutes is waited for longer than others.
pub(super) fn slow(fault: Fault) -> Fault {
    Fault { patience: Duration::from_secs(420), ..fault }
}

/// A work for the managed cluster.
pub(super) fn work(name: &str, manifest: &Value) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": "f1"},
        "spec": {"workload": {"manifests": [manifest]}},
    })
}

/// What works of the matrix make.
pub(super) fn map(namespace: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-work", "namespace": namespace}, "data": data})
}

fn on_hub(object: Value) -> Change {
    Change::Object(On::Hub, object)
}

fn on_cluster(object: Value) -> Change {
    Change::Object(On::Managed, object)
}

/// What is wrong with works that are applied.
pub(super) fn of_works() -> Vec<Fault> {
    let nothing = json!({});
    let unknown =
        json!({"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "a", "namespace": "default"}});
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "of-work"}, "provisioner": "none",
    });
    let mut executed = work("executed", &map("default", &nothing));
    executed["spec"]["executor"] = json!({"subject": {"type": "ServiceAccount",
        "serviceAccount": {"name": "default", "namespace": "default"}}});
    let mut contested = work("contested", &map("default", &json!({"whose": "the hub's"})));
    contested["spec"]["manifestConfigs"] = json!([{
        "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "of-work", "namespace": "default"},
        "updateStrategy": {"type": "ServerSideApply"},
    }]);
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-maps", "namespace": "default"},
        "spec": {"hard": {"count/configmaps": "0"}},
    });
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "silent.example.com"},
        "webhooks": [{
            "name": "silent.example.com", "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 1,
            "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    });
    let leaving = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "leaving"}});
    let applied = |words, changes| fault(words, "OCM5101", changes);
    let of_map = |name: &str| on_hub(work(name, &map("default", &nothing)));
    vec![
        applied("a work of a kind that the cluster does not know", vec![on_hub(work("unknown", &unknown))]),
        applied("a work that the agent may not apply", vec![on_hub(work("forbidden", &class))]),
        applied("a work for a namespace that is not there", vec![on_hub(work("lost", &map("nowhere", &nothing)))]),
        applied("a work whose executor may not apply it", vec![on_hub(executed)]),
        applied(
            "a work whose object is somebody else's",
            vec![on_cluster(map("default", &json!({"whose": "the cluster's"}))), on_hub(contested)],
        ),
        applied(
            "a quota for no objects of works",
            vec![on_cluster(quota), counted(On::Managed, "default", "resourcequota/no-maps"), of_map("too-many")],
        ),
        applied("a webhook of the cluster that does not answer", vec![on_cluster(webhook), of_map("unanswered")]),
        applied(
            "a work for a namespace that is being removed",
            vec![Change::Held(On::Managed, held(leaving)), on_hub(work("late", &map("leaving", &nothing)))],
        ),
        applied(
            "a work of an object that is invalid",
            vec![on_hub(work("invalid", &map("default", &json!({"not/a/key": "a"}))))],
        ),
        fault(
            "works of an agent that is gone",
            "OCM5104",
            vec![on_cluster(json!({
                "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
                "metadata": {"name": "of-nobody"},
                "spec": {"hubHash": "of-nobody", "agentID": "nobody", "manifestWorkName": "gone"},
            }))],
        ),
        slow(fault(
            "a work that is removed, and whose object is held on the cluster",
            "OCM5103",
            vec![
                on_hub(work("held", &held(map("default", &nothing)))),
                Change::Kubectl(On::Managed, vec!["wait", "--for=create", MAP, DEFAULT, "--timeout=60s"], vec![]),
                Change::Kubectl(
                    On::Hub,
                    vec!["delete", "manifestwork", "held", "--namespace=f1", "--wait=false"],
                    vec![],
                ),
                Change::Kubectl(
                    On::Managed,
                    vec!["get", MAP, DEFAULT],
                    vec!["patch", MAP, DEFAULT, "--type=merge", r#"--patch={"metadata":{"finalizers":null}}"#],
                ),
            ],
        )),
    ]
}

/// What is wrong with add-ons.
pub(super) fn of_add_ons() -> Vec<Fault> {
    let add_on = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "nobodys", "namespace": "f1"}, "spec": {},
    });
    // Nobody has told the hub that it supports anything.
    let definition = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "misconfigured"}, "spec": {"installStrategy": {"type": "Manual"}},
    });
    let mut misconfigured = add_on.clone();
    misconfigured["metadata"]["name"] = json!("misconfigured");
    misconfigured["spec"]["configs"] = json!([{
        "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs",
        "name": "nowhere", "namespace": "default",
    }]);
    let mut hosted = add_on.clone();
    hosted["metadata"]["name"] = json!("hosted");
    hosted["metadata"]["finalizers"] = json!([finalizers::ADDON_HOSTING_MANIFESTS]);
    hosted["metadata"]["annotations"] = json!({ (annotations::ADDON_HOSTING_CLUSTER): "elsewhere" });
    let unnamed = vec!["annotate", "managedclusteraddon", "hosted", "--namespace=f1", LOSES_ITS_HOST];
    let released = r#"--patch={"metadata":{"finalizers":null}}"#;
    let release = vec!["patch", "managedclusteraddon", "hosted", "--namespace=f1", "--type=merge", released];
    let unreadable = json!({"metadata": {"annotations": {(annotations::IMAGE_REGISTRIES): "{"}}});
    let mut of_add_on = request("f1", "f1-add-on", &Fixture::addon("f1", "nobodys"));
    of_add_on["metadata"]["labels"]["open-cluster-management.io/addon-name"] = json!("nobodys");
    vec![
        fault("a request of an add-on that nobody approves", "OCM5201", vec![on_hub(of_add_on)]),
        slow(fault("an add-on without a manager", "OCM5202", vec![on_hub(add_on.clone())])),
        slow(fault(
            "an add-on with a configuration that it does not support",
            "OCM5203",
            vec![on_hub(definition), on_hub(misconfigured)],
        )),
        fault(
            "a hosted add-on that has lost its host",
            "OCM5205",
            vec![on_hub(hosted), Change::Kubectl(On::Hub, unnamed, release)],
        ),
        fault(
            "registries for images that nobody can read",
            "OCM5206",
            vec![on_hub(add_on.clone()), Change::Patch(On::Hub, vec!["managedcluster", "f1"], unreadable)],
        ),
        slow(fault(
            "an add-on that is removed, and that nobody cleans up",
            "OCM5204",
            vec![Change::Held(On::Hub, held(add_on))],
        )),
    ]
}

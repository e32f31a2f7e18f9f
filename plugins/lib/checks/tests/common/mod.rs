//! A hub and a managed cluster that are well, as a snapshot.

use k8s_openapi::ByteString;
use ocm_checks::snapshot::{AgentSide, HubSide, ManagedSide, Observed, Snapshot};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// When everything is observed.
pub const NOW: &str = "2026-03-01T12:00:00Z";
/// A minute before: what is fresh.
pub const FRESH: &str = "2026-03-01T11:59:30Z";
/// An hour before: what is old.
pub const OLD: &str = "2026-03-01T11:00:00Z";

/// A certificate that is valid in these years: DER.
pub fn certificate(from: i32, until: i32) -> Vec<u8> {
    let key = rcgen::KeyPair::generate().expect("it is there");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("it is there");
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(until, 1, 1));
    params.self_signed(&key).expect("it is there").der().to_vec()
}

/// A value of a type from its JSON.
pub fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is there")
}

/// What was observed, to be changed.
pub fn read<T>(observed: &mut Observed<T>) -> &mut T {
    match observed {
        Observed::Read(value) => value,
        _ => panic!("it was read"),
    }
}

fn der(certificate: &[u8]) -> Value {
    json!(ByteString(certificate.to_vec()))
}

pub fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "words of a controller", "lastTransitionTime": OLD})
}

pub fn workload(namespace: &str, name: &str, image: &str) -> Value {
    json!({"namespace": namespace, "name": name, "replicas": 1, "health": "ready", "images": [format!("r/{image}:v1.3.1")]})
}

/// A certificate request of an agent of `c1`.
pub fn request(name: &str, agent: &str, conditions: &[&str], created: &str) -> Value {
    let pem = csr_fixtures::Fixture::agent("c1", agent).pem();
    let all: Vec<Value> = conditions
        .iter()
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": created, "lastUpdateTime": created}))
        .collect();
    let issued = conditions.contains(&"Issued");
    let all: Vec<Value> = all.into_iter().filter(|one| one["type"] != "Issued").collect();
    json!({
        "metadata": {"name": name, "labels": {"open-cluster-management.io/cluster-name": "c1"}, "creationTimestamp": created},
        "spec": {"request": ByteString(pem.into_bytes()), "signerName": "kubernetes.io/kube-apiserver-client",
            "username": "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"},
        "status": {"conditions": all, "certificate": issued.then(|| ByteString(b"c".to_vec()))},
    })
}

/// What API servers tell that store what is written.
fn storage() -> Value {
    let lease = |name: &str, renewed: &str| json!({"namespace": "kube-system", "name": name, "renewed": renewed});
    // One is of a server that is gone.
    json!({"read": {"leases": [lease("apiserver-a", OLD), lease("apiserver-b", FRESH)], "now": NOW}})
}

fn hub(authority: &[u8]) -> Value {
    let webhook = |name: &str| {
        json!({"name": name, "service": "open-cluster-management-hub/s", "exists": true, "hasEndpoint": true,
            "authorities": [der(authority)]})
    };
    let ns = "open-cluster-management-hub";
    let serving = |webhook: &str| {
        json!({"namespace": ns, "secret": format!("{webhook}-webhook-serving-cert"),
            "service": format!("cluster-manager-{webhook}-webhook"), "certificate": {"read": der(&certificate(2026, 2027))}})
    };
    json!({
        "server": "https://hub:6443", "context": "hub", "uid": "hub-uid", "authorities": [der(authority)],
        "storage": storage(),
        "operator": {"read": workload("open-cluster-management", "cluster-manager", "registration-operator")},
        "leader": {"read": null},
        "managers": {"read": [{
            "apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
            "metadata": {"name": "cluster-manager", "generation": 1}, "spec": {},
            "status": {"observedGeneration": 1, "conditions": [
                condition("Applied", "True", "R"), condition("Progressing", "False", "R"),
                condition("HubRegistrationDegraded", "False", "R"), condition("HubPlacementDegraded", "False", "R"),
                condition("ValidFeatureGates", "True", "R")],
                "generations": [{"group": "apps", "version": "v1", "resource": "deployments", "namespace": ns,
                    "name": "cluster-manager-registration-controller", "lastGeneration": 1}]},
        }]},
        "deployments": {"read": [workload(ns, "cluster-manager-registration-controller", "registration"),
            workload(ns, "cluster-manager-registration-webhook", "registration")]},
        "webhooks": {"read": [webhook("one"), webhook("two")]},
        "serving": {"read": [serving("registration"), serving("work")]},
        "admission": {"read": []},
        "conversions": {"read": [webhook("managedclusteraddons.addon.open-cluster-management.io")]},
        "caBundle": {"read": [der(authority)]},
        "clusters": {"read": [{"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "creationTimestamp": OLD},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
            "status": {"conditions": [
                condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"),
                condition("ManagedClusterJoined", "True", "ManagedClusterJoined"),
                condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable"),
                condition("ManagedClusterConditionClockSynced", "True", "ManagedClusterClockSynced")]}}]},
        "requests": {"read": [request("c1-a", "a1", &["Approved", "Issued"], OLD)]},
        "leases": {"read": [{"namespace": "c1", "name": "managed-cluster-lease", "renewed": FRESH}]},
        "terminating": {"read": []},
        "works": {"read": [{"namespace": "c1", "name": "w", "created": OLD, "hasStatus": true,
            "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"],
            "conditions": [condition("Applied", "True", "AppliedManifestWorkComplete")]}]},
        "addons": {"read": [{"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": {"name": "a", "namespace": "c1", "creationTimestamp": OLD}, "spec": {},
            "status": {"conditions": [condition("Available", "True", "R")]}}]},
        "policies": {"read": []}, "registrations": {"read": []}, "policyEngine": {"read": []},
    })
}

fn managed(authority: &[u8]) -> Value {
    let ns = "open-cluster-management-agent";
    let kubeconfig = |token: Value| json!({"server": "https://hub:6443", "authorities": [der(authority)], "proxy": null, "token": token});
    let key = json!({"bytes": 1, "digest": "0"});
    json!({
        "server": "https://c1:6443", "context": "c1", "uid": "c1-uid",
        "storage": storage(),
        "operator": {"read": workload("open-cluster-management", "klusterlet", "registration-operator")},
        "leases": {"read": [{"namespace": "open-cluster-management", "name": "klusterlet-lock", "holder": "p"}]},
        "klusterlets": {"read": [{"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
            "metadata": {"name": "klusterlet", "generation": 1, "uid": "klusterlet-uid"},
            "spec": {"clusterName": "c1", "namespace": ns,
                "imagePullSpec": "r/registration-operator:v1.3.1", "registrationImagePullSpec": "r/registration:v1.3.1",
                "workImagePullSpec": "r/work:v1.3.1"},
            "status": {"observedGeneration": 1, "conditions": [condition("Applied", "True", "R"),
                condition("HubConnectionDegraded", "False", "R")]}}]},
        "agents": [{"klusterlet": "klusterlet", "namespace": ns,
            "deployments": {"read": [workload(ns, "klusterlet-registration-agent", "registration"),
                workload(ns, "klusterlet-work-agent", "work")]},
            "bootstrap": {"read": {"namespace": ns, "name": "bootstrap-hub-kubeconfig", "keys": {"kubeconfig": key},
                "kubeconfig": kubeconfig(json!({"serviceAccount": {"subject": "s", "expires": "2026-04-01T00:00:00Z", "id": null}}))}},
            "identity": {"read": {"namespace": ns, "name": "hub-kubeconfig-secret", "cluster": "c1", "agent": "a1",
                "keys": {"kubeconfig": key, "tls.crt": key, "tls.key": key, "cluster-name": key, "agent-name": key},
                "certificates": {"tls.crt": [der(&certificate(2026, 2027))]}, "kubeconfig": kubeconfig(Value::Null)}},
            "leases": {"read": [{"namespace": ns, "name": "registration-agent-lock", "holder": "p"}]},
            "networkPolicies": {"read": []}}],
        "terminating": {"read": []}, "appliedWorks": {"read": []}, "admins": {"read": []},
    })
}

/// A pair that is well.
pub fn healthy() -> Snapshot {
    let authority = certificate(2025, 2035);
    let snapshot = json!({"format": 1, "observed": NOW, "clusters": [], "hub": hub(&authority),
        "managed": managed(&authority), "probes": []});
    parse(snapshot)
}

pub fn on_hub(snapshot: &mut Snapshot) -> &mut HubSide {
    snapshot.hub.as_mut().expect("it is there")
}

pub fn on_managed(snapshot: &mut Snapshot) -> &mut ManagedSide {
    snapshot.managed.as_mut().expect("it is there")
}

pub fn agent(snapshot: &mut Snapshot) -> &mut AgentSide {
    &mut on_managed(snapshot).agents[0]
}

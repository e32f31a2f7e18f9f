//! The faults.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::change::Change;
use super::fault::{Fault, fault, likely};
use super::hubs::of_whole_hubs;
use super::identities::of_identities;
use super::operators::of_operators;
use super::pair::On;
use super::recurring::{
    HUB, OPERATOR, agents, controllers, cordoned, klusterlet, limits, manager, quota, replaced, restricted,
};
use super::registering::of_registering;
use super::reports::of_reports;
use super::requests::{of_leavers, of_lies, of_names};
use super::webhooks::of_webhooks;
use super::works::{of_add_ons, of_works};
use crate::trouble_support::AGENTS;

/// A token of a service account that does not say when it ends.
const ENDLESS: &str = "e30.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6b3Blbi1jbHVzdGVyLW1hbmFnZW1lbnQ6YSJ9.c2ln";

/// Every fault of the matrix. Each can be made, and taken back.
pub(super) fn all() -> Vec<Fault> {
    let mut faults = of_klusterlets();
    faults.extend(of_pods());
    faults.extend(of_hubs());
    faults.extend(of_whole_hubs());
    faults.extend(of_webhooks());
    faults.extend(of_operators());
    faults.extend(of_identities());
    faults.extend(of_reports());
    faults.extend(of_works());
    faults.extend(of_add_ons());
    faults.extend(of_names());
    faults.extend(of_lies());
    faults.extend(of_leavers());
    faults.extend(of_registering());
    faults.push(fault("a hub whose etcd is full", "OCM1116", vec![Change::Full(On::Hub)]));
    faults.push(fault("a managed cluster whose etcd is full", "OCM3111", vec![Change::Full(On::Managed)]));
    // Agents need a while until they try again.
    faults.push(fault("a hub's API server that is down", "OCM2115", vec![Change::Stop(On::Hub, "kube-apiserver")]));
    faults
}

/// More than any node has.
fn enormous() -> Value {
    json!({"resourceRequirement": {"type": "ResourceRequirement", "resourceRequirements": {"requests": {"cpu": "900"}}}})
}

/// An operator that starts without what its role allows.
fn without_role(on: On, binding: &'static str, selector: &'static str) -> Vec<Change> {
    vec![Change::Gone(on, vec!["clusterrolebinding", binding]), replaced(on, OPERATOR, selector)]
}

/// What is wrong with a Klusterlet.
fn of_klusterlets() -> Vec<Fault> {
    let gates = json!({"registrationConfiguration": {"featureGates": [{"feature": "NoSuchGate", "mode": "Enable"}]}});
    let elsewhere = json!({"hubApiServerHostAlias": {"ip": "10.0.0.9", "hostname": "nowhere.example"}});
    let hubs = json!({"registrationConfiguration": {"bootstrapKubeConfigs": {
        "type": "LocalSecrets", "localSecretsConfig": {"kubeConfigSecrets": [{"name": "one"}, {"name": "two"}]},
    }}});
    let toleration = json!({"nodePlacement": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}});
    let driver = |driver: Value| klusterlet(json!({"registrationConfiguration": {"registrationDriver": driver}}));
    let arn = "arn:aws:eks:eu-west-1:123456789012:cluster/a";
    let awsirsa = json!({"authType": "awsirsa", "awsIrsa": {"hubClusterArn": arn, "managedClusterArn": arn}});
    let other = "arn:aws:eks:eu-west-1:123456789012:cluster/b";
    let of_other = json!({"registrationConfiguration": {"registrationDrivers": [
        {"authType": "csr"}, {"authType": "awsirsa", "awsirsa": {"hubClusterArn": other}},
    ]}});
    let second = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": {"name": "second"},
        "spec": {"clusterName": "f1", "namespace": "open-cluster-management-second"},
    });
    let bootstrap = |kubeconfig: Option<&str>| {
        let what = vec!["secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS];
        let kubeconfig = kubeconfig.map(|text| STANDARD.encode(text));
        vec![Change::Patch(On::Managed, what, json!({"data": {"kubeconfig": kubeconfig}}))]
    };
    vec![
        likely(fault("a mode that is misspelt", "OCM2119", klusterlet(json!({"deployOption": {"mode": "Defualt"}})))),
        fault("a feature gate that the agent does not know", "OCM2123", klusterlet(gates)),
        fault("a hosts entry for another name", "OCM2120", klusterlet(elsewhere)),
        fault("several hubs without the gate for it", "OCM2122", klusterlet(hubs)),
        fault("a toleration that the API server refuses", "OCM2105", klusterlet(toleration)),
        fault("the driver grpc at a hub without it", "OCM2118", driver(json!({"authType": "grpc"}))),
        fault("the driver awsirsa at a hub without it", "OCM2118", driver(awsirsa.clone())),
        fault(
            "the driver awsirsa with the ARN of another hub",
            "OCM2124",
            manager(of_other).into_iter().chain(driver(awsirsa)).collect(),
        ),
        fault("a bootstrap Secret without a kubeconfig", "OCM2107", bootstrap(None)),
        fault("a bootstrap kubeconfig that nobody can read", "OCM2107", bootstrap(Some("nothing"))),
        fault("a token to register with that never ends", "OCM7104", vec![Change::Token(ENDLESS)]),
        fault("a second Klusterlet of the same cluster", "OCM2104", vec![Change::Object(On::Managed, second)]),
    ]
}

/// What keeps pods of agents from running, or from working.
fn of_pods() -> Vec<Fault> {
    let image = |image: &str| klusterlet(json!({ "registrationImagePullSpec": image }));
    let object = |object: Value| Change::Object(On::Managed, object);
    let admin = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "too-much"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "klusterlet-registration-sa", "namespace": AGENTS}],
    });
    let security = vec!["namespace", AGENTS];
    vec![
        likely(fault("an image that nobody has", "OCM2106", image("nowhere.example/registration:v1"))),
        fault("an image that does not start", "OCM2106", image("ocm.local/pause:1")),
        fault("no image", "OCM2121", klusterlet(json!({"registrationImagePullSpec": null}))),
        fault("the name of an image that is none", "OCM2106", image("Nobody:::")),
        fault(
            "an image of the work agent that nobody has",
            "OCM2106",
            klusterlet(json!({"workImagePullSpec": "nowhere.example/work:v1"})),
        ),
        fault("agents that ask for more than any node has", "OCM2106", klusterlet(enormous())),
        fault("a priority class that is not there", "OCM2106", klusterlet(json!({"priorityClassName": "none"}))),
        fault("a quota for no pods", "OCM2106", vec![object(quota(AGENTS)), agents()]),
        fault("a limit below what agents ask for", "OCM2106", vec![object(limits(AGENTS)), agents()]),
        fault("PodSecurity restricted", "OCM2106", vec![Change::Patch(On::Managed, security, restricted()), agents()]),
        fault("a node that takes nobody", "OCM2106", vec![cordoned(On::Managed), agents()]),
        fault("no scheduler", "OCM2106", vec![Change::Stop(On::Managed, "kube-scheduler"), agents()]),
        fault("no controller manager", "OCM3101", vec![Change::Stop(On::Managed, "kube-controller-manager"), agents()]),
        fault("an operator without its role", "OCM2102", without_role(On::Managed, "klusterlet", "app=klusterlet")),
        fault("an agent that is an administrator", "OCM7106", vec![object(admin)]),
    ]
}

/// What is wrong with a hub.
fn of_hubs() -> Vec<Fault> {
    let gates = json!({"registrationConfiguration": {"featureGates": [{"feature": "NoSuchGate", "mode": "Enable"}]}});
    let everybody = json!({"registrationConfiguration": {
        "featureGates": [{"feature": "ManagedClusterAutoApproval", "mode": "Enable"}],
        "autoApproveUsers": ["system:serviceaccount:open-cluster-management:agent-registration-bootstrap"],
    }});
    let drivers = json!({"registrationConfiguration": {"registrationDrivers": [
        {"authType": "awsirsa", "awsirsa": {"hubClusterArn": "arn:aws:eks:eu-west-1:123456789012:cluster/a"}},
    ]}});
    let toleration = json!({"nodePlacement": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}});
    let left_behind = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "left-behind"},
        "webhooks": [{
            "name": "clusters.left-behind.example", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "clientConfig": {"service": {"namespace": "default", "name": "nobody"}},
            "rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["managedclusters"]}],
        }],
    });
    let object = |object: Value| Change::Object(On::Hub, object);
    vec![
        fault("a feature gate that the hub does not know", "OCM1105", manager(gates)),
        fault("a hub that accepts everybody", "OCM7103", manager(everybody)),
        fault("a hub without the agent's driver", "OCM2118", manager(drivers)),
        fault("a toleration of the hub that the API server refuses", "OCM1104", manager(toleration)),
        likely(fault(
            "an image of the hub that nobody has",
            "OCM1106",
            manager(json!({"placementImagePullSpec": "nowhere.example/placement:v1"})),
        )),
        fault(
            "an image of the hub's webhooks that nobody has",
            "OCM1106",
            manager(json!({"workImagePullSpec": "nowhere.example/work:v1"})),
        ),
        fault("a hub that asks for more than any node has", "OCM1106", manager(enormous())),
        fault(
            "a hub for nodes that are not there",
            "OCM1106",
            manager(json!({"nodePlacement": {"nodeSelector": {"no": "such"}}})),
        ),
        fault("a quota of the hub for no pods", "OCM1106", vec![object(quota(HUB)), controllers()]),
        fault("a node of the hub that takes nobody", "OCM1106", vec![cordoned(On::Hub), controllers()]),
        fault(
            "a hub's operator without its role",
            "OCM1102",
            without_role(On::Hub, "cluster-manager", "app=cluster-manager"),
        ),
        fault("a webhook of something that is not there", "OCM1117", vec![object(left_behind)]),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ocm_checks::registry::of_snapshots;

    use super::*;

    /// What other programs find on clusters as real as these: a table of docs/measurements.md says where.
    const ELSEWHERE: [&str; 12] = [
        "OCM1112", "OCM2101", "OCM2108", "OCM2109", "OCM2110", "OCM2114", "OCM2116", "OCM2125", "OCM3107", "OCM8101",
        "OCM8102", "OCM8103",
    ];
    /// What no release is tried for that is new enough, or old enough.
    const OF_RELEASES: [&str; 2] = ["OCM7101", "OCM7102"];

    #[test]
    fn every_check_finds_a_fault_that_is_made_for_real() {
        let own: BTreeSet<String> = all().iter().map(|fault| fault.id.to_owned()).collect();
        let found = |id: &String| own.contains(id) || ELSEWHERE.contains(&id.as_str());
        let missing: Vec<String> = of_snapshots().map(|check| check.id.to_string()).filter(|id| !found(id)).collect();
        assert!(missing.iter().all(|id| OF_RELEASES.contains(&id.as_str())), "{missing:?}");
        assert!(!ELSEWHERE.iter().any(|id| own.contains(*id)), "what the table has is not found elsewhere alone");
    }

    #[test]
    fn no_two_faults_are_told_apart_by_nothing() {
        let faults = all();
        let words: BTreeSet<&str> = faults.iter().map(|fault| fault.words).collect();
        assert_eq!(words.len(), faults.len());
    }
}

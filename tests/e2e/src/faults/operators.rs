//! Faults of operators, and of what they run.

use control_plane::earlier_ocm_version;
use ocm_api::names::operators::{CLUSTER_MANAGER_LOCK, KLUSTERLET_LOCK};
use serde_json::{Value, json};

use super::change::Change;
use super::fault::{Fault, fault};
use super::pair::On;
use super::recurring::{HUB, OPERATOR, controllers, counted, klusterlet, limits, manager, quota, replaced, restricted};
use crate::trouble_support::AGENTS;

/// An operator.
struct Operator {
    on: On,
    /// Its Deployment.
    name: &'static str,
    /// The label of its pods.
    selector: &'static str,
    /// Its leader lease.
    lease: &'static str,
}

const OF_HUB: Operator =
    Operator { on: On::Hub, name: "cluster-manager", selector: "app=cluster-manager", lease: CLUSTER_MANAGER_LOCK };

const OF_CLUSTER: Operator =
    Operator { on: On::Managed, name: "klusterlet", selector: "app=klusterlet", lease: KLUSTERLET_LOCK };

/// An image that nobody has.
const NO_IMAGE: &str = r#"--patch=[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nowhere.example/operator:v1"}]"#;
/// An argument with which it does not start.
const NO_SUCH_FLAG: &str =
    r#"--patch=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--no-such-flag"}]"#;

impl Operator {
    /// Its Deployment with this JSON patch.
    fn patched(&self, patch: &'static str) -> Vec<Change> {
        let what = vec!["deployment", self.name, "--namespace", OPERATOR];
        let words = [&["patch", "--type=json", patch], &*what].concat();
        vec![Change::Restored(self.on, what), Change::Kubectl(self.on, words, vec![])]
    }

    /// Its namespace takes no pods.
    fn without_pods(&self) -> Vec<Change> {
        vec![
            Change::Object(self.on, quota(OPERATOR)),
            counted(self.on, OPERATOR, "resourcequota/none"),
            replaced(self.on, OPERATOR, self.selector),
        ]
    }

    fn scaled(&self, replicas: &'static str) -> Change {
        let words = vec!["scale", "deployment", self.name, "--namespace", OPERATOR, replicas];
        Change::Kubectl(self.on, words, vec![])
    }

    /// Somebody who is gone holds its lease while it starts, and it has something to do.
    fn held_up(&self, work: Vec<Change>) -> Vec<Change> {
        let (namespace, selector) = ("--namespace", self.selector);
        let none = ["wait", "pods", "--for=delete", namespace, OPERATOR, "--selector", selector, "--timeout=90s"];
        // The time does not come while anybody looks. Who released the lease has left one of a second, which anybody takes.
        let gone = json!({"spec": {
            "holderIdentity": format!("{}-gone_a", self.name), "leaseDurationSeconds": 3600,
            "renewTime": "2099-01-01T00:00:00.000000Z",
        }});
        let gone = format!("--patch={gone}");
        let hold = ["patch", "lease", self.lease, namespace, OPERATOR, "--type=merge", &gone].map(str::to_owned);
        let release = vec!["delete", "lease", self.lease, namespace, OPERATOR, "--ignore-not-found"];
        let mut changes = vec![
            self.scaled("--replicas=0"),
            Change::Kubectl(self.on, none.to_vec(), vec![]),
            Change::Kept(self.on, hold.to_vec(), release),
        ];
        changes.extend(work);
        changes.push(self.scaled("--replicas=1"));
        changes
    }
}

/// A toleration that changes nothing.
fn toleration() -> Value {
    json!({"nodePlacement": {"tolerations": [{"key": "example.com/unused", "operator": "Exists"}]}})
}

/// What is wrong with operators, and with what they run.
pub(super) fn of_operators() -> Vec<Fault> {
    let refused = json!({"nodePlacement": {"nodeSelector": {"zone": "not a label!"}}});
    let too_little = json!({"resourceRequirement": {"type": "ResourceRequirement",
        "resourceRequirements": {"requests": {"cpu": "20m"}, "limits": {"cpu": "10m"}}}});
    let admin = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "works-too-much"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "klusterlet-work-sa", "namespace": AGENTS}],
    });
    let ahead = r#"--patch={"spec":{"renewTime":"2099-01-01T00:00:00.000000Z"}}"#;
    let lease = ["patch", "lease", "managed-cluster-lease", "--namespace=f1", "--type=merge", ahead];
    let mut faults = vec![
        fault("a quota for no operator of the hub", "OCM1102", OF_HUB.without_pods()),
        fault("an operator of the hub whose image nobody has", "OCM1102", OF_HUB.patched(NO_IMAGE)),
        fault("an operator of the hub that ends as it starts", "OCM1102", OF_HUB.patched(NO_SUCH_FLAG)),
        fault("an operator of the hub whose lease is stale", "OCM1103", OF_HUB.held_up(manager(toleration()))),
        fault("a node selector of the hub that the API server refuses", "OCM1104", manager(refused)),
        fault("limits of the hub below what it asks for", "OCM1104", manager(too_little)),
        fault(
            "PodSecurity restricted on the hub",
            "OCM1106",
            vec![Change::Patch(On::Hub, vec!["namespace", HUB], restricted()), controllers()],
        ),
        fault(
            "a limit below what the hub asks for",
            "OCM1106",
            vec![Change::Object(On::Hub, limits(HUB)), controllers()],
        ),
        fault("no scheduler on the hub", "OCM1106", vec![Change::Stop(On::Hub, "kube-scheduler"), controllers()]),
        fault(
            "an image of the hub that does not start",
            "OCM1106",
            manager(json!({"registrationImagePullSpec": "ocm.local/pause:1"})),
        ),
        fault("a quota for no operator of the cluster", "OCM2102", OF_CLUSTER.without_pods()),
        fault("an operator of the cluster whose image nobody has", "OCM2102", OF_CLUSTER.patched(NO_IMAGE)),
        fault("an operator of the cluster that ends as it starts", "OCM2102", OF_CLUSTER.patched(NO_SUCH_FLAG)),
        fault(
            "an operator of the cluster whose lease is stale",
            "OCM2103",
            OF_CLUSTER.held_up(klusterlet(toleration())),
        ),
        fault("no image of the work agent", "OCM2121", klusterlet(json!({"workImagePullSpec": null}))),
        fault("a work agent that is an administrator", "OCM7106", vec![Change::Object(On::Managed, admin)]),
        fault(
            "a clock that is ahead",
            "OCM3103",
            vec![Change::Kept(On::Hub, lease.map(str::to_owned).to_vec(), vec![])],
        ),
    ];
    // Clusters hold no earlier release where binaries are tried that are of none, or of the first one.
    faults.extend(earlier_ocm_version().ok().flatten().map(|tag| {
        let image = format!("quay.io/open-cluster-management/registration:{tag}");
        fault("an agent that is newer than its hub", "OCM7101", manager(json!({ "registrationImagePullSpec": image })))
    }));
    faults
}

//! People who approve registrations, each with the rights of an approver and in groups of their own.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::accept_support::{Hub, Run, accept_binary};
use crate::roles::user_with;
use crate::{Said, kubectl_ocm, run};

/// Name of the requester of clusters that ask with the bootstrap account.
pub const REQUESTER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

/// Installs the baseline, and with it the definition and the guard of approvals.
pub fn guard(hub: &Hub) {
    let said = run(kubectl_ocm("install", hub.cluster.kubeconfig()).args(["baseline", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// A person in these groups who may write approvals and, for each of the verbs, approve registrations so.
pub fn person(hub: &Hub, name: &str, groups: &[&str], verbs: &[&str]) -> PathBuf {
    let rules = json!([
        {"apiGroups": ["policy.kubectl-ocm.dev"], "resources": ["registrationapprovals"], "verbs": ["create", "get", "list", "patch", "update", "delete"]},
        {"apiGroups": ["policy.kubectl-ocm.dev"], "resources": ["registrations"], "verbs": verbs},
    ]);
    let rules: Vec<Value> =
        rules.as_array().unwrap().iter().filter(|rule| rule["verbs"] != json!([])).cloned().collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
         "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]},
    ]});
    let file = hub.cluster.dir().unwrap().join(format!("{name}.json"));
    std::fs::write(&file, list.to_string()).unwrap();
    hub.cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]).unwrap();
    hub.cluster.user_kubeconfig(name, groups).unwrap()
}

/// So many seconds from now.
pub fn in_seconds(seconds: i64) -> String {
    (Timestamp::now() + SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An approval of a cluster, for whoever asks with the bootstrap account, for an hour.
pub fn approval(hub: &Hub, cluster: &str, approver: &str) -> Value {
    let uid = hub.managed(cluster).metadata.uid.unwrap();
    json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "RegistrationApproval",
        "metadata": {"generateName": format!("{cluster}-")},
        "spec": {
            "cluster": {"name": cluster, "uid": uid}, "requester": REQUESTER, "approver": approver,
            "expiresAt": in_seconds(3600),
        },
    })
}

/// Writes an approval as a person.
pub fn approve(hub: &Hub, person: &Path, approval: &Value) -> Said {
    let file = hub.cluster.dir().unwrap().join("approval.json");
    std::fs::write(&file, approval.to_string()).unwrap();
    let mut command = hub.cluster.kubectl_command();
    run(command.args(["create", "--output=name", "--kubeconfig"]).arg(person).arg("--filename").arg(&file))
}

/// A person in these groups with the rights that `accept --approve-only` needs, and no others.
pub fn reader(hub: &Hub, name: &str, groups: &[&str]) -> PathBuf {
    user_with(&hub.cluster, name, &["accept-approve-only.yaml"]);
    hub.cluster.user_kubeconfig(name, groups).unwrap()
}

/// Runs `kubectl ocm accept --approve-only` as a person.
pub fn approve_only(person: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(accept_binary());
    command.args(arguments).args(["--approve-only", "--kubeconfig"]).arg(person).stdin(Stdio::null());
    let Said { code, stdout, stderr } = run(&mut command);
    Run { code: code.unwrap_or(-1), stdout, stderr }
}

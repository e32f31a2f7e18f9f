//! A cluster leaves, and rights of its agents come back meanwhile, with `unjoin` running and with one that was killed: nothing of
//! them stays.

use std::process::Stdio;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use serde_json::{Value, json};

use crate::join_support::{alone, hub, hub_access, join};
use crate::residue::{nothing_stays, sweep};
use crate::trouble_support::apply;
use crate::{kubectl_ocm, object, until_within};

/// How long agents may take to start or to end: a pod that is asked to end while it starts gets half a minute alone for that.
const SLOW: Duration = Duration::from_secs(90);

/// The rights of the agents outside of their namespace, as somebody makes them anew.
fn rights_of_agents(cluster: &Cluster) -> Value {
    let list = object(cluster, &["clusterroles,clusterrolebindings,roles,rolebindings", "--all-namespaces"]);
    let text = |object: &Value, key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    let all = list["items"].as_array().into_iter().flatten().filter(|object| {
        let name = text(object, "name");
        let is_agents = name.starts_with("open-cluster-management:") && name.contains("klusterlet");
        is_agents && text(object, "namespace") != "open-cluster-management-agent"
    });
    let anew = all.map(|object| {
        let mut anew = object.clone();
        anew["metadata"] = match text(object, "namespace").as_str() {
            "" => json!({"name": text(object, "name")}),
            namespace => json!({"name": text(object, "name"), "namespace": namespace}),
        };
        anew
    });
    json!({"apiVersion": "v1", "kind": "List", "items": anew.collect::<Vec<_>>()})
}

/// The operator's controllers run beside each other: one may apply rights that another one has just deleted.
pub fn rights_of_agents_that_come_back_while_a_cluster_leaves_go_with_the_operator() {
    let _alone = alone();
    let hub = hub();
    let cluster = Cluster::start(&Spec::node("again")).expect("a cluster");
    let access = hub_access(hub);
    let before = (sweep(&cluster), sweep(hub));
    let (space, role) = ("--namespace=open-cluster-management-agent", "open-cluster-management:klusterlet-work:agent");
    let has_role = || cluster.kubectl(&["get", "clusterrole", role]).is_ok();
    for is_killed in [false, true] {
        let said = join(&cluster, "again", &[&access, "--accept", "--wait", "--timeout=3m"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let rights = rights_of_agents(&cluster);
        assert!(rights["items"].as_array().is_some_and(|all| all.len() > 10), "{rights}");
        // The agents' namespace stays until the rights are there again: then the operator has not ended yet.
        let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held",
            "namespace": "open-cluster-management-agent", "finalizers": ["e2e.example/held"]}});
        apply(&cluster, &held);
        let start = || {
            let mut command = kubectl_ocm("unjoin", cluster.kubeconfig());
            command.args(["again", "--yes", &access]).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        };
        let mut leaving = start();
        until_within(SLOW, "the operator has removed the agents", String::new, || {
            let left = cluster.kubectl(&["get", "klusterlets", "--output=name"]);
            left.is_ok_and(|left| left.trim().is_empty()) && !has_role()
        });
        if is_killed {
            leaving.kill().expect("it is killed");
            leaving.wait().expect("it ends");
        }
        apply(&cluster, &rights);
        let let_go = ["patch", "configmap", "held", space, "--type=merge", "--patch"];
        cluster.kubectl(&[&let_go[..], &[r#"{"metadata":{"finalizers":null}}"#]].concat()).expect("it is let go");
        if is_killed {
            leaving = start();
        }
        let output = leaving.wait_with_output().expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{said}{told}");
        assert!(said.contains(&format!("clusterrole.rbac.authorization.k8s.io/{role} deleted")), "{said}{told}");
        nothing_stays(&cluster, &before.0);
        nothing_stays(hub, &before.1);
    }
}

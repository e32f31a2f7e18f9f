//! Faults of what an agent reports, and of how it comes to do so.

use ocm_api::names::taints;
use serde_json::json;

use super::change::Change;
use super::fault::{Fault, Of, fault};
use super::pair::On;
use super::recurring::{agents, cordoned};
use super::refusal::Refusal;
use super::works::{map, slow, work};
use crate::trouble_support::AGENTS;

/// What is wrong with what an agent reports.
pub(super) fn of_reports() -> Vec<Fault> {
    let nobody_out = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "nobody-out", "namespace": AGENTS},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"]},
    });
    let keeps_taints = Refusal {
        name: "keeps-taints.example.com",
        resources: ("cluster.open-cluster-management.io", vec!["managedclusters"]),
        users: "system:serviceaccount:open-cluster-management-hub:registration-controller-sa",
        such: json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "f1", "labels": {"example.com/a": "b"}},
        }),
    };
    let tainted = json!({"spec": {"taints": [{"key": taints::UNREACHABLE, "effect": "NoSelect"}]}});
    let unreported = work("unreported", &map("default", &json!({})));
    let takes_no_reports = Refusal {
        name: "takes-no-reports.example.com",
        resources: ("work.open-cluster-management.io", vec!["manifestworks", "manifestworks/status"]),
        users: "system:open-cluster-management:f1:",
        such: unreported.clone(),
    };
    vec![
        // Nothing here enforces network policies: an agent that finds no node is kept from its hub in their place.
        fault(
            "a network policy that lets no agent out",
            "OCM2126",
            vec![Change::Object(On::Managed, nobody_out), cordoned(On::Managed), agents()],
        ),
        // Of its own API server nothing can be read meanwhile.
        Fault {
            of: Of::Name("f1"),
            ..fault("a managed cluster whose etcd is down", "OCM3102", vec![Change::Stop(On::Managed, "etcd")])
        },
        slow(fault(
            "a taint that the hub's controller may not take away",
            "OCM3110",
            vec![Change::Refuses(On::Hub, keeps_taints), Change::Patch(On::Hub, vec!["managedcluster", "f1"], tainted)],
        )),
        fault("the hub's address in place of the cluster's own", "OCM3112", vec![Change::HubsAddress]),
        slow(fault(
            "a work of which the hub takes no report",
            "OCM5102",
            vec![Change::Refuses(On::Hub, takes_no_reports), Change::Object(On::Hub, unreported)],
        )),
    ]
}

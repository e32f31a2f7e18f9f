//! Faults of what an agent was let in with. Agents put these right at once: they ask for another certificate, which the hub
//! approves. So these are of a hub whose signer does not sign meanwhile, or of an agent that does not get so far as to ask.

use csr_fixtures::Fixture;
use ocm_api::names::{secrets, signers};
use serde_json::json;

use super::change::Change;
use super::fault::{Fault, fault};
use super::life::Life;
use super::pair::On;
use super::requests::{conclude, request};
use crate::trouble_support::AGENTS;

/// The agent's Secret, as kubectl names it.
const SECRET: [&str; 4] = ["secret", secrets::HUB_KUBECONFIG, "--namespace", AGENTS];
/// A token of a service account that has ended in 2001.
const ENDED: &str = "e30.eyJleHAiOjEwMDAwMDAwMDAsInN1YiI6InN5c3RlbTpzZXJ2aWNlYWNjb3VudDp4OnkifQ.c2ln";
/// Names of ten requests.
const TEN: [&str; 10] = ["f1-r0", "f1-r1", "f1-r2", "f1-r3", "f1-r4", "f1-r5", "f1-r6", "f1-r7", "f1-r8", "f1-r9"];

/// The hub has no requests of the cluster: of ten an agent makes no more.
fn without_requests() -> Change {
    let words = vec!["delete", "csr", "--selector=open-cluster-management.io/cluster-name=f1"];
    Change::Kubectl(On::Hub, words, vec![])
}

/// A change after which the agent asks for another certificate, which the hub approves and does not sign: after a minute that is
/// what is found.
fn unsigned(change: Change) -> Vec<Change> {
    let signs_nothing = Change::Stop(On::Hub, "kube-controller-manager");
    vec![without_requests(), Change::Answered, signs_nothing, change, Change::Asks]
}

/// A request in the name of the agent's cluster, which is approved.
fn approved(name: &'static str, signer: &str) -> [Change; 2] {
    let mut request = request("f1", name, &Fixture::agent("f1", "a"));
    request["spec"]["signerName"] = json!(signer);
    [Change::Object(On::Hub, request), conclude("approve", name)]
}

/// An agent that is away while its certificate ends, and comes back with a token that has ended, too.
fn away_for_long() -> Vec<Change> {
    let taint = |taint| Change::Kubectl(On::Managed, vec!["taint", "nodes", "--all", taint], vec![]);
    let agent = "--selector=app=klusterlet-registration-agent";
    let away = vec!["delete", "pods", "--wait=true", "--namespace", AGENTS, agent];
    vec![
        taint("example.com/away=:NoSchedule"),
        Change::Kubectl(On::Managed, away, vec![]),
        Change::Token(ENDED),
        Change::Certificate(Life::Ended),
        taint("example.com/away-"),
    ]
}

/// What is wrong with what an agent was let in with.
pub(super) fn of_identities() -> Vec<Fault> {
    let renamed = json!({"data": {(secrets::CLUSTER_NAME_KEY): "b3RoZXI="}});
    let served = TEN.into_iter().flat_map(|name| approved(name, signers::KUBE_APISERVER_CLIENT));
    let unserved = TEN.into_iter().flat_map(|name| approved(name, signers::GRPC));
    // The agent's own came last, and is signed.
    let last = approved("f1-0", signers::KUBE_APISERVER_CLIENT);
    vec![
        fault(
            "ten requests of a joined cluster that nobody signs",
            "OCM2209",
            std::iter::once(without_requests()).chain(unserved).chain(last).collect(),
        ),
        fault(
            "a Secret that names another cluster",
            "OCM2212",
            unsigned(Change::Patch(On::Managed, SECRET.to_vec(), renamed)),
        ),
        fault("a certificate that has ended", "OCM3104", away_for_long()),
        fault(
            "a certificate that ends soon and is not renewed",
            "OCM3105",
            unsigned(Change::Certificate(Life::NearlyOver)),
        ),
        fault("a Secret of the agent that is gone", "OCM3106", unsigned(Change::Gone(On::Managed, SECRET.to_vec()))),
        // It has another one as soon as there are fewer than ten.
        fault(
            "ten requests because of which the agent does not renew",
            "OCM3109",
            std::iter::once(without_requests()).chain(served).chain([Change::Certificate(Life::Due)]).collect(),
        ),
    ]
}

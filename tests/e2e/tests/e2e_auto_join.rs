//! Real agents join a real hub with nobody at it: the policies of the webhook judge, and the controller writes.

use std::fs;
use std::thread;

use control_plane::{Cluster, Spec};
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, connect, managed_cluster, token_kubeconfig};
use e2e_tests::controller_support::Controller;
use e2e_tests::join_support::{JoinCommand, join};
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::{HYGIENE, Webhook, apply, policy, prepare};
use e2e_tests::{bundle, kubectl_ocm, object, run, until};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use ocm_api::ManagedCluster;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// A hub with the policies that say what the rules say, and one that approves names of a team.
fn hub(hub: &Cluster) -> (Webhook, Controller) {
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--bundle-version", bundle(), "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    prepare(hub);
    apply(hub, "registrations", ocm_api::crds::registration_manifest().body());
    hub.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).expect("they are");
    for name in HYGIENE {
        policy(hub, name, json!({"module": {"builtin": name}}));
    }
    let rules = json!([
        {"operations": ["join"], "names": ["team-*"],
         "serviceAccounts": ["open-cluster-management/agent-registration-bootstrap"]},
        {"operations": ["join"], "names": ["team-*"], "groups": ["system:bootstrappers:managedcluster"]},
    ]);
    let approves =
        json!({"module": {"builtin": "allowed-identities"}, "autoApprove": true, "settings": {"rules": rules}});
    policy(hub, "approves", approves);
    let webhook = Webhook::start(hub, &[]);
    webhook.configure_and_wait(hub);
    let controller = Controller::start_as(hub, &user_with(hub, "controller", &["policy-controller.yaml"]));
    (webhook, controller)
}

fn status(hub: &Cluster, name: &str) -> Value {
    object(hub, &["registrations.policy.kubectl-ocm.dev", name])["status"].clone()
}

#[test]
fn agents_join_without_a_person_by_either_token_and_in_either_mode() {
    let specs = [Spec::node("auto-hub"), Spec::node("auto-default"), Spec::node("auto-singleton")];
    let clusters = Cluster::start_all(&specs).expect("the clusters start");
    let [hub_cluster, default, singleton] = clusters.as_slice() else { panic!("three clusters were asked for") };
    let (_webhook, _controller) = hub(hub_cluster);
    let flags = |kind: &str, more: &[&str]| {
        let mut flags = JoinCommand::create(hub_cluster, &["--kind", kind]).flags();
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        flags
    };
    let by_account = flags("service-account", &["--wait=available"]);
    let by_token = flags("bootstrap", &["--wait=available", "--singleton"]);
    thread::scope(|scope| {
        for (cluster, name, flags) in [(default, "team-a", &by_account), (singleton, "team-b", &by_token)] {
            scope.spawn(move || {
                let said = join(cluster, name, flags);
                assert_eq!(said.code, Some(0), "{name}: {said:?}");
            });
        }
    });
    for name in ["team-a", "team-b"] {
        let status = status(hub_cluster, name);
        assert_eq!((&status["verdict"], &status["approvedBy"]), (&json!("Allow"), &json!(["approves"])), "{status:#}");
        let selector = format!("--selector=open-cluster-management.io/cluster-name={name}");
        let requests = object(hub_cluster, &["csr", &selector]);
        let by_us = |request: &Value| {
            let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Approved" && one["reason"] == "KubectlOcmPolicy")
        };
        let count = requests["items"].as_array().map_or(0, |all| all.iter().filter(|one| by_us(one)).count());
        assert_eq!(count, 1, "{name}: {requests:#}");
    }

    // With the same token under a name that nobody allows: it waits.
    let file = hub_cluster.dir().expect("a folder").join("stranger");
    let token = JoinCommand::create(hub_cluster, &["--kind", "service-account"]).token;
    fs::write(&file, token_kubeconfig(hub_cluster, &token)).expect("written");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let stranger = runtime.block_on(connect(&file)).client;
    let clusters: Api<ManagedCluster> = Api::all(stranger.clone());
    runtime.block_on(clusters.create(&PostParams::default(), &managed_cluster("other"))).expect("it is stored");
    let requests: Api<CertificateSigningRequest> = Api::all(stranger);
    let ask = Ask::with("other", &Fixture::agent("other", "a1")).object();
    runtime.block_on(requests.create(&PostParams::default(), &ask)).expect("it is stored");
    until("it waits", || {
        let all = object(hub_cluster, &["registrations.policy.kubectl-ocm.dev"]);
        let other = all["items"].as_array().and_then(|all| all.iter().find(|one| one["metadata"]["name"] == "other"));
        other.is_some_and(|one| one["status"]["waitingFor"].as_str().is_some_and(|why| !why.is_empty()))
    });
    let status = status(hub_cluster, "other");
    assert!(status["verdict"] != "Allow" && status.get("approvedBy").is_none(), "{status:#}");
    assert_ne!(object(hub_cluster, &["managedcluster", "other"])["spec"]["hubAcceptsClient"], true);
}

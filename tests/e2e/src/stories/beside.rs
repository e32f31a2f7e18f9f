//! A cluster that is a hub, and that another hub manages: of the two on it, each goes without a loss for the other.

use control_plane::{Cluster, Spec};
use serde_json::Value;

use crate::grpc_hub::install;
use crate::join_support::{alone, bring, hub, hub_access, join};
use crate::residue::{nothing_stays, sweep};
use crate::{kubectl_ocm, object, run};

/// The cluster, as it calls itself and as the other hub knows it.
const NAME: &str = "beside";
const OPERATORS: &str = "--namespace=open-cluster-management";
/// The credentials with which both operators pull images, in the namespace of both.
const SHARED: [&str; 3] = ["secret", "open-cluster-management-image-pull-credentials", OPERATORS];

/// An operator is there, and what both use is the same as before.
fn stays(cluster: &Cluster, operator: &str, shared: &Value) {
    cluster.kubectl(&["get", "deployment", operator, OPERATORS]).expect("the other operator is there");
    assert_eq!(object(cluster, &SHARED)["metadata"]["uid"], *shared);
}

pub(super) fn a_hub_and_the_agent_of_another_one_go_without_a_loss_for_each_other() {
    let _alone = alone();
    let other = hub();
    let cluster = Cluster::start(&Spec::node(NAME)).expect("a cluster");
    let (access, before) = (hub_access(other), [sweep(&cluster), sweep(other)]);
    let becomes_a_hub = || {
        let said = install(cluster.kubeconfig(), &["--wait"]);
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    let uninstalls = || {
        let said = run(kubectl_ocm("uninstall", cluster.kubeconfig()).args(["hub", "--yes"]));
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    becomes_a_hub();
    let said = join(&cluster, NAME, &[access.as_str(), "--accept", "--wait", "--timeout=3m"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let shared = object(&cluster, &SHARED)["metadata"]["uid"].clone();

    // It is no hub any more, and its agent goes on.
    uninstalls();
    stays(&cluster, "klusterlet", &shared);
    bring(other, NAME, "brought");

    // Nobody manages it any more, and it goes on as a hub.
    becomes_a_hub();
    stays(&cluster, "klusterlet", &shared);
    let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args([NAME, "--yes", &access]));
    assert_eq!(said.code, Some(0), "{said:?}");
    stays(&cluster, "cluster-manager", &shared);
    let said = run(kubectl_ocm("token", cluster.kubeconfig()).arg("create"));
    assert_eq!(said.code, Some(0), "it takes clusters in");
    becomes_a_hub();

    uninstalls();
    nothing_stays(&cluster, &before[0]);
    nothing_stays(other, &before[1]);
}

//! A cluster that has joined over gRPC goes over to certificates of the API server, and comes back. What works have put there goes
//! with it, by whichever way it came.

use std::time::Duration;

use control_plane::{Cluster, Spec};
use ocm_api::names::signers;
use serde_json::json;

use crate::grpc_hub::{GRPC, driver, has_file_for_grpc, is_available, issued, serve};
use crate::join_support::bring;
use crate::residue::{nothing_stays, sweep};
use crate::roles::user_with;
use crate::{bundle, kubectl_ocm, object, run, until_within};

/// Its name on the hub.
const NAME: &str = "g1";

pub(super) fn a_cluster_goes_over_from_grpc_to_the_api_server_and_comes_back() {
    let clusters = Cluster::start_all(&["switch-hub", "switched"].map(Spec::node)).expect("the clusters start");
    let [hub, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    serve(hub);
    let on_hub = user_with(
        hub,
        "switcher",
        &["join-hub.yaml", "join-hub-grpc.yaml", "accept.yaml", "detach.yaml", "leave-namespaces.yaml"],
    );
    let here = user_with(cluster, "switcher", &["join.yaml", "join-grpc.yaml", "unjoin.yaml", "leave-namespaces.yaml"]);
    let access = format!("--hub-kubeconfig={}", on_hub.display());
    let before = (sweep(cluster), sweep(hub));
    let switch = |driver: &str| {
        let mut command = kubectl_ocm("join", &here);
        command.args([NAME, &access, driver, "--accept", "--wait", "--timeout=8m", "--bundle-version", bundle()]);
        run(&mut command)
    };
    let uid = || object(hub, &["managedcluster", NAME])["metadata"]["uid"].clone();

    is_available(hub, NAME, &switch(GRPC));
    let registered = uid();
    assert_eq!((driver(cluster), has_file_for_grpc(cluster)), (json!({"authType": "grpc"}), [true, true]));
    assert_eq!(issued(hub, NAME, signers::KUBE_APISERVER_CLIENT), 0);
    bring(hub, NAME, "brought");

    let said = switch("--registration-auth=csr");
    is_available(hub, NAME, &said);
    assert!(said.stderr.contains("its agent goes over to csr, and asks for a new certificate"), "{said:?}");
    assert_eq!((driver(cluster), has_file_for_grpc(cluster)), (json!({"authType": "csr"}), [false, false]));
    assert!(issued(hub, NAME, signers::KUBE_APISERVER_CLIENT) > 0);
    let over_grpc = issued(hub, NAME, signers::GRPC);
    let records = || object(cluster, &["appliedmanifestworks"])["items"].as_array().map_or(0, Vec::len);
    let told = || format!("there are {}", records());
    until_within(Duration::from_secs(120), "the agent makes a record of its own", told, || records() == 2);

    is_available(hub, NAME, &switch(GRPC));
    assert_eq!((driver(cluster), has_file_for_grpc(cluster)), (json!({"authType": "grpc"}), [true, true]));
    assert!(issued(hub, NAME, signers::GRPC) > over_grpc);
    assert_eq!(uid(), registered, "it was the same cluster all along");

    // What either driver has left on both sides goes with the cluster.
    let said = run(kubectl_ocm("unjoin", &here).args([NAME, "--yes", &access]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stderr.contains("put there stays"), "{said:?}");
    nothing_stays(cluster, &before.0);
    nothing_stays(hub, &before.1);
}

//! A cluster that has joined over gRPC goes over to certificates of the API server, and comes back. What works have put there goes
//! with it, by whichever way it came.

use std::fs;
use std::thread;
use std::time::Duration;

use control_plane::{Cluster, Spec};
use csr_fixtures::Fixture;
use ocm_api::names::signers;
use serde_json::json;

use crate::accept_support::Ask;
use crate::grpc_hub::{GRPC, HUB, PORT, driver, has_file_for_grpc, is_available, issued, node, serve};
use crate::grpc_support::{Credential, Event, GrpcServer};
use crate::join_support::{JoinCommand, bring};
use crate::residue::{nothing_stays, sweep};
use crate::roles::user_with;
use crate::{Said, bundle, kubectl_ocm, object, run, until_within};

/// Its name on the hub.
const NAME: &str = "g1";

/// Runs something while a stranger, who has a token of the agents, asks over gRPC in the cluster's name with one key after the
/// other, before its agent does and after. None of them is decided.
fn besieged(hub: &Cluster, work: impl FnOnce() -> Said) -> Said {
    let folder = hub.dir().expect("a folder").join("stranger");
    fs::create_dir_all(&folder).expect("a folder");
    let bundle = object(hub, &["configmap", "ca-bundle-configmap", HUB]);
    let authority = folder.join("ca.crt");
    fs::write(&authority, bundle["data"]["ca-bundle.crt"].as_str().expect("the hub's own CA")).expect("written");
    let server = GrpcServer { host: (node(hub), PORT), address: node(hub), authority, folder };
    let token = Credential::Token(JoinCommand::create(hub, &["--kind", "service-account"]).token);
    let said = thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            // An agent does not ask any more where ten have asked in its name.
            for _ in 0..3 {
                thread::sleep(Duration::from_secs(4));
                let mut ask = Ask::with(NAME, &Fixture::agent(NAME, "stranger"));
                ask.signer = signers::GRPC.to_owned();
                ask.name = Some(format!("stranger-{}", jiff::Timestamp::now().as_millisecond()));
                server.publish(&token, NAME, Event::CreateRequest, &json!(ask.object())).expect("it is stored");
            }
        });
        let said = work();
        stranger.join().expect("somebody else has asked, too");
        said
    });
    let requests = object(hub, &["csr"])["items"].clone();
    let strangers = requests
        .as_array()
        .into_iter()
        .flatten()
        .filter(|request| request["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("stranger-")));
    let decided: Vec<_> = strangers.filter(|request| request.pointer("/status/conditions").is_some()).collect();
    assert!(decided.is_empty(), "{decided:#?}");
    said
}

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

    is_available(hub, NAME, &besieged(hub, || switch(GRPC)));
    let registered = uid();
    assert_eq!((driver(cluster), has_file_for_grpc(cluster)), (json!({"authType": "grpc"}), [true, true]));
    assert_eq!(issued(hub, NAME, signers::KUBE_APISERVER_CLIENT), 0);
    bring(hub, NAME, "brought");

    // Also in two steps: what it was let in with over gRPC is not marked as such any more.
    let said =
        run(kubectl_ocm("join", &here).args([NAME, &access, "--registration-auth=csr", "--bundle-version", bundle()]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("its agent goes over to csr, and asks for a new certificate"), "{said:?}");
    assert_eq!(has_file_for_grpc(cluster), [false, false]);
    is_available(hub, NAME, &switch("--registration-auth=csr"));
    assert_eq!((driver(cluster), has_file_for_grpc(cluster)), (json!({"authType": "csr"}), [false, false]));
    assert!(issued(hub, NAME, signers::KUBE_APISERVER_CLIENT) > 0);
    let over_grpc = issued(hub, NAME, signers::GRPC);
    let records = || object(cluster, &["appliedmanifestworks"])["items"].as_array().map_or(0, Vec::len);
    let told = || format!("there are {}", records());
    until_within(Duration::from_secs(300), "the agent makes a record of its own", told, || records() == 2);

    // Its name is known by now, and somebody asks in it all the time.
    let said = besieged(hub, || switch(GRPC));
    is_available(hub, NAME, &said);
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

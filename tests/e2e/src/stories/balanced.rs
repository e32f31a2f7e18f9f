//! A hub whose gRPC server is behind a load balancer, as a cloud would give it one, manages itself over gRPC, and nobody accepts it.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};
use ocm_api::names::signers;
use serde_json::{Value, json};

use crate::grpc_hub::{GRPC, HUB, driver, has_file_for_grpc, install, is_available, issued, node};
use crate::join_support::{JoinCommand, hub_access};
use crate::residue::{nothing_stays, sweep};
use crate::roles::user_with;
use crate::trouble_support::{AGENTS, KNOWN, TIME};
use crate::{Said, bundle, kubectl_ocm, object, run, until_within};

/// Its name on itself.
const NAME: &str = "balanced";
/// The Service that the operator makes, and that gets the load balancer.
const SERVICE: &str = "cluster-manager-grpc-server";

/// Gives the Service the address of its load balancer, as the controller of a cloud does. It is that of the hub's node: kube-proxy
/// brings what is sent there to the pods.
fn balance(hub: &Cluster) {
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": node(hub)}]}}}).to_string();
    let patch = ["patch", "service", SERVICE, HUB, "--subresource=status", "--type=merge", "--patch", &status];
    hub.kubectl(&patch).expect("it has an address");
}

/// The file with which the agent registers over gRPC.
fn config(hub: &Cluster) -> String {
    let secret = object(hub, &["secret", "bootstrap-hub-kubeconfig", "--namespace", AGENTS]);
    let text = STANDARD.decode(secret["data"]["config.yaml"].as_str().expect("it is there")).expect("base64");
    String::from_utf8(text).expect("text")
}

/// Joins as somebody who has a token, and address and authority of the gRPC server, as files hold them.
fn by_token(hub: &Cluster, address: &str) -> Said {
    let file = |name: &str, content: &str| {
        let path = hub.dir().expect("a folder").join(name);
        fs::write(&path, content).expect("written");
        path.display().to_string()
    };
    let authorities = object(hub, &["configmap", "ca-bundle-configmap", HUB]);
    let authority = authorities["data"]["ca-bundle.crt"].as_str().expect("the hub's own CA");
    let JoinCommand { token, server, .. } = JoinCommand::create(hub, &[]);
    let mut command = kubectl_ocm("join", hub.kubeconfig());
    command.args([NAME, "--self", GRPC, "--wait=available", "--timeout=8m", "--bundle-version", bundle()]).args([
        format!("--hub-token={token}"),
        format!("--hub-apiserver={server}"),
        format!("--ca-file={}", file("hub.crt", hub.ca_pem())),
        format!("--grpc-server={address}"),
        format!("--grpc-ca-file={}", file("grpc.crt", authority)),
    ]);
    run(&mut command)
}

pub(super) fn a_hub_behind_a_load_balancer_manages_itself_over_grpc_without_a_person() {
    let hub = Cluster::start(&Spec::node(NAME)).expect("a cluster");
    let installer = user_with(&hub, "balancer", &["install.yaml"]);
    let before = sweep(&hub);
    let said = install(&installer, &["--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // The operator's own Service is enough, so that the right to make one is not needed.
    let gate = "--feature-gates=ManagedClusterAutoApproval=true";
    let identity = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    let approved = format!("--auto-approved-grpc-identities={identity}");
    let flags = ["--registration-drivers=csr,grpc", "--expose-grpc=loadBalancer", gate, &approved];
    let said = install(&installer, &flags);
    assert_eq!(said.code, Some(0), "{said:?}");
    let manager = object(&hub, &["clustermanager", "cluster-manager"])["spec"].clone();
    let exposure = &manager["serverConfiguration"]["endpointsExposure"][0]["grpc"];
    assert_eq!(*exposure, json!({"type": "loadBalancer"}), "{manager:#}");
    let type_ = ["get", "service", SERVICE, HUB, "--output=jsonpath={.spec.type}"];
    let is_balanced = || hub.kubectl(&type_).is_ok_and(|found| found.trim() == "LoadBalancer");
    until_within(TIME, "the operator has made the Service", String::new, is_balanced);

    // Before it has an address nobody finds it, and both commands say so.
    let access = hub_access(&hub);
    let join = |flags: &[&str]| {
        let mut command = kubectl_ocm("join", hub.kubeconfig());
        run(command.args([NAME, "--self", GRPC, &access, "--bundle-version", bundle()]).args(flags))
    };
    let said = join(&["--wait=available"]);
    let words =
        ["does not say where agents find its gRPC server; nothing was changed", "no load balancer has an address"];
    assert!(said.code == Some(3) && words.iter().all(|word| said.stderr.contains(word)), "{said:?}");
    assert!(hub.kubectl(&["get", "namespace", AGENTS]).is_err(), "nothing is installed");
    let troubles =
        || run(kubectl_ocm("troubleshoot", hub.kubeconfig()).args(["--all-clusters", KNOWN, "--output=json"])).stdout;
    let told = "the hub's gRPC server waits for its load balancer";
    until_within(TIME, "it is told", troubles, || troubles().contains(told));

    balance(&hub);
    // The operator makes the certificate for that address some time later, and the pods present it some time after that.
    let tried = || join(&["--dry-run=server"]);
    until_within(TIME, "the server answers there", || format!("{:?}", tried()), || tried().code == Some(0));
    assert!(!troubles().contains(told), "{}", troubles());

    let address = format!("{}:443", node(&hub));
    let said = by_token(&hub, &address);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((driver(&hub), has_file_for_grpc(&hub)), (json!({"authType": "grpc"}), [true, true]));
    assert!(config(&hub).contains(&address), "{address} is not where the agent registers");
    assert!(issued(&hub, NAME, signers::GRPC) > 0 && issued(&hub, NAME, signers::KUBE_APISERVER_CLIENT) == 0);
    // Whoever has access to the hub finds the same there.
    let said = join(&["--wait=available"]);
    is_available(&hub, NAME, &said);
    assert!(said.stderr.contains("already; nothing is changed"), "{said:?}");

    let said = run(kubectl_ocm("get", hub.kubeconfig()).args(["klusterlet-info", "--output=json"]));
    let told: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!(told["items"][0]["registrationDrivers"], json!(["grpc"]), "{told:#}");

    // It leaves itself, and is a plain cluster again.
    let said = run(kubectl_ocm("unjoin", hub.kubeconfig()).args([NAME, "--yes", &access]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(kubectl_ocm("uninstall", hub.kubeconfig()).args(["hub", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(&hub, &before);
}

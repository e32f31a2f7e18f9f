//! Clusters that register over gRPC, by commands alone: the hub exposes its gRPC server, a cluster joins, goes over to
//! certificates of the API server, and comes back.

use std::path::{Path, PathBuf};

use control_plane::{Cluster, Spec};
use e2e_tests::join_support::hub_access;
use e2e_tests::roles::user_with;
use e2e_tests::{Said, bundle, kubectl_ocm, object, resource_versions, run, settled};
use ocm_api::names::signers;
use serde_json::{Value, json};

const AGENT: &str = "--namespace=open-cluster-management-agent";
const HUB: &str = "--namespace=open-cluster-management-hub";

/// The address of the hub's node: a name would have to be known to pods.
fn node(hub: &Cluster) -> String {
    hub.server().trim_start_matches("https://").split(':').next().expect("an address").to_owned()
}

fn install(kubeconfig: &Path, flags: &[&str]) -> Said {
    run(kubectl_ocm("install", kubeconfig).args(["hub", "--bundle-version", bundle()]).args(flags))
}

fn join(kubeconfig: &Path, flags: &[&str]) -> Said {
    let bundle = format!("--bundle-version={}", bundle());
    run(kubectl_ocm("join", kubeconfig).args(["g1", &bundle]).args(flags))
}

/// Refused or failed with this exit code and these words, and nothing is different.
fn nothing_happens(clusters: [&Cluster; 2], kubeconfig: &Path, flags: &[&str], code: i32, words: &[&str]) {
    let before = clusters.map(settled);
    let said = join(kubeconfig, flags);
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
    assert_eq!(clusters.map(resource_versions), before, "{words:?}");
}

fn is_available(hub: &Cluster, said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.ends_with("/g1 available\n"), "{said:?}");
    let wait = ["wait", "managedcluster/g1", "--for=condition=ManagedClusterConditionAvailable", "--timeout=1s"];
    hub.kubectl(&wait).expect("the hub says so");
}

/// The keys of a Secret of the agent.
fn keys(cluster: &Cluster, secret: &str) -> Vec<String> {
    let secret = object(cluster, &["secret", secret, AGENT]);
    secret["data"].as_object().map(|data| data.keys().cloned().collect()).unwrap_or_default()
}

fn has_file_for_grpc(cluster: &Cluster) -> [bool; 2] {
    ["bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"]
        .map(|secret| keys(cluster, secret).iter().any(|key| key == "config.yaml"))
}

fn driver(cluster: &Cluster) -> Value {
    object(cluster, &["klusterlet", "klusterlet"])["spec"]["registrationConfiguration"]["registrationDriver"].clone()
}

/// How many requests of the agent a signer has issued.
fn issued(hub: &Cluster, signer: &str) -> usize {
    let requests = object(hub, &["csr", "--selector=open-cluster-management.io/cluster-name=g1"]);
    let of = |request: &&Value| {
        let spec = &request["spec"];
        spec["signerName"] == signer && request["status"]["certificate"].as_str().is_some()
    };
    requests["items"].as_array().map_or(0, |all| all.iter().filter(of).count())
}

#[test]
fn a_cluster_joins_over_grpc_goes_over_to_the_api_server_and_comes_back() {
    let clusters = Cluster::start_all(&["grpc-hub", "grpc-cluster"].map(Spec::node)).expect("the clusters start");
    let [hub, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    let both = [hub, cluster];
    let admin = hub_access(hub);

    // A hub that lists no driver but csr.
    let said = install(hub.kubeconfig(), &["--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let words = ["does not let clusters register by grpc", "--registration-drivers csr,grpc"];
    nothing_happens(both, cluster.kubeconfig(), &[&admin, "--registration-auth=grpc"], 3, &words);

    let installer = user_with(hub, "grpc-installer", &["install.yaml", "install-expose-grpc.yaml"]);
    let address = format!("{}:30090", node(hub));
    let server = format!("--grpc-server={address}");
    let drivers = "--registration-drivers=csr,grpc";
    let before = settled(hub);
    let said = install(&installer, &[drivers, &server, "--expose-grpc=nodePort", "--diff"]);
    assert!(said.code == Some(3) && said.stdout.contains("cluster-manager-grpc-server-external"), "{said:?}");
    assert_eq!(resource_versions(hub), before);
    let said = install(&installer, &[drivers, &server, "--expose-grpc=nodePort", "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let service = object(hub, &["service", "cluster-manager-grpc-server-external", HUB]);
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 30090, "{service:#}");
    let manager = object(hub, &["clustermanager", "cluster-manager"]);
    let exposure = &manager["spec"]["serverConfiguration"]["endpointsExposure"][0]["grpc"]["hostname"]["host"];
    assert_eq!(*exposure, json!(node(hub)), "{manager:#}");
    for name in ["grpc-server", "registration-controller"] {
        let what = format!("deployment/cluster-manager-{name}");
        hub.kubectl(&["rollout", "status", &what, HUB, "--timeout=150s"]).expect("it runs");
    }

    // What does not answer, and what answers with another certificate.
    let grpc = "--registration-auth=grpc";
    let at = |port: u16| format!("--grpc-server={}:{port}", node(hub));
    let words = ["was not verified; nothing was changed", "--grpc-server HOST:PORT"];
    nothing_happens(both, cluster.kubeconfig(), &[&admin, grpc, &at(1)], 1, &words);
    let words = ["was not verified; nothing was changed", "--grpc-ca-file FILE"];
    nothing_happens(both, cluster.kubeconfig(), &[&admin, grpc, &at(6443)], 1, &words);
    nothing_happens(both, cluster.kubeconfig(), &[&admin, &server], 2, &["--registration-auth grpc"]);

    // With the documented rights: address and CA are the hub's to say.
    let on_hub = user_with(hub, "grpc-joiner", &["join-hub.yaml", "join-hub-grpc.yaml", "accept.yaml"]);
    let here: PathBuf = user_with(cluster, "grpc-joiner", &["join.yaml", "join-grpc.yaml"]);
    let access = format!("--hub-kubeconfig={}", on_hub.display());
    let timeout = "--timeout=8m";
    for promise in ["--dry-run=server", "--render"] {
        let before = both.map(settled);
        let said = join(&here, &[&access, grpc, promise]);
        assert!(said.code == Some(0) && !said.stdout.contains("eyJ"), "{said:?}");
        assert_eq!(both.map(resource_versions), before, "{promise}");
    }
    let said = join(&here, &[&access, grpc, "--accept", "--wait", timeout]);
    is_available(hub, &said);
    assert_eq!(driver(cluster), json!({"authType": "grpc"}));
    assert_eq!(has_file_for_grpc(cluster), [true, true]);
    let over_grpc = issued(hub, signers::GRPC);
    assert!(over_grpc > 0 && issued(hub, signers::KUBE_APISERVER_CLIENT) == 0, "{over_grpc}");
    // Works come that way, too.
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "over-grpc", "namespace": "g1"},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "over-grpc", "namespace": "default"}, "data": {"came": "over gRPC"}}]}}});
    let file = hub.dir().expect("a folder").join("work.json");
    std::fs::write(&file, work.to_string()).expect("written");
    hub.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("it is stored");
    let applied = ["wait", "manifestwork/over-grpc", "--namespace=g1", "--for=condition=Applied", "--timeout=120s"];
    hub.kubectl(&applied).expect("the agent applies it");
    assert_eq!(object(cluster, &["configmap", "over-grpc", "--namespace=default"])["data"]["came"], "over gRPC");
    hub.kubectl(&["delete", "manifestwork/over-grpc", "--namespace=g1", "--timeout=120s"]).expect("it goes");
    // Again, and without a word about the driver: nothing is changed.
    for flags in [vec![&*access, grpc, "--accept", "--wait"], vec![&*access]] {
        let before = settled(cluster);
        let said = join(&here, &flags);
        assert!(said.code == Some(0) && said.stderr.contains("already; nothing is changed"), "{said:?}");
        assert_eq!(resource_versions(cluster), before);
    }

    let uid = || object(hub, &["managedcluster", "g1"])["metadata"]["uid"].clone();
    let registered = uid();
    let said = join(&here, &[&access, "--registration-auth=csr", "--accept", "--wait", timeout]);
    is_available(hub, &said);
    assert!(said.stderr.contains("its agent goes over to csr, and asks for a new certificate"), "{said:?}");
    assert_eq!(driver(cluster), json!({"authType": "csr"}));
    assert_eq!(has_file_for_grpc(cluster), [false, false]);
    assert!(issued(hub, signers::KUBE_APISERVER_CLIENT) > 0);
    let over_grpc = issued(hub, signers::GRPC);

    let said = join(&here, &[&access, grpc, "--accept", "--wait", timeout]);
    is_available(hub, &said);
    assert_eq!(driver(cluster), json!({"authType": "grpc"}));
    assert_eq!(has_file_for_grpc(cluster), [true, true]);
    assert!(issued(hub, signers::GRPC) > over_grpc);
    assert_eq!(uid(), registered, "it was the same cluster all along");

    // Whoever takes the hub away takes the Service along.
    let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args(["g1", "--yes", &admin]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(kubectl_ocm("uninstall", hub.kubeconfig()).args(["hub", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(hub.kubectl(&["get", "namespace", "open-cluster-management-hub"]).is_err(), "with all that was in it");
}

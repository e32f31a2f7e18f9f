//! Clusters that register over gRPC, by commands alone: the hub exposes its gRPC server, a cluster asks, is accepted, gets its
//! works, and leaves. The switch to certificates of the API server and back is one of `e2e_tests::stories`.

use std::path::{Path, PathBuf};

use control_plane::{Cluster, Spec};
use e2e_tests::gateway_api::{self, ROUTE};
use e2e_tests::grpc_hub::{
    GRPC, HUB, driver, exposed, has_file_for_grpc, install, is_available, issued, node, runs, server,
};
use e2e_tests::join_support::hub_access;
use e2e_tests::roles::user_with;
use e2e_tests::trouble_support::{KNOWN, TIME, finds, is_well, read};
use e2e_tests::{
    Said, all_settled, bundle, kubectl_ocm, object, resource_versions, run, settled, unchanged, until, until_within,
};
use ocm_api::names::signers;
use serde_json::{Value, json};

const NAME: &str = "g1";

fn join(kubeconfig: &Path, flags: &[&str]) -> Said {
    let bundle = format!("--bundle-version={}", bundle());
    run(kubectl_ocm("join", kubeconfig).args([NAME, &bundle]).args(flags))
}

/// Refused or failed with this exit code and these words, and nothing is different.
fn nothing_happens(clusters: [&Cluster; 2], kubeconfig: &Path, flags: &[&str], code: i32, words: &[&str]) {
    let before = all_settled(clusters);
    let said = join(kubeconfig, flags);
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.stderr);
    }
    assert_eq!(clusters.map(resource_versions), before, "{words:?}");
}

/// Whether `tls-check` sees all of the hub, finds nothing, and has looked at what the gRPC server presents.
fn presents_a_valid_certificate(reader: &Path, hub: &Cluster) -> bool {
    let said = run(kubectl_ocm("tls-check", reader).arg("--output=json"));
    let Ok(document) = serde_json::from_str::<Value>(&said.stdout) else { return false };
    let relations = document["inventory"]["relations"].as_array().cloned().unwrap_or_default();
    let of_server: Vec<&Value> = relations.iter().filter(|relation| relation["purpose"] == "grpc").collect();
    let is_whole = document["unseen"].as_array().is_some_and(Vec::is_empty);
    said.code == Some(0) && is_whole && of_server.iter().any(|relation| relation.to_string().contains(&node(hub)))
}

#[test]
fn a_cluster_registers_over_grpc_is_accepted_works_and_leaves() {
    let clusters = Cluster::start_all(&["grpc-hub", "grpc-cluster"].map(Spec::node)).expect("the clusters start");
    let [hub, cluster] = clusters.as_slice() else { panic!("two were asked for") };
    let both = [hub, cluster];
    let admin = hub_access(hub);

    // A hub that lists no driver but csr.
    let said = install(hub.kubeconfig(), &["--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let words = ["does not let clusters register by grpc", "--registration-drivers csr,grpc"];
    nothing_happens(both, cluster.kubeconfig(), &[&admin, GRPC], 3, &words);

    // A server that agents do not find is not made, and where others have made it, it is told.
    let installer = user_with(hub, "grpc-installer", &["install.yaml", "install-expose-grpc.yaml"]);
    let said = install(&installer, &["--registration-drivers=csr,grpc"]);
    assert!(said.code == Some(2) && said.stderr.contains("needs --grpc-server HOST[:PORT]"), "{said:?}");
    let drivers = json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]});
    let patch = json!({"spec": {"registrationConfiguration": drivers}}).to_string();
    hub.kubectl(&["patch", "clustermanager", "cluster-manager", "--type=merge", "--patch", &patch]).expect("patched");
    let told = || {
        let said = run(kubectl_ocm("troubleshoot", hub.kubeconfig()).args(["--all-clusters", KNOWN, "--output=json"]));
        read(&said).1
    };
    until_within(TIME, "it is told", || format!("{:?}", told()), || told() == ["OCM1112"]);

    let exposed = exposed(hub);
    let exposed: Vec<&str> = exposed.iter().map(String::as_str).collect();
    let before = settled(hub);
    let said = install(&installer, &[&exposed[..], &["--diff"]].concat());
    assert!(said.code == Some(3) && said.stdout.contains("cluster-manager-grpc-server-external"), "{said:?}");
    unchanged(hub, &before, "nothing is changed");
    let said = install(&installer, &[&exposed[..], &["--wait"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let service = object(hub, &["service", "cluster-manager-grpc-server-external", HUB]);
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 30090, "{service:#}");
    let manager = object(hub, &["clustermanager", "cluster-manager"]);
    let exposure = &manager["spec"]["serverConfiguration"]["endpointsExposure"][0]["grpc"]["hostname"]["host"];
    assert_eq!(*exposure, json!(node(hub)), "{manager:#}");
    runs(hub);
    let reader = user_with(hub, "grpc-tls-reader", &["tls-check-hub.yaml"]);
    until("the certificate of the gRPC server is seen, and is valid", || presents_a_valid_certificate(&reader, hub));

    // What does not answer, and what answers with another certificate.
    let at = |port: u16| format!("--grpc-server={}:{port}", node(hub));
    let words = ["was not verified; nothing was changed", "--grpc-server HOST:PORT"];
    nothing_happens(both, cluster.kubeconfig(), &[&admin, GRPC, &at(1)], 1, &words);
    let words = ["was not verified; nothing was changed", "--grpc-ca-file FILE"];
    nothing_happens(both, cluster.kubeconfig(), &[&admin, GRPC, &at(6443)], 1, &words);
    nothing_happens(both, cluster.kubeconfig(), &[&admin, &server(hub)], 2, &["--registration-auth grpc"]);

    // With the documented rights: address and CA are the hub's to say.
    let on_hub = user_with(hub, "grpc-joiner", &["join-hub.yaml", "join-hub-grpc.yaml"]);
    let here: PathBuf = user_with(cluster, "grpc-joiner", &["join.yaml"]);
    let access = format!("--hub-kubeconfig={}", on_hub.display());
    // Pods get a certificate that was made anew some time after the hub has it.
    let tried = || join(&here, &[&access, GRPC, "--dry-run=server"]);
    until_within(
        TIME,
        "the server presents its new certificate",
        || format!("{:?}", tried()),
        || tried().code == Some(0),
    );
    let before = all_settled(both);
    for promise in ["--dry-run=server", "--render"] {
        let said = join(&here, &[&access, GRPC, promise]);
        assert!(said.code == Some(0) && !said.stdout.contains("eyJ"), "{said:?}");
        assert_eq!(both.map(resource_versions), before, "{promise}");
    }
    // It asks, and whoever keeps the hub accepts it.
    let timeout = "--timeout=8m";
    let said = join(&here, &[&access, GRPC, "--wait", timeout]);
    assert!(said.code == Some(0) && said.stdout.ends_with("/g1 registered, pending acceptance\n"), "{said:?}");
    finds(cluster, hub, NAME, "OCM2205");
    let acceptor = user_with(hub, "grpc-acceptor", &["accept.yaml"]);
    let said = run(kubectl_ocm("accept", &acceptor).args([NAME, "--yes", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    is_available(hub, NAME, &join(&here, &[&access, "--wait=available", timeout]));
    assert_eq!(driver(cluster), json!({"authType": "grpc"}));
    assert_eq!(has_file_for_grpc(cluster), [true, true]);
    assert!(issued(hub, NAME, signers::GRPC) > 0 && issued(hub, NAME, signers::KUBE_APISERVER_CLIENT) == 0);
    is_well(cluster, hub, NAME);

    // Works come that way, too.
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "over-grpc", "namespace": NAME},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "over-grpc", "namespace": "default"}, "data": {"came": "over gRPC"}}]}}});
    let file = hub.dir().expect("a folder").join("work.json");
    std::fs::write(&file, work.to_string()).expect("written");
    hub.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("it is stored");
    // A work agent that was started before it had its certificate is started again after a while.
    let applied = ["wait", "manifestwork/over-grpc", "--namespace=g1", "--for=condition=Applied", "--timeout=300s"];
    hub.kubectl(&applied).expect("the agent applies it");
    assert_eq!(object(cluster, &["configmap", "over-grpc", "--namespace=default"])["data"]["came"], "over gRPC");
    hub.kubectl(&["delete", "manifestwork/over-grpc", "--namespace=g1", "--timeout=120s"]).expect("it goes");
    // Again, and without a word about the driver: nothing is changed.
    let before = settled(cluster);
    for flags in [vec![&*access, GRPC, "--wait"], vec![&*access]] {
        let said = join(&here, &flags);
        assert!(said.code == Some(0) && said.stderr.contains("already; nothing is changed"), "{said:?}");
        unchanged(cluster, &before, "nothing is changed");
    }

    // Whoever takes the hub away takes the Service along.
    let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args([NAME, "--yes", &admin]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(kubectl_ocm("uninstall", hub.kubeconfig()).args(["hub", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(hub.kubectl(&["get", "namespace", "open-cluster-management-hub"]).is_err(), "with all that was in it");
}

#[test]
fn a_gateway_leads_agents_to_the_server_by_a_route_of_ours() {
    let hub = Cluster::start(&Spec::node("gateway-hub")).expect("a cluster");
    let installer = user_with(&hub, "gateway-installer", &["install.yaml", "install-expose-grpc-gateway.yaml"]);
    let through = |flags: &[&str]| {
        let all = ["--registration-drivers=csr,grpc", "--expose-grpc=gateway"];
        install(&installer, &[&all[..], flags].concat())
    };
    // Nothing of ours is there yet that would write by itself.
    let before = settled(&hub);
    let refused = |flags: &[&str], code: i32, words: &str| {
        let said = through(flags);
        assert!(said.code == Some(code) && said.stderr.contains(words), "{words}: {said:?}");
        unchanged(&hub, &before, words);
    };
    let (public, host) = ("--grpc-gateway=infra/public", "--grpc-server=grpc.hub.example");

    // What is in the way is told before anything is changed.
    refused(&[], 2, "go together");
    refused(&["--grpc-gateway=public"], 2, "is not NAMESPACE/NAME");
    refused(&[public, host], 3, "serves no Gateways and TLSRoutes of gateway.networking.k8s.io");
    gateway_api::serve(&hub, "v1alpha2");
    refused(&[public, host], 3, "has no Gateway infra/public");
    let ip = json!({"type": "IPAddress", "value": "192.0.2.7"});
    let all = json!({"namespaces": {"from": "All"}});
    let with = |members: Value| gateway_api::gateway(&hub, "public", &members, &ip);
    with(json!({"allowedRoutes": all, "tls": {"mode": "Terminate"}}));
    refused(&[public, host], 3, "none of its listeners has protocol TLS and tls.mode Passthrough");
    with(json!({}));
    refused(&[public, host], 3, "takes no routes of the namespace open-cluster-management-hub");
    with(json!({"allowedRoutes": all, "hostname": "*.other.example"}));
    refused(&[public, host], 3, "is for *.other.example, not for grpc.hub.example");
    with(json!({"allowedRoutes": all}));
    refused(&[public, "--grpc-server=192.0.2.7"], 2, "tells servers apart by their names");
    refused(&[public], 2, "needs --grpc-server HOST[:PORT]");
    refused(&["--grpc-gateway=infra/public/other", host], 3, "it has no listener \"other\"");
    // So is what a dry run would make.
    for (promise, code) in [("--dry-run=client", 0), ("--dry-run=server", 0), ("--diff", 3)] {
        let said = through(&[public, host, promise]);
        assert!(said.code == Some(code) && said.stdout.contains("cluster-manager-grpc-server"), "{said:?}");
    }
    unchanged(&hub, &before, "nothing is changed");

    // The name, its port at the Gateway, and the route in the version that the hub serves.
    let said = through(&[public, host]);
    let told = "at grpc.hub.example:8443: that name has to lead to Gateway infra/public, at 192.0.2.7";
    assert!(said.code == Some(0) && said.stderr.contains(told), "{said:?}");
    let route = object(&hub, &ROUTE);
    assert_eq!(route["apiVersion"], "gateway.networking.k8s.io/v1alpha2", "{route:#}");
    assert_eq!(route["spec"]["hostnames"], json!(["grpc.hub.example"]));
    let manager = object(&hub, &["clustermanager", "cluster-manager"]);
    let exposure = &manager["spec"]["serverConfiguration"]["endpointsExposure"][0]["grpc"]["hostname"]["host"];
    assert_eq!(*exposure, json!("grpc.hub.example"), "{manager:#}");
    gateway_api::accepts(&hub, true);
    let said = through(&["--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    runs(&hub);
    // The Service to which it leads is the operator's.
    let backend = &route["spec"]["rules"][0]["backendRefs"][0];
    let service = object(&hub, &["service", backend["name"].as_str().expect("a name"), HUB]);
    assert_eq!(service["spec"]["ports"][0]["port"], backend["port"], "{service:#}");
    // Whoever joins is told that name; here nobody knows it.
    let said = join(hub.kubeconfig(), &[&hub_access(&hub), "--self", GRPC, "--dry-run=client"]);
    assert!(said.stderr.contains("gRPC server at grpc.hub.example:8443"), "{said:?}");
    let before = settled(&hub);
    for flags in [&[public, host][..], &[]] {
        let said = through(flags);
        assert_eq!(said.code, Some(0), "{said:?}");
        unchanged(&hub, &before, "the same again");
    }
    gateway_api::accepts(&hub, false);
    let said = through(&["--wait", "--timeout=10s"]);
    let told = "is not Accepted: NotAllowedByListeners: as the test has it";
    assert!(said.code == Some(124) && said.stderr.contains(told), "{said:?}");

    // What the Gateway itself tells is enough.
    let balancer = json!({"type": "Hostname", "value": "lb.hub.example"});
    gateway_api::gateway(&hub, "balanced", &json!({"allowedRoutes": all, "port": 443}), &balancer);
    let said = through(&["--grpc-gateway=infra/balanced", "--grpc-server=lb.hub.example", "--dry-run=client"]);
    assert!(said.code == Some(0) && said.stderr.contains("at lb.hub.example:443"), "{said:?}");
    gateway_api::gateway(&hub, "own", &json!({"allowedRoutes": all, "hostname": "own.hub.example"}), &ip);
    let said = through(&["--grpc-gateway=infra/own"]);
    assert!(said.code == Some(0) && said.stderr.contains("at own.hub.example:8443"), "{said:?}");
    assert_eq!(object(&hub, &ROUTE)["spec"]["hostnames"], json!(["own.hub.example"]));

    // Another way: the route stays, and it is told how it goes; with the hub it goes by itself.
    let exposed = exposed(&hub);
    let exposed: Vec<&str> = exposed.iter().map(String::as_str).collect();
    let said = install(hub.kubeconfig(), &exposed);
    let told = "kubectl delete tlsroute -n open-cluster-management-hub cluster-manager-grpc-server";
    assert!(said.code == Some(0) && said.stderr.contains(told), "{said:?}");
    let manager = object(&hub, &["clustermanager", "cluster-manager"]);
    assert_eq!(manager["metadata"]["annotations"]["kubectl-ocm/grpc-gateway"], "", "{manager:#}");
    let said = run(kubectl_ocm("uninstall", hub.kubeconfig()).args(["hub", "--yes"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let routes = hub.kubectl(&["get", ROUTE[0], "--all-namespaces", "--output=name"]).expect("a list");
    assert_eq!(routes.trim(), "", "with all that was in its namespace");
    let gateways = hub.kubectl(&["get", "gateways.gateway.networking.k8s.io", "--all-namespaces", "--output=name"]);
    assert_eq!(gateways.expect("a list").lines().count(), 3, "they are somebody else's");
}

//! A hub whose pods run on another cluster: it is installed, clusters join it, it is upgraded and taken away, on real clusters.
//!
//! `cargo test -p e2e-tests --test e2e hosted_hub::`; it needs root.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};
use e2e_tests::accept_support::token_kubeconfig;
use e2e_tests::grpc_hub::node;
use e2e_tests::join_support::{JoinCommand, hub_access, join};
use e2e_tests::manifests::apply_client_side;
use e2e_tests::residue::{nothing_stays, sweep};
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::own_address;
use e2e_tests::{Said, all_settled, bundle, earlier_bundle, kubectl_ocm, object, resource_versions, run, until_within};
use serde_json::{Value, json};

/// The namespace of the hub's pods, on both clusters, and the name of the ClusterManager.
const HUB: &str = "open-cluster-management-hub";
const IN_HUB: &str = "--namespace=open-cluster-management-hub";
/// How long agents may take.
const SLOW: Duration = Duration::from_secs(90);

/// The webhooks' Deployments, and the ports of the hosting cluster's nodes that lead to their pods.
const WEBHOOKS: [(&str, u16); 2] = [("registration-webhook", 30443), ("work-webhook", 31443)];

/// A gateway that passes TLS through to a port of a node, by the name that the client asks for: the hub's API server asks both
/// webhooks at one address. Where it listens.
fn gateway(at: &str, node: &str) -> String {
    let listener = TcpListener::bind((at, 0)).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let node = node.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let node = node.clone();
            // Whoever closes a connection closes it.
            thread::spawn(move || drop(pass(client, &node)));
        }
    });
    address
}

fn pass(mut client: TcpStream, node: &str) -> io::Result<()> {
    // The header of the first record tells its length (RFC 8446 section 5.1), and the record holds the whole ClientHello.
    let mut hello = vec![0; 5];
    client.read_exact(&mut hello)?;
    let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
    hello.resize(5 + length, 0);
    client.read_exact(&mut hello[5..])?;
    let asks = |name: &str| hello.windows(name.len()).any(|part| part == name.as_bytes());
    let wanted = WEBHOOKS.into_iter().find(|(name, _)| asks(&format!("cluster-manager-{name}.{HUB}.svc")));
    let Some((_, port)) = wanted else { return Ok(()) };
    let mut server = TcpStream::connect((node, port))?;
    server.write_all(&hello)?;
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || {
        let copied = io::copy(&mut from, &mut to);
        to.shutdown(Shutdown::Write).and(copied.map(drop))
    });
    let copied = io::copy(&mut client, &mut server);
    server.shutdown(Shutdown::Write).ok();
    back.join().map_err(|_| io::Error::other("the thread has ended"))??;
    copied.map(drop)
}

/// What leads to the pods of the webhooks, as their documentation has it.
fn expose(hosting: &Cluster) {
    apply_client_side(hosting, "space", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HUB}}));
    for (name, port) in WEBHOOKS {
        let spec = json!({"type": "NodePort", "selector": {"app": format!("{HUB}-{name}")},
            "ports": [{"port": 9443, "targetPort": 9443, "nodePort": port}]});
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": HUB}, "spec": spec});
        apply_client_side(hosting, name, &service);
    }
}

fn command(verb: &str, kubeconfig: &Path, flags: &[&str]) -> Said {
    run(kubectl_ocm(verb, kubeconfig).arg("hub").args(flags))
}

/// It ended with this exit code and these words.
fn ends(code: i32, words: &[&str], said: Said) -> Said {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert!(words.iter().all(|word| said.stderr.contains(word)), "{words:?}: {said:?}");
    said
}

/// The token with which the operator keeps the hub.
fn operators_token(hosting: &Cluster) -> String {
    let secret = object(hosting, &["secret", "external-hub-kubeconfig", IN_HUB]);
    let text = secret["data"]["kubeconfig"].as_str().expect("it holds a kubeconfig");
    let text = String::from_utf8(STANDARD.decode(text).expect("base64")).expect("text");
    ocm_flows::hub::parse(&text).expect("a kubeconfig").token
}

/// Whether the hub lets whoever holds a token make an account.
fn lets_in(hub: &Cluster, token: &str) -> bool {
    let config = hub.dir().expect("a folder").join("of-token.kubeconfig");
    std::fs::write(&config, token_kubeconfig(hub, token)).expect("written");
    let flag = format!("--kubeconfig={}", config.display());
    let words = ["create", "serviceaccount", "tried", "--dry-run=server", "--namespace=default"];
    run(hub.kubectl_command().arg(flag).args(words)).code == Some(0)
}

/// Services of ours take no port that is another's, and where they are to be reached is looked at before anything is changed.
fn looks_at_ports_of_nodes(hosting: &Cluster, exposer: &Path, access: &str) {
    let install = |addresses: [&str; 2]| {
        let typed = [format!("--registration-webhook={}", addresses[0]), format!("--work-webhook={}", addresses[1])];
        let fixed =
            ["--mode=hosted", access, "--bundle-version=1.3.1", "--expose-webhooks=nodePort", "--dry-run=client"];
        command("install", exposer, &[&fixed[..], &[typed[0].as_str(), typed[1].as_str()]].concat())
    };
    let node = node(hosting);
    // Those that people have made hold the usual ports.
    let taken =
        ["port 30443 of the nodes", "is that of Service open-cluster-management-hub/registration-webhook already"];
    ends(3, &taken, install([node.as_str(), node.as_str()]));
    ends(2, &["a port of the nodes of its own"], install(["192.0.2.9:30543", "192.0.2.9:30543"]));
    let said = install(["192.0.2.9:30543", &format!("{node}:31543")]);
    let said = ends(0, &["no node of", "has the address 192.0.2.9"], said);
    assert!(!said.stderr.contains(&format!("has the address {node}")), "{said:?}");
    for (name, _) in WEBHOOKS {
        assert!(said.stdout.contains(&format!("service/{HUB}-{name}-external created")), "{said:?}");
    }
}

/// The Services of ours lead to the pods of the webhooks, while the hub goes on asking where it did.
fn leads_to_its_webhooks(hosting: &Cluster, exposer: &Path, hosted: &[&str]) {
    let said = command("install", exposer, &[hosted, &["--expose-webhooks=loadBalancer", "--wait"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    for (name, _) in WEBHOOKS {
        let exposed = format!("{HUB}-{name}-external");
        let service = object(hosting, &["service", &exposed, IN_HUB]);
        assert_eq!(service["spec"]["type"], "LoadBalancer", "{service:#}");
        let leads = || {
            let selector = format!("--selector=kubernetes.io/service-name={exposed}");
            let slices = object(hosting, &["endpointslices", IN_HUB, &selector]);
            let slices = slices["items"].as_array().cloned().unwrap_or_default();
            slices
                .iter()
                .any(|slice| slice["ports"][0]["port"] == 9443 && slice["endpoints"][0]["conditions"]["ready"] == true)
        };
        until_within(SLOW, "it leads to a pod", || format!("{service:#}"), leads);
    }
}

#[test]
fn a_hub_is_hosted_clusters_join_it_and_nothing_stays_of_it_on_either_cluster() {
    let specs = ["hub-host", "hosted-hub", "of-hosted"].map(|name| Spec::node(name).ocm_images(true));
    let clusters = Cluster::start_all(&specs).expect("clusters");
    let [hosting, hub, cluster] = &clusters[..] else { panic!("three clusters") };
    let installer = user_with(hosting, "hosting", &["install.yaml", "install-hosted.yaml"]);
    let exposed = ["install.yaml", "install-hosted.yaml", "install-expose-webhooks.yaml"];
    let exposer = user_with(hosting, "exposer", &exposed);
    let on_hub = user_with(hub, "on-hub", &["install-hosted-hub.yaml"]);
    let leave = ["uninstall-hub.yaml", "uninstall-hosted.yaml", "leave-namespaces.yaml"];
    let [remover, remover_on_hub] = [hosting, hub].map(|cluster| user_with(cluster, "remover", &leave));
    let before: Vec<BTreeSet<String>> = clusters.iter().map(sweep).collect();
    let to = |kubeconfig: &Path| format!("--hub-kubeconfig={}", kubeconfig.display());
    let (access, admin) = (to(&on_hub), to(hub.kubeconfig()));

    expose(hosting);
    let address = gateway(&own_address(hub), &node(hosting));
    let addresses = WEBHOOKS.map(|(name, _)| format!("--{name}={address}"));
    let release = format!("--bundle-version={}", earlier_bundle());
    let hosted: [&str; 5] = ["--mode=hosted", &access, &addresses[0], &addresses[1], &release];
    let both = [hosting, hub];
    let install = |flags: &[&str]| command("install", &installer, flags);

    // What cannot be.
    let untouched = all_settled(both);
    let named = "--hub-context NAME or --hub-kubeconfig FILE";
    ends(2, &[named], install(&["--mode=hosted", &addresses[0], &addresses[1]]));
    ends(2, &["--mode hosted"], install(&[&access]));
    ends(2, &["needs --registration-webhook HOST[:PORT]"], install(&["--mode=hosted", &access]));
    let no_address = "--work-webhook=https://w.example";
    ends(2, &["is not HOST or HOST:PORT"], install(&["--mode=hosted", &access, no_address]));
    let ports = ["--bundle-version=1.2.0", "--registration-webhook=10.0.0.1:30443", "--work-webhook=10.0.0.1:31443"];
    let said = install(&[&["--mode=hosted", access.as_str()][..], &ports].concat());
    ends(2, &["asks both webhooks of a hosted hub at one port"], said);
    let itself = to(hosting.kubeconfig());
    ends(3, &["are one cluster"], install(&["--mode=hosted", &itself, &addresses[0], &addresses[1]]));
    looks_at_ports_of_nodes(hosting, &exposer, &access);

    // What it would do.
    for promise in ["--dry-run=client", "--dry-run=server"] {
        let said = ends(0, &[], install(&[&hosted[..], &[promise]].concat()));
        assert!(said.stdout.contains("secret/external-hub-kubeconfig created"), "{said:?}");
        assert!(said.stdout.contains("serviceaccount/open-cluster-management-hub-operator created"), "{said:?}");
    }
    ends(3, &[], install(&[&hosted[..], &["--diff"]].concat()));
    let said = ends(0, &["is not among them"], install(&[&hosted[..], &["--render"]].concat()));
    let kubeconfig = STANDARD.encode("apiVersion: v1\nkind: Config");
    assert!(said.stdout.contains("mode: Hosted") && said.stdout.contains("external-hub-kubeconfig"), "{said:?}");
    assert!(!said.stdout.contains(&kubeconfig), "{said:?}");
    assert_eq!(both.map(resource_versions), untouched);

    // From nothing to usable; killed on the way, and run again.
    for after in [500, 2_000] {
        let mut killed = kubectl_ocm("install", &installer);
        killed.arg("hub").args(hosted).stdout(Stdio::null()).stderr(Stdio::null());
        let mut killed = killed.spawn().expect("it starts");
        thread::sleep(Duration::from_millis(after));
        let _ = killed.kill();
        killed.wait().expect("it ends");
    }
    let said = install(&[&hosted[..], &["--wait"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("the hub is usable"), "{said:?}");
    for place in ["(hub, ", "(hosting cluster, "] {
        assert!(said.stdout.contains(place), "{said:?}");
    }
    let deployments = |cluster: &Cluster| {
        let list = object(cluster, &["deployments", IN_HUB]);
        list["items"].as_array().map_or(0, Vec::len)
    };
    assert!(deployments(hosting) >= 4 && deployments(hub) == 0);
    let first = operators_token(hosting);
    assert!(lets_in(hub, &first) && !format!("{said:?}").contains(&first));

    // Neither is half of it made a hub of its own or taken away, nor another cluster taken for its hub.
    let there = all_settled(both);
    ends(2, &["nothing says which cluster it is", "--hub-context NAME"], install(&[]));
    ends(3, &["in mode Hosted", "not moved"], install(&["--mode=default"]));
    let on_itself = "run on another cluster, which hosts it";
    ends(3, &[on_itself], command("install", hub.kubeconfig(), &[]));
    ends(3, &[on_itself], command("uninstall", hub.kubeconfig(), &["--yes"]));
    let other = to(cluster.kubeconfig());
    ends(3, &["has another hub than"], command("install", hosting.kubeconfig(), &[&other]));
    ends(3, &["is not the hub of"], command("uninstall", hosting.kubeconfig(), &["--yes", &other]));
    let said = command("uninstall", hosting.kubeconfig(), &["--yes"]);
    ends(3, &["cannot be seen from", "--hub-context NAME"], said);
    assert_eq!(both.map(resource_versions), there);

    // Again: nothing but a new token, and the former one lets nobody in any more.
    let said = ends(0, &["the former token"], install(&[&access, "--wait"]));
    let second = operators_token(hosting);
    assert!(second != first && lets_in(hub, &second), "{said:?}");
    until_within(SLOW, "the former token ends", String::new, || !lets_in(hub, &first));

    leads_to_its_webhooks(hosting, &exposer, &hosted);

    // It is upgraded where its pods run, and stays hosted.
    let target = format!("--bundle-version={}", bundle());
    let said = command("upgrade", hosting.kubeconfig(), &[&target, "--wait"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let manager = object(hosting, &["clustermanager", HUB]);
    assert_eq!(manager["spec"]["deployOption"]["mode"], "Hosted", "{manager:#}");
    let image = manager["spec"]["workImagePullSpec"].as_str().unwrap_or_default();
    assert!(image.ends_with(&format!("v{}", bundle())), "{image}");

    // A cluster joins it with a token, and gets what the hub sends.
    let token = JoinCommand::create(hub, &[]);
    let said = join(cluster, "c1", &[token.flags(), vec!["--wait".to_owned()]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(kubectl_ocm("accept", hub.kubeconfig()).args(["c1", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let available = || {
        let path = "--output=jsonpath={.status.conditions[?(@.type=='ManagedClusterConditionAvailable')].status}";
        hub.kubectl(&["get", "managedcluster", "c1", path]).unwrap_or_default()
    };
    until_within(SLOW, "it is available", available, || available().trim() == "True");
    let listed = run(kubectl_ocm("get", hub.kubeconfig()).args(["clusters"]));
    assert!(listed.code == Some(0) && listed.stdout.contains("c1"), "{listed:?}");
    let set = object(hub, &["managedcluster", "c1"]);
    let set = &set["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"];
    assert_eq!(set, "default", "the webhook of registration has seen it");
    let wrong = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "empty", "namespace": "c1"}, "spec": {"workload": {"manifests": []}}});
    let file = hub.dir().expect("a folder").join("empty.json");
    std::fs::write(&file, wrong.to_string()).expect("written");
    let refused = hub.kubectl(&["apply", "--filename", file.to_str().expect("text")]);
    let refused = refused.expect_err("the webhook of works refuses it").to_string();
    assert!(refused.contains("admission webhook"), "{refused}");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "default"}});
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1"}, "spec": {"workload": {"manifests": [map]}}});
    apply_client_side(hub, "work", &work);
    until_within(SLOW, "the work is applied", String::new, || {
        cluster.kubectl(&["get", "configmap", "w", "--namespace=default"]).is_ok()
    });

    // What its pods come to it with, and what they present, is judged where they run.
    let said = run(kubectl_ocm("tls-check", hosting.kubeconfig()).arg("--output=json"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let told: Value = serde_json::from_str(&said.stdout).expect("tls-check -o json prints JSON");
    let has = |list: &str, name: &str| {
        let mut all = told["inventory"][list].as_array().into_iter().flatten();
        all.any(|one| one["place"]["object"]["name"] == name)
    };
    assert!(has("copies", "external-hub-kubeconfig") && has("tokens", "external-hub-kubeconfig"), "{}", said.stdout);
    assert!(has("relations", "registration-webhook-serving-cert"), "{}", said.stdout);

    // It is not taken away while a cluster is attached; then all of it goes, killed on the way, and run again.
    let said = command("uninstall", hosting.kubeconfig(), &["--yes", &admin]);
    ends(3, &["a managed cluster is attached", "c1; nothing was deleted"], said);
    let said = run(kubectl_ocm("unjoin", cluster.kubeconfig()).args(["c1", "--yes", &hub_access(hub)]));
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(cluster, &before[2]);
    let hub_of_remover = to(&remover_on_hub);
    let there = all_settled(both);
    let said = ends(0, &[], command("uninstall", hosting.kubeconfig(), &["--dry-run=server", &admin]));
    assert!(said.stdout.contains("namespace/open-cluster-management-hub-operator deleted"), "{said:?}");
    assert_eq!(both.map(resource_versions), there);
    for after in [500, 3_000] {
        let mut killed = kubectl_ocm("uninstall", &remover);
        killed.args(["hub", "--yes", &hub_of_remover]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut killed = killed.spawn().expect("it starts");
        thread::sleep(Duration::from_millis(after));
        let _ = killed.kill();
        killed.wait().expect("it ends");
    }
    let said = command("uninstall", &remover, &["--yes", "--mode=hosted", &hub_of_remover]);
    assert_eq!(said.code, Some(0), "{said:?}");
    nothing_stays(hosting, &before[0]);
    nothing_stays(hub, &before[1]);
    let said = command("uninstall", &remover, &["--yes", &hub_of_remover]);
    assert!(said.code == Some(0) && said.stderr.contains("there is no hub"), "{said:?}");
}

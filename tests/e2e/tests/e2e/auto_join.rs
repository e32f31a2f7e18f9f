//! Real agents join a real hub with nobody at it: the policies of the webhook judge, and the controller writes.

use std::fs;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane::{Cluster, Spec};
use csr_fixtures::Fixture;
use e2e_tests::accept_support::{Ask, all_established, managed_cluster, token_kubeconfig};
use e2e_tests::connection::connect;
use e2e_tests::controller_support::Controller;
use e2e_tests::grpc_support::{Credential, Event, GrpcServer};
use e2e_tests::join_support::{JoinCommand, bring, join};
use e2e_tests::manifests::apply;
use e2e_tests::roles::user_with;
use e2e_tests::webhook_support::{HYGIENE, Webhook, policy, prepare};
use e2e_tests::{bundle, kubectl_ocm, object, run, until, until_within};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use ocm_api::ManagedCluster;
use ocm_api::names::{identity, signers};
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// A hub with the policies that say what the rules say, and one that approves names of a team.
fn hub(hub: &Cluster) -> (Webhook, Controller) {
    let said = run(kubectl_ocm("install", hub.kubeconfig()).args(["hub", "--bundle-version", bundle(), "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    serve_grpc(hub);
    prepare(hub);
    apply(hub, ocm_api::crds::registration_manifest().body());
    all_established(hub);
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
    let controller = Controller::start_as(&user_with(hub, "controller", &["policy-controller.yaml"]));
    (webhook, controller)
}

fn status(hub: &Cluster, name: &str) -> Value {
    object(hub, &["registrations.policy.kubectl-ocm.dev", name])["status"].clone()
}

/// The name under which agents know the hub's gRPC server, and the port of the hub's node that leads to it.
const GRPC_HOST: &str = "hub-grpc.example";
const GRPC_PORT: u16 = 30090;

/// The validating webhook of clusters that OCM's own hub brings along.
const OCM_WEBHOOK: &str = "managedclustervalidators.admission.cluster.open-cluster-management.io";

/// How long an agent may take over gRPC: it tries again after half a minute when its first subscription fails, before and
/// after its certificate is issued.
const GRPC_TIME: Duration = Duration::from_secs(300);

/// Lets agents register over gRPC, as whoever keeps the hub does: driver, name, and a port of the node.
fn serve_grpc(hub: &Cluster) {
    let spec = json!({"spec": {
        "registrationConfiguration": {"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]},
        "serverConfiguration": {"endpointsExposure": [
            {"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": GRPC_HOST}}},
        ]},
    }});
    let patch = spec.to_string();
    hub.kubectl(&["patch", "clustermanager", "cluster-manager", "--type=merge", "--patch", &patch]).expect("patched");
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "grpc-for-agents", "namespace": "open-cluster-management-hub"},
        "spec": {"type": "NodePort", "selector": {"app": "cluster-manager-grpc-server"},
                 "ports": [{"port": 8090, "targetPort": 8090, "nodePort": GRPC_PORT}]}});
    apply(hub, &service);
    // The controllers start anew with another driver, and nobody is registered by those that end.
    for name in ["grpc-server", "registration-controller"] {
        let what = format!("deployment/cluster-manager-{name}");
        let words = ["rollout", "status", &what, "--namespace=open-cluster-management-hub", "--timeout=5s"];
        until_within(GRPC_TIME, &what, String::new, || hub.kubectl(&words).is_ok());
    }
}

/// What `join` would apply, with the driver of gRPC and the address of its server, applied by hand.
fn join_over_grpc(hub: &Cluster, cluster: &Cluster, name: &str, command: &JoinCommand) {
    let flags = ["--render", "--show-secrets", "--output=json"].map(str::to_owned);
    let said = join(cluster, name, &[&command.flags()[..], &flags].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut rendered: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let bundle = object(hub, &["configmap", "ca-bundle-configmap", "--namespace=open-cluster-management-hub"]);
    let authority = bundle["data"]["ca-bundle.crt"].as_str().expect("the hub's own CA");
    let config = json!({
        "url": format!("{GRPC_HOST}:{GRPC_PORT}"), "caData": STANDARD.encode(authority), "token": command.token,
    });
    let address = hub.server().trim_start_matches("https://").split(':').next().expect("an address");
    let objects = rendered["items"].as_array_mut().expect("objects");
    for object in objects.iter_mut() {
        match object["kind"].as_str() {
            Some("Secret") if object["metadata"]["name"] == "bootstrap-hub-kubeconfig" => {
                object["data"]["config.yaml"] = json!(STANDARD.encode(config.to_string()));
            }
            Some("Klusterlet") => {
                object["spec"]["registrationConfiguration"]["registrationDriver"] = json!({"authType": "grpc"});
                object["spec"]["hubApiServerHostAlias"] = json!({"hostname": GRPC_HOST, "ip": address});
            }
            _ => {}
        }
    }
    let last = objects.pop().expect("the Klusterlet");
    apply(cluster, &rendered);
    all_established(cluster);
    apply(cluster, &last);
}

/// The write is refused each time that it is tried, by our webhook with `code`.
///
/// The API server asks webhooks side by side and returns the refusal that comes first, which may be that of OCM's own.
fn refused(server: &GrpcServer, who: &Credential, authorised: &str, event: Event, object: &Value, code: &str) {
    let mut said = String::new();
    let by_us = || {
        said = server.publish(who, authorised, event, object).expect_err("it is refused");
        let by_ocm = said.contains(OCM_WEBHOOK);
        assert!(by_ocm || said.contains(code), "{code}: {said}");
        !by_ocm
    };
    until(&format!("our webhook is the first to refuse it with {code}"), by_us);
}

/// What nobody gets who has a bootstrap token, or the certificate of one agent, and says to the hub's gRPC server whatever he
/// likes.
fn a_hostile_agent_over_grpc_gets_nothing(hub: &Cluster, agent: &Cluster) {
    let folder = hub.dir().expect("a folder").join("hostile");
    fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        fs::write(&file, bytes).expect("written");
        file
    };
    let bundle = object(hub, &["configmap", "ca-bundle-configmap", "--namespace=open-cluster-management-hub"]);
    let authority = bundle["data"]["ca-bundle.crt"].as_str().expect("the hub's own CA");
    let server = GrpcServer {
        host: (GRPC_HOST.to_owned(), GRPC_PORT),
        address: hub.server().trim_start_matches("https://").split(':').next().expect("an address").to_owned(),
        authority: write("ca.crt", authority.as_bytes()),
        folder: folder.clone(),
    };
    let token = Credential::Token(JoinCommand::create(hub, &["--kind", "service-account"]).token);
    let secret = object(agent, &["secret", "hub-kubeconfig-secret", "--namespace=open-cluster-management-agent"]);
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| {
        write(name, &STANDARD.decode(secret["data"][name].as_str().expect("a credential")).expect("base64"))
    });
    let certificate = Credential::Certificate(certificate, key);

    let clusters = || {
        let all = object(hub, &["managedclusters"]);
        let all = all["items"].as_array().cloned().unwrap_or_default();
        // Leases and conditions go on; what counts is who is let in, and with which labels, taints and certificates.
        let part = |cluster: &Value| {
            let meta = &cluster["metadata"];
            json!([meta["name"], meta["labels"], meta["annotations"], meta["finalizers"], cluster["spec"]])
        };
        all.iter().map(part).collect::<Vec<_>>()
    };
    let approved = || {
        let all = object(hub, &["csr"]);
        let all = all["items"].as_array().cloned().unwrap_or_default();
        let names =
            all.iter().filter(|one| !one["status"]["conditions"].is_null()).map(|one| one["metadata"]["name"].clone());
        names.collect::<Vec<_>>()
    };
    let (before, decided) = (clusters(), approved());

    // Objects of clusters: a new one that lets itself in, and those that are there, as their own agent and as another's.
    let cluster = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut object = match before.iter().any(|one| one[0] == name) {
            true => object(hub, &["managedcluster", name]),
            false => serde_json::to_value(managed_cluster(name)).expect("JSON"),
        };
        change(&mut object);
        object
    };
    let accepts = |object: &mut Value| object["spec"]["hubAcceptsClient"] = json!(true);
    let leaves = |object: &mut Value| object["spec"]["hubAcceptsClient"] = json!(false);
    let moves = |object: &mut Value| {
        object["metadata"]["labels"]["cluster.open-cluster-management.io/clusterset"] = json!("production");
    };
    let untaints = |object: &mut Value| {
        object["spec"]["taints"] = json!([{"key": "hostile", "effect": "NoSelect"}]);
    };
    for (who, authorised, event, object, code) in [
        (&token, "team-x", Event::CreateCluster, cluster("team-x", &accepts), "AcceptedAtCreation"),
        (&token, "team-x", Event::CreateCluster, cluster("team-x", &moves), "ClusterSet"),
        // The server may act for any of its clients, so it writes to no cluster before the settings name it.
        (&certificate, "team-c", Event::UpdateCluster, cluster("team-c", &leaves), "grpcClusters"),
        (&certificate, "team-c", Event::UpdateCluster, cluster("team-a", &leaves), "grpcClusters"),
    ] {
        refused(&server, who, authorised, event, &object, code);
    }
    let named = json!({"module": {"builtin": "agent-self-edit"}, "settings": {"grpcClusters": ["team-c"]}});
    policy(hub, "agent-self-edit", named);
    let mut said = String::new();
    until("the settings are in force", || {
        let object = cluster("team-c", &leaves);
        said = server.publish(&certificate, "team-c", Event::UpdateCluster, &object).expect_err("it is refused");
        said.contains("HubAcceptsClient") && !said.contains(OCM_WEBHOOK)
    });
    for (object, code) in [
        (cluster("team-c", &moves), "Labels"),
        (cluster("team-c", &untaints), "Taints"),
        // Under its own name, about another's cluster.
        (cluster("team-a", &leaves), "grpcClusters"),
        (cluster("team-a", &moves), "grpcClusters"),
    ] {
        refused(&server, &certificate, "team-c", Event::UpdateCluster, &object, code);
    }

    // Certificate requests: of another kind, for another's name, and for a name that is taken.
    let request = |name: &str, change: &dyn Fn(&mut Ask)| {
        let mut ask = Ask::with(name, &Fixture::agent(name, "hostile"));
        ask.signer = signers::GRPC.to_owned();
        // Over gRPC whoever asks makes up the name.
        ask.name = Some(format!("{name}-hostile"));
        change(&mut ask);
        serde_json::to_value(ask.object()).expect("JSON")
    };
    for (who, authorised, object, code) in [
        (&token, "team-y", request("team-y", &|ask| ask.signer = signers::KUBE_APISERVER_CLIENT.to_owned()), "Signer"),
        (&token, "team-y", request("team-y", &|ask| ask.usages.push("server auth".to_owned())), "Usages"),
        (&certificate, "team-c", request("team-a", &|_| {}), "OtherAgent"),
        (&token, "team-a", request("team-a", &|_| {}), "NameTaken"),
    ] {
        refused(&server, who, authorised, Event::CreateRequest, &object, code);
    }
    assert_eq!(clusters(), before);
    assert_eq!(approved(), decided);
}

/// Where the policies would refuse the certificate of its one agent, a cluster is not moved to it, and nothing is changed; where
/// they would not, nobody says so.
fn a_move_that_the_policies_would_refuse_is_refused_beforehand(hub: &Cluster, cluster: &Cluster, name: &str) {
    let on_hub = user_with(hub, "mover", &["join-hub.yaml", "accept.yaml"]);
    let access = format!("--hub-kubeconfig={}", on_hub.display());
    let waits = ["wait", "hubpolicy/name-claim", "--for=condition=Enforcing", "--timeout=2s"];
    until("requests wait for name-claim", || hub.kubectl(&waits).is_ok());
    let generation = || object(cluster, &["klusterlet", "klusterlet"])["metadata"]["generation"].clone();
    let before = generation();
    let moved = |flags: &[&str]| join(cluster, name, &[&[access.as_str(), "--singleton"][..], flags].concat());
    for flags in [&["--accept", "--dry-run"][..], &["--diff"], &["--accept", "--wait"], &[]] {
        let said = moved(flags);
        assert_eq!(said.code, Some(3), "{flags:?}: {said:?}");
        assert!(said.stderr.contains("policy \"name-claim\" of the hub refuses"), "{flags:?}: {said:?}");
        assert!(said.stderr.contains("kubectl ocm policy disable name-claim"), "{flags:?}: {said:?}");
    }
    let switched = |words: &[&str]| {
        let said = run(kubectl_ocm("policy", hub.kubeconfig()).args(words));
        assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    };
    switched(&["disable", "name-claim", "--yes"]);
    let said = moved(&["--accept", "--dry-run"]);
    assert!(said.code == Some(0) && !said.stderr.contains("name-claim"), "{said:?}");
    assert!(said.stderr.contains("its agent would go from mode Default to Singleton"), "{said:?}");
    switched(&["enable", "name-claim"]);
    assert_eq!(generation(), before);
}

/// What a real agent asks for an add-on of its cluster is no reason to object.
fn the_agent_of_an_add_on_gets_its_certificate(hub: &Cluster, name: &str) {
    let object_of_agent = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "watcher", "namespace": "open-cluster-management-agent-addon"}});
    let file = hub.dir().expect("a folder").join("watcher.json");
    fs::write(&file, object_of_agent.to_string()).expect("written");
    let file = file.to_str().expect("text");
    let clusters = format!("--clusters={name}");
    for words in [&["create", "watcher", "-f", file, "--hub-registration"][..], &["enable", "watcher", &clusters]] {
        let said = run(kubectl_ocm("addon", hub.kubeconfig()).args(words));
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let requests = || object(hub, &["csr", "--selector=open-cluster-management.io/addon-name=watcher"]);
    let is_issued = || {
        requests()["items"].as_array().is_some_and(|all| all.iter().any(|one| !one["status"]["certificate"].is_null()))
    };
    until_within(GRPC_TIME, "the add-on has a certificate", || requests().to_string(), is_issued);
}

/// What the work agent of a cluster that joined over gRPC says of a work passes the policies: that it is there, and that it is gone.
fn a_work_comes_and_goes_over_grpc(hub: &Cluster, cluster: &Cluster, name: &str) {
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "over-grpc", "namespace": name},
        "spec": {"workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "over-grpc", "namespace": "default"}, "data": {"came": "over gRPC"}}]}}});
    apply(hub, &work);
    let namespace = format!("--namespace={name}");
    let waits = ["wait", "manifestwork/over-grpc", &namespace, "--for=condition=Applied", "--timeout=5s"];
    let said = || object(hub, &["manifestwork", "over-grpc", &namespace]).to_string();
    until_within(GRPC_TIME, "the work is applied", said, || hub.kubectl(&waits).is_ok());
    assert_eq!(object(cluster, &["configmap", "over-grpc", "--namespace=default"])["data"]["came"], "over gRPC");
    hub.kubectl(&["delete", "manifestwork/over-grpc", &namespace, "--timeout=120s"]).expect("it goes");
}

/// That Open Cluster Management's own webhook of clusters does not answer, or is not trusted, stands in the status of the policies.
/// Its operator, which would put both right, is stopped before.
fn that_the_hubs_own_webhook_does_not_answer_is_told(hub: &Cluster) {
    let path = "--output=jsonpath={.status.conditions[?(@.type==\"Degraded\")].reason}";
    let degraded = || hub.kubectl(&["get", "hubpolicy", "csr-hygiene", path]).unwrap_or_default();
    let told = |reason: &str, meanwhile: &dyn Fn()| {
        until_within(GRPC_TIME, reason, degraded, || {
            meanwhile();
            degraded() == reason
        });
    };
    let scale = |namespace: &str, name: &str, replicas: u32| {
        let flags = [format!("--namespace={namespace}"), format!("--replicas={replicas}")];
        hub.kubectl(&["scale", "deployment", name, &flags[0], &flags[1]]).expect("it is scaled");
    };
    let webhook = |replicas| scale("open-cluster-management-hub", "cluster-manager-registration-webhook", replicas);
    told("AsWanted", &|| ());
    scale("open-cluster-management", "cluster-manager", 0);
    // An operator that ends may put it back once more.
    told("NoAnswer", &|| webhook(0));
    told("AsWanted", &|| webhook(1));
    let foreign = rcgen::generate_simple_self_signed(vec!["foreign".to_owned()]).expect("a certificate").cert.pem();
    let change =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": STANDARD.encode(foreign)}]);
    let patch = format!("--patch={change}");
    let patch = ["patch", "validatingwebhookconfiguration", OCM_WEBHOOK, "--type=json", &patch];
    told("NotTrusted", &|| drop(hub.kubectl(&patch).expect("it is changed")));
}

#[test]
fn agents_join_without_a_person_by_either_token_in_either_mode_and_over_grpc() {
    let mut specs = ["auto-hub", "auto-default", "auto-singleton", "auto-grpc"].map(Spec::node);
    specs[0].audited = true;
    let clusters = Cluster::start_all(&specs).expect("the clusters start");
    let [hub_cluster, default, singleton, over_grpc] = clusters.as_slice() else { panic!("four were asked for") };
    let (_webhook, _controller) = hub(hub_cluster);
    let flags = |kind: &str, more: &[&str]| {
        let mut flags = JoinCommand::create(hub_cluster, &["--kind", kind]).flags();
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        flags
    };
    let by_account = flags("service-account", &["--wait=available"]);
    let by_token = flags("bootstrap", &["--wait=available", "--singleton"]);
    let for_grpc = JoinCommand::create(hub_cluster, &["--kind", "service-account"]);
    thread::scope(|scope| {
        for (cluster, name, flags) in [(default, "team-a", &by_account), (singleton, "team-b", &by_token)] {
            scope.spawn(move || {
                let said = join(cluster, name, flags);
                assert_eq!(said.code, Some(0), "{name}: {said:?}");
            });
        }
        scope.spawn(|| {
            join_over_grpc(hub_cluster, over_grpc, "team-c", &for_grpc);
            let available =
                ["--for=condition=ManagedClusterConditionAvailable", "managedcluster/team-c", "--timeout=2s"];
            let is_available = || hub_cluster.kubectl(&[&["wait"], &available[..]].concat()).is_ok();
            let said = || object(hub_cluster, &["managedclusters,csr,hreg"]).to_string();
            until_within(GRPC_TIME, "team-c is available", said, is_available);
        });
    });
    // The hub's gRPC server asked, on behalf of whoever had the token.
    let request = object(hub_cluster, &["csr", "--selector=open-cluster-management.io/cluster-name=team-c"]);
    let request = &request["items"][0]["spec"];
    assert_eq!(request["signerName"], signers::GRPC, "{request:#}");
    assert_eq!(request["username"], identity::GRPC_SERVER_USER, "{request:#}");
    let asked = &status(hub_cluster, "team-c")["requester"]["username"];
    assert_eq!(asked, "system:serviceaccount:open-cluster-management:agent-registration-bootstrap");
    for name in ["team-a", "team-b", "team-c"] {
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

    // What the hub brings gets there, and the agent says so.
    bring(hub_cluster, "team-a", "brought");
    default.kubectl(&["get", "configmap", "brought", "--namespace=default"]).expect("it is there");
    a_work_comes_and_goes_over_grpc(hub_cluster, over_grpc, "team-c");
    a_hostile_agent_over_grpc_gets_nothing(hub_cluster, over_grpc);
    the_agent_of_an_add_on_gets_its_certificate(hub_cluster, "team-a");

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

    a_move_that_the_policies_would_refuse_is_refused_beforehand(hub_cluster, default, "team-a");

    // The hub's own webhooks have asked for the rights that the controller has for them alone.
    let allowed = hub_cluster.allowed_to("controller").expect("the audit log can be read");
    for right in [("update", "managedclusters/accept"), ("create", "managedclustersets/join")] {
        assert!(allowed.iter().any(|one| (&*one.verb, &*one.resource) == right), "{right:?}: {allowed:#?}");
    }
    that_the_hubs_own_webhook_does_not_answer_is_told(hub_cluster);
}

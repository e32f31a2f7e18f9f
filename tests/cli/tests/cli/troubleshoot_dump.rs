//! Reports from what others have taken: the same as from the clusters themselves, and nothing about what is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Asked, Reply, Server};
use cli_tests::{Cli, Run, authority, binary, kubeconfig};
use serde_json::{Value, json};

/// The time of the clusters.
const NOW: &str = "2026-03-01T12:00:00Z";
/// What is secret, and in no output.
const CANARY: &str = "canary-s3cr3t";

type Objects = Vec<Value>;

fn object(version: &str, kind: &str, namespace: &str, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": version, "kind": kind,
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    for (member, value) in more.as_object().into_iter().flatten() {
        match (member.as_str(), value) {
            ("metadata", Value::Object(extra)) => {
                for (member, value) in extra {
                    object["metadata"][member] = value.clone();
                }
            }
            _ => object[member] = value.clone(),
        }
    }
    object
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn lease(namespace: &str, name: &str, renewed: &str, holder: &str) -> Value {
    let spec = json!({"renewTime": renewed, "holderIdentity": holder, "leaseDurationSeconds": 60});
    object("coordination.k8s.io/v1", "Lease", namespace, name, json!({ "spec": spec }))
}

fn deployment(namespace: &str, name: &str) -> Value {
    let spec = json!({"replicas": 1, "selector": {}, "template": {"spec": {"containers": [{"image": format!("r/{name}:v1.3.1")}]}}});
    let status = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
    object("apps/v1", "Deployment", namespace, name, json!({"spec": spec, "status": status}))
}

fn definition(name: &str) -> Value {
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, json!({}))
}

fn pod(namespace: &str, name: &str, status: Value) -> Value {
    object("v1", "Pod", namespace, name, json!({"spec": {"nodeName": "n", "containers": []}, "status": status}))
}

fn crashing() -> Value {
    json!({"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "message": "panic: no route"}}}]})
}

/// The lease that an API server renews all the time.
fn renewed_by_an_api_server(renewed: &str) -> Value {
    let mut lease = lease("kube-system", "apiserver-a", renewed, "a");
    lease["metadata"]["labels"] = json!({"apiserver.kubernetes.io/identity": "kube-apiserver"});
    lease
}

/// What every cluster has.
fn any() -> Objects {
    let config = json!({"data": {"ca.crt": "none"}});
    vec![
        object("v1", "Namespace", "", "default", json!({"status": {"phase": "Active"}})),
        object("v1", "Namespace", "", "kube-system", json!({"metadata": {"uid": "u"}, "status": {"phase": "Active"}})),
        object("v1", "Namespace", "", "open-cluster-management", json!({"status": {"phase": "Active"}})),
        object("v1", "ConfigMap", "kube-public", "kube-root-ca.crt", config.clone()),
        object("v1", "ConfigMap", "default", "kube-root-ca.crt", config),
        lease("kube-node-lease", "n", NOW, "n"),
        renewed_by_an_api_server("2026-03-01T11:59:55.000000Z"),
        pod("default", "other", json!({"phase": "Running"})),
        deployment("kube-system", "coredns"),
    ]
}

fn cluster(name: &str, is_accepted: bool) -> Value {
    let conditions = match is_accepted {
        true => json!([
            condition("HubAcceptedManagedCluster", "True"),
            condition("ManagedClusterJoined", "True"),
            condition("ManagedClusterConditionAvailable", "True")
        ]),
        false => json!([]),
    };
    let spec = json!({"hubAcceptsClient": is_accepted, "leaseDurationSeconds": 60});
    let more = json!({"spec": spec, "status": {"conditions": conditions}});
    object("cluster.open-cluster-management.io/v1", "ManagedCluster", "", name, more)
}

const SERVICE: &str = "kubernetes.io/service-name";

/// A hub with two clusters that are well.
fn hub() -> Objects {
    let mut objects = any();
    let hub = "open-cluster-management-hub";
    objects.extend([
        definition("managedclusters.cluster.open-cluster-management.io"),
        definition("clustermanagers.operator.open-cluster-management.io"),
        cluster("c1", true),
        cluster("c2", true),
        lease("c1", "managed-cluster-lease", "2026-03-01T11:59:30.000000Z", "a"),
        lease("c2", "managed-cluster-lease", "2026-03-01T11:59:40.000000Z", "a"),
        object(
            "operator.open-cluster-management.io/v1",
            "ClusterManager",
            "",
            "cluster-manager",
            json!({"spec": {}, "status": {"observedGeneration": 1, "conditions": [condition("Applied", "True")]}}),
        ),
        object("v1", "Namespace", "", hub, json!({"status": {"phase": "Active"}})),
        object("v1", "ConfigMap", hub, "ca-bundle-configmap", json!({"data": {"ca-bundle.crt": authority()}})),
        deployment("open-cluster-management", "cluster-manager"),
        deployment(hub, "cluster-manager-registration-controller"),
        object(
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            "",
            "other",
            json!({"spec": {"request": "", "signerName": "x/y", "usages": []}}),
        ),
    ]);
    for (kind, name, service) in [
        ("Mutating", "managedclustermutators.admission.cluster.open-cluster-management.io", "registration"),
        ("Validating", "managedclustervalidators.admission.cluster.open-cluster-management.io", "registration"),
        (
            "Validating",
            "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
            "registration",
        ),
        ("Validating", "manifestworkvalidators.admission.work.open-cluster-management.io", "work"),
    ] {
        let ca = STANDARD.encode(authority());
        let hook = json!({"name": name, "clientConfig": {"caBundle": ca}, "admissionReviewVersions": ["v1"], "sideEffects": "None"});
        let kind = format!("{kind}WebhookConfiguration");
        objects.push(object("admissionregistration.k8s.io/v1", &kind, "", name, json!({"webhooks": [hook]})));
        let service = format!("cluster-manager-{service}-webhook");
        let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}],
            "metadata": {"labels": {SERVICE: service}}});
        objects.push(object("discovery.k8s.io/v1", "EndpointSlice", hub, &service, slice));
    }
    for webhook in ["registration", "work", "addon"] {
        let data = [("tls.crt", authority()), ("tls.key", CANARY)].map(|(key, value)| (key, STANDARD.encode(value)));
        let more = json!({"type": "kubernetes.io/tls", "data": BTreeMap::from(data)});
        objects.push(object("v1", "Secret", hub, &format!("{webhook}-webhook-serving-cert"), more));
    }
    objects
}

const AGENT: &str = "open-cluster-management-agent";

fn secret(name: &str, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<&str, String> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
    object("v1", "Secret", AGENT, name, json!({"type": "Opaque", "data": data}))
}

/// A kubeconfig whose address no token is sent to.
fn agents_kubeconfig() -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: c\n  cluster: {{server: 'http://hub:6443'}}\n\
         users:\n- name: u\n  user: {{token: {CANARY}}}\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n"
    )
}

/// A managed cluster whose agents run and are about to register.
fn managed() -> Objects {
    let mut objects = any();
    let klusterlet = json!({"spec": {"clusterName": "c1", "namespace": AGENT},
        "status": {"observedGeneration": 1, "conditions": [condition("Applied", "True")]}});
    objects.extend([
        definition("klusterlets.operator.open-cluster-management.io"),
        object("operator.open-cluster-management.io/v1", "Klusterlet", "", "klusterlet", klusterlet),
        object("v1", "Namespace", "", AGENT, json!({"status": {"phase": "Active"}})),
        deployment("open-cluster-management", "klusterlet"),
        deployment(AGENT, "klusterlet-registration-agent"),
        deployment(AGENT, "klusterlet-work-agent"),
        object("networking.k8s.io/v1", "NetworkPolicy", "default", "other", json!({"spec": {"podSelector": {}}})),
        object("work.open-cluster-management.io/v1", "AppliedManifestWork", "", "other", json!({"spec": {}})),
        object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            "",
            "other",
            json!({"roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
        ),
        pod(AGENT, "klusterlet-registration-agent-1-a", json!({"phase": "Running"})),
        lease(AGENT, "registration-agent-lock", "2026-03-01T11:59:50.000000Z", "klusterlet-registration-agent-1-a_x"),
        secret("bootstrap-hub-kubeconfig", &[("kubeconfig", &agents_kubeconfig())]),
        secret(
            "hub-kubeconfig-secret",
            &[
                ("cluster-name", "c1"),
                ("agent-name", "a"),
                ("kubeconfig", &agents_kubeconfig()),
                ("tls.key", CANARY),
                ("tls.crt", "none"),
            ],
        ),
    ]);
    objects
}

fn find<'o>(objects: &'o mut Objects, kind: &str, name: &str) -> &'o mut Value {
    let found = objects.iter_mut().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is a {kind} {name}"))
}

fn remove(objects: &mut Objects, kind: &str, name: &str) {
    objects.retain(|object| object["kind"] != kind || object["metadata"]["name"] != name);
}

fn changed(mut objects: Objects, change: impl FnOnce(&mut Objects)) -> Objects {
    change(&mut objects);
    objects
}

/// Clusters as faults leave them: of a hub.
fn hubs() -> Vec<(&'static str, Objects)> {
    let request = |name: &str| {
        let more = json!({"metadata": {"labels": {"open-cluster-management.io/cluster-name": name}},
            "spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "usages": [], "username":
            "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"}});
        object("certificates.k8s.io/v1", "CertificateSigningRequest", "", &format!("{name}-x"), more)
    };
    vec![
        ("well", hub()),
        (
            "silent",
            changed(hub(), |all| {
                remove(all, "Lease", "managed-cluster-lease");
                all.push(lease("c1", "managed-cluster-lease", "2026-03-01T11:00:00.000000Z", "a"));
                all.push(lease("c2", "managed-cluster-lease", "2026-03-01T11:59:40.000000Z", "a"));
            }),
        ),
        ("without a lease", changed(hub(), |all| remove(all, "Lease", "managed-cluster-lease"))),
        ("not accepted", changed(hub(), |all| all.extend([cluster("c3", false), request("c3")]))),
        (
            "a request alone",
            changed(hub(), |all| {
                remove(all, "ManagedCluster", "c2");
                all.push(request("c2"));
            }),
        ),
        (
            "a controller that crashes",
            changed(hub(), |all| {
                let name = "cluster-manager-registration-controller";
                find(all, "Deployment", name)["status"]["availableReplicas"] = json!(0);
                all.push(pod("open-cluster-management-hub", "p", crashing()));
            }),
        ),
        (
            "a webhook that is missing",
            changed(hub(), |all| {
                remove(
                    all,
                    "ValidatingWebhookConfiguration",
                    "manifestworkvalidators.admission.work.open-cluster-management.io",
                );
            }),
        ),
        (
            "a webhook whose certificate has expired",
            changed(hub(), |all| {
                let key = rcgen::KeyPair::generate().expect("a key");
                let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
                (params.not_before, params.not_after) =
                    (rcgen::date_time_ymd(2025, 1, 1), rcgen::date_time_ymd(2025, 2, 1));
                let certificate = params.self_signed(&key).expect("a certificate").pem();
                find(all, "Secret", "work-webhook-serving-cert")["data"]["tls.crt"] =
                    json!(STANDARD.encode(certificate));
            }),
        ),
        (
            "a webhook without endpoint",
            changed(hub(), |all| remove(all, "EndpointSlice", "cluster-manager-work-webhook")),
        ),
        (
            "an operator elsewhere",
            changed(hub(), |all| {
                remove(all, "Deployment", "cluster-manager");
                let mut found = deployment("multicluster-engine", "cluster-manager");
                found["spec"]["template"]["spec"]["containers"][0]["image"] = json!("r/registration-operator:v1");
                all.push(found);
            }),
        ),
        ("no operator", changed(hub(), |all| remove(all, "Deployment", "cluster-manager"))),
        (
            "a namespace that ends",
            changed(hub(), |all| {
                let more = json!({"metadata": {"deletionTimestamp": "2026-03-01T10:00:00Z"}, "status": {"phase": "Terminating"}});
                all.push(object("v1", "Namespace", "", "c1", more));
            }),
        ),
        (
            "a work that fails",
            changed(hub(), |all| {
                all.push(definition("manifestworks.work.open-cluster-management.io"));
                for namespace in ["c1", "c2"] {
                    let more = json!({"spec": {"workload": {"manifests": [{"kind": "Secret", "data": {"x": CANARY}}]}},
                    "status": {"conditions": [condition("Applied", "False")]}});
                    all.push(object("work.open-cluster-management.io/v1", "ManifestWork", namespace, "w", more));
                }
            }),
        ),
    ]
}

/// Of a managed cluster.
fn manageds() -> Vec<(&'static str, Objects)> {
    vec![
        ("agents that register", managed()),
        ("no bootstrap Secret", changed(managed(), |all| remove(all, "Secret", "bootstrap-hub-kubeconfig"))),
        (
            "no Secrets but another",
            changed(managed(), |all| {
                ["bootstrap-hub-kubeconfig", "hub-kubeconfig-secret"]
                    .iter()
                    .for_each(|name| remove(all, "Secret", name));
                all.push(secret("other", &[("x", CANARY)]));
            }),
        ),
        (
            "an agent that crashes",
            changed(managed(), |all| {
                find(all, "Deployment", "klusterlet-registration-agent")["status"]["availableReplicas"] = json!(0);
                *find(all, "Pod", "klusterlet-registration-agent-1-a") =
                    pod(AGENT, "klusterlet-registration-agent-1-a", crashing());
            }),
        ),
        ("a leader that is gone", changed(managed(), |all| remove(all, "Pod", "klusterlet-registration-agent-1-a"))),
        (
            "no agents",
            changed(managed(), |all| {
                ["klusterlet-registration-agent", "klusterlet-work-agent"]
                    .iter()
                    .for_each(|name| remove(all, "Deployment", name));
            }),
        ),
        ("no operator", changed(managed(), |all| remove(all, "Deployment", "klusterlet"))),
    ]
}

// A server of these objects, which knows nothing of dumps.

fn group(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

fn plural(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default().to_ascii_lowercase();
    kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"))
}

fn metadata<'o>(object: &'o Value, member: &str) -> &'o str {
    object["metadata"][member].as_str().unwrap_or_default()
}

fn api(objects: &[Value], asked: &Asked) -> Reply {
    let line = asked.line.as_str();
    if line.starts_with("POST") {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
            "metadata": {"creationTimestamp": NOW}, "status": {"userInfo": {"username": "u"}}});
        return Reply::Json(201, review.to_string());
    }
    let missing = |text: &str| {
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": text});
        Reply::Json(404, status.to_string())
    };
    let not_served = || Reply::Json(404, "404 page not found\n".to_owned());
    let path = line.trim_start_matches("GET /");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.split('/').collect();
    let (of, rest) = match parts.as_slice() {
        ["api", "v1", rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return not_served(),
    };
    let is_defined = |name: &str| {
        let name = format!("{name}.{of}");
        objects.iter().any(|object| object["kind"] == "CustomResourceDefinition" && metadata(object, "name") == name)
    };
    let (namespace, kind, name) = match rest {
        [] if is_defined("managedclusters") => {
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{of}/v1"), "resources":
                [{"name": "managedclusters", "singularName": "", "namespaced": false, "kind": "ManagedCluster", "verbs": []}]});
            return Reply::Json(200, list.to_string());
        }
        [] => return not_served(),
        ["namespaces", name] => (None, "namespaces", Some(*name)),
        ["namespaces", namespace, kind] => (Some(*namespace), *kind, None),
        ["namespaces", namespace, kind, name] => (Some(*namespace), *kind, Some(*name)),
        [kind] => (None, *kind, None),
        [kind, name] => (None, *kind, Some(*name)),
        _ => return missing("no logs"),
    };
    if (of.ends_with(".open-cluster-management.io") || of.ends_with(".kubectl-ocm.dev")) && !is_defined(kind) {
        return not_served();
    }
    let by_name = query.split("metadata.name%3D").nth(1).and_then(|rest| rest.split(['&', '%']).next()).or(name);
    let of_cluster = "open-cluster-management.io/cluster-name";
    let is_found = |object: &&Value| {
        group(object) == of
            && plural(object) == kind
            && namespace.is_none_or(|namespace| namespace == metadata(object, "namespace"))
            && by_name.is_none_or(|name| name == metadata(object, "name"))
            && (!query.contains("Terminating") || object["status"]["phase"] == "Terminating")
            && (kind != "certificatesigningrequests" || object["metadata"]["labels"][of_cluster].is_string())
    };
    let mut found: Vec<&Value> = objects.iter().filter(is_found).collect();
    found.sort_by_key(|object| (metadata(object, "namespace"), metadata(object, "name")));
    match (name, found.first()) {
        (Some(_), Some(object)) => Reply::Json(200, object.to_string()),
        (Some(name), None) => missing(&format!("{name} not found")),
        (None, _) => {
            let list =
                json!({"apiVersion": "v1", "kind": "ThingList", "metadata": {"resourceVersion": "1"}, "items": found});
            Reply::Json(200, list.to_string())
        }
    }
}

fn server(objects: &Objects) -> Server {
    let objects = objects.clone();
    Server::start(move |_, asked| api(&objects, asked))
}

// What others take of them.

fn all_of(objects: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": objects})
}

fn write(cli: &Cli, name: &str, documents: &[Value]) -> String {
    let text: String = documents.iter().map(|document| format!("{document}\n")).collect();
    cli.write(name, &text).display().to_string()
}

/// A must-gather: what is in no namespace one by one, the rest as lists.
fn gather(folder: &Path, objects: &[Value]) {
    let mut files: BTreeMap<PathBuf, Vec<&Value>> = BTreeMap::new();
    for object in objects {
        let group = if group(object).is_empty() { "core" } else { group(object) };
        let path = match metadata(object, "namespace") {
            "" => {
                folder.join("cluster-scoped-resources").join(group).join(plural(object)).join(metadata(object, "name"))
            }
            namespace => folder.join("namespaces").join(namespace).join(group).join(plural(object)),
        };
        files.entry(path.with_added_extension("yaml")).or_default().push(object);
    }
    for (path, objects) in files {
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("the folder can be made");
        let text = match metadata(objects[0], "namespace") {
            "" => objects[0].to_string(),
            _ => all_of(&objects.into_iter().cloned().collect::<Vec<_>>()).to_string(),
        };
        fs::write(path, text).expect("the file can be written");
    }
}

fn troubleshoot(cli: &Cli, words: &[&str]) -> Run {
    let run = cli.run([&["troubleshoot"], words].concat());
    assert!(!run.stdout.contains(CANARY) && !run.stderr.contains(CANARY), "{run}");
    assert!(!run.stdout.contains(&STANDARD.encode(CANARY)), "{run}");
    run
}

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("JSON: {run}"))
}

/// A report without what a dump has more.
fn comparable(run: &Run) -> Value {
    let mut report = report(run);
    report.as_object_mut().expect("an object").remove("clock");
    // What only a live cluster tells.
    let is_live = |id: &Value| ["OCM1116", "OCM3111"].iter().any(|known| id == known);
    for skipped in report["skipped"].as_array_mut().expect("a list") {
        skipped["ids"].as_array_mut().expect("a list").retain(|id| !is_live(id));
    }
    report["skipped"].as_array_mut().expect("a list").retain(|skipped| skipped["ids"] != json!([]));
    for count in ["passed", "skipped"] {
        report["counts"].as_object_mut().expect("an object").remove(count);
    }
    report
}

/// Everything that was found, also what follows from something else.
fn found(report: &Value) -> BTreeSet<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let all = findings
        .flat_map(|finding| std::iter::once(finding).chain(finding["consequences"].as_array().into_iter().flatten()));
    all.map(|finding| format!("{}:{}", finding["id"].as_str().expect("an id"), finding["cluster"])).collect()
}

#[test]
fn a_dump_gives_the_report_of_the_cluster_that_it_was_taken_from() {
    let mut ids = BTreeSet::new();
    for (context, states) in [("hub", hubs()), ("managed", manageds())] {
        for (state, objects) in states {
            let server = server(&objects);
            let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &[context]));
            let dump = write(&cli, "dump.json", &[all_of(&objects)]);
            let files = ["--from", dump.as_str()];
            for names in [&[][..], &["c1"], &["--all-clusters"]] {
                let words = [names, &["--context", context, "-o", "json"]].concat();
                let live = troubleshoot(&cli, &words);
                let from = troubleshoot(&cli, &[&words[..], &files].concat());
                // Evidence names the server.
                let text = comparable(&from).to_string().replace(&dump, &server.url());
                assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), comparable(&live), "{state} {names:?}");
                assert_eq!(from.exit, live.exit, "{state}: {from}");
                ids.extend(found(&report(&live)).into_iter().map(|name| name[..7].to_owned()));
            }
        }
    }
    assert!(ids.len() >= 9, "many different things were found: {ids:?}");
}

#[test]
fn two_dumps_give_the_report_of_both_clusters() {
    let (on_hub, on_managed) = (changed(hub(), |all| remove(all, "ManagedCluster", "c1")), managed());
    let (hub, managed) = (server(&on_hub), server(&on_managed));
    let cli = Cli::with_kubeconfig(&kubeconfig(&hub.url(), &["hub"]));
    let managed_kubeconfig = cli.write("managed", &kubeconfig(&managed.url(), &["managed"])).display().to_string();
    let hub_kubeconfig = cli.write("hub", &kubeconfig(&hub.url(), &["hub"])).display().to_string();
    let contexts = ["--context", "managed", "--hub-context", "hub", "-o", "json"];
    let words = [&["--kubeconfig", &managed_kubeconfig, "--hub-kubeconfig", &hub_kubeconfig], &contexts[..]].concat();
    let live = troubleshoot(&cli, &words);
    let (hub_dump, managed_dump) =
        (write(&cli, "a.json", &[all_of(&on_hub)]), write(&cli, "b.json", &[all_of(&on_managed)]));
    let from = troubleshoot(&cli, &[&contexts[..], &["--from", &managed_dump, "--from", &hub_dump]].concat());
    let text = comparable(&from).to_string().replace(&hub_dump, &hub.url()).replace(&managed_dump, &managed.url());
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), comparable(&live));
    assert!(live.exit == 3 && from.exit == 3, "{from}");
    // One that was taken long after the other.
    let later: Objects =
        on_managed.iter().cloned().chain([lease("kube-node-lease", "m", "2026-03-01T13:00:00Z", "m")]).collect();
    let later = write(&cli, "later.json", &[all_of(&later)]);
    let from = troubleshoot(&cli, &["--from", &later, "--from", &hub_dump]);
    assert!(from.stderr.contains("the dumps are of different times"), "{from}");
}

#[test]
fn a_hub_is_not_another_one_for_what_its_dump_does_not_tell() {
    let authority = || {
        let made = rcgen::generate_simple_self_signed(vec!["ca".to_owned()]).expect("a certificate");
        made.cert.pem()
    };
    // Agents reach the hub by a load balancer with a certificate of its own.
    let (of_server, of_balancer) = (authority(), authority());
    let on_hub = changed(hub(), |all| {
        // A fresh lease would show that it registers here.
        remove(all, "ManagedCluster", "c1");
        remove(all, "Lease", "managed-cluster-lease");
        let maps = all.iter_mut().filter(|object| object["kind"] == "ConfigMap");
        maps.for_each(|map| map["data"]["ca.crt"] = json!(of_server));
    });
    let entry = format!("certificate-authority-data: {}, server:", STANDARD.encode(&of_balancer));
    let kubeconfig = agents_kubeconfig().replace("server:", &entry);
    let on_managed = changed(managed(), |all| {
        *find(all, "Secret", "bootstrap-hub-kubeconfig") =
            secret("bootstrap-hub-kubeconfig", &[("kubeconfig", &kubeconfig)]);
    });
    let cli = Cli::new();
    let (hub, managed) = (write(&cli, "a.json", &[all_of(&on_hub)]), write(&cli, "b.json", &[all_of(&on_managed)]));
    let run = troubleshoot(&cli, &["--from", &hub, "--from", &managed, "-o", "json"]);
    assert!(!run.stdout.contains("registers at another hub"), "{run}");
}

#[test]
fn a_hub_is_not_taken_for_another_one_that_is_hosted_beside_it() {
    let of_hub = |namespace: &str, name: &str| {
        json!([{"group": "apps", "version": "v1", "resource": "deployments", "namespace": namespace, "name": name,
            "lastGeneration": 1}])
    };
    let (own, another) = ("cluster-manager-registration-controller", "another-registration-controller");
    // The other one is listed first.
    let objects = changed(hub(), |all| {
        find(all, "ClusterManager", "cluster-manager")["status"]["generations"] =
            of_hub("open-cluster-management-hub", own);
        let status = json!({"observedGeneration": 1, "conditions": [condition("Applied", "True")],
            "generations": of_hub("another", another)});
        let more = json!({"spec": {"deployOption": {"mode": "Hosted"}}, "status": status});
        all.push(object("operator.open-cluster-management.io/v1", "ClusterManager", "", "another", more));
        all.push(object("v1", "Namespace", "", "another", json!({"status": {"phase": "Active"}})));
        all.push(deployment("another", another));
    });
    let look = |objects: &Objects| {
        let server = server(objects);
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        troubleshoot(&cli, &["--context", "hub", "-o", "json"])
    };
    let well = look(&objects);
    assert!(well.exit == 0 && found(&report(&well)).is_empty(), "{well}");
    let missing = look(&changed(objects.clone(), |all| remove(all, "Deployment", another)));
    let findings = report(&missing)["findings"].clone();
    assert_eq!(findings.as_array().map(Vec::len), Some(1), "{missing}");
    assert_eq!((&findings[0]["id"], &findings[0]["objects"][0]["namespace"]), (&json!("OCM1106"), &json!("another")));
    // Where the other one's may not be read, nothing is said of those, and the hub's own are looked at all the same.
    let objects = changed(objects, |all| remove(all, "Deployment", own));
    let server = Server::start(move |_, asked| match asked.line.contains("/namespaces/another/deployments") {
        true => {
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "deployments.apps is forbidden"});
            Reply::Json(403, status.to_string())
        }
        false => api(&objects, asked),
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let part = troubleshoot(&cli, &["--context", "hub", "-o", "json"]);
    let findings = report(&part)["findings"].clone();
    assert_eq!((findings.as_array().map(Vec::len), &report(&part)["unknown"]), (Some(1), &json!([])), "{part}");
    let namespace = "open-cluster-management-hub";
    assert_eq!((&findings[0]["id"], &findings[0]["objects"][0]["namespace"]), (&json!("OCM1106"), &json!(namespace)));
    // The webhooks are the hub's own.
    let name = "manifestworkvalidators.admission.work.open-cluster-management.io";
    let objects = changed(hub(), |all| {
        let more = json!({"spec": {"deployOption": {"mode": "Hosted"}},
            "status": {"observedGeneration": 1, "conditions": [condition("Applied", "True")]}});
        all.push(object("operator.open-cluster-management.io/v1", "ClusterManager", "", "another", more));
        remove(all, "ValidatingWebhookConfiguration", name);
    });
    assert!(found(&report(&look(&objects))).iter().any(|name| name.starts_with("OCM1107")), "it is missing");
}

#[test]
fn what_a_dump_lacks_is_neither_missing_nor_well() {
    for (state, objects) in hubs().into_iter().chain(manageds()) {
        let cli = Cli::new();
        let is_hub = objects.iter().any(|object| object["kind"] == "ManagedCluster");
        let side = if is_hub { "hub" } else { "managed" };
        let from = |objects: &[Value]| {
            let dump = format!("{side}={}", write(&cli, "dump.json", &[all_of(objects)]));
            let run = troubleshoot(&cli, &["--from", &dump, "-o", "json"]);
            (report(&run), run)
        };
        let (whole, _) = from(&objects);
        let kinds: BTreeSet<String> =
            objects.iter().filter_map(|object| object["kind"].as_str().map(str::to_owned)).collect();
        for kind in kinds {
            let rest: Objects = objects.iter().filter(|object| object["kind"] != kind.as_str()).cloned().collect();
            let (part, run) = from(&rest);
            let new: Vec<String> = found(&part).difference(&found(&whole)).cloned().collect();
            assert!(new.is_empty(), "{state}: without {kind} it tells of {new:?}: {run}");
            let passed = |report: &Value| report["counts"]["passed"].as_u64();
            assert!(passed(&part) <= passed(&whole), "{state}: without {kind} more is well: {run}");
            // What nobody needs where all runs, and what is served shows where there are objects: without applied works
            // a cluster is one that has none.
            let is_needless = ["Pod", "Namespace", "ConfigMap", "AppliedManifestWork"].contains(&kind.as_str());
            // Those of a hub hold private keys, and nobody needs to have them.
            let is_needless = is_needless || (is_hub && kind == "Secret");
            if !is_needless && (is_hub || kind != "CustomResourceDefinition") {
                assert!(part["unknown"].to_string().contains("NotInDump"), "{state}: without {kind}: {run}");
                assert_ne!(run.exit, 0, "{state}: without {kind}: {run}");
            }
        }
    }
}

#[test]
fn a_must_gather_is_read_as_far_as_it_goes() {
    for (state, objects) in hubs().into_iter().chain(manageds()) {
        let cli = Cli::new();
        let whole = troubleshoot(&cli, &["c1", "--from", &write(&cli, "dump.json", &[all_of(&objects)]), "-o", "json"]);
        let folder = cli.home().join("must-gather");
        gather(&folder.join("quay-io-must-gather-sha256-0"), &objects);
        let run = troubleshoot(&cli, &["c1", "--from", &folder.display().to_string(), "-o", "json"]);
        let new: Vec<String> = found(&report(&run)).difference(&found(&report(&whole))).cloned().collect();
        assert!(new.is_empty(), "{state}: {new:?}: {run}");
        if state == "an operator elsewhere" {
            // Where it was not gathered, it is not missing, also if its usual namespace was.
            let mut rest = objects.clone();
            rest.retain(|object| metadata(object, "namespace") != "multicluster-engine");
            rest.push(deployment("open-cluster-management", "other"));
            let folder = cli.home().join("part");
            gather(&folder, &rest);
            let run = troubleshoot(&cli, &["c1", "--from", &folder.display().to_string(), "-o", "json"]);
            assert_eq!(found(&report(&run)), BTreeSet::new(), "{run}");
            assert!(report(&run)["unknown"].to_string().contains("the dump may not hold all deployments"), "{run}");
        }
        if state == "silent" {
            assert!(found(&report(&run)).contains("OCM3101:\"c1\""), "{run}");
        }
        if state == "no bootstrap Secret" {
            assert_eq!(found(&report(&run)), found(&report(&whole)), "{run}");
        }
    }
}

#[test]
fn the_report_says_by_which_time_it_judges() {
    let cli = Cli::new();
    let dump = write(&cli, "hub.json", &[all_of(&hub())]);
    let run = troubleshoot(&cli, &["--from", &dump]);
    assert_eq!(run.exit, 0, "{run}");
    let line =
        "as of 2026-03-01T12:00:00Z, the newest time that the dump shows: renewTime of Lease kube-node-lease/n\n";
    assert!(
        run.stdout.starts_with(&format!(
            "c1: joined and available, heard of 30s ago\nc2: joined and available, heard of 20s ago\n{line}"
        )),
        "{run}"
    );
    assert!(
        troubleshoot(&cli, &["--from", &dump, "-o", "markdown"])
            .stdout
            .contains("As of `2026-03-01T12:00:00Z, the newest")
    );
    assert!(
        troubleshoot(&cli, &["--from", &dump, "-o", "html"]).stdout.contains("As of 2026-03-01T12:00:00Z, the newest")
    );
    // Without any time nothing can be judged.
    let mut cluster = cluster("c1", false);
    cluster["metadata"].as_object_mut().expect("an object").remove("creationTimestamp");
    let run = troubleshoot(&cli, &["--from", &write(&cli, "timeless.json", &[cluster])]);
    assert!(run.exit == 2 && run.stderr.contains("the dump shows no time"), "{run}");
}

#[test]
fn files_of_kubectl_are_read_together_and_from_stdin() {
    let cli = Cli::new();
    let clusters = "apiVersion: v1\nkind: List\nmetadata:\n  resourceVersion: \"\"\nitems:\n- apiVersion: cluster.open-cluster-management.io/v1\n  \
                    kind: ManagedCluster\n  metadata:\n    creationTimestamp: \"2026-01-01T00:00:00Z\"\n    name: c1\n  spec:\n    \
                    hubAcceptsClient: false\n    leaseDurationSeconds: 60\n";
    let requests = "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata:\n  creationTimestamp: \"2026-03-01T12:00:00Z\"\n  \
                    labels:\n    open-cluster-management.io/cluster-name: c1\n  name: c1-x\nspec:\n  request: \"\"\n  signerName: \
                    kubernetes.io/kube-apiserver-client\n  usages: []\n---\nkind: Table\n";
    let clusters = cli.write("clusters.yaml", clusters).display().to_string();
    let requests = cli.write("requests.yaml", requests).display().to_string();
    let run = troubleshoot(&cli, &["--from", &clusters, "--from", &requests, "-o", "wide"]);
    assert!(run.stdout.starts_with("c1: "), "{run}");
    assert!(
        run.stdout.contains("could not be checked: ") && run.stdout.contains(": the dump has no leases\n"),
        "{run}"
    );
    // One request that stands alone may not be all.
    assert!(run.stdout.contains("the dump may not hold all certificatesigningrequests"), "{run}");
    assert_ne!(run.exit, 0, "{run}");
    let mut command = cli.command(&binary("kubectl-ocm"));
    command.args(["troubleshoot", "--from", "-", "--from", &requests, "-o", "wide"]);
    command.stdin(fs::File::open(&clusters).expect("the file is there"));
    let piped = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
    assert_eq!(piped.replace("stdin", &clusters), run.stdout);
}

#[test]
fn mistakes_about_dumps_are_told() {
    let cli = Cli::new();
    let leases = write(&cli, "leases.json", &[all_of(&[lease("c1", "x", NOW, "a")])]);
    let whole = write(&cli, "hub.json", &[all_of(&hub())]);
    let other = changed(hub(), |all| find(all, "Namespace", "kube-system")["metadata"]["uid"] = json!("v"));
    let other = write(&cli, "other.json", &[all_of(&other)]);
    let empty = cli.home().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let bundle = write(
        &cli,
        "bundle.json",
        &[json!({"kind": "TroubleshootBundle", "snapshot": {"format": 1, "observed": NOW}})],
    );
    for (words, said) in [
        (&["--from", leases.as_str()][..], "shows neither a hub nor a managed cluster"),
        (&["--from", &whole, "--from", &other], "show two clusters: Namespace kube-system has another UID in each"),
        (&["--from", &empty.display().to_string()], "is no must-gather"),
        (&["--from", &whole, "--from", &bundle], "is a bundle, which is read alone"),
        (&["--from", &whole, "C_1"], "cannot be the name of a managed cluster"),
        (&["--from", &whole, "--wait"], "cannot be used with"),
        (&["--from", "hub=nowhere"], "cannot read nowhere"),
    ] {
        let run = troubleshoot(&cli, words);
        assert!(run.exit == 2 && run.stderr.contains(said), "{words:?}: {run}");
    }
    assert_eq!(troubleshoot(&cli, &["--from", &bundle]).exit, 0);
    // A side that was named is believed.
    let run = troubleshoot(&cli, &["--from", &format!("hub={leases}"), "--from", &whole, "c1"]);
    assert_eq!(run.exit, 0, "{run}");
    // A name that a hub does not have.
    assert!(troubleshoot(&cli, &["--from", &whole, "c9"]).stdout.starts_with("c9: "));
}

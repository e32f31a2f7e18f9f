//! Requests as API servers of real hubs have recorded them, sent again by the same users to a hub with the baseline and the
//! policies that an installation brings along.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use e2e_tests::accept_support::{Hub, know_registrations, upstream};
use e2e_tests::approval_support::guard;
use e2e_tests::manifests::apply;
use e2e_tests::refusals::{Answer, Call, Sender};
use e2e_tests::roles::bind_rules;
use e2e_tests::webhook_support::{HYGIENE, Webhook, add_ons, policy, prepare};
use ocm_api::names::{labels, namespaces};
use serde_json::{Value, json};

/// Nobody refuses it.
const PASSES: &str = "";

/// All recordings, and with which code each is refused.
const RECORDED: [(&str, &str); 51] = [
    ("csr-approval-by-addon-manager", "ForeignOrganization"),
    ("csr-approval-by-admin", PASSES),
    ("csr-approval-by-registration-controller", PASSES),
    ("csr-approval-denied-by-admin", PASSES),
    ("csr-create-addon-by-own-agent", PASSES),
    ("csr-create-by-bootstrap", PASSES),
    ("csr-create-by-bootstrap-before-mutation", PASSES),
    ("csr-create-by-bootstrap-token", PASSES),
    ("csr-create-by-grpc-server", PASSES),
    ("csr-create-foreign-cluster-by-agent", "OtherAgent"),
    ("csr-create-renewal-by-agent", PASSES),
    ("csr-create-takeover-by-bootstrap", "NameTaken"),
    ("csr-create-two-common-names", "CommonNames"),
    ("csr-create-weak-rsa", "WeakKey"),
    ("csr-delete-by-admin", PASSES),
    ("managedcluster-create-accepted-by-admin-without-accept-right", "HubAcceptsClient"),
    ("managedcluster-create-by-bootstrap", PASSES),
    ("managedcluster-create-by-bootstrap-before-mutation", PASSES),
    ("managedcluster-create-by-bootstrap-token", PASSES),
    ("managedcluster-create-by-grpc-server", PASSES),
    ("managedcluster-create-by-server-side-apply", PASSES),
    ("managedcluster-create-by-unlisted-admin", PASSES),
    ("managedcluster-create-dry-run", PASSES),
    ("managedcluster-create-generate-name", PASSES),
    // It only registers a cluster, which whoever may do this may do in their own name.
    ("managedcluster-create-impersonated-bootstrap", PASSES),
    ("managedcluster-create-in-foreign-clusterset-by-bootstrap", "ClusterSet"),
    ("managedcluster-create-named-kube-system-by-bootstrap", "NameReserved"),
    ("managedcluster-delete-by-admin", PASSES),
    ("managedcluster-deletecollection-by-admin", PASSES),
    ("managedcluster-status-update-by-agent", PASSES),
    // What an agent says of its own cluster is its own word.
    ("managedcluster-status-update-by-agent-forged-claims", PASSES),
    ("managedcluster-status-update-by-registration-controller", PASSES),
    ("managedcluster-update-accept-by-admin", PASSES),
    ("managedcluster-update-accept-by-admin-without-accept-right", "HubAcceptsClient"),
    ("managedcluster-update-autoaccept-by-registration-controller", PASSES),
    ("managedcluster-update-by-agent-clusterset", "Labels"),
    ("managedcluster-update-by-agent-denies-itself", "HubAcceptsClient"),
    ("managedcluster-update-by-agent-finalizers-removed", "Finalizers"),
    ("managedcluster-update-by-agent-labels", "Labels"),
    ("managedcluster-update-by-agent-lease-duration", "LeaseDuration"),
    ("managedcluster-update-deny-by-admin", PASSES),
    ("managedcluster-update-finalizer-by-registration-controller", PASSES),
    ("managedcluster-update-taint-by-registration-controller", PASSES),
    ("managedclusteraddon-create-by-admin", PASSES),
    ("managedclustersetbinding-create-by-admin", PASSES),
    ("manifestwork-create-by-addon-manager", PASSES),
    ("manifestwork-create-by-admin", PASSES),
    ("manifestwork-delete-by-admin", PASSES),
    ("manifestwork-status-update-by-agent", PASSES),
    ("manifestwork-update-finalizer-by-agent", PASSES),
    ("manifestwork-update-spec-by-agent", "ManifestWork"),
];

/// Certificates that signers have put into requests: a hub signs with its own authority, so nobody can do it again.
const SIGNED: [&str; 2] =
    ["csr-status-signed-by-kube-controller-manager", "csr-status-signed-by-registration-controller-grpc"];

/// Where recordings are: those of certificate requests are tests of the rules as well.
fn folders() -> [PathBuf; 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    [here.join("tests/data"), here.join("../../plugins/lib/core/tests/data")]
}

/// All recordings: the request of each review, by its name.
fn recordings() -> BTreeMap<String, Value> {
    let files = folders().into_iter().flat_map(|folder| fs::read_dir(folder).expect("recordings").flatten());
    let files = files.map(|file| file.path()).filter(|file| file.extension().is_some_and(|kind| kind == "json"));
    let read = |file: PathBuf| {
        let review: Value = serde_json::from_str(&fs::read_to_string(&file).expect("it is read")).expect("JSON");
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        (name, review["request"].clone())
    };
    files.map(read).collect()
}

/// The path of the objects that a request is about.
fn path(request: &Value) -> String {
    let text = |member: &str| request["resource"][member].as_str().unwrap_or_default();
    let namespace = request["namespace"].as_str().map(|name| format!("/namespaces/{name}")).unwrap_or_default();
    format!("/apis/{}/{}{namespace}/{}", text("group"), text("version"), text("resource"))
}

/// An object without what the API server writes.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for member in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(member);
        }
    }
    object
}

fn name(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name").and_then(Value::as_str)
}

/// What the hub has of this name.
fn live(hub: &Hub, path: &str, name: &str) -> Option<Value> {
    let request = http::Request::get(format!("{path}/{name}")).body(Vec::new()).expect("a request");
    hub.wait(hub.admin.request(request)).ok()
}

/// Writes what the hub has, as what it is to become.
fn replace(path: &str, live: &Value, mut object: Value, part: Option<&str>) -> Call {
    object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    let name = name(live).expect("it has a name");
    let path = [Some(path), Some(name), part].into_iter().flatten().collect::<Vec<_>>().join("/");
    Call { method: "PUT", path, body: object }
}

/// Has the hub hold an object as it was before a request, as an administrator.
fn put(hub: &Hub, path: &str, before: &Value) -> Value {
    let mut before = bare(before);
    before.as_object_mut().expect("an object").remove("status");
    let call = match live(hub, path, name(&before).expect("it has a name")) {
        Some(live) => replace(path, &live, before, None),
        None => Call::create(path, before),
    };
    hub.wait(Sender::new(hub.admin.clone()).send(&call, false)).unwrap_or_else(|error| panic!("{}: {error}", call.path))
}

/// Whether a request is about certificate requests. Those are stored before anybody judges: some break the rules.
fn is_about_requests(request: &Value) -> bool {
    request["resource"]["resource"] == "certificatesigningrequests"
}

/// Stores a certificate request as whoever asked for it.
fn store(hub: &Hub, request: &Value) {
    let (path, mut asked) = (path(request), bare(&request["oldObject"]));
    let spec = &asked["spec"];
    let user = json!({
        "username": spec["username"], "uid": spec["uid"], "groups": spec["groups"], "extra": spec["extra"],
    });
    asked.as_object_mut().expect("an object").remove("status");
    let name = name(&asked).expect("it has a name").to_owned();
    let call = Call::create(&path, asked);
    let stored = hub.wait(Sender::user(hub.admin.clone(), &user).send(&call, false));
    stored.unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Sends a request again. Nothing of it is stored.
fn again(hub: &Hub, what: &str, request: &Value) -> Answer {
    let sender = Sender::user(hub.admin.clone(), &request["userInfo"]);
    let (path, part) = (path(request), request["subResource"].as_str());
    let (before, mut object) = (&request["oldObject"], bare(&request["object"]));
    let operation = request["operation"].as_str().unwrap_or_default();
    let there = match operation {
        "CREATE" => None,
        _ if is_about_requests(request) => live(hub, &path, name(before).expect("it has a name")),
        _ => Some(put(hub, &path, before)),
    };
    let call = match (operation, there) {
        ("CREATE", _) => {
            object.as_object_mut().expect("an object").remove("status");
            // The hub has it already: it is another one, and everything else about it is as it was.
            while let Some(name) = name(&object).filter(|name| live(hub, &path, name).is_some()) {
                object["metadata"]["name"] = json!(format!("{name}-again"));
            }
            Call::create(&path, object)
        }
        ("UPDATE", Some(live)) => replace(&path, &live, object, part),
        ("DELETE", Some(live)) => {
            let path = match request["name"].as_str() {
                Some(_) => format!("{path}/{}", name(&live).expect("it has a name")),
                None => format!("{path}?labelSelector=dc%3D1"),
            };
            // Where options are sent, those in the query do not count.
            let call = Call { method: "DELETE", path, body: json!({"dryRun": ["All"]}) };
            return Answer::of(what, hub.wait(sender.send(&call, false)));
        }
        other => panic!("{what}: {other:?}"),
    };
    Answer::of(what, hub.wait(sender.send(&call, true)))
}

/// A hub with the clusters of the recordings, where nothing is in force.
fn hub() -> Hub {
    let hub = Hub::start("recorded");
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    know_registrations(&hub.cluster);
    for definition in [
        "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml",
        "cluster/v1beta2/0000_01_clusters.open-cluster-management.io_managedclustersetbindings.crd.yaml",
    ] {
        let file = upstream(definition);
        hub.cluster.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("they are known");
    }
    // Nothing but admission refuses anything, but for the rights that the baseline asks for.
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["*"], "verbs": ["*"]},
    ]));
    let controller = format!("system:serviceaccount:{}:registration-controller-sa", namespaces::HUB);
    let accepts = json!([
        {"apiGroups": ["register.open-cluster-management.io"], "resources": ["managedclusters/accept"], "verbs": ["update"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]);
    bind_rules(&hub.cluster, &controller, accepts.as_array().expect("rules"));
    for name in ["bt1", "c1", "c10", "c2", "c21", "g1", "u1"] {
        hub.register(name);
    }
    hub.patch("c1", json!({"spec": {"hubAcceptsClient": true}}));
    hub.set_conditions("c1", &[("HubAcceptedManagedCluster", "True"), ("ManagedClusterJoined", "True")]);
    for name in ["c1", "u1"] {
        let own = json!({(labels::CLUSTER_NAME): name});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own}});
        apply(&hub.cluster, &namespace);
    }
    let addon = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "app", "namespace": "u1"}, "spec": {},
    });
    apply(&hub.cluster, &addon);
    hub
}

#[test]
fn every_recorded_request_is_answered_as_it_should_be() {
    let recordings = recordings();
    let named: BTreeSet<&str> = RECORDED.iter().map(|(name, _)| *name).chain(SIGNED).collect();
    assert_eq!(recordings.keys().map(String::as_str).collect::<BTreeSet<_>>(), named, "each is tried");

    let hub = hub();
    let stored = |request: &&Value| is_about_requests(request) && request["operation"] != "CREATE";
    RECORDED.iter().map(|(name, _)| &recordings[*name]).filter(stored).for_each(|request| store(&hub, request));
    for name in HYGIENE {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    guard(&hub);

    let mut wrong = Vec::new();
    for (name, expected) in RECORDED {
        let answer = again(&hub, name, &recordings[name]);
        let is_right = match &answer {
            Answer::Passed => expected == PASSES,
            Answer::Baseline(code) | Answer::Webhook(code) => expected == code,
            Answer::Unanswered(_) => false,
        };
        if !is_right {
            wrong.push(format!("{name}: {answer:?} in the place of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

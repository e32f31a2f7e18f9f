//! Faults that are made for real on a hub and a managed cluster that has joined it, and what `kubectl ocm troubleshoot` has to
//! say about them.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use control_plane::Cluster;
use csr_fixtures::Fixture;
use serde_json::{Map, Value, json};

use crate::object;
use crate::trouble_support::{AGENTS, apply, kubectl};

/// A hub, and a managed cluster that has joined it and is well.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// The hub.
    pub hub: &'a Cluster,
    /// The managed cluster.
    pub cluster: &'a Cluster,
    /// Its name on the hub.
    pub name: &'a str,
}

/// One of the two clusters.
#[derive(Clone, Copy)]
pub enum On {
    /// The hub.
    Hub,
    /// The managed cluster.
    Managed,
}

impl On {
    fn of<'a>(self, pair: &Pair<'a>) -> &'a Cluster {
        match self {
            Self::Hub => pair.hub,
            Self::Managed => pair.cluster,
        }
    }
}

/// What is done to a cluster, and can be undone.
pub enum Change {
    /// A merge patch of an object, which is named as kubectl names it. What it changes gets its former value back.
    Patch(On, Vec<&'static str>, Value),
    /// An object, which is deleted again.
    Object(On, Value),
    /// An object that is deleted while a finalizer holds it.
    Held(On, Value),
    /// A daemon of the cluster that ends, and is started again.
    Stop(On, &'static str),
    /// What kubectl does, and nothing undoes: it ends with the rest.
    Kubectl(On, Vec<&'static str>),
}

/// A fault.
pub struct Fault {
    /// What it is.
    pub words: &'static str,
    /// The one cause that has to be found.
    pub id: &'static str,
    /// The cluster that is asked about; none: the pair.
    pub of: Option<&'static str>,
    /// Whether it is among the likely ones.
    pub is_likely: bool,
    /// What makes it.
    pub changes: Vec<Change>,
}

/// A fault that was made.
pub struct Made<'a>(Vec<Box<dyn FnOnce() + 'a>>);

impl Fault {
    /// Whether it is about a name of its own, and disturbs nobody.
    pub fn is_apart(&self) -> bool {
        self.of.is_some() && !self.changes.iter().any(|change| matches!(change, Change::Stop(..)))
    }

    /// Makes it.
    pub fn make<'a>(&'a self, pair: &Pair<'a>) -> Made<'a> {
        Made(self.changes.iter().map(|change| change.make(pair)).collect())
    }
}

impl Made<'_> {
    /// Undoes it.
    pub fn undo(self) {
        self.0.into_iter().rev().for_each(|undo| undo());
    }
}

impl Change {
    fn make<'a>(&'a self, pair: &Pair<'a>) -> Box<dyn FnOnce() + 'a> {
        match self {
            Self::Patch(on, what, fault) => {
                let cluster = on.of(pair);
                let cure = cure(&object(cluster, what), fault);
                patch(cluster, what, fault);
                Box::new(move || patch(cluster, what, &cure))
            }
            Self::Object(on, object) => {
                let cluster = on.of(pair);
                apply(cluster, object);
                Box::new(move || kubectl(cluster, &[&["delete", "--wait=true"], &*named(object)].concat()))
            }
            Self::Held(on, object) => {
                let cluster = on.of(pair);
                apply(cluster, object);
                kubectl(cluster, &[&["delete", "--wait=false"], &*named(object)].concat());
                Box::new(move || patch(cluster, &named(object), &json!({"metadata": {"finalizers": null}})))
            }
            Self::Stop(on, daemon) => {
                let cluster = on.of(pair);
                cluster.stop(daemon).unwrap();
                Box::new(move || cluster.start_again(daemon).unwrap())
            }
            Self::Kubectl(on, words) => {
                kubectl(on.of(pair), words);
                Box::new(|| ())
            }
        }
    }
}

/// How kubectl names an object of a manifest.
fn named(object: &Value) -> Vec<&str> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let mut words = vec![text("/kind").unwrap(), text("/metadata/name").unwrap()];
    words.extend(text("/metadata/namespace").into_iter().flat_map(|namespace| ["--namespace", namespace]));
    words
}

fn patch(cluster: &Cluster, what: &[&str], patch: &Value) {
    let patch = format!("--patch={patch}");
    kubectl(cluster, &[&["patch", "--type=merge", &patch], what].concat());
}

/// The merge patch that undoes another one.
fn cure(before: &Value, fault: &Value) -> Value {
    match (before, fault) {
        (Value::Object(before), Value::Object(fault)) => {
            let undone = |(key, value): (&String, &Value)| {
                let before = before.get(key).unwrap_or(&Value::Null);
                (key.clone(), cure(before, value))
            };
            Value::Object(fault.iter().map(undone).collect::<Map<_, _>>())
        }
        _ => before.clone(),
    }
}

/// A managed cluster that nobody runs.
fn managed(name: &str, is_accepted: bool) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": is_accepted, "leaseDurationSeconds": 60},
    })
}

/// A request for a certificate of a cluster.
fn request(cluster: &str, name: &str, content: &Fixture) -> Value {
    use base64::Engine as _;
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": {"open-cluster-management.io/cluster-name": cluster}},
        "spec": {
            "request": base64::engine::general_purpose::STANDARD.encode(content.pem()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    })
}

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    object
}

/// Every fault of the matrix that a healthy pair can be given and taken from again.
#[must_use]
pub fn all() -> Vec<Fault> {
    let mut faults = of_klusterlets();
    faults.extend(of_pods());
    faults.extend(of_hubs());
    faults.extend(of_names());
    faults
}

fn fault(words: &'static str, id: &'static str, changes: Vec<Change>) -> Fault {
    Fault { words, id, of: None, is_likely: false, changes }
}

fn likely(fault: Fault) -> Fault {
    Fault { is_likely: true, ..fault }
}

/// What is wrong with a Klusterlet.
fn of_klusterlets() -> Vec<Fault> {
    let klusterlet =
        |spec: Value| vec![Change::Patch(On::Managed, vec!["klusterlet", "klusterlet"], json!({"spec": spec}))];
    let gates = json!({"registrationConfiguration": {"featureGates": [{"feature": "NoSuchGate", "mode": "Enable"}]}});
    let elsewhere = json!({"hubApiServerHostAlias": {"ip": "10.0.0.9", "hostname": "nowhere.example"}});
    let hubs = json!({"registrationConfiguration": {"bootstrapKubeConfigs": {
        "type": "LocalSecrets", "localSecretsConfig": {"kubeConfigSecrets": [{"name": "one"}, {"name": "two"}]},
    }}});
    let toleration = json!({"nodePlacement": {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}});
    vec![
        likely(fault("a mode that is misspelt", "OCM2119", klusterlet(json!({"deployOption": {"mode": "Defualt"}})))),
        fault("a feature gate that the agent does not know", "OCM2123", klusterlet(gates)),
        fault("a hosts entry for another name", "OCM2120", klusterlet(elsewhere)),
        fault("several hubs without the gate for it", "OCM2122", klusterlet(hubs)),
        fault("a toleration that the API server refuses", "OCM2105", klusterlet(toleration)),
    ]
}

/// What keeps pods of agents from running.
fn of_pods() -> Vec<Fault> {
    let image = |image: &str| {
        let spec = json!({"spec": {"registrationImagePullSpec": image}});
        vec![Change::Patch(On::Managed, vec!["klusterlet", "klusterlet"], spec)]
    };
    let object = |object: Value| Change::Object(On::Managed, object);
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": AGENTS},
        "spec": {"hard": {"pods": "0"}},
    });
    let admin = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "too-much"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "klusterlet-registration-sa", "namespace": AGENTS}],
    });
    let agents = vec!["delete", "pods", "--namespace", AGENTS, "--selector", "app=klusterlet-registration-agent"];
    vec![
        likely(fault("an image that nobody has", "OCM2106", image("nowhere.example/registration:v1"))),
        fault("an image that does not start", "OCM2106", image("ocm.local/pause:1")),
        fault("a quota for no pods", "OCM2106", vec![object(quota), Change::Kubectl(On::Managed, agents)]),
        fault("an agent that is an administrator", "OCM7106", vec![object(admin)]),
    ]
}

/// What is wrong with a hub.
fn of_hubs() -> Vec<Fault> {
    let manager =
        |spec: Value| vec![Change::Patch(On::Hub, vec!["clustermanager", "cluster-manager"], json!({"spec": spec}))];
    let gates = json!({"registrationConfiguration": {"featureGates": [{"feature": "NoSuchGate", "mode": "Enable"}]}});
    let everybody = json!({"registrationConfiguration": {
        "featureGates": [{"feature": "ManagedClusterAutoApproval", "mode": "Enable"}],
        "autoApproveUsers": ["system:serviceaccount:open-cluster-management:agent-registration-bootstrap"],
    }});
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "unknown", "namespace": "f1"},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "example.com/v1", "kind": "Nothing", "metadata": {"name": "nothing", "namespace": "default"}},
        ]}},
    });
    vec![
        fault("a work of a kind that the cluster does not know", "OCM5101", vec![Change::Object(On::Hub, work)]),
        fault("a feature gate that the hub does not know", "OCM1105", manager(gates)),
        fault("a hub that accepts everybody", "OCM7103", manager(everybody)),
        likely(fault(
            "an image of the hub that nobody has",
            "OCM1106",
            manager(json!({
                "placementImagePullSpec": "nowhere.example/placement:v1"
            })),
        )),
    ]
}

/// Names on a hub of which only the hub is asked.
fn of_names() -> Vec<Fault> {
    let named = |of: &'static str, words, id, changes| Fault { of: Some(of), ..fault(words, id, changes) };
    let on_hub = |object: Value| Change::Object(On::Hub, object);
    let held = |object: Value| Change::Held(On::Hub, held(object));
    let many = (0..10).map(|number| on_hub(request("many", &format!("many-{number}"), &Fixture::agent("many", "a"))));
    vec![
        named("nobody", "a name that nobody has", "OCM2201", vec![]),
        named("by-hand", "a cluster that was made by hand", "OCM2202", vec![on_hub(managed("by-hand", false))]),
        likely(named(
            "half",
            "a cluster that is accepted, and its request is not approved",
            "OCM2206",
            vec![on_hub(managed("half", true)), on_hub(request("half", "half-1", &Fixture::agent("half", "a")))],
        )),
        named(
            "many",
            "ten keys that ask for one name",
            "OCM2203",
            std::iter::once(on_hub(managed("many", false))).chain(many).collect(),
        ),
        named(
            "unsigned",
            "a controller manager that signs nothing",
            "OCM2207",
            vec![
                on_hub(managed("unsigned", true)),
                on_hub(request("unsigned", "unsigned-1", &Fixture::agent("unsigned", "a"))),
                Change::Stop(On::Hub, "kube-controller-manager"),
                Change::Kubectl(On::Hub, vec!["certificate", "approve", "unsigned-1"]),
            ],
        ),
        named("leaving", "a finalizer that nobody takes away", "OCM6101", vec![held(managed("leaving", false))]),
    ]
}

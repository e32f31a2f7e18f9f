//! Faults of names on a hub: registrations and requests, as agents and others send them, and what does not go.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use csr_fixtures::Fixture;
use ocm_api::names::{annotations, signers};
use serde_json::{Value, json};

use super::change::Change;
use super::fault::{Fault, Of, fault, likely};
use super::pair::On;
use super::recurring::counted;
use crate::trouble_support::AGENTS;

/// A managed cluster that nobody runs.
pub(super) fn managed(name: &str, is_accepted: bool) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": is_accepted, "leaseDurationSeconds": 60},
    })
}

/// A request for a certificate of a cluster.
pub(super) fn request(cluster: &str, name: &str, content: &Fixture) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": {"open-cluster-management.io/cluster-name": cluster}},
        "spec": {
            "request": STANDARD.encode(content.pem()),
            "signerName": signers::KUBE_APISERVER_CLIENT,
            "usages": ["digital signature", "key encipherment", "client auth"],
        },
    })
}

pub(super) fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    object
}

fn on_hub(object: Value) -> Change {
    Change::Object(On::Hub, object)
}

fn register(name: &str, is_accepted: bool) -> Change {
    on_hub(managed(name, is_accepted))
}

/// What an agent of this cluster asks for.
fn ask(cluster: &str, name: &str) -> Change {
    on_hub(request(cluster, name, &Fixture::agent(cluster, "a")))
}

pub(super) fn conclude(verb: &'static str, request: &'static str) -> Change {
    Change::Kubectl(On::Hub, vec!["certificate", verb, request], vec![])
}

fn named(of: &'static str, words: &'static str, id: &'static str, changes: Vec<Change>) -> Fault {
    Fault { of: Of::Name(of), ..fault(words, id, changes) }
}

/// Registrations and requests that come no further.
pub(super) fn of_names() -> Vec<Fault> {
    let many = (0..10).map(|number| ask("many", &format!("many-{number}")));
    let mut refused = request("refused", "refused-1", &Fixture::agent("refused", "a"));
    refused["spec"]["usages"] = json!(["server auth", "client auth"]);
    let mut unserved = request("unserved", "unserved-1", &Fixture::agent("unserved", "a"));
    unserved["spec"]["signerName"] = json!(signers::GRPC);
    let is_accepted = "--for=condition=HubAcceptedManagedCluster";
    let deny = r#"--patch={"spec":{"hubAcceptsClient":false}}"#;
    vec![
        named("nobody", "a name that nobody has", "OCM2201", vec![]),
        named("by-hand", "a cluster that was made by hand", "OCM2202", vec![register("by-hand", false)]),
        named("empty", "a cluster that is accepted, and never asked", "OCM2202", vec![register("empty", true)]),
        likely(named(
            "half",
            "a cluster that is accepted, and its request is not approved",
            "OCM2206",
            vec![register("half", true), ask("half", "half-1")],
        )),
        named(
            "other-half",
            "a request that is approved, and its cluster is not accepted",
            "OCM2205",
            vec![register("other-half", false), ask("other-half", "other-half-1"), conclude("approve", "other-half-1")],
        ),
        named(
            "waiting",
            "a cluster that waits for acceptance",
            "OCM2205",
            vec![register("waiting", false), ask("waiting", "waiting-1")],
        ),
        named(
            "many",
            "ten keys that ask for one name",
            "OCM2203",
            std::iter::once(register("many", false)).chain(many).collect(),
        ),
        named(
            "two",
            "two requests for an accepted cluster",
            "OCM2203",
            vec![register("two", true), ask("two", "two-1"), ask("two", "two-2")],
        ),
        named(
            "withdrawn",
            "a cluster whose acceptance was withdrawn",
            "OCM2204",
            vec![
                register("withdrawn", true),
                ask("withdrawn", "withdrawn-1"),
                Change::Kubectl(
                    On::Hub,
                    vec!["wait", "managedcluster/withdrawn", is_accepted, "--timeout=60s"],
                    vec![],
                ),
                Change::Kubectl(On::Hub, vec!["patch", "managedcluster", "withdrawn", "--type=merge", deny], vec![]),
            ],
        ),
        named(
            "refused",
            "a request that the signer refuses",
            "OCM2207",
            vec![register("refused", true), on_hub(refused), conclude("approve", "refused-1")],
        ),
        named(
            "unserved",
            "a request over gRPC at a hub without it",
            "OCM2207",
            vec![register("unserved", true), on_hub(unserved), conclude("approve", "unserved-1")],
        ),
        named(
            "denied",
            "a request that was denied",
            "OCM2208",
            vec![register("denied", true), ask("denied", "denied-1"), conclude("deny", "denied-1")],
        ),
        named(
            "unsigned",
            "a controller manager that signs nothing",
            "OCM2207",
            vec![
                register("unsigned", true),
                ask("unsigned", "unsigned-1"),
                Change::Stop(On::Hub, "kube-controller-manager"),
                conclude("approve", "unsigned-1"),
            ],
        ),
        named(
            "idle",
            "a certificate that no agent fetches",
            "OCM2211",
            vec![register("idle", true), ask("idle", "idle-1"), conclude("approve", "idle-1")],
        ),
    ]
}

/// Requests that are not what they say.
pub(super) fn of_lies() -> Vec<Fault> {
    let greedy = Fixture::empty()
        .organization("system:open-cluster-management:somebody")
        .common_name("system:open-cluster-management:greedy:a");
    let mut behalf = request("behalf", "behalf-1", &Fixture::agent("behalf", "a"));
    behalf["metadata"]["annotations"] = json!({ (annotations::CSR_USER): "somebody" });
    vec![
        named(
            "false",
            "a request for another name than its label tells",
            "OCM7105",
            vec![register("false", false), on_hub(request("false", "false-1", &Fixture::agent("other", "a")))],
        ),
        named(
            "planted",
            "a request for another name that was approved",
            "OCM7105",
            vec![
                register("planted", false),
                on_hub(request("planted", "planted-1", &Fixture::agent("somebody", "a"))),
                conclude("approve", "planted-1"),
            ],
        ),
        named(
            "greedy",
            "a request for the rights of another cluster",
            "OCM7105",
            vec![register("greedy", false), on_hub(request("greedy", "greedy-1", &greedy))],
        ),
        named(
            "behalf",
            "a request on behalf of somebody else",
            "OCM7105",
            vec![register("behalf", false), on_hub(behalf)],
        ),
    ]
}

/// What does not go, and what stands in the way.
pub(super) fn of_leavers() -> Vec<Fault> {
    let namespace = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"open-cluster-management.io/cluster-name": name}},
        })
    };
    let gone = |object: Value| Change::Held(On::Hub, held(object));
    let image = "nowhere.example/agent:v1";
    let leaver = json!({
        "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": {"name": "leaver"},
        "spec": {"clusterName": "leaver", "namespace": "open-cluster-management-leaver",
            "registrationImagePullSpec": image, "workImagePullSpec": image},
    });
    let no_bindings = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-bindings", "namespace": "no-rights"},
        "spec": {"hard": {"count/rolebindings.rbac.authorization.k8s.io": "0"}},
    });
    vec![
        named("leaving", "a finalizer that nobody takes away", "OCM6101", vec![gone(managed("leaving", false))]),
        named("gone", "a namespace that does not go", "OCM6102", vec![gone(namespace("gone"))]),
        named(
            "again",
            "a cluster that comes back while its namespace does not go",
            "OCM6102",
            vec![gone(namespace("again")), register("again", false), ask("again", "again-1")],
        ),
        named(
            "no-rights",
            "a quota for no rights of a cluster",
            "OCM2210",
            vec![
                on_hub(namespace("no-rights")),
                on_hub(no_bindings),
                counted(On::Hub, "no-rights", "resourcequota/no-bindings"),
                register("no-rights", true),
                ask("no-rights", "no-rights-1"),
                conclude("approve", "no-rights-1"),
            ],
        ),
        Fault {
            of: Of::Other("leaver"),
            ..fault("a Klusterlet that does not go", "OCM6103", vec![Change::Held(On::Managed, held(leaver))])
        },
        fault("a namespace of the agents that does not go", "OCM6104", vec![Change::Doomed(On::Managed, AGENTS)]),
    ]
}

//! Objects for the tests of the rules: a right request, and ways to make it wrong.

#![allow(dead_code, reason = "each test program takes what it needs")]

use csr_fixtures::{Fixture, Key, Kind};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use ocm_api::ManagedCluster;
use ocm_core::accept::{Decision, Found, Options, decide};
use ocm_core::csr::{Code, Request, Settings};

/// The cluster of all tests.
pub const CLUSTER: &str = "c1";
/// Who registers agents.
pub const BOOTSTRAP: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// Label with the cluster's name.
pub const LABEL: &str = "open-cluster-management.io/cluster-name";
/// Label with the add-on's name.
pub const ADDON_LABEL: &str = "open-cluster-management.io/addon-name";
/// Annotation of the gRPC server.
pub const CSR_USER: &str = "open-cluster-management.io/csr-user";
/// The signer of the gRPC server's requests.
pub const GRPC_SIGNER: &str = "open-cluster-management.io/grpc";
/// Where the API server says how somebody authenticated.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A time, in seconds after the beginning of all tests.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).expect("a time")
}

/// A request object with this content, as the API server stores it when the bootstrap service account creates it.
pub fn object(name: &str, created: i64, pem: &str) -> CertificateSigningRequest {
    let mut object = CertificateSigningRequest::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.creation_timestamp = Some(Time(at(created)));
    object.metadata.labels = Some([(LABEL.to_owned(), CLUSTER.to_owned())].into());
    object.spec.request = ByteString(pem.as_bytes().to_vec());
    object.spec.signer_name = "kubernetes.io/kube-apiserver-client".to_owned();
    object.spec.usages = Some(["digital signature", "key encipherment", "client auth"].map(str::to_owned).to_vec());
    ask_as_service_account(&mut object, "open-cluster-management", "agent-registration-bootstrap");
    object
}

/// Makes a service account the requester.
pub fn ask_as_service_account(object: &mut CertificateSigningRequest, namespace: &str, name: &str) {
    object.spec.username = Some(format!("system:serviceaccount:{namespace}:{name}"));
    object.spec.uid = Some("f82ca45b-5d81-4b4b-be44-bc1d99af9983".to_owned());
    let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"];
    object.spec.groups = Some(groups.map(str::to_owned).to_vec());
    object.spec.extra = Some([(CREDENTIAL_ID.to_owned(), vec!["JTI=ebf6c9ef".to_owned()])].into());
}

/// Makes somebody with a token or a certificate the requester.
pub fn ask_as(object: &mut CertificateSigningRequest, user: &str, groups: &[&str], credential: Option<&str>) {
    object.spec.username = Some(user.to_owned());
    object.spec.uid = None;
    object.spec.groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
    object.spec.extra = credential.map(|id| [(CREDENTIAL_ID.to_owned(), vec![id.to_owned()])].into());
}

/// Adds a condition, as soon as the request was there.
pub fn conclude(object: &mut CertificateSigningRequest, kind: &str) {
    let created = object.metadata.creation_timestamp.clone();
    push_condition(object, kind, created);
}

/// Adds a condition at some time.
pub fn conclude_at(object: &mut CertificateSigningRequest, kind: &str, second: i64) {
    push_condition(object, kind, Some(Time(at(second))));
}

fn push_condition(object: &mut CertificateSigningRequest, kind: &str, time: Option<Time>) {
    object.status.get_or_insert_default().conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        last_transition_time: time,
        ..CertificateSigningRequestCondition::default()
    });
}

/// The right request of an agent, as an object.
pub fn right() -> CertificateSigningRequest {
    object("right", 10, &Fixture::agent(CLUSTER, "a1").pem())
}

/// Every rule that an object breaks for the cluster, by the ordinary settings.
pub fn codes(object: &CertificateSigningRequest) -> Vec<Code> {
    codes_with(object, &Settings::default())
}

/// Every rule that an object breaks for the cluster.
pub fn codes_with(object: &CertificateSigningRequest, settings: &Settings) -> Vec<Code> {
    Request::read(object).violations(CLUSTER, settings).into_iter().map(|violation| violation.code).collect()
}

/// When the cluster was created.
pub const REGISTERED: i64 = 100;

/// A cluster that has registered.
pub fn cluster() -> ManagedCluster {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(CLUSTER.to_owned());
    cluster.metadata.uid = Some("1".to_owned());
    cluster.metadata.creation_timestamp = Some(Time(at(REGISTERED)));
    cluster
}

/// One that the hub accepts.
pub fn accepted() -> ManagedCluster {
    let mut cluster = cluster();
    cluster.spec.hub_accepts_client = Some(true);
    cluster
}

/// With one condition more.
pub fn with_condition(mut cluster: ManagedCluster, kind: &str, status: &str, second: i64) -> ManagedCluster {
    cluster.status.get_or_insert_default().conditions.push(Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time: Time(at(second)),
        message: String::new(),
        observed_generation: None,
        reason: "Because".to_owned(),
    });
    cluster
}

/// A cluster whose agent joined at this time.
pub fn joined(second: i64) -> ManagedCluster {
    with_condition(accepted(), "ManagedClusterJoined", "True", second)
}

/// A cluster that joined and was denied then.
pub fn denied() -> ManagedCluster {
    let mut cluster = with_condition(joined(120), "HubAcceptedManagedCluster", "False", 130);
    cluster.spec.hub_accepts_client = Some(false);
    cluster
}

/// The right request with a key.
pub fn asks(name: &str, created: i64, key: &Key) -> CertificateSigningRequest {
    object(name, created, &Fixture::agent(CLUSTER, "a1").key(key).pem())
}

/// A request with one condition more.
pub fn concluded(mut object: CertificateSigningRequest, kind: &str) -> CertificateSigningRequest {
    conclude(&mut object, kind);
    object
}

/// A request with one label more.
pub fn labelled(mut object: CertificateSigningRequest, key: &str, value: &str) -> CertificateSigningRequest {
    object.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    object
}

/// What is decided with these options.
pub fn decide_with(cluster: &ManagedCluster, objects: &[CertificateSigningRequest], options: &Options) -> Decision {
    let requests: Vec<Request> = objects.iter().map(Request::read).collect();
    let requests: Vec<&Request> = requests.iter().collect();
    decide(CLUSTER, &Found { cluster: Some(cluster), requests: &requests, ..Found::default() }, options)
}

/// What is decided.
pub fn decided(cluster: &ManagedCluster, objects: &[CertificateSigningRequest]) -> Decision {
    decide_with(cluster, objects, &Options::default())
}

/// Approves the request of this index and accepts the cluster.
pub fn lets_in(index: usize) -> Decision {
    Decision::Act { approve: Some(index), stands_on: Some(index), accept: true }
}

/// Demands a refusal with this code.
#[track_caller]
pub fn assert_refused(decision: &Decision, code: Code) {
    match decision {
        Decision::Refused(refusal) => assert_eq!(refusal.code, code, "{refusal:?}"),
        other => panic!("{other:?} instead of {code}"),
    }
}

/// Somebody names this key.
pub fn naming(key: &Key) -> Options {
    Options { fingerprint: Some(key.fingerprint()), ..Options::default() }
}

/// Somebody gives the name away.
pub fn replacing() -> Options {
    Options { replace: true, ..Options::default() }
}

/// A new key.
pub fn key() -> Key {
    Key::new(Kind::P256)
}

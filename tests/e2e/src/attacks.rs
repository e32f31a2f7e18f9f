//! Requests for certificates, those that must come to nothing and right ones: tables for whoever judges them.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::thread::sleep;
use std::time::Duration;

use csr_fixtures::{Fixture, Hash, Kind, Text, oid};
use ocm_api::names::labels::{CLUSTER_NAME, CLUSTER_SET};
use serde_json::json;

use crate::accept_support::{Ask, Hub, Who, managed_cluster};
use crate::refusals::CLUSTERS;

/// Start of the names of agents and groups.
const PREFIX: &str = "system:open-cluster-management:";
/// Start of the groups of agents with an AWS identity.
const AWS_PREFIX: &str = "open-cluster-management:";
/// The bootstrap service account, as OCM's gRPC server names it.
pub const BOOTSTRAP: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

/// What a hub holds under the name for which is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The cluster has registered.
    Registered,
    /// Nothing.
    Nothing,
    /// The cluster has registered, and somebody else has a namespace of its name.
    NamespaceTaken,
    /// The cluster has registered and is being removed.
    Leaving,
    /// The cluster has registered with a label of its own choice: its key and its value.
    Labelled(&'static str, &'static str),
    /// The cluster has registered with a name that begins as those of namespaces of Kubernetes.
    Reserved,
    /// The cluster has registered with this name.
    Called(&'static str),
    /// The cluster has registered, and an earlier one of its name has left its namespace.
    UsedBefore,
    /// The cluster has registered, and somebody has denied a request for its name since.
    DeniedBefore,
}

/// The requests for the cluster of a name.
type Asks = Box<dyn Fn(&str) -> Vec<Ask>>;

/// How requests are made for the cluster of a name.
pub struct Make {
    /// What the hub holds besides.
    pub setting: Setting,
    asks: Asks,
}

impl Make {
    fn on(mut self, setting: Setting) -> Self {
        self.setting = setting;
        self
    }

    /// What the cluster is called where this name is free for it: another one where the name is what is wrong.
    pub fn called(&self, name: &str) -> String {
        match self.setting {
            Setting::Reserved => format!("kube-{name}"),
            Setting::Called(own) => own.to_owned(),
            _ => name.to_owned(),
        }
    }

    /// Whether it is the registration that is wrong, and the request is as others are: whoever judges requests alone has nothing
    /// against it.
    pub const fn is_of_registration(&self) -> bool {
        matches!(self.setting, Setting::Labelled(..) | Setting::Reserved | Setting::Called(_))
    }

    /// The requests for a cluster of this name, each time with other keys.
    pub fn asks(&self, name: &str) -> Vec<Ask> {
        (self.asks)(name)
    }

    /// Puts everything on a hub; returns the names of the requests.
    pub fn make(&self, hub: &Hub, name: &str) -> Vec<String> {
        self.put(hub, name, &self.asks(name))
    }

    /// The same with these requests.
    pub fn put(&self, hub: &Hub, name: &str, asks: &[Ask]) -> Vec<String> {
        if matches!(self.setting, Setting::NamespaceTaken | Setting::UsedBefore) {
            hub.cluster.kubectl(&["create", "namespace", name]).unwrap();
        }
        if self.setting == Setting::UsedBefore {
            hub.cluster.kubectl(&["label", "namespace", name, &format!("{CLUSTER_NAME}={name}")]).unwrap();
            // Times of the API are whole seconds.
            sleep(Duration::from_millis(1100));
        }
        match self.setting {
            Setting::Nothing => {}
            Setting::Labelled(key, value) => {
                let mut object = json!(managed_cluster(name));
                object["metadata"]["labels"] = json!({key: value});
                hub.create(Who::Bootstrap, CLUSTERS, &object).unwrap();
            }
            _ => {
                hub.register(name);
            }
        }
        if self.setting == Setting::DeniedBefore {
            hub.conclude(&hub.ask(&Ask::agent(name)), "deny");
        }
        let requests = asks.iter().map(|ask| hub.ask(ask)).collect();
        if self.setting == Setting::Leaving {
            hub.patch(name, json!({"metadata": {"finalizers": ["example.com/wait"]}}));
            hub.remove(name);
        }
        requests
    }
}

/// The cluster registers and asks for this.
fn ask(ask: impl Fn(&str) -> Ask + 'static) -> Make {
    Make { setting: Setting::Registered, asks: Box::new(move |name| vec![ask(name)]) }
}

/// The cluster registers and asks rightly but for what its request holds.
fn content(fixture: impl Fn(&str, Fixture) -> Fixture + 'static) -> Make {
    ask(move |name| Ask::with(name, &fixture(name, Fixture::agent(name, "a1"))))
}

/// The cluster registers and asks rightly but for how.
fn manner(change: impl Fn(&mut Ask) + 'static) -> Make {
    ask(move |name| {
        let mut ask = Ask::agent(name);
        change(&mut ask);
        ask
    })
}

/// Every attack: what it is, the reason code that is expected, and how it is made.
pub fn attacks() -> Vec<(&'static str, &'static str, Make)> {
    let named = |suffix: &'static str| {
        content(move |name, fixture| fixture.without_common_names().common_name(&format!("{PREFIX}{name}{suffix}")))
    };
    let by = |who: Who| ask(move |name| Ask::agent(name).by(who));
    vec![
        // Another identity.
        ("another cluster's subject", "CommonName", ask(|name| Ask::with(name, &Fixture::agent("c2", "a1")))),
        ("a cluster whose name goes on", "CommonName", named("0:a1")),
        ("an agent whose name goes on", "CommonName", named(":a1:x")),
        ("no agent", "CommonName", named("")),
        ("a blank behind the name", "CommonName", named(":a1 ")),
        ("a line break in the name", "CommonName", named(":a\n1")),
        (
            "something before the name",
            "CommonName",
            content(|name, fixture| fixture.without_common_names().common_name(&format!("x{PREFIX}{name}:a1"))),
        ),
        (
            "the name in capitals",
            "CommonName",
            content(|name, fixture| {
                fixture.without_common_names().common_name(&format!("{PREFIX}{}:a1", name.to_uppercase()))
            }),
        ),
        ("a look-alike of the name", "CommonName", named(":а1")),
        (
            "an administrator's name",
            "CommonName",
            content(|_, fixture| fixture.without_common_names().common_name("kubernetes-admin")),
        ),
        ("a name and another one", "CommonNames", content(|_, fixture| fixture.common_name(&format!("{PREFIX}c2:a1")))),
        (
            "another name in front",
            "CommonNames",
            content(|name, fixture| {
                fixture
                    .without_common_names()
                    .common_name(&format!("{PREFIX}c2:a1"))
                    .common_name(&format!("{PREFIX}{name}:a1"))
            }),
        ),
        ("no name", "CommonNames", content(|_, fixture| fixture.without_common_names())),
        // More rights.
        (
            "an administrators' group",
            "ForeignOrganization",
            content(|_, fixture| fixture.organization("platform-admins")),
        ),
        (
            "another cluster's group",
            "ForeignOrganization",
            content(|_, fixture| fixture.organization(&format!("{PREFIX}c2"))),
        ),
        (
            "another cluster's group of an AWS identity",
            "ForeignOrganization",
            content(|_, fixture| fixture.organization(&format!("{AWS_PREFIX}c2"))),
        ),
        (
            "a group whose name goes on",
            "ForeignOrganization",
            content(|name, fixture| fixture.organization(&format!("{PREFIX}{name}0"))),
        ),
        (
            "a group in the set of the others",
            "ForeignOrganization",
            content(|name, _| {
                let own = format!("{PREFIX}{name}");
                let set = [(oid::ORGANIZATION, own.as_str()), (oid::ORGANIZATION, "platform-admins")];
                Fixture::empty().one_set(&set).common_name(&format!("{own}:a1"))
            }),
        ),
        (
            "the common group only",
            "MissingOrganization",
            content(|_, fixture| fixture.without_organizations().organization(&format!("{PREFIX}managed-clusters"))),
        ),
        ("no group", "MissingOrganization", content(|_, fixture| fixture.without_organizations())),
        (
            "a unit",
            "SubjectAttributes",
            content(|_, fixture| fixture.subject(oid::ORGANIZATIONAL_UNIT, Text::Utf8, "x")),
        ),
        ("a UID", "SubjectAttributes", content(|_, fixture| fixture.subject(oid::KUBERNETES_UID, Text::Utf8, "x"))),
        (
            "a group in another alphabet",
            "Unreadable",
            content(|_, fixture| fixture.subject(oid::ORGANIZATION, Text::Bmp, "platform-admins")),
        ),
        ("a DNS name", "AlternativeNames", content(|_, fixture| fixture.dns("kubernetes.default.svc"))),
        ("an address", "AlternativeNames", content(|_, fixture| fixture.ip([127, 0, 0, 1]))),
        ("an email address", "AlternativeNames", content(|_, fixture| fixture.email("admin@example.com"))),
        (
            "to be an authority",
            "Extensions",
            content(|_, fixture| fixture.extension(oid::BASIC_CONSTRAINTS, b"\x30\x03\x01\x01\xff")),
        ),
        ("a challenge password", "Extensions", content(|_, fixture| fixture.challenge_password("x"))),
        // Weak or foreign keys.
        ("RSA 1024", "WeakKey", content(|_, fixture| fixture.kind(Kind::Rsa(1024)))),
        ("a signature with SHA-1", "Signature", content(|_, fixture| fixture.kind(Kind::Rsa(2048)).hash(Hash::Sha1))),
        // More than one block: which one is signed is the signer's choice.
        (
            "two blocks",
            "Unreadable",
            ask(|name| {
                let both = Fixture::agent(name, "a1").pem() + &Fixture::agent("c2", "a1").pem();
                Ask::raw(name, both.into_bytes())
            }),
        ),
        (
            "text in front of the block",
            "Unreadable",
            ask(|name| Ask::raw(name, format!("hello\n{}", Fixture::agent(name, "a1").pem()).into_bytes())),
        ),
        (
            "a header in the block",
            "Unreadable",
            ask(|name| {
                let pem = Fixture::agent(name, "a1").pem().replacen('\n', "\nX: y\n\n", 1);
                Ask::raw(name, pem.into_bytes())
            }),
        ),
        // Other signers, usages and lifetimes.
        (
            "the serving signer",
            "Signer",
            manner(|ask| {
                ask.signer = "kubernetes.io/kubelet-serving".to_owned();
                ask.usages = ["digital signature", "client auth"].map(str::to_owned).to_vec();
            }),
        ),
        ("a signer of its own", "Signer", manner(|ask| ask.signer = "example.com/mine".to_owned())),
        ("server auth too", "Usages", manner(|ask| ask.usages.push("server auth".to_owned()))),
        ("to sign certificates", "Usages", manner(|ask| ask.usages.push("cert sign".to_owned()))),
        ("client auth only", "Usages", manner(|ask| ask.usages = vec!["client auth".to_owned()])),
        ("ten years", "Lifetime", manner(|ask| ask.seconds = Some(315_360_000))),
        ("a second more than a year", "Lifetime", manner(|ask| ask.seconds = Some(31_536_001))),
        // Other requesters.
        ("a user", "Requester", by(Who::Eva)),
        ("an administrator", "Requester", by(Who::Admin)),
        ("another cluster's agent", "OtherAgent", by(Who::AgentOfC2)),
        ("a service account of another namespace", "Requester", by(Who::AccountElsewhere)),
        ("a service account whose name goes on", "Requester", by(Who::LongerAccount)),
        ("a bootstrap token without the group", "Requester", by(Who::TokenWithoutGroup)),
        ("the service account by a certificate", "Impersonated", by(Who::CertificateOfAccount)),
        ("a bootstrap token by a certificate", "Impersonated", by(Who::CertificateOfToken)),
        // Claims of the gRPC path.
        ("a forged annotation", "GrpcClaim", manner(|ask| ask.annotation = Some(BOOTSTRAP.to_owned()))),
        ("the gRPC signer", "GrpcClaim", manner(|ask| ask.signer = "open-cluster-management.io/grpc".to_owned())),
        ("both", "GrpcClaim", ask(|name| Ask::agent(name).grpc(BOOTSTRAP).by(Who::Bootstrap))),
        (
            "the gRPC server by a certificate",
            "Impersonated",
            ask(|name| Ask::agent(name).grpc(BOOTSTRAP).by(Who::CertificateOfGrpc)),
        ),
        ("the gRPC server for a user", "Requester", ask(|name| Ask::agent(name).grpc("eva"))),
        (
            "the gRPC server for nobody",
            "GrpcClaim",
            ask(|name| {
                let mut ask = Ask::agent(name).grpc("");
                ask.annotation = None;
                ask
            }),
        ),
        (
            "the gRPC server with another signer",
            "Signer",
            ask(|name| {
                let mut ask = Ask::agent(name).grpc(BOOTSTRAP);
                ask.signer = "kubernetes.io/kube-apiserver-client".to_owned();
                ask
            }),
        ),
        // Labels that lie.
        (
            "an add-on's label",
            "AddonLabel",
            ask(|name| {
                let mut ask = Ask::with(name, &Fixture::agent(name, "a1").organization("platform-admins"));
                ask.addon = Some("x".to_owned());
                ask
            }),
        ),
        (
            "no label",
            "NoRequest",
            ask(|name| {
                let mut ask = Ask::agent(name);
                ask.label = None;
                ask
            }),
        ),
        (
            "a cluster's group of an AWS identity, by a user and without a label",
            "NoRequest",
            ask(|name| {
                let fixture = Fixture::empty().common_name("eva").organization(&format!("{AWS_PREFIX}{name}"));
                let mut ask = Ask::with(name, &fixture).by(Who::Eva);
                ask.label = None;
                ask
            }),
        ),
        (
            "another cluster's label",
            "NoRequest",
            ask(|name| {
                let mut ask = Ask::agent(name);
                ask.label = Some(format!("{name}0"));
                ask
            }),
        ),
        (
            "an add-on's request",
            "NoRequest",
            ask(|name| {
                let mut ask = Ask::with(name, &Fixture::addon(name, "x"));
                ask.addon = Some("x".to_owned());
                ask
            }),
        ),
        // Names and clusters.
        ("no managed cluster", "NoManagedCluster", ask(Ask::agent).on(Setting::Nothing)),
        (
            "two keys",
            "TwoKeys",
            Make { setting: Setting::Registered, asks: Box::new(|name| vec![Ask::agent(name), Ask::agent(name)]) },
        ),
        ("a namespace of somebody else", "NamespaceTaken", ask(Ask::agent).on(Setting::NamespaceTaken)),
        ("a cluster that is being removed", "Detaching", ask(Ask::agent).on(Setting::Leaving)),
        ("a name whose namespace is older", "NameUsedBefore", ask(Ask::agent).on(Setting::UsedBefore)),
        ("a cluster that was denied before", "DeniedBefore", ask(Ask::agent).on(Setting::DeniedBefore)),
        // What only the registration shows.
        ("a name as those of namespaces of Kubernetes", "NameReserved", ask(Ask::agent).on(Setting::Reserved)),
        ("the name of the group of all clusters", "NameReserved", ask(Ask::agent).on(Setting::Called("cluster"))),
        ("the name with which names of add-ons begin", "NameReserved", ask(Ask::agent).on(Setting::Called("addon"))),
        ("a label of its own", "Labels", ask(Ask::agent).on(Setting::Labelled("env", "prod"))),
        ("a cluster set of its own", "ClusterSet", ask(Ask::agent).on(Setting::Labelled(CLUSTER_SET, "prod"))),
    ]
}

/// Every right request and how it is made.
pub fn right_requests() -> Vec<(&'static str, Make)> {
    vec![
        ("as agents ask", ask(Ask::agent)),
        ("for a year", manner(|ask| ask.seconds = Some(31_536_000))),
        ("P-384", content(|_, fixture| fixture.kind(Kind::P384))),
        ("P-521", content(|_, fixture| fixture.kind(Kind::P521))),
        ("Ed25519", content(|_, fixture| fixture.kind(Kind::Ed25519))),
        ("RSA 2048", content(|_, fixture| fixture.kind(Kind::Rsa(2048)))),
        (
            "a name of 70 characters",
            ask(|name| Ask::with(name, &Fixture::agent(name, "3891282a-ae41-4537-991c-73e3e046fd56-0"))),
        ),
        ("a group twice", content(|name, fixture| fixture.organization(&format!("{PREFIX}{name}")))),
        (
            "without the common group",
            content(|name, fixture| fixture.without_organizations().organization(&format!("{PREFIX}{name}"))),
        ),
        (
            "without key encipherment",
            manner(|ask| {
                ask.usages = ["digital signature", "client auth"].map(str::to_owned).to_vec();
            }),
        ),
        ("a whole name of its own", manner(|ask| ask.name = Some("whole-name".to_owned()))),
        ("by a bootstrap token", ask(|name| Ask::agent(name).by(Who::Token))),
        ("by gRPC", ask(|name| Ask::agent(name).grpc(BOOTSTRAP))),
        ("by gRPC with a bootstrap token", ask(|name| Ask::agent(name).grpc("system:bootstrap:abcdef"))),
    ]
}

//! Hubs that are made up: a cluster, who asks for its name, and what else there is under it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use csr_fixtures::{Fixture, Key, Kind};
use ocm_api::ManagedCluster;
use ocm_api::registration::RegisteredKeys;
use ocm_core::accept::{self, Chosen, Decision, Found, Options, decide};
use ocm_core::csr::{Request, Settings};
use ocm_policy_rules::evidence;
use ocm_policy_sdk::{self as sdk, EvidenceSource};
use ocm_rules::claim::Namespace;
use ocm_rules::identity::{BOOTSTRAP_USER, CREDENTIAL_ID, GRPC_SERVER_USER, PREFIX, TOKEN_GROUP};
use serde_json::{Value, json};

use crate::support::Random;

/// When the cluster registered, in seconds after the beginning of the hub.
const REGISTERED: u32 = 100;

/// When it is asked about.
pub(crate) const NOW: &str = "2026-01-01T00:05:00Z";

const LABEL: &str = "open-cluster-management.io/cluster-name";
const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// Names of clusters that are not right; mostly one has a right one.
const NAMES: [&str; 4] = ["default", "kube-x", "C1", "cluster-proxy"];

/// The group of another cluster's agents that have an AWS identity.
const AWS_GROUP: &str = "open-cluster-management:c2";

/// A certificate request in all its forms.
pub(crate) struct Csr {
    pub(crate) object: Value,
    /// As `accept` reads it.
    pub(crate) request: Request,
    /// As the host shows it to policies that ask for all requests.
    pub(crate) row: Value,
}

/// What a hub holds.
pub(crate) struct Hub {
    pub(crate) name: &'static str,
    pub(crate) cluster: Option<Value>,
    pub(crate) namespaces: Vec<Value>,
    pub(crate) roles: Vec<Value>,
    pub(crate) registrations: Vec<Value>,
    pub(crate) csrs: Vec<Arc<Csr>>,
    pub(crate) options: Options,
}

/// Makes hubs. Keys and what was made of them are kept, for they take their time.
pub(crate) struct Maker {
    keys: [Key; 3],
    weak: Key,
    contents: HashMap<(&'static str, usize), String>,
    read: HashMap<String, Arc<Csr>>,
}

fn time(second: u32) -> String {
    format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60)
}

impl Maker {
    pub(crate) fn new() -> Self {
        let key = || Key::new(Kind::P256);
        let (contents, read) = (HashMap::new(), HashMap::new());
        Self { keys: [key(), key(), key()], weak: Key::new(Kind::Rsa(1024)), contents, read }
    }

    pub(crate) fn hub(&mut self, random: &mut Random) -> Hub {
        let name = if random.once_in(5) { *random.one(&NAMES) } else { "c1" };
        let requesters = if random.once_in(3) { vec!["alice".to_owned()] } else { Vec::new() };
        let chosen = if random.once_in(2) { Chosen::InBulk } else { Chosen::ByName };
        let own = random.below(8) > 0;
        let namespace = json!({"metadata": {"name": name, "creationTimestamp": time(*random.one(&[90, 100, 101, 101])),
            "labels": {LABEL: if own { name } else { "other" }}}});
        let role = json!({"metadata": {"name": format!("open-cluster-management:managedcluster:{name}"),
            "creationTimestamp": time(*random.one(&[90, 100, 101, 101])), "labels": {LABEL: name}}});
        let csrs = (0..random.below(4)).map(|number| self.csr(name, number, random)).collect();
        let mut hub = Hub {
            name,
            cluster: (random.below(12) > 0).then(|| cluster(name, random)),
            namespaces: if random.once_in(2) { vec![namespace] } else { Vec::new() },
            roles: if random.once_in(3) { vec![role] } else { Vec::new() },
            registrations: Vec::new(),
            csrs,
            options: Options { settings: Settings { requesters, ..Settings::default() }, chosen, ..Options::default() },
        };
        if random.once_in(8) {
            let ends = ["2026-01-01T00:05:00Z", "2026-01-01T00:05:01Z", "2026-06-01T00:00:00Z", "soon"];
            let keys: Vec<Value> =
                (0..random.below(3)).map(|_| json!({"until": random.one(&ends), "spkiSha256": ""})).collect();
            let uid = *random.one(&[Some("0"), Some("1"), Some("1"), None]);
            let noted = json!({"metadata": {"name": name}, "status": {"clusterUid": uid, "keys": keys}});
            hub.registrations = vec![noted];
        }
        hub
    }

    /// A certificate request, mostly a right one.
    fn csr(&mut self, name: &'static str, number: usize, random: &mut Random) -> Arc<Csr> {
        let content = if random.once_in(3) { random.below(19) } else { random.below(4) };
        let pem = self.content(name, content);
        let mut labels = json!({LABEL: name});
        match random.below(20) {
            0 => labels = json!({}),
            1 => labels[LABEL] = json!("c2"),
            2 => labels["open-cluster-management.io/addon-name"] = json!("x"),
            3 => labels["open-cluster-management.io/addon-name"] = json!("cluster-proxy"),
            _ => {}
        }
        let (mut spec, annotations) = requester(name, random);
        spec["request"] = json!(pem);
        spec["usages"] = match random.once_in(20) {
            true => json!(["server auth"]),
            false => json!(["digital signature", "key encipherment", "client auth"]),
        };
        if random.once_in(20) {
            spec["expirationSeconds"] = json!(31_536_001);
        }
        if random.once_in(20) {
            spec["signerName"] = json!(random.one(&["example.com/s", "open-cluster-management.io/grpc"]));
        }
        let at = *random.one(&[90, 100, 110, 110, 130]);
        let conclusion = |kind: &str| json!([{"type": kind, "status": "True", "lastTransitionTime": time(at)}]);
        let status = match random.below(10) {
            0 | 1 => json!({"conditions": conclusion("Approved")}),
            2 => json!({"conditions": conclusion("Approved"), "certificate": "eA=="}),
            3 if random.once_in(2) => json!({"conditions": conclusion("Denied")}),
            4 if random.once_in(3) => json!({"conditions": conclusion("Failed")}),
            _ => json!({}),
        };
        let object = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": format!("r{number}"), "labels": labels, "annotations": annotations,
                         "creationTimestamp": time(80 + 20 * number as u32)},
            "spec": spec, "status": status,
        });
        let read = |object: Value| {
            let parsed = serde_json::from_value(object.clone()).expect("it is a certificate request");
            let row = evidence::certificate_request(&object).expect("it is a certificate request");
            Arc::new(Csr { request: Request::read(&parsed), row, object })
        };
        Arc::clone(self.read.entry(object.to_string()).or_insert_with(|| read(object)))
    }

    /// What is asked for, as `spec.request` holds it.
    fn content(&mut self, name: &'static str, number: usize) -> String {
        let [one, two, three] = &self.keys;
        let agent = |key: &Key| Fixture::agent(name, "a1").key(key);
        let make = || match number {
            0 | 1 => agent(one).pem(),
            2 => agent(two).pem(),
            3 => Fixture::agent(name, "a2").key(two).pem(),
            4 => agent(three).pem(),
            5 => agent(one).organization("system:masters").pem(),
            6 => agent(two).common_name("system:admin").pem(),
            7 => Fixture::agent("c2", "a1").key(two).pem(),
            8 => Fixture::addon(name, "x").key(two).pem(),
            9 => Fixture::empty().key(two).common_name("bob").organization(AWS_GROUP).pem(),
            10 => agent(one).signed_by(two).pem(),
            11 => agent(&self.weak).pem(),
            12 => agent(three).dns("hub").pem(),
            13 => Fixture::agent("c2", "a1").key(three).common_name(&format!("{PREFIX}{name}:a1")).pem(),
            14 => format!("hello\n{}", agent(two).pem()),
            15 => agent(one).pem() + &agent(two).pem(),
            16 => Fixture::agent("c2", "a1").key(two).pem() + &agent(three).pem(),
            17 => {
                let group = "open-cluster-management:cluster-proxy";
                let names = Fixture::empty().organization(group).common_name(&format!("{group}:addon-agent"));
                names.key(two).dns("cluster-proxy.addon.open-cluster-management.io").pem()
            }
            _ => "garbage".to_owned(),
        };
        self.contents.entry((name, number)).or_insert_with(|| STANDARD.encode(make())).clone()
    }
}

/// Who asks, mostly somebody who may, as members of a spec; and the annotations that come with it.
fn requester(name: &str, random: &mut Random) -> (Value, Value) {
    let account = |user: &str| {
        let namespace = user.split(':').nth(2).expect("a service account has a namespace");
        json!({
            "signerName": "kubernetes.io/kube-apiserver-client", "username": user, "uid": "u",
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}")],
            "extra": {CREDENTIAL_ID: ["JTI=1"]},
        })
    };
    let user = |user: &str, group: &str| json!({"signerName": "kubernetes.io/kube-apiserver-client", "username": user, "groups": [group]});
    let by_grpc = |asked_by: Option<&str>| {
        let mut spec = account(GRPC_SERVER_USER);
        spec["signerName"] = json!("open-cluster-management.io/grpc");
        (spec, asked_by.map_or(json!({}), |user| json!({"open-cluster-management.io/csr-user": user})))
    };
    let agent = |cluster: &str| format!("{PREFIX}{cluster}:a1");
    let plain = |spec: Value| (spec, json!({}));
    match random.below(60) {
        0 | 1 => plain(user("system:bootstrap:abc123", TOKEN_GROUP)),
        2 => plain(user("system:bootstrap:abc123", "other")),
        3 | 4 => plain(user("alice", "other")),
        5 => plain(user("eve", "other")),
        6 | 7 => plain(user(&agent(name), "other")),
        8 => plain(user(&agent("c2"), "other")),
        9 => {
            let mut spec = account(BOOTSTRAP_USER);
            spec["uid"] = Value::Null;
            plain(spec)
        }
        10 => {
            let mut spec = account(BOOTSTRAP_USER);
            spec["extra"][CREDENTIAL_ID] = json!(["X509SHA256=00"]);
            plain(spec)
        }
        11 | 12 => by_grpc(Some(BOOTSTRAP_USER)),
        13 => by_grpc(Some("alice")),
        14 => by_grpc(Some(&agent(name))),
        15 => by_grpc(Some(&agent("c2"))),
        16 => by_grpc(None),
        17 => (account(BOOTSTRAP_USER), json!({"open-cluster-management.io/csr-user": BOOTSTRAP_USER})),
        18 => plain(user(name, &format!("open-cluster-management:{name}"))),
        _ => plain(account(BOOTSTRAP_USER)),
    }
}

/// A cluster in any state, that brought more than it may once in a while.
fn cluster(name: &str, random: &mut Random) -> Value {
    let mut metadata = json!({"name": name, "uid": "1", "creationTimestamp": time(REGISTERED)});
    let mut spec = json!({"hubAcceptsClient": random.once_in(3)});
    if random.once_in(15) {
        metadata["deletionTimestamp"] = json!(time(150));
    }
    match random.below(30) {
        0 => metadata["labels"] = json!({SET: "prod"}),
        1 | 15 | 16 => metadata["labels"] = json!({"env": "prod"}),
        2 => metadata["labels"] = json!({SET: "default"}),
        3 => metadata["annotations"] = json!({"agent.open-cluster-management.io/a": "b"}),
        4 => metadata["annotations"] = json!({"example.com/a": "b"}),
        5 => metadata["finalizers"] = json!(["example.com/f"]),
        6 => metadata["finalizers"] = json!([ocm_rules::cluster::HUB_FINALIZERS[0]]),
        7 => spec["taints"] = json!([{"key": "example.com/t", "effect": "NoSelect", "timeAdded": null}]),
        8 => {
            let unreachable = ocm_rules::cluster::HUB_TAINTS[1];
            spec["taints"] = json!([{"key": unreachable, "effect": "NoSelect", "timeAdded": null}]);
        }
        9 => metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "2"}]),
        10 => spec["leaseDurationSeconds"] = json!(60),
        11 => spec["leaseDurationSeconds"] = json!(5),
        12 => {
            metadata["annotations"] = json!({
                "agent.open-cluster-management.io/managed-cluster-arn": "arn:aws:eks:us-west-2:123456789012:cluster/c1",
                "agent.open-cluster-management.io/managed-cluster-iam-role-suffix": "7f8141296c75f2871e3d030f85c35692",
            });
        }
        13 | 14 => metadata["annotations"] = json!({ocm_rules::cluster::ACCEPTED_BY_HUB: time(101)}),
        _ => {}
    }
    let mut conditions = Vec::new();
    let mut condition = |kind: &str, status: &str, at: u32| {
        let since = time(at);
        let condition =
            json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": since});
        conditions.push(condition);
    };
    match random.below(6) {
        0 => condition("HubAcceptedManagedCluster", "True", 105),
        1 => condition("HubAcceptedManagedCluster", "False", 140),
        _ => {}
    }
    match random.below(8) {
        0 | 1 => condition("ManagedClusterJoined", "True", 120),
        2 => condition("ManagedClusterJoined", "False", 120),
        _ => {}
    }
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": metadata, "spec": spec, "status": {"conditions": conditions},
    })
}

impl Hub {
    /// What `accept` decides.
    pub(crate) fn accept(&self) -> Decision {
        let read = |object: &Value| serde_json::from_value::<ManagedCluster>(object.clone()).expect("it is a cluster");
        let cluster = self.cluster.as_ref().map(read);
        let namespace = match self.namespaces.first() {
            None => Namespace::Absent,
            Some(namespace) if namespace["metadata"]["labels"][LABEL] == self.name => Namespace::Own {
                created: namespace["metadata"]["creationTimestamp"].as_str().and_then(sdk::time::parse),
            },
            Some(_) => Namespace::Foreign,
        };
        let role = self.roles.first().and_then(|role| role["metadata"]["creationTimestamp"].as_str());
        let requests: Vec<&Request> = self.csrs.iter().map(|csr| &csr.request).collect();
        let keys = |one: &Value| serde_json::from_value::<RegisteredKeys>(one.clone()).expect("it is a Registration");
        let noted = self.registrations.first().map(keys);
        let found = Found {
            cluster: cluster.as_ref(),
            namespace,
            role_created: role.map(|created| created.parse().expect("it is a time")),
            requests: &requests,
            bound_accounts: &[],
            now: NOW.parse().ok(),
            registration: noted.as_ref().map(|noted| {
                let ends = noted.status.keys.iter().map(|key| key.until.as_str());
                accept::noted(noted.status.cluster_uid.as_deref(), ends)
            }),
            accepted_before: false,
            denied_before: false,
            noted_keys: &[],
        };
        decide(self.name, &found, &self.options)
    }

    /// The objects that a query of a policy reads.
    pub(crate) fn objects(&self, source: &EvidenceSource) -> Vec<Value> {
        match source {
            EvidenceSource::Clusters => self.cluster.iter().cloned().collect(),
            EvidenceSource::Namespaces => self.namespaces.clone(),
            EvidenceSource::Csrs => self.csrs.iter().map(|csr| csr.row.clone()).collect(),
            EvidenceSource::Registrations => self.registrations.iter().map(evidence::registration).collect(),
            EvidenceSource::Objects { resource, .. } if resource == "clusterroles" => self.roles.clone(),
            EvidenceSource::ConfigMap { .. }
            | EvidenceSource::Objects { .. }
            | EvidenceSource::ClusterSets
            | EvidenceSource::Approvals => Vec::new(),
        }
    }
}

impl fmt::Display for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let csrs: Vec<&Value> = self.csrs.iter().map(|csr| &csr.row).collect();
        let all = json!({
            "cluster": self.cluster, "namespaces": self.namespaces, "roles": self.roles,
            "registrations": self.registrations, "csrs": csrs,
        });
        write!(f, "{all:#}\n{:?}", self.options)
    }
}

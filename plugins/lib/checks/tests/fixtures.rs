//! Every check has a snapshot in which it finds something and one in which it does not; and where it finds something, that
//! is the one cause.

mod common;

use std::collections::BTreeSet;

use common::{FRESH, OLD, agent, certificate, condition, healthy, on_hub, on_managed, parse, read, request, workload};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::ManagedCluster;
use ocm_api::operator::{KlusterletSpec, OperatorStatus};
use ocm_checks::facts::Facts;
use ocm_checks::finding::{Finding, Id, Outcome, Severity};
use ocm_checks::judge::{explainers, judge, outcomes};
use ocm_checks::registry::{Category, check, checks, of_snapshots};
use ocm_checks::snapshot::{
    AdminFacts, AdmissionFacts, Answer, AppliedWorkFacts, Credential, GrpcFacts, LeaseFacts, NamespaceFacts,
    NetworkPolicyFacts, Observed, PolicyRule, Probe, Snapshot, StorageFacts, TokenFacts, Trouble,
};
use ocm_core::Reason;
use ocm_core::workload::{Health, Lack, PodCause};
use serde_json::{Value, json};

fn old() -> Time {
    parse(json!(OLD))
}

fn stuck() -> Health {
    let count = Some("0 of 1 pods are ready".to_owned());
    let cause = Some(PodCause::Unschedulable);
    Health::Stuck(Lack { count, cause, ..Lack::new("pod p: it cannot be scheduled: no nodes") })
}

/// The managed cluster on the hub.
fn cluster(snapshot: &mut Snapshot) -> &mut ManagedCluster {
    &mut read(&mut on_hub(snapshot).clusters)[0]
}

fn conditions(snapshot: &mut Snapshot, conditions: &[Value]) {
    cluster(snapshot).status.as_mut().expect("it is there").conditions =
        conditions.iter().cloned().map(parse).collect();
}

/// The status of the hub's or the managed cluster's operator object.
fn manager(snapshot: &mut Snapshot) -> &mut OperatorStatus {
    read(&mut on_hub(snapshot).managers)[0].status.as_mut().expect("it is there")
}

fn klusterlet(snapshot: &mut Snapshot) -> &mut OperatorStatus {
    read(&mut on_managed(snapshot).klusterlets)[0].status.as_mut().expect("it is there")
}

fn klusterlet_spec(snapshot: &mut Snapshot) -> &mut KlusterletSpec {
    &mut read(&mut on_managed(snapshot).klusterlets)[0].spec
}

fn requests(snapshot: &mut Snapshot, requests: &[Value]) {
    on_hub(snapshot).requests = Observed::Read(requests.iter().cloned().map(parse).collect());
}

/// The cluster has never registered.
fn unregistered(snapshot: &mut Snapshot) {
    let hub = on_hub(snapshot);
    (hub.clusters, hub.requests) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    (hub.leases, hub.works) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    hub.addons = Observed::Read(Vec::new());
    agent(snapshot).identity = Observed::Read(None);
}

/// The cluster has registered, and waits for acceptance.
fn pending(snapshot: &mut Snapshot) {
    unregistered(snapshot);
    let mut fresh = healthy();
    on_hub(snapshot).clusters = on_hub(&mut fresh).clusters.clone();
    cluster(snapshot).spec.hub_accepts_client = Some(false);
    conditions(snapshot, &[]);
    requests(snapshot, &[request("c1-a", "a1", &[], OLD)]);
}

/// The hub has accepted the cluster, which has not joined.
fn accepted(snapshot: &mut Snapshot, request_conditions: &[&str]) {
    pending(snapshot);
    cluster(snapshot).spec.hub_accepts_client = Some(true);
    conditions(snapshot, &[condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted")]);
    requests(snapshot, &[request("c1-a", "a1", request_conditions, OLD)]);
}

/// Nothing has been stored since an hour.
fn full(storage: &mut Observed<StorageFacts>) {
    read(storage).leases.iter_mut().for_each(|lease| lease.renewed = Some(old()));
}

fn silent(snapshot: &mut Snapshot) {
    read(&mut on_hub(snapshot).leases)[0].renewed = Some(old());
}

fn probe(snapshot: &mut Snapshot, reason: Reason) {
    unregistered(snapshot);
    let trouble = Trouble { reason, message: "words of the connection".to_owned(), rule: None, behind: String::new() };
    snapshot.probes = vec![Probe {
        klusterlet: "klusterlet".to_owned(),
        credential: Credential::Bootstrap,
        server: "https://hub:6443".to_owned(),
        proxy: None,
        is_own_proxy: false,
        answer: Answer::Refused(trouble),
    }];
}

fn gone(namespace: &str, name: &str) -> LeaseFacts {
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let renewed = Some(parse(json!(FRESH)));
    LeaseFacts { namespace, name, renewed, gone: Some("p-gone".to_owned()), ..LeaseFacts::default() }
}

fn terminating(name: &str) -> NamespaceFacts {
    NamespaceFacts { name: name.to_owned(), since: Some(old()), messages: vec!["a finalizer".to_owned()] }
}

/// One check: what makes it find something, and the cause that is found; and what it has to pass.
struct Case {
    id: u16,
    /// The id of the only cause; its own but where something explains it.
    root: u16,
    bad: fn(&mut Snapshot),
    good: fn(&mut Snapshot),
}

const fn case(id: u16, bad: fn(&mut Snapshot)) -> Case {
    Case { id, root: id, bad, good: |_| {} }
}

const CASES: &[Case] = &[
    case(1101, |s| {
        unregistered(s);
        on_hub(s).managers = Observed::Read(Vec::new());
    }),
    case(1102, |s| read(&mut on_hub(s).operator).health = stuck()),
    case(1103, |s| {
        on_hub(s).leader = Observed::Read(Some(gone("open-cluster-management", "cluster-manager-lock")));
        manager(s).observed_generation = Some(0);
    }),
    case(1104, |s| manager(s).conditions[0] = parse(condition("Applied", "False", "HubResourceApplyFailed"))),
    case(1105, |s| manager(s).conditions[4] = parse(condition("ValidFeatureGates", "False", "InvalidFeatureGates"))),
    case(1106, |s| read(&mut on_hub(s).deployments)[0].replicas = 0),
    case(1107, |s| read(&mut on_hub(s).webhooks)[0].exists = false),
    case(1108, |s| read(&mut on_hub(s).webhooks)[0].has_endpoint = false),
    case(1109, |s| read(&mut on_hub(s).webhooks)[0].authorities = vec![ByteString(certificate(2025, 2035))]),
    case(1110, |s| {
        let expired = vec![ByteString(certificate(2024, 2025))];
        read(&mut on_hub(s).webhooks).iter_mut().for_each(|webhook| webhook.authorities = expired.clone());
        on_hub(s).ca_bundle = Observed::Read(Some(expired));
    }),
    case(1111, |s| read(&mut on_hub(s).managers)[0].metadata.deletion_timestamp = Some(old())),
    Case {
        id: 1112,
        root: 1112,
        bad: |s| {
            grpc_on_hub(s);
            read(&mut on_hub(s).deployments).retain(|workload| !workload.name.ends_with("-grpc-server"));
        },
        good: |s| {
            grpc_on_hub(s);
            // Its load balancer has an address.
            balanced(s, &["192.0.2.1"]);
        },
    },
    Case { id: 1113, root: 1113, bad: |s| read(&mut on_hub(s).webhooks)[0].fails_open = true, good: |_| {} },
    case(1114, |s| read(&mut on_hub(s).conversions)[0].authorities = vec![ByteString(certificate(2025, 2035))]),
    case(1115, |s| {
        on_hub(s).terminating = Observed::Read(vec![terminating("open-cluster-management")]);
        read(&mut on_hub(s).operator).health = stuck();
    }),
    case(1116, |s| {
        full(&mut on_hub(s).storage);
        silent(s);
    }),
    Case {
        id: 1117,
        root: 1117,
        bad: |s| {
            unregistered(s);
            admission(s, "kyverno/kyverno-svc", false);
        },
        good: |s| admission(s, "kyverno/kyverno-svc", true),
    },
    case(1118, |s| serves(s, 0, certificate(2024, 2025))),
    case(2101, |s| {
        on_managed(s).klusterlets = Observed::Read(Vec::new());
        on_managed(s).agents.clear();
        read(&mut on_managed(s).operator).health = stuck();
    }),
    case(2102, |s| read(&mut on_managed(s).operator).replicas = 0),
    case(2103, |s| {
        on_managed(s).leases = Observed::Read(vec![gone("open-cluster-management", "klusterlet-lock")]);
        klusterlet(s).observed_generation = Some(0);
    }),
    case(2104, |s| {
        let mut second = read(&mut on_managed(s).klusterlets)[0].clone();
        second.metadata.name = Some("second".to_owned());
        read(&mut on_managed(s).klusterlets).push(second);
    }),
    case(2105, |s| klusterlet(s).conditions[0] = parse(condition("Applied", "False", "KlusterletApplyFailed"))),
    case(2106, |s| {
        read(&mut agent(s).deployments)[0].health = stuck();
        silent(s);
    }),
    case(2107, |s| {
        unregistered(s);
        agent(s).bootstrap = Observed::Read(None);
        read(&mut agent(s).deployments)[0].health = stuck();
    }),
    case(2108, |s| {
        unregistered(s);
        read(&mut agent(s).bootstrap).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there").server =
            "https://127.0.0.1:6443".to_owned();
        klusterlet(s).conditions[1] =
            parse(condition("HubConnectionDegraded", "True", "BootstrapSecretError,HubKubeConfigSecretMissing"));
    }),
    case(2109, |s| {
        // The hub says the same.
        probe(s, Reason::Unauthorized);
        let kubeconfig =
            read(&mut agent(s).bootstrap).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there");
        kubeconfig.token = Some(TokenFacts::ServiceAccount { subject: None, expires: Some(old()), id: None });
    }),
    case(2110, |s| {
        unregistered(s);
        let kubeconfig =
            read(&mut agent(s).bootstrap).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there");
        kubeconfig.server = "https://other:6443".to_owned();
        kubeconfig.authorities = vec![ByteString(certificate(2025, 2035))];
    }),
    case(2111, |s| probe(s, Reason::Unreachable)),
    case(2112, |s| probe(s, Reason::Tls)),
    case(2113, |s| probe(s, Reason::Unauthorized)),
    Case {
        id: 2114,
        root: 2114,
        bad: |s| {
            grpc_on_hub(s);
            grpc(s);
        },
        good: grpc_with_configuration,
    },
    case(2115, |s| {
        unregistered(s);
        klusterlet(s).conditions[1] =
            parse(condition("HubConnectionDegraded", "True", "BootstrapSecretError,HubKubeConfigSecretMissing"));
    }),
    case(2116, |s| {
        unregistered(s);
        agent(s).leases = Observed::Read(vec![gone("open-cluster-management-agent", "registration-agent-lock")]);
    }),
    case(2117, |s| probe(s, Reason::Forbidden)),
    Case {
        id: 2118,
        root: 2118,
        bad: |s| {
            unregistered(s);
            grpc_with_configuration(s);
        },
        good: |s| {
            grpc_with_configuration(s);
            read(&mut on_hub(s).managers)[0].spec.registration_configuration =
                parse(json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]}));
        },
    },
    case(2119, |s| {
        unregistered(s);
        klusterlet_spec(s).deploy_option = parse(json!({"mode": "singleton"}));
        agent(s).deployments = Observed::Read(Vec::new());
    }),
    Case { id: 2120, root: 2120, bad: |s| hosts_entry(s, "other"), good: |s| hosts_entry(s, "HUB") },
    case(2121, |s| {
        unregistered(s);
        read(&mut on_managed(s).klusterlets)[0].spec.registration_image_pull_spec = None;
        klusterlet(s).conditions[0] = parse(condition("Applied", "False", "KlusterletApplyFailed"));
        agent(s).deployments = Observed::Read(Vec::new());
    }),
    Case { id: 2122, root: 2122, bad: |s| several_hubs(s, 200), good: |s| several_hubs(s, 600) },
    case(2123, |s| {
        klusterlet(s).conditions.push(parse(condition("ValidFeatureGates", "False", "InvalidFeatureGatesExisting")));
    }),
    Case {
        id: 2124,
        root: 2124,
        bad: |s| {
            unregistered(s);
            aws(s, "arn:aws:eks:eu-1:000000000000:cluster/other");
        },
        good: |s| aws(s, "arn:aws:eks:eu-1:000000000000:cluster/hub"),
    },
    Case {
        id: 2125,
        root: 2125,
        bad: |s| {
            unregistered(s);
            grpc_on_hub(s);
            grpc_at(s, "former.example:443");
        },
        good: |s| {
            grpc_on_hub(s);
            grpc_at(s, "grpc.example:443");
        },
    },
    Case {
        id: 2126,
        root: 2126,
        bad: |s| {
            unregistered(s);
            limited(s, &[(53, 53), (443, 443)]);
        },
        good: |s| {
            unregistered(s);
            limited(s, &[(53, 53), (6000, 7000)]);
        },
    },
    case(2201, unregistered),
    case(2202, |s| {
        pending(s);
        requests(s, &[]);
    }),
    case(2203, |s| {
        pending(s);
        requests(s, &[request("c1-a", "a1", &[], OLD), request("c1-b", "a2", &[], OLD)]);
    }),
    case(2204, |s| {
        cluster(s).spec.hub_accepts_client = Some(false);
        conditions(
            s,
            &[
                condition("HubAcceptedManagedCluster", "False", "HubClusterAdminDenied"),
                condition("ManagedClusterJoined", "True", "ManagedClusterJoined"),
                condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable"),
            ],
        );
        silent(s);
    }),
    case(2205, pending),
    case(2206, |s| accepted(s, &[])),
    case(2207, |s| accepted(s, &["Approved"])),
    case(2208, |s| {
        pending(s);
        requests(s, &[request("c1-a", "a1", &["Denied"], OLD)]);
    }),
    Case {
        id: 2209,
        root: 2203,
        bad: |s| {
            accepted(s, &[]);
            let all: Vec<Value> = (0..10).map(|n| request(&format!("c1-{n}"), "a1", &[], OLD)).collect();
            requests(s, &all);
        },
        good: |_| {},
    },
    case(2210, |s| {
        accepted(s, &["Approved", "Issued"]);
        conditions(s, &[condition("HubAcceptedManagedCluster", "False", "Error")]);
    }),
    case(2211, |s| accepted(s, &["Approved", "Issued"])),
    case(2212, |s| read(&mut agent(s).identity).as_mut().expect("it is there").cluster = Some("c2".to_owned())),
    case(3101, silent),
    case(3102, |s| {
        let all = &mut cluster(s).status.as_mut().expect("it is there").conditions;
        all[2] =
            parse(condition("ManagedClusterConditionAvailable", "False", "ManagedClusterKubeAPIServerUnavailable"));
    }),
    case(3103, |s| {
        let all = &mut cluster(s).status.as_mut().expect("it is there").conditions;
        all[3] = parse(condition("ManagedClusterConditionClockSynced", "False", "ManagedClusterClockOutOfSync"));
    }),
    case(3104, |s| {
        // The token has ended, too: nobody needs it as long as the certificate is valid.
        let expired = vec![ByteString(certificate(2024, 2025))];
        read(&mut agent(s).identity).as_mut().expect("it is there").certificates.insert("tls.crt".to_owned(), expired);
        let kubeconfig =
            read(&mut agent(s).bootstrap).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there");
        kubeconfig.token = Some(TokenFacts::ServiceAccount { subject: None, expires: Some(old()), id: None });
        silent(s);
    }),
    case(3105, |s| {
        // Of two years little more than a week is left.
        let (key, mut params) = (
            rcgen::KeyPair::generate().expect("it is there"),
            rcgen::CertificateParams::new(Vec::new()).expect("it is there"),
        );
        params.not_before = rcgen::date_time_ymd(2024, 3, 10);
        params.not_after = rcgen::date_time_ymd(2026, 3, 10);
        let certificate = params.self_signed(&key).expect("it is there").der().to_vec();
        let certificates = &mut read(&mut agent(s).identity).as_mut().expect("it is there").certificates;
        certificates.insert("tls.crt".to_owned(), vec![ByteString(certificate)]);
    }),
    case(3106, |s| agent(s).identity = Observed::Read(None)),
    case(3107, |s| {
        let kubeconfig =
            read(&mut agent(s).identity).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there");
        kubeconfig.server = "https://former:6443".to_owned();
    }),
    Case { id: 3108, root: 3108, bad: |s| fleet(s, 19), good: |s| fleet(s, 10) },
    case(3109, |s| {
        let all = &mut cluster(s).status.as_mut().expect("it is there").conditions;
        all.push(parse(condition("ClusterCertificateRotated", "False", "ClientCertificateUpdateFailed")));
        // The one that it has is older.
        let older = vec![ByteString(certificate(2025, 2027))];
        read(&mut agent(s).identity).as_mut().expect("it is there").certificates.insert("tls.crt".to_owned(), older);
    }),
    Case { id: 3110, root: 3110, bad: |s| tainted(s, OLD), good: |s| tainted(s, FRESH) },
    case(3111, |s| {
        full(&mut on_managed(s).storage);
        silent(s);
    }),
    Case { id: 3112, root: 3112, bad: |s| reported(s, "https://HUB:6443/"), good: |s| reported(s, "https://c1:6443") },
    case(5101, |s| {
        let work = &mut read(&mut on_hub(s).works)[0];
        work.conditions = vec![parse(condition("Applied", "False", "AppliedManifestWorkFailed"))];
        work.failed = vec!["ConfigMap default/x: forbidden".to_owned()];
    }),
    case(5102, |s| read(&mut on_hub(s).works)[0].conditions.clear()),
    case(5103, |s| read(&mut on_hub(s).works)[0].deleting = Some(old())),
    Case {
        id: 5104,
        root: 5104,
        bad: |s| applied(s, "klusterlet-uid", Some(OLD)),
        good: |s| applied(s, "klusterlet-uid", None),
    },
    case(5201, |s| {
        let mut asks = request("addon-c1", "a1", &[], OLD);
        asks["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::addon("c1", "a").pem().into_bytes()));
        asks["spec"]["username"] = json!("system:open-cluster-management:c1:a1");
        asks["metadata"]["labels"]["open-cluster-management.io/addon-name"] = json!("a");
        requests(s, &[request("c1-a", "a1", &["Approved", "Issued"], OLD), asks]);
        read(&mut on_hub(s).addons)[0].status = None;
    }),
    case(5202, |s| {
        let status = read(&mut on_hub(s).addons)[0].status.as_mut().expect("it is there");
        status.conditions = vec![parse(condition("Available", "Unknown", "ManagedClusterAddOnLeaseNotFound"))];
    }),
    case(5203, |s| {
        let status = read(&mut on_hub(s).addons)[0].status.as_mut().expect("it is there");
        status.conditions = vec![
            parse(condition("Available", "Unknown", "WorkNotApplied")),
            parse(condition("Progressing", "False", "ConfigurationUnsupported")),
        ];
    }),
    case(5204, |s| {
        let metadata = &mut read(&mut on_hub(s).addons)[0].metadata;
        metadata.deletion_timestamp = Some(old());
        metadata.finalizers = Some(vec!["addon.open-cluster-management.io/addon-pre-delete".to_owned()]);
    }),
    Case {
        id: 5205,
        root: 5205,
        bad: |s| {
            hosted_add_on(s, None);
            let status = read(&mut on_hub(s).addons)[0].status.as_mut().expect("it is there");
            status.conditions = vec![parse(condition("Available", "Unknown", "ManagedClusterAddOnLeaseNotFound"))];
        },
        good: |s| hosted_add_on(s, Some("host")),
    },
    Case {
        id: 5206,
        root: 5206,
        bad: |s| registries(s, r#"{"registries": [{"source": "quay.io/ocm", "mirrors": "r/ocm"}]}"#),
        good: |s| registries(s, r#"{"registries": [{"source": "quay.io/ocm", "mirror": "r/ocm"}]}"#),
    },
    case(6101, |s| {
        cluster(s).metadata.deletion_timestamp = Some(old());
        read(&mut on_hub(s).works)[0].deleting = Some(old());
        silent(s);
    }),
    case(6102, |s| {
        pending(s);
        on_hub(s).terminating = Observed::Read(vec![terminating("c1")]);
    }),
    case(6103, |s| read(&mut on_managed(s).klusterlets)[0].metadata.deletion_timestamp = Some(old())),
    case(6104, |s| on_managed(s).terminating = Observed::Read(vec![terminating("open-cluster-management-agent")])),
    case(6105, |s| {
        let mut left = read(&mut on_hub(s).works)[0].clone();
        (left.namespace, left.deleting) = ("former".to_owned(), Some(old()));
        read(&mut on_hub(s).works).push(left);
    }),
    case(7101, |s| {
        let all = read(&mut on_hub(s).deployments);
        all.iter_mut().for_each(|workload| workload.images = vec!["r/registration:v1.2.1".to_owned()]);
    }),
    case(7102, |s| {
        let old =
            |workload: &mut ocm_checks::snapshot::Workload| workload.images = vec!["r/registration:v1.2.0".to_owned()];
        read(&mut on_hub(s).deployments).iter_mut().for_each(old);
        read(&mut agent(s).deployments).iter_mut().for_each(old);
    }),
    Case {
        id: 7103,
        root: 7103,
        bad: accepts_all,
        good: |s| {
            accepts_all(s);
            engine(s);
        },
    },
    case(7104, |s| {
        let kubeconfig =
            read(&mut agent(s).bootstrap).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there");
        kubeconfig.token = Some(TokenFacts::ServiceAccount { subject: None, expires: None, id: None });
    }),
    case(7105, |s| {
        let mut lies = request("x", "a1", &["Approved", "Issued"], OLD);
        lies["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::agent("c2", "a1").pem().into_bytes()));
        requests(s, &[request("c1-a", "a1", &["Approved", "Issued"], FRESH), lies]);
    }),
    case(7106, |s| {
        let namespace = "open-cluster-management-agent".to_owned();
        let admin = AdminFacts { binding: "b".to_owned(), namespace, name: "klusterlet-work-sa".to_owned() };
        on_managed(s).admins = Observed::Read(vec![admin]);
    }),
    Case {
        id: 8101,
        root: 8101,
        bad: |s| {
            engine(s);
            read(&mut on_hub(s).policy_engine)[0].health = stuck();
        },
        good: engine,
    },
    Case { id: 8102, root: 8102, bad: |s| decided(s, "Hold"), good: |s| decided(s, "Allow") },
    Case { id: 8103, root: 8103, bad: |s| policy(s, "False"), good: |s| policy(s, "True") },
];

/// Somebody else has the API server ask this Service about managed clusters.
fn admission(snapshot: &mut Snapshot, service: &str, has_endpoint: bool) {
    let (configuration, service) = ("others".to_owned(), service.to_owned());
    let about = vec!["managedclusters".to_owned()];
    let is_external = (!has_endpoint).then_some(false);
    on_hub(snapshot).admission =
        Observed::Read(vec![AdmissionFacts { configuration, service, about, has_endpoint, is_external }]);
}

/// A webhook of the hub serves with this certificate: that of managed clusters, and then that of works.
fn serves(snapshot: &mut Snapshot, webhook: usize, certificate: Vec<u8>) {
    read(&mut on_hub(snapshot).serving)[webhook].certificate = Observed::Read(ByteString(certificate));
}

/// The hub has this address of the managed cluster.
fn reported(snapshot: &mut Snapshot, url: &str) {
    cluster(snapshot).spec.managed_cluster_client_configs = parse(json!([{"url": url}]));
}

/// The add-on has been installed on another cluster, which its annotation names or not.
fn hosted_add_on(snapshot: &mut Snapshot, host: Option<&str>) {
    let metadata = &mut read(&mut on_hub(snapshot).addons)[0].metadata;
    metadata.finalizers = Some(vec!["addon.open-cluster-management.io/hosting-manifests-cleanup".to_owned()]);
    let name = "addon.open-cluster-management.io/hosting-cluster-name".to_owned();
    metadata.annotations = host.map(|host| [(name, host.to_owned())].into());
}

/// The add-ons of the cluster take their images from elsewhere.
fn registries(snapshot: &mut Snapshot, text: &str) {
    let name = "open-cluster-management.io/image-registries".to_owned();
    cluster(snapshot).metadata.annotations = Some([(name, text.to_owned())].into());
}

fn grpc(snapshot: &mut Snapshot) {
    klusterlet_spec(snapshot).registration_configuration = parse(json!({"registrationDriver": {"authType": "grpc"}}));
}

/// The hub has the driver, and a server that agents of other clusters can dial.
fn grpc_on_hub(snapshot: &mut Snapshot) {
    let spec = &mut read(&mut on_hub(snapshot).managers)[0].spec;
    spec.registration_configuration =
        parse(json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]}));
    spec.server_configuration = parse(json!({"endpointsExposure": [
        {"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": "grpc.example"}}}]}));
    let server = workload("open-cluster-management-hub", "cluster-manager-grpc-server", "registration");
    read(&mut on_hub(snapshot).deployments).push(parse(server));
}

/// The gRPC server is behind a load balancer with these addresses.
fn balanced(snapshot: &mut Snapshot, addresses: &[&str]) {
    read(&mut on_hub(snapshot).managers)[0].spec.server_configuration =
        parse(json!({"endpointsExposure": [{"protocol": "grpc", "grpc": {"type": "loadBalancer"}}]}));
    on_hub(snapshot).grpc_service = Observed::Read(Some(parse(json!({"namespace": "open-cluster-management-hub",
        "name": "cluster-manager-grpc-server", "type": "LoadBalancer", "addresses": addresses}))));
}

/// The agent dials this gRPC server, and trusts the hub's.
fn grpc_at(snapshot: &mut Snapshot, server: &str) {
    grpc_with_configuration(snapshot);
    let authorities = read(&mut on_hub(snapshot).ca_bundle).clone().expect("it is there");
    let secret = read(&mut agent(snapshot).bootstrap).as_mut().expect("it is there");
    secret.grpc = Some(GrpcFacts { server: server.to_owned(), authorities, token: None });
}

fn hosts_entry(snapshot: &mut Snapshot, hostname: &str) {
    klusterlet_spec(snapshot).hub_api_server_host_alias = parse(json!({"ip": "192.0.2.1", "hostname": hostname}));
}

fn several_hubs(snapshot: &mut Snapshot, timeout: i32) {
    klusterlet_spec(snapshot).registration_configuration = parse(json!({
        "featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}],
        "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig": {
            "hubConnectionTimeoutSeconds": timeout, "kubeConfigSecrets": [{"name": "one"}, {"name": "two"}]}}}));
}

/// The agent registers by AWS IAM at this hub.
fn aws(snapshot: &mut Snapshot, arn: &str) {
    let hub = "arn:aws:eks:eu-1:000000000000:cluster/hub";
    let own = "arn:aws:eks:eu-1:000000000000:cluster/c1";
    klusterlet_spec(snapshot).registration_configuration = parse(json!({"registrationDriver":
        {"authType": "awsirsa", "awsIrsa": {"hubClusterArn": arn, "managedClusterArn": own}}}));
    read(&mut on_hub(snapshot).managers)[0].spec.registration_configuration =
        parse(json!({"registrationDrivers": [{"authType": "awsirsa", "awsirsa": {"hubClusterArn": hub}}]}));
}

/// Pods of the agents' namespace may connect to these ports alone.
fn limited(snapshot: &mut Snapshot, ports: &[(u16, u16)]) {
    let name = "limit".to_owned();
    let policy = NetworkPolicyFacts { name, is_for_all: true, ports: ports.to_vec(), allows_any: false };
    agent(snapshot).network_policies = Observed::Read(vec![policy]);
}

/// A hub of twenty clusters, of which so many are silent.
fn fleet(snapshot: &mut Snapshot, silent: usize) {
    snapshot.managed = None;
    let (first, lease) = (cluster(snapshot).clone(), read(&mut on_hub(snapshot).leases)[0].clone());
    let named = |number: usize| format!("c{number}");
    let hub = on_hub(snapshot);
    let clusters = (0..20).map(|number| {
        let mut one = first.clone();
        one.metadata.name = Some(named(number));
        one
    });
    hub.clusters = Observed::Read(clusters.collect());
    let leases = (0..20).map(|number| {
        let renewed = Some(parse(json!(if number < silent { OLD } else { FRESH })));
        LeaseFacts { namespace: named(number), renewed, ..lease.clone() }
    });
    hub.leases = Observed::Read(leases.collect());
}

fn tainted(snapshot: &mut Snapshot, since: &str) {
    cluster(snapshot).spec.taints = parse(json!([{"key": "cluster.open-cluster-management.io/unreachable",
        "effect": "NoSelect", "timeAdded": since}]));
}

/// The agent with this UID has applied a work, which it has not found on the hub since then.
fn applied(snapshot: &mut Snapshot, agent: &str, evicting: Option<&str>) {
    let evicting = evicting.map(|time| parse(json!(time)));
    let work = AppliedWorkFacts {
        name: "h-w".to_owned(),
        work: "w".to_owned(),
        agent: agent.to_owned(),
        evicting,
        deleting: None,
    };
    on_managed(snapshot).applied_works = Observed::Read(vec![work]);
}

/// The hub lets in whoever comes.
fn accepts_all(snapshot: &mut Snapshot) {
    read(&mut on_hub(snapshot).managers)[0].spec.registration_configuration =
        parse(json!({"featureGates": [{"feature": "ManagedClusterAutoApproval", "mode": "Enable"}]}));
}

fn grpc_with_configuration(snapshot: &mut Snapshot) {
    grpc(snapshot);
    let secret = read(&mut agent(snapshot).bootstrap).as_mut().expect("it is there");
    let key = secret.keys["kubeconfig"].clone();
    secret.keys.insert("config.yaml".to_owned(), key);
}

fn engine(snapshot: &mut Snapshot) {
    on_hub(snapshot).policy_engine =
        Observed::Read(vec![parse(workload("ocm-policy-engine", "ocm-policy-webhook", "w"))]);
}

fn decided(snapshot: &mut Snapshot, verdict: &str) {
    pending(snapshot);
    let registration = json!({"apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "Registration",
        "metadata": {"name": "c1"}, "spec": {}, "status": {"verdict": verdict, "waitingFor": "a label env"}});
    on_hub(snapshot).registrations = Observed::Read(vec![parse(registration)]);
}

fn policy(snapshot: &mut Snapshot, loaded: &str) {
    let mut policy = ocm_api::HubPolicy::new("p", Default::default());
    policy.status = Some(parse(json!({"conditions": [condition("Loaded", loaded, "R")]})));
    on_hub(snapshot).policies = Observed::Read(vec![policy]);
}

#[test]
fn every_check_has_its_two_fixtures() {
    let known: Vec<u16> = of_snapshots().map(|check| check.id.0).collect();
    let cased: Vec<u16> = CASES.iter().map(|case| case.id).collect();
    assert_eq!(known, cased, "the registry and the table of cases");
}

#[test]
fn what_is_broken_is_found_and_is_the_one_cause() {
    for Case { id, root, bad, .. } in CASES {
        let mut snapshot = healthy();
        bad(&mut snapshot);
        // A bundle says the same as a look.
        let text = serde_json::to_string(&snapshot).expect("it is there");
        assert_eq!(serde_json::from_str::<Snapshot>(&text).expect("it is there"), snapshot, "{id}");
        let facts = Facts::of(&snapshot);
        let own = check(Id(*id)).expect("it is there");
        let found = outcomes(&facts, own).into_iter().any(|(_, outcome)| matches!(outcome, Outcome::Found(_)));
        assert!(found, "{id} finds nothing: {:?}", outcomes(&facts, own));
        let report = judge(&snapshot, &[]);
        let worst = report.findings.iter().map(|finding| finding.severity).max();
        let roots: BTreeSet<String> = report
            .findings
            .iter()
            .filter(|finding| Some(finding.severity) == worst)
            .map(|finding| finding.id.to_string())
            .collect();
        assert_eq!(roots, BTreeSet::from([Id(*root).to_string()]), "{id}: {:#?}", report.findings);
        for finding in &report.findings {
            assert!(!finding.next.is_empty(), "{} says nothing about what to do", finding.id);
            let at_most = check(finding.id).expect("it is there").severity;
            assert!(finding.severity <= at_most, "{} is worse than its registry says", finding.id);
        }
    }
}

#[test]
fn what_follows_from_another_finding_is_told_under_it() {
    type Breaks = fn(&mut Snapshot);
    let cases: [(u16, u16, Breaks); 17] = [
        // Nobody can be accepted, and no work be taken up, where the webhook's certificate has expired; for want of an operator.
        (1118, 2205, |s| {
            pending(s);
            serves(s, 0, certificate(2024, 2025));
        }),
        (1118, 5102, |s| {
            read(&mut on_hub(s).works)[0].conditions.clear();
            serves(s, 1, certificate(2024, 2025));
        }),
        (1102, 1118, |s| {
            read(&mut on_hub(s).operator).health = stuck();
            serves(s, 0, certificate(2024, 2025));
        }),
        // Nothing can be stored because of a webhook that has to be asked about leases, too.
        (1117, 1116, |s| {
            admission(s, "kyverno/kyverno-svc", false);
            read(&mut on_hub(s).admission)[0].about.push("leases".to_owned());
            full(&mut on_hub(s).storage);
            silent(s);
        }),
        (1117, 2205, |s| {
            pending(s);
            admission(s, "ocm-policy-engine/ocm-policy-webhook", false);
        }),
        // What was named as the hub is none, and the agent knows another one.
        (1101, 2110, |s| {
            unregistered(s);
            on_hub(s).managers = Observed::Read(Vec::new());
            let kubeconfig =
                read(&mut agent(s).bootstrap).as_mut().expect("it is there").kubeconfig.as_mut().expect("it is there");
            kubeconfig.server = "https://other:6443".to_owned();
            kubeconfig.authorities = vec![ByteString(certificate(2025, 2035))];
        }),
        // The operator has removed the agents, and has not ended.
        (6103, 2106, |s| {
            read(&mut on_managed(s).klusterlets)[0].metadata.deletion_timestamp = Some(old());
            agent(s).deployments = Observed::Read(Vec::new());
            silent(s);
        }),
        (1116, 3101, |s| {
            full(&mut on_hub(s).storage);
            silent(s);
        }),
        (2104, 2121, |s| {
            unregistered(s);
            klusterlet_spec(s).registration_image_pull_spec = None;
            let all = read(&mut on_managed(s).klusterlets);
            let mut second = all[0].clone();
            second.metadata.name = Some("second".to_owned());
            all.push(second);
        }),
        (2118, 2114, |s| {
            unregistered(s);
            grpc(s);
        }),
        // An empty bundle says nothing of the configurations that come from it.
        (1110, 1109, |s| on_hub(s).ca_bundle = Observed::Read(Some(Vec::new()))),
        // The operator has removed what the agent registers with, and the hub its cluster.
        (6103, 2107, |s| {
            unregistered(s);
            read(&mut on_managed(s).klusterlets)[0].metadata.deletion_timestamp = Some(old());
            agent(s).bootstrap = Observed::Read(None);
        }),
        (2212, 2201, |s| klusterlet_spec(s).cluster_name = Some("c9".to_owned())),
        // An agent whose API server does not answer loses its leader lease.
        (3102, 3101, |s| {
            let all = &mut cluster(s).status.as_mut().expect("it is there").conditions;
            all[2] = parse(condition("ManagedClusterConditionAvailable", "False", "R"));
            silent(s);
        }),
        // It asks anew, and that is where it stands.
        (2206, 3104, |s| {
            let expired = vec![ByteString(certificate(2024, 2025))];
            let identity = read(&mut agent(s).identity).as_mut().expect("it is there");
            identity.certificates.insert("tls.crt".to_owned(), expired);
            requests(s, &[request("c1-b", "a1", &[], OLD)]);
            silent(s);
        }),
        (2207, 3106, |s| {
            agent(s).identity = Observed::Read(None);
            requests(s, &[request("c1-b", "a1", &["Approved"], OLD)]);
        }),
        (3111, 2116, |s| {
            full(&mut on_managed(s).storage);
            unregistered(s);
            agent(s).leases = Observed::Read(vec![gone("open-cluster-management-agent", "registration-agent-lock")]);
        }),
    ];
    for (cause, follows, bad) in cases {
        let mut snapshot = healthy();
        bad(&mut snapshot);
        let report = judge(&snapshot, &[]);
        let [root] = report.findings.as_slice() else { panic!("{cause}: {:#?}", report.findings) };
        let folded = root.consequences.iter().any(|finding| finding.id == Id(follows));
        assert!(root.id == Id(cause) && folded, "{cause}: {root:#?}");
    }
    // A webhook that is not asked about leases is not why a cluster is silent.
    let mut apart = healthy();
    silent(&mut apart);
    admission(&mut apart, "kyverno/kyverno-svc", false);
    let found: Vec<u16> = judge(&apart, &[]).findings.iter().map(|finding| finding.id.0).collect();
    assert_eq!(found, [1117, 3101]);
    // What works wait for is not explained by the webhook of managed clusters, nor by one that only has to be renewed.
    let mut apart = healthy();
    read(&mut on_hub(&mut apart).works)[0].conditions.clear();
    serves(&mut apart, 0, certificate(2024, 2025));
    let found: Vec<u16> = judge(&apart, &[]).findings.iter().map(|finding| finding.id.0).collect();
    assert_eq!(found, [1118, 5102]);
    // A lease of an API server that no longer has one is no sign of a cluster that stores nothing.
    let mut without = healthy();
    full(&mut on_managed(&mut without).storage);
    read(&mut on_managed(&mut without).storage).others = Some(parse(json!(FRESH)));
    assert_eq!(judge(&without, &[]).findings, []);
}

#[test]
fn of_a_webhooks_certificate_it_is_told_where_it_is_when_it_ended_and_what_that_refuses() {
    let found = |change: fn(&mut Snapshot)| {
        let mut snapshot = healthy();
        change(&mut snapshot);
        judge(&snapshot, &[]).findings
    };
    let expired = found(|s| serves(s, 1, certificate(2024, 2025)));
    let [expired] = expired.as_slice() else { panic!("{expired:#?}") };
    let summary = "the certificate of webhook cluster-manager-work-webhook expired 424d ago";
    assert_eq!((expired.severity, expired.summary.as_str()), (Severity::Error, summary));
    let about: Vec<String> = expired.objects.iter().map(ToString::to_string).collect();
    assert_eq!(about, ["Secret open-cluster-management-hub/work-webhook-serving-cert (hub)"]);
    let seen = expired.evidence.join("\n");
    for words in ["until 2025-01-01T00:00:00Z", "x509: certificate has expired", "create and update of manifestworks"] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
    assert!(!seen.contains("managedclusters") && !seen.contains("Ignore"), "{seen}");
    // What is let through where the webhook fails is not refused.
    let open = found(|s| {
        let webhook = &mut read(&mut on_hub(s).webhooks)[0];
        webhook.service = "open-cluster-management-hub/cluster-manager-registration-webhook".to_owned();
        webhook.fails_open = true;
        serves(s, 0, certificate(2024, 2025));
    });
    let one = open.iter().find(|finding| finding.id == Id(1118)).expect("it is found");
    assert!(one.evidence.iter().any(|line| line == "but not where failurePolicy is Ignore: one"), "{one:#?}");
    // It was not renewed in time, or was made by a clock that is ahead.
    let late = found(|s| serves(s, 0, ending()));
    assert_eq!((late[0].id, late[0].severity), (Id(1118), Severity::Warning));
    assert!(late[0].summary.ends_with("ends in 2d12h and has not been renewed"), "{late:#?}");
    let early = found(|s| serves(s, 0, certificate(2027, 2028)));
    assert_eq!((early[0].id, early[0].severity), (Id(1118), Severity::Error));
    assert!(early[0].summary.ends_with("is not valid before 2027-01-01T00:00:00Z"), "{early:#?}");
    // A restart does not replace one that only begins later.
    let next = |finding: &Finding| format!("{:?}", finding.next);
    assert!(next(&early[0]).contains("kubectl delete secret/registration-webhook-serving-cert -n"), "{early:#?}");
    assert!(!next(&early[0]).contains("rollout restart"), "{early:#?}");
    assert!(next(expired).contains("rollout restart") && !next(expired).contains("delete secret"), "{expired:#?}");
    // One that was made while the hub was looked at is valid.
    let new = found(|s| serves(s, 0, begins_after(30)));
    assert_eq!(new, []);
    assert_eq!(found(|s| serves(s, 0, begins_after(90))).len(), 1);
    // One that has to be renewed is still valid, and explains nothing.
    let apart = found(|s| {
        serves(s, 0, ending());
        tainted(s, OLD);
    });
    assert_eq!(apart.iter().map(|finding| finding.id.0).collect::<Vec<_>>(), [1118, 3110]);
}

/// A certificate that ends in some days, and was to be renewed.
fn ending() -> Vec<u8> {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("it is there");
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2026, 2, 2), rcgen::date_time_ymd(2026, 3, 4));
    let key = rcgen::KeyPair::generate().expect("it is there");
    params.self_signed(&key).expect("it is there").der().to_vec()
}

/// A certificate that begins so many seconds after everything is observed.
fn begins_after(seconds: u64) -> Vec<u8> {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("it is there");
    let noon = std::time::Duration::from_hours(12);
    params.not_before = rcgen::date_time_ymd(2026, 3, 1) + noon + std::time::Duration::from_secs(seconds);
    params.not_after = rcgen::date_time_ymd(2026, 4, 1);
    let key = rcgen::KeyPair::generate().expect("it is there");
    params.self_signed(&key).expect("it is there").der().to_vec()
}

#[test]
fn certificates_of_webhooks_that_were_not_read_are_neither_well_nor_missed() {
    let outcome = |first: Observed<ByteString>, second: Vec<u8>| {
        let mut snapshot = healthy();
        read(&mut on_hub(&mut snapshot).serving)[0].certificate = first;
        serves(&mut snapshot, 1, second);
        let facts = Facts::of(&snapshot);
        let mut all = outcomes(&facts, check(Id(1118)).expect("it is there"));
        all.pop().expect("it is run").1
    };
    let trouble =
        Trouble { reason: Reason::Unreachable, message: "no answer".to_owned(), rule: None, behind: String::new() };
    let (well, expired) = (certificate(2026, 2027), certificate(2024, 2025));
    // Few may read the Secrets, and the others need not.
    let Outcome::Skip(why) = outcome(Observed::NotAsked, well.clone()) else { panic!("it is left out") };
    assert!(why.contains("kubectl ocm tls-check") && why.contains("private keys"), "{why}");
    assert_eq!(outcome(Observed::Trouble(trouble.clone()), well), Outcome::Unknown(trouble.clone()));
    // What was read counts all the same.
    for first in [Observed::NotAsked, Observed::Trouble(trouble)] {
        let Outcome::Found(findings) = outcome(first, expired.clone()) else { panic!("it is found") };
        assert!(findings.len() == 1 && findings[0].summary.contains("cluster-manager-work-webhook"), "{findings:#?}");
    }
}

#[test]
fn what_is_well_passes() {
    for Case { id, good, .. } in CASES {
        let mut snapshot = healthy();
        good(&mut snapshot);
        let facts = Facts::of(&snapshot);
        for (_, outcome) in outcomes(&facts, check(Id(*id)).expect("it is there")) {
            // With another driver than gRPC, and without an engine, there is nothing to look at.
            assert_eq!(outcome, Outcome::Pass, "{id}");
        }
    }
    let report = judge(&healthy(), &[]);
    assert_eq!(report.findings, [], "a healthy pair");
    assert_eq!(report.counts.unknown, 0);
    assert_eq!(report.clusters[0].headline, "joined and available, heard of 30s ago");
}

#[test]
fn ids_stand_in_their_ranges_and_explanations_have_no_circles() {
    let mut seen = BTreeSet::new();
    let mut slugs = BTreeSet::new();
    for one in checks() {
        assert!(seen.insert(one.id), "{} twice", one.id);
        assert!(slugs.insert(one.slug), "{} twice", one.slug);
        assert_eq!(Category::of(one.id), Some(one.category), "{}", one.id);
        for after in one.after {
            assert!(check(*after).is_some(), "{} stands after {after}, which there is not", one.id);
            assert!(
                !explainers(*after).contains(&one.id) && *after != one.id,
                "{} and {after} explain each other",
                one.id
            );
        }
        for text in [one.title, one.page.means, one.page.happens, one.page.mend, one.page.mended] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text:?}", one.id);
        }
        assert!(!one.title.ends_with('.'), "{}", one.id);
    }
}

#[test]
fn what_may_not_be_read_is_unknown_and_names_the_right() {
    let mut snapshot = healthy();
    let rule = PolicyRule::new("list", "coordination.k8s.io", "leases", None);
    let trouble = Trouble {
        reason: Reason::Forbidden,
        message: "no".to_owned(),
        rule: Some(rule.clone()),
        behind: String::new(),
    };
    on_hub(&mut snapshot).leases = Observed::Trouble(trouble);
    let report = judge(&snapshot, &[]);
    assert_eq!(report.findings, []);
    assert_eq!(report.counts.unknown, 4, "all that look at leases");
    assert_eq!(report.unknown.len(), 1);
    assert_eq!(report.unknown[0].ids, [Id(3101), Id(3103), Id(3108), Id(3110)]);
    assert_eq!(
        report.unknown[0].trouble.rule.as_ref().map(ToString::to_string).as_deref(),
        Some("list leases.coordination.k8s.io")
    );
}

#[test]
fn one_side_alone_is_judged_as_far_as_it_goes() {
    let mut hub_only = healthy();
    hub_only.managed = None;
    assert_eq!(judge(&hub_only, &[]).findings, []);
    let mut managed_only = healthy();
    managed_only.hub = None;
    let report = judge(&managed_only, &[]);
    assert_eq!(report.findings, []);
    assert!(report.clusters[0].headline.starts_with("steps 1 to 6 of 9 are done"), "{}", report.clusters[0].headline);
    assert!(report.skipped.iter().any(|skipped| skipped.why == "the hub was not looked at"));
}

#[test]
fn headlines_name_the_step_and_the_cause() {
    let headline = |change: fn(&mut Snapshot)| {
        let mut snapshot = healthy();
        change(&mut snapshot);
        judge(&snapshot, &[]).clusters[0].headline.clone()
    };
    assert_eq!(headline(pending), "stopped at step 5 of 9: waits for acceptance on the hub since 60m");
    assert_eq!(
        headline(|s| accepted(s, &["Approved"])),
        "stopped at step 6 of 9: the agent's request is approved, but the \
                hub's signer has not issued the certificate"
    );
    assert!(
        headline(|s| accepted(s, &["Approved", "Issued"]))
            .starts_with("stopped at step 7 of 9: the agent's certificate was issued")
    );
    assert_eq!(headline(silent), "stopped at step 8 of 9: the agent has not been heard of since 60m");
    assert!(headline(|s| { silent(s); read(&mut agent(s).deployments)[0].health = stuck(); })
        .starts_with("stopped at step 8 of 9: Deployment open-cluster-management-agent/klusterlet-registration-agent is not ready"));
    assert!(
        headline(|s| {
            unregistered(s);
            read(&mut on_managed(s).operator).replicas = 0;
        })
        .starts_with("stopped at step 1 of 9: Deployment open-cluster-management/klusterlet is scaled to 0")
    );
    assert!(headline(unregistered).starts_with("stopped at step 4 of 9: the hub has no managed cluster \"c1\""));
    assert_eq!(
        headline(|s| read(&mut on_hub(s).works)[0].conditions.clear()),
        "stopped at step 9 of 9: the agent has reported nothing about work w since 60m"
    );
    // A finding about the hub as a whole counts for a cluster only if it explains something of it.
    assert_eq!(
        headline(|s| read(&mut on_hub(s).deployments)[0].replicas = 0),
        "joined and available, heard of 30s ago"
    );
    assert!(
        headline(|s| {
            decided(s, "Hold");
        })
        .starts_with("stopped at step 5 of 9: the hub's policies hold the cluster: a label env")
    );
}

#[test]
fn the_hub_and_a_fresh_lease_win_over_conditions_of_the_klusterlet() {
    let mut snapshot = healthy();
    klusterlet(&mut snapshot).conditions[1] =
        parse(condition("HubConnectionDegraded", "True", "BootstrapSecretFunctional,HubKubeConfigUnauthorized"));
    assert_eq!(judge(&snapshot, &[]).findings, []);
    silent(&mut snapshot);
    let report = judge(&snapshot, &[]);
    assert_eq!(report.findings[0].id, Id(2115));
    let follows = &report.findings[0].consequences;
    assert!(follows.iter().any(|one| one.id == Id(3101)), "{follows:?}");
    assert!(follows[0].evidence.iter().any(|line| line.contains("still calls the cluster Available")), "{follows:?}");
}

#[test]
fn an_agent_that_noted_no_hub_is_not_taken_for_that_of_another_one() {
    let mut snapshot = healthy();
    pending(&mut snapshot);
    let secret = read(&mut agent(&mut snapshot).bootstrap).as_mut().expect("it is there");
    secret.annotations.insert("kubectl-ocm/hub-uid".to_owned(), String::new());
    let found = |snapshot: &Snapshot| judge(snapshot, &[]).findings[0].id;
    assert_eq!(found(&snapshot), Id(2205));
    let secret = read(&mut agent(&mut snapshot).bootstrap).as_mut().expect("it is there");
    secret.annotations.insert("kubectl-ocm/hub-uid".to_owned(), "another".to_owned());
    secret.kubeconfig.as_mut().expect("it is there").server = "https://other:6443".to_owned();
    assert_eq!(found(&snapshot), Id(2110));
}

#[test]
fn another_way_to_the_hub_is_not_blamed_for_what_fails_by_itself() {
    // As by a load balancer with a CA of its own, of an agent that joined with a token.
    let by_another_way = |snapshot: &mut Snapshot| {
        let secret = read(&mut agent(snapshot).bootstrap).as_mut().expect("it is there");
        secret.annotations.insert("kubectl-ocm/hub-uid".to_owned(), String::new());
        let kubeconfig = secret.kubeconfig.as_mut().expect("it is there");
        kubeconfig.server = "https://lb:6443".to_owned();
        kubeconfig.authorities = vec![ByteString(certificate(2025, 2035))];
    };
    let found = |snapshot: &Snapshot| -> Vec<(u16, Severity)> {
        judge(snapshot, &[]).findings.iter().map(|finding| (finding.id.0, finding.severity)).collect()
    };
    // Its pods do not start.
    let mut first = healthy();
    unregistered(&mut first);
    by_another_way(&mut first);
    read(&mut agent(&mut first).deployments)[0].health = Health::stuck("ImagePullBackOff");
    let causes = found(&first);
    assert_eq!(causes[0], (2106, Severity::Error), "{causes:?}");
    assert!(causes.contains(&(2110, Severity::Warning)), "{causes:?}");
    // It is refused where it asks.
    let mut turned_away = healthy();
    unregistered(&mut turned_away);
    by_another_way(&mut turned_away);
    assert_eq!(found(&turned_away)[0], (2110, Severity::Error));
    probe(&mut turned_away, Reason::Unauthorized);
    by_another_way(&mut turned_away);
    assert_eq!(found(&turned_away), [(2113, Severity::Error), (2110, Severity::Warning)]);
    // It has been here, and is silent.
    let mut silenced = healthy();
    by_another_way(&mut silenced);
    silent(&mut silenced);
    let causes = found(&silenced);
    assert!(causes[0].1 == Severity::Error && causes[0].0 != 2110, "{causes:?}");
    assert!(causes.iter().all(|(id, severity)| *id != 2110 || *severity == Severity::Warning), "{causes:?}");
}

#[test]
fn what_may_only_need_time_comes_after_what_does_not_end_by_itself() {
    let mut snapshot = healthy();
    pending(&mut snapshot);
    // A pod that was replaced holds its lease.
    agent(&mut snapshot).leases =
        Observed::Read(vec![gone("open-cluster-management-agent", "registration-agent-lock")]);
    let coming = "its container registration-controller runs but is not ready yet";
    read(&mut agent(&mut snapshot).deployments)[0].health = Health::not_yet(coming);
    let report = judge(&snapshot, &[]);
    let ids: Vec<u16> = report.findings.iter().map(|finding| finding.id.0).collect();
    assert_eq!(ids, [2205, 2106], "{report:#?}");
    assert!(report.clusters[0].headline.contains(": waits for acceptance on the hub since"), "{report:#?}");
}

#[test]
fn what_is_suppressed_is_named_apart_until_it_ends() {
    let mut snapshot = healthy();
    silent(&mut snapshot);
    let with = |text: &str| judge(&snapshot, &[text.parse().expect("it is there")]);
    let report = with("OCM3101:c1=2026-03-01,the site is off this week");
    assert_eq!((report.findings.len(), report.suppressed.len()), (0, 1), "to the end of the day");
    assert_eq!(report.suppressed[0].reason, "the site is off this week");
    for other in ["OCM3101:c1=2026-02-28,ended", "OCM3101:c2=2026-12-31,other", "OCM3102=2026-12-31,other"] {
        assert_eq!(with(other).findings.len(), 1, "{other}");
    }
    for (text, words) in [
        ("OCM3101", "ID[:CLUSTER]"),
        ("OCM3101=2026-12-31", "no reason"),
        ("OCM3101=2026-12-31, ", "no reason"),
        ("OCM3101=soon,x", "\"soon\""),
        ("OCM9999=2026-12-31,x", "no check OCM9999"),
        ("3101=2026-12-31,x", "is not the id"),
    ] {
        let error = text.parse::<ocm_checks::suppress::Suppression>().unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn what_is_suppressed_by_an_annotation_is_about_what_carries_it() {
    let annotate = |snapshot: &mut Snapshot, text: &str| {
        cluster(snapshot).metadata.annotations = Some([("kubectl-ocm/suppress".to_owned(), text.to_owned())].into());
    };
    let mut snapshot = healthy();
    silent(&mut snapshot);
    annotate(&mut snapshot, "OCM5101=2026-12-31,other; OCM3101=2026-03-01,the site is off");
    let report = judge(&snapshot, &[]);
    assert_eq!((report.findings.len(), report.suppressed.len(), report.notes.len()), (0, 1, 0), "{report:#?}");
    assert_eq!(report.suppressed[0].why(), "the site is off, says ManagedCluster c1 (hub)");
    // A difference of clocks that is meant to be, for this cluster and no other check; or in a lease that allows for it.
    let mut differs = healthy();
    let lease = &mut read(&mut on_hub(&mut differs).leases)[0];
    (lease.renewed, lease.written) = (Some(old()), Some(parse(json!(FRESH))));
    assert_eq!(judge(&differs, &[]).findings.iter().map(|finding| finding.id).collect::<Vec<_>>(), [Id(3103)]);
    let mut meant = differs.clone();
    annotate(&mut meant, "OCM3103=2026-12-31,it replays last year");
    let report = judge(&meant, &[]);
    assert_eq!((report.findings.len(), report.suppressed.len(), report.notes.len()), (0, 1, 0), "{report:#?}");
    let typed = "OCM3103:c1=2026-12-31,it replays last year".parse().expect("it is there");
    assert_eq!(judge(&differs, &[typed]).suppressed.len(), 1);
    cluster(&mut differs).spec.lease_duration_seconds = Some(7200);
    assert_eq!(judge(&differs, &[]).findings, []);
    // What was said to the command comes first.
    let said = "OCM3101=2026-12-31,typed".parse().expect("it is there");
    assert_eq!(judge(&snapshot, &[said]).suppressed[0].why(), "typed");
    // What has ended, is about another cluster, or is none suppresses nothing, and is told.
    for (text, words) in [
        (
            "OCM3101=2026-02-28,off",
            "the suppression of OCM3101:c1 by ManagedCluster c1 (hub) ended at 2026-03-01T00:00:00Z: off",
        ),
        ("OCM3101:c2=2026-12-31,off", "names another cluster"),
        ("OCM3101=2026-12-31", "no reason"),
        ("OCM9999=2026-12-31,off", "no check OCM9999"),
    ] {
        annotate(&mut snapshot, text);
        let report = judge(&snapshot, &[]);
        assert_eq!(report.findings.len(), 1, "{text}");
        assert!(report.notes.len() == 1 && report.notes[0].contains(words), "{text}: {:?}", report.notes);
    }
    annotate(&mut snapshot, &"x;".repeat(50));
    let notes = judge(&snapshot, &[]).notes;
    assert!(notes.len() == 21 && notes[20].starts_with("30 more"), "{notes:?}");
    // Agents may write it: what tells of somebody who takes their name stays.
    let mut snapshot = healthy();
    let mut lies = request("x", "a1", &["Approved", "Issued"], OLD);
    lies["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::agent("c2", "a1").pem().into_bytes()));
    requests(&mut snapshot, &[request("c1-a", "a1", &["Approved", "Issued"], FRESH), lies]);
    annotate(&mut snapshot, "OCM7105=2026-12-31,nothing to see; OCM2203=2026-12-31,here");
    let report = judge(&snapshot, &[]);
    assert_eq!((report.findings[0].id, report.suppressed.len(), report.notes.len()), (Id(7105), 0, 2), "{report:#?}");
    assert!(report.notes.iter().all(|note| note.contains("agents may write it")), "{:?}", report.notes);
    // So may whoever registers a cluster that nobody has accepted.
    let mut snapshot = healthy();
    pending(&mut snapshot);
    annotate(&mut snapshot, "OCM2205=2026-12-31,nothing to see");
    let report = judge(&snapshot, &[]);
    assert_eq!((report.findings[0].id, report.suppressed.len(), report.notes.len()), (Id(2205), 0, 1), "{report:#?}");
}

#[test]
fn operators_objects_suppress_what_is_found_of_their_cluster_as_a_whole() {
    let mut snapshot = healthy();
    read(&mut on_hub(&mut snapshot).operator).replicas = 0;
    applied(&mut snapshot, "former-uid", None);
    let by = |text: &str| Some([("kubectl-ocm/suppress".to_owned(), text.to_owned())].into());
    let both = "OCM1102=2026-12-31,maintenance\nOCM5104=2026-12-31,known";
    // Neither says anything about the other side.
    read(&mut on_hub(&mut snapshot).managers)[0].metadata.annotations = by("OCM5104=2026-12-31,known");
    read(&mut on_managed(&mut snapshot).klusterlets)[0].metadata.annotations = by("OCM1102=2026-12-31,maintenance");
    assert_eq!(judge(&snapshot, &[]).suppressed, []);
    read(&mut on_hub(&mut snapshot).managers)[0].metadata.annotations = by(both);
    read(&mut on_managed(&mut snapshot).klusterlets)[0].metadata.annotations = by(both);
    let report = judge(&snapshot, &[]);
    let by: Vec<String> = report.suppressed.iter().map(|one| format!("{} {}", one.finding.id, one.why())).collect();
    assert_eq!(report.findings, []);
    assert_eq!(
        by,
        [
            "OCM1102 maintenance, says ClusterManager cluster-manager (hub)",
            "OCM5104 known, says Klusterlet klusterlet (managed cluster)",
        ]
    );
}

#[test]
fn a_thousand_clusters_are_judged_each_on_its_own() {
    let mut snapshot = healthy();
    snapshot.managed = None;
    let (first, lease) = (cluster(&mut snapshot).clone(), read(&mut on_hub(&mut snapshot).leases)[0].clone());
    let (mut clusters, mut leases) = (Vec::new(), Vec::new());
    for number in 0..1000 {
        let name = format!("c{number:04}");
        let mut one = first.clone();
        one.metadata.name = Some(name.clone());
        clusters.push(one);
        let renewed = parse(json!(if number % 50 == 0 { OLD } else { FRESH }));
        leases.push(LeaseFacts { namespace: name, renewed: Some(renewed), ..lease.clone() });
    }
    let hub = on_hub(&mut snapshot);
    (hub.clusters, hub.leases) = (Observed::Read(clusters), Observed::Read(leases));
    (hub.works, hub.addons) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    hub.requests = Observed::Read(Vec::new());
    let report = judge(&snapshot, &[]);
    assert_eq!(report.clusters.len(), 1000);
    assert_eq!(report.at_least(Severity::Warning).count(), 20);
    assert!(report.findings.iter().all(|finding| finding.id == Id(3101)));
}

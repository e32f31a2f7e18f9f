//! The static baseline on a real API server: what it refuses, what it lets through, and that both are what the rules say.

use std::collections::BTreeSet;
use std::process::Stdio;

use e2e_tests::accept_support::{Ask, Hub, Who};
use e2e_tests::manifests::apply;
use e2e_tests::shared_hub::hub;
use e2e_tests::webhook_support::{HYGIENE, Webhook, add_ons, policy, prepare};
use e2e_tests::{SOON, Said, kubectl_ocm, run, until};
use fleet_sim::{Agent, Plan};
use futures::StreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use ocm_api::ManagedCluster;
use ocm_api::names::signers;
use ocm_core::csr::{Code, Request};
use ocm_rules::cluster::{self, CLUSTER_SET, Cluster, Owner, Settings, Taint};
use ocm_rules::{csr, identity};
use serde_json::{Value, json};

fn install(hub: &Hub, flags: &[&str]) -> Said {
    run(kubectl_ocm("install", hub.cluster.kubeconfig()).arg("baseline").args(flags).stdin(Stdio::null()))
}

fn in_force(hub: &Hub, flags: &[&str]) {
    let said = install(hub, &[&["--wait"], flags].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("the API server refuses what breaks the rules"), "{said:?}");
}

/// The code that the baseline refused with; none: it let it through. What somebody has no right to is neither.
fn refused(answer: Result<(), Error>) -> Option<String> {
    match answer {
        Ok(()) => None,
        Err(Error::Api(status)) if status.message.contains("baseline.kubectl-ocm.dev' denied request: ") => {
            assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"), "{status:?}");
            let code = status.message.trim_end_matches(')').rsplit(' ').next().unwrap_or_default();
            Some(code.to_owned())
        }
        Err(error) => panic!("not by the baseline: {error}"),
    }
}

fn dry() -> PostParams {
    PostParams { dry_run: true, ..PostParams::default() }
}

/// Asks for all, several at a time, without storing anything.
fn try_all(hub: &Hub, asks: &[Ask]) -> Vec<Result<CertificateSigningRequest, Error>> {
    let one = async |ask: &Ask| {
        let api: Api<CertificateSigningRequest> = Api::all(hub.client(ask.who));
        api.create(&dry(), &ask.object()).await
    };
    hub.wait(futures::stream::iter(asks).map(one).buffered(8).collect())
}

/// What CEL cannot see: what stands in the request itself.
const INSIDE: [Code; 9] = [
    Code::CommonName,
    Code::CommonNames,
    Code::ForeignOrganization,
    Code::MissingOrganization,
    Code::SubjectAttributes,
    Code::WeakKey,
    Code::Signature,
    Code::Unreadable,
    Code::AddonLabel,
];

#[test]
fn requests_are_refused_exactly_where_the_rules_refuse_what_the_server_can_see() {
    let hub = hub();
    let asks = Ask::every_way();
    let before = try_all(&hub, &asks);
    in_force(&hub, &[]);
    let after = try_all(&hub, &asks);
    let (mut refusals, mut passed) = (BTreeSet::new(), 0);
    for ((ask, before), after) in asks.iter().zip(before).zip(after) {
        let before = before.unwrap_or_else(|error| panic!("{ask:?}: {error}"));
        let request = Request::read(&before);
        let enabled = csr::AddonFacts { is_enabled: Some(true), ..csr::AddonFacts::default() };
        let judged = csr::judge(&request.facts(), None, &csr::Settings::default(), enabled);
        let violations = judged.as_ref().map(|judged| &judged.violations[..]).unwrap_or_default();
        let codes: BTreeSet<&str> = violations.iter().map(|violation| violation.code.word()).collect();
        let ask_said = Ask { pem: Vec::new(), ..ask.clone() };
        let said = format!("{ask_said:?} by {:?}: {codes:?}", before.spec.username);
        match refused(after.map(drop)) {
            Some(code) => {
                // The server cannot tell an agent's request with an add-on's label from an add-on's, and where label and
                // requester disagree it does not know with which of them the request agrees.
                let same = codes.contains(code.as_str())
                    || codes.contains("AddonLabel")
                    || (code == "OtherAgent" && codes.contains("ClusterLabel"));
                assert!(same, "{code}: {said}");
                refusals.insert(code);
            }
            None => {
                let addon = ask.addon.is_some();
                let visible = violations.iter().filter(|violation| match violation.code {
                    code if INSIDE.contains(&code) => false,
                    // Whether the label names the cluster of the common name stands in the request; an agent's own name,
                    // too.
                    Code::ClusterLabel => ask.label.is_none() && ask.addon.is_none(),
                    Code::OtherAgent => ask.who == Who::AgentOfC2 && ask.label.as_deref() != Some("c2") && !addon,
                    // Of add-ons with a signer of their own, it decides.
                    Code::Signer | Code::Usages | Code::Lifetime => !addon,
                    _ => !addon,
                });
                let concerned = (ask.label.is_some() || ask.who != Who::Admin) && !codes.contains("AddonLabel");
                let visible: Vec<_> = visible.filter(|_| concerned && judged.is_some()).collect();
                let by_content_alone = ask.label.is_none()
                    && ask.addon.is_none()
                    && ask.annotation.is_none()
                    && ask.signer != signers::GRPC
                    && !matches!(ask.who, Who::Bootstrap | Who::Token | Who::Grpc | Who::AgentOfC2)
                    && !matches!(ask.who, Who::CertificateOfAccount | Who::CertificateOfToken | Who::CertificateOfGrpc);
                assert!(visible.is_empty() || by_content_alone, "let through: {said}");
                passed += 1;
            }
        }
    }
    let all = ["ClusterLabel", "GrpcClaim", "Impersonated", "Lifetime", "OtherAgent", "Requester", "Signer", "Usages"];
    assert_eq!(refusals.iter().map(String::as_str).collect::<Vec<_>>(), all);
    assert!(passed > 50, "{passed}");

    // Kubelets and people ask as ever.
    let mut kubelet = Ask::agent("c1").by(Who::Token);
    (kubelet.label, kubelet.signer) = (None, "kubernetes.io/kubelet-serving".to_owned());
    kubelet.usages = vec!["digital signature".to_owned(), "server auth".to_owned()];
    let mut person = Ask::with("c1", &csr_fixtures::Fixture::empty().common_name("eva")).by(Who::Eva);
    person.label = None;
    for right in
        [kubelet, person, Ask::agent("c1"), Ask::agent("c1").by(Who::Token), Ask::agent("c2").by(Who::AgentOfC2)]
    {
        assert!(try_all(&hub, std::slice::from_ref(&right))[0].is_ok(), "{right:?}");
    }
}

/// A cluster that somebody creates.
#[derive(Clone, Debug)]
struct New {
    name: &'static str,
    labels: Vec<(&'static str, &'static str)>,
    annotations: Vec<(&'static str, &'static str)>,
    taints: Vec<&'static str>,
    finalizers: Vec<&'static str>,
    owners: Vec<&'static str>,
    lease: Option<i64>,
    accepted: bool,
}

const PLAIN: New = New {
    name: "c1",
    labels: Vec::new(),
    annotations: Vec::new(),
    taints: Vec::new(),
    finalizers: Vec::new(),
    owners: Vec::new(),
    lease: None,
    accepted: false,
};

impl New {
    fn object(&self) -> Value {
        let map = |pairs: &[(&str, &str)]| -> Value {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
        };
        let owner = |name: &&str| json!({"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": "1"});
        let taint = |key: &&str| json!({"key": key, "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"});
        let mut spec =
            json!({"hubAcceptsClient": self.accepted, "taints": self.taints.iter().map(taint).collect::<Vec<_>>()});
        if let Some(lease) = self.lease {
            spec["leaseDurationSeconds"] = json!(lease);
        }
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {
                "name": self.name, "labels": map(&self.labels), "annotations": map(&self.annotations),
                "finalizers": self.finalizers, "ownerReferences": self.owners.iter().map(owner).collect::<Vec<_>>(),
            },
            "spec": spec,
        })
    }

    /// What the rules say about it.
    fn codes(&self, user: &str, settings: &Settings) -> BTreeSet<&'static str> {
        let owners: Vec<Owner<'_>> = self.owners.iter().map(|name| Owner { name, ..Owner::default() }).collect();
        let taints: Vec<Taint<'_>> = self.taints.iter().map(|key| Taint { key, ..Taint::default() }).collect();
        let facts = Cluster {
            name: self.name,
            labels: &self.labels,
            annotations: &self.annotations,
            finalizers: &self.finalizers,
            owners: &owners,
            taints: &taints,
            // The schema of managed clusters has this default.
            lease_duration_seconds: Some(self.lease.unwrap_or(60)),
            accepted: self.accepted,
            client_configs: &[],
            other_fields: "",
        };
        let mut found = cluster::creation(&facts, settings);
        if identity::registers_by_name(user, &[]) {
            found.extend(cluster::registration(&facts, settings));
        }
        let mut codes: BTreeSet<&str> = found.iter().map(|violation| violation.code.word()).collect();
        // What takes a right that nobody here has but the administrator.
        if user != "admin" {
            codes.extend(self.accepted.then_some("HubAcceptsClient"));
            let set = self.labels.iter().find(|(key, _)| *key == CLUSTER_SET).map_or("", |(_, set)| set);
            codes.extend((!matches!(set, "" | "default")).then_some("ClusterSet"));
        }
        codes
    }
}

/// One of each, right and wrong.
fn clusters() -> Vec<New> {
    let mut all = vec![PLAIN];
    for name in ["cluster", "cluster-proxy", "kube-x", "open-cluster-management-x", "prod-1", "a.b", "managed-clusters"]
    {
        all.push(New { name, ..PLAIN });
    }
    for labels in [
        vec![("env", "prod")],
        vec![("team-a", "x")],
        vec![(CLUSTER_SET, "default")],
        vec![(CLUSTER_SET, "prod")],
        vec![("kubernetes.io/x", "y")],
        vec![(CLUSTER_SET, "edge"), ("team-b", "x")],
    ] {
        all.push(New { labels, ..PLAIN });
    }
    for annotations in
        [vec![("agent.open-cluster-management.io/x", "y")], vec![("x", "y")], vec![("x.kubernetes.io/a", "")]]
    {
        all.push(New { annotations, ..PLAIN });
    }
    for lease in [1, 9, 10, 60, 3600, 3601, 315_360_000] {
        all.push(New { lease: Some(lease), ..PLAIN });
    }
    all.push(New { taints: vec!["a"], ..PLAIN });
    all.push(New { finalizers: vec!["example.com/a"], ..PLAIN });
    all.push(New { owners: vec!["default"], ..PLAIN });
    all.push(New { accepted: true, ..PLAIN });
    all
}

#[test]
fn clusters_are_refused_exactly_where_the_rules_refuse_them() {
    let hub = hub();
    let users: Vec<(Who, String)> = Who::ALL
        .into_iter()
        .map(|who| {
            (who, if who == Who::Admin { "admin".to_owned() } else { hub.user(who).username.unwrap_or_default() })
        })
        .collect();
    let create = |who: Who, new: &New| {
        let api: Api<ManagedCluster> = Api::all(hub.client(who));
        let object = serde_json::from_value(new.object()).expect("a managed cluster");
        hub.wait(api.create(&dry(), &object)).map(drop)
    };
    let own = Settings {
        labels: vec!["team-*".to_owned()],
        cluster_sets: vec!["edge".to_owned()],
        reserved: vec!["prod-*".to_owned()],
        ..Settings::default()
    };
    let flags = ["--allow-label=team-*", "--allow-cluster-set=edge", "--reserve-name=prod-*"];
    for (settings, flags) in [(Settings::default(), &[][..]), (own, &flags[..])] {
        in_force(&hub, flags);
        let mut codes = BTreeSet::new();
        for (who, user) in &users {
            for new in clusters() {
                let expected = new.codes(user, &settings);
                let refused = refused(create(*who, &new));
                assert_eq!(refused.is_some(), !expected.is_empty(), "{who:?} {new:?}: {refused:?} {expected:?}");
                if let Some(code) = refused {
                    assert!(expected.contains(code.as_str()), "{who:?} {new:?}: {code} {expected:?}");
                    codes.insert(code);
                }
            }
        }
        let all = [
            "AcceptedAtCreation",
            "Annotations",
            "ClusterSet",
            "Finalizers",
            "HubAcceptsClient",
            "Labels",
            "LeaseDuration",
            "NameForm",
            "NameReserved",
            "OwnerReferences",
            "Taints",
        ];
        assert_eq!(codes.iter().map(String::as_str).collect::<Vec<_>>(), all);
    }
}

#[test]
fn agents_change_what_is_theirs_and_only_who_may_accept_accepts() {
    let hub = hub();
    in_force(&hub, &[]);
    hub.grant(
        &json!([{"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["patch", "update", "get"]}]),
    );
    for name in ["c1", "c2"] {
        hub.register(name);
    }
    hub.patch(
        "c2",
        json!({"metadata": {"annotations": {"open-cluster-management.io/automatically-accepted-on": "x"},
        "finalizers": ["cluster.open-cluster-management.io/api-resource-cleanup"]}}),
    );
    let change = |client: &Client, name: &str, patch: &Value| {
        let api: Api<ManagedCluster> = Api::all(client.clone());
        let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
        refused(hub.wait(api.patch(name, &parameters, &Patch::Merge(patch))).map(drop))
    };
    let metadata = |member: &str, value: Value| json!({"metadata": {member: value}});
    let spec = |member: &str, value: Value| json!({"spec": {member: value}});
    let held = "open-cluster-management.io/automatically-accepted-on";
    let owner = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"}]);
    let cases = [
        (metadata("annotations", json!({"agent.open-cluster-management.io/x": "y"})), None),
        (spec("managedClusterClientConfigs", json!([{"url": "https://192.0.2.8:6443", "caBundle": "eA=="}])), None),
        (metadata("labels", json!({CLUSTER_SET: "default"})), None),
        (metadata("labels", json!({"env": "prod"})), Some("Labels")),
        (metadata("labels", json!({CLUSTER_SET: "default", "env": "prod"})), Some("Labels")),
        (metadata("labels", json!({CLUSTER_SET: "prod"})), Some("ClusterSet")),
        (metadata("annotations", json!({"x": "y"})), Some("Annotations")),
        (metadata("annotations", json!({held: null})), Some("HubAcceptsClient")),
        (metadata("finalizers", json!([])), Some("Finalizers")),
        (metadata("ownerReferences", owner), Some("OwnerReferences")),
        (
            spec("taints", json!([{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}])),
            Some("Taints"),
        ),
        (spec("leaseDurationSeconds", json!(30)), Some("LeaseDuration")),
        (spec("hubAcceptsClient", json!(true)), Some("HubAcceptsClient")),
    ];
    let agent = hub.client(Who::AgentOfC2);
    for (patch, code) in &cases {
        assert_eq!(change(&agent, "c2", patch).as_deref(), *code, "{patch}");
        let elsewhere = change(&agent, "c1", patch);
        assert!(elsewhere.is_some(), "{patch}: another cluster's agent");
        // The administrator may do all of it.
        assert_eq!(change(&hub.admin, "c2", patch), None, "{patch}");
    }
    // Somebody without the right to accept is no agent either: only that is refused.
    let eva = hub.client(Who::Eva);
    assert_eq!(change(&eva, "c2", &metadata("labels", json!({"env": "prod"}))), None);
    assert_eq!(change(&eva, "c2", &spec("hubAcceptsClient", json!(true))).as_deref(), Some("HubAcceptsClient"));
    assert_eq!(change(&eva, "c2", &metadata("labels", json!({CLUSTER_SET: "prod"}))).as_deref(), Some("ClusterSet"));
    // What a person accepted stays so, whoever writes then; to take the acceptance back takes no right.
    hub.patch("c2", spec("hubAcceptsClient", json!(true)));
    assert_eq!(change(&eva, "c2", &metadata("labels", json!({"env": "prod"}))), None);
    assert_eq!(change(&eva, "c2", &spec("hubAcceptsClient", json!(false))), None);
    assert_eq!(change(&agent, "c2", &spec("hubAcceptsClient", json!(false))).as_deref(), Some("HubAcceptsClient"));
    hub.remove("c1");
}

/// A managed cluster as everybody may write it: its schema does not require a spec.
fn without_spec(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": name},
    })
}

/// Changes a cluster and stores that; the code of the baseline if it refused it.
fn written(hub: &Hub, who: Who, name: &str, patch: Value) -> Option<String> {
    let api: Api<ManagedCluster> = Api::all(hub.client(who));
    refused(hub.wait(api.patch(name, &PatchParams::default(), &Patch::Merge(patch))).map(drop))
}

/// Stores two clusters without a spec, labels one and has it accepted, and lets the other go.
fn clusters_without_a_spec_come_and_go(hub: &Hub, [stays, goes]: [&str; 2]) {
    for name in [stays, goes] {
        let mut object = without_spec(name);
        object["metadata"]["finalizers"] = json!(["example.com/a"]);
        let file = hub.cluster.dir().expect("a folder").join(format!("{name}.json"));
        std::fs::write(&file, object.to_string()).expect("a file");
        let file = file.to_str().expect("text");
        // A policy that is being loaded refuses everybody.
        until("it is stored", || hub.cluster.kubectl(&["apply", "--filename", file]).is_ok());
    }
    let spec =
        || hub.cluster.kubectl(&["get", "managedcluster", stays, "-o", "jsonpath={.spec}"]).expect("it can be read");
    let metadata = |member: &str, value: Value| json!({"metadata": {member: value}});
    assert_eq!(written(hub, Who::Admin, stays, metadata("labels", json!({"env": "prod"}))), None);
    assert_eq!(written(hub, Who::Admin, stays, metadata("finalizers", Value::Null)), None);
    assert_eq!(spec(), "");
    let accepted = json!({"spec": {"hubAcceptsClient": true}});
    assert_eq!(written(hub, Who::Eva, stays, accepted.clone()).as_deref(), Some("HubAcceptsClient"));
    assert_eq!(written(hub, Who::Admin, stays, accepted), None);
    assert!(hub.accepts(stays));
    hub.remove(goes);
    assert_eq!(written(hub, Who::Admin, goes, metadata("finalizers", Value::Null)), None);
    let api: Api<ManagedCluster> = Api::all(hub.admin.clone());
    until("it is gone", || hub.wait(api.get_opt(goes)).expect("the hub answers").is_none());
}

#[test]
fn a_cluster_without_a_spec_is_registered_changed_accepted_and_removed() {
    let hub = hub();
    hub.grant(
        &json!([{"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["patch", "update", "get"]}]),
    );
    in_force(&hub, &[]);
    // The rules refuse nothing of it, whoever creates it.
    for who in [Who::Admin, Who::Bootstrap] {
        let api: Api<DynamicObject> = Api::all_with(hub.client(who), &ApiResource::erase::<ManagedCluster>(&()));
        let object = serde_json::from_value(without_spec("c1")).expect("an object");
        assert_eq!(refused(hub.wait(api.create(&dry(), &object)).map(drop)), None, "{who:?}");
    }
    // Its agent changes what is its own, and nothing else.
    apply(&hub.cluster, &without_spec("c2"));
    let agent =
        |member: &str, key: &str| written(&hub, Who::AgentOfC2, "c2", json!({"metadata": {member: {key: "x"}}}));
    assert_eq!(agent("annotations", "agent.open-cluster-management.io/x"), None);
    assert_eq!(agent("annotations", "x").as_deref(), Some("Annotations"));
    assert_eq!(agent("labels", "env").as_deref(), Some("Labels"));
    clusters_without_a_spec_come_and_go(&hub, ["c3", "c4"]);

    // The same where the API server asks the webhook, as an installation has it asked.
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    for name in ["agent-self-edit", "cluster-hygiene"] {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    clusters_without_a_spec_come_and_go(&hub, ["c5", "c6"]);
    // A line is written when the answer is on its way.
    until("the webhook was asked about the acceptance", || webhook.decisions_of("accept") > 0);
}

#[test]
fn what_was_asked_before_is_judged_when_it_is_approved() {
    let hub = hub();
    let wrong = hub.ask(&Ask { usages: vec!["digital signature".into(), "server auth".into()], ..Ask::agent("c1") });
    let (right, denied) = (hub.join("c2"), hub.join("c3"));

    // An audit lets everything pass and says what it would refuse.
    let said = install(&hub, &["--wait", "--audit"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("nothing is refused"), "{said:?}");
    let approve = |request: &str, verb: &str| run(hub.cluster.kubectl_command().args(["certificate", verb, request]));
    let other = hub.ask(&Ask { usages: vec!["digital signature".into(), "server auth".into()], ..Ask::agent("c4") });
    let said = approve(&other, "approve");
    assert!(
        said.code == Some(0) && said.stderr.contains("Warning: ") && said.stderr.contains("(R3 Usages)"),
        "{said:?}"
    );

    in_force(&hub, &[]);
    let said = approve(&wrong, "approve");
    assert!(said.code == Some(1) && said.stderr.contains("(R3 Usages)"), "{said:?}");
    assert!(!hub.is("Approved", &wrong));
    assert!(approve(&right, "approve").code == Some(0) && hub.is("Approved", &right));
    // A denial is always let through.
    for request in [&wrong, &denied] {
        assert_eq!(approve(request, "deny").code, Some(0), "{request}");
    }

    // Installed again, nothing changes; a dry run and a diff change nothing.
    let before = hub.cluster.kubectl(&[
        "get",
        "validatingadmissionpolicies",
        "-o",
        "jsonpath={.items[*].metadata.resourceVersion}",
    ]);
    for (flags, code) in
        [(&[][..], 0), (&["--diff"][..], 0), (&["--audit", "--diff"][..], 3), (&["--dry-run=server", "--audit"][..], 0)]
    {
        let said = install(&hub, flags);
        assert_eq!(said.code, Some(code), "{flags:?}: {said:?}");
        assert!(!said.stdout.contains("configured") || flags.contains(&"--audit"), "{said:?}");
    }
    let after = hub.cluster.kubectl(&[
        "get",
        "validatingadmissionpolicies",
        "-o",
        "jsonpath={.items[*].metadata.resourceVersion}",
    ]);
    assert_eq!(before.expect("read"), after.expect("read"));
}

#[test]
fn clusters_that_joined_before_renew_and_report_as_ever() {
    const CLUSTERS: usize = 50;
    let hub = Hub::start("baseline-joined");
    // What the hub's own controllers let agents do; here they may, so that nothing but admission refuses it.
    hub.grant(&json!([
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"], "verbs": ["get"]},
        {"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters/status"], "verbs": ["patch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create"]},
    ]));
    let fleet = hub.fleet(16);
    let plan = Plan { prefix: "c".to_owned(), clusters: CLUSTERS, hostile: 0, reports: false, seed: 3 };
    let storm = fleet.storm(&plan);
    until("all have asked", || storm.asked() == CLUSTERS);
    let accepted = hub.accept(&["--all-pending", "--yes"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    let joined = storm.end(SOON);
    assert!(joined.is_right(), "{joined}");
    leases(&hub, CLUSTERS);
    let mut agents = joined.agents;
    let goes_on = |agents: Vec<Agent>, when: &str| {
        let (agents, renewed) = fleet.renew(agents);
        assert_eq!((renewed.count, &renewed.failures[..]), (CLUSTERS, &[][..]), "{when}");
        // By the certificates that they have just got.
        let told = fleet.beat(&agents);
        assert_eq!((told.count, told.leases, &told.failures[..]), (CLUSTERS, CLUSTERS, &[][..]), "{when}");
        agents
    };
    agents = goes_on(agents, "before");
    in_force(&hub, &[]);
    agents = goes_on(agents, "with the baseline");
    // The same with the webhook, as an installation has it asked, and with all policies about hygiene.
    add_ons(&hub.cluster);
    prepare(&hub.cluster);
    for name in HYGIENE {
        policy(&hub.cluster, name, json!({"module": {"builtin": name}}));
    }
    let mut webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_and_wait(&hub.cluster);
    agents = goes_on(agents, "with the webhook");
    // A line is written when the answer is on its way.
    until("the webhook was asked about every renewal", || webhook.decisions_of("approve") >= CLUSTERS);
    // Without an answer of it nothing can be approved, and they go on to report.
    webhook.kill();
    let told = fleet.beat(&agents);
    assert_eq!((told.count, &told.failures[..]), (CLUSTERS, &[][..]), "without the webhook");
    let (_, renewed) = fleet.renew(agents[..1].to_vec());
    assert!(renewed.failures[0].contains("approve.policy.kubectl-ocm.dev"), "{:?}", renewed.failures);
}

/// Namespaces and leases of clusters, as the hub's own controllers make them.
fn leases(hub: &Hub, clusters: usize) {
    let metadata = |name: &str| json!({"name": name, "labels": {"open-cluster-management.io/cluster-name": name}});
    let items: Vec<Value> = (0..clusters)
        .map(|number| format!("c{number}"))
        .flat_map(|name| {
            let mut lease = metadata("managed-cluster-lease");
            lease["namespace"] = json!(name);
            [
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(&name)}),
                json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease}),
            ]
        })
        .collect();
    apply(&hub.cluster, &json!({"apiVersion": "v1", "kind": "List", "items": items}));
}

#[test]
fn before_there_is_a_hub_nobody_can_tell_whether_it_is_in_force() {
    let cluster = control_plane::Cluster::start(&control_plane::Spec::api("nohub")).expect("a cluster");
    let said = run(kubectl_ocm("install", cluster.kubeconfig()).args(["baseline", "--wait", "-o", "json"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&document["inForce"], &document["enforcement"]), (&json!(false), &json!("Deny")), "{said:?}");
    assert!(said.stderr.contains("this is no hub yet") && !said.stderr.contains("refuses what breaks"), "{said:?}");
}

//! What mends a finding is a change to the very object that was looked at, or nothing.

mod common;

use common::{FRESH, OLD, agent, certificate, condition, healthy, on_hub, on_managed, parse, read, workload};
use k8s_openapi::ByteString;
use ocm_api::Condition;
use ocm_checks::finding::{Finding, Id};
use ocm_checks::fix::{ALLOWED, Change, Fixes, plan};
use ocm_checks::judge::judge;
use ocm_checks::registry::check;
use ocm_checks::snapshot::{
    Answer, Credential, LeaseFacts, Observed, Probe, SecretFacts, Side, Snapshot, TokenFacts, Trouble, Version,
};
use ocm_core::Reason;
use serde_json::json;

const AGENTS: &str = "open-cluster-management-agent";
const REGISTERS: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

fn version() -> Option<Version> {
    Some(Version { uid: "u-1".to_owned(), resource_version: "7".to_owned() })
}

fn planned(snapshot: &Snapshot) -> Fixes {
    plan(snapshot, &judge(snapshot, &[]), &[])
}

/// What the first change mends.
fn mended(fixes: &Fixes) -> &[String] {
    &fixes.fixes.first().expect("something is mended").mends
}

fn held(namespace: &str, name: &str) -> LeaseFacts {
    LeaseFacts {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        version: version(),
        renewed: Some(parse(json!(FRESH))),
        gone: Some("p-gone".to_owned()),
        ..LeaseFacts::default()
    }
}

/// The cluster has never registered.
fn unregistered() -> Snapshot {
    let mut snapshot = healthy();
    let hub = on_hub(&mut snapshot);
    (hub.clusters, hub.requests) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    (hub.leases, hub.works) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    hub.addons = Observed::Read(Vec::new());
    agent(&mut snapshot).identity = Observed::Read(None);
    snapshot
}

fn bootstrap(snapshot: &mut Snapshot) -> &mut SecretFacts {
    read(&mut agent(snapshot).bootstrap).as_mut().expect("it is there")
}

fn token(snapshot: &mut Snapshot, subject: &str, expires: &str) {
    let token = TokenFacts::ServiceAccount {
        subject: Some(subject.to_owned()),
        expires: Some(parse(json!(expires))),
        id: None,
    };
    bootstrap(snapshot).version = version();
    bootstrap(snapshot).kubeconfig.as_mut().expect("it is there").token = Some(token);
}

fn expired() -> Snapshot {
    let mut snapshot = unregistered();
    token(&mut snapshot, REGISTERS, OLD);
    snapshot
}

fn forbidden(subject: &str) -> Snapshot {
    let mut snapshot = unregistered();
    token(&mut snapshot, subject, "2026-04-01T00:00:00Z");
    let trouble = Trouble {
        reason: Reason::Forbidden,
        message: "the token may not".to_owned(),
        rule: None,
        behind: String::new(),
    };
    snapshot.probes = vec![Probe {
        klusterlet: "klusterlet".to_owned(),
        credential: Credential::Bootstrap,
        server: "https://hub:6443".to_owned(),
        proxy: None,
        is_own_proxy: false,
        answer: Answer::Refused(trouble),
    }];
    snapshot
}

#[test]
fn the_allow_list_names_checks_that_there_are_each_once() {
    for (at, fixable) in ALLOWED.iter().enumerate() {
        assert!(check(fixable.id).is_some(), "{}", fixable.id);
        assert!(ALLOWED.iter().skip(at + 1).all(|other| other.id > fixable.id), "{} is in its place", fixable.id);
    }
}

#[test]
fn where_all_is_well_nothing_is_changed() {
    assert_eq!(planned(&healthy()), Fixes::default());
}

#[test]
fn a_lease_is_deleted_as_it_was_looked_at() {
    let mut hub = healthy();
    on_hub(&mut hub).leader = Observed::Read(Some(held("open-cluster-management", "clustermanager-lock")));
    read(&mut on_hub(&mut hub).managers)[0].status.as_mut().expect("it is there").observed_generation = Some(0);
    let (done, left) = (
        planned(&hub),
        "delete Lease open-cluster-management/clustermanager-lock, which a process of pod p-gone holds",
    );
    assert_eq!(mended(&done), ["OCM1103"]);
    assert!(done.fixes[0].change.side() == Side::Hub && done.fixes[0].change.sentence().starts_with(left), "{done:?}");

    let mut operator = healthy();
    on_managed(&mut operator).leases = Observed::Read(vec![held("open-cluster-management", "klusterlet-lock")]);
    read(&mut on_managed(&mut operator).klusterlets)[0].status.as_mut().expect("it is there").observed_generation =
        Some(0);
    assert_eq!(mended(&planned(&operator)), ["OCM2103"]);

    let mut agents = unregistered();
    agent(&mut agents).leases =
        Observed::Read(vec![held(AGENTS, "registration-agent-lock"), held(AGENTS, "work-agent-lock")]);
    let fixes = planned(&agents);
    let [first, second] = fixes.fixes.as_slice() else { panic!("{fixes:?}") };
    for (fix, name) in [(first, "registration-agent-lock"), (second, "work-agent-lock")] {
        let Change::DeleteLease { lease, pod } = &fix.change else { panic!("{fix:?}") };
        assert_eq!((lease.namespace.as_str(), lease.name.as_str(), pod.as_str()), (AGENTS, name, "p-gone"));
        assert_eq!((lease.side, Some(lease.version.clone())), (Side::Managed, version()));
        assert_eq!(fix.mends, ["OCM2116:c1"]);
    }
    // Another check was meant.
    assert_eq!(plan(&agents, &judge(&agents, &[]), &[Id(2103)]), Fixes::default());
    // Which object it was has to be known.
    read(&mut agent(&mut agents).leases).iter_mut().for_each(|lease| lease.version = None);
    let fixes = planned(&agents);
    assert!(fixes.fixes.is_empty() && fixes.left.len() == 2, "{fixes:?}");
    // A finding that stands in a report does not suffice: the snapshot has to show it.
    let mut report = judge(&agents, &[]);
    let well = healthy();
    assert!(plan(&well, &report, &[]).fixes.is_empty());
    report.findings = vec![Finding { id: Id(3101), ..Finding::error("not in the list") }];
    assert_eq!(plan(&well, &report, &[]), Fixes::default());
}

#[test]
fn an_expired_token_of_this_hub_is_replaced_in_the_secret_that_was_looked_at() {
    let fixes = planned(&expired());
    let [fix] = fixes.fixes.as_slice() else { panic!("{fixes:?}") };
    let Change::ReplaceToken { secret, hub } = &fix.change else { panic!("{fix:?}") };
    assert_eq!((secret.namespace.as_str(), secret.name.as_str()), (AGENTS, "bootstrap-hub-kubeconfig"));
    assert_eq!((Some(secret.version.clone()), hub.as_deref()), (version(), Some("hub-uid")));
    assert_eq!(fix.mends, ["OCM2109:c1"]);
    // With its certificate, of which it is a consequence.
    let mut both = healthy();
    token(&mut both, REGISTERS, OLD);
    let ended = vec![ByteString(certificate(2024, 2025))];
    let identity = read(&mut agent(&mut both).identity).as_mut().expect("it is there");
    identity.certificates.insert("tls.crt".to_owned(), ended);
    read(&mut on_hub(&mut both).leases)[0].renewed = Some(parse(json!(OLD)));
    let report = judge(&both, &[]);
    assert_eq!(report.findings[0].id, Id(3104), "{:?}", report.findings);
    assert_eq!(mended(&planned(&both)), ["OCM2109:c1"]);
}

#[test]
fn a_token_goes_to_no_other_hub_and_by_no_other_driver() {
    type Fault = fn(&mut Snapshot);
    let cases: [(&str, Fault); 6] = [
        ("the hub was not looked at", |s| s.hub = None),
        ("not known to be one of this hub", |s| {
            bootstrap(s).kubeconfig.as_mut().expect("it is there").authorities =
                vec![ByteString(certificate(2025, 2035))];
        }),
        ("not known to be one of this hub", |s| {
            bootstrap(s).annotations.insert("kubectl-ocm/hub-uid".to_owned(), "other".to_owned());
        }),
        // The address alone tells nothing.
        ("not known to be one of this hub", |s| {
            let kubeconfig = bootstrap(s).kubeconfig.as_mut().expect("it is there");
            (kubeconfig.server, kubeconfig.authorities) = ("https://other:6443".to_owned(), Vec::new());
        }),
        ("does not register by the driver csr", |s| {
            read(&mut on_managed(s).klusterlets)[0].spec.registration_configuration =
                parse(json!({"registrationDriver": {"authType": "grpc"}}));
        }),
        ("it is not known which object", |s| bootstrap(s).version = None),
    ];
    for (why, fault) in cases {
        let mut snapshot = expired();
        fault(&mut snapshot);
        let fixes = planned(&snapshot);
        assert!(fixes.fixes.is_empty(), "{why}: {fixes:?}");
        assert!(
            fixes.left.iter().any(|left| left.finding == "OCM2109:c1" && left.why.contains(why)),
            "{why}: {fixes:?}"
        );
    }
    // One that was revoked stays revoked.
    let mut revoked = forbidden(REGISTERS);
    let Answer::Refused(trouble) = &mut revoked.probes[0].answer else { panic!("it was refused") };
    trouble.reason = Reason::Unauthorized;
    assert_eq!(planned(&revoked), Fixes::default());
}

#[test]
fn who_registers_clusters_gets_the_rights_of_an_installation_and_nobody_else_does() {
    let fixes = planned(&forbidden(REGISTERS));
    let [fix] = fixes.fixes.as_slice() else { panic!("{fixes:?}") };
    let Change::Apply { side: Side::Hub, plan } = &fix.change else { panic!("{fix:?}") };
    let installed = ocm_core::install::plan(&Default::default(), &Default::default()).expect("a plan").plan;
    let names: Vec<&str> = plan.objects().map(ocm_api::Manifest::name).collect();
    assert_eq!(names, ["open-cluster-management:bootstrap", "open-cluster-management:bootstrap:agent-registration"]);
    assert!(plan.objects().all(|object| installed.objects().any(|own| own == object)), "{plan:?}");
    assert_eq!(fix.mends, ["OCM2117:c1"]);
    let strange = planned(&forbidden("system:serviceaccount:x:y"));
    assert!(strange.fixes.is_empty(), "{strange:?}");
    assert!(strange.left[0].why.contains("others get no rights"), "{strange:?}");
    let mut alone = forbidden(REGISTERS);
    alone.hub = None;
    assert!(planned(&alone).fixes.is_empty());
}

#[test]
fn an_operator_gets_its_rights_back_where_it_says_that_it_lacks_one() {
    let said = |user: &str| format!("clusterroles \"x\" is forbidden: User \"{user}\" cannot get resource");
    let failed = |message: &str| -> Condition {
        let mut condition = condition("Applied", "False", "ApplyFailed");
        condition["message"] = json!(message);
        parse(condition)
    };
    let operator = |name: &str| format!("system:serviceaccount:open-cluster-management:{name}");
    for (message, mends) in [
        (said(&operator("cluster-manager")), true),
        // It may not grant what it does not hold.
        (said(&operator("cluster-manager")).replace("User", "user"), true),
        (said(&operator("cluster-manager-2")), false),
        (said("system:serviceaccount:x:cluster-manager"), false),
        ("no room".to_owned(), false),
    ] {
        let mut hub = healthy();
        let status = read(&mut on_hub(&mut hub).managers)[0].status.as_mut().expect("it is there");
        status.conditions[0] = failed(&message);
        let fixes = planned(&hub);
        assert_eq!(fixes.fixes.len(), usize::from(mends), "{message}: {fixes:?}");
        assert_eq!(fixes.left.len(), usize::from(!mends), "{message}: {fixes:?}");
        // What is elsewhere has other roles.
        read(&mut on_hub(&mut hub).operator).namespace = "operators".to_owned();
        assert!(planned(&hub).fixes.is_empty(), "{message}");
    }
    let mut managed = healthy();
    let status = read(&mut on_managed(&mut managed).klusterlets)[0].status.as_mut().expect("it is there");
    status.conditions[0] = failed(&said(&operator("klusterlet")));
    let fixes = planned(&managed);
    let [fix] = fixes.fixes.as_slice() else { panic!("{fixes:?}") };
    let Change::Apply { side: Side::Managed, plan } = &fix.change else { panic!("{fix:?}") };
    let joined = ocm_core::join::plan(&Default::default(), Default::default(), &Default::default());
    assert_eq!(plan.objects().count(), 2);
    assert!(plan.objects().all(|object| joined.objects().any(|own| own == object)), "{plan:?}");
    assert_eq!(fix.mends, ["OCM2105:c1"]);
}

/// A hub with a policy engine of whose policy the controller says this.
fn engine_of(enforcing: &str, reason: &str) -> Snapshot {
    let mut snapshot = healthy();
    let mut policy = ocm_api::HubPolicy::new("p", Default::default());
    let degraded = if enforcing == "False" { "True" } else { "False" };
    policy.status = Some(parse(json!({"conditions": [
        condition("Loaded", "True", "R"), condition("Enforcing", enforcing, reason),
        condition("Degraded", degraded, reason),
    ]})));
    let hub = on_hub(&mut snapshot);
    hub.policies = Observed::Read(vec![policy]);
    hub.policy_engine = Observed::Read(vec![parse(workload("ocm-policy-engine", "ocm-policy-webhook", "w"))]);
    snapshot
}

#[test]
fn the_api_server_asks_policies_again_where_it_does_not_and_somebody_would_answer() {
    for reason in ["ConfigurationMissing", "FailurePolicyIgnore", "NotAsked", "NotTrusted"] {
        let fixes = planned(&engine_of("False", reason));
        let [fix] = fixes.fixes.as_slice() else { panic!("{reason}: {fixes:?}") };
        assert_eq!(
            (&fix.change, fix.mends.as_slice()),
            (&Change::AskPolicies, &["OCM8103".to_owned()][..]),
            "{reason}"
        );
        assert_eq!(fix.change.side(), Side::Hub);
        assert!(fix.change.sentence().contains("ocm-policy-webhook"), "{}", fix.change.sentence());
    }
    // What is wrong with the policy itself is for whoever has written it, and what nobody answers, for those pods.
    for reason in ["NoAnswer", "Mode", "NotLoaded"] {
        let fixes = planned(&engine_of("False", reason));
        assert!(fixes.fixes.is_empty() && fixes.left[0].why.contains("not the API server"), "{reason}: {fixes:?}");
    }
    assert_eq!(planned(&engine_of("True", "Answered")), Fixes::default());
    let mut silent = engine_of("False", "ConfigurationMissing");
    read(&mut on_hub(&mut silent).policy_engine)[0].replicas = 0;
    let fixes = planned(&silent);
    assert!(fixes.fixes.is_empty() && fixes.left.iter().any(|left| left.why.contains("are not ready")), "{fixes:?}");
}

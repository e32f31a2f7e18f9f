//! Snapshots that somebody has prepared, and clusters of which not all is what it seems: nothing is claimed that is not so,
//! and nothing that is typed next does what it does not say.

mod common;

use common::{FRESH, NOW, OLD, agent, condition, healthy, on_hub, on_managed, parse, read, request, workload};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_checks::chain::Way;
use ocm_checks::finding::{Finding, Id, Next, Severity};
use ocm_checks::judge::{Report, judge};
use ocm_checks::snapshot::{
    AdmissionFacts, Answer, AppliedWorkFacts, Credential, GrpcFacts, KubeconfigFacts, LeaseFacts, NetworkPolicyFacts,
    Observed, Probe, SecretFacts, Snapshot, Trouble,
};
use ocm_core::Reason;
use ocm_core::workload::{Health, Lack, PodCause};
use serde_json::{Value, json};

fn identity(snapshot: &mut Snapshot) -> &mut SecretFacts {
    read(&mut agent(snapshot).identity).as_mut().expect("it is there")
}

fn bootstrap(snapshot: &mut Snapshot) -> &mut KubeconfigFacts {
    let secret = read(&mut agent(snapshot).bootstrap).as_mut().expect("it is there");
    secret.kubeconfig.as_mut().expect("it is there")
}

fn requests(snapshot: &mut Snapshot, requests: &[Value]) {
    on_hub(snapshot).requests = Observed::Read(requests.iter().cloned().map(parse).collect());
}

/// The agent has a certificate since that day.
fn certified(snapshot: &mut Snapshot, day: u8) {
    let (key, mut params) = (rcgen::KeyPair::generate(), rcgen::CertificateParams::new(Vec::new()));
    let (key, params) = (key.as_ref().expect("it is there"), params.as_mut().expect("it is there"));
    params.not_before = rcgen::date_time_ymd(2026, 2, day);
    params.not_after = rcgen::date_time_ymd(2027, 2, day);
    let certificate = params.self_signed(key).expect("it is there").der().to_vec();
    identity(snapshot).certificates.insert("tls.crt".to_owned(), vec![ByteString(certificate)]);
}

fn forbidden() -> Trouble {
    Trouble { reason: Reason::Forbidden, message: "no".to_owned(), rule: None, behind: String::new() }
}

fn refused(reason: Reason) -> Probe {
    Probe {
        klusterlet: "klusterlet".to_owned(),
        credential: Credential::Bootstrap,
        server: "https://hub:6443".to_owned(),
        proxy: None,
        is_own_proxy: false,
        answer: Answer::Refused(Trouble { reason, message: "words".to_owned(), rule: None, behind: String::new() }),
    }
}

/// The cluster waits for acceptance, with this request; none: the hub does not know it.
fn waiting(snapshot: &mut Snapshot, asked: Option<Value>) {
    let hub = on_hub(snapshot);
    match &asked {
        Some(_) => {
            let cluster = &mut read(&mut hub.clusters)[0];
            cluster.spec.hub_accepts_client = Some(false);
            cluster.status = None;
        }
        None => hub.clusters = Observed::Read(Vec::new()),
    }
    (hub.leases, hub.works) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    hub.addons = Observed::Read(Vec::new());
    requests(snapshot, &asked.into_iter().collect::<Vec<_>>());
    agent(snapshot).identity = Observed::Read(None);
}

fn ids(report: &Report) -> Vec<u16> {
    let all = report.findings.iter().flat_map(|finding| std::iter::once(finding).chain(&finding.consequences));
    all.map(|finding| finding.id.0).collect()
}

fn found(snapshot: &Snapshot, id: u16) -> Option<Finding> {
    let report = judge(snapshot, &[]);
    let all = report.findings.iter().flat_map(|finding| std::iter::once(finding).chain(&finding.consequences));
    all.into_iter().find(|finding| finding.id == Id(id)).cloned()
}

fn lines(finding: &Finding) -> Vec<String> {
    let of = |next: &Next| match next {
        Next::Command { line, .. } => line.clone(),
        Next::Text(text) => text.clone(),
    };
    finding.next.iter().map(of).collect()
}

/// What a shell acts upon: everything outside of quotes.
fn unquoted(line: &str) -> String {
    let mut inside = false;
    let mut shown = String::new();
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\'' => inside = !inside,
            // Stands for the next character.
            '\\' if !inside => drop(characters.next()),
            c if !inside => shown.push(c),
            _ => {}
        }
    }
    assert!(!inside, "{line}");
    shown
}

#[test]
fn no_name_becomes_a_command_or_a_flag() {
    const NAME: &str = "x'; touch $(id)`w` | -f & #";
    let broken: [fn(&mut Snapshot); 7] = [
        |s| requests(s, &[request(NAME, "a1", &["Failed"], OLD)]),
        |s| {
            let mut asks = request(NAME, "a1", &[], OLD);
            asks["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::addon("c1", "a").pem().into_bytes()));
            asks["metadata"]["labels"]["open-cluster-management.io/addon-name"] = json!("a");
            requests(s, &[asks]);
        },
        |s| {
            let work = &mut read(&mut on_hub(s).works)[0];
            work.name = NAME.to_owned();
            work.deleting = Some(parse(json!(OLD)));
        },
        |s| {
            let status = read(&mut on_hub(s).addons)[0].status.as_mut().expect("it is there");
            status.conditions = vec![parse(condition("Available", "Unknown", "R"))];
            read(&mut on_hub(s).addons)[0].metadata.name = Some(NAME.to_owned());
        },
        |s| {
            let workload = &mut read(&mut on_hub(s).deployments)[0];
            (workload.name, workload.replicas) = (format!("cluster-manager-{NAME}"), 0);
        },
        |s| {
            let klusterlet = &mut read(&mut on_managed(s).klusterlets)[0];
            klusterlet.spec.deploy_option = parse(json!({"mode": "none"}));
            klusterlet.metadata.name = Some(NAME.to_owned());
            agent(s).klusterlet = NAME.to_owned();
        },
        |s| {
            waiting(s, None);
            (s.managed, s.clusters) = (None, vec![NAME.to_owned()]);
        },
    ];
    for (index, broken) in broken.into_iter().enumerate() {
        let mut snapshot = healthy();
        broken(&mut snapshot);
        let report = judge(&snapshot, &[]);
        let all = report.findings.iter().flat_map(|finding| std::iter::once(finding).chain(&finding.consequences));
        let commands: Vec<String> =
            all.flat_map(lines).filter(|line| line.contains("touch") && line.contains("kubectl")).collect();
        assert!(!commands.is_empty(), "{index}: {:#?}", report.findings);
        for command in commands {
            let from = command.find("kubectl").unwrap_or_default();
            let left = unquoted(&command[from..]);
            assert!(!left.contains(|c| "'\"`$;|&<>(){}*?[]!#~\\".contains(c)), "{command}");
            assert!(!left.contains(" -f"), "{command}");
        }
    }
}

#[test]
fn a_request_of_somebody_else_is_not_called_the_agents() {
    let planted = |created: &str| request("c1-b", "a2", &[], created);
    // Seen from the hub alone.
    let mut snapshot = healthy();
    snapshot.managed = None;
    requests(&mut snapshot, &[planted(FRESH)]);
    let report = judge(&snapshot, &[]);
    assert_eq!(ids(&report), [2206]);
    let finding = &report.findings[0];
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.summary.contains("may be somebody else's"), "{}", finding.summary);
    let next = lines(finding);
    assert!(next.iter().any(|line| line == "kubectl ocm get csr c1 -o wide"), "{next:?}");
    assert!(next.iter().all(|line| !line.contains("accept") || line.contains("--fingerprint sha256:")), "{next:?}");
    // The agent has got its certificate since.
    let mut snapshot = healthy();
    certified(&mut snapshot, 28);
    requests(&mut snapshot, &[planted("2026-02-27T12:00:00Z")]);
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    // One that is younger than the certificate is told of.
    requests(&mut snapshot, &[planted(OLD)]);
    assert_eq!(ids(&judge(&snapshot, &[])), [2206]);
    // An agent whose address was changed does ask anew.
    requests(&mut snapshot, &[planted("2026-02-27T12:00:00Z")]);
    bootstrap(&mut snapshot).server = "https://new:6443".to_owned();
    let finding = found(&snapshot, 2206).expect("it is found");
    assert!(finding.summary.contains("another hub address"), "{}", finding.summary);
}

#[test]
fn agents_that_register_by_aws_need_no_certificate() {
    let mut snapshot = healthy();
    let driver = json!({"registrationDriver": {"authType": "awsirsa"}});
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.registration_configuration = parse(driver);
    read(&mut on_hub(&mut snapshot).managers)[0].spec.registration_configuration =
        parse(json!({"registrationDrivers": [{"authType": "awsirsa"}]}));
    requests(&mut snapshot, &[]);
    identity(&mut snapshot).certificates.clear();
    identity(&mut snapshot).keys.retain(|key, _| !key.starts_with("tls."));
    assert_eq!(judge(&snapshot, &[]).findings, []);
    // Its token has ended, and nobody needs it.
    snapshot.probes = vec![refused(Reason::Unauthorized)];
    read(&mut on_hub(&mut snapshot).leases)[0].renewed = Some(parse(json!(OLD)));
    assert_eq!(ids(&judge(&snapshot, &[])), [3101]);
    let mut incomplete = snapshot.clone();
    identity(&mut incomplete).keys.remove("agent-name");
    let finding = found(&incomplete, 3106).expect("it is found");
    assert!(lines(&finding).iter().all(|line| !line.contains("delete")), "{finding:?}");
    // Without a kubeconfig it registers.
    identity(&mut snapshot).kubeconfig = None;
    assert!(ids(&judge(&snapshot, &[])).contains(&2113), "{:?}", judge(&snapshot, &[]).findings);
    // The hub alone tells by the annotation, and no certificate is missing before the acceptance either.
    let mut pending = healthy();
    waiting(&mut pending, Some(request("c1-a", "a1", &[], OLD)));
    (pending.managed, on_hub(&mut pending).requests) = (None, Observed::Read(Vec::new()));
    assert_eq!(ids(&judge(&pending, &[])), [2202, 2205]);
    let metadata = &mut read(&mut on_hub(&mut pending).clusters)[0].metadata;
    metadata.annotations =
        Some([("agent.open-cluster-management.io/managed-cluster-arn".to_owned(), "arn".to_owned())].into());
    assert_eq!(ids(&judge(&pending, &[])), [2205]);
    assert!(judge(&pending, &[]).clusters[0].headline.starts_with("stopped at step 5"));
}

#[test]
fn what_may_not_be_read_is_not_taken_for_missing() {
    let mut snapshot = healthy();
    waiting(&mut snapshot, None);
    agent(&mut snapshot).identity = Observed::Trouble(forbidden());
    bootstrap(&mut snapshot).server = "https://127.0.0.1:6443".to_owned();
    for reason in [Reason::Unreachable, Reason::Tls, Reason::Unauthorized, Reason::Forbidden] {
        snapshot.probes = vec![refused(reason)];
        let report = judge(&snapshot, &[]);
        assert_eq!(ids(&report), [2201], "{reason}");
        for id in [2108, 2109, 2111, 2112, 2113, 2117] {
            assert!(report.unknown.iter().any(|unknown| unknown.ids.contains(&Id(id))), "{id}");
        }
    }
    snapshot.hub = None;
    let headline = judge(&snapshot, &[]).clusters[0].headline.clone();
    assert!(headline.starts_with("steps 1 to 3 of 9"), "{headline}");
    // Whoever may have a certificate may not need what it registers with.
    let mut snapshot = healthy();
    requests(&mut snapshot, &[]);
    (agent(&mut snapshot).identity, agent(&mut snapshot).bootstrap) =
        (Observed::Trouble(forbidden()), Observed::Read(None));
    assert_eq!(found(&snapshot, 2107).map(|finding| finding.severity), Some(Severity::Warning));
    // A cluster that is well is, whatever its token says.
    let mut snapshot = healthy();
    agent(&mut snapshot).identity = Observed::Read(None);
    bootstrap(&mut snapshot).server = "https://127.0.0.1:6443".to_owned();
    snapshot.probes = vec![refused(Reason::Unauthorized)];
    assert_eq!(ids(&judge(&snapshot, &[])), [3106]);
}

#[test]
fn the_hub_tells_more_than_what_is_seen_of_the_way_to_it() {
    for reason in [Reason::Unreachable, Reason::Tls] {
        let mut snapshot = healthy();
        waiting(&mut snapshot, Some(request("c1-a", "a1", &[], OLD)));
        snapshot.probes = vec![refused(reason)];
        assert_eq!(ids(&judge(&snapshot, &[])), [2205], "{reason}");
        // The agent that has noted its name did not send that one.
        let noted = SecretFacts { agent: Some("a9".to_owned()), ..SecretFacts::default() };
        agent(&mut snapshot).identity = Observed::Read(Some(noted));
        assert!(ids(&judge(&snapshot, &[])).iter().any(|id| [2111, 2112].contains(id)), "{reason}");
    }
    let mut snapshot = healthy();
    waiting(&mut snapshot, None);
    snapshot.probes =
        vec![Probe { proxy: Some("p:3128".to_owned()), is_own_proxy: true, ..refused(Reason::Unreachable) }];
    let finding = found(&snapshot, 2111).expect("it is found");
    assert!(finding.evidence.iter().any(|line| line.contains("p:3128, which this machine's")), "{finding:?}");
}

#[test]
fn what_a_pod_beside_the_agent_sees_counts_more_than_what_this_machine_does() {
    let known = || Probe { answer: Answer::Known, ..refused(Reason::Unreachable) };
    let not_asked = || Probe { answer: Answer::NotAsked(forbidden()), ..known() };
    let mut snapshot = healthy();
    waiting(&mut snapshot, None);
    // Only the pod cannot reach it.
    (snapshot.probes, snapshot.in_cluster) = (vec![known()], vec![refused(Reason::Unreachable)]);
    let finding = found(&snapshot, 2111).expect("it is found");
    let evidence = |line: &str| finding.evidence.iter().any(|known| known.contains(line));
    assert!(evidence("as a pod in open-cluster-management-agent of the managed cluster sees it"), "{finding:?}");
    assert!(evidence("this machine reaches the hub"), "{finding:?}");
    // Only this machine cannot.
    (snapshot.probes, snapshot.in_cluster) = (vec![refused(Reason::Unreachable)], vec![known()]);
    let report = judge(&snapshot, &[]);
    assert!(!ids(&report).contains(&2111), "{:?}", report.findings);
    assert!(report.notes[0].contains("this machine does not: words"), "{:?}", report.notes);
    // Both cannot, for different reasons.
    (snapshot.probes, snapshot.in_cluster) = (vec![refused(Reason::Tls)], vec![refused(Reason::Unreachable)]);
    assert!(found(&snapshot, 2112).is_none());
    let finding = found(&snapshot, 2111).expect("it is found");
    assert!(finding.evidence.iter().any(|line| line.contains("sees something else: words")), "{finding:?}");
    // Where nobody could look from there, this machine's look counts if it found something, and is none if it did not.
    snapshot.in_cluster = vec![not_asked()];
    assert!(found(&snapshot, 2112).is_some());
    snapshot.probes = vec![known()];
    let report = judge(&snapshot, &[]);
    assert!(report.unknown.iter().any(|unknown| unknown.ids.contains(&Id(2111)) && unknown.trouble == forbidden()));
    // An agent that has registered and is silent: nobody asked the hub from here.
    let mut snapshot = healthy();
    read(&mut on_hub(&mut snapshot).leases)[0].renewed = Some(parse(json!(OLD)));
    snapshot.in_cluster = vec![Probe { credential: Credential::Identity, ..refused(Reason::Unreachable) }];
    let report = judge(&snapshot, &[]);
    assert_eq!((report.findings.len(), ids(&report)), (1, vec![2111, 3101]));
    snapshot.in_cluster[0].answer = Answer::Known;
    assert_eq!(ids(&judge(&snapshot, &[])), [3101]);
}

#[test]
fn a_cluster_that_was_only_just_accepted_is_well() {
    let work_agent = |snapshot: &mut Snapshot| read(&mut agent(snapshot).deployments)[1].replicas = 0;
    let connection = |snapshot: &mut Snapshot, reason: Option<&str>| {
        let status = read(&mut on_managed(snapshot).klusterlets)[0].status.as_mut().expect("it is there");
        status.conditions.truncate(1);
        status.conditions.extend(reason.map(|reason| parse(condition("HubConnectionDegraded", "True", reason))));
    };
    let mut snapshot = healthy();
    work_agent(&mut snapshot);
    assert_eq!(ids(&judge(&snapshot, &[])), [2106], "the operator has seen that the agent may use the hub");
    let reasons =
        [None, Some("BootstrapSecretFunctional,HubKubeConfigSecretMissing"), Some("X,HubKubeConfigUnauthorized")];
    for reason in reasons {
        connection(&mut snapshot, reason);
        assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new(), "{reason:?}");
    }
    let mut snapshot = healthy();
    work_agent(&mut snapshot);
    certified(&mut snapshot, 28);
    snapshot.observed = parse(json!("2026-02-28T00:05:30Z"));
    read(&mut on_hub(&mut snapshot).leases)[0].renewed = Some(parse(json!("2026-02-28T00:05:00Z")));
    assert!(!ids(&judge(&snapshot, &[])).contains(&2106), "the certificate is that of a moment ago");
    snapshot.observed = parse(json!("2026-02-28T00:06:30Z"));
    assert!(ids(&judge(&snapshot, &[])).contains(&2106));
    // What is on its way is no error, on the hub neither.
    let coming = || Health::not_yet("0 of 1 pods are ready");
    let mut snapshot = healthy();
    read(&mut on_hub(&mut snapshot).deployments)[0].health = coming();
    read(&mut agent(&mut snapshot).deployments)[0].health = coming();
    let report = judge(&snapshot, &[]);
    assert_eq!(ids(&report), [1106, 2106]);
    assert_eq!(report.at_least(Severity::Error).count(), 0);
}

#[test]
fn clocks_that_differ_are_told_from_silence() {
    let with = |renewed: &str, written: Option<&str>, synced: bool| {
        let mut snapshot = healthy();
        let lease = &mut read(&mut on_hub(&mut snapshot).leases)[0];
        lease.renewed = Some(parse(json!(renewed)));
        lease.written = written.map(|written| parse(json!(written)));
        if !synced {
            let status = read(&mut on_hub(&mut snapshot).clusters)[0].status.as_mut().expect("it is there");
            status.conditions[3] = parse(condition("ManagedClusterConditionClockSynced", "False", "R"));
        }
        let report = judge(&snapshot, &[]);
        let worst = report.findings.first().map(|finding| finding.severity);
        (ids(&report), worst)
    };
    let (error, warning) = (Some(Severity::Error), Some(Severity::Warning));
    // Renewed half a minute ago, as the hub has it, by a clock that is an hour behind.
    assert_eq!(with(OLD, Some(FRESH), false), (vec![3103], error));
    assert_eq!(with("2026-03-01T11:57:30Z", Some(FRESH), true), (vec![3103], warning));
    assert_eq!(with("2026-03-01T11:59:00Z", Some(FRESH), true), (vec![], None));
    // Nobody has renewed it for an hour.
    assert_eq!(with(OLD, Some(OLD), false), (vec![3101], error));
    assert_eq!(with(OLD, None, false), (vec![3101], error));
    // A clock that is ahead hides the silence, unless the hub tells when it was.
    assert_eq!(with("2026-03-01T12:10:00Z", Some(FRESH), true), (vec![3103], error));
    assert_eq!(with("2026-03-01T12:10:00Z", None, true), (vec![3103], error));
    assert_eq!(with("2026-03-01T12:02:00Z", None, true), (vec![3103], warning));
    assert!(with("2026-03-01T12:10:00Z", Some(OLD), true).0.contains(&3101));
    // The condition is behind what the lease tells.
    assert_eq!(with(FRESH, Some(FRESH), false), (vec![], None));
}

#[test]
fn hosted_agents_and_hubs_are_elsewhere() {
    let mut snapshot = healthy();
    snapshot.clusters = vec!["c1".to_owned()];
    let managed = on_managed(&mut snapshot);
    (managed.klusterlets, managed.leases) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    managed.agents.clear();
    read(&mut managed.operator).health = Health::stuck("it does not exist");
    let report = judge(&snapshot, &[]);
    assert_eq!(report.findings, []);
    assert!(report.clusters[0].headline.starts_with("joined and available"), "{}", report.clusters[0].headline);
    // Where the agent is silent, that is what is wrong.
    read(&mut on_hub(&mut snapshot).leases)[0].renewed = Some(parse(json!(OLD)));
    let report = judge(&snapshot, &[]);
    let errors: Vec<Id> = report.at_least(Severity::Error).map(|finding| finding.id).collect();
    assert_eq!(errors, [Id(3101)]);

    let mut snapshot = healthy();
    let hub = on_hub(&mut snapshot);
    (hub.managers, hub.deployments) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    (hub.webhooks, hub.ca_bundle) = (Observed::NotAsked, Observed::Read(None));
    read(&mut hub.operator).health = Health::stuck("it does not exist");
    assert_eq!(judge(&snapshot, &[]).findings, []);
    read(&mut on_hub(&mut snapshot).leases)[0].renewed = Some(parse(json!(OLD)));
    let report = judge(&snapshot, &[]);
    let errors: Vec<Id> = report.at_least(Severity::Error).map(|finding| finding.id).collect();
    assert_eq!(errors, [Id(3101)], "{:#?}", report.findings);
}

#[test]
fn what_is_left_of_former_times_is_not_missed() {
    let with = |related: &[&str]| {
        let mut snapshot = healthy();
        let status = read(&mut on_hub(&mut snapshot).managers)[0].status.as_mut().expect("it is there");
        for name in ["cluster-manager-grpc-server", "cluster-manager-work-webhook"] {
            let mut former = status.generations[0].clone();
            former.name = name.to_owned();
            status.generations.push(former);
        }
        let of =
            |name: &&str| parse(json!({"group": "apps", "version": "v1", "resource": "deployments", "name": name}));
        status.related_resources = related.iter().map(of).collect();
        found(&snapshot, 1106).map(|finding| finding.summary)
    };
    assert_eq!(with(&["cluster-manager-registration-controller"]), None);
    assert!(
        with(&["cluster-manager-grpc-server"]).is_some_and(|text| text.contains("grpc-server of the hub is missing"))
    );
    // Of a hub that says nothing, what every hub has.
    assert!(with(&[]).is_some_and(|text| text.contains("work-webhook of the hub is missing")));

    let held = |renewed: Option<&str>, seconds: Option<i32>| {
        let mut snapshot = healthy();
        waiting(&mut snapshot, None);
        let lease = LeaseFacts {
            name: "registration-agent-lock".to_owned(),
            renewed: renewed.map(|renewed| parse(json!(renewed))),
            seconds,
            gone: Some("p".to_owned()),
            ..LeaseFacts::default()
        };
        agent(&mut snapshot).leases = Observed::Read(vec![lease]);
        found(&snapshot, 2116).is_some()
    };
    assert!(held(Some(FRESH), None) && held(Some("2026-03-01T11:57:30Z"), None));
    assert!(!held(Some(OLD), None) && !held(None, None) && !held(Some("2026-03-01T11:57:30Z"), Some(60)));
}

#[test]
fn no_time_is_too_early_or_too_late() {
    for observed in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        for other in [Timestamp::MIN, Timestamp::MAX] {
            let mut snapshot = healthy();
            snapshot.observed = Time(observed);
            requests(&mut snapshot, &[request("c1-a", "a1", &[], NOW)]);
            let cluster = &mut read(&mut on_hub(&mut snapshot).clusters)[0];
            cluster.spec.lease_duration_seconds = Some(i32::MAX);
            let lease = &mut read(&mut on_hub(&mut snapshot).leases)[0];
            (lease.renewed, lease.written) = (Some(Time(other)), Some(Time(observed)));
            judge(&snapshot, &[]);
            lease_of(&mut snapshot).written = None;
            judge(&snapshot, &[]);
        }
    }
}

fn lease_of(snapshot: &mut Snapshot) -> &mut LeaseFacts {
    &mut read(&mut on_hub(snapshot).leases)[0]
}

#[test]
fn credentials_in_words_of_others_are_not_told() {
    let words = "canary: Get \"https://me:s3cr3t@hub\": Bearer s3cr3t0 abcdef.0123456789s3cr3t";
    let mut snapshot = healthy();
    let status = read(&mut on_managed(&mut snapshot).klusterlets)[0].status.as_mut().expect("it is there");
    status.conditions[0] = parse(condition("Applied", "False", "R"));
    status.conditions[0].message = words.to_owned();
    read(&mut agent(&mut snapshot).deployments)[0].health = Health::stuck(words);
    let work = &mut read(&mut on_hub(&mut snapshot).works)[0];
    work.conditions = vec![parse(condition("Applied", "False", "R"))];
    work.failed = vec![words.to_owned()];
    let text = serde_json::to_string(&judge(&snapshot, &[])).expect("it is text");
    assert!(text.contains("canary") && !text.contains("s3cr3t"), "{text}");
    let failure = ocm_core::Failure::other(words);
    assert!(!Trouble::of(&failure, None).message.contains("s3cr3t"));
}

#[test]
fn a_denial_is_not_talked_away() {
    let denied = request("c1-a", "a1", &["Denied"], OLD);
    let mut snapshot = healthy();
    waiting(&mut snapshot, Some(denied.clone()));
    let next = lines(&found(&snapshot, 2208).expect("it is found"));
    assert_eq!(next[0], "kubectl ocm get csr c1 -o wide");
    assert!(next.iter().all(|line| !line.starts_with("kubectl delete") && !line.contains(" accept ")), "{next:?}");
    // Somebody else was denied, and the agent waits with its own key.
    requests(&mut snapshot, &[request("c1-b", "a2", &[], "2026-03-01T10:00:00Z"), denied]);
    assert_eq!(ids(&judge(&snapshot, &[])), [2205]);
    // Ten requests that somebody has planted on a healthy cluster are no reason to delete the agent's own.
    let mut snapshot = healthy();
    let planted: Vec<Value> = (0..10).map(|number| request(&format!("x{number}"), "a1", &[], OLD)).collect();
    requests(&mut snapshot, &planted);
    let next = lines(&found(&snapshot, 2209).expect("it is found"));
    assert!(next.iter().all(|line| !line.starts_with("kubectl delete")), "{next:?}");
}

#[test]
fn keys_are_told_apart_whatever_name_they_carry() {
    let mut snapshot = healthy();
    waiting(&mut snapshot, Some(request("c1-a", "a1", &[], OLD)));
    let mut same_name = request("c1-b", "a1", &[], FRESH);
    same_name["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::agent("c1", "a1").pem().into_bytes()));
    requests(&mut snapshot, &[request("c1-a", "a1", &[], OLD), same_name]);
    let finding = found(&snapshot, 2203).expect("it is found");
    assert_eq!((finding.severity, finding.objects.len()), (Severity::Error, 2), "{finding:?}");
    // And no line that would accept the newest of them as it is.
    for id in [2203, 2205] {
        let next = lines(&found(&snapshot, id).expect("it is found"));
        assert!(next.iter().all(|line| !line.contains("accept") || line.contains("--fingerprint")), "{next:?}");
    }
    // A cluster that is well goes on.
    let pending = [request("c1-a", "a1", &[], OLD), request("c1-b", "a2", &[], OLD)];
    let mut snapshot = healthy();
    requests(&mut snapshot, &pending);
    assert_eq!(found(&snapshot, 2203).map(|finding| finding.severity), Some(Severity::Warning));
    on_hub(&mut snapshot).dropped_requests.insert("c1".to_owned(), 70);
    let finding = found(&snapshot, 2203).expect("it is found");
    assert!(finding.evidence.iter().any(|line| line.starts_with("70 more requests")), "{finding:?}");
}

#[test]
fn a_hosted_hub_is_not_installed_a_second_time() {
    let mut snapshot = healthy();
    waiting(&mut snapshot, None);
    let hub = on_hub(&mut snapshot);
    (hub.managers, hub.serves_clusters) = (Observed::Read(Vec::new()), Some(true));
    let finding = found(&snapshot, 1101).expect("it is found");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.next.iter().all(|next| matches!(next, Next::Text(_))), "{finding:?}");
    assert_ne!(judge(&snapshot, &[]).findings[0].id, Id(1101), "it explains nothing");
    on_hub(&mut snapshot).serves_clusters = Some(false);
    assert_eq!(judge(&snapshot, &[]).findings[0].id, Id(1101));
}

/// The pods of another hub run beside those of this one: its ClusterManager is in mode Hosted, and is listed first.
fn hosts_another(snapshot: &mut Snapshot) {
    let hub = on_hub(snapshot);
    let mut another = read(&mut hub.managers)[0].clone();
    another.metadata.name = Some("another".to_owned());
    another.spec.deploy_option = parse(json!({"mode": "Hosted"}));
    let applied = &mut another.status.as_mut().expect("it is there").generations[0];
    (applied.namespace, applied.name) = (Some("another".to_owned()), "another-registration-controller".to_owned());
    read(&mut hub.managers).insert(0, another);
    let name = "another-registration-controller";
    read(&mut hub.deployments).push(parse(workload("another", name, "registration")));
}

/// The ClusterManager offers the driver grpc behind a load balancer, and has the server for it.
fn offers_grpc(snapshot: &mut Snapshot, manager: usize, namespace: &str) {
    let hub = on_hub(snapshot);
    let manager = &mut read(&mut hub.managers)[manager];
    manager.spec.registration_configuration =
        parse(json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]}));
    manager.spec.server_configuration =
        parse(json!({"endpointsExposure": [{"protocol": "grpc", "grpc": {"type": "loadBalancer"}}]}));
    let name = format!("{}-grpc-server", manager.metadata.name.as_deref().expect("it is there"));
    read(&mut hub.deployments).push(parse(workload(namespace, &name, "registration")));
}

#[test]
fn a_hub_is_not_taken_for_another_one_whose_pods_run_beside_its_own() {
    let mut snapshot = healthy();
    hosts_another(&mut snapshot);
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    // What is missing in the namespace of one is not made up for by what is in that of the other.
    let mut missing = snapshot.clone();
    read(&mut on_hub(&mut missing).deployments).last_mut().expect("it is there").namespace =
        "open-cluster-management-hub".to_owned();
    let finding = found(&missing, 1106).expect("it is found");
    assert_eq!(finding.objects[0].to_string(), "Deployment another/another-registration-controller (hub)");
    // Which driver there is, is a matter of the hub that the agent registers with.
    let (own, hub) = (1, "open-cluster-management-hub");
    offers_grpc(&mut snapshot, own, hub);
    let mut by_grpc = snapshot.clone();
    read(&mut on_managed(&mut by_grpc).klusterlets)[0].spec.registration_configuration =
        parse(json!({"registrationDriver": {"authType": "grpc"}}));
    assert!(found(&by_grpc, 2118).is_none());
    // Nor does the other's load balancer say anything of this one's.
    offers_grpc(&mut snapshot, 0, "another");
    let waits = |namespace: &str, manager: &str| {
        parse(json!({"namespace": namespace, "name": format!("{manager}-grpc-server"), "type": "LoadBalancer"}))
    };
    on_hub(&mut snapshot).grpc_service = Observed::Read(Some(waits("another", "another")));
    let told = |snapshot: &Snapshot| {
        let report = judge(snapshot, &[]);
        let of_balancer = report.findings.into_iter().filter(|finding| finding.id == Id(1112));
        of_balancer.flat_map(|finding| finding.objects).map(|object| object.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(told(&snapshot), ["Service another/another-grpc-server (hub)"]);
    on_hub(&mut snapshot).grpc_service = Observed::Read(Some(waits(hub, "cluster-manager")));
    assert_eq!(told(&snapshot), ["Service open-cluster-management-hub/cluster-manager-grpc-server (hub)"]);
}

#[test]
fn what_is_wrong_with_another_hub_explains_nothing_of_this_one() {
    type Breaks = fn(&mut Snapshot);
    let breaks: [(&[u16], Breaks); 6] = [
        (&[1104, 1114], |s| {
            let status = read(&mut on_hub(s).managers)[0].status.as_mut().expect("it is there");
            status.conditions[0] = parse(condition("Applied", "False", "R"));
        }),
        (&[1106, 1114], |s| {
            let another = read(&mut on_hub(s).deployments).last_mut().expect("it is there");
            another.health = Health::stuck("0 of 1 pods are ready; no node");
        }),
        (&[1106, 1114], |s| drop(read(&mut on_hub(s).deployments).pop())),
        (&[1111, 1114], |s| {
            read(&mut on_hub(s).managers)[0].metadata.deletion_timestamp = Some(parse(json!(OLD)));
        }),
        (&[1114, 1115], |s| {
            on_hub(s).terminating = Observed::Read(vec![parse(json!({"name": "another", "since": OLD}))]);
        }),
        // What nobody could read is not said to be missing.
        (&[1114], |s| {
            read(&mut on_hub(s).deployments).pop();
            on_hub(s).unread_namespaces = vec!["another".to_owned()];
        }),
    ];
    let roots =
        |snapshot: &Snapshot| judge(snapshot, &[]).findings.iter().map(|finding| finding.id.0).collect::<Vec<_>>();
    let mut broken = healthy();
    hosts_another(&mut broken);
    read(&mut on_hub(&mut broken).conversions)[0].has_endpoint = false;
    for (number, (wanted, bad)) in breaks.into_iter().enumerate() {
        let mut snapshot = broken.clone();
        bad(&mut snapshot);
        assert_eq!(roots(&snapshot), wanted, "{number}");
    }
    // The same of the hub's own explains it.
    let mut leaving = broken.clone();
    read(&mut on_hub(&mut leaving).managers)[1].metadata.deletion_timestamp = Some(parse(json!(OLD)));
    assert_eq!(roots(&leaving), [1111]);
    // Nor is it told twice of the other one, which its operator has not got to know.
    let mut unseen = broken.clone();
    let another = &mut read(&mut on_hub(&mut unseen).managers)[0];
    (another.metadata.deletion_timestamp, another.status) = (Some(parse(json!(OLD))), None);
    assert_eq!(roots(&unseen), [1111, 1114]);
    // A condition of the other one hides none of the hub's own.
    let mut behind = broken;
    let managers = read(&mut on_hub(&mut behind).managers);
    managers[0].status.as_mut().expect("it is there").conditions[0] = parse(condition("Applied", "False", "R"));
    managers[1].metadata.generation = Some(2);
    let report = judge(&behind, &[]);
    let seen = |finding: &Finding| finding.summary.contains("latest change of ClusterManager cluster-manager");
    assert!(report.findings.iter().any(seen), "{report:#?}");
}

#[test]
fn the_cluster_manager_of_another_hub_suppresses_nothing_of_this_one() {
    let mut snapshot = healthy();
    hosts_another(&mut snapshot);
    read(&mut on_hub(&mut snapshot).conversions)[0].has_endpoint = false;
    for (manager, wanted) in [(0, (1, 0)), (1, (0, 1))] {
        let mut snapshot = snapshot.clone();
        read(&mut on_hub(&mut snapshot).managers)[manager].metadata.annotations =
            Some([("kubectl-ocm/suppress".to_owned(), "OCM1114=2026-12-31,known".to_owned())].into());
        let report = judge(&snapshot, &[]);
        assert_eq!((report.findings.len(), report.suppressed.len()), wanted, "{report:#?}");
    }
}

#[test]
fn without_the_right_to_read_clusters_nothing_is_said_of_them() {
    let mut snapshot = healthy();
    (snapshot.managed, snapshot.clusters) = (None, vec!["c1".to_owned()]);
    on_hub(&mut snapshot).clusters = Observed::Trouble(forbidden());
    let report = judge(&snapshot, &[]);
    assert!(
        report.clusters[0].headline.starts_with("where it stands cannot be told"),
        "{}",
        report.clusters[0].headline
    );
    let mut snapshot = healthy();
    waiting(&mut snapshot, Some(request("c1-a", "a1", &[], OLD)));
    (snapshot.managed, on_hub(&mut snapshot).requests) = (None, Observed::Trouble(forbidden()));
    let headline = judge(&snapshot, &[]).clusters[0].headline.clone();
    assert!(headline.starts_with("stopped at step 5 of 9"), "{headline}");
}

#[test]
fn add_ons_that_report_nothing_or_do_not_exist_are_in_no_trouble() {
    let asks = |name: &str, addon: &str, conditions: &[&str], created: &str| {
        let mut asks = request(name, "a1", conditions, created);
        asks["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::addon("c1", addon).pem().into_bytes()));
        asks["spec"]["username"] = json!("system:open-cluster-management:c1:a1");
        asks["metadata"]["labels"]["open-cluster-management.io/addon-name"] = json!(addon);
        asks
    };
    let errors = |snapshot: &Snapshot| -> Vec<u16> {
        judge(snapshot, &[]).at_least(Severity::Error).map(|finding| finding.id.0).collect()
    };
    let mut snapshot = healthy();
    requests(&mut snapshot, &[asks("x", "none", &[], OLD)]);
    assert_eq!((errors(&snapshot), ids(&judge(&snapshot, &[]))), (vec![], vec![5201]));
    // One that was left behind.
    requests(&mut snapshot, &[asks("x", "a", &[], OLD), asks("y", "a", &["Approved", "Issued"], FRESH)]);
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    requests(&mut snapshot, &[asks("x", "a", &[], OLD)]);
    assert_eq!(errors(&snapshot), [5201]);
    let mut snapshot = healthy();
    let addon = &mut read(&mut on_hub(&mut snapshot).addons)[0];
    addon.status.as_mut().expect("it is there").conditions.clear();
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    let addon = &mut read(&mut on_hub(&mut snapshot).addons)[0];
    addon.metadata.deletion_timestamp = Some(parse(json!(FRESH)));
    addon.status.as_mut().expect("it is there").conditions = vec![parse(condition("Available", "False", "R"))];
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new(), "it is leaving");
}

/// As this machine sees the hub, whose agent registers.
fn seen_from_here(snapshot: &mut Snapshot, reason: Reason) {
    waiting(snapshot, None);
    snapshot.probes = vec![refused(reason)];
}

#[test]
fn what_this_machine_does_not_reach_explains_no_agents_whose_image_cannot_be_pulled() {
    for (reason, id) in [(Reason::Unreachable, 2111), (Reason::Tls, 2112)] {
        let mut snapshot = healthy();
        seen_from_here(&mut snapshot, reason);
        assert_eq!(found(&snapshot, id).map(|finding| finding.severity), Some(Severity::Error));
        let pulled = Lack { cause: Some(PodCause::ImagePull), ..Lack::new("pod x: image a/b:c cannot be pulled") };
        read(&mut agent(&mut snapshot).deployments)[0].health = Health::Stuck(pulled);
        let report = judge(&snapshot, &[]);
        assert_eq!((report.findings[0].id, report.findings[0].severity), (Id(2106), Severity::Error), "{report:#?}");
        assert_eq!(found(&snapshot, id).map(|finding| finding.severity), Some(Severity::Warning));
        // A pod beside the agent sees what the agent would.
        snapshot.in_cluster = snapshot.probes.clone();
        assert_eq!(found(&snapshot, id).map(|finding| finding.severity), Some(Severity::Error));
    }
}

#[test]
fn sites_that_are_known_to_be_silent_have_nothing_in_common() {
    let mut snapshot = healthy();
    (snapshot.managed, snapshot.clusters) = (None, Vec::new());
    let hub = on_hub(&mut snapshot);
    let (first, lease) = (read(&mut hub.clusters)[0].clone(), read(&mut hub.leases)[0].clone());
    let names: Vec<String> = (0..6).map(|number| format!("site-{number}")).collect();
    let silent = names.iter().map(|name| LeaseFacts {
        namespace: name.clone(),
        renewed: Some(parse(json!(OLD))),
        ..lease.clone()
    });
    hub.leases = Observed::Read(silent.collect());
    (hub.works, hub.addons) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    let known = |is_known: bool| {
        let clusters = names.iter().map(|name| {
            let mut one = first.clone();
            one.metadata.name = Some(name.clone());
            let said = ("kubectl-ocm/suppress".to_owned(), "OCM3101=2099-01-01,off for the winter".to_owned());
            one.metadata.annotations = is_known.then(|| [said].into());
            one
        });
        Observed::Read(clusters.collect())
    };
    hub.clusters = known(false);
    assert_eq!(judge(&snapshot, &[]).findings[0].id, Id(3108));
    on_hub(&mut snapshot).clusters = known(true);
    assert_eq!(judge(&snapshot, &[]).findings, []);
}

#[test]
fn works_of_which_only_metadata_was_read_are_not_said_to_be_applied() {
    let mut snapshot = healthy();
    let skips = |snapshot: &Snapshot| {
        let report = judge(snapshot, &[]);
        assert_eq!(report.findings, []);
        let skipped = report.skipped.iter().flat_map(|skipped| &skipped.ids);
        skipped.filter(|id| [5101, 5102].contains(&id.0)).count()
    };
    assert_eq!(skips(&snapshot), 0);
    read(&mut on_hub(&mut snapshot).works)[0].has_status = false;
    assert_eq!(skips(&snapshot), 2);
}

#[test]
fn an_agent_has_a_moment_to_ask_and_the_proxy_is_dialled_first() {
    let mut snapshot = healthy();
    waiting(&mut snapshot, Some(request("c1-a", "a1", &[], OLD)));
    requests(&mut snapshot, &[]);
    assert!(found(&snapshot, 2202).is_some());
    let now: Timestamp = NOW.parse().expect("a time");
    let created = now - jiff::SignedDuration::from_secs(3);
    read(&mut on_hub(&mut snapshot).clusters)[0].metadata.creation_timestamp = Some(Time(created));
    assert_eq!(found(&snapshot, 2202), None);

    let mut snapshot = healthy();
    let alias = parse(json!({"ip": "192.0.2.1", "hostname": "proxy.example"}));
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.hub_api_server_host_alias = Some(alias);
    assert!(found(&snapshot, 2120).is_some(), "nobody dials it");
    bootstrap(&mut snapshot).proxy = Some("http://proxy.example:3128".to_owned());
    assert_eq!(found(&snapshot, 2120), None);
}

#[test]
fn other_operators_beside_the_agents_may_be_administrators() {
    let mut snapshot = healthy();
    let admin = |name: &str| ocm_checks::snapshot::AdminFacts {
        binding: "b".to_owned(),
        namespace: "open-cluster-management".to_owned(),
        name: name.to_owned(),
    };
    on_managed(&mut snapshot).admins = Observed::Read(vec![admin("backup-operator"), admin("cluster-manager")]);
    assert_eq!(judge(&snapshot, &[]).findings, []);
    on_managed(&mut snapshot).admins = Observed::Read(vec![admin("klusterlet")]);
    assert!(found(&snapshot, 7106).is_some());
}

#[test]
fn one_name_on_two_hubs_is_nobodys_harm() {
    let mut snapshot = healthy();
    let managed = on_managed(&mut snapshot);
    let (mut second, mut side) = (read(&mut managed.klusterlets)[0].clone(), managed.agents[0].clone());
    second.metadata.name = Some("second".to_owned());
    second.spec.namespace = Some("second".to_owned());
    (side.klusterlet, side.namespace) = ("second".to_owned(), "second".to_owned());
    let other = read(&mut side.bootstrap).as_mut().and_then(|secret| secret.kubeconfig.as_mut()).expect("it is there");
    other.server = "https://other:6443".to_owned();
    other.authorities = vec![ByteString(b"another".to_vec())];
    read(&mut managed.klusterlets).push(second);
    managed.agents.push(side);
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    // The same hub is another matter.
    on_managed(&mut snapshot).agents[1].bootstrap = on_managed(&mut snapshot).agents[0].bootstrap.clone();
    assert_eq!(ids(&judge(&snapshot, &[])), [2104]);
}

#[test]
fn what_hosted_agents_have_applied_is_looked_at_where_it_is() {
    let work = |evicting: Option<&str>| {
        let (name, work, agent) = ("h-w".to_owned(), "w".to_owned(), "elsewhere-uid".to_owned());
        let evicting = evicting.map(|time| parse(json!(time)));
        Observed::Read(vec![AppliedWorkFacts { name, work, agent, evicting, deleting: None }])
    };
    let left_out = |snapshot: &Snapshot| {
        let skipped = judge(snapshot, &[]).skipped.into_iter().find(|skipped| skipped.ids.contains(&Id(5104)));
        skipped.map(|skipped| skipped.why).unwrap_or_default()
    };
    // On the managed cluster there is no Klusterlet, and the agent is none that has gone.
    let mut snapshot = healthy();
    let managed = on_managed(&mut snapshot);
    (managed.klusterlets, managed.agents) = (Observed::Read(Vec::new()), Vec::new());
    managed.applied_works = work(Some(OLD));
    let finding = found(&snapshot, 5104).expect("it is found");
    assert!(
        finding.evidence.iter().any(|line| line.ends_with("or is gone, and then nothing is removed")),
        "{finding:#?}"
    );
    on_managed(&mut snapshot).applied_works = work(None);
    assert!(left_out(&snapshot).contains("runs on another cluster"), "{}", left_out(&snapshot));
    // On the cluster on which the agent runs, what it applies is not seen; what another one has left there is.
    let mut hosting = healthy();
    read(&mut on_managed(&mut hosting).klusterlets)[0].spec.deploy_option = parse(json!({"mode": "Hosted"}));
    assert!(left_out(&hosting).contains("on the clusters that they manage"), "{}", left_out(&hosting));
    on_managed(&mut hosting).applied_works = work(None);
    assert!(found(&hosting, 5104).is_some());
}

/// A second agent of the managed cluster, which registers as `c2` at another hub.
fn of_two_hubs(snapshot: &mut Snapshot) {
    let managed = on_managed(snapshot);
    let (mut second, mut side) = (read(&mut managed.klusterlets)[0].clone(), managed.agents[0].clone());
    (second.metadata.name, second.metadata.uid) = (Some("second".to_owned()), Some("second-uid".to_owned()));
    (second.spec.namespace, second.spec.cluster_name) = (Some("second".to_owned()), Some("c2".to_owned()));
    (side.klusterlet, side.namespace) = ("second".to_owned(), "second".to_owned());
    read(&mut side.identity).as_mut().expect("it is there").cluster = Some("c2".to_owned());
    for secret in [&mut side.bootstrap, &mut side.identity] {
        let kubeconfig = read(secret).as_mut().and_then(|secret| secret.kubeconfig.as_mut()).expect("it is there");
        kubeconfig.server = "https://other:6443".to_owned();
        kubeconfig.authorities = vec![ByteString(b"another".to_vec())];
    }
    read(&mut managed.klusterlets).push(second);
    managed.agents.push(side);
}

#[test]
fn an_agent_of_another_hub_is_left_out_where_nobody_names_its_cluster() {
    let mut snapshot = healthy();
    of_two_hubs(&mut snapshot);
    let all = judge(&snapshot, &[]);
    // As without a name, where the managed cluster tells which clusters there are.
    (snapshot.clusters, snapshot.unnamed) = (vec!["c1".to_owned(), "c2".to_owned()], true);
    for report in [all, judge(&snapshot, &[])] {
        let names: Vec<&str> = report.clusters.iter().map(|standing| standing.name.as_str()).collect();
        assert_eq!((ids(&report), names), (vec![], vec!["c1"]));
        let note =
            "c2 is left out: its agent registers at another hub, https://other:6443; name it to have it looked at";
        assert_eq!(report.notes, [note]);
    }
    // Whoever names it is told, and so is everybody if the hub has something of it, or if no agent is of this hub.
    let told = |snapshot: &Snapshot| (ids(&judge(snapshot, &[])).contains(&2110), judge(snapshot, &[]).notes.len());
    let mut named = snapshot.clone();
    named.unnamed = false;
    assert_eq!(told(&named), (true, 0));
    let causes = judge(&named, &[]).findings;
    assert_eq!(causes.iter().map(|finding| finding.id.0).collect::<Vec<_>>(), [2110], "{causes:#?}");
    let mut known = snapshot.clone();
    let mut second = read(&mut on_hub(&mut known).clusters)[0].clone();
    second.metadata.name = Some("c2".to_owned());
    read(&mut on_hub(&mut known).clusters).push(second);
    assert_eq!(told(&known), (true, 0));
    // Who may not see what the hub has of it is told of it, too.
    let (mut without_clusters, mut without_requests) = (snapshot.clone(), snapshot.clone());
    on_hub(&mut without_clusters).clusters = Observed::Trouble(forbidden());
    on_hub(&mut without_requests).requests = Observed::Trouble(forbidden());
    for unread in [without_clusters, without_requests] {
        let report = judge(&unread, &[]);
        assert_eq!((report.clusters.len(), report.notes), (2, vec![]));
    }
    let mut elsewhere = snapshot;
    let kubeconfig = on_managed(&mut elsewhere).agents[1].bootstrap.clone();
    agent(&mut elsewhere).bootstrap = kubeconfig;
    (on_hub(&mut elsewhere).requests, on_hub(&mut elsewhere).leases) =
        (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    assert_eq!(told(&elsewhere), (true, 0));
}

#[test]
fn an_agent_that_has_turned_to_another_hub_of_its_list_is_well() {
    let list = |names: &[&str]| {
        let names: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        parse(json!({
            "featureGates": [{"feature": "MultipleHubs", "mode": "Enable"}],
            "bootstrapKubeConfigs": {"type": "LocalSecrets", "localSecretsConfig": {
                "hubConnectionTimeoutSeconds": 600, "kubeConfigSecrets": names}}}))
    };
    let both = ["bootstrap-hub-kubeconfig", "bootstrap-hub-kubeconfig-2"];
    let mut snapshot = healthy();
    let first = bootstrap(&mut snapshot);
    first.server = "https://first:6443".to_owned();
    first.authorities = vec![ByteString(b"another".to_vec())];
    assert_ne!(ids(&judge(&snapshot, &[])), Vec::<u16>::new(), "it has one hub");
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.registration_configuration = list(&both);
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    // A hub that it has not come to waits for nobody.
    let mut away = snapshot.clone();
    let there = read(&mut agent(&mut away).identity).as_mut().and_then(|secret| secret.kubeconfig.as_mut());
    let there = there.expect("it is there");
    (there.server, there.authorities) = ("https://second:6443".to_owned(), vec![ByteString(b"third".to_vec())]);
    assert!(judge(&away, &[]).clusters[0].headline.starts_with("joined and available"), "the hub hears from it");
    lease_of(&mut away).renewed = Some(parse(json!(OLD)));
    assert!(found(&away, 3101).is_some(), "a hub that it has left misses it");
    // That one has not come to the hub that was looked at.
    (on_hub(&mut away).requests, on_hub(&mut away).leases) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    let accepted = parse(condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"));
    read(&mut on_hub(&mut away).clusters)[0].status.as_mut().expect("it is there").conditions = vec![accepted];
    let report = judge(&away, &[]);
    assert_eq!(ids(&report), Vec::<u16>::new());
    let headline = "its agent comes to this hub only when https://second:6443 does not answer";
    assert_eq!((report.clusters[0].way, report.clusters[0].headline.as_str()), (Way::Elsewhere, headline));
    // The Secret of its first hub is missed as ever, unless the list does without it.
    agent(&mut snapshot).bootstrap = Observed::Read(None);
    assert!(found(&snapshot, 2107).is_some());
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.registration_configuration = list(&["one", "two"]);
    assert!(found(&snapshot, 2107).is_none());
    // A list that was emptied is none.
    let mut snapshot = healthy();
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.registration_configuration = parse(json!({
        "featureGates": [{"feature": "MultipleHubs", "mode": "Disable"}],
        "bootstrapKubeConfigs": {"type": "None", "localSecretsConfig": {"kubeConfigSecrets": []}}}));
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
}

#[test]
fn a_list_of_hubs_counts_where_the_operator_takes_it() {
    let registration = |gates: Value, kind: &str, names: &[&str]| {
        let names: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        parse(json!({"featureGates": gates,
            "bootstrapKubeConfigs": {"type": kind, "localSecretsConfig": {"kubeConfigSecrets": names}}}))
    };
    let on = || json!([{"feature": "MultipleHubs", "mode": "Enable"}]);
    let told = |registration| {
        let mut snapshot = healthy();
        waiting(&mut snapshot, None);
        read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.registration_configuration = registration;
        found(&snapshot, 2122).map(|finding| (finding.severity, finding.evidence[0].clone()))
    };
    let both = ["one", "two"];
    assert_eq!(told(registration(on(), "LocalSecrets", &both)), None);
    let short = |count| {
        Some((
            Severity::Error,
            format!("Secrets that are listed: {count}; the agent does not start with less than two"),
        ))
    };
    assert_eq!(told(registration(on(), "LocalSecrets", &["one"])), short(1));
    assert_eq!(told(registration(on(), "LocalSecrets", &[])), short(0));
    assert_eq!(told(registration(on(), "None", &both)), short(0));
    assert_eq!(told(parse(json!({"featureGates": on()}))), short(0));
    // No gate of that name: AllAlpha is none that the operator knows.
    let off = Some((Severity::Warning, "the feature gate MultipleHubs is off".to_owned()));
    assert_eq!(told(registration(json!([]), "LocalSecrets", &both)), off);
    assert_eq!(told(registration(json!([{"feature": "AllAlpha", "mode": "Enable"}]), "LocalSecrets", &both)), off);
    // What it registers with is then the usual Secret, and missed.
    let mut snapshot = healthy();
    waiting(&mut snapshot, None);
    agent(&mut snapshot).bootstrap = Observed::Read(None);
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.registration_configuration =
        registration(json!([]), "LocalSecrets", &both);
    assert!(found(&snapshot, 2107).is_some());
}

#[test]
fn namespaces_of_others_explain_nothing_of_an_agent() {
    let gone = |name: &str| parse(json!({"name": name, "since": OLD}));
    let mut snapshot = healthy();
    let names = ["open-cluster-management-observability", "open-cluster-management-hub"];
    on_managed(&mut snapshot).terminating = Observed::Read(names.iter().map(|name| gone(name)).collect());
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    // That of add-ons is told, and is not why the agent does not run.
    on_managed(&mut snapshot).terminating = Observed::Read(vec![gone("open-cluster-management-agent-addon")]);
    read(&mut agent(&mut snapshot).deployments)[0].replicas = 0;
    let causes = |snapshot: &Snapshot| -> Vec<u16> {
        judge(snapshot, &[]).findings.iter().map(|finding| finding.id.0).collect()
    };
    assert_eq!(causes(&snapshot), [2106, 6104]);
    on_managed(&mut snapshot).terminating = Observed::Read(vec![gone("open-cluster-management-agent")]);
    assert_eq!(causes(&snapshot), [6104]);
    // It is left where the Klusterlet has gone.
    let managed = on_managed(&mut snapshot);
    (managed.klusterlets, managed.agents) = (Observed::Read(Vec::new()), Vec::new());
    assert!(found(&snapshot, 6104).is_some());
}

#[test]
fn a_grpc_server_needs_a_name_that_its_certificate_is_made_for() {
    let told = |exposure: Value, service: Option<Value>| {
        let mut snapshot = healthy();
        offers_grpc(&mut snapshot, 0, "open-cluster-management-hub");
        let hub = on_hub(&mut snapshot);
        read(&mut hub.managers)[0].spec.server_configuration = parse(json!({"endpointsExposure": [exposure]}));
        hub.grpc_service = Observed::Read(service.map(parse));
        found(&snapshot, 1112).map(|finding| (finding.severity, finding.summary))
    };
    let none = || Some((Severity::Warning, "the hub's gRPC server has no address for agents".to_owned()));
    assert_eq!(
        told(json!({"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": "hub.example"}}}), None),
        None
    );
    assert_eq!(
        told(json!({"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": " "}}}), None),
        none()
    );
    assert_eq!(
        told(json!({"protocol": "grpc", "grpc": {"type": "route", "route": {"host": "hub.example"}}}), None),
        none()
    );
    assert_eq!(told(json!({"protocol": "grpc"}), None), none());
    let balanced = || json!({"protocol": "grpc", "grpc": {"type": "loadBalancer"}});
    let (severity, text) = told(balanced(), None).expect("its Service is missing");
    assert!(severity == Severity::Error && text.contains("Service") && text.contains("is missing"), "{text}");
    let service = json!({"namespace": "open-cluster-management-hub", "name": "cluster-manager-grpc-server",
        "type": "LoadBalancer", "addresses": ["192.0.2.1"]});
    assert_eq!(told(balanced(), Some(service)), None);
}

#[test]
fn a_grpc_server_that_waits_for_its_load_balancer_is_told_as_that() {
    let mut snapshot = healthy();
    let hub = "open-cluster-management-hub";
    offers_grpc(&mut snapshot, 0, hub);
    let at = |addresses: &[&str]| {
        let service = json!({"namespace": hub, "name": "cluster-manager-grpc-server", "type": "LoadBalancer",
            "addresses": addresses});
        Observed::Read(Some(parse(service)))
    };
    on_hub(&mut snapshot).grpc_service = at(&[]);
    // Its pods wait for a certificate, which waits for the address.
    for health in [Health::not_yet("1 pod waits"), Health::stuck("1 pod waits")] {
        read(&mut on_hub(&mut snapshot).deployments).last_mut().expect("it is there").health = health;
        assert_eq!(ids(&judge(&snapshot, &[])), [1112]);
    }
    // With an address it is a Deployment like others.
    on_hub(&mut snapshot).grpc_service = at(&["192.0.2.1"]);
    assert_eq!(ids(&judge(&snapshot, &[])), [1106]);
}

#[test]
fn a_hub_that_has_accepted_a_cluster_ahead_does_not_wait_for_its_agent() {
    let mut ahead = healthy();
    ahead.managed = None;
    (on_hub(&mut ahead).requests, on_hub(&mut ahead).leases) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    let accepted = parse(condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"));
    let cluster = &mut read(&mut on_hub(&mut ahead).clusters)[0];
    cluster.status.as_mut().expect("it is there").conditions = vec![accepted];
    assert!(ids(&judge(&ahead, &[])).contains(&2202), "nobody has said why");
    let metadata = &mut read(&mut on_hub(&mut ahead).clusters)[0].metadata;
    metadata.annotations = Some([("kubectl-ocm/fallback-of".to_owned(), "https://first:6443".to_owned())].into());
    let report = judge(&ahead, &[]);
    assert_eq!(ids(&report), Vec::<u16>::new());
    let headline =
        "its agent comes to this hub only when https://first:6443 does not answer, as was noted when it was accepted";
    assert_eq!((report.clusters[0].way, report.clusters[0].headline.as_str()), (Way::Elsewhere, headline));
    // One that asks is judged as any other.
    on_hub(&mut ahead).requests = Observed::Read(vec![parse(request("c1-a", "a1", &[], OLD))]);
    assert_ne!(judge(&ahead, &[]).clusters[0].way, Way::Elsewhere);
}

#[test]
fn an_agent_that_was_only_just_restarted_is_no_error() {
    let mut snapshot = healthy();
    let at = |snapshot: &mut Snapshot, renewed: &str| {
        lease_of(snapshot).renewed = Some(parse(json!(renewed)));
        let report = judge(snapshot, &[]);
        (report.findings.first().map(|finding| (finding.id.0, finding.severity)), report.clusters[0].headline.clone())
    };
    // Two periods are over; the leader lease of its former pod may not have run out.
    let (found, headline) = at(&mut snapshot, "2026-03-01T11:57:00Z");
    assert_eq!(found, Some((3101, Severity::Warning)));
    assert!(headline.starts_with("joined and available"), "{headline}");
    let (found, headline) = at(&mut snapshot, "2026-03-01T11:56:00Z");
    assert_eq!(found, Some((3101, Severity::Error)));
    assert!(headline.starts_with("stopped at step 8 of 9: the agent has not been heard of"), "{headline}");
}

#[test]
fn deployments_of_others_beside_the_hubs_are_theirs() {
    let mut snapshot = healthy();
    let deployments = read(&mut on_hub(&mut snapshot).deployments);
    let mut other = deployments[0].clone();
    (other.name, other.replicas) = ("proxy".to_owned(), 0);
    deployments.push(other);
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
}

#[test]
fn whatever_way_a_cluster_joined_there_is_nothing_to_find_when_it_is_well() {
    let grpc = |snapshot: &mut Snapshot| {
        let authorities = read(&mut on_hub(snapshot).ca_bundle).clone().expect("it is there");
        let spec = &mut read(&mut on_hub(snapshot).managers)[0].spec;
        spec.registration_configuration =
            parse(json!({"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]}));
        spec.server_configuration = parse(json!({"endpointsExposure": [
            {"protocol": "grpc", "grpc": {"type": "hostname", "hostname": {"host": "grpc.example"}}}]}));
        let server = workload("open-cluster-management-hub", "cluster-manager-grpc-server", "registration");
        read(&mut on_hub(snapshot).deployments).push(parse(server));
        read(&mut on_managed(snapshot).klusterlets)[0].spec.registration_configuration =
            parse(json!({"registrationDriver": {"authType": "grpc"}}));
        // Another name of the server, and an authority that stands before it: the hub hears from the agent.
        let other = GrpcFacts { server: "other.example:443".to_owned(), authorities, token: None };
        let secret = read(&mut agent(snapshot).bootstrap).as_mut().expect("it is there");
        let key = secret.keys["kubeconfig"].clone();
        secret.keys.insert("config.yaml".to_owned(), key);
        secret.grpc = Some(other);
    };
    let singleton = |snapshot: &mut Snapshot| {
        let ns = "open-cluster-management-agent";
        read(&mut on_managed(snapshot).klusterlets)[0].spec.deploy_option = parse(json!({"mode": "Singleton"}));
        agent(snapshot).deployments =
            Observed::Read(vec![parse(workload(ns, "klusterlet-agent", "registration-operator"))]);
    };
    let hosted = |snapshot: &mut Snapshot| {
        read(&mut on_managed(snapshot).klusterlets)[0].spec.deploy_option = parse(json!({"mode": "Hosted"}));
        // What is applied is on the other cluster, by an agent of another Klusterlet than those there.
        on_managed(snapshot).applied_works = Observed::Read(Vec::new());
    };
    let proxied = |snapshot: &mut Snapshot| {
        bootstrap(snapshot).proxy = Some("http://proxy:3128".to_owned());
        identity(snapshot).kubeconfig.as_mut().expect("it is there").proxy = Some("http://proxy:3128".to_owned());
        // Whoever enforces none of them lets the agent through all the same.
        let name = "limit".to_owned();
        agent(snapshot).network_policies =
            Observed::Read(vec![NetworkPolicyFacts { name, is_for_all: true, ..NetworkPolicyFacts::default() }]);
    };
    let ways: [fn(&mut Snapshot); 4] = [grpc, singleton, hosted, proxied];
    for (number, way) in ways.into_iter().enumerate() {
        let mut snapshot = healthy();
        way(&mut snapshot);
        assert_eq!(judge(&snapshot, &[]).findings, [], "{number}");
        snapshot.managed = None;
        assert_eq!(judge(&snapshot, &[]).findings, [], "{number}, from the hub");
    }
}

#[test]
fn what_waits_for_the_hub_is_not_blamed_on_the_way_there() {
    // Limited to no port at all, and the hub has its request: somebody lets it through.
    let mut snapshot = healthy();
    waiting(&mut snapshot, Some(request("c1-a", "a1", &[], OLD)));
    let name = "limit".to_owned();
    let limit = NetworkPolicyFacts { name, is_for_all: true, ..NetworkPolicyFacts::default() };
    agent(&mut snapshot).network_policies = Observed::Read(vec![limit.clone()]);
    assert_eq!(ids(&judge(&snapshot, &[])), [2205]);
    // Before it was heard of they are the cause; one that is for other pods may be for the agents', too.
    waiting(&mut snapshot, None);
    assert!(found(&snapshot, 2126).is_some());
    let others = NetworkPolicyFacts { is_for_all: false, ports: vec![(6443, 6443)], ..limit.clone() };
    agent(&mut snapshot).network_policies = Observed::Read(vec![limit, others]);
    assert!(found(&snapshot, 2126).is_none());
    // The operator does not use the hosts entry of the agents.
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.hub_api_server_host_alias =
        parse(json!({"ip": "192.0.2.1", "hostname": "hub"}));
    let status = read(&mut on_managed(&mut snapshot).klusterlets)[0].status.as_mut().expect("it is there");
    status.conditions[1] =
        parse(condition("HubConnectionDegraded", "True", "BootstrapSecretError,HubKubeConfigSecretMissing"));
    status.conditions[1].message = "dial tcp: lookup hub on 10.96.0.10:53: no such host".to_owned();
    assert!(found(&snapshot, 2115).is_none());
    read(&mut on_managed(&mut snapshot).klusterlets)[0].spec.hub_api_server_host_alias = None;
    assert!(found(&snapshot, 2115).is_some());
}

#[test]
fn network_policies_are_compared_with_the_port_of_the_proxy() {
    let is_found = |proxy: &str, port: u16| {
        let mut snapshot = healthy();
        waiting(&mut snapshot, None);
        bootstrap(&mut snapshot).proxy = Some(proxy.to_owned());
        let (name, ports) = ("limit".to_owned(), vec![(port, port)]);
        let limit = NetworkPolicyFacts { name, is_for_all: true, ports, ..NetworkPolicyFacts::default() };
        agent(&mut snapshot).network_policies = Observed::Read(vec![limit]);
        found(&snapshot, 2126).is_some()
    };
    // In the form in which the facts have it.
    for (proxy, port) in [("http://proxy:3128", 3128), ("https://[fd00::1]", 443), ("socks5://proxy", 1080)] {
        assert!(is_found(proxy, 6443), "{proxy}");
        assert!(!is_found(proxy, port), "{proxy}");
    }
    assert!(!is_found("a proxy whose address cannot be read", 6443));
}

#[test]
fn what_an_agent_asked_for_when_it_joined_says_nothing_of_the_way_of_today() {
    let limited = |renewed: &str| {
        let mut snapshot = healthy();
        let limit = NetworkPolicyFacts { name: "none".to_owned(), is_for_all: true, ..NetworkPolicyFacts::default() };
        agent(&mut snapshot).network_policies = Observed::Read(vec![limit]);
        read(&mut on_hub(&mut snapshot).leases)[0].renewed = Some(parse(json!(renewed)));
        snapshot
    };
    // Its request is still there, and it has been silent since the policy came.
    assert_eq!(ids(&judge(&limited(OLD), &[])), [2126, 3101]);
    assert_eq!(judge(&limited(FRESH), &[]).findings, []);
}

#[test]
fn what_is_of_no_cluster_yet_is_not_called_left_behind() {
    let with = |created: &str, finalizers: &[&str]| {
        let mut snapshot = healthy();
        let mut work = read(&mut on_hub(&mut snapshot).works)[0].clone();
        work.namespace = "to-come".to_owned();
        work.created = Some(parse(json!(created)));
        work.finalizers = finalizers.iter().map(|one| (*one).to_owned()).collect();
        read(&mut on_hub(&mut snapshot).works).push(work);
        found(&snapshot, 6105).is_some()
    };
    assert!(!with(OLD, &[]), "nobody has applied it yet");
    assert!(!with(FRESH, &["cluster.open-cluster-management.io/manifest-work-cleanup"]));
    assert!(with(OLD, &["cluster.open-cluster-management.io/manifest-work-cleanup"]));
    // Of some clusters nothing is said of others.
    let mut snapshot = healthy();
    snapshot.clusters = vec!["c1".to_owned()];
    read(&mut on_hub(&mut snapshot).works)[0].namespace = "c2".to_owned();
    assert!(found(&snapshot, 6105).is_none());
}

#[test]
fn a_request_that_the_grpc_server_sent_may_name_its_user() {
    let mut snapshot = healthy();
    let mut asks = request("c1-a", "a1", &[], FRESH);
    asks["metadata"]["annotations"]["open-cluster-management.io/csr-user"] =
        json!("system:open-cluster-management:c1:a1");
    requests(&mut snapshot, &[asks.clone()]);
    assert_eq!(found(&snapshot, 7105).map(|finding| finding.severity), Some(Severity::Warning), "nobody else may");
    asks["spec"]["username"] = json!("system:serviceaccount:open-cluster-management-hub:grpc-server-sa");
    requests(&mut snapshot, &[asks.clone()]);
    assert!(found(&snapshot, 7105).is_none());
    // Where the hub's own parts are on another cluster, its server is in a namespace that is not known here.
    asks["spec"]["username"] = json!("system:serviceaccount:hosted:grpc-server-sa");
    requests(&mut snapshot, &[asks.clone()]);
    assert!(found(&snapshot, 7105).is_some());
    hosts_another(&mut snapshot);
    assert!(found(&snapshot, 7105).is_some(), "the server of a hub that is hosted here sends nothing here");
    on_hub(&mut snapshot).managers = Observed::Read(Vec::new());
    assert!(found(&snapshot, 7105).is_none());
}

/// The hub makes the first lease of whom it accepts, and calls it unknown when nobody renews that.
#[test]
fn an_accepted_cluster_that_was_never_heard_of_is_no_silent_one() {
    for (requests_of, wanted) in [
        (vec![], 2202),
        (vec![request("c1-a", "a1", &["Denied"], OLD)], 2208),
        (vec![request("c1-a", "a1", &[], OLD)], 2206),
    ] {
        for renewed in [OLD, FRESH] {
            let mut snapshot = healthy();
            waiting(&mut snapshot, Some(json!({})));
            snapshot.managed = None;
            requests(&mut snapshot, &requests_of);
            let hub = on_hub(&mut snapshot);
            let cluster = &mut read(&mut hub.clusters)[0];
            cluster.spec.hub_accepts_client = Some(true);
            let conditions = json!({"conditions": [condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"),
                condition("ManagedClusterConditionAvailable", "Unknown", "ManagedClusterLeaseUpdateStopped")]});
            cluster.status = Some(parse(conditions));
            let lease = json!({"namespace": "c1", "name": "managed-cluster-lease", "renewed": renewed});
            hub.leases = Observed::Read(vec![parse(lease)]);
            assert_eq!(ids(&judge(&snapshot, &[])), [wanted], "{renewed}");
        }
    }
}

#[test]
fn a_name_for_which_nothing_but_lies_wait_does_not_wait_for_acceptance() {
    let mut lies = request("x", "a1", &[], FRESH);
    lies["spec"]["request"] = json!(ByteString(csr_fixtures::Fixture::agent("c2", "a1").pem().into_bytes()));
    let mut snapshot = healthy();
    waiting(&mut snapshot, Some(lies.clone()));
    snapshot.managed = None;
    let report = judge(&snapshot, &[]);
    assert_eq!(report.findings.iter().map(|finding| finding.id.0).collect::<Vec<_>>(), [7105]);
    assert_eq!(report.findings[0].severity, Severity::Error);
    // Somebody else waits, too.
    requests(&mut snapshot, &[request("c1-a", "a1", &[], FRESH), lies]);
    let report = judge(&snapshot, &[]);
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.id.0, finding.severity)).collect();
    assert!(found.contains(&(7105, Severity::Warning)) && found.iter().any(|(id, _)| *id != 7105), "{found:?}");
}

/// Nobody waits for anything but a pod that is being started.
#[test]
fn what_waits_for_an_operator_that_is_being_started_is_nothing_of_its_own() {
    let mut snapshot = healthy();
    waiting(&mut snapshot, None);
    let managed = on_managed(&mut snapshot);
    read(&mut managed.operator).health = Health::not_yet("0 of 1 pods are ready; its container is being created");
    read(&mut managed.klusterlets)[0].status = None;
    managed.agents[0].deployments = Observed::Read(Vec::new());
    let report = judge(&snapshot, &[]);
    let roots: Vec<_> = report.findings.iter().map(|finding| (finding.id.0, finding.severity)).collect();
    assert_eq!(roots, [(2102, Severity::Error)]);
    // Who has joined does not wait for it.
    let mut snapshot = healthy();
    let managed = on_managed(&mut snapshot);
    read(&mut managed.operator).health = Health::not_yet("0 of 1 pods are ready");
    agent(&mut snapshot).deployments = Observed::Read(Vec::new());
    let report = judge(&snapshot, &[]);
    let roots: Vec<_> = report.findings.iter().map(|finding| (finding.id.0, finding.severity)).collect();
    assert_eq!(roots, [(2106, Severity::Error), (2102, Severity::Warning)]);
}

#[test]
fn an_agent_whose_cluster_the_hub_has_removed_is_told_how_it_registers_anew() {
    let mut snapshot = healthy();
    let hub = on_hub(&mut snapshot);
    hub.clusters = Observed::Read(Vec::new());
    (hub.leases, hub.works, hub.addons) =
        (Observed::Read(Vec::new()), Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    requests(&mut snapshot, &[]);
    let status = read(&mut on_managed(&mut snapshot).klusterlets)[0].status.as_mut().expect("it is there");
    status.conditions.truncate(1);
    status.conditions.push(parse(condition(
        "HubConnectionDegraded",
        "True",
        "BootstrapSecretFunctional,HubKubeConfigUnauthorized",
    )));
    let report = judge(&snapshot, &[]);
    assert_eq!(ids(&report), [2201]);
    let next = lines(&report.findings[0]).join("\n");
    assert!(next.contains("kubectl delete secret/hub-kubeconfig-secret -n open-cluster-management-agent"), "{next}");
    assert!(
        next.contains(
            "kubectl delete pods -n open-cluster-management-agent -l 'app in (klusterlet-registration-agent,klusterlet-agent)'"
        ),
        "{next}"
    );
}

/// The operator can change no Deployment any more, and no condition says so.
#[test]
fn an_image_that_was_taken_out_of_a_klusterlet_is_told_of() {
    let images = |snapshot: &mut Snapshot, image: Option<&str>| {
        let spec = &mut read(&mut on_managed(snapshot).klusterlets)[0].spec;
        spec.registration_image_pull_spec = image.map(str::to_owned);
        spec.work_image_pull_spec = Some("r/work:v1.3.1".to_owned());
    };
    let mut snapshot = healthy();
    images(&mut snapshot, None);
    assert_eq!(found(&snapshot, 2121).map(|finding| finding.severity), Some(Severity::Warning));
    images(&mut snapshot, Some("r/registration:v1.3.1"));
    assert!(found(&snapshot, 2121).is_none());
}

#[test]
fn pods_of_the_hub_that_are_missing_are_told_of_once() {
    let mut snapshot = healthy();
    let hub = on_hub(&mut snapshot);
    let status = read(&mut hub.managers)[0].status.as_mut().expect("it is there");
    let degraded = condition("HubRegistrationDegraded", "True", "UnavailableRegistrationPod");
    status.conditions.iter_mut().filter(|one| one.type_ == "HubRegistrationDegraded").for_each(|one| {
        *one = parse(degraded.clone());
    });
    read(&mut hub.deployments)[0].health = Health::stuck("0 of 1 pods are ready; no node");
    assert_eq!(ids(&judge(&snapshot, &[])), [1106]);
    // Whoever may not see the Deployments has nothing but the condition.
    on_hub(&mut snapshot).deployments = Observed::Trouble(forbidden());
    assert_eq!(ids(&judge(&snapshot, &[])), [1104]);
}

#[test]
fn an_address_is_the_hubs_own_where_hub_and_managed_cluster_are_one_or_the_agent_is_elsewhere() {
    let mut snapshot = healthy();
    let address = |url: &str| parse(json!([{"url": url}]));
    read(&mut on_hub(&mut snapshot).clusters)[0].spec.managed_cluster_client_configs = address("https://hub:6443");
    assert_eq!(ids(&judge(&snapshot, &[])), [3112]);
    // A hub that is registered at itself.
    let mut own = snapshot.clone();
    on_managed(&mut own).uid = on_hub(&mut own).uid.clone();
    assert_eq!(ids(&judge(&own, &[])), Vec::<u16>::new());
    // A hub that is managed by an agent on another cluster.
    let mut hosted = snapshot.clone();
    read(&mut on_managed(&mut hosted).klusterlets)[0].spec.deploy_option = parse(json!({"mode": "Hosted"}));
    assert!(found(&hosted, 3112).is_none());
    // Seen from one side, or where it is not known which clusters they are.
    let mut one = snapshot.clone();
    one.managed = None;
    assert_eq!(ids(&judge(&one, &[])), Vec::<u16>::new());
    on_managed(&mut snapshot).uid = None;
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
    // Another cluster's loopback address is nobody's.
    let mut local = healthy();
    on_hub(&mut local).server = "https://127.0.0.1:6443".to_owned();
    read(&mut on_hub(&mut local).clusters)[0].spec.managed_cluster_client_configs = address("https://127.0.0.1:6443");
    assert_eq!(ids(&judge(&local, &[])), Vec::<u16>::new());
}

#[test]
fn a_service_that_stands_for_a_name_outside_has_no_endpoints_by_design() {
    let mut snapshot = healthy();
    let mut seen = |is_external: Option<bool>| {
        let (about, service) = (vec!["managedclusters".to_owned()], "kyverno/kyverno-svc".to_owned());
        let configuration = "others".to_owned();
        on_hub(&mut snapshot).admission =
            Observed::Read(vec![AdmissionFacts { configuration, service, about, has_endpoint: false, is_external }]);
        found(&snapshot, 1117).map(|finding| finding.evidence.iter().any(|line| line.contains("ExternalName")))
    };
    assert_eq!((seen(Some(true)), seen(Some(false)), seen(None)), (None, Some(false), Some(true)));
    // That of the policy engine never does.
    let (about, service) = (vec!["managedclusters".to_owned()], "ocm-policy-engine/ocm-policy-webhook".to_owned());
    let (configuration, is_external) = ("ocm-policy-webhook".to_owned(), Some(true));
    on_hub(&mut snapshot).admission =
        Observed::Read(vec![AdmissionFacts { configuration, service, about, has_endpoint: false, is_external }]);
    let finding = found(&snapshot, 1117).expect("it is found");
    assert!(finding.evidence.iter().any(|line| line.starts_with("its type is ExternalName")), "{finding:#?}");
}

#[test]
fn a_policy_engine_that_does_not_run_is_told_once() {
    let mut snapshot = healthy();
    let about = vec!["managedclusters".to_owned()];
    let service = "ocm-policy-engine/ocm-policy-webhook".to_owned();
    let configuration = "ocm-policy-webhook".to_owned();
    on_hub(&mut snapshot).admission =
        Observed::Read(vec![AdmissionFacts { configuration, service, about, ..AdmissionFacts::default() }]);
    // The configuration alone was left behind.
    assert_eq!(ids(&judge(&snapshot, &[])), [1117]);
    let mut workload: ocm_checks::snapshot::Workload = parse(workload("ocm-policy-engine", "ocm-policy-webhook", "w"));
    workload.health = Health::stuck("0 of 1 pods are ready");
    on_hub(&mut snapshot).policy_engine = Observed::Read(vec![workload]);
    assert_eq!(ids(&judge(&snapshot, &[])), [8101]);
}

#[test]
fn add_ons_whose_images_come_from_elsewhere_are_in_trouble_only_where_there_are_some() {
    let mut snapshot = healthy();
    let name = "open-cluster-management.io/image-registries".to_owned();
    read(&mut on_hub(&mut snapshot).clusters)[0].metadata.annotations = Some([(name, "{".to_owned())].into());
    assert_eq!(found(&snapshot, 5206).map(|finding| finding.severity), Some(Severity::Warning));
    read(&mut on_hub(&mut snapshot).addons)[0].status = None;
    assert_eq!(found(&snapshot, 5206).map(|finding| finding.severity), Some(Severity::Error));
    on_hub(&mut snapshot).addons = Observed::Read(Vec::new());
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
}

#[test]
fn an_accepted_agent_that_registers_by_aws_and_does_not_join_is_told_of() {
    let mut snapshot = healthy();
    snapshot.managed = None;
    let cluster = &mut read(&mut on_hub(&mut snapshot).clusters)[0];
    let arn = "arn:aws:eks:eu-1:000000000000:cluster/c1".to_owned();
    cluster.metadata.annotations =
        Some([("agent.open-cluster-management.io/managed-cluster-arn".to_owned(), arn)].into());
    let status = cluster.status.as_mut().expect("it is there");
    status.conditions = vec![parse(condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"))];
    let hub = on_hub(&mut snapshot);
    (hub.leases, hub.requests) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    (hub.works, hub.addons) = (Observed::Read(Vec::new()), Observed::Read(Vec::new()));
    let report = judge(&snapshot, &[]);
    assert_eq!(ids(&report), [2211], "{report:#?}");
    assert!(
        report.clusters[0].headline.contains("stopped at step 7 of 9: the cluster is accepted since 60m"),
        "{report:#?}"
    );
    // That takes a while.
    let status = read(&mut on_hub(&mut snapshot).clusters)[0].status.as_mut().expect("it is there");
    status.conditions[0].last_transition_time = parse(json!(FRESH));
    assert_eq!(ids(&judge(&snapshot, &[])), Vec::<u16>::new());
}

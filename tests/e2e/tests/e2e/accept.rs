//! `kubectl ocm accept` on a real API server: attacks of which none gets through, right requests that all do, and what
//! people and scripts rely on.
//!
//! `cargo test -p e2e-tests --test e2e accept::`; it needs no root.

#![expect(clippy::print_stdout, reason = "how many attacks there were is part of the result")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cli_tests::Cli;
use cli_tests::terminal::Terminal;
use csr_fixtures::{Fixture, Key, Kind};
use e2e_tests::accept_support::{Ask, Hub, Run, Who, know_registrations, managed_cluster, note};
use e2e_tests::attacks::{BOOTSTRAP, Make, attacks, right_requests};
use e2e_tests::roles::{bind_rules, resources, rights, user_with, users_without_one_rule};
use e2e_tests::shared_hub::hub;
use e2e_tests::{kubectl_ocm, run, series, until};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use ocm_api::ManagedCluster;
use ocm_api::names::hub::managed_cluster_role;
use ocm_api::names::labels::CLUSTER_SET;
use ocm_core::accept::Options;
use ocm_core::{DryRun, Silent};
use ocm_flows::accept::{Limits, Outcome, Row, carry_out, survey};
use ocm_flows::registry::Scope;
use serde_json::{Value, json};

/// Registers a cluster with labels that it chooses itself, which asks as it should; returns the request's name.
fn join_with(hub: &Hub, name: &str, labels: Value) -> String {
    let mut object = managed_cluster(name);
    object.metadata.labels = serde_json::from_value(labels).expect("labels");
    let api: Api<ManagedCluster> = Api::all(hub.client(Who::Bootstrap));
    hub.wait(api.create(&PostParams::default(), &object)).expect("a cluster");
    hub.ask(&Ask::agent(name))
}

#[test]
fn no_attack_gets_through_and_each_is_told_its_reason() {
    let hub = hub();
    let attacks = attacks();
    assert!(attacks.len() >= 30, "{}", attacks.len());
    let mut made = Vec::new();
    for (index, (what, code, make)) in attacks.iter().enumerate() {
        let name = make.called(&format!("u{index}"));
        made.push((*what, *code, name.clone(), make.make(&hub, &name)));
    }
    let mut wrong = Vec::new();
    let mut check = |what: &str, how: &str, name: &str, requests: &[String]| {
        let approved = requests.iter().any(|request| hub.is("Approved", request));
        if approved || hub.accepts(name) {
            wrong.push(format!("{what}: got through, {how}"));
        }
    };
    let mut reasons = Vec::new();
    // A person who names a cluster that was denied lets it in again: that is meant.
    let denied = |code: &str| code == "DeniedBefore";
    for (what, code, name, requests) in made.iter().filter(|(_, code, ..)| !denied(code)) {
        // --replace allows another key, and --yes needs no question; neither allows anything else.
        let run = hub.accept(&[name, "--yes", "--replace", "--output", "json"]);
        if (run.code, run.reason(name).as_str()) != (3, *code) {
            reasons.push(format!("{what}: {} with exit code {} instead of {code}", run.reason(name), run.code));
        }
        check(what, "by its name", name, requests);
    }
    let run = hub.accept(&["--all-pending", "--yes"]);
    assert_eq!(run.code, 3, "{run:?}");
    for (what, code, name, requests) in &made {
        check(what, "among all that wait", name, requests);
        if denied(code) && !run.stdout.contains(&format!("managedcluster/{name} refused, {code}: ")) {
            reasons.push(format!("{what}: not {code} among all that wait: {}", run.stdout));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(reasons.is_empty(), "{reasons:#?}");
    println!("{} attacks, none got through", made.len());
}

#[test]
fn what_the_api_server_does_not_even_store_stays_refused_here_too() {
    let hub = hub();
    for (index, (what, ask)) in [
        ("garbage", Ask::raw("x", b"garbage".to_vec())),
        (
            "a certificate's block",
            Ask::raw("x", csr_fixtures::pem("CERTIFICATE", &Fixture::agent("x", "a1").der()).into_bytes()),
        ),
        (
            "bytes behind the request",
            Ask::raw("x", {
                let mut der = Fixture::agent("x", "a1").der();
                der.push(0);
                csr_fixtures::pem("CERTIFICATE REQUEST", &der).into_bytes()
            }),
        ),
        ("another curve", Ask::with("x", &Fixture::agent("x", "a1").kind(Kind::Secp256k1))),
        ("another key's signature", Ask::with("x", &Fixture::agent("x", "a1").signed_by(&Key::new(Kind::P256)))),
        ("a subject that was not signed", Ask::with("x", &Fixture::agent("x", "a1").sign_now().common_name("y"))),
        ("no usage", Ask { usages: Vec::new(), ..Ask::agent("x") }),
        (
            "a usage twice",
            Ask { usages: ["client auth", "client auth"].map(str::to_owned).to_vec(), ..Ask::agent("x") },
        ),
        ("a minute", Ask { seconds: Some(60), ..Ask::agent("x") }),
        ("masters", Ask::with("x", &Fixture::agent("x", "a1").organization("system:masters"))),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{index}");
        hub.register(&name);
        let ask = Ask { label: Some(name.clone()), ..ask };
        let stored = hub.try_ask(&ask);
        let run = hub.accept(&[&name, "--yes", "--output", "json"]);
        assert_eq!(run.code, 3, "{what}: {run:?}");
        assert!(!hub.accepts(&name), "{what}");
        if let Ok(stored) = stored {
            println!("the API server stores {what}; refused as {}", run.reason(&name));
            assert!(!hub.is("Approved", &stored.metadata.name.unwrap_or_default()), "{what}");
        }
    }
}

#[test]
fn right_requests_all_get_through() {
    let hub = hub();
    let mut wrong = Vec::new();
    let of = |(index, (what, make)): (usize, (&'static str, Make))| {
        let name = format!("g{index}");
        let request = make.make(&hub, &name).remove(0);
        (what, name, request)
    };
    let mut right: Vec<_> = right_requests().into_iter().enumerate().map(of).collect();
    let beside = hub.join("beside");
    hub.ask(&Ask { addon: Some("x".to_owned()), ..Ask::with("beside", &Fixture::addon("beside", "x")) });
    right.push(("beside an add-on's", "beside".to_owned(), beside));
    let denied = hub.ask(&Ask::agent("again"));
    hub.conclude(&denied, "deny");
    // Times of the API are whole seconds.
    sleep(Duration::from_millis(1100));
    right.push(("after an earlier request was denied", "again".to_owned(), hub.join("again")));
    for (what, name, request) in &right {
        let run = hub.accept(&[name, "--yes", "--output", "json"]);
        if run.code != 0 || run.reason(name) != "Accepted" || !hub.is("Approved", request) || !hub.accepts(name) {
            wrong.push(format!("{what}: {run:?}"));
        }
        // And the API server's own signer agrees that it is a request that can be signed.
        if !what.contains("gRPC") {
            let begun = Instant::now();
            while hub.request(request).status.and_then(|status| status.certificate).is_none() {
                if begun.elapsed() > Duration::from_secs(10) {
                    wrong.push(format!("{what}: not signed"));
                    break;
                }
                sleep(Duration::from_millis(20));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{} right requests, all got through", right.len());
}

/// Runs a command and asserts that it leaves everything on the hub as it was.
#[track_caller]
fn leaves_all(hub: &Hub, arguments: &[&str]) -> Run {
    let before = hub.versions();
    let run = hub.accept(arguments);
    assert_eq!(hub.versions(), before, "{arguments:?}: {run:?}");
    run
}

#[test]
fn people_and_scripts_can_rely_on_it() {
    let hub = hub();

    // A dry run of either kind says what would be done and leaves everything.
    let request = hub.join("d1");
    for (way, word) in [("--dry-run", "client"), ("--dry-run=client", "client"), ("--dry-run=server", "server")] {
        let run = leaves_all(&hub, &["d1", way, "--output", "json"]);
        let document: Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!(
            (run.code, run.reason("d1").as_str(), &document["dryRun"]),
            (0, "Accepted", &json!(word)),
            "{run:?}"
        );
        let run = leaves_all(&hub, &["d1", "--deny", "no", way]);
        assert_eq!(run.code, 0, "{run:?}");
        let run = leaves_all(&hub, &["--all-pending", way]);
        assert_eq!(run.code, 0, "{run:?}");
    }

    // Why is told to whoever may only read.
    let viewer = user_with(&hub.cluster, "viewer", &["accept-explain.yaml"]);
    let explain = |words: &[&str]| run(kubectl_ocm("accept", &viewer).args(words).arg("--explain"));
    until("the viewer has its rights", || explain(&["d1"]).code == Some(0));
    let before = hub.versions();
    let said = explain(&["d1", "--output", "json"]);
    let told: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let told = &told["clusters"][0];
    assert_eq!((&told["code"], &told["accepted"], &told["policies"]), (&json!("Accepted"), &json!(true), &Value::Null));
    assert_eq!((&told["requests"][0]["name"], &told["requests"][0]["part"]), (&json!(request), &json!("Approve")));
    assert_eq!(explain(&["--all-pending"]).code, Some(0));
    let said = explain(&["d1", "d9"]);
    let why = "managedcluster/d9 would be refused, NoManagedCluster\n  in the way: NoManagedCluster (R6): ";
    assert!(said.code == Some(3) && said.stdout.contains(why), "{said:?}");
    assert_eq!(hub.versions(), before, "{said:?}");

    // What is acted upon is said exactly; where nobody can be asked, also that it is meant.
    for arguments in [
        &[][..],
        &["--all-pending"],
        &["--selector", "a=b"],
        &["--selector", " ", "--yes"],
        &["d1", "--all-pending", "--yes"],
        &["D1"],
        &["d1", "--fingerprint", "sha256:ab"],
        &["d1", "d2", "--fingerprint", &"ab".repeat(32)],
        &["d1", "--output", "xml"],
        &["d1", "--max-lifetime", "long"],
    ] {
        let run = leaves_all(&hub, arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{run:?}");
    }

    // A cluster that was named needs no --yes, and its row says everything.
    let run = hub.accept(&["d1", "--output", "json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let row = run.row("d1");
    let keys: Vec<&str> = row.as_object().expect("a row").keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "accepted",
            "approval",
            "clusterSet",
            "code",
            "detail",
            "fingerprint",
            "hint",
            "labels",
            "name",
            "request",
            "requester",
            "stray",
        ]
    );
    assert_eq!(
        (&row["code"], &row["accepted"], &row["requester"]),
        (&json!("Accepted"), &json!(true), &json!(BOOTSTRAP))
    );
    assert_eq!(row["request"], json!(request));
    assert!(row["fingerprint"].as_str().is_some_and(|text| text.starts_with("sha256:") && text.len() == 71), "{row}");

    // The second run changes nothing. The signer must be through before, for it writes, too.
    let begun = Instant::now();
    while hub.request(&request).status.and_then(|status| status.certificate).is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10), "a certificate");
        sleep(Duration::from_millis(20));
    }
    let run = leaves_all(&hub, &["d1"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "managedcluster/d1 already accepted\n"), "{run:?}");
    let run = leaves_all(&hub, &["--all-pending", "--yes"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");

    // One line per cluster with a reason, in the order of the names.
    hub.join("d2");
    hub.register("d3");
    let run = hub.accept(&["d4", "d2", "d3"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(run.code, 3, "{run:?}");
    assert!(lines[0].starts_with("managedcluster/d4 refused, NoManagedCluster: "), "{run:?}");
    assert_eq!(lines[1], "managedcluster/d2 accepted");
    assert!(lines[2].starts_with("managedcluster/d3 not accepted, NoRequest: "), "{run:?}");
    assert_eq!(lines.len(), 3);

    // A person approved, or we were killed between the two writes: the next run finishes.
    let request = hub.join("d5");
    hub.conclude(&request, "approve");
    let run = hub.accept(&["d5", "--output", "json"]);
    assert_eq!((run.code, run.reason("d5").as_str()), (0, "Accepted"), "{run:?}");
    assert!(hub.accepts("d5"));

    // The hub does not answer.
    let run = hub.accept(&["d1", "--server", "https://127.0.0.1:1"]);
    assert_eq!(run.code, 1, "{run:?}");
}

#[test]
fn keys_names_and_denials() {
    let hub = hub();
    let wants = |name: &str, key: &Key| hub.ask(&Ask::with(name, &Fixture::agent(name, "a1").key(key)));
    let key = || Key::new(Kind::P256);

    // Two keys: the one that is named by its fingerprint is let in.
    hub.register("k1");
    let (mine, other) = (key(), key());
    let (my_request, other_request) = (wants("k1", &mine), wants("k1", &other));
    let run = leaves_all(&hub, &["k1", "--output", "json"]);
    assert_eq!((run.code, run.reason("k1").as_str()), (3, "TwoKeys"));
    assert!(run.row("k1")["hint"].as_str().is_some_and(|hint| hint.contains(&mine.fingerprint())), "{run:?}");
    let run = leaves_all(&hub, &["k1", "--fingerprint", &key().fingerprint(), "--output", "json"]);
    assert_eq!((run.code, run.reason("k1").as_str()), (3, "NoSuchKey"));
    let run = hub.accept(&["k1", "--fingerprint", &mine.fingerprint()]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(hub.is("Approved", &my_request) && !hub.is("Approved", &other_request) && hub.accepts("k1"));

    // A taken name: only with --replace.
    hub.set_conditions("k1", &[("ManagedClusterJoined", "True"), ("HubAcceptedManagedCluster", "True")]);
    let run = leaves_all(&hub, &["k1", "--output", "json"]);
    assert_eq!((run.code, run.reason("k1").as_str()), (0, "AlreadyAccepted"), "{run:?}");
    assert_eq!(run.row("k1")["stray"][0]["request"], json!(other_request), "{run:?}");
    let run = leaves_all(&hub, &["k1", "--fingerprint", &other.fingerprint(), "--output", "json"]);
    assert_eq!((run.code, run.reason("k1").as_str()), (3, "NameTaken"), "{run:?}");
    let run = hub.accept(&["k1", "--replace", "--output", "json"]);
    assert_eq!((run.code, run.reason("k1").as_str()), (0, "Approved"), "{run:?}");
    assert!(hub.is("Approved", &other_request));

    // A denial: the request and the acceptance, with the reason; then nothing is left to deny.
    let request = hub.join("k2");
    let run = hub.accept(&["k2", "--deny", "not ours"]);
    assert_eq!((run.code, hub.is("Denied", &request), hub.accepts("k2")), (0, true, false), "{run:?}");
    let conditions = hub.request(&request).status.and_then(|status| status.conditions).unwrap_or_default();
    assert!(conditions.iter().any(|condition| condition.message.as_deref() == Some("not ours")), "{conditions:?}");
    let run = leaves_all(&hub, &["k2", "--deny", "not ours"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = leaves_all(&hub, &["k2", "--output", "json"]);
    assert_eq!((run.code, run.reason("k2").as_str()), (3, "RequestDenied"), "{run:?}");

    // A cluster that was accepted loses that, and gets it back by its name, not by a selector.
    hub.join("k3");
    assert_eq!(hub.accept(&["k3"]).code, 0);
    hub.patch("k3", json!({"metadata": {"labels": {"env": "test"}}}));
    hub.set_conditions("k3", &[("ManagedClusterJoined", "True"), ("HubAcceptedManagedCluster", "True")]);
    assert_eq!(hub.accept(&["k3", "--deny", "for now"]).code, 0);
    assert!(!hub.accepts("k3"));
    hub.set_conditions("k3", &[("ManagedClusterJoined", "True"), ("HubAcceptedManagedCluster", "False")]);
    let run = leaves_all(&hub, &["--selector", "env=test", "--yes", "--output", "json"]);
    assert_eq!((run.code, run.reason("k3").as_str()), (3, "DeniedBefore"), "{run:?}");
    let run = leaves_all(&hub, &["--all-pending", "--yes"]);
    assert_eq!(run.code, 3, "{run:?}");
    let run = hub.accept(&["k3", "--output", "json"]);
    assert_eq!((run.code, run.reason("k3").as_str(), hub.accepts("k3")), (0, "Accepted", true), "{run:?}");

    // An administrator may allow other requesters and longer lifetimes, exactly.
    hub.register("k4");
    let mut ask = Ask::agent("k4").by(Who::Eva);
    ask.seconds = Some(63_072_000);
    hub.ask(&ask);
    for (arguments, code) in [
        (&["--max-lifetime", "730d"][..], "Requester"),
        (&["--requester", "ev", "--max-lifetime", "730d"], "Requester"),
        (&["--requester", "eva"], "Lifetime"),
    ] {
        let run = leaves_all(&hub, &[&["k4", "--output", "json"], arguments].concat());
        assert_eq!((run.code, run.reason("k4").as_str()), (3, code), "{run:?}");
    }
    let run = hub.accept(&["k4", "--requester", "eva", "--max-lifetime", "730d"]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn of_many_clusters_fifty_are_hostile_and_exactly_the_others_come_in() {
    let hub = Hub::start("many");
    let many = if series::is_whole() { 1000 } else { 250 };
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    let names = |from: usize, to: usize| (from..to).map(|index| format!("m{index}")).collect::<Vec<_>>();
    let (first, last) = (names(0, many / 2), names(many / 2, many - 50));
    let mut right = hub.join_all(&first);
    // Of some attacks there is nothing to wait for: no cluster, one that leaves, or no request.
    let waits = |attack: &(&str, &str, Make)| !matches!(attack.1, "NoManagedCluster" | "NoRequest" | "Detaching");
    // One for each reason, and then others.
    let mut codes = BTreeSet::new();
    let (mut attacks, more): (Vec<_>, Vec<_>) =
        attacks().into_iter().filter(waits).partition(|(_, code, _)| codes.insert(*code));
    attacks.extend(more);
    attacks.truncate(50);
    assert!(codes.len() <= attacks.len(), "{codes:?}");
    let mut hostile = Vec::new();
    for (index, (what, code, make)) in attacks.iter().enumerate() {
        let name = make.called(&format!("u{index}"));
        make.make(&hub, &name);
        hostile.push((name, *what, *code));
    }
    let among = ["Labels", "ClusterSet", "NameUsedBefore", "DeniedBefore", "NameReserved"];
    assert!(hostile.len() == 50 && among.iter().all(|code| codes.contains(code)), "{codes:?}");
    right.extend(hub.join_all(&last));
    // What a stranger asks a foreign signer for is in nobody's way.
    hub.ask(&planted(&last[0]));

    let begun = Instant::now();
    let mut command = Command::new(e2e_tests::accept_support::accept_binary());
    command.args(["--all-pending", "--yes", "--kubeconfig"]).arg(&user).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    println!("{many} clusters: {:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(3), "{stdout}");
    assert_eq!(stdout.lines().filter(|line| line.ends_with(" accepted")).count(), many - 50);
    for (name, what, code) in &hostile {
        assert!(stdout.contains(&format!("managedcluster/{name} refused, {code}: ")), "{what}: {stdout}");
    }
    assert!(hub.accepted().iter().eq(first.iter().chain(&last).collect::<BTreeSet<_>>()));
    assert_eq!(hub.approved(), right.into_values().collect());
}

#[test]
fn what_changes_after_the_look_is_looked_at_again() {
    let hub = hub();
    let connection = hub.connection();
    let requests: Api<k8s_openapi::api::certificates::v1::CertificateSigningRequest> = Api::all(hub.admin.clone());
    let limits = Limits { at_once: 4, deadline: None };
    // Looks, lets something happen, then acts.
    let between = |name: &str, happens: &dyn Fn()| -> Row {
        let (scope, options) = (Scope::Names(vec![name.to_owned()]), Options::default());
        let found = hub.wait(survey(&connection, &scope, &options)).expect("a look");
        happens();
        let rows = hub.wait(carry_out(&connection, found, DryRun::No, limits, Arc::new(Silent).as_ref(), |_| {}));
        rows.into_iter().next().expect("a row")
    };

    // Somebody touched the request: the same decision comes out.
    let request = hub.join("x1");
    let row = between("x1", &|| {
        hub.cluster.kubectl(&["label", "csr", &request, "touched=yes"]).expect("a label");
    });
    assert_eq!(row.outcome, Outcome::Accepted, "{row:?}");

    // Somebody denied it.
    let request = hub.join("x2");
    let row = between("x2", &|| hub.conclude(&request, "deny"));
    assert_eq!(row.outcome.code(), "RequestDenied", "{row:?}");
    assert!(!hub.is("Approved", &request) && !hub.accepts("x2"));

    // Somebody put another request in its place: the one that was shown is gone.
    hub.register("x3");
    let again = Ask { name: Some("x3-same".to_owned()), ..Ask::agent("x3") };
    hub.ask(&again);
    let row = between("x3", &|| {
        hub.wait(requests.delete("x3-same", &DeleteParams::default())).expect("a deletion");
        hub.ask(&Ask { name: Some("x3-same".to_owned()), ..Ask::agent("x3") });
    });
    assert_eq!(row.outcome.code(), "KeyChanged", "{row:?}");
    assert!(!hub.is("Approved", "x3-same") && !hub.accepts("x3"));

    // The cluster was removed and registered again: nobody looked at this registration.
    let request = hub.join("x4");
    let row = between("x4", &|| {
        hub.remove("x4");
        hub.register("x4");
    });
    assert_eq!(row.outcome.code(), "KeyChanged", "{row:?}");
    assert!(!hub.accepts("x4"), "{request}");

    // Everything is gone.
    hub.join("x5");
    let row = between("x5", &|| hub.remove("x5"));
    assert!(matches!(row.outcome, Outcome::Failed(_)), "{row:?}");

    // Two at the same time: one does it, the other one finds it done.
    let request = hub.join("x6");
    let mut runs: Vec<_> =
        (0..4).map(|_| hub.accept_command(&["x6"]).stdout(Stdio::null()).spawn().expect("it starts")).collect();
    assert!(runs.iter_mut().all(|run| run.wait().expect("it ends").success()));
    assert!(hub.is("Approved", &request) && hub.accepts("x6"));
    let approvals = hub.request(&request).status.and_then(|status| status.conditions).unwrap_or_default();
    assert_eq!(approvals.len(), 1, "{approvals:?}");
}

#[test]
fn rights_are_checked_before_anything_is_written() {
    let hub = hub();
    let request = hub.join("r1");
    let viewer = hub.cluster.user_kubeconfig("viewer", &["hub-viewers"]).expect("a user");
    for (what, verb, resource) in [
        ("clusters", "get,list", "managedclusters.cluster.open-cluster-management.io"),
        ("requests", "get,list", "certificatesigningrequests.certificates.k8s.io"),
        ("namespaces", "get,list", "namespaces"),
    ] {
        let name = format!("view-{what}");
        let (verb, resource) = (format!("--verb={verb}"), format!("--resource={resource}"));
        hub.cluster.kubectl(&["create", "clusterrole", &name, &verb, &resource]).expect("a role");
        let role = format!("--clusterrole={name}");
        hub.cluster.kubectl(&["create", "clusterrolebinding", &name, &role, "--group=hub-viewers"]).expect("a binding");
    }
    let before = hub.versions();
    let mut command = Command::new(e2e_tests::accept_support::accept_binary());
    command.args(["r1", "--deny", "no", "--kubeconfig"]).arg(&viewer).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("certificatesigningrequests/approval"), "{stderr}");
    let mut command = Command::new(e2e_tests::accept_support::accept_binary());
    let output = command.args(["r1", "--kubeconfig"]).arg(&viewer).stdin(Stdio::null()).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for right in ["certificatesigningrequests/approval", "signers", "managedclusters", "managedclusters/accept"] {
        assert!(stderr.contains(right), "{stderr}");
    }
    assert_eq!(hub.versions(), before);
    assert!(!hub.is("Approved", &request));

    // Somebody who may let in one cluster by its name.
    let team = hub.cluster.user_kubeconfig("team", &[]).expect("a user");
    let of_its_own = |mut rule: Value| {
        let is_written =
            rule["verbs"] != json!(["get"]) && rule["verbs"] != json!(["list"]) && rule["verbs"] != json!(["watch"]);
        if is_written && resources(&rule).iter().any(|kind| kind.starts_with("managedclusters")) {
            rule["resourceNames"] = json!(["r1"]);
        }
        rule
    };
    let rules: Vec<Value> = rights("accept.yaml").into_iter().map(of_its_own).collect();
    assert_eq!(rules.iter().filter(|rule| rule["resourceNames"] == json!(["r1"])).count(), 2, "{rules:#?}");
    bind_rules(&hub.cluster, "team", &rules);
    let other = hub.join("r2");
    let both = run(kubectl_ocm("accept", &team).args(["r1", "r2"]));
    assert_eq!(both.code, Some(1), "{both:?}");
    assert!(both.stderr.contains("managedclusters/accept") && !hub.is("Approved", &request), "{both:?}");
    let own = run(kubectl_ocm("accept", &team).arg("r1"));
    assert!(own.code == Some(0) && hub.accepts("r1"), "{own:?}");
    assert!(!hub.accepts("r2") && !hub.is("Approved", &other));

    // To deny, every cluster goes by itself: one without the right does not keep the other accepted.
    assert_eq!(hub.accept(&["r2"]).code, 0);
    let both = run(kubectl_ocm("accept", &team).args(["r1", "r2", "--deny", "no"]));
    assert_eq!(both.code, Some(1), "{both:?}");
    assert!(both.stdout.contains("managedcluster/r2 failed, Forbidden"), "{both:?}");
    assert!(!hub.accepts("r1") && hub.accepts("r2"), "{both:?}");
}

#[test]
fn on_a_terminal_somebody_is_asked() {
    let hub = hub();
    // The hub has put it into the default set, and an administrator labels it.
    let request = join_with(&hub, "t1", json!({CLUSTER_SET: "default"}));
    hub.cluster.kubectl(&["label", "managedcluster", "t1", "env=test"]).expect("a label");
    let kubeconfig = hub.cluster.kubeconfig().to_str().expect("text").to_owned();
    let answered = |scope: &str, keys: &str| {
        let cli = Cli::new();
        let words = [scope, "--kubeconfig", &kubeconfig];
        let mut terminal = Terminal::run(&cli, &e2e_tests::accept_support::accept_binary(), &words);
        terminal.wait_for("[y/N] ");
        terminal.press(keys);
        terminal.end()
    };
    for keys in ["n\n", "\n", "maybe\n"] {
        let before = hub.versions();
        let (code, shown) = answered("t1", keys);
        assert_eq!((code, hub.versions()), (3, before), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let (headings, row) =
            ("CLUSTER SET LABELS REQUEST AGE REQUESTER KEY", format!("t1 default env=test {request} "));
        for part in [headings, &row, BOOTSTRAP, "sha256:", "Accept this cluster?"] {
            assert!(words.contains(part), "{part}: {shown}");
        }
    }
    let (code, shown) = answered("--all-pending", "y\n");
    assert_eq!(code, 0, "{shown}");
    assert!(hub.accepts("t1") && hub.is("Approved", &request));
}

/// What a foreign signer is asked for in these tests.
const FOREIGN_SIGNER: &str = "example.com/foo";

/// A right request but for its signer, of which anybody can create as many as they like.
fn planted(name: &str) -> Ask {
    Ask { signer: FOREIGN_SIGNER.to_owned(), ..Ask::agent(name) }
}

#[test]
fn a_denial_withdraws_acceptance_whatever_was_planted() {
    let hub = hub();
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    let deny = |user: &Path, names: &[&str]| {
        let mut command = Command::new(e2e_tests::accept_support::accept_binary());
        command.args(names).args(["--deny", "no", "--output", "json", "--kubeconfig"]).arg(user).stdin(Stdio::null());
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for name in ["n1", "n2", "n3", "n4"] {
        hub.join(name);
        assert_eq!(hub.accept(&[name]).code, 0);
    }
    let foreign = hub.ask(&planted("n1"));
    let right = hub.ask(&Ask::agent("n1"));
    // The user has no right for that signer: this is told, and all else is done, also for the others.
    let (code, document) = deny(&user, &["n1", "n2"]);
    assert_eq!(code, Some(1), "{document}");
    assert!(document.contains(FOREIGN_SIGNER) || document.contains(&foreign), "{document}");
    assert!(!hub.accepts("n1") && !hub.accepts("n2"));
    assert!(hub.is("Denied", &right) && !hub.is("Denied", &foreign));

    // Nor does one that nobody else may deny keep somebody from withdrawing who may do that alone.
    let withdrawer = hub.cluster.user_kubeconfig("withdrawer", &[]).expect("a user");
    let decides = |rule: &Value| {
        resources(rule).iter().any(|kind| kind == "certificatesigningrequests/approval" || kind == "signers")
    };
    let rules = rights("accept.yaml").into_iter().filter(|rule| !decides(rule)).collect::<Vec<_>>();
    bind_rules(&hub.cluster, "withdrawer", &rules);
    let waits = hub.ask(&Ask::agent("n3"));
    let (code, document) = deny(&withdrawer, &["n3"]);
    assert_eq!(code, Some(1), "{document}");
    assert!(document.contains(&waits), "{document}");
    assert!(!hub.accepts("n3") && !hub.is("Denied", &waits));

    // Nor is anybody kept from it who may not even read requests, or what else an acceptance looks at.
    let blind = hub.cluster.user_kubeconfig("blind", &[]).expect("a user");
    let withdraws = |rule: &Value| resources(rule).iter().any(|kind| kind.starts_with("managedclusters"));
    // What it is waited for is the last one, and kubectl asks for none of a subresource.
    let rules = rights("accept.yaml").into_iter().rev().filter(withdraws).collect::<Vec<_>>();
    bind_rules(&hub.cluster, "blind", &rules);
    let (code, document) = deny(&blind, &["n4"]);
    assert_eq!(code, Some(1), "{document}");
    assert!(document.contains("n4 is not accepted any more, but its requests could not be read"), "{document}");
    assert!(!hub.accepts("n4"));
}

#[test]
fn strangers_requests_change_nothing_for_a_cluster_that_is_well() {
    let hub = hub();
    hub.join("s1");
    hub.ask(&planted("s1"));
    let run = hub.accept(&["s1", "--output", "json"]);
    assert_eq!((run.code, run.reason("s1").as_str()), (0, "Accepted"), "planted requests are no rivals: {run:?}");
    hub.set_conditions("s1", &[("ManagedClusterJoined", "True"), ("HubAcceptedManagedCluster", "True")]);
    let stranger = hub.ask(&Ask::with("s1", &Fixture::agent("s1", "other")));
    let run = leaves_all(&hub, &["s1"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.starts_with("managedcluster/s1 already accepted") && run.stderr.contains(&stranger), "{run:?}");
    // Names go to other keys one at a time.
    let run = leaves_all(&hub, &["s1", "s2", "--replace"]);
    assert_eq!(run.code, 2, "{run:?}");
    let run = leaves_all(&hub, &["--selector", "a=b", "--replace", "--yes"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(!hub.is("Approved", &stranger));
}

#[test]
fn an_approved_request_is_never_a_dead_end() {
    let hub = hub();
    // What was approved is gone.
    let request = hub.join("a1");
    hub.conclude(&request, "approve");
    hub.cluster.kubectl(&["delete", "csr", &request]).expect("a deletion");
    let run = leaves_all(&hub, &["a1", "--output", "json"]);
    assert_eq!((run.code, run.reason("a1").as_str()), (3, "NoRequest"), "{run:?}");
    assert!(run.row("a1")["hint"].as_str().is_some_and(|hint| hint.contains("--without-request")), "{run:?}");
    assert_eq!(leaves_all(&hub, &["--all-pending", "--without-request", "--yes"]).code, 2);
    assert_eq!(hub.accept(&["a1", "--without-request"]).code, 0);
    assert!(hub.accepts("a1"));
    // It is in, and nobody waits for a request that the hub has forgotten.
    for words in [&["a1"][..], &["a1", "--wait", "--timeout=5s"]] {
        let run = leaves_all(&hub, words);
        assert_eq!((run.code, run.stdout.as_str()), (0, "managedcluster/a1 already accepted\n"), "{run:?}");
    }
    // Another key than the one that is meant was approved: nothing that is told to type lets that one in.
    let request = hub.join("a3");
    hub.conclude(&request, "approve");
    let meant = format!("--fingerprint={}", "ab".repeat(32));
    let run = leaves_all(&hub, &["a3", &meant, "--output", "json"]);
    assert_eq!((run.code, run.reason("a3").as_str()), (3, "NoRequest"), "{run:?}");
    let row = run.row("a3");
    assert_eq!(row["hint"], "wait for its request with --wait", "{run:?}");
    let detail = row["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("the hub has no request with the key that is meant, and approved "), "{run:?}");
    // The agent asked before it registered, and a person approved after.
    let request = hub.ask(&Ask::agent("a2"));
    sleep(Duration::from_millis(2100));
    hub.register("a2");
    hub.conclude(&request, "approve");
    let run = hub.accept(&["a2", "--output", "json"]);
    assert_eq!((run.code, run.reason("a2").as_str(), hub.accepts("a2")), (0, "Accepted", true), "{run:?}");
}

#[test]
fn a_name_that_was_used_before_is_let_in_only_on_purpose() {
    let hub = hub();
    hub.join("b1");
    assert_eq!(hub.accept(&["b1"]).code, 0);
    hub.remove("b1");
    // A namespace that an earlier registration left behind.
    hub.cluster.kubectl(&["create", "namespace", "b2"]).expect("a namespace");
    hub.cluster.kubectl(&["label", "namespace", "b2", "open-cluster-management.io/cluster-name=b2"]).expect("a label");
    // And the role of the agents of another one.
    let role = ["create", "clusterrole", &managed_cluster_role("b3"), "--verb=get", "--resource=configmaps"];
    hub.cluster.kubectl(&role).expect("a role");
    sleep(Duration::from_millis(1100));
    let used = [
        ("b1", "a certificate for the name was approved before this registration"),
        ("b2", "its namespace is older than this registration"),
        ("b3", "the role of its agents is older than this registration"),
    ];
    let requests = used.map(|(name, _)| hub.join(name));
    let all = leaves_all(&hub, &["--all-pending", "--yes", "--output", "json"]);
    for (name, trace) in used {
        let alone = leaves_all(&hub, &[name, "--output", "json"]);
        for run in [&all, &alone] {
            assert_eq!((run.code, run.reason(name).as_str()), (3, "NameUsedBefore"), "{run:?}");
            let detail = run.row(name)["detail"].as_str().unwrap_or_default().to_owned();
            assert!(detail.ends_with(trace), "{run:?}");
        }
    }
    assert!(requests.iter().all(|request| !hub.is("Approved", request)));
    assert_eq!(hub.accept(&["b1", "b2", "b3", "--reuse-name"]).code, 0);
    assert!(used.iter().all(|(name, _)| hub.accepts(name)));
}

#[test]
fn a_name_is_used_until_the_certificates_that_the_controller_has_noted_have_ended() {
    const END: &str = "2126-01-01T00:00:00Z";
    const NOTE: &str = "does not count here";
    let hub = hub();
    let users = users_without_one_rule(&hub.cluster, "accept.yaml");
    let blind = users.iter().find(|(_, rule)| resources(rule) == ["registrations"]);
    let (blind, _) = blind.expect("accept reads Registrations");
    let user = user_with(&hub.cluster, "accepter", &["accept.yaml"]);
    let accept = |user: &Path, words: &[&str]| run(kubectl_ocm("accept", user).args(words));
    // A hub without a policy engine: nothing is noted, and nobody is told so.
    let first = hub.join("first");
    for user in [blind, &user] {
        let mut said = None;
        until("the user has its rights", || {
            let run = accept(user, &["first", "--dry-run=client"]);
            let done = run.code == Some(0);
            said = Some(run);
            done
        });
        let said = said.expect("it has run");
        assert!(!said.stderr.contains(NOTE), "{said:?}");
    }
    let said = accept(&user, &["first"]);
    assert!(said.code == Some(0) && hub.is("Approved", &first) && hub.accepts("first"), "{said:?}");

    know_registrations(&hub.cluster);
    let waiting = ["old", "ended", "own", "unreadable", "nothing"].map(|name| (name, hub.join(name)));
    let uid = hub.managed("own").metadata.uid.expect("a UID");
    note(&hub.cluster, "old", "another", END);
    note(&hub.cluster, "ended", "another", "2026-01-01T00:00:00Z");
    note(&hub.cluster, "own", &uid, END);
    note(&hub.cluster, "unreadable", "another", "soon");
    // Neither a namespace nor a role nor a request of the earlier cluster is there.
    let said = leaves_all(&hub, &["old", "--output", "json"]);
    assert_eq!((said.code, said.reason("old").as_str()), (3, "NameUsedBefore"), "{said:?}");
    assert!(said.row("old")["detail"].as_str().is_some_and(|detail| detail.ends_with(END)), "{said:?}");
    let shown = |name: &str| -> Value {
        let said = run(kubectl_ocm("get", hub.cluster.kubeconfig()).args(["clusters", name, "--output=json"]));
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    };
    assert_eq!(shown("old")["standing"]["nameUsedUntil"], json!(END));
    assert_eq!(shown("unreadable")["standing"]["nameUsedUntil"], json!("unknown"));
    assert!(["ended", "own", "nothing", "first"].iter().all(|name| shown(name)["standing"]["nameUsedUntil"].is_null()));
    let wide = run(kubectl_ocm("get", hub.cluster.kubeconfig()).args(["clusters", "--output=wide"]));
    let line = wide.stdout.lines().find(|line| line.starts_with("old ")).unwrap_or_default();
    assert!(wide.stdout.contains("NAME USED UNTIL") && line.trim_end().ends_with(END), "{wide:?}");
    // Who may not read it is told so once, where it would have counted, and goes by the rest.
    let said = accept(blind, &["old", "unreadable", "--dry-run=client"]);
    assert_eq!((said.code, said.stderr.matches(NOTE).count()), (Some(0), 1), "{said:?}");
    let said = accept(blind, &["old", "--dry-run=client", "--reuse-name"]);
    assert_eq!((said.code, said.stderr.matches(NOTE).count()), (Some(0), 0), "{said:?}");
    let said = accept(&user, &["old", "unreadable", "ended", "--dry-run=client"]);
    assert_eq!((said.code, said.stderr.matches(NOTE).count()), (Some(3), 0), "{said:?}");

    let all = hub.accept(&["--all-pending", "--yes", "--output", "json"]);
    let reasons: Vec<String> = waiting.iter().map(|(name, _)| all.reason(name)).collect();
    // Of the cluster itself another key was approved than the one that asks now.
    assert_eq!(reasons, ["NameUsedBefore", "Accepted", "NameTaken", "NameUsedBefore", "Accepted"], "{all:?}");
    let approved = waiting.iter().filter(|(_, request)| hub.is("Approved", request)).map(|(name, _)| *name);
    assert_eq!(approved.collect::<Vec<_>>(), ["ended", "nothing"]);
    let said = accept(&user, &["old", "unreadable", "--reuse-name"]);
    assert!(said.code == Some(0) && hub.accepts("old") && hub.accepts("unreadable"), "{said:?}");
    let said = accept(&user, &["own"]);
    assert!(said.code == Some(0) && hub.accepts("own"), "{said:?}");

    // Of many they are read as a list.
    let many: Vec<String> = (0..110).map(|number| format!("m{number}")).collect();
    hub.join_all(&many);
    let used = ["m7", "m105"];
    used.iter().for_each(|name| note(&hub.cluster, name, "another", END));
    let all = hub.accept(&["--all-pending", "--yes", "--output", "json"]);
    for name in &many {
        let expected = if used.contains(&name.as_str()) { "NameUsedBefore" } else { "Accepted" };
        assert_eq!(all.reason(name), expected, "{name}");
    }
}

#[test]
fn who_labels_itself_is_not_selected() {
    let hub = hub();
    join_with(&hub, "evil7", json!({"env": "prod"}));
    join_with(&hub, "evil8", json!({"env": "prod", CLUSTER_SET: "prod"}));
    // An administrator labels a cluster that waits. The hub has put it into the default set.
    join_with(&hub, "good", json!({CLUSTER_SET: "default"}));
    hub.cluster.kubectl(&["label", "managedcluster", "good", "env=prod"]).expect("a label");
    let run = hub.accept(&["--selector", "env=prod", "--yes", "--output", "json"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert_eq!((run.reason("evil7").as_str(), run.reason("evil8").as_str()), ("Labels", "ClusterSet"), "{run:?}");
    assert_eq!(run.reason("good"), "Accepted", "{run:?}");
    assert!(hub.accepts("good") && !hub.accepts("evil7") && !hub.accepts("evil8"));
    // What is shown before it is meant.
    let run = leaves_all(&hub, &["evil7", "--as-registered", "--dry-run=client"]);
    assert!(run.stdout.contains("env=prod"), "{run:?}");
    assert_eq!(hub.accept(&["evil7", "--as-registered"]).code, 0);
}

#[test]
fn a_lifetime_that_is_not_asked_for_counts_as_the_signers() {
    let hub = hub();
    hub.join("l1");
    let run = leaves_all(&hub, &["l1", "--max-lifetime", "1d", "--output", "json"]);
    assert_eq!((run.code, run.reason("l1").as_str()), (3, "Lifetime"), "{run:?}");
}

//! RegistrationApprovals on a real API server: who may write which, and which of them let a cluster in.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e_tests::accept_support::{Ask, Hub, Who, all_established};
use e2e_tests::approval_support::{REQUESTER, approval, approve, approve_only, guard, in_seconds, person, reader};
use e2e_tests::controller_support::{self, Controller, registration};
use e2e_tests::manifests::apply;
use e2e_tests::roles::{resources, user_with, users_without_one_right, users_without_one_rule};
use e2e_tests::shared_hub::{SharedHub, hub};
use e2e_tests::webhook_support::policy;
use e2e_tests::{kubectl_ocm, object, run, until};
use ocm_api::crds;
use serde_json::{Value, json};

fn with(mut approval: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').expect("a pointer");
    approval.pointer_mut(parent).expect("it is there")[member] = value;
    approval
}

#[test]
fn an_approval_is_its_authors_own_word_and_stays_as_it_is() {
    let hub = hub();
    hub.register("c1");
    hub.register("c2");
    guard(&hub);
    let definition = object(&hub.cluster, &["crd", crds::REGISTRATION_APPROVAL_NAME]);
    let conditions = definition["status"]["conditions"].as_array().expect("it has conditions");
    assert!(conditions.iter().all(|condition| condition["type"] != "NonStructuralSchema"), "{conditions:?}");
    let ours = crds::registration_approval_manifest();
    for part in ["names", "versions", "scope", "group"] {
        assert_eq!(definition["spec"][part], ours.body()["spec"][part], "{part}");
    }

    let ann = person(&hub, "ann", &["admins", "night"], &["approve", "break-glass"]);
    let bob = person(&hub, "bob", &["admins"], &["approve"]);
    let eve = person(&hub, "eve-writes", &["admins"], &[]);
    let of = |who: &str| approval(&hub, "c1", who);
    let glass = |seconds: i64, reason: &str| {
        let glass = with(with(of("ann"), "/spec/breakGlass", json!(true)), "/spec/reason", json!(reason));
        with(glass, "/spec/expiresAt", json!(in_seconds(seconds)))
    };
    let reason = "the store in Oslo is down";
    for (who, right) in [
        (&ann, of("ann")),
        (&bob, of("bob")),
        (&ann, with(of("ann"), "/spec/groups", json!(["admins", "night"]))),
        (&ann, with(of("ann"), "/spec/expiresAt", json!(in_seconds(30 * 86400 - 60)))),
        (&ann, glass(4 * 3600 - 60, reason)),
    ] {
        let said = approve(&hub, who, &right);
        assert_eq!(said.code, Some(0), "{right}: {said:?}");
    }
    for (who, wrong, sentence) in [
        (&bob, of("ann"), "an approval has to name its author as the approver (A1 Approver)"),
        (
            &bob,
            with(of("bob"), "/spec/groups", json!(["admins", "night"])),
            "only groups of its author (A1 ApproverGroups)",
        ),
        (&eve, of("eve-writes"), "takes the right to approve registrations in the group policy.kubectl-ocm.dev"),
        (&ann, with(of("ann"), "/spec/expiresAt", json!(in_seconds(-60))), "may not have ended when it is given"),
        (&ann, with(of("ann"), "/spec/expiresAt", json!(in_seconds(30 * 86400 + 60))), "has to end within 30 days"),
        (&ann, glass(4 * 3600 + 60, reason), "has to end within 4 hours (A1 ApprovalExpiry)"),
        (&ann, glass(3600, "because of that        "), "breakGlass needs a reason of at least 20 characters"),
        (
            &bob,
            with(with(of("bob"), "/spec/breakGlass", json!(true)), "/spec/reason", json!(reason)),
            "an approval with breakGlass takes the right to break-glass registrations in the group policy.kubectl-ocm.dev",
        ),
        (&ann, with(of("ann"), "/spec/expiresAt", json!("2026-02-30T00:00:00Z")), "must be of type date-time"),
        (&ann, with(of("ann"), "/spec/expiresAt", json!("tomorrow")), "should match"),
        (&ann, with(of("ann"), "/spec/cluster/uid", json!("")), "spec.cluster.uid in body should be at least 1 chars"),
        (&ann, with(of("ann"), "/spec/groups", json!(vec!["admins"; 2])), "Duplicate value"),
    ] {
        let said = approve(&hub, who, &wrong);
        assert!(said.code == Some(1) && said.stderr.contains(sentence), "{wrong}: {said:?}");
    }
    // The right to approve one cluster is none for another.
    let one = json!({"rules": [
        {"apiGroups": ["policy.kubectl-ocm.dev"], "resources": ["registrationapprovals"], "verbs": ["create"]},
        {"apiGroups": ["policy.kubectl-ocm.dev"], "resources": ["registrations"], "resourceNames": ["c2"], "verbs": ["approve"]},
    ]});
    let carl = person(&hub, "carl", &[], &[]);
    hub.cluster
        .kubectl(&["patch", "clusterrole", "carl", "--type=merge", "--patch", &one.to_string()])
        .expect("patched");
    let said = approve(&hub, &carl, &of("carl"));
    assert!(said.code == Some(1) && said.stderr.contains("(A1 ApprovalRight)"), "{said:?}");
    let said = approve(&hub, &carl, &approval(&hub, "c2", "carl"));
    assert_eq!(said.code, Some(0), "{said:?}");

    let name = said.stdout.trim().to_owned();
    let patch = json!({"spec": {"cluster": {"name": "c1"}}}).to_string();
    let patched = run(hub.cluster.kubectl_command().args(["patch", &name, "--type=merge", "--patch", &patch]));
    assert!(patched.code == Some(1) && patched.stderr.contains("an approval cannot be changed"), "{patched:?}");
    let shown = hub.cluster.kubectl(&["get", "happr"]).expect("they are listed");
    assert!(shown.lines().next().is_some_and(|head| head.split_whitespace().nth(2) == Some("APPROVER")), "{shown}");
    assert_eq!(shown.lines().count(), 7, "{shown}");

    // Approvals are guarded, too, where the rest only warns.
    let said = run(kubectl_ocm("install", hub.cluster.kubeconfig()).args(["baseline", "--audit", "--wait"]));
    assert!(said.code == Some(0) && said.stderr.contains("nothing is refused but forged approvals"), "{said:?}");
    let said = approve(&hub, &bob, &of("ann"));
    assert!(said.code == Some(1) && said.stderr.contains("(A1 Approver)"), "{said:?}");

    // They stay when the baseline goes.
    let said = run(kubectl_ocm("uninstall", hub.cluster.kubeconfig()).args(["baseline", "--yes", "--wait"]));
    assert!(said.code == Some(0) && said.stderr.contains("RegistrationApprovals stay"), "{said:?}");
    assert_eq!(hub.cluster.kubectl(&["get", "happr", "--output=name"]).expect("listed").lines().count(), 6);
}

/// A hub on which two people of the group `admins` let a cluster in.
fn two_people() -> SharedHub {
    let hub = controller_support::shared(false);
    let settings = json!({"required": 2, "groups": ["admins"]});
    policy(&hub.cluster, "two", json!({"module": {"builtin": "approvals"}, "settings": settings, "autoApprove": true}));
    hub
}

fn waits_for(hub: &Hub, name: &str) -> String {
    registration(hub, name)["waitingFor"].as_str().unwrap_or_default().to_owned()
}

fn says(hub: &Hub, name: &str, words: &str) {
    until(&format!("{name} waits for {words}: {}", waits_for(hub, name)), || waits_for(hub, name).contains(words));
    assert!(!hub.accepts(name) && !is_approved(hub, name), "{name}");
}

/// Whether a request for the cluster was approved.
fn is_approved(hub: &Hub, name: &str) -> bool {
    hub.approved().iter().any(|request| request.starts_with(&format!("{name}-")))
}

fn of(hub: &Hub, cluster: &str, approver: &str) -> Value {
    with(approval(hub, cluster, approver), "/spec/groups", json!(["admins"]))
}

#[track_caller]
fn approved(hub: &Hub, person: &Path, approval: &Value) -> String {
    let said = approve(hub, person, approval);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.trim().to_owned()
}

#[test]
fn two_people_let_a_cluster_in_and_nothing_less_does() {
    let hub = two_people();
    let names = ["forged", "two", "twice", "itself", "ended", "gone", "late"];
    for name in names {
        hub.join(name);
    }
    // The definition alone proves nothing: whoever may create approvals writes them in anybody's name.
    apply(&hub.cluster, crds::registration_approval_manifest().body());
    all_established(&hub.cluster);
    let eve = person(&hub, "eve-writes", &[], &[]);
    let controller = Controller::start(&hub);
    for name in ["forged", "two"] {
        for approver in ["ann", "bob"] {
            approved(&hub, &eve, &of(&hub, name, approver));
        }
    }
    says(&hub, "forged", "(ApprovalsUnproved)");

    guard(&hub);
    // What was written before it was in force for certain does not count.
    std::thread::sleep(Duration::from_secs(11));
    for name in names {
        says(&hub, name, "0 of 2 approvals of the right groups");
    }
    let ann = person(&hub, "ann", &["admins"], &["approve"]);
    let bob = person(&hub, "bob", &["admins"], &["approve"]);
    let night = person(&hub, "nightwatch", &["night"], &["approve"]);

    approved(&hub, &ann, &of(&hub, "two", "ann"));
    says(&hub, "two", "1 of 2 approvals");
    let other = with(of(&hub, "two", "nightwatch"), "/spec/groups", json!(["night"]));
    approved(&hub, &night, &other);
    for _ in 0..2 {
        approved(&hub, &ann, &of(&hub, "twice", "ann"));
    }
    says(&hub, "twice", "1 of 2 approvals");
    approved(&hub, &ann, &of(&hub, "itself", "ann"));
    let another = with(of(&hub, "itself", "bob"), "/spec/requester", json!("somebody else"));
    approved(&hub, &bob, &another);
    says(&hub, "itself", "1 of 2 approvals");
    approved(&hub, &ann, &with(of(&hub, "ended", "ann"), "/spec/expiresAt", json!(in_seconds(3))));
    says(&hub, "ended", "1 of 2 approvals");
    let withdrawn = approved(&hub, &ann, &of(&hub, "gone", "ann"));
    says(&hub, "gone", "1 of 2 approvals");
    hub.cluster.kubectl(&["delete", &withdrawn]).expect("withdrawn");
    says(&hub, "gone", "0 of 2 approvals");
    std::thread::sleep(Duration::from_secs(3));
    for name in ["gone", "ended"] {
        approved(&hub, &bob, &of(&hub, name, "bob"));
        says(&hub, name, "1 of 2 approvals");
    }
    assert!(hub.accepted().is_empty(), "{:?}", hub.accepted());

    // The second one lets it in, and it alone.
    approved(&hub, &bob, &of(&hub, "two", "bob"));
    until("two is accepted", || hub.accepts("two"));
    assert!(is_approved(&hub, "two") && hub.approved().len() == 1, "{:?}", hub.approved());
    until("the result is written", || registration(&hub, "two")["approvedBy"] == json!(["two"]));

    // Without the guard nothing counts, and nothing that is held is let in.
    let said = run(kubectl_ocm("uninstall", hub.cluster.kubeconfig()).args(["baseline", "--yes", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    says(&hub, "late", "(ApprovalsUnproved)");
    for approver in ["ann", "bob"] {
        approved(&hub, &eve, &of(&hub, "late", approver));
    }
    std::thread::sleep(Duration::from_secs(2));
    says(&hub, "late", "(ApprovalsUnproved)");
    guard(&hub);
    says(&hub, "late", "0 of 2 approvals");
    assert_eq!(hub.accepted(), ["two".to_owned()].into(), "{:?}", controller.log.lock().expect("nobody failed"));
}

#[test]
fn another_key_is_judged_anew_and_approvals_count_for_whoever_asked() {
    let hub = two_people();
    guard(&hub);
    // What was written before the guard was in force for certain does not count.
    std::thread::sleep(Duration::from_secs(11));
    let ann = person(&hub, "ann", &["admins"], &["approve"]);
    let bob = person(&hub, "bob", &["admins"], &["approve"]);
    let former = [hub.join("again"), hub.join("other")];
    let user = user_with(&hub.cluster, "controller", &["policy-controller.yaml"]);
    let mut controller = Controller::start_as(&user);
    for name in ["again", "other"] {
        approved(&hub, &ann, &of(&hub, name, "ann"));
        says(&hub, name, "1 of 2 approvals");
    }
    // Their requests are gone, as after a day: one asks with another key, for the other one somebody else does.
    for request in former {
        hub.cluster.kubectl(&["delete", "csr", &request]).expect("it is deleted");
    }
    let requests = [hub.ask(&Ask::agent("again")), hub.ask(&Ask::agent("other").by(Who::Token))];
    for (name, request, count) in [("again", &requests[0], 1), ("other", &requests[1], 0)] {
        until("the new request is judged", || {
            registration(&hub, name)["request"].to_string().contains(request.as_str())
        });
        says(&hub, name, &format!("{count} of 2 approvals"));
    }
    // What is given while nobody counts is counted later.
    assert_eq!(controller.terminate(), Some(0));
    for name in ["again", "other"] {
        approved(&hub, &bob, &of(&hub, name, "bob"));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(hub.accepted().is_empty() && hub.approved().is_empty());
    let _controller = Controller::start_as(&user);
    until("again is accepted", || hub.accepts("again"));
    says(&hub, "other", "0 of 2 approvals");
    assert_eq!(hub.approved(), [requests[0].clone()].into());
}

#[test]
fn without_a_right_that_approvals_need_nobody_is_let_in() {
    let hub = two_people();
    guard(&hub);
    let needed = ["registrationapprovals", "validatingadmissionpolicies"];
    let users = users_without_one_rule(&hub.cluster, "policy-controller.yaml");
    let users = users.into_iter().map(|(kubeconfig, rule)| (kubeconfig, resources(&rule)));
    let users: Vec<_> = users.filter(|(_, missing)| needed.contains(&missing[0].as_str())).collect();
    assert_eq!(users.len(), needed.len());
    let people = ["ann", "bob"].map(|name| (name, person(&hub, name, &["admins"], &["approve"])));
    std::thread::sleep(Duration::from_secs(11));
    hub.join("c1");
    for (name, kubeconfig) in &people {
        approved(&hub, kubeconfig, &of(&hub, "c1", name));
    }
    for (kubeconfig, missing) in &users {
        let mut controller = Controller::spawn(kubeconfig);
        until(&format!("it says that it lacks {missing:?}"), || {
            let said = controller.says.lock().expect("nobody failed").clone();
            format!("{said}{}", controller.get("/readyz")).contains(&missing[0])
        });
        assert!(!hub.accepts("c1"), "without {missing:?}");
        assert_eq!(controller.terminate(), Some(0), "{missing:?}");
    }
    let _controller = Controller::start(&hub);
    until("with all of them it is let in", || hub.accepts("c1"));
}

/// The approvals that a hub holds of a cluster.
fn approvals(hub: &Hub, cluster: &str) -> Vec<Value> {
    let all = object(&hub.cluster, &["registrationapprovals"])["items"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|approval| approval["spec"]["cluster"]["name"] == cluster).collect()
}

#[test]
fn people_type_their_approvals_and_the_second_one_lets_the_cluster_in() {
    let hub = two_people();
    for name in ["c1", "c2", "c3"] {
        hub.join(name);
    }
    let ann = reader(&hub, "ann", &["admins", "night"]);
    let bob = reader(&hub, "bob", &["admins"]);

    // Nothing is written that would not count.
    let said = approve_only(&ann, &["c1"]);
    assert!(said.code == 1 && said.stderr.contains("does not know approvals"), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm install baseline"), "{said:?}");
    apply(&hub.cluster, crds::registration_approval_manifest().body());
    all_established(&hub.cluster);
    let said = approve_only(&ann, &["c1"]);
    assert!(said.code == 3 && said.stderr.contains("does not prove who writes it"), "{said:?}");
    assert!(said.stderr.contains("kubectl ocm install baseline"), "{said:?}");
    assert!(approvals(&hub, "c1").is_empty());
    let _controller = Controller::start(&hub);

    guard(&hub);
    for dry_run in ["client", "server"] {
        let said = approve_only(&ann, &["c1", &format!("--dry-run={dry_run}")]);
        assert!(said.code == 0 && said.stdout.contains("managedcluster/c1 approval written ("), "{said:?}");
        assert!(approvals(&hub, "c1").is_empty(), "{dry_run}");
    }
    // At once after the installation: it waits until what it writes counts.
    let words = ["c1", "--reason", "ticket 4711", "--group", "admins", "-o", "json"];
    let said = approve_only(&ann, &words);
    assert_eq!((said.code, said.reason("c1")), (0, "ApprovalWritten".to_owned()), "{said:?}");
    let [written] = &approvals(&hub, "c1")[..] else { panic!("one approval") };
    assert_eq!(said.row("c1")["approval"], written["metadata"]["name"], "{said:?}");
    assert_eq!(said.row("c1")["accepted"], false, "{said:?}");
    let spec = &written["spec"];
    let uid = hub.managed("c1").metadata.uid;
    assert_eq!(spec["cluster"], json!({"name": "c1", "uid": uid}));
    assert_eq!(
        [&spec["approver"], &spec["requester"], &spec["groups"], &spec["reason"]],
        [&json!("ann"), &json!(REQUESTER), &json!(["admins"]), &json!("ticket 4711")]
    );
    let ends = spec["expiresAt"].as_str().expect("a time");
    assert!(in_seconds(71 * 3600).as_str() < ends && ends < in_seconds(73 * 3600).as_str(), "{ends}");
    assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], json!(uid));
    says(&hub, "c1", "1 of 2 approvals");

    // One person's word counts once, however often it is typed, and at once.
    let said = approve_only(&ann, &["c1", "--group", "admins", "-o", "json"]);
    assert_eq!((said.code, said.reason("c1")), (0, "AlreadyApproved".to_owned()), "{said:?}");
    let both: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| approve_only(&ann, &["c2", "c3", "-o", "json"]))).collect();
        runs.into_iter().map(|run| run.join().expect("it ends")).collect()
    });
    assert!(both.iter().all(|run| run.code == 0), "{both:?}");
    let wrote = both.iter().filter(|run| run.reason("c2") == "ApprovalWritten").count();
    assert_eq!((wrote, approvals(&hub, "c2").len(), approvals(&hub, "c3").len()), (1, 1, 1), "{both:?}");
    assert_eq!(approvals(&hub, "c2")[0]["spec"]["groups"], json!(["admins", "night"]));
    says(&hub, "c2", "1 of 2 approvals");
    assert!(hub.accepted().is_empty() && hub.approved().is_empty());

    let said = approve_only(&bob, &["c1", "-o", "name"]);
    assert!(said.code == 0 && said.stdout.starts_with("registrationapproval.policy.kubectl-ocm.dev/c1-"), "{said:?}");
    until("c1 is accepted", || hub.accepts("c1"));
    assert_eq!((hub.accepted(), hub.approved().len()), (["c1".to_owned()].into(), 1));
    let said = approve_only(&bob, &["c1", "-o", "json"]);
    assert_eq!((said.code, said.reason("c1")), (0, "AlreadyAccepted".to_owned()), "{said:?}");
    let said = approve_only(&bob, &["--all-pending"]);
    assert!(said.code == 2 && said.stderr.contains("--yes"), "{said:?}");
    let said = approve_only(&bob, &["--all-pending", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    until("the others are accepted", || hub.accepted().len() == 3);

    // An approval is about its cluster and goes with it.
    let names = |hub: &Hub| approvals(hub, "c2").len();
    assert_eq!(names(&hub), 2);
    hub.remove("c2");
    let begun = Instant::now();
    while names(&hub) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(90), "approvals of a cluster that is gone stay");
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(approvals(&hub, "c3").len(), 2);
}

#[test]
fn what_accept_refuses_is_not_approved_and_whoever_asks_does_not_approve() {
    let hub = hub();
    hub.register("silent");
    hub.register("strange");
    hub.ask(&Ask::agent("strange").by(Who::Eva));
    for name in ["own", "short", "taken", "gone"] {
        hub.join(name);
    }
    guard(&hub);
    let ann = reader(&hub, "ann", &["admins"]);
    let before = hub.versions();
    for (name, code) in [("silent", "NoRequest"), ("strange", "Requester"), ("nobody", "NoManagedCluster")] {
        let said = approve_only(&ann, &[name, "-o", "json"]);
        assert_eq!((said.code, said.reason(name)), (3, code.to_owned()), "{said:?}");
        let hint = said.row(name)["hint"].as_str().unwrap_or_default().to_owned();
        assert!(!hint.contains("--wait") && !hint.contains("--without-request"), "{said:?}");
    }
    let binding = ["create", "clusterrolebinding", "asker", "--clusterrole=kubectl-ocm-accept-approve-only"];
    hub.cluster.kubectl(&[&binding[..], &[&format!("--user={REQUESTER}")]].concat()).expect("bound");
    let said = hub.accept(&["own", "--approve-only", "--as", REQUESTER, "-o", "json"]);
    assert_eq!((said.code, said.reason("own")), (3, "Approver".to_owned()), "{said:?}");
    assert!(said.stderr.contains("is no person"), "{said:?}");
    let said = approve_only(&ann, &["own", "--group", "masters"]);
    assert!(said.code == 2 && said.stderr.contains("you are not in the group \"masters\""), "{said:?}");
    assert_eq!(object(&hub.cluster, &["registrationapprovals"])["items"], json!([]));

    // What has ended is said anew.
    for _ in 0..2 {
        let said = approve_only(&ann, &["short", "--expires", "5s", "-o", "json"]);
        assert_eq!((said.code, said.reason("short")), (0, "ApprovalWritten".to_owned()), "{said:?}");
        std::thread::sleep(Duration::from_secs(6));
    }
    assert_eq!(approvals(&hub, "short").len(), 2);

    // A name that somebody took is no approval.
    let eve = person(&hub, "eve-writes", &[], &["approve"]);
    let said = approve_only(&ann, &["taken", "--dry-run=client", "-o", "json"]);
    let name = said.row("taken")["approval"].clone();
    approved(&hub, &eve, &with(approval(&hub, "gone", "eve-writes"), "/metadata/name", name));
    let said = approve_only(&ann, &["taken", "gone", "-o", "json"]);
    assert_eq!(
        (said.code, said.reason("taken"), said.reason("gone")),
        (1, "Conflict".to_owned(), "ApprovalWritten".to_owned())
    );
    assert!(
        said.row("taken")["detail"].as_str().is_some_and(|detail| detail.contains("says something else")),
        "{said:?}"
    );
    assert_eq!((approvals(&hub, "taken").len(), hub.versions()), (0, before));
}

#[test]
fn without_a_right_that_approve_only_needs_nothing_is_written() {
    let hub = hub();
    guard(&hub);
    hub.join("c1");
    let users = users_without_one_right(&hub.cluster, "accept-approve-only.yaml");
    // Of one cluster that the hub's own account registers, neither lists nor the bindings of others are read; a role or a
    // Registration that nobody may read is one trace less of a name that was used before.
    let unused = [
        "may not list managedclusters.cluster.open-cluster-management.io",
        "may not list namespaces",
        "may not get clusterroles.rbac.authorization.k8s.io",
        "may not list clusterroles.rbac.authorization.k8s.io",
        "may not list clusterrolebindings.rbac.authorization.k8s.io",
        "may not get registrations.policy.kubectl-ocm.dev",
        "may not list registrations.policy.kubectl-ocm.dev",
    ];
    std::thread::sleep(Duration::from_secs(11));
    let mut works = Vec::new();
    for (user, missing) in &users {
        let said = hub.accept(&["c1", "--approve-only", "--as", user]);
        if unused.contains(&missing.as_str()) {
            assert_eq!(said.code, 0, "without {missing:?}: {said:?}");
            works.push(missing.as_str());
            continue;
        }
        assert_eq!(said.code, 1, "without {missing:?}: {said:?}");
        // Of what is asked before anything is read the API server's answer names verb and resource.
        let resource = missing.split_whitespace().nth(3).and_then(|name| name.split('.').next()).expect("a resource");
        assert!(said.stderr.contains(missing) || said.stderr.contains(resource), "{missing}: {said:?}");
    }
    works.sort_unstable();
    let mut expected = unused;
    expected.sort_unstable();
    assert_eq!(works, expected);
    let written = approvals(&hub, "c1");
    let authors: Vec<_> = written.iter().map(|approval| approval["spec"]["approver"].clone()).collect();
    assert_eq!(written.len(), unused.len(), "{authors:?}");

    // The right to approve one cluster is none for another, and no cluster is approved then.
    hub.join("c2");
    let one = json!([{"op": "add", "path": "/rules/-", "value": {
        "apiGroups": ["policy.kubectl-ocm.dev"], "resources": ["registrations"], "resourceNames": ["c2"], "verbs": ["approve"],
    }}]);
    let (user, _) = users.iter().find(|(_, missing)| missing.starts_with("may not approve")).expect("it is a right");
    hub.cluster.kubectl(&["patch", "clusterrole", user, "--type=json", "--patch", &one.to_string()]).expect("patched");
    until("the right to approve c2 is known", || hub.accept(&["c2", "--approve-only", "--as", user]).code == 0);
    let said = hub.accept(&["c1", "c2", "--approve-only", "--as", user]);
    assert!(
        said.code == 1 && said.stderr.contains("may not approve registrations.policy.kubectl-ocm.dev \"c1\""),
        "{said:?}"
    );
    assert_eq!((approvals(&hub, "c1").len(), approvals(&hub, "c2").len()), (unused.len(), 1));
    assert!(hub.accepted().is_empty() && hub.approved().is_empty());
}

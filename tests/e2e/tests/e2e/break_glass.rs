//! Approvals with breakGlass on a real API server: their authors pass over the policies that let them, and nobody else does.

#![expect(clippy::expect_used, reason = "what a test needs and cannot get must end it")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e_tests::accept_support::{Ask, Hub, Run, Who, accept_binary};
use e2e_tests::approval_support::{approval, approve, guard, in_seconds, reader};
use e2e_tests::controller_support::{self, Controller};
use e2e_tests::roles::{user_with, users_without_one_right};
use e2e_tests::shared_hub::SharedHub;
use e2e_tests::webhook_support::{Webhook, policy};
use e2e_tests::{Said, object, run, until};
use ocm_core::policy_engine::FailurePolicy;
use serde_json::{Value, json};

const REASON: &str = "incident 815: the inventory is down";

/// A hub on which these clusters wait and a policy refuses whatever is not called prod, but for those who break glass. For the
/// `others` a bootstrap token asks as well, and was let in, or asks alone where nobody else has joined them.
fn refusing(clusters: &[&str], others: &[&str]) -> (SharedHub, Webhook) {
    let hub = controller_support::shared(false);
    for cluster in clusters {
        hub.join(cluster);
    }
    for cluster in others {
        if clusters.contains(cluster) {
            hub.conclude(&hub.ask(&Ask::agent(cluster).by(Who::Token)), "approve");
        } else {
            hub.register(cluster);
            hub.ask(&Ask::agent(cluster).by(Who::Token));
        }
    }
    guard(&hub);
    let webhook = Webhook::start(&hub.cluster, &[]);
    webhook.configure_as_installed(&hub.cluster, FailurePolicy::Fail);
    policy(&hub.cluster, "names", refuses("Allowed"));
    until("the policy refuses", || {
        let said = hub.accept(&[clusters[0], "--dry-run=server"]);
        said.stdout.contains("policy names")
    });
    (hub, webhook)
}

fn refuses(break_glass: &str) -> Value {
    json!({"module": {"builtin": "name-pattern"}, "settings": {"patterns": ["prod-*"]}, "breakGlass": break_glass})
}

fn accept(person: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(accept_binary());
    command.args(arguments).arg("--kubeconfig").arg(person).stdin(Stdio::null());
    let Said { code, stdout, stderr } = run(&mut command);
    Run { code: code.unwrap_or(-1), stdout, stderr }
}

/// The approvals that a hub holds.
fn approvals(hub: &Hub) -> Vec<Value> {
    object(&hub.cluster, &["registrationapprovals"])["items"].as_array().cloned().unwrap_or_default()
}

/// How many events of this reason the hub has.
fn events(hub: &Hub, reason: &str) -> Vec<Value> {
    let all = object(&hub.cluster, &["events", "--field-selector", &format!("reason={reason}")]);
    all["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn whoever_may_break_glass_accepts_past_a_policy_and_everybody_hears_of_it() {
    let (hub, webhook) = refusing(&["c1", "c2", "prod-1"], &[]);
    let controller = Controller::start(&hub);
    let ann = user_with(&hub.cluster, "ann", &["accept.yaml", "accept-break-glass.yaml"]);
    let bob = user_with(&hub.cluster, "bob", &["accept.yaml"]);

    let said = accept(&ann, &["c1", "--break-glass", "too short"]);
    assert!(said.code == 2 && said.stderr.contains("--break-glass has 9 characters"), "{said:?}");
    let said = accept(&ann, &["c1", "--break-glass", REASON, "--expires", "5h"]);
    assert!(said.code == 2 && said.stderr.contains("4 hours at most"), "{said:?}");
    for dry_run in ["client", "server"] {
        let said = accept(&ann, &["c1", "--break-glass", REASON, &format!("--dry-run={dry_run}")]);
        assert!(said.code == 0 && said.stdout.contains("managedcluster/c1 accepted ("), "{said:?}");
    }
    let said = accept(&bob, &["c1", "--break-glass", REASON]);
    assert!(said.code == 1 && said.stderr.contains("registrationapprovals"), "{said:?}");
    assert!(approvals(&hub).is_empty() && hub.accepted().is_empty() && hub.approved().is_empty());

    // A dry run of the approval alone lets nothing pass, and what a policy does not object to needs none.
    let said = accept(&ann, &["c1"]);
    assert!(said.code == 1 && said.stdout.contains("policy names"), "{said:?}");
    assert_eq!(accept(&ann, &["prod-1"]).code, 0);
    assert!(approvals(&hub).is_empty());

    // Whoever asks why is told so before, with what helps.
    let viewer = user_with(&hub.cluster, "viewer", &["accept-explain.yaml"]);
    let explain = |cluster: &str| accept(&viewer, &[cluster, "--explain", "-o", "json"]);
    until("the controller has asked the policy", || {
        let said = explain("c1");
        said.code == 3 && !said.row("c1")["refusedByPolicies"].is_null()
    });
    let told = explain("c1").row("c1");
    assert_eq!((&told["code"], &told["policies"]["finding"]), (&json!("Accepted"), &json!("Denied")), "{told:#}");
    assert!(told["refusedByPolicies"].as_str().is_some_and(|why| why.starts_with("policy names: ")), "{told:#}");
    assert!(told["next"].to_string().contains("kubectl ocm accept c1 --break-glass REASON"), "{told:#}");
    assert_eq!(told["policies"]["unread"], json!([]), "{told:#}");
    assert_eq!(explain("prod-1").code, 0, "{:?}", explain("prod-1"));

    let said = accept(&ann, &["c1", "--break-glass", REASON, "-o", "json"]);
    assert_eq!((said.code, said.reason("c1")), (0, "Accepted".to_owned()), "{said:?}");
    let [written] = &approvals(&hub)[..] else { panic!("one approval") };
    assert_eq!(said.row("c1")["approval"], written["metadata"]["name"]);
    let spec = &written["spec"];
    assert_eq!(
        [&spec["approver"], &spec["breakGlass"], &spec["reason"]],
        [&json!("ann"), &json!(true), &json!(REASON)]
    );
    let ends = spec["expiresAt"].as_str().expect("a time");
    assert!(in_seconds(55 * 60).as_str() < ends && ends < in_seconds(65 * 60).as_str(), "{ends}");
    assert!(hub.accepts("c1") && hub.approved().iter().any(|request| request.starts_with("c1-")));

    // The log, the metrics and an event tell it.
    let broken = |line: &Value| line["breakGlass"] == written["metadata"]["name"] && line["requester"] == "ann";
    let lines: Vec<Value> =
        webhook.log.lock().expect("nobody failed").iter().filter(|line| broken(line)).cloned().collect();
    let operations: Vec<&str> = lines.iter().filter_map(|line| line["operation"].as_str()).collect();
    assert!(operations.contains(&"approve") && operations.contains(&"accept"), "{lines:?}");
    assert!(lines.iter().all(|line| line["refused"] == false), "{lines:?}");
    assert!(
        webhook.get("/metrics").contains("ocm_policy_break_glass_admissions_total 2"),
        "{}",
        webhook.get("/metrics")
    );
    until("an event tells it", || !events(&hub, "BreakGlass").is_empty());
    let event = &events(&hub, "BreakGlass")[0];
    assert_eq!((&event["involvedObject"]["name"], &event["type"]), (&json!("c1"), &json!("Warning")));
    assert!(
        event["message"].as_str().is_some_and(|text| text.starts_with("ann ") && text.ends_with(REASON)),
        "{event}"
    );
    until("it is counted", || controller.get("/metrics").contains("ocm_policy_break_glass_approvals 1"));

    // It is hers, and of this cluster.
    for person in [&ann, &bob] {
        let said = accept(person, &["c2"]);
        assert!(said.code == 1 && said.stdout.contains("policy names"), "{said:?}");
    }
    // Where a policy does not let it, nobody passes, and what was written stays to be seen.
    policy(&hub.cluster, "names", refuses("Never"));
    let never = || {
        let said = accept(&ann, &["c2", "--break-glass", REASON]);
        said.code == 1 && said.stdout.contains("policy names")
    };
    until("it is never broken", never);
    assert!(!hub.accepts("c2") && !hub.approved().iter().any(|request| request.starts_with("c2-")));
    drop(controller);
    assert_eq!(events(&hub, "BreakGlass").len(), 1, "what nobody can pass by is no alarm");
}

#[test]
fn nothing_else_breaks_glass() {
    let names = ["bystander", "ordinary", "ended", "unproved", "own", "taken"];
    let (hub, _webhook) = refusing(&names, &["taken", "strange"]);
    // Whoever is the administrator may do everything but this without an approval.
    std::thread::sleep(Duration::from_secs(11));
    let ann = user_with(&hub.cluster, "ann", &["accept.yaml", "accept-break-glass.yaml"]);
    let refused = |name: &str| {
        let said = accept(&ann, &[name]);
        assert!(said.code == 1 && said.stdout.contains("policy names"), "{name}: {said:?}");
    };
    let of = |cluster: &str, approver: &str, seconds: i64| {
        let mut approval = approval(&hub, cluster, approver);
        approval["spec"]["breakGlass"] = json!(true);
        approval["spec"]["reason"] = json!(REASON);
        approval["spec"]["expiresAt"] = json!(in_seconds(seconds));
        approval
    };
    // Another person's is no one's.
    let eve = user_with(&hub.cluster, "eve", &["accept-break-glass.yaml"]);
    assert_eq!(approve(&hub, &eve, &of("bystander", "eve", 600)).code, Some(0));
    // Neither is one that only approves, or one that has ended.
    let reads = reader(&hub, "ann", &[]);
    let mut plain = approval(&hub, "ordinary", "ann");
    plain["spec"]["reason"] = json!(REASON);
    assert_eq!(approve(&hub, &reads, &plain).code, Some(0));
    assert_eq!(approve(&hub, &ann, &of("ended", "ann", 3)).code, Some(0));
    assert_eq!(approve(&hub, &ann, &of("unproved", "ann", 600)).code, Some(0));
    std::thread::sleep(Duration::from_secs(4));
    for name in ["bystander", "ordinary", "ended"] {
        refused(name);
    }
    // Hers lets in whom it names, and nobody else who asks for the same cluster.
    for name in ["taken", "strange", "own"] {
        assert_eq!(approve(&hub, &ann, &of(name, "ann", 600)).code, Some(0));
    }
    let accepts = |name: &str| {
        let mut command = hub.cluster.kubectl_command();
        let patch = r#"{"spec": {"hubAcceptsClient": true}}"#;
        run(command.args(["patch", "managedcluster", name, "--type=merge", "--patch", patch, "--kubeconfig"]).arg(&ann))
    };
    until("the webhook knows of her approvals", || accepts("own").code == Some(0));
    let said = accepts("taken");
    assert!(said.code == Some(1) && said.stderr.contains("policy names"), "{said:?}");
    // A stranger's request that waits is in nobody's way, and waits still.
    assert_eq!(accepts("strange").code, Some(0));
    // Without its guard anybody could have written it in her name.
    let said = run(e2e_tests::kubectl_ocm("uninstall", hub.cluster.kubeconfig()).args(["baseline", "--yes", "--wait"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    std::thread::sleep(Duration::from_secs(2));
    refused("unproved");
    let nobody_else = || {
        assert_eq!(hub.accepted(), ["own".to_owned(), "strange".to_owned()].into());
        assert!(hub.approved().iter().all(|request| request.starts_with("taken-")), "{:?}", hub.approved());
    };
    nobody_else();
    let said = accept(&ann, &["unproved", "--break-glass", REASON]);
    assert!(said.code != 0 && said.stderr.contains("kubectl ocm install baseline"), "{said:?}");
    guard(&hub);
    std::thread::sleep(Duration::from_secs(11));
    refused("unproved");
    nobody_else();
}

#[test]
fn without_a_right_that_it_needs_nobody_passes() {
    let (hub, _webhook) = refusing(&["c1"], &[]);
    std::thread::sleep(Duration::from_secs(11));
    user_with(&hub.cluster, "all", &["accept.yaml"]);
    let users = users_without_one_right(&hub.cluster, "accept-break-glass.yaml");
    assert_eq!(users.len(), 5);
    for (user, missing) in &users {
        let binding = format!("accept-{user}");
        let words = ["create", "clusterrolebinding", &binding, "--clusterrole=kubectl-ocm-accept"];
        hub.cluster.kubectl(&[&words[..], &[&format!("--user={user}")]].concat()).expect("bound");
        let said = hub.accept(&["c1", "--break-glass", REASON, "--as", user]);
        assert_eq!(said.code, 1, "without {missing:?}: {said:?}");
        assert!(said.stderr.contains(missing), "without {missing:?}: {said:?}");
    }
    assert!(approvals(&hub).is_empty() && hub.accepted().is_empty() && hub.approved().is_empty());
}

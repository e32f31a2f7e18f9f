//! RegistrationApprovals on a real API server: who may write which.

use e2e_tests::accept_support::Hub;
use e2e_tests::approval_support::{approval, approve, guard, in_seconds, person};
use e2e_tests::{kubectl_ocm, object, run};
use ocm_api::crds;
use serde_json::{Value, json};

fn with(mut approval: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').expect("a pointer");
    approval.pointer_mut(parent).expect("it is there")[member] = value;
    approval
}

#[test]
fn an_approval_is_its_authors_own_word_and_stays_as_it_is() {
    let hub = Hub::start("approvals");
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

//! Taking the static baseline away on a real API server: what goes, what stays, and who may.

use std::collections::BTreeMap;
use std::path::Path;

use cli_tests::terminal::Terminal;
use cli_tests::{Cli, binary};
use e2e_tests::accept_support::{Ask, Hub, Who, managed_cluster};
use e2e_tests::roles::{user_with, users_without_one_right};
use e2e_tests::shared_hub::hub;
use e2e_tests::{Said, kubectl_ocm, run, series};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use ocm_api::ManagedCluster;
use ocm_core::baseline;
use serde_json::{Value, json};

const KINDS: &str = "validatingadmissionpolicybindings,validatingadmissionpolicies";

/// The label that tells what is ours.
const LABEL: &str = "app.kubernetes.io/part-of";

fn command(kubeconfig: &Path, verb: &str, flags: &[&str]) -> Said {
    run(kubectl_ocm(verb, kubeconfig).arg("baseline").args(flags))
}

#[track_caller]
fn uninstall(hub: &Hub, flags: &[&str], code: i32) -> Said {
    let said = command(hub.cluster.kubeconfig(), "uninstall", flags);
    assert_eq!(said.code, Some(code), "{flags:?}: {said:?}");
    said
}

#[track_caller]
fn install(hub: &Hub, flags: &[&str]) {
    let said = command(hub.cluster.kubeconfig(), "install", flags);
    assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
}

/// Everything that an API server does by itself, with UID and resource version.
fn objects(hub: &Hub) -> BTreeMap<String, String> {
    let list = hub.cluster.kubectl(&["get", KINDS, "--output=json"]).expect("they are listed");
    let list: Value = serde_json::from_str(&list).expect("kubectl prints JSON");
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of = |object: &Value| {
        let name = format!("{}/{}", text(object, "/kind").to_lowercase(), text(object, "/metadata/name"));
        (name, text(object, "/metadata/uid") + " " + &text(object, "/metadata/resourceVersion"))
    };
    list["items"].as_array().into_iter().flatten().map(of).collect()
}

/// The objects of the baseline in the order in which they are deleted, as kubectl names them.
fn order() -> Vec<String> {
    baseline::removal().objects().map(|manifest| format!("{}/{}", manifest.plural(), manifest.name())).collect()
}

/// Whether a wrong cluster and a wrong request are refused by the baseline.
fn refuses(hub: &Hub) -> [bool; 2] {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut cluster = managed_cluster("c1");
    cluster.metadata.labels = Some([("env".to_owned(), "prod".to_owned())].into());
    let clusters: Api<ManagedCluster> = Api::all(hub.client(Who::Bootstrap));
    let request = Ask { usages: vec!["digital signature".into(), "server auth".into()], ..Ask::agent("c1") };
    let requests: Api<CertificateSigningRequest> = Api::all(hub.client(Who::Bootstrap));
    let answers = [
        hub.wait(clusters.create(&dry, &cluster)).map(drop),
        hub.wait(requests.create(&dry, &request.object())).map(drop),
    ];
    answers.map(|answer| match answer {
        Ok(()) => false,
        Err(kube::Error::Api(status)) if status.message.contains("baseline.kubectl-ocm.dev' denied request: ") => true,
        Err(error) => panic!("not by the baseline: {error}"),
    })
}

fn document(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn what_was_refused_passes_again_and_nothing_else_is_deleted() {
    let hub = hub();
    // Somebody else's, with our label.
    let other = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "other.example.com", "labels": {LABEL: "kubectl-ocm"}},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "true"}],
        },
    });
    let file = hub.cluster.dir().expect("a folder").join("other.json");
    std::fs::write(&file, other.to_string()).expect("written");
    hub.cluster.kubectl(&["apply", "--filename", file.to_str().expect("text")]).expect("made");
    // The hub itself writes its status, once, as soon as it comes to it.
    let seen = ["wait", "--for=jsonpath={.status.observedGeneration}=1", "validatingadmissionpolicy/other.example.com"];
    hub.cluster.kubectl(&[&seen[..], &["--timeout=60s"]].concat()).expect("it is looked at");
    let nothing = objects(&hub);
    assert_eq!(refuses(&hub), [false; 2]);
    install(&hub, &["--wait"]);
    let (installed, rows) = (objects(&hub), baseline::removal());
    assert_eq!((installed.len(), refuses(&hub)), (9, [true; 2]));

    // Looking changes nothing, and neither does a command that nobody can answer.
    for (flag, remark) in [("--dry-run", " (dry run)"), ("--dry-run=server", " (server dry run)")] {
        let said = uninstall(&hub, &[flag], 0);
        let lines: Vec<String> = rows.objects().map(|row| format!("{} deleted{remark}", row.reference())).collect();
        assert_eq!(said.stdout.lines().collect::<Vec<_>>(), lines);
        assert!(said.stderr.contains("for real, the API server then no longer refuses: managed clusters"), "{said:?}");
        let said = document(&uninstall(&hub, &[flag, "--wait", "--output=json"], 0));
        let outcomes: Vec<&Value> =
            said["objects"].as_array().into_iter().flatten().map(|row| &row["outcome"]).collect();
        assert_eq!(
            (outcomes, &said["changed"], &said["inForce"]),
            (vec![&json!("deleted"); 8], &json!(true), &Value::Null)
        );
    }
    let said = uninstall(&hub, &["--wait"], 2);
    assert!(said.stderr.contains("cannot prompt") && said.stderr.contains("--yes"), "{said:?}");
    assert_eq!((objects(&hub), refuses(&hub)), (installed, [true; 2]));

    let keeper = user_with(&hub.cluster, "keeper", &["uninstall-baseline.yaml"]);
    let said = command(&keeper, "uninstall", &["--wait", "--yes"]);
    assert_eq!((said.code, refuses(&hub)), (Some(0), [false; 2]), "{said:?}");
    let lines: Vec<String> = rows.objects().map(|row| format!("{} deleted", row.reference())).collect();
    assert_eq!(said.stdout.lines().collect::<Vec<_>>(), lines);
    assert!(said.stderr.contains("note: the API server no longer refuses: managed clusters"), "{said:?}");
    assert_eq!(objects(&hub), nothing);

    // Again, with nothing to delete: nobody is asked.
    let said = uninstall(&hub, &["--wait", "--output=name"], 0);
    assert!(said.stdout.is_empty() && said.stderr.contains("there is no baseline"), "{said:?}");
    let said = document(&uninstall(&hub, &["--wait", "--output=json"], 0));
    assert_eq!(
        (&said["changed"], &said["inForce"], &said["objects"][5]["outcome"]),
        (&json!(false), &json!(false), &json!("absent"))
    );
    assert_eq!(objects(&hub), nothing);

    // What only warned is told so.
    install(&hub, &["--wait", "--audit"]);
    let said = uninstall(&hub, &["--wait", "--yes"], 0);
    assert!(said.stderr.contains("no longer warns of: ") && !said.stderr.contains("refuses: managed"), "{said:?}");
    // Forged approvals are refused all the same.
    assert!(said.stderr.contains("refuses: approvals of registrations in others' names"), "{said:?}");
}

#[test]
fn what_somebody_else_made_is_named_and_nothing_is_deleted() {
    let hub = hub();
    install(&hub, &[]);
    for (name, row) in order().iter().zip(baseline::removal().objects()) {
        for other in ["app.kubernetes.io/part-of=other", "app.kubernetes.io/part-of-"] {
            hub.cluster.kubectl(&["label", "--overwrite", name, other]).expect("labelled");
            let before = objects(&hub);
            for flag in ["--yes", "--dry-run", "--dry-run=server"] {
                let said = uninstall(&hub, &[flag], 3);
                let sentence = format!("error: somebody else made {} (", row.reference());
                assert!(said.stderr.contains(&sentence) && said.stderr.contains("nothing was deleted"), "{said:?}");
                assert!(said.stdout.is_empty(), "{said:?}");
            }
            assert_eq!(objects(&hub), before, "{name}");
        }
        hub.cluster.kubectl(&["label", name, "app.kubernetes.io/part-of=kubectl-ocm"]).expect("labelled");
    }
    uninstall(&hub, &["--yes"], 0);
    assert!(objects(&hub).is_empty());
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let hub = hub();
    let order = order();
    for done in series::cases(1..order.len(), |done| done % 3 == 1) {
        install(&hub, &["--wait"]);
        for name in &order[..done] {
            hub.cluster.kubectl(&["delete", name]).expect("deleted");
        }
        let said = uninstall(&hub, &["--yes", "--wait"], 0);
        assert_eq!(said.stdout.lines().count(), order.len() - done, "{said:?}");
        assert_eq!((objects(&hub).len(), refuses(&hub)), (0, [false; 2]), "{done}");
    }
}

#[test]
fn finalizers_are_told() {
    let hub = hub();
    install(&hub, &[]);
    let (first, patch) = (&order()[0], r#"{"metadata":{"finalizers":["example.com/kept"]}}"#);
    hub.cluster.kubectl(&["patch", first, "--type=merge", "--patch", patch]).expect("patched");
    for _ in 0..2 {
        let said = uninstall(&hub, &["--yes"], 1);
        assert!(
            said.stderr.contains("stays as long as it has finalizers") && said.stderr.contains("example.com/kept"),
            "{said:?}"
        );
        assert_eq!(objects(&hub).len(), 8);
    }
    hub.cluster
        .kubectl(&["patch", first, "--type=merge", "--patch", r#"{"metadata":{"finalizers":null}}"#])
        .expect("patched");
    uninstall(&hub, &["--yes"], 0);
    assert!(objects(&hub).is_empty());
}

#[test]
fn what_is_made_anew_while_the_question_is_open_stays() {
    let hub = hub();
    install(&hub, &["--wait"]);
    let cli = Cli::new().env("KUBECONFIG", hub.cluster.kubeconfig());
    let ask = || {
        let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &["uninstall", "baseline"]);
        terminal.wait_for("The API server then no longer refuses: managed clusters");
        terminal.wait_for("[y/N] ");
        terminal
    };
    let before = objects(&hub);
    let mut terminal = ask();
    terminal.press("n\n");
    let (code, seen) = terminal.end();
    assert!(code == 3 && seen.contains("error: nothing was deleted"), "{seen}");
    assert_eq!(objects(&hub), before);

    let mut terminal = ask();
    uninstall(&hub, &["--yes"], 0);
    install(&hub, &[]);
    let anew = objects(&hub);
    terminal.press("y\n");
    let (code, seen) = terminal.end();
    assert!(code == 1 && seen.contains("somebody has created it again since it was read"), "{seen}");
    assert_eq!(objects(&hub), anew);

    let mut terminal = ask();
    terminal.press("y\n");
    let (code, seen) = terminal.end();
    assert!(code == 0 && seen.contains("it takes effect in a moment"), "{seen}");
    assert!(objects(&hub).is_empty());
}

/// Runs a command as everybody who lacks one right of its role: each is told it, and nothing changes.
fn each_right_is_needed(hub: &Hub, verb: &str, flags: &[&str]) {
    let users = users_without_one_right(&hub.cluster, &format!("{verb}-baseline.yaml"));
    assert!(users.len() > 10, "{users:?}");
    let before = objects(hub);
    for (user, missing) in users {
        let said = command(hub.cluster.kubeconfig(), verb, &[&["--wait", "--as", &user], flags].concat());
        assert_eq!(said.code, Some(1), "{missing}: {said:?}");
        let told: Vec<&str> = said.stderr.lines().filter_map(|line| line.strip_prefix("  because: ")).collect();
        assert_eq!(told, [missing], "{said:?}");
        assert_eq!(objects(hub), before, "{said:?}");
    }
}

#[test]
fn each_right_of_the_documented_roles_is_needed_and_no_other() {
    let hub = hub();
    each_right_is_needed(&hub, "install", &[]);
    let keeper = user_with(&hub.cluster, "keeper", &["install-baseline.yaml"]);
    let said = command(&keeper, "install", &["--wait"]);
    assert_eq!((said.code, refuses(&hub)), (Some(0), [true; 2]), "{said:?}");
    each_right_is_needed(&hub, "uninstall", &["--yes"]);
    let said =
        command(&user_with(&hub.cluster, "remover", &["uninstall-baseline.yaml"]), "uninstall", &["--wait", "--yes"]);
    assert_eq!((said.code, refuses(&hub)), (Some(0), [false; 2]), "{said:?}");
}

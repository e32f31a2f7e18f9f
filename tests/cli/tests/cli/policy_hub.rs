//! The verbs of `kubectl ocm policy` that are about a hub: what never reaches it, and what is said where it is not there.

use std::io::Write as _;
use std::process::Stdio;

use cli_tests::server::{Reply, Server};
use cli_tests::terminal::Terminal;
use cli_tests::{Cli, Run, binary, check, kubeconfig};
use serde_json::{Value, json};

use crate::guest::Guest;

fn policy(spec: Value) -> String {
    let object = json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy", "metadata": {"name": "p"}, "spec": spec,
    });
    format!("---\n{object}\n")
}

fn from_map() -> Value {
    json!({"configMap": {"namespace": "n", "name": "m", "key": "k"}})
}

/// A home with modules, and a hub that is not asked.
fn home() -> (Cli, Server) {
    let server = Server::start(|_, _| Reply::Json(404, "404 page not found\n".to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let module = |name: &str, guest: Guest| {
        std::fs::write(cli.home().join(format!("{name}.wasm")), guest.module()).expect("a module can be written");
    };
    module("good", Guest { manifest: Guest::manifest("good", r#","description":"A test""#), ..Guest::default() });
    module("broken", Guest { configure: "unreachable".to_owned(), ..Guest::default() });
    let mut large = std::fs::read(cli.home().join("good.wasm")).expect("a module");
    large.resize(2 << 20, 0);
    std::fs::write(cli.home().join("large.wasm"), large).expect("a module can be written");
    cli.write("map.yaml", &policy(json!({"module": from_map()})));
    (cli, server)
}

fn ocm(cli: &Cli, words: &[&str]) -> Run {
    cli.run(std::iter::once("policy").chain(words.iter().copied()))
}

/// A HubPolicy of the name-pattern that comes along, with a test case that expects this of the name dev-1.
fn tested(patterns: &str, verdict: &str) -> String {
    let cases = format!(
        "cases:\n- name: dev\n  request: {{operation: join, cluster: {{name: dev-1}}}}\n  expect: {{verdict: {verdict}}}\n"
    );
    let module = json!({"builtin": "name-pattern"});
    policy(json!({"module": module, "settings": {"patterns": [patterns]}, "tests": cases}))
}

#[test]
fn a_file_of_policies_is_tested_without_a_hub_and_applied_unchanged() {
    let (cli, server) = home();
    cli.write("good.yaml", &tested("prod-*", "deny"));
    cli.write("bad.yaml", &tested("*", "deny"));
    let none = policy(json!({"module": {"builtin": "csr-hygiene"}})).replace("\"p\"", "\"q\"");
    cli.write("none.yaml", &none);
    let map = json!({"module": from_map(), "tests": "cases:\n- {name: c, request: {operation: create}, expect: {verdict: allow}}\n"});
    cli.write("own.yaml", &policy(map));
    let mut all = String::new();
    for words in [
        &["test", "-f", "good.yaml", "-f", "none.yaml"][..],
        &["test", "-f", "bad.yaml"],
        &["test", "-f", "none.yaml"],
        &["test", "-f", "own.yaml"],
        &["test", "-f", "good.yaml", "--tests", "tests.yaml"],
        &["test", "good.wasm", "--module", "p=good.wasm"],
    ] {
        all += &format!("$ kubectl ocm policy {}\n{}", words.join(" "), ocm(&cli, words));
    }
    check!("policy-test-file", cli, all);
    let own = ocm(&cli, &["test", "-f", "own.yaml", "--module", "p=good.wasm", "-o", "json"]);
    let document: Value = serde_json::from_str(&own.stdout).expect("JSON");
    assert_eq!(
        (own.exit, &document["passed"], &document["policies"][0]["cases"][0]["passed"]),
        (0, &true.into(), &true.into())
    );
    for format in ["junit", "tap"] {
        let run = ocm(&cli, &["test", "-f", "good.yaml", "-f", "bad.yaml", "-o", format]);
        assert_eq!(run.exit, 2, "two of one name: {run}");
        let run = ocm(&cli, &["test", "-f", "bad.yaml", "-o", format]);
        assert!(run.exit == 1 && run.stdout.contains("deny"), "{run}");
    }
    let applied = ocm(&cli, &["apply", "-f", "bad.yaml", "--context", "hub"]);
    assert!(applied.exit == 2 && applied.stderr.contains("its test case \"dev\" (line 2) fails"), "{applied}");
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[test]
fn what_cannot_be_loaded_never_reaches_the_hub() {
    let (cli, server) = home();
    for (file, spec) in [
        ("unknown.yaml", json!({"module": {"builtin": "name-patern"}})),
        ("foreign.yaml", json!({"module": {"builtin": "zzz"}})),
        ("settings.yaml", json!({"module": {"builtin": "name-pattern"}, "settings": {"pattern": "x"}})),
        ("fuel.yaml", json!({"module": {"builtin": "name-pattern"}, "limits": {"fuel": 1}})),
        ("digest.yaml", json!({"module": from_map(), "sha256": "0".repeat(64)})),
        ("builtin.yaml", json!({"module": {"builtin": "name-claim"}})),
        (
            "condition.yaml",
            json!({
                "module": {"builtin": "name-claim"},
                "match": {"conditions": [{"name": "prod", "expression": "cluster.name == 'prod'"}]},
            }),
        ),
        ("odd.yaml", json!({"module": 7})),
    ] {
        cli.write(file, &policy(spec));
    }
    cli.write("pod.yaml", "kind: Pod\napiVersion: v1\nmetadata: {name: p}\n");
    cli.write("secret.yaml", "kind: Secret\napiVersion: v1\nmetadata: {name: s, namespace: n}\ndata: s3cret\n");
    cli.write("nothing.yaml", "# nothing\n");
    cli.write("text.yaml", "just: [words\n");
    let mut all = String::new();
    for words in [
        &["apply"][..],
        &["apply", "-f", "nowhere.yaml"],
        &["apply", "-f", "nothing.yaml"],
        &["apply", "-f", "text.yaml"],
        &["apply", "-f", "pod.yaml"],
        &["apply", "-f", "secret.yaml"],
        &["apply", "-f", "odd.yaml"],
        &["apply", "-f", "unknown.yaml"],
        &["apply", "-f", "foreign.yaml"],
        &["apply", "-f", "settings.yaml"],
        &["apply", "-f", "fuel.yaml"],
        &["apply", "-f", "condition.yaml"],
        &["apply", "-f", "map.yaml", "-f", "map.yaml"],
        &["apply", "-f", "digest.yaml", "--module", "p=good.wasm"],
        &["apply", "-f", "map.yaml", "--module", "p=broken.wasm"],
        &["apply", "-f", "map.yaml", "--module", "p=large.wasm"],
        &["apply", "-f", "map.yaml", "--module", "p=map.yaml"],
        &["apply", "-f", "map.yaml", "--module", "q=good.wasm"],
        &["apply", "-f", "map.yaml", "--module", "good.wasm"],
        &["apply", "-f", "builtin.yaml", "--module", "p=good.wasm"],
        &["apply", "-f", "builtin.yaml", "--kind", "opa"],
        &["apply", "-f", "builtin.yaml", "--diff", "--wait"],
        &["apply", "-f", "builtin.yaml", "--wait", "--timeout", "soon"],
    ] {
        let run = ocm(&cli, words);
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{words:?}: {run}");
        assert!(!run.stderr.contains("s3cret"), "{words:?}: {run}");
        all += &format!("$ kubectl ocm policy {}\n{run}", words.join(" "));
    }
    assert!(server.lines().is_empty(), "{:?}", server.lines());
    check!("policy-apply-wrong", cli, all);
}

#[test]
fn manifests_are_printed_with_the_digest_of_their_module() {
    let (cli, server) = home();
    let run = ocm(&cli, &["apply", "-f", "map.yaml", "--module", "p=good.wasm", "--render", "-o", "json"]);
    assert_eq!(run.exit, 0, "{run}");
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let items = list["items"].as_array().expect("a list");
    assert_eq!((&items[0]["kind"], &items[1]["kind"]), (&json!("ConfigMap"), &json!("HubPolicy")), "{run}");
    assert_eq!(items[1]["spec"]["sha256"].as_str().map(str::len), Some(64), "{run}");
    // A file that is printed so can be applied, from stdin, too.
    let mut command = cli.command(&binary("kubectl-ocm-policy"));
    let command = command.args(["apply", "-f", "-", "--render", "-o", "json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(run.stdout.as_bytes()).expect("it is read");
    let again = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&again.stdout), run.stdout);
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[test]
fn without_a_policy_engine_nothing_is_written() {
    let (cli, server) = home();
    cli.write("builtin.yaml", &policy(json!({"module": {"builtin": "name-claim"}})));
    for words in [
        &["apply", "-f", "builtin.yaml", "--dry-run=server"][..],
        &["disable", "p", "--dry-run"],
        &["enable", "p", "--dry-run"],
    ] {
        let run = ocm(&cli, words);
        assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{words:?}: {run}");
        assert!(run.stderr.contains("error: the policy engine is not installed on this cluster"), "{words:?}: {run}");
        assert!(run.stderr.contains("kubectl ocm install policy-engine"), "{words:?}: {run}");
    }
    assert!(server.lines().iter().all(|line| line.starts_with("GET ")), "{:?}", server.lines());
}

/// A hub with one policy that is enforced and approves, which takes patches.
fn hub() -> Server {
    let policy = json!({
        "apiVersion": "policy.kubectl-ocm.dev/v1alpha1", "kind": "HubPolicy",
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "1", "generation": 1},
        "spec": {"module": {"builtin": "name-claim"}, "mode": "Enforce", "onError": "Deny", "autoApprove": true},
    });
    Server::start(move |_, asked| match asked.line.contains("selfsubjectaccessreviews") {
        true => Reply::Json(
            201,
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {},
                "status": {"allowed": true},
            })
            .to_string(),
        ),
        false => Reply::Json(200, policy.to_string()),
    })
}

#[test]
fn before_a_policy_is_disabled_it_is_asked_what_that_means() {
    let server = hub();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let writes = || server.lines().iter().filter(|line| line.starts_with("PATCH ")).count();
    let run = ocm(&cli, &["disable", "p"]);
    assert_eq!(run.exit, 2, "{run}");
    assert!(run.stderr.contains("cannot prompt") && run.stderr.contains("--yes"), "{run}");
    for (answer, exit, written) in [("n\n", 3, 0), ("y\n", 0, 1)] {
        let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &["policy", "disable", "p"]);
        terminal.wait_for("Disable p (context \"hub\")? What is refused or held by it alone then passes.");
        terminal.wait_for("p then lets no cluster join.");
        terminal.wait_for("[y/N] ");
        terminal.press(answer);
        let (code, seen) = terminal.end();
        assert_eq!((code, writes()), (exit, written), "{seen}");
    }
}

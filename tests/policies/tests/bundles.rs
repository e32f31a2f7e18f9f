//! Bundles as OPA writes them, handed to every verb in the place of a module.

use std::fs;
use std::path::Path;
use std::process::Command;

use cli_tests::{Cli, Run, binary};
use serde_json::{Value, json};

const REQUEST: &str = "operation: create\ncluster: {name: prod-1, labels: {env: test}}\n";
const OTHER: &str = "operation: create\ncluster: {name: dev-1, labels: {env: forbidden}}\n";
const SETTINGS: &str = r#"{"prefix":"prod-"}"#;

fn policy(cli: &Cli, exit: i32, words: &[&str]) -> Run {
    let run = cli.run_file(&binary("kubectl-ocm-policy"), words);
    assert_eq!(run.exit, exit, "{words:?}\n{run}");
    run
}

/// What a verb prints as JSON, without what may differ between two runs of the same policy.
fn said(cli: &Cli, exit: i32, words: &[&str]) -> Value {
    let run = policy(cli, exit, &[words, &["-o", "json"]].concat());
    let mut value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}\n{run}"));
    forget(&mut value);
    value
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !["file", "micros"].contains(&name.as_str()));
            members.values_mut().for_each(forget);
        }
        Value::Array(items) => items.iter_mut().for_each(forget),
        _ => {}
    }
}

/// Has OPA make a bundle of what lies in a home.
fn opa_build(cli: &Cli, words: &[&str]) {
    let built = Run::of(Command::new(policy_tests::opa()).arg("build").args(words).current_dir(cli.home()));
    assert_eq!(built.exit, 0, "{built}");
}

#[test]
fn every_verb_takes_a_bundle_for_its_module() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bundles");
    let (module, bundle) = policy_tests::rego(&cache, "plain.rego", "ocm/decision");
    let cli = Cli::new();
    for (name, bytes) in [("policy.wasm", &module), ("bundle.tar.gz", &bundle)] {
        fs::write(cli.home().join(name), bytes).expect("a file can be written");
    }
    cli.write("request.yaml", REQUEST);
    cli.write("other.yaml", OTHER);
    cli.write(
        "tests.yaml",
        &format!(
            "settings: {SETTINGS}\ncases:\n  - name: it is let in\n    request: {{operation: create, cluster: \
             {{name: prod-1}}}}\n    expect:\n      verdict: allow\n"
        ),
    );
    let both = |exit: i32, words: &dyn Fn(&'static str) -> Vec<&'static str>| {
        let [ours, theirs] = ["policy.wasm", "bundle.tar.gz"].map(|file| said(&cli, exit, &words(file)));
        assert_eq!(ours, theirs);
        ours
    };
    let seen = both(0, &|file| vec!["inspect", file, "--settings", SETTINGS]);
    assert_eq!(seen["kind"], "opa");
    for (request, exit, verdict) in [("request.yaml", 0, "allow"), ("other.yaml", 3, "deny")] {
        for verb in ["run", "explain"] {
            // What is explained is asked for at a time; the usual one is now.
            let now = "2026-01-31T12:00:00Z";
            let told = both(exit_of(verb, exit), &|file| {
                vec![verb, file, "-f", request, "--settings", SETTINGS, "--now", now]
            });
            assert!(told.to_string().contains(&format!("\"verdict\":\"{verdict}\"")), "{told}");
        }
    }
    let tested = both(0, &|file| vec!["test", file]);
    assert_eq!((&tested["passed"], tested["cases"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    let measured = ["bundle.tar.gz=settings.json", "-f", "request.yaml", "--seconds", "1"];
    cli.write("settings.json", SETTINGS);
    assert!(said(&cli, 0, &[&["bench"], &measured[..]].concat())["answers"]["allow"].as_u64() > Some(0));
    let differ =
        ["diff", "policy.wasm", "bundle.tar.gz", "--settings", SETTINGS, "--requests", "request.yaml", "other.yaml"];
    assert_eq!(said(&cli, 0, &differ)["requests"], 2);
    // A record of the module is one of the bundle: they have the same digest.
    policy(&cli, 0, &["run", "policy.wasm", "-f", "request.yaml", "--settings", SETTINGS, "--record", "r.jsonl"]);
    let again = policy(&cli, 0, &["replay", "r.jsonl", "--policy", "bundle.tar.gz"]);
    assert_eq!(again.stderr, "note: 1 record repeated byte for byte\n");
}

/// Whether an answer is a finding is the business of `run`; `explain` only tells it.
fn exit_of(verb: &str, exit: i32) -> i32 {
    if verb == "run" { exit } else { 0 }
}

#[test]
fn the_data_of_a_bundle_reaches_its_policy() {
    let cli = Cli::new();
    cli.write("request.yaml", REQUEST);
    cli.write("other.yaml", OTHER);
    cli.write(
        "policy.rego",
        "package ocm\n\ndecision := {\"allow\": allow, \"deny\": deny}\n\ndefault allow := false\n\nallow if \
         startswith(input.cluster.name, data.settings.prefix)\n\ndeny contains msg if {\n\tmsg := \
         data.unwelcome[input.cluster.labels.env].because\n}\n",
    );
    let data = json!({"unwelcome": {"forbidden": {"because": "nobody wants it"}}, "settings": {"prefix": "prod-"}});
    cli.write("data.json", &data.to_string());
    opa_build(&cli, &["--target", "wasm", "--entrypoint", "ocm/decision", "policy.rego", "data.json"]);
    let answer =
        |exit: i32, more: &[&str]| said(&cli, exit, &[&["run", "bundle.tar.gz"], more].concat())["answer"].take();
    assert_eq!(answer(0, &["-f", "request.yaml"])["verdict"], "allow");
    let denied = answer(3, &["-f", "other.yaml"]);
    assert_eq!((&denied["verdict"], &denied["reasons"][0]["message"]), (&json!("deny"), &json!("nobody wants it")));
    // Settings that are given stand in the place of those of the bundle, and leave the rest of it alone.
    assert_eq!(answer(3, &["-f", "request.yaml", "--settings", r#"{"prefix":"dev-"}"#])["verdict"], "deny");
    let denied = answer(3, &["-f", "other.yaml", "--settings", r#"{"prefix":"dev-"}"#]);
    assert_eq!(denied["reasons"][0]["message"], "nobody wants it");
}

#[test]
fn a_bundle_without_a_module_is_refused() {
    let cli = Cli::new();
    cli.write("policy.rego", "package ocm\n\nallow := true\n");
    opa_build(&cli, &["policy.rego"]);
    let run = policy(&cli, 2, &["inspect", "bundle.tar.gz"]);
    assert_eq!(
        run.stderr,
        "error: bundle.tar.gz is no bundle that can be used\n  because: it holds no policy.wasm\n  hint: opa build \
         --target wasm --entrypoint RULE writes one with one module\n"
    );
}

//! Policies from the first line to the last measurement, strangers' modules, and wrong words.

use std::path::PathBuf;
use std::process::Command;

use cli_tests::{Cli, Run, binary, check, folder};

use crate::guest::Guest;

const ALLOW: &str = r#"{"verdict": "allow", "warnings": ["mind the gap"]}"#;
const RUDE: &str = r#"{"verdict": "allow", "warnings": ["mind the \u001b[31mgap"]}"#;
const DENY: &str = r#"{"verdict": "deny", "reasons": [{"code": "No", "message": "it says no"}]}"#;

/// A module of the contract that answers this after doing something.
fn module(name: &str, describe: &str, decide: &str, answer: &str) -> Vec<u8> {
    const MORE: &str = r#","description":"A test","reasons":[{"code":"No","description":"It says no"}]"#;
    let guest =
        Guest { manifest: Guest::manifest(name, MORE), describe: describe.to_owned(), ..Guest::deciding(decide) };
    Guest { answer: answer.to_owned(), ..guest }.module()
}

const LOOP: &str = "(loop (br 0))";
const GROW: &str = "(loop (drop (memory.grow (i32.const 1))) (br 0))";

/// A home with modules and a cluster.
fn home() -> Cli {
    let cli = Cli::new();
    for (name, before_describe, before_decide, answer) in [
        ("allow", "", "", ALLOW),
        ("deny", "", "", DENY),
        ("nonsense", "", "(i32.store8 (i32.const 8192) (i32.const 9))", ALLOW),
        ("rude", "", "", RUDE),
        ("loops", "", LOOP, ALLOW),
        ("grows", "", GROW, ALLOW),
        ("loops-at-once", LOOP, "", ALLOW),
    ] {
        let bytes = module(name, before_describe, before_decide, answer);
        std::fs::write(cli.home().join(format!("{name}.wasm")), bytes).expect("a module can be written");
    }
    let empty = wat::parse_str("(module)").expect("it is well formed");
    std::fs::write(cli.home().join("empty.wasm"), empty).expect("a module can be written");
    cli.write("cluster.yaml", "kind: ManagedCluster\nmetadata: {name: c1}\n");
    cli.write(
        "tests.yaml",
        "cases:\n  - name: it says no\n    request: {operation: create, cluster: {name: c1}}\n    expect:\n      \
         verdict: deny\n  - name: it is asked\n    request: {operation: join}\n    expect:\n      verdict: allow\n",
    );
    cli
}

fn policy(cli: &Cli, words: &[&str]) -> Run {
    cli.run(std::iter::once("policy").chain(words.iter().copied()))
}

/// Numbers that differ with machine and compiler.
fn steady(run: &Run) -> String {
    let mut text = run.to_string();
    for column in ["MICROSECONDS"] {
        let Some(at) = text.lines().find_map(|line| line.find(column)) else { continue };
        let in_table = |line: &str| line.contains(column) || line.chars().last().is_some_and(|c| c.is_ascii_digit());
        let cut = |line: &str| match in_table(line) {
            true => line.get(..at).unwrap_or(line).trim_end().to_owned() + "\n",
            false => line.to_owned() + "\n",
        };
        text = text.lines().map(cut).collect();
    }
    text
}

#[test]
fn what_modules_say() {
    let cli = home();
    for (name, words) in [
        ("inspect", &["inspect", "deny.wasm"][..]),
        ("inspect-name", &["inspect", "deny.wasm", "-o", "name"]),
        ("run-allow", &["run", "allow.wasm", "-f", "cluster.yaml"]),
        ("run-deny", &["run", "allow.wasm", "deny.wasm", "-f", "cluster.yaml", "-f", "cluster.yaml"]),
        ("run-silent", &["run", "allow.wasm", "-f", "cluster.yaml", "--operation", "accept"]),
        ("run-nonsense", &["run", "allow.wasm", "nonsense.wasm", "rude.wasm", "-f", "cluster.yaml"]),
        ("run-name", &["run", "deny.wasm", "-f", "cluster.yaml", "-o", "name"]),
        ("explain", &["explain", "allow.wasm", "deny.wasm", "-f", "cluster.yaml"]),
        ("diff", &["diff", "allow.wasm", "deny.wasm", "--requests", "cluster.yaml"]),
        ("diff-none", &["diff", "deny.wasm", "deny.wasm", "--requests", "cluster.yaml"]),
        ("test", &["test", "deny.wasm"]),
        ("test-tap", &["test", "deny.wasm", "-o", "tap"]),
        ("test-junit", &["test", "allow.wasm", "-o", "junit"]),
    ] {
        let text = steady(&policy(&cli, words));
        let text = text.replace(|c: char| c.is_ascii_digit() && name == "test-junit", "0");
        check!(format!("policy-{name}"), cli, format!("$ kubectl ocm policy {}\n{text}", words.join(" ")));
    }
}

#[test]
fn codes_that_no_answer_may_have_are_refused_before_anything_is_asked() {
    const MORE: &str = r#","reasons":[{"code":"no-owner","description":"Nobody owns it"}]"#;
    let cli = home();
    let guest = Guest { manifest: Guest::manifest("owner", MORE), ..Guest::default() };
    std::fs::write(cli.home().join("owner.wasm"), guest.module()).unwrap();
    for words in [&["inspect", "owner.wasm"][..], &["run", "owner.wasm", "-f", "cluster.yaml"]] {
        let run = policy(&cli, words);
        let why = r#""no-owner", is not in CamelCase"#;
        assert!(run.exit == 1 && run.stderr.contains(why), "{words:?}: {run}");
    }
}

#[test]
fn settings_and_files_may_stand_in_many_forms() {
    let cli = home();
    cli.write("flow.yaml", "{kind: ManagedCluster, metadata: {name: c1}}\n");
    for words in [
        &["run", r#"allow.wasm={"a": "k=v"}"#, "-f", "cluster.yaml"][..],
        &["run", "allow.wasm={a: k=v}", "-f", "flow.yaml"],
        &["run", "allow.wasm", "-f", "flow.yaml", "--settings", "{a: [b]}"],
    ] {
        let run = policy(&cli, words);
        assert_eq!(run.exit, 0, "{words:?}: {run}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let cli = home();
    cli.write("words.txt", "just words\n");
    cli.write("broken.yaml", "kind: [\n");
    cli.write("pod.yaml", "kind: Pod\n");
    cli.write("half.yaml", "operation: create\ncluster: {}\n");
    cli.write("full/file", "");
    let all: String = [
        &["inspect", "nowhere.wasm"][..],
        &["inspect", "words.txt"],
        &["inspect", "full"],
        &["inspect", "empty.wasm"],
        &["run", "allow.wasm", "-f", "nowhere.yaml"],
        &["run", "allow.wasm", "-f", "words.txt"],
        &["run", "allow.wasm", "-f", "broken.yaml"],
        &["run", "allow.wasm", "-f", "pod.yaml"],
        &["run", "allow.wasm", "-f", "half.yaml"],
        &["run", "allow.wasm=nowhere.json", "-f", "cluster.yaml"],
        &["run", "allow.wasm", "-f", "cluster.yaml", "--settings", "{"],
        &["run", "allow.wasm", "-f", "cluster.yaml", "--operation", "marry"],
        &["run", "allow.wasm", "-f", "cluster.yaml", "--now", "tomorrow"],
        &["run", "allow.wasm"],
        &["bench", "allow.wasm", "-f", "cluster.yaml", "--operation", "accept"],
        &["replay", "r.jsonl", "--policy", "allow.wasm", "--context", "hub"],
        &["replay", "cluster.yaml", "--policy", "allow.wasm"],
        &["test", "full"],
        &["test", "allow.wasm", "--tests", "cluster.yaml"],
        &["new", "Prod"],
        &["new", "Prod", "--lang", "rust"],
        &["new", "../prod", "--lang", "rust"],
        &["new", "prod", "--lang", "rust", "--dir", "full"],
        &["new", "prod", "--lang", "cobol"],
        &["build", "nowhere"],
        &["build", "full"],
    ]
    .iter()
    .map(|words| {
        let run = policy(&cli, words);
        assert!((1..=2).contains(&run.exit) && run.stdout.is_empty(), "{words:?}: {run}");
        format!("$ kubectl ocm policy {}\n{run}", words.join(" "))
    })
    .collect();
    check!("policy-wrong", cli, all);
}

#[test]
fn a_hostile_module_ends_in_time() {
    let cli = home();
    for name in ["loops.wasm", "grows.wasm"] {
        for words in [
            &["run", name, "-f", "cluster.yaml"][..],
            &["explain", name, "-f", "cluster.yaml"],
            &["bench", name, "-f", "cluster.yaml", "--seconds", "1"],
            &["test", name],
            &["diff", "allow.wasm", name, "--requests", "cluster.yaml"],
        ] {
            let run = policy(&cli, words);
            let told = format!("{}{}", run.stdout, run.stderr);
            let known = ["out-of-fuel", "used up its fuel", "timed-out", "longer than it may", "out-of-memory"];
            assert!(known.iter().any(|word| told.contains(word)) || words[0] == "bench", "{words:?}: {run}");
        }
        assert_eq!(policy(&cli, &["inspect", name]).exit, 0, "what it is can be said without asking it");
        assert_eq!(policy(&cli, &["run", name, "-f", "cluster.yaml"]).exit, 1);
    }
    let run = policy(&cli, &["inspect", "loops-at-once.wasm"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("used up its fuel"), "{run}");
}

#[test]
fn records_are_repeated() {
    let cli = home();
    let run = policy(&cli, &["run", "allow.wasm", "deny.wasm", "-f", "cluster.yaml", "--record", "r.jsonl"]);
    assert_eq!(run.exit, 3, "{run}");
    let same = policy(&cli, &["replay", "r.jsonl", "--policy", "allow.wasm", "--policy", "deny.wasm"]);
    assert_eq!((same.exit, same.stdout.as_str()), (0, ""), "{same}");
    assert_eq!(same.stderr, "note: 2 records repeated byte for byte\n");
    let absent = policy(&cli, &["replay", "r.jsonl", "--policy", "deny.wasm"]);
    assert!(absent.exit == 2 && absent.stderr.contains("is of the policy allow"), "{absent}");
    // Another version of the same policy.
    std::fs::write(cli.home().join("other.wasm"), module("allow", "", "", DENY)).unwrap();
    let other = policy(&cli, &["replay", "r.jsonl", "--policy", "other.wasm", "--policy", "deny.wasm"]);
    assert_eq!(other.exit, 3, "{other}");
    assert!(other.stdout.contains("/answer/decision/verdict: \"allow\" → \"deny\""), "{other}");
    let text = std::fs::read_to_string(cli.home().join("r.jsonl")).unwrap();
    cli.write("altered.jsonl", &text.replace("c1", "c2"));
    let altered = policy(&cli, &["replay", "altered.jsonl", "--policy", "allow.wasm"]);
    assert_eq!(altered.exit, 3, "{altered}");
    assert!(altered.stdout.contains("\n  /request: a digest of another text → altered\n"), "{altered}");
    // Records are requests, too.
    let diff = policy(&cli, &["diff", "allow.wasm", "deny.wasm", "--requests", "r.jsonl"]);
    assert!(diff.exit == 3 && diff.stderr.contains("2 of 2 requests"), "{diff}");
}

#[test]
fn records_of_a_file_are_asked_with_their_own_settings() {
    let cli = home();
    let run = policy(&cli, &["run", "allow.wasm", "-f", "cluster.yaml", "--record", "r.jsonl"]);
    assert_eq!(run.exit, 0, "{run}");
    let refused = policy(&cli, &["replay", "r.jsonl", "--policy", "allow.wasm", "--settings", "{}"]);
    assert!(refused.exit == 2 && refused.stderr.contains("cannot be used with"), "{refused}");
    let nowhere = policy(&cli, &["replay", "--policy", "allow.wasm"]);
    assert!(nowhere.exit == 2 && nowhere.stderr.contains("RECORDS|--since"), "{nowhere}");
}

#[test]
fn versions_that_ask_for_other_evidence_by_one_name_are_told_apart() {
    let cli = home();
    for (file, fields) in [("one", r#""/metadata/name""#), ("two", r#""/metadata/name","/spec""#)] {
        let more = format!(r#","evidence":[{{"name":"clusters","source":{{"kind":"clusters"}},"fields":[{fields}]}}]"#);
        let guest = Guest { manifest: Guest::manifest("core", &more), ..Guest::answering(ALLOW) };
        std::fs::write(cli.home().join(format!("{file}.wasm")), guest.module()).unwrap();
    }
    let words = ["diff", "one.wasm", "two.wasm", "--requests", "cluster.yaml", "--evidence", "hub.yaml"];
    cli.write("hub.yaml", "clusters: []\n");
    let both = policy(&cli, &words);
    assert!(both.exit == 2 && both.stderr.contains("core/clusters and core-2/clusters"), "{both}");
    cli.write("hub.yaml", "core/clusters: []\ncore-2/clusters: []\n");
    assert_eq!(policy(&cli, &words).exit, 0);
}

#[test]
fn reasons_in_another_order_are_no_difference_and_repeated_ones_are() {
    let cli = home();
    for (file, letters) in [("one", "ab"), ("two", "ba"), ("three", "aab")] {
        let reasons: Vec<String> =
            letters.chars().map(|letter| format!(r#"{{"code": "No", "message": "{letter}"}}"#)).collect();
        let answer = format!(r#"{{"verdict": "deny", "reasons": [{}]}}"#, reasons.join(", "));
        std::fs::write(cli.home().join(format!("{file}.wasm")), module("p", "", "", &answer)).unwrap();
    }
    let diff = |other: &str| policy(&cli, &["diff", "one.wasm", other, "--requests", "cluster.yaml"]);
    let same = diff("two.wasm");
    assert_eq!((same.exit, same.stdout.as_str()), (0, ""), "{same}");
    let more = diff("three.wasm");
    assert!(more.exit == 3 && more.stdout.ends_with("\n  + No: a\n"), "{more}");
}

#[test]
fn expectations_are_written() {
    let cli = home();
    assert_eq!(policy(&cli, &["test", "allow.wasm"]).exit, 1);
    cli.write(
        "tests.yaml",
        "cases:\n  # kept\n  - name: a\n    request: {operation: create}\n    expect:\n      verdict: deny\n",
    );
    let run = policy(&cli, &["test", "allow.wasm", "--update"]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, "note: 1 expectation written to tests.yaml\n"), "{run}");
    let text = std::fs::read_to_string(cli.home().join("tests.yaml")).unwrap();
    assert!(text.contains("# kept") && text.contains("verdict: allow"), "{text}");
    assert_eq!(policy(&cli, &["test", "allow.wasm"]).exit, 0);
    // It is not asked about the second, whatever that expects.
    let cases = "cases:\n- name: a\n  request: {operation: create}\n  expect: {verdict: deny}\n\
                 - name: b\n  request: {operation: delete}\n  expect: {verdict: deny}\n";
    cli.write("tests.yaml", cases);
    let run = policy(&cli, &["test", "allow.wasm", "--update"]);
    let notes = "note: 1 expectation written to tests.yaml\nnote: 1 of 2 cases fail whatever they expect\n";
    assert_eq!((run.exit, run.stderr.as_str()), (1, notes), "{run}");
    let text = std::fs::read_to_string(cli.home().join("tests.yaml")).unwrap();
    assert_eq!(text.matches("verdict: allow").count(), 1, "{text}");
}

#[test]
fn interruptions_are_noticed_while_a_policy_runs() {
    let cli = home();
    for name in ["allow.wasm", "loops.wasm"] {
        let mut command = cli.command("/usr/bin/timeout".as_ref());
        command.args(["--preserve-status", "-s", "INT", "3"]).arg(binary("kubectl-ocm-policy"));
        // Whoever does not notice measures to the end, and exits with 0.
        let run = Run::of(command.args(["bench", name, "-f", "cluster.yaml", "--seconds", "60"]));
        assert_eq!(run.exit, 130, "{run}");
    }
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let cli = home();
    let cache = cli.home().join(".cache/kubectl-ocm/policies");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    let run = policy(&cli, &["run", "allow.wasm", "-f", "cluster.yaml"]);
    assert_eq!(run.exit, 0, "{run}");
    assert!(run.stderr.starts_with("warning: modules are compiled again each time: "), "{run}");
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 0);
}

/// A home whose projects can be built: the tools and what they have downloaded are those of whoever runs the tests.
fn workshop() -> Option<Cli> {
    let own = PathBuf::from(std::env::var_os("HOME")?);
    let home = |name: &str, usual: &str| std::env::var_os(name).map_or_else(|| own.join(usual), PathBuf::from);
    let mut cli = Cli::new()
        .env("PATH", std::env::var_os("PATH")?)
        .env("CARGO_HOME", home("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", home("RUSTUP_HOME", ".rustup"))
        .env("CARGO_NET_OFFLINE", "true")
        // One for all, so that only the first build compiles what all policies need.
        .env("CARGO_TARGET_DIR", folder().join("policy-projects"));
    if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        cli = cli.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    Some(cli)
}

#[test]
fn from_nothing_to_a_measured_policy() {
    let cli = workshop().expect("whoever runs tests has a home and a path");
    check!("policy-new", cli, policy(&cli, &["new", "only-prod", "--lang", "rust"]));
    let built = policy(&cli, &["build", "only-prod"]);
    assert_eq!(built.exit, 0, "{built}");
    let tested = policy(&cli, &["test", "only-prod"]);
    assert_eq!(tested.exit, 0, "{tested}");
    assert!(tested.stdout.ends_with("7 passed, 0 failed; 1 of 1 reason codes covered\n"), "{tested}");
    let module = "only-prod/only-prod.wasm";
    let measured = policy(&cli, &["bench", module, "-f", "only-prod/request.yaml", "--seconds", "1", "-o", "json"]);
    assert_eq!(measured.exit, 0, "{measured}");
    let measured: serde_json::Value = serde_json::from_str(&measured.stdout).unwrap();
    assert!(measured["answers"]["allow"].as_u64().unwrap() > 100, "{measured}");
    // A policy that cannot be compiled.
    cli.write("only-prod/src/lib.rs", "fn main() {");
    let broken = policy(&cli, &["build", "only-prod"]);
    assert!(broken.exit == 1 && broken.stderr.contains("error: cargo could not build the policy"), "{broken}");
}

#[test]
fn what_to_type_next_can_be_typed_and_names_that_cannot_be_built_are_refused() {
    let cli = Cli::new();
    let run = policy(&cli, &["new", "p", "--lang", "go", "--dir", "my policies"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, "my policies\n"), "{run}");
    assert!(run.stderr.contains("  kubectl ocm policy build 'my policies'\n"), "{run}");
    for name in ["ocm-policy-sdk", "ocm-policy-abi", "ocm-rules"] {
        let run = policy(&cli, &["new", name, "--lang", "rust"]);
        assert!(run.exit == 2 && run.stderr.contains("holds a package of this name already"), "{run}");
        assert!(!cli.home().join(name).exists(), "{run}");
    }
}

#[test]
fn a_tool_that_is_missing_is_named() {
    let cli = Cli::new().env("PATH", "/nowhere");
    let file = binary("kubectl-ocm-policy");
    assert_eq!(cli.run_file(&file, ["new", "p", "--lang", "rust"]).exit, 0);
    let run = cli.run_file(&file, ["build", "p"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("error: rustc is not installed\n  hint: https://rustup.rs installs Rust"), "{run}");
}

/// A home with a project of Go, whose tools are this script.
fn project(go: &str) -> Cli {
    use std::os::unix::fs::PermissionsExt as _;
    let cli = Cli::new();
    let tool = cli.write("bin/go", &format!("#!/bin/sh\n{go}\n"));
    std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    cli.write("p/go.mod", "");
    std::fs::create_dir(cli.home().join("tmp")).expect("it is new");
    let (path, tmp) = (format!("{}:/usr/bin:/bin", cli.home().join("bin").display()), cli.home().join("tmp"));
    cli.env("PATH", path).env("TMPDIR", tmp)
}

#[test]
fn a_build_that_is_interrupted_leaves_nothing() {
    // What has to be killed ends no sooner than the command.
    let cli = project("trap '' TERM\nsleep 60");
    let mut command = cli.command("/usr/bin/timeout".as_ref());
    command.args(["--preserve-status", "-s", "INT", "3"]).arg(binary("kubectl-ocm-policy"));
    let run = Run::of(command.args(["build", "p"]));
    assert_eq!(run.exit, 130, "{run}");
    assert_eq!(std::fs::read_dir(cli.home().join("tmp")).unwrap().count(), 0, "{run}");
}

/// A module that refuses `{}`, the settings of whoever names none.
fn needs_settings() -> Vec<u8> {
    // One error: a word out of the manifest.
    let configure = "(if (i32.eq (local.get 1) (i32.const 2)) (then
        (i32.store8 (i32.const 32) (i32.const 1))
        (i32.store (i32.const 36) (i32.const 48))
        (i32.store (i32.const 40) (i32.const 1))
        (i32.store (i32.const 48) (i32.const 1026))
        (i32.store (i32.const 52) (i32.const 8))))";
    let guest = Guest { manifest: Guest::manifest("needs", ""), configure: configure.to_owned(), ..Guest::default() };
    guest.module()
}

#[test]
fn a_policy_is_built_whether_or_not_its_settings_are_known() {
    let cli = project("cp \"$HOME/needs.wasm\" \"$5\"");
    std::fs::write(cli.home().join("needs.wasm"), needs_settings()).unwrap();
    let build = || policy(&cli, &["build", "p"]);
    let without = build();
    assert!(without.exit == 0 && without.stdout.starts_with("p/needs.wasm  "), "{without}");
    assert!(without.stderr.contains("warning: p/needs.wasm was not tried with settings"), "{without}");
    let cases = "cases:\n- name: a\n  request: {operation: create}\n  expect: {verdict: allow}\n";
    cli.write("p/tests.yaml", &format!("settings: {{a: 1}}\n{cases}"));
    let with = build();
    assert!(with.exit == 0 && !with.stderr.contains("warning"), "{with}");
    cli.write("p/tests.yaml", &format!("settings: {{}}\n{cases}"));
    let refused = build();
    assert!(refused.exit == 1 && refused.stderr.contains("it refuses its settings: contract"), "{refused}");
    assert!(refused.stderr.contains("it was tried with `settings` of p/tests.yaml"), "{refused}");
    cli.write("p/tests.yaml", "cases: {\n");
    let broken = build();
    assert!(broken.exit == 2 && broken.stderr.contains("the test cases p/tests.yaml cannot be used"), "{broken}");
    // What is tried and refused is shown as an error.
    let shown = policy(&cli, &["inspect", "needs.wasm", "--settings", "{}"]);
    assert!(shown.exit == 1 && shown.stdout.contains("\nError:"), "{shown}");
}

#[test]
fn the_compiling_process_refuses_to_be_started_by_hand() {
    let run = Run::of(Command::new(binary("kubectl-ocm-policy")).arg("compile-module"));
    assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{run}");
}

//! The projects that `kubectl ocm policy new` writes, built by the tools that their authors have and tested. The project
//! in Rust is tested with the other commands, because it needs no more than what builds those.

use std::path::{Path, PathBuf};

use cli_tests::{Cli, Run, binary};
use serde_json::Value;

/// Variables that say how this machine reaches what npm downloads.
const NETWORK: [&str; 7] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "npm_config_registry",
    "node_extra_ca_certs",
    "ssl_cert_dir",
    "ssl_cert_file",
];

/// A home in which the tools of some folders are installed, and a few others that every system has.
fn workshop(tools: &[PathBuf]) -> Cli {
    let usual = ["/usr/bin", "/bin"].map(PathBuf::from);
    let path = std::env::join_paths(tools.iter().chain(&usual)).expect("folders of tools can stand in a PATH");
    let network = std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| NETWORK.iter().any(|known| name.eq_ignore_ascii_case(known)))
    });
    network.fold(Cli::new().env("PATH", path), |cli, (name, value)| cli.env(name, value))
}

fn policy(cli: &Cli, words: &[&str]) -> Run {
    cli.run_file(&binary("kubectl-ocm-policy"), words)
}

/// What a verb prints, which must end well.
fn told(cli: &Cli, exit: i32, words: &[&str]) -> String {
    let run = policy(cli, words);
    assert_eq!(run.exit, exit, "{words:?}\n{run}");
    run.stdout
}

fn json(cli: &Cli, exit: i32, words: &[&str]) -> Value {
    let text = told(cli, exit, &[words, &["-o", "json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}\n{text}"))
}

/// The verdict about the only request, and the code of the reason.
fn answer(run: &Value) -> (&str, Option<&str>) {
    let answer = &run["answer"];
    (answer["verdict"].as_str().unwrap_or_default(), answer["reasons"][0]["code"].as_str())
}

/// From nothing to a measured policy, as the guide for authors has it.
fn make(cli: &Cli, language: &str, kind: &str) {
    const MODULE: &str = "only-prod/only-prod.wasm";
    const REQUEST: &str = "only-prod/request.yaml";
    assert_eq!(told(cli, 0, &["new", "only-prod", "--lang", language]), "only-prod\n");
    let built = told(cli, 0, &["build", "only-prod"]);
    assert!(built.starts_with(&format!("{MODULE}  ")), "{built}");
    let tested = told(cli, 0, &["test", "only-prod"]);
    assert!(tested.ends_with("\n7 passed, 0 failed; 1 of 1 reason codes covered\n"), "{tested}");

    let seen = json(cli, 0, &["inspect", MODULE]);
    assert_eq!(
        (&seen["kind"], &seen["manifest"]["name"], &seen["manifest"]["reasons"][0]["code"]),
        (&kind.into(), &"only-prod".into(), &"NamePrefix".into()),
        "{seen}"
    );
    let allowed = json(cli, 0, &["run", MODULE, "--settings", r#"{"prefixes":["prod-"]}"#, "-f", REQUEST]);
    assert_eq!(answer(&allowed), ("allow", None), "{allowed}");
    let denied = json(cli, 3, &["run", MODULE, "--settings", r#"{"prefixes":["dev-"]}"#, "-f", REQUEST]);
    assert_eq!(answer(&denied), ("deny", Some("NamePrefix")), "{denied}");
    // Whatever is no settings of the policy lets in nobody.
    for wrong in [
        r#"{"prefix":["prod-"]}"#,
        r#"{"prefixes":"prod-"}"#,
        r#"{"prefixes":{"prod-":"prod-"}}"#,
        r#"{"prefixes":null}"#,
        r#"{"prefixes":[1]}"#,
        r#"{"prefixes":["dev-",""]}"#,
    ] {
        let run = json(cli, 1, &["run", MODULE, "--settings", wrong, "-f", REQUEST]);
        assert_eq!(answer(&run), ("error", None), "{wrong}: {run}");
    }
    let measured = json(cli, 0, &["bench", MODULE, "-f", REQUEST, "--seconds", "1"]);
    let answers = measured["answers"].as_object().expect("there are answers");
    assert!(answers.len() == 1 && answers["allow"].as_u64() > Some(0), "{measured}");
}

#[test]
fn a_project_in_go() {
    let tools = [policy_tests::go_env("GOROOT").join("bin")];
    let cli = workshop(&tools)
        // Compiled once, the standard library is there for the next run.
        .env("GOCACHE", policy_tests::go_env("GOCACHE"))
        // The project needs nothing that would have to be downloaded.
        .env("GOPROXY", "off")
        .env("GOTOOLCHAIN", "local");
    make(&cli, "go", "wasi-command");
}

#[test]
fn a_project_in_assemblyscript() {
    let mut cli = workshop(&[policy_tests::node::tools()])
        .env("npm_config_cache", policy_tests::user_cache().join("npm"))
        .env("npm_config_prefer_offline", "true")
        .env("npm_config_update_notifier", "false");
    // Where the registry is, if it is not the usual one.
    if let Some(home) = std::env::var_os("HOME") {
        cli = cli.env("npm_config_userconfig", Path::new(&home).join(".npmrc"));
    }
    make(&cli, "assemblyscript", "wasi-command");
}

#[test]
fn a_project_in_rego() {
    let opa = policy_tests::opa();
    make(&workshop(&[opa.parent().expect("a program is in a folder").to_owned()]), "rego", "opa");
}

//! How commands come to a cluster and prove who they are, against a server that does what a test says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use serde_json::json;

const NONE: &str =
    r#"{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList","metadata":{},"items":[]}"#;

/// A home with a kubeconfig whose user has a credential plugin: a shell script.
fn with_plugin(server: &Server, script: &str) -> Cli {
    let cli = Cli::new();
    let file = cli.write("plugin", &format!("#!/bin/sh\necho run >> \"$HOME/runs\"\n{script}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    let user = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": file, "interactiveMode": "Never",
        "provideClusterInfo": true,
    } });
    let text = kubeconfig(&server.url(), &["hub"]).replace("{ token: secret }", &user.to_string());
    cli.write(".kube/config", &text);
    cli
}

fn runs(cli: &Cli) -> usize {
    fs::read_to_string(cli.home().join("runs")).unwrap_or_default().lines().count()
}

#[test]
fn a_credential_plugin_runs_once() {
    for expiry in ["", r#","expirationTimestamp":"2999-01-01T00:00:00Z""#] {
        let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
        let status = format!(r#"{{"kind":"ExecCredential","status":{{"token":"t0ken"{expiry}}}}}"#);
        let cli = with_plugin(&server, &format!("echo \"$KUBERNETES_EXEC_INFO\" > \"$HOME/info\"\necho '{status}'"));
        let run = cli.run(["get", "clusters"]);
        assert_eq!((run.exit, runs(&cli)), (0, 1), "{run}");
        assert_eq!(server.asked()[0].header("authorization"), ["Bearer t0ken"]);
        let information = fs::read_to_string(cli.home().join("info")).expect("the plugin was told");
        assert!(information.contains(&format!("\"server\":\"{}\"", server.url())), "{information}");
    }
}

#[test]
fn a_token_that_ends_is_fetched_anew() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let status = r#"{"kind":"ExecCredential","status":{"token":"t0ken","expirationTimestamp":"2001-01-01T00:00:00Z"}}"#;
    let cli = with_plugin(&server, &format!("echo '{status}'"));
    let run = cli.run(["get", "clusters"]);
    assert_eq!((run.exit, runs(&cli)), (0, 2), "{run}");
}

#[test]
fn what_a_credential_plugin_prints_is_never_shown() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    for (script, expected) in [
        ("echo '{\"status\":{\"token\":\"t0ken\"}}'; exit 3", "failed"),
        ("echo 't0ken: ['", "printed no credentials"),
        ("echo 't0ken'", "printed no credentials"),
        ("echo '{\"kind\":\"ExecCredential\"}'", "printed no credentials"),
    ] {
        let cli = with_plugin(&server, script);
        let run = cli.run(["get", "clusters"]);
        assert_eq!((run.exit, runs(&cli)), (1, 1), "{run}");
        assert!(run.stderr.contains("error: the credential plugin") && run.stderr.contains(expected), "{run}");
        assert!(!run.stderr.contains("t0ken") && run.stdout.is_empty(), "{run}");
    }
    assert!(server.lines().is_empty());
}

#[test]
fn the_first_file_that_names_a_current_context_counts() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let cli = Cli::new();
    let first =
        kubeconfig("https://127.0.0.1:1", &["other"]).replace("current-context: other", "current-context: \"\"");
    let (first, second) = (cli.write("a", &first), cli.write("b", &kubeconfig(&server.url(), &["hub"])));
    let cli = cli.env("KUBECONFIG", format!("{}:{}", first.display(), second.display()));
    let run = cli.run(["get", "clusters"]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, "note: the hub has no managed clusters\n"), "{run}");
}

#[test]
fn an_answer_that_never_ends_is_given_up() {
    let server = Server::start(|_, _| Reply::Stall("{\"kind\":".to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["get", "clusters", "--request-timeout", "1s"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("because: no answer within 1s"), "{run}");
}

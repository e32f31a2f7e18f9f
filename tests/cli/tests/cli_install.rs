//! `install` on servers that no cluster of ours can be.

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use serde_json::json;

/// Runs `install` against a server of this release, and returns what was asked of it.
fn install(what: &str, minor: &str) -> (cli_tests::Run, Vec<String>) {
    let version = json!({
        "major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.4"), "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    });
    let server = Server::start(move |_, asked| match asked.line.as_str() {
        "GET /version" => Reply::Json(200, version.to_string()),
        _ => Reply::Json(404, "{}".to_owned()),
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    (cli.run(["install", what]), server.lines())
}

#[test]
fn a_server_without_policies_of_admission_gets_no_baseline() {
    for minor in ["29", "29+", "9"] {
        let (run, asked) = install("baseline", minor);
        assert_eq!(run.exit, 3, "{run}");
        assert!(run.stderr.contains(&format!("the cluster runs Kubernetes v1.{minor}.4")), "{run}");
        assert!(run.stderr.contains("from 1.30 on") && run.stderr.contains("nothing was installed"), "{run}");
        assert_eq!(asked, ["GET /version"]);
    }
    // A newer one is asked for more.
    let (run, asked) = install("baseline", "30+");
    assert!(run.exit != 0 && !run.stderr.contains("from 1.30 on") && asked.len() > 1, "{run}");
}

//! Placements, against a server that does what a test says.

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use serde_json::{Value, json};

#[test]
fn what_is_said_to_type_next_is_about_the_namespace_of_the_placement() {
    let server = Server::start(|_, asked| {
        let (verb, path) = asked.line.split_once(' ').unwrap_or_default();
        if verb == "POST" {
            let mut review: Value = serde_json::from_str(&asked.body).unwrap_or_default();
            review["status"] = json!({ "allowed": true });
            return Reply::Json(201, review.to_string());
        }
        if verb == "PATCH" {
            let mut made: Value = serde_json::from_str(&asked.body).unwrap_or_default();
            made["metadata"]["uid"] = json!("uid");
            made["metadata"]["resourceVersion"] = json!("1");
            return Reply::Json(201, made.to_string());
        }
        if path.contains("/placements/") {
            let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "not found" });
            return Reply::Json(404, status.to_string());
        }
        let list = json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "1" }, "items": [] });
        Reply::Json(200, list.to_string())
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["placement", "create", "web", "-n", "team-a"]);
    assert_eq!(run.exit, 0, "{run}");
    assert!(run.stderr.contains("kubectl ocm get placements web -n team-a\n"), "{run}");
}

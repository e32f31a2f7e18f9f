//! Works on clusters, against a server that does what a test says.

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use serde_json::{Value, json};

#[test]
fn objects_of_works_are_shown_to_who_may_not_read_clusters() {
    let server = Server::start(|_, asked| {
        if asked.line.contains("/managedclusters") {
            let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "no" });
            return Reply::Json(403, status.to_string());
        }
        let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let conditions = json!([condition("Applied"), condition("Available")]);
        let of = json!({ "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
            "namespace": "default", "name": "hello", "ordinal": 0 });
        let web = json!({ "metadata": { "namespace": "c1", "name": "web" }, "spec": { "workload": { "manifests": [
                { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": "hello" } }] } },
            "status": { "conditions": conditions, "resourceStatus": { "manifests": [
                { "resourceMeta": of, "conditions": conditions }] } } });
        let list =
            json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "1" }, "items": [web] });
        Reply::Json(200, list.to_string())
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["work", "status", "web", "-c", "c1", "-o", "json"]);
    assert_eq!(run.exit, 0, "{run}");
    let document: Value = serde_json::from_str(&run.stdout).expect("a document");
    assert_eq!(document["works"][0]["objects"][0]["name"], "hello", "{run}");
    assert!(document["works"][0].get("phase").is_none(), "{run}");
    assert!(run.stderr.contains("note: it cannot be told whether the agents report: "), "{run}");
}

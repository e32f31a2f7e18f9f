//! `kubectl ocm accept` against a hub that changes whenever something is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use csr_fixtures::Fixture;
use serde_json::{Value, json};

/// How often a decision is taken in all.
const TRIES: usize = 5;

fn list(kind: &str, items: &[Value]) -> Reply {
    let (group, kind) = kind.rsplit_once('/').unwrap_or_default();
    let list = json!({"apiVersion": group, "kind": kind, "metadata": {"resourceVersion": "1"}, "items": items});
    Reply::Json(200, list.to_string())
}

fn status(code: u16, reason: &str) -> Reply {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": reason});
    Reply::Json(code, status.to_string())
}

/// A hub on which every approval is a conflict, and of which a cluster is denied after `conflicts` of them. It counts
/// the approvals that were tried.
fn hub(conflicts: usize) -> (Server, Arc<AtomicUsize>) {
    let tried = Arc::new(AtomicUsize::new(0));
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "r1", "uid": "r1", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:10Z",
            "labels": {"open-cluster-management.io/cluster-name": "c1"}},
        "spec": {
            "request": STANDARD.encode(Fixture::agent("c1", "a1").pem()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"],
            "username": "system:bootstrap:abcdef",
            "groups": ["system:bootstrappers:managedcluster"],
        },
    });
    let counted = tried.clone();
    let server = Server::start(move |_, asked| {
        let path = asked.line.split(['?', ' ']).nth(1).unwrap_or_default();
        let kind = path.split('/').find(|part| {
            matches!(
                *part,
                "managedclusters"
                    | "certificatesigningrequests"
                    | "selfsubjectaccessreviews"
                    | "namespaces"
                    | "clusterroles"
            )
        });
        let denied = counted.load(Ordering::SeqCst) >= conflicts;
        let condition = json!({"type": "HubAcceptedManagedCluster", "status": "False", "reason": "HubClusterAdminDenied",
            "message": "", "lastTransitionTime": "2026-01-01T00:01:00Z"});
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": "c1", "uid": "c1", "resourceVersion": "1",
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"hubAcceptsClient": false},
            "status": {"conditions": if denied { vec![condition] } else { Vec::new() }},
        });
        match kind {
            _ if asked.line.starts_with("PUT ") => {
                counted.fetch_add(1, Ordering::SeqCst);
                status(409, "Conflict")
            }
            Some("selfsubjectaccessreviews") => {
                let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {}, "status": {"allowed": true}});
                Reply::Json(201, review.to_string())
            }
            _ if !asked.line.starts_with("GET ") => status(500, "InternalError"),
            Some("managedclusters") if path.ends_with("/c1") => Reply::Json(200, cluster.to_string()),
            Some("managedclusters") => list("cluster.open-cluster-management.io/v1/ManagedClusterList", &[cluster]),
            Some("certificatesigningrequests") => {
                list("certificates.k8s.io/v1/CertificateSigningRequestList", std::slice::from_ref(&request))
            }
            Some("namespaces" | "clusterroles") if path.ends_with("s") => {
                list("meta.k8s.io/v1/PartialObjectMetadataList", &[])
            }
            _ => status(404, "NotFound"),
        }
    });
    (server, tried)
}

#[test]
fn a_denial_counts_for_what_was_selected_at_whichever_try_it_is_seen() {
    for conflicts in 1..=TRIES {
        let (server, tried) = hub(conflicts);
        let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
        let run = cli.run(["accept", "--all-pending", "--yes", "-o", "json"]);
        let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run}"));
        // After the last try nobody looks again.
        let (exit, code) = if conflicts < TRIES { (3, "DeniedBefore") } else { (1, "Conflict") };
        assert_eq!((run.exit, &document["clusters"][0]["code"]), (exit, &json!(code)), "{conflicts}: {run}");
        assert_eq!(tried.load(Ordering::SeqCst), conflicts, "{run}");
        let accepted = server.lines().into_iter().filter(|line| line.starts_with("PATCH "));
        assert_eq!(accepted.count(), 0, "{conflicts}");
    }
}

#[test]
fn to_approve_only_goes_with_nothing_that_decides_and_its_flags_with_nothing_else() {
    // Nothing is asked of a hub before.
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]));
    for (words, sentence) in [
        (&["c1", "--approve-only", "--wait"][..], "'--approve-only' cannot be used with '--wait'"),
        (&["c1", "--approve-only", "--deny", "no"], "'--approve-only' cannot be used with '--deny <REASON>'"),
        (&["c1", "--approve-only", "--without-request"], "'--approve-only' cannot be used with '--without-request'"),
        (&["c1", "--reason", "because"], "--approve-only"),
        (&["c1", "--expires", "1h"], "--approve-only"),
        (&["c1", "--group", "admins"], "--approve-only"),
        (&["c1", "--approve-only", "--expires", "31d"], "an approval counts for 30 days at most"),
        (&["c1", "--approve-only", "--expires", "0s"], "for a second at least"),
        (&["c1", "--approve-only", "--reason", " "], "--reason is empty"),
        (&["--all-pending", "--approve-only"], "need --yes where stdin is not a terminal"),
    ] {
        let run = cli.run([&["accept"], words].concat());
        assert!(run.exit == 2 && run.stderr.contains(sentence), "{words:?}: {run}");
    }
    let run = cli.run(["accept", "c1", "--approve-only", "--expires", "1h", "--reason", "because"]);
    assert_eq!(run.exit, 1, "it asks the hub: {run}");
}

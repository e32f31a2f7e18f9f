//! What an API server refuses to somebody, whatever rights they have.

use control_plane::Cluster;
use serde_json::{Value, json};

use crate::manifests::pipe;
use crate::trouble_support::{apply, kubectl};
use crate::until;

/// The kind of a policy, and that of what puts it in force.
const KINDS: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

/// A policy of an API server that refuses what somebody writes.
pub(super) struct Refusal {
    /// Its name.
    pub(super) name: &'static str,
    /// The API group, and the resources.
    pub(super) resources: (&'static str, Vec<&'static str>),
    /// How the names begin of those to whom it is refused.
    pub(super) users: &'static str,
    /// An object that is refused to one of them.
    pub(super) such: Value,
}

impl Refusal {
    /// Has it refused, and waits until it is.
    pub(super) fn begin(&self, cluster: &Cluster) {
        let Self { name, resources: (group, resources), users, such } = self;
        let of = |kind: &str, spec: Value| {
            let api = "admissionregistration.k8s.io/v1";
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
        };
        let policy = json!({
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources,
            }]},
            "matchConditions": [
                {"name": "who", "expression": format!("request.userInfo.username.startsWith('{users}')")},
            ],
            "validations": [{"expression": "false", "message": "nobody of this name may"}],
        });
        let binding = json!({"policyName": name, "validationActions": ["Deny"]});
        // Whoever is of this group has every right.
        let who = format!("--as={users}");
        let flags = ["--dry-run=server", &who, "--as-group=system:masters"];
        let is_taken = || pipe(cluster, &flags, &such.to_string());
        assert!(is_taken(), "nothing else refuses {such}");
        for (kind, spec) in KINDS.into_iter().zip([policy, binding]) {
            apply(cluster, &of(kind, spec));
        }
        until("it is refused", || !is_taken());
    }

    /// Has it taken again.
    pub(super) fn end(&self, cluster: &Cluster) {
        KINDS.into_iter().rev().for_each(|kind| kubectl(cluster, &["delete", kind, self.name, "--wait=true"]));
    }
}

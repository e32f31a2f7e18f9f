//! `policy.kubectl-ocm.dev/v1alpha1`: one person's word that a cluster may join.
//!
//! The schema is generated from these types, and their comments are what `kubectl explain` shows. That the author is who the
//! object says is proved by the static baseline when it is created, and the schema lets nobody change it afterwards.

use kube_derive::CustomResource;
use serde::Serialize;

use crate::member::Member;

/// The most characters of user names and reasons.
pub const MAX_TEXT: usize = 1024;
/// The most groups that one approval names.
pub const MAX_GROUPS: usize = 16;
/// The most characters of the name of a group.
pub const MAX_GROUP: usize = 256;
/// The fewest characters of the reason of an approval with breakGlass.
pub const LEAST_REASON: usize = 20;

#[cfg(feature = "schema")]
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
#[cfg(feature = "schema")]
const UTC: &str = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$";

/// Who lets which cluster join, for whom, and until when. It cannot be changed; to withdraw it, delete it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", kube(schema = "derived"))]
#[cfg_attr(not(feature = "schema"), kube(schema = "disabled"))]
#[kube(
    group = "policy.kubectl-ocm.dev",
    version = "v1alpha1",
    kind = "RegistrationApproval",
    plural = "registrationapprovals",
    shortname = "happr",
    category = "ocm-policy",
    derive = "PartialEq",
    doc = "One person's word that a cluster may join. It counts while the static baseline is in force, which proves its \
           author, and for policies that ask for it."
)]
#[kube(printcolumn = r#"{"name": "Cluster", "type": "string",
    "description": "Name of the cluster.", "jsonPath": ".spec.cluster.name"}"#)]
#[kube(printcolumn = r#"{"name": "Approver", "type": "string",
    "description": "Who approves.", "jsonPath": ".spec.approver"}"#)]
#[kube(printcolumn = r#"{"name": "Requester", "type": "string", "priority": 1,
    "description": "Who asks to register the cluster.", "jsonPath": ".spec.requester"}"#)]
#[kube(printcolumn = r#"{"name": "Expires", "type": "string",
    "description": "From when on it does not count.", "jsonPath": ".spec.expiresAt"}"#)]
#[kube(printcolumn = r#"{"name": "Break-glass", "type": "boolean",
    "description": "Whether it is for an emergency.", "jsonPath": ".spec.breakGlass"}"#)]
#[kube(printcolumn = r#"{"name": "Reason", "type": "string",
    "description": "Why.", "jsonPath": ".spec.reason"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date",
    "description": "When it was given.", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[kube(crates(kube_core = "kube_core", serde = "crate::member::of_kube"))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "schema",
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "an approval cannot be changed: delete it, and approve anew",
    }, {
        "rule": format!("!has(self.breakGlass) || !self.breakGlass || (has(self.reason) && self.reason.trim().size() >= {LEAST_REASON})"),
        "fieldPath": ".reason",
        "message": format!("breakGlass needs a reason of at least {LEAST_REASON} characters"),
    }]))
)]
pub struct RegistrationApprovalSpec {
    /// The cluster that may join.
    pub cluster: ApprovedCluster,
    /// User name of who asks to register it. Requests of anybody else are not approved.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TEXT)))]
    pub requester: String,
    /// User name of who approves: whoever creates the object.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = MAX_TEXT)))]
    pub approver: String,
    /// The approver's groups that are to count. Policies may ask for approvers of a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(
            length(max = MAX_GROUPS),
            inner(length(min = 1, max = MAX_GROUP)),
            extend("x-kubernetes-list-type" = "set")
        )
    )]
    pub groups: Vec<String>,
    /// Why. With breakGlass at least 20 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = MAX_TEXT)))]
    pub reason: Option<String>,
    /// From when on it does not count, in RFC 3339 with Z: at most 30 days after it is created, with breakGlass 4 hours.
    #[cfg_attr(feature = "schema", schemars(length(max = 32), regex(pattern = UTC), extend("format" = "date-time")))]
    pub expires_at: String,
    /// Whether it is for an emergency: it takes a right of its own, and is not counted among the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub break_glass: bool,
}

/// A ManagedCluster of the hub. Another one of the same name, later, is not meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovedCluster {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 63), regex(pattern = DNS_LABEL)))]
    pub name: String,
    /// Its UID.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 63)))]
    pub uid: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn everything_that_is_said_is_written_again_and_an_approval_breaks_no_glass_unless_it_says_so() {
        let read = |spec: &Value| -> RegistrationApprovalSpec { serde_json::from_value(spec.clone()).expect("a spec") };
        let least = json!({
            "cluster": { "name": "c1", "uid": "u" }, "requester": "r", "approver": "eva",
            "expiresAt": "2026-01-01T00:00:00Z",
        });
        assert!(!read(&least).break_glass && read(&least).groups.is_empty());
        let mut full = least.clone();
        full["groups"] = json!(["admins"]);
        full["reason"] = json!("because");
        full["breakGlass"] = json!(true);
        for spec in [least, full] {
            assert_eq!(serde_json::to_value(read(&spec)).expect("written"), spec);
        }
    }
}

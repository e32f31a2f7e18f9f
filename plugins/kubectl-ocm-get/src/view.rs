//! Columns of clusters, requests and registrations.

use jiff::Timestamp;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::labels;
use ocm_cli::list::{NONE, Tree, View, age};
use ocm_core::duration;
use ocm_flows::get::{ClusterRow, RequestRow, Verdict};
use ocm_flows::registrations::RegistrationRow;
use serde_json::{Value, json};

/// Managed clusters.
pub(crate) struct Clusters;

impl View for Clusters {
    type Row = ClusterRow;

    const HEADINGS: &'static [&'static str] = &[
        "NAME",
        "PHASE",
        "ACCEPTED",
        "JOINED",
        "AVAILABLE",
        "CLUSTERSET",
        "AGE",
        "REASON",
        "KUBERNETES",
        "CPU",
        "MEMORY",
        "URL",
        "NAME USED UNTIL",
    ];
    const NARROW: usize = 8;
    const NOTHING: &'static str = "the hub has no managed clusters";
    const NO_MATCH: &'static str = "no managed cluster matches";
    const COLUMNS: &'static [&'static str] =
        &["name", "phase", "accepted", "clusterset", "age", "reason", "kubernetes"];

    fn cells(row: &ClusterRow, now: Timestamp) -> Vec<String> {
        let status = row.object.status.as_ref();
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = |kind: &str| {
            conditions::find(conditions, kind).map_or("", |condition| condition.status.as_str()).to_owned()
        };
        let capacity = |resource: &str| {
            status
                .and_then(|status| status.capacity.get(resource))
                .map_or_else(|| NONE.to_owned(), |amount| amount.0.clone())
        };
        let accepted = if row.object.spec.hub_accepts_client.unwrap_or_default() { "True" } else { "False" };
        let set = row.object.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_SET));
        let version = status.and_then(|status| status.version.as_ref()).and_then(|version| version.kubernetes.clone());
        let urls: Vec<&str> = row
            .object
            .spec
            .managed_cluster_client_configs
            .iter()
            .map(|config| config.url.as_str())
            .filter(|url| !url.is_empty())
            .collect();
        vec![
            row.name().to_owned(),
            row.standing.phase.to_string(),
            accepted.to_owned(),
            condition(managed_cluster::JOINED),
            condition(managed_cluster::AVAILABLE),
            set.cloned().unwrap_or_else(|| NONE.to_owned()),
            age(now, row.created()),
            row.standing.reason.clone(),
            version.unwrap_or_else(|| NONE.to_owned()),
            capacity("cpu"),
            capacity("memory"),
            if urls.is_empty() { NONE.to_owned() } else { urls.join(",") },
            row.name_used_until.clone().unwrap_or_else(|| NONE.to_owned()),
        ]
    }

    fn reference(row: &ClusterRow) -> String {
        format!("managedcluster.cluster.open-cluster-management.io/{}", row.name())
    }

    fn document(row: &ClusterRow) -> Value {
        let mut object = Self::object(row);
        if let Some(object) = object.as_object_mut() {
            let standing = &row.standing;
            let mut standing = json!({
                "phase": standing.phase.to_string(), "reason": standing.reason, "message": standing.message,
            });
            if let Some(until) = &row.name_used_until {
                standing["nameUsedUntil"] = json!(until);
            }
            object.insert("standing".to_owned(), standing);
        }
        object
    }

    fn object(row: &ClusterRow) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &ClusterRow) -> Option<Timestamp> {
        row.created()
    }

    fn trees(rows: &[ClusterRow], now: Timestamp) -> Vec<Tree> {
        let tree = |row: &ClusterRow| {
            let below = Tree::cells(&Self::HEADINGS[2..], &Self::cells(row, now)[2..]);
            Tree::new(format!("{}  {}", row.name(), row.standing.phase), below)
        };
        rows.iter().map(tree).collect()
    }
}

/// Certificate requests of clusters.
pub(crate) struct Requests;

impl View for Requests {
    type Row = RequestRow;

    const HEADINGS: &'static [&'static str] = &[
        "NAME",
        "CLUSTER",
        "STATE",
        "VERDICT",
        "REQUESTER",
        "AGE",
        "KEY",
        "LIFETIME",
        "SIGNER",
        "COMMON NAME",
        "FINGERPRINT",
    ];
    const NARROW: usize = 6;
    const NOTHING: &'static str = "the hub has no certificate requests of clusters";
    const NO_MATCH: &'static str = "no certificate request of a cluster matches";
    const COLUMNS: &'static [&'static str] = &["name", "cluster", "state", "verdict", "requester", "age"];

    fn cells(row: &RequestRow, now: Timestamp) -> Vec<String> {
        let request = &row.request;
        let content = request.content.as_ref().ok();
        let lifetime = request
            .lifetime_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or_else(|| NONE.to_owned(), |seconds| duration::human(std::time::Duration::from_secs(seconds)));
        vec![
            request.name.clone(),
            request.cluster_label.clone().unwrap_or_else(|| NONE.to_owned()),
            request.state.to_string(),
            row.verdict.word(),
            request.asked_by().to_owned(),
            age(now, request.created),
            content.map_or_else(|| NONE.to_owned(), |content| content.key.to_string()),
            lifetime,
            request.signer.clone(),
            content.map_or_else(|| NONE.to_owned(), |content| content.common_names.join(",")),
            request.fingerprint().unwrap_or_else(|| NONE.to_owned()),
        ]
    }

    fn reference(row: &RequestRow) -> String {
        format!("certificatesigningrequest.certificates.k8s.io/{}", row.request.name)
    }

    fn document(row: &RequestRow) -> Value {
        let mut object = Self::object(row);
        if let Some(object) = object.as_object_mut() {
            let violations = match &row.verdict {
                Verdict::Refused(violations) => violations.as_slice(),
                _ => &[],
            };
            let violations: Vec<Value> = violations
                .iter()
                .map(|violation| json!({ "code": violation.code.to_string(), "detail": violation.detail }))
                .collect();
            let content = row.request.content.as_ref().ok();
            let verdict = json!({
                "verdict": row.verdict.word(),
                "violations": violations,
                "state": row.request.state.to_string(),
                "fingerprint": row.request.fingerprint(),
                "key": content.map(|content| content.key.to_string()),
                "commonNames": content.map(|content| content.common_names.clone()),
                "organizations": content.map(|content| content.organizations.clone()),
            });
            object.insert("standing".to_owned(), verdict);
        }
        object
    }

    fn object(row: &RequestRow) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &RequestRow) -> Option<Timestamp> {
        row.request.created
    }
}

/// What the policy controller has written of each cluster.
pub(crate) struct Registrations;

impl View for Registrations {
    type Row = RegistrationRow;

    // The sentence is long, so it comes last.
    const HEADINGS: &'static [&'static str] = &[
        "NAME",
        "VERDICT",
        "APPROVED BY",
        "REQUESTER",
        "AGE",
        "WAITING FOR",
        "REQUEST",
        "VALID UNTIL",
        "EXPIRES",
        "DECIDED",
        "REMOVED",
    ];
    const NARROW: usize = 6;
    const NOTHING: &'static str = "the hub has no registrations";
    const NO_MATCH: &'static str = "no registration matches";
    const COLUMNS: &'static [&'static str] = &["name", "verdict", "requester", "age"];

    fn cells(row: &RegistrationRow, now: Timestamp) -> Vec<String> {
        let status = &row.status;
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or(NONE).to_owned();
        let since = |time: Option<&String>| age(now, time.and_then(|time| time.parse().ok()));
        vec![
            row.name().to_owned(),
            status.verdict.to_string(),
            text(Some(&status.approved_by.join(","))),
            text(status.requester.as_ref().map(|requester| requester.username.as_str())),
            age(now, row.created()),
            text(status.waiting_for.as_deref()),
            text(status.request.as_ref().map(|request| request.name.as_str())),
            text(row.valid_until()),
            text(status.obligations.first().map(|next| next.due.as_str())),
            since(status.decision.as_ref().map(|decision| &decision.at)),
            since(status.removed_at.as_ref()),
        ]
    }

    fn reference(row: &RegistrationRow) -> String {
        format!("registration.policy.kubectl-ocm.dev/{}", row.name())
    }

    fn document(row: &RegistrationRow) -> Value {
        Self::object(row)
    }

    fn object(row: &RegistrationRow) -> Value {
        serde_json::to_value(&row.object).unwrap_or_default()
    }

    fn created(row: &RegistrationRow) -> Option<Timestamp> {
        row.created()
    }
}

//! Columns of clusters, requests and registrations.

use jiff::Timestamp;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::labels;
use ocm_core::duration;
use ocm_flows::get::{ClusterRow, RequestRow, Verdict};
use ocm_flows::registrations::RegistrationRow;
use serde_json::{Value, json};

use crate::sort::Sortable;

/// How a kind of row looks in every format.
pub(crate) trait View: Sortable {
    /// Headings; the first `narrow` of them make the ordinary table.
    const HEADINGS: &'static [&'static str];
    /// How many columns the ordinary table has.
    const NARROW: usize;
    /// What a list is called when it is empty.
    const NOTHING: &'static str;
    /// The cells of a row, as many as there are headings.
    fn cells(&self, now: Timestamp) -> Vec<String>;
    /// kubectl's `kind.group/name`.
    fn reference(&self) -> String;
    /// The object with what we made of it.
    fn document(&self) -> Value;
}

/// Shown where there is nothing to show.
const NONE: &str = "<none>";

impl View for ClusterRow {
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
    ];
    const NARROW: usize = 8;
    const NOTHING: &'static str = "the hub has no managed clusters";

    fn cells(&self, now: Timestamp) -> Vec<String> {
        let status = self.object.status.as_ref();
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = |kind: &str| {
            conditions::find(conditions, kind).map_or("", |condition| condition.status.as_str()).to_owned()
        };
        let capacity = |resource: &str| {
            status
                .and_then(|status| status.capacity.get(resource))
                .map_or_else(|| NONE.to_owned(), |amount| amount.0.clone())
        };
        let accepted = if self.object.spec.hub_accepts_client.unwrap_or_default() { "True" } else { "False" };
        let set = self.object.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_SET));
        let version = status.and_then(|status| status.version.as_ref()).and_then(|version| version.kubernetes.clone());
        let urls: Vec<&str> = self
            .object
            .spec
            .managed_cluster_client_configs
            .iter()
            .map(|config| config.url.as_str())
            .filter(|url| !url.is_empty())
            .collect();
        vec![
            self.name().to_owned(),
            self.standing.phase.to_string(),
            accepted.to_owned(),
            condition(managed_cluster::JOINED),
            condition(managed_cluster::AVAILABLE),
            set.cloned().unwrap_or_else(|| NONE.to_owned()),
            age(now, self.created()),
            self.standing.reason.clone(),
            version.unwrap_or_else(|| NONE.to_owned()),
            capacity("cpu"),
            capacity("memory"),
            if urls.is_empty() { NONE.to_owned() } else { urls.join(",") },
        ]
    }

    fn reference(&self) -> String {
        format!("managedcluster.cluster.open-cluster-management.io/{}", self.name())
    }

    fn document(&self) -> Value {
        let mut object = self.object();
        if let Some(object) = object.as_object_mut() {
            let standing = &self.standing;
            let standing = json!({
                "phase": standing.phase.to_string(), "reason": standing.reason, "message": standing.message,
            });
            object.insert("standing".to_owned(), standing);
        }
        object
    }
}

impl Sortable for ClusterRow {
    const COLUMNS: &'static [&'static str] =
        &["name", "phase", "accepted", "clusterset", "age", "reason", "kubernetes"];

    fn column(&self, name: &str) -> Option<Value> {
        cell(self, name, self.created())
    }

    fn object(&self) -> Value {
        serde_json::to_value(&self.object).unwrap_or_default()
    }
}

impl View for RequestRow {
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

    fn cells(&self, now: Timestamp) -> Vec<String> {
        let request = &self.request;
        let content = request.content.as_ref().ok();
        let lifetime = request
            .lifetime_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or_else(|| NONE.to_owned(), |seconds| duration::human(std::time::Duration::from_secs(seconds)));
        vec![
            request.name.clone(),
            request.cluster_label.clone().unwrap_or_else(|| NONE.to_owned()),
            request.state.to_string(),
            self.verdict.word(),
            request.asked_by().to_owned(),
            age(now, request.created),
            content.map_or_else(|| NONE.to_owned(), |content| content.key.to_string()),
            lifetime,
            request.signer.clone(),
            content.map_or_else(|| NONE.to_owned(), |content| content.common_names.join(",")),
            request.fingerprint().unwrap_or_else(|| NONE.to_owned()),
        ]
    }

    fn reference(&self) -> String {
        format!("certificatesigningrequest.certificates.k8s.io/{}", self.request.name)
    }

    fn document(&self) -> Value {
        let mut object = self.object();
        if let Some(object) = object.as_object_mut() {
            let violations = match &self.verdict {
                Verdict::Refused(violations) => violations.as_slice(),
                _ => &[],
            };
            let violations: Vec<Value> = violations
                .iter()
                .map(|violation| json!({ "code": violation.code.to_string(), "detail": violation.detail }))
                .collect();
            let content = self.request.content.as_ref().ok();
            let verdict = json!({
                "verdict": self.verdict.word(),
                "violations": violations,
                "state": self.request.state.to_string(),
                "fingerprint": self.request.fingerprint(),
                "key": content.map(|content| content.key.to_string()),
                "commonNames": content.map(|content| content.common_names.clone()),
                "organizations": content.map(|content| content.organizations.clone()),
            });
            object.insert("standing".to_owned(), verdict);
        }
        object
    }
}

impl Sortable for RequestRow {
    const COLUMNS: &'static [&'static str] = &["name", "cluster", "state", "verdict", "requester", "age"];

    fn column(&self, name: &str) -> Option<Value> {
        cell(self, name, self.request.created)
    }

    fn object(&self) -> Value {
        serde_json::to_value(&self.object).unwrap_or_default()
    }
}

impl View for RegistrationRow {
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
        "DECIDED",
        "REMOVED",
    ];
    const NARROW: usize = 6;
    const NOTHING: &'static str = "the hub has no registrations";

    fn cells(&self, now: Timestamp) -> Vec<String> {
        let status = &self.status;
        let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or(NONE).to_owned();
        let since = |time: Option<&String>| age(now, time.and_then(|time| time.parse().ok()));
        vec![
            self.name().to_owned(),
            status.verdict.to_string(),
            text(Some(&status.approved_by.join(","))),
            text(status.requester.as_ref().map(|requester| requester.username.as_str())),
            age(now, self.created()),
            text(status.waiting_for.as_deref()),
            text(status.request.as_ref().map(|request| request.name.as_str())),
            text(self.valid_until()),
            since(status.decision.as_ref().map(|decision| &decision.at)),
            since(status.removed_at.as_ref()),
        ]
    }

    fn reference(&self) -> String {
        format!("registration.policy.kubectl-ocm.dev/{}", self.name())
    }

    fn document(&self) -> Value {
        self.object()
    }
}

impl Sortable for RegistrationRow {
    const COLUMNS: &'static [&'static str] = &["name", "verdict", "requester", "age"];

    fn column(&self, name: &str) -> Option<Value> {
        cell(self, name, self.created())
    }

    fn object(&self) -> Value {
        serde_json::to_value(&self.object).unwrap_or_default()
    }
}

/// What a row holds in the column of a name.
fn cell<T: View>(row: &T, name: &str, created: Option<Timestamp>) -> Option<Value> {
    if name == "age" {
        // The youngest first, as an age grows.
        return created.map(|created| json!(-created.as_second()));
    }
    let index = T::HEADINGS.iter().position(|heading| heading.eq_ignore_ascii_case(name))?;
    row.cells(Timestamp::UNIX_EPOCH).into_iter().nth(index).map(Value::String)
}

fn age(now: Timestamp, created: Option<Timestamp>) -> String {
    match created {
        Some(created) => duration::human(now.duration_since(created).try_into().unwrap_or_default()),
        None => NONE.to_owned(),
    }
}

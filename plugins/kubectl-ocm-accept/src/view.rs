//! How decisions and outcomes look.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::names::labels;
use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::accept::{Approver, Decision, Options, Refusal};
use ocm_core::{DryRun, Failure, duration};
use ocm_flows::accept::{Candidate, Denial, Giving, Outcome, Row};
use serde_json::{Value, json};

use crate::help::{self, Typed};

/// Prints rows as they come, or one document at the end.
pub(crate) struct View {
    ui: Arc<Ui>,
    format: Format,
    dry_run: DryRun,
    approve_only: bool,
    options: Options,
}

impl View {
    pub(crate) fn new(ui: Arc<Ui>, format: Format, dry_run: DryRun, approve_only: bool, options: Options) -> Self {
        Self { ui, format, dry_run, approve_only, options }
    }

    fn typed(&self) -> Typed<'_> {
        Typed { options: &self.options, approve_only: self.approve_only }
    }

    /// One line per cluster, as soon as it is known.
    pub(crate) fn row(&self, row: &Row) {
        match self.format {
            Format::Table | Format::Wide => {
                let mut line = format!("managedcluster/{} {}", row.name, words(&row.outcome));
                line += self.dry_run.remark();
                if !is_plain(&row.outcome) {
                    line += &format!(": {}", row.detail);
                }
                if self.dry_run != DryRun::No && matches!(row.outcome, Outcome::Accepted) {
                    line += &content(row);
                }
                if self.format == Format::Wide
                    && let (Some(key), Some(requester)) = (&row.fingerprint, &row.requester)
                {
                    line += &format!(" [{key}, asked by {requester}]");
                }
                self.ui.line(&line);
                for (request, fingerprint) in &row.stray {
                    let key = fingerprint.as_deref().unwrap_or("unreadable");
                    self.ui
                        .say_line(&format!("  note: request {request} also asks for this name, key {key}: left alone"));
                }
                if let Some(help) = &row.help
                    && (!is_plain(&row.outcome) || !row.stray.is_empty())
                {
                    self.ui.say_line(&format!("  hint: {}", self.typed().words(&row.name, help)));
                }
            }
            Format::Name if row.approval.is_some() => {
                let name = row.approval.as_deref().unwrap_or_default();
                self.ui.line(&format!("registrationapproval.policy.kubectl-ocm.dev/{name}"));
            }
            Format::Name
                if matches!(
                    row.outcome,
                    Outcome::Accepted | Outcome::Approved | Outcome::AlreadyAccepted | Outcome::Denied
                ) =>
            {
                self.ui.line(&object_name(&row.name));
            }
            Format::Name | Format::Json | Format::Yaml => {}
        }
    }

    /// The document of all rows, for the formats of programs.
    pub(crate) fn finish(&self, rows: &[Row]) -> Result<(), Failure> {
        if !matches!(self.format, Format::Json | Format::Yaml) {
            return Ok(());
        }
        let clusters: Vec<_> = rows.iter().map(|row| object(row, &self.typed())).collect();
        let dry_run = self.dry_run.word();
        self.ui.out(&document(self.format, &json!({ "dryRun": dry_run, "clusters": clusters }))?);
        Ok(())
    }

    /// What is about to be approved, as the question shows it; only approved, with what is said about it.
    pub(crate) fn question(&self, candidates: &[Candidate], giving: Option<&Giving>) -> String {
        let now = Timestamp::now();
        let mut table = Table::new(&["CLUSTER", "SET", "LABELS", "REQUEST", "AGE", "REQUESTER", "KEY"]);
        let mut count = 0;
        for candidate in candidates {
            if !matches!(candidate.decision, Decision::Act { .. }) {
                continue;
            }
            count += 1;
            let mut labels = candidate.labels();
            let set = labels.remove(labels::CLUSTER_SET).unwrap_or_default();
            let labels = joined(&labels);
            let Some(request) = candidate.request() else {
                table.row([&candidate.name, &set, &labels, "none", "", "", ""]);
                continue;
            };
            let age = request.created.map(|created| age(now, created)).unwrap_or_default();
            let key = request.fingerprint().unwrap_or_default();
            table.row([&candidate.name, &set, &labels, &request.name, &age, request.asked_by(), &key]);
        }
        self.ui.say_text(&table.render());
        let what = match count {
            1 => "this cluster".to_owned(),
            count => format!("these {count} clusters"),
        };
        match giving {
            None => format!("Accept {what}?"),
            Some(giving) => {
                let Approver { user, groups } = giving.approver();
                let groups = if groups.is_empty() { String::new() } else { format!(" of {}", groups.join(", ")) };
                let until = giving.until();
                match giving.break_glass() {
                    true => format!("Accept {what} past policies, with breakGlass as {user}{groups} until {until}?"),
                    // Keys change daily: an approval names the cluster and who asks.
                    false => {
                        let key = if count == 1 {
                            "whichever key its requester has"
                        } else {
                            "whichever keys their requesters have"
                        };
                        format!("Approve {what} as {user}{groups}, until {until}, with {key}?")
                    }
                }
            }
        }
    }

    /// The question about a cluster that is accepted only if a person says so.
    pub(crate) fn question_about(&self, cluster: &str, refusal: &Refusal) -> String {
        clean(&help::question(cluster, refusal, self.approve_only))
    }

    /// Which clusters are not denied, and why, before the question about the others.
    pub(crate) fn tell_left(&self, denial: &Denial) {
        for (name, failure) in denial.left() {
            self.ui.say_text(&clean(&format!("{name} is left as it is: {failure}")));
        }
    }

    /// What is about to be denied.
    pub(crate) fn question_to_deny(&self, denial: &Denial) -> String {
        format!("Deny {}?", clean(&denial.names().join(", ")))
    }

    /// What would help where something failed, each once.
    pub(crate) fn hints(&self, rows: &[Row]) {
        for hint in hints(rows) {
            self.ui.say_line(&format!("  hint: {hint}"));
        }
    }
}

fn hints(rows: &[Row]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for hint in rows.iter().filter_map(Row::failure).flat_map(|failure| &failure.hints).map(ocm_cli::words) {
        if !all.contains(&hint) {
            all.push(hint);
        }
    }
    all
}

/// The name of a cluster as `-o name` prints it.
pub(crate) fn object_name(cluster: &str) -> String {
    format!("managedcluster.cluster.open-cluster-management.io/{cluster}")
}

/// A row for programs.
pub(crate) fn object(row: &Row, typed: &Typed<'_>) -> Value {
    json!({
        "name": row.name,
        "code": row.outcome.code(),
        "accepted": matches!(row.outcome, Outcome::Accepted | Outcome::Approved | Outcome::AlreadyAccepted),
        "detail": row.detail,
        "hint": row.help.as_ref().map(|help| typed.words(&row.name, help)),
        "stray": row.stray.iter().map(|(request, key)| json!({ "request": request, "fingerprint": key }))
            .collect::<Vec<_>>(),
        "clusterSet": row.cluster_set,
        "labels": row.labels,
        "fingerprint": row.fingerprint,
        "requester": row.requester,
        "request": row.request,
        "approval": row.approval,
    })
}

/// What a cluster would be accepted with, besides its name.
pub(crate) fn content(row: &Row) -> String {
    let set = row.cluster_set.as_deref().map(|set| format!("cluster set {set}"));
    let labels = (!row.labels.is_empty()).then(|| format!("labels {}", joined(&row.labels)));
    let parts: Vec<String> = set.into_iter().chain(labels).collect();
    if parts.is_empty() { String::new() } else { format!(", {}", parts.join(", ")) }
}

fn joined(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

pub(crate) fn age(now: Timestamp, created: Timestamp) -> String {
    duration::human(now.duration_since(created).try_into().unwrap_or_default())
}

/// What stands behind the cluster's name.
fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted => "accepted".to_owned(),
        Outcome::Approved => "approved".to_owned(),
        Outcome::AlreadyAccepted => "already accepted".to_owned(),
        Outcome::Denied => "denied".to_owned(),
        Outcome::AlreadyDenied => "not accepted, nothing to deny".to_owned(),
        Outcome::NoRequest => "not accepted, NoRequest".to_owned(),
        Outcome::ApprovalWritten => "approval written".to_owned(),
        Outcome::AlreadyApproved => "already approved".to_owned(),
        Outcome::Refused(code) => format!("refused, {code}"),
        Outcome::Failed(failure) => format!("failed, {}", failure.reason),
    }
}

/// Whether the words say it all.
fn is_plain(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Accepted | Outcome::AlreadyAccepted | Outcome::AlreadyDenied)
}

#[cfg(test)]
mod tests {
    use ocm_core::Reason;

    use super::*;
    use crate::samples::row;

    fn failed(failure: Failure) -> Row {
        Row { detail: failure.to_string(), ..row(Outcome::Failed(failure)) }
    }

    #[test]
    fn what_helps_against_failures_is_told_once_and_their_code_is_the_reason() {
        let failure = |reason| Failure::new(reason, "no").hint("ask somebody");
        let rows = [failed(failure(Reason::Forbidden)), failed(failure(Reason::Busy).hint("try again"))];
        assert_eq!(hints(&rows), ["ask somebody", "try again"]);
        let typed = Typed { options: &Options::default(), approve_only: false };
        let object = object(&rows[0], &typed);
        assert_eq!(
            (&object["code"], &object["detail"], &object["hint"]),
            (&json!("Forbidden"), &json!("no"), &json!(null))
        );
        assert_eq!(words(&rows[0].outcome), "failed, Forbidden");
    }
}

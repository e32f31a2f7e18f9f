//! Denying clusters: acceptance is withdrawn first, then requests are denied.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use ocm_core::csr::{Code, Request, State};
use ocm_core::{DryRun, Failure, Reason};
use ocm_kube::Cluster;

use super::carry_out::{TRIES, decide_request, in_order, set_accepted};
use super::{Candidate, DENIAL_REASON, Outcome, Row, row};

/// Denies: every request that waits gets a denial with `reason`, and an accepted cluster loses its acceptance.
pub async fn deny(
    hub: &Cluster,
    candidates: Vec<Candidate>,
    reason: &str,
    dry_run: DryRun,
    at_once: usize,
    mut each: impl FnMut(&Row),
) -> Vec<Row> {
    in_order(candidates, at_once, async |candidate| deny_one(hub, candidate, reason, dry_run).await, |row, _| each(row))
        .await
}

async fn deny_one(hub: &Cluster, candidate: Candidate, reason: &str, dry_run: DryRun) -> Row {
    let waiting: Vec<&(Request, CertificateSigningRequest)> = candidate.waiting().collect();
    let accepted = candidate.is_accepted();
    let row = row(&candidate);
    if waiting.is_empty() && !accepted {
        let (outcome, detail) = match candidate.cluster {
            Some(_) => (Outcome::AlreadyDenied, "nothing waits for approval"),
            None => (Outcome::Refused(Code::NoManagedCluster), "the hub has no managed cluster of this name"),
        };
        return Row { outcome, detail: detail.to_owned(), help: None, stray: Vec::new(), ..row };
    }
    // The acceptance first: with it the agent loses its rights, whatever becomes of the requests.
    let mut failures = Vec::new();
    let mut withdrawn = accepted;
    if dry_run != DryRun::Client
        && accepted
        && let Some(cluster) = &candidate.cluster
        && let Err(failure) = set_accepted(hub, cluster, false, dry_run).await
    {
        withdrawn = false;
        failures.push(failure);
    }
    let mut denied = Vec::new();
    for (request, object) in &waiting {
        let result = match dry_run {
            DryRun::Client => Ok(()),
            _ => deny_request(hub, object, reason, dry_run).await,
        };
        match result {
            Ok(()) => denied.push(request.name.as_str()),
            Err(failure) => failures.push(failure),
        }
    }
    let detail = match (withdrawn, denied.as_slice()) {
        (true, []) => "it is no longer accepted".to_owned(),
        (true, names) => format!("it is no longer accepted, and {} denied", names.join(", ")),
        (false, []) => "nothing was changed".to_owned(),
        (false, names) => format!("{} denied", names.join(", ")),
    };
    let request = denied.last().map(|name| (*name).to_owned());
    let (outcome, detail) = match failures.first() {
        None => (Outcome::Denied, detail),
        Some(failure) => {
            let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
            (Outcome::Failed(failure.reason), format!("{detail}; {}", all.join("; ")))
        }
    };
    Row { outcome, detail, help: None, stray: Vec::new(), request, ..row }
}

/// Denies a request. One that changed in the meantime is looked at again; one that is gone or decided needs no denial.
async fn deny_request(
    hub: &Cluster,
    object: &CertificateSigningRequest,
    reason: &str,
    dry_run: DryRun,
) -> Result<(), Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let name = object.metadata.name.clone().unwrap_or_default();
    let mut object = object.clone();
    for attempt in 1.. {
        let failure = match decide_request(hub, &object, "Denied", DENIAL_REASON, reason, dry_run).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match failure.reason {
            Reason::NotFound => return Ok(()),
            Reason::Conflict if attempt < TRIES => {}
            _ => return Err(failure),
        }
        let again = api.get_opt(&name).await;
        match again.map_err(|error| hub.explain(format_args!("read request {name}"), error))? {
            Some(again) if again.metadata.uid == object.metadata.uid => object = again,
            _ => return Ok(()),
        }
        match Request::read(&object).state {
            State::Pending => {}
            State::Denied | State::Failed => return Ok(()),
            State::Approved | State::Issued => {
                return Err(Failure::new(Reason::Conflict, format!("request {name} was approved in the meantime")));
            }
        }
    }
    unreachable!("the loop returns within its tries")
}

//! Denying clusters: acceptance is withdrawn first, then requests are denied.

use ocm_core::csr::{Code, Request, State};
use ocm_core::{DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;

use super::candidate::Candidate;
use super::carry_out::{TRIES, decide_request, in_order, live, set_accepted};
use super::reasons::DENIAL_REASON;
use super::rows::{Outcome, Row, row};

/// Denies: every request that waits gets a denial with `reason`, and an accepted cluster loses its acceptance.
pub async fn deny(
    hub: &Cluster,
    candidates: Vec<Candidate>,
    reason: &str,
    dry_run: DryRun,
    at_once: usize,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Row),
) -> Vec<Row> {
    let deny = async |candidate| deny_one(hub, candidate, reason, dry_run, narrator).await;
    in_order(candidates, at_once, deny, |row, _| each(row)).await
}

async fn deny_one(hub: &Cluster, candidate: Candidate, reason: &str, dry_run: DryRun, narrator: &dyn Narrator) -> Row {
    let done = |what: String| {
        if dry_run == DryRun::No {
            narrator.tell(Event::done(what));
        }
    };
    let waiting: Vec<&Request> = candidate.waiting().collect();
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
    {
        match set_accepted(hub, cluster, false, dry_run).await {
            Ok(()) => done(format!("withdrew the acceptance of {}", candidate.name)),
            Err(failure) => {
                withdrawn = false;
                failures.push(failure);
            }
        }
    }
    let mut denied = Vec::new();
    for request in waiting {
        let result = match dry_run {
            DryRun::Client => Ok(true),
            _ => deny_request(hub, request, reason, dry_run).await,
        };
        match result {
            Ok(true) => {
                done(format!("denied request {}", request.name));
                denied.push(request.name.as_str());
            }
            Ok(false) => {}
            Err(failure) => failures.push(failure),
        }
    }
    let detail = match (withdrawn, denied.as_slice()) {
        (true, []) => "it is no longer accepted".to_owned(),
        (true, names) => format!("it is no longer accepted, and {} denied", names.join(", ")),
        (false, []) if failures.is_empty() => {
            "its requests were denied or deleted by somebody else meanwhile".to_owned()
        }
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

/// Denies a request as it is now. Whether it did: one that is gone or decided needs no denial.
async fn deny_request(hub: &Cluster, request: &Request, reason: &str, dry_run: DryRun) -> Result<bool, Failure> {
    let name = &request.name;
    for attempt in 1.. {
        let object = match live(hub, name).await? {
            Some(object) if object.metadata.uid == request.uid => object,
            Some(_) => {
                let sentence = format!("request {name} was deleted and another one of that name made in the meantime");
                return Err(Failure::new(Reason::Conflict, sentence));
            }
            None => return Ok(false),
        };
        match Request::read(&object).state {
            State::Pending => {}
            State::Denied | State::Failed => return Ok(false),
            State::Approved | State::Issued => {
                return Err(Failure::new(Reason::Conflict, format!("request {name} was approved in the meantime")));
            }
        }
        let failure = match decide_request(hub, object, "Denied", DENIAL_REASON, reason, dry_run).await {
            Ok(()) => return Ok(true),
            Err(failure) => failure,
        };
        match failure.reason {
            Reason::NotFound => return Ok(false),
            Reason::Conflict if attempt < TRIES => {}
            _ => return Err(failure),
        }
    }
    unreachable!("the loop returns within its tries")
}

//! HubPolicies with what became of the registrations that they were asked about.

use std::cell::RefCell;

use kube::Api;
use kube::api::ListParams;
use ocm_api::Registration;
use ocm_core::hub_policy::Tally;
use ocm_core::{Failure, Reason};
use ocm_kube::Cluster;

use super::list::{PolicyRow, policies};
use crate::registry::{self, RECORDS_PAGE};

/// A HubPolicy, and what it said about registrations.
#[derive(Debug)]
pub struct Described {
    /// The policy.
    pub row: PolicyRow,
    /// What the last decisions hold of it; or why they cannot be read, which is no reason not to tell the rest.
    pub tally: Result<Tally, Failure>,
}

/// Reads HubPolicies by their names, and all registrations once. None of these is kept.
///
/// # Errors
/// When the hub cannot be read, has no policy engine, or does not know a name.
pub async fn describe(hub: &Cluster, names: &[String]) -> Result<Vec<Described>, Failure> {
    let rows = policies(hub, names, None).await?;
    let tallies = RefCell::new(vec![Tally::default(); rows.len()]);
    let api: Api<Registration> = Api::all(hub.client.clone());
    let count = |registration: Registration| -> Option<()> {
        for (tally, row) in tallies.borrow_mut().iter_mut().zip(&rows) {
            tally.add(&row.object, &registration);
        }
        None
    };
    let read = registry::pages(hub, &api, ListParams::default(), || RECORDS_PAGE, "list registrations", count).await;
    let unread = match read {
        Ok(_) => None,
        Err(failure) if matches!(failure.reason, Reason::Forbidden | Reason::KindNotServed) => Some(failure),
        Err(failure) => return Err(failure),
    };
    let tally = |tally| unread.clone().map_or(Ok(tally), Err);
    let tallies = tallies.into_inner();
    Ok(rows.into_iter().zip(tallies).map(|(row, one)| Described { row, tally: tally(one) }).collect())
}

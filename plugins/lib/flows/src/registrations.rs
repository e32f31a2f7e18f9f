//! Lists of Registrations: what the policy controller has written of each cluster, once or as it changes.

use std::cell::Cell;

use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use ocm_api::Registration;
use ocm_api::registration::RegistrationStatus;
use ocm_core::Failure;
use ocm_core::order;
use ocm_kube::Cluster;

use crate::get::{is_named, watched};
use crate::policies::{listed, no_policy_engine};
use crate::registry::{self, RECORDS_PAGE};
use crate::watch::{Changed, changes};

/// What the objects are called in messages.
const WHAT: &str = "registration of a cluster";

/// A Registration.
#[derive(Clone, Debug)]
pub struct RegistrationRow {
    /// The object.
    pub object: Registration,
    /// What the controller has written; nothing yet is what nobody was asked about.
    pub status: RegistrationStatus,
}

impl RegistrationRow {
    fn of(object: Registration) -> Self {
        let status = object.status.clone().unwrap_or_default();
        Self { object, status }
    }

    /// Name of the cluster.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// When the cluster asked first.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    /// Until when the last certificate that was approved may be valid, in RFC 3339.
    pub fn valid_until(&self) -> Option<&str> {
        self.status.keys.iter().map(|key| key.until.as_str()).max()
    }
}

/// Registrations by name; all, those that match a selector, or those that are named, which are read one by one.
///
/// # Errors
/// When the hub cannot be read, has no policy engine, or does not know a name.
pub async fn registrations(
    hub: &Cluster,
    names: &[String],
    selector: Option<&str>,
) -> Result<Vec<RegistrationRow>, Failure> {
    let objects = listed::<Registration>(hub, names, selector, WHAT, "list registrations").await?;
    Ok(objects.into_iter().map(RegistrationRow::of).collect())
}

/// Registrations as they change, beginning with all that there are.
pub fn watch_registrations(
    hub: &Cluster,
    names: &[String],
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<RegistrationRow>, Failure>> {
    let config = watched(names, selector);
    let names = names.to_vec();
    changes(hub, config, RegistrationRow::of, |object| RegistrationRow::of(object.clone()))
        .try_filter(move |change| std::future::ready(is_named(change, &names, RegistrationRow::name)))
        .map(|change| change.map_err(no_policy_engine))
}

/// A decision that can be replayed.
#[derive(Clone, Debug)]
pub struct RecordedDecision {
    /// Name of the cluster.
    pub cluster: String,
    /// When it was made, in RFC 3339.
    pub at: String,
    /// The record of the policy that decided.
    pub record: String,
}

/// The last decisions about clusters that were made at this time or later, those about clusters that are gone, too; and
/// how many there are of which no record is kept.
///
/// # Errors
/// When the hub cannot be read, or has no policy engine.
pub async fn recorded_decisions(hub: &Cluster, since: Timestamp) -> Result<(Vec<RecordedDecision>, usize), Failure> {
    let api: Api<Registration> = Api::all(hub.client.clone());
    let without = Cell::new(0);
    let recorded = |registration: Registration| {
        let decision = registration.status?.decision?;
        if decision.at.parse::<Timestamp>().is_ok_and(|at| at < since) {
            return None;
        }
        let Some(record) = decision.record else {
            without.set(without.get() + 1);
            return None;
        };
        Some(RecordedDecision { cluster: registration.metadata.name?, at: decision.at, record })
    };
    let read = registry::pages(hub, &api, ListParams::default(), || RECORDS_PAGE, "list registrations", recorded).await;
    let mut decisions = read.map_err(no_policy_engine)?;
    order::sort_by(&mut decisions, |left, right| (&left.at, &left.cluster).cmp(&(&right.at, &right.cluster)));
    Ok((decisions, without.get()))
}

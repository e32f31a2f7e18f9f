//! The hub's webhooks, which complete managed clusters: OCM's operator makes them last.

use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use kube::api::{Patch, PatchParams};
use ocm_api::ManagedCluster;
use ocm_api::names::webhooks::MUTATING;
use ocm_core::{Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use serde_json::json;

/// Time between two checks where no watch says when to check.
const PAUSE: Duration = Duration::from_millis(500);

/// Whether one of them is missing, so that nobody completes managed clusters that are written. Who may not read them goes by
/// their being there.
///
/// # Errors
/// What the hub said.
pub(super) async fn are_missing(admin: &Cluster) -> Result<bool, Failure> {
    let webhooks: Api<MutatingWebhookConfiguration> = Api::all(admin.client.clone());
    for (name, _) in MUTATING {
        match webhooks.get_metadata_opt(name).await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(true),
            Err(error) => {
                let failure = admin.explain(format_args!("read webhook configuration {name}"), error);
                if failure.reason != Reason::Forbidden {
                    return Err(failure);
                }
            }
        }
    }
    Ok(false)
}

/// Waits for the hub's webhooks, and has them complete a cluster that was written before they were there: it would be in
/// no cluster set until somebody writes to it.
///
/// # Errors
/// [`Reason::TimedOut`], or what the hub said.
pub(super) async fn complete(
    admin: &Cluster,
    name: &str,
    deadline: Instant,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(admin.client.clone());
    let clusters: Api<ManagedCluster> = Api::all(admin.client.clone());
    let triggers =
        MUTATING.iter().fold(Triggers::default(), |triggers, (name, _)| triggers.of(mutating.clone(), named(name)));
    let doing = format!("waiting for the hub's webhooks, which complete {name}");
    until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
        if are_missing(admin).await? {
            return Ok(Check::NotYet("its operator has not made them yet".to_owned()));
        }
        // Admission sees a patch that changes nothing as well.
        let written = clusters.patch_metadata(name, &PatchParams::default(), &Patch::Merge(json!({}))).await;
        match written.map_err(|error| admin.explain(format_args!("write to managed cluster {name}"), error)) {
            Ok(_) => {}
            // It has joined, whatever set it is in.
            Err(failure) if matches!(failure.reason, Reason::Admission | Reason::Forbidden) => {
                let warning = format!("{name} is in no cluster set until somebody writes to it who may choose one");
                let because = failure.causes.last().map(|cause| format!(": {cause}")).unwrap_or_default();
                narrator.tell(Event::warning(format!("{warning}{because}")));
            }
            Err(failure) => return Err(failure),
        }
        Ok(Check::Ready(()))
    })
    .await
    .map_err(|failure| failure.hint(Remedy::HubStart))
}

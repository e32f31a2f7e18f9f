//! The records of works on a managed cluster, by whose agent has made them.

use std::sync::Arc;

use kube::Api;
use kube::api::ListParams;
use ocm_api::AppliedManifestWork;
use ocm_core::leave::klusterlet::Known;
use ocm_core::{Event, Failure, Narrator};
use ocm_kube::Cluster;

use super::accounts::without_accounts;
use crate::leave::guest;
use crate::observe::managed as observe;
use crate::registry;
use crate::served::or_nothing;

/// All records of works on a cluster.
///
/// # Errors
/// The failure of the request.
async fn all_records(managed: &Cluster) -> Result<Vec<AppliedManifestWork>, Failure> {
    let api: Api<AppliedManifestWork> = Api::all(managed.client.clone());
    or_nothing(registry::all(managed, &api, ListParams::default(), "list AppliedManifestWorks").await)
}

/// The records of works of this Klusterlet's agent on this cluster.
pub(super) async fn of_agent(managed: &Cluster, known: &Known) -> Result<Vec<AppliedManifestWork>, Failure> {
    let uid = known.klusterlet.metadata.uid.as_deref().unwrap_or_default();
    Ok(all_records(managed).await?.into_iter().filter(|work| work.spec.agent_id == uid).collect())
}

/// The managed cluster of a hosted Klusterlet, and the records of works there. Where it cannot be reached, the operator cannot
/// either, or it can from where it is: that is told, and nothing there is looked at.
pub(super) async fn of_guest(
    host: &Cluster,
    known: &Known,
    narrator: Arc<dyn Narrator>,
) -> (Option<Cluster>, Vec<AppliedManifestWork>) {
    let found = async {
        let guest = guest::connect(host, known, narrator.clone()).await?;
        let applied = of_agent(&guest, known).await?;
        Ok::<_, Failure>((guest, applied))
    };
    match found.await {
        Ok((guest, applied)) => (Some(guest), applied),
        Err(failure) => {
            let told = format!("what works have put on the hosted cluster is not looked at: {failure}");
            narrator.tell(Event::warning(told));
            (None, Vec::new())
        }
    }
}

/// Records of works on a cluster without any Klusterlet, which a run that was killed has left. Where an agent of a Klusterlet
/// elsewhere works, they are its.
pub(super) async fn left_behind(managed: &Cluster) -> Result<Vec<AppliedManifestWork>, Failure> {
    let all = all_records(managed).await?;
    if all.is_empty() {
        return Ok(all);
    }
    let (agents, gone) = (observe::other_agents(managed, None).await?, without_accounts(managed).await?);
    Ok(if agents.iter().all(|agent| gone.contains(agent)) { all } else { Vec::new() })
}

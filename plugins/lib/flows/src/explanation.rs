//! What a hub shows of the registration of one cluster, for whoever asks why it is let in or kept out.

use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::labels;
use ocm_api::{HubPolicy, ManagedCluster, Registration, RegistrationApproval};
use ocm_core::csr::Request;
use ocm_core::explanation::Facts;
use ocm_core::{Failure, Reason, Remedy};
use ocm_kube::Cluster;

use crate::get::unknown_name;
use crate::registry::{self, PAGE};

/// Reads everything at once. What the user may not read, or the hub does not have, stands in its place.
///
/// # Errors
/// When the hub cannot be read, or knows no cluster of the name.
pub async fn facts(hub: &Cluster, name: &str) -> Result<Facts, Failure> {
    let names = [name.to_owned()];
    let (cluster, registration, requests, policies, approvals) = futures::join!(
        registry::some_clusters(hub, &names),
        registry::some::<Registration>(hub, &names, "registration of a cluster"),
        requests(hub, name),
        policies(hub),
        approvals(hub, name),
    );
    let facts = Facts {
        name: name.to_owned(),
        cluster: cluster.map(|mut found| found.pop()),
        registration: registration.map(|mut found| found.pop()),
        requests,
        policies,
        approvals,
        now: Timestamp::now(),
    };
    let is_written = matches!(facts.registration, Ok(Some(_)));
    match &facts.cluster {
        Ok(Some(_)) => Ok(facts),
        Ok(None) if is_written => Ok(facts),
        Err(failure) if is_written && failure.reason == Reason::Forbidden => Ok(facts),
        Err(failure) => Err(failure.clone()),
        Ok(None) => {
            let unknown = unknown_name::<ManagedCluster>(hub, "managed cluster", name).await;
            let asks = facts.requests.is_ok_and(|requests| !requests.is_empty());
            Err(if asks { unknown.hint(Remedy::SeeRequests(name.to_owned())) } else { unknown })
        }
    }
}

/// The requests that carry the cluster's label. Of each only what was read is kept: anybody may create large ones.
async fn requests(hub: &Cluster, name: &str) -> Result<Vec<Request>, Failure> {
    let params = ListParams::default().labels(&format!("{}={name}", labels::CLUSTER_NAME));
    registry::pages_of_requests(hub, params, |object| Some(Request::read(&object))).await
}

async fn policies(hub: &Cluster) -> Result<Vec<HubPolicy>, Failure> {
    let api: Api<HubPolicy> = Api::all(hub.client.clone());
    registry::all(hub, &api, ListParams::default(), "list policies of the hub").await
}

/// The approvals of clusters of the name. The API server cannot select them.
async fn approvals(hub: &Cluster, name: &str) -> Result<Vec<RegistrationApproval>, Failure> {
    let api: Api<RegistrationApproval> = Api::all(hub.client.clone());
    let is_for = |approval: RegistrationApproval| (approval.spec.cluster.name == name).then_some(approval);
    let what = "list approvals of registrations";
    registry::pages(hub, &api, ListParams::default(), || PAGE, what, is_for).await
}

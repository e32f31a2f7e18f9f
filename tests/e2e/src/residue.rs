//! Everything that a cluster holds: what was there before, and what stays of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use control_plane::Cluster;
use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PartialObjectMeta};
use kube::core::DynamicObject;
use kube::discovery::verbs::{DELETE, LIST};
use kube::discovery::{ApiGroup, ApiResource, Discovery};
use kube::{Api, Client};
use tokio::runtime::Builder;

use crate::connection::connect;
use crate::pause_after;

/// What people, controllers and the API server make and forget all the time.
const PASSING: &[&str] =
    &["Event", "EndpointSlice", "Endpoints", "PodMetrics", "ControllerRevision", "Lease kube-node-lease"];

/// What the hub forgets by itself, an hour after it was signed: longer than a test lasts, but not than all stories.
const FORGOTTEN: &str = "CertificateSigningRequest ";

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;

/// Every object of every kind, by kind, namespace and name. Tests look again and again, so it asks for metadata alone, and not by
/// kubectl, for which that is the work of a second.
///
/// # Panics
///
/// When the cluster cannot be read.
pub fn sweep(cluster: &Cluster) -> BTreeSet<String> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let all = runtime.block_on(async { everything(&connect(cluster.kubeconfig()).await.client).await });
    let line = |(kind, metadata): (ApiResource, ObjectMeta)| {
        let ObjectMeta { namespace, name, .. } = metadata;
        format!("{} {} {}", kind.kind, namespace.as_deref().unwrap_or("<none>"), name.unwrap_or_default())
    };
    all.into_iter().map(line).filter(|line| !PASSING.iter().any(|kind| line.starts_with(kind))).collect()
}

/// Every object of every kind that can be deleted, without what it says.
///
/// # Panics
///
/// When the cluster cannot be read.
pub(crate) async fn everything(client: &Client) -> Vec<(ApiResource, ObjectMeta)> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.expect("it tells its kinds");
    let kinds = discovery.groups().flat_map(ApiGroup::resources_by_stability);
    let kinds = kinds.filter(|(_, verbs)| verbs.supports_operation(LIST) && verbs.supports_operation(DELETE));
    let lists = kinds.map(|(kind, _)| list(client.clone(), kind));
    let all = stream::iter(lists).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    all.into_iter().flatten().collect()
}

/// The objects of a kind; none where its definition has gone meanwhile.
async fn list(client: Client, kind: ApiResource) -> Vec<(ApiResource, ObjectMeta)> {
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    let found = match api.list_metadata(&ListParams::default()).await {
        Ok(found) => found.items,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => panic!("{} cannot be listed: {error}", kind.plural),
    };
    found.into_iter().map(|object: PartialObjectMeta<DynamicObject>| (kind.clone(), object.metadata)).collect()
}

/// Waits until there is exactly what there was before.
///
/// # Panics
///
/// When something stays, or something is gone that was there.
pub fn nothing_stays(cluster: &Cluster, before: &BTreeSet<String>) {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        let after = sweep(cluster);
        let more: Vec<_> = after.difference(before).collect();
        let less: Vec<_> = before.difference(&after).filter(|line| !line.starts_with(FORGOTTEN)).collect();
        if more.is_empty() && less.is_empty() {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "stays: {more:#?}, gone: {less:#?}");
        pause_after(looked);
    }
}

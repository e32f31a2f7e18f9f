//! Everything that is in a namespace, of whatever kind.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use ocm_core::leave::space::{Content, is_view};
use ocm_core::{Failure, Reason};

use crate::Cluster;

/// How many kinds are listed at once.
const AT_ONCE: usize = 8;
/// How often kinds are asked for that come and go meanwhile.
const TRIES: u32 = 5;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// All objects in a namespace whose kinds can be listed and deleted: what cannot be deleted is a view of something else, and so are some others. They
/// come in no particular order.
///
/// # Errors
/// The failure of a request: where one kind may not be listed, it is not known what there is.
pub async fn of(cluster: &Cluster, namespace: &str) -> Result<Vec<Content>, Failure> {
    let discovery = discover(cluster).await?;
    let is_held = |capabilities: &kube::discovery::ApiCapabilities| {
        capabilities.scope == Scope::Namespaced
            && capabilities.supports_operation(verbs::LIST)
            && capabilities.supports_operation(verbs::DELETE)
    };
    let kinds: Vec<ApiResource> = discovery
        .groups()
        .flat_map(|group| group.resources_by_stability())
        .filter(|(resource, capabilities)| is_held(capabilities) && !is_view(&resource.kind))
        .map(|(resource, _)| resource)
        .collect();
    let each =
        futures::stream::iter(kinds).map(|resource| list(cluster, namespace, resource)).buffer_unordered(AT_ONCE);
    each.try_fold(Vec::new(), async |mut all, some| {
        all.extend(some);
        Ok(all)
    })
    .await
}

/// What the cluster serves. While definitions come and go, a group can be gone between two questions: then it is asked again.
async fn discover(cluster: &Cluster) -> Result<Discovery, Failure> {
    if let Ok(found) = Discovery::new(cluster.client.clone()).run_aggregated().await {
        return Ok(found);
    }
    // API servers before Kubernetes 1.30, and some that stand before others, answer group by group.
    let mut tries = 1;
    loop {
        let error = match Discovery::new(cluster.client.clone()).run().await {
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let failure = cluster.explain("find out which kinds of objects there are", error);
        let has_gone = matches!(failure.reason, Reason::NotFound | Reason::KindNotServed);
        if !has_gone || tries == TRIES {
            return Err(failure);
        }
        tries += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn list(cluster: &Cluster, namespace: &str, resource: ApiResource) -> Result<Vec<Content>, Failure> {
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let items = match api.list_metadata(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => {
            let doing = format!("list {} in namespace {namespace}", resource.plural);
            let failure = cluster.explain(doing, error);
            // A kind that was taken away since, or that its server lists for no namespace.
            return match failure.reason {
                Reason::NotFound | Reason::KindNotServed => Ok(Vec::new()),
                _ => Err(failure),
            };
        }
    };
    let content = |metadata| Content {
        group: resource.group.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        metadata,
    };
    Ok(items.into_iter().map(|item| content(item.metadata)).collect())
}

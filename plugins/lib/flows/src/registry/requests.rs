//! Certificate requests of a hub, of which anybody may have made any number.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::ListParams;
use ocm_api::names::labels;
use ocm_core::Failure;
use ocm_core::csr::{LONGEST, Request};
use ocm_core::name::is_dns_label;
use ocm_core::order::Collect as _;
use ocm_kube::Cluster;
use tokio::task::{JoinHandle, spawn_blocking};

use super::pages::FEW;

/// How many certificate requests one page holds. Whoever may register clusters may create any number of them of a megabyte
/// each, and a page is in memory as a whole.
pub(crate) const REQUESTS_PAGE: u32 = 100;

/// How many it holds after one of which all were as short as those of agents.
const LARGER_PAGE: u32 = 300;

/// Lists certificate requests and keeps what is wanted of each.
pub(crate) async fn pages_of_requests<T: Send + 'static>(
    hub: &Cluster,
    params: ListParams,
    wanted: impl Fn(CertificateSigningRequest) -> Option<T> + Send + 'static,
) -> Result<Vec<T>, Failure> {
    fold_requests(hub, params, Vec::new(), move |items: &mut Vec<T>, object| items.extend(wanted(object))).await
}

/// Lists certificate requests and gathers what is wanted of them. Verifying signatures takes time, so each page is looked at
/// on a thread beside while the hub makes the next one. Two pages are in memory at a time, and no more.
pub(crate) async fn fold_requests<S: Send + 'static>(
    hub: &Cluster,
    mut params: ListParams,
    mut gathered: S,
    mut gather: impl Fn(&mut S, CertificateSigningRequest) + Send + 'static,
) -> Result<S, Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let list = async |params: &ListParams| {
        let page = api.list(params).await;
        page.map_err(|error| hub.explain("list certificate signing requests", error))
    };
    // Nothing is known before the first page.
    params = params.limit(REQUESTS_PAGE);
    let mut page = list(&params).await?;
    loop {
        let long = page.items.iter().any(|object| object.spec.request.0.len() > LONGEST);
        let token = page.metadata.continue_.take().filter(|token| !token.is_empty());
        let beside = spawn_blocking(move || {
            page.items.into_iter().for_each(|object| gather(&mut gathered, object));
            (gathered, gather)
        });
        let next = match token {
            Some(token) => {
                params = params.limit(if long { REQUESTS_PAGE } else { LARGER_PAGE }).continue_token(&token);
                Some(list(&params).await?)
            }
            None => None,
        };
        (gathered, gather) = result_of(beside).await;
        page = match next {
            Some(next) => next,
            None => return Ok(gathered),
        };
    }
}

/// Certificate requests that carry the label of one of these clusters.
pub(crate) async fn requests_of(hub: &Cluster, names: &[&str]) -> Result<Vec<Request>, Failure> {
    let selector = match names.len() {
        few if few <= FEW => format!("{} in ({})", labels::CLUSTER_NAME, names.join(",")),
        _ => labels::CLUSTER_NAME.to_owned(),
    };
    let wanted: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect_set();
    pages_of_requests(hub, ListParams::default().labels(&selector), move |object| {
        let label = object.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CLUSTER_NAME));
        label.is_some_and(|label| wanted.contains(label)).then(|| Request::read(&object))
    })
    .await
}

/// What a thread comes to. Where it panics, so does whoever waits for it.
async fn result_of<T>(thread: JoinHandle<T>) -> T {
    match thread.await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Certificate signing requests that match a selector.
///
/// # Errors
/// When the hub cannot be read.
pub async fn requests(hub: &Cluster, selector: &str) -> Result<Vec<CertificateSigningRequest>, Failure> {
    pages_of_requests(hub, ListParams::default().labels(selector), Some).await
}

/// Whether a name can stand in the path of a URL as it is.
pub fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':'))
}

/// How many names one selector holds: the address of a request must not grow too long.
const NAMES: usize = 64;

/// Certificate signing requests by names that are [plain](is_plain): those that have such a name, and those that are for
/// the cluster of such a name.
///
/// # Errors
/// When the hub cannot be read.
pub async fn some_requests(hub: &Cluster, names: &[String]) -> Result<Vec<CertificateSigningRequest>, Failure> {
    let api: Api<CertificateSigningRequest> = Api::all(hub.client.clone());
    let names: BTreeSet<&String> = names.iter().collect_set();
    let named = futures::stream::iter(&names).map(|name| {
        let api = api.clone();
        async move {
            let found = api.get_opt(name).await;
            found.map_err(|error| hub.explain(format_args!("read certificate signing request {name:?}"), error))
        }
    });
    let clusters: Vec<&str> = names.iter().map(|name| name.as_str()).filter(|name| is_dns_label(name)).collect();
    let of_clusters = futures::stream::iter(clusters.chunks(NAMES).map(|names| async move {
        requests(hub, &format!("{} in ({})", labels::CLUSTER_NAME, names.join(","))).await
    }));
    let (named, of_clusters) =
        futures::join!(named.buffered(FEW).try_collect::<Vec<_>>(), of_clusters.buffered(FEW).try_collect::<Vec<_>>(),);
    Ok(named?.into_iter().flatten().chain(of_clusters?.into_iter().flatten()).collect())
}

//! Listing a kind page by page, and why that is not possible.

use kube::Api;
use kube::api::ListParams;
use ocm_checks::snapshot::{PolicyRule, Trouble};
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, explain};
use serde::de::DeserializeOwned;

use super::kinds::Kind;
use crate::registry::pages;

/// How many objects one page holds.
pub(super) const PAGE: u32 = 500;

/// How many things are looked at at once.
pub(super) const AT_ONCE: usize = 8;

/// Whether a cluster is one of those that were asked about; none: all are.
pub(super) fn is_asked(names: Option<&[String]>, name: &str) -> bool {
    names.is_none_or(|names| names.iter().any(|asked| asked == name))
}

/// Why a request failed that needs a right.
pub(super) fn trouble(
    cluster: &Cluster,
    what: impl std::fmt::Display,
    error: kube::Error,
    rule: PolicyRule,
) -> Trouble {
    Trouble::of(&cluster.explain(what, error), Some(rule))
}

/// Lists page by page and keeps what is wanted of each object. `namespace`: the one that is listed; none: all, or the kind
/// has none.
pub(super) async fn list<K, T>(
    cluster: &Cluster,
    kind: Kind,
    namespace: Option<&str>,
    api: &Api<K>,
    params: ListParams,
    wanted: impl Fn(K) -> Option<T>,
) -> Result<Vec<T>, Trouble>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let listed = pages(cluster, api, params, || PAGE, &format!("list {}", kind.resource), wanted).await;
    if_served(cluster, kind, namespace, listed).await
}

/// What a list came to. A kind that is not served has no objects, also for somebody who may not list it: the API server
/// looks for rights before it looks for what it serves.
pub(super) async fn if_served<T>(
    cluster: &Cluster,
    kind: Kind,
    namespace: Option<&str>,
    listed: Result<Vec<T>, Failure>,
) -> Result<Vec<T>, Trouble> {
    let failure = match listed {
        Ok(listed) => return Ok(listed),
        Err(failure) => failure,
    };
    if matches!(failure.reason, Reason::KindNotServed | Reason::NotFound) {
        return Ok(Vec::new());
    }
    if failure.reason == Reason::Forbidden && kind.is_optional && !serves_group(cluster, kind.group).await {
        return Ok(Vec::new());
    }
    Err(Trouble::of(&failure, Some(kind.rule("list", namespace))))
}

/// Whether a cluster serves a group, as far as that can be known: everybody who is logged in may ask for it.
pub(super) async fn serves_group(cluster: &Cluster, group: &str) -> bool {
    let Ok(request) = http::Request::get(format!("/apis/{group}")).body(Vec::new()) else { return true };
    match cluster.client.request_text(request).await {
        Ok(_) => true,
        Err(error) => !matches!(explain(&error).reason, Reason::KindNotServed | Reason::NotFound),
    }
}

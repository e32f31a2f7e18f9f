//! Lists of HubPolicies, once or as they change.

use futures::{Stream, StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use ocm_api::HubPolicy;
use ocm_core::order;
use ocm_core::{Changed, Failure, Reason, Remedy};
use ocm_kube::Cluster;

use crate::get::{is_named, unknown_name, watched};
use crate::registry::{self, OfHub};
use crate::watch::changes;

/// What the objects are called in messages.
const WHAT: &str = "policy";

/// A HubPolicy.
#[derive(Clone, Debug)]
pub struct PolicyRow {
    /// The object.
    pub object: HubPolicy,
}

impl PolicyRow {
    fn of(object: HubPolicy) -> Self {
        Self { object }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// When it was created.
    pub fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }
}

/// HubPolicies by name; all, those that match a selector, or those that are named, which are read one by one.
///
/// # Errors
/// When the hub cannot be read, has no policy engine, or does not know a name.
pub async fn policies(hub: &Cluster, names: &[String], selector: Option<&str>) -> Result<Vec<PolicyRow>, Failure> {
    let objects = listed::<HubPolicy>(hub, names, selector, WHAT, "list policies").await?;
    Ok(objects.into_iter().map(PolicyRow::of).collect())
}

/// HubPolicies as they change, beginning with all that there are.
pub fn watch_policies(
    hub: &Cluster,
    names: &[String],
    selector: Option<&str>,
) -> impl Stream<Item = Result<Changed<PolicyRow>, Failure>> {
    let config = watched(names, selector);
    let names = names.to_vec();
    changes(hub, config, PolicyRow::of, |object| PolicyRow::of(object.clone()))
        .try_filter(move |change| std::future::ready(is_named(change, &names, PolicyRow::name)))
        .map(|change| change.map_err(no_policy_engine))
}

/// Objects of a kind of the policy engine by name, each once; all, those that match a selector, or those that are named,
/// which are read one by one.
pub(crate) async fn listed<K: OfHub>(
    hub: &Cluster,
    names: &[String],
    selector: Option<&str>,
    what: &str,
    listing: &str,
) -> Result<Vec<K>, Failure> {
    let is = |object: &K, name: &String| object.meta().name.as_ref() == Some(name);
    let objects = match (names, selector) {
        (names, None) if !names.is_empty() => registry::some::<K>(hub, names, what).await,
        (_, selector) => {
            let params = selector.map_or_else(ListParams::default, |selector| ListParams::default().labels(selector));
            registry::all(hub, &Api::<K>::all(hub.client.clone()), params, listing).await
        }
    };
    let mut objects = objects.map_err(no_policy_engine)?;
    objects.retain(|object| names.is_empty() || names.iter().any(|name| is(object, name)));
    if let Some(unknown) = names.iter().find(|name| !objects.iter().any(|object| is(object, name))) {
        return Err(unknown_name::<K>(hub, what, unknown).await);
    }
    // A name that was typed twice is one row.
    order::sort_by(&mut objects, |left, right| left.meta().name.cmp(&right.meta().name));
    objects.dedup_by(|left, right| left.meta().name == right.meta().name);
    Ok(objects)
}

/// A hub that does not know these kinds has no policy engine.
pub(crate) fn no_policy_engine(failure: Failure) -> Failure {
    match failure.reason {
        Reason::KindNotServed => {
            failure.context("the policy engine is not installed on this cluster").hint(Remedy::InstallPolicyEngine)
        }
        _ => failure,
    }
}

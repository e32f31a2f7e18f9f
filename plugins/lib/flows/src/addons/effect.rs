//! Waiting until configurations of add-ons are in effect.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ocm_core::addon::placements;
use ocm_core::order::Collect as _;
use ocm_core::{Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::access::Right;
use ocm_kube::wait::{Check, until};
use serde_json::Value;

use super::status;
use super::status::AddOnStatus;

/// How often it is looked.
const PAUSE: Duration = Duration::from_secs(1);

/// What is needed to see what takes effect of add-ons that are defined so: without it, what placements say would be passed over.
pub(super) fn rights_to_see<'a>(definitions: impl Iterator<Item = &'a Value>) -> Vec<Right> {
    let namespace = |placement: String| Some(placement.split_once('/')?.0.to_owned());
    let namespaces: BTreeSet<String> = definitions.flat_map(placements).filter_map(namespace).collect_set();
    let list = Right::new("list", "cluster.open-cluster-management.io", "placementdecisions");
    namespaces.iter().map(|namespace| list.clone().within(namespace)).collect()
}

/// Waits until nothing keeps configurations of these add-ons from being in effect on these clusters; if there are none, on all
/// that have them. `why_not` says of an add-on what keeps one, and on which cluster.
///
/// # Errors
/// [`Reason::TimedOut`] with what keeps one; the failure of a request.
pub(super) async fn until_in_effect(
    hub: &Cluster,
    (names, clusters): (&[String], &[String]),
    why_not: &dyn Fn(&AddOnStatus) -> Option<(String, String)>,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let doing = "waiting until the configuration is in effect";
    let waited = until(doing, Instant::now() + timeout, PAUSE, narrator, async || {
        for name in names {
            if let Some((cluster, why)) = why_not(&status(hub, name, clusters).await?) {
                return Ok(Check::NotYet(format!("{name} of {cluster}: {why}")));
            }
        }
        Ok(Check::Ready(()))
    });
    waited.await.map_err(|failure| match failure.reason {
        Reason::TimedOut => failure.hint(Remedy::SeeAddOns),
        _ => failure,
    })
}

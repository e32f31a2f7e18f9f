//! What refers to the configurations of add-ons, as it is before anything is written.

use ocm_api::Manifest;
use ocm_core::addon::{AddOnOptions, Place, manifest, placements};
use ocm_core::plan::Found;
use ocm_core::{Failure, Remedy};
use ocm_kube::Cluster;
use serde_json::Value;

use super::definitions;
use crate::deliveries::read_present;

/// How many objects are read at once.
const AT_ONCE: usize = 8;

/// The definitions of add-ons, each with its name.
///
/// # Errors
/// A refusal, if an add-on is not defined on the hub; the failure of a request.
pub(super) async fn defined(hub: &Cluster, names: &[String]) -> Result<Vec<(String, Value)>, Failure> {
    let mut all = Vec::new();
    for (name, definition) in definitions(hub, names).await? {
        let Some(definition) = definition else {
            return Err(Failure::refused(format!(
                "the hub has no ClusterManagementAddOn {name:?}: nothing was changed"
            ))
            .hint("see which there are: kubectl get clustermanagementaddons"));
        };
        all.push((name, definition));
    }
    Ok(all)
}

/// The live add-on of each of these clusters, with the name of the cluster.
///
/// # Errors
/// A refusal, if a cluster does not have it; the failure of a request.
pub(super) async fn on_clusters(
    hub: &Cluster,
    name: &str,
    clusters: &[String],
) -> Result<Vec<(String, Value)>, Failure> {
    let draft = |cluster: &String| manifest(name, cluster, &AddOnOptions::default(), None);
    let drafts: Vec<Manifest> = clusters.iter().map(draft).collect();
    let mut all = Vec::new();
    for (cluster, Found { live, .. }) in clusters.iter().zip(read_present(hub, &drafts, AT_ONCE).await?) {
        let Some(live) = live else {
            let sentence = format!("cluster {cluster:?} has no add-on {name:?}: nothing was changed");
            let remedy = Remedy::EnableAddOn { name: name.to_owned(), cluster: cluster.clone() };
            return Err(Failure::refused(sentence).hint(remedy));
        };
        all.push((cluster.clone(), live));
    }
    Ok(all)
}

/// A place in the definition of an add-on, for people.
///
/// # Errors
/// A refusal of a placement by which the hub does not install it.
pub(super) fn place_told(name: &str, definition: &Value, place: &Place) -> Result<String, Failure> {
    let (namespace, placement) = match place {
        Place::Default => return Ok(format!("the default of add-on {name:?}")),
        Place::Placement(namespace, placement) => (namespace, placement),
    };
    let placement = format!("{namespace}/{placement}");
    let known = placements(definition);
    if known.contains(&placement) {
        return Ok(format!("add-on {name:?} on clusters of placement {placement}"));
    }
    let sentence = format!("the hub does not install add-on {name:?} by placement {placement}: nothing was changed");
    let failure = Failure::refused(sentence);
    Err(match known.is_empty() {
        true => failure.hint("people enable it on clusters: name these, or make it the default"),
        false => failure.hint(format!("it does by {}", known.join(", "))),
    })
}

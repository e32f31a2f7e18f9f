//! Another release for a hub that is there.

use ocm_core::Failure;
use ocm_core::install::{self, Live, Options};
use ocm_core::upgrade::{self, HUB_DEFINITIONS};
use ocm_kube::Cluster;

use crate::upgrade::installed::stored_versions;

/// Judges the way from what a hub runs to the release that was given for it, as an upgrade does, and says what may bite. `cluster`
/// is where its operator is, and `hub` the hub itself.
///
/// # Errors
/// A refusal of an older release, or of one that lacks a version in which objects may be stored; the failure of a request.
pub(super) async fn judge(
    cluster: &Cluster,
    hub: &Cluster,
    options: &Options,
    live: &Live,
) -> Result<Vec<String>, Failure> {
    let moved = install::moved(options, live);
    let Some(bundle) = options.bundle.as_ref().filter(|_| !moved.0.is_empty()) else { return Ok(Vec::new()) };
    let mut warnings = install::direction(&moved, bundle, &format!("the hub ({})", cluster.label()))?;
    // Of a hosted hub, only that of its ClusterManager is where its operator is.
    let (own, others) = HUB_DEFINITIONS.split_at(1);
    let (mut stored, more) = futures::try_join!(
        stored_versions(cluster, own.iter().map(|(name, _)| *name)),
        stored_versions(hub, others.iter().map(|(name, _)| *name))
    )?;
    stored.extend(more);
    warnings.extend(upgrade::check(HUB_DEFINITIONS, &stored, bundle)?);
    Ok(warnings)
}

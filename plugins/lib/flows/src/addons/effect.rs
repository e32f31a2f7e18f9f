//! Waiting until configurations of add-ons are in effect.

use std::time::{Duration, Instant};

use ocm_core::addon::Configured;
use ocm_core::{Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;
use ocm_kube::wait::{Check, until};

use super::status;

/// How often it is looked.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits until nothing keeps configurations of these add-ons from being in effect on these clusters; if there are none, on all
/// that have them. `why_not` says of each what keeps it, by the name of the add-on.
///
/// # Errors
/// [`Reason::TimedOut`] with what keeps one; the failure of a request.
pub(super) async fn until_in_effect(
    hub: &Cluster,
    (names, clusters): (&[String], &[String]),
    why_not: &dyn Fn(&str, &Configured) -> Option<String>,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let doing = "waiting until the configuration is in effect";
    let waited = until(doing, Instant::now() + timeout, PAUSE, narrator, async || {
        for name in names {
            for one in status(hub, name, clusters).await?.configurations {
                if let Some(why) = why_not(name, &one) {
                    return Ok(Check::NotYet(format!("{name} of {}: {why}", one.cluster)));
                }
            }
        }
        Ok(Check::Ready(()))
    });
    waited.await.map_err(|failure| match failure.reason {
        Reason::TimedOut => failure.hint(Remedy::SeeAddOns),
        _ => failure,
    })
}

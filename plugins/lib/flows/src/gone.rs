//! Waiting until objects are gone that were deleted.

use std::time::{Duration, Instant};

use ocm_api::Manifest;
use ocm_core::{Failure, Narrator, Remedy};
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, apply};
use serde_json::Value;

/// How often it is looked.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits until these objects are gone, each with the UID that was deleted; one that was made anew is another one. `told` is
/// what they are, in a sentence.
///
/// # Errors
/// [`ocm_core::Reason::TimedOut`] with what holds one up; the failure of a request.
pub(crate) async fn until_gone(
    cluster: &Cluster,
    its: &[(Manifest, &str)],
    told: &str,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let doing = format!("waiting until {told} are gone");
    until(&doing, Instant::now() + timeout, PAUSE, narrator, async || {
        for (manifest, uid) in its {
            let Some(live) = apply::read(cluster, manifest).await? else { continue };
            if live["metadata"]["uid"] != *uid {
                continue;
            }
            let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let finalizers: Vec<&str> = finalizers.collect();
            let still = format!("{} is still there", manifest.reference());
            return Ok(Check::Unwatched(match finalizers.as_slice() {
                [] => still,
                some => format!("{still}: it waits for {}", some.join(", ")),
            }));
        }
        Ok(Check::Ready(()))
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

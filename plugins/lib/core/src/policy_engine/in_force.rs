//! What shows that the API server asks the webhook: it refuses a managed cluster of a name of its own.

use ocm_api::{ManagedCluster, Manifest};

use super::webhooks::REGISTER;

/// Name of a managed cluster that the webhook refuses whoever creates it, with [`PROBE_SENTENCE`]: to see whether the API
/// server asks it. The baseline lets it pass, which would refuse it before anybody asked the webhook.
pub const PROBE: &str = "ocm-policy-engine-probe";
/// What the webhook says of [`PROBE`].
pub const PROBE_SENTENCE: &str = "the policy engine keeps this name to itself, to see whether the API server asks it";

/// A managed cluster that the webhook refuses.
pub fn probe() -> Manifest {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    Manifest::of(&cluster)
}

/// Whether it is what the webhook says of [`probe`], because the API server asked it as the configurations say.
pub fn is_answer(said: &str) -> bool {
    said.contains(REGISTER) && said.contains(PROBE_SENTENCE)
}

//! What shows that the API server asks the webhook: it refuses a managed cluster of a name of its own.

use ocm_api::{ManagedCluster, Manifest};

use super::webhooks::REGISTER;
use crate::admission::{Admission, Objection};

/// Name of a managed cluster that the webhook refuses whoever creates it, with [`PROBE_SENTENCE`]: to see whether the API
/// server asks it. The baseline lets it pass, which would refuse it before anybody asked the webhook.
pub const PROBE: &str = "ocm-policy-engine-probe";
/// What programs know the answer to [`PROBE`] by: the reason of a cause in its status.
pub const PROBE_CODE: &str = "PolicyEngineProbe";
/// What the webhook says of [`PROBE`].
pub const PROBE_SENTENCE: &str = "the policy engine keeps this name to itself, to see whether the API server asks it";

/// A managed cluster that the webhook refuses.
pub fn probe() -> Manifest {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    Manifest::of(&cluster)
}

/// Whether it is what the webhook says of [`probe`], because the API server asked it as the configurations say.
pub fn is_answer(said: &Objection) -> bool {
    matches!(&said.by, Admission::Webhook(name) if name == REGISTER) && said.codes.iter().any(|code| code == PROBE_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_answers_for_the_webhook() {
        let said = |by, codes: &[&str]| Objection {
            by,
            why: PROBE_SENTENCE.to_owned(),
            codes: codes.iter().map(|code| (*code).to_owned()).collect(),
        };
        let ours = || Admission::Webhook(REGISTER.to_owned());
        assert!(is_answer(&said(ours(), &[PROBE_CODE])));
        assert!(!is_answer(&said(ours(), &[])), "another server answers at its address");
        for other in
            [Admission::Webhook("a.example".to_owned()), Admission::Policy(REGISTER.to_owned()), Admission::Other]
        {
            assert!(!is_answer(&said(other, &[PROBE_CODE])));
        }
    }
}

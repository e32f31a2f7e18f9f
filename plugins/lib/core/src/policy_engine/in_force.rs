//! What shows that the API server asks webhooks: ours refuses a managed cluster of a name of its own, and lets it pass where others
//! are to be asked.

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

/// The annotation with which the webhook lets a dry run of [`PROBE`] pass: whoever refuses it then, or does not answer, is another
/// webhook. Of several that object the API server names the first one, and ours is quick.
pub const PROBE_OF_OTHERS: &str = "policy.kubectl-ocm.dev/probe-of-others";

/// A managed cluster that the webhook refuses.
pub fn probe() -> Manifest {
    Manifest::of(&cluster())
}

/// A managed cluster that the webhook lets pass in a dry run.
pub fn probe_of_others() -> Manifest {
    let mut cluster = cluster();
    cluster.metadata.annotations = Some([(PROBE_OF_OTHERS.to_owned(), "true".to_owned())].into());
    Manifest::of(&cluster)
}

fn cluster() -> ManagedCluster {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    cluster
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

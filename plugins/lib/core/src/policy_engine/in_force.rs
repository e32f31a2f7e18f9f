//! What shows that the API server asks webhooks: ours refuses a managed cluster and a certificate request of a name of its own, and
//! lets the cluster pass where others are to be asked.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::names::signers::KUBE_APISERVER_CLIENT;
use ocm_api::{ManagedCluster, Manifest};
use serde_json::json;

use super::webhooks::REGISTER;
use crate::admission::{Admission, Objection};
use crate::certificate::to_base64;

/// Name of a managed cluster and a certificate request that the webhook refuses whoever creates them, with [`PROBE_SENTENCE`]: to
/// see whether the API server asks it. The baseline lets them pass, which would refuse them before anybody asked the webhook.
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

/// The request in [`probe_of_requests`]. Its key was thrown away: nobody could use a certificate for it.
const REQUEST: &str = "\
-----BEGIN CERTIFICATE REQUEST-----
MIHdMIGEAgEAMCIxIDAeBgNVBAMMF29jbS1wb2xpY3ktZW5naW5lLXByb2JlMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtFONOZ70gMYYN6zgcf4MAOaKBVgdsnLF
Mh1FH4jgX7xLeQoJ7pz+tqAX4nL+KVMgf5viz9rLLxY3f1LkRfn9MaAAMAoGCCqG
SM49BAMCA0gAMEUCIFImb04lhKzq7dbagf0/hzSZiB+nxK87QCPkoYKq4xU5AiEA
yPSfW3WAhl+8cZG1YCaBh8E0u1hgi876+IUTa4AebfQ=
-----END CERTIFICATE REQUEST-----
";

/// A certificate request that the webhook refuses.
pub fn probe_of_requests() -> Manifest {
    let metadata = ObjectMeta { name: Some(PROBE.to_owned()), ..ObjectMeta::default() };
    let spec = json!({
        "request": to_base64(REQUEST.as_bytes()), "signerName": KUBE_APISERVER_CLIENT, "usages": ["client auth"],
        "expirationSeconds": 600,
    });
    Manifest::with::<CertificateSigningRequest>(&metadata, json!({ "spec": spec }))
}

fn cluster() -> ManagedCluster {
    let mut cluster = ManagedCluster::default();
    cluster.metadata.name = Some(PROBE.to_owned());
    cluster
}

/// Whether it is what the webhook says of [`probe`], because the API server asked it as the configurations say.
pub fn is_answer(said: &Objection) -> bool {
    is_answer_by(REGISTER, said)
}

/// Whether it is what the webhook says of a probe, because the API server asked it by this entry.
pub fn is_answer_by(entry: &str, said: &Objection) -> bool {
    matches!(&said.by, Admission::Webhook(name) if name == entry) && said.codes.iter().any(|code| code == PROBE_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_that_is_tried_is_one_that_an_api_server_takes() {
        let probe = probe_of_requests();
        let read = crate::csr::Request::read(&serde_json::from_value(probe.body().clone()).unwrap());
        let content = read.content.unwrap();
        assert_eq!((read.name.as_str(), content.common_names), (PROBE, vec![PROBE.to_owned()]));
        assert_eq!((content.organizations, content.signature), (Vec::new(), ocm_rules::csr::Signature::Valid));
    }

    #[test]
    fn nobody_else_answers_for_the_webhook() {
        let said = |by, codes: &[&str]| Objection {
            by,
            why: PROBE_SENTENCE.to_owned(),
            codes: codes.iter().map(|code| (*code).to_owned()).collect(),
        };
        let ours = || Admission::Webhook(REGISTER.to_owned());
        assert!(is_answer(&said(ours(), &[PROBE_CODE])));
        assert!(!is_answer_by("request.policy.kubectl-ocm.dev", &said(ours(), &[PROBE_CODE])), "by another entry");
        assert!(!is_answer(&said(ours(), &[])), "another server answers at its address");
        for other in
            [Admission::Webhook("a.example".to_owned()), Admission::Policy(REGISTER.to_owned()), Admission::Other]
        {
            assert!(!is_answer(&said(other, &[PROBE_CODE])));
        }
    }
}

//! What the objects of a policy engine are called, and how they are marked as ours.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The namespace of everything that is in one.
pub const NAMESPACE: &str = "ocm-policy-engine";
/// Deployment, ServiceAccount, Service, roles and configurations of the webhook.
pub const WEBHOOK: &str = "ocm-policy-webhook";
/// Deployment, ServiceAccount, Lease and roles of the controller.
pub const CONTROLLER: &str = "ocm-policy-controller";
/// CronJob, ServiceAccount and roles of what renews the webhook's certificates.
pub const CERTIFICATES: &str = "ocm-policy-certificates";
/// Secret of the authority that signs the webhook's certificates. Neither the webhook nor the controller reads it.
pub const AUTHORITY_SECRET: &str = "ocm-policy-webhook-ca";
/// Secret of the webhook's serving certificate.
pub const SERVING_SECRET: &str = "ocm-policy-webhook-tls";
/// Secret of the webhook's serving certificate where cert-manager issues it. It is another one, so that nothing is served by
/// it before the API server trusts it.
pub const ISSUED_SECRET: &str = "ocm-policy-webhook-issued";
/// Secret with the credentials to pull the image.
pub const PULL_SECRET: &str = "ocm-policy-engine-image-pull-credentials";
/// All pods, as a label selector.
pub const PODS: &str = "app.kubernetes.io/part-of=kubectl-ocm";
/// The pods that decide, as a label selector.
pub const DECIDING_PODS: &str = "app.kubernetes.io/name in (ocm-policy-webhook,ocm-policy-controller)";

/// The label of all that is ours.
pub(super) const MARK: (&str, &str) = ("app.kubernetes.io/part-of", "kubectl-ocm");

/// Metadata of an object of ours.
pub(super) fn meta(name: &str) -> ObjectMeta {
    let (key, value) = MARK;
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([(key.to_owned(), value.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// The same, in our namespace.
pub(super) fn within(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(NAMESPACE.to_owned()), ..meta(name) }
}

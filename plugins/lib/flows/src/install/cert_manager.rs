//! cert-manager, where it looks after the webhook's certificate.

use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use ocm_api::cert_manager::Issuer;
use ocm_core::policy_engine as engine;
use ocm_core::{Failure, Narrator, Reason};
use ocm_kube::wait::{Check, until};
use ocm_kube::{Cluster, apply, explain};
use serde_json::Value;

/// The API group, with its version.
const GROUP: &str = "cert-manager.io/v1";

/// What it is asked for; none where nothing is, nobody serves the kind, or we may not know: whoever does not use it needs no
/// right on it.
///
/// # Errors
/// Every other failure of the request.
pub(crate) async fn asked_for(cluster: &Cluster) -> Result<Option<Value>, Failure> {
    match apply::read(cluster, &engine::certificate(&Issuer::default())).await {
        Err(failure) if failure.reason == Reason::Forbidden => Ok(None),
        found => Ok(found?.filter(|live| engine::issuer(live).is_some())),
    }
}

/// Refuses an issuer that cannot issue anything here.
pub(super) async fn can_issue(cluster: &Cluster, issuer: &Issuer) -> Result<(), Failure> {
    let resources = match cluster.client.list_api_group_resources(GROUP).await {
        Ok(resources) => resources,
        Err(error) if matches!(explain(&error).reason, Reason::NotFound | Reason::KindNotServed) => {
            let sentence = format!("the cluster serves no {GROUP} ({})", cluster.label());
            let hint = "install cert-manager there, or let the webhook have an authority of its own";
            return Err(Failure::refused(sentence).hint(hint));
        }
        Err(error) => return Err(cluster.explain("ask what the cluster serves", error)),
    };
    let kind = issuer.kind.as_deref().unwrap_or("Issuer");
    // Those of other groups are whoever's who serves them.
    let Some(resource) = resources.resources.iter().find(|one| issuer.group.is_none() && one.kind == kind) else {
        return Ok(());
    };
    let kind = ApiResource {
        group: "cert-manager.io".to_owned(),
        version: "v1".to_owned(),
        api_version: GROUP.to_owned(),
        kind: kind.to_owned(),
        plural: resource.name.clone(),
    };
    let api: Api<DynamicObject> = if resource.namespaced {
        Api::namespaced_with(cluster.client.clone(), engine::NAMESPACE, &kind)
    } else {
        Api::all_with(cluster.client.clone(), &kind)
    };
    let place = if resource.namespaced { format!(" in the namespace {}", engine::NAMESPACE) } else { String::new() };
    match api.get_metadata_opt(&issuer.name).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let sentence = format!("there is no {} {}{place} ({})", kind.kind, issuer.name, cluster.label());
            let hint = format!("see which there are: kubectl get {}.cert-manager.io -A", resource.name);
            Err(Failure::new(Reason::NotFound, sentence).hint(hint))
        }
        // Whoever may not look at issuers may ask them all the same.
        Err(error) if explain(&error).reason == Reason::Forbidden => Ok(()),
        Err(error) => Err(cluster.explain(format_args!("read {} {}", kind.kind, issuer.name), error)),
    }
}

/// Waits until the certificate is issued, and returns the authorities that verify it, as PEM.
pub(super) async fn issued(cluster: &Cluster, deadline: Instant, narrator: &dyn Narrator) -> Result<String, Failure> {
    let secret = engine::issued_secret();
    let pause = Duration::from_millis(500);
    until("waiting until cert-manager has issued the certificate", deadline, pause, narrator, async || {
        let Some(certificate) = asked_for(cluster).await? else {
            return Ok(Check::Unwatched("there is no Certificate any more".to_owned()));
        };
        let secret = apply::read(cluster, &secret).await?;
        if let Some(lacks) = engine::lacks(&certificate, secret.as_ref()) {
            return Ok(Check::Unwatched(lacks));
        }
        let authority = secret.as_ref().and_then(engine::authority);
        Ok(authority.map_or_else(|| Check::Unwatched("its authority cannot be read".to_owned()), Check::Ready))
    })
    .await
}

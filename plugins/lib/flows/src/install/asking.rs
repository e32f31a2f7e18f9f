//! Having the API server ask the policy engine's webhook again, where its configurations are missing or are not what an
//! installation makes of them, and nothing else of the policy engine has to be made.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use ocm_api::names::hub::DEFAULT_CLUSTER_SET;
use ocm_core::plan::Applied;
use ocm_core::policy_engine::{self as engine, FailurePolicy, Mark, Options, Running, Trust};
use ocm_core::{DryRun, Failure, Narrator, Remedy};
use ocm_kube::access::{self, Right};
use ocm_kube::{Cluster, apply};
use ocm_policy_certificates::{Found, look, renew, unusable_soon};

use super::policy_engine::asked;
use super::probe;
use crate::policies::{mark, withdraw_for_another};

/// What the rights are needed for.
const PURPOSE: &str = "have the API server ask the hub's policies";
/// How long the API server may take to ask: each one learns of another configuration by itself.
const WAIT: Duration = Duration::from_secs(60);

/// Looks whether the API server can be made to ask the webhook: whether the user may, nobody wants it otherwise, and the
/// webhook serves by an authority that is there. Nothing is changed.
///
/// # Errors
/// [`ocm_core::Reason::Forbidden`]; a refusal with what is in the way; the failure of a request.
pub(crate) async fn check_asking(hub: &Cluster) -> Result<(), Failure> {
    access::require(hub, PURPOSE, &rights()).await?;
    refuse_in_emergency(hub).await?;
    trust(hub).await.map(drop)
}

/// Has the API server ask the webhook, as an installation does: nothing waits for a webhook that was not seen to answer.
/// Whatever ends it before its last step leaves a hub that goes on as it did, and the next run goes on from there.
///
/// # Errors
/// As [`check_asking`]; [`ocm_core::Reason::TimedOut`] where the API server was not seen to ask.
pub(crate) async fn ask_again(
    hub: &Cluster,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<(), Failure> {
    refuse_in_emergency(hub).await?;
    let (trust, fails) = trust(hub).await?;
    let plan = |failure| engine::configurations(&trust, failure);
    let last = plan(FailurePolicy::Fail);
    if dry_run != DryRun::No {
        return apply::plan(hub, &last, dry_run, narrator, each).await.map(drop);
    }
    // What refuses already goes on doing so.
    let first = if fails { FailurePolicy::Fail } else { FailurePolicy::Ignore };
    apply::plan(hub, &plan(first), dry_run, narrator, &mut each).await?;
    // Somebody may have taken policies out of force meanwhile.
    withdraw_for_another(hub, None, narrator).await?;
    asked(hub, None, Instant::now() + WAIT, narrator).await?;
    withdraw_for_another(hub, None, narrator).await?;
    if !fails {
        apply::plan(hub, &last, dry_run, narrator, &mut each).await?;
        withdraw_for_another(hub, None, narrator).await?;
    }
    Ok(())
}

/// Every right that it takes.
fn rights() -> Vec<Right> {
    let mut rights = access::to_apply(&engine::configurations(&Trust::Injected, FailurePolicy::Fail));
    // What is served now, and whether policies were taken out of force.
    for secret in [engine::AUTHORITY_SECRET, engine::SERVING_SECRET] {
        rights.push(Right::new("get", "", "secrets").on(secret).within(engine::NAMESPACE));
    }
    rights.push(Right::new("get", "apps", "deployments").on(engine::WEBHOOK).within(engine::NAMESPACE));
    rights.push(Right::new("get", "", "namespaces").on(engine::NAMESPACE));
    rights.extend(probe::rights_on(&engine::probe()));
    // The hub puts what has no set into the default one, and asks whether its creator may.
    let sets = Right::new("create", "cluster.open-cluster-management.io", "managedclustersets/join");
    rights.push(sets.on(DEFAULT_CLUSTER_SET));
    rights
}

/// Whoever has taken policies out of force puts them back.
async fn refuse_in_emergency(hub: &Cluster) -> Result<(), Failure> {
    match mark(hub).await? {
        Some(mark) => Err(Failure::refused(format!("policies were taken out of force {}", Mark::words(&mark)))
            .hint(Remedy::ReinstallPolicyEngine)),
        None => Ok(()),
    }
}

/// What the API server is to trust, and whether registrations wait for the webhook now.
async fn trust(hub: &Cluster) -> Result<(Trust, bool), Failure> {
    let outline = engine::outline(&Options::default());
    let deployment = outline.objects().find(|one| one.kind() == "Deployment" && one.name() == engine::WEBHOOK);
    let live = match deployment {
        Some(manifest) => apply::read(hub, manifest).await?,
        None => None,
    };
    if live.is_none() {
        return Err(Failure::refused(format!("there is no Deployment {}/{}", engine::NAMESPACE, engine::WEBHOOK))
            .hint(Remedy::ReinstallPolicyEngine));
    }
    let seen = look(hub).await?;
    if (Running { deployment: live.as_ref(), ..Running::default() }).is_issued() {
        return Ok((Trust::Injected, seen.fails));
    }
    if let Some(whose) = seen.foreign() {
        return Err(Failure::refused(format!("{whose}, so the configurations are for whoever looks after it")));
    }
    let bundle = bundle(&seen.found, access::clock(hub).await?)?;
    Ok((Trust::Bundle(bundle), seen.fails))
}

/// The authorities that the API server is to trust, as PEM, where no certificate has to be made for it.
fn bundle(found: &Found, now: Timestamp) -> Result<String, Failure> {
    let made = renew(found, now)?;
    if found.authority.as_ref() != Some(&made.authority) {
        let sentence = format!("the authority in Secret {} has to be recreated", engine::AUTHORITY_SECRET);
        return Err(Failure::refused(sentence).hint(Remedy::ReinstallPolicyEngine));
    }
    let after = Found { bundles: vec![made.bundle.clone().into_bytes()], ..found.clone() };
    match unusable_soon(&after, now) {
        Some(why) => Err(Failure::refused(why).hint(Remedy::ReinstallPolicyEngine)),
        None => Ok(made.bundle),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn found(now: Timestamp) -> Found {
        let made = renew(&Found::default(), now).unwrap();
        Found { authority: Some(made.authority), serving: Some(made.serving), bundles: Vec::new() }
    }

    #[test]
    fn the_bundle_is_that_of_the_authority_that_is_there() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let found = found(now);
        let authority = found.authority.as_ref().unwrap().certificate.clone();
        assert_eq!(bundle(&found, now).unwrap().trim(), authority.trim());
        // Whatever stands in the configurations, what is served can be trusted again.
        let strange = self::found(now);
        let stale = Found { bundles: vec![strange.authority.unwrap().certificate.into_bytes()], ..found.clone() };
        let trusted = ocm_core::certificate::from_pem(bundle(&stale, now).unwrap().as_bytes()).unwrap();
        assert!(trusted.contains(&ocm_core::certificate::from_pem(authority.as_bytes()).unwrap()[0]));
    }

    #[test]
    fn where_certificates_have_to_be_made_nothing_is_changed() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let found = found(now);
        let refused = |found: &Found, now| bundle(found, now).unwrap_err().message;
        let without = Found { authority: None, ..found.clone() };
        assert!(refused(&without, now).contains("ocm-policy-webhook-ca has to be recreated"));
        let other = Found { serving: self::found(now).serving, ..found.clone() };
        assert!(refused(&other, now).contains("does not trust"));
        assert!(refused(&found, now + SignedDuration::from_hours(24 * 85)).contains("ends at"));
    }
}

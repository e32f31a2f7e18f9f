//! `troubleshoot --fix`: carrying out what the rules have planned.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use ocm_api::Manifest;
use ocm_api::names::secrets;
use ocm_checks::fix::{Change, Fix, Left, Pinned};
use ocm_checks::snapshot::Side;
use ocm_core::join::{bootstrap_secret_of, lease};
use ocm_core::kubeconfig::{HUB_UID, exclusive_mark, replace_token};
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, yaml};
use ocm_kube::access::{self, Right, require};
use ocm_kube::{Cluster, apply, remove};
use serde_json::Value;

use crate::hub::AddressOptions;
use crate::install;
use crate::token::{self, Kind};
use crate::troubleshoot::Sides;

/// How long a new token lives: as that of a join.
const TTL: Duration = Duration::from_secs(3600);

/// Stands in a dry run for a token that is made only when the plan is carried out.
const NOT_MADE: &str = "made-when-fixing";

/// Looks which fixes could be carried out: whether the user may, and whether there is what they need. Nothing is changed.
/// Returns those that could, and why the others could not.
pub async fn check(sides: &Sides, fixes: Vec<Fix>, narrator: &dyn Narrator) -> (Vec<Fix>, Vec<Left>) {
    narrator.tell(Event::now("checking your rights"));
    let (mut ready, mut left) = (Vec::new(), Vec::new());
    for fix in fixes {
        match check_one(sides, &fix.change).await {
            Ok(()) => ready.push(fix),
            Err(failure) => {
                let why = |finding: &String| Left { finding: finding.clone(), why: failure.to_string() };
                left.extend(fix.mends.iter().map(why));
            }
        }
    }
    (ready, left)
}

async fn check_one(sides: &Sides, change: &Change) -> Result<(), Failure> {
    let cluster = cluster(sides, change.side())?;
    match change {
        Change::DeleteLease { lease: Pinned { namespace, name, .. }, .. } => {
            let right = |verb| Right::new(verb, "coordination.k8s.io", "leases").within(namespace).on(name);
            require(cluster, "delete the lease", &[right("get"), right("delete")]).await
        }
        Change::Apply { plan, .. } => require(cluster, "apply the roles", &access::to_apply(plan)).await,
        Change::ReplaceToken { secret: Pinned { namespace, name, .. }, .. } => {
            let right = |verb| Right::new(verb, "", "secrets").within(namespace).on(name);
            require(cluster, "replace the token", &[right("get"), right("patch")]).await?;
            let request = token::Request {
                kind: Kind::ServiceAccount,
                ttl: TTL,
                description: String::new(),
                cluster_sets: Vec::new(),
                address: AddressOptions::default(),
            };
            token::check(self::cluster(sides, Side::Hub)?, &request).await
        }
        Change::AskPolicies => install::check_asking(cluster).await,
    }
}

/// Carries out one change, or tries it. `each` hears of every object as soon as it is done.
///
/// What is killed half-way is planned anew by the next look: at worst a token is left that nobody has, and that ends after an
/// hour.
///
/// # Errors
/// The failure of a request. An object that has changed since it was looked at is kept, and no failure.
pub async fn carry_out(
    sides: &Sides,
    change: &Change,
    dry_run: DryRun,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Applied),
) -> Result<(), Failure> {
    let cluster = cluster(sides, change.side())?;
    let applied = match change {
        Change::Apply { plan, .. } => return apply::plan(cluster, plan, dry_run, narrator, each).await.map(drop),
        Change::AskPolicies => return install::ask_again(cluster, dry_run, narrator, each).await,
        Change::DeleteLease { lease: Pinned { namespace, name, version, .. }, .. } => {
            let pin = (version.uid.as_str(), version.resource_version.as_str());
            remove::pinned(cluster, &lease::manifest(namespace, name), pin, dry_run).await?
        }
        Change::ReplaceToken { secret, hub } => {
            let uid = hub.as_deref();
            replace(cluster, self::cluster(sides, Side::Hub)?, secret, uid, dry_run).await?
        }
    };
    each(&applied);
    if dry_run == DryRun::No && applied.outcome.is_change() {
        narrator.tell(Event::done(format!("{} {}", applied.manifest.reference(), applied.outcome.word())));
    }
    Ok(())
}

fn cluster(sides: &Sides, side: Side) -> Result<&Cluster, Failure> {
    let (cluster, what) = match side {
        Side::Hub => (&sides.hub, "the hub"),
        Side::Managed => (&sides.managed, "the managed cluster"),
    };
    cluster.as_ref().ok_or_else(|| Failure::other(format!("{what} was not named")))
}

/// Puts a new token of the hub into the Secret that an agent registers with.
async fn replace(
    managed: &Cluster,
    hub: &Cluster,
    pinned: &Pinned,
    uid: Option<&str>,
    dry_run: DryRun,
) -> Result<Applied, Failure> {
    let Pinned { namespace, name, version, .. } = pinned;
    let api: Api<Secret> = Api::namespaced(managed.client.clone(), namespace);
    let read = api.get(name).await;
    let secret = read.map_err(|error| managed.explain(format_args!("read Secret {namespace}/{name}"), error))?;
    let file = |key: &str| -> Option<Value> {
        let text = secret.data.as_ref().and_then(|data| data.get(key));
        text.and_then(|text| yaml::from_str(std::str::from_utf8(&text.0).ok()?).ok())
    };
    let (kubeconfig, grpc_config) = (file(secrets::KUBECONFIG_KEY), file(secrets::GRPC_CONFIG_KEY));
    let noted = secret.metadata.annotations.as_ref().and_then(|all| all.get(HUB_UID)).filter(|uid| !uid.is_empty());
    let uid = uid.or(noted.map(String::as_str));
    let manifest = |token: &str| -> Result<Manifest, Failure> {
        let mut kubeconfig = kubeconfig.clone().unwrap_or_default();
        if !replace_token(&mut kubeconfig, token) {
            return Err(Failure::refused(format!(
                "the kubeconfig in Secret {namespace}/{name} has no token in its place, so none was put there"
            )));
        }
        // Over gRPC the agent registers with the same token.
        let mut grpc_config = grpc_config.clone();
        if let Some(config) = grpc_config.as_mut().and_then(Value::as_object_mut) {
            config.insert("token".to_owned(), Value::from(token));
        }
        // JSON is YAML, and no two readers of YAML differ about it.
        let files = (kubeconfig.to_string(), grpc_config.map(|config| config.to_string()));
        Ok(bootstrap_secret_of(namespace, files, exclusive_mark(token, true), uid))
    };
    let pin = (version.uid.as_str(), version.resource_version.as_str());
    let is_same =
        secret.metadata.uid.as_deref() == Some(pin.0) && secret.metadata.resource_version.as_deref() == Some(pin.1);
    let draft = manifest(NOT_MADE)?;
    match dry_run {
        DryRun::No if is_same => {
            let new = manifest(&token::service_account_token(hub, TTL).await?.0)?;
            apply::pinned(managed, &new, pin, dry_run).await
        }
        // No token is made for a Secret that has changed, and the draft never gets there.
        DryRun::No => apply::pinned(managed, &draft, pin, DryRun::Client).await,
        DryRun::Client | DryRun::Server => apply::pinned(managed, &draft, pin, dry_run).await,
    }
}

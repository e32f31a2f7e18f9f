//! From options to a hub.

use std::time::{Duration, Instant};

use ocm_api::{ClusterManager, Manifest};
use ocm_core::install::{self, GrpcExposure, HubMode, Installation, Live, Options, OptionsError};
use ocm_core::plan::{Applied, Mode};
use ocm_core::{Event, Failure, Narrator, Plan, Reason, reconcile};
use ocm_kube::{Cluster, access, apply};

use super::error::InstallError;
use super::hosted::{self, Hub};
use super::{former, gateway, node_ports, preflight, releases, survey};
use crate::usable::Awaited;

/// What helps where a hub is not usable in time.
const AGAIN: &str = "what was applied stays: mend it and run the same command again, it goes on from there";

/// What is wanted.
#[derive(Clone)]
pub struct Request {
    /// What was chosen about the hub.
    pub options: Options,
    /// The hub itself, where its pods run on another cluster.
    pub hub: Option<Box<Cluster>>,
    /// Have those pods reach it at the address that it publishes.
    pub internal: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until the hub is usable.
    pub wait: bool,
    /// How long everything that is waited for may take.
    pub timeout: Duration,
}

/// What an installation came to.
#[derive(Debug)]
pub struct Installed {
    /// The plan and what there is to say about it.
    pub installation: Installation,
    /// Every object of the plan with what became of it; empty where it is only rendered.
    pub applied: Vec<Applied>,
    /// Whether the hub is usable, or why not; none if nobody waited for it.
    pub usable: Option<Result<(), Failure>>,
}

/// Installs a hub, or does with its plan what the request says. `cluster` is where its pods run. `each` hears of every object as
/// soon as it is there, and on which cluster: of a hosted hub there are two.
///
/// # Errors
/// When a cluster cannot be read, is a hub of another make, or contradicts the options; the failure of a request.
pub async fn install(
    cluster: &Cluster,
    request: &Request,
    narrator: &dyn Narrator,
    mut each: impl FnMut(&Cluster, &Applied),
) -> Result<Installed, InstallError> {
    let (installation, hub) = prepare(cluster, request, narrator).await?;
    let mode = request.mode;
    if mode == Mode::Render {
        if let Some(hub) = &hub {
            narrator.tell(Event::note(format!(
                "the manifests are those of {}; what belongs on {} is not among them, nor is the token of the operator's \
                 account there",
                cluster.label(),
                hub.account.cluster.label()
            )));
        }
        return Ok(Installed { installation, applied: Vec::new(), usable: None });
    }
    if mode.changes() {
        let reached = hub.as_ref().map_or(cluster, |hub| hub.account.cluster);
        preflight::preflight(cluster, &installation.plan, &reached.server, narrator).await?;
    }
    let applied = match hub.as_ref().zip(installation.on_hub.as_ref()) {
        Some((hub, on_hub)) => both(cluster, hub, on_hub, &installation, mode, narrator, &mut each).await?,
        None => {
            let here = |applied: &Applied| each(cluster, applied);
            apply::plan(cluster, &installation.plan, mode.dry_run(), narrator, here).await?
        }
    };
    let usable = match request.wait && mode.changes() {
        true => {
            let api = hub.as_ref().map(|hub| hub.account.cluster);
            let (hub, doing) = (installation.hub.as_str(), "waiting for the hub to be usable");
            let hub = Awaited { cluster, api, hub, doing };
            let rest = async |_: &ClusterManager| gateway::lacks(cluster, &installation.plan).await;
            let usable = hub.until(Instant::now() + request.timeout, narrator, rest).await;
            Some(usable.map_err(|failure| failure.hint(AGAIN)))
        }
        false => None,
    };
    Ok(Installed { installation, applied, usable })
}

/// Applies, or tries, what belongs on a hosted hub, and then what belongs on the cluster that hosts it.
async fn both(
    cluster: &Cluster,
    hub: &Hub<'_>,
    on_hub: &Plan,
    installation: &Installation,
    mode: Mode,
    narrator: &dyn Narrator,
    each: &mut dyn FnMut(&Cluster, &Applied),
) -> Result<Vec<Applied>, Failure> {
    if mode.changes() {
        hub.preflight(on_hub, narrator).await?;
    }
    let mut applied = hub.account.make(mode, narrator, each).await?;
    let there = |applied: &Applied| each(hub.account.cluster, applied);
    applied.extend(apply::plan(hub.account.cluster, on_hub, mode.dry_run(), narrator, there).await?);
    let (mut plan, mut kept) = (installation.plan.clone(), None);
    if mode.changes() {
        let (secret, token) = hub.account.token(narrator).await?;
        let holder = install::hosted::secret(&installation.hub, &hub.kubeconfig(Some(&token)));
        plan.replace(holder.clone());
        kept = Some((secret, holder));
    }
    let here = |applied: &Applied| each(cluster, applied);
    applied.extend(apply::plan(cluster, &plan, mode.dry_run(), narrator, here).await?);
    // The operator has the new one now.
    if let Some((secret, holder)) = kept {
        hub.account.settle(&secret, (cluster, &holder), narrator).await?;
    }
    Ok(applied)
}

/// The plan of a new hub, for which no cluster is looked at.
///
/// # Errors
/// Options that contradict each other.
pub fn new_hub(options: &Options, narrator: &dyn Narrator) -> Result<Installation, OptionsError> {
    let installation = install::plan(options, &Live::default())?;
    tell_about(&installation, narrator);
    Ok(installation)
}

/// Looks at the cluster, and at the hub where that is another one, and plans.
async fn prepare<'a>(
    cluster: &Cluster,
    request: &'a Request,
    narrator: &dyn Narrator,
) -> Result<(Installation, Option<Hub<'a>>), InstallError> {
    let Request { options, hub, internal, .. } = request;
    install::check(options)?;
    let options =
        &Options { usual_hub_arn: arn(hub.as_deref().unwrap_or(cluster).context.as_deref()), ..options.clone() };
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    let deadline = Instant::now() + request.timeout;
    let (live, mut parts) = futures::join!(survey::survey(cluster), former::parts(cluster));
    let mut live = match live {
        Err(failure) if failure.reason == Reason::Forbidden => {
            // Whoever may not even look lacks more than that: all of it is named at once.
            let plan = install::plan(options, &Live::default())?.plan;
            access::require(cluster, preflight::PURPOSE, &access::to_apply(&plan)).await?;
            return Err(failure.into());
        }
        live => live?,
    };
    while request.mode.changes() && former::gone(cluster, (&live, &parts), options, deadline, narrator).await? {
        // What was read of the former hub went with it.
        let (again, there) = futures::join!(survey::survey(cluster), former::parts(cluster));
        (live, parts) = (again?, there);
    }
    let mode = install::hosted::mode(options, &live)?;
    let (mut options, mut found) = (options.clone(), None);
    match (mode, hub) {
        (HubMode::Default, None) => {
            if live.cluster_manager.is_none() {
                hosted::refuse_hosted(cluster).await?;
            }
            check_before_gateways(&options, &live)?;
            gateway::find(cluster, &mut options, &live, narrator).await?;
        }
        (HubMode::Default, Some(_)) => return Err(OptionsError::NotHosted.into()),
        (HubMode::Hosted, None) => return Err(OptionsError::NoHub.into()),
        (HubMode::Hosted, Some(hub)) => {
            // What contradicts itself is said before the other cluster is looked at.
            install::plan(&options, &live)?;
            let hub = hosted::inspect(cluster, hub, &live, *internal, narrator).await?;
            options.hosting.kubeconfig = Some(hub.kubeconfig(None));
            found = Some(hub);
        }
    }
    let mut installation = install::plan(&options, &live)?;
    gateway::refuse_foreign(cluster, &installation.plan).await?;
    if options.hosting.expose.is_some() {
        node_ports::check(cluster, &installation.plan, narrator).await?;
    }
    let judged = releases::judge(cluster, hub.as_deref().unwrap_or(cluster), &options, &live).await?;
    for warning in judged {
        if !installation.warnings.contains(&warning) {
            installation.warnings.push(warning);
        }
    }
    for unneeded in &installation.unneeded {
        installation.warnings.extend(still_there(cluster, unneeded).await);
    }
    tell_about(&installation, narrator);
    Ok((installation, found))
}

/// Checks options for what is there before Gateways are looked at, one of which may tell the address of the gRPC server.
fn check_before_gateways(options: &Options, live: &Live) -> Result<(), OptionsError> {
    match install::plan(options, live) {
        Err(OptionsError::NoGrpcAddress) if options.expose_grpc == Some(GrpcExposure::Gateway) => {
            let told = Options { grpc_server: Some("gateway.invalid".to_owned()), ..options.clone() };
            install::plan(&told, live).map(drop)
        }
        planned => planned.map(drop),
    }
}

/// Says that something of ours is there which leads no agent to the gRPC server any more. Who may not read it has not made it.
async fn still_there(cluster: &Cluster, unneeded: &Manifest) -> Option<String> {
    let found = apply::read(cluster, unneeded).await.ok().flatten()?;
    let (kind, name) = (unneeded.kind(), unneeded.name());
    let space = unneeded.namespace().unwrap_or_default();
    (!reconcile::owned_by_us(&found).is_null()).then(|| {
        format!(
            "{kind} {space}/{name} stays, by which agents reached the gRPC server, although none is led to it any more; to \
             delete it: kubectl delete {} -n {space} {name}",
            kind.to_ascii_lowercase()
        )
    })
}

/// The ARN of a cluster, where its context is one: the tools of AWS name it so.
fn arn(context: Option<&str>) -> Option<String> {
    context.filter(|context| context.starts_with("arn:aws:eks:")).map(str::to_owned)
}

/// Says what a plan has to say about itself.
fn tell_about(installation: &Installation, narrator: &dyn Narrator) {
    installation.notes.iter().for_each(|note| narrator.tell(Event::note(note)));
    installation.warnings.iter().for_each(|warning| narrator.tell(Event::warning(warning)));
}

#[cfg(test)]
mod tests {
    use ocm_core::install::gateway::Gateway;
    use ocm_core::install::{Driver, DriverSetting};

    use super::*;

    #[test]
    fn options_are_checked_before_gateways_are_looked_at() {
        let by_gateway = Options {
            expose_grpc: Some(GrpcExposure::Gateway),
            grpc_gateway: Gateway::parse("infra/public"),
            ..Options::default()
        };
        let check = |options: &Options| check_before_gateways(options, &Live::default());
        assert_eq!(check(&by_gateway), Err(OptionsError::DriverIsOff(Driver::Grpc, DriverSetting::Exposure)));
        let on = Options { registration_drivers: Some(vec![Driver::Csr, Driver::Grpc]), ..by_gateway };
        assert_eq!(check(&on), Ok(()), "the Gateway may tell the address");
        let approving = Options { auto_approved_grpc_identities: vec!["user".to_owned()], ..on.clone() };
        assert_eq!(check(&approving), Err(OptionsError::AutoApprovalIsOff));
        let elsewhere = Options { expose_grpc: Some(GrpcExposure::NodePort), grpc_gateway: None, ..on };
        assert_eq!(check(&elsewhere), Err(OptionsError::NoGrpcAddress), "nothing tells it");
    }

    #[test]
    fn a_context_is_an_arn_where_the_tools_of_aws_name_it() {
        let context = "arn:aws:eks:us-west-2:111111111111:cluster/hub";
        assert_eq!(arn(Some(context)).as_deref(), Some(context));
        assert_eq!((arn(Some("hub")), arn(None)), (None, None));
    }
}

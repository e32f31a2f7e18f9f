//! Add-ons that people define on the hub.

use std::time::{Duration, Instant};

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use ocm_api::ClusterManagementAddOn;
use ocm_core::addon::unused_template;
use ocm_core::plan::{Applied, Mode, Plan};
use ocm_core::{Event, Failure, Narrator, Reason};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};

use super::definitions;
use crate::deliveries::known_placement;
use crate::whole::apply_whole;

/// How often it is looked where nothing tells of changes.
const PAUSE: Duration = Duration::from_secs(1);

/// What is wanted.
#[derive(Clone, Debug)]
pub struct DefineRequest {
    /// Name of the add-on.
    pub name: String,
    /// Name of its template.
    pub template: String,
    /// The template and the add-on.
    pub plan: Plan,
    /// Namespace and name of the placement by which the hub installs it.
    pub placement: Option<(String, String)>,
    /// ClusterRole that its agents get on the hub.
    pub cluster_role: Option<String>,
    /// Whether objects that others have written are replaced.
    pub overwrite: bool,
    /// What is done with the plan.
    pub mode: Mode,
    /// Wait until the hub uses the template, for so long.
    pub wait: Option<Duration>,
}

/// Defines an add-on, or does with the plan what the request says. `each` hears of every object.
///
/// # Errors
/// The rights that are missing; [`Reason::NotFound`] for a placement that is not there; a refusal, if an object is somebody
/// else's; the failure of a request.
pub async fn define(
    hub: &Cluster,
    request: &DefineRequest,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Vec<Applied>, Failure> {
    let DefineRequest { name, template, plan, placement, cluster_role, overwrite, mode, wait } = request;
    if mode.changes() {
        narrator.tell(Event::now("checking your rights"));
        let of = |(namespace, name): &(String, String)| {
            Right::new("get", "cluster.open-cluster-management.io", "placements").on(name).within(namespace)
        };
        let rights: Vec<Right> = access::to_apply(plan).into_iter().chain(placement.iter().map(of)).collect();
        access::require(hub, "define add-ons", &rights).await?;
    }
    if let Some((namespace, name)) = placement {
        known_placement(hub, namespace, name).await?;
    }
    if let Some(role) = cluster_role {
        tell_of_missing(hub, role, narrator).await?;
    }
    let applied = apply_whole(hub, plan, (*overwrite, *mode), narrator, each).await?;
    if let Some(timeout) = wait.filter(|_| mode.changes()) {
        until_used(hub, name, template, timeout, narrator).await?;
    }
    Ok(applied)
}

/// Waits until the hub uses a template as the default of an add-on.
async fn until_used(
    hub: &Cluster,
    name: &str,
    template: &str,
    timeout: Duration,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let api: Api<ClusterManagementAddOn> = Api::all(hub.client.clone());
    let triggers = Triggers::default().of(api, named(name));
    let doing = format!("waiting until the hub uses AddOnTemplate {template}");
    let names = [name.to_owned()];
    until_triggered(&doing, Instant::now() + timeout, PAUSE, triggers, narrator, async || {
        let found = definitions(hub, &names).await?.into_iter().find_map(|(_, definition)| definition);
        Ok(unused_template(&found.unwrap_or_default(), template).map_or(Check::Ready(()), Check::NotYet))
    })
    .await
}

/// Tells of a ClusterRole that is not there: it may be made later.
async fn tell_of_missing(hub: &Cluster, role: &str, narrator: &dyn Narrator) -> Result<(), Failure> {
    let api: Api<ClusterRole> = Api::all(hub.client.clone());
    let found = api.get_metadata_opt(role).await;
    match found.map_err(|error| hub.explain(format_args!("read ClusterRole {role:?}"), error)) {
        Ok(Some(_)) => {}
        Ok(None) => narrator.tell(Event::warning(format!(
            "the hub has no ClusterRole {role:?}: agents of the add-on get no rights until there is one"
        ))),
        Err(failure) if failure.reason == Reason::Forbidden => {
            narrator.tell(Event::note(format!("it cannot be told whether there is such a ClusterRole: {failure}")));
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

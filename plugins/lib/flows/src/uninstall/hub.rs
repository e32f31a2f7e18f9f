//! `uninstall hub`: a hub to which nothing is attached becomes a plain cluster again.
//!
//! ```text
//! rights ─▶ find (what is attached?) ─▶ the caller asks ─▶ what lets clusters register ─▶ ClusterManager ─▶ its operator
//! ```
//!
//! Where there is no ClusterManager, no operator takes anything away: what more than an installation has left is in the way.
//!
//! Of a hub that is hosted, the ClusterManager and the operator are on another cluster than all the rest.

use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::ListParams;
use kube::{Api, Resource as _};
use ocm_api::names::{bootstrap, namespaces, operators};
use ocm_api::operator::ClusterManagerMode;
use ocm_api::{ClusterManager, ManagedCluster, Manifest, RegistrationApproval, crds};
use ocm_core::leave::installation::{self as rules, Attached, PEOPLES};
use ocm_core::leave::klusterlet::namespace;
use ocm_core::leave::space::{LeftOfHub, Operator, left_of_hub};
use ocm_core::leave::{row, some};
use ocm_core::token::SECRET_PREFIX;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Plan, Reason, Remedy, Stage, baseline};
use ocm_kube::access::{self, Right};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, apply, contents};

use super::hosted::{self, OnHub};
use crate::install::hosted::refuse_hosted;
use crate::leave::operator::{any, delete, objects_of, operators_namespace, pods_gone, trouble};
use crate::leave::{Leaving, PAUSE, namespace_gone, noted};
use crate::registry::pages_of_metadata;
use crate::served::or_nothing;
use crate::{token, workload};

/// What the rights are needed for.
const PURPOSE: &str = "uninstall the hub";

/// What there is of a hub.
#[derive(Clone, Debug)]
pub struct HubFound {
    /// The ClusterManager: its name and its UID.
    manager: Option<(String, String)>,
    /// The UID of the operator's Deployment.
    operator: Option<String>,
    /// Whether something else of the operator is there: a run that was killed leaves it.
    residue: bool,
    /// The UID of the namespace of the hub's pods, where an installation that was killed has left it.
    left: Option<String>,
    /// The same on the hub itself, where that is another cluster.
    left_on_hub: Option<String>,
    /// Whether the operator of a managed cluster is on the same cluster.
    pub beside_agent: bool,
    /// What is on the hub itself, where that is another cluster.
    on_hub: Option<OnHub>,
    /// Identifiers of bootstrap tokens with which clusters register.
    tokens: Vec<String>,
    /// Cluster sets for which there are roles of ours.
    sets: Vec<String>,
    /// What is attached to it.
    pub attached: Attached,
}

/// What a removal came to.
#[derive(Clone, Debug, Default)]
pub struct HubUninstalled {
    /// Why the operators' namespace is still there, if it is.
    pub namespace_kept: Option<String>,
}

impl HubFound {
    /// Whether there is anything.
    pub fn is_there(&self) -> bool {
        let is_left = self.left.is_some() || self.left_on_hub.is_some();
        self.manager.is_some() || self.operator.is_some() || self.residue || is_left
    }

    /// The namespace of the hub's pods, and, on another cluster, of their accounts.
    fn space(&self) -> &str {
        self.on_hub.as_ref().map_or(namespaces::HUB, |on_hub| on_hub.space.as_str())
    }

    /// What may be deleted besides what every hub has: where the operator is, and on the hub itself.
    fn besides(&self) -> (Vec<Manifest>, Vec<Manifest>) {
        let (mut here, mut there) =
            (Vec::new(), rules::registering(&self.sets).split_off(rules::registering(&[]).len()));
        there.push(crds::registration_approval_manifest());
        if !self.beside_agent {
            here.push(namespace(namespaces::OPERATOR));
        }
        if self.on_hub.as_ref().is_some_and(|on_hub| !on_hub.beside_agent) {
            there.push(namespace(namespaces::OPERATOR));
        }
        here.extend(self.left.iter().map(|_| namespace(self.space())));
        there.extend(self.left_on_hub.iter().map(|_| namespace(self.space())));
        (here, there)
    }
}

fn to_remove(all: Vec<Manifest>) -> Vec<Right> {
    access::to_remove(&Plan::new([Stage::new("the hub", all)]))
}

/// Checks the rights where the operator is, and on the hub, where that is another cluster.
async fn check_rights(cluster: &Cluster, hub: Option<&Cluster>) -> Result<(), Failure> {
    let mut all = rules::of_operator(false);
    all.extend([rules::operator(), rules::definition()]);
    let (mut here, mut there) = (to_remove(all), to_remove(rules::registering(&[])));
    for verb in ["list", "delete"] {
        here.push(Right::new(verb, "operator.open-cluster-management.io", "clustermanagers"));
        there.push(Right::new(verb, "", "secrets").within(bootstrap::TOKEN_NAMESPACE));
    }
    here.push(Right::new("list", "", "pods").within(namespaces::OPERATOR));
    there.push(Right::new("list", "cluster.open-cluster-management.io", "managedclusters"));
    there.push(Right::new("list", "rbac.authorization.k8s.io", "clusterroles"));
    there.extend(PEOPLES.iter().map(|kind| Right::new("list", kind.group, kind.plural)));
    match hub {
        None => here.extend(there),
        Some(hub) => {
            there.extend(hosted::rights());
            access::require(hub, PURPOSE, &there).await?;
        }
    }
    access::require(cluster, PURPOSE, &here).await
}

/// Checks the rights that only what was found tells to be needed: a removal that lacks one is not begun.
async fn check_rights_to_end(cluster: &Cluster, hub: Option<&Cluster>, found: &HubFound) -> Result<(), Failure> {
    let (here, there) = found.besides();
    let (here, there) = futures::try_join!(those_there(cluster, here), those_there(hub.unwrap_or(cluster), there))?;
    let (mut here, mut there) = (to_remove(here), to_remove(there));
    let waited_for = Right::new("get", "", "namespaces").on(found.space());
    here.push(waited_for.clone());
    match hub {
        None => here.extend(there),
        Some(hub) => {
            there.push(waited_for);
            access::require(hub, PURPOSE, &there).await?;
        }
    }
    access::require(cluster, PURPOSE, &here).await
}

/// Those of these objects that are there.
async fn those_there(cluster: &Cluster, manifests: Vec<Manifest>) -> Result<Vec<Manifest>, Failure> {
    let each = manifests.into_iter().map(async |manifest| {
        let found = apply::read(cluster, &manifest).await?;
        Ok::<_, Failure>(found.map(|_| manifest))
    });
    Ok(futures::future::try_join_all(each).await?.into_iter().flatten().collect())
}

/// What there is of a hub, and what is attached to it. `cluster` is where its operator is, and `hub` the hub itself, where that is
/// another one. Nothing is deleted yet.
///
/// # Errors
/// A refusal, if something is attached that does not go along, or the clusters are not those of one hub; the failure of a
/// request.
pub async fn find_hub(
    cluster: &Cluster,
    hub: Option<&Cluster>,
    leaving: Leaving,
    narrator: &dyn Narrator,
) -> Result<HubFound, Failure> {
    if leaving.dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        check_rights(cluster, hub).await?;
    }
    narrator.tell(Event::now(format!("looking at {}", cluster.label())));
    let manager = manager(cluster, hub.is_some()).await?;
    if manager.is_none() && hub.is_none() {
        refuse_hosted(cluster).await?;
    }
    let on_hub = match hub {
        Some(hub) => {
            narrator.tell(Event::now(format!("looking at {}", hub.label())));
            let on_hub = hosted::find(cluster, hub, manager.as_ref().map(|(name, _)| name.as_str())).await?;
            if leaving.dry_run == DryRun::No {
                // The accounts go last: nothing is begun that would end before them.
                access::require(hub, PURPOSE, &on_hub.rights()).await?;
            }
            Some(on_hub)
        }
        None => None,
    };
    let api = hub.unwrap_or(cluster);
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespaces::OPERATOR);
    let (operator, agent, tokens, sets, attached) = futures::join!(
        deployments.get_metadata_opt(operators::CLUSTER_MANAGER),
        deployments.get_metadata_opt(operators::KLUSTERLET),
        token::list(api),
        sets(api),
        attached(api),
    );
    let explained = |error| cluster.explain("read the operator's Deployment", error);
    let beside_agent = agent.map_err(explained)?.is_some();
    let mut rest = rules::of_operator(beside_agent);
    rest.push(rules::definition());
    if !beside_agent {
        rest.push(namespace(namespaces::OPERATOR));
    }
    let mut on_api = rules::registering(&[]);
    if on_hub.as_ref().is_some_and(|on_hub| !on_hub.beside_agent) {
        on_api.push(namespace(namespaces::OPERATOR));
    }
    let residue =
        any(cluster, &rest).await? || any(api, &on_api).await? || on_hub.as_ref().is_some_and(OnHub::is_there);
    let space = on_hub.as_ref().map_or(namespaces::HUB, |on_hub| on_hub.space.as_str());
    let (mut left, mut left_on_hub) = (None, None);
    if manager.is_none() {
        left = self::left(cluster, space).await?;
        if let Some(hub) = hub {
            left_on_hub = self::left(hub, space).await?;
        }
    }
    let found = HubFound {
        residue,
        left,
        left_on_hub,
        manager,
        operator: operator.map_err(explained)?.and_then(|operator| operator.metadata.uid),
        beside_agent,
        on_hub,
        tokens: tokens?.into_iter().map(|kept| kept.id).collect(),
        sets: sets?,
        attached: attached?,
    };
    if found.is_there() {
        rules::may_go(&found.attached, leaving.purge, &api.label(), "nothing was deleted")?;
    }
    if let (Some((name, _)), None) = (&found.manager, &found.operator) {
        return Err(Failure::refused(format!(
            "ClusterManager {name:?} waits for the operator, which is not there ({}): nothing was deleted",
            cluster.label()
        ))
        .hint(Remedy::RestoreHubOperatorFirst));
    }
    if found.is_there() && leaving.dry_run == DryRun::No {
        check_rights_to_end(cluster, hub, &found).await?;
    }
    Ok(found)
}

/// The UID of a hub's namespace that nothing but an installation has left there; none, where nothing of a hub is in it, or it
/// goes already.
///
/// # Errors
/// A refusal where more of a hub is in it: only an operator knows all that belongs to that. The failure of a request.
async fn left(cluster: &Cluster, space: &str) -> Result<Option<String>, Failure> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let found = api.get_metadata_opt(space).await;
    let found = found.map_err(|error| cluster.explain(format_args!("read namespace {space:?}"), error))?;
    let Some(found) = found.map(|found| found.metadata).filter(|found| found.deletion_timestamp.is_none()) else {
        return Ok(None);
    };
    let refused = |what: &str| {
        Failure::refused(format!(
            "there is no ClusterManager, but namespace {space:?} of a hub, and {what} ({}): nothing was deleted",
            cluster.label()
        ))
        .hint(Remedy::UninstallByOperator)
    };
    match contents::of(cluster, space).await {
        Ok(contents) => match left_of_hub(&found, &contents) {
            LeftOfHub::Nothing => Ok(None),
            LeftOfHub::Ours => Ok(found.uid),
            LeftOfHub::Others(others) => Err(refused(&format!("it holds {}", some(&others)))),
        },
        Err(failure) if failure.reason.is_transient() => Err(failure),
        Err(failure) => Err(refused("what is in it cannot be seen").because(failure)),
    }
}

/// The one ClusterManager of the cluster. `is_hosted`: whether another cluster was named as its hub.
async fn manager(hub: &Cluster, is_hosted: bool) -> Result<Option<(String, String)>, Failure> {
    let api: Api<ClusterManager> = Api::all(hub.client.clone());
    let listed = api.list(&ListParams::default()).await;
    let mut all =
        or_nothing(listed.map(|list| list.items).map_err(|error| hub.explain("list ClusterManagers", error)))?;
    let names =
        |all: &[ClusterManager]| all.iter().filter_map(|one| one.metadata.name.clone()).collect::<Vec<_>>().join(", ");
    if all.len() > 1 {
        return Err(Failure::refused(format!("{} has several ClusterManagers: {}", hub.label(), names(&all)))
            .hint("delete those of hosted hubs first, each with its own clusters detached"));
    }
    let Some(one) = all.pop() else { return Ok(None) };
    let mode = one.spec.deploy_option.as_ref().map(|option| option.mode.clone()).unwrap_or_default();
    let (name, label) = (one.metadata.name.as_deref().unwrap_or_default(), hub.label());
    match (mode, is_hosted) {
        (ClusterManagerMode::Default, false) | (ClusterManagerMode::Hosted, true) => {}
        (ClusterManagerMode::Default, true) => {
            return Err(Failure::refused(format!(
                "ClusterManager {name:?} ({label}) is in mode Default: its hub is that cluster itself, and no other one; nothing \
                 was deleted"
            ))
            .hint("name that cluster alone"));
        }
        (mode, _) => {
            return Err(Failure::refused(format!(
                "ClusterManager {name:?} is in mode {}: its hub is another cluster, so what is attached to it cannot be seen from \
                 {label}",
                mode.as_str()
            ))
            .hint(Remedy::NameItsHub));
        }
    }
    Ok(one.metadata.name.zip(one.metadata.uid))
}

async fn attached(hub: &Cluster) -> Result<Attached, Failure> {
    let clusters: Api<ManagedCluster> = Api::all(hub.client.clone());
    let all = ListParams::default();
    let names = pages_of_metadata(hub, &clusters, all, "list managed clusters", |item| item.metadata.name).await;
    let clusters = or_nothing(names)?;
    let mut attached = Attached { clusters, ..Attached::default() };
    for kind in PEOPLES {
        let all = objects_of(hub, kind.plural, kind.group, &kind.definition()).await?;
        let is_own = |name: &Option<String>| kind.own.contains(&name.as_deref().unwrap_or_default());
        let many = all.iter().filter(|metadata| !is_own(&metadata.name)).count();
        if many > 0 {
            attached.peoples.push((kind.plural, many));
        }
    }
    let (plural, group) = (RegistrationApproval::plural(&()), RegistrationApproval::group(&()));
    let approvals = objects_of(hub, &plural, &group, &crds::registration_approval_manifest()).await?.len();
    if approvals > 0 {
        attached.peoples.push(("registrationapprovals", approvals));
    }
    if engine_is_there(hub).await? {
        attached.ours.push("policy-engine");
    }
    for object in baseline::removal().objects() {
        if apply::read(hub, object).await?.is_some() {
            attached.ours.push("baseline");
            break;
        }
    }
    Ok(attached)
}

/// Whether API servers ask the policy engine.
async fn engine_is_there(hub: &Cluster) -> Result<bool, Failure> {
    let deployments: Api<Deployment> = Api::namespaced(hub.client.clone(), ocm_core::policy_engine::NAMESPACE);
    let found = deployments.list_metadata(&ListParams::default().limit(1)).await;
    Ok(!found.map_err(|error| hub.explain("list the Deployments of the policy engine", error))?.items.is_empty())
}

/// Cluster sets for which `token create` has made roles.
async fn sets(hub: &Cluster) -> Result<Vec<String>, Failure> {
    let roles: Api<ClusterRole> = Api::all(hub.client.clone());
    let prefix = bootstrap::cluster_set_role("");
    pages_of_metadata(hub, &roles, ListParams::default(), "list ClusterRoles", |role| {
        role.metadata.name?.strip_prefix(&prefix).map(str::to_owned)
    })
    .await
}

/// Takes a hub away. `cluster` is where its operator is, and `hub` the hub itself, where that is another one. `each` hears of every
/// object, and on which cluster it is.
///
/// # Errors
/// [`Reason::TimedOut`] with what holds it up; the failure of a request.
pub async fn uninstall_hub(
    cluster: &Cluster,
    hub: Option<&Cluster>,
    found: &HubFound,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Cluster, &Applied),
) -> Result<HubUninstalled, Failure> {
    let dry_run = leaving.dry_run;
    let api = hub.unwrap_or(cluster);
    let (on_cluster, on_api) = (|applied: &Applied| each(cluster, applied), |applied: &Applied| each(api, applied));
    let here = &noted(leaving, narrator, &on_cluster);
    let there = &noted(leaving, narrator, &on_api);
    narrator.tell(Event::now(format!("{} what lets clusters register", leaving.verb())));
    for id in &found.tokens {
        token::revoke(api, id, dry_run).await?;
        there(&row(token_secret(id), Outcome::Deleted));
    }
    for manifest in rules::registering(&found.sets) {
        delete(api, &manifest, dry_run, there).await?;
    }
    if dry_run == DryRun::No {
        // From now on nothing can be attached any more; what was since it was looked at is in the way.
        rules::may_go(&attached(api).await?, leaving.purge, &api.label(), GONE_SO_FAR)
            .map_err(|failure| failure.hint(Remedy::KeepHub))?;
    }
    if let Some((name, uid)) = &found.manager {
        let manifest = rules::cluster_manager(name);
        narrator.tell(Event::now(format!("{} ClusterManager {name:?}", leaving.verb())));
        let deleted = remove::known(cluster, &manifest, uid, Dependents::Usual, dry_run).await?;
        if let Outcome::Kept(why) = &deleted.outcome {
            let stays = format!("ClusterManager {name:?} stays: {why}");
            return Err(Failure::new(Reason::Conflict, stays).hint(Remedy::RunAgain));
        }
        leaving.goes(manifest.reference(), narrator);
        if dry_run == DryRun::No {
            manager_gone(cluster, name, uid, leaving, narrator).await?;
        }
        here(&row(manifest, Outcome::Deleted));
    }
    let stays_gone = async || match dry_run {
        DryRun::No => none_anew(cluster).await,
        DryRun::Client | DryRun::Server => Ok(()),
    };
    let space = found.space();
    // What somebody has put there since it was looked at is theirs.
    let is_left = async |place: &Cluster, uid: &String| match dry_run {
        DryRun::No => Ok::<_, Failure>(left(place, space).await?.as_ref() == Some(uid)),
        DryRun::Client | DryRun::Server => Ok(true),
    };
    if let Some(uid) = &found.left
        && is_left(cluster, uid).await?
    {
        stays_gone().await?;
        here(&remove::known(cluster, &namespace(space), uid, Dependents::Usual, dry_run).await?);
    }
    if let Some(uid) = &found.left_on_hub
        && is_left(api, uid).await?
    {
        stays_gone().await?;
        there(&remove::known(api, &namespace(space), uid, Dependents::Usual, dry_run).await?);
    }
    if dry_run == DryRun::No {
        let doing = format!("waiting until namespace {space:?} is gone");
        for place in std::iter::once(cluster).chain(hub) {
            namespace_gone(place, space, &doing, Instant::now() + leaving.timeout, narrator)
                .await
                .map_err(|failure| failure.hint(Remedy::RunAgain))?;
        }
    }
    // The operator needed its account until now.
    if let Some(on_hub) = &found.on_hub {
        on_hub.remove(api, leaving, narrator, there).await?;
    }
    stays_gone().await?;
    if let Some(uid) = &found.operator {
        narrator.tell(Event::now(format!("{} the operator", leaving.verb())));
        here(&remove::known(cluster, &rules::operator(), uid, Dependents::Usual, dry_run).await?);
    }
    if dry_run == DryRun::No {
        pods_gone(cluster, Operator::ClusterManager, leaving, narrator).await?;
    }
    for manifest in rules::of_operator(found.beside_agent) {
        delete(cluster, &manifest, dry_run, here).await?;
    }
    // With their definition go all ClusterManagers.
    stays_gone().await?;
    // Ours, which `uninstall baseline` leaves for those who install it again.
    let approvals = crds::registration_approval_manifest();
    delete(api, &approvals, dry_run, there).await?;
    // By it a run that goes on from here sees that something is left: it goes last.
    delete(cluster, &rules::definition(), dry_run, here).await?;
    let mut namespace_kept = match found.beside_agent {
        true => None,
        false => operators_namespace(cluster, Operator::ClusterManager, leaving, narrator, here).await?,
    };
    if found.on_hub.as_ref().is_some_and(|on_hub| !on_hub.beside_agent) {
        let kept = operators_namespace(api, Operator::ClusterManager, leaving, narrator, there).await?;
        namespace_kept = namespace_kept.or(kept);
    }
    Ok(HubUninstalled { namespace_kept })
}

/// What has been deleted when what is attached is looked at for the last time.
const GONE_SO_FAR: &str = "what lets clusters register is gone, and nothing else was deleted";

/// Refuses to go on where somebody has made a ClusterManager since the one that was deleted is gone.
async fn none_anew(cluster: &Cluster) -> Result<(), Failure> {
    let api: Api<ClusterManager> = Api::all(cluster.client.clone());
    let listed = api.list_metadata(&ListParams::default().limit(1)).await.map(|list| list.items);
    let found = or_nothing(listed.map_err(|error| cluster.explain("list ClusterManagers", error)))?;
    match found.into_iter().next().and_then(|one| one.metadata.name) {
        Some(name) => Err(Failure::new(
            Reason::Conflict,
            format!(
                "somebody has made ClusterManager {name:?} meanwhile ({}): what is left of the hub stays",
                cluster.label()
            ),
        )
        .hint("to take that one away, too, run this again")),
        None => Ok(()),
    }
}

fn token_secret(id: &str) -> Manifest {
    rules::token_secret(&format!("{SECRET_PREFIX}{id}"))
}

/// Waits until the operator has removed the hub.
async fn manager_gone(
    hub: &Cluster,
    name: &str,
    uid: &str,
    leaving: Leaving,
    narrator: &dyn Narrator,
) -> Result<(), Failure> {
    let api: Api<ClusterManager> = Api::all(hub.client.clone());
    let triggers = Triggers::default()
        .of(api.clone(), named(name))
        .of(workload::deployments(hub, namespaces::OPERATOR), named(operators::CLUSTER_MANAGER));
    let doing = format!("waiting until ClusterManager {name:?} is gone");
    let deadline = Instant::now() + leaving.timeout;
    until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
        let found = api.get_metadata_opt(name).await;
        let found = found.map_err(|error| hub.explain("read the ClusterManager", error))?;
        if found.is_none_or(|found| found.metadata.uid.as_deref() != Some(uid)) {
            return Ok(Check::Ready(()));
        }
        Ok(Check::NotYet(match trouble(hub, Operator::ClusterManager).await? {
            None => "the operator removes the hub".to_owned(),
            Some(because) => format!("the operator, which removes the hub, is not ready: {because}"),
        }))
    })
    .await
    .map_err(|failure| failure.hint(Remedy::RunAgain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> HubFound {
        HubFound {
            manager: None,
            operator: None,
            residue: true,
            left: None,
            left_on_hub: None,
            beside_agent: false,
            on_hub: None,
            tokens: Vec::new(),
            sets: vec!["edge".to_owned()],
            attached: Attached::default(),
        }
    }

    #[test]
    fn rights_are_asked_for_what_only_this_hub_has() {
        let references = |all: Vec<Manifest>| all.iter().map(Manifest::reference).collect::<Vec<_>>();
        let (here, there) = found().besides();
        assert_eq!(references(here), ["namespace/open-cluster-management"]);
        let (role, binding) = ("clusterrole.rbac.authorization.k8s.io", "clusterrolebinding.rbac.authorization.k8s.io");
        let set = bootstrap::cluster_set_role("edge");
        assert_eq!(
            references(there),
            [
                format!("{binding}/{set}"),
                format!("{role}/{set}"),
                "customresourcedefinition.apiextensions.k8s.io/registrationapprovals.policy.kubectl-ocm.dev".to_owned()
            ]
        );
        let beside = HubFound { beside_agent: true, ..found() };
        assert!(beside.besides().0.is_empty(), "the operator of a managed cluster needs it");
        assert_eq!(found().space(), "open-cluster-management-hub");
        let left = HubFound { residue: false, left: Some("u".to_owned()), ..found() };
        let expected = ["namespace/open-cluster-management", "namespace/open-cluster-management-hub"];
        assert_eq!(references(left.besides().0), expected);
        assert!(left.is_there(), "what an installation has left is something");
    }
}

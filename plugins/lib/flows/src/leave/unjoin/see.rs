//! What there is of a managed cluster, and whether it may go. Nothing is deleted yet.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use ocm_api::Manifest;
use ocm_api::names::{namespaces, operators};
use ocm_core::leave::klusterlet::{self as rules, Known};
use ocm_core::leave::some;
use ocm_core::managed::has_joined;
use ocm_core::{DryRun, Event, Failure, Narrator, Plan, Reason, Remedy, Stage};
use ocm_kube::Cluster;
use ocm_kube::access::{self, Right};

use super::its_hub::{addresses, agents_hub, all_known, is_its_hub, removed, was_let_in};
use super::records::{left_behind, of_agent, of_guest};
use super::request::UnjoinRequest;
use super::seen::{Seen, has_own_finalizers, is_being_deleted, own_finalizers};
use crate::leave::hub;
use crate::leave::operator::any;

/// Finds out what there is. Nothing is deleted yet.
///
/// # Errors
/// When it cannot be told which Klusterlet is meant, its hub is another one, or it must not go yet; the failure of a request.
pub async fn see(
    managed: &Cluster,
    hub: Option<&Cluster>,
    request: &UnjoinRequest,
    narrator: Arc<dyn Narrator>,
) -> Result<Seen, Failure> {
    narrator.tell(Event::now(format!("looking at {}", managed.label())));
    let all = all_known(managed).await?;
    let label = managed.label();
    // A run that was killed may have taken the Klusterlet away, and not yet its cluster.
    let begun = |failure: Failure| match &request.cluster {
        Some(cluster) if failure.reason == Reason::Refused => failure.hint(Remedy::GoOnAtHub(cluster.clone())),
        _ => failure,
    };
    let known = rules::choose(&all, request.cluster.as_deref(), request.klusterlet.as_deref(), &label);
    let known = known.map_err(begun)?.cloned();
    let others = all.len() - usize::from(known.is_some());
    if request.leaving.dry_run == DryRun::No {
        narrator.tell(Event::now("checking your rights"));
        check_rights(managed, known.as_ref(), request).await?;
    }
    let deployments: Api<Deployment> = Api::namespaced(managed.client.clone(), namespaces::OPERATOR);
    let (operator, hubs) = futures::join!(
        deployments.get_metadata_opt(operators::KLUSTERLET),
        deployments.get_metadata_opt(operators::CLUSTER_MANAGER),
    );
    let explained = |error| managed.explain("read the operator's Deployment", error);
    let (operator, beside_hub) = (operator.map_err(explained)?, hubs.map_err(explained)?.is_some());
    let (mut applied, mut guest, mut found) = (Vec::new(), None, None);
    if known.is_none() && others == 0 {
        applied = left_behind(managed).await?;
    }
    if let Some(known) = &known {
        if known.is_hosted() {
            (guest, applied) = of_guest(managed, known, narrator.clone()).await;
        } else {
            applied = of_agent(managed, known).await?;
        }
        found = agents_hub(managed, known).await?;
    }
    let mut seen = Seen {
        known,
        others,
        applied,
        guest,
        operator: operator.and_then(|operator| operator.metadata.uid),
        residue: any(managed, &residue(beside_hub)).await?,
        beside_hub,
        address: found,
        held: None,
        addresses: Vec::new(),
        removed: Vec::new(),
    };
    if let Some(hub) = hub {
        let Some(name) = seen.cluster().or(request.cluster.as_deref()) else {
            if is_passed_over(hub, &seen, &label, &*narrator) {
                return Ok(seen);
            }
            return Err(Failure::usage(format!("{label} does not say which cluster it is on its hub"))
                .hint(Remedy::NameLeaving));
        };
        if let Some(known) = &seen.address {
            is_its_hub(hub, known, &label).await?;
        }
        let held = hub::inspect(hub, name).await.map_err(|failure| match failure.reason {
            Reason::KindNotServed => failure.hint(Remedy::WithoutHub),
            _ => failure,
        })?;
        // Without a Klusterlet there is no agent to be mistaken for another one. Of one that is being deleted the operator takes
        // away what says so; and where the hub has no cluster any more, a run that was killed may have begun that.
        let begun = |known: &Known| is_being_deleted(known) && held.cluster.is_none();
        if seen.address.is_none() && seen.known.as_ref().is_some_and(|known| !begun(known)) && !held.is_empty() {
            let sentence = format!("the agent on {label} does not say which hub it belongs to: nothing was deleted");
            return Err(Failure::refused(sentence).hint(Remedy::Detach(name.to_owned())).hint(Remedy::WithoutHub));
        }
        // With the wrong cluster before it, this would take one away whose agent goes on.
        if seen.known.is_none() && held.is_at_work() {
            return Err(Failure::refused(format!(
                "the agent of cluster {name:?} is heard of on its hub, but {label} has no Klusterlet: nothing was deleted"
            ))
            .hint(Remedy::NameCluster)
            .hint(Remedy::Detach(name.to_owned())));
        }
        // A Klusterlet can say any name: only an agent that was let in under it may have that cluster taken away.
        if let Some(known) = &seen.known
            && held.cluster.as_ref().is_some_and(has_joined)
        {
            was_let_in(managed, known, name).await?;
        }
        if request.leaving.dry_run == DryRun::No {
            hub::check_rights_to_detach(hub, std::slice::from_ref(&held.name), request.leaving.force).await?;
        }
        hub::refuse(&held, request.leaving.force, &*narrator)?;
        if seen.known.is_some() && held.cluster.is_some() && !seen.applied.is_empty() {
            seen.addresses = addresses(hub, seen.address.as_ref()).await?;
            seen.removed = removed(hub, &held.name).await?;
        }
        seen.held = Some(held);
    } else {
        say_works(&seen, request, &label)?;
    }
    if seen.operator.is_none() && seen.known.as_ref().is_some_and(has_own_finalizers) && !request.leaving.force {
        let told = seen.known.as_ref().map(Known::told).unwrap_or_default();
        return Err(Failure::refused(format!(
            "{told} waits for the operator, which is not there: nothing was deleted ({label})"
        ))
        .because(format!("finalizers {}", own_finalizers().join(", ")))
        .hint(Remedy::Force));
    }
    Ok(seen)
}

/// The rights on the managed cluster.
async fn check_rights(managed: &Cluster, known: Option<&Known>, request: &UnjoinRequest) -> Result<(), Failure> {
    let (group, works) = ("operator.open-cluster-management.io", "work.open-cluster-management.io");
    let mut rights = vec![
        Right::new("list", group, "klusterlets"),
        Right::new("delete", group, "klusterlets"),
        Right::new("list", works, "appliedmanifestworks"),
        Right::new("delete", works, "appliedmanifestworks"),
        Right::new("get", "", "namespaces"),
        Right::new("delete", "", "namespaces"),
        Right::new("list", "", "pods").within(namespaces::OPERATOR),
        Right::new("list", "rbac.authorization.k8s.io", "clusterroles"),
    ];
    if request.leaving.force {
        rights.push(Right::new("patch", group, "klusterlets"));
        rights.push(Right::new("patch", works, "appliedmanifestworks"));
        let agents = known.map(|known| rules::rights_of_agents(known.name())).unwrap_or_default();
        rights.extend(access::to_remove(&Plan::new([Stage::new("the agents", agents)])));
    }
    if !request.keep_operator {
        let mut all = rules::of_operator(false);
        all.push(rules::operator());
        all.extend(rules::definitions().into_iter().map(|(manifest, ..)| manifest));
        rights.extend(access::to_remove(&Plan::new([Stage::new("the operator", all)])));
    }
    access::require(managed, "unjoin the cluster", &rights).await
}

/// Whether a hub is left alone because nothing on the cluster says any more what it is called there, as after a run that has ended
/// well, or that was killed late: that is told.
pub(in crate::leave) fn is_passed_over(hub: &Cluster, seen: &Seen, label: &str, narrator: &dyn Narrator) -> bool {
    let is_passed_over = seen.known.is_none() && seen.others == 0 && seen.applied.is_empty();
    if is_passed_over {
        narrator.tell(Event::warning(format!(
            "{label} has no Klusterlet that says which cluster it is: {} is not looked at unless you name the cluster",
            hub.label()
        )));
    }
    is_passed_over
}

/// What is left of an operator whose Deployment is gone.
fn residue(beside_hub: bool) -> Vec<Manifest> {
    let mut all = rules::of_operator(beside_hub);
    all.extend(rules::definitions().into_iter().map(|(manifest, ..)| manifest).take(1));
    if !beside_hub {
        all.push(rules::namespace(namespaces::OPERATOR));
    }
    all
}

/// Refuses to leave what works have put on the cluster without anybody having said what becomes of it.
fn say_works(seen: &Seen, request: &UnjoinRequest, label: &str) -> Result<(), Failure> {
    if request.works.is_some() {
        return Ok(());
    }
    // A run that was forced and killed has taken away by what the cluster could be reached.
    let is_begun = request.leaving.force && seen.known.as_ref().is_some_and(is_being_deleted);
    let is_hidden = seen.guest.is_none() && !is_begun && seen.known.as_ref().is_some_and(Known::is_hosted);
    if seen.applied.is_empty() && !is_hidden {
        return Ok(());
    }
    if is_hidden {
        let name = seen.cluster().unwrap_or_default();
        let sentence =
            format!("whether works have put something on hosted cluster {name:?} cannot be seen: nothing was deleted");
        return Err(Failure::refused(sentence).hint(Remedy::WithHub).hint(Remedy::SayWorks));
    }
    let names: Vec<String> = seen.applied.iter().map(|work| work.spec.manifest_work_name.clone()).collect();
    let failure = Failure::refused(format!(
        "works of the hub have put objects on {label} ({}): nothing was deleted",
        some(&names)
    ))
    .hint(Remedy::WithHub);
    Err(match seen.cluster() {
        Some(name) => failure.hint(Remedy::Detach(name.to_owned())).hint(Remedy::SayWorks),
        None => failure.hint(Remedy::SayWorks),
    })
}

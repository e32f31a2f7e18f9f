//! The Klusterlet goes, with its agents and their namespaces.

use std::time::Instant;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use ocm_api::Klusterlet;
use ocm_api::names::{annotations, namespaces, operators};
use ocm_core::leave::klusterlet::{self as rules, Known};
use ocm_core::leave::row;
use ocm_core::leave::space::Operator;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Outcome, Reason, Remedy};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::triggers::{Triggers, named};
use ocm_kube::wait::{Check, until_triggered};
use ocm_kube::{Cluster, apply};

use super::seen::{Seen, has_own_finalizers, own_finalizers};
use crate::leave::leaving::Leaving;
use crate::leave::namespace::{PAUSE, namespace_gone};
use crate::leave::operator::{delete, trouble};
use crate::observe::managed as observe;
use crate::workload;

/// Deletes the Klusterlet and waits until its agents and their namespaces are gone.
pub(super) async fn klusterlet(
    managed: &Cluster,
    known: &Known,
    seen: &Seen,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = rules::klusterlet(known.name());
    let mut spaces = vec![known.agents().to_owned()];
    if !known.is_hosted() && seen.others == 0 {
        spaces.push(namespaces::AGENT_ADDON.to_owned());
    }
    let mut there = Vec::new();
    let api: Api<Namespace> = Api::all(managed.client.clone());
    for space in spaces {
        let found = api.get_metadata_opt(&space).await;
        let found = found.map_err(|error| managed.explain(format_args!("read namespace {space:?}"), error))?;
        there.extend(found.and_then(|found| found.metadata.uid).map(|uid| (space, uid)));
    }
    let uid = known.klusterlet.metadata.uid.as_deref().unwrap_or_default();
    narrator.tell(Event::now(format!("{} {}", leaving.verb(), known.told())));
    if leaving.dry_run == DryRun::No && !has_own_finalizers(known) {
        // No operator has seen it: it is gone at once, and nothing would say any more that there is a token.
        for (space, uid) in there.iter().filter(|(space, _)| space == known.agents()) {
            remove::known(managed, &rules::namespace(space), uid, Dependents::Usual, DryRun::No).await?;
        }
    }
    let deleted = remove::known(managed, &manifest, uid, Dependents::Usual, leaving.dry_run).await?;
    if let Outcome::Kept(why) = &deleted.outcome {
        return Err(Failure::new(Reason::Conflict, format!("{} stays: {why}", known.told())).hint(Remedy::RunAgain));
    }
    leaving.goes(manifest.reference(), narrator);
    if leaving.dry_run != DryRun::No {
        each(&row(manifest, Outcome::Deleted));
        there.iter().for_each(|(space, _)| each(&row(rules::namespace(space), Outcome::Deleted)));
        return Ok(());
    }
    klusterlet_gone(managed, known, seen, &there, leaving, narrator, each).await?;
    each(&row(manifest, Outcome::Deleted));
    for (space, uid) in there {
        space_gone(managed, known, (&space, &uid), leaving, narrator, each).await?;
    }
    Ok(())
}

/// Waits until a namespace of agents is gone. That of a Klusterlet which no operator has ever seen nobody deletes but us.
async fn space_gone(
    managed: &Cluster,
    known: &Known,
    (space, uid): (&str, &str),
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = rules::namespace(space);
    let still = apply::read(managed, &manifest).await?.filter(|found| found["metadata"]["uid"] == uid);
    if still.is_some_and(|found| found["metadata"]["deletionTimestamp"].is_null()) {
        if space != known.agents() {
            let why = "agents of other Klusterlets may need it".to_owned();
            each(&row(manifest, Outcome::Kept(why)));
            return Ok(());
        }
        remove::known(managed, &manifest, uid, Dependents::Usual, DryRun::No).await?;
    }
    let doing = format!("waiting until namespace {space:?} of the agent is gone");
    namespace_gone(managed, space, &doing, Instant::now() + leaving.timeout, narrator)
        .await
        .map_err(|failure| failure.hint(Remedy::RunAgain))?;
    each(&row(manifest, Outcome::Deleted));
    Ok(())
}

/// Waits until a Klusterlet is gone. Where its finalizers have to be taken off, what the operator would have removed goes before:
/// a run that is killed in between finds the Klusterlet again.
async fn klusterlet_gone(
    managed: &Cluster,
    known: &Known,
    seen: &Seen,
    there: &[(String, String)],
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let manifest = rules::klusterlet(known.name());
    let uid = &known.klusterlet.metadata.uid;
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let (mut forced, mut deadline) = (leaving.force && seen.operator.is_none(), Instant::now() + leaving.timeout);
    loop {
        let triggers = Triggers::default()
            .of(api.clone(), named(known.name()))
            .of(workload::deployments(managed, namespaces::OPERATOR), named(operators::KLUSTERLET));
        let doing = format!("waiting until {} is gone", known.told());
        let waited = until_triggered(&doing, deadline, PAUSE, triggers, narrator, async || {
            let found = api.get_opt(known.name()).await;
            let found = match found.map_err(|error| managed.explain("read the Klusterlet", error)) {
                Ok(found) => found,
                // Somebody took the definition away, too.
                Err(failure) if failure.reason == Reason::KindNotServed => None,
                Err(failure) => return Err(failure),
            };
            let Some(found) = found.filter(|found| &found.metadata.uid == uid) else { return Ok(Check::Ready(None)) };
            if forced && found.metadata.finalizers.iter().flatten().any(|one| own_finalizers().contains(&one.as_str()))
            {
                return Ok(Check::Ready(Some(found)));
            }
            Ok(Check::NotYet(hold_up(managed, &found).await?))
        })
        .await;
        match waited {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => {
                let all = found.metadata.finalizers.unwrap_or_default();
                let left: Vec<String> =
                    all.into_iter().filter(|one| !own_finalizers().contains(&one.as_str())).collect();
                let version = found.metadata.resource_version.unwrap_or_default();
                by_hand(managed, known, there, each).await?;
                if remove::release(managed, &manifest, &version, &left).await? {
                    let told = format!("took {} off {}", own_finalizers().join(", "), known.told());
                    narrator.tell(Event::note(told.clone()));
                    narrator.tell(Event::done(told));
                }
            }
            Err(failure) if failure.reason == Reason::TimedOut && leaving.force && !forced => {
                (forced, deadline) = (true, Instant::now() + leaving.timeout);
                narrator.tell(Event::warning(format!("{failure}; going on without the operator")));
            }
            Err(failure) if failure.reason == Reason::TimedOut => {
                return Err(failure.hint(Remedy::RunAgain).hint(Remedy::Force));
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Why a Klusterlet that is being deleted is still there.
async fn hold_up(managed: &Cluster, klusterlet: &Klusterlet) -> Result<String, Failure> {
    let since = klusterlet.metadata.annotations.as_ref().and_then(|all| all.get(annotations::EVICTION));
    if let Some(since) = since {
        return Ok(format!("the operator does not reach the managed cluster since {since}"));
    }
    Ok(match trouble(managed, Operator::Klusterlet).await? {
        None => {
            let all = klusterlet.metadata.finalizers.iter().flatten().cloned().collect::<Vec<_>>();
            format!("the operator removes the agent (finalizers {})", all.join(", "))
        }
        Some(because) => format!("the operator, which removes the agent, is not ready: {because}"),
    })
}

/// Deletes what the operator would have deleted: the agents' namespaces and their rights.
async fn by_hand(
    managed: &Cluster,
    known: &Known,
    spaces: &[(String, String)],
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    for manifest in rules::rights_of_agents(known.name()) {
        delete(managed, &manifest, DryRun::No, each).await?;
    }
    // As the operator: add-ons of a Klusterlet on another cluster are there, too. Upstream: `hasActiveKlusterletAgentNamespaces`.
    let is_shared = !observe::other_agents(managed, Some(known.name())).await?.is_empty();
    for (space, uid) in spaces.iter().filter(|(space, _)| !is_shared || space != namespaces::AGENT_ADDON) {
        remove::known(managed, &rules::namespace(space), uid, Dependents::Usual, DryRun::No).await?;
    }
    Ok(())
}

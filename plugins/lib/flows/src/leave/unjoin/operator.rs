//! The operator goes, and what only it needed.

use futures::future::join_all;
use kube::Api;
use kube::api::ListParams;
use ocm_api::Klusterlet;
use ocm_core::leave::klusterlet as rules;
use ocm_core::leave::space::Operator;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Reason};
use ocm_kube::remove::{self, Dependents};
use ocm_kube::{Cluster, apply};

use super::accounts::without_accounts;
use super::definitions::definitions;
use super::request::Departure;
use super::seen::Seen;
use crate::leave::leaving::Leaving;
use crate::leave::operator::{delete, operators_namespace, pods_gone};
use crate::observe::managed as observe;
use crate::served::or_nothing;

/// Deletes the operator, and what only it needed; none: it stays, because somebody has made another Klusterlet.
pub(super) async fn operator(
    managed: &Cluster,
    seen: &Seen,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<Option<Departure>, Failure> {
    let dry_run = leaving.dry_run;
    let stays = |name: &str, what: &str| {
        narrator.tell(Event::warning(format!("somebody has made Klusterlet {name:?} meanwhile: {what}")));
    };
    if let Some(name) = made_meanwhile(managed, dry_run).await? {
        stays(&name, "the operator stays");
        return Ok(None);
    }
    if let Some(uid) = &seen.operator {
        narrator.tell(Event::now(format!("{} the operator", leaving.verb())));
        each(&remove::known(managed, &rules::operator(), uid, Dependents::Usual, dry_run).await?);
    }
    if dry_run == DryRun::No {
        pods_gone(managed, Operator::Klusterlet, leaving, narrator).await?;
        let left = match &seen.known {
            Some(known) if known.is_hosted() => Vec::new(),
            Some(known) => vec![known.name().to_owned()],
            // A run that was killed has taken the Klusterlet away.
            None => without_accounts(managed).await?,
        };
        for klusterlet in left {
            rights_left(managed, &klusterlet, narrator, each).await?;
        }
    }
    const LEFT: &str = "what is left of the operator stays; joining the cluster again puts back what it lacks";
    if let Some(name) = made_meanwhile(managed, dry_run).await? {
        stays(&name, LEFT);
        return Ok(None);
    }
    for manifest in rules::of_operator(seen.beside_hub) {
        delete(managed, &manifest, dry_run, each).await?;
    }
    let mut departure = Departure::default();
    definitions(managed, false, seen, leaving, &mut departure, each).await?;
    if let Some(name) = made_meanwhile(managed, dry_run).await? {
        stays(&name, LEFT);
        return Ok(None);
    }
    if !seen.beside_hub {
        departure.namespace_kept = operators_namespace(managed, Operator::Klusterlet, leaving, narrator, each).await?;
    }
    Ok(Some(departure))
}

/// A Klusterlet that somebody has made since the one that was looked at is gone: it needs the operator.
async fn made_meanwhile(managed: &Cluster, dry_run: DryRun) -> Result<Option<String>, Failure> {
    if dry_run != DryRun::No {
        return Ok(None);
    }
    let api: Api<Klusterlet> = Api::all(managed.client.clone());
    let listed = api.list_metadata(&ListParams::default().limit(1)).await.map(|list| list.items);
    let found = or_nothing(listed.map_err(|error| managed.explain("list Klusterlets", error)))?;
    Ok(found.into_iter().next().and_then(|one| one.metadata.name))
}

/// Deletes the rights of the agents of a Klusterlet that is gone. Its operator has deleted them, and may have applied them once
/// more: its controllers run beside each other, each with what it has read before. It has ended now.
async fn rights_left(
    managed: &Cluster,
    klusterlet: &str,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    let is_listed = observe::other_agents(managed, None).await?.iter().any(|name| name == klusterlet);
    let all = rules::rights_of_agents(klusterlet);
    // Any of them may be what is left.
    let found = join_all(all.iter().map(|manifest| apply::read(managed, manifest))).await;
    for (manifest, found) in all.iter().zip(found) {
        let is_there = match found {
            // Whoever may not look cannot tell.
            Err(failure) if failure.reason == Reason::Forbidden => is_listed,
            found => found?.is_some(),
        };
        if !is_there {
            continue;
        }
        match delete(managed, manifest, DryRun::No, each).await {
            Err(failure) if failure.reason == Reason::Forbidden => {
                let told = format!("the operator has left {}, which you may not delete", manifest.reference());
                narrator.tell(Event::warning(told));
            }
            deleted => drop(deleted?),
        }
    }
    Ok(())
}

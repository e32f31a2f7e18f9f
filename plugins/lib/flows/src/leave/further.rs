//! The hubs besides its own that the agent of a cluster could turn to: what they hold of the cluster goes, too, with access to
//! them.

use std::sync::Arc;

use ocm_core::join::fallback;
use ocm_core::kubeconfig::HubAddress;
use ocm_core::leave::klusterlet::Known;
use ocm_core::managed::has_joined;
use ocm_core::{Applied, DryRun, Event, Failure, Narrator, Reason, Remedy};
use ocm_kube::Cluster;

use super::hub::{self, Held, detach};
use super::leaving::Leaving;
use super::unjoin::{Seen, UnjoinRequest, is_being_deleted, is_hub_at, is_passed_over};
use crate::join::are_one;
use crate::observe::managed as observe;

/// One such hub, and what it holds of the cluster.
#[derive(Clone)]
pub struct Further {
    hub: Cluster,
    held: Held,
}

/// All of them.
#[derive(Clone, Default)]
pub struct FurtherHubs {
    /// Those that the cluster is taken away from.
    pub given: Vec<Further>,
    /// The addresses of those to which there is no access, as far as they can be read.
    pub left: Vec<String>,
}

impl Further {
    /// How messages name the hub.
    pub fn label(&self) -> String {
        self.hub.label()
    }

    /// Whether it holds nothing of the cluster.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

/// The hubs that a Klusterlet lists, but for the one that its agent is at.
async fn listed(managed: &Cluster, known: &Known, at: Option<&HubAddress>) -> Result<Vec<HubAddress>, Failure> {
    let klusterlet = serde_json::to_value(&known.klusterlet)
        .map_err(|error| Failure::other("the server's answer cannot be read").because(error))?;
    let Some(listing) = fallback::listing(&klusterlet) else { return Ok(Vec::new()) };
    let all = observe::listed(managed, known.agents(), &listing).await?;
    let hubs = all.into_iter().filter_map(|one| one.kubeconfig).map(|kubeconfig| kubeconfig.hub);
    Ok(hubs.filter(|hub| at.is_none_or(|at| !at.is_at(&hub.server))).collect())
}

/// Finds out what the hubs hold that were named besides the agent's own. Nothing is deleted yet.
///
/// # Errors
/// A refusal of a hub that the agent does not turn to, or whose cluster of that name is another one; missing rights; the failure
/// of a request.
pub async fn see_further(
    managed: &Cluster,
    own: Option<&Cluster>,
    hubs: Vec<Cluster>,
    seen: &Seen,
    request: &UnjoinRequest,
    narrator: Arc<dyn Narrator>,
) -> Result<FurtherHubs, Failure> {
    let mut left = match &seen.known {
        Some(known) => listed(managed, known, seen.address.as_ref()).await?,
        None => Vec::new(),
    };
    let label = managed.label();
    let mut given = Vec::new();
    for hub in hubs {
        narrator.tell(Event::now(format!("looking at {}", hub.label())));
        if let Some(own) = own
            && are_one(own, &hub).await
        {
            return Err(Failure::usage(format!("{} and {} are one hub", own.label(), hub.label())));
        }
        let Some(name) = seen.cluster().or(request.cluster.as_deref()) else {
            if is_passed_over(&hub, seen, &label, &*narrator) {
                continue;
            }
            return Err(Failure::usage(format!("{label} does not say which cluster it is on its hubs"))
                .hint(Remedy::NameLeaving));
        };
        let mut at = None;
        for (index, address) in left.iter().enumerate() {
            if is_hub_at(&hub, address).await? {
                at = Some(index);
            }
        }
        match at {
            Some(at) => drop(left.remove(at)),
            // Without a Klusterlet nothing says which hubs it had, and of one that goes the operator takes away what says so.
            None if seen.known.as_ref().is_none_or(is_being_deleted) => {}
            None => {
                return Err(Failure::refused(format!(
                    "the agent on {label} does not turn to {}: nothing was deleted",
                    hub.label()
                ))
                .hint(Remedy::NameItsHub));
            }
        }
        let held = hub::inspect(&hub, name).await.map_err(|failure| match failure.reason {
            Reason::KindNotServed => failure.hint(Remedy::WithoutHub),
            _ => failure,
        })?;
        // The agent is at its own hub: whoever is heard of here is another one.
        if held.is_at_work() {
            return Err(Failure::refused(format!(
                "the agent of a cluster {name:?} is heard of on {}, and is not at work on {label} for that hub: nothing was deleted",
                hub.label()
            ))
            .hint("if its agent was there until now: the same command goes on when that hub has not heard of it for two minutes")
            .hint(Remedy::Detach(name.to_owned())));
        }
        // A Klusterlet can say any name: only an agent that was let in under it may have that cluster taken away.
        if let Some(known) = &seen.known
            && held.cluster.as_ref().is_some_and(has_joined)
            && observe::identity(managed, known.agents()).await?.cluster.as_deref() != Some(name)
        {
            return Err(Failure::refused(format!(
                "{} has a cluster {name:?} that has joined, and the agent on {label} was not let in under that name: it may be \
                 another one; nothing was deleted",
                hub.label()
            ))
            .hint(Remedy::Detach(name.to_owned())));
        }
        if request.leaving.dry_run == DryRun::No {
            hub::check_rights_to_detach(&hub, std::slice::from_ref(&held.name), request.leaving.force).await?;
        }
        hub::refuse(&held, request.leaving.force, &*narrator)?;
        given.push(Further { hub, held });
    }
    Ok(FurtherHubs { given, left: left.into_iter().map(|hub| hub.server).collect() })
}

/// Takes the cluster away from the hubs that its agent is not at. `each` hears of every object.
///
/// # Errors
/// As [`detach`].
pub async fn detach_further(
    all: &FurtherHubs,
    leaving: Leaving,
    narrator: &dyn Narrator,
    each: &dyn Fn(&Applied),
) -> Result<(), Failure> {
    for Further { hub, held } in all.given.iter().filter(|one| !one.is_empty()) {
        detach(hub, held, leaving, narrator, each).await.map_err(|failure| {
            let sentence = format!("cluster {:?} is not gone from {}", held.name, hub.label());
            failure.context(sentence)
        })?;
    }
    Ok(())
}

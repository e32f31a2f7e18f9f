//! Looking at clusters and deciding, without changing anything.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::Api;
use kube::api::{ListParams, PartialObjectMeta};
use ocm_api::ManagedCluster;
use ocm_api::registration::RegistrationSeen;
use ocm_core::accept::{Decision, Found, Help, Options, Refusal, decide};
use ocm_core::csr::{Code, Request};
use ocm_core::order::Collect as _;
use ocm_core::phase::{Phase, standing};
use ocm_core::{Event, Failure, Narrator};
use ocm_kube::Cluster;

use super::candidate::Candidate;
use crate::registry::{Registry, Scope, pages_of_metadata};

/// Looks at every cluster of the scope and decides, without changing anything.
///
/// With [`Scope::All`] only clusters that wait for acceptance are looked at. How the clusters were chosen at first is
/// for the caller to say, in the options; a selector of the scope is noted in those of each candidate, and holds until it
/// is let in.
///
/// # Errors
/// When the hub cannot be read.
pub async fn survey(hub: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<Candidate>, Failure> {
    let mut registry = Registry::read(hub, scope).await?;
    let names = names(&registry, scope);
    let selector = match scope {
        Scope::Selector(selector) => Some(selector.clone()),
        // Who looks again at some of them says by what they were chosen.
        Scope::Names(_) | Scope::All => options.selector.clone(),
    };
    let options = Options { selector, ..options.clone() };
    Ok(names.into_iter().map(|name| candidate(&mut registry, name, &options)).collect())
}

/// Of candidates that would be let in, refuses those that a selector has chosen whose labels do not match it any more. The hub is
/// asked after it has shown the objects: what is written then carries their versions.
///
/// # Errors
/// When the hub cannot be read.
pub(super) async fn refuse_unselected(hub: &Cluster, candidates: &mut [Candidate]) -> Result<(), Failure> {
    let acts = |candidate: &&mut Candidate| matches!(candidate.decision, Decision::Act { .. });
    let acts: Vec<&mut Candidate> = candidates.iter_mut().filter(acts).collect();
    let Some(selector) = acts.first().and_then(|candidate| candidate.options.selector.clone()) else {
        return Ok(());
    };
    let mut params = ListParams::default().labels(&selector);
    if let [only] = acts.as_slice() {
        params = params.fields(&format!("metadata.name={}", only.name));
    }
    let api: Api<ManagedCluster> = Api::all(hub.client.clone());
    let uid = |found: PartialObjectMeta<ManagedCluster>| found.metadata.uid;
    let matching = pages_of_metadata(hub, &api, params, "list managed clusters", uid).await?;
    let matching: BTreeSet<String> = matching.into_iter().collect_set();
    for candidate in acts {
        let uid = candidate.cluster.as_ref().and_then(|cluster| cluster.metadata.uid.as_ref());
        if uid.is_none_or(|uid| !matching.contains(uid)) {
            candidate.decision = Decision::Refused(Refusal {
                code: Code::NotSelected,
                detail: format!(
                    "it does not match the selector {selector:?} any more: its labels were changed, or it was removed"
                ),
                help: Some(Help::ByName(candidate.name.clone())),
                is_decided: false,
            });
        }
    }
    Ok(())
}

/// The clusters of a scope that are looked at.
pub(super) fn names(registry: &Registry, scope: &Scope) -> Vec<String> {
    match scope {
        Scope::Names(names) => names.clone(),
        Scope::Selector(_) => registry.clusters.keys().cloned().collect(),
        Scope::All => registry
            .clusters
            .iter()
            .filter(|(_, cluster)| waits_for_acceptance(cluster))
            .map(|(name, _)| name.clone())
            .collect(),
    }
}

/// Whether a cluster waits for acceptance.
pub(super) fn waits_for_acceptance(cluster: &ManagedCluster) -> bool {
    standing(cluster).phase == Phase::Pending
}

fn candidate(registry: &mut Registry, name: String, options: &Options) -> Candidate {
    decided(registry, name, options, |_| ()).0
}

/// A cluster with the decision about it, and with what is made of what was found.
pub(super) fn decided<T>(
    registry: &mut Registry,
    name: String,
    options: &Options,
    make: impl FnOnce(&Found<'_>) -> T,
) -> (Candidate, T) {
    let cluster = registry.clusters.get(&name).cloned();
    let asked = registry.requests.remove(&name).unwrap_or_default();
    let requests: Vec<&Request> = asked.iter().map(|asked| &asked.request).collect();
    let uid = cluster.as_ref().and_then(|cluster| cluster.metadata.uid.as_deref());
    let written = registry.written(&name);
    let is_own = |seen: &RegistrationSeen| seen.is_of(uid);
    let found = Found {
        cluster: cluster.as_ref(),
        namespace: registry.namespace_of(&name),
        role_created: registry.role_created(&name),
        registration: registry.registration(&name),
        accepted_before: written.and_then(|written| written.accepted_before.as_ref()).is_some_and(is_own),
        noted_keys: written.map(|written| written.keys.as_slice()).unwrap_or_default(),
        denied_before: written.and_then(|written| written.denied_before.as_ref()).is_some_and(is_own),
        requests: &requests,
        bound_accounts: &registry.bound_accounts,
        now: Some(Timestamp::now()),
    };
    let decision = decide(&name, &found, options);
    let made = make(&found);
    let (bound_accounts, unread) = (registry.bound_accounts.clone(), registry.unread.clone());
    let object = match decision {
        Decision::Act { approve: Some(index), .. } => asked.get(index).and_then(|asked| asked.object.clone()),
        _ => None,
    };
    let requests = asked.into_iter().map(|asked| asked.request).collect();
    let options = options.clone();
    (Candidate { name, cluster, requests, object, bound_accounts, unread, options, decision }, made)
}

/// Tells what nobody could look at, which is the same for all clusters, where it would have counted.
pub fn tell_unread(candidates: &[Candidate], narrator: &dyn Narrator) {
    let unread = candidates.iter().filter(|candidate| !candidate.options.reuse_name);
    if let Some(why) = unread.filter_map(|candidate| candidate.unread.as_ref()).next() {
        narrator.tell(Event::note(why));
    }
}

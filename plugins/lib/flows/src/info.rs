//! `get hub-info`, `get klusterlet-info`: what runs of Open Cluster Management on a cluster, and how it is. Only reads.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ApiResource, WatchParams};
use kube::{Api, Resource};
use ocm_api::names::{namespaces, operators};
use ocm_api::{ClusterManager, Klusterlet};
use ocm_core::info::{self, Definition, Hub, Info};
use ocm_core::install::{Live, mode};
use ocm_core::join::fallback;
use ocm_core::upgrade::rollout::Running;
use ocm_core::upgrade::{HUB_DEFINITIONS, KLUSTERLET_DEFINITIONS, hub, klusterlet};
use ocm_core::{Changed, Failure, Reason};
use ocm_kube::triggers::Triggers;
use ocm_kube::{Cluster, apply};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::observe::managed as observe;
use crate::upgrade::installed;
use crate::watch::REFUSALS;

/// The pause between two looks of a watch, where not every change is told.
const PAUSE: Duration = Duration::from_secs(2);
/// Far beyond every pause between two looks: a watch has no end of its own.
const LONGEST: Duration = Duration::from_secs(60);

/// The hubs of a cluster: one, or those that are hosted there; none where there is no ClusterManager.
///
/// # Errors
/// The failure of a request.
pub async fn hubs(cluster: &Cluster) -> Result<Vec<Info>, Failure> {
    let (managers, operator) = futures::try_join!(
        installed::all_of(cluster, ApiResource::erase::<ClusterManager>(&())),
        installed::operator(cluster, operators::CLUSTER_MANAGER),
    )?;
    if managers.is_empty() {
        return Ok(Vec::new());
    }
    let (running, definitions) =
        futures::try_join!(operator_of(cluster, operators::CLUSTER_MANAGER), definitions(cluster, HUB_DEFINITIONS))?;
    let (operator, running, definitions) = (&operator, &running, &definitions);
    try_join_all(managers.into_iter().map(async |object| {
        let manager: ClusterManager = typed(&object)?;
        let live = Live { cluster_manager: Some(object.clone()), operator: operator.clone(), nodes: None };
        let deployments = installed::running(cluster, mode::namespace_of(&manager), None).await?;
        Ok(info::of_hub(manager, object, hub::parts(&live), running.clone(), deployments, definitions.clone()))
    }))
    .await
}

/// The Klusterlets of a cluster, those of clusters that it hosts among them.
///
/// # Errors
/// The failure of a request.
pub async fn klusterlets(cluster: &Cluster) -> Result<Vec<Info>, Failure> {
    let (klusterlets, operator) = futures::try_join!(
        installed::all_of(cluster, ApiResource::erase::<Klusterlet>(&())),
        installed::operator(cluster, operators::KLUSTERLET),
    )?;
    if klusterlets.is_empty() {
        return Ok(Vec::new());
    }
    let (running, definitions) =
        futures::try_join!(operator_of(cluster, operators::KLUSTERLET), definitions(cluster, KLUSTERLET_DEFINITIONS))?;
    let (operator, running, definitions) = (&operator, &running, &definitions);
    try_join_all(klusterlets.into_iter().map(async |object| {
        let typed: Klusterlet = typed(&object)?;
        let parts = klusterlet::parts(&object, operator.as_ref());
        let namespace = info::namespace_of_agents(&typed);
        let agents = installed::running(cluster, &namespace, Some(&typed.agents())).await?;
        let hubs = hubs_of(cluster, &namespace, &object).await?;
        let info = info::of_klusterlet(&typed, object, parts, running.clone(), agents, definitions.clone());
        Ok(Info { hubs, ..info })
    }))
    .await
}

/// What changes of the [`hubs`] of a cluster: all of them first, and then each whenever anything of it differs.
pub fn watch_hubs(cluster: &Cluster) -> impl Stream<Item = Result<Changed<Info>, Failure>> {
    reads(watched::<ClusterManager>(cluster), move || hubs(cluster))
}

/// What changes of the [`klusterlets`] of a cluster, as [`watch_hubs`] tells of hubs.
pub fn watch_klusterlets(cluster: &Cluster) -> impl Stream<Item = Result<Changed<Info>, Failure>> {
    reads(watched::<Klusterlet>(cluster), move || klusterlets(cluster))
}

/// What has a watch look again at once. Why pods are not ready is seen with the next look.
fn watched<K: Resource<DynamicType = ()>>(cluster: &Cluster) -> Triggers {
    let operators: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespaces::OPERATOR);
    Triggers::default()
        .of(Api::<K>::all(cluster.client.clone()), WatchParams::default())
        .of(operators, WatchParams::default())
}

/// Looks again and again, and tells what differs. What passes by itself, like a lost connection, is told once.
fn reads<F>(triggers: Triggers, read: impl Fn() -> F) -> impl Stream<Item = Result<Changed<Info>, Failure>>
where
    F: Future<Output = Result<Vec<Info>, Failure>>,
{
    let told = stream::unfold((Seen::default(), triggers, read), async |(mut seen, mut triggers, read)| {
        if seen.has_ended {
            return None;
        }
        if seen.has_read {
            triggers.wait(PAUSE, Instant::now() + LONGEST).await;
        }
        let found = read().await;
        Some((stream::iter(seen.take(found)), (seen, triggers, read)))
    });
    told.flatten()
}

/// What a watch has told.
#[derive(Default)]
struct Seen {
    /// By name.
    known: BTreeMap<String, Info>,
    has_read: bool,
    has_listed: bool,
    lost: bool,
    /// How often the cluster has refused since it was lost: it may have its roles again only after a while.
    refused: u32,
    has_ended: bool,
}

impl Seen {
    /// What is news of an answer.
    fn take(&mut self, found: Result<Vec<Info>, Failure>) -> Vec<Result<Changed<Info>, Failure>> {
        self.has_read = true;
        let found = match found {
            Ok(found) => found,
            Err(failure) if self.passes(&failure) => {
                let is_known = std::mem::replace(&mut self.lost, true);
                return if is_known { Vec::new() } else { vec![Ok(Changed::Lost(failure))] };
            }
            Err(failure) => {
                self.has_ended = true;
                return vec![Err(failure)];
            }
        };
        self.refused = 0;
        let back = std::mem::take(&mut self.lost).then_some(Changed::Back);
        let mut before = std::mem::take(&mut self.known);
        let mut news = Vec::new();
        for info in found {
            if before.remove(info.name()).as_ref() != Some(&info) {
                news.push(Changed::Now(info.clone()));
            }
            self.known.insert(info.name().to_owned(), info);
        }
        let gone = before.into_values().map(Changed::Gone);
        let listed = (!std::mem::replace(&mut self.has_listed, true)).then_some(Changed::Listed);
        back.into_iter().chain(news).chain(gone).chain(listed).map(Ok).collect()
    }

    fn passes(&mut self, failure: &Failure) -> bool {
        let is_refusal = matches!(failure.reason, Reason::Forbidden | Reason::Unauthorized);
        self.refused += u32::from(is_refusal);
        failure.reason.is_transient()
            || failure.reason == Reason::Other
            || (self.lost && is_refusal && self.refused <= REFUSALS)
    }
}

/// The hubs that an agent turns to; none where it has one. Who may not read its Secrets sees their names.
async fn hubs_of(cluster: &Cluster, namespace: &str, klusterlet: &Value) -> Result<Vec<Hub>, Failure> {
    let Some(listing) = fallback::listing(klusterlet) else { return Ok(Vec::new()) };
    let (listed, identity) =
        futures::join!(observe::listed(cluster, namespace, &listing), observe::identity(cluster, namespace));
    let identity = match identity {
        Ok(identity) => Some(identity),
        Err(failure) if failure.reason == Reason::Forbidden => None,
        Err(failure) => return Err(failure),
    };
    Ok(info::hubs(&listed?, identity.as_ref().map(|identity| identity.hub.as_ref())))
}

fn typed<T: DeserializeOwned>(object: &Value) -> Result<T, Failure> {
    T::deserialize(object).map_err(|error| Failure::other("the server's answer cannot be read").because(error))
}

/// How the operator of this name is; none where it is not there.
async fn operator_of(cluster: &Cluster, name: &str) -> Result<Option<Running>, Failure> {
    Ok(installed::running(cluster, namespaces::OPERATOR, Some(&[name.to_owned()])).await?.pop())
}

/// The definitions that are there, of those of a table.
async fn definitions(cluster: &Cluster, rows: &[(&'static str, &[&str])]) -> Result<Vec<Definition>, Failure> {
    let each = rows.iter().map(async |(name, _)| {
        let found = apply::read(cluster, &installed::definition(name)).await?;
        Ok::<_, Failure>(found.map(|found| Definition::read(name, &found)))
    });
    Ok(try_join_all(each).await?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use ocm_core::upgrade::Parts;
    use serde_json::json;

    use super::*;

    fn info(name: &str, generation: u32) -> Info {
        Info {
            kind: "Klusterlet",
            object: json!({"metadata": {"name": name, "generation": generation}}),
            parts: Parts::default(),
            deployments: Vec::new(),
            conditions: Vec::new(),
            gates: Vec::new(),
            drivers: Vec::new(),
            hubs: Vec::new(),
            definitions: Vec::new(),
            missing: Vec::new(),
        }
    }

    fn told(seen: &mut Seen, found: Result<Vec<Info>, Failure>) -> Vec<String> {
        let word = |told: Result<Changed<Info>, Failure>| match told {
            Ok(Changed::Now(info)) => format!("now {}", info.name()),
            Ok(Changed::Gone(info)) => format!("gone {}", info.name()),
            Ok(Changed::Listed) => "listed".to_owned(),
            Ok(Changed::Lost(_)) => "lost".to_owned(),
            Ok(Changed::Back) => "back".to_owned(),
            Err(_) => "ended".to_owned(),
        };
        seen.take(found).into_iter().map(word).collect()
    }

    fn fails(reason: Reason) -> Result<Vec<Info>, Failure> {
        Err(Failure::new(reason, "x"))
    }

    #[test]
    fn a_watch_tells_what_differs_and_a_loss_once() {
        let mut seen = Seen::default();
        assert_eq!(told(&mut seen, fails(Reason::Unreachable)), ["lost"]);
        let both = [info("a", 1), info("b", 1)];
        assert_eq!(told(&mut seen, Ok(both.to_vec())), ["back", "now a", "now b", "listed"]);
        assert_eq!(told(&mut seen, Ok(both.to_vec())), [""; 0]);
        assert_eq!(told(&mut seen, Ok(vec![info("a", 2), info("b", 1)])), ["now a"]);
        assert_eq!(told(&mut seen, fails(Reason::Busy)), ["lost"]);
        // A cluster that starts again may not have its roles at once.
        assert_eq!(told(&mut seen, fails(Reason::Forbidden)), [""; 0]);
        assert_eq!(told(&mut seen, Ok(vec![info("b", 1)])), ["back", "gone a"]);
        assert!(!seen.has_ended);
        assert_eq!(told(&mut seen, fails(Reason::Forbidden)), ["ended"]);
        assert!(seen.has_ended);
    }

    #[tokio::test]
    async fn a_watch_ends_with_the_first_refusal() {
        let told: Vec<_> = reads(Triggers::default(), async || fails(Reason::Forbidden)).collect().await;
        assert!(matches!(told.as_slice(), [Err(failure)] if failure.reason == Reason::Forbidden), "{told:?}");
    }
}

//! Follows the HubPolicies of a hub.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use ocm_api::policy::HubPolicy;

use super::{Policies, Wanted};

/// Changes that come together are applied together.
const TOGETHER: Duration = Duration::from_millis(30);
/// How often what policies refer to, such as ConfigMaps, is looked at again.
const AGAIN: Duration = Duration::from_secs(10);

/// Keeps in force what the HubPolicies say, until it is dropped. While they cannot be read, what is in force stays.
/// `tell` hears why they cannot.
pub async fn follow(client: Client, policies: Arc<Policies>, tell: impl Fn(String)) {
    let api: Api<HubPolicy> = Api::all(client);
    let mut events = Box::pin(watcher(api, watcher::Config::default()).default_backoff());
    let mut known: BTreeMap<String, Wanted> = BTreeMap::new();
    let mut coming = BTreeMap::new();
    let (mut is_read, mut told) = (false, String::new());
    // When what is wanted is applied the next time.
    let mut next: Option<tokio::time::Instant> = None;
    loop {
        let due = async {
            match next {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = events.next() => {
                let wanted = |policy: &HubPolicy| (policy.metadata.name.clone().unwrap_or_default(), Wanted::of(policy));
                match event {
                    Some(Ok(Event::Init)) => coming = BTreeMap::new(),
                    Some(Ok(Event::InitApply(policy))) => drop(coming.insert(wanted(&policy).0, wanted(&policy).1)),
                    Some(Ok(Event::InitDone)) => {
                        known = std::mem::take(&mut coming);
                        is_read = true;
                    }
                    Some(Ok(Event::Apply(policy))) => drop(known.insert(wanted(&policy).0, wanted(&policy).1)),
                    Some(Ok(Event::Delete(policy))) => drop(known.remove(&wanted(&policy).0)),
                    Some(Err(error)) => {
                        let why = format!("the policies of the hub cannot be read: {error}");
                        // Once for each reason: a hub that is away is away for long.
                        if why != told {
                            tell(why.clone());
                            told = why;
                        }
                        continue;
                    }
                    None => return,
                }
                told.clear();
                if is_read {
                    next = Some(tokio::time::Instant::now() + TOGETHER);
                }
            }
            () = due => {
                let wanted: Vec<Wanted> = known.values().cloned().collect();
                policies.apply(&wanted).await;
                next = Some(tokio::time::Instant::now() + AGAIN);
            }
        }
    }
}

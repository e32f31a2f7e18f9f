//! Follows the HubPolicies of a hub.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use ocm_api::HubPolicy;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::{Policies, Wanted};
use crate::watch::{self, Change, Sink, Unserved};

/// Changes that come together are applied together.
const TOGETHER: Duration = Duration::from_millis(30);
/// How often what policies refer to, such as ConfigMaps, is looked at again.
const AGAIN: Duration = Duration::from_secs(10);
/// How often it is looked whether modules were fetched that are waited for.
const FETCHED: Duration = Duration::from_secs(2);

/// Keeps in force what the HubPolicies say, until it is dropped. While they cannot be read, what is in force stays.
/// `tell` hears why they cannot.
pub async fn follow(client: Client, policies: Arc<Policies>, tell: impl Fn(String)) {
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::erase::<HubPolicy>(&()));
    let (sender, mut changes) = unbounded_channel();
    let following = watch::follow(api, None, Unserved::Lost, &sender);
    let applying = async {
        let (mut known, mut coming) = (Known::default(), Known::default());
        let (mut is_read, mut told) = (false, String::new());
        // When what is wanted is applied the next time, and when it is looked again for modules that are waited for.
        let (mut next, mut look): (Option<Instant>, Option<Instant>) = (None, None);
        // What is being applied: a module may take minutes to be compiled, and what is wanted may change meanwhile.
        let mut work: Option<BoxFuture<'static, ()>> = None;
        loop {
            let soonest = next.into_iter().chain(look).min();
            let is_idle = work.is_none();
            let due = async {
                match soonest {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            let done = async {
                match &mut work {
                    Some(work) => work.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                change = changes.recv() => {
                    match change {
                        None => return,
                        // Of a list that may fail nothing is known yet.
                        Some(Change::Begun) => {
                            coming = Known::default();
                            continue;
                        }
                        Some(Change::Listed(object)) => {
                            coming.note(object);
                            continue;
                        }
                        Some(Change::Complete(_)) => (known, is_read) = (std::mem::take(&mut coming), true),
                        Some(Change::Now(object)) => known.note(object),
                        Some(Change::Gone(object)) => known.forget(&object),
                        Some(Change::Confirmed) => {
                            policies.confirm();
                            continue;
                        }
                        Some(Change::Lost(why)) => {
                            let why = format!("the policies of the hub cannot be read: {why}");
                            // Once for each reason: a hub that is away is away for long.
                            if why != told {
                                tell(why.clone());
                                told = why;
                            }
                            continue;
                        }
                    }
                    policies.confirm();
                    told.clear();
                    let soon = Instant::now() + TOGETHER;
                    next = Some(next.map_or(soon, |next| next.min(soon)));
                    if !is_idle {
                        policies.tighten(&known.all());
                    }
                }
                () = done => {
                    work = None;
                    next = next.or_else(|| is_read.then(|| Instant::now() + AGAIN));
                    look = policies.awaits_modules().then(|| Instant::now() + FETCHED);
                }
                () = due, if is_idle => {
                    let (policies, wanted) = (policies.clone(), known.all());
                    look = None;
                    let is_all = next.is_some_and(|next| next <= Instant::now());
                    if is_all {
                        next = None;
                    }
                    work = Some(Box::pin(async move {
                        match is_all {
                            true => policies.apply(&wanted).await,
                            false => policies.apply_fetched(&wanted).await,
                        }
                    }));
                }
            }
        }
    };
    tokio::select! {
        () = following => {}
        () = applying => {}
    }
}

/// What is wanted, by name.
#[derive(Default)]
struct Known(BTreeMap<String, Wanted>);

impl Known {
    /// Takes what an object says. One that cannot be read is a policy that cannot be loaded, which lets nothing pass.
    fn note(&mut self, object: serde_json::Value) {
        let name = name_of(&object);
        let wanted = ocm_api::member::from_value(object)
            .map_or_else(|_| Wanted::unreadable(&name), |policy| Wanted::of(&policy));
        self.0.insert(name, wanted);
    }

    fn all(&self) -> Vec<Wanted> {
        self.0.values().cloned().collect()
    }

    fn forget(&mut self, object: &serde_json::Value) {
        self.0.remove(&name_of(object));
    }
}

fn name_of(object: &serde_json::Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

impl Sink for UnboundedSender<Change> {
    fn take(&self, change: Change) {
        // Whoever hears of it ends together with whoever tells.
        let _ = self.send(change);
    }
}

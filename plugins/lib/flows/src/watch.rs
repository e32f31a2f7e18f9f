//! What changes on a hub, told as it happens; interruptions are bridged.

use std::collections::{BTreeMap, BTreeSet};

use futures::{Stream, StreamExt};
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event as Change, watcher};
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, explain};
use serde::de::DeserializeOwned;

/// One thing that a watch finds.
#[derive(Clone, Debug)]
pub enum Changed<T> {
    /// It is new or has changed.
    Now(T),
    /// It is gone.
    Gone(T),
    /// All that there are have been found.
    Listed,
    /// The hub cannot be watched at the moment; the watch goes on trying. Once for each interruption.
    Lost(Failure),
    /// It can be watched again.
    Back,
}

impl<T> Changed<T> {
    /// The same of something else.
    pub(crate) fn map<U>(self, row: impl FnOnce(T) -> U) -> Changed<U> {
        match self {
            Self::Now(seen) => Changed::Now(row(seen)),
            Self::Gone(seen) => Changed::Gone(row(seen)),
            Self::Listed => Changed::Listed,
            Self::Lost(failure) => Changed::Lost(failure),
            Self::Back => Changed::Back,
        }
    }
}

/// Follows a kind. What passes by itself, like a lost connection, is retried with growing pauses.
pub(crate) fn changes<K, T>(
    hub: &Cluster,
    config: watcher::Config,
    row: fn(K) -> T,
) -> impl Stream<Item = Result<Changed<T>, Failure>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<K> = Api::all(hub.client.clone());
    let label = hub.label();
    let mut known = Known::default();
    watcher(api, config).default_backoff().flat_map(move |event| {
        let found = match event {
            Ok(event) => known.take(event),
            Err(error) => known.lose(error, &label).into_iter().collect(),
        };
        futures::stream::iter(found.into_iter().map(move |change| change.map(|change| change.map(row))))
    })
}

/// How often in a row a hub that was lost may refuse what it allowed before; with growing pauses, about half a minute.
const REFUSALS: u32 = 5;

/// What was shown already: a watch that begins again lists everything anew, and only what differs is news.
struct Known<K> {
    objects: BTreeMap<String, K>,
    /// The names of a list that is under way.
    listed: Option<BTreeSet<String>>,
    lost: bool,
    /// How often the hub has refused since it was lost.
    refused: u32,
}

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), listed: None, lost: false, refused: 0 }
    }
}

impl<K: kube::Resource + Clone> Known<K> {
    fn take(&mut self, event: Change<K>) -> Vec<Result<Changed<K>, Failure>> {
        let mut found = Vec::new();
        // The beginning of a list is announced before anything was read.
        if !matches!(event, Change::Init) && std::mem::take(&mut self.lost) {
            self.refused = 0;
            found.push(Changed::Back);
        }
        match event {
            Change::Init => self.listed = Some(BTreeSet::new()),
            Change::InitApply(object) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name_of(&object));
                }
                found.extend(self.news(object));
            }
            Change::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                let gone = self.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect::<Vec<_>>();
                found.extend(gone.iter().filter_map(|name| self.objects.remove(name)).map(Changed::Gone));
                found.push(Changed::Listed);
            }
            Change::Apply(object) => found.extend(self.news(object)),
            Change::Delete(object) => {
                self.objects.remove(&name_of(&object));
                found.push(Changed::Gone(object));
            }
        }
        found.into_iter().map(Ok).collect()
    }

    fn news(&mut self, object: K) -> Option<Changed<K>> {
        let before = self.objects.insert(name_of(&object), object.clone());
        let same = before.is_some_and(|before| {
            before.meta().uid == object.meta().uid && before.meta().resource_version == object.meta().resource_version
        });
        (!same).then_some(Changed::Now(object))
    }

    /// An error that does not pass ends the watch; one that may is told once.
    fn lose(&mut self, error: watcher::Error, label: &str) -> Option<Result<Changed<K>, Failure>> {
        let failure = match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => explain(&error),
            watcher::Error::WatchError(status) => explain(&kube::Error::Api(status)),
            other => Failure::other(other.to_string()),
        };
        let mut passes = failure.reason.is_transient() || failure.reason == Reason::Other;
        // An API server that starts again refuses everybody until it has read the roles.
        if self.lost && failure.reason == Reason::Forbidden && self.refused < REFUSALS {
            self.refused += 1;
            passes = true;
        }
        let failure = failure.context(format!("cannot watch ({label})"));
        match (passes, std::mem::replace(&mut self.lost, true)) {
            (false, _) => Some(Err(failure)),
            (true, false) => Some(Ok(Changed::Lost(failure))),
            (true, true) => None,
        }
    }
}

fn name_of(object: &impl kube::Resource) -> String {
    object.meta().name.clone().unwrap_or_default()
}

//! What changes on a hub, told as it happens; interruptions are bridged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event as Change, watcher};
pub use ocm_core::Changed;
use ocm_core::{Failure, Reason};
use ocm_kube::{Cluster, explain};
use serde::de::DeserializeOwned;

/// Follows a kind. What passes by itself, like a lost connection, is retried with growing pauses. Of each object, what
/// `gone` makes of it is kept, to tell of it when it is gone.
pub(crate) fn changes<K, T, G: Clone>(
    hub: &Cluster,
    config: watcher::Config,
    now: fn(K) -> T,
    gone: fn(&K) -> G,
) -> impl Stream<Item = Result<Changed<T, G>, Failure>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    changes_in(hub, Api::all(hub.client.clone()), config, now, gone)
}

/// The same of what this API reaches, which may be one namespace.
pub(crate) fn changes_in<K, T, G: Clone>(
    hub: &Cluster,
    api: Api<K>,
    config: watcher::Config,
    now: fn(K) -> T,
    gone: fn(&K) -> G,
) -> impl Stream<Item = Result<Changed<T, G>, Failure>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let label = hub.label();
    let mut known = Known::new(gone);
    // That a list begins is told before anything was read: for the pauses it would be a success, and they would never grow.
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = has_begun.clone();
    let answers = watcher(api, config).filter(move |event| {
        let is_begin = matches!(event, Ok(Change::Init));
        begins.fetch_or(is_begin, Ordering::Relaxed);
        std::future::ready(!is_begin)
    });
    answers.default_backoff().flat_map(move |event| {
        if has_begun.swap(false, Ordering::Relaxed) {
            known.begin();
        }
        let found = match event {
            Ok(event) => known.take(event),
            Err(error) => known.lose(error, &label).into_iter().collect(),
        };
        futures::stream::iter(found.into_iter().map(move |change| change.map(|change| change.map(now, |gone| gone))))
    })
}

/// Several watches as one: that the hub is lost, or back, is told once for all of them, and [`Changed::Listed`] when each has told
/// all that there is.
pub(crate) fn together<'w, T: Send + 'w, G: Send + 'w>(
    watches: Vec<BoxStream<'w, Result<Changed<T, G>, Failure>>>,
) -> impl Stream<Item = Result<Changed<T, G>, Failure>> {
    let number = watches.len();
    let (mut listed, mut lost) = (BTreeSet::new(), BTreeSet::new());
    let of = |(watch, changes): (usize, BoxStream<'w, _>)| changes.map(move |change| (watch, change)).boxed();
    let all = futures::stream::select_all(watches.into_iter().enumerate().map(of));
    all.filter_map(move |(watch, change)| {
        let tells = match &change {
            Ok(Changed::Listed) => listed.insert(watch) && listed.len() == number,
            Ok(Changed::Lost(_)) => lost.insert(watch) && lost.len() == 1,
            Ok(Changed::Back) => lost.remove(&watch) && lost.is_empty(),
            Ok(Changed::Now(_) | Changed::Gone(_)) | Err(_) => true,
        };
        std::future::ready(tells.then_some(change))
    })
}

/// How often in a row a hub that was lost may refuse what it allowed before; with growing pauses, about half a minute.
pub(crate) const REFUSALS: u32 = 5;

/// What was shown already: a watch that begins again lists everything anew, and only what differs is news.
struct Known<K, G> {
    /// By name: UID, resource version, and what is told when it is gone.
    objects: BTreeMap<String, (Version, G)>,
    gone: fn(&K) -> G,
    /// The names of a list that is under way.
    listed: Option<BTreeSet<String>>,
    lost: bool,
    /// How often the hub has refused since it was lost.
    refused: u32,
}

/// UID and resource version.
type Version = (Option<String>, Option<String>);

impl<K: kube::Resource, G> Known<K, G> {
    fn new(gone: fn(&K) -> G) -> Self {
        Self { objects: BTreeMap::new(), gone, listed: None, lost: false, refused: 0 }
    }

    /// A list begins.
    fn begin(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    fn take(&mut self, event: Change<K>) -> Vec<Result<Changed<K, G>, Failure>> {
        let mut found = Vec::new();
        if !matches!(event, Change::Init) && std::mem::take(&mut self.lost) {
            self.refused = 0;
            found.push(Changed::Back);
        }
        match event {
            Change::Init => self.begin(),
            Change::InitApply(object) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name_of(&object));
                }
                found.extend(self.news(object));
            }
            Change::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                let gone = self.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect::<Vec<_>>();
                found.extend(
                    gone.iter().filter_map(|name| self.objects.remove(name)).map(|(_, gone)| Changed::Gone(gone)),
                );
                found.push(Changed::Listed);
            }
            Change::Apply(object) => found.extend(self.news(object)),
            Change::Delete(object) => {
                self.objects.remove(&name_of(&object));
                found.push(Changed::Gone((self.gone)(&object)));
            }
        }
        found.into_iter().map(Ok).collect()
    }

    fn news(&mut self, object: K) -> Option<Changed<K, G>> {
        let version = (object.meta().uid.clone(), object.meta().resource_version.clone());
        let before = self.objects.insert(name_of(&object), (version.clone(), (self.gone)(&object)));
        let same = before.is_some_and(|(before, _)| before == version);
        (!same).then_some(Changed::Now(object))
    }

    /// An error that does not pass ends the watch; one that may is told once.
    fn lose(&mut self, error: watcher::Error, label: &str) -> Option<Result<Changed<K, G>, Failure>> {
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

/// The name, with that of the namespace before it where there is one.
fn name_of(object: &impl kube::Resource) -> String {
    let (namespace, name) = (object.meta().namespace.as_deref(), object.meta().name.as_deref().unwrap_or_default());
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn several_watches_tell_as_one() {
        let lost = || Ok(Changed::Lost(Failure::other("away")));
        let watch = |changes: Vec<Result<Changed<u8, u8>, Failure>>| futures::stream::iter(changes).boxed();
        let found: Vec<_> = together(vec![
            watch(vec![Ok(Changed::Now(1)), Ok(Changed::Listed), lost(), Ok(Changed::Back), Ok(Changed::Gone(1))]),
            watch(vec![Ok(Changed::Now(2)), Ok(Changed::Listed), lost(), Ok(Changed::Back), Err(Failure::other("no"))]),
        ])
        .map(|change| match change {
            Ok(Changed::Now(one)) => format!("+{one}"),
            Ok(Changed::Gone(one)) => format!("-{one}"),
            Ok(Changed::Listed) => "listed".to_owned(),
            Ok(Changed::Lost(_)) => "lost".to_owned(),
            Ok(Changed::Back) => "back".to_owned(),
            Err(_) => "ended".to_owned(),
        })
        .collect()
        .await;
        let at = |word: &str| found.iter().position(|one| one == word).expect(word);
        let times = |word: &str| found.iter().filter(|one| *one == word).count();
        for word in ["listed", "lost", "back"] {
            assert_eq!(times(word), 1, "{found:?}");
        }
        assert!(at("+1").max(at("+2")) < at("listed") && at("lost") < at("back"), "{found:?}");
        assert!(found.contains(&"-1".to_owned()) && found.contains(&"ended".to_owned()), "{found:?}");
    }
}

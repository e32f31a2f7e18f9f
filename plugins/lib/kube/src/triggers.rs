//! Watches that trigger the next check of a wait: it need not ask all the time. What changed is not told; that is for
//! the watch of a flow.

use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{self, BoxStream, SelectAll, Stream, StreamExt as _, TryStreamExt as _};
use kube::api::{DynamicObject, WatchParams};
use kube::core::{PartialObjectMeta, Request};
use kube::{Api, Client, Resource};
use ocm_core::Reason;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::explain;

/// Changes that come together are observed together.
const TOGETHER: Duration = Duration::from_millis(150);
/// The pause while every change is told. What it is about may still depend on more than what is watched, such as the
/// reasons of pods.
const WATCHED: Duration = Duration::from_secs(5);
/// How long after its end a watch is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// Watches of the objects that a wait depends on.
///
/// A watch only says when to observe again. One that may not be made, or ends, is no error: as long as one is missing the
/// pauses are short.
#[derive(Default)]
pub struct Triggers {
    watches: SelectAll<BoxStream<'static, Told>>,
    /// How many watches there should be.
    wanted: usize,
    /// How many there are.
    standing: usize,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// From now on it tells every change.
    Begun,
    /// An object is there, has changed, or is gone.
    Changed,
    /// It tells nothing more until it begins again.
    Ended,
}

impl Triggers {
    /// Watches objects too, of a kind or, with a field selector, a single one.
    #[must_use]
    pub fn of<K: Resource>(mut self, api: Api<K>, params: WatchParams) -> Self {
        let url = api.resource_url().to_owned();
        self.add(watch(api.into_client(), url, params));
        self
    }

    /// Watches what the other one watches too.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.watches.extend(other.watches);
        self.wanted += other.wanted;
        self.standing += other.standing;
        self
    }

    fn add(&mut self, watch: impl Stream<Item = Told> + Send + 'static) {
        self.watches.push(watch.boxed());
        self.wanted += 1;
    }

    /// Whether every change is told.
    fn is_complete(&self) -> bool {
        self.wanted > 0 && self.standing == self.wanted
    }

    fn note(&mut self, told: Told) -> bool {
        match told {
            Told::Begun => self.standing += 1,
            Told::Ended => self.standing = self.standing.saturating_sub(1),
            Told::Changed => return true,
        }
        false
    }

    /// Waits for a change: at the longest for `pause`, or longer where every change is told, and never past `latest`.
    pub async fn wait(&mut self, pause: Duration, latest: Instant) {
        self.until(pause, WATCHED, latest).await;
    }

    /// Waits for a change, at the longest for `pause`: what the wait depends on cannot be watched.
    pub async fn wait_briefly(&mut self, pause: Duration, latest: Instant) {
        self.until(pause, pause, latest).await;
    }

    async fn until(&mut self, pause: Duration, watched: Duration, latest: Instant) {
        let begun = Instant::now();
        let mut end;
        loop {
            end = latest.min(begun + if self.is_complete() { watched.max(pause) } else { pause });
            let told = async {
                match self.watches.next().await {
                    Some(told) => told,
                    None => std::future::pending().await,
                }
            };
            match timeout_at(end, told).await {
                Ok(told) if self.note(told) => break,
                Ok(_) => {}
                Err(_) => return,
            }
        }
        sleep_until(end.min(Instant::now() + TOGETHER)).await;
        while let Some(Some(told)) = self.watches.next().now_or_never() {
            self.note(told);
        }
    }
}

/// One watch, made again when it ends; not where it may not be made. It is the same for every kind: what is there, and
/// not what it is, counts.
fn watch(client: Client, url: String, params: WatchParams) -> impl Stream<Item = Told> + Send + 'static {
    let watches = stream::unfold((client, url, params, false), |(client, url, params, again)| async move {
        if again {
            sleep(AGAIN).await;
        }
        let told = match events(&client, &url, &params).await {
            Ok(told) => told,
            Err(error) if explain(&error).reason == Reason::Forbidden => return None,
            Err(_) => stream::empty().boxed(),
        };
        Some((told, (client, url, params, true)))
    });
    watches.flatten()
}

async fn events(client: &Client, url: &str, params: &WatchParams) -> kube::Result<BoxStream<'static, Told>> {
    // Whatever is there is told first, so nothing is missed that came about since it was observed last.
    let request = Request::new(url).watch_metadata(params, "0").map_err(kube::Error::BuildRequest)?;
    let events = client.request_events::<PartialObjectMeta<DynamicObject>>(request).await?.into_stream();
    let changes = events.map(|event| event.is_ok()).take_while(|told| std::future::ready(*told)).map(|_| Told::Changed);
    Ok(stream::iter([Told::Begun]).chain(changes).chain(stream::iter([Told::Ended])).boxed())
}

/// The parameters of a watch of the one object of this name.
pub fn named(name: &str) -> WatchParams {
    WatchParams::default().fields(&format!("metadata.name={name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers(told: &[Told]) -> Triggers {
        let mut triggers = Triggers::default();
        triggers.add(stream::iter(told.to_vec()).chain(stream::pending()));
        triggers
    }

    // Far apart, and far from what belongs together: a busy machine lets everybody wait.
    const PAUSE: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(3);

    /// Whether the pause is over before the short one, after that, or after the long one.
    async fn waited(triggers: &mut Triggers) -> &'static str {
        let begun = Instant::now();
        triggers.until(PAUSE, LONG, begun + Duration::from_secs(3600)).await;
        match begun.elapsed() {
            elapsed if elapsed < PAUSE => "changed",
            elapsed if elapsed < LONG => "short",
            _ => "long",
        }
    }

    #[tokio::test]
    async fn a_change_ends_the_pause_and_those_beside_it_do_not_end_the_next() {
        let mut triggers = triggers(&[Told::Begun, Told::Changed, Told::Changed, Told::Changed]);
        assert_eq!(waited(&mut triggers).await, "changed");
        assert_eq!(waited(&mut triggers).await, "long");
    }

    #[tokio::test]
    async fn the_pause_is_long_only_while_every_change_is_told() {
        assert_eq!(waited(&mut triggers(&[Told::Begun])).await, "long");
        for told in [&[][..], &[Told::Begun, Told::Ended]] {
            assert_eq!(waited(&mut triggers(told)).await, "short", "{told:?}");
        }
        assert_eq!(waited(&mut Triggers::default()).await, "short");
        assert_eq!(waited(&mut triggers(&[Told::Begun]).and(triggers(&[]))).await, "short");
        assert_eq!(waited(&mut triggers(&[Told::Begun]).and(triggers(&[Told::Begun]))).await, "long");
    }

    #[tokio::test]
    async fn what_cannot_be_watched_is_asked_for_in_short_pauses() {
        let begun = Instant::now();
        triggers(&[Told::Begun]).wait_briefly(PAUSE, begun + WATCHED).await;
        assert!(begun.elapsed() < WATCHED);
    }

    #[tokio::test]
    async fn no_pause_goes_past_the_end() {
        let begun = Instant::now();
        triggers(&[Told::Begun]).wait(LONG, begun + PAUSE).await;
        assert!(begun.elapsed() < LONG);
    }
}

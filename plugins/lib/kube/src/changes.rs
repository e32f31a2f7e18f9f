//! Changes of objects that a wait looks at: they wake it, so that it need not ask all the time.

use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{BoxStream, SelectAll, StreamExt as _};
use kube::Api;
use kube::api::WatchParams;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// Changes that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(60);

/// Watches of the objects that a wait depends on.
///
/// A watch only says when to look. One that may not be made, or ends, is no error: what it would have told is found a
/// pause later.
#[derive(Default)]
pub struct Changes {
    watches: SelectAll<BoxStream<'static, ()>>,
}

impl Changes {
    /// Watches objects too, of a kind or, with a field selector, a single one.
    #[must_use]
    pub fn of<K>(mut self, api: Api<K>, params: WatchParams) -> Self
    where
        K: Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let watch = async move {
            // Whatever is there is told first, so nothing is missed that came about since the last look.
            match api.watch_metadata(&params, "0").await {
                Ok(events) => events.take_while(|event| std::future::ready(event.is_ok())).map(|_| ()).boxed(),
                Err(_) => futures::stream::empty().boxed(),
            }
        };
        self.watches.push(watch.into_stream().flatten().boxed());
        self
    }

    /// Waits for a change, at the longest for `pause`.
    pub async fn wait(&mut self, pause: Duration) {
        let end = Instant::now() + pause;
        let changed = async {
            if self.watches.next().await.is_none() {
                std::future::pending::<()>().await;
            }
        };
        if tokio::time::timeout_at(end, changed).await.is_err() {
            return;
        }
        tokio::time::sleep_until(end.min(Instant::now() + TOGETHER)).await;
        while let Some(Some(())) = self.watches.next().now_or_never() {}
    }
}

/// The parameters of a watch of the one object of this name.
pub fn named(name: &str) -> WatchParams {
    WatchParams::default().fields(&format!("metadata.name={name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(stream: impl futures::Stream<Item = ()> + Send + 'static) -> Changes {
        let mut changes = Changes::default();
        changes.watches.push(stream.boxed());
        changes
    }

    /// Far longer than a test runs.
    const LONG: Duration = Duration::from_secs(3600);

    async fn goes_on(changes: &mut Changes) -> bool {
        tokio::time::timeout(TOGETHER * 3, changes.wait(LONG)).await.is_err()
    }

    #[tokio::test]
    async fn a_change_ends_the_pause_and_those_beside_it_do_not_end_the_next() {
        let mut changes = changes(futures::stream::iter([(), (), ()]).chain(futures::stream::pending()));
        changes.wait(LONG).await;
        assert!(goes_on(&mut changes).await);
    }

    #[tokio::test]
    async fn a_watch_that_ends_leaves_the_pause() {
        for mut changes in [changes(futures::stream::empty()), Changes::default()] {
            assert!(goes_on(&mut changes).await);
            changes.wait(Duration::from_millis(1)).await;
        }
    }
}

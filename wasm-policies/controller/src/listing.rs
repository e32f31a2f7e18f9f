//! Which certificate requests the hub holds of a cluster, asked for all clusters at once that want to know: for every such
//! question the hub looks at each request that it has.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::failed::Failed;

/// UID and resource version of each request.
pub(crate) type Versions = Vec<(Option<String>, Option<String>)>;

/// Who waits for an answer, and whose turn it is to ask.
#[derive(Default)]
pub(crate) struct Listing {
    waiting: Mutex<Vec<Waiting>>,
    turn: tokio::sync::Mutex<()>,
}

struct Waiting {
    cluster: String,
    answer: oneshot::Sender<Result<Versions, Failed>>,
}

impl Listing {
    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests of a cluster as they are after this was called. `list` asks the hub about several clusters.
    pub(crate) async fn of<F>(&self, cluster: &str, list: impl FnOnce(Vec<String>) -> F) -> Result<Versions, Failed>
    where
        F: Future<Output = Result<HashMap<String, Versions>, Failed>>,
    {
        let (sender, mut answer) = oneshot::channel();
        self.waiting().push(Waiting { cluster: cluster.to_owned(), answer: sender });
        // Whoever has the turn asks for all that wait by then; the others find their answers.
        let _turn = self.turn.lock().await;
        match answer.try_recv() {
            Err(TryRecvError::Empty) => {}
            // Where whoever asked for this one ended before the answer came, nobody knows.
            answered => return answered.unwrap_or(Err(Failed::Late)),
        }
        let all = std::mem::take(&mut *self.waiting());
        let listed = list(all.iter().map(|waiting| waiting.cluster.clone()).collect()).await;
        for Waiting { cluster, answer } in all {
            let own = listed.as_ref().map(|listed| listed.get(&cluster).cloned().unwrap_or_default());
            // Whoever does not wait any more needs no answer.
            let _ = answer.send(own.map_err(Failed::clone));
        }
        answer.try_recv().unwrap_or(Err(Failed::Late))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// What a hub would answer that holds one request of each cluster.
    fn hub(names: &[String]) -> HashMap<String, Versions> {
        names.iter().map(|name| (name.clone(), vec![(Some(name.clone()), None)])).collect()
    }

    #[tokio::test]
    async fn those_who_come_while_the_hub_is_asked_are_asked_about_together_afterwards() {
        let (listing, asked) = (Listing::default(), Mutex::new(Vec::new()));
        let one = async |name: &str| {
            let list = async |names: Vec<String>| {
                let found = hub(&names);
                asked.lock().unwrap().push(names);
                tokio::task::yield_now().await;
                Ok(found)
            };
            listing.of(name, list).await.unwrap()
        };
        let answers = futures::join!(one("a"), one("b"), one("c"), one("b"));
        let own = |name: &str| vec![(Some(name.to_owned()), None)];
        assert_eq!(answers, (own("a"), own("b"), own("c"), own("b")));
        assert_eq!(*asked.lock().unwrap(), [vec!["a"], vec!["b", "c", "b"]]);
    }

    #[tokio::test]
    async fn a_question_that_failed_or_was_broken_off_is_no_answer_for_anybody() {
        let listing = Listing::default();
        let list = async |_| Err(Failed::Refused("no".to_owned()));
        assert!(matches!(listing.of("a", list).await, Err(Failed::Refused(_))));
        let never = async |_| std::future::pending().await;
        let mut first = Box::pin(listing.of("a", never));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(listing.of("b", async |names: Vec<String>| Ok(hub(&names))));
        assert!(second.as_mut().now_or_never().is_none(), "it is the turn of the first one");
        drop(first);
        assert_eq!(second.await.unwrap(), [(Some("b".to_owned()), None)]);
    }
}

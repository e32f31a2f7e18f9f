//! Waiting: bounded, patient with a flaky network, and never silent about what it waits for.

use std::time::{Duration, Instant};

use ocm_core::duration::human;
use ocm_core::{Event, Failure, Narrator, Reason};

use crate::changes::Changes;

/// What one look at the cluster found.
pub enum Look<T> {
    /// It came true.
    Ready(T),
    /// Not yet, and what holds it up.
    NotYet(String),
    /// Not yet, and no watch tells when: it is looked at again soon.
    Unwatched(String),
}

/// How long pauses become while looks fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// How long before the deadline the last look is.
const LAST: Duration = Duration::from_millis(500);

/// Looks until it is ready or `deadline` has passed. Between looks it sleeps `pause`.
///
/// Transient failures of a look (no connection, a busy server) count as "not yet" and are told; after each, the pause is
/// longer. A look that has no answer at the deadline ends there, so it must only read.
///
/// # Errors
/// [`Reason::TimedOut`], with what held it up last; or the first failure of a look that does not pass by itself.
pub async fn until<T, F>(
    doing: &str,
    deadline: Instant,
    pause: Duration,
    narrator: &dyn Narrator,
    look: F,
) -> Result<T, Failure>
where
    F: AsyncFnMut() -> Result<Look<T>, Failure>,
{
    until_changed(doing, deadline, pause, Changes::default(), narrator, look).await
}

/// The same, but it looks again as soon as one of the `changes` comes. While they tell everything, pauses are longer.
///
/// # Errors
/// As [`until`].
pub async fn until_changed<T, F>(
    doing: &str,
    deadline: Instant,
    pause: Duration,
    mut changes: Changes,
    narrator: &dyn Narrator,
    mut look: F,
) -> Result<T, Failure>
where
    F: AsyncFnMut() -> Result<Look<T>, Failure>,
{
    let started = Instant::now();
    narrator.tell(Event::now(doing));
    let (mut because, mut next) = (String::new(), pause);
    let last = LAST.min(pause);
    loop {
        let mut watched = true;
        match tokio::time::timeout_at(deadline.into(), look()).await {
            Ok(Ok(Look::Ready(value))) => return Ok(value),
            Ok(Ok(Look::NotYet(why))) => (because, next) = (why, pause),
            Ok(Ok(Look::Unwatched(why))) => (because, next, watched) = (why, pause, false),
            Ok(Err(failure)) if failure.reason.is_transient() => {
                (because, next) = (failure.to_string(), (next * 2).min(LONGEST_PAUSE.max(pause)));
                watched = false;
            }
            Ok(Err(failure)) => return Err(failure.context(format!("gave up {doing}"))),
            Err(_) if because.is_empty() => because = "the server has not answered".to_owned(),
            Err(_) => {}
        }
        if Instant::now() + last > deadline {
            let waited = human(started.elapsed());
            let failure = Failure::new(Reason::TimedOut, format!("gave up {doing} after {waited}"));
            return Err(if because.is_empty() { failure } else { failure.because(because) });
        }
        narrator.tell(match because.as_str() {
            "" => Event::now(doing),
            because => Event::blocked(doing, because),
        });
        let latest = deadline - last;
        match watched {
            true => changes.wait(next, latest.into()).await,
            false => changes.wait_briefly(next, latest.into()).await,
        }
    }
}

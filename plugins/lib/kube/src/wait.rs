//! Waiting: bounded, patient with a flaky network, and never silent about what it waits for.

use std::time::{Duration, Instant};

use ocm_core::duration::human;
use ocm_core::{Event, Failure, Narrator, Reason};

use crate::triggers::Triggers;

/// What one check of the cluster found.
pub enum Check<T> {
    /// It came true.
    Ready(T),
    /// Not yet, and what holds it up.
    NotYet(String),
    /// Not yet, and no watch tells when: it is checked again soon.
    Unwatched(String),
}

/// How long pauses become while checks fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// How long before the deadline the last check is.
const LAST: Duration = Duration::from_millis(500);

/// Checks until it is ready or `deadline` has passed. Between checks it sleeps `pause`.
///
/// Transient failures of a check (no connection, a busy server) count as "not yet" and are told; after each, the pause is
/// longer. A check that has no answer at the deadline ends there, so it must only read.
///
/// # Errors
/// [`Reason::TimedOut`], with what held it up last; or the first failure of a check that does not pass by itself.
pub async fn until<T, F>(
    doing: &str,
    deadline: Instant,
    pause: Duration,
    narrator: &dyn Narrator,
    check: F,
) -> Result<T, Failure>
where
    F: AsyncFnMut() -> Result<Check<T>, Failure>,
{
    until_triggered(doing, deadline, pause, Triggers::default(), narrator, check).await
}

/// The same, but it checks again as soon as one of the `triggers` tells of a change. While they tell everything, pauses
/// are longer.
///
/// # Errors
/// As [`until`].
pub async fn until_triggered<T, F>(
    doing: &str,
    deadline: Instant,
    pause: Duration,
    mut triggers: Triggers,
    narrator: &dyn Narrator,
    mut check: F,
) -> Result<T, Failure>
where
    F: AsyncFnMut() -> Result<Check<T>, Failure>,
{
    let started = Instant::now();
    narrator.tell(Event::now(doing));
    let (mut because, mut next) = (String::new(), pause);
    let last = LAST.min(pause);
    loop {
        let mut watched = true;
        match tokio::time::timeout_at(deadline.into(), check()).await {
            Ok(Ok(Check::Ready(value))) => return Ok(value),
            Ok(Ok(Check::NotYet(why))) => (because, next) = (why, pause),
            Ok(Ok(Check::Unwatched(why))) => (because, next, watched) = (why, pause, false),
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
            true => triggers.wait(next, latest.into()).await,
            false => triggers.wait_briefly(next, latest.into()).await,
        }
    }
}

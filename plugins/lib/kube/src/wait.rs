//! Waiting: bounded, patient with a flaky network, and never silent about what it waits for.

use std::time::{Duration, Instant};

use ocm_core::duration::human;
use ocm_core::{Event, Failure, Narrator, Reason};

/// What one look at the cluster found.
pub enum Look<T> {
    /// It came true.
    Ready(T),
    /// Not yet, and what holds it up.
    NotYet(String),
}

/// Looks until it is ready or `deadline` has passed. Between looks it sleeps `pause`.
///
/// Transient failures of a look (no connection, a busy server) count as "not yet" and are told.
///
/// # Errors
/// [`Reason::TimedOut`], with what held it up last; or the first failure of a look that does not pass by itself.
pub async fn until<T, F>(
    doing: &str,
    deadline: Instant,
    pause: Duration,
    narrator: &dyn Narrator,
    mut look: F,
) -> Result<T, Failure>
where
    F: AsyncFnMut() -> Result<Look<T>, Failure>,
{
    let started = Instant::now();
    narrator.tell(Event::now(doing));
    loop {
        let because = match look().await {
            Ok(Look::Ready(value)) => return Ok(value),
            Ok(Look::NotYet(because)) => because,
            Err(failure) if failure.reason.is_transient() => failure.to_string(),
            Err(failure) => return Err(failure.context(format!("gave up {doing}"))),
        };
        if Instant::now() + pause > deadline {
            let waited = human(started.elapsed());
            let failure = Failure::new(Reason::TimedOut, format!("gave up {doing} after {waited}"));
            return Err(if because.is_empty() { failure } else { failure.because(because) });
        }
        narrator.tell(if because.is_empty() { Event::now(doing) } else { Event::blocked(doing, because) });
        tokio::time::sleep(pause).await;
    }
}

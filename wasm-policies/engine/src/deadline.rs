//! Until when a question is worth answering.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ocm_policy_rules::PolicyError;

/// How often a policy that runs is told that nobody waits for its answer any more.
const NOTICE: Duration = Duration::from_millis(10);

/// Until when a question is worth answering. It holds for everything that is done for the question: waiting, getting
/// evidence, and every policy.
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    at: Option<Instant>,
    cancellation: Option<Cancellation>,
}

/// Ends the work on a question whose answer nobody waits for any more. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Ends the work soon.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Deadline {
    /// None: policies have their own limits.
    pub const NONE: Self = Self { at: None, cancellation: None };

    /// So much time from now.
    pub fn after(time: Duration) -> Self {
        Self { at: Instant::now().checked_add(time), cancellation: None }
    }

    /// The same deadline, or earlier if the work is cancelled.
    #[must_use]
    pub fn or_cancelled(self, cancellation: &Cancellation) -> Self {
        Self { cancellation: Some(cancellation.clone()), ..self }
    }

    /// Whether the work was cancelled: what is left of it is for nobody, however much time there is.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.as_ref().is_some_and(|cancellation| cancellation.0.load(Ordering::Relaxed))
    }

    /// Whether there is still somebody to answer to.
    ///
    /// # Errors
    /// [`PolicyError::DeadlineExceeded`] if not.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.is_cancelled() || self.at.is_some_and(|at| Instant::now() >= at) {
            return Err(PolicyError::DeadlineExceeded);
        }
        Ok(())
    }

    /// How long something may go on before this has to be looked at again; none: it need not be.
    pub(crate) fn next_check(&self) -> Option<Duration> {
        let left = self.left();
        match self.cancellation {
            Some(_) => Some(left.map_or(NOTICE, |left| left.min(NOTICE))),
            None => left,
        }
    }

    /// How much time is left; none: there is no end.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.at.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

//! One after the other, each for as long as somebody waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ocm_policy_engine::{Deadline, PolicyError};

/// How often whoever waits looks whether anybody still waits for the answer.
const LOOKS: Duration = Duration::from_millis(10);

/// What one has at a time.
#[derive(Default)]
pub(crate) struct Turn {
    is_taken: Mutex<bool>,
    free: Condvar,
}

/// It is somebody's turn until this is dropped.
pub(crate) struct Taken<'t>(&'t Turn);

impl Turn {
    fn is_taken(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn.
    ///
    /// # Errors
    /// [`PolicyError::DeadlineExceeded`] when nobody waits for the answer any more.
    pub(crate) fn take(&self, deadline: &Deadline) -> Result<Taken<'_>, PolicyError> {
        let mut is_taken = self.is_taken();
        loop {
            deadline.check()?;
            if !*is_taken {
                *is_taken = true;
                return Ok(Taken(self));
            }
            is_taken = self.free.wait_timeout(is_taken, LOOKS).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.is_taken() = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use ocm_policy_engine::Cancellation;

    use super::*;

    #[test]
    fn one_at_a_time_has_it_and_all_who_wait_get_it() {
        let (turn, inside, most) =
            (Arc::new(Turn::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (turn, inside, most) = (turn.clone(), inside.clone(), most.clone());
                std::thread::spawn(move || {
                    for _ in 0..20 {
                        let taken = turn.take(&Deadline::NONE).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(taken);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn whoever_waits_ends_with_the_deadline_or_when_nobody_waits_for_it() {
        let turn = Turn::default();
        let _taken = turn.take(&Deadline::NONE).unwrap();
        let begun = Instant::now();
        let late = turn.take(&Deadline::after(Duration::from_millis(50)));
        assert!(matches!(late, Err(PolicyError::DeadlineExceeded)) && begun.elapsed() >= Duration::from_millis(50));
        let cancellation = Cancellation::default();
        cancellation.cancel();
        assert!(turn.take(&Deadline::NONE.or_cancelled(&cancellation)).is_err());
    }
}

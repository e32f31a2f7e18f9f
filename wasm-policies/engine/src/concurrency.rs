//! How many decisions run at once.
//!
//! A policy that has shown that it is quick runs once per shard without further ado. Everything else, which includes the
//! first decision of every policy and instances that run code of the guest while they are made, needs one of a few
//! permits. Who finds none waits in a queue of bounded length, until its deadline.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ocm_policy_rules::PolicyError;

use crate::deadline::Deadline;

/// Permits for decisions that are not known to be quick.
pub(crate) struct Concurrency {
    free: Mutex<usize>,
    freed: Condvar,
    waiting: AtomicUsize,
    most_waiting: usize,
    refused: AtomicU64,
}

/// The permit that a quick policy has to itself in a shard.
#[derive(Default)]
pub(crate) struct Reserved(AtomicBool);

/// Whether a policy has shown that it is quick.
#[derive(Default)]
pub(crate) struct Speed {
    quick: AtomicBool,
}

/// The permission to run one decision; it is given back when it is dropped.
pub(crate) struct Permit<'c> {
    concurrency: &'c Concurrency,
    reserved: Option<&'c Reserved>,
}

impl Concurrency {
    pub(crate) fn new(permits: usize, most_waiting: usize) -> Self {
        Self {
            free: Mutex::new(permits.max(1)),
            freed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            most_waiting,
            refused: AtomicU64::new(0),
        }
    }

    /// Takes the reserved permit of a quick policy, or one of the others; waits for either.
    pub(crate) fn enter<'c>(
        &'c self,
        reserved: Option<&'c Reserved>,
        deadline: &Deadline,
    ) -> Result<Permit<'c>, PolicyError> {
        if let Some(permit) = self.reserved(reserved) {
            return Ok(permit);
        }
        let mut free = self.free();
        if let Some(permit) = self.common(&mut free) {
            return Ok(permit);
        }
        if self.waiting.fetch_add(1, Ordering::SeqCst) >= self.most_waiting {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(PolicyError::Overloaded(format!("{} others wait already", self.most_waiting)));
        }
        let permit = loop {
            // Looked at after this thread counts as waiting: whoever gives one back now wakes it.
            if let Some(permit) = self.reserved(reserved).or_else(|| self.common(&mut free)) {
                break Ok(permit);
            }
            if let Err(error) = deadline.check() {
                break Err(error);
            }
            free = match deadline.next_check() {
                None => self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
                Some(time) => self.freed.wait_timeout(free, time).unwrap_or_else(PoisonError::into_inner).0,
            };
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        permit
    }

    /// Waits until something was given back, which may be what is missing, but not for long.
    pub(crate) fn pause(&self, deadline: &Deadline) -> Result<(), PolicyError> {
        const SHORT: Duration = Duration::from_millis(2);
        deadline.check()?;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let free = self.free();
        drop(self.freed.wait_timeout(free, SHORT));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    /// Wakes those that wait, because something was given back.
    pub(crate) fn given_back(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.free());
            self.freed.notify_all();
        }
    }

    /// How many wait now, and how many were refused because too many did.
    pub(crate) fn queue(&self) -> (usize, u64) {
        (self.waiting.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    /// How many permits nobody has taken.
    pub(crate) fn free_permits(&self) -> usize {
        *self.free()
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserved<'c>(&'c self, reserved: Option<&'c Reserved>) -> Option<Permit<'c>> {
        let reserved = reserved.filter(|reserved| !reserved.0.swap(true, Ordering::SeqCst))?;
        Some(Permit { concurrency: self, reserved: Some(reserved) })
    }

    fn common(&self, free: &mut usize) -> Option<Permit<'_>> {
        *free = free.checked_sub(1)?;
        Some(Permit { concurrency: self, reserved: None })
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        match self.reserved {
            Some(reserved) => reserved.0.store(false, Ordering::SeqCst),
            None => *self.concurrency.free() += 1,
        }
        self.concurrency.given_back();
    }
}

impl Speed {
    /// Whether its last decision was quick.
    pub(crate) fn is_quick(&self) -> bool {
        self.quick.load(Ordering::Relaxed)
    }

    /// Remembers how much fuel a decision took. A million units are about a millisecond.
    pub(crate) fn took(&self, fuel: u64) {
        let quick = fuel < QUICK;
        // What nobody writes stays in the caches of all processors.
        if self.is_quick() != quick {
            self.quick.store(quick, Ordering::Relaxed);
        }
    }
}

const QUICK: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::Cancellation;

    #[test]
    fn the_slow_wait_and_the_quick_do_not() {
        let concurrency = Concurrency::new(1, 8);
        let reserved = Reserved::default();
        let held = concurrency.enter(None, &Deadline::NONE).unwrap();
        let quick = concurrency.enter(Some(&reserved), &Deadline::NONE).unwrap();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| concurrency.enter(None, &Deadline::NONE).is_ok());
            // A second decision of the quick policy takes what is given back first: here its own.
            let second = scope.spawn(|| concurrency.enter(Some(&reserved), &Deadline::NONE).is_ok());
            while concurrency.queue().0 < 2 {
                std::thread::yield_now();
            }
            assert!(!slow.is_finished() && !second.is_finished());
            drop(quick);
            assert!(second.join().unwrap());
            assert!(!slow.is_finished(), "a reserved permit is nobody else's");
            drop(held);
            assert!(slow.join().unwrap());
        });
        assert_eq!((*concurrency.free(), concurrency.queue()), (1, (0, 0)));
    }

    #[test]
    fn nobody_waits_beyond_the_deadline_and_the_queue_has_an_end() {
        let concurrency = Concurrency::new(1, 1);
        let held = concurrency.enter(None, &Deadline::NONE).unwrap();
        let soon = Deadline::after(Duration::from_millis(1));
        assert_eq!(concurrency.enter(None, &soon).err(), Some(PolicyError::DeadlineExceeded));
        let cancellation = Cancellation::default();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| concurrency.enter(None, &Deadline::NONE.or_cancelled(&cancellation)).err());
            while concurrency.queue().0 == 0 {
                std::thread::yield_now();
            }
            let refused = concurrency.enter(None, &Deadline::NONE).err();
            assert_eq!(refused, Some(PolicyError::Overloaded("1 others wait already".to_owned())));
            cancellation.cancel();
            assert_eq!(waits.join().unwrap(), Some(PolicyError::DeadlineExceeded));
        });
        drop(held);
        assert!(concurrency.enter(None, &Deadline::NONE).is_ok());
        assert_eq!(concurrency.queue(), (0, 1));
    }
}

//! Who may run at once: policies that are quick do not wait for those that are not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Places for slow decisions. Quick ones need none.
pub(crate) struct Concurrency {
    free: Mutex<usize>,
    freed: Condvar,
}

/// Whether a policy has shown that it is quick. Until then, and after every decision that was not, it uses a place.
#[derive(Default)]
pub(crate) struct Pace {
    quick: AtomicBool,
}

/// A place that is given back when it is dropped.
pub(crate) struct Place<'c>(Option<&'c Concurrency>);

impl Concurrency {
    pub(crate) fn new(places: usize) -> Self {
        Self { free: Mutex::new(places.max(1)), freed: Condvar::new() }
    }

    /// Waits for a place if the policy needs one.
    pub(crate) fn enter(&self, pace: &Pace) -> Place<'_> {
        if pace.quick.load(Ordering::Relaxed) {
            return Place(None);
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Place(Some(self))
    }
}

impl Pace {
    /// Remembers how much fuel a decision took. A million units are about a millisecond.
    pub(crate) fn took(&self, fuel: u64) {
        let quick = fuel < QUICK;
        // What nobody writes stays in the caches of all processors.
        if self.quick.load(Ordering::Relaxed) != quick {
            self.quick.store(quick, Ordering::Relaxed);
        }
    }
}

const QUICK: u64 = 2_000_000;

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(concurrency) = self.0 {
            *concurrency.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            concurrency.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_wait_and_the_quick_do_not() {
        let concurrency = Concurrency::new(1);
        let (slow, quick) = (Pace::default(), Pace::default());
        quick.took(10);
        slow.took(u64::MAX);
        let held = concurrency.enter(&slow);
        assert!(
            held.0.is_some() && concurrency.enter(&quick).0.is_none(),
            "a quick one passes while the place is taken"
        );
        let waited = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| concurrency.enter(&slow).0.is_some());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished(), "a slow one waits");
            drop(held);
            waiting.join()
        });
        assert!(waited.is_ok_and(|got| got));
        assert_eq!(*concurrency.free.lock().unwrap(), 1);
    }
}

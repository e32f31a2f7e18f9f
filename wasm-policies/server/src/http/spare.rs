//! Threads that are started when something comes that may wait, so that it keeps nothing else from being done.
//!
//! Starting one may fail: a pod may have so many threads and no more. Then what was to be done is given back, and is done by a
//! thread that there is. `spawn_blocking` of tokio panics where it can start no thread and has none, as after ten seconds without
//! such work, and a panic ends the process.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread rests before it ends.
const REST: Duration = Duration::from_secs(10);

/// Something to be done.
pub(super) type Job = Box<dyn FnOnce() + Send>;
/// What starts a thread that does something.
pub(super) type Start = Box<dyn Fn(Job) -> io::Result<()> + Send + Sync>;

/// The threads. When this is dropped they end as soon as nothing is left to do.
pub(super) struct Spare(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    more: Condvar,
    start: Start,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that rest, or have not taken yet what they were started or woken for: never fewer than jobs.
    idle: usize,
    over: bool,
}

impl Spare {
    /// None yet; this starts them.
    pub(super) fn new(start: Start) -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), more: Condvar::new(), start }))
    }

    /// Has something done by a thread that does nothing else meanwhile.
    ///
    /// # Errors
    /// Where none rests and none can be started it is given back.
    pub(super) fn give(&self, job: Job) -> Result<(), Job> {
        let mut state = self.0.state();
        if state.jobs.len() >= state.idle {
            let inner = self.0.clone();
            // It finds the state locked until its job is there.
            if (self.0.start)(Box::new(move || inner.work())).is_err() {
                return Err(job);
            }
            state.idle += 1;
        }
        state.jobs.push_back(job);
        drop(state);
        self.0.more.notify_one();
        Ok(())
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.more.notify_all();
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread does. It counts as idle when it begins.
    fn work(&self) {
        let mut state = self.state();
        loop {
            let next = state.jobs.pop_front();
            if let Some(job) = next {
                state.idle -= 1;
                drop(state);
                job();
                state = self.state();
                state.idle += 1;
                continue;
            }
            if state.over {
                break;
            }
            let (again, waited) = self.more.wait_timeout(state, REST).unwrap_or_else(PoisonError::into_inner);
            state = again;
            // What came in the same moment is counted on this one.
            if waited.timed_out() && state.jobs.is_empty() {
                break;
            }
        }
        state.idle -= 1;
    }
}

/// Starts a thread of the system.
pub(super) fn start(work: Job) -> io::Result<()> {
    std::thread::Builder::new().name("decisions-wait".to_owned()).spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;

    /// Waits until it is so.
    fn until(so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !so() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not come to that");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Threads, and how many were started.
    fn counted() -> (Spare, Arc<AtomicUsize>) {
        let started = Arc::new(AtomicUsize::new(0));
        let count = started.clone();
        let spare = Spare::new(Box::new(move |work: Job| {
            count.fetch_add(1, Ordering::Relaxed);
            start(work)
        }));
        (spare, started)
    }

    #[test]
    fn one_thread_does_what_comes_one_after_the_other() {
        let (spare, started) = counted();
        let (done, is_done) = channel();
        for number in 0..100 {
            let done = done.clone();
            assert!(spare.give(Box::new(move || done.send(number).unwrap())).is_ok());
            assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(number));
            until(|| spare.0.state().idle == 1);
        }
        assert_eq!(started.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_comes_at_once_is_done_at_once_and_the_threads_end() {
        let (spare, started) = counted();
        let inner = Arc::downgrade(&spare.0);
        let together = Arc::new(std::sync::Barrier::new(8));
        let (done, is_done) = channel();
        for number in 0..8 {
            let (together, done) = (together.clone(), done.clone());
            // None of them goes on before all have begun.
            let job = Box::new(move || {
                together.wait();
                done.send(number).unwrap();
            });
            assert!(spare.give(job).is_ok());
        }
        let mut numbers: Vec<i32> = (0..8).map(|_| is_done.recv_timeout(Duration::from_secs(30)).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!((numbers, started.load(Ordering::Relaxed)), ((0..8).collect::<Vec<_>>(), 8));
        drop(spare);
        until(|| inner.upgrade().is_none());
    }

    #[test]
    fn what_no_thread_can_be_started_for_is_given_back_and_those_that_rest_go_on() {
        let one_more = Arc::new(AtomicBool::new(false));
        let may = one_more.clone();
        let spare = Spare::new(Box::new(move |work: Job| match may.swap(false, Ordering::Relaxed) {
            true => start(work),
            false => Err(io::Error::from(io::ErrorKind::WouldBlock)),
        }));
        let (done, is_done) = channel();
        let job = |number: i32| -> Job {
            let done = done.clone();
            Box::new(move || done.send(number).unwrap())
        };
        let back = spare.give(job(1)).err();
        back.unwrap()();
        assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(1));
        one_more.store(true, Ordering::Relaxed);
        assert!(spare.give(job(2)).is_ok());
        assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(2));
        until(|| spare.0.state().idle == 1);
        assert!(spare.give(job(3)).is_ok(), "there is one that rests");
        assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(3));
    }
}

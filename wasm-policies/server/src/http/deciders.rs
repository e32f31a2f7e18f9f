//! Threads that answer reviews: one for each processor, each with instances of policies to itself.
//!
//! More threads than processors would only wait for each other's instances. What may wait, for the hub or for a policy
//! that is slow, is done by threads of its own, and where a policy turns slow unexpectedly, others take what has queued up.
//! Where no other thread can be started these do it all. There is at least one of them, or there is no server.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::spare::{Job, Spare, start};

/// Threads at most.
const MOST: usize = 8;
/// Reviews that wait longer for a thread than this get one more.
const PATIENCE: Duration = Duration::from_millis(10);

/// The threads. They end when this is dropped.
pub(super) struct Deciders {
    inner: Arc<Inner>,
    spare: Spare,
}

struct Inner {
    queue: Mutex<Queue>,
    more: Condvar,
    /// When this was made; times are counted from here.
    epoch: Instant,
    /// What each thread began to do, in microseconds; `IDLE` while it does nothing.
    began: Box<[AtomicU64]>,
    /// Threads that were added because all others were at something for long, and have not begun yet.
    added: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    over: bool,
}

const IDLE: u64 = u64::MAX;

impl Deciders {
    /// One for each processor, or as many as can be started.
    ///
    /// # Errors
    /// Where not even one can be.
    pub(super) fn start() -> io::Result<Self> {
        Self::with(Spare::new(Box::new(start)))
    }

    fn with(spare: Spare) -> io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST);
        let inner = Arc::new(Inner {
            queue: Mutex::default(),
            more: Condvar::new(),
            epoch: Instant::now(),
            // As if at something for ever, until it has begun.
            began: (0..count).map(|_| AtomicU64::new(0)).collect(),
            added: AtomicUsize::new(0),
        });
        let (mut started, mut failed) = (0, None);
        for number in 0..count {
            let inner = inner.clone();
            let named = std::thread::Builder::new().name(format!("decisions-{number}"));
            match named.spawn(move || inner.work(number)) {
                Ok(_) => started += 1,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if started == 0 => Err(error),
            _ => Ok(Self { inner, spare }),
        }
    }

    /// Has something done soon.
    pub(super) fn give(&self, job: Job) {
        let waiting = self.inner.push(job);
        if self.inner.all_are_late() && self.inner.added.load(Ordering::Relaxed) < waiting {
            self.inner.added.fetch_add(1, Ordering::Relaxed);
            let inner = self.inner.clone();
            let given = self.spare.give(Box::new(move || {
                inner.added.fetch_sub(1, Ordering::Relaxed);
                let job = inner.queue().jobs.pop_front();
                if let Some(job) = job {
                    job();
                }
            }));
            // The job is where it was: one of these threads comes to it.
            if given.is_err() {
                self.inner.added.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Has something done that may wait, by a thread of its own. Where there is none it takes its turn.
    pub(super) fn wait(&self, job: Job) {
        if let Err(job) = self.spare.give(job) {
            self.inner.push(job);
        }
    }
}

impl Drop for Deciders {
    fn drop(&mut self) {
        self.inner.queue().over = true;
        self.inner.more.notify_all();
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something behind what waits already. How much waits.
    fn push(&self, job: Job) -> usize {
        let waiting = {
            let mut queue = self.queue();
            queue.jobs.push_back(job);
            queue.jobs.len()
        };
        self.more.notify_one();
        waiting
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(IDLE - 1)
    }

    /// Whether every thread has been at the same thing for long.
    fn all_are_late(&self) -> bool {
        let late = self.now().saturating_sub(u64::try_from(PATIENCE.as_micros()).unwrap_or(IDLE - 1));
        self.began.iter().all(|began| began.load(Ordering::Relaxed) <= late)
    }

    fn work(&self, number: usize) {
        ocm_policy_engine::use_shard(number);
        let began = &self.began[number];
        loop {
            let mut queue = self.queue();
            let job = loop {
                if queue.over {
                    return;
                }
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                began.store(IDLE, Ordering::Relaxed);
                queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            began.store(self.now(), Ordering::Relaxed);
            job();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Gives every thread something to do that ends when what is returned is dropped, and goes on when all are late.
    fn all_are_busy(deciders: &Deciders, give: fn(&Deciders, Job)) -> Sender<()> {
        let (stop, stopped) = channel();
        let stopped = Arc::new(Mutex::new(stopped));
        let (busy, is_busy) = channel();
        let threads = deciders.inner.began.len();
        for _ in 0..threads {
            let (stopped, busy) = (stopped.clone(), busy.clone());
            give(
                deciders,
                Box::new(move || {
                    let _ = busy.send(());
                    let _ = stopped.lock().map(|stopped| stopped.recv());
                }),
            );
        }
        for _ in 0..threads {
            is_busy.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        std::thread::sleep(PATIENCE * 2);
        stop
    }

    #[test]
    fn what_takes_long_does_not_keep_others_waiting() {
        let deciders = Deciders::start().unwrap();
        let stop = all_are_busy(&deciders, Deciders::give);
        let (done, is_done) = channel();
        for number in 0..10 {
            let done = done.clone();
            deciders.give(Box::new(move || done.send(number).unwrap()));
        }
        let mut numbers: Vec<i32> = (0..10).map(|_| is_done.recv_timeout(Duration::from_secs(30)).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        drop(stop);
    }

    #[test]
    fn everything_is_done_once_and_the_threads_end() {
        let deciders = Deciders::start().unwrap();
        let inner = Arc::downgrade(&deciders.inner);
        let (done, is_done) = channel();
        for number in 0..1000 {
            let done = done.clone();
            deciders.give(Box::new(move || done.send(number).unwrap()));
        }
        drop(done);
        let mut numbers: Vec<i32> = is_done.iter().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
        drop(deciders);
        let begun = Instant::now();
        while inner.upgrade().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(30), "threads go on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn where_no_other_thread_can_be_started_these_do_everything() {
        let none = Spare::new(Box::new(|_: Job| Err(io::Error::from(io::ErrorKind::WouldBlock))));
        let deciders = Deciders::with(none).unwrap();
        // What waits has all of them, so that more threads are wanted, and there are none.
        let stop = all_are_busy(&deciders, Deciders::wait);
        let (done, is_done) = channel();
        for number in 0..10 {
            let done = done.clone();
            let job: Job = Box::new(move || done.send(number).unwrap());
            if number % 2 == 0 { deciders.give(job) } else { deciders.wait(job) }
        }
        assert_eq!(deciders.inner.added.load(Ordering::Relaxed), 0, "as if threads were still to come");
        assert!(is_done.try_recv().is_err());
        drop(stop);
        let mut numbers: Vec<i32> = (0..10).map(|_| is_done.recv_timeout(Duration::from_secs(30)).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    }
}

//! The threads that an engine owns: one lets time pass, one makes instances whose making runs code of the guest.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// Something that instances are made of.
pub(crate) trait Replenish: Send + Sync {
    /// Makes the next instance of a shard, unless it is there already.
    fn replenish(&self, shard: usize);
}

/// The threads. They end when this is dropped.
pub(crate) struct Background {
    over: Arc<AtomicBool>,
    orders: SyncSender<(Weak<dyn Replenish>, usize)>,
}

/// Orders that wait. What is not ordered is made when somebody asks for it.
const MOST_ORDERS: usize = 1024;

impl Background {
    /// Starts the threads.
    pub(crate) fn start(shards: Vec<wasmtime::Engine>) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        thread::Builder::new().name("policy-ticks".to_owned()).spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
                shards.iter().for_each(wasmtime::Engine::increment_epoch);
            }
        })?;
        let (orders, ordered) = mpsc::sync_channel::<(Weak<dyn Replenish>, usize)>(MOST_ORDERS);
        let worker = thread::Builder::new().name("policy-instances".to_owned()).spawn(move || {
            for (of, shard) in ordered {
                if let Some(of) = of.upgrade() {
                    of.replenish(shard);
                }
            }
        });
        let background = Self { over, orders };
        worker.map(|_| background)
    }

    /// Has an instance made soon.
    pub(crate) fn order(&self, of: Weak<dyn Replenish>, shard: usize) {
        let _ = self.orders.try_send((of, shard));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

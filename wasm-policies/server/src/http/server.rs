//! What answers the API server, and how much of it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::budget::Budget;
use super::deciders::Deciders;
use crate::gate::Judge;
use crate::metrics::Metrics;

/// What the server takes on at once. Of connections, reviews and bytes, an address gets an equal share at least.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections; an API server keeps 25 at rest for each webhook.
    pub connections: usize,
    /// Reviews; one more is told to come again.
    pub in_flight: usize,
    /// Bytes of one review: the object before and after, each of at most 3 MiB, with what the server adds.
    pub body: usize,
    /// Bytes of all reviews that are being read.
    pub bodies: usize,
    /// Bytes of what is made of the reviews that are being answered.
    pub parsed: usize,
    /// How long new connections are taken after the end was announced: so long API servers may still have the address.
    pub drain: Duration,
    /// How long reviews that have begun may take after that.
    pub grace: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 1024,
            in_flight: 256,
            body: 7 << 20,
            bodies: 64 << 20,
            parsed: 320 << 20,
            drain: Duration::from_secs(12),
            grace: Duration::from_secs(20),
        }
    }
}

/// Answers the API server.
pub struct Server {
    pub(super) judge: Arc<dyn Judge>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) bounds: Bounds,
    pub(super) in_flight: Arc<Budget>,
    pub(super) bodies: Arc<Budget>,
    pub(super) parsed: Arc<Budget>,
    pub(super) draining: AtomicBool,
    pub(super) deciders: Deciders,
}

impl Server {
    /// A server of what this one answers.
    ///
    /// # Errors
    /// When no thread can be started that answers.
    pub fn new(judge: Arc<dyn Judge>, metrics: Arc<Metrics>, bounds: Bounds) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            judge,
            metrics,
            bounds,
            in_flight: Budget::new(bounds.in_flight),
            bodies: Budget::new(bounds.bodies),
            parsed: Budget::new(bounds.parsed),
            draining: AtomicBool::new(false),
            deciders: Deciders::start()?,
        }))
    }
}

//! HTTPS for the API server, and plain HTTP for probes and scrapes.

mod deciders;
mod health;
mod review;
mod workers;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::gate::Judge;
use crate::metrics::Metrics;

use self::deciders::Deciders;
use self::workers::Workers;

pub use health::Health;

/// A client that does not end its TLS handshake for so long is none.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a connection may rest. API servers keep theirs for 90 seconds, and one that the server closes first is a
/// review that fails: they repeat no POST.
const IDLE: Duration = Duration::from_secs(150);
/// After a failure to accept, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// Connections at once; an API server keeps 25 at rest for each webhook.
const CONNECTIONS: usize = 1024;

/// Connections of probes and scrapes at once.
const PROBES: usize = 64;
/// Bytes that are kept of a connection, besides bodies.
const BUFFER: usize = 64 << 10;

/// What the server takes on at once.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Reviews; one more is told to come again.
    pub in_flight: usize,
    /// Bytes of one review: the object before and after, each of at most 3 MiB, with what the server adds.
    pub body: usize,
    /// Bytes of all reviews that are being read.
    pub bodies: usize,
    /// How long new connections are taken after the end was announced: so long API servers may still have the address.
    pub drain: Duration,
    /// How long reviews that have begun may take after that.
    pub grace: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            in_flight: 256,
            body: 7 << 20,
            bodies: 64 << 20,
            drain: Duration::from_secs(12),
            grace: Duration::from_secs(20),
        }
    }
}

/// Answers the API server.
pub struct Server {
    judge: Arc<dyn Judge>,
    metrics: Arc<Metrics>,
    bounds: Bounds,
    in_flight: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    draining: AtomicBool,
    deciders: Deciders,
}

impl Server {
    /// A server of what this one answers.
    pub fn new(judge: Arc<dyn Judge>, metrics: Arc<Metrics>, bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            judge,
            metrics,
            bounds,
            in_flight: Arc::new(Semaphore::new(bounds.in_flight)),
            bodies: Arc::new(Semaphore::new(bounds.bodies.min(Semaphore::MAX_PERMITS))),
            draining: AtomicBool::new(false),
            deciders: Deciders::start(),
        })
    }

    /// Serves until `end`, and then until nobody comes any more: a server that is taken out of a Service still gets
    /// connections for seconds, and closes those that stand with its last answer to each.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, tls: ServerConfig, end: impl Future<Output = ()>) {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let graceful = GracefulShutdown::new();
        let mut workers = Workers::start();
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let mut end = std::pin::pin!(end);
        let mut last = None;
        loop {
            let stop = async {
                match last {
                    Some(last) => tokio::time::sleep_until(last).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = &mut end, if last.is_none() => {
                    self.draining.store(true, Ordering::Relaxed);
                    last = Some(tokio::time::Instant::now() + self.bounds.drain);
                }
                () = stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let Ok(place) = connections.clone().try_acquire_owned() else { continue };
                        let connection = Connection {
                            stream,
                            place,
                            server: self.clone(),
                            acceptor: acceptor.clone(),
                            watcher: graceful.watcher(),
                        };
                        workers.give(connection);
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
                },
            }
        }
        drop(listener);
        // What does not end in time is cut off: nobody waits for it any more.
        let _ = tokio::time::timeout(self.bounds.grace, graceful.shutdown()).await;
    }
}

/// A connection that was taken.
struct Connection {
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    server: Arc<Server>,
    acceptor: TlsAcceptor,
    watcher: Watcher,
}

impl Connection {
    /// Serves it to its end, in a task of its own: a client that is slow is slow for itself.
    async fn serve(self) {
        let Self { stream, place: _place, server, acceptor, watcher } = self;
        let _ = stream.set_nodelay(true);
        let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
        let service = service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(BUFFER);
        // Errors of connections are the other side's: it sees them as well.
        let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
    }
}

/// Serves probes and scrapes until it is dropped.
pub async fn serve_health(listener: TcpListener, health: Arc<Health>) {
    let connections = Arc::new(Semaphore::new(PROBES));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let Ok(place) = connections.clone().try_acquire_owned() else { continue };
        let health = health.clone();
        tokio::spawn(async move {
            let _place = place;
            let service = service_fn(move |request| {
                let health = health.clone();
                async move { Ok::<_, Infallible>(health.answer(&request)) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HANDSHAKE).max_buf_size(BUFFER);
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

//! Takes connections: of the API server, and of probes and scrapes.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::budget::{Budget, Peer};
use super::connection::{BUFFER, Connection, HANDSHAKE};
use super::files;
use super::workers::Workers;
use super::{Health, Server};

/// After a failure to accept, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// How long it is waited, when all is answered, until what was answered last is written down, and how often that is looked at.
const NOTES: Duration = Duration::from_secs(3);
const NOTED: Duration = Duration::from_millis(10);
/// Connections of probes and scrapes at once.
const PROBES: usize = 64;

impl Server {
    /// Serves until `end`, and then until nobody comes any more: a server that is taken out of a Service still gets
    /// connections for seconds, and closes those that stand with its last answer to each.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, tls: ServerConfig, end: impl Future<Output = ()>) {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let graceful = GracefulShutdown::new();
        let mut workers = Workers::start();
        let connections = Budget::new(self.bounds.connections);
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
                    Ok((stream, address)) => {
                        let Some(place) = connections.take(Peer::of(address.ip()), 1) else {
                            self.metrics.connections_turned_away.inc();
                            continue;
                        };
                        let connection = Connection {
                            stream,
                            place,
                            server: self.clone(),
                            acceptor: acceptor.clone(),
                            watcher: graceful.watcher(),
                        };
                        workers.give(connection);
                    }
                    Err(error) => {
                        if files::are_spent(&error) {
                            connections.give_one_up();
                        }
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                },
            }
        }
        drop(listener);
        // What does not end in time is cut off: nobody waits for it any more.
        let _ = tokio::time::timeout(self.bounds.grace, graceful.shutdown()).await;
        // What was answered last is still written down.
        let noted = async {
            while self.metrics.in_flight.get() > 0 {
                tokio::time::sleep(NOTED).await;
            }
        };
        let _ = tokio::time::timeout(NOTES, noted).await;
    }
}

/// Serves probes and scrapes until it is dropped.
pub async fn serve_health(listener: TcpListener, health: Arc<Health>) {
    let connections = Budget::new(PROBES);
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let Some(place) = connections.take(Peer::of(address.ip()), 1) else { continue };
        let health = health.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let health = health.clone();
                async move { Ok::<_, Infallible>(health.answer(&request)) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HANDSHAKE).max_buf_size(BUFFER);
            tokio::select! {
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                () = place.taken_back() => {}
            }
        });
    }
}

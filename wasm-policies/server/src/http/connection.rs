//! One connection of the API server, to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::Server;
use super::budget::Permit;

/// A client that does not end its TLS handshake for so long is none.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a connection may rest. API servers keep theirs for 90 seconds, and one that the server closes first is a
/// review that fails: they repeat no POST.
const IDLE: Duration = Duration::from_secs(150);
/// Bytes that are kept of a connection, besides bodies.
pub(super) const BUFFER: usize = 64 << 10;

/// A connection that was taken.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) place: Permit,
    pub(super) server: Arc<Server>,
    pub(super) acceptor: TlsAcceptor,
    pub(super) watcher: Watcher,
}

impl Connection {
    /// Serves it to its end, in a task of its own: a client that is slow is slow for itself. The end may also be that somebody
    /// else needs its place.
    pub(super) async fn serve(self) {
        let Self { stream, place, server, acceptor, watcher } = self;
        let place = Arc::new(place);
        let given_up = server.metrics.connections_given_up.clone();
        tokio::select! {
            () = talk(stream, place.clone(), server, acceptor, watcher) => {}
            () = place.taken_back() => {
                given_up.inc();
            }
        }
    }
}

async fn talk(stream: TcpStream, place: Arc<Permit>, server: Arc<Server>, acceptor: TlsAcceptor, watcher: Watcher) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
    let service = service_fn(move |request| {
        let (server, place) = (server.clone(), place.clone());
        async move {
            place.set_busy(true);
            let answer = server.answer(request, place.peer()).await;
            place.set_busy(false);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(BUFFER);
    // Errors of connections are the other side's: it sees them as well.
    let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
}

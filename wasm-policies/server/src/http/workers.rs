//! Threads that serve connections: an event loop on each, so that TLS and HTTP use every processor.

use std::thread::JoinHandle;

use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::connection::Connection;

/// Threads at most: reviews are answered elsewhere, and these only read and write.
const MOST: usize = 8;

/// The threads.
pub(super) struct Workers {
    threads: Vec<(UnboundedSender<Connection>, JoinHandle<()>)>,
    next: usize,
}

impl Workers {
    /// One for each processor. Where no thread can be started, connections are served by whoever takes them.
    pub(super) fn start() -> Self {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST);
        let start = |number| {
            let (sender, receiver) = unbounded_channel();
            let named = std::thread::Builder::new().name(format!("reviews-{number}"));
            Some((sender, named.spawn(move || serve(receiver)).ok()?))
        };
        Self { threads: (0..count).filter_map(start).collect(), next: 0 }
    }

    /// Gives a connection to the next one.
    pub(super) fn give(&mut self, connection: Connection) {
        self.next = self.next.wrapping_add(1);
        let given = match self.threads.len() {
            0 => Err(connection),
            count => self.threads[self.next % count].0.send(connection).map_err(|error| error.0),
        };
        if let Err(connection) = given {
            tokio::spawn(connection.serve());
        }
    }
}

/// Serves what comes, until nothing comes any more.
fn serve(mut connections: UnboundedReceiver<Connection>) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        while let Some(mut connection) = connections.recv().await {
            // A socket belongs to the event loop that it was registered with.
            let moved = connection.stream.into_std().and_then(TcpStream::from_std);
            let Ok(stream) = moved else { continue };
            connection.stream = stream;
            tokio::spawn(connection.serve());
        }
    });
    // What still runs is cut off: the server has waited for it.
    runtime.shutdown_background();
}

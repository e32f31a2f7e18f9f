//! What can go wrong, said in one sentence.

use std::io;

/// Why a cluster could not be started or asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine lacks something that clusters need.
    #[error("{0}")]
    Host(String),
    /// A binary of the control plane could not be built.
    #[error("building {binary} failed: {why}")]
    Build {
        /// The binary.
        binary: String,
        /// What the Go tool said last.
        why: String,
    },
    /// A cluster did not start, or died.
    #[error("cluster {cluster}: {why}")]
    Cluster {
        /// The cluster.
        cluster: String,
        /// What went wrong, with the last lines of the log that tells it.
        why: String,
    },
    /// kubectl ended with an error.
    #[error("cluster {cluster}: kubectl {arguments}: {stderr}")]
    Kubectl {
        /// The cluster.
        cluster: String,
        /// The arguments of kubectl.
        arguments: String,
        /// What kubectl said.
        stderr: String,
    },
    /// A file or a process could not be handled.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

/// Names what was tried when an operation of the system fails.
pub(crate) trait Trying<T> {
    /// Turns the error into ours, which names what was tried.
    fn trying(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Trying<T> for Result<T, E> {
    fn trying(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::Io { what: what(), source: error.into() })
    }
}

impl Error {
    /// Says that this machine lacks something.
    pub(crate) fn host(text: impl Into<String>) -> Self {
        Error::Host(text.into())
    }
}

//! What keeps a simulation from its work. What a hub refuses to clusters is no error: it stands in the report.

/// Why clusters cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kubeconfig cannot be read or used.
    #[error("the kubeconfig {file} cannot be used: {why}")]
    Kubeconfig {
        /// Its path.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The bootstrap identity may not do what agents need, or the hub does not answer.
    #[error("the hub cannot be watched as the bootstrap identity: {0}")]
    Watch(String),
    /// This process cannot have what it needs.
    #[error("{0}")]
    Machine(String),
}

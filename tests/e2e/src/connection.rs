//! Clusters as our libraries see them.

use std::path::Path;
use std::sync::Arc;

use ocm_core::Silent;
use ocm_kube::Connection;

/// A cluster as our libraries see it, by the user of a kubeconfig.
///
/// # Panics
/// When there is no connection.
pub async fn connect(kubeconfig: &Path) -> ocm_kube::Cluster {
    let connection = Connection { kubeconfig: Some(kubeconfig.to_owned()), ..Connection::default() };
    ocm_kube::connect(&connection, Arc::new(Silent)).await.expect("a connection")
}

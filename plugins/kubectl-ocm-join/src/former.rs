//! The flags of the hub that a cluster leaves for another one.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ocm_cli::Ui;
use ocm_core::{Failure, Role};
use ocm_flows::join::FormerHubOptions;
use ocm_kube::{Connection, connect};

/// The hub that the cluster leaves.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "The former hub")]
pub(crate) struct FormerHubArgs {
    /// Hub that the cluster leaves for the one that it joins, by the address of its API server; no other hub is left
    #[arg(long, value_name = "URL", conflicts_with = "render")]
    pub(crate) former_hub: Option<String>,
    /// Context of that hub: what it has of the cluster is deleted, as by kubectl ocm detach, when the cluster is available on the
    /// other one. Without it, that stays
    #[arg(long, value_name = "NAME", conflicts_with = "render")]
    pub(crate) former_hub_context: Option<String>,
    /// Path of the kubeconfig file that holds that hub (default: the one of --kubeconfig)
    #[arg(long, value_name = "FILE", conflicts_with = "render")]
    pub(crate) former_hub_kubeconfig: Option<PathBuf>,
}

impl FormerHubArgs {
    /// Connects to the hub, if there is access to it.
    ///
    /// # Errors
    /// A context that is not there.
    pub(crate) async fn connect(self, plain: &Connection, ui: &Arc<Ui>) -> Result<FormerHubOptions, Failure> {
        let Self { former_hub: server, former_hub_context: context, former_hub_kubeconfig: kubeconfig } = self;
        if context.is_none() && kubeconfig.is_none() {
            return Ok(FormerHubOptions { server, hub: None });
        }
        let connection = Connection {
            kubeconfig: kubeconfig.or_else(|| plain.kubeconfig.clone()),
            context,
            request_timeout: plain.request_timeout,
            role: Role::Hub,
            ..Connection::default()
        };
        Ok(FormerHubOptions { server, hub: Some(connect(&connection, ui.clone()).await?) })
    }
}

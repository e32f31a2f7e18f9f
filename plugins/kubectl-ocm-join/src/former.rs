//! The flags of the hub that a cluster leaves for another one.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgGroup, Args};
use ocm_cli::Ui;
use ocm_core::{Failure, Role};
use ocm_flows::join::FormerHubOptions;
use ocm_kube::{Connection, connect};

/// The hub that the cluster leaves.
#[derive(Args, Clone, Debug, Default)]
#[command(
    next_help_heading = "The former hub",
    group = ArgGroup::new("which_former_hub").args(["former_hub_context", "former_hub_kubeconfig"]).multiple(true)
)]
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
    /// User name to act as on that hub
    #[arg(long, requires = "which_former_hub", value_name = "USER", conflicts_with = "render", hide_short_help = true)]
    pub(crate) former_hub_as: Option<String>,
    /// Group to act as on that hub (repeatable)
    #[arg(long, requires = "former_hub_as", value_name = "GROUP", conflicts_with = "render", hide_short_help = true)]
    pub(crate) former_hub_as_group: Vec<String>,
}

impl FormerHubArgs {
    /// Checks what can be checked without a file or a server.
    ///
    /// # Errors
    /// A usage failure for what is no address of an API server.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(server) = &self.former_hub else { return Ok(()) };
        FormerHubOptions::check(server).map_err(|failure| {
            let message = format!("--former-hub {}", failure.message);
            Failure { message, ..failure }
        })
    }

    /// Connects to the hub, if there is access to it.
    ///
    /// # Errors
    /// A context that is not there.
    pub(crate) async fn connect(self, plain: &Connection, ui: &Arc<Ui>) -> Result<FormerHubOptions, Failure> {
        let Self {
            former_hub: server,
            former_hub_context: context,
            former_hub_kubeconfig: kubeconfig,
            former_hub_as: act_as,
            former_hub_as_group: as_groups,
        } = self;
        if context.is_none() && kubeconfig.is_none() {
            return Ok(FormerHubOptions { server, hub: None });
        }
        let connection = Connection {
            kubeconfig: kubeconfig.or_else(|| plain.kubeconfig.clone()),
            context,
            act_as,
            as_groups,
            request_timeout: plain.request_timeout,
            role: Role::FormerHub,
            ..Connection::default()
        };
        Ok(FormerHubOptions { server, hub: Some(connect(&connection, ui.clone()).await?) })
    }
}

#[cfg(test)]
mod tests {
    use ocm_core::Reason;

    use super::*;

    #[test]
    fn a_former_hub_is_named_by_an_address_without_credentials() {
        let of = |text: &str| FormerHubArgs { former_hub: Some(text.to_owned()), ..FormerHubArgs::default() }.check();
        assert_eq!((of("https://hub.example:6443"), FormerHubArgs::default().check()), (Ok(()), Ok(())));
        let refused = of("nonsense").unwrap_err();
        assert_eq!(refused.reason, Reason::Usage);
        assert!(refused.message.starts_with("--former-hub \"nonsense\" is no address of an API server"), "{refused}");
        let refused = of("https://me:s3cret@hub.example").unwrap_err().to_string();
        assert!(refused.contains("it holds credentials") && !refused.contains("s3cret"), "{refused}");
    }
}

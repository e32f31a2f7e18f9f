//! The command line of `kubectl ocm detach`.

use clap::Args;
use ocm_cli::{ConcurrencyArgs, RemovalArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-detach")
        .about("Take clusters away from a hub")
        .long_about(
            "Take clusters away from a hub: delete the ManagedCluster, wait until the agent has removed what add-ons and works \
             have put on the cluster, and delete what would stay: certificate requests, lease, namespace.\n\n\
             Add-ons go first, then works, those with the lowest cleanup priority before the others. A cluster whose agent is \
             not there to clean up is refused without --force. The namespace of a cluster stays if the hub did not make it, or \
             if it holds something of somebody else's. Run it again at any time: it goes on where it stopped.\n\n\
             The agent on the cluster stays; kubectl ocm unjoin takes it away, and with access to the hub does both.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm detach c1 --context hub --dry-run

  # Delete it all, and wait until it is gone
  kubectl ocm detach c1 --context hub

  # Several clusters at once, in a script
  kubectl ocm detach c1 c2 c3 --context hub --yes

  # A cluster that does not exist any more
  kubectl ocm detach c1 --context hub --force

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 refused: an agent is not there to clean up, \
or confirmation was declined, 124 it was not gone in time, 130 interrupted.";

/// Arguments of `kubectl ocm detach`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DetachArgs {
    /// Names of the clusters on the hub
    #[arg(value_name = "CLUSTER", required = true)]
    pub(crate) names: Vec<String>,
    /// Take away the finalizers of add-ons and works for which an agent is needed that is not there
    ///
    /// Each is named first. What was applied stays on the cluster. An agent that is there gets the time of --timeout to clean
    /// up. Finalizers that somebody else has set stay.
    #[arg(long)]
    pub(crate) force: bool,
    /// Delete the namespaces of the clusters whoever made them, with whatever else is in them
    #[arg(long)]
    pub(crate) purge: bool,
    /// How long each cluster is waited for, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) concurrency: ConcurrencyArgs,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

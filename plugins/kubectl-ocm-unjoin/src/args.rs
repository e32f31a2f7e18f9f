//! The command line of `kubectl ocm unjoin`.

use clap::{ArgAction, Args, ValueEnum};
use ocm_cli::RemovalArgs;
use ocm_kube::{ClientArgs, FallbackHubArgs, HubArgs};

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-unjoin")
        .about("Take the agent away from a cluster")
        .long_about(
            "Take the agent away from a cluster: delete its Klusterlet, wait until the operator has removed the agents and their \
             namespaces, and, where no other Klusterlet is left, delete the operator, its rights, its lease and the \
             CustomResourceDefinitions of which there are no objects.\n\n\
             With access to the hub, with --hub-context, the cluster is deleted there first, while its agent is there to remove \
             what add-ons and works have put on it; and at last what it leaves on the hub. Without, a cluster on which works have \
             put something is refused, unless --works says what becomes of it.\n\n\
             Of an agent that turns to several hubs, the cluster is deleted from those of --fallback-hub-context, too. \
             --hub-context names the one that the agent is at.\n\n\
             The Klusterlet of exactly this cluster goes, whatever it is called and in whatever mode, and no other. Run it again \
             at any time: it goes on where it stopped.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # Both sides, with access to both clusters
  kubectl ocm unjoin c1 --context c1 --hub-context hub

  # See what would be deleted, and delete nothing
  kubectl ocm unjoin c1 --context c1 --hub-context hub --dry-run

  # Only this side; the hub's administrator runs kubectl ocm detach c1
  kubectl ocm unjoin c1 --context c1

  # The hub does not exist any more; what its works have put here stays
  kubectl ocm unjoin c1 --context c1 --works=keep

  # With the hubs that its agent could turn to
  kubectl ocm unjoin c1 --context c1 --hub-context hub --fallback-hub-context hub2

  # One of several clusters that are hosted here
  kubectl ocm unjoin c1 --context hosting --hub-context hub

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 refused: works have put something here, \
another hub, or confirmation was declined, 124 it was not gone in time, 130 interrupted.";

/// Arguments of `kubectl ocm unjoin`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UnjoinArgs {
    /// Name of the cluster on its hub (default: the only one whose Klusterlet is there)
    #[arg(value_name = "CLUSTER")]
    pub(crate) name: Option<String>,
    /// Alias for compatibility with clusteradm
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "name")]
    pub(crate) cluster_name: Option<String>,
    /// Name of the Klusterlet, where several are of clusters of that name
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) klusterlet: Option<String>,
    /// What becomes of objects that works have put there, without access to the hub
    #[arg(long, value_enum, value_name = "HOW", conflicts_with_all = ["hub_context", "hub_kubeconfig"])]
    pub(crate) works: Option<WorksArg>,
    /// Leave the operator there although no Klusterlet is left
    #[arg(long)]
    pub(crate) keep_operator: bool,
    /// Alias for compatibility with clusteradm
    #[arg(long, value_name = "BOOL", hide = true, default_value_t = true, action = ArgAction::Set, num_args = 0..=1)]
    #[arg(default_missing_value = "true", require_equals = true, conflicts_with = "keep_operator")]
    pub(crate) purge_operator: bool,
    /// Take away the finalizers for which an agent or an operator is needed that is not there
    ///
    /// Each is named. What was applied stays on the cluster. Who is there gets the time of --timeout. Finalizers that somebody
    /// else has set stay.
    #[arg(long)]
    pub(crate) force: bool,
    /// Delete the operators' namespace, and the cluster's on the hub, whoever made them, with whatever else is in them
    #[arg(long)]
    pub(crate) purge: bool,
    /// How long each step is waited for, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    #[command(flatten)]
    pub(crate) further: FallbackHubArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What becomes of objects of works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorksArg {
    /// They are deleted
    Delete,
    /// They stay
    Keep,
}

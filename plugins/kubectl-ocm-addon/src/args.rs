//! The command line of `kubectl ocm addon`.

use clap::{Args, Subcommand};
use ocm_cli::{OutputArgs, PlanArgs, RemovalArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-addon")
        .about("Enable add-ons on clusters, and disable them")
        .long_about(
            "Enable add-ons on clusters, and disable them.\n\n\
             An add-on of a cluster is a ManagedClusterAddOn in the cluster's namespace on the hub; what it is, its \
             ClusterManagementAddOn says. kubectl ocm get addons shows where each stands.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # Enable an add-on on two clusters, and wait until it is well there
  kubectl ocm addon enable hello --clusters c1,c2 --wait --context hub

  # Where each stands
  kubectl ocm get addons --context hub

  # Disable it, and wait until it is gone
  kubectl ocm addon disable hello --clusters c1 --context hub

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 refused: nothing defines the
add-on, an agent is not there to clean up, or the answer was no, 124 it was not there, or not
gone, in time, 130 interrupted.";

const ENABLE: &str = "Examples:
  # See what would change, and change nothing
  kubectl ocm addon enable hello --clusters c1 --diff --context hub

  # With a configuration of its own
  kubectl ocm addon enable hello --clusters c1 --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io/default/proxied";

const DISABLE: &str = "Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm addon disable hello --clusters c1 --dry-run --context hub

  # Of a cluster that does not exist any more
  kubectl ocm addon disable hello --clusters c1 --force --context hub";

/// Arguments of `kubectl ocm addon`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AddOnArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is done.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Verb {
    /// Enable add-ons on clusters, or change what was said of them
    ///
    /// What is not given stays as it is, and so does what somebody else has set. An add-on without ClusterManagementAddOn is
    /// refused without --without-definition, and so is a configuration of a kind that it does not take.
    #[command(after_help = ENABLE)]
    Enable(Box<EnableArgs>),
    /// Disable add-ons on clusters, and wait until what they put there is gone
    ///
    /// Some add-ons have jobs run on the cluster before they go. A cluster whose agent is not there for that is refused without
    /// --force.
    #[command(after_help = DISABLE)]
    Disable(DisableArgs),
}

/// Arguments of `kubectl ocm addon enable`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EnableArgs {
    /// Names of add-ons
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// The clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',', required = true)]
    pub(crate) clusters: Vec<String>,
    /// Namespace of the add-on's agent on the clusters (default: what the add-on says)
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Object on the hub that configures the add-on there, instead of its default (repeatable)
    ///
    /// Those of other kinds that are set stay.
    #[arg(long = "config", value_name = "RESOURCE.GROUP/NAMESPACE/NAME")]
    pub(crate) configs: Vec<String>,
    /// Labels of the ManagedClusterAddOns (repeatable, or with commas)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(crate) labels: Vec<String>,
    /// Enable it although the hub has no ClusterManagementAddOn of that name
    #[arg(long)]
    pub(crate) without_definition: bool,
    /// Wait until the add-ons are available on every cluster
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long --wait waits, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    /// How many clusters are worked on at once
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    #[arg(hide_short_help = true)]
    pub(crate) concurrency: u16,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm addon disable`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DisableArgs {
    /// Names of add-ons
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// The clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',', required = true)]
    pub(crate) clusters: Vec<String>,
    /// Take away the finalizers of add-ons for which an agent is needed that is not there
    ///
    /// Each is named first. What was applied stays on the cluster. An agent that is there gets the time of --timeout to clean
    /// up. Finalizers that somebody else has set stay.
    #[arg(long)]
    pub(crate) force: bool,
    /// How long each cluster is waited for, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    /// How many clusters are worked on at once
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    #[arg(hide_short_help = true)]
    pub(crate) concurrency: u16,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

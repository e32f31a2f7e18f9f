//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use ocm_cli::{ImageArgs, OutputArgs, PlanArgs};
use ocm_kube::{ClientArgs, HubArgs};

/// What the help says before the flags.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-upgrade")
        .about("Bring hubs and managed clusters to a newer release of Open Cluster Management")
        .after_help("kubectl ocm upgrade hub --help and upgrade klusterlet --help tell more.")
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// `kubectl ocm upgrade`.
#[derive(Args, Debug)]
pub(crate) struct UpgradeArgs {
    #[command(subcommand)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is upgraded.
#[derive(Subcommand, Debug)]
pub(crate) enum What {
    /// Bring a hub to a newer release
    Hub(Box<HubUpgradeArgs>),
    /// Bring the agent of a managed cluster to a newer release, or those of many clusters in stages
    Klusterlet(Box<KlusterletUpgradeArgs>),
}

const HUB_EXAMPLES: &str = "\
Examples:
  # See what would change, and change nothing
  kubectl ocm upgrade hub --context hub --bundle-version 1.3.1 --diff

  # Upgrade, and wait until everything has rolled out
  kubectl ocm upgrade hub --context hub --bundle-version 1.3.1 --wait

  # From a registry of your own, with every image pinned by its digest
  kubectl ocm upgrade hub --context hub --registry registry.example/ocm \\
    --image-digests digests.json --wait

  # The way back, as the command prints it at the end
  kubectl ocm upgrade hub --context hub --bundle-version v1.2.1 --allow-downgrade --wait

A hub that runs the release already stays as it is. A command that was killed is run again: it goes on where it \
stopped.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 --diff found differences or a rule refused, \
124 it had not rolled out in time, 130 interrupted.";

/// Bring a hub to a newer release
///
/// Changes the CustomResourceDefinition of ClusterManager, the roles of the operator and of whoever registers
/// clusters, the operator, and the images of the ClusterManager; every other setting stays. Registries and names of
/// images stay unless --registry says another one, tags become that of the release. An older release is refused, and
/// so is one that does not have a version in which objects of the hub may be stored.
///
/// With --wait the ClusterManager is changed when the new operator has rolled out, and the command ends when every Deployment
/// has the new image, the ClusterManager says that all is applied, and every webhook answers.
#[derive(Args, Debug)]
#[command(after_help = HUB_EXAMPLES)]
pub(crate) struct HubUpgradeArgs {
    /// Wait until everything has rolled out
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Release to upgrade to: 1.3.1, v1.3.1 or latest [default: v1.3.1]
    #[arg(long, value_name = "VERSION")]
    pub(crate) bundle_version: Option<String>,
    /// Where the new images are: all of them, by their default names (default: as installed)
    #[arg(long, value_name = "HOST/PATH", visible_alias = "image-registry", help_heading = "Images")]
    pub(crate) registry: Option<String>,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    /// Go to a release that is older than what runs; not tested with binaries of older releases
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The heading of what goes with many clusters.
const MANY: &str = "Many clusters";

const KLUSTERLET_EXAMPLES: &str = "\
Examples:
  # Upgrade to the release of the hub, and wait until the new agent has reported there
  kubectl ocm upgrade klusterlet --context c1 --hub-context hub --wait

  # See what would change, and change nothing
  kubectl ocm upgrade klusterlet --context c1 --bundle-version 1.3.1 --diff

  # One of several clusters that are hosted there
  kubectl ocm upgrade klusterlet c2 --context hosting --hub-context hub --wait

  # From a registry of your own, with every image pinned by its digest
  kubectl ocm upgrade klusterlet --context c1 --registry registry.example/ocm \\
    --image-digests digests.json --wait

  # Many clusters, a tenth of them at once, those of the set canary first
  kubectl ocm upgrade klusterlet --contexts c1,c2,c3,c4 --hub-context hub \\
    --cluster-sets canary,prod --stage 10%

  # Those of a fleet file, one after the other: see what would become of each, then upgrade them
  kubectl ocm upgrade klusterlet -f fleet.yaml --stage 1 --dry-run
  kubectl ocm upgrade klusterlet -f fleet.yaml --stage 1

A cluster that runs the release already stays as it is. A command that was killed is run again: it goes on where \
it stopped.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 --diff found differences or a rule refused, \
124 it had not rolled out in time, 130 interrupted.";

/// Bring the agent of a managed cluster to a newer release, or those of many clusters in stages
///
/// Changes the CustomResourceDefinition of Klusterlet, the operator's role, the operator, and the images of one
/// Klusterlet, in whatever mode; every other setting stays. An operator that serves several Klusterlets is upgraded
/// for all of them. An older release is refused; with access to the hub, with --hub-context, so is one of a later
/// minor release than the hub.
///
/// With --wait the Klusterlet is changed when the new operator has rolled out, and the command ends when every Deployment has
/// the new image and, with access to the hub, the new agent has renewed its lease there.
///
/// With --contexts, many clusters are upgraded: all are looked at before one is touched; then those of a stage together, waiting
/// for each, and no further than the first stage in which one does not get there. The operators of clusters cannot be reached
/// through the hub, so each has to be in the kubeconfig.
///
/// With --filename, they are those of a fleet file, as kubectl ocm join takes it: it says how they and their hub are reached.
/// Release, registry and digests are those that the file says of each cluster where no flag says them for all.
#[derive(Args, Debug)]
#[command(after_help = KLUSTERLET_EXAMPLES)]
#[command(group = ArgGroup::new("which_many").args(["contexts", "filename"]))]
pub(crate) struct KlusterletUpgradeArgs {
    /// Name of the cluster on its hub (default: the only one whose Klusterlet is there)
    #[arg(value_name = "CLUSTER", conflicts_with = "which_many")]
    pub(crate) name: Option<String>,
    /// Name of the Klusterlet, where several are of clusters of that name
    #[arg(long, value_name = "NAME", hide_short_help = true, conflicts_with = "which_many")]
    pub(crate) klusterlet: Option<String>,
    /// Wait until the agents have rolled out
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait for a cluster, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Release to upgrade to: 1.3.1, v1.3.1 or latest [default: that of the hub, v1.3.1 without access to it]
    #[arg(long, value_name = "VERSION")]
    pub(crate) bundle_version: Option<String>,
    /// Where the new images are: all of them, by their default names (default: as installed)
    #[arg(long, value_name = "HOST/PATH", visible_alias = "image-registry", help_heading = "Images")]
    pub(crate) registry: Option<String>,
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    /// Go to a release that is older than what runs; not tested with binaries of older releases
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
    /// Contexts of the clusters to upgrade, in this order; waits for each
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = MANY)]
    #[arg(conflicts_with_all = ["diff", "render"])]
    pub(crate) contexts: Vec<String>,
    /// File of kind Fleet whose clusters are upgraded, in its order; waits for each; - for stdin
    #[arg(short, long, value_name = "FILE", help_heading = MANY)]
    #[arg(conflicts_with_all = ["diff", "render", "hub_kubeconfig", "hub_context"])]
    pub(crate) filename: Option<PathBuf>,
    /// How many of them at once: a number, or a share such as 10%
    #[arg(long, value_name = "SIZE", default_value = "10%", help_heading = MANY, requires = "which_many")]
    pub(crate) stage: String,
    /// Only those in these cluster sets of the hub, set by set in this order; the share of --stage is of each
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = MANY, requires = "which_many")]
    pub(crate) cluster_sets: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

//! The command line of `kubectl ocm placement`.

use clap::{Args, Subcommand};
use ocm_cli::{ApplyArgs, RemovalArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("placement")
        .about("Create placements, which select clusters, and delete them")
        .long_about(
            "Create placements, which select clusters, and delete them.\n\n\
             A placement selects clusters out of the sets that are bound to its namespace; works and add-ons follow its decisions. \
             kubectl ocm get placements says what placements select, and what keeps them from selecting more.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # All clusters of production, out of a set that is bound to the namespace
  kubectl ocm clusterset bind prod --namespace team-a --context hub
  kubectl ocm placement create web -n team-a --cluster-sets prod -l env=prod --wait --context hub

  # What it selects, and why not more
  kubectl ocm get placements web -n team-a --explain --context hub

  # Delete it; what uses it is shown first
  kubectl ocm placement delete web -n team-a --context hub

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused: a set is not bound, the placement is somebody else's, or \
confirmation was declined; or with --wait, it selects fewer clusters than it is to, 124 it was not decided in \
time, 130 interrupted.";

const CREATE: &str = "Examples:
  # See what would change, and change nothing
  kubectl ocm placement create web -n team-a -l env=prod --diff --context hub

  # Clusters of either kind, in Europe, also those of which nothing is heard
  kubectl ocm placement create web -n team-a -l env=prod -l env=staging \\
    --claim-selector 'region in (eu-1,eu-2)' --tolerate-unreachable --context hub

  # Two clusters, those with the most memory, and no change without need
  kubectl ocm placement create web -n team-a --count 2 --context hub \\
    --prioritizer BuiltIn:ResourceAllocatableMemory:1 --prioritizer BuiltIn:Steady:3

  # By a score that an add-on writes
  kubectl ocm placement create web -n team-a --count 1 --prioritizer AddOn:usage:cpu:2 --context hub";

const DELETE: &str = "\
The ManifestWorkReplicaSets of the namespace that name the placement, and the add-ons that the hub installs by \
it, are named first: what they have put on clusters goes with its decisions. Others may use it, too.

Examples:
  # See what would be deleted, and what uses it
  kubectl ocm placement delete web -n team-a --dry-run --context hub

  # In a script
  kubectl ocm placement delete web api -n team-a --yes --context hub";

/// Arguments of `kubectl ocm placement`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlacementArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is done.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Verb {
    /// Create a placement, or change what it selects
    ///
    /// The command line is the whole placement: run it again with other flags, and what is not given is taken back. Where
    /// nothing differs, nothing is changed. A placement that somebody else has written is refused without --overwrite, unless
    /// it says the same; so is a set that is not bound to the namespace.
    #[command(after_help = CREATE)]
    Create(Box<CreateArgs>),
    /// Delete placements
    #[command(after_help = DELETE)]
    Delete(DeleteArgs),
}

/// Arguments of `kubectl ocm placement create`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until the hub has decided, and show what is selected")))]
#[command(mut_arg("timeout", |arg| arg.default_value("1m")))]
pub(crate) struct CreateArgs {
    /// Name of the placement
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Its namespace (default: the one of the context)
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Sets to select from (repeatable, or with commas; default: all that are bound to the namespace)
    #[arg(long, visible_alias = "clustersets", value_name = "SET", value_delimiter = ',')]
    pub(crate) cluster_sets: Vec<String>,
    /// Labels that clusters have, e.g. env=prod,region in (eu,us) (repeatable: a cluster has to match one of them)
    #[arg(short = 'l', long = "label-selector", value_name = "SELECTOR")]
    pub(crate) label_selectors: Vec<String>,
    /// Claims that clusters must have besides, e.g. region in (eu,us) (repeatable: all of them)
    #[arg(long = "claim-selector", value_name = "SELECTOR")]
    pub(crate) claim_selectors: Vec<String>,
    /// A score by which clusters come first, and its weight from -10 to 10 (repeatable)
    ///
    /// BuiltIn:NAME:WEIGHT for Balance, Steady, ResourceAllocatableCPU and ResourceAllocatableMemory, or
    /// AddOn:NAME:SCORE:WEIGHT for a score of the AddOnPlacementScores of that name. Balance and Steady weigh 1 unless they are
    /// named.
    #[arg(long = "prioritizer", alias = "prioritizers", value_name = "SCORE:WEIGHT", value_delimiter = ',')]
    pub(crate) prioritizers: Vec<String>,
    /// How many clusters are selected (default: all that can be)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) count: Option<i32>,
    /// Select clusters of which the hub hears nothing, too
    #[arg(long)]
    pub(crate) tolerate_unreachable: bool,
    /// Select clusters whose API server is not healthy, too
    #[arg(long)]
    pub(crate) tolerate_unavailable: bool,
    /// Select clusters with this taint, too (repeatable)
    #[arg(long = "tolerate", value_name = "KEY[=VALUE][:EFFECT]")]
    pub(crate) tolerations: Vec<String>,
    /// Replace a placement that somebody else has written
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) apply: ApplyArgs,
}

/// Arguments of `kubectl ocm placement delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeleteArgs {
    /// Names of the placements
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Their namespace (default: the one of the context)
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

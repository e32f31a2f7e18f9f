//! The command line of `kubectl ocm work`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use ocm_cli::contents::ObjectFilesArgs;
use ocm_cli::{OutputArgs, SendArgs, WithdrawArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-work")
        .about("Bring objects to clusters, see what became of them, and take them away")
        .long_about(
            "Bring objects to clusters, see what became of them, and take them away.\n\n\
             A work is a ManifestWork in the namespace of a cluster on the hub: the cluster's agent applies its objects, keeps \
             them as the work says, and tells what became of them.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # Bring what stands in a file to two clusters, and wait until it is there
  kubectl ocm work create web -f web.yaml --clusters c1,c2 --wait --context hub

  # What became of each object
  kubectl ocm work status web --context hub

  # Take it away again
  kubectl ocm work delete web --clusters c1,c2 --context hub

  # Every work of a hub, one line each
  kubectl ocm get works --context hub

Exit codes: 0 done, or every object is there, 1 failed, 2 the command line or a file cannot be used, 3 refused, \
or an object is not there, 124 it was not there, or not gone, in time, 130 interrupted.";

const CREATE: &str = "Examples:
  # See what would change, and change nothing
  kubectl ocm work create web -f manifests/ -R --clusters c1 --diff --context hub

  # To all clusters that a placement selects now
  kubectl ocm work create web -f web.yaml --placement default/all --context hub

  # To all clusters that a placement selects, now and later
  kubectl ocm work create web -f web.yaml --placement default/all --replicaset --context hub

  # From a generator, with rights of a ServiceAccount of the cluster
  kustomize build . \\
    | kubectl ocm work create web -f - --clusters c1 --executor default/deployer --context hub

  # Objects that may be there already, whose other fields somebody else looks after
  kubectl ocm work create web -f web.yaml --clusters c1 --update-strategy ServerSideApply \\
    --context hub

  # Objects that outlive the work
  kubectl ocm work create crds -f crds.yaml --clusters c1 --orphan --context hub";

const STATUS: &str = "\
APPLIED and AVAILABLE are what the agent says of each object, WHY is what keeps it from being there. FEEDBACK is \
what the agent reports of it, where the work asks for it: see --feedback of work create.

Examples:
  kubectl ocm work status web --context hub
  kubectl ocm work status -c c1 --context hub
  kubectl ocm work status web -c c1,c2 -o json --context hub";

const DELETE: &str = "Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm work delete web --clusters c1 --dry-run --context hub

  # In a script
  kubectl ocm work delete web --clusters c1,c2 --yes --context hub

  # Of a cluster that does not exist any more
  kubectl ocm work delete web --clusters c1 --force --context hub";

/// Arguments of `kubectl ocm work`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is done.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Verb {
    /// Bring objects to clusters, or change what was brought
    ///
    /// The command line and the files are the whole work: run it again with others, and objects that are not in the files any
    /// more are deleted from the clusters, and options that are not given are taken back. Where nothing differs, nothing is
    /// changed. A work that somebody else has written is refused without --overwrite, before anything is sent.
    #[command(after_help = CREATE)]
    Create(Box<CreateArgs>),
    /// Say of each object whether it is there, and what keeps it from being there
    #[command(after_help = STATUS)]
    Status(StatusArgs),
    /// Delete works, and wait until the agents have removed what they put on the clusters
    ///
    /// Of works that were created with --orphan, the objects stay. A cluster whose agent is not there to clean up is refused
    /// without --force; so is a work that something on the hub would create again.
    #[command(after_help = DELETE)]
    Delete(DeleteArgs),
}

/// Arguments of `kubectl ocm work create`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until every object is applied and available on every cluster")))]
#[command(group = ArgGroup::new("target").args(["clusters", "placement"]).required(true))]
pub(crate) struct CreateArgs {
    /// Name of the work, the same on every cluster
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) files: ObjectFilesArgs,
    /// The clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',')]
    pub(crate) clusters: Vec<String>,
    /// The clusters that a placement selects now; what it decides later changes nothing without --replicaset
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "clusters")]
    pub(crate) placement: Option<String>,
    /// Create a ManifestWorkReplicaSet in the namespace of the placement instead: the hub then makes a work for each cluster that
    /// the placement selects, and follows its decisions
    #[arg(long, requires = "placement", conflicts_with_all = ["clusters", "wait"])]
    pub(crate) replicaset: bool,
    /// How agents bring objects to what the work says (default: Update)
    #[arg(long, value_enum, value_name = "HOW", ignore_case = true)]
    pub(crate) update_strategy: Option<StrategyArg>,
    /// With --update-strategy=ServerSideApply: take over fields that others own on the clusters
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// The objects stay on the clusters when the work is deleted
    #[arg(long)]
    pub(crate) orphan: bool,
    /// Have agents report how Deployments, DaemonSets, Jobs and Pods are
    #[arg(long)]
    pub(crate) feedback: bool,
    /// ServiceAccount on the clusters with whose rights the agents apply the objects
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) executor: Option<String>,
    /// Replace works of this name that somebody else has written
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) send: SendArgs,
}

/// How agents bring objects to what a work says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// They are updated
    #[value(name = "Update")]
    Update,
    /// They are created where they are missing, and left as they are
    #[value(name = "CreateOnly")]
    CreateOnly,
    /// They are applied server-side: others may own some of their fields
    #[value(name = "ServerSideApply")]
    ServerSideApply,
    /// They are only looked at
    #[value(name = "ReadOnly")]
    ReadOnly,
}

/// Arguments of `kubectl ocm work status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// Names of works
    #[arg(value_name = "NAME", required_unless_present = "clusters")]
    pub(crate) names: Vec<String>,
    /// Only works of these clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',')]
    pub(crate) clusters: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm work delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeleteArgs {
    /// Names of works
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// The clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',', required = true)]
    pub(crate) clusters: Vec<String>,
    #[command(flatten)]
    pub(crate) withdraw: WithdrawArgs,
}

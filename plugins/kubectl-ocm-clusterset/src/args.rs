//! The command line of `kubectl ocm clusterset`.

use clap::{Args, Subcommand};
use ocm_cli::{DryRunArg, OutputArgs, RemovalArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("clusterset")
        .about("Make sets of clusters, put clusters into them, and bind them to namespaces")
        .long_about(
            "Make sets of clusters, put clusters into them, and bind them to namespaces.\n\n\
             A cluster is in one set: that of its label cluster.open-cluster-management.io/clusterset. Placements of a namespace \
             select clusters out of the sets that are bound to it. The hub puts clusters without a set into the set default, and \
             all clusters are in the set global.\n\n\
             kubectl ocm get clustersets lists the sets, and kubectl ocm get placements says what placements select.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # A set, with clusters in it, for the placements of a namespace
  kubectl ocm clusterset create prod --context hub
  kubectl ocm clusterset set prod c1 c2 --context hub
  kubectl ocm clusterset bind prod --namespace team-a --context hub

  # See which placements would lose a cluster, and change nothing
  kubectl ocm clusterset set prod c1 --context hub --dry-run

  # A namespace on every cluster of the set
  kubectl ocm clusterset set prod --namespaces monitoring --context hub

  # Every cluster of a region, in a script
  kubectl ocm clusterset set eu -l region=eu --yes --context hub

  # Back to the set default
  kubectl ocm clusterset unset prod c1 --context hub

  # Delete the set, also if it has clusters or bindings
  kubectl ocm clusterset delete prod --force --context hub

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused: the set is in use or is not changed by hand, or confirmation was \
declined, 130 interrupted.";

const CREATE: &str = "Examples:
  kubectl ocm clusterset create prod staging --context hub";

const BIND: &str = "The binding has the name of the set. Your user needs the right to create managedclustersets/bind.

Examples:
  kubectl ocm clusterset bind prod --namespace team-a,team-b --context hub
  kubectl ocm clusterset bind prod --namespace team-c --create-namespace --context hub";

const UNBIND: &str = "\
Placements of the namespace select clusters of the set no longer, and what was placed there because of them \
goes. Those that lose clusters are named before.

Examples:
  kubectl ocm clusterset unbind prod --namespace team-a --context hub";

const SET: &str = "\
A cluster leaves the set that it was in. You are asked first if that is another one than default, or if \
placements lose it. Your user needs the right to create managedclustersets/join of both sets. The agents make \
the namespaces of --namespaces on every cluster of the set, also of those that join it later.

Examples:
  kubectl ocm clusterset set prod c1 c2 --context hub
  kubectl ocm clusterset set prod --namespaces monitoring,logging --context hub
  kubectl ocm clusterset set prod -l env=prod --yes --context hub";

const UNSET: &str = "\
The hub puts clusters without a set into the set default, unless it has no such set. Clusters that are in \
another set stay there. Namespaces that the set manages no longer stay on the clusters, with what is in them.

Examples:
  kubectl ocm clusterset unset prod c1 --context hub
  kubectl ocm clusterset unset prod --namespaces logging --context hub
  kubectl ocm clusterset unset prod -l env=dev --yes --context hub";

const DELETE: &str = "\
A set with clusters or bindings is refused without --force, and so are default and global, which the hub makes \
itself.

Examples:
  kubectl ocm clusterset delete staging --context hub
  kubectl ocm clusterset delete prod --force --context hub";

/// Arguments of `kubectl ocm clusterset`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterSetArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is done.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Verb {
    /// Make sets
    #[command(after_help = CREATE)]
    Create(CreateArgs),
    /// Let the placements of namespaces use a set
    #[command(after_help = BIND)]
    Bind(BindArgs),
    /// Let the placements of namespaces use a set no longer
    #[command(after_help = UNBIND)]
    Unbind(UnbindArgs),
    /// Put clusters into a set, and have it manage namespaces
    #[command(after_help = SET)]
    Set(MembersArgs),
    /// Take clusters out of a set, and have it manage namespaces no longer
    #[command(after_help = UNSET)]
    #[command(mut_arg("namespaces", |arg| arg.help("Namespaces that the set manages no longer (repeatable, or with commas)")))]
    Unset(MembersArgs),
    /// Delete sets
    #[command(after_help = DELETE)]
    Delete(DeleteArgs),
}

/// Arguments of `create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CreateArgs {
    /// Names of the sets
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Arguments of `bind`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BindArgs {
    /// Name of the set
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Namespaces (repeatable, or with commas; default: the one of the context)
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_delimiter = ',')]
    pub(crate) namespaces: Vec<String>,
    /// Make namespaces that are not there
    #[arg(long)]
    pub(crate) create_namespace: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Arguments of `unbind`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UnbindArgs {
    /// Name of the set
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Namespaces (repeatable, or with commas; default: the one of the context)
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_delimiter = ',')]
    pub(crate) namespaces: Vec<String>,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

/// Arguments of `set` and `unset`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MembersArgs {
    /// Name of the set
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Names of the clusters
    #[arg(value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,
    /// Names of the clusters, as clusteradm takes them (repeatable, or with commas)
    #[arg(long = "clusters", value_name = "CLUSTER", value_delimiter = ',', hide_short_help = true)]
    pub(crate) more: Vec<String>,
    /// Those clusters whose labels match, e.g. env=prod,region in (eu,us)
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with_all = ["clusters", "more"])]
    pub(crate) selector: Option<String>,
    /// Namespaces that the agents make on every cluster of the set (repeatable, or with commas)
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub(crate) namespaces: Vec<String>,
    /// Skip confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// Arguments of `delete`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeleteArgs {
    /// Names of the sets
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Take the clusters out of the sets, and delete their bindings, before the sets are deleted
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

/// How something is changed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChangeArgs {
    /// Show what would be changed and change nothing: client decides here and only reads, server lets the API server
    /// check it too; without a value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client")]
    #[arg(require_equals = true)]
    pub(crate) dry_run: DryRunArg,
    /// Format of stdout.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

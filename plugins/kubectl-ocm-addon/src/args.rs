//! The command line of `kubectl ocm addon`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ocm_cli::contents::ObjectFilesArgs;
use ocm_cli::{ApplyArgs, OutputArgs, SendArgs, WithdrawArgs};
use ocm_kube::{ClientArgs, ManagedArgs};

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-addon")
        .about("Create add-ons, enable them on clusters, configure them, see what takes effect, disable and delete them")
        .long_about(
            "Create add-ons, enable them on clusters, configure them, see what takes effect, disable and delete them.\n\n\
             An add-on of a cluster is a ManagedClusterAddOn in the cluster's namespace on the hub; what it is, its \
             ClusterManagementAddOn says. kubectl ocm get addons shows where each stands.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # Make an add-on of what stands in a file
  kubectl ocm addon create hello -f agent.yaml --context hub

  # Enable an add-on on two clusters, and wait until it is available there
  kubectl ocm addon enable hello --clusters c1,c2 --wait --context hub

  # Where each stands
  kubectl ocm get addons --context hub

  # Which configuration takes effect, and how far a change has come
  kubectl ocm addon status hello --context hub

  # Another configuration on one cluster
  kubectl ocm addon config set hello --clusters c1 --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io/default/canary

  # Let its agents on a cluster go through a proxy
  kubectl ocm addon proxy-config hello --clusters c1 --https-proxy http://proxy.example:3128 \\
    --no-proxy 10.96.0.0/16 --context hub

  # Disable it, and wait until it is gone
  kubectl ocm addon disable hello --clusters c1 --context hub

  # Delete it, once no cluster has it enabled any more
  kubectl ocm addon delete hello --context hub

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 refused: nothing defines the add-on, it is \
somebody else's, clusters have it, an agent is not there to clean up, or confirmation was declined; or a \
configuration is not in effect, 124 it was not there, or not gone, in time, 130 interrupted.";

const CREATE: &str = "Examples:
  # See what would be created, and create nothing
  kubectl ocm addon create hello -f manifests/ -R --render --context hub

  # Installed by the hub on all clusters that a placement selects
  kubectl ocm addon create hello -f agent.yaml --placement default/all --context hub

  # Its agents may read what a ClusterRole of the hub lets them, in the namespace of their cluster
  kubectl ocm addon create hello -f agent.yaml --hub-registration --cluster-role-bind view \\
    --context hub

  # The next version of it
  kubectl ocm addon create hello -f agent.yaml --version 0.0.2 --context hub";

const STATUS: &str = "\
OBJECT takes effect of each kind of configuration; FROM is where it is said: default is the \
ClusterManagementAddOn, placement its install strategy, cluster the ManagedClusterAddOn. What is said closer to \
the cluster replaces the others. APPLIED is whether what the hub wants is what was applied last. What was taken \
away and is still there has no FROM.

Without --clusters, the rollout is told, too: the stages of each placement by which the hub installs the add-on, \
in their order, with how many of their clusters are done, and what they wait for.

Examples:
  kubectl ocm addon status hello --context hub
  kubectl ocm addon status hello -c c1 -o wide --context hub
  kubectl ocm addon status hello -o json --context hub | jq '.configurations[] | select(.why)'";

const ENABLE: &str = "Examples:
  # See what would change, and change nothing
  kubectl ocm addon enable hello --clusters c1 --diff --context hub

  # With a configuration of its own
  kubectl ocm addon enable hello --clusters c1 --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io/default/proxied";

const CONFIG: &str = "\
A configuration is said in one of three places: --default is the ClusterManagementAddOn, --placement its install \
strategy, --clusters the ManagedClusterAddOns. What is said closer to the cluster replaces the others: kubectl \
ocm addon status NAME -o wide shows all of them, and which one takes effect.";

const SET: &str = "Examples:
  # See what would change, and change nothing
  kubectl ocm addon config set hello --clusters c1,c2 --diff --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io/default/canary

  # All clusters that have no other configuration, and wait until it is in effect
  kubectl ocm addon config set hello --default --wait --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io/default/hello

  # An earlier version of an add-on of addon create
  kubectl ocm addon config set hello --default --context hub \\
    --config addontemplates.addon.open-cluster-management.io/hello-0.0.1";

const UNSET: &str = "Examples:
  # Whatever AddOnDeploymentConfig a cluster has of its own: the default takes effect again
  kubectl ocm addon config unset hello --clusters c1 --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io

  # One object, where it is that one
  kubectl ocm addon config unset hello --placement default/eu --context hub \\
    --config addondeploymentconfigs.addon.open-cluster-management.io/default/canary";

const PROXY: &str = "Examples:
  # See what would change, and change nothing; the cluster's own addresses are read from it
  kubectl ocm addon proxy-config hello --clusters c1 --https-proxy https://proxy.example:3129 \\
    --proxy-ca-file proxy.crt --managed-context c1 --context hub --diff

  # The clusters of a placement by which the hub installs it, and wait until it is in effect
  kubectl ocm addon proxy-config hello --placement default/eu \\
    --http-proxy http://proxy.example:3128 --https-proxy http://proxy.example:3128 \\
    --no-proxy 10.96.0.0/16,.corp.example --context hub --wait

  # All clusters, in a configuration that holds other settings, too
  kubectl ocm addon proxy-config hello --default --config default/hello \\
    --https-proxy http://proxy.example:3128 --no-proxy 10.96.0.0/16 --context hub

  # Without a proxy again
  kubectl ocm addon proxy-config hello --clusters c1 --http-proxy '' --https-proxy '' --context hub";

const DISABLE: &str = "Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm addon disable hello --clusters c1 --dry-run --context hub

  # Of a cluster that does not exist any more
  kubectl ocm addon disable hello --clusters c1 --force --context hub";

const DELETE: &str = "\
Templates go that addon create has made; those that somebody else has written stay, and so do configurations. An \
add-on of install hub-addon goes with the rest of its hub's side, by uninstall hub-addon.

Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm addon delete hello --dry-run --context hub

  # Although clusters have it
  kubectl ocm addon delete hello --force --context hub";

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
    /// Create an add-on on the hub: a ClusterManagementAddOn, and an AddOnTemplate of objects in files
    ///
    /// The command line and the files are the whole add-on: run it again with others, and what is not given is taken back.
    /// Templates of other versions stay. Where nothing differs, nothing is changed. What somebody else has written is refused
    /// without --overwrite, unless it says the same.
    #[command(after_help = CREATE)]
    Create(Box<CreateArgs>),
    /// Enable add-ons on clusters, or change their settings
    ///
    /// What is not given stays as it is, and so does what somebody else has set. An add-on without ClusterManagementAddOn is
    /// refused without --without-definition, and so is a configuration of a kind that it does not take.
    #[command(after_help = ENABLE)]
    Enable(Box<EnableArgs>),
    /// Say which configuration of an add-on takes effect on each cluster, and how far a change of it has come
    #[command(after_help = STATUS)]
    Status(StatusArgs),
    /// Have an add-on refer to configurations, or not any more
    #[command(subcommand, after_help = CONFIG)]
    Config(ConfigVerb),
    /// Let the agents of add-ons reach others through a proxy: an AddOnDeploymentConfig, and where it is referred to
    ///
    /// What is not given stays as it is; '' takes a proxy away. An add-on takes one AddOnDeploymentConfig: where another one is
    /// referred to, it is refused, and --config names that one. Whether an add-on heeds it is for the add-on; those of
    /// addon create get it as variables of their environment.
    #[command(after_help = PROXY)]
    ProxyConfig(Box<ProxyConfigArgs>),
    /// Disable add-ons on clusters, and wait until what they put there is gone
    ///
    /// Some add-ons have jobs run on the cluster before they go. A cluster whose agent is not there for that is refused without
    /// --force.
    #[command(after_help = DISABLE)]
    Disable(DisableArgs),
    /// Delete add-ons from the hub: the ClusterManagementAddOns, and the AddOnTemplates that addon create has made
    ///
    /// While clusters have one, it is refused without --force. What is not there is no error.
    #[command(after_help = DELETE)]
    Delete(DeleteArgs),
}

/// What is done with the configurations that an add-on refers to.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ConfigVerb {
    /// Have an add-on refer to configurations, each in the place of the one of its kind
    ///
    /// Those of other kinds stay. A configuration of a kind that the add-on does not take is refused, and so is one that is not
    /// there. Of templates and AddOnDeploymentConfigs an add-on takes one, of other kinds several: where several are there, it is
    /// refused, and those that are to go are unset first. Where nothing differs, nothing is changed.
    #[command(after_help = SET)]
    Set(Box<SetConfigArgs>),
    /// Have an add-on not refer to configurations any more
    ///
    /// The configurations themselves stay. What is not referred to is no error. The last template of an add-on is refused: the hub
    /// looks after none that has no template.
    #[command(after_help = UNSET)]
    Unset(Box<UnsetConfigArgs>),
}

/// Arguments of `kubectl ocm addon create`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until the hub uses the template")))]
#[command(mut_arg("files", |arg| arg.help(
    "File of objects that are put on clusters, YAML or JSON; a directory of such files; - for stdin (repeatable)"
)))]
#[command(mut_arg("timeout", |arg| arg.default_value("1m")))]
pub(crate) struct CreateArgs {
    /// Name of the add-on
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) files: ObjectFilesArgs,
    /// Version of the template
    #[arg(long, value_name = "VERSION", default_value = "0.0.1")]
    pub(crate) version: String,
    /// Have the hub install it on the clusters that a placement selects (default: people enable it)
    #[arg(long, visible_alias = "placement-ref", value_name = "NAMESPACE/NAME")]
    pub(crate) placement: Option<String>,
    /// Give its agents a kubeconfig for the hub
    #[arg(long)]
    pub(crate) hub_registration: bool,
    /// ClusterRole on the hub that its agents hold in the namespace of their cluster
    #[arg(long, value_name = "NAME", requires = "hub_registration")]
    pub(crate) cluster_role_bind: Option<String>,
    /// Labels of both objects (repeatable, or with commas)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub(crate) labels: Vec<String>,
    /// Replace objects of these names that somebody else has written
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) apply: ApplyArgs,
}

/// Arguments of `kubectl ocm addon status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// Name of the add-on
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Only on these clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',')]
    pub(crate) clusters: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm addon enable`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until the add-ons are available on every cluster")))]
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
    /// Annotations of the ManagedClusterAddOns (repeatable)
    #[arg(long = "annotate", value_name = "KEY=VALUE")]
    pub(crate) annotations: Vec<String>,
    /// Enable it although the hub has no ClusterManagementAddOn of that name
    #[arg(long)]
    pub(crate) without_definition: bool,
    #[command(flatten)]
    pub(crate) send: SendArgs,
}

/// Where a configuration of an add-on is said: one of the three is given.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct PlaceArgs {
    /// On these clusters (repeatable, or with commas)
    #[arg(short, long, value_name = "CLUSTER", value_delimiter = ',')]
    pub(crate) clusters: Vec<String>,
    /// On the clusters of a placement by which the hub installs the add-on
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) placement: Option<String>,
    /// On all clusters that have no other configuration
    #[arg(long)]
    pub(crate) default: bool,
}

/// Arguments of `kubectl ocm addon config set`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until the configuration is in effect")))]
pub(crate) struct SetConfigArgs {
    /// Name of the add-on
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Object on the hub that the add-on is to refer to (repeatable)
    #[arg(long = "config", value_name = "RESOURCE.GROUP/NAMESPACE/NAME", required = true)]
    pub(crate) configs: Vec<String>,
    #[command(flatten)]
    pub(crate) apply: ApplyArgs,
}

/// Arguments of `kubectl ocm addon config unset`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until what takes effect then is in effect")))]
pub(crate) struct UnsetConfigArgs {
    /// Name of the add-on
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Kind that the add-on is not to refer to, or one object of it (repeatable)
    #[arg(long = "config", value_name = "RESOURCE.GROUP[/NAMESPACE/NAME]", required = true)]
    pub(crate) configs: Vec<String>,
    #[command(flatten)]
    pub(crate) apply: ApplyArgs,
}

/// Arguments of `kubectl ocm addon proxy-config`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("wait", |arg| arg.help("Wait until the configuration is in effect")))]
pub(crate) struct ProxyConfigArgs {
    /// Names of add-ons
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// The AddOnDeploymentConfig that is written (default: addon-proxy-settings, in the namespace of each cluster, of the
    /// placement, or of the context)
    ///
    /// What else it holds stays.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) config: Option<String>,
    /// Proxy of HTTP requests
    #[arg(long, value_name = "URL")]
    pub(crate) http_proxy: Option<String>,
    /// Proxy of HTTPS requests
    #[arg(long, value_name = "URL")]
    pub(crate) https_proxy: Option<String>,
    /// Hosts, .domains, addresses and networks that are reached without a proxy (repeatable, or with commas)
    ///
    /// .svc and .cluster.local are added. The address of the cluster's own API server has to be among them, or a network that
    /// holds it: with --managed-context it is read there.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) no_proxy: Option<Vec<String>>,
    /// File with the CA certificates of an https --https-proxy
    #[arg(long, value_name = "FILE")]
    pub(crate) proxy_ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) apply: ApplyArgs,
    #[command(flatten)]
    pub(crate) managed: ManagedArgs,
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
    #[command(flatten)]
    pub(crate) withdraw: WithdrawArgs,
}

/// Arguments of `kubectl ocm addon delete`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("force", |arg| arg.help("Delete them although clusters have them, and take them from these").long_help(FORCE)))]
#[command(mut_arg("timeout", |arg| arg.help("How long each step is waited for, e.g. 90s, 10m")))]
pub(crate) struct DeleteArgs {
    /// Names of add-ons
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) withdraw: WithdrawArgs,
}

const FORCE: &str = "\
Delete them although clusters have them, and take them from these

Each cluster is named first, and so are the finalizers that are taken away since the agent for which they are \
needed is not there. An agent that is there gets the time of --timeout to clean up.";

//! The command line of `kubectl ocm get`.

use clap::{Args, Subcommand};
use ocm_cli::TokenListArgs;
use ocm_cli::list::{ListArgs, ListOutputArgs, with_tree};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("get")
        .about(
            "List what a hub knows of clusters with where it stands, and say what runs on a hub or a managed cluster",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # Where every cluster stands
  kubectl ocm get clusters --context hub

  # Those that wait, as they come
  kubectl ocm get clusters --watch --context hub

  # Who asks for certificates, and what accept thinks of it
  kubectl ocm get csr -o wide --context hub

  # What the hub brings to a cluster, and what keeps it from being there
  kubectl ocm get works -c c1 --context hub

  # Which add-ons the hub offers, how many clusters have them, and who has installed them
  kubectl ocm get hub-addons --context hub

  # What placements select, and what keeps them from selecting more
  kubectl ocm get placements --all-namespaces --context hub

  # Sets with their clusters, and works with their objects
  kubectl ocm get clustersets -o tree --context hub
  kubectl ocm get works -c c1 -o tree --context hub

  # What each cluster waits for, on a hub with a policy engine
  kubectl ocm get registrations --context hub

  # What runs on a hub or a managed cluster, and what is missing of it
  kubectl ocm get hub-info --context hub
  kubectl ocm get klusterlet-info --context c1
  kubectl ocm get klusterlet-info --watch --context c1

  # For scripts: kubectl's templates, and columns of your choice
  kubectl ocm get clusters -o jsonpath='{.items[*].metadata.name}' --context hub
  kubectl ocm get clusters -o custom-columns=NAME:.metadata.name,PHASE:.standing.phase

Exit codes: 0 ok, 1 the hub failed or does not know a name, 2 usage, 130 interrupted.";

const CLUSTERS: &str = "\
Phases: Pending (waits for acceptance), Accepted (the agent has not joined yet), Joined, Available, Unavailable \
(the cluster's API server is not healthy), Unknown (the agent has stopped reporting), Denied, Detaching (being \
removed from the hub).

Examples:
  kubectl ocm get clusters --context hub
  kubectl ocm get clusters -l env=prod --sort-by age --context hub
  kubectl ocm get clusters --cluster-set prod -o tree --context hub
  kubectl ocm get clusters c1 -o json --context hub | jq -r '.standing.phase'";

const REQUESTS: &str = "\
VERDICT is what accept thinks of a request: Sound, or the reason code for which it is refused; Renewal and AddOn \
requests are decided by the hub's own controllers.

Examples:
  kubectl ocm get csr --pending --context hub
  kubectl ocm get csr c1 -o wide --context hub";

const REGISTRATIONS: &str = "\
VERDICT is that of rules and policies together: Allow, Hold, Deny, Error, or NoOpinion, also before a first \
evaluation. APPROVED BY names the policies that let the cluster in; where it names none, a person did, or Open \
Cluster Management, or nobody. WAITING FOR is what keeps it out.

Examples:
  kubectl ocm get registrations --context hub
  kubectl ocm get registrations --watch --context hub
  kubectl ocm get registrations c1 -o json --context hub | jq -r '.status.decision.record' \\
    > record.json";

const WORKS: &str = "\
OBJECTS is how many of a work's objects are available, of how many. WHY is what keeps the work from being there: \
the first object that could not be applied, or that is not available, and how many more there are.

Examples:
  kubectl ocm get works --context hub
  kubectl ocm get works -c c1 --watch --context hub
  kubectl ocm get works -c c1 -o tree --context hub
  kubectl ocm get works web -o json --context hub | jq '.items[].standing'";

const ADDONS: &str = "\
WHY is what keeps an add-on from being available: its configuration, its registration, its objects, its agent, \
whatever comes first.

Examples:
  kubectl ocm get addons --context hub
  kubectl ocm get addons -c c1,c2 -o wide --context hub
  kubectl ocm get addons hello -o tree --context hub";

const HUB_ADDONS: &str = "\
CLUSTERS is on how many clusters an add-on is available, of how many that have it. STRATEGY: with Manual, people \
enable it; with Placements, the hub installs it on the clusters that these select. INSTALLED BY is who has \
written its ClusterManagementAddOn: kubectl-ocm, with the name for kubectl ocm uninstall hub-addon where there \
is one, or others.

Examples:
  kubectl ocm get hub-addons --context hub
  kubectl ocm get hub-addons hello -o wide --context hub
  kubectl ocm get hub-addons -o json --context hub | jq '.items[].standing'";

const SETS: &str = "\
CLUSTERS is how many clusters are in a set; NAMESPACES are those that it is bound to, whose placements may \
select from it. EMPTY is what the hub's controller reports. SELECTOR: ExclusiveClusterSetLabel are clusters that \
were put into the set, LabelSelector those whose labels it chooses.

Examples:
  kubectl ocm get clustersets --context hub
  kubectl ocm get clustersets prod -o wide --context hub
  kubectl ocm get clustersets -o tree --context hub
  kubectl ocm get clustersets --watch --context hub";

const PLACEMENTS: &str = "\
WHY is what keeps a placement from selecting as many clusters as it is to: no set is bound to its namespace, its \
sets are empty, predicates or taints leave too few clusters. --explain tells that of each cluster.

Examples:
  kubectl ocm get placements --namespace team-a --context hub
  kubectl ocm get placements --all-namespaces -o wide --context hub
  kubectl ocm get placements -o tree --namespace team-a --context hub
  kubectl ocm get placements web --namespace team-a --explain --context hub";

const TOKENS: &str =
    "The same as kubectl ocm token list: bootstrap tokens with which clusters can register, never their secrets.

Examples:
  kubectl ocm get tokens --context hub
  kubectl ocm get tokens -o wide --context hub
  kubectl ocm get tokens --watch --context hub";

const HUB_INFO: &str = "\
READY is how many pods of a Deployment are ready, of how many. SOURCE of a feature gate is Default, Spec, or \
Unknown: set in the spec and not known here. STORED are the versions in which objects of a \
CustomResourceDefinition may be stored. MISSING is what keeps the hub from being as its ClusterManager asks for; \
whether its webhooks answer is what troubleshoot finds out. \
With --watch there is a line for each change: READY counts the pods of all Deployments. JSON and YAML are a \
list, or one object where one name is given.

Examples:
  kubectl ocm get hub-info --context hub
  kubectl ocm get hub-info --watch --context hub
  kubectl ocm get hub-info cluster-manager -o jsonpath='{.release}' --context hub";

const KLUSTERLET_INFO: &str = "\
Shown are all Klusterlets of the cluster, those of clusters that it hosts among them. READY is how many pods of \
a Deployment are ready, of how many. SOURCE of a feature gate is Default, Spec, or Unknown: set in the spec and \
not known here. STORED are the versions in which objects of a CustomResourceDefinition may be stored. MISSING is \
what keeps the agents from running as the Klusterlet asks for. \
With --watch there is a line for each change: READY counts the pods of all Deployments. JSON and YAML are a \
list, or one object where one name is given.

Examples:
  kubectl ocm get klusterlet-info --context c1
  kubectl ocm get klusterlet-info --watch --context c1
  kubectl ocm get klusterlet-info -o yaml --context c1";

/// Arguments of `kubectl ocm get`.
#[derive(Args, Clone, Debug)]
pub(crate) struct GetArgs {
    #[command(subcommand)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is listed.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum What {
    /// Managed clusters
    #[command(visible_alias = "cluster", aliases = ["managedclusters", "managedcluster", "mcl"], after_help = CLUSTERS)]
    #[command(mut_arg("output", with_tree))]
    Clusters(ClustersArgs),
    /// Certificate requests of clusters
    #[command(visible_alias = "csrs", aliases = ["certificatesigningrequests", "requests"], after_help = REQUESTS)]
    Csr(CsrArgs),
    /// What the policy controller has decided about each cluster, and what it waits for
    #[command(visible_alias = "registration", aliases = ["hreg"], after_help = REGISTRATIONS)]
    Registrations(ListArgs),
    /// What the hub brings to clusters, and what keeps it from being there
    #[command(visible_alias = "work", aliases = ["manifestworks", "manifestwork"], after_help = WORKS)]
    #[command(mut_arg("output", with_tree))]
    Works(DeliveryArgs),
    /// Add-ons of clusters, and what keeps them from being available
    #[command(visible_alias = "addon", aliases = ["managedclusteraddons", "managedclusteraddon", "mca"], after_help = ADDONS)]
    #[command(mut_arg("output", with_tree))]
    Addons(DeliveryArgs),
    /// Add-ons that the hub offers, how many clusters have them, and who has installed them
    #[command(visible_alias = "hub-addon", aliases = ["clustermanagementaddons", "clustermanagementaddon"])]
    #[command(after_help = HUB_ADDONS)]
    HubAddons(ListArgs),
    /// Sets of clusters, and the namespaces whose placements may select from them
    #[command(visible_alias = "clusterset", aliases = ["managedclustersets", "managedclusterset", "mclset"])]
    #[command(after_help = SETS, mut_arg("output", with_tree))]
    Clustersets(ListArgs),
    /// Placements with the clusters that they select, and what keeps them from selecting more
    #[command(visible_alias = "placement", after_help = PLACEMENTS, mut_arg("output", with_tree))]
    Placements(PlacementArgs),
    /// Bootstrap tokens with which clusters can register; never their secrets
    #[command(visible_alias = "token", after_help = TOKENS)]
    Tokens(TokenListArgs),
    /// What runs on a hub: release, images, Deployments, conditions, feature gates, CustomResourceDefinitions
    #[command(after_help = HUB_INFO)]
    HubInfo(InfoArgs),
    /// What runs on a managed cluster: release, images, Deployments, conditions, feature gates,
    /// CustomResourceDefinitions
    #[command(after_help = KLUSTERLET_INFO)]
    KlusterletInfo(InfoArgs),
}

/// Arguments of `kubectl ocm get clusters`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClustersArgs {
    /// Only the clusters of this set
    #[arg(long, alias = "clusterset", value_name = "SET", conflicts_with = "names")]
    pub(crate) cluster_set: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Arguments of `kubectl ocm get hub-info` and `get klusterlet-info`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InfoArgs {
    /// Names; none means all
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Go on and show a line for each that changes
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With --watch or custom-columns: leave the headings out
    #[arg(long)]
    pub(crate) no_headers: bool,
    #[command(flatten)]
    pub(crate) output: ListOutputArgs,
}

/// Arguments of `kubectl ocm get placements`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlacementArgs {
    /// Those of this namespace (default: the one of the context)
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Those of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Of one placement: show each cluster of the hub with what keeps it from being selected
    #[arg(long, conflicts_with_all = ["watch", "all_namespaces", "selector", "show_labels"])]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Arguments of `kubectl ocm get works` and `get addons`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeliveryArgs {
    /// Only those of these clusters (repeatable, or with commas)
    // A cluster's works and add-ons are in the namespace of its name, so kubectl's flags say the same.
    #[arg(short = 'c', long, short_alias = 'n', alias = "namespace", value_name = "CLUSTER", value_delimiter = ',')]
    pub(crate) clusters: Vec<String>,
    /// Those of all clusters (default)
    #[arg(short = 'A', long, conflicts_with = "clusters")]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

/// Arguments of `kubectl ocm get csr`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CsrArgs {
    /// Only requests about which nobody has decided
    #[arg(long)]
    pub(crate) pending: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

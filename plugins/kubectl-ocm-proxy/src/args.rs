//! The command line of `kubectl ocm proxy`.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use ocm_cli::OutputArgs;
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-proxy")
        .about("See which clusters can be reached through the add-on cluster-proxy, and run kubectl on one")
        .long_about(
            "See which clusters can be reached through the add-on cluster-proxy, and run kubectl on one.\n\n\
             Agents of managed clusters have dialled the proxy servers on the hub, and open connections to the API server of their \
             cluster. So a cluster is reached that nobody can dial. All flags of the connection are those of the hub.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # Which clusters can be reached, and what keeps the others from it
  kubectl ocm proxy health --context hub

  # The nodes of a cluster
  kubectl ocm proxy kubectl c1 --context hub -- get nodes

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 a cluster cannot be reached, or it is \
refused, 4 it could not be tried, 130 interrupted; and those of kubectl.";

const HEALTH: &str = "\
REACHED is whether a connection to the API server of the cluster was opened, by a proxy server and the cluster's \
agent; LATENCY how long that took. WHY is what comes first of what keeps it from that: the cluster, the proxy \
servers, the add-on there, its agent.

Examples:
  kubectl ocm proxy health --context hub
  kubectl ocm proxy health c1 c2 --context hub
  kubectl ocm proxy health -o json --context hub | jq -r '.clusters[] | select(.why) | .name'";

const KUBECTL: &str = "Examples:
  kubectl ocm proxy kubectl c1 --context hub -- get nodes -o wide
  kubectl ocm proxy kubectl c1 --sa reader --context hub -- logs -f deployment/web
  kubectl ocm proxy kubectl c1 --sa admin --context hub -- exec -it web-0 -- sh
  cat web.yaml | kubectl ocm proxy kubectl c1 --sa admin --context hub -- apply -f -";

/// Arguments of `kubectl ocm proxy`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProxyArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is done.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Verb {
    /// Say which clusters can be reached, and what keeps the others from it
    #[command(after_help = HEALTH)]
    Health(HealthArgs),
    /// Run kubectl on a cluster, through the proxy servers of the hub
    ///
    /// kubectl reads a kubeconfig that only you may read and that is removed afterwards: with the token of a
    /// ManagedServiceAccount, and the CA of the cluster. It speaks TLS with the API server of the cluster itself; what
    /// passes it on sees nothing of that. Its exit code is passed on.
    #[command(after_help = KUBECTL)]
    Kubectl(KubectlArgs),
}

/// Arguments of `kubectl ocm proxy health`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HealthArgs {
    /// Names of clusters; none means all
    #[arg(value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,
    /// Only read what the hub says, and try to reach no cluster
    #[arg(long)]
    pub(crate) no_probe: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm proxy kubectl`.
#[derive(Args, Clone, Debug)]
pub(crate) struct KubectlArgs {
    /// Name of the cluster on the hub
    // Another id than that of --cluster, an entry of the kubeconfig.
    #[arg(id = "managed", value_name = "CLUSTER")]
    pub(crate) cluster: String,
    /// The ManagedServiceAccount as which kubectl acts there (default: the only one of the cluster)
    #[arg(long, value_name = "NAME")]
    pub(crate) sa: Option<String>,
    /// What kubectl is to do
    #[arg(value_name = "ARGUMENT", last = true, required = true)]
    pub(crate) arguments: Vec<OsString>,
}

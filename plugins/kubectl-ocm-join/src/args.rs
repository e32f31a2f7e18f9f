//! The command line of `kubectl ocm join`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, ValueEnum};
use ocm_cli::{ConcurrencyArgs, ImageArgs, NodeArgs, OutputArgs, PlanArgs, ResourceArgs, ValuesArgs};
use ocm_kube::{ClientArgs, FallbackHubArgs, HubArgs, ManagedArgs};

use crate::former::FormerHubArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("join")
        .about("Register a cluster with a hub")
        .long_about(
            "Register a cluster with a hub: verify the hub, check both sides, install the agent, follow it.\n\n\
             There are two ways in. With a token that `kubectl ocm token create` printed on the hub; or with access to \
             both clusters, with --hub-context, where a short-lived token is made on the way and --accept accepts the \
             cluster too. The hub is verified before a token is sent to it: by the pin of its CA, by the CA itself, or by \
             the system.\n\n\
             Everything is checked before anything is touched. Run it again at any time: it goes on where it stopped. \
             On a cluster that has joined, settings that differ from the flags are updated. To change the release, use \
             kubectl ocm upgrade. One that has joined another hub is refused, unless that one is named as its former hub: then it \
             goes from there to this one.\n\n\
             With --filename, a hub and many clusters are brought up together, as a file says: the hub is installed if the file \
             has it so, and all clusters join at the same time, whatever becomes of the others. --dry-run then lists what would \
             change, and --render prints the manifests of all, to be kept in Git: Secrets are left out, and not redacted as \
             those of one cluster are, because what is kept there is applied as it is. The same command without --render makes \
             them.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "\
What --wait waits for:
  registered   the hub knows the cluster and its request: default with a token, and without --accept
  available    accepted, joined, and Available on the hub: default with --accept

Examples:
  # With the line of `kubectl ocm token create`, against the cluster of the current context
  kubectl ocm join c1 --hub-token TOKEN --hub-apiserver https://hub.example:6443 \\
    --hub-ca-pin sha256:HEX --wait

  # With access to both clusters, from nothing to available
  kubectl ocm join c1 --context c1 --hub-context hub --accept --wait

  # The token from a file or from stdin, not on the command line
  kubectl ocm join c1 --hub-token-file /run/secrets/token --hub-apiserver https://hub.example:6443 \\
    --ca-file hub.crt
  kubectl ocm token create --token-only --context hub \\
    | kubectl ocm join c1 --hub-token - --hub-apiserver https://hub.example:6443 --ca-file hub.crt

  # One agent instead of two, from a registry of your own
  kubectl ocm join c1 --singleton --registry registry.example/ocm \\
    --image-pull-credential-file auth.json --hub-context hub

  # A cluster that has joined goes from two agents to one, and back
  kubectl ocm join c1 --context c1 --hub-context hub --singleton --accept --wait
  kubectl ocm join c1 --context c1 --hub-context hub --mode default --wait

  # And every image pinned by its digest
  kubectl ocm join c1 --registry registry.example/ocm --image-digests digests.json --hub-context hub

  # Where no name server knows the hub: its address goes to the agent's pods
  kubectl ocm join c1 --hub-context hub --host-alias 192.0.2.10=hub.example --accept --wait

  # With settings that no flag has: a part of the spec of Klusterlet
  kubectl ocm join c1 --hub-context hub --values klusterlet.yaml --diff

  # Other settings for a cluster that has joined
  kubectl ocm join c1 --context c1 --hub-context hub --client-cert-expiration-seconds 86400 \\
    --accept --wait

  # Hosted mode: the agent runs on the hosting cluster, with a ServiceAccount token of the managed
  # cluster that each join replaces
  kubectl ocm join c1 --mode hosted --context hosting --managed-kubeconfig c1.kubeconfig \\
    --hub-context hub --accept --wait

  # With an agent that reaches the hub through a proxy, also on a cluster that has joined; and
  # without a proxy again
  kubectl ocm join c1 --hub-context hub --proxy-url https://proxy.example:3129 \\
    --proxy-ca-file proxy.crt --accept --wait
  kubectl ocm join c1 --hub-context hub --proxy-url '' --accept --wait

  # Over gRPC: the agent dials the hub's gRPC server, whose address and CA the hub says
  kubectl ocm join c1 --context c1 --hub-context hub --registration-auth grpc --accept --wait

  # A cluster that has joined goes over to gRPC, and back
  kubectl ocm join c1 --context c1 --hub-context hub --registration-auth grpc \\
    --grpc-server hub.example:443 --accept --wait
  kubectl ocm join c1 --context c1 --hub-context hub --registration-auth csr --accept --wait

  # With a second hub, which the agent turns to when the first one has not answered for five minutes
  kubectl ocm join c1 --context c1 --hub-context hub --fallback-hub-context hub2 \\
    --hub-connection-timeout 5m --accept --wait

  # Without it again
  kubectl ocm join c1 --context c1 --hub-context hub --remove-fallback-hub https://hub2.example:6443

  # From one hub to another; what the former one has is deleted when it is available on the new one
  kubectl ocm join c1 --context c1 --hub-context hub2 --former-hub-context hub --accept --wait

  # The same without access to the former hub, whose address is named to be sure
  kubectl ocm join c1 --hub-token TOKEN --hub-apiserver https://hub2.example:6443 \\
    --hub-ca-pin sha256:HEX --former-hub https://hub.example:6443 --wait=available

  # With an identity of AWS, on EKS
  kubectl ocm join c1 --hub-context hub --registration-auth awsirsa --hub-cluster-arn ARN \\
    --managed-cluster-arn ARN

  # What it would do, and what would change in each object
  kubectl ocm join c1 --hub-context hub --dry-run=server
  kubectl ocm join c1 --hub-context hub --diff

  # The manifests instead of a join, with the token in them
  kubectl ocm join c1 --hub-token-file token --hub-apiserver https://hub.example:6443 \\
    --ca-file hub.crt --render --show-secrets > c1.yaml

  # A hub and many clusters, as a file says: see what would change, then apply it and wait until
  # every cluster is available
  kubectl ocm join -f fleet.yaml --dry-run
  kubectl ocm join -f fleet.yaml

  # Their manifests for Git, without a secret
  kubectl ocm join -f fleet.yaml --render > manifests.yaml

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused: the cluster belongs to another hub, the name is taken, the new \
key of its agent is left to a person, or the hub does not offer the driver; or --diff found differences, 124 the \
wait ended, 130 interrupted. With --filename, the code is that of the first failure: of the hub, or else of the \
first cluster in the order of the file.";

/// The heading of what goes with a fleet file.
const MANY: &str = "Many clusters";

/// What a fleet file says of each cluster, or what is of one cluster alone. A token is none of it: it may come from the
/// environment.
const NOT_WITH_A_FILE: [&str; 73] = [
    "hub_token_file",
    "hub_apiserver",
    "hub_ca_pin",
    "hub_ca_data",
    "ca_file",
    "hub_insecure_skip_tls_verify",
    "force_internal_endpoint_lookup",
    "accept",
    "adopt_namespace",
    "itself",
    "wait",
    "mode",
    "singleton",
    "bundle_version",
    "registry",
    "bundle_version_overrides",
    "image_digests",
    "image_pull_credential_file",
    "values",
    "feature_gates",
    "client_cert_expiration_seconds",
    "registration_auth",
    "grpc_server",
    "grpc_ca_file",
    "hub_cluster_arn",
    "managed_cluster_arn",
    "addon_kubeclient_registration_auth",
    "addon_token_expiration_seconds",
    "klusterlet_annotation",
    "enable_sync_labels",
    "resource_qos_class",
    "resource_limits",
    "resource_requests",
    "node_selector",
    "tolerations",
    "priority_class",
    "proxy_url",
    "proxy_ca_file",
    "host_alias",
    "force_internal_endpoint_lookup_managed",
    "create_namespace",
    "hub_kubeconfig",
    "hub_context",
    "hub_tls_server_name",
    "hub_as",
    "hub_as_group",
    "fallback_hub_context",
    "fallback_hub_kubeconfig",
    "remove_fallback_hub",
    "hub_connection_timeout",
    "former_hub",
    "former_hub_context",
    "former_hub_kubeconfig",
    "former_hub_as",
    "former_hub_as_group",
    "managed_kubeconfig",
    "managed_context",
    "managed_as",
    "managed_as_group",
    "context",
    "cluster",
    "user",
    "server",
    "tls_server_name",
    "certificate_authority",
    "insecure_skip_tls_verify",
    "client_certificate",
    "client_key",
    "token",
    "act_as",
    "as_group",
    "as_uid",
    "as_user_extra",
];

/// Arguments of `kubectl ocm join`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("concurrency", of_a_fleet))]
pub(crate) struct JoinArgs {
    /// Name that the cluster gets on the hub; required without --filename
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Alias for compatibility with clusteradm
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "name")]
    pub(crate) cluster_name: Option<String>,

    /// File of kind Fleet that lists a hub and its clusters; it replaces the per-cluster flags; - for stdin
    #[arg(short, long, value_name = "FILE", help_heading = MANY, conflicts_with_all = NOT_WITH_A_FILE)]
    pub(crate) filename: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) concurrency: ConcurrencyArgs,

    /// Token with which the cluster registers; - reads it from stdin
    #[arg(long, value_name = "TOKEN", env = "KUBECTL_OCM_HUB_TOKEN", hide_env_values = true)]
    #[arg(help_heading = "The hub, with a token", conflicts_with = "hub_token_file", allow_hyphen_values = true)]
    pub(crate) hub_token: Option<String>,
    /// File with the token
    #[arg(long, value_name = "FILE", help_heading = "The hub, with a token")]
    pub(crate) hub_token_file: Option<PathBuf>,
    /// Address of the hub as this cluster's pods dial it
    #[arg(long, value_name = "URL", help_heading = "The hub, with a token")]
    pub(crate) hub_apiserver: Option<String>,
    /// SHA-256 of the public key of the hub's CA, as token create prints it (repeatable)
    #[arg(long, value_name = "sha256:HEX", value_delimiter = ',', help_heading = "The hub, with a token")]
    pub(crate) hub_ca_pin: Vec<String>,
    /// Certificate of the hub's CA, base64 of DER or PEM (repeatable)
    #[arg(long, value_name = "BASE64", value_delimiter = ',', help_heading = "The hub, with a token")]
    pub(crate) hub_ca_data: Vec<String>,
    /// File with the CA certificates of the hub's address
    #[arg(long, value_name = "FILE", help_heading = "The hub, with a token")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Do not verify the hub's certificate (with --hub-token, or if its kubeconfig says so): vulnerable to
    /// man-in-the-middle attacks
    #[arg(long, help_heading = "The hub, with a token", hide_short_help = true)]
    #[arg(conflicts_with_all = ["hub_ca_pin", "hub_ca_data", "ca_file"])]
    pub(crate) hub_insecure_skip_tls_verify: bool,
    /// Let agents dial the address that the hub publishes in kube-public/cluster-info, as in its own network
    #[arg(long, help_heading = "The hub, with a token")]
    pub(crate) force_internal_endpoint_lookup: bool,

    /// Accept the cluster too, once its request has been verified; needs --hub-context or --hub-kubeconfig
    #[arg(long, conflicts_with_all = ["diff", "render"])]
    pub(crate) accept: bool,
    /// Let the cluster have a namespace of its name that is on the hub already and is no managed cluster's; its agent
    /// gets rights in it
    #[arg(long, hide_short_help = true)]
    pub(crate) adopt_namespace: bool,
    /// Let the hub manage itself; required if stdin is not a terminal
    #[arg(long = "self", hide_short_help = true)]
    pub(crate) itself: bool,
    /// Follow the agent and say what holds it up. How far depends on --accept, unless a value is given, as in
    /// --wait=registered
    #[arg(long, value_enum, value_name = "HOW FAR", num_args = 0..=1, require_equals = true, default_missing_value = "usual")]
    pub(crate) wait: Option<WaitArg>,
    /// How long waiting and accepting may take
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    /// In how many Deployments the agent runs: default has two, singleton one, and a cluster that has joined moves from one to
    /// the other. In the hosted modes on another cluster, that of --context, which needs --managed-context or
    /// --managed-kubeconfig
    #[arg(short, long, value_enum, value_name = "MODE", ignore_case = true, help_heading = "The agent")]
    pub(crate) mode: Option<ModeArg>,
    /// One Deployment: --mode singleton, and with --mode hosted the same as --mode singleton-hosted
    #[arg(long, help_heading = "The agent")]
    pub(crate) singleton: bool,
    /// Release of Open Cluster Management (default: v1.3.1)
    #[arg(long, value_name = "VERSION", help_heading = "The agent")]
    pub(crate) bundle_version: Option<String>,
    /// Registry of all images (default: quay.io/open-cluster-management)
    #[arg(long, value_name = "REGISTRY", alias = "image-registry", help_heading = "The agent")]
    pub(crate) registry: Option<String>,
    #[command(flatten)]
    pub(crate) image_files: ImageArgs,
    /// File with registry credentials, a Docker configuration
    #[arg(long, value_name = "FILE", help_heading = "The agent")]
    pub(crate) image_pull_credential_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) values: ValuesArgs,
    /// Feature gates as NAME=true or NAME=false (repeatable)
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',', help_heading = "The agent")]
    pub(crate) feature_gates: Vec<String>,
    /// Life of the agent's certificate in seconds: 3600 at least, or 0 for the hub's own choice (default: a year)
    #[arg(long, value_name = "SECONDS", help_heading = "The agent")]
    pub(crate) client_cert_expiration_seconds: Option<i32>,
    /// How the agent proves who it is: csr or grpc by certificates, awsirsa by an IAM role. A cluster that has joined
    /// registers again for another one, and stays accepted (default: csr, or as it is)
    #[arg(long, value_enum, value_name = "DRIVER", help_heading = "Registration")]
    pub(crate) registration_auth: Option<DriverArg>,
    /// Address of the hub's gRPC server as the agent dials it, with --registration-auth grpc (default: as the hub says)
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Registration")]
    pub(crate) grpc_server: Option<String>,
    /// File with the CA certificates of the hub's gRPC server (default: as the hub says)
    #[arg(long, value_name = "FILE", help_heading = "Registration")]
    pub(crate) grpc_ca_file: Option<PathBuf>,
    /// ARN of the hub's EKS cluster, with --registration-auth awsirsa
    #[arg(long, value_name = "ARN", help_heading = "Registration")]
    pub(crate) hub_cluster_arn: Option<String>,
    /// ARN of the EKS cluster that joins, with --registration-auth awsirsa
    #[arg(long, value_name = "ARN", help_heading = "Registration")]
    pub(crate) managed_cluster_arn: Option<String>,
    /// How add-ons that the hub's API server lets in prove who they are, from release 1.2 on (default: csr, or as it is)
    #[arg(long, value_enum, value_name = "DRIVER", help_heading = "Registration")]
    pub(crate) addon_kubeclient_registration_auth: Option<AddOnAuthArg>,
    /// Life of the tokens of add-ons in seconds, with --addon-kubeclient-registration-auth token: 600 at least, or 0 for
    /// the agent's own choice
    #[arg(long, value_name = "SECONDS", help_heading = "Registration", allow_negative_numbers = true)]
    pub(crate) addon_token_expiration_seconds: Option<i64>,
    /// Annotation of the managed cluster as KEY=VALUE; agent.open-cluster-management.io/ is added in front (repeatable)
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The agent")]
    pub(crate) klusterlet_annotation: Vec<String>,
    /// Copy the labels of the Klusterlet to everything that the operator creates
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    #[arg(help_heading = "The agent")]
    pub(crate) enable_sync_labels: Option<bool>,
    #[command(flatten)]
    pub(crate) resources: ResourceArgs,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// PriorityClass of the pods, those of the operator, too; the cluster has to have it
    #[arg(long, value_name = "NAME", help_heading = "Resources")]
    pub(crate) priority_class: Option<String>,
    /// Proxy through which the agent reaches the hub: http or https. An empty value takes it away; without the flag, the
    /// agent keeps the one that it has
    ///
    /// This command itself takes the way of this machine. On a cluster that has joined, another proxy means that the agent
    /// asks for a new certificate, which --accept approves.
    #[arg(long, value_name = "URL", help_heading = "The agent's way to the hub")]
    pub(crate) proxy_url: Option<String>,
    /// File with the CA certificates of an https --proxy-url
    #[arg(long, value_name = "FILE", help_heading = "The agent's way to the hub")]
    pub(crate) proxy_ca_file: Option<PathBuf>,
    /// Address of the hub's host name in the agent's pods, for clusters whose name servers do not know it
    ///
    /// An IPv4 address. The operator has no such entry: what it reports of the connection to the hub may differ.
    #[arg(long, value_name = "IP=NAME", help_heading = "The agent's way to the hub")]
    pub(crate) host_alias: Option<String>,
    /// In the hosted modes, let the operator reach the managed cluster at the address that it publishes in
    /// kube-public/cluster-info, as in its own network
    #[arg(long, help_heading = "Connection to the managed cluster")]
    pub(crate) force_internal_endpoint_lookup_managed: bool,
    /// Create the operator's namespace
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1)]
    #[arg(default_missing_value = "true", require_equals = true, help_heading = "The agent", hide_short_help = true)]
    pub(crate) create_namespace: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    #[command(flatten)]
    pub(crate) further: FallbackHubArgs,
    /// Hub that the agent is to turn to no longer: its address, or the name of its Secret, as get klusterlet-info shows
    /// them (repeatable)
    #[arg(long, value_name = "HUB", help_heading = "Further hubs")]
    pub(crate) remove_fallback_hub: Vec<String>,
    /// How long a hub may not answer before the agent turns to the next one: 3m at least, and better five minutes or more
    /// (default: 10m, or as it is)
    #[arg(long, value_name = "DURATION", help_heading = "Further hubs")]
    pub(crate) hub_connection_timeout: Option<String>,
    #[command(flatten)]
    pub(crate) former: FormerHubArgs,
    #[command(flatten)]
    pub(crate) managed: ManagedArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// How many of a file's clusters are worked on at once: most of the time they are waited for.
fn of_a_fleet(concurrency: Arg) -> Arg {
    concurrency.default_value("64").requires("filename").help_heading(MANY)
}

/// How far the agent is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitArg {
    /// Until the hub knows the cluster and its request
    Registered,
    /// Until the hub calls the cluster available
    Available,
    /// Whichever goes with the other flags
    #[value(hide = true, alias = "true")]
    Usual,
}

/// Ways to register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriverArg {
    /// By a certificate, through the hub's API server
    Csr,
    /// By a certificate, through the hub's gRPC server
    Grpc,
    /// By an IAM role of AWS
    #[value(name = "awsirsa")]
    AwsIrsa,
}

/// How add-ons register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddOnAuthArg {
    /// By a certificate
    Csr,
    /// By a token of a ServiceAccount on the hub
    Token,
}

/// Modes of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// A registration and a work Deployment on the cluster itself
    Default,
    /// One Deployment on the cluster itself
    Singleton,
    /// The two Deployments on another cluster
    Hosted,
    /// One Deployment on another cluster
    #[value(alias = "singletonhosted")]
    SingletonHosted,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    /// What goes with a fleet file, or is refused later: a name, a diff and secrets, with what to type instead, and a token,
    /// which may come from the environment.
    const WITH_A_FILE: [&str; 13] = [
        "name",
        "cluster_name",
        "filename",
        "concurrency",
        "timeout",
        "dry_run",
        "diff",
        "render",
        "show_secrets",
        "output",
        "kubeconfig",
        "request_timeout",
        "hub_token",
    ];

    #[test]
    fn every_flag_goes_with_a_fleet_file_or_is_refused_beside_it() {
        let command = JoinArgs::augment_args(Command::new("join"));
        let ids = command.get_arguments().map(|argument| argument.get_id().as_str());
        let unsaid: Vec<&str> = ids.filter(|id| !WITH_A_FILE.contains(id) && !NOT_WITH_A_FILE.contains(id)).collect();
        assert_eq!(unsaid, [""; 0], "they would be passed over beside --filename");
        let refused =
            command.clone().try_get_matches_from(["join", "-f", "fleet.yaml", "--host-alias", "192.0.2.1=hub"]);
        assert_eq!(refused.unwrap_err().kind(), clap::error::ErrorKind::ArgumentConflict);
        assert!(command.try_get_matches_from(["join", "-f", "fleet.yaml", "--dry-run"]).is_ok());
    }

    #[test]
    fn manifests_say_nothing_of_a_former_hub() {
        for flag in ["--former-hub", "--former-hub-context", "--former-hub-kubeconfig"] {
            let command = JoinArgs::augment_args(Command::new("join"));
            let refused = command.try_get_matches_from(["join", "c1", "--render", flag, "hub"]).unwrap_err();
            assert_eq!(refused.kind(), clap::error::ErrorKind::ArgumentConflict, "{flag}");
        }
    }

    #[test]
    fn who_acts_on_a_former_hub_needs_access_to_it() {
        let parsed = |words: &[&str]| {
            let command = JoinArgs::augment_args(Command::new("join"));
            command.try_get_matches_from([&["join", "c1"][..], words].concat()).map(drop).map_err(|error| error.kind())
        };
        let missing = Err(clap::error::ErrorKind::MissingRequiredArgument);
        assert_eq!(parsed(&["--former-hub-as=me", "--former-hub=https://hub:6443"]), missing);
        assert_eq!(parsed(&["--former-hub-as-group=all", "--former-hub-context=hub"]), missing);
        let whole = ["--former-hub-as=me", "--former-hub-as-group=all"];
        for access in ["--former-hub-context=hub", "--former-hub-kubeconfig=hub"] {
            assert_eq!(parsed(&[&whole[..], &[access]].concat()), Ok(()), "{access}");
        }
    }
}

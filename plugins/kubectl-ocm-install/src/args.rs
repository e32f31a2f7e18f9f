//! The command line.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ocm_cli::contents::ObjectFilesArgs;
use ocm_cli::{ApplyArgs, ImageArgs, NodeArgs, OutputArgs, PlanArgs, ResourceArgs, ValuesArgs};
use ocm_kube::{ClientArgs, HubArgs};

/// What the help says before the flags.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-install")
        .about("Install Open Cluster Management")
        .after_help(
            "kubectl ocm install hub --help, install baseline --help, install policy-engine --help and install hub-addon \
             --help tell more.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// `kubectl ocm install`.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is installed.
#[derive(Subcommand, Debug)]
pub(crate) enum What {
    /// Make a cluster a hub, or bring a hub up to date
    Hub(Box<HubInstallArgs>),
    /// Have the hub's API server itself refuse wrong registrations
    Baseline(Box<BaselineInstallArgs>),
    /// Have WebAssembly policies decide about registrations on the hub
    PolicyEngine(Box<PolicyEngineInstallArgs>),
    /// Install the hub's side of an add-on, from manifests that you have rendered
    HubAddon(Box<HubAddOnInstallArgs>),
}

const EXAMPLES: &str = "\
Examples:
  # Make the cluster of context hub a hub, and wait until clusters can join it
  kubectl ocm install hub --context hub --wait

  # See what would change, and change nothing
  kubectl ocm install hub --context hub --diff

  # Pull the images from a registry of your own, with credentials
  kubectl ocm install hub --registry registry.example/ocm \\
    --image-pull-credential-file ~/.docker/config.json

  # And pin every image by its digest
  kubectl ocm install hub --registry registry.example/ocm --image-digests digests.json

  # With settings that no flag has: a part of the spec of ClusterManager
  kubectl ocm install hub --values manager.yaml --diff

  # Put the manifests of a new hub into Git, without looking at any cluster
  kubectl ocm install hub --render > hub.yaml

  # Let clusters register over gRPC too
  kubectl ocm install hub --registration-drivers csr,grpc --grpc-server hub.example:443

  # And reach the gRPC server at a port of the hub's nodes, or by a load balancer of the cloud
  kubectl ocm install hub --registration-drivers csr,grpc --grpc-server NODE:30443 \\
    --expose-grpc nodePort
  kubectl ocm install hub --registration-drivers csr,grpc --expose-grpc loadBalancer

  # Or by a Gateway of Gateway API with a listener that passes TLS through
  kubectl ocm install hub --registration-drivers csr,grpc --expose-grpc gateway \\
    --grpc-gateway infra/public

  # With the hub's pods on another cluster; its API server finds the webhooks at these addresses
  kubectl ocm install hub --mode hosted --context hosting --hub-context hub \\
    --registration-webhook HOST --work-webhook HOST

  # And with the Services that lead there, at ports of a node of that cluster
  kubectl ocm install hub --mode hosted --context hosting --hub-context hub \\
    --registration-webhook NODE --work-webhook NODE --expose-webhooks nodePort

What is there stays: a hub that was installed before, by this command or by another tool, keeps every setting \
that no flag names, its release included. Running the same command again changes nothing.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 --diff found differences or a rule refused, \
124 --wait gave up, 130 interrupted.";

/// Make a cluster a hub, or bring a hub up to date
///
/// Installs the hub's operator and its ClusterManager; the operator then starts the controllers and webhooks. With
/// --wait the command ends when the hub is usable: every Deployment runs and every admission webhook answers. Until
/// then it says what it waits for, and why.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HubInstallArgs {
    /// Wait until the hub is usable
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    /// Release to install: 1.3.1, v1.3.1 or latest [default: v1.3.1 on a new hub, the installed release on others]
    #[arg(long, value_name = "VERSION", help_heading = "Release and images")]
    pub(crate) bundle_version: Option<String>,
    /// Where the images are [default: quay.io/open-cluster-management on a new hub, as installed on others]
    #[arg(long, value_name = "HOST/PATH", visible_alias = "image-registry", help_heading = "Release and images")]
    pub(crate) registry: Option<String>,
    /// Image of one component, whatever release and registry say (repeatable)
    ///
    /// Components: registration, work, placement, addon-manager, registration-operator.
    #[arg(long = "image", value_name = "COMPONENT=IMAGE", help_heading = "Release and images")]
    pub(crate) images: Vec<String>,
    #[command(flatten)]
    pub(crate) image_files: ImageArgs,
    /// Docker configuration file with the credentials to pull the images
    ///
    /// Without it, credentials that the hub has stay as they are.
    #[arg(long, value_name = "FILE", help_heading = "Release and images")]
    pub(crate) image_pull_credential_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) values: ValuesArgs,

    /// Feature gates of the hub, e.g. ManagedClusterAutoApproval=true
    ///
    /// Gates that are not named stay as they are.
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', help_heading = "Features")]
    pub(crate) feature_gates: Vec<String>,
    /// Copy the labels of the ClusterManager to everything that the operator creates
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
        help_heading = "Features"
    )]
    pub(crate) enable_sync_labels: Option<bool>,

    /// Ways in which clusters may register [default: csr on a new hub]
    #[arg(long, value_enum, value_name = "DRIVER,...", value_delimiter = ',', help_heading = "Registration")]
    pub(crate) registration_drivers: Vec<DriverWord>,
    /// Let bootstrap tokens register clusters, besides tokens of the hub's service account
    ///
    /// Only grants the right. No token is made here, because one without an end is a danger: kubectl ocm token create
    /// makes one that expires.
    #[arg(long, help_heading = "Registration")]
    pub(crate) use_bootstrap_token: bool,
    /// User whose certificate requests the hub approves by itself, without commas; needs the gate ManagedClusterAutoApproval
    /// (repeatable)
    #[arg(long, value_name = "USER", help_heading = "Registration")]
    pub(crate) auto_approved_csr_identities: Vec<String>,
    /// Pattern of the EKS ARNs that the hub approves by itself, without commas; needs the gate ManagedClusterAutoApproval
    /// (repeatable)
    #[arg(long, value_name = "REGEX", help_heading = "Registration")]
    pub(crate) auto_approved_arn_patterns: Vec<String>,
    /// User that the hub approves by itself over gRPC, without commas; needs the gate ManagedClusterAutoApproval (repeatable)
    #[arg(long, value_name = "USER", help_heading = "Registration")]
    pub(crate) auto_approved_grpc_identities: Vec<String>,
    /// How agents reach the gRPC server [default: hostname]
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Registration")]
    pub(crate) grpc_endpoint_type: Option<GrpcEndpointWord>,
    /// Address of the gRPC server as agents see it
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Registration")]
    pub(crate) grpc_server: Option<String>,
    /// Make that by which agents reach the gRPC server: a Service at a port of the nodes, that of --grpc-server or 30443, or
    /// with a load balancer, or a route of a Gateway
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Registration")]
    pub(crate) expose_grpc: Option<GrpcExposureWord>,
    /// Gateway for --expose-grpc gateway, with a listener that passes TLS through [default: the one that it was before]
    #[arg(long, value_name = "NAMESPACE/NAME[/LISTENER]", help_heading = "Registration")]
    pub(crate) grpc_gateway: Option<String>,
    /// ARN of the hub's EKS cluster, for the driver awsirsa [default: the one that the hub has, else its context,
    /// if that is an ARN]
    #[arg(long, value_name = "ARN", help_heading = "Registration")]
    pub(crate) hub_cluster_arn: Option<String>,
    /// Tags of the IAM resources that the hub creates, for the driver awsirsa
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', help_heading = "Registration")]
    pub(crate) aws_resource_tags: Vec<String>,

    /// Where the hub's pods run: default on the hub itself, hosted on another cluster, that of --context, which needs
    /// --hub-context or --hub-kubeconfig [default: default on a new hub, as it is on others]
    #[arg(short, long, value_enum, value_name = "MODE", ignore_case = true, help_heading = "Hosted hub")]
    pub(crate) mode: Option<ModeWord>,
    /// Address at which the hub's API server reaches the registration webhook of a hosted hub [default port: as it
    /// is, 9443 on a new hub]
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Hosted hub")]
    pub(crate) registration_webhook: Option<String>,
    /// Address at which the hub's API server reaches the work webhook of a hosted hub [default port: as it is, 9443
    /// on a new hub]
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Hosted hub")]
    pub(crate) work_webhook: Option<String>,
    /// Make the Services on the hosting cluster by which the hub's API server reaches the webhooks at these addresses: at ports of
    /// its nodes, by default 30443 and 31443, or by load balancers
    #[arg(long, value_enum, value_name = "TYPE", help_heading = "Hosted hub")]
    pub(crate) expose_webhooks: Option<WebhookExposureWord>,
    /// Have the pods of a hosted hub reach it at the address that it publishes in kube-public/cluster-info
    #[arg(long, help_heading = "Hosted hub")]
    pub(crate) force_internal_endpoint_lookup: bool,

    #[command(flatten)]
    pub(crate) resources: ResourceArgs,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
    /// Number of the operator's pods [default: 3 on a new hub, 1 if it has one node]
    #[arg(long, value_name = "NUMBER", help_heading = "Resources")]
    pub(crate) replicas: Option<i32>,
    /// Create the namespace open-cluster-management
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, default_value = "true", default_missing_value = "true",
        require_equals = true, action = clap::ArgAction::Set, help_heading = "Resources"
    )]
    pub(crate) create_namespace: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

const BASELINE_EXAMPLES: &str = "\
Examples:
  # Refuse wrong registrations on the hub, and wait until the API server does
  kubectl ocm install baseline --context hub --wait

  # Only warn at first: clients get a warning, and the audit log records the violation
  kubectl ocm install baseline --context hub --audit

  # Let agents register with labels of your own, and into a cluster set
  kubectl ocm install baseline --context hub --allow-label 'team' --allow-cluster-set edge

  # Put the policies into Git, without looking at any cluster
  kubectl ocm install baseline --render > baseline.yaml

Running the same command again changes nothing; other flags replace what was chosen before. To take it away: \
kubectl ocm uninstall baseline

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 --diff found differences or the cluster is \
too old, 124 --wait gave up, 130 interrupted.";

/// Have the hub's API server itself refuse wrong registrations
///
/// Installs ValidatingAdmissionPolicies: rules that the API server enforces itself, from Kubernetes 1.30 on. There is no
/// image and no pod, so nothing can be down. They hold whoever registers a cluster to a name and nothing else, agents to
/// what is theirs, and certificate requests to what their requesters may ask for. What stands in a certificate request
/// itself they cannot read: kubectl ocm accept checks that.
#[derive(Args, Debug)]
#[command(after_help = BASELINE_EXAMPLES)]
pub(crate) struct BaselineInstallArgs {
    /// Refuse nothing but forged approvals: warn whoever sends something wrong, and note it in the audit log
    #[arg(long)]
    pub(crate) audit: bool,
    /// Wait until it takes effect
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    /// A user who registers clusters, besides the hub's own bootstrap identities and the service accounts bound to its
    /// bootstrap role (repeatable)
    #[arg(long = "requester", value_name = "USER", help_heading = "Rules")]
    pub(crate) requesters: Vec<String>,
    /// Labels that whoever registers a cluster may set: keys, also as patterns such as team-*
    #[arg(long = "allow-label", value_name = "PATTERN,...", value_delimiter = ',', help_heading = "Rules")]
    pub(crate) labels: Vec<String>,
    /// Cluster sets that whoever registers a cluster may choose, besides default
    #[arg(long = "allow-cluster-set", value_name = "NAME,...", value_delimiter = ',', help_heading = "Rules")]
    pub(crate) cluster_sets: Vec<String>,
    /// Names that no cluster may have, besides those of the hub and of Kubernetes; also as patterns
    #[arg(long = "reserve-name", value_name = "PATTERN,...", value_delimiter = ',', help_heading = "Rules")]
    pub(crate) reserved: Vec<String>,
    /// Longest lifetime of a certificate that may be asked for
    #[arg(long, value_name = "DURATION", default_value = "8760h", help_heading = "Rules")]
    pub(crate) max_lifetime: String,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const POLICY_ENGINE_EXAMPLES: &str = "\
Examples:
  # Install it, and wait until the API server asks the webhook
  kubectl ocm install policy-engine --context hub \\
    --image registry.example/ocm-policy-webhook:0.1.0 --wait

  # Refuse nothing at first: what would be refused stands in the webhook's log and in the audit log
  kubectl ocm install policy-engine --context hub \\
    --image registry.example/ocm-policy-webhook:0.1.0 --audit --wait

  # See what another image would change, and change nothing
  kubectl ocm install policy-engine --context hub \\
    --image registry.example/ocm-policy-webhook:0.2.0 --diff

  # Have cert-manager look after the webhook's certificate
  kubectl ocm install policy-engine --context hub --certificate-issuer ClusterIssuer/internal --wait

  # Let nobody but the API servers connect to the webhook
  kubectl ocm install policy-engine --context hub --api-server-cidr 10.0.0.0/28 --wait

  # Put the manifests into Git; keys are left out, and made by whoever applies them
  kubectl ocm install policy-engine --image registry.example/ocm-policy-webhook:0.1.0 --render \\
    > policy-engine.yaml

Running the same command again changes nothing but certificates of which two thirds of the life have passed; a \
CronJob on the hub renews them, too. What is there stays where no flag says otherwise: the image, the number of \
pods, settings of policies, and a baseline with settings of your own. Without --wait the webhook is asked, and \
what it does not answer passes; with --wait nobody registers without it in the end. Its controller lets in what \
a HubPolicy with autoApprove allows, and nobody before there is one. To take it away: kubectl ocm uninstall \
policy-engine

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 --diff found differences, or the cluster is \
too old or no hub, 124 --wait gave up, 130 interrupted.";

/// Have WebAssembly policies decide about registrations on the hub
///
/// Installs in the namespace ocm-policy-engine the policy webhook, with certificates of its own and a CronJob that renews
/// them, and the controller, which lets in what a policy with autoApprove allows, and nobody before there is one; the
/// policies that say what the rules of accept say, the static baseline, and the configurations by which the API server asks
/// the webhook. Where the webhook is away, clusters can neither register nor be accepted, and no certificate of theirs can
/// be approved; all else goes on. It needs Kubernetes 1.30.
#[derive(Args, Debug)]
#[command(after_help = POLICY_ENGINE_EXAMPLES)]
pub(crate) struct PolicyEngineInstallArgs {
    /// Refuse nothing: policies are evaluated and their verdicts recorded, and the baseline only warns, unless
    /// the hub has one that refuses already
    #[arg(long)]
    pub(crate) audit: bool,
    /// Wait until the API server was seen to ask the webhook, and then let nobody register without it
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,

    /// Image of the webhook and the controller [default: the one that runs]
    #[arg(long, value_name = "IMAGE", help_heading = "Image")]
    pub(crate) image: Option<String>,
    /// Docker configuration file with the credentials to pull the image
    ///
    /// Without it, credentials that the hub has stay as they are.
    #[arg(long, value_name = "FILE", help_heading = "Image")]
    pub(crate) image_pull_credential_file: Option<PathBuf>,
    /// Have cert-manager issue and renew the webhook's certificate by this issuer, e.g. ClusterIssuer/internal [default: as it
    /// is, by an authority of its own at first]
    #[arg(long, value_name = "KIND/NAME", help_heading = "Certificates")]
    pub(crate) certificate_issuer: Option<String>,
    /// Networks from which API servers connect to the webhook's pods: its NetworkPolicy lets nobody else send reviews [default:
    /// as it is, everybody at first]
    #[arg(long = "api-server-cidr", value_name = "CIDR,...", value_delimiter = ',', help_heading = "Network")]
    pub(crate) api_server_cidrs: Vec<String>,
    /// Number of the webhook's pods; the controller has 2 at most [default: as many as there are, 2 at first]
    #[arg(long, value_name = "NUMBER", help_heading = "Resources")]
    pub(crate) replicas: Option<i32>,
    /// Leave the HubPolicies alone: install none, and change none
    #[arg(long, help_heading = "Rules")]
    pub(crate) without_policies: bool,
    /// Leave the static baseline alone
    #[arg(long, help_heading = "Rules")]
    pub(crate) without_baseline: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Words of `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeWord {
    /// On the hub itself
    Default,
    /// On another cluster
    Hosted,
}

const HUB_ADDON_EXAMPLES: &str = "\
Examples:
  # Render a chart, and install what comes out
  helm template hello ./hello-chart > hello.yaml
  kubectl ocm install hub-addon hello -f hello.yaml --context hub --wait

  # Without a file in between, in a namespace that is made for it
  helm template hello ./hello-chart \\
    | kubectl ocm install hub-addon hello -f - --namespace hello --create-namespace

  # See what another version would change, and change nothing
  kubectl ocm install hub-addon hello -f hello-2.yaml --context hub --diff

  # What can be enabled on clusters, and who has installed it
  kubectl ocm get hub-addons --context hub

Each object is labelled kubectl-ocm.dev/hub-addon=NAME when it is made: kubectl ocm uninstall hub-addon deletes \
those, and no others. What was there before stays as it is if it says the same, and is refused without \
--overwrite if it does not; it stays when the add-on goes. Running the same command again changes nothing; one \
that was killed is run again. What another version of the files does not hold any more stays until the add-on is \
uninstalled.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 --diff found differences or a rule refused, \
124 --wait gave up, 130 interrupted.";

/// Install the hub's side of an add-on, from manifests that you have rendered
///
/// Applies what stands in the files: namespaces and CustomResourceDefinitions first, then accounts, rights and settings,
/// workloads, custom resources, ClusterManagementAddOns, and admission webhooks last. Hooks of Helm for other moments than an
/// installation are left out. Objects that make up the hub itself, or decide who registers, are refused. Clusters have the
/// add-on when it is enabled there: kubectl ocm addon enable.
#[derive(Args, Debug)]
#[command(after_help = HUB_ADDON_EXAMPLES)]
#[command(mut_arg("wait", |arg| arg.help("Wait until every Deployment has rolled out and the add-ons are offered")))]
#[command(mut_arg("files", |arg| arg.help(
    "File of rendered manifests, YAML or JSON; a directory of such files; - for stdin (repeatable)"
)))]
pub(crate) struct HubAddOnInstallArgs {
    /// Name by which it is uninstalled, usually that of the add-on
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) files: ObjectFilesArgs,
    /// Namespace of objects that need one and name none
    #[arg(short, long, value_name = "NAMESPACE", default_value = "open-cluster-management")]
    pub(crate) namespace: String,
    /// Create namespaces that are not there
    #[arg(long)]
    pub(crate) create_namespace: bool,
    /// Change objects that others have written and that say something else
    #[arg(long)]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) apply: ApplyArgs,
}

/// Words of `--registration-drivers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriverWord {
    /// Client certificates
    Csr,
    /// AWS IAM roles, on EKS
    #[value(name = "awsirsa")]
    AwsIrsa,
    /// Certificates over gRPC
    Grpc,
}

/// Words of `--expose-grpc`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GrpcExposureWord {
    /// At a port of the hub's nodes
    #[value(name = "nodePort", alias = "nodeport")]
    NodePort,
    /// By a load balancer; without --grpc-server the operator's own Service has it
    #[value(name = "loadBalancer", alias = "loadbalancer")]
    LoadBalancer,
    /// By a Gateway, that of --grpc-gateway; without --grpc-server under the host name that it tells
    Gateway,
}

/// Words of `--expose-webhooks`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WebhookExposureWord {
    /// At the ports of the addresses, which are those of nodes
    #[value(name = "nodePort", alias = "nodeport")]
    NodePort,
    /// By load balancers, which are known under the addresses
    #[value(name = "loadBalancer", alias = "loadbalancer")]
    LoadBalancer,
}

/// Words of `--grpc-endpoint-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GrpcEndpointWord {
    /// A host name that you route to the Service
    Hostname,
    /// A Service of type LoadBalancer
    #[value(name = "loadBalancer", alias = "loadbalancer")]
    LoadBalancer,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<A: Args>(words: &[&str]) -> A {
        let command = A::augment_args(clap::Command::new("install"));
        let matches = command.try_get_matches_from([&["install"], words].concat()).unwrap();
        A::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn names_of_users_and_patterns_may_hold_commas() {
        let baseline: BaselineInstallArgs = read(&["--requester", "CN=alice,O=ops", "--requester", "bob"]);
        assert_eq!(baseline.requesters, ["CN=alice,O=ops", "bob"]);
        let hub: HubInstallArgs = read(&[
            "--auto-approved-csr-identities=a,b",
            "--auto-approved-csr-identities=c",
            "--auto-approved-arn-patterns=^arn:.{1,9}$",
            "--auto-approved-grpc-identities=d,e",
        ]);
        assert_eq!(hub.auto_approved_csr_identities, ["a,b", "c"]);
        assert_eq!(hub.auto_approved_arn_patterns, ["^arn:.{1,9}$"]);
        assert_eq!(hub.auto_approved_grpc_identities, ["d,e"]);
    }
}

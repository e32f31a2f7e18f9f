//! The command line of the verbs that are about the policies of a hub.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ocm_cli::list::ListArgs;
use ocm_cli::{Described, DryRunArg, OutputArgs, PlanArgs, RemovalArgs};
use ocm_kube::ClientArgs;

use super::kind::KindArgs;

const LIST: &str = "\
LOADED is whether the wanted version is in force, ENFORCING whether the API server was seen to \
ask for the verdict and to wait for it; both are Unknown while the policy controller has not looked \
at the newest version. DIGEST is that of the module in force.

Examples:
  kubectl ocm policy list --context hub
  kubectl ocm policy list --watch --context hub
  kubectl ocm policy list -o wide --context hub

Exit codes: 0 ok, 1 the hub failed, has no policy engine or does not know a name, 2 usage, 130 interrupted.";

const DESCRIBE: &str = "Examples:
  kubectl ocm policy describe only-prod --context hub
  kubectl ocm policy describe only-prod -o json --context hub \\
    | jq -r '.registrations.waiting[].cluster'

Exit codes: 0 ok, 1 the hub failed, has no policy engine or does not know a name, 2 usage, 130 interrupted.";

const LOGS: &str = "\
The webhook logs each request that it judges, the controller each decision about a join. Here they are one, in \
order of their time: what was decided about which cluster, by which policies and why. Each pod's own log holds \
what was decided since it started, as far as its node keeps it; describe and explain show what a hub keeps.

Examples:
  kubectl ocm policy logs --since 1h --context hub
  kubectl ocm policy logs only-prod --verdict deny --verdict hold --context hub
  kubectl ocm policy logs --managed-cluster c1 --follow --context hub

  # Each line as it stands in the log
  kubectl ocm policy logs --since 10m -o json --context hub | jq -r .requester

Exit codes: 0 ok, 1 the hub failed or has no policy engine, 2 usage, 130 interrupted.";

const DISABLE: &str = "\
The mode becomes Audit, and autoApprove is taken away: verdicts are recorded, and refuse and \
approve nothing. What it was stands in the annotation policy.kubectl-ocm.dev/disabled, for enable.

Examples:
  kubectl ocm policy disable only-prod --context hub
  kubectl ocm policy disable only-prod quota --yes --context hub

Exit codes: 0 disabled, 1 failed, 2 usage, 3 confirmation was declined, 130 interrupted.";

const ENABLE: &str = "A policy that was changed after it was disabled stays as it is.

Examples:
  kubectl ocm policy enable only-prod --context hub
  kubectl ocm policy enable only-prod --dry-run --context hub

Exit codes: 0 enabled, or not disabled, 1 failed, 2 usage, 3 it was changed after it was disabled, 130 interrupted.";

const PROMOTE: &str = "\
A candidate is another version of a policy: spec.candidate of its HubPolicy names another module, other \
settings, or both. It is evaluated beside the version in force, and differences are counted; policy describe \
shows them. With --share it decides for so many of a hundred clusters, always the same ones. Without, it becomes \
the version in force, and what was in force stands in the annotation policy.kubectl-ocm.dev/previous, for \
rollback. Only a candidate that the policy controller has loaded gets to decide.

Examples:
  # Try other settings: nothing is decided by them yet
  kubectl patch hubpolicy only-prod --type merge \\
    -p '{\"spec\":{\"candidate\":{\"settings\":{\"pattern\":\"prod-*\"}}}}'

  # Have them decide for 10 of a hundred clusters, and then for all
  kubectl ocm policy promote only-prod --share 10 --context hub
  kubectl ocm policy promote only-prod --context hub

Exit codes: 0 done, 1 failed, 2 usage, 3 there is no candidate, or it was not loaded, or confirmation was declined, \
130 interrupted.";

const PAUSE: &str = "It is compared as before.

Examples:
  kubectl ocm policy pause only-prod --context hub

Exit codes: 0 done, 1 failed, 2 usage, 3 there is no candidate, 130 interrupted.";

const ROLLBACK: &str = "\
A candidate is taken away, and the version in force stays. Without a candidate, the version that was in force \
before the last promote is again. Policies with a candidate and others without are not rolled back together.

Examples:
  kubectl ocm policy rollback only-prod --context hub

Exit codes: 0 done, 1 failed, 2 usage, 3 there is nothing to go back to, or confirmation was declined, 130 \
interrupted.";

const APPLY: &str = "\
A file holds HubPolicies, and the ConfigMaps and Secrets with their modules, as JSON or YAML. Before anything is \
written, each module that is in the files, built-in, in a registry or on a web server is loaded with its \
settings on this machine, within the limits of its policy, and run on the test cases of its policy: what cannot \
be loaded, or fails one, never reaches the hub. Registries are asked with the credentials of docker login. A \
module in the files is pinned: the HubPolicy is applied with its sha256. Modules are applied before policies.

Examples:
  # Apply policies, and wait until they are in force
  kubectl ocm policy apply -f policies.yaml --wait --context hub

  # With the module that policy build has made, in the ConfigMap that the HubPolicy names
  kubectl ocm policy apply -f only-prod.yaml --module only-prod=only-prod/only-prod.wasm --wait \\
    --context hub

  # What would change
  kubectl ocm policy apply -f policies.yaml --diff --context hub

Exit codes: 0 done, 1 failed or not in force, 2 the command line or a file cannot be used and nothing was applied, \
3 --diff found differences, 124 --wait gave up, 130 interrupted.";

const EMERGENCY: &str = "\
The API server is told to ask the webhook no more: its configurations are deleted, which no webhook can refuse. \
Policies, webhook and controller stay. So does the static baseline, if it is installed. Who did it, when and why \
stands in the annotation policy.kubectl-ocm.dev/emergency of the namespace ocm-policy-engine until the policy \
engine is installed again. It stands there also where the API server asked no policy, so that an installation \
that is running now stops. The command asks in any case, unless --yes answers.

Examples:
  kubectl ocm policy emergency --reason 'incident 815: everything is refused' --context hub

  # Afterwards
  kubectl ocm install policy-engine --wait --context hub

Exit codes: 0 nothing waits for policies, 1 failed, 2 usage, 3 confirmation was declined, 130 interrupted.";

/// What is done with the policies of a hub.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum OnHub {
    /// Apply policies and their modules to a hub, after a look at whether they can be loaded
    #[command(after_help = APPLY)]
    Apply(Described<Box<ApplyArgs>>),
    /// List the policies of a hub with whether they are in force
    #[command(after_help = LIST)]
    List(Described<PolicyListArgs>),
    /// Show what policies of a hub are, whether they are in force, and which clusters wait for them
    #[command(after_help = DESCRIBE)]
    Describe(Described<DescribeArgs>),
    /// Show what policies of a hub have decided, from the logs of all pods
    #[command(after_help = LOGS)]
    Logs(Described<Box<LogsArgs>>),
    /// Let policies of a hub refuse and approve nothing; their verdicts are recorded
    #[command(after_help = DISABLE)]
    Disable(Described<DisableArgs>),
    /// Put disabled policies of a hub back to what they were
    #[command(after_help = ENABLE)]
    Enable(Described<SwitchArgs>),
    /// Have candidates of policies decide: for a share of the clusters, or for all
    #[command(after_help = PROMOTE)]
    Promote(Described<PromoteArgs>),
    /// Have candidates of policies decide for no cluster, and only be compared
    #[command(after_help = PAUSE)]
    Pause(Described<SwitchArgs>),
    /// Give candidates of policies up, or go back to the version before the last that was promoted
    #[command(after_help = ROLLBACK)]
    Rollback(Described<DisableArgs>),
    /// Have a hub ask no policy any more, where policies or their webhook keep it from working
    #[command(after_help = EMERGENCY)]
    Emergency(Described<EmergencyArgs>),
}

/// Arguments of `kubectl ocm policy emergency`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EmergencyArgs {
    /// Why; it stays on the hub until the policy engine is installed again
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `kubectl ocm policy apply`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ApplyArgs {
    /// File of HubPolicies, ConfigMaps and Secrets; - for stdin (repeatable)
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Module of a HubPolicy of the files that takes it from a ConfigMap, which is made (repeatable)
    #[arg(long = "module", value_name = "POLICY=FILE")]
    pub(crate) modules: Vec<String>,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// Do not fetch modules of registries and web servers to load them here first
    #[arg(long)]
    pub(crate) without_fetch: bool,
    /// Wait until the policies are in force
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `kubectl ocm policy list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyListArgs {
    #[command(flatten)]
    pub(crate) list: ListArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `kubectl ocm policy describe`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DescribeArgs {
    /// Names of HubPolicies
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `kubectl ocm policy logs`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogsArgs {
    /// Only what these policies were evaluated for
    #[arg(value_name = "POLICY")]
    pub(crate) policies: Vec<String>,
    /// Only what is about this managed cluster (repeatable)
    #[arg(long = "managed-cluster", value_name = "NAME")]
    pub(crate) managed_clusters: Vec<String>,
    /// Only what was decided so, by the policies that are named or by all together (repeatable)
    #[arg(long = "verdict", value_enum, value_name = "VERDICT")]
    pub(crate) verdicts: Vec<VerdictArg>,
    /// Only what is not older, e.g. 90s, 10m, 2h
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// Go on with what is decided from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Format of stdout
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) output: LogFormat,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Formats of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Columns for people
    #[default]
    Table,
    /// One JSON document per line, as it was logged
    Json,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerdictArg {
    /// The request is allowed
    Allow,
    /// The request waits for an approval or a condition
    Hold,
    /// The request is denied
    Deny,
    /// A policy failed
    Error,
    /// No policy has an opinion
    NoOpinion,
}

/// Arguments of `kubectl ocm policy promote`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PromoteArgs {
    /// For how many of a hundred clusters the candidate decides; without it, it becomes the version in force
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) share: Option<u8>,
    /// Skip confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) switch: SwitchArgs,
}

/// Arguments of `kubectl ocm policy disable` and `rollback`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DisableArgs {
    /// Skip confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) switch: SwitchArgs,
}

/// Arguments of `kubectl ocm policy enable` and `pause`, and more of the others that change policies.
#[derive(Args, Clone, Debug)]
pub(crate) struct SwitchArgs {
    /// Names of HubPolicies
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Show what would be changed and change nothing: client decides here and only reads, server lets the hub check it
    /// too; without a value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client")]
    #[arg(require_equals = true)]
    pub(crate) dry_run: DryRunArg,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

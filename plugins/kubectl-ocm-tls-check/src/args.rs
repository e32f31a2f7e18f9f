//! The command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ocm_checks::finding::{Finding, Severity};
use ocm_checks::tls::{LASTS, Profile};
use ocm_cli::Format;
use ocm_cli::findings::SuppressArgs;
use ocm_kube::{ClientArgs, HubArgs};

/// What the help says before the flags.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-tls-check")
        .about("Check the certificates of hubs and managed clusters, and tell when they expire")
        .long_about(LONG)
        .after_help(EXAMPLES)
}

const LONG: &str = "\
Check the certificates of hubs and managed clusters, and tell when they expire.

Without a TARGET, the cluster of the context is looked at: what a hub has (its API server, its own authority and \
what that has signed, the bundles that API server and webhooks have of it, the policy engine's webhook) and what \
a managed cluster has (what its agents register with and were let in with, and what the hub presents to them, \
through the proxy that they use). --hub-context adds the hub of a managed cluster, which knows whom it lets in. \
--contexts looks at many clusters, a few at a time, for one report.

Each certificate is judged as whoever verifies it would: chain, name, time, usage, key. Where rustls, Go or OpenSSL \
decide otherwise, the finding says for which of them it fails. Private keys are never shown.";

const EXAMPLES: &str = "\
Examples:
  # The hub
  kubectl ocm tls-check --context hub

  # A managed cluster and its hub
  kubectl ocm tls-check --context c1 --hub-context hub

  # Many clusters and their hub, in one time line
  kubectl ocm tls-check --contexts c1,c2,c3 --hub-context hub --expires-in 30d

  # In CI: exit with 3 if anything expires within a month
  kubectl ocm tls-check --context hub --expires-in 30d --quiet

  # A server, a Secret, a file; also without Open Cluster Management
  kubectl ocm tls-check hub.example:6443 --ca-file ca.pem
  kubectl ocm tls-check secret/open-cluster-management-agent/hub-kubeconfig-secret --context c1
  kubectl get secret web -o jsonpath='{.data.tls\\.crt}' | base64 -d | kubectl ocm tls-check -

  # What a server inside of the cluster presents, and accepts
  kubectl ocm tls-check service/open-cluster-management-hub/cluster-manager-work-webhook:9443 \\
    --context hub --profile intermediate

  # What a finding means
  kubectl ocm troubleshoot --explain OCM4001

  # For the text file collector of Prometheus
  kubectl ocm tls-check --context hub -o prometheus > ocm.prom

Exit codes: 0 all is well, 1 failed, 2 the command line cannot be used, 3 there are findings, 4 there are none, \
but something could not be looked at, 130 interrupted.";

/// `kubectl ocm tls-check`.
#[derive(Args, Debug)]
pub(crate) struct TlsCheckArgs {
    /// HOST:PORT, service/NAMESPACE/NAME:PORT, pod/NAMESPACE/NAME:PORT, secret/NAMESPACE/NAME, a file of certificates or a
    /// kubeconfig, or - for stdin (repeatable)
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Contexts of many clusters, for one report of all of them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "targets")]
    pub(crate) contexts: Vec<String>,
    /// File of CA certificates to verify servers and files with (default: the system's for HOST:PORT)
    #[arg(long, value_name = "FILE", requires = "targets")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Also report what expires within this time, e.g. 30d, or with this part of its life left, e.g. 20%
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_in: Option<String>,
    /// What is asked of servers' TLS
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t)]
    pub(crate) profile: ProfileArg,
    /// Least severity that makes the exit code 3
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    pub(crate) fail_on: FailOn,
    #[command(flatten)]
    pub(crate) suppress: SuppressArgs,
    /// Look again and again, and show what has changed
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Time between two looks of --watch
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub(crate) interval: String,
    /// Format of stdout
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

/// Profiles of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArg {
    /// TLS 1.3 only
    Modern,
    /// TLS 1.2 and newer, with cipher suites that exchange new keys and authenticate what they encrypt
    Intermediate,
    /// TLS 1.0 and newer, with the cipher suites of old clients
    Old,
    /// TLS 1.2 and newer, with the cipher suites that servers of Kubernetes have by default
    #[default]
    Kubernetes,
    /// What the hub's ConfigMap ocm-tls-profile says, of every server; otherwise as kubernetes
    Ocm,
}

impl From<ProfileArg> for Profile {
    fn from(arg: ProfileArg) -> Self {
        match arg {
            ProfileArg::Modern => Self::Modern,
            ProfileArg::Intermediate => Self::Intermediate,
            ProfileArg::Old => Self::Old,
            ProfileArg::Kubernetes => Self::Kubernetes,
            ProfileArg::Ocm => Self::Ocm,
        }
    }
}

/// Which findings make the exit code 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Errors and warnings
    Warning,
    /// Errors, and what --expires-in asks about
    #[default]
    Error,
    /// None: the exit code is 0 also where not everything could be looked at
    Never,
}

impl FailOn {
    /// Whether a finding makes the exit code 3.
    pub(crate) fn counts(self, finding: &Finding) -> bool {
        match self {
            Self::Warning => true,
            Self::Error => finding.severity == Severity::Error || finding.id == LASTS,
            Self::Never => false,
        }
    }
}

/// Formats of stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns for people
    #[default]
    Table,
    /// More columns for people
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// One ID:CLUSTER per line, with --contexts ID:CONTEXT/CLUSTER
    Name,
    /// Metrics in the text format of Prometheus
    Prometheus,
    /// JUnit's XML, one test case per check
    Junit,
    /// SARIF 2.1.0
    Sarif,
    /// Findings and expiries for an issue or a chat
    Markdown,
}

impl Output {
    /// The format of a document; none: it is no document.
    pub(crate) fn document(self) -> Option<Format> {
        match self {
            Self::Json => Some(Format::Json),
            Self::Yaml => Some(Format::Yaml),
            _ => None,
        }
    }

    /// Whether one report can follow another on stdout.
    pub(crate) const fn is_continuous(self) -> bool {
        !matches!(self, Self::Junit | Self::Sarif | Self::Markdown)
    }
}

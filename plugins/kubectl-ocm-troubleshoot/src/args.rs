//! The command line of `kubectl ocm troubleshoot`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ocm_checks::finding::Severity;
use ocm_cli::DryRunArg;
use ocm_cli::findings::SuppressArgs;
use ocm_dump::Side;
use ocm_kube::{ClientArgs, HubArgs};

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("troubleshoot")
        .about("Say why a cluster is not joined, and what to type next")
        .long_about(
            "Say why a cluster is not joined, or does not stay joined: where in the chain of nine steps it stands, what was \
             seen, why, and the next command.\n\n\
             It looks at the hub, at the managed cluster, or at both, and changes nothing without --fix, but for the Job of \
             --in-cluster. What follows from something else is listed under its cause: one cause is one finding.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "\
Which clusters are looked at:
  --context NAME                       a hub, or a managed cluster: what it is shows by itself
  --context MANAGED --hub-context HUB  both, as with join: most is seen so

Examples:
  # Why is c1 not joined, as seen from the hub
  kubectl ocm troubleshoot c1 --context hub

  # With access to both clusters
  kubectl ocm troubleshoot c1 --context c1 --hub-context hub

  # On a managed cluster, without access to the hub
  kubectl ocm troubleshoot --context c1

  # All clusters of a hub, grouped by what is wrong
  kubectl ocm troubleshoot --all-clusters --context hub

  # From where its agent runs: this machine may have another DNS, another firewall and another proxy
  kubectl ocm troubleshoot c1 --context c1 --hub-context hub --in-cluster

  # Stay, and be told what changes
  kubectl ocm troubleshoot --all-clusters --context hub --watch

  # What a finding means, and all checks
  kubectl ocm troubleshoot --explain OCM2109
  kubectl ocm troubleshoot --list

  # Mend what can be mended safely: first see how, then do it
  kubectl ocm troubleshoot c1 --context c1 --hub-context hub --fix --dry-run
  kubectl ocm troubleshoot c1 --context c1 --hub-context hub --fix

  # Only findings of one check, in a script
  kubectl ocm troubleshoot --context c1 --fix=OCM2116 --yes

  # Take it elsewhere: Secrets are reduced to names and sizes; log lines may still hold more than
  # others should know
  kubectl ocm troubleshoot c1 --context c1 --hub-context hub --bundle c1.json
  kubectl ocm troubleshoot --from c1.json

  # From what somebody else has taken: must-gathers, or files of kubectl of whole kinds
  kubectl ocm troubleshoot c1 --from must-gather-hub.tar.gz --from must-gather-c1/
  kubectl get managedclusters,csr,leases,namespaces,deployments,pods -A -o yaml > hub.yaml
  kubectl ocm troubleshoot c1 --from hub.yaml

  # In a pipeline
  kubectl ocm troubleshoot --all-clusters --context hub -o junit --fail-on warning > report.xml

Exit codes: 0 nothing was found, 1 failed, 2 usage, 3 something was found, 4 nothing was found, but not \
everything could be checked, 124 --wait ended before all was well, 130 interrupted.

With --fix the exit code tells what was found after the changes. A change that failed makes it 1, and findings \
that are left because confirmation was declined make it 3.";

/// Arguments of `kubectl ocm troubleshoot`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TroubleshootArgs {
    /// Names of clusters; none means the one that the managed cluster registers, or all of the hub
    #[arg(value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,
    /// All clusters that the hub has, also with --hub-context
    #[arg(short = 'A', long, conflicts_with = "clusters")]
    pub(crate) all_clusters: bool,

    /// Least severity that makes the exit code 3
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    pub(crate) fail_on: FailOn,
    #[command(flatten)]
    pub(crate) suppress: SuppressArgs,
    /// Look again until nothing is found
    #[arg(long, conflicts_with = "from")]
    pub(crate) wait: bool,
    /// How long --wait may take
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    /// Look again and again, and tell what has changed: as table, wide or jsonl
    #[arg(short, long, conflicts_with_all = ["wait", "from", "bundle", "fix", "list", "explain"])]
    pub(crate) watch: bool,
    /// Time between two looks of --watch
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) interval: String,

    /// Mend findings of checks that can be mended safely, or of the named ones of them: says how, and asks. IDs are
    /// written as in --fix=OCM2116,OCM2109
    #[arg(long, value_name = "ID", num_args = 0.., require_equals = true, value_delimiter = ',')]
    #[arg(conflicts_with_all = ["from", "bundle"])]
    pub(crate) fix: Option<Vec<String>>,
    /// With --fix: skip confirmation
    #[arg(short, long, requires = "fix")]
    pub(crate) yes: bool,
    /// With --fix: show what would be done and change nothing. client decides here and only reads, server lets the
    /// clusters check it too; without a value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client")]
    #[arg(require_equals = true, requires = "fix", conflicts_with = "wait")]
    pub(crate) dry_run: DryRunArg,

    /// Look at the way to the hub also from beside the agents: by a Job on the managed cluster that is removed afterwards
    #[arg(long, conflicts_with_all = ["from", "watch", "list", "explain"])]
    pub(crate) in_cluster: bool,
    /// With --in-cluster: the image of the pod, which has to have bash, cat and sleep; none means the agent's own
    #[arg(long, value_name = "IMAGE", requires = "in_cluster")]
    pub(crate) in_cluster_image: Option<String>,

    /// Write what was seen, and the last lines of logs, to a file for others, without values of Secrets
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(crate) bundle: Option<PathBuf>,
    /// Judge what a bundle, a must-gather or files of kubectl hold instead of looking at clusters: a file, an archive or a
    /// directory, - for stdin, with hub= or managed= before it where its objects do not tell (repeatable)
    #[arg(long, value_name = "[SIDE=]PATH")]
    pub(crate) from: Vec<Source>,

    /// Print the table of all checks
    #[arg(long, conflicts_with_all = ["explain", "from", "bundle", "fix", "clusters", "all_clusters"])]
    pub(crate) list: bool,
    /// Print the page of a check
    #[arg(long, value_name = "ID", conflicts_with_all = ["from", "bundle", "fix", "clusters", "all_clusters"])]
    pub(crate) explain: Option<String>,

    /// Format of stdout
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) output: ReportFormat,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// A file, an archive or a folder, and which cluster it was taken from, if that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) side: Option<Side>,
    pub(crate) path: PathBuf,
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        let (side, path) = match text.split_once('=') {
            Some(("hub", path)) => (Some(Side::Hub), path),
            Some(("managed", path)) => (Some(Side::Managed), path),
            _ => (None, text),
        };
        Self { side, path: PathBuf::from(path) }
    }
}

/// Which findings make the exit code 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Errors and warnings
    Warning,
    /// Errors
    #[default]
    Error,
    /// None: the exit code is 0 also where not everything could be checked
    Never,
}

impl FailOn {
    /// The least severity that counts; none: nothing does.
    pub(crate) const fn least(self) -> Option<Severity> {
        match self {
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
            Self::Never => None,
        }
    }
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Headlines and findings for people
    #[default]
    Table,
    /// With what follows from each finding, what was left out and what could not be checked
    Wide,
    /// One JSON document
    Json,
    /// A JSON document per line: one for each finding, and the summary
    Jsonl,
    /// One YAML document
    Yaml,
    /// One ID:CLUSTER per line
    Name,
    /// JUnit's XML, one test case per check
    Junit,
    /// SARIF 2.1.0
    Sarif,
    /// Markdown, for an issue or a chat
    Markdown,
    /// One HTML file with the chains drawn, and what ends when
    Html,
}

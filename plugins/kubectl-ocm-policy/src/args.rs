//! The command line of `kubectl ocm policy`.

pub(crate) mod hub;
mod kind;
pub(crate) mod registry;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use ocm_cli::{Described, OutputArgs};
use ocm_kube::ClientArgs;
use ocm_policy_abi::Operation;

use self::hub::OnHub;
pub(crate) use self::kind::KindArgs;
use self::registry::InRegistry;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("policy")
        .about("Write, build, test, run and measure policies, and see those of a hub")
        .long_about(
            "Write, build, test, run and measure policies: WebAssembly modules that decide which clusters a hub lets \
             in. That happens on this machine, without a cluster. The verbs that take --context are about the \
             policies of a hub; explain takes it with the name of a cluster.\n\n\
             A module runs with bounded time, memory and fuel and can compute, nothing else: one from a stranger can \
             be inspected and run as safely as one's own. Wherever a module is expected, a bundle that opa build \
             --target wasm has written is accepted, and so is the name of a built-in policy.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # From nothing to a measured policy
  kubectl ocm policy new only-prod --lang rust
  kubectl ocm policy build only-prod
  kubectl ocm policy test only-prod
  kubectl ocm policy bench only-prod/only-prod.wasm -f only-prod/request.yaml

  # What a module is, and how it decides about a cluster
  kubectl ocm policy inspect only-prod.wasm
  kubectl ocm policy run only-prod.wasm -f cluster.yaml

  # Put it into a registry, for HubPolicies with spec.module.oci
  kubectl ocm policy push only-prod/only-prod.wasm registry.example/policies/only-prod:v1

  # Have it decide on a hub, and see what waits for it
  kubectl ocm policy apply -f only-prod.yaml --module only-prod=only-prod/only-prod.wasm --wait \\
    --context hub
  kubectl ocm policy list --context hub
  kubectl ocm policy describe only-prod --context hub

  # Why that hub let a cluster in, or what keeps it out
  kubectl ocm policy explain c1 --context hub

Exit codes: 0 ok or allowed, 1 failed, 2 usage, 3 findings: denied, held or different, 124 --wait gave up, 130 \
interrupted.";

const NEW: &str = "Examples:
  kubectl ocm policy new only-prod --lang rust
  kubectl ocm policy new only-prod --lang go --dir policies/only-prod";

const BUILD: &str = "\
The language is detected from the files in the directory: Cargo.toml, go.mod, asconfig.json or *.rego. The \
module is loaded once before it is written, so that what comes out can be run.

Examples:
  kubectl ocm policy build
  kubectl ocm policy build only-prod -o dist/only-prod.wasm";

const INSPECT: &str = "Examples:
  kubectl ocm policy inspect only-prod.wasm
  kubectl ocm policy inspect only-prod.wasm -o json | jq .manifest.reasons
  kubectl ocm policy inspect only-prod.wasm -o wide";

const TEST: &str = "Examples:
  kubectl ocm policy test only-prod
  kubectl ocm policy test only-prod.wasm --tests tests.yaml -o junit > report.xml

  # Take the policy's verdicts of now as the expected ones
  kubectl ocm policy test only-prod --update

  # HubPolicies as they are to be applied, by the test cases in spec.tests
  kubectl ocm policy test -f policies.yaml
  kubectl ocm policy test -f only-prod.yaml --module only-prod=only-prod/only-prod.wasm";

const RUN: &str = "\
A policy is FILE, or FILE=SETTINGS with settings as a file or JSON. A request is a request of the contract, an \
AdmissionReview, a ManagedCluster or a CertificateSigningRequest, as JSON or YAML; a file may hold several. \
With -o json or yaml the answer to one request stands alone, and those to several are the list answers, \
however many policies are evaluated.

Examples:
  kubectl ocm policy run only-prod.wasm -f cluster.yaml
  kubectl ocm policy run name.wasm=name.yaml quota.wasm=quota.yaml -f review.json \\
    --evidence hub.yaml
  kubectl get managedcluster c1 -o json \\
    | kubectl ocm policy run only-prod.wasm --operation accept -f -

Exit codes: 0 everything is allowed, 1 a policy failed, 3 something is denied or held.";

const EXPLAIN: &str = "\
Without -f the hub is asked why it let a cluster in, or what keeps it out: the latest verdict of each policy and \
whether it may have changed since, who asks, who has approved, and what to type next. With -f modules are \
evaluated on a request on this machine, without a hub; --as-group then names groups of whoever asks. \
With -o json or yaml the answer to one request stands alone then, and those to several are the list answers.

With --hypothetical the policies of the hub are evaluated on this machine, with the objects of the files laid \
over those of the hub: HubPolicies that are to be applied, a cluster that is to come. The request is the join \
that waits, or the creation of a ManagedCluster that is only in the files. The rules that nobody's policy makes \
are not judged, and nothing is changed.

Examples:
  kubectl ocm policy explain c1 --context hub
  kubectl ocm policy explain c1 --context hub -o json | jq -r .finding
  kubectl ocm policy explain c1 --record | kubectl ocm policy replay - --policy quota.wasm
  kubectl ocm policy explain name.wasm quota.wasm -f cluster.yaml

  # Would it be let in with the policies of a file?
  kubectl ocm policy explain c1 --hypothetical -f policies.yaml --context hub

Exit codes: 0 it is explained, whatever the answer, 1 the hub failed or knows no such cluster, 2 usage.";

const BENCH: &str = "\
Each decision is made as a hub makes it: a request is written, a fresh instance decides, the answers are read, \
checked and combined.

Examples:
  kubectl ocm policy bench only-prod.wasm -f cluster.yaml
  kubectl ocm policy bench only-prod.wasm -f cluster.yaml --seconds 10 --threads 4 -o json";

const DIFF: &str = "Requests are those that run takes, or records.

Examples:
  kubectl ocm policy diff old.wasm new.wasm --requests cluster.yaml
  kubectl ocm policy diff old.wasm new.wasm --requests records.jsonl --settings settings.yaml

Exit codes: 0 no difference, 3 differences.";

const REPLAY: &str = "\
Records are JSON lines, as run --record writes them. Each request goes to the policy of its name byte by byte as \
it stands there, with the settings that stand there, and everything but the time that it takes has to be \
repeated.

With --since the records are those of the last decisions about the clusters of a hub, and what counts is what \
other modules, or the same with other settings, would have decided: verdicts, reasons, edits and obligations. \
Evidence that a policy did not ask the hub for then is not there now.

Examples:
  kubectl ocm policy run only-prod.wasm -f cluster.yaml --record records.jsonl
  kubectl ocm policy replay records.jsonl --policy only-prod.wasm

  # What the next version would have decided in the last 30 days
  kubectl ocm policy replay --since 30d --policy only-prod=only-prod-v2.wasm --context hub

  # What the built-in policy would have decided with other settings
  kubectl ocm policy replay --since 30d --policy quota=join-quota --settings quota.yaml \\
    --context hub

Exit codes: 0 everything was repeated, or decided alike, 1 failed, 2 usage, 3 differences.";

/// Arguments of `kubectl ocm policy`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) what: What,
}

/// What is done.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum What {
    /// Write the project of a new policy
    #[command(after_help = NEW)]
    New(Described<NewArgs>),
    /// Build a policy with the tools of its language
    #[command(after_help = BUILD)]
    Build(Described<BuildArgs>),
    /// Show a module's kind, manifest and permissions
    #[command(after_help = INSPECT)]
    Inspect(Described<InspectArgs>),
    /// Run a policy on its test cases
    #[command(after_help = TEST)]
    Test(Described<TestArgs>),
    /// Have policies decide requests
    #[command(after_help = RUN)]
    Run(Described<RunArgs>),
    /// Show why a cluster is let in or kept out, or how modules decide about a request
    #[command(after_help = EXPLAIN)]
    Explain(Described<Box<ExplainArgs>>),
    /// Measure how fast policies decide
    #[command(after_help = BENCH)]
    Bench(Described<BenchArgs>),
    /// Find the requests about which two versions of a policy differ
    #[command(after_help = DIFF)]
    Diff(Described<DiffArgs>),
    /// Decide recorded requests again, of a file or of a hub, and compare
    #[command(after_help = REPLAY)]
    Replay(Described<Box<ReplayArgs>>),
    #[command(flatten)]
    InRegistry(Box<InRegistry>),
    #[command(flatten)]
    OnHub(Box<OnHub>),
}

/// Arguments of `kubectl ocm policy new`.
#[derive(Args, Clone, Debug)]
pub(crate) struct NewArgs {
    /// Name of the policy, a DNS label
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Language that it is written in
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
    /// Directory of the project, new or empty (default: NAME)
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) dir: Option<PathBuf>,
}

/// Languages that there are templates for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Rust: the smallest and fastest modules
    Rust,
    /// Go: a WASI command of the ordinary toolchain
    Go,
    /// AssemblyScript: a WASI command of a few kilobytes
    #[value(name = "assemblyscript")]
    AssemblyScript,
    /// Rego: rules of the Open Policy Agent
    Rego,
}

/// Arguments of `kubectl ocm policy build`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BuildArgs {
    /// Directory of the project
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Where the module is written (default: the name of the policy in DIRECTORY)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
}

/// Arguments of `kubectl ocm policy inspect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InspectArgs {
    /// The module
    #[arg(value_name = "FILE")]
    pub(crate) module: PathBuf,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// Settings to try, a file or JSON
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) settings: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm policy test`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TestArgs {
    /// The module, or the directory of a project that has been built (default: .)
    #[arg(value_name = "FILE|DIRECTORY")]
    pub(crate) subject: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// The test cases (default: tests.yaml beside the module)
    #[arg(long, value_name = "FILE")]
    pub(crate) tests: Option<PathBuf>,
    /// Write the policy's verdicts of now into the tests
    #[arg(long)]
    pub(crate) update: bool,
    /// File of HubPolicies whose own test cases are run; - for stdin (repeatable)
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Module of a HubPolicy of the files that names a ConfigMap, as for apply (repeatable)
    #[arg(long = "module", value_name = "POLICY=FILE")]
    pub(crate) modules: Vec<String>,
    /// Format of stdout
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) output: TestFormat,
}

/// Formats of test results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// Columns for people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// JUnit XML
    Junit,
    /// Test Anything Protocol
    Tap,
}

/// Which policies, with which settings.
#[derive(Args, Clone, Debug)]
pub(crate) struct PoliciesArgs {
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// A module, or a module and its settings, a file or JSON: FILE=SETTINGS
    #[arg(value_name = "POLICY", required = true)]
    pub(crate) policies: Vec<String>,
    /// Settings of the policies that have none of their own, a file or JSON
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) settings: Option<String>,
}

/// What is asked, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct RequestArgs {
    /// File of requests; - for stdin (repeatable)
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) asking: AskingArgs,
}

/// What objects do not say of themselves.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Request")]
pub(crate) struct AskingArgs {
    #[command(flatten)]
    pub(crate) about: AboutArgs,
    /// A group of whoever asks (repeatable)
    #[arg(long, value_name = "GROUP")]
    pub(crate) as_group: Vec<String>,
}

/// The same, but for what a connection to a cluster has a flag of the same name for.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Request")]
pub(crate) struct AboutArgs {
    /// What happens to a ManagedCluster: create, update, delete, accept, or join with its certificate request
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    pub(crate) operation: Option<Operation>,
    /// Who asks, where the file does not say
    #[arg(long, value_name = "USER", default_value = Self::USER)]
    pub(crate) as_user: String,
    /// When it is asked, e.g. 2026-01-31T12:00:00Z (default: now, or what the request says)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) now: Option<Timestamp>,
    /// What policies may learn of the hub: tables by name, or objects as kubectl get -o yaml prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) evidence: Vec<PathBuf>,
}

impl AboutArgs {
    /// Who asks, where nobody says it.
    pub(crate) const USER: &str = "kubernetes-admin";
}

fn operation(word: &str) -> Result<Operation, String> {
    let known = Operation::ALL.into_iter().find(|known| known.word() == word);
    known.ok_or_else(|| format!("operations are {}", Operation::ALL.map(Operation::word).join(", ")))
}

fn time(word: &str) -> Result<Timestamp, String> {
    word.parse().map_err(|_| "it must be a time such as 2026-01-31T12:00:00Z".to_owned())
}

/// Arguments of `kubectl ocm policy run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) policies: PoliciesArgs,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    /// Append a record of each decision to a file, for replay and diff
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm policy explain`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// A cluster of the hub; with -f modules, or modules and their settings, a file or JSON: FILE=SETTINGS
    #[arg(value_name = "CLUSTER|POLICY", required = true)]
    pub(crate) subjects: Vec<String>,
    /// Settings of the policies that have none of their own, a file or JSON
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) settings: Option<String>,
    /// File of requests that modules are evaluated on, or with --hypothetical of objects; - for stdin (repeatable)
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What the policies of the hub would decide if the objects of the files were on it: HubPolicies, what their modules are
    /// in, the cluster, its certificate request, what policies look at
    #[arg(long, requires = "files", conflicts_with = "record")]
    pub(crate) hypothetical: bool,
    /// Print the record of the last decision about the cluster, for replay, and nothing else
    #[arg(long, conflicts_with_all = ["files", "output"])]
    pub(crate) record: bool,
    #[command(flatten)]
    pub(crate) about: AboutArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// Arguments of `kubectl ocm policy bench`.
#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) policies: PoliciesArgs,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    /// How long to measure
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) threads: u16,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm policy diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// The module that is there
    #[arg(value_name = "OLD")]
    pub(crate) old: String,
    /// The module that is to take its place
    #[arg(value_name = "NEW")]
    pub(crate) new: String,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    /// File of requests or records; - for stdin (repeatable)
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) requests: Vec<PathBuf>,
    /// Settings of both, a file or JSON
    #[arg(long, value_name = "SETTINGS")]
    pub(crate) settings: Option<String>,
    #[command(flatten)]
    pub(crate) asking: AskingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm policy replay`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("source").args(["records", "since"]).required(true))]
pub(crate) struct ReplayArgs {
    /// The records, - for stdin
    #[arg(value_name = "RECORDS")]
    pub(crate) records: Option<PathBuf>,
    /// Take the records of a hub that are not older, e.g. 12h, 30d
    #[arg(long, value_name = "DURATION")]
    pub(crate) since: Option<String>,
    /// A module, of the policy that it names or of this one (repeatable)
    #[arg(long = "policy", value_name = "[POLICY=]MODULE", required = true)]
    pub(crate) policies: Vec<String>,
    /// Settings in place of those that were recorded, a file or JSON
    #[arg(long, value_name = "SETTINGS", conflicts_with = "records")]
    pub(crate) settings: Option<String>,
    #[command(flatten)]
    pub(crate) kind: KindArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(words: &[&str]) -> Result<(), String> {
        let command = ReplayArgs::augment_args(clap::Command::new("replay"));
        let words = ["replay", "--policy", "p.wasm"].iter().chain(words);
        command.try_get_matches_from(words).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_are_for_the_records_of_a_hub_alone() {
        for words in [&["r.jsonl"][..], &["--since", "30d"], &["--since", "30d", "--settings", "{}"]] {
            assert_eq!(replay(words), Ok(()), "{words:?}");
        }
        let refused = replay(&["r.jsonl", "--settings", "{}"]).unwrap_err();
        assert!(refused.contains("cannot be used with"), "{refused}");
        assert!(replay(&["--settings", "{}"]).is_err());
        assert!(replay(&["r.jsonl", "--since", "30d"]).is_err());
    }

    #[test]
    fn where_records_may_come_from_is_told_where_none_are_named() {
        let refused = replay(&[]).unwrap_err();
        assert!(refused.contains("<RECORDS|--since <DURATION>>"), "{refused}");
    }
}

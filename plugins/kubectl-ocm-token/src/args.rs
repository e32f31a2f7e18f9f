//! The command line of `kubectl ocm token`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ocm_cli::{DryRunArg, OutputArgs, TokenListArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("token")
        .about("Make, show, list and revoke the tokens with which clusters register")
        .long_about(
            "Make, show, list and revoke the tokens with which clusters register.\n\n\
             Whoever holds a token can register clusters with the hub until it expires; each of them still has to be \
             accepted. There are two kinds: tokens of a service account end by themselves and cannot be listed, \
             bootstrap tokens can be listed and revoked one by one. Clusters that have joined stay joined when the \
             token that they joined with ends.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # A line to run against the cluster that is to join
  kubectl ocm token create --context hub

  # A token for two days that can be revoked
  kubectl ocm token create --kind bootstrap --ttl 48h --description 'store 17' --context hub

  # For a script
  kubectl ocm token create -o json --context hub | jq -r '.\"hub-token\"'

  # What is outstanding, and one of them less
  kubectl ocm token list --context hub
  kubectl ocm token revoke abc123 --context hub

Exit codes: 0 ok, 1 the hub failed or does not know the token, 2 usage, 3 refused, 130 interrupted.";

const CREATE: &str = "\
The line carries the hub's address and the pin of its CA: SHA-256 over the CA's public key. With it a joiner \
verifies the hub before the token leaves its machine. Where a joiner could not learn the CA from the hub, the \
line carries the CA's certificate too.

Examples:
  kubectl ocm token create --context hub
  kubectl ocm token create --hub-apiserver https://hub.example:6443 --context hub
  kubectl ocm token create --output-file join.sh --context hub

  # Clusters may be registered into the set prod, too
  kubectl ocm token create --kind bootstrap --cluster-set prod --context hub
  kubectl ocm token create --format clusteradm --context hub";

const REVOKE: &str = "Examples:
  kubectl ocm token revoke abc123 --context hub
  kubectl ocm token revoke --all --yes --context hub

  # End every token of the service account at once
  kubectl ocm token revoke --service-account --context hub";

/// Arguments of `kubectl ocm token`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is done with tokens.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Verb {
    /// Make a token and print the line that joins a cluster with it
    #[command(after_help = CREATE)]
    Create(CreateArgs),
    /// Print the line of a bootstrap token that exists
    Show(ShowArgs),
    /// List bootstrap tokens with which clusters can register; never their secrets
    #[command(visible_alias = "ls")]
    List(TokenListArgs),
    /// End tokens
    #[command(after_help = REVOKE, aliases = ["delete", "rm"])]
    Revoke(RevokeArgs),
}

/// Arguments of `kubectl ocm token create`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CreateArgs {
    /// What kind of token
    #[arg(long, value_enum, value_name = "KIND", default_value_t)]
    pub(crate) kind: KindArg,
    /// How long the token is valid, e.g. 30m, 48h (default: 1h; bootstrap tokens 24h)
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// What a bootstrap token is for; `list` shows it
    #[arg(long, value_name = "TEXT", default_value = "made by kubectl ocm token create")]
    pub(crate) description: String,
    /// A cluster set, besides default, that clusters may be registered into with this token; needs --kind bootstrap
    /// (repeatable)
    #[arg(long = "cluster-set", value_name = "SET")]
    pub(crate) cluster_sets: Vec<String>,
    #[command(flatten)]
    pub(crate) line: LineArgs,
    /// Show what would be done, and create no token: client decides here, server lets the hub check it too; without a
    /// value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client", require_equals = true)]
    pub(crate) dry_run: DryRunArg,
}

/// Arguments of `kubectl ocm token show`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    /// Identifier of the token: its first six characters
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) line: LineArgs,
}

/// How the line is made and where it goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct LineArgs {
    /// Address of the hub as agents dial it (default: the kubeconfig's, or the one that the hub publishes)
    #[arg(long, value_name = "URL", alias = "apiserver")]
    pub(crate) hub_apiserver: Option<String>,
    /// Use the address that the hub publishes in kube-public/cluster-info, as clusters in its own network dial it
    #[arg(long, conflicts_with = "hub_apiserver", alias = "use-bootstrap-endpoint")]
    pub(crate) force_internal_endpoint_lookup: bool,
    /// File with the CA certificates of that address, if it has others than the kubeconfig says; not together with
    /// --insecure-skip-tls-verify
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Join command format
    #[arg(long, value_enum, value_name = "TOOL", default_value_t)]
    pub(crate) format: LineFormat,
    /// Print the token alone
    #[arg(long, conflicts_with = "format")]
    pub(crate) token_only: bool,
    /// Write to this file, readable by you alone, instead of stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `kubectl ocm token revoke`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RevokeArgs {
    /// Identifiers of bootstrap tokens
    #[arg(value_name = "ID", required_unless_present_any = ["all", "service_account"], conflicts_with = "all")]
    pub(crate) ids: Vec<String>,
    /// Every bootstrap token that `kubectl ocm token create` made; those of other tools are revoked by their identifiers
    #[arg(long)]
    pub(crate) all: bool,
    /// Every token of the service account, which is deleted and created again
    #[arg(long)]
    pub(crate) service_account: bool,
    /// Skip confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Show what would be done and change nothing: client decides here, server lets the hub check it too; without a
    /// value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client", require_equals = true)]
    pub(crate) dry_run: DryRunArg,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindArg {
    /// Of the service account that is made for this; ends by itself
    #[default]
    ServiceAccount,
    /// Can be listed and revoked one by one
    Bootstrap,
}

/// Formats of the join command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineFormat {
    /// kubectl ocm join …
    #[default]
    Ocm,
    /// clusteradm join …
    Clusteradm,
}

//! The command line of `kubectl ocm accept`.

use clap::Args;
use ocm_cli::{ConcurrencyArgs, DryRunArg, OutputArgs};
use ocm_kube::ClientArgs;

/// What the command is, for its help.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("accept")
        .about("Accept clusters that want to join, after verifying their certificate requests")
        .long_about(
            "Accept clusters that want to join.\n\n\
             A cluster's agent asks the hub for a certificate: an identity for a year. Before anything is approved, the \
             request is verified as what it is: who created it, for which signer, with which names, organisations, \
             usages, lifetime and key, and that it is signed with that key. A request that asks for anything but \
             exactly the identity of this cluster's agent is refused with a reason code, and the cluster is not \
             accepted. A name that a joined cluster holds goes to another key only with --replace. A name that was used \
             before, and labels or a cluster set that the cluster chose itself, are accepted only for a cluster that is \
             named, after a question or with the flag for it.\n\n\
             With --approve-only nothing is approved or accepted: your RegistrationApproval is written, for the cluster and \
             for who asks for its certificate, and the hub's policies count who has approved. The static baseline \
             proves that it is yours.\n\n\
             With --break-glass such an approval is written with your reason, for an hour, and the cluster is accepted past \
             the policies whose administrators allow that. It takes a right of its own and is reported as an Event, in the \
             audit log and in metrics. The rules of this command, and policies with breakGlass Never, hold all the same.",
        )
        .after_help(EXAMPLES)
}

const EXAMPLES: &str = "Examples:
  # See what would be done for one cluster
  kubectl ocm accept c1 --context hub --dry-run=client

  # See why it would be accepted, or what is in the way
  kubectl ocm accept c1 --context hub --explain

  # Accept two clusters; asks on a terminal
  kubectl ocm accept c1 c2 --context hub

  # In a script: everything that waits, without a question
  kubectl ocm accept --all-pending --yes --context hub

  # Wait for the agent to ask, for five minutes at most
  kubectl ocm accept c1 --wait --timeout 5m --context hub

  # Several keys ask for the same name: say which one
  kubectl ocm accept c1 --fingerprint sha256:HEX --context hub

  # Its request was approved and is gone: accept it all the same
  kubectl ocm accept c1 --without-request --context hub

  # Say only that you approve it: others have to as well, and the hub's controller lets it in
  kubectl ocm accept c1 --approve-only --reason 'ticket 4711' --expires 24h --context hub

  # A policy refuses it, and it has to join tonight
  kubectl ocm accept c1 --break-glass 'incident 815: inventory is down' --context hub

  # Deny a cluster, or withdraw its acceptance
  kubectl ocm accept c1 --deny 'not ours' --context hub

Exit codes: 0 every cluster is accepted, approved with --approve-only, or would be accepted with --explain, 1 \
the hub failed, 2 usage, 3 a cluster was refused or has not asked yet, or with --explain something is in the way \
of one, 124 no valid request within --timeout, 130 interrupted.";

/// Arguments of `kubectl ocm accept`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("concurrency", |arg| arg.default_value("64")))]
pub(crate) struct AcceptArgs {
    /// Names of managed clusters
    #[arg(value_name = "NAME", conflicts_with_all = ["all_pending", "selector"])]
    pub(crate) names: Vec<String>,
    /// Every cluster that waits for acceptance; needs --yes where stdin is not a terminal
    #[arg(long, conflicts_with = "selector")]
    pub(crate) all_pending: bool,
    /// Clusters whose labels match, e.g. env=prod,region in (eu,us); needs --yes where stdin is not a terminal
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
    /// Alias for compatibility with clusteradm: comma-separated names
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide = true)]
    pub(crate) clusters: Vec<String>,
    /// Skip confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The key that is meant, as shown: sha256: and 64 hex digits
    #[arg(long, value_name = "SHA256", conflicts_with_all = ["all_pending", "selector"])]
    pub(crate) fingerprint: Option<String>,
    /// Let another key have a name that a joined cluster holds; certificates of the old key stay valid until they
    /// expire. Needs exactly one name
    #[arg(long, conflicts_with_all = ["all_pending", "selector"])]
    pub(crate) replace: bool,
    /// Accept clusters whose names were used before, though certificates of the former holder may still be valid
    #[arg(long, conflicts_with_all = ["all_pending", "selector"])]
    pub(crate) reuse_name: bool,
    /// Accept clusters of which the hub has no certificate request: the agent holds a certificate that was approved
    /// before, or registers with an AWS identity
    #[arg(long, conflicts_with_all = ["all_pending", "selector", "fingerprint"])]
    pub(crate) without_request: bool,
    /// Accept clusters with the labels, annotations, taints, finalizers, owners and lease duration that they were
    /// registered with; a cluster set needs --cluster-set
    #[arg(long, conflicts_with_all = ["all_pending", "selector"])]
    pub(crate) as_registered: bool,
    /// A cluster set, besides default, that clusters may have registered into (repeatable)
    #[arg(long = "cluster-set", value_name = "SET")]
    pub(crate) cluster_sets: Vec<String>,
    /// A user who may ask for a cluster's first certificate, besides the hub's own bootstrap identities (repeatable)
    #[arg(long = "requester", value_name = "USER", alias = "requesters")]
    pub(crate) requesters: Vec<String>,
    /// Longest certificate lifetime that may be asked for; a request without one counts as a year
    #[arg(long, value_name = "DURATION", default_value = "365d")]
    pub(crate) max_lifetime: String,
    /// Deny instead, with this reason: withdraw an acceptance and deny the requests that wait
    #[arg(long, value_name = "REASON", conflicts_with_all = ["replace", "wait", "fingerprint", "reuse_name", "without_request", "as_registered"])]
    pub(crate) deny: Option<String>,
    /// Write only your approval of the cluster, for policies that count who has approved; approve and accept nothing
    #[arg(long, group = "approving", conflicts_with_all = ["deny", "wait", "without_request"])]
    pub(crate) approve_only: bool,
    /// In an emergency: write your approval with breakGlass and this reason, and accept although policies refuse it that
    /// have breakGlass Allowed. Never past the rules of this command
    #[arg(long, value_name = "REASON", group = "approving", conflicts_with_all = ["deny", "wait", "without_request", "all_pending", "selector"])]
    pub(crate) break_glass: Option<String>,
    /// Why you approve
    #[arg(long, value_name = "TEXT", requires = "approve_only")]
    pub(crate) reason: Option<String>,
    /// How long your approval counts: default 72h, at most 30 days; with --break-glass default 1h, at most 4 hours
    #[arg(long, value_name = "DURATION", requires = "approving")]
    pub(crate) expires: Option<String>,
    /// A group of yours that your approval is to count for; without it all of yours but system:* (repeatable)
    #[arg(long = "group", value_name = "NAME", requires = "approving")]
    pub(crate) groups: Vec<String>,
    /// Wait for clusters that have not registered or asked yet. A request that breaks a rule is reported, and a valid
    /// one is waited for
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    /// Show what would be done and change nothing: client decides here, server lets the hub check it too; without a
    /// value it is client, and a value is written as in --dry-run=server
    #[arg(long, value_enum, value_name = "WHO", default_value_t, num_args = 0..=1, default_missing_value = "client", require_equals = true)]
    pub(crate) dry_run: DryRunArg,
    /// Show why each cluster would be accepted, or what is in the way: rules, requests, policies of the hub, and what
    /// to type next. Nothing is changed; it needs only rights to read
    #[arg(long, conflicts_with_all = ["yes", "deny", "approve_only", "break_glass", "wait", "timeout", "dry_run", "concurrency"])]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) concurrency: ConcurrencyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn names_of_requesters_may_hold_commas() {
        let words = ["accept", "c1", "--requester", "CN=a,O=b", "--requester", "c"];
        let matches = AcceptArgs::augment_args(about()).try_get_matches_from(words).unwrap();
        let args = AcceptArgs::from_arg_matches(&matches).unwrap();
        assert_eq!((args.requesters, args.names), (vec!["CN=a,O=b".to_owned(), "c".to_owned()], vec!["c1".to_owned()]));
    }
}

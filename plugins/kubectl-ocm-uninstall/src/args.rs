//! The command line.

use clap::{Args, Subcommand, ValueEnum};
use ocm_cli::RemovalArgs;
use ocm_kube::{ClientArgs, HubArgs};

/// What the help says before the flags.
pub(crate) fn about() -> clap::Command {
    clap::Command::new("kubectl-ocm-uninstall")
        .about("Take away what kubectl ocm install has added to a hub")
        .after_help(
            "kubectl ocm uninstall hub --help, uninstall baseline --help, uninstall policy-engine --help and uninstall \
             hub-addon --help tell more.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// `kubectl ocm uninstall`.
#[derive(Args, Debug)]
pub(crate) struct UninstallArgs {
    #[command(subcommand)]
    pub(crate) what: What,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// What is taken away.
#[derive(Subcommand, Debug)]
pub(crate) enum What {
    /// Make a hub to which nothing is attached a plain cluster again
    Hub(Box<HubUninstallArgs>),
    /// Let the hub's API server no longer refuse wrong registrations
    Baseline(BaselineArgs),
    /// Let policies no longer decide about registrations on the hub
    PolicyEngine(PolicyEngineArgs),
    /// Take away the hub's side of add-ons
    HubAddon(HubAddOnArgs),
}

const HUB_EXAMPLES: &str = "\
Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm uninstall hub --context hub --dry-run

  # Delete it, after its clusters were detached
  kubectl ocm detach c1 c2 --context hub
  kubectl ocm uninstall hub --context hub

  # With the placements, cluster sets and add-ons that people have made
  kubectl ocm uninstall hub --context hub --purge

  # A hub whose pods run on another cluster
  kubectl ocm uninstall hub --context hosting --hub-context hub

Where nothing is left of the hub, the command does nothing and succeeds. A command that was killed is run again.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 something is attached to the hub, a hub is \
left without its ClusterManager, the hub and the cluster of its pods do not belong together, or confirmation was \
declined, 124 it was not gone in time, 130 interrupted.";

/// Make a hub to which nothing is attached a plain cluster again
///
/// Deletes what lets clusters register, then the ClusterManager, waits until the operator has removed controllers,
/// webhooks and CustomResourceDefinitions, and deletes the operator. A hub with managed clusters is refused, with a
/// list of them; so is one with a policy engine or a baseline, which have verbs of their own. The operators' namespace
/// stays if it holds something of somebody else's, or if the hub manages itself. Of a hosted hub, the ClusterManager
/// and the operator are on the cluster of --context, and the rest on that of --hub-context: its operator's account
/// there goes last.
#[derive(Args, Debug)]
#[command(after_help = HUB_EXAMPLES)]
pub(crate) struct HubUninstallArgs {
    /// Let placements, cluster sets, add-ons and whatever else people have made there go along, and the namespace with
    /// whatever else is in it
    #[arg(long)]
    pub(crate) purge: bool,
    /// How long each step is waited for, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) timeout: String,
    /// Mode of the hub; it is found out, and has to be this one if it is typed
    #[arg(short, long, value_enum, value_name = "MODE", ignore_case = true)]
    pub(crate) mode: Option<ModeWord>,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

/// Words of `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeWord {
    /// Its pods run on the hub itself
    Default,
    /// Its pods run on another cluster
    Hosted,
}

const EXAMPLES: &str = "\
Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm uninstall baseline --context hub --dry-run

  # Delete it, and wait until the API server refuses nothing by it any more
  kubectl ocm uninstall baseline --context hub --wait

  # In a script
  kubectl ocm uninstall baseline --context hub --yes

Where nothing is left of it, the command does nothing and succeeds. A command that was killed is run again.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 somebody else made an object of such a name or \
confirmation was declined, 124 --wait gave up, 130 interrupted.";

/// Let the hub's API server no longer refuse wrong registrations
///
/// Deletes the ValidatingAdmissionPolicyBindings and then the ValidatingAdmissionPolicies that kubectl ocm install
/// baseline made, and nothing else. An object of such a name that somebody else made is left alone, and so is everything
/// then. What the API server refused before, it lets pass; kubectl ocm accept checks what it checked before.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BaselineArgs {
    /// Wait until the API server refuses nothing by it any more
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

const POLICY_ENGINE_EXAMPLES: &str = "\
Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm uninstall policy-engine --context hub --dry-run

  # Delete it, and wait until its pods are gone
  kubectl ocm uninstall policy-engine --context hub --wait

  # The policies that people have written and all Registrations, too
  kubectl ocm uninstall policy-engine --context hub --purge

The static baseline stays: kubectl ocm uninstall baseline takes it away. Where nothing is left of the engine, \
the command does nothing and succeeds. A command that was killed is run again.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 somebody else made an object of such a name or \
confirmation was declined, 124 --wait gave up, 130 interrupted.";

/// Let policies no longer decide about registrations on the hub
///
/// Deletes the configurations by which the API server asks the policy webhook, so that nothing waits for it, and then
/// what kubectl ocm install policy-engine made in the namespace ocm-policy-engine. HubPolicies, Registrations, their
/// CustomResourceDefinitions and the namespace stay without --purge. An object of such a name that somebody else made
/// is left alone, and so is everything then.
#[derive(Args, Debug)]
#[command(after_help = POLICY_ENGINE_EXAMPLES)]
pub(crate) struct PolicyEngineArgs {
    /// Delete all HubPolicies and Registrations with their CustomResourceDefinitions, and the namespace with whatever
    /// else is in it
    ///
    /// With the Registrations goes what is known of names whose certificates may still be valid.
    #[arg(long)]
    pub(crate) purge: bool,
    /// Wait until the pods are gone
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

const HUB_ADDON_EXAMPLES: &str = "\
Examples:
  # See what would be deleted, and delete nothing
  kubectl ocm uninstall hub-addon hello --context hub --dry-run

  # Delete it, after it was disabled on the clusters that have it
  kubectl ocm addon disable hello --clusters c1,c2 --context hub
  kubectl ocm uninstall hub-addon hello --context hub

  # With its CustomResourceDefinitions, and all objects of their kinds
  kubectl ocm uninstall hub-addon hello --context hub --delete-crds

Where nothing is left of it, the command does nothing and succeeds. A command that was killed is run again.

Exit codes: 0 done, 1 failed, 2 the command line cannot be used, 3 clusters have it or confirmation was \
declined, 124 it was not gone in time, 130 interrupted.";

/// Take away the hub's side of add-ons
///
/// Deletes what kubectl ocm install hub-addon has made under these names, each object by the UID that was read, and nothing
/// else: admission webhooks and ClusterManagementAddOns first, namespaces last. What was there before stays, and so do
/// CustomResourceDefinitions, with which all objects of their kinds would go, and namespaces that hold something of somebody
/// else's. An add-on that clusters have is refused, with a list of them.
#[derive(Args, Debug)]
#[command(after_help = HUB_ADDON_EXAMPLES)]
pub(crate) struct HubAddOnArgs {
    /// Names that kubectl ocm install hub-addon was given
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Take it away although it is enabled on clusters: the hub takes it from them as far as it can
    #[arg(long)]
    pub(crate) force: bool,
    /// Delete CustomResourceDefinitions that were made for it, too, and with them all objects of their kinds, whoever made
    /// them
    #[arg(long)]
    pub(crate) delete_crds: bool,
    /// Delete namespaces that were made for it with whatever else is in them
    #[arg(long)]
    pub(crate) purge: bool,
    /// How long each step is waited for, e.g. 90s, 10m
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub(crate) timeout: String,
    #[command(flatten)]
    pub(crate) removal: RemovalArgs,
}

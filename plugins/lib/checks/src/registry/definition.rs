//! What makes a check: what it looks at, what explains it, what it does, and its page.

use crate::facts::{Cluster, Facts};
use crate::finding::{Id, Outcome, Severity};
use crate::snapshot::{HubSide, ManagedSide};

/// One check.
#[derive(Debug)]
pub struct Check {
    /// Its id.
    pub id: Id,
    /// A few words for addresses and files.
    pub slug: &'static str,
    /// What is so when all is well, as a sentence without a final stop.
    pub title: &'static str,
    /// Of what kind it is.
    pub category: Category,
    /// How much its findings matter at most.
    pub severity: Severity,
    /// What it looks at. It runs only where all of that could be read.
    pub inputs: &'static [Input],
    /// The checks whose findings explain its own: of the same cluster, or of the hub as a whole.
    pub after: &'static [Id],
    /// What it does.
    pub rule: Rule,
    /// Its page.
    pub page: Page,
}

/// What a page says about a check, a paragraph each.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// What a finding means.
    pub means: &'static str,
    /// How it comes to that.
    pub happens: &'static str,
    /// What to do.
    pub mend: &'static str,
    /// How to see that it is mended.
    pub mended: &'static str,
}

/// What a check does. It knows what it is about, and sees everything.
#[derive(Clone, Copy)]
pub enum Rule {
    /// About the hub as a whole.
    Hub(fn(&Facts<'_>, &HubSide) -> Outcome),
    /// About the managed cluster as a whole.
    Managed(fn(&Facts<'_>, &ManagedSide) -> Outcome),
    /// About each cluster.
    Cluster(fn(&Facts<'_>, &Cluster<'_>) -> Outcome),
    /// About certificates, of which a snapshot does not tell enough: [`crate::tls::judge`] runs it.
    Certificates,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hub(_) => "Hub",
            Self::Managed(_) => "Managed",
            Self::Cluster(_) => "Cluster",
            Self::Certificates => "Certificates",
        })
    }
}

/// Kinds of checks; the thousands of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// 1xxx: the hub's control plane.
    Hub,
    /// 2xxx: joining.
    Join,
    /// 3xxx: life after the join.
    Life,
    /// 4xxx: certificates and TLS.
    Tls,
    /// 5xxx: works and add-ons.
    Works,
    /// 6xxx: leaving.
    Leaving,
    /// 7xxx: versions and safety.
    Safety,
    /// 8xxx: the policy engine.
    Policies,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 8] =
        [Self::Hub, Self::Join, Self::Life, Self::Tls, Self::Works, Self::Leaving, Self::Safety, Self::Policies];

    /// The category of an id.
    pub fn of(id: Id) -> Option<Self> {
        Self::ALL.get(usize::from(id.0 / 1000).checked_sub(1)?).copied()
    }

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hub => "Hub",
            Self::Join => "Joining",
            Self::Life => "After the join",
            Self::Tls => "Certificates and TLS",
            Self::Works => "Works and add-ons",
            Self::Leaving => "Leaving",
            Self::Safety => "Versions and safety",
            Self::Policies => "Policy engine",
        }
    }
}

/// A part of a snapshot that a check looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// What the hub's API servers tell of their storage.
    HubStorage,
    /// What those of the managed cluster tell of theirs.
    ManagedStorage,
    /// The hub's operator.
    HubOperator,
    /// The leader lease of the hub's operator.
    HubLeader,
    /// ClusterManagers.
    ClusterManagers,
    /// The Deployments of the hub.
    HubDeployments,
    /// Webhook configurations of the hub.
    Webhooks,
    /// The certificates that webhooks of the hub serve with.
    WebhookCertificates,
    /// The definitions of the hub whose versions a webhook converts.
    Conversions,
    /// The webhooks of others that can refuse registrations.
    Admission,
    /// The hub's bundle of authorities.
    CaBundle,
    /// Managed clusters.
    ManagedClusters,
    /// Certificate requests.
    Requests,
    /// The leases of agents on the hub.
    Leases,
    /// Namespaces of the hub that are being removed.
    HubNamespaces,
    /// Works.
    Works,
    /// Add-ons.
    AddOns,
    /// The policies of the policy engine.
    HubPolicies,
    /// What the policy controller has written.
    Registrations,
    /// The Deployments of the policy engine.
    PolicyEngine,
    /// The operator on the managed cluster.
    Operator,
    /// The leader lease of the operator on the managed cluster.
    OperatorLeases,
    /// Klusterlets.
    Klusterlets,
    /// Namespaces of the managed cluster that are being removed.
    ManagedNamespaces,
    /// The agents' Deployments.
    Agents,
    /// The Secret that agents register with.
    Bootstrap,
    /// The Secret that agents were let in with.
    Identity,
    /// The agents' leader leases.
    AgentLeases,
    /// What limits where the agents' pods may connect to.
    NetworkPolicies,
    /// What agents have applied.
    AppliedWorks,
    /// Who may do everything on the managed cluster.
    Admins,
}

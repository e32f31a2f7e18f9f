//! 3108 and on: what hub and agents report of clusters that have joined.

use jiff::SignedDuration;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::{namespaces, taints};
use ocm_core::install::mode::namespace_of;

use super::next::{inspect_both, requests};
use super::subject::{has_joined, staying};
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts, own_manager};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, Side};
use crate::{suppress, text};

/// How long the hub's controllers may take to follow what agents report.
const GRACE: SignedDuration = SignedDuration::from_secs(300);
/// Of how many clusters a silence of nearly all tells something of the hub.
const FLEET: usize = 5;

/// The checks of what is reported.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(3108),
        slug: "fleet-heard-of",
        title: "not nearly all of the hub's clusters are silent at once",
        category: Category::Life,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Leases],
        after: &[Id(1116)],
        rule: Rule::Hub(fleet_heard_of),
        page: Page {
            means: "Nine of ten managed clusters, of five or more, have stopped renewing their leases. What they have in common is the \
                    hub: its address, its CA, its certificate, or what stands before it.",
            happens: "The hub's CA or address was changed: agents keep the ones that they joined with, and do not follow. A load \
                      balancer, a firewall or a DNS name before the API server was changed; its certificate has expired; the hub \
                      was restored from a backup.",
            mend: "See what changed when they fell silent. If it was the hub's CA or address, every cluster has to join again with the \
                   new one, and to be accepted: its agent registers again. After a restore of the hub, agents of old releases \
                   have to be restarted.",
            mended: "The leases managed-cluster-lease are less than two minutes old.",
        },
    },
    Check {
        id: Id(3109),
        slug: "agent-reports-renewal",
        title: "the agent reports no failed renewal of its certificate",
        category: Category::Life,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters],
        after: &[
            Id(1106),
            Id(2106),
            Id(2118),
            Id(2203),
            Id(2204),
            Id(2206),
            Id(2207),
            Id(2208),
            Id(2209),
            Id(3101),
            Id(3104),
            Id(3105),
        ],
        rule: Rule::Cluster(agent_reports_renewal),
        page: Page {
            means: "The condition ClusterCertificateRotated is False: the agent has tried to renew its certificate and could not. It \
                    works until the certificate ends.",
            happens: "Its requests are not approved or not signed; ten of them are open, with which it stops asking; or the driver was \
                      switched off on the hub.",
            mend: "Look at the requests of the cluster: deny or delete those that nobody can account for, and bring the hub's \
                   registration controller up, which approves renewals.",
            mended: "The condition is True.",
        },
    },
    Check {
        id: Id(3110),
        slug: "taints-current",
        title: "a cluster that is well has no taint of one that is not",
        category: Category::Life,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters, Input::Leases],
        after: &[Id(1106), Id(1108), Id(1109), Id(3101), Id(3108), Id(1116), Id(1118)],
        rule: Rule::Cluster(taints_current),
        page: Page {
            means: "The ManagedCluster is Available, and has the taint unreachable or unavailable for five minutes or more: placements \
                    do not select it, so that it gets no add-ons and no works.",
            happens: "The hub's registration controller, which sets and removes these taints, cannot write the cluster; or somebody \
                      set the taint by hand.",
            mend: "Look at the log of the registration controller; take a taint away that somebody has set.",
            mended: "spec.taints of the ManagedCluster is without it.",
        },
    },
];

fn fleet_heard_of(facts: &Facts<'_>, _: &HubSide) -> Outcome {
    if facts.snapshot.managed.is_some() || !facts.snapshot.clusters.is_empty() {
        return Outcome::skip("not all clusters of the hub were looked at");
    }
    let joined = facts.clusters.values().filter(|cluster| has_joined(cluster) && cluster.is_accepted());
    // Of those that are known to be silent nobody asks what they share.
    let expected = suppress::clusters_with(facts, Id(3101));
    let joined = joined.filter(|cluster| !cluster.is_leaving() && !expected.contains(cluster.name));
    let joined: Vec<&Cluster<'_>> = joined.collect();
    let silent: Vec<&&Cluster<'_>> =
        joined.iter().filter(|cluster| cluster.is_silent(facts.now) == Some(true)).collect();
    let (all, count) = (joined.len(), silent.len());
    if all < FLEET || count * 10 < all * 9 {
        return Outcome::Pass;
    }
    let last = silent.iter().filter_map(|cluster| cluster.heard()).max();
    let first = silent.iter().filter_map(|cluster| cluster.heard()).min();
    let finding = Finding::error(format!("{count} of {all} managed clusters are silent, the last since {}", facts.ago(last)))
        .seen(format!("the first has been silent since {}", facts.ago(first)))
        .because(
            "what they share is the hub: its CA or address was changed, its certificate has expired, or the way to it is cut",
        )
        .run(Side::Hub, "kubectl ocm tls-check", &[]);
    let finding = match silent.first() {
        Some(cluster) => finding.advise(inspect_both(cluster.name)),
        None => finding,
    };
    Outcome::Found(vec![
        finding.advise("if the hub's CA or address was changed, every cluster has to join again with the new one"),
    ])
}

fn agent_reports_renewal(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions::find(conditions, managed_cluster::CERTIFICATE_ROTATED);
    let Some(condition) = condition.filter(|condition| condition.status == conditions::FALSE) else {
        return Outcome::Pass;
    };
    // One that it got since tells more.
    let certificate = cluster.agent.and_then(|agent| agent.certificate());
    if certificate.is_some_and(|certificate| certificate.not_before > condition.last_transition_time.0) {
        return Outcome::Pass;
    }
    let finding = Finding::warning("the agent reports that it could not renew its certificate")
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("{}: {}", condition.reason, text::tail(&condition.message, 240)))
        .because("its requests are not approved or not signed, or too many of them are open");
    Outcome::Found(vec![requests(finding, cluster.name)])
}

fn taints_current(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let since = conditions::find(conditions, managed_cluster::AVAILABLE).map(|one| one.last_transition_time.0);
    let is_old = |time| facts.now.duration_since(time) >= GRACE;
    if !cluster.is_well(facts.now) || cluster.is_fresh(facts.now) != Some(true) || !since.is_some_and(is_old) {
        return Outcome::Pass;
    }
    let own = [taints::UNREACHABLE, taints::UNAVAILABLE];
    let left = object.spec.taints.iter().filter(|taint| own.contains(&taint.key.as_str()));
    let left: Vec<_> = left.filter(|taint| taint.time_added.as_ref().is_none_or(|time| is_old(time.0))).collect();
    if left.is_empty() {
        return Outcome::Pass;
    }
    let names = text::list(left.iter().map(|taint| &taint.key));
    let manager = facts.snapshot.hub.as_ref().and_then(|hub| own_manager(hub.managers.read()?));
    let name = manager.and_then(|manager| manager.metadata.name.as_deref()).unwrap_or("cluster-manager");
    let (controller, namespace) =
        (format!("{name}-registration-controller"), manager.map_or(namespaces::HUB, namespace_of));
    let finding = Finding::warning(format!("placements pass the cluster over, though it is well: taint {names}"))
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("Available since {}", facts.ago(since)))
        .because("the hub's registration controller cannot take it away, or somebody has set it by hand")
        .run(Side::Hub, "kubectl logs deployment/{} -n {} --tail=50", &[&controller, namespace])
        .run(Side::Hub, "kubectl edit managedcluster/{}", &[cluster.name]);
    Outcome::Found(vec![finding])
}

//! 5xxx: works and add-ons.

use jiff::SignedDuration;
use ocm_api::conditions::{self, managed_cluster_add_on, manifest_work};
use ocm_api::names::{finalizers, identity};
use ocm_core::csr::State;

use super::joining::staying;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{Side, WorkFacts};
use crate::text;

/// How long works and add-ons may take.
const GRACE: SignedDuration = SignedDuration::from_secs(300);

/// What keeps an agent from being at work.
const AGENT: &[Id] = &[
    Id(2102),
    Id(2105),
    Id(2106),
    Id(2115),
    Id(2116),
    Id(2204),
    Id(2205),
    Id(2206),
    Id(2207),
    Id(2211),
    Id(3101),
    Id(3102),
    Id(3104),
    Id(6101),
];

/// The checks of works and add-ons.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(5101),
        slug: "works-applied",
        title: "the cluster's works are applied",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Works],
        after: AGENT,
        rule: Rule::Cluster(works_applied),
        page: Page {
            means: "The agent could not apply objects of a ManifestWork.",
            happens: "The work agent lacks a right on the managed cluster, another manager owns a field, the kind is not served, or \
                      admission refuses the object.",
            mend: "Read the message. Rights: a ClusterRole with the label open-cluster-management.io/aggregate-to-work=true on the \
                   managed cluster, or an executor.",
            mended: "The condition Applied of the work is True.",
        },
    },
    Check {
        id: Id(5102),
        slug: "works-taken-up",
        title: "the agent takes up the cluster's works",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Works],
        after: AGENT,
        rule: Rule::Cluster(works_taken_up),
        page: Page {
            means: "A work is five minutes old or more, and the agent has reported nothing about it.",
            happens: "The work agent does not run or still uses a former kubeconfig, while the registration agent is well.",
            mend: "Look at the work agent's log.",
            mended: "The work has a condition Applied.",
        },
    },
    Check {
        id: Id(5103),
        slug: "works-removed",
        title: "deleted works go",
        category: Category::Works,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters, Input::Works],
        after: AGENT,
        rule: Rule::Cluster(works_removed),
        page: Page {
            means: "A work is being deleted for five minutes or more. Its finalizer waits until the agent has removed what it \
                    applied.",
            happens: "The agent is offline, or an object on the managed cluster has a finalizer of its own.",
            mend: "Bring the agent back. Only if the cluster is gone for good, take the finalizer away: what was applied stays.",
            mended: "The work is gone.",
        },
    },
    Check {
        id: Id(5201),
        slug: "add-on-registers",
        title: "the requests of add-ons are approved",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests, Input::AddOns],
        after: &[Id(1106)],
        rule: Rule::Cluster(addon_registers),
        page: Page {
            means: "A certificate request of an add-on waits for a minute or more. The add-on's manager, or the hub's addon-manager, \
                    approves these.",
            happens: "The manager does not run, or is of another release than the agent: `org count is N, expected 2 or 3`.",
            mend: "Look at the log of the add-on's manager on the hub.",
            mended: "The request is issued, and Secret ADDON-hub-kubeconfig is on the managed cluster.",
        },
    },
    Check {
        id: Id(5202),
        slug: "add-on-available",
        title: "the cluster's add-ons are available",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::AddOns],
        after: &[
            Id(2102),
            Id(2106),
            Id(2115),
            Id(2116),
            Id(2204),
            Id(2205),
            Id(2206),
            Id(2207),
            Id(2211),
            Id(3101),
            Id(3102),
            Id(3104),
            Id(5101),
            Id(5102),
            Id(5201),
            Id(6101),
        ],
        rule: Rule::Cluster(addon_available),
        page: Page {
            means: "An add-on does not report, or reports that it is not well.",
            happens: "Its pods do not run on the managed cluster, its registration is not complete, or its lease is in another \
                      namespace than the hub believes.",
            mend: "Look at its pods in the install namespace on the managed cluster.",
            mended: "The condition Available of the ManagedClusterAddOn is True.",
        },
    },
];

/// Whether something older than the time that is allowed for it.
fn is_old(facts: &Facts<'_>, time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>) -> bool {
    time.is_some_and(|time| facts.now.duration_since(time.0) >= GRACE)
}

fn about(work: &WorkFacts, finding: Finding) -> Finding {
    finding.on(Side::Hub, "ManifestWork", Some(&work.namespace), &work.name).run(
        Side::Hub,
        "kubectl describe manifestwork/{} -n {}",
        &[&work.name, &work.namespace],
    )
}

fn works_applied(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let failed = cluster.works.iter().filter(|work| work.deleting.is_none());
    let failed = failed.filter_map(|work| {
        let condition = conditions::find(&work.conditions, manifest_work::APPLIED)?;
        (condition.status == conditions::FALSE).then_some((work, condition))
    });
    Outcome::of(
        failed
            .map(|(work, condition)| {
                let finding = Finding::error(format!("work {} is not applied", work.name)).seen(format!(
                    "{}: {}",
                    condition.reason,
                    text::tail(&condition.message, 240)
                ));
                let finding = work.failed.iter().take(5).fold(finding, |finding, line| finding.seen(line));
                about(work, finding.because("a right, an owner of a field, a kind that is not served, or admission"))
            })
            .collect(),
    )
}

fn works_taken_up(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let silent = cluster.works.iter().filter(|work| {
        work.has_status && work.deleting.is_none() && work.conditions.is_empty() && is_old(facts, work.created.as_ref())
    });
    Outcome::of(
        silent
            .map(|work| {
                let since = facts.ago(work.created.as_ref().map(|time| time.0));
                let finding = Finding::error(format!("the agent has not taken up work {} since {since}", work.name))
                    .because("the work agent does not run, or uses a former kubeconfig");
                about(work, finding)
            })
            .collect(),
    )
}

fn works_removed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let leaving = cluster.works.iter().filter(|work| is_old(facts, work.deleting.as_ref()));
    Outcome::of(
        leaving
            .map(|work| {
                let since = facts.ago(work.deleting.as_ref().map(|time| time.0));
                let finding = Finding::warning(format!("work {} is being deleted since {since}", work.name))
                    .seen(format!("finalizers: {}", text::list(&work.finalizers)));
                let finding = if work.finalizers.iter().any(|one| one == finalizers::MANIFEST_WORK) {
                    finding
                        .because("the agent has not removed what it applied: it is offline, or an object does not go")
                } else {
                    finding.because("a finalizer of somebody else")
                };
                about(work, finding)
            })
            .collect(),
    )
}

/// Of how many requests of add-ons of one cluster a report tells.
const MANY: usize = 10;

fn addon_registers(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let waiting = cluster.addon_requests.iter().filter(|request| {
        let age = request.created.map(|created| facts.now.duration_since(created)).unwrap_or_default();
        request.state == State::Pending && age >= SignedDuration::from_secs(60)
    });
    // What was left behind when a newer one was approved ends by itself.
    let replaced = |request: &&ocm_core::csr::Request| {
        let newer = |other: &ocm_core::csr::Request| {
            matches!(other.state, State::Approved | State::Issued)
                && other.addon_label == request.addon_label
                && other.created > request.created
        };
        cluster.addon_requests.iter().any(newer)
    };
    let own = format!("{}{}:", identity::PREFIX, cluster.name);
    let is_addon = |name: &str| {
        let named = |addon: &&&ocm_api::ManagedClusterAddOn| addon.metadata.name.as_deref() == Some(name);
        cluster.addons.iter().find(named).is_some_and(|addon| addon.metadata.deletion_timestamp.is_none())
    };
    let found = waiting.filter(|request| !replaced(request)).take(MANY).map(|request| {
        let addon = request.addon_label.as_deref().unwrap_or_default();
        let since = facts.ago(request.created);
        // Anybody with a token can write the name of any add-on into a request.
        let finding = match is_addon(addon) && request.asked_by().starts_with(&own) {
            true => Finding::error(format!("the certificate request of add-on {addon} waits since {since}"))
                .because("the manager of the add-on, which approves it, does not run or is of another release"),
            false => Finding::warning(format!("a request in the name of add-on {addon:?} waits since {since}"))
                .because("the cluster has no such add-on, or it is not its agent that asks: somebody else may"),
        };
        finding
            .on(Side::Hub, "CertificateSigningRequest", None, &request.name)
            .seen(format!("asked by {:?}", request.asked_by()))
            .run(Side::Hub, "kubectl describe csr/{}", &[&request.name])
    });
    Outcome::of(found.collect())
}

fn addon_available(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let staying = cluster.addons.iter().filter(|addon| addon.metadata.deletion_timestamp.is_none());
    let unwell = staying.filter_map(|addon| {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        let conditions = addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = conditions::find(conditions, managed_cluster_add_on::AVAILABLE);
        let seen = match condition {
            Some(condition) if condition.status == conditions::TRUE => return None,
            Some(condition) => format!("Available={}: {}: {}", condition.status, condition.reason, condition.message),
            // Nobody reports whether those are available that have no health check. What cannot be set up is told elsewhere.
            None => {
                let parts = [managed_cluster_add_on::MANIFEST_APPLIED, managed_cluster_add_on::REGISTRATION_APPLIED];
                let failed = conditions
                    .iter()
                    .find(|one| parts.contains(&one.type_.as_str()) && one.status == conditions::FALSE)?;
                format!("{}=False: {}: {}", failed.type_, failed.reason, failed.message)
            }
        };
        let since = condition.map(|condition| condition.last_transition_time.clone());
        // What has only just begun to start is not in trouble.
        if since.is_some_and(|since| !is_old(facts, Some(&since))) {
            return None;
        }
        Some(
            Finding::error(format!("add-on {name} is not available"))
                .on(Side::Hub, "ManagedClusterAddOn", Some(cluster.name), name)
                .seen(seen)
                .because("its pods do not run, or its registration is not complete")
                .run(Side::Hub, "kubectl describe managedclusteraddon/{} -n {}", &[name, cluster.name]),
        )
    });
    Outcome::of(unwell.collect())
}

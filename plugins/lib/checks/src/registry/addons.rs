//! 5203 and on: what becomes of add-ons besides running.

use ocm_api::ManagedClusterAddOn;
use ocm_api::conditions::{self, managed_cluster_add_on};

use super::joining::staying;
use super::works::is_old;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::Side;
use crate::text;

/// The checks of what becomes of add-ons.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(5203),
        slug: "add-on-configured",
        title: "the configurations of add-ons are found and supported",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::AddOns],
        after: &[Id(1106), Id(1114)],
        rule: Rule::Cluster(add_on_configured),
        page: Page {
            means: "An add-on names a configuration that is not there or that it does not support: it stays as it was, or is not \
                    installed. A warning: what was installed before goes on.",
            happens: "A name, a namespace or a kind in spec.configs is misspelt; the ClusterManagementAddOn does not list the kind; or \
                      the hub and the add-on are of releases that do not fit.",
            mend: "Compare spec.configs of the ManagedClusterAddOn with supportedConfigs of the ClusterManagementAddOn, and see whether \
                   the object is there.",
            mended: "The condition Configured is True, and Progressing names no such reason.",
        },
    },
    Check {
        id: Id(5204),
        slug: "add-ons-removed",
        title: "deleted add-ons go",
        category: Category::Works,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters, Input::AddOns],
        after: &[
            Id(1106),
            Id(2106),
            Id(2115),
            Id(2116),
            Id(2204),
            Id(3101),
            Id(3102),
            Id(3108),
            Id(5101),
            Id(5102),
            Id(6101),
        ],
        rule: Rule::Cluster(add_ons_removed),
        page: Page {
            means: "An add-on is being deleted for five minutes or more: a finalizer waits for a job of the add-on, or for what it has \
                    installed.",
            happens: "The add-on's pre-delete job fails or cannot start, the agent is offline, the hosting cluster is gone, or the \
                      add-on's manager, which takes the finalizer away, was removed first.",
            mend: "Look at the add-on's works and at its job on the managed cluster. Only if the manager is gone for good, take the \
                   finalizer away: what is installed stays.",
            mended: "The ManagedClusterAddOn is gone.",
        },
    },
];

/// Reasons of the condition Progressing with which an add-on comes no further. Upstream: `ProgressingReason…`.
const STUCK: [&str; 2] = ["ConfigurationUnsupported", "Failed"];

fn conditions_of(addon: &ManagedClusterAddOn) -> &[ocm_api::Condition] {
    addon.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

fn add_on_configured(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let staying = cluster.addons.iter().filter(|addon| addon.metadata.deletion_timestamp.is_none());
    let findings = staying.filter_map(|addon| {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        let conditions = conditions_of(addon);
        let configured = conditions::find(conditions, managed_cluster_add_on::CONFIGURED)
            .filter(|condition| condition.status == conditions::FALSE);
        let stuck = conditions::find(conditions, managed_cluster_add_on::PROGRESSING)
            .filter(|condition| STUCK.contains(&condition.reason.as_str()));
        let condition = stuck.or(configured)?;
        // A configuration may come a little later than what names it.
        if !is_old(facts, Some(&condition.last_transition_time)) {
            return None;
        }
        let text = format!("the configuration of add-on {name} cannot be used");
        let works = conditions::is_true(conditions, managed_cluster_add_on::AVAILABLE);
        let finding = if works { Finding::warning(text) } else { Finding::error(text) };
        Some(
            finding
                .on(Side::Hub, "ManagedClusterAddOn", Some(cluster.name), name)
                .seen(format!(
                    "{}={}: {}: {}",
                    condition.type_,
                    condition.status,
                    condition.reason,
                    text::tail(&condition.message, 240)
                ))
                .because(
                    "spec.configs names an object that is not there, or of a kind that the add-on does not support",
                )
                .run(Side::Hub, "kubectl get managedclusteraddon/{} -n {} -o yaml", &[name, cluster.name])
                .run(Side::Hub, "kubectl get clustermanagementaddon/{} -o yaml", &[name]),
        )
    });
    Outcome::of(findings.collect())
}

fn add_ons_removed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let leaving = cluster.addons.iter().filter(|addon| is_old(facts, addon.metadata.deletion_timestamp.as_ref()));
    let findings = leaving.map(|addon| {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        let since = facts.ago(addon.metadata.deletion_timestamp.as_ref().map(|time| time.0));
        let left = addon.metadata.finalizers.clone().unwrap_or_default();
        let has = |part: &str| left.iter().any(|finalizer| finalizer.contains(part));
        let cause = match () {
            () if has("hosting-") => {
                "what runs on the hosting cluster is not removed: that cluster, or its agent, is gone"
            }
            () if has("addon-pre-delete") => "its pre-delete job has not ended: see the work of the job, and the job",
            () => "the add-on's manager, which takes the finalizer away, does not run or was removed first",
        };
        Finding::warning(format!("add-on {name} is being deleted since {since}"))
            .on(Side::Hub, "ManagedClusterAddOn", Some(cluster.name), name)
            .seen(format!("finalizers: {}", text::list(&left)))
            .because(cause)
            .run(
                Side::Hub,
                "kubectl get manifestworks -n {} -l open-cluster-management.io/addon-name={}",
                &[cluster.name, name],
            )
            .run(Side::Managed, "kubectl get jobs,pods -n open-cluster-management-agent-addon", &[])
    });
    Outcome::of(findings.collect())
}

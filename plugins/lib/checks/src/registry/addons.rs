//! 5203 and on: what becomes of add-ons besides running.

use ocm_api::ManagedClusterAddOn;
use ocm_api::conditions::{self, managed_cluster_add_on};
use ocm_api::names::{annotations, finalizers};
use serde_json::Value;

use super::subject::staying;
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
    Check {
        id: Id(5205),
        slug: "hosted-add-on-has-its-host",
        title: "every hosted add-on names the cluster that it runs on",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::AddOns],
        after: &[],
        rule: Rule::Cluster(hosted_add_on_has_its_host),
        page: Page {
            means: "The ManagedClusterAddOn has finalizers for what it has installed on a hosting cluster, and no longer the annotation \
                    addon.open-cluster-management.io/hosting-cluster-name that names this cluster: its manager brings the add-on to \
                    the managed cluster itself, and nobody removes what is on the hosting one. A warning: the add-on still reports.",
            happens: "A tool or a controller has replaced the annotations of the ManagedClusterAddOn instead of adding its own.",
            mend: "Set the annotation again: `kubectl annotate managedclusteraddon NAME -n CLUSTER \
                   addon.open-cluster-management.io/hosting-cluster-name=HOST`. If the add-on is not to be hosted any more, delete it \
                   with the annotation set, and enable it again.",
            mended: "The annotation is there, and the works of the add-on are in the namespace of the hosting cluster.",
        },
    },
    Check {
        id: Id(5206),
        slug: "image-registries-readable",
        title: "the registries from which a cluster's add-ons take their images can be read",
        category: Category::Works,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::AddOns],
        after: &[],
        rule: Rule::Cluster(image_registries_readable),
        page: Page {
            means: "The annotation open-cluster-management.io/image-registries of the ManagedCluster is not what managers of add-ons \
                    read: they cannot make the objects of add-ons with it, or go on with the images of their own registries. A \
                    warning: what was installed before is available.",
            happens: "It was written by hand, with a comma or a quote too many, or with another word than mirror, as in upstream's comment.",
            mend: "Write it as `{\"registries\": [{\"source\": \"quay.io/ocm\", \"mirror\": \"registry.example/ocm\"}]}`; of two entries that \
                   fit, the later one counts. Registries in an AddOnDeploymentConfig take precedence over it.",
            mended: "The add-ons' images are those of the mirror: `kubectl get deployments -n open-cluster-management-agent-addon -o wide` \
                     on the managed cluster.",
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

/// Finalizers that only hosted add-ons have.
const HOSTED: [&str; 2] = [finalizers::ADDON_HOSTING_MANIFESTS, finalizers::ADDON_HOSTING_PRE_DELETE];

/// Whether it reports that it is well.
fn is_available(addon: &ManagedClusterAddOn) -> bool {
    conditions::is_true(conditions_of(addon), managed_cluster_add_on::AVAILABLE)
}

fn hosted_add_on_has_its_host(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let staying = cluster.addons.iter().filter(|addon| addon.metadata.deletion_timestamp.is_none());
    let lost = staying.filter(|addon| {
        let host = addon.metadata.annotations.as_ref().and_then(|all| all.get(annotations::ADDON_HOSTING_CLUSTER));
        let is_hosted = addon.metadata.finalizers.iter().flatten().any(|one| HOSTED.contains(&one.as_str()));
        is_hosted && host.is_none_or(String::is_empty)
    });
    let findings = lost.map(|addon| {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        let text = format!("hosted add-on {name} does not name the cluster that it runs on");
        let finding = if is_available(addon) { Finding::warning(text) } else { Finding::error(text) };
        finding
            .on(Side::Hub, "ManagedClusterAddOn", Some(cluster.name), name)
            .seen(format!("finalizers: {}", text::list(addon.metadata.finalizers.iter().flatten())))
            .seen(format!("it has no annotation {}", annotations::ADDON_HOSTING_CLUSTER))
            .because(
                "somebody has replaced its annotations: its manager takes it for one that runs on the managed cluster",
            )
            .run(Side::Hub, "kubectl get managedclusteraddon/{} -n {} -o yaml", &[name, cluster.name])
            .run(Side::Hub, "kubectl get manifestworks -A -l open-cluster-management.io/addon-name={}", &[name])
            .advise("set the annotation to the name of the hosting cluster again")
    });
    Outcome::of(findings.collect())
}

/// What keeps managers of add-ons from following the annotation; none: they can. Upstream: `ImageRegistries` of
/// `pkg/addon/templateagent`, which has a list of source and mirror.
fn unreadable(text: &str) -> Option<&'static str> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Some("it is not valid JSON") };
    let entries = match value.get("registries") {
        None => return Some("it has no member registries"),
        Some(Value::Null) => return None,
        Some(Value::Array(entries)) => entries,
        Some(_) => return Some("its member registries must be an array"),
    };
    let has_mirror =
        |entry: &Value| entry.get("mirror").and_then(Value::as_str).is_some_and(|mirror| !mirror.is_empty());
    (!entries.iter().all(has_mirror)).then_some("an entry of registries has no mirror")
}

fn image_registries_readable(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let annotation = object.metadata.annotations.as_ref().and_then(|all| all.get(annotations::IMAGE_REGISTRIES));
    let Some(annotation) = annotation.filter(|text| !text.is_empty()) else { return Outcome::Pass };
    // Nothing else reads it.
    let staying: Vec<_> = cluster.addons.iter().filter(|addon| addon.metadata.deletion_timestamp.is_none()).collect();
    let Some(why) = unreadable(annotation).filter(|_| !staying.is_empty()) else { return Outcome::Pass };
    let text = "the registries for the images of the cluster's add-ons cannot be read";
    let finding = match staying.iter().all(|addon| is_available(addon)) {
        true => Finding::warning(text),
        false => Finding::error(text),
    };
    let finding = finding
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("annotation {}: {}", annotations::IMAGE_REGISTRIES, text::head(annotation, 120)))
        .because(why)
        .run(Side::Hub, "kubectl edit managedcluster/{}", &[cluster.name]);
    Outcome::Found(vec![finding])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_read_as_managers_of_add_ons_do() {
        for good in [
            r#"{"registries": [{"source": "quay.io/ocm", "mirror": "r/ocm"}], "pullSecret": "ns.name"}"#,
            r#"{"registries": [{"mirror": "r"}]}"#,
            r#"{"registries": []}"#,
            r#"{"registries": null}"#,
        ] {
            assert_eq!(unreadable(good), None, "{good}");
        }
        for (bad, why) in [
            ("{", "not valid JSON"),
            ("[]", "no member"),
            (r#"{"registries": "r"}"#, "must be an array"),
            (r#"{"registries": [{"source": "a", "mirrors": "b"}]}"#, "no mirror"),
            (r#"{"registries": [{"source": "a", "mirror": ""}]}"#, "no mirror"),
        ] {
            assert!(unreadable(bad).is_some_and(|said| said.contains(why)), "{bad}: {:?}", unreadable(bad));
        }
    }
}

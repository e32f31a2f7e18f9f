//! 7xxx: versions and safety.

use ocm_core::release::Bundle;

use super::subject::agent;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, Side, Workload};

/// The checks of versions and safety.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(7101),
        slug: "agent-not-newer",
        title: "the agent is not of a newer release than the hub",
        category: Category::Safety,
        severity: Severity::Warning,
        inputs: &[Input::HubDeployments, Input::Agents],
        after: &[],
        rule: Rule::Cluster(agent_not_newer),
        page: Page {
            means: "The agent is of a newer minor release than the hub. Hubs are upgraded first: a newer agent may ask for kinds and \
                    versions that an older hub does not serve.",
            happens: "The cluster was joined, or its Klusterlet upgraded, before the hub.",
            mend: "Upgrade the hub, or join with the hub's release: `--bundle-version`.",
            mended: "The hub's release is the same or newer.",
        },
    },
    Check {
        id: Id(7102),
        slug: "hub-renewals-safe",
        title: "the hub's registration controller verifies renewals",
        category: Category::Safety,
        severity: Severity::Warning,
        inputs: &[Input::HubDeployments],
        after: &[],
        rule: Rule::Hub(renewals_safe),
        page: Page {
            means: "The hub's registration image is of a release in which one managed cluster can have a certificate of another one \
                    renewed to itself: CVE-2026-4740, mended in 1.0.1, 1.1.3, 1.2.1 and 1.3.0.",
            happens: "The hub was not upgraded.",
            mend: "Upgrade the hub: `kubectl ocm install hub --bundle-version v1.3.1 --wait`. Until then: `kubectl ocm install \
                   baseline`.",
            mended: "The image of cluster-manager-registration-controller has a tag of a mended release.",
        },
    },
];

/// The release of the first image that has the tag of one.
fn release(workload: &Workload) -> Option<Bundle> {
    workload.images.iter().find_map(|image| Bundle::of_image(image))
}

fn agent_not_newer(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let of = |list: &Vec<Workload>, part: &str| {
        list.iter().filter(|workload| workload.name.contains(part)).find_map(release)
    };
    let hub = facts.snapshot.hub.as_ref().and_then(|hub| hub.deployments.read());
    let hub = hub.and_then(|list| of(list, "registration-controller"));
    let own = agent.side.deployments.read().and_then(|list| of(list, "agent"));
    let (Some(hub), Some(own)) = (hub, own) else { return Outcome::skip("the images have no tags of releases") };
    if !hub.is_minor_before(&own) {
        return Outcome::Pass;
    }
    let finding = Finding::warning(format!("the agent is of release {own}, the hub of {hub}"))
        .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
        .because("hubs are upgraded before their managed clusters")
        .run(Side::Hub, "kubectl ocm install hub --bundle-version {} --diff", &[&own.to_string()]);
    Outcome::Found(vec![finding])
}

fn renewals_safe(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let deployments = hub.deployments.read().map(Vec::as_slice).unwrap_or_default();
    let controller = deployments.iter().find(|workload| workload.name.ends_with("registration-controller"));
    let Some((workload, release)) = controller.and_then(|workload| Some((workload, release(workload)?))) else {
        return Outcome::skip("the image has no tag of a release");
    };
    if !release.is_vulnerable() {
        return Outcome::Pass;
    }
    let finding =
        Finding::warning("the hub's release lets one cluster have another's certificate renewed: CVE-2026-4740")
            .on(Side::Hub, "Deployment", Some(&workload.namespace), &workload.name)
            .seen(format!("image {}", workload.images.join(", ")))
            .because("mended in 1.0.1, 1.1.3, 1.2.1 and 1.3.0")
            .run(Side::Hub, "kubectl ocm install baseline --diff", &[]);
    Outcome::Found(vec![finding])
}

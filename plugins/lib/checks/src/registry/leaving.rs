//! 6xxx: leaving.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::Klusterlet;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::{annotations, finalizers, namespaces};

use super::next::operator;
use super::subject::agent;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, ManagedSide, Side};
use crate::text;

/// How long a removal may take.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// How long something may be there before its cluster, or after it.
const LEFT: SignedDuration = SignedDuration::from_secs(600);

/// The checks of leaving.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(6101),
        slug: "cluster-removed",
        title: "a cluster that is removed from the hub goes",
        category: Category::Leaving,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: &[Id(1106), Id(1116), Id(1118)],
        rule: Rule::Cluster(cluster_removed),
        page: Page {
            means: "The ManagedCluster is being deleted for a minute or more. Its conditions still read True/True/True; only the \
                    deletion timestamp tells.",
            happens: "Works or add-ons are left, and the agent that has to remove them is offline; or the hub's registration \
                      controller does not run.",
            mend: "Bring the agent back. Only if the cluster is gone for good, take the finalizers of its works away.",
            mended: "`kubectl ocm get clusters NAME` does not know it.",
        },
    },
    Check {
        id: Id(6102),
        slug: "namespace-removed",
        title: "the cluster's namespace on the hub is not stuck in removal",
        category: Category::Leaving,
        severity: Severity::Error,
        inputs: &[Input::HubNamespaces],
        after: &[Id(6101), Id(1116)],
        rule: Rule::Cluster(namespace_removed),
        page: Page {
            means: "The namespace of the cluster's name is being removed for a minute or more. As long as it is, a cluster of that \
                    name is not accepted.",
            happens: "An object in it has a finalizer: the RoleBinding of works, a work, an add-on.",
            mend: "Look at what is left in it, and let its owner end.",
            mended: "The namespace is gone, or Active again.",
        },
    },
    Check {
        id: Id(6103),
        slug: "klusterlet-removed",
        title: "a Klusterlet that is deleted goes",
        category: Category::Leaving,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[Id(2102), Id(2103), Id(3111)],
        rule: Rule::Cluster(klusterlet_removed),
        page: Page {
            means: "The Klusterlet is being deleted for a minute or more.",
            happens: "The operator, which has to clean up, does not run or waits for its lease; AppliedManifestWorks are left; in \
                      Hosted mode the managed cluster cannot be reached, while the Klusterlet's conditions stay as they were.",
            mend: "Bring the operator up. In Hosted mode, give it a kubeconfig that works: it gives up after five minutes of `i/o \
                   timeout`, `no such host` or `connection refused`, and never of `no route to host`. If the managed cluster is gone \
                   for good, take the finalizers away.",
            mended: "`kubectl get klusterlets` does not list it.",
        },
    },
    Check {
        id: Id(6104),
        slug: "agent-namespace-removed",
        title: "no namespace of the agents is stuck in removal",
        category: Category::Leaving,
        severity: Severity::Error,
        inputs: &[Input::ManagedNamespaces],
        after: &[Id(6103)],
        rule: Rule::Managed(agent_namespace_removed),
        page: Page {
            means: "A namespace of the operator or the agents is being removed for a minute or more: nothing can be made in it.",
            happens: "An API service or a conversion webhook does not answer, or an object in it has a finalizer.",
            mend: "Read the namespace's conditions; look for API services that are not available.",
            mended: "The namespace is gone, or there again as Active.",
        },
    },
    Check {
        id: Id(6105),
        slug: "nothing-left-behind",
        title: "nothing is left of clusters that the hub no longer has",
        category: Category::Leaving,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters, Input::Works, Input::AddOns],
        after: &[Id(1106), Id(1115)],
        rule: Rule::Hub(nothing_left_behind),
        page: Page {
            means: "A namespace of the hub has add-ons or works that wait to be removed, and no ManagedCluster of its name is there: \
                    nobody removes them. The namespace cannot go, and a cluster of that name is not accepted while it goes.",
            happens: "The ManagedCluster was removed with its finalizers taken away, the feature gate ResourceCleanup is off, or a \
                      ClusterManagementAddOn was deleted before its add-ons.",
            mend: "If the cluster is gone for good, take the finalizers of what is left away and delete it. If it comes back under this \
                   name, its agent ends what it knows.",
            mended: "`kubectl get manifestworks,managedclusteraddons -n NAME` finds nothing.",
        },
    },
];

fn is_old(facts: &Facts<'_>, since: &Time) -> bool {
    facts.now.duration_since(since.0) >= GRACE
}

fn cluster_removed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let Some(object) = cluster.object else { return Outcome::skip("the hub does not know the cluster") };
    let Some(since) = object.metadata.deletion_timestamp.as_ref().filter(|since| is_old(facts, since)) else {
        return Outcome::Pass;
    };
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let left = cluster.works.iter().filter(|work| work.finalizers.iter().any(|one| one == finalizers::MANIFEST_WORK));
    let left: Vec<&str> = left.map(|work| work.name.as_str()).collect();
    let finding =
        Finding::error(format!("the cluster is being removed from the hub since {}", facts.ago(Some(since.0))))
            .on(Side::Hub, "ManagedCluster", None, cluster.name)
            .seen(format!("finalizers: {}", text::list(object.metadata.finalizers.iter().flatten())));
    let finding = match conditions::find(conditions, managed_cluster::DELETING) {
        Some(condition) => finding.seen(format!("{}: {}", condition.reason, condition.message)),
        None => finding,
    };
    let finding =
        if left.is_empty() { finding } else { finding.seen(format!("works that are left: {}", text::list(&left))) };
    let silent = cluster.is_fresh(facts.now) != Some(true);
    let finding = match (left.is_empty(), silent) {
        (false, true) => finding
            .seen(format!("the agent was heard of {} ago", facts.ago(cluster.heard())))
            .because("the agent, which has to remove what was applied, is offline")
            .advise("bring the agent back; if the cluster is gone for good, its works can be let go:")
            .run(
                Side::Hub,
                "kubectl patch manifestwork/{} -n {} --type=merge -p {}",
                &[left.first().copied().unwrap_or("NAME"), cluster.name, r#"{"metadata":{"finalizers":null}}"#],
            ),
        (false, false) => finding.because("the agent has not removed everything yet"),
        (true, _) => finding.because("add-ons are left, or the hub's registration controller does not act"),
    };
    Outcome::Found(vec![finding.run(
        Side::Hub,
        "kubectl get manifestworks,managedclusteraddons -n {}",
        &[cluster.name],
    )])
}

fn namespace_removed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let stuck =
        cluster.terminating.filter(|namespace| namespace.since.as_ref().is_some_and(|since| is_old(facts, since)));
    let Some(namespace) = stuck else { return Outcome::Pass };
    let since = facts.ago(namespace.since.as_ref().map(|since| since.0));
    let finding = Finding::error(format!("namespace {} on the hub is being removed since {since}", namespace.name)).on(
        Side::Hub,
        "Namespace",
        None,
        &namespace.name,
    );
    let finding = namespace.messages.iter().fold(finding, Finding::seen);
    let finding = finding.because("an object in it has a finalizer whose owner does not act").run(
        Side::Hub,
        "kubectl get rolebindings,manifestworks,managedclusteraddons -n {}",
        &[&namespace.name],
    );
    Outcome::Found(vec![finding])
}

fn klusterlet_removed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let since = agent.klusterlet.metadata.deletion_timestamp.as_ref().filter(|since| is_old(facts, since));
    let Some(since) = since else { return Outcome::Pass };
    let name = &agent.side.klusterlet;
    let finding = Finding::error(format!("Klusterlet {name} is being removed since {}", facts.ago(Some(since.0))))
        .on(Side::Managed, "Klusterlet", None, name)
        .seen(format!("finalizers: {}", text::list(agent.klusterlet.metadata.finalizers.iter().flatten())));
    let applied = facts.snapshot.managed.as_ref().and_then(|managed| managed.applied_works.read());
    let finding = match applied.map(Vec::len).filter(|left| *left > 0) {
        Some(left) => finding.seen(format!("AppliedManifestWorks that are left: {left}")),
        None => finding,
    };
    let finding = match agent.is_hosted() {
        // Its conditions stay as they were.
        true => hosted_gives_up(agent.klusterlet, finding),
        false => finding
            .because("the operator has not cleaned up: it does not run, or works are left that it has to remove first"),
    };
    let finding = finding.run(Side::Managed, "kubectl get appliedmanifestworks", &[]).run(
        Side::Managed,
        "kubectl logs deployment/klusterlet -n {} --tail=50",
        &[operator(facts)],
    );
    Outcome::Found(vec![finding])
}

/// Why the removal of a hosted Klusterlet does not end: its operator cleans up on the managed cluster.
fn hosted_gives_up(klusterlet: &Klusterlet, finding: Finding) -> Finding {
    let noted = klusterlet.metadata.annotations.as_ref().and_then(|all| all.get(annotations::EVICTION));
    let finding = match noted {
        Some(time) => finding.seen(format!("the operator cannot reach the managed cluster since {time}")),
        None => finding,
    };
    let name = klusterlet.metadata.name.as_deref().unwrap_or_default();
    finding
        .because(
            "the operator has to clean up on the managed cluster: it gives up after five minutes of `i/o timeout`, `no such \
             host` or `connection refused`, and never of anything else, such as `no route to host`",
        )
        .run(Side::Managed, "kubectl get secret/external-managed-kubeconfig -n {}", &[name])
        .advise("only if the managed cluster is gone for good, take the finalizers away, and remove the namespace of its name:")
        .run(
            Side::Managed,
            "kubectl patch klusterlet/{} --type=merge -p {}",
            &[name, r#"{"metadata":{"finalizers":null}}"#],
        )
}

/// Of how many namespaces a report tells.
const NAMESPACES: usize = 10;

fn nothing_left_behind(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    if !facts.snapshot.clusters.is_empty() {
        return Outcome::skip("not all clusters of the hub were looked at");
    }
    let long = |time: Option<&Time>| time.is_some_and(|time| facts.now.duration_since(time.0) >= LEFT);
    let works = hub.works.read().into_iter().flatten().filter(|work| {
        // What nobody has applied yet may wait for a cluster that is to come.
        long(work.deleting.as_ref()) || (long(work.created.as_ref()) && !work.finalizers.is_empty())
    });
    let works = works.map(|work| (work.namespace.as_str(), format!("work {}", work.name)));
    let addons = hub.addons.read().into_iter().flatten().filter(|addon| {
        let metadata = &addon.metadata;
        let has_finalizers = metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        long(metadata.deletion_timestamp.as_ref()) || (long(metadata.creation_timestamp.as_ref()) && has_finalizers)
    });
    let addons = addons.map(|addon| {
        let name = addon.metadata.name.as_deref().unwrap_or_default();
        (addon.metadata.namespace.as_deref().unwrap_or_default(), format!("add-on {name}"))
    });
    let mut left: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (namespace, what) in works.chain(addons).filter(|(namespace, _)| !facts.clusters.contains_key(namespace)) {
        left.entry(namespace).or_default().push(what);
    }
    let findings = left.into_iter().take(NAMESPACES).map(|(namespace, mut what)| {
        let count = what.len();
        what.truncate(NAMESPACES);
        let text =
            format!("namespace {namespace} has {count} works and add-ons of a cluster that the hub no longer has");
        Finding::warning(text)
            .on(Side::Hub, "Namespace", None, namespace)
            .seen(text::list(what))
            .because("the ManagedCluster went before what belongs to it: nobody takes the finalizers away")
            .run(Side::Hub, "kubectl get manifestworks,managedclusteraddons -n {}", &[namespace])
    });
    Outcome::of(findings.collect())
}

fn agent_namespace_removed(facts: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    // Add-ons, and a hub on the same cluster, have namespaces of like names.
    // The usual one of agents may be left by a Klusterlet that is gone.
    let shared = [namespaces::OPERATOR, namespaces::AGENT, namespaces::AGENT_ADDON];
    let is_agents = |name: &str| managed.agents.iter().any(|agent| agent.namespace == name);
    let stuck = managed.terminating.read().into_iter().flatten();
    let stuck = stuck.filter(|namespace| shared.contains(&namespace.name.as_str()) || is_agents(&namespace.name));
    let stuck = stuck.filter(|namespace| namespace.since.as_ref().is_some_and(|since| is_old(facts, since)));
    // The namespace of one agent explains nothing of another one, and that of add-ons nothing of any.
    let is_only = |name: &str| is_agents(name) && managed.agents.len() == 1;
    let is_apart = |name: &str| name != namespaces::OPERATOR && !is_only(name) && !managed.agents.is_empty();
    Outcome::of(
        stuck
            .map(|namespace| {
                let since = facts.ago(namespace.since.as_ref().map(|since| since.0));
                let name = &namespace.name;
                let finding = Finding::error(format!("namespace {name} of the agents is being removed since {since}"))
                    .on(Side::Managed, "Namespace", None, name);
                let finding = namespace.messages.iter().fold(finding, Finding::seen);
                let finding = if is_apart(name) { finding.apart() } else { finding };
                finding
                    .because("an object in it has a finalizer, or an API service does not answer")
                    .run(Side::Managed, "kubectl get namespace/{} -o yaml", &[name])
                    .run(Side::Managed, "kubectl get apiservices", &[])
            })
            .collect(),
    )
}

//! 6xxx: leaving.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::finalizers;

use super::agent::agent;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{ManagedSide, Side};
use crate::text;

/// How long a removal may take.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// The checks of leaving.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(6101),
        slug: "cluster-removed",
        title: "a cluster that is removed from the hub goes",
        category: Category::Leaving,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: &[Id(1106)],
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
        after: &[Id(6101)],
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
        after: &[Id(2102), Id(2103)],
        rule: Rule::Cluster(klusterlet_removed),
        page: Page {
            means: "The Klusterlet is being deleted for a minute or more.",
            happens: "The operator, which has to clean up, does not run or waits for its lease; AppliedManifestWorks are left; in \
                      Hosted mode the managed cluster cannot be reached.",
            mend: "Bring the operator up. In Hosted mode, give it a kubeconfig that works.",
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
        .seen(format!("finalizers: {}", text::list(agent.klusterlet.metadata.finalizers.iter().flatten())))
        .because(
            "the operator has not cleaned up: it does not run, works are left, or it cannot reach the managed cluster",
        )
        .run(Side::Managed, "kubectl get appliedmanifestworks", &[])
        .run(Side::Managed, "kubectl logs deployment/klusterlet -n open-cluster-management --tail=50", &[]);
    Outcome::Found(vec![finding])
}

fn agent_namespace_removed(facts: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    let stuck = managed.terminating.read().into_iter().flatten();
    let stuck = stuck.filter(|namespace| namespace.since.as_ref().is_some_and(|since| is_old(facts, since)));
    Outcome::of(
        stuck
            .map(|namespace| {
                let since = facts.ago(namespace.since.as_ref().map(|since| since.0));
                let name = &namespace.name;
                let finding = Finding::error(format!("namespace {name} of the agents is being removed since {since}"))
                    .on(Side::Managed, "Namespace", None, name);
                let finding = namespace.messages.iter().fold(finding, Finding::seen);
                finding
                    .because("an object in it has a finalizer, or an API service does not answer")
                    .run(Side::Managed, "kubectl get namespace/{} -o yaml", &[name])
                    .run(Side::Managed, "kubectl get apiservices", &[])
            })
            .collect(),
    )
}

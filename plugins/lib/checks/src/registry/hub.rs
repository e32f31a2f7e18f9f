//! 1xxx: the hub's control plane.

use ocm_api::conditions::{self, cluster_manager};
use ocm_api::names::{namespaces, operators, secrets};
use ocm_core::certificate::Certificate;
use ocm_core::install::mode::namespace_of;
use ocm_core::join::lease::LASTS;

use super::next::{RESTART, hub_operator};
use super::serving::waits_for_balancer;
use super::subject::of_manager;
use super::workload::unwell;
use super::{Category, Check, Input, Page, Rule};
use crate::causes;
use crate::facts::{Facts, is_own_manager, own_manager};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, Side, Workload};

/// The checks of the hub's control plane.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(1101),
        slug: "cluster-manager-exists",
        title: "the hub has a ClusterManager",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::ClusterManagers],
        after: &[],
        rule: Rule::Hub(cluster_manager_exists),
        page: Page {
            means: "No ClusterManager is on the cluster that was named as the hub, so nothing makes or keeps it a hub.",
            happens: "The hub was never installed, the ClusterManager was deleted, or the context is that of another cluster.",
            mend: "Name the hub's context. To make this cluster a hub: `kubectl ocm install hub --wait`.",
            mended: "`kubectl get clustermanagers` lists one.",
        },
    },
    Check {
        id: Id(1102),
        slug: "hub-operator-runs",
        title: "the hub's operator runs",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::HubOperator],
        after: &[Id(1101), Id(1115), Id(1116)],
        rule: Rule::Hub(hub_operator_runs),
        page: Page {
            means: "The Deployment open-cluster-management/cluster-manager is missing or not ready: changes of the ClusterManager \
                    are not carried out, certificates of the webhooks are not rotated, and what is deleted stays deleted.",
            happens: "Its image cannot be pulled, no node takes its pod, a quota or admission refuses it, somebody scaled it to 0, \
                      or the operator crashes.",
            mend: "Do what the evidence says: the image, the node, the quota. A missing Deployment comes back with \
                   `kubectl ocm install hub`.",
            mended: "`kubectl rollout status deployment/cluster-manager -n open-cluster-management` ends.",
        },
    },
    Check {
        id: Id(1103),
        slug: "hub-operator-leads",
        title: "the hub's operator holds its leader lease",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::HubLeader, Input::ClusterManagers],
        after: &[Id(1102), Id(1116)],
        rule: Rule::Hub(hub_operator_leads),
        page: Page {
            means: "The operator's pod is ready and does nothing: its leader lease is held by a process that has ended.",
            happens: "The former pod, or the former container of the same pod, was killed and did not release the lease, which lasts for \
                      137 seconds.",
            mend: "Wait up to three minutes, or delete the lease.",
            mended: "The lease is renewed twice a minute, and the ClusterManager has conditions.",
        },
    },
    Check {
        id: Id(1104),
        slug: "cluster-manager-applied",
        title: "the operator has applied the ClusterManager",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::ClusterManagers],
        after: &[Id(1102), Id(1103), Id(1105), Id(1111), Id(1115), Id(1116)],
        rule: Rule::Hub(cluster_manager_applied),
        page: Page {
            means: "The operator reports that it could not apply something, or has not seen the latest change.",
            happens: "The operator's ClusterRole is of an older release than its image, a namespace was deleted, or the API server \
                      refuses an object.",
            mend: "Read the message. `kubectl ocm install hub` brings operator, roles and definitions to one release.",
            mended: "The condition Applied of the ClusterManager is True for its latest generation.",
        },
    },
    Check {
        id: Id(1105),
        slug: "hub-feature-gates",
        title: "every feature gate of the hub is known",
        category: Category::Hub,
        severity: Severity::Warning,
        inputs: &[Input::ClusterManagers],
        after: &[],
        rule: Rule::Hub(hub_feature_gates),
        page: Page {
            means: "The ClusterManager sets a feature gate that this release does not know. It has no effect.",
            happens: "A misspelt name, or a gate of another release.",
            mend: "Correct the name in spec, or set gates with `kubectl ocm install hub --feature-gates`.",
            mended: "The condition ValidFeatureGates is True.",
        },
    },
    Check {
        id: Id(1106),
        slug: "hub-components-run",
        title: "the hub's components run",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::HubDeployments, Input::ClusterManagers],
        after: &[Id(1102), Id(1103), Id(1104), Id(1111), Id(1115), Id(1116)],
        rule: Rule::Hub(hub_components_run),
        page: Page {
            means: "A Deployment of the namespace open-cluster-management-hub is missing, scaled to 0 or not ready. Without the \
                    registration controller nobody is accepted or heard of; without the webhooks no managed cluster can be written.",
            happens: "An image that cannot be pulled, no room on the nodes, a quota, PodSecurity or SCC, a crash, or somebody's \
                      `kubectl scale`.",
            mend: "Do what the evidence says. The operator restores Deployments that were changed or deleted, while it runs.",
            mended: "`kubectl get deployments -n open-cluster-management-hub` shows all of them ready.",
        },
    },
    Check {
        id: Id(1107),
        slug: "webhooks-exist",
        title: "the hub's webhook configurations exist",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::Webhooks],
        after: &[Id(1102), Id(1103), Id(1104), Id(1106), Id(1111), Id(1116)],
        rule: Rule::Hub(webhooks_exist),
        page: Page {
            means: "A webhook configuration of Open Cluster Management is missing: managed clusters are written unchecked, and get \
                    no cluster set.",
            happens: "The operator makes them last, after everything runs; or somebody deleted one.",
            mend: "Let the operator run: it makes them again.",
            mended: "`kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations` lists them.",
        },
    },
    Check {
        id: Id(1108),
        slug: "webhooks-have-endpoints",
        title: "a server is behind every webhook of the hub",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::Webhooks],
        after: &[Id(1102), Id(1106), Id(1107), Id(1116)],
        rule: Rule::Hub(webhooks_have_endpoints),
        page: Page {
            means: "A webhook's Service has no ready endpoint. What it is asked about is refused: managed clusters or works cannot \
                    be written.",
            happens: "Its Deployment is not ready, or the Service's selector was changed.",
            mend: "Bring the webhook's Deployment up; compare the Service's selector with the pods' labels. Where endpoints are ready \
                   and a write still ends with `failed calling webhook`, the API server does not reach the pods' network: open \
                   port 9443 from the control plane to the nodes (private GKE), or let the webhooks use the nodes' network by \
                   deployOption.default of the ClusterManager, registrationWebhookConfiguration.bindConfiguration.hostNetwork \
                   (EKS with a network of its own). Of a hosted hub, \
                   address and port of deployOption.hosted must be ones that the hub's API server reaches. An expired \
                   certificate of a webhook is OCM1118.",
            mended: "`kubectl get endpointslices -n open-cluster-management-hub` lists a ready address for each webhook.",
        },
    },
    Check {
        id: Id(1109),
        slug: "webhooks-trusted",
        title: "the API server trusts the webhooks of the hub",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::Webhooks, Input::CaBundle],
        after: &[Id(1102), Id(1103), Id(1107), Id(1110)],
        rule: Rule::Hub(webhooks_trusted),
        page: Page {
            means: "The CA in a webhook configuration is missing, broken, or none of those that the hub's certificates come from: \
                    every question to the webhook ends with `x509: certificate signed by unknown authority`.",
            happens: "Another tool wrote the configuration, or the bundle was rotated while the operator was down.",
            mend: "Restart the operator: it writes the bundle of ConfigMap ca-bundle-configmap into every configuration.",
            mended: "The caBundle of each configuration has a certificate of the ConfigMap.",
        },
    },
    Check {
        id: Id(1110),
        slug: "hub-authority-valid",
        title: "the CA of the hub's webhooks is valid",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::CaBundle],
        after: &[Id(1102), Id(1103), Id(1104), Id(1111), Id(1115)],
        rule: Rule::Hub(hub_authority_valid),
        page: Page {
            means: "ConfigMap ca-bundle-configmap is missing, holds no certificate, or every certificate in it has expired, so \
                    nothing trusts webhooks and gRPC server.",
            happens: "The operator, which makes and rotates them, was down for months, or may not write them; or somebody deleted \
                      the ConfigMap.",
            mend: "Bring the operator up, and restart it: it makes the ConfigMap again. `kubectl ocm tls-check` looks at every \
                   certificate that comes from that CA.",
            mended: "The ConfigMap has a certificate that is valid now.",
        },
    },
    Check {
        id: Id(1111),
        slug: "hub-stays",
        title: "the hub is not being removed",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::ClusterManagers],
        after: &[],
        rule: Rule::Hub(hub_stays),
        page: Page {
            means: "The ClusterManager is being deleted. While managed clusters are left it waits.",
            happens: "Somebody deleted it.",
            mend: "A deletion cannot be taken back. Remove the managed clusters and let it end; then install the hub again.",
            mended: "There is no ClusterManager, or a new one.",
        },
    },
];

fn managers(hub: &HubSide) -> &[ocm_api::ClusterManager] {
    hub.managers.read().map(Vec::as_slice).unwrap_or_default()
}

/// Whether a hub is known to have no ClusterManager, so that nothing is asked of an operator there.
fn has_none(hub: &HubSide) -> bool {
    hub.managers.read().is_some_and(Vec::is_empty)
}

fn cluster_manager_exists(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    if !has_none(hub) {
        return Outcome::Pass;
    }
    // The ClusterManager of a hosted hub is on another cluster than the one that managed clusters register at.
    if facts.clusters.values().any(|cluster| cluster.is_well(facts.now)) {
        return Outcome::skip("the hub works, so its ClusterManager is on another cluster, as that of a hosted hub is");
    }
    let text = "the cluster that was named as the hub has no ClusterManager";
    let has_clusters = || hub.clusters.read().is_some_and(|clusters| !clusters.is_empty());
    // Whoever serves managed clusters is a hub, also before the first one has registered.
    let finding = match hub.serves_clusters.unwrap_or_else(has_clusters) {
        true => Finding::warning(text)
            .because("the hub is hosted, so that its ClusterManager is on another cluster, or somebody has deleted it")
            .advise(
                "if the hub is hosted, look at the cluster on which its ClusterManager is; if not, install it again",
            ),
        false => Finding::error(text).because("the hub was never installed there, or this is another cluster").run(
            Side::Hub,
            "kubectl ocm install hub --wait",
            &[],
        ),
    };
    Outcome::Found(vec![finding.seen(format!("{} has no ClusterManager", hub.server))])
}

fn hub_operator_runs(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    if has_none(hub) {
        return Outcome::skip("there is no ClusterManager that the operator would act on");
    }
    hub.operator.read().and_then(|operator| unwell(Side::Hub, operator)).into()
}

fn hub_operator_leads(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    let unreported = managers(hub).iter().any(|manager| {
        let seen = manager.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default();
        seen < manager.metadata.generation.unwrap_or_default()
    });
    let held = hub.leader.read().and_then(Option::as_ref).and_then(|lease| Some((lease, facts.gone_holder(lease)?)));
    let Some((lease, pod)) = held.filter(|_| unreported) else { return Outcome::Pass };
    let (namespace, lease) = (lease.namespace.as_str(), operators::CLUSTER_MANAGER_LOCK);
    let finding = Finding::error("the hub's operator waits for a leader lease whose holder is gone")
        .on(Side::Hub, "Lease", Some(namespace), lease)
        .seen(format!("a process of pod {pod} holds the lease and has ended"))
        .because(format!("it was killed before it released the lease, which lasts for {} seconds", LASTS.as_secs()))
        .run(Side::Hub, "kubectl delete lease/{} -n {}", &[lease, namespace]);
    Outcome::Found(vec![finding])
}

/// Reasons that tell of nothing but pods.
const MISSING_PODS: [&str; 2] =
    [cluster_manager::reasons::UNAVAILABLE_REGISTRATION_POD, cluster_manager::reasons::UNAVAILABLE_PLACEMENT_POD];

fn cluster_manager_applied(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let mut findings = Vec::new();
    // The removal of another hub is told by itself, and explains nothing: of what its operator reports meanwhile nothing follows.
    let is_leaving = |manager: &&ocm_api::ClusterManager| {
        manager.metadata.deletion_timestamp.is_some() && !is_own_manager(managers(hub), manager)
    };
    for manager in managers(hub).iter().filter(|manager| !is_leaving(manager)) {
        let name = manager.metadata.name.as_deref().unwrap_or_default();
        let about =
            |text: String| of_manager(hub, manager, Finding::error(text).on(Side::Hub, "ClusterManager", None, name));
        let before = findings.len();
        let Some(status) = &manager.status else {
            findings.push(about(format!("the operator has reported nothing about ClusterManager {name}")));
            continue;
        };
        let wanted = [
            (cluster_manager::APPLIED, conditions::TRUE),
            (cluster_manager::HUB_REGISTRATION_DEGRADED, conditions::FALSE),
            (cluster_manager::HUB_PLACEMENT_DEGRADED, conditions::FALSE),
        ];
        for (kind, wanted) in wanted {
            let Some(condition) = conditions::find(&status.conditions, kind) else { continue };
            // The Deployments themselves tell more of pods that are missing, and know it first.
            if MISSING_PODS.contains(&condition.reason.as_str()) && hub.deployments.read().is_some() {
                continue;
            }
            if condition.status != wanted {
                let text = format!("the hub's operator reports {}", condition.reason);
                let found = about(text).seen(format!("{kind}={}: {}", condition.status, condition.message));
                findings.push(match causes::operator(&condition.message) {
                    Some(cause) => found.because(cause),
                    None => found,
                });
            }
        }
        let (seen, latest) =
            (status.observed_generation.unwrap_or_default(), manager.metadata.generation.unwrap_or_default());
        if findings.len() == before && seen < latest {
            let text = format!("the operator has not observed the latest change of ClusterManager {name}");
            findings.push(about(text).seen(format!("generation {latest}, observed {seen}")));
        }
    }
    let logs = "kubectl logs deployment/cluster-manager -n {} --tail=50";
    Outcome::of(findings.into_iter().map(|finding| finding.run(Side::Hub, logs, &[hub_operator(hub)])).collect())
}

fn hub_feature_gates(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let wrong = managers(hub).iter().filter_map(|manager| {
        let name = manager.metadata.name.as_deref().unwrap_or_default();
        let conditions = manager.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let condition = conditions::find(conditions, cluster_manager::VALID_FEATURE_GATES)?;
        (condition.status == conditions::FALSE).then(|| {
            let finding = Finding::warning("the hub does not know one of its feature gates")
                .on(Side::Hub, "ClusterManager", None, name)
                .seen(format!("{}: {}", condition.reason, condition.message))
                .run(Side::Hub, "kubectl edit clustermanager/{}", &[name]);
            of_manager(hub, manager, finding)
        })
    });
    Outcome::of(wrong.collect())
}

/// How the names of the Deployments end that every hub has. Upstream: `manifests/cluster-manager/management`.
const ALWAYS: [&str; 4] =
    ["-registration-controller", "-registration-webhook", "-placement-controller", "-work-webhook"];

fn hub_components_run(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let deployments = hub.deployments.read().map(Vec::as_slice).unwrap_or_default();
    // Others may have Deployments in the namespace, too, and every hub has its own namespace.
    let own = |workload: &&Workload| {
        let here = managers(hub).iter().filter(|manager| namespace_of(manager) == workload.namespace);
        let prefixes = here.filter_map(|manager| manager.metadata.name.as_deref());
        let mut prefixes = prefixes.filter_map(|prefix| workload.name.strip_prefix(prefix));
        managers(hub).is_empty() || prefixes.any(|rest| rest.starts_with('-'))
    };
    // A gRPC server that waits for its load balancer has a check of its own, and is not what holds it up.
    let waits = |workload: &Workload| {
        let mut services = managers(hub).iter().filter_map(|manager| waits_for_balancer(hub, manager));
        let is_its = |name: &str, namespace: &str| name == workload.name && namespace == workload.namespace;
        workload.replicas > 0 && services.any(|service| is_its(&service.name, &service.namespace))
    };
    let own = deployments.iter().filter(own).filter(|&workload| !waits(workload));
    let home = own_manager(managers(hub)).map(namespace_of);
    let not_well = own.filter_map(|workload| {
        let finding = unwell(Side::Hub, workload)?;
        Some(if home.is_none_or(|home| home == workload.namespace) { finding } else { finding.apart() })
    });
    let mut findings: Vec<Finding> = not_well.collect();
    let is_read = |manager: &&ocm_api::ClusterManager| {
        !hub.unread_namespaces.iter().any(|unread| unread == namespace_of(manager))
    };
    for manager in managers(hub).iter().filter(is_read) {
        let applied = manager.status.iter().flat_map(|status| &status.generations);
        // Generations are never taken away again; related objects are, when a feature is switched off.
        let related = manager.status.iter().flat_map(|status| &status.related_resources);
        let related: Vec<&str> =
            related.filter(|related| related.resource == "deployments").map(|related| related.name.as_str()).collect();
        let wanted = |name: &str| match related.is_empty() {
            true => ALWAYS.iter().any(|always| name.ends_with(always)),
            false => related.contains(&name),
        };
        let applied = applied.filter(|applied| applied.resource == "deployments" && wanted(&applied.name));
        let is_there =
            |name: &str| deployments.iter().any(|known| known.name == name && known.namespace == namespace_of(manager));
        let missing = applied.filter(|applied| !is_there(&applied.name));
        findings.extend(missing.map(|applied| {
            let namespace = applied.namespace.as_deref();
            let finding = Finding::error(format!("Deployment {} of the hub is missing", applied.name))
                .on(Side::Hub, "Deployment", namespace, &applied.name)
                .because("somebody has deleted it, and the operator has not made it again")
                .run(Side::Hub, "kubectl get deployments -n {}", &[namespace.unwrap_or("default")]);
            of_manager(hub, manager, finding)
        }));
    }
    Outcome::of(findings)
}

fn webhooks_exist(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let webhooks = hub.webhooks.read().map(Vec::as_slice).unwrap_or_default();
    let missing = webhooks.iter().filter(|webhook| !webhook.exists).map(|webhook| {
        Finding::error(format!("webhook configuration {} is missing", webhook.name))
            .on(Side::Hub, "WebhookConfiguration", None, &webhook.name)
            .because("the operator makes it last, or somebody has deleted it")
            .run(Side::Hub, RESTART, &[hub_operator(hub)])
    });
    Outcome::of(missing.collect())
}

fn webhooks_have_endpoints(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let webhooks = hub.webhooks.read().map(Vec::as_slice).unwrap_or_default();
    let mut services: Vec<&str> = Vec::new();
    for webhook in webhooks.iter().filter(|webhook| webhook.exists && !webhook.has_endpoint) {
        if !services.contains(&webhook.service.as_str()) {
            services.push(&webhook.service);
        }
    }
    let silent = services.into_iter().map(|service| {
        let (namespace, name) = service.split_once('/').unwrap_or(("", service));
        Finding::error(format!("nothing is behind Service {service}, which webhooks of the hub are asked at"))
            .on(Side::Hub, "Service", Some(namespace), name)
            .because("no pod that the Service selects is ready")
            .run(Side::Hub, "kubectl get pods,endpointslices -n {}", &[namespace])
    });
    Outcome::of(silent.collect())
}

fn webhooks_trusted(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let Some(Some(bundle)) = hub.ca_bundle.read() else {
        return Outcome::skip("there is no ConfigMap with the hub's CA");
    };
    let webhooks = hub.webhooks.read().map(Vec::as_slice).unwrap_or_default();
    let strange = webhooks.iter().filter(|webhook| webhook.exists);
    let strange = strange.filter(|webhook| !webhook.authorities.iter().any(|authority| bundle.contains(authority)));
    let findings = strange.map(|webhook| {
        let seen = match webhook.authorities.len() {
            0 => "its caBundle is empty or cannot be read".to_owned(),
            count => format!("none of the {count} certificates of its caBundle is in ConfigMap ca-bundle-configmap"),
        };
        Finding::error(format!("the API server cannot trust the server of webhook configuration {}", webhook.name))
            .on(Side::Hub, "WebhookConfiguration", None, &webhook.name)
            .seen(seen)
            .because("the configuration was written by something else than the operator, or before a rotation")
            .run(Side::Hub, RESTART, &[hub_operator(hub)])
            .run(Side::Hub, "kubectl ocm tls-check", &[])
    });
    Outcome::of(findings.collect())
}

fn hub_authority_valid(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    let Some(bundle) = hub.ca_bundle.read().filter(|_| !has_none(hub)) else {
        return Outcome::skip("there is no ClusterManager that would make the hub's CA");
    };
    let about = |text: &str| {
        Finding::error(text).on(Side::Hub, "ConfigMap", Some(namespaces::HUB), secrets::CA_BUNDLE_CONFIGMAP)
    };
    let certificates = bundle.iter().flatten().filter_map(|der| Certificate::read(&der.0));
    let certificates: Vec<Certificate> = certificates.collect();
    let finding = match certificates.iter().map(|certificate| certificate.not_after).max() {
        // An operator that has only just begun makes it first of all, and reports later.
        None if !managers(hub).iter().any(has_applied) => return Outcome::Pass,
        None if bundle.is_none() => about("the ConfigMap with the CA of the hub's webhooks is missing")
            .because("somebody has deleted it, or the operator may not write Secrets and ConfigMaps"),
        None => about("the ConfigMap with the CA of the hub's webhooks holds no certificate")
            .because("somebody has emptied it, or the operator may not write Secrets and ConfigMaps"),
        Some(_) if certificates.iter().any(|certificate| certificate.is_valid(facts.now)) => return Outcome::Pass,
        Some(ends) => about("the CA of the hub's webhooks has expired")
            .seen(format!("its last certificate expired {} ago", facts.ago(Some(ends))))
            .because("the operator, which rotates it, did not run"),
    };
    Outcome::Found(vec![finding.run(Side::Hub, RESTART, &[hub_operator(hub)])])
}

/// Whether the operator reports that a ClusterManager is applied.
fn has_applied(manager: &ocm_api::ClusterManager) -> bool {
    let status = manager.status.as_ref();
    status.is_some_and(|status| conditions::is_true(&status.conditions, cluster_manager::APPLIED))
}

fn hub_stays(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    let leaving = managers(hub).iter().filter_map(|manager| {
        let since = manager.metadata.deletion_timestamp.as_ref()?;
        let name = manager.metadata.name.as_deref().unwrap_or_default();
        let (left, since) = (facts.clusters.len(), facts.ago(Some(since.0)));
        let is_own = is_own_manager(managers(hub), manager);
        let what = if is_own { "the hub".to_owned() } else { format!("another hub, {name},") };
        let finding = Finding::error(format!("{what} is being removed since {since}"))
            .on(Side::Hub, "ClusterManager", None, name)
            .seen(format!("finalizers: {}", manager.metadata.finalizers.clone().unwrap_or_default().join(", ")))
            .because("somebody has deleted the ClusterManager; it waits for managed clusters and definitions");
        Some(match is_own {
            true => finding.seen(format!("{left} managed clusters are left")).run(
                Side::Hub,
                "kubectl get managedclusters",
                &[],
            ),
            // What it waits for is on another cluster.
            false => finding.apart().run(Side::Hub, "kubectl get clustermanager/{} -o yaml", &[name]),
        })
    });
    Outcome::of(leaving.collect())
}

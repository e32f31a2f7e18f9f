//! 1112 and on: what the hub serves to agents and to its own API server.

use jiff::SignedDuration;
use ocm_api::ClusterManager;
use ocm_api::names::namespaces;
use ocm_api::operator::{Endpoint, EndpointProtocol, EndpointType, RegistrationAuthType};
use ocm_core::install::mode::{is_hosted, namespace_of};

use super::next::{RESTART, hub_operator};
use super::subject::of_manager;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Facts, is_own_manager, own_manager};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{HubSide, ServiceFacts, Side, WebhookFacts};
use crate::text;

/// How long the removal of a namespace may take, and a load balancer.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// The checks of what the hub serves.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(1112),
        slug: "grpc-server-exposed",
        title: "the hub's gRPC server is there, at an address of its own",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::ClusterManagers, Input::HubDeployments],
        after: &[Id(1102), Id(1103), Id(1104), Id(1106), Id(1111), Id(1115)],
        rule: Rule::Hub(grpc_server_exposed),
        page: Page {
            means: "The ClusterManager lists the driver grpc, and the server that agents of this driver dial is missing, has no \
                    address that its certificate is made for, or waits for its load balancer.",
            happens: "serverConfiguration or its endpointsExposure is missing; the protocol of the exposure is not grpc, or it names \
                      no host, or a route, for which the operator makes no certificate; the cluster \
                      provides no load balancers, so that Service cluster-manager-grpc-server gets no address and its certificate \
                      is not made.",
            mend: "Set serverConfiguration.endpointsExposure with protocol grpc and the host name that agents dial, without a port. \
                   Where there are no load balancers, use type hostname and expose the Service yourself.",
            mended: "`kubectl get services -n open-cluster-management-hub` shows its address, and `kubectl ocm tls-check` a certificate \
                     that is valid for it.",
        },
    },
    Check {
        id: Id(1113),
        slug: "webhooks-decide",
        title: "the hub's webhooks decide, and nobody in their place",
        category: Category::Hub,
        severity: Severity::Warning,
        inputs: &[Input::Webhooks],
        after: &[Id(1107)],
        rule: Rule::Hub(webhooks_decide),
        page: Page {
            means: "A webhook configuration of Open Cluster Management lets requests through when its webhook fails, or has somebody \
                    else asked: who may accept a cluster, join a set or apply as whom is then not enforced.",
            happens: "Somebody changed failurePolicy to get over an outage, or another tool wrote the configuration.",
            mend: "Delete the configuration, or restart the operator: it writes it as it has to be.",
            mended: "failurePolicy is Fail, and clientConfig names the Service of the hub.",
        },
    },
    Check {
        id: Id(1114),
        slug: "add-ons-converted",
        title: "the webhook that converts add-ons can be asked",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::Conversions, Input::CaBundle],
        after: &[Id(1102), Id(1103), Id(1104), Id(1106), Id(1108), Id(1110), Id(1111), Id(1115)],
        rule: Rule::Hub(add_ons_converted),
        page: Page {
            means: "The API server has to ask a webhook to convert ManagedClusterAddOns and ClusterManagementAddOns between v1alpha1 and \
                    v1beta1. Nothing is behind it, or the API server cannot trust it: `conversion webhook for addon… failed`. Agents \
                    of releases that use v1beta1 do not see their add-ons.",
            happens: "The Deployment cluster-manager-addon-webhook does not run; the definition has a CA from before a rotation; or the \
                      hub is hosted, where this conversion is not supported.",
            mend: "Bring the Deployment up, or restart the operator: it writes the CA into the definitions.",
            mended: "`kubectl get managedclusteraddons.v1beta1.addon.open-cluster-management.io -A` answers.",
        },
    },
    Check {
        id: Id(1115),
        slug: "hub-namespaces-stay",
        title: "no namespace of the hub is being removed",
        category: Category::Hub,
        severity: Severity::Error,
        inputs: &[Input::HubNamespaces],
        after: &[],
        rule: Rule::Hub(hub_namespaces_stay),
        page: Page {
            means: "A namespace of the operators or of the hub is being removed for a minute or more: nothing can be made in it, and an \
                    operator that is gone cannot end what waits for it.",
            happens: "The namespace was deleted before the ClusterManager and the Klusterlet, whose finalizers only their operator \
                      takes away.",
            mend: "Read the namespace's conditions. If a ClusterManager or a Klusterlet is left, install the operator again once the \
                   namespace is gone, delete the object, and then the operator. If nobody needs it any more, take its finalizers \
                   away.",
            mended: "The namespace is gone, or there again as Active.",
        },
    },
];

/// Whether a ClusterManager lists the driver grpc.
fn has_grpc(manager: &&ClusterManager) -> bool {
    let registration = manager.spec.registration_configuration.iter();
    registration.flat_map(|of| &of.registration_drivers).any(|driver| driver.auth_type == RegistrationAuthType::Grpc)
}

fn grpc_server_exposed(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let managers = hub.managers.read().into_iter().flatten().filter(has_grpc);
    let findings = managers.filter_map(|manager| Some(of_manager(hub, manager, not_exposed(hub, manager)?)));
    Outcome::of(findings.collect())
}

/// What is wrong with the gRPC server of a ClusterManager that lists the driver grpc, as a finding.
fn not_exposed(hub: &HubSide, manager: &ClusterManager) -> Option<Finding> {
    let deployments = hub.deployments.read().map(Vec::as_slice).unwrap_or_default();
    let name = manager.metadata.name.as_deref().unwrap_or_default();
    let about = |finding: Finding| {
        finding.on(Side::Hub, "ClusterManager", None, name).run(
            Side::Hub,
            "kubectl get clustermanager/{} -o yaml",
            &[name],
        )
    };
    let server = format!("{name}-grpc-server");
    let own = namespace_of(manager);
    if hub.unread_namespaces.iter().any(|unread| unread == own) {
        return None;
    }
    if !deployments.iter().any(|workload| workload.name == server && workload.namespace == own) {
        let finding = Finding::error("the hub lists the driver grpc, and has no gRPC server")
            .seen(format!("there is no Deployment {server} in namespace {own}"))
            .because("the operator has not made it: it is behind, or of a release without gRPC");
        return Some(about(finding));
    }
    let exposures = manager.spec.server_configuration.iter().flat_map(|server| &server.endpoints_exposure);
    let exposures: Vec<_> = exposures.filter(|one| one.protocol == EndpointProtocol::Grpc).collect();
    if exposures.is_empty() {
        let finding = Finding::warning("the hub's gRPC server has no address for agents")
            .seen("serverConfiguration.endpointsExposure of the ClusterManager has no entry with protocol grpc")
            .because("its certificate is valid for the name of its Service alone, which other clusters do not dial");
        return Some(about(finding));
    }
    // Upstream: `GRPCServerHostNames`.
    let endpoints = || exposures.iter().filter_map(|one| one.grpc.as_ref());
    let is_balanced = endpoints().any(|endpoint| endpoint.type_ == EndpointType::LoadBalancer);
    let is_named = |endpoint: &Endpoint| {
        let host = endpoint.hostname.as_ref().map(|hostname| hostname.host.trim());
        endpoint.type_ == EndpointType::Hostname && host.is_some_and(|host| !host.is_empty())
    };
    if !is_balanced && !endpoints().any(is_named) {
        let finding = Finding::warning("the hub's gRPC server has no address for agents")
            .seen("no entry of endpointsExposure with protocol grpc has a host name or a load balancer")
            .because("the certificate of the server is made for such names alone, and not for that of a route");
        return Some(about(finding));
    }
    // That of another hub tells nothing of this one.
    if hub.grpc_service.read().filter(|_| is_balanced)?.is_none() {
        let managers = hub.managers.read().map(Vec::as_slice).unwrap_or_default();
        let finding =
            Finding::error("the Service of the hub's gRPC server, which is to have a load balancer, is missing")
                .seen(format!("there is no Service {server} in namespace {own}, and no certificate is made without it"))
                .because("somebody has deleted it, or the operator has not made it yet");
        return is_own_manager(managers, manager).then(|| about(finding));
    }
    let ServiceFacts { namespace, name: service, .. } = waits_for_balancer(hub, manager)?;
    Some(
        Finding::error("the hub's gRPC server waits for its load balancer")
            .on(Side::Hub, "Service", Some(namespace), service)
            .seen("the Service has no address, and the certificate of the server is not made before it has one")
            .because("the cluster provides no load balancers, or has not provided this one yet")
            .run(Side::Hub, "kubectl describe service/{} -n {}", &[service, namespace]),
    )
}

/// The Service of a ClusterManager's gRPC server, where it waits for the address of its load balancer. Before that there is no
/// certificate, without which the pods of the server, whose Deployment has the same name, do not start.
pub(super) fn waits_for_balancer<'h>(hub: &'h HubSide, manager: &ClusterManager) -> Option<&'h ServiceFacts> {
    let exposures = manager.spec.server_configuration.iter().flat_map(|server| &server.endpoints_exposure);
    let mut endpoints =
        exposures.filter(|one| one.protocol == EndpointProtocol::Grpc).filter_map(|one| one.grpc.as_ref());
    let is_balanced = has_grpc(&manager) && endpoints.any(|endpoint| endpoint.type_ == EndpointType::LoadBalancer);
    let service = hub.grpc_service.read().filter(|_| is_balanced)?.as_ref()?;
    let name = manager.metadata.name.as_deref().unwrap_or_default();
    let is_its = service.name == format!("{name}-grpc-server") && service.namespace == namespace_of(manager);
    (is_its && service.addresses.is_empty()).then_some(service)
}

fn webhooks_decide(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let webhooks = hub.webhooks.read().map(Vec::as_slice).unwrap_or_default();
    let findings = webhooks.iter().filter(|webhook| webhook.exists).filter_map(|webhook| {
        let WebhookFacts { name, service, fails_open, elsewhere, .. } = webhook;
        let what = match elsewhere {
            Some(other) => format!("webhook configuration {name} has {other} asked, and not Service {service}"),
            None if *fails_open => format!("webhook configuration {name} lets requests through when its webhook fails"),
            None => return None,
        };
        let finding = Finding::warning(what).on(Side::Hub, "WebhookConfiguration", None, name);
        let finding =
            if *fails_open { finding.seen("failurePolicy is Ignore; the operator sets Fail") } else { finding };
        Some(finding.because("somebody has changed it to get over an outage, or another tool has written it").run(
            Side::Hub,
            RESTART,
            &[hub_operator(hub)],
        ))
    });
    Outcome::of(findings.collect())
}

fn add_ons_converted(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let conversions = hub.conversions.read().map(Vec::as_slice).unwrap_or_default();
    let bundle = hub.ca_bundle.read().and_then(Option::as_ref);
    let findings = conversions.iter().filter(|one| one.exists).filter_map(
        |WebhookFacts { name, service, authorities, has_endpoint, .. }| {
            let trusted = bundle.is_none_or(|bundle| authorities.iter().any(|authority| bundle.contains(authority)));
            let (what, cause) = match (has_endpoint, trusted) {
                (true, true) => return None,
                (false, _) => ("nothing is behind", "no pod of Deployment cluster-manager-addon-webhook is ready"),
                (true, false) => ("the API server cannot trust", "the definition has a CA from before a rotation"),
            };
            let (namespace, _) = service.split_once('/').unwrap_or((namespaces::HUB, service));
            Some(
                Finding::error(format!("{what} the webhook that converts {name}"))
                    .on(Side::Hub, "CustomResourceDefinition", None, name)
                    .seen(format!("it is asked at Service {service}"))
                    .because(cause)
                    .run(Side::Hub, "kubectl get pods,endpointslices -n {}", &[namespace])
                    .run(Side::Hub, RESTART, &[hub_operator(hub)]),
            )
        },
    );
    Outcome::of(findings.collect())
}

fn hub_namespaces_stay(facts: &Facts<'_>, hub: &HubSide) -> Outcome {
    let hosted = hub.managers.read().into_iter().flatten().filter(|manager| is_hosted(manager));
    let hosted: Vec<&str> = hosted.filter_map(|manager| manager.metadata.name.as_deref()).collect();
    let home = hub.managers.read().and_then(|managers| own_manager(managers)).map_or(namespaces::HUB, namespace_of);
    let own = |name: &str| [namespaces::OPERATOR, namespaces::HUB].contains(&name) || hosted.contains(&name);
    let stuck = hub.terminating.read().into_iter().flatten().filter(|namespace| own(&namespace.name));
    let is_old = |since| facts.now.duration_since(since) >= GRACE;
    let stuck = stuck.filter(|namespace| namespace.since.as_ref().is_some_and(|since| is_old(since.0)));
    let left = || {
        let managers = hub.managers.read().into_iter().flatten();
        text::list(managers.filter_map(|manager| manager.metadata.name.as_ref()))
    };
    let findings = stuck.map(|namespace| {
        let name = &namespace.name;
        let since = facts.ago(namespace.since.as_ref().map(|since| since.0));
        let finding = Finding::error(format!("namespace {name} of the hub is being removed since {since}"))
            .on(Side::Hub, "Namespace", None, name)
            .seen(format!("ClusterManagers that are left: {}", left()));
        let finding = namespace.messages.iter().fold(finding, Finding::seen);
        // Another hub's explains nothing of this one.
        let is_own = [namespaces::OPERATOR, namespaces::HUB, home].contains(&name.as_str());
        let finding = if is_own { finding } else { finding.apart() };
        finding
            .because("it was deleted before what its operator has to clean up, or an object in it has a finalizer")
            .run(Side::Hub, "kubectl get namespace/{} -o yaml", &[name])
            .run(Side::Hub, "kubectl get clustermanagers,klusterlets", &[])
    });
    Outcome::of(findings.collect())
}

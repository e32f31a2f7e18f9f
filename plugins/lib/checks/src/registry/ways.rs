//! 2125 and on: what stands between an agent and its hub besides the hub's own answers.

use ocm_api::ClusterManager;
use ocm_api::names::secrets;
use ocm_api::operator::EndpointType;
use ocm_core::install::mode::namespace_of;

use super::next::{AGENT, AGENT_LOGS};
use super::subject::agent;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Agent, Cluster, Facts, own_manager};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{GrpcFacts, HubSide, NetworkPolicyFacts, Side, Workload};
use crate::text;

/// The checks of the way to the hub.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(2125),
        slug: "grpc-server-known",
        title: "an agent of the driver grpc dials this hub's gRPC server, and trusts it",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ClusterManagers, Input::CaBundle, Input::Bootstrap, Input::Identity],
        after: &[Id(1110), Id(1112), Id(2107), Id(2109), Id(2110), Id(2114), Id(2118)],
        rule: Rule::Cluster(grpc_server_known),
        page: Page {
            means: "config.yaml in the agent's Secret names an address that the certificate of the hub's gRPC server is not made for, or \
                    authorities of which the hub has none. The agent says so once, as it starts (`x509: certificate is valid for …` \
                    or `signed by unknown authority`), and from then on only that `the cloudevents client is not ready`.",
            happens: "The host in endpointsExposure of the ClusterManager, or the load balancer, was changed after the join; the hub's \
                      signer was replaced; or the configuration is another hub's. A server that was not restarted since the signer \
                      was replaced refuses new agents, too.",
            mend: "Join again with the present address and the present authorities. Where the hub's signer is new, restart Deployment \
                   cluster-manager-grpc-server and the registration controller: they read it once. From the agent's network, a \
                   load balancer has to pass HTTP/2 through as it is, and to leave idle connections open for longer than 30 \
                   seconds.",
            mended: "The hub has a request of the agent, whose requester is grpc-server-sa.",
        },
    },
    Check {
        id: Id(2126),
        slug: "network-policies-let-out",
        title: "network policies let the agents out to the hub",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity, Input::NetworkPolicies],
        after: &[Id(2107), Id(2108), Id(2110)],
        rule: Rule::Cluster(network_policies_let_out),
        page: Page {
            means: "NetworkPolicies of the agents' namespace limit where pods may connect to, and none allows the port of the hub, or of \
                    the proxy on the way. The hub does not hear from the agent.",
            happens: "The feature gate NetworkPolicies is on, which allows 53, 5353, 443, 6443 and 9443 and not the ports of proxies, of \
                      gRPC servers or of kind; or the cluster's administrator denies everything by default.",
            mend: "Add a policy that lets the pods of the agents, by their labels app=klusterlet-registration-agent and \
                   app=klusterlet-manifestwork-agent, or app=klusterlet-agent in a Singleton mode, out to that port, or switch the \
                   gate off.",
            mended: "The hub hears from the agent.",
        },
    },
];

/// The gRPC server as the agent dials it now: by what it was let in with, if that is valid.
fn dialled<'a>(facts: &Facts<'_>, agent: &Agent<'a>) -> Option<&'a GrpcFacts> {
    let own = || agent.side.identity.read()?.as_ref()?.grpc.as_ref();
    let registers = || agent.side.bootstrap.read()?.as_ref()?.grpc.as_ref();
    if agent.registers(facts.now) { registers() } else { own().or_else(registers) }
}

/// The hosts that the certificate of a hub's gRPC server is made for; none: not all of them are known.
fn hosts(manager: &ClusterManager, hub: &HubSide) -> Option<Vec<String>> {
    let name = manager.metadata.name.as_deref().unwrap_or_default();
    let (server, namespace) = (format!("{name}-grpc-server"), namespace_of(manager));
    let service = hub.grpc_service.read().and_then(Option::as_ref);
    let service = service.filter(|service| service.name == server && service.namespace == namespace);
    let mut hosts = vec![format!("{server}.{namespace}.svc")];
    let exposures = manager.spec.server_configuration.iter().flat_map(|server| &server.endpoints_exposure);
    for endpoint in exposures.filter_map(|exposure| exposure.grpc.as_ref()) {
        let given = match endpoint.type_ {
            EndpointType::Hostname => endpoint.hostname.as_ref().map(|config| config.host.clone()),
            EndpointType::LoadBalancer => {
                hosts.extend(service?.addresses.clone());
                endpoint.load_balancer.as_ref().and_then(|config| config.host.clone())
            }
            _ => Some(endpoint.route.as_ref()?.host.clone()?),
        };
        hosts.extend(given);
    }
    Some(hosts.into_iter().filter(|host| !host.is_empty()).collect())
}

fn grpc_server_known(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if !agent.is_grpc() {
        return Outcome::Pass;
    }
    let Some(hub) = &facts.snapshot.hub else { return Outcome::skip("the hub was not looked at") };
    let Some(manager) = hub.managers.read().and_then(|managers| own_manager(managers)) else {
        return Outcome::skip("the hub has no ClusterManager");
    };
    let Some(dialled) = dialled(facts, &agent) else { return Outcome::skip("there is no config.yaml to compare") };
    if cluster.is_there(&agent, facts.now) {
        return Outcome::Pass;
    }
    let host = text::host(&dialled.server);
    let known = hosts(manager, hub);
    let is_known = |hosts: &Vec<String>| hosts.iter().any(|known| known.eq_ignore_ascii_case(&host));
    let bundle = hub.ca_bundle.read().and_then(Option::as_ref).filter(|bundle| !bundle.is_empty());
    let trusts = |bundle: &Vec<_>| dialled.authorities.iter().any(|authority| bundle.contains(authority));
    let server = format!("{}-grpc-server", manager.metadata.name.as_deref().unwrap_or_default());
    let is_server = |workload: &Workload| workload.name == server && workload.namespace == namespace_of(manager);
    let is_missing = |all: &Vec<Workload>| !all.iter().any(is_server);
    let finding = if hub.deployments.read().is_some_and(is_missing) {
        Finding::error("the hub has no gRPC server that the agent could dial")
            .seen(format!("there is no Deployment {server}"))
            .because("the driver grpc is off on the hub, or its operator has not made the server")
    } else if let Some(hosts) = known.as_ref().filter(|hosts| hosts.len() > 1 && !is_known(hosts)) {
        let text = format!("the agent dials {}, which the hub's gRPC server has no certificate for", dialled.server);
        Finding::error(text).seen(format!("it is made for {}", text::list(hosts))).because(
            "the host in the ClusterManager or the load balancer was changed after the join, or it is another hub's",
        )
    } else if !dialled.authorities.is_empty() && !bundle.is_none_or(trusts) {
        Finding::error("the agent trusts none of the authorities of the hub's gRPC server")
            .seen(format!(
                "{} certificates in caData of its config.yaml, none of them in ca-bundle-configmap",
                dialled.authorities.len()
            ))
            .because("the hub's signer was replaced after the join, or the configuration is another hub's")
    } else {
        return Outcome::Pass;
    };
    let finding = finding
        .on(Side::Managed, "Secret", Some(&agent.side.namespace), secrets::BOOTSTRAP_HUB_KUBECONFIG)
        .run(Side::Hub, "kubectl ocm tls-check", &[])
        .advise(
            "join again with the present address and caData, which is ca-bundle.crt of ConfigMap ca-bundle-configmap",
        );
    Outcome::Found(vec![finding])
}

/// The address that an agent's connections go to first: its proxy's, or the hub's.
fn first_hop(facts: &Facts<'_>, agent: &Agent<'_>) -> Option<String> {
    if agent.is_grpc() {
        // Without a scheme: the port stands behind it.
        return dialled(facts, agent).map(|grpc| format!("https://{}", grpc.server));
    }
    let kubeconfig = agent.kubeconfig()?;
    Some(kubeconfig.proxy.clone().unwrap_or_else(|| kubeconfig.server.clone()))
}

fn network_policies_let_out(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let policies = agent.side.network_policies.read().map(Vec::as_slice).unwrap_or_default();
    // Whoever is for some pods only may be for the agents' or not: it allows, and does not limit.
    let limiting: Vec<&NetworkPolicyFacts> = policies.iter().filter(|policy| policy.is_for_all).collect();
    if limiting.is_empty() || cluster.is_there(&agent, facts.now) {
        return Outcome::Pass;
    }
    let address = first_hop(facts, &agent).unwrap_or_default();
    let Some(port) = text::port(&address) else { return Outcome::skip("the port that the agent dials is not known") };
    let allows = |policy: &NetworkPolicyFacts| {
        policy.allows_any || policy.ports.iter().any(|(first, last)| (*first..=*last).contains(&port))
    };
    if policies.iter().any(allows) {
        return Outcome::Pass;
    }
    let namespace = &agent.side.namespace;
    let finding = Finding::error(format!("no network policy lets the agents out to {address}"));
    let finding = limiting.iter().fold(finding, |finding, policy| {
        let ports = policy.ports.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        finding.on(Side::Managed, "NetworkPolicy", Some(namespace), &policy.name).seen(format!(
            "{} is for every pod of {namespace} and allows the ports: {}",
            policy.name,
            text::list(ports)
        ))
    });
    let finding = finding
        .because(format!("port {port} is not among those that pods of this namespace may connect to"))
        .run(Side::Managed, "kubectl get networkpolicies -n {} -o yaml", &[namespace])
        .run(Side::Managed, AGENT_LOGS, &[namespace, AGENT]);
    Outcome::Found(vec![finding])
}

//! 21xx: the managed cluster's half of a join: operator, Klusterlet, agents, and what they register with.

use jiff::{SignedDuration, Timestamp};
use ocm_api::Condition;
use ocm_api::conditions::{self, klusterlet};
use ocm_api::names::{namespaces, operators, secrets};
use ocm_api::operator::{KlusterletMode, RegistrationAuthType};
use ocm_core::Reason;
use ocm_core::certificate::Certificate;
use ocm_core::csr::State;
use ocm_core::join::lease::LASTS;
use ocm_core::kubeconfig::Likeness;
use ocm_core::managed::{Unapplied, unapplied};
use ocm_core::phase::Phase;

use super::next::{AGENT, AGENT_LOGS, operator};
use super::subject::agent;
use super::workload::unwell;
use super::{Category, Check, Input, Page, Rule};
use crate::causes;
use crate::facts::{self, Agent, BACKDATED, Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{Answer, LeaseFacts, ManagedSide, Probe, Side, TokenFacts, Trouble};
use crate::text;

/// How long an operator may take to act on what has become of its agents.
const OPERATOR: SignedDuration = SignedDuration::from_secs(60);

/// The checks of the managed cluster's half of a join.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(2101),
        slug: "klusterlet-exists",
        title: "the managed cluster has a Klusterlet",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[],
        rule: Rule::Managed(klusterlet_exists),
        page: Page {
            means: "The cluster was never joined, or was detached: no Klusterlet says at which hub it is to register.",
            happens: "`join` was not run, or against another context; or somebody deleted the Klusterlet.",
            mend: "Join it, with the line that `kubectl ocm token create` prints on the hub.",
            mended: "`kubectl get klusterlets` lists one.",
        },
    },
    Check {
        id: Id(2102),
        slug: "klusterlet-operator-runs",
        title: "the klusterlet operator runs",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Operator],
        after: &[Id(2101), Id(3111)],
        rule: Rule::Managed(operator_runs),
        page: Page {
            means: "The Deployment open-cluster-management/klusterlet is missing, scaled to 0 or not ready. It makes the agents, \
                    restarts them when their Secrets change, and cleans up.",
            happens: "An image that cannot be pulled, no node that takes the pod, a quota, PodSecurity or SCC, a crash.",
            mend: "Do what the evidence says. `kubectl ocm join` with the same name makes a missing one again.",
            mended: "`kubectl rollout status deployment/klusterlet -n open-cluster-management` ends.",
        },
    },
    Check {
        id: Id(2103),
        slug: "klusterlet-operator-leads",
        title: "the klusterlet operator holds its leader lease",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::OperatorLeases, Input::Klusterlets],
        after: &[Id(2102), Id(3111)],
        rule: Rule::Managed(operator_leads),
        page: Page {
            means: "The operator's pod is ready and does nothing: a process that has ended holds its leader lease.",
            happens: "A join soon after a removal, or a pod or its container that was killed. The lease lasts for 137 seconds.",
            mend: "Wait up to three minutes, or delete the lease. `kubectl ocm join` does that by itself.",
            mended: "The Klusterlet has a status of its latest generation.",
        },
    },
    Check {
        id: Id(2104),
        slug: "one-klusterlet",
        title: "one Klusterlet registers the cluster",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[],
        rule: Rule::Managed(one_klusterlet),
        page: Page {
            means: "Two Klusterlets register under one name, or their agents share a namespace: each takes the other's Secrets \
                    and lease, and the hub sees two agents.",
            happens: "`join` of another tool was run twice, or the Klusterlet was copied.",
            mend: "Delete the one that is not wanted.",
            mended: "`kubectl get klusterlets` lists each cluster name and namespace once.",
        },
    },
    Check {
        id: Id(2105),
        slug: "klusterlet-applied",
        title: "the operator has applied the Klusterlet",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[Id(2102), Id(2103), Id(2104), Id(2119), Id(2121), Id(6103), Id(3111)],
        rule: Rule::Cluster(klusterlet_applied),
        page: Page {
            means: "The operator could not apply what the Klusterlet asks for, or has not observed its latest change.",
            happens: "The operator lacks a right, an object is refused, the mode is misspelt, or in Hosted mode the kubeconfig of \
                      the managed cluster does not work.",
            mend: "Read the message; `kubectl ocm join` with the same name brings operator and roles to one release.",
            mended: "The condition Applied of the Klusterlet is True for its latest generation.",
        },
    },
    Check {
        id: Id(2106),
        slug: "agents-run",
        title: "the agents run",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Agents],
        after: &[
            Id(2101),
            Id(2102),
            Id(2103),
            Id(2104),
            Id(2105),
            Id(2107),
            Id(2108),
            Id(2109),
            Id(2110),
            Id(2111),
            Id(2112),
            Id(2113),
            Id(2114),
            Id(2115),
            Id(2117),
            Id(2119),
            Id(2121),
            Id(2122),
            Id(2126),
            Id(2204),
            Id(6103),
            Id(6104),
            Id(3111),
        ],
        rule: Rule::Cluster(agents_run),
        page: Page {
            means: "A Deployment of the agents is missing, scaled to 0 or not ready: nobody registers, renews the lease or applies \
                    works.",
            happens: "An image that cannot be pulled, no node that takes the pod (taints, node selector), a quota, PodSecurity or \
                      SCC, a Secret that the pod mounts and that is missing, a crash.",
            mend: "Do what the evidence says.",
            mended: "`kubectl get deployments -n open-cluster-management-agent` shows them ready.",
        },
    },
    Check {
        id: Id(2107),
        slug: "bootstrap-secret",
        title: "the agent has a kubeconfig to register with",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap],
        after: &[Id(2104), Id(6104), Id(6103)],
        rule: Rule::Cluster(bootstrap_secret),
        page: Page {
            means: "The Secret bootstrap-hub-kubeconfig is missing or holds no kubeconfig. Agents that have not registered cannot; \
                    those that have cannot start again, because their pods mount it.",
            happens: "Somebody deleted it, or made it in another namespace or under another key.",
            mend: "Run `kubectl ocm join` again with the line of `kubectl ocm token create`.",
            mended: "The Secret is there and has a key kubeconfig; the agents' pods start.",
        },
    },
    Check {
        id: Id(2108),
        slug: "bootstrap-address",
        title: "the hub's address is one that pods can dial",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2107)],
        rule: Rule::Cluster(bootstrap_address),
        page: Page {
            means: "The kubeconfig that the agent registers with names a loopback address: to a pod that is the pod itself.",
            happens: "The hub's kubeconfig comes from kind, minikube or k3s, and was taken as it is.",
            mend: "Join with an address that other machines reach: `--hub-apiserver`, or `--force-internal-endpoint-lookup` in one \
                   network.",
            mended: "The server of the kubeconfig is not localhost, 127.0.0.1 or ::1.",
        },
    },
    Check {
        id: Id(2109),
        slug: "bootstrap-token-valid",
        title: "the token that the agent registers with is valid",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2107), Id(3104)],
        rule: Rule::Cluster(bootstrap_token),
        page: Page {
            means: "The token says itself that it has expired; the agent has no certificate that it could use instead.",
            happens: "Tokens of a service account end after an hour by default; the agent came later, or was away until its \
                      certificate had ended.",
            mend: "Make a new token on the hub and join again with it.",
            mended: "The agent's request appears on the hub: `kubectl ocm get csr`.",
        },
    },
    Check {
        id: Id(2110),
        slug: "bootstrap-hub",
        title: "the agent registers at this hub",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap],
        after: &[Id(1101), Id(2107), Id(2108)],
        rule: Rule::Cluster(bootstrap_hub),
        page: Page {
            means: "The kubeconfig that the agent registers with is that of another hub: it has another UID, or, where it has none, \
                    neither the address nor the CA of the hub that was looked at. The latter may also be another way to the same hub, \
                    as by a load balancer with a CA of its own: it is a warning where the hub knows the cluster, and where the \
                    agent is refused at that address.",
            happens: "The line of another hub was pasted, or another hub's context was named.",
            mend: "Look at the other hub, or detach the cluster and join it to this one. Where it is another way to the same hub, \
                   nothing is wrong with it.",
            mended: "The address of the kubeconfig, or its CA, is the hub's.",
        },
    },
    Check {
        id: Id(2111),
        slug: "hub-reachable",
        title: "the hub can be reached at the agent's address",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2107), Id(2108), Id(2125)],
        rule: Rule::Cluster(hub_reachable),
        page: Page {
            means: "From where the command runs, no connection to the hub comes about at the address, and through the proxy, that \
                    the agent uses.",
            happens: "DNS, a firewall, a proxy that refuses, an address of an internal network, an API server that is down.",
            mend: "Open the way, or join again with another address or proxy. Where only this machine is cut off, the agent's log \
                   says what it sees itself.",
            mended: "The hub answers at that address.",
        },
    },
    Check {
        id: Id(2112),
        slug: "hub-trusted",
        title: "the agent's CA vouches for the hub",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2107), Id(2110), Id(2125)],
        rule: Rule::Cluster(hub_trusted),
        page: Page {
            means: "What the hub presents at the agent's address is not signed by the CA in the agent's kubeconfig, not valid for \
                    that name, or not valid now.",
            happens: "A load balancer or a proxy with a certificate of its own, a CA that was replaced, an address that the \
                      certificate does not name.",
            mend: "Join again with the CA of the address: the line of `kubectl ocm token create` carries the right one. A proxy that \
                   opens TLS cannot be trusted into working: agents show certificates of their own, so it has to let the hub's \
                   address through as it is.",
            mended: "A TLS connection to the address is verified by that CA.",
        },
    },
    Check {
        id: Id(2113),
        slug: "hub-knows-token",
        title: "the hub accepts the token that the agent registers with",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2107), Id(2109), Id(2110), Id(3104)],
        rule: Rule::Cluster(hub_knows_token),
        page: Page {
            means: "The hub answers Unauthorized to the token: it was revoked, has ended, or is that of another hub.",
            happens: "`kubectl ocm token revoke`, a deleted service account or Secret, a hub that was replaced by another one \
                      under the same address.",
            mend: "Make a new token on the hub and join again with it.",
            mended: "The agent's request appears on the hub: `kubectl ocm get csr`.",
        },
    },
    Check {
        id: Id(2114),
        slug: "grpc-configuration",
        title: "an agent of the driver grpc has its configuration",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap],
        after: &[Id(2107), Id(2118)],
        rule: Rule::Cluster(grpc_configuration),
        page: Page {
            means: "The Klusterlet says that the agent registers by gRPC, but its bootstrap Secret has no config.yaml: the agents \
                    exit once and wait for their own stale leases, while every condition of the Klusterlet stays well.",
            happens: "authType was edited to grpc without a new join.",
            mend: "Join again with the gRPC server's address, or set authType back to csr.",
            mended: "The Secret has a key config.yaml, or the driver is csr.",
        },
    },
    Check {
        id: Id(2115),
        slug: "hub-connection",
        title: "the operator reaches the hub with the agent's credentials",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[
            Id(2107),
            Id(2108),
            Id(2109),
            Id(2110),
            Id(2111),
            Id(2112),
            Id(2113),
            Id(2117),
            Id(2126),
            Id(2204),
            Id(6101),
            Id(1116),
        ],
        rule: Rule::Cluster(hub_connection),
        page: Page {
            means: "The condition HubConnectionDegraded says what the operator, which looks from the agent's network, met on its \
                    way to the hub. It lags by up to 40 seconds and is believed only where the hub does not hear from the agent.",
            happens: "DNS, firewall, proxy, a CA or a token that is wrong. A bare `Forbidden`, `Filtered` or `Proxy \
                      Authentication Required` after the URL is the word of a proxy, not of RBAC.",
            mend: "Do what the evidence says; join again with the right address, proxy, CA or token.",
            mended: "The condition is False, or the hub calls the cluster available.",
        },
    },
    Check {
        id: Id(2116),
        slug: "agents-lead",
        title: "the agents hold their leader leases",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::AgentLeases],
        // An agent ends by itself when what it registers with has changed, and waits until it may look at the new one.
        after: &[
            Id(2106),
            Id(2107),
            Id(2108),
            Id(2109),
            Id(2110),
            Id(2111),
            Id(2112),
            Id(2113),
            Id(2114),
            Id(2117),
            Id(2118),
            Id(2125),
            Id(2204),
            Id(3111),
        ],
        rule: Rule::Cluster(agents_lead),
        page: Page {
            means: "An agent's pod is ready and does nothing: a process that has ended holds its leader lease.",
            happens: "A pod was deleted while it was registering, or its container ended, as it does on an error of its \
                      configuration and when what it registers with has changed. The lease lasts for 137 seconds.",
            mend: "Wait up to three minutes, or delete the lease.",
            mended: "The lease is renewed twice a minute.",
        },
    },
    Check {
        id: Id(2117),
        slug: "token-may-register",
        title: "the token that the agent registers with may register clusters",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2107), Id(2109), Id(2110)],
        rule: Rule::Cluster(token_may_register),
        page: Page {
            means: "The hub knows the token, and its owner may not create certificate requests or managed clusters.",
            happens: "The ClusterRoleBinding of the bootstrap role was deleted, or the token is one for something else.",
            mend: "`kubectl ocm install hub` makes the bindings again. A token of `kubectl ocm token create` has the rights.",
            mended: "The agent's request appears on the hub: `kubectl ocm get csr`.",
        },
    },
    Check {
        id: Id(2118),
        slug: "driver-enabled",
        title: "the hub has the driver that the agent registers with",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets, Input::ClusterManagers],
        after: &[Id(1101), Id(2104)],
        rule: Rule::Cluster(driver_enabled),
        page: Page {
            means: "The Klusterlet says by which driver its agent registers (csr, grpc or awsirsa), and the ClusterManager does not \
                    list it: requests stay without a certificate, and certificates are not renewed.",
            happens: "The hub was switched to another driver alone, or the Klusterlet was edited.",
            mend: "List both drivers on the hub: `kubectl ocm install hub --registration-drivers csr,grpc`.",
            mended: "registrationDrivers of the ClusterManager lists the driver.",
        },
    },
    Check {
        id: Id(2119),
        slug: "mode-known",
        title: "the mode of the Klusterlet is known",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Klusterlets],
        after: &[],
        rule: Rule::Cluster(mode_known),
        page: Page {
            means: "The operator does not know the mode of the Klusterlet, and makes no agents. The API server takes any word.",
            happens: "The mode was misspelt.",
            mend: "Set spec.deployOption.mode to Default, Singleton, Hosted or SingletonHosted.",
            mended: "The agents' Deployments are there.",
        },
    },
];

impl Agent<'_> {
    /// Whether its operator may not have started the agent of works yet: it does once it has seen that the agent may use the
    /// hub, which it looks at every 40 seconds. Upstream: `klusterletApplied`, the condition `HubConnectionDegraded`.
    fn may_wait_for_operator(&self, now: Timestamp) -> bool {
        let conditions = self.klusterlet.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let behind =
            [klusterlet::reasons::HUB_KUBECONFIG_SECRET_MISSING, klusterlet::reasons::HUB_KUBECONFIG_UNAUTHORIZED];
        let not_seen = conditions::find(conditions, klusterlet::HUB_CONNECTION_DEGRADED)
            .is_none_or(|condition| condition.reason.split(',').any(|part| behind.contains(&part)));
        let issued = |certificate: Certificate| now.duration_since(certificate.not_before) < BACKDATED + OPERATOR;
        not_seen || self.certificate().is_some_and(issued)
    }

    fn about_bootstrap(&self, finding: Finding) -> Finding {
        finding.on(Side::Managed, "Secret", Some(&self.side.namespace), secrets::BOOTSTRAP_HUB_KUBECONFIG)
    }
}

/// How a token is replaced: two lines.
fn join_again(finding: Finding, name: &str) -> Finding {
    finding
        .run(Side::Hub, "kubectl ocm token create", &[])
        .advise(format!("then paste its line against the managed cluster, with {name} for the name"))
}

/// Whether a managed cluster is known to have no Klusterlet, so that nothing is asked of an operator.
fn has_none(managed: &ManagedSide) -> bool {
    managed.klusterlets.read().is_some_and(Vec::is_empty)
}

fn klusterlet_exists(facts: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    if !has_none(managed) {
        return Outcome::Pass;
    }
    // The Klusterlet of a hosted agent is on another cluster, and nothing on the hub tells that it is hosted.
    let mut asked =
        facts.clusters.values().filter(|cluster| facts.snapshot.clusters.iter().any(|name| name == cluster.name));
    if asked.clone().any(|cluster| cluster.is_well(facts.now)) {
        return Outcome::skip("the hub hears from an agent that runs on another cluster, as hosted ones do");
    }
    let text = "the managed cluster has no Klusterlet";
    let finding = match asked.any(|cluster| cluster.phase() >= Some(Phase::Joined)) {
        true => {
            Finding::warning(text).advise("if its agent is hosted, name the cluster on which that runs by --context")
        }
        false => Finding::error(text),
    };
    let finding = finding
        .seen(format!("{} has no Klusterlet", managed.server))
        .because("it was never joined, was detached, this is another cluster, or its agent runs on another one")
        .run(Side::Hub, "kubectl ocm token create", &[])
        .advise("then paste its line against the managed cluster");
    Outcome::Found(vec![finding])
}

fn operator_runs(_: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    if has_none(managed) {
        return Outcome::skip("there is no Klusterlet that the operator would act on");
    }
    managed.operator.read().and_then(|operator| unwell(Side::Managed, operator)).into()
}

/// A finding about a lease whose holder is gone.
fn held_by_nobody(facts: &Facts<'_>, lease: &LeaseFacts, who: &str) -> Option<Finding> {
    let (namespace, name) = (&lease.namespace, &lease.name);
    let pod = facts.gone_holder(lease)?;
    Some(
        Finding::error(format!("{who} waits for leader lease {name}, whose holder is gone"))
            .on(Side::Managed, "Lease", Some(namespace), name)
            .seen(format!("a process of pod {pod} holds the lease and has ended"))
            .because(format!("it ended without releasing the lease, which lasts for {} seconds", LASTS.as_secs()))
            .run(Side::Managed, "kubectl delete lease/{} -n {}", &[name, namespace]),
    )
}

fn operator_leads(facts: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    let behind = managed.klusterlets.read().into_iter().flatten().any(|klusterlet| {
        let seen = klusterlet.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default();
        seen < klusterlet.metadata.generation.unwrap_or_default() || klusterlet.metadata.deletion_timestamp.is_some()
    });
    if !behind {
        return Outcome::Pass;
    }
    let stale = managed.leases.read().into_iter().flatten();
    Outcome::of(stale.filter_map(|lease| held_by_nobody(facts, lease, "the klusterlet operator")).collect())
}

/// How many Klusterlets of one cluster are compared.
const KLUSTERLETS: usize = 16;

fn one_klusterlet(_: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    let klusterlets = managed.klusterlets.read().map(Vec::as_slice).unwrap_or_default();
    let hosted = |klusterlet: &ocm_api::Klusterlet| klusterlet.mode().is_hosted();
    let name = |klusterlet: &ocm_api::Klusterlet| klusterlet.metadata.name.clone().unwrap_or_default();
    let own: Vec<_> = klusterlets.iter().filter(|klusterlet| !hosted(klusterlet)).collect();
    let mut findings = Vec::new();
    // More than a few are in no cluster, and pairs of many are too many.
    let own = &own[..own.len().min(KLUSTERLETS)];
    for (index, one) in own.iter().enumerate() {
        for other in &own[index + 1..] {
            let namespace = |of: &ocm_api::Klusterlet| {
                let namespace = of.spec.namespace.clone().filter(|namespace| !namespace.is_empty());
                namespace.unwrap_or_else(|| namespaces::AGENT.to_owned())
            };
            let (names, spaces) = ([name(one), name(other)], [namespace(one), namespace(other)]);
            let [cluster, second] = [one, other].map(|of| of.spec.cluster_name.clone().unwrap_or_default());
            let side = |name: &String| managed.agents.iter().find(|side| side.klusterlet == *name);
            let two_hubs = || match (side(&names[0]), side(&names[1])) {
                (Some(one), Some(other)) => facts::are_of_two_hubs(one, other),
                _ => false,
            };
            let shared = match () {
                () if spaces[0] == spaces[1] => format!("their agents share namespace {}", spaces[0]),
                // One name on two hubs is nobody's harm.
                () if cluster == second && !cluster.is_empty() && !two_hubs() => format!("both register {cluster}"),
                () => continue,
            };
            let text = format!("two Klusterlets, {} and {}, are in each other's way: {shared}", names[0], names[1]);
            // The one of the default name is what join makes.
            let extra = if names[1] == operators::KLUSTERLET_OBJECT { &names[0] } else { &names[1] };
            findings.push(
                Finding::error(text)
                    .on(Side::Managed, "Klusterlet", None, &names[0])
                    .on(Side::Managed, "Klusterlet", None, &names[1])
                    .because("the cluster was joined twice, or a Klusterlet was copied")
                    .run(Side::Managed, "kubectl get klusterlets", &[])
                    .advise(format!("delete the one that is not wanted, probably {extra:?}")),
            );
        }
    }
    Outcome::of(findings)
}

fn klusterlet_applied(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let klusterlet = agent.klusterlet;
    let name = klusterlet.metadata.name.as_deref().unwrap_or_default();
    let about = |text: String| {
        let finding = Finding::error(text).on(Side::Managed, "Klusterlet", None, name);
        finding.run(Side::Managed, "kubectl logs deployment/klusterlet -n {} --tail=50", &[operator(facts)])
    };
    match unapplied(klusterlet) {
        None => Outcome::Pass,
        Some(Unapplied::Reported(condition)) => {
            let Condition { type_: kind, reason, message, .. } = condition;
            let text = format!("the klusterlet operator reports {reason}");
            let found = about(text).seen(format!("{kind}=False: {message}"));
            Outcome::Found(vec![match causes::operator(message) {
                Some(cause) => found.because(cause),
                None if kind == klusterlet::READY_TO_APPLY => found.because(causes::connection(message).1),
                None => found,
            }])
        }
        Some(Unapplied::NotObserved) => {
            let text = format!("the operator has not observed the latest change of Klusterlet {name}");
            let seen = klusterlet.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default();
            let latest = klusterlet.metadata.generation.unwrap_or_default();
            Outcome::Found(vec![about(text).seen(format!("generation {latest}, observed {seen}"))])
        }
    }
}

fn agents_run(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let deployments = agent.side.deployments.read().map(Vec::as_slice).unwrap_or_default();
    let namespace = &agent.side.namespace;
    if deployments.is_empty() {
        let finding = Finding::error(format!("no agent has been created in namespace {namespace}"))
            .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
            .because("the operator has not acted on the Klusterlet")
            .run(Side::Managed, "kubectl describe klusterlet/{}", &[&agent.side.klusterlet]);
        return Outcome::Found(vec![finding]);
    }
    // The operator starts the agent of works when the cluster has registered; until then it cannot be ready either.
    let waits = agent.registers(facts.now) || agent.may_wait_for_operator(facts.now);
    let early = |name: &str| waits && name.ends_with("-work-agent");
    let found = deployments.iter().filter(|workload| !early(&workload.name));
    Outcome::of(found.filter_map(|workload| unwell(Side::Managed, workload)).collect())
}

fn bootstrap_secret(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let (namespace, name) = (&agent.side.namespace, secrets::BOOTSTRAP_HUB_KUBECONFIG);
    if agent.has_several_hubs() && agent.listed().iter().all(|secret| secret.name != name) {
        return Outcome::skip("the agent registers with one of several hubs, by Secrets of other names");
    }
    let what = match agent.bootstrap() {
        None => format!("Secret {namespace}/{name}, which the agent registers with, is missing"),
        Some(secret) if !secret.keys.contains_key(secrets::KUBECONFIG_KEY) => {
            format!("Secret {namespace}/{name} has no key kubeconfig")
        }
        Some(secret) if secret.kubeconfig.is_none() => {
            format!("the kubeconfig in Secret {namespace}/{name} cannot be read, or names no hub")
        }
        Some(_) => return Outcome::Pass,
    };
    let stuck = agent.is_stuck();
    // Who has asked already needs it only to start again.
    let has_asked = cluster.requests.iter().any(|request| matches!(request.state, State::Pending | State::Issued));
    let works = (!agent.registers(facts.now) || has_asked) && !stuck;
    let finding = if works { Finding::warning(what) } else { Finding::error(what) };
    let finding = agent.about_bootstrap(finding);
    let finding = match agent.bootstrap() {
        Some(secret) => finding.seen(format!("its keys: {}", text::list(secret.keys.keys()))),
        None if works => finding.seen("the agent goes on without it; its pods cannot be started again"),
        None => finding,
    };
    let finding = finding.because("somebody has deleted or replaced it");
    Outcome::Found(vec![join_again(finding, cluster.name)])
}

fn bootstrap_address(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(kubeconfig) = agent.kubeconfig() else { return Outcome::skip("there is no kubeconfig to register with") };
    let is_loopback = text::is_loopback(&kubeconfig.server);
    if !is_loopback || !agent.registers(facts.now) || cluster.is_well(facts.now) {
        return Outcome::Pass;
    }
    let finding = Finding::error(format!("the agent dials {}, which to a pod is the pod itself", kubeconfig.server));
    let finding = agent.about_bootstrap(finding).because("the hub's own kubeconfig was taken as it is").run(
        Side::Hub,
        "kubectl ocm token create --hub-apiserver https://ADDRESS:6443",
        &[],
    );
    Outcome::Found(vec![finding.advise("name an address at which other machines reach the hub")])
}

fn bootstrap_token(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if !agent.registers(facts.now) || cluster.is_well(facts.now) {
        return Outcome::Pass;
    }
    let Some(TokenFacts::ServiceAccount { expires: Some(expires), subject, .. }) = agent.token() else {
        return Outcome::skip("the token does not say until when it is valid");
    };
    if expires.0 > facts.now {
        return Outcome::Pass;
    }
    let ago = facts.ago(Some(expires.0));
    let finding = Finding::error(format!("the token that the agent registers with expired {ago} ago"))
        .seen(format!("valid until {}", expires.0))
        .seen(format!("made for {}", subject.as_deref().unwrap_or("an unknown subject")))
        .because("the agent came, or lost its certificate, after the token had ended");
    Outcome::Found(vec![join_again(agent.about_bootstrap(finding), cluster.name)])
}

/// What the hub at which an agent registers has answered itself, whichever it is: unreachable, not verified, a token that it does not
/// take, rights that are missing.
const TOLD_BY_ITS_HUB: [Id; 4] = [Id(2111), Id(2112), Id(2113), Id(2117)];

fn bootstrap_hub(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(hub) = &facts.snapshot.hub else { return Outcome::skip("the hub was not looked at") };
    let Some(kubeconfig) = agent.kubeconfig() else { return Outcome::skip("there is no kubeconfig to register with") };
    let likeness = agent.bootstrap().and_then(|secret| facts::likeness(hub, secret));
    // An agent without a name may have sent nothing of what this hub has: then its kubeconfig tells more.
    let has_name =
        agent.side.identity.read().is_some_and(|secret| secret.as_ref().is_some_and(|secret| secret.agent.is_some()));
    let is_heard = cluster.is_fresh(facts.now) == Some(true) || (has_name && cluster.is_heard(facts.now));
    if is_heard || likeness != Some(Likeness::OtherHub) {
        return Outcome::Pass;
    }
    if agent.has_several_hubs() {
        return Outcome::skip(
            "the agent turns to several hubs, and the one that was looked at may be another one of them",
        );
    }
    let server = &kubeconfig.server;
    let noted = agent.bootstrap().and_then(facts::noted_hub);
    let finding = match (noted, &hub.uid) {
        (Some(own), Some(wanted)) => Finding::error(format!("the agent registers at another hub, {server}"))
            .seen(format!("its UID is {own}; that of the hub that was looked at is {wanted}"))
            .advise("detach the cluster from the other hub before it joins this one"),
        _ => {
            // A load balancer has an address and an authority of its own. Where this hub knows the cluster, or its agent cannot
            // have asked yet, or was refused where it asks, other findings tell more.
            let is_known = cluster.object.is_some() || !cluster.requests.is_empty();
            let told_by_its_hub = [Reason::Unreachable, Reason::Tls, Reason::Unauthorized, Reason::Forbidden];
            let answer = answered(facts, cluster, &agent, &told_by_its_hub);
            let is_refused = matches!(answer, CredentialCheck::Refused(_));
            let text = format!("the agent may register at another hub, {server}");
            let finding = match is_known || agent.is_stuck() || is_refused {
                true => Finding::warning(text),
                false => Finding::error(text),
            };
            let finding = Finding { unrelated: TOLD_BY_ITS_HUB.to_vec(), ..finding };
            finding.seen("neither address nor CA is the same, as with another hub or another way to the same one").advise(format!(
                "if {server} leads to another hub, detach the cluster from that before it joins this one; if it leads to this one, \
                 nothing is wrong with it"
            ))
        }
    };
    let finding = finding
        .seen(format!("the hub that was looked at is {}", hub.server))
        .because("the line of another hub was pasted, or another hub's context was named")
        .run(Side::Hub, "kubectl ocm token create", &[]);
    Outcome::Found(vec![agent.about_bootstrap(finding)])
}

/// What the hub answered to the credential that the agent registers with.
enum CredentialCheck<'a> {
    /// It refused for such a reason, in these words.
    Refused(&'a str),
    /// It did not, or the agent does not need it.
    Fine,
    /// Nobody asked.
    NotAsked,
    /// It could not be asked from where somebody wanted to.
    Unknown(&'a Trouble),
}

fn answered<'a>(
    facts: &Facts<'_>,
    cluster: &Cluster<'a>,
    agent: &Agent<'a>,
    reasons: &[Reason],
) -> CredentialCheck<'a> {
    // What the hub has from the agent tells more than what this machine sees of the way.
    let is_heard = match reasons {
        // What it asked for when it joined says nothing of the way of today.
        [Reason::Unreachable | Reason::Tls] if agent.registers(facts.now) => cluster.is_heard(facts.now),
        _ => cluster.is_well(facts.now),
    };
    if is_heard {
        return CredentialCheck::Fine;
    }
    let here = agent.bootstrap_probe.filter(|_| agent.registers(facts.now));
    let of = |probe: &'a Probe| match &probe.answer {
        Answer::Refused(trouble) if reasons.contains(&trouble.reason) => CredentialCheck::Refused(&trouble.message),
        Answer::NotAsked(trouble) => CredentialCheck::Unknown(trouble),
        Answer::Refused(_) | Answer::Known => CredentialCheck::Fine,
    };
    // What a pod beside the agent sees counts more than what this machine does.
    match (agent.in_cluster.map(of), here.map(of)) {
        (Some(CredentialCheck::Unknown(_)), Some(refused @ CredentialCheck::Refused(_))) => refused,
        (Some(within), _) => within,
        (None, Some(here)) => here,
        (None, None) if agent.registers(facts.now) => CredentialCheck::NotAsked,
        (None, None) => CredentialCheck::Fine,
    }
}

/// The look that counts: from beside the agent, or from here.
fn counted<'a>(agent: &Agent<'a>) -> Option<&'a Probe> {
    let within = agent.in_cluster.filter(|probe| !matches!(probe.answer, Answer::NotAsked(_)));
    within.or(agent.bootstrap_probe)
}

const NOT_ASKED: &str = "the hub was not asked with the agent's credential";

fn probed(agent: &Agent<'_>, finding: Finding, said: &str) -> Finding {
    let finding = agent.about_bootstrap(finding).seen(said);
    let Some(probe) = counted(agent) else { return finding };
    let finding = match agent.in_cluster.filter(|within| std::ptr::eq(*within, probe)) {
        Some(_) => {
            let finding = finding.seen(format!("as a pod in {} of the managed cluster sees it", agent.side.namespace));
            match difference(agent) {
                Some(difference) => finding.seen(difference),
                None => finding,
            }
        }
        None => finding,
    };
    match &probe.proxy {
        Some(proxy) if probe.is_own_proxy => finding.seen(format!(
            "through the proxy {proxy}, which this machine's environment names: the agent does not go through it"
        )),
        Some(proxy) => finding.seen(format!("through the proxy {proxy}")),
        None => finding,
    }
}

/// What this machine alone has seen does not explain agents whose pods fail by themselves, before they dial anybody.
fn seen_from_here(agent: &Agent<'_>, finding: Finding) -> Finding {
    let is_within = counted(agent).zip(agent.in_cluster).is_some_and(|(one, within)| std::ptr::eq(one, within));
    let mut unwell = agent.side.deployments.read().into_iter().flatten().filter_map(|workload| workload.health.lack());
    if is_within || !unwell.any(|lack| causes::pods(lack).is_some()) {
        return finding;
    }
    Finding { severity: Severity::Warning, unrelated: vec![Id(2106)], ..finding }
        .seen("no agent has tried it: their pods do not run")
}

fn server<'a>(agent: &Agent<'a>) -> &'a str {
    counted(agent).map_or("", |probe| probe.server.as_str())
}

/// What this machine sees otherwise than a pod beside the agent does.
pub(crate) fn difference(agent: &Agent<'_>) -> Option<String> {
    let (within, here) = agent.in_cluster.zip(agent.bootstrap_probe)?;
    match (&within.answer, &here.answer) {
        (Answer::Refused(_), Answer::Known) => {
            Some("this machine reaches the hub, and the hub knows the token".to_owned())
        }
        (Answer::Known, Answer::Refused(trouble)) => {
            Some(format!("a pod beside the agent reaches the hub, and this machine does not: {}", trouble.message))
        }
        (Answer::Refused(within), Answer::Refused(here)) if within.reason != here.reason => {
            Some(format!("this machine sees something else: {}", here.message))
        }
        _ => None,
    }
}

fn hub_reachable(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    match answered(facts, cluster, &agent, &[Reason::Unreachable]) {
        CredentialCheck::NotAsked => Outcome::skip(NOT_ASKED),
        CredentialCheck::Fine => Outcome::Pass,
        CredentialCheck::Unknown(trouble) => Outcome::Unknown(trouble.clone()),
        CredentialCheck::Refused(said) => {
            let finding =
                Finding::error(format!("the hub cannot be reached at the agent's address {}", server(&agent)));
            let finding = probed(&agent, finding, said)
                .because(
                    match counted(&agent).zip(agent.in_cluster).is_some_and(|(one, within)| std::ptr::eq(one, within)) {
                        true => "DNS of the cluster, network policy, firewall, proxy, or an API server that is down",
                        false => "seen from here; DNS, firewall, proxy, or an API server that is down",
                    },
                )
                .run(Side::Managed, AGENT_LOGS, &[&agent.side.namespace, AGENT]);
            // Where agents go through a proxy, their kubeconfig has to say so.
            let has_proxy = counted(&agent).is_some_and(|probe| probe.proxy.is_some() && !probe.is_own_proxy);
            let finding = match has_proxy || agent.is_grpc() {
                true => finding,
                false => finding
                    .advise("if the managed cluster needs a proxy to the hub, its agent's kubeconfig has to name it"),
            };
            Outcome::Found(vec![seen_from_here(&agent, finding)])
        }
    }
}

fn hub_trusted(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    match answered(facts, cluster, &agent, &[Reason::Tls]) {
        CredentialCheck::NotAsked => Outcome::skip(NOT_ASKED),
        CredentialCheck::Fine => Outcome::Pass,
        CredentialCheck::Unknown(trouble) => Outcome::Unknown(trouble.clone()),
        CredentialCheck::Refused(said) => {
            let finding =
                Finding::error(format!("the agent's CA does not vouch for what answers at {}", server(&agent)));
            let finding = probed(&agent, finding, said).because(
                "the CA in the agent's kubeconfig is not that of the address: another hub's, or replaced since",
            );
            Outcome::Found(vec![seen_from_here(&agent, join_again(finding, cluster.name))])
        }
    }
}

fn hub_knows_token(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    match answered(facts, cluster, &agent, &[Reason::Unauthorized]) {
        CredentialCheck::NotAsked => Outcome::skip(NOT_ASKED),
        CredentialCheck::Fine => Outcome::Pass,
        CredentialCheck::Unknown(trouble) => Outcome::Unknown(trouble.clone()),
        CredentialCheck::Refused(said) => {
            let finding = Finding::error("the hub does not accept the token that the agent registers with");
            let finding = probed(&agent, finding, said)
                .because("it was revoked, its owner was deleted, or it is that of another hub");
            Outcome::Found(vec![join_again(finding, cluster.name)])
        }
    }
}

fn grpc_configuration(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if !agent.is_grpc() {
        return Outcome::skip("the agent does not register by gRPC");
    }
    let Some(secret) = agent.bootstrap() else { return Outcome::skip("there is no Secret to register with") };
    if secret.keys.contains_key(secrets::GRPC_CONFIG_KEY) {
        return Outcome::Pass;
    }
    let finding = Finding::error("the agent is to register by gRPC, and its Secret has no config.yaml")
        .seen(format!("its keys: {}", text::list(secret.keys.keys())))
        .because("authType of the Klusterlet was changed without a new join")
        .advise("join again with the address of the gRPC server, or set authType back to csr")
        .run(Side::Managed, "kubectl edit klusterlet/{}", &[&agent.side.klusterlet]);
    Outcome::Found(vec![agent.about_bootstrap(finding)])
}

fn hub_connection(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if agent.is_grpc() {
        return Outcome::skip("with gRPC the condition is True on healthy clusters too");
    }
    if cluster.is_well(facts.now) {
        return Outcome::Pass;
    }
    let status = agent.klusterlet.status.clone().unwrap_or_default();
    let condition = conditions::find(&status.conditions, klusterlet::HUB_CONNECTION_DEGRADED);
    let Some(condition) = condition.filter(|condition| condition.status == conditions::TRUE) else {
        return Outcome::Pass;
    };
    let reasons = [
        klusterlet::reasons::BOOTSTRAP_SECRET_ERROR,
        klusterlet::reasons::BOOTSTRAP_SECRET_UNAUTHORIZED,
        klusterlet::reasons::HUB_KUBECONFIG_ERROR,
        klusterlet::reasons::HUB_KUBECONFIG_UNAUTHORIZED,
    ];
    if !condition.reason.split(',').any(|part| reasons.contains(&part)) {
        return Outcome::Pass;
    }
    let is_gone =
        cluster.object.is_none() && facts.snapshot.hub.as_ref().is_some_and(|hub| hub.clusters.read().is_some());
    if is_gone && condition.reason.split(',').any(|part| part == klusterlet::reasons::HUB_KUBECONFIG_UNAUTHORIZED) {
        return Outcome::skip("the hub has no managed cluster of the name, and so no rights for its agent");
    }
    // The operator looks anew every 40 seconds: what it says of a certificate that has only just come is of before.
    let issued = |certificate: Certificate| facts.now.duration_since(certificate.not_before) < BACKDATED + OPERATOR;
    let of_bootstrap =
        [klusterlet::reasons::BOOTSTRAP_SECRET_ERROR, klusterlet::reasons::BOOTSTRAP_SECRET_UNAUTHORIZED];
    let is_behind = !condition.reason.split(',').any(|part| of_bootstrap.contains(&part));
    if is_behind && agent.certificate().is_some_and(issued) {
        return Outcome::Pass;
    }
    if agent.has_hosts_entry() && causes::is_unresolved(&condition.message) {
        return Outcome::skip(
            "the operator does not use the agents' hosts entry, so that its word says nothing of them",
        );
    }
    let (what, cause) = causes::connection(&condition.message);
    let finding = Finding::error(format!("the operator cannot use the hub with the agent's credentials: {what}"))
        .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
        .seen(format!("HubConnectionDegraded {}: {}", condition.reason, text::tail(&condition.message, 240)))
        .because(cause);
    Outcome::Found(vec![join_again(finding, cluster.name)])
}

fn agents_lead(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if cluster.is_well(facts.now) {
        return Outcome::Pass;
    }
    let stale = agent.side.leases.read().into_iter().flatten();
    Outcome::of(stale.filter_map(|lease| held_by_nobody(facts, lease, "an agent")).collect())
}

fn token_may_register(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    match answered(facts, cluster, &agent, &[Reason::Forbidden]) {
        CredentialCheck::NotAsked => Outcome::skip(NOT_ASKED),
        CredentialCheck::Fine => Outcome::Pass,
        CredentialCheck::Unknown(trouble) => Outcome::Unknown(trouble.clone()),
        CredentialCheck::Refused(said) => {
            let finding = Finding::error("the token that the agent registers with may not register clusters");
            let finding = probed(&agent, finding, said)
                .because("the bootstrap ClusterRoleBinding was deleted, or the token is one for something else")
                .run(Side::Hub, "kubectl ocm install hub --diff", &[]);
            Outcome::Found(vec![join_again(finding, cluster.name)])
        }
    }
}

fn driver_enabled(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let managers = facts.snapshot.hub.as_ref().and_then(|hub| hub.managers.read());
    let Some(manager) = managers.and_then(|managers| facts::own_manager(managers)) else {
        return Outcome::skip("the hub has no ClusterManager");
    };
    let of_hub = manager.spec.registration_configuration.as_ref();
    let drivers = of_hub.map(|registration| registration.registration_drivers.as_slice()).unwrap_or_default();
    let driver = agent.driver();
    // A hub that lists none has the one that is the default.
    let listed = drivers.iter().any(|listed| listed.auth_type == driver);
    if listed || (drivers.is_empty() && driver == RegistrationAuthType::default()) {
        return Outcome::Pass;
    }
    let known = text::list(drivers.iter().map(|listed| listed.auth_type.to_string()));
    let finding = Finding::error(format!("the agent registers by the driver {driver}, which the hub does not have"))
        .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
        .seen(format!("the hub has: {known}"))
        .because("the hub was switched to another driver, or the Klusterlet was edited")
        .run(Side::Hub, "kubectl ocm install hub --registration-drivers {} --diff", &[&driver.to_string()]);
    Outcome::Found(vec![finding])
}

fn mode_known(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let mode = agent.klusterlet.spec.deploy_option.as_ref().and_then(|option| option.mode.as_ref());
    let Some(KlusterletMode::Other(mode)) = mode else { return Outcome::Pass };
    let finding = Finding::error(format!("the Klusterlet's mode {mode:?} is not known"))
        .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
        .because("it was misspelt; the modes are Default, Singleton, Hosted and SingletonHosted")
        .run(Side::Managed, "kubectl edit klusterlet/{}", &[&agent.side.klusterlet]);
    Outcome::Found(vec![finding])
}

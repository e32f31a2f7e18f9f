//! 3xxx: life after the join.

use jiff::SignedDuration;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::{hub, secrets};
use ocm_core::duration::human;
use ocm_core::phase::Phase;

use super::agent::agent;
use super::joining::staying;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Agent, Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::Side;
use crate::text;

/// The checks of life after the join.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(3101),
        slug: "heard-of",
        title: "the hub hears from the agent",
        category: Category::Life,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Leases],
        after: &[
            Id(2101),
            Id(2104),
            Id(2105),
            Id(2106),
            Id(2107),
            Id(2204),
            Id(2206),
            Id(2111),
            Id(2112),
            Id(2113),
            Id(2114),
            Id(2115),
            Id(2116),
            Id(2212),
            Id(3103),
            Id(3104),
            Id(3106),
            Id(1101),
            Id(6104),
        ],
        rule: Rule::Cluster(heard_of),
        page: Page {
            means: "The agent renews a lease on the hub every minute, and has not. The hub keeps calling the cluster Available \
                    until the lease is five periods old, and Unknown from then on.",
            happens: "The agent does not run, cannot reach the hub, or its certificate has ended.",
            mend: "Look at the managed cluster too: `kubectl ocm troubleshoot NAME --context MANAGED --hub-context HUB`.",
            mended: "The lease managed-cluster-lease in the cluster's namespace is less than two minutes old.",
        },
    },
    Check {
        id: Id(3102),
        slug: "api-server-well",
        title: "the managed cluster's API server is well",
        category: Category::Life,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: &[],
        rule: Rule::Cluster(api_server_well),
        page: Page {
            means: "The agent reports that the API server of its cluster does not answer /livez. The agent itself is well.",
            happens: "The API server or etcd of the managed cluster is in trouble; in Hosted mode the way to it is cut.",
            mend: "Look at the managed cluster's control plane.",
            mended: "The condition ManagedClusterConditionAvailable is True.",
        },
    },
    Check {
        id: Id(3103),
        slug: "clocks-agree",
        title: "the clocks of hub and managed cluster agree",
        category: Category::Life,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Leases],
        after: &[],
        rule: Rule::Cluster(clocks_agree),
        page: Page {
            means: "Hub and managed cluster tell times that differ by five lease periods or more. The agent stops updating the \
                    cluster's status; certificates may look expired or not valid yet.",
            happens: "A clock runs without NTP, or a virtual machine was suspended.",
            mend: "Synchronize the clocks.",
            mended: "The condition ManagedClusterConditionClockSynced is True.",
        },
    },
    Check {
        id: Id(3104),
        slug: "agent-certificate-valid",
        title: "the agent's certificate is valid",
        category: Category::Life,
        severity: Severity::Error,
        inputs: &[Input::Identity],
        after: &[],
        rule: Rule::Cluster(certificate_valid),
        page: Page {
            means: "The certificate that the agent was let in with has expired, or is not valid yet. The agent registers anew, \
                    if what it registers with still works.",
            happens: "The cluster was off for longer than the certificate had left, or renewals were not approved.",
            mend: "Make a new token, join again with it, and accept the cluster.",
            mended: "The Secret hub-kubeconfig-secret holds a certificate that is valid now.",
        },
    },
    Check {
        id: Id(3105),
        slug: "agent-certificate-renewed",
        title: "the agent's certificate is renewed in time",
        category: Category::Life,
        severity: Severity::Warning,
        inputs: &[Input::Identity],
        after: &[Id(2106), Id(2116), Id(2206), Id(2207), Id(3101), Id(3104), Id(1106)],
        rule: Rule::Cluster(certificate_renewed),
        page: Page {
            means: "Agents renew their certificate when a fifth to a quarter of its life is left. This one has less than a tenth.",
            happens: "Renewals are not approved or not signed, or the agent does not run.",
            mend: "Look for pending requests on the hub: `kubectl ocm get csr NAME --pending`.",
            mended: "The certificate in Secret hub-kubeconfig-secret is a new one.",
        },
    },
    Check {
        id: Id(3106),
        slug: "agent-secret-complete",
        title: "the agent's Secret is complete",
        category: Category::Life,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Identity],
        after: &[Id(2106), Id(2107), Id(2206), Id(6104)],
        rule: Rule::Cluster(secret_complete),
        page: Page {
            means: "The cluster has joined, and the Secret with the agent's identity is missing or lacks a part.",
            happens: "Somebody deleted or restored it in part.",
            mend: "Delete what is left of the Secret: the agent registers anew. Then accept the cluster again.",
            mended: "The Secret has the keys cluster-name, agent-name, kubeconfig, tls.crt and tls.key.",
        },
    },
    Check {
        id: Id(3107),
        slug: "addresses-agree",
        title: "the agent uses the hub's address that it registered with",
        category: Category::Life,
        severity: Severity::Warning,
        inputs: &[Input::Bootstrap, Input::Identity],
        after: &[Id(2106), Id(2107), Id(2206), Id(2110), Id(3101), Id(3104)],
        rule: Rule::Cluster(addresses_agree),
        page: Page {
            means: "The kubeconfig that the agent registers with names another address or proxy than the one that it works with.",
            happens: "The hub's address or proxy was changed by a new join, and the agent's new request is not accepted yet.",
            mend: "Accept the cluster once more.",
            mended: "Both Secrets name the same server and proxy.",
        },
    },
];

/// Whether an agent has ever joined, as its hub tells.
fn has_joined(cluster: &Cluster<'_>) -> bool {
    let conditions = cluster.object.and_then(|object| object.status.as_ref());
    conditions.is_some_and(|status| conditions::is_true(&status.conditions, managed_cluster::JOINED))
}

fn heard_of(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    if !has_joined(cluster) || !cluster.is_accepted() {
        return Outcome::skip("the cluster has not joined");
    }
    let name = cluster.name;
    let standing = cluster.standing();
    let about = |text: String| {
        Finding::error(text).on(Side::Hub, "Lease", Some(name), hub::MANAGED_CLUSTER_LEASE).because(
            "the agent does not run, cannot reach the hub, or its certificate has ended: look at the managed cluster, too",
        )
    };
    let finding = match cluster.is_fresh(facts.now) {
        Some(true) => return Outcome::Pass,
        Some(false) => about(format!("the agent has not been heard of since {}", facts.ago(cluster.renewed()))),
        // Before the agent has renewed it once, the hub's word is all there is.
        None if cluster.phase() == Some(Phase::Available) => return Outcome::Pass,
        None => about("the agent has joined, and has never renewed its lease".to_owned()),
    };
    let finding = match cluster.renewed() {
        Some(renewed) => finding.seen(format!("lease {name}/{} renewed at {renewed}", hub::MANAGED_CLUSTER_LEASE)),
        None => finding,
    };
    let finding = match standing {
        Some(standing) if standing.phase == Phase::Available => {
            finding.seen("the hub still calls the cluster Available: it does so until the lease is five periods old")
        }
        Some(standing) => finding.seen(format!("{}: {}", standing.reason, standing.message)),
        None => finding,
    };
    let taints = object.spec.taints.iter().map(|taint| taint.key.clone());
    let finding =
        if object.spec.taints.is_empty() { finding } else { finding.seen(format!("taints: {}", text::list(taints))) };
    let finding = match cluster.agent {
        Some(_) => finding,
        None => {
            finding.advise(format!("look at both: kubectl ocm troubleshoot {name} --context MANAGED --hub-context HUB"))
        }
    };
    let logs = "kubectl logs -n open-cluster-management-agent -l app=klusterlet-registration-agent --tail=20";
    Outcome::Found(vec![finding.run(Side::Managed, logs)])
}

fn api_server_well(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let Some(standing) = cluster.standing().filter(|standing| standing.phase == Phase::Unavailable) else {
        return Outcome::Pass;
    };
    let finding = Finding::error("the managed cluster's API server is not well")
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("{}: {}", standing.reason, text::tail(&standing.message, 240)))
        .seen(match cluster.renewed() {
            Some(renewed) => format!("the agent itself was heard of {} ago", facts.ago(Some(renewed))),
            None => "the agent reports it".to_owned(),
        })
        .because("its API server or etcd does not answer; in Hosted mode perhaps only the way to it is cut")
        .run(Side::Managed, "kubectl get --raw /livez?verbose");
    Outcome::Found(vec![finding])
}

fn clocks_agree(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions::find(conditions, managed_cluster::CLOCK_SYNCED);
    let ahead = cluster.renewed().is_some_and(|renewed| renewed > facts.now + cluster.lease_period());
    // A lease that nobody renews looks like a clock that is behind: then the silence is what counts.
    let silent = cluster.is_fresh(facts.now) == Some(false);
    let reported = condition.filter(|condition| condition.status == conditions::FALSE && !silent);
    if reported.is_none() && !ahead {
        return Outcome::Pass;
    }
    let finding = Finding::error("the clocks of hub and managed cluster differ").on(
        Side::Hub,
        "ManagedCluster",
        None,
        cluster.name,
    );
    let finding = match reported {
        Some(condition) => finding.seen(format!("{}: {}", condition.reason, condition.message)),
        None => finding,
    };
    let finding = match cluster.renewed() {
        Some(renewed) => finding.seen(format!("the lease was renewed at {renewed}, it is {} here", facts.now)),
        None => finding,
    };
    let finding = finding
        .because("a clock runs without NTP, or a virtual machine was suspended")
        .advise("synchronize the clocks of both, and of this machine");
    Outcome::Found(vec![finding])
}

fn about_identity(agent: &Agent<'_>, finding: Finding) -> Finding {
    finding.on(Side::Managed, "Secret", Some(&agent.side.namespace), secrets::HUB_KUBECONFIG)
}

fn certificate_valid(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(certificate) = agent.certificate() else { return Outcome::skip("the agent has no certificate") };
    if certificate.is_valid(facts.now) {
        return Outcome::Pass;
    }
    let (summary, cause) = if certificate.not_after < facts.now {
        let ago = facts.ago(Some(certificate.not_after));
        (format!("the agent's certificate expired {ago} ago"), "the cluster was off, or renewals were not approved")
    } else {
        ("the agent's certificate is not valid yet".to_owned(), "the clocks of hub and managed cluster differ")
    };
    let finding = Finding::error(summary)
        .seen(format!("valid from {} until {}", certificate.not_before, certificate.not_after))
        .because(cause)
        .run(Side::Hub, "kubectl ocm token create")
        .advise(format!("paste its line against the managed cluster, then: kubectl ocm accept {}", cluster.name));
    Outcome::Found(vec![about_identity(&agent, finding)])
}

fn certificate_renewed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(certificate) = agent.certificate().filter(|certificate| certificate.is_valid(facts.now)) else {
        return Outcome::skip("the agent has no valid certificate");
    };
    let life = certificate.not_after.duration_since(certificate.not_before);
    let left = certificate.not_after.duration_since(facts.now);
    if left > life / 10 || life == SignedDuration::ZERO {
        return Outcome::Pass;
    }
    let left = human(left.try_into().unwrap_or_default());
    let finding = Finding::warning(format!("the agent's certificate ends in {left} and has not been renewed"))
        .seen(format!("valid until {}", certificate.not_after))
        .because("renewals are not approved or not signed, or the agent does not run")
        .run(Side::Hub, format!("kubectl ocm get csr {} --pending", cluster.name));
    Outcome::Found(vec![about_identity(&agent, finding)])
}

fn secret_complete(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let _ = staying!(cluster);
    if !has_joined(cluster) || !cluster.is_accepted() {
        return Outcome::skip("the cluster has not joined");
    }
    let mut wanted =
        vec![secrets::CLUSTER_NAME_KEY, secrets::AGENT_NAME_KEY, secrets::KUBECONFIG_KEY, secrets::TLS_CERT_KEY];
    wanted.push(secrets::TLS_KEY_KEY);
    let secret = agent.side.identity.read().and_then(Option::as_ref);
    let what = match secret {
        None => "the Secret with the agent's identity is missing".to_owned(),
        Some(secret) => {
            let missing: Vec<&str> = wanted.into_iter().filter(|key| !secret.keys.contains_key(*key)).collect();
            if missing.is_empty() {
                return Outcome::Pass;
            }
            format!("the Secret with the agent's identity lacks {}", text::list(missing))
        }
    };
    let finding = Finding::error(what)
        .because("somebody deleted it, or restored it in part; the agent registers anew without it")
        .run(
            Side::Managed,
            format!("kubectl delete secret {} -n {} --ignore-not-found", secrets::HUB_KUBECONFIG, agent.side.namespace),
        )
        .run(Side::Hub, format!("kubectl ocm accept {}", cluster.name));
    Outcome::Found(vec![about_identity(&agent, finding)])
}

fn addresses_agree(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if agent.registers(facts.now) || agent.is_grpc() {
        return Outcome::skip("the agent has no certificate that it could work with");
    }
    let identity = agent.side.identity.read().and_then(Option::as_ref).and_then(|secret| secret.kubeconfig.as_ref());
    let (Some(works), Some(registers)) = (identity, agent.kubeconfig()) else {
        return Outcome::skip("there are no two kubeconfigs to compare");
    };
    if works.server == registers.server && works.proxy == registers.proxy {
        return Outcome::Pass;
    }
    let proxy = |proxy: &Option<String>| proxy.clone().unwrap_or_else(|| "no proxy".to_owned());
    let finding = Finding::warning("the agent works with another hub address or proxy than it registers with")
        .seen(format!("it works with {} through {}", works.server, proxy(&works.proxy)))
        .seen(format!("it registers with {} through {}", registers.server, proxy(&registers.proxy)))
        .because("a new join has changed them, and the agent's new request is not accepted yet")
        .run(Side::Hub, format!("kubectl ocm accept {}", cluster.name));
    Outcome::Found(vec![about_identity(&agent, finding)])
}

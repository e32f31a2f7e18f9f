//! 3xxx: life after the join.

use jiff::SignedDuration;
use ocm_api::Condition;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::{hub, namespaces, secrets};
use ocm_core::duration::human;
use ocm_core::phase::Phase;

use super::next::{AGENT, AGENT_LOGS, by_fingerprint, inspect_both, requests};
use super::subject::{NO_CERTIFICATE, agent, has_joined, staying};
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
            Id(2124),
            Id(2125),
            Id(2126),
            Id(3108),
            Id(3102),
            Id(3103),
            Id(3104),
            Id(3106),
            Id(1101),
            Id(6103),
            Id(6104),
            Id(1116),
            Id(1117),
            Id(3111),
        ],
        rule: Rule::Cluster(heard_of),
        page: Page {
            means: "The agent renews a lease on the hub every minute, and has not. The hub keeps calling the cluster Available \
                    until the lease is five periods old, and Unknown from then on.",
            happens: "The agent does not run, cannot reach the hub, or its certificate has ended. Agents of old releases stop renewing \
                      after the hub was restored from a backup, and go on when they are restarted.",
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
        after: &[Id(3111)],
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
            means: "Hub and managed cluster tell times that differ by a lease period or more, a minute by default. From five \
                    periods on the hub takes the agent for silent and the agent stops updating the cluster's status; \
                    certificates may look expired or not valid yet.",
            happens: "A clock runs without NTP, or a virtual machine was suspended.",
            mend: "Synchronize the clocks. A difference that is meant to be is left out by `--suppress \
                   OCM3103:NAME=2026-12-31,REASON`, or by the annotation `kubectl-ocm/suppress` of the ManagedCluster with \
                   `OCM3103=2026-12-31,REASON`, until that day has ended and however large it grows. The hub hears from such an \
                   agent only as long as five lease periods are more than it: raise leaseDurationSeconds of the ManagedCluster above \
                   it, and nothing is found. What the annotation `registration.open-cluster-management.io/skip-clock-sync-check` of \
                   releases after 1.3 lets the hub pass over is found all the same.",
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
        after: &[Id(2206)],
        rule: Rule::Cluster(certificate_valid),
        page: Page {
            means: "The certificate that the agent was let in with has expired, or is not valid yet. The agent registers again, \
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
        after: &[Id(2106), Id(2116), Id(2206), Id(2207), Id(3101), Id(3104), Id(1106), Id(1116), Id(3111)],
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
        after: &[Id(2106), Id(2107), Id(2206), Id(2207), Id(6104)],
        rule: Rule::Cluster(secret_complete),
        page: Page {
            means: "The cluster has joined, and the Secret with the agent's identity is missing, lacks a part, or has a private key that \
                    does not belong to its certificate.",
            happens: "Somebody deleted or restored it in part.",
            mend: "Delete what is left of the Secret: the agent registers again. Then accept the cluster again.",
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
        Some(false) => about(format!("the agent has not been heard of since {}", facts.ago(cluster.heard()))),
        // Before the agent has renewed it once, the hub's word is all there is.
        None if cluster.phase() == Some(Phase::Available) => return Outcome::Pass,
        None => about("the agent has joined, and has never renewed its lease".to_owned()),
    };
    let finding = match cluster.renewed() {
        Some(renewed) => finding.seen(format!("lease {name}/{} renewed at {renewed}", hub::MANAGED_CLUSTER_LEASE)),
        None => finding,
    };
    // Until then it may be an agent that has only just been restarted.
    let finding = match cluster.is_silent(facts.now) {
        Some(false) => Finding { severity: Severity::Warning, ..finding },
        _ => finding,
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
        None => finding.advise(inspect_both(name)),
    };
    let namespace = cluster.agent.map_or(namespaces::AGENT, |agent| agent.side.namespace.as_str());
    let finding = finding.run(Side::Managed, AGENT_LOGS, &[namespace, AGENT]);
    Outcome::Found(vec![finding])
}

fn api_server_well(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let Some(standing) = cluster.standing().filter(|standing| standing.phase == Phase::Unavailable) else {
        return Outcome::Pass;
    };
    let finding = Finding::error("the managed cluster's API server is not well")
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("{}: {}", standing.reason, text::tail(&standing.message, 240)))
        .seen(match cluster.heard() {
            Some(heard) => format!("the agent itself was heard of {} ago", facts.ago(Some(heard))),
            None => "the agent reports it".to_owned(),
        })
        .because("its API server or etcd does not answer; in Hosted mode perhaps only the way to it is cut")
        .run(Side::Managed, "kubectl get --raw /livez?verbose", &[]);
    Outcome::Found(vec![finding])
}

fn clocks_agree(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions::find(conditions, managed_cluster::CLOCK_SYNCED);
    let period = cluster.lease_period();
    // Where the lease does not tell by which clock it was written, only one that was renewed in the future tells anything: one
    // that nobody renews looks like a clock that is behind.
    let ahead = || Some(cluster.renewed()?.duration_since(facts.now)).filter(|ahead| *ahead > SignedDuration::ZERO);
    let skew = cluster.skew().or_else(ahead);
    let silent = cluster.is_fresh(facts.now) == Some(false);
    let is_false = |condition: &&Condition| condition.status == conditions::FALSE;
    // The hub judges by the age of the lease. What the lease itself tells is more.
    let reported = condition.filter(is_false).filter(|_| !silent && cluster.skew().is_none());
    let differ = skew.map(SignedDuration::abs).filter(|skew| *skew >= period);
    if reported.is_none() && differ.is_none() {
        return Outcome::Pass;
    }
    let text = match skew.filter(|_| differ.is_some()) {
        Some(skew) => {
            let by = human(skew.abs().try_into().unwrap_or_default());
            let word = if skew.is_negative() { "behind" } else { "ahead of" };
            format!("the managed cluster's clock is {by} {word} the hub's")
        }
        None => "the clocks of hub and managed cluster differ".to_owned(),
    };
    // From five periods on the hub no longer hears the agent, and the agent no longer reports.
    let stops = reported.is_some() || differ.is_some_and(|skew| skew >= period * 5);
    let finding = if stops { Finding::error(text) } else { Finding::warning(text) };
    let finding = finding.on(Side::Hub, "ManagedCluster", None, cluster.name);
    let finding = match condition.filter(is_false) {
        Some(condition) => finding.seen(format!("{}: {}", condition.reason, condition.message)),
        None => finding,
    };
    let finding = match (cluster.renewed(), cluster.lease.and_then(|lease| lease.written.as_ref())) {
        (Some(renewed), Some(written)) => {
            finding.seen(format!("the lease says {renewed}, and the hub wrote that at {}", written.0))
        }
        (Some(renewed), None) => finding.seen(format!("the lease was renewed at {renewed}, it is {} here", facts.now)),
        (None, _) => finding,
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
    if cluster.is_aws() {
        return Outcome::skip(NO_CERTIFICATE);
    }
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
        .run(Side::Hub, "kubectl ocm token create", &[])
        .advise("then paste its line against the managed cluster, and accept the key of its agent:");
    Outcome::Found(vec![about_identity(&agent, by_fingerprint(requests(finding, cluster.name), cluster.name))])
}

fn certificate_renewed(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if cluster.is_aws() {
        return Outcome::skip(NO_CERTIFICATE);
    }
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
        .run(Side::Hub, "kubectl ocm get csr {} --pending", &[cluster.name]);
    Outcome::Found(vec![about_identity(&agent, finding)])
}

fn secret_complete(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let _ = staying!(cluster);
    if !has_joined(cluster) || !cluster.is_accepted() {
        return Outcome::skip("the cluster has not joined");
    }
    let mut wanted = vec![secrets::CLUSTER_NAME_KEY, secrets::AGENT_NAME_KEY, secrets::KUBECONFIG_KEY];
    if !cluster.is_aws() {
        wanted.extend([secrets::TLS_CERT_KEY, secrets::TLS_KEY_KEY]);
    }
    let secret = agent.side.identity.read().and_then(Option::as_ref);
    let what = match secret {
        None => "the Secret with the agent's identity is missing".to_owned(),
        Some(secret) => {
            let missing: Vec<&str> = wanted.into_iter().filter(|key| !secret.keys.contains_key(*key)).collect();
            match missing.is_empty() {
                true if secret.holds_key == Some(false) => {
                    "the private key in the Secret with the agent's identity is not that of its certificate".to_owned()
                }
                true => return Outcome::Pass,
                false => format!("the Secret with the agent's identity lacks {}", text::list(missing)),
            }
        }
    };
    let namespace = agent.side.namespace.as_str();
    let finding = Finding::error(what);
    let finding = match cluster.is_aws() {
        // It does not register anew: it makes its kubeconfig as it starts.
        true => finding
            .because("somebody deleted it, or restored it in part; the agent makes it as it starts")
            .run(Side::Managed, "kubectl rollout restart deployment -n {}", &[namespace])
            .run(Side::Managed, AGENT_LOGS, &[namespace, AGENT]),
        false => {
            let finding = finding
                .because("somebody deleted it, or restored it in part; the agent registers again without it")
                .run(
                    Side::Managed,
                    "kubectl delete secret/{} -n {} --ignore-not-found",
                    &[secrets::HUB_KUBECONFIG, namespace],
                );
            by_fingerprint(requests(finding, cluster.name), cluster.name)
        }
    };
    Outcome::Found(vec![about_identity(&agent, finding)])
}

fn addresses_agree(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    if agent.registers(facts.now) || agent.is_grpc() {
        return Outcome::skip("the agent has nothing that it could work with at that address");
    }
    let identity = agent.side.identity.read().and_then(Option::as_ref).and_then(|secret| secret.kubeconfig.as_ref());
    let (Some(works), Some(registers)) = (identity, agent.kubeconfig()) else {
        return Outcome::skip("there are no two kubeconfigs to compare");
    };
    if agent.has_moved() != Some(true) {
        return Outcome::Pass;
    }
    let proxy = |proxy: &Option<String>| proxy.clone().unwrap_or_else(|| "no proxy".to_owned());
    let finding = Finding::warning("the agent works with another hub address or proxy than it registers with")
        .seen(format!("it works with {} through {}", works.server, proxy(&works.proxy)))
        .seen(format!("it registers with {} through {}", registers.server, proxy(&registers.proxy)))
        .because("a new join has changed them, and the agent's new request is not accepted yet");
    let finding = by_fingerprint(requests(finding, cluster.name), cluster.name);
    Outcome::Found(vec![about_identity(&agent, finding)])
}

//! 22xx: the hub's half of a join: registration, acceptance, certificate.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use ocm_api::ManagedCluster;
use ocm_api::conditions::{self, managed_cluster};
use ocm_api::names::{namespaces, secrets};
use ocm_core::csr::{Request, State};
use ocm_core::order::Collect as _;
use ocm_core::phase::Phase;
use ocm_core::workload::Health;

use super::next::{AGENT, AGENT_LOGS, RESTART_AGENT, by_fingerprint, inspect_both, requests};
use super::subject::{NO_CERTIFICATE, agent, staying};
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Agent, BACKDATED, Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::Side;
use crate::text;

/// How long the hub's controllers may take for what they do by themselves.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// How long an agent may take between the registration of a cluster and its certificate request.
const ASKS: SignedDuration = SignedDuration::from_secs(10);
/// How long the hub and AWS may take to let an accepted cluster in.
const AWS: SignedDuration = SignedDuration::from_mins(5);
/// After so many requests without a certificate the agent stops asking. Upstream: `clientCertHalted`.
const TOO_MANY: usize = 10;

/// What keeps an agent from running or from reaching the hub.
const AGENT_SIDE: &[Id] = &[
    Id(2101),
    Id(2102),
    Id(2103),
    Id(2104),
    Id(2105),
    Id(2107),
    Id(2108),
    Id(2110),
    Id(2109),
    Id(2111),
    Id(2112),
    Id(2113),
    Id(2114),
    Id(2115),
    Id(2106),
    Id(2116),
    Id(2117),
    Id(2118),
    Id(2119),
    Id(2124),
    Id(2125),
    Id(2126),
    Id(1101),
    Id(1116),
    Id(3111),
    Id(1107),
    Id(1108),
    Id(1109),
    Id(1117),
    Id(1118),
    Id(6102),
    Id(2212),
    Id(6103),
];

/// The checks of the hub's half of a join.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(2201),
        slug: "registered",
        title: "the hub knows the cluster",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: AGENT_SIDE,
        rule: Rule::Cluster(registered),
        page: Page {
            means: "The hub has no ManagedCluster of this name: no agent has registered it yet, or it was removed.",
            happens: "The agent does not run, cannot reach the hub, or has a token that does not work; or the name is misspelt.",
            mend: "Look at the managed cluster too: `kubectl ocm troubleshoot NAME --context MANAGED --hub-context HUB`.",
            mended: "`kubectl ocm get clusters NAME` lists it.",
        },
    },
    Check {
        id: Id(2202),
        slug: "asked",
        title: "the agent has asked for a certificate",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[
            Id(2101),
            Id(2102),
            Id(2103),
            Id(2105),
            Id(2106),
            Id(2107),
            Id(2108),
            Id(2109),
            Id(2110),
            Id(2111),
            Id(2112),
            Id(2113),
            Id(2114),
            Id(2115),
            Id(2116),
            Id(2117),
            Id(2118),
            Id(2201),
            Id(1116),
            Id(1117),
            Id(3111),
        ],
        rule: Rule::Cluster(asked),
        page: Page {
            means: "The ManagedCluster is there, and no certificate request carries its label.",
            happens: "The ManagedCluster was made by hand before the cluster joined; the agent came no further; requests were \
                      deleted, or ended: the API server removes pending ones after a day.",
            mend: "Bring the agent up, or restart it: it asks again.",
            mended: "`kubectl ocm get csr NAME` lists a request.",
        },
    },
    Check {
        id: Id(2203),
        slug: "one-requester",
        title: "one agent asks for the cluster's name",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[Id(2104)],
        rule: Rule::Cluster(one_requester),
        page: Page {
            means: "Requests with different keys wait for a certificate of one cluster name. One of them may be somebody else's.",
            happens: "Two clusters join under one name, an agent was replaced, or somebody with a token tries to take the name.",
            mend: "Compare the fingerprints with the agent's, accept that one by `--fingerprint`, and delete the others.",
            mended: "One request of the name is pending, or none.",
        },
    },
    Check {
        id: Id(2204),
        slug: "not-denied",
        title: "the hub has not denied the cluster",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: &[],
        rule: Rule::Cluster(not_denied),
        page: Page {
            means: "hubAcceptsClient was set to false after the hub had accepted the cluster, or its request was denied with it: \
                    the agent's rights on the hub are gone.",
            happens: "An administrator, or a policy, denied it.",
            mend: "Accept it again, or detach it.",
            mended: "`kubectl ocm get clusters NAME` no longer says Denied.",
        },
    },
    Check {
        id: Id(2205),
        slug: "accepted",
        title: "the hub has accepted the cluster",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: &[
            Id(2202),
            Id(2203),
            Id(2208),
            Id(6102),
            Id(7105),
            Id(8101),
            Id(8102),
            Id(8103),
            Id(1107),
            Id(1108),
            Id(1109),
            Id(1117),
            Id(1118),
        ],
        rule: Rule::Cluster(accepted),
        page: Page {
            means: "The cluster has registered and waits for an administrator of the hub.",
            happens: "That is the way of a join: nobody is let in by default.",
            mend: "Verify that the request is the cluster's, then accept it.",
            mended: "`kubectl ocm get clusters NAME` says Accepted, Joined or Available.",
        },
    },
    Check {
        id: Id(2206),
        slug: "request-approved",
        title: "no request of an accepted cluster waits for approval",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[Id(2203), Id(2204), Id(8102), Id(1116)],
        rule: Rule::Cluster(request_approved),
        page: Page {
            means: "The cluster is accepted and its agent waits for a certificate: accepting a cluster and approving its request \
                    are two things. An agent whose proxy, hub address or CA was changed registers again while everything says \
                    Available; but anybody with a token can ask for the name, too, and a request may be left over from \
                    before. A renewal that waits means that the hub's registration controller does not approve.",
            happens: "hubAcceptsClient was set by hand; the agent registers again; somebody else asks for the name; the \
                      controller that approves renewals is down.",
            mend: "Before the cluster has joined, `kubectl ocm accept NAME` approves the request after checking it. Afterwards \
                   compare the fingerprint with the agent's first, and accept that key alone by `--fingerprint`; delete a \
                   request that nobody can account for.",
            mended: "`kubectl ocm get csr NAME --pending` lists none.",
        },
    },
    Check {
        id: Id(2207),
        slug: "certificate-issued",
        title: "the hub's signer issues what was approved",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[Id(1106), Id(2118), Id(1116)],
        rule: Rule::Cluster(certificate_issued),
        page: Page {
            means: "A request is approved, and no certificate follows, or the signer refuses it.",
            happens: "The controller manager has no signing key, or the platform does not sign client certificates (EKS); for the \
                      signer of gRPC, the driver grpc is off or the signer's Secret is missing.",
            mend: "Use a driver that the hub's platform supports, or give the controller manager its key.",
            mended: "The request says Approved,Issued.",
        },
    },
    Check {
        id: Id(2208),
        slug: "request-not-denied",
        title: "no request of a cluster that has not joined was denied",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[Id(2204)],
        rule: Rule::Cluster(request_not_denied),
        page: Page {
            means: "The newest request for the cluster's name was denied. If it was the agent's, the agent keeps waiting on it; it \
                    may have been somebody else's.",
            happens: "A person or a policy denied it.",
            mend: "Compare the key with the agent's. Only if the denial was a mistake, delete the request: the agent makes a new \
                   one, which can be accepted. A denial that is deleted is remembered nowhere else.",
            mended: "A newer request is there.",
        },
    },
    Check {
        id: Id(2209),
        slug: "few-requests",
        title: "nobody asks for the name again and again",
        category: Category::Join,
        severity: Severity::Warning,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[Id(2104), Id(2106), Id(2203), Id(2205), Id(2206), Id(2207), Id(2208), Id(8102)],
        rule: Rule::Cluster(few_requests),
        page: Page {
            means: "Ten or more requests for the cluster's name have no certificate. With ten an agent stops asking \
                    (ClientCertificateCreationHalted).",
            happens: "The agent restarts before its request is decided, renewals are not approved, or somebody else asks for the \
                      name.",
            mend: "Find out who asks; deny or delete, one by one, what is not the agent's.",
            mended: "`kubectl ocm get csr NAME --pending` lists one or none.",
        },
    },
    Check {
        id: Id(2210),
        slug: "hub-rights",
        title: "the hub has set up the cluster's rights",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters],
        after: &[Id(6102), Id(1106), Id(1116)],
        rule: Rule::Cluster(hub_rights),
        page: Page {
            means: "The hub's registration controller could not make the namespace, roles or bindings of the cluster.",
            happens: "The namespace of the name is being removed, a quota or admission refuses an object, or the controller lacks a \
                      right.",
            mend: "Read the message.",
            mended: "The condition HubAcceptedManagedCluster is True.",
        },
    },
    Check {
        id: Id(2211),
        slug: "joined",
        title: "the agent has joined with its certificate",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[
            Id(2101),
            Id(2102),
            Id(2103),
            Id(2104),
            Id(2105),
            Id(2106),
            Id(2111),
            Id(2112),
            Id(2115),
            Id(2116),
            Id(2202),
            Id(2203),
            Id(2206),
            Id(2207),
            Id(2208),
            Id(2210),
            Id(2212),
            Id(2124),
            Id(1106),
            Id(3106),
            Id(1116),
            Id(3111),
        ],
        rule: Rule::Cluster(joined),
        page: Page {
            means: "The cluster is accepted and its certificate is there to be fetched, and the agent has not used it; or it registers by \
                    AWS IAM, is accepted for five minutes or more, and has not joined.",
            happens: "The agent was restarted between request and certificate and has lost the key; it waits for its leader lease; \
                      it does not run. With AWS IAM: the registration controller has no role, or one without trust, so that it makes \
                      no access entry; or the agent's role is not the one that `aws eks get-token` asks for.",
            mend: "Restart the agent; it asks again where it has lost its key. With AWS IAM, read the logs of the agent and of the \
                   registration controller, and look at IAM, of which nothing is seen from the clusters.",
            mended: "`kubectl ocm get clusters NAME` says Joined or Available.",
        },
    },
    Check {
        id: Id(2212),
        slug: "names-agree",
        title: "Klusterlet and agent name the same cluster",
        category: Category::Join,
        severity: Severity::Error,
        inputs: &[Input::Identity],
        after: &[Id(2104)],
        rule: Rule::Cluster(names_agree),
        page: Page {
            means: "The Klusterlet names one cluster, and the agent holds the identity of another.",
            happens: "clusterName of the Klusterlet was edited, or the Secret was copied from another cluster.",
            mend: "Set clusterName back, or delete the agent's Secret: it registers again under the new name.",
            mended: "clusterName and the Secret's cluster-name are the same.",
        },
    },
];

/// Of how many requests a finding tells.
const SHOWN: usize = 10;

/// The requests of a cluster that wait, the newest first.
fn pending<'c>(cluster: &'c Cluster<'_>) -> Vec<&'c Request> {
    cluster.requests.iter().filter(|request| request.state == State::Pending).collect()
}

/// How many keys ask: by the key itself and by who sent it, for anybody can write another's name into a request.
fn keys(requests: &[&Request]) -> usize {
    let key = |request: &&Request| request.fingerprint().unwrap_or_else(|| request.name.clone());
    let keys: BTreeSet<(String, &str)> =
        requests.iter().map(|request| (key(request), request.asked_by())).collect_set();
    keys.len()
}

/// Says how many requests were too many to be looked at.
fn dropped(facts: &Facts<'_>, cluster: &Cluster<'_>, finding: Finding) -> Finding {
    let hub = facts.snapshot.hub.as_ref();
    match hub.and_then(|hub| hub.dropped_requests.get(cluster.name)) {
        Some(count) => finding.seen(format!("{count} more requests of the name were not looked at")),
        None => finding,
    }
}

/// Whether the hub's controller that approves renewals is known not to run.
fn nobody_renews(facts: &Facts<'_>) -> bool {
    let deployments = facts.snapshot.hub.iter().filter_map(|hub| hub.deployments.read()).flatten();
    let mut approvers = deployments.filter(|workload| workload.name.ends_with("-registration-controller"));
    approvers.any(|workload| workload.replicas == 0 || matches!(workload.health, Health::Stuck(_)))
}

fn seen(facts: &Facts<'_>, request: &Request) -> String {
    let key = request.fingerprint().map_or_else(|| "its key cannot be read".to_owned(), |key| format!("key {key}"));
    format!(
        "request {:?}: {}, {} old, asked by {:?}, {key}",
        request.name,
        request.state,
        facts.ago(request.created),
        request.asked_by()
    )
}

fn registered(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    if cluster.object.is_some() {
        return Outcome::Pass;
    }
    let name = cluster.name;
    let text = format!("the hub has no managed cluster {name:?}");
    let finding = match cluster.agent {
        Some(agent) if agent.is_registered(facts.now) == Some(true) => Finding::error(format!(
            "{text}, and its agent still has the identity with which it had joined"
        ))
        .on(Side::Managed, "Secret", Some(&agent.side.namespace), secrets::HUB_KUBECONFIG)
        .because(
            "somebody has removed it from the hub; the agent goes on with what it has, and does not register again",
        )
        .advise("to let it go for good, delete its Klusterlet; to have it register again, and be accepted again:")
        .run(
            Side::Managed,
            "kubectl delete secret/{} -n {} --ignore-not-found",
            &[secrets::HUB_KUBECONFIG, &agent.side.namespace],
        )
        .run(Side::Managed, RESTART_AGENT, &[&agent.side.namespace, AGENT]),
        Some(agent) => Finding::error(text)
            .seen("the managed cluster has a Klusterlet of this name")
            .because("its agent has not registered it, or the hub has removed it since")
            .run(Side::Managed, AGENT_LOGS, &[&agent.side.namespace, AGENT]),
        None => Finding::error(text)
            .because("no agent has registered it: look at the managed cluster, too; or the name is misspelt")
            .advise(inspect_both(name)),
    };
    Outcome::Found(vec![finding.run(Side::Hub, "kubectl ocm get clusters", &[])])
}

fn asked(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    if cluster.is_aws() {
        return Outcome::skip(NO_CERTIFICATE);
    }
    if !cluster.requests.is_empty() || cluster.phase() >= Some(Phase::Joined) {
        return Outcome::Pass;
    }
    if cluster.agent.is_some_and(|agent| agent.is_registered(facts.now) == Some(true)) {
        return Outcome::Pass;
    }
    if cluster.elsewhere(facts).is_some() {
        return Outcome::skip("its agent comes to this hub only when another one does not answer");
    }
    let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
    // The agent registers the cluster and asks for a certificate in two controllers.
    if created.is_some_and(|created| facts.now.duration_since(created) < ASKS) {
        return Outcome::Pass;
    }
    let since = facts.ago(created);
    let finding = Finding::error("the hub knows the cluster, but its agent has not asked for a certificate")
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("created {since} ago, no request carries its label"))
        .because("the ManagedCluster was made by hand, the agent came no further, or its request has ended")
        .advise(inspect_both(cluster.name));
    Outcome::Found(vec![requests(finding, cluster.name)])
}

fn one_requester(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let pending = pending(cluster);
    let keys = keys(&pending);
    if keys < 2 {
        return Outcome::Pass;
    }
    let text = format!("{keys} keys wait for a certificate of the name {:?}", cluster.name);
    // Who has joined goes on, whatever others ask for.
    let finding = if cluster.is_well(facts.now) { Finding::warning(text) } else { Finding::error(text) };
    let finding = dropped(facts, cluster, finding);
    let finding = pending.iter().take(SHOWN).fold(finding, |finding, request| {
        finding.on(Side::Hub, "CertificateSigningRequest", None, &request.name).seen(seen(facts, request))
    });
    let finding =
        finding.because("two clusters join under one name, an agent was replaced, or somebody tries to take the name");
    Outcome::Found(vec![by_fingerprint(requests(finding, cluster.name), cluster.name)])
}

fn not_denied(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let Some(standing) = cluster.standing().filter(|standing| standing.phase == Phase::Denied) else {
        return Outcome::Pass;
    };
    // The hub reports a failure of its own in the same condition.
    if standing.reason == managed_cluster::reasons::ERROR {
        return Outcome::Pass;
    }
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let finding = Finding::error("the hub has denied the cluster")
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("hubAcceptsClient is false; {}: {}", standing.reason, standing.message));
    let finding = if conditions::is_true(conditions, managed_cluster::AVAILABLE) {
        finding.seen("the condition Available is still True: it stays so until the agent's lease is five periods old")
    } else {
        finding
    };
    let finding = requests(finding.because("an administrator of the hub, or a policy, has said no"), cluster.name)
        .advise("only if that was a mistake, accept it again:")
        .run(Side::Hub, "kubectl ocm accept {}", &[cluster.name]);
    Outcome::Found(vec![finding])
}

fn accepted(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    if cluster.phase() != Some(Phase::Pending) {
        return Outcome::Pass;
    }
    let pending = pending(cluster);
    let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let since = pending.last().and_then(|request| request.created).or(created);
    let summary = format!("waits for acceptance on the hub since {}", facts.ago(since));
    let finding = Finding::error(summary).on(Side::Hub, "ManagedCluster", None, cluster.name);
    let finding = pending.iter().take(SHOWN).fold(finding, |finding, request| finding.seen(seen(facts, request)));
    let finding = finding.because("nobody is let in by default: an administrator of the hub decides");
    let finding = match keys(&pending) {
        0 | 1 => finding.run(Side::Hub, "kubectl ocm accept {}", &[cluster.name]),
        _ => by_fingerprint(requests(finding, cluster.name), cluster.name),
    };
    Outcome::Found(vec![finding])
}

/// Whether an agent has a certificate that is younger than a request, and no reason to ask for another one: then somebody
/// else asks, or the agent did before it got the certificate.
fn needs_no_other(facts: &Facts<'_>, agent: &Agent<'_>, request: &Request) -> bool {
    let Some(certificate) = agent.certificate().filter(|certificate| certificate.is_valid(facts.now)) else {
        return false;
    };
    let younger = |created: Timestamp| created.duration_since(certificate.not_before) < BACKDATED;
    request.created.is_some_and(younger) && agent.has_moved() != Some(true)
}

fn request_approved(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    if cluster.is_aws() {
        return Outcome::skip(NO_CERTIFICATE);
    }
    if !cluster.is_accepted() {
        return Outcome::skip("the cluster is not accepted");
    }
    let Some(request) = cluster.requests.iter().find(|request| request.state == State::Pending) else {
        return Outcome::Pass;
    };
    // A newer certificate makes a request that was left behind irrelevant.
    let newer = |other: &Request| other.state == State::Issued && other.created > request.created;
    if cluster.requests.iter().any(newer) {
        return Outcome::Pass;
    }
    let age = request.created.map(|created| facts.now.duration_since(created)).unwrap_or_default();
    let renews = request.is_renewal(cluster.name);
    if renews && age < GRACE {
        return Outcome::Pass;
    }
    if renews && nobody_renews(facts) {
        return Outcome::skip("the hub's registration controller, which approves renewals, does not run");
    }
    if !renews && cluster.agent.is_some_and(|agent| needs_no_other(facts, &agent, request)) {
        return Outcome::Pass;
    }
    let (is_well, has_joined) = (cluster.is_well(facts.now), cluster.phase() > Some(Phase::Accepted));
    let has_moved = cluster.agent.and_then(|agent| agent.has_moved()) == Some(true);
    let (summary, cause) = match () {
        () if renews => (
            "the renewal of the agent's certificate is not approved",
            "the hub's registration controller approves renewals, and has not",
        ),
        () if has_moved => (
            "the agent registers again with another hub address or proxy, and its request waits for approval",
            "a new join has changed them: that needs another acceptance",
        ),
        () if is_well => (
            "a request with another key than the agent's waits for approval, and may be somebody else's",
            "somebody with a token asks for the name, a request was left behind, or the agent registers again",
        ),
        () if has_joined => (
            "a request of the accepted cluster waits for approval, of its agent or of somebody else",
            "the agent registers again: its Secret was deleted, or its hub address, CA or proxy was changed; or somebody \
             with a token asks for the name",
        ),
        () => (
            "the cluster is accepted, but its certificate request waits for approval",
            "hubAcceptsClient was set alone",
        ),
    };
    let summary = format!("{summary} since {}", facts.ago(request.created));
    let finding = if is_well { Finding::warning(summary) } else { Finding::error(summary) };
    let finding = finding
        .on(Side::Hub, "CertificateSigningRequest", None, &request.name)
        .seen(seen(facts, request))
        .because(cause);
    // Whoever has joined is not made to take another key without having compared it.
    let finding = match has_joined && !renews {
        true => by_fingerprint(requests(finding, cluster.name), cluster.name),
        false => finding.run(Side::Hub, "kubectl ocm accept {}", &[cluster.name]),
    };
    Outcome::Found(vec![finding])
}

fn certificate_issued(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    if cluster.is_aws() {
        return Outcome::skip(NO_CERTIFICATE);
    }
    let Some(request) = cluster.requests.first() else { return Outcome::skip("there is no request") };
    let (summary, cause) = match request.state {
        State::Failed => ("the hub's signer refuses the agent's request", "the signer does not sign such a request"),
        State::Approved => {
            let since = request.decided.map(|decided| facts.now.duration_since(decided));
            if since.is_some_and(|since| since < GRACE) {
                return Outcome::Pass;
            }
            ("the agent's request is approved, but the hub's signer has not issued the certificate", SIGNER)
        }
        _ => return Outcome::Pass,
    };
    let finding = Finding::error(summary)
        .on(Side::Hub, "CertificateSigningRequest", None, &request.name)
        .seen(seen(facts, request))
        .seen(format!("signer {}", request.signer))
        .because(cause)
        .run(Side::Hub, "kubectl get csr/{} -o yaml", &[&request.name]);
    Outcome::Found(vec![finding])
}

const SIGNER: &str = "the controller manager has no signing key, or the platform does not sign client certificates; for gRPC, \
                      the driver is off";

fn request_not_denied(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    if cluster.phase() >= Some(Phase::Joined) {
        return Outcome::Pass;
    }
    let Some(request) = cluster.requests.first().filter(|request| request.state == State::Denied) else {
        return Outcome::Pass;
    };
    // Somebody else's denial says nothing of an agent that waits with another key.
    let other = |other: &Request| other.state == State::Pending && other.fingerprint() != request.fingerprint();
    if cluster.requests.iter().any(other) {
        return Outcome::Pass;
    }
    let finding = Finding::error("a certificate request for the name was denied")
        .on(Side::Hub, "CertificateSigningRequest", None, &request.name)
        .seen(seen(facts, request))
        .because("a person or a policy denied it; if it was the agent's, the agent waits on it and does not ask again");
    // Deleted, a denial is forgotten: whoever asked is free to ask again.
    let finding = requests(finding, cluster.name).advise(
        "only if the denial was a mistake, delete the request: the agent makes a new one, which can be accepted",
    );
    Outcome::Found(vec![finding])
}

fn few_requests(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let _ = staying!(cluster);
    let open =
        cluster.requests.iter().filter(|request| matches!(request.state, State::Pending | State::Approved)).count();
    if open < TOO_MANY {
        return Outcome::Pass;
    }
    let finding = Finding::warning(format!("{open} requests for the name have no certificate"));
    let finding = dropped(facts, cluster, finding)
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(format!("with {TOO_MANY} the agent stops asking: ClientCertificateCreationHalted"))
        .because("the agent restarts before its request is decided, renewals are not approved, or somebody else asks");
    let finding = requests(finding, cluster.name).advise("deny or delete, one by one, what is not the agent's");
    Outcome::Found(vec![finding])
}

fn hub_rights(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let condition = conditions::find(conditions, managed_cluster::HUB_ACCEPTED);
    let Some(condition) = condition.filter(|condition| {
        condition.status == conditions::FALSE && condition.reason == managed_cluster::reasons::ERROR
    }) else {
        return Outcome::Pass;
    };
    let finding = Finding::error("the hub could not set up the cluster's rights")
        .on(Side::Hub, "ManagedCluster", None, cluster.name)
        .seen(text::tail(&condition.message, 240))
        .because("the namespace of its name is being removed, or an object is refused")
        .run(Side::Hub, "kubectl get namespace/{}", &[cluster.name]);
    Outcome::Found(vec![finding])
}

fn joined(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let object = staying!(cluster);
    if cluster.phase() != Some(Phase::Accepted) {
        return Outcome::Pass;
    }
    if cluster.is_aws() {
        return joined_by_aws(facts, cluster, object);
    }
    let Some(request) = cluster.requests.iter().find(|request| request.state == State::Issued) else {
        return Outcome::skip("there is no certificate to join with");
    };
    // The agent fetches it within seconds.
    if request.decided.is_some_and(|decided| facts.now.duration_since(decided) < GRACE) {
        return Outcome::Pass;
    }
    let finding = Finding::error(format!(
        "the agent's certificate was issued {} ago, and the agent has not joined with it",
        facts.ago(request.decided.or(request.created))
    ))
    .on(Side::Hub, "ManagedCluster", None, cluster.name)
    .seen(seen(facts, request))
    .because("the agent does not run, waits for its leader lease, or was restarted and has lost the key")
    .advise(inspect_both(cluster.name));
    Outcome::Found(vec![finding])
}

/// An accepted cluster without certificates: what keeps its agent away is in AWS, where nobody looks.
fn joined_by_aws(facts: &Facts<'_>, cluster: &Cluster<'_>, object: &ManagedCluster) -> Outcome {
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let accepted = conditions::find(conditions, managed_cluster::HUB_ACCEPTED);
    let since = accepted.filter(|one| one.status == conditions::TRUE).map(|one| one.last_transition_time.0);
    // The hub makes roles and an access entry first, and the agent looks whether it may use the hub.
    let Some(since) = since.filter(|since| facts.now.duration_since(*since) >= AWS) else {
        return Outcome::Pass;
    };
    let namespace = cluster.agent.map_or(namespaces::AGENT, |agent| agent.side.namespace.as_str());
    let finding = Finding::error(format!(
        "the cluster is accepted since {}, and its agent, which registers by AWS IAM, has not joined",
        facts.ago(Some(since))
    ))
    .on(Side::Hub, "ManagedCluster", None, cluster.name)
    .because("the hub may not make its access entry, or `aws eks get-token` fails beside the agent")
    .run(Side::Managed, AGENT_LOGS, &[namespace, AGENT])
    .run(
        Side::Hub,
        "kubectl logs deployment/cluster-manager-registration-controller -n {} --tail=50",
        &[namespaces::HUB],
    );
    Outcome::Found(vec![finding])
}

fn names_agree(_: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let wanted = agent.klusterlet.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let noted = agent.side.identity.read().and_then(Option::as_ref).and_then(|secret| secret.cluster.as_deref());
    let (Some(wanted), Some(noted)) = (wanted, noted) else { return Outcome::Pass };
    if wanted == noted {
        return Outcome::Pass;
    }
    let finding =
        Finding::error(format!("the Klusterlet names {wanted:?}, and its agent holds the identity of {noted:?}"))
            .on(Side::Managed, "Klusterlet", None, &agent.side.klusterlet)
            .because("clusterName was edited, or the Secret comes from another cluster")
            .run(Side::Managed, "kubectl edit klusterlet/{}", &[&agent.side.klusterlet]);
    // Without certificates the agent keeps what it has: it does not register again.
    let finding = match cluster.is_aws() {
        true => finding,
        false => {
            finding.advise("or delete Secret hub-kubeconfig-secret of the agent: it registers again under the new name")
        }
    };
    Outcome::Found(vec![finding])
}

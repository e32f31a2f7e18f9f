//! 7103 and on: what lets others do more than was meant.

use jiff::SignedDuration;
use ocm_api::names::{identity, namespaces, operators};
use ocm_core::csr::{Request, State};
use ocm_core::duration::human;
use ocm_core::install::{feature_gates, mode};
use ocm_core::phase::Phase;

use super::next::requests;
use super::subject::agent;
use super::{Category, Check, Input, Page, Rule};
use crate::facts::{Cluster, Facts};
use crate::finding::{Finding, Id, Outcome, Severity};
use crate::snapshot::{AdminFacts, HubSide, ManagedSide, Side, TokenFacts};
use crate::text;

/// How long a token may be valid that lies on every cluster that registered with it.
const LONGEST: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The checks of what lets others do more than was meant.
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: Id(7103),
        slug: "hub-asks-before-it-accepts",
        title: "the hub does not accept every cluster that registers",
        category: Category::Safety,
        severity: Severity::Warning,
        inputs: &[Input::ClusterManagers, Input::PolicyEngine],
        after: &[],
        rule: Rule::Hub(asks_before_it_accepts),
        page: Page {
            means: "The feature gate ManagedClusterAutoApproval is on, and no policy engine stands before it. The users of its list \
                    only get their certificates by themselves; hubAcceptsClient is set for every new ManagedCluster, whoever \
                    creates it.",
            happens: "Somebody switched the gate on to save acceptances.",
            mend: "Switch it off, or let policies decide: `kubectl ocm install policy-engine`.",
            mended: "The gate is off, or the policy engine runs.",
        },
    },
    Check {
        id: Id(7104),
        slug: "registration-token-ends",
        title: "the token that the agent registered with ends some day",
        category: Category::Safety,
        severity: Severity::Warning,
        inputs: &[Input::Bootstrap],
        after: &[Id(2104), Id(2107)],
        rule: Rule::Cluster(registration_token_ends),
        page: Page {
            means: "The token in the agent's bootstrap Secret never expires, or not within a year. Whoever reads it on this cluster \
                    can register clusters on the hub, and ask for the names of others.",
            happens: "It is the token of a service account's Secret, or was made with a long life.",
            mend: "Make short tokens with `kubectl ocm token create`, join again with one, and revoke the old one: `kubectl ocm token \
                   list`, `kubectl ocm token revoke`. An agent that has joined does not need it until it registers again.",
            mended: "The token says that it expires within a year.",
        },
    },
    Check {
        id: Id(7105),
        slug: "requests-say-what-they-are",
        title: "requests ask for the cluster that their label names",
        category: Category::Safety,
        severity: Severity::Error,
        inputs: &[Input::ManagedClusters, Input::Requests],
        after: &[],
        rule: Rule::Cluster(requests_say_what_they_are),
        page: Page {
            means: "A request carries the label of one cluster and asks for the name or group of another; or it names a user on whose \
                    behalf the gRPC server is said to ask, and it is not the gRPC server that asks. Agents send no such requests. \
                    An error: it was approved, or nothing else waits for the name.",
            happens: "Somebody with the right to create requests tries to take the identity of a cluster, or a tool made them.",
            mend: "Find out who asked: `spec.username` is the API server's own word. Deny the request; if it was approved, see what \
                   was done with the certificate, which cannot be revoked and works until it ends. `kubectl ocm install baseline` \
                   refuses such requests from now on.",
            mended: "The request is denied or deleted, and no other one is there.",
        },
    },
    Check {
        id: Id(7106),
        slug: "agents-are-no-admins",
        title: "agents may not do everything on the managed cluster",
        category: Category::Safety,
        severity: Severity::Warning,
        inputs: &[Input::Klusterlets, Input::Admins],
        after: &[],
        rule: Rule::Managed(agents_are_no_admins),
        page: Page {
            means: "A service account of the operator or of the agents is bound to the ClusterRole cluster-admin: whoever may create \
                    works for the cluster on the hub, or takes over the hub, may do everything on it.",
            happens: "Somebody bound it so that works of every kind can be applied.",
            mend: "Grant what works need by ClusterRoles with the label open-cluster-management.io/aggregate-to-work=true, or have works \
                   name an executor; then delete the binding.",
            mended: "`kubectl auth can-i '*' '*' --as system:serviceaccount:NAMESPACE:NAME` says no.",
        },
    },
];

fn asks_before_it_accepts(_: &Facts<'_>, hub: &HubSide) -> Outcome {
    let managers = hub.managers.read().map(Vec::as_slice).unwrap_or_default();
    let Some(manager) = managers.iter().find(|manager| !mode::is_hosted(manager)) else {
        return Outcome::skip("the hub's ClusterManager is on another cluster");
    };
    let has_engine = hub.policy_engine.read().is_some_and(|engine| !engine.is_empty());
    if has_engine || !feature_gates::accepts_clusters(managers) {
        return Outcome::Pass;
    }
    let name = manager.metadata.name.as_deref().unwrap_or_default();
    let finding = Finding::warning("the hub accepts every cluster that registers, whoever creates it")
        .on(Side::Hub, "ClusterManager", None, name)
        .seen("the feature gate ManagedClusterAutoApproval is on, and there is no policy engine")
        .because("the gate's list of users is for certificates alone")
        .run(Side::Hub, "kubectl ocm install policy-engine --diff", &[]);
    Outcome::Found(vec![finding])
}

fn registration_token_ends(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let agent = agent!(cluster);
    let Some(TokenFacts::ServiceAccount { subject, expires, .. }) = agent.token() else {
        return Outcome::skip("the token does not say until when it is valid");
    };
    let how_long = match expires {
        None => "never expires".to_owned(),
        Some(expires) if expires.0.duration_since(facts.now) > LONGEST => {
            let left = expires.0.duration_since(facts.now);
            format!("is valid for another {}", human(left.try_into().unwrap_or_default()))
        }
        Some(_) => return Outcome::Pass,
    };
    let finding = Finding::warning(format!("the token that the agent registered with {how_long}"))
        .on(Side::Managed, "Secret", Some(&agent.side.namespace), ocm_api::names::secrets::BOOTSTRAP_HUB_KUBECONFIG)
        .seen(format!("made for {}", subject.as_deref().unwrap_or("an unknown subject")))
        .because("whoever reads it on the managed cluster can register clusters on the hub")
        .run(Side::Hub, "kubectl ocm token list", &[])
        .run(Side::Hub, "kubectl ocm token create", &[])
        .advise("then join again with the new one, and revoke the old one");
    Outcome::Found(vec![finding])
}

/// What is wrong with a request that says to be of a cluster; none: it is what agents send, or cannot be read.
fn lie(request: &Request, cluster: &str, is_grpc_server: impl Fn(&str) -> bool) -> Option<String> {
    let content = request.content.as_ref().ok()?;
    if let Some(user) = request.grpc_user.as_ref().filter(|_| !is_grpc_server(&request.requester.user)) {
        return Some(format!(
            "it says that the gRPC server asks for {user:?}, and {:?} has sent it",
            request.requester.user
        ));
    }
    let others = content.common_names.iter().filter_map(|name| identity::parse_agent_user(name));
    let other = others.map(|(of, _)| of).find(|of| *of != cluster);
    if let Some(other) = other {
        return Some(format!("it asks for the name of an agent of {other:?}"));
    }
    let group = identity::cluster_group(cluster);
    let foreign = content.organizations.iter().find(|organization| {
        organization.starts_with(identity::PREFIX)
            && **organization != group
            && organization.as_str() != identity::MANAGED_CLUSTERS_GROUP
    });
    foreign.map(|foreign| format!("it asks for the group {foreign:?}"))
}

fn requests_say_what_they_are(facts: &Facts<'_>, cluster: &Cluster<'_>) -> Outcome {
    let managers = facts.snapshot.hub.as_ref().and_then(|hub| hub.managers.read());
    // The server of a hosted hub is in a namespace that may not be known here. Those of others, whose pods run beside the hub's
    // own, send nothing here.
    let is_elsewhere = managers.is_none_or(|managers| managers.iter().all(mode::is_hosted));
    let is_grpc_server = |user: &str| {
        user == identity::GRPC_SERVER_USER
            || (is_elsewhere && user.starts_with("system:serviceaccount:") && user.ends_with(":grpc-server-sa"))
    };
    let standing = cluster.requests.iter().filter(|request| !matches!(request.state, State::Denied | State::Failed));
    let judged: Vec<_> = standing.map(|request| (request, lie(request, cluster.name, is_grpc_server))).collect();
    // Then there is nothing that could be accepted.
    let is_hindrance = cluster.phase() == Some(Phase::Pending) && judged.iter().all(|(_, lie)| lie.is_some());
    let found = judged.into_iter().filter_map(|(request, lie)| Some((request, lie?)));
    let findings = found.take(SHOWN).map(|(request, lie)| {
        let granted = request.state != State::Pending;
        let text = match granted {
            true => format!("a request that is not what it says was approved: {lie}"),
            false => format!("a request is not what it says: {lie}"),
        };
        let finding = if granted || is_hindrance { Finding::error(text) } else { Finding::warning(text) };
        let names = request.content.as_ref().map(|content| text::list(&content.common_names)).unwrap_or_default();
        let finding = finding
            .on(Side::Hub, "CertificateSigningRequest", None, &request.name)
            .seen(format!("{}, sent by {:?} {} ago", request.state, request.requester.user, facts.ago(request.created)))
            .seen(format!("its label names {:?}, its common name is {names:?}", cluster.name))
            .because("agents send no such requests: somebody tries to take an identity, or a tool made it");
        requests(finding, cluster.name).run(Side::Hub, "kubectl certificate deny {}", &[&request.name])
    });
    Outcome::of(findings.collect())
}

fn agents_are_no_admins(_: &Facts<'_>, managed: &ManagedSide) -> Outcome {
    // Other operators may have come into the operator's namespace.
    let own = |admin: &AdminFacts| {
        (admin.namespace == namespaces::OPERATOR && [operators::KLUSTERLET, "*"].contains(&admin.name.as_str()))
            || managed.agents.iter().any(|agent| agent.namespace == admin.namespace)
    };
    let admins = managed.admins.read().into_iter().flatten().filter(|admin| own(admin));
    let findings = admins.take(SHOWN).map(|AdminFacts { binding, namespace, name }| {
        let who = match name.as_str() {
            "*" => format!("every service account of namespace {namespace}, of the agents,"),
            name => format!("service account {namespace}/{name} of the agents"),
        };
        Finding::warning(format!("{who} may do everything on the managed cluster"))
            .on(Side::Managed, "ClusterRoleBinding", None, binding)
            .because("somebody has bound it to cluster-admin, so that works of every kind can be applied")
            .run(Side::Managed, "kubectl describe clusterrolebinding/{}", &[binding])
    });
    Outcome::of(findings.collect())
}

/// Of how many requests of a cluster a report tells.
const SHOWN: usize = 5;

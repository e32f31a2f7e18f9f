//! What policies know of hubs: which cluster a request is about, and who stands behind it. The rules are those of
//! `ocm-rules`, which the commands judge by as well; here the request becomes the facts that they are about.

use ocm_policy_abi::{CHANGES_SHOWN, Cluster, Csr, Operation, Requester, Signature, Text};
use ocm_rules::cluster;
use ocm_rules::csr::{self, About};
use ocm_rules::identity::{self, CREDENTIAL_ID, Identity};
use ocm_rules::{Code, Violation, name};

use crate::{Answer, Request, deny, hold};

pub use ocm_rules::cluster::{CLUSTER_SET, DEFAULT_SET};
pub use ocm_rules::csr::{ADDON_NAME, CLUSTER_NAME, CSR_USER};
pub use ocm_rules::identity::{
    BOOTSTRAP_USER, GRPC_SERVER_USER as GRPC_SERVER, MANAGED_CLUSTERS_GROUP as ALL_AGENTS, PREFIX, TOKEN_GROUP,
};
pub use ocm_rules::name::is_dns_label;

/// A requester as facts of the rules.
pub fn requester_facts<'r, 'a>(requester: &'r Requester<'a>) -> identity::Requester<'r, Text<'a>> {
    identity::Requester {
        user: &requester.username,
        uid: requester.uid.as_deref(),
        groups: &requester.groups,
        credential_ids: requester.extra.get(CREDENTIAL_ID).map_or(&[], Vec::as_slice),
    }
}

/// A certificate request as facts of the rules.
pub fn csr_facts<'r, 'a>(csr: &'r Csr<'a>) -> csr::Csr<'r, Text<'a>> {
    let content = csr::Content {
        common_names: &csr.common_names[..],
        organizations: &csr.organizations,
        other_attributes: &csr.other_attributes,
        alternative_names: &csr.alternative_names,
        extensions: &csr.extensions,
        key: csr::Key::of(&csr.key.algorithm, csr.key.bits),
        signature: match csr.signature {
            Signature::Valid => csr::Signature::Valid,
            Signature::Invalid => csr::Signature::Invalid,
            Signature::Unverifiable => csr::Signature::Unverifiable,
        },
    };
    csr::Csr {
        cluster_label: csr.labels.get(CLUSTER_NAME).map(|label| &**label),
        addon_label: csr.labels.get(ADDON_NAME).map(|label| &**label),
        grpc_user: csr.annotations.get(CSR_USER).map(|user| &**user),
        signer: &csr.signer,
        usages: &csr.usages,
        lifetime_seconds: csr.lifetime_seconds,
        requester: requester_facts(&csr.requester),
        content: match csr.unreadable.as_deref() {
            Some(why) => {
                let (common_names, organizations) = (content.common_names, content.organizations);
                Err(csr::Unreadable { why, common_names, organizations })
            }
            None => Ok(content),
        },
    }
}

/// A cluster as facts of the rules. They borrow from lists that live as long as the call.
pub fn with_cluster_facts<'a, T>(cluster: &Cluster<'a>, judge: impl FnOnce(&cluster::Cluster<'_, Text<'a>>) -> T) -> T {
    let labels: Vec<_> = cluster.labels.iter().map(|(key, value)| (key, &**value)).collect();
    let annotations: Vec<_> = cluster.annotations.iter().map(|(key, value)| (key, &**value)).collect();
    let owners: Vec<_> = cluster
        .owners
        .iter()
        .map(|owner| cluster::Owner {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
            uid: &owner.uid,
            controller: Some(owner.controller),
            block_owner_deletion: None,
        })
        .collect();
    let taints: Vec<_> = cluster
        .taints
        .iter()
        .map(|taint| cluster::Taint { key: &taint.key, value: &taint.value, effect: &taint.effect })
        .collect();
    let client_configs: Vec<_> = cluster
        .client_configs
        .iter()
        .map(|config| cluster::ClientConfig { url: &config.url, ca: config.ca_sha256.as_deref().unwrap_or_default() })
        .collect();
    judge(&cluster::Cluster {
        name: &cluster.name,
        labels: &labels,
        annotations: &annotations,
        finalizers: &cluster.finalizers,
        owners: &owners,
        taints: &taints,
        lease_duration_seconds: cluster.lease_duration_seconds,
        accepted: cluster.accepted,
        client_configs: &client_configs,
        other_fields: "",
    })
}

/// A violation of the rules as an answer.
pub fn violated(violation: Violation) -> Answer {
    let Violation { code, field, detail } = violation;
    about(deny(code.word(), bounded(detail)), field)
}

/// Several of them as one answer; none without any.
pub fn violated_by(violations: impl IntoIterator<Item = Violation>) -> Option<Answer> {
    let mut violations = violations.into_iter();
    let first = violated(violations.next()?);
    Some(violations.fold(first, |answer, Violation { code, field, detail }| {
        about(answer.because(code.word(), bounded(detail)), field)
    }))
}

/// The answer with the field that its last reason is about, if it is about one.
fn about(answer: Answer, field: &str) -> Answer {
    if field.is_empty() { answer } else { answer.at(field) }
}

/// Within what a message may hold, whatever somebody wrote into the object that it quotes.
fn bounded(mut detail: String) -> String {
    const MOST: usize = 1000;
    if detail.len() > MOST {
        detail.truncate((0..=MOST).rev().find(|end| detail.is_char_boundary(*end)).unwrap_or(0));
    }
    detail
}

/// Cluster and agent of an agent's user name; none for any other.
pub fn agent(user: &str) -> Option<(&str, &str)> {
    match Identity::of(user) {
        Identity::Agent { cluster, agent } => Some((cluster, agent)),
        _ => None,
    }
}

/// The cluster of an agent, or of an add-on's agent; none for anybody else.
pub fn cluster_of_agent(user: &str) -> Option<&str> {
    Identity::of(user).cluster()
}

/// Who wants it: of a certificate request whoever created it, of all else whoever makes the API request, so of an acceptance who
/// accepts. Where a request itself names a creator, as one from a file may, it is that one.
pub fn asker<'r, 'a>(request: &'r Request<'a>) -> &'r Requester<'a> {
    match request.csr() {
        Some(csr) => &csr.requester,
        None => request.creator().unwrap_or_else(|| request.requester()),
    }
}

/// The user who asks. Behind the hub's gRPC server, and there only, the one that it names; none that it does not name.
pub fn asking_user<'r>(request: &'r Request<'_>) -> &'r str {
    let asker = asker(request);
    match request.csr() {
        Some(csr) if is_grpc_server(asker) => csr.annotations.get(CSR_USER).map_or("", |user| user),
        _ => &asker.username,
    }
}

/// Whether this is the hub's gRPC server, and not somebody who impersonates it.
pub fn is_grpc_server(requester: &Requester<'_>) -> bool {
    requester_facts(requester).is_grpc_server()
}

/// Whether this only says no to a certificate request, which no rule for approvals is against.
pub fn is_denial(request: &Request<'_>) -> bool {
    request.csr().and_then(|csr| csr.adds_condition.as_deref()).is_some_and(|kind| kind != "Approved")
}

/// Whether an agent asks for its own name again: the common name is the user who asks.
pub fn is_renewal(request: &Request<'_>) -> bool {
    let Some(csr) = request.csr() else { return false };
    let facts = csr_facts(csr);
    matches!(csr::about(&facts), Ok(Some(About::Agent { cluster, .. })) if facts.is_renewal(cluster))
}

/// Whether this is about an add-on's certificate: it brings no cluster in, and others judge it. Whoever asks for the
/// name or the groups of a cluster's agent asks for no add-on's, whatever a label says.
pub fn is_addons(request: &Request<'_>) -> bool {
    request.csr().is_some_and(|csr| csr_facts(csr).is_addons())
}

/// The name of the cluster that this is about: the ManagedCluster's, or the one whose agent's certificate is asked for.
/// None if it has nothing to do with any cluster, or the cluster has no name yet.
///
/// # Errors
/// Where that is not clear, such as where label and common name disagree, one of [`CLUSTER_CODES`]: nobody may go on with such a
/// request.
pub fn cluster_name<'r>(request: &'r Request<'_>) -> Result<Option<&'r str>, Violation> {
    let cluster = request.cluster().map(|cluster| &*cluster.name).filter(|name| !name.is_empty());
    let Some(csr) = request.csr() else { return Ok(cluster) };
    let about = csr::about(&csr_facts(csr))?.map(About::cluster);
    match (cluster, about) {
        (Some(cluster), Some(about)) if cluster != about => Err(Violation::new(
            Code::ClusterLabel,
            "metadata.labels",
            "the certificate request is about another cluster",
        )),
        _ => Ok(about.or(cluster)),
    }
}

/// The codes of what [`cluster_name`] finds unclear.
pub const CLUSTER_CODES: [Code; 5] =
    [Code::Unreadable, Code::ClusterLabel, Code::AddonLabel, Code::CommonNames, Code::CommonName];

/// Whether this writes to a part of an object that is written apart, such as its status.
pub fn is_subresource(request: &Request<'_>) -> bool {
    request.resource().is_some_and(|resource| resource.subresource.is_some())
}

/// The set of a cluster; none where it is in none.
pub fn cluster_set<'c>(cluster: &'c Cluster<'_>) -> Option<&'c str> {
    cluster.labels.get(CLUSTER_SET).map(|set| &**set).filter(|set| !set.is_empty())
}

/// The answer of a policy that looks at labels, annotations or another member of the cluster of which something was left out, as
/// `truncated` says: what it does not find may be there. `key` is the label or the annotation that it looks for; without one it
/// looks at all of them. None: it sees what it looks at.
///
/// None also for updates of its status, and of a cluster that had too much before where the host shows all that the update changes
/// of the member ([`CHANGES_SHOWN`]): whoever inflates a cluster is refused, and keeps others from writing to it afterwards no more
/// than they hide what they write. An acceptance that takes labels away in the same write may hide which, as an update may.
pub fn left_out(request: &Request<'_>, member: &str, key: Option<&str>) -> Option<Answer> {
    let is_cut = |cluster: &Cluster<'_>| cluster.truncated.iter().any(|cut| cut == member);
    let cluster = request.cluster()?;
    let entries = match member {
        "labels" => Some(&cluster.labels),
        "annotations" => Some(&cluster.annotations),
        _ => None,
    };
    let is_found = key.zip(entries).is_some_and(|(key, entries)| entries.contains(key));
    let is_previous_cut = request.previous().is_some_and(is_cut);
    let hides_changes = is_previous_cut && !shows_changes(cluster, member);
    let counts = match request.operation() {
        Operation::Create | Operation::Join => is_cut(cluster),
        // What it takes away in the same write may count as well.
        Operation::Accept => is_cut(cluster) || hides_changes,
        Operation::Update if is_subresource(request) => false,
        Operation::Update if is_previous_cut => hides_changes,
        Operation::Update => is_cut(cluster),
        _ => false,
    };
    (counts && !is_found).then(|| not_shown(member))
}

/// The answer of a policy that looks at a member of the cluster of which something was left out, whatever is asked. [`left_out`]
/// tells where that counts.
pub fn not_shown(member: &str) -> Answer {
    let said = format!("the cluster has more {member} than policies are shown, and what was left out may count");
    let field = match member {
        "labels" => "metadata.labels",
        "annotations" => "metadata.annotations",
        other => other,
    };
    hold(Code::EvidenceIncomplete.word(), said).at(field)
}

/// Whether the host says that it shows all that an update changes of a member.
fn shows_changes(cluster: &Cluster<'_>, member: &str) -> bool {
    let shown = cluster.more.get(CHANGES_SHOWN).and_then(|shown| shown.as_array());
    shown.is_some_and(|shown| shown.iter().any(|one| one == member))
}

/// Whether this requester may ask for a cluster's first certificate: the bootstrap service account, a bootstrap token
/// of the right group, or one of these users.
pub fn bootstraps(requester: &Requester<'_>, users: &[String]) -> bool {
    requester_facts(requester).bootstraps(users)
}

/// Whether this is the name of a bootstrap token's user.
pub fn is_bootstrap_token(user: &str) -> bool {
    matches!(Identity::of(user), Identity::BootstrapToken { .. })
}

/// The ID of the token that somebody shows; none for certificates, and for tokens that have none.
pub fn token_id<'r>(requester: &'r Requester<'_>) -> Option<&'r str> {
    requester_facts(requester).token_id()
}

/// What somebody with the name of a service account or a bootstrap token lacks of one: who impersonates another has the
/// name, but not the UID and the groups.
pub fn lacks(requester: &Requester<'_>) -> Option<&'static str> {
    requester_facts(requester).lack()
}

/// Namespace and name of a service account's user.
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

/// Whether the requester is in a group.
pub fn is_in(requester: &Requester<'_>, group: &str) -> bool {
    requester.groups.iter().any(|known| known == group)
}

/// Whether a key of labels, annotations or taints stands below a domain of the hub, of Kubernetes or of these policies.
/// Only grants that name such a key in full reach it.
pub fn is_system_key(key: &str) -> bool {
    name::is_system_key(key)
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi as abi;

    use super::*;

    #[test]
    fn agents_and_add_ons_are_told_apart() {
        assert_eq!(agent("system:open-cluster-management:c1:a1"), Some(("c1", "a1")));
        for other in [
            "system:open-cluster-management:c1",
            "system:open-cluster-management:c1:",
            "c1:a1",
            "system:open-cluster-management:cluster:c1:addon:x",
        ] {
            assert_eq!(agent(other), None, "{other}");
        }
        assert_eq!(cluster_of_agent("system:open-cluster-management:cluster:c1:addon:x"), Some("c1"));
        assert_eq!(cluster_of_agent("system:open-cluster-management:c1:a1"), Some("c1"));
        // An agent of a cluster with this name is no add-on of a cluster that is named as the agent.
        assert_eq!(cluster_of_agent("system:open-cluster-management:cluster:a1"), Some("cluster"));
    }

    #[test]
    fn what_was_left_out_is_missed_by_whoever_looks_for_it_unless_a_cluster_only_stays_as_it_was() {
        let cut = || Cluster {
            labels: [("env", "prod")].into_iter().map(|(key, value)| (key, Text::from(value))).collect(),
            truncated: vec!["labels".into()],
            ..Cluster::default()
        };
        let by = |user: &'static str| Requester { username: user.into(), ..Requester::default() };
        let misses = |request: abi::Request<'_>, member: &str, key| left_out(&request.into(), member, key).is_some();
        let asked = |operation, user| abi::Request { cluster: Some(cut()), ..abi::Request::new(operation, by(user)) };
        for operation in Operation::ALL {
            let expected =
                matches!(operation, Operation::Create | Operation::Join | Operation::Accept | Operation::Update);
            assert_eq!(misses(asked(operation, "eve"), "labels", Some("z")), expected, "{operation:?}");
            assert_eq!(misses(asked(operation, "eve"), "labels", None), expected, "{operation:?}");
            assert!(!misses(asked(operation, "eve"), "labels", Some("env")), "it is there");
            assert!(!misses(asked(operation, "eve"), "annotations", None), "they are all there");
        }
        let update = |user| asked(Operation::Update, user);
        let stays = |shown: &[&str], cluster| {
            let more = [(CHANGES_SHOWN, serde_json::json!(shown))].into_iter().collect();
            let cluster = Some(Cluster { more, ..cluster });
            abi::Request { cluster, previous: Some(cut()), ..update("eve") }
        };
        let status = abi::Resource { subresource: Some("status".into()), ..abi::Resource::default() };
        assert!(!misses(stays(&["labels"], cut()), "labels", None));
        assert!(misses(stays(&["annotations"], cut()), "labels", None), "what it changes may be hidden");
        assert!(misses(stays(&[], Cluster::default()), "labels", None), "what it takes away may be");
        assert!(misses(abi::Request { previous: Some(cut()), ..update("eve") }, "labels", None), "nobody says so");
        assert!(!misses(abi::Request { resource: Some(status), ..update("eve") }, "labels", None));
        let accepted = |request: abi::Request<'static>| abi::Request { operation: Operation::Accept, ..request };
        assert!(misses(accepted(stays(&[], Cluster::default())), "labels", None), "what it takes away may be hidden");
        assert!(!misses(accepted(stays(&["labels"], Cluster::default())), "labels", None));
    }

    #[test]
    fn no_service_account_hides_what_it_writes() {
        for (namespace, name) in [("argocd", "app"), ("open-cluster-management-hub", "grpc-server-sa")] {
            let requester = Requester {
                username: format!("system:serviceaccount:{namespace}:{name}").into(),
                uid: Some("u".into()),
                groups: vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}").into()],
                ..Requester::default()
            };
            assert_eq!(lacks(&requester), None);
            let cluster = Cluster { truncated: vec!["labels".into()], ..Cluster::default() };
            let request = abi::Request { cluster: Some(cluster), ..abi::Request::new(Operation::Update, requester) };
            assert!(left_out(&request.into(), "labels", None).is_some(), "{namespace}");
        }
    }

    #[test]
    fn borrowed_names_are_seen() {
        let mut requester = Requester { username: BOOTSTRAP_USER.into(), ..Requester::default() };
        assert!(lacks(&requester).is_some());
        requester.uid = Some("u".into());
        requester.groups =
            vec!["system:serviceaccounts".into(), "system:serviceaccounts:open-cluster-management".into()];
        assert_eq!(lacks(&requester), None);
        requester.extra.insert(CREDENTIAL_ID, vec!["X509SHA256=00".into()]);
        assert!(lacks(&requester).is_some());
    }

    #[test]
    fn keys_of_systems_are_known() {
        assert!(
            is_system_key("kubectl-ocm/creator-credential")
                && is_system_key("kubernetes.io/a")
                && is_system_key("x.open-cluster-management.io/a")
        );
        assert!(!is_system_key("a") && !is_system_key("mykubernetes.io/a"));
    }
}

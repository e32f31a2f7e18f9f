//! Managed clusters: what a name, a creation and a change may bring (rules M1 to M5).

use crate::code::{Quoted, quoted};
use crate::{Code, Violation, aws, glob, name};

/// Label of a ManagedCluster: the set that it is in.
pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";
/// The set of clusters that no other was named for.
pub const DEFAULT_SET: &str = "default";
/// Finalizers that the hub itself puts on ManagedClusters.
pub const HUB_FINALIZERS: &[&str] =
    &["cluster.open-cluster-management.io/api-resource-cleanup", "cluster.open-cluster-management.io/resource-cleanup"];
/// Taints that the hub itself puts on ManagedClusters.
pub const HUB_TAINTS: &[&str] =
    &["cluster.open-cluster-management.io/unavailable", "cluster.open-cluster-management.io/unreachable"];
/// Annotation that the hub itself puts on a ManagedCluster that it accepts without asking anybody.
pub const ACCEPTED_BY_HUB: &str = "open-cluster-management.io/automatically-accepted-on";
/// The value of [`ACCEPTED_BY_HUB`] by which the policy controller holds a ManagedCluster: the hub accepts none by itself
/// that has the annotation, whatever it says.
pub const HELD: &str = "held-by-policy.kubectl-ocm.dev";

/// Annotation of a ManagedCluster: the credential that registered it, as the policy `name-claim` notes it.
pub const CREATOR: &str = "kubectl-ocm/creator-credential";
/// Labels and annotations of a ManagedCluster by which the hub and the policies that come along decide.
pub const TELLING: [&str; 5] = [CLUSTER_SET, ACCEPTED_BY_HUB, CREATOR, aws::CLUSTER_ARN, aws::ROLE_SUFFIX];

/// Whether the value of [`ACCEPTED_BY_HUB`] says that the hub itself accepted a cluster.
pub fn is_accepted_by_hub(value: Option<&str>) -> bool {
    value.is_some_and(|value| value != HELD)
}

/// A ManagedCluster.
#[derive(Debug)]
pub struct Cluster<'a, S> {
    /// Its name.
    pub name: &'a str,
    /// `metadata.labels`.
    pub labels: &'a [(&'a str, &'a str)],
    /// `metadata.annotations`.
    pub annotations: &'a [(&'a str, &'a str)],
    /// `metadata.finalizers`.
    pub finalizers: &'a [S],
    /// `metadata.ownerReferences`.
    pub owners: &'a [Owner<'a>],
    /// `spec.taints`.
    pub taints: &'a [Taint<'a>],
    /// `spec.leaseDurationSeconds`.
    pub lease_duration_seconds: Option<i64>,
    /// `spec.hubAcceptsClient`.
    pub accepted: bool,
    /// `spec.managedClusterClientConfigs`.
    pub client_configs: &'a [ClientConfig<'a>],
    /// Fields that are none of the above, as anything that differs where they differ, such as a digest.
    pub other_fields: &'a str,
}

impl<S> Clone for Cluster<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Cluster<'_, S> {}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner<'a> {
    /// API version.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Name.
    pub name: &'a str,
    /// UID.
    pub uid: &'a str,
    /// Whether it is the managing controller.
    pub controller: Option<bool>,
    /// Whether the owner cannot be deleted before.
    pub block_owner_deletion: Option<bool>,
}

/// An entry of `spec.taints`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taint<'a> {
    /// Key.
    pub key: &'a str,
    /// Value.
    pub value: &'a str,
    /// Effect.
    pub effect: &'a str,
}

/// An entry of `spec.managedClusterClientConfigs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientConfig<'a> {
    /// URL of the API server.
    pub url: &'a str,
    /// The CA bundle, or a digest of it.
    pub ca: &'a str,
}

/// What those who register clusters may bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Patterns of names that the hub uses, besides the known ones.
    pub reserved: Vec<String>,
    /// Patterns of keys of labels. Those below the domains of the hub and of Kubernetes must be named in full.
    pub labels: Vec<String>,
    /// Patterns of keys of annotations. Those below the domains of the hub and of Kubernetes must be named in full, or
    /// up to their `/`.
    pub annotations: Vec<String>,
    /// Sets besides `default`.
    pub cluster_sets: Vec<String>,
    /// Shortest lease.
    pub min_lease_seconds: i64,
    /// Longest lease.
    pub max_lease_seconds: i64,
    /// Whether the hub's own controllers may have written since: their finalizers, taints and annotation are then no
    /// violation.
    pub after_hub: bool,
}

/// Annotations that are the agent's own.
pub const AGENT_ANNOTATIONS: &str = "agent.open-cluster-management.io/*";

impl Default for Settings {
    fn default() -> Self {
        Self {
            reserved: Vec::new(),
            labels: Vec::new(),
            annotations: vec![AGENT_ANNOTATIONS.to_owned()],
            cluster_sets: Vec::new(),
            min_lease_seconds: 10,
            max_lease_seconds: 3600,
            after_hub: false,
        }
    }
}

/// What agents may change of their own cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// Patterns of keys of annotations.
    pub annotations: Vec<String>,
    /// Whether agents say how the hub reaches their clusters.
    pub client_configs: bool,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { annotations: vec![AGENT_ANNOTATIONS.to_owned()], client_configs: true }
    }
}

/// Whether a pattern grants a key. A key below a domain of the hub or of Kubernetes is reached only by patterns that
/// name this domain in full.
pub fn grants(patterns: &[String], key: &str) -> bool {
    patterns.iter().any(|pattern| {
        let reaches = match key.split_once('/') {
            Some((domain, _)) if name::is_system_key(key) => {
                pattern.split_once('/').is_some_and(|(named, _)| named == domain)
            }
            _ => true,
        };
        reaches && glob::fits(pattern, key)
    })
}

/// What binds everybody who creates a cluster: the name (M1) and a sane lease.
pub fn creation<S: AsRef<str>>(cluster: &Cluster<'_, S>, settings: &Settings) -> Vec<Violation> {
    let mut found = Vec::new();
    found.extend(name::check(cluster.name, &settings.reserved));
    let sane = settings.min_lease_seconds..=settings.max_lease_seconds;
    if let Some(seconds) = cluster.lease_duration_seconds.filter(|seconds| !sane.contains(seconds)) {
        let detail = format!("a lease of {seconds}s, where {}s to {}s are allowed", sane.start(), sane.end());
        found.push(Violation::new(Code::LeaseDuration, "spec.leaseDurationSeconds", detail));
    }
    found
}

/// What besides binds those who register clusters, but no administrators (M2).
pub fn registration<S: AsRef<str>>(cluster: &Cluster<'_, S>, settings: &Settings) -> Vec<Violation> {
    let mut found = Vec::new();
    if cluster.accepted {
        let detail = "a cluster is accepted only once it has registered";
        found.push(Violation::new(Code::AcceptedAtCreation, "spec.hubAcceptsClient", detail));
    }
    let set = cluster.labels.iter().find(|(key, _)| *key == CLUSTER_SET).map_or("", |(_, set)| *set);
    if !set.is_empty() && set != DEFAULT_SET && !settings.cluster_sets.iter().any(|known| known == set) {
        let detail = format!("it chooses the cluster set {}", Quoted(set));
        found.push(Violation::new(Code::ClusterSet, "metadata.labels", detail));
    }
    let mut none_of = |code, field, what: &str, foreign: &mut dyn Iterator<Item = &str>| {
        let mut foreign = foreign.peekable();
        if foreign.peek().is_some() {
            found.push(Violation::new(code, field, format!("{what} {}", quoted(foreign))));
        }
    };
    let labels = &mut keys(cluster.labels).filter(|key| *key != CLUSTER_SET && !grants(&settings.labels, key));
    none_of(Code::Labels, "metadata.labels", "labels", labels);
    let ours = |known: &[&str], key: &str| settings.after_hub && known.contains(&key);
    let annotations = &mut keys(cluster.annotations)
        .filter(|key| !grants(&settings.annotations, key) && !ours(&[ACCEPTED_BY_HUB], key));
    none_of(Code::Annotations, "metadata.annotations", "annotations", annotations);
    let taints = &mut cluster.taints.iter().map(|taint| taint.key).filter(|key| !ours(HUB_TAINTS, key));
    none_of(Code::Taints, "spec.taints", "taints", taints);
    let finalizers = &mut cluster.finalizers.iter().map(AsRef::as_ref).filter(|key| !ours(HUB_FINALIZERS, key));
    none_of(Code::Finalizers, "metadata.finalizers", "finalizers", finalizers);
    let owners = &mut cluster.owners.iter().map(|owner| owner.name);
    none_of(Code::OwnerReferences, "metadata.ownerReferences", "owners", owners);
    found
}

/// A member of a ManagedCluster that its agent may not change, or not wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// `metadata.labels`.
    Labels,
    /// `metadata.annotations`.
    Annotations,
    /// `spec.taints`.
    Taints,
    /// `metadata.finalizers`.
    Finalizers,
    /// `metadata.ownerReferences`.
    OwnerReferences,
    /// `spec.leaseDurationSeconds`.
    LeaseDuration,
    /// `spec.hubAcceptsClient`.
    HubAcceptsClient,
    /// `spec.managedClusterClientConfigs`.
    ClientConfigs,
    /// Every other field that neither the agent nor the API server writes.
    OtherFields,
}

impl Member {
    /// What it is that an agent has changed it.
    fn changed(self) -> Violation {
        let (code, field, what) = match self {
            Self::Labels => (Code::Labels, "metadata.labels", "labels"),
            Self::Annotations => (Code::Annotations, "metadata.annotations", "annotations"),
            Self::Taints => (Code::Taints, "spec.taints", "taints"),
            Self::Finalizers => (Code::Finalizers, "metadata.finalizers", "finalizers"),
            Self::OwnerReferences => (Code::OwnerReferences, "metadata.ownerReferences", "owners"),
            Self::LeaseDuration => (Code::LeaseDuration, "spec.leaseDurationSeconds", "lease duration"),
            Self::HubAcceptsClient => (Code::HubAcceptsClient, "spec.hubAcceptsClient", "acceptance"),
            Self::ClientConfigs => (Code::ClientConfigs, "spec.managedClusterClientConfigs", "client configs"),
            Self::OtherFields => (Code::OtherFields, "spec", "other fields"),
        };
        Violation::new(code, field, format!("an agent may not change the {what} of its cluster"))
    }
}

/// What an agent may change of its own cluster (M4), and the hub's gRPC server on behalf of agents (M5). `beyond` are the
/// members that differ in what these facts leave out of the objects, such as when a taint was added, or of which too much
/// is left out to tell.
pub fn agent_change<S: AsRef<str>>(
    before: &Cluster<'_, S>,
    after: &Cluster<'_, S>,
    beyond: &[Member],
    settings: &AgentSettings,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut rule = |changed: bool, member: Member| {
        if changed {
            found.push(member.changed());
        }
    };
    let set = |cluster: &Cluster<'_, S>| {
        let set = cluster.labels.iter().find(|(key, _)| *key == CLUSTER_SET).map(|(_, set)| *set);
        set.unwrap_or_default().to_owned()
    };
    // The hub's webhook puts what has no set into the default one, whoever writes.
    let by_hub = set(before).is_empty() && set(after) == DEFAULT_SET;
    let labels = differ(before.labels, after.labels, |key| key == CLUSTER_SET && by_hub);
    rule(labels, Member::Labels);
    let annotations = differ(before.annotations, after.annotations, |key| grants(&settings.annotations, key));
    rule(annotations, Member::Annotations);
    rule(before.taints != after.taints, Member::Taints);
    let finalizers = !before.finalizers.iter().map(AsRef::as_ref).eq(after.finalizers.iter().map(AsRef::as_ref));
    rule(finalizers, Member::Finalizers);
    rule(before.owners != after.owners, Member::OwnerReferences);
    rule(before.lease_duration_seconds != after.lease_duration_seconds, Member::LeaseDuration);
    rule(before.accepted != after.accepted, Member::HubAcceptsClient);
    let configs = !settings.client_configs && before.client_configs != after.client_configs;
    rule(configs, Member::ClientConfigs);
    rule(before.other_fields != after.other_fields, Member::OtherFields);
    for member in beyond.iter().filter(|member| **member != Member::ClientConfigs || !settings.client_configs) {
        let violation = member.changed();
        if !found.contains(&violation) {
            found.push(violation);
        }
    }
    found
}

/// Whether any entry differs but those that may.
fn differ(before: &[(&str, &str)], after: &[(&str, &str)], may: impl Fn(&str) -> bool) -> bool {
    let gone =
        |one: &[(&str, &str)], other: &[(&str, &str)]| one.iter().any(|entry| !may(entry.0) && !other.contains(entry));
    gone(before, after) || gone(after, before)
}

fn keys<'a>(entries: &'a [(&'a str, &'a str)]) -> impl Iterator<Item = &'a str> {
    entries.iter().map(|(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Cluster<'_, &str> = Cluster {
        name: "c1",
        labels: &[(CLUSTER_SET, DEFAULT_SET)],
        annotations: &[("agent.open-cluster-management.io/a", "b")],
        finalizers: &[],
        owners: &[],
        taints: &[],
        lease_duration_seconds: Some(60),
        accepted: false,
        client_configs: &[],
        other_fields: "",
    };

    fn codes(violations: &[Violation]) -> Vec<Code> {
        violations.iter().map(|violation| violation.code).collect()
    }

    #[test]
    fn who_registers_brings_a_name_and_nothing_else() {
        let settings = Settings::default();
        assert_eq!(registration(&PLAIN, &settings), []);
        let taint = Taint { key: HUB_TAINTS[0], value: "", effect: "NoSelect" };
        for (cluster, code) in [
            (Cluster { accepted: true, ..PLAIN }, Code::AcceptedAtCreation),
            (Cluster { labels: &[(CLUSTER_SET, "prod")], ..PLAIN }, Code::ClusterSet),
            (Cluster { labels: &[("env", "prod")], ..PLAIN }, Code::Labels),
            (Cluster { annotations: &[("a", "b")], ..PLAIN }, Code::Annotations),
            (Cluster { taints: &[taint], ..PLAIN }, Code::Taints),
            (Cluster { finalizers: &[HUB_FINALIZERS[0]], ..PLAIN }, Code::Finalizers),
            (Cluster { owners: &[Owner { name: "x", ..Owner::default() }], ..PLAIN }, Code::OwnerReferences),
        ] {
            assert_eq!(codes(&registration(&cluster, &settings)), [code]);
        }
        let later = Settings { after_hub: true, cluster_sets: vec!["prod".to_owned()], ..settings };
        let by_hub = Cluster {
            labels: &[(CLUSTER_SET, "prod")],
            annotations: &[(ACCEPTED_BY_HUB, "2026-01-01T00:00:00Z")],
            taints: &[taint],
            finalizers: HUB_FINALIZERS,
            ..PLAIN
        };
        assert_eq!(registration(&by_hub, &later), []);
    }

    #[test]
    fn what_holds_a_cluster_is_no_acceptance() {
        assert!(is_accepted_by_hub(Some("2026-01-01T00:00:00Z")));
        assert!(!is_accepted_by_hub(Some(HELD)) && !is_accepted_by_hub(None));
    }

    #[test]
    fn everybody_is_bound_by_name_and_lease() {
        let of = |cluster| codes(&creation(&cluster, &Settings::default()));
        assert_eq!(of(PLAIN), []);
        for seconds in [0, -1, 9, 3601, 315_360_000] {
            assert_eq!(of(Cluster { lease_duration_seconds: Some(seconds), ..PLAIN }), [Code::LeaseDuration]);
        }
        assert_eq!(of(Cluster { name: "cluster", ..PLAIN }), [Code::NameReserved]);
        assert_eq!(of(Cluster { name: "A", ..PLAIN }), [Code::NameForm]);
    }

    #[test]
    fn wildcards_do_not_reach_keys_of_systems() {
        let all = ["*".to_owned()];
        assert!(grants(&all, "env") && grants(&all, "example.com/env"));
        assert!(!grants(&all, "kubectl-ocm/creator-credential") && !grants(&all, CLUSTER_SET));
        let named = ["cluster.open-cluster-management.io/*".to_owned()];
        assert!(grants(&named, CLUSTER_SET) && !grants(&named, "agent.open-cluster-management.io/x"));
    }

    #[test]
    fn agents_change_only_what_is_theirs() {
        let settings = AgentSettings::default();
        let owner = Owner { name: "x", uid: "1", ..Owner::default() };
        let before = Cluster { owners: std::slice::from_ref(&owner), ..PLAIN };
        assert_eq!(agent_change(&before, &before, &[], &settings), []);
        let theirs = Cluster {
            annotations: &[("agent.open-cluster-management.io/a", "c")],
            client_configs: &[ClientConfig { url: "https://a", ca: "" }],
            ..before
        };
        assert_eq!(agent_change(&before, &theirs, &[], &settings), []);
        let without_set = Cluster { labels: &[], ..before };
        assert_eq!(agent_change(&without_set, &before, &[], &settings), [], "the hub's webhook adds the default set");
        let other = Owner { uid: "2", ..owner };
        for (after, code) in [
            (Cluster { labels: &[], ..before }, Code::Labels),
            (Cluster { labels: &[(CLUSTER_SET, "prod")], ..before }, Code::Labels),
            (Cluster { annotations: &[("a", "b")], ..theirs }, Code::Annotations),
            (Cluster { finalizers: &["a"], ..before }, Code::Finalizers),
            (Cluster { owners: std::slice::from_ref(&other), ..before }, Code::OwnerReferences),
            (Cluster { taints: &[Taint { key: "a", ..Taint::default() }], ..before }, Code::Taints),
            (Cluster { lease_duration_seconds: None, ..before }, Code::LeaseDuration),
            (Cluster { accepted: true, ..before }, Code::HubAcceptsClient),
            (Cluster { other_fields: "x", ..before }, Code::OtherFields),
        ] {
            assert_eq!(codes(&agent_change(&before, &after, &[], &settings)), [code]);
        }
        let strict = AgentSettings { client_configs: false, ..settings };
        assert_eq!(codes(&agent_change(&before, &theirs, &[], &strict)), [Code::ClientConfigs]);
    }

    #[test]
    fn what_the_facts_leave_out_counts_once() {
        let strict = AgentSettings { client_configs: false, ..AgentSettings::default() };
        let of = |after: &Cluster<'_, &str>, beyond: &[Member]| codes(&agent_change(&PLAIN, after, beyond, &strict));
        let labelled = Cluster { labels: &[("a", "b")], lease_duration_seconds: None, ..PLAIN };
        let both = [Code::Labels, Code::LeaseDuration];
        assert_eq!(of(&labelled, &[Member::Labels]), both);
        assert_eq!(of(&PLAIN, &[Member::OtherFields, Member::Taints]), [Code::OtherFields, Code::Taints]);
        for (member, code) in [
            (Member::Labels, Code::Labels),
            (Member::Annotations, Code::Annotations),
            (Member::Taints, Code::Taints),
            (Member::Finalizers, Code::Finalizers),
            (Member::OwnerReferences, Code::OwnerReferences),
            (Member::LeaseDuration, Code::LeaseDuration),
            (Member::HubAcceptsClient, Code::HubAcceptsClient),
            (Member::ClientConfigs, Code::ClientConfigs),
            (Member::OtherFields, Code::OtherFields),
        ] {
            assert_eq!(of(&PLAIN, &[member, member]), [code]);
        }
        let theirs = agent_change(&PLAIN, &PLAIN, &[Member::ClientConfigs], &AgentSettings::default());
        assert_eq!(theirs, []);
    }
}

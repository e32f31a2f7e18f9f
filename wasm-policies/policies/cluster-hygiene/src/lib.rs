//! A new cluster is what it should be: name, set, labels, annotations, lease.

use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{
    Answer, Cluster, Decision, EvidenceSource, Manifest, Operation, Policy, Request, allow, deny, glob, hold, hub,
    manifest,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterHygiene {
    /// Names, as patterns, that are the hub's own, besides the known ones.
    reserved: Vec<String>,
    /// Users who register clusters besides the hub's bootstrap identities.
    requesters: Vec<String>,
    /// Keys, as patterns, of labels that they may set.
    labels: Vec<String>,
    /// Keys, as patterns, of annotations that they may set.
    annotations: Vec<String>,
    min_lease_seconds: i64,
    max_lease_seconds: i64,
}

impl Default for ClusterHygiene {
    fn default() -> Self {
        Self {
            reserved: Vec::new(),
            requesters: Vec::new(),
            labels: Vec::new(),
            annotations: vec!["agent.open-cluster-management.io/*".to_owned()],
            min_lease_seconds: 10,
            max_lease_seconds: 3600,
        }
    }
}

const NAMESPACES: &str = "namespaces";
const RESERVED: [&str; 5] =
    ["default", "managed-clusters", "open-cluster-management", "open-cluster-management-*", "kube-*"];

impl Policy for ClusterHygiene {
    type Settings = Self;

    fn manifest() -> impl Into<Manifest> {
        let label = "/metadata/labels/open-cluster-management.io~1cluster-name";
        manifest("cluster-hygiene", env!("CARGO_PKG_VERSION"), "Lets in new clusters that are as they should be")
            .judges([Operation::Create])
            .needs(NAMESPACES, EvidenceSource::Namespaces, &[label])
            .gives("cluster-missing", "There is no cluster to look at")
            .gives("name-form", "The name is no DNS label")
            .gives("name-reserved", "The name is one that the hub uses itself")
            .gives("namespace-foreign", "A namespace of this name belongs to somebody else")
            .gives("evidence-incomplete", "The namespaces of the hub could not be read to the end")
            .gives("lease-duration", "The lease duration is too short or too long")
            .gives("accepted", "The cluster is accepted from the start")
            .gives("cluster-set", "The cluster chooses its set")
            .gives("label", "There is a label that whoever registers a cluster may not set")
            .gives("annotation", "There is an annotation that whoever registers a cluster may not set")
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let patterns = settings.reserved.iter().chain(&settings.labels).chain(&settings.annotations);
        let mut wrong: Vec<String> = patterns.filter_map(|pattern| glob::check(pattern).err()).collect();
        if settings.min_lease_seconds < 1 || settings.min_lease_seconds > settings.max_lease_seconds {
            wrong.push("minLeaseSeconds has to be at least 1 and at most maxLeaseSeconds".to_owned());
        }
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> impl Into<Decision> {
        self.judge(request)
    }
}

impl ClusterHygiene {
    fn judge(&self, request: &Request<'_>) -> Answer {
        let Some(cluster) = &request.cluster else { return deny("cluster-missing", "there is no cluster") };
        let mut wrong = self.of_all(cluster);
        let user = &*request.requester.username;
        // By its name: who only acts as one of them is bound all the more.
        let registers = user == hub::BOOTSTRAP_USER
            || hub::is_bootstrap_token(user)
            || user == hub::GRPC_SERVER
            || hub::cluster_of_agent(user).is_some()
            || self.requesters.iter().any(|known| known == user);
        if registers {
            self.of_registering(cluster, &mut wrong);
        }
        let mut wrong = wrong.into_iter();
        if let Some((code, message, field)) = wrong.next() {
            return wrong.fold(deny(code, message).at(field), |answer, (code, message, field)| {
                answer.because(code, message).at(field)
            });
        }
        // Last, because it may be asked again, and what is wrong stays wrong.
        let table = request.evidence.get(NAMESPACES);
        let namespace = table.and_then(|table| table.rows.iter().find(|row| row.name == *cluster.name));
        match (namespace, table) {
            (Some(row), _) if row.values.first().and_then(Value::as_str) == Some(&*cluster.name) => allow(),
            (Some(_), _) => {
                deny("namespace-foreign", "a namespace of this name belongs to somebody else").at("metadata.name")
            }
            (None, Some(table)) if table.complete => allow(),
            (None, _) => hold("evidence-incomplete", "the namespaces could not be read to the end").again_in(60),
        }
    }

    /// What binds everybody.
    fn of_all(&self, cluster: &Cluster<'_>) -> Breaches {
        let mut wrong = Breaches::new();
        if !hub::is_dns_label(&cluster.name) {
            wrong.push(("name-form", "the name must be a DNS label of at most 63 characters", "metadata.name"));
        }
        if glob::any(&RESERVED, &cluster.name) || glob::any(&self.reserved, &cluster.name) {
            wrong.push(("name-reserved", "the hub uses this name itself", "metadata.name"));
        }
        let sane = self.min_lease_seconds..=self.max_lease_seconds;
        if cluster.lease_duration_seconds.is_some_and(|seconds| !sane.contains(&seconds)) {
            wrong.push(("lease-duration", "the lease is too short or too long", "spec.leaseDurationSeconds"));
        }
        wrong
    }

    /// What binds those who register clusters, but no administrators.
    fn of_registering(&self, cluster: &Cluster<'_>, wrong: &mut Breaches) {
        if cluster.accepted {
            wrong.push(("accepted", "a cluster is accepted only once it is there", "spec.hubAcceptsClient"));
        }
        if hub::cluster_set(cluster).is_some_and(|set| set != hub::DEFAULT_SET) {
            wrong.push(("cluster-set", "whoever registers a cluster may not choose its set", "metadata.labels"));
        }
        if cluster.labels.iter().any(|(key, _)| key != hub::CLUSTER_SET && !glob::any(&self.labels, key)) {
            wrong.push(("label", "there are labels that may not be set here", "metadata.labels"));
        }
        if cluster.annotations.iter().any(|(key, _)| !glob::any(&self.annotations, key)) {
            wrong.push(("annotation", "there are annotations that may not be set here", "metadata.annotations"));
        }
    }
}

/// Rules that are broken: code, message, field.
type Breaches = Vec<(&'static str, &'static str, &'static str)>;

ocm_policy_sdk::export!(ClusterHygiene);

//! A new cluster is what it should be: name, set, labels, annotations, lease; and one that is accepted still has its name to
//! itself. The rules are those of `ocm-rules`.

use ocm_policy_sdk::rules::cluster::{self, Settings};
use ocm_policy_sdk::rules::{Code, Violation, claim, identity, name};
use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{
    Answer, Cluster, EvidenceSource, ManifestBuilder, Operation, Policy, Request, Stage, Text, allow, deny, glob, hold,
    hub, manifest,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClusterHygiene {
    /// Names, as patterns, that are the hub's own, besides the known ones.
    reserved: Vec<String>,
    /// Users who register clusters besides the hub's bootstrap identities.
    requesters: Vec<String>,
    /// Keys, as patterns, of labels that they may set.
    labels: Vec<String>,
    /// Keys, as patterns, of annotations that they may set.
    annotations: Option<Vec<String>>,
    min_lease_seconds: Option<i64>,
    max_lease_seconds: Option<i64>,
    #[serde(skip)]
    rules: Settings,
}

const NAMESPACES: &str = "namespaces";

/// What the rules may find.
const CODES: [Code; 14] = [
    Code::ClusterMissing,
    Code::Detaching,
    Code::NameForm,
    Code::NameReserved,
    Code::NamespaceTaken,
    Code::EvidenceIncomplete,
    Code::LeaseDuration,
    Code::AcceptedAtCreation,
    Code::ClusterSet,
    Code::Labels,
    Code::Annotations,
    Code::Taints,
    Code::Finalizers,
    Code::OwnerReferences,
];

impl Policy for ClusterHygiene {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let label = "/metadata/labels/open-cluster-management.io~1cluster-name";
        manifest("cluster-hygiene", env!("CARGO_PKG_VERSION"), "Lets in clusters that are as they should be")
            .judges([Operation::Create, Operation::Accept])
            .needs_of_cluster(NAMESPACES, EvidenceSource::Namespaces, "/metadata/name", &[label])
            .gives_codes(CODES)
            .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        let usual = Settings::default();
        let rules = Settings {
            reserved: settings.reserved.clone(),
            labels: settings.labels.clone(),
            annotations: settings.annotations.clone().unwrap_or(usual.annotations),
            min_lease_seconds: settings.min_lease_seconds.unwrap_or(usual.min_lease_seconds),
            max_lease_seconds: settings.max_lease_seconds.unwrap_or(usual.max_lease_seconds),
            ..usual
        };
        let patterns = rules.reserved.iter().chain(&rules.labels).chain(&rules.annotations);
        let mut wrong: Vec<String> = patterns.filter_map(|pattern| glob::check(pattern).err()).collect();
        if rules.min_lease_seconds < 1 || rules.min_lease_seconds > rules.max_lease_seconds {
            wrong.push("minLeaseSeconds has to be at least 1 and at most maxLeaseSeconds".to_owned());
        }
        if wrong.is_empty() { Ok(Self { rules, ..settings }) } else { Err(wrong) }
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        match request.cluster() {
            None => deny(Code::ClusterMissing.word(), "there is no cluster"),
            Some(cluster) if request.operation() == Operation::Accept => accepted(request, cluster),
            Some(cluster) => self.created(request, cluster),
        }
    }
}

impl ClusterHygiene {
    fn created(&self, request: &Request<'_>, cluster: &Cluster<'_>) -> Answer {
        let user = &*request.requester().username;
        let registers = identity::registers_by_name(user, &self.requesters);
        let found = hub::with_cluster_facts(cluster, |facts| {
            let mut found = cluster::creation(facts, &self.rules);
            if registers {
                let labels = brought(request, cluster, "labels");
                let annotations = brought(request, cluster, "annotations");
                let facts = cluster::Cluster { labels: &labels, annotations: &annotations, ..*facts };
                found.extend(cluster::registration(&facts, &self.rules));
            }
            found
        });
        let named = Named::of(request, cluster);
        if let Some(denied) = hub::violated_by(found.into_iter().chain(named.taken(cluster))) {
            return denied;
        }
        if registers && cluster.truncated.iter().any(|member| *member == "labels" || *member == "annotations") {
            return deny(Code::Annotations.word(), "there are more labels or annotations than can be judged")
                .at("metadata");
        }
        named.allowed()
    }
}

/// Whether a cluster may be accepted: what it brought was judged when it was created, but it may be older than this policy, and
/// somebody may have made a namespace of its name since, in which the hub gives its agent rights.
fn accepted(request: &Request<'_>, cluster: &Cluster<'_>) -> Answer {
    let named = Named::of(request, cluster);
    let detaching = claim::detaching(cluster.deleting);
    let found = detaching.into_iter().chain(name::acceptance(&cluster.name)).chain(named.taken(cluster));
    hub::violated_by(found).unwrap_or_else(|| named.allowed())
}

/// What the hub has under the name of a cluster.
struct Named {
    /// None where it was not found among namespaces that were not all read.
    namespace: Option<claim::Namespace>,
}

impl Named {
    fn of(request: &Request<'_>, cluster: &Cluster<'_>) -> Self {
        let table = request.evidence(NAMESPACES);
        let row = table.and_then(|table| table.rows.iter().find(|row| row.name == *cluster.name));
        let namespace = match row {
            Some(row) if row.values.first().and_then(Value::as_str) == Some(&*cluster.name) => {
                Some(claim::Namespace::Own { created: None })
            }
            Some(_) => Some(claim::Namespace::Foreign),
            None => table.is_some_and(|table| table.complete).then_some(claim::Namespace::Absent),
        };
        Self { namespace }
    }

    fn taken(&self, cluster: &Cluster<'_>) -> Option<Violation> {
        claim::namespace(&cluster.name, self.namespace?)
    }

    /// Asked last, because what is held may be asked again, and what is wrong stays wrong.
    fn allowed(&self) -> Answer {
        match self.namespace {
            Some(_) => allow(),
            None => hold(Code::EvidenceIncomplete.word(), "the namespaces could not be read to the end").again_in(60),
        }
    }
}

/// The labels or annotations that whoever registers the cluster brought: at the validating stage without those that
/// policies of the hub have set before.
fn brought<'r>(request: &'r Request<'_>, cluster: &'r Cluster<'_>, member: &str) -> Vec<(&'r str, &'r str)> {
    let entries = if member == "labels" { &cluster.labels } else { &cluster.annotations };
    let ours = |key: &str, value: &Text<'_>| {
        request.stage() == Some(Stage::Validating)
            && request
                .set_by_policies()
                .get(&format!("/metadata/{member}/{}", key.replace('~', "~0").replace('/', "~1")))
                .is_some_and(|set| set == value)
    };
    entries.iter().filter(|(key, value)| !ours(key, value)).map(|(key, value)| (key, &**value)).collect()
}

ocm_policy_sdk::export!(ClusterHygiene);

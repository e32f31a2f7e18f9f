//! What a policy says of itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::Edit;
use crate::request::Operation;

/// What a policy is, answers and needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The contract that it was written for, [`crate::CONTRACT`].
    pub contract: String,
    /// Its name, a DNS label.
    pub name: String,
    /// Its version (semver).
    pub version: String,
    /// What it does, in one sentence.
    #[serde(default)]
    pub description: String,
    /// The operations that it has an opinion about; it is not asked about others.
    pub operations: Vec<Operation>,
    /// Whether it needs whole objects as JSON, besides the facts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_object: bool,
    /// Whether a component frees nothing of a request by itself, so that the host may write all its texts and lists into
    /// one piece of memory, which takes less time. Texts are UTF-8 then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub request_in_one_block: bool,
    /// What of the hub it needs to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Query>,
    /// The edits that it may make. Others make its answer an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EditGrant>,
    /// What it counts by. Of joins the policy controller asks about one at a time, and shows the next what it let in. Of requests
    /// of the API each pod of the webhook asks about one at a time, too, where the policy is enforced, and shows the next what it
    /// let pass: as it will be, and, of a change, also as it was. So rows of one name may be several, until the hub shows what
    /// became of it. What another pod lets pass meanwhile it does not show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts_by: Vec<QuotaKey>,
    /// Every code that its reasons may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonDoc>,
    /// JSON Schema of its settings, for people. The policy itself refuses settings that it does not take: nothing else holds them
    /// against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_schema: Option<Value>,
    /// What it needs to run; the administrator's ceiling stands above it.
    #[serde(default)]
    pub limits: LimitsAsked,
}

/// What a policy asks to be allowed to use. None: the usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsAsked {
    /// Fuel of one decision: about one unit for each WebAssembly instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Bytes of linear memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// A question about the state of the hub that is answered with every request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Query {
    /// The name of its table in requests.
    pub name: String,
    /// Which objects.
    pub source: EvidenceSource,
    /// Label selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Only the rows in which this field is the name of the cluster that the request is about, or a list with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_field: Option<String>,
    /// Only the rows in which this field is the user who asks, behind the hub's gRPC server the one that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_field: Option<String>,
    /// Only objects that were created so many seconds before the request, or later, and those whose age nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_within_seconds: Option<u32>,
    /// JSON pointers (RFC 6901) of the fields that become the values of a row; a step `[type=Ready]` is the item of a
    /// list whose member has this value.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Whether objects are counted: all that have the same fields become one row without a name, and their number is its
    /// last value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count: bool,
    /// At most so many rows; more make the table incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl Query {
    /// A query for these fields of all objects of a source.
    pub fn new<F: Into<String>>(
        name: impl Into<String>,
        source: EvidenceSource,
        fields: impl IntoIterator<Item = F>,
    ) -> Self {
        Self {
            name: name.into(),
            source,
            selector: None,
            cluster_field: None,
            user_field: None,
            created_within_seconds: None,
            fields: fields.into_iter().map(Into::into).collect(),
            count: false,
            limit: None,
        }
    }

    /// How many values a row has.
    pub fn columns(&self) -> usize {
        self.fields.len() + usize::from(self.count)
    }
}

/// Which objects a query reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EvidenceSource {
    /// The ManagedClusters of the hub.
    Clusters,
    /// The ManagedClusterSets of the hub.
    ClusterSets,
    /// The entries of a ConfigMap: a row per key, its value is `/value`.
    ConfigMap {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
    /// The namespaces of the hub.
    Namespaces,
    /// The certificate requests of the hub, as facts; `/cluster` is the cluster that one is about, `/clusters` all that
    /// it names by common name or label, `/askedBy` who asked, behind the hub's gRPC server the user that it names, and
    /// `/decided` when it was approved, denied or failed, in milliseconds since 1970. Of its labels and annotations, which
    /// whoever asks writes, it has `open-cluster-management.io/cluster-name`, `open-cluster-management.io/addon-name` and
    /// `open-cluster-management.io/csr-user` and no others, also for the selector; one of more than 1024 bytes is empty.
    Csrs,
    /// What people have said of whether a cluster may join, as facts: `/cluster`, `/clusterUid`, `/requester`, `/approver`,
    /// `/groups`, `/created` and `/expires` in milliseconds since 1970, `/breakGlass` and `/reason`. Only with a cluster field, and
    /// only what was said since the hub proves whose word it is; where it does not prove it, the table is not complete.
    Approvals,
    /// What the policy controller has noted of the keys that names were given to, as facts: `/cluster` is the name,
    /// `/clusterUid` the UID of the cluster that the keys were approved for, `/until` until when the last of their certificates
    /// may be valid, and `/removed` since when the hub has no such cluster, both in milliseconds since 1970, or null. Where
    /// nobody can tell the end, it is 9223372036854775807. A hub without Registrations has none.
    Registrations,
    /// Objects of another kind.
    Objects {
        /// Group and version.
        api_version: String,
        /// Plural name.
        resource: String,
        /// Namespace; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
}

/// What a policy counts by, so that of two joins at once the policy controller does not let both take the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuotaKey {
    /// All clusters of the hub together.
    Hub,
    /// The clusters of each cluster set.
    ClusterSet,
    /// The clusters that each identity brings in.
    Identity,
}

/// Leave to edit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum EditGrant {
    /// Labels of this key, or with this prefix where it ends with `*`.
    Label {
        /// Key or prefix.
        key: String,
    },
    /// Annotations of this key, or with this prefix where it ends with `*`.
    Annotation {
        /// Key or prefix.
        key: String,
    },
    /// Taints of this key, or with this prefix where it ends with `*`.
    Taint {
        /// Key or prefix.
        key: String,
    },
    /// The cluster set.
    ClusterSet,
    /// The lease duration.
    LeaseDuration,
}

/// The label that says which set a cluster belongs to. Only [`EditGrant::ClusterSet`] reaches it, never a grant of labels.
pub(crate) const CLUSTER_SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";

impl EditGrant {
    /// Whether this grant covers an edit.
    pub fn covers(&self, edit: &Edit) -> bool {
        let fits = |grant: &str, key: &str| match grant.strip_suffix('*') {
            Some(prefix) => key.starts_with(prefix),
            None => grant == key,
        };
        match (self, edit) {
            (Self::Label { key: grant }, Edit::SetLabel { key, .. } | Edit::RemoveLabel { key }) => {
                key != CLUSTER_SET_LABEL && fits(grant, key)
            }
            (Self::Annotation { key: grant }, Edit::SetAnnotation { key, .. } | Edit::RemoveAnnotation { key })
            | (Self::Taint { key: grant }, Edit::AddTaint { key, .. } | Edit::RemoveTaint { key }) => fits(grant, key),
            (Self::ClusterSet, Edit::SetClusterSet { .. }) | (Self::LeaseDuration, Edit::SetLeaseDuration { .. }) => {
                true
            }
            _ => false,
        }
    }
}

/// A code that reasons may have, and what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasonDoc {
    /// The code.
    pub code: String,
    /// What it means.
    pub description: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_cover_their_own_and_nothing_else() {
        let label = |key: &str| Edit::SetLabel { key: key.into(), value: "v".into() };
        let team = EditGrant::Label { key: "example.com/*".into() };
        assert!(team.covers(&label("example.com/team")) && !team.covers(&label("example.org/team")));
        assert!(!team.covers(&Edit::SetAnnotation { key: "example.com/team".into(), value: String::new() }));
        assert!(EditGrant::Label { key: "region".into() }.covers(&Edit::RemoveLabel { key: "region".into() }));
        assert!(!EditGrant::Label { key: "region".into() }.covers(&label("region2")));
        let all = EditGrant::Label { key: "*".into() };
        assert!(!all.covers(&label(CLUSTER_SET_LABEL)), "a set is rights: it has a grant of its own");
        assert!(EditGrant::ClusterSet.covers(&Edit::SetClusterSet { name: "s".into() }));
    }
}

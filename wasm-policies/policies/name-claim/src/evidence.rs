//! What the hub holds about a name, as facts of the rules. Every query asks for the rows of the request's cluster, and
//! for single fields: neither other clusters nor what somebody writes into an object are in the way.

use std::cell::Cell;

use ocm_policy_sdk::rules::claim::{self, Claimant, Facts, Holder, Namespace, Registration, State};
use ocm_policy_sdk::rules::cluster::{ACCEPTED_BY_HUB, CREATOR, is_accepted_by_hub};
use ocm_policy_sdk::rules::csr::{Content, Csr, Key, Settings, Signature, Unreadable};
use ocm_policy_sdk::rules::identity::Requester;
use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{Cluster, EvidenceSource, ManifestBuilder, Request, Row, Table, time};

const CLUSTERS: &str = "clusters";
const CSRS: &str = "csrs";
const NAMESPACES: &str = "namespaces";
const ROLES: &str = "roles";
const NOTED: &str = "registrations";

const NAME: &str = "/metadata/name";
const LABEL: &str = "/metadata/labels/open-cluster-management.io~1cluster-name";
const CREATED: &str = "/metadata/creationTimestamp";

/// Of a cluster, in the order of [`Evidence::holder`].
const CLUSTER_FIELDS: [&str; 9] = [
    "/spec/hubAcceptsClient",
    "/metadata/deletionTimestamp",
    CREATED,
    "/status/conditions/[type=HubAcceptedManagedCluster]/status",
    "/status/conditions/[type=ManagedClusterJoined]/status",
    "/status/conditions/[type=ManagedClusterJoined]/lastTransitionTime",
    "/metadata/annotations/kubectl-ocm~1creator-credential",
    "/metadata/annotations/open-cluster-management.io~1automatically-accepted-on",
    "/metadata/uid",
];

/// Of a certificate request, in the order of [`claimant`]: single values, which need no reading.
const CSR_FIELDS: [&str; 22] = [
    "/state",
    "/decided",
    "/spkiSha256",
    "/labels/open-cluster-management.io~1cluster-name",
    "/labels/open-cluster-management.io~1addon-name",
    "/annotations/open-cluster-management.io~1csr-user",
    "/signer",
    "/usages",
    "/lifetimeSeconds",
    "/requester/username",
    "/requester/uid",
    "/requester/groups",
    "/requester/extra/authentication.kubernetes.io~1credential-id",
    "/unreadable",
    "/commonNames",
    "/organizations",
    "/otherAttributes",
    "/alternativeNames",
    "/extensions",
    "/key/algorithm",
    "/key/bits",
    "/signature",
];

/// Adds the queries to a manifest.
pub(crate) fn queries(builder: ManifestBuilder) -> ManifestBuilder {
    let roles = EvidenceSource::Objects {
        api_version: "rbac.authorization.k8s.io/v1".to_owned(),
        resource: "clusterroles".to_owned(),
        namespace: None,
    };
    builder
        .needs_of_cluster(CLUSTERS, EvidenceSource::Clusters, NAME, &CLUSTER_FIELDS)
        .needs_of_cluster(CSRS, EvidenceSource::Csrs, "/clusters", &CSR_FIELDS)
        .needs_of_cluster(NAMESPACES, EvidenceSource::Namespaces, NAME, &[LABEL, CREATED])
        .needs_of_cluster(NOTED, EvidenceSource::Registrations, "/cluster", &["/clusterUid", "/until"])
        .needs_of_cluster(ROLES, roles, LABEL, &[CREATED])
}

/// What is known about a name, and what is not.
pub(crate) struct Evidence<'r, 'a> {
    request: &'r Request<'a>,
    name: &'r str,
    missing: Cell<Option<&'static str>>,
}

impl<'r, 'a> Evidence<'r, 'a> {
    pub(crate) fn of(request: &'r Request<'a>, name: &'r str) -> Self {
        Self { request, name, missing: Cell::new(None) }
    }

    /// The first thing that was looked for and is not known for certain.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        self.missing.get()
    }

    fn lacks(&self, what: &'static str) {
        self.missing.set(self.missing.get().or(Some(what)));
    }

    fn table(&self, query: &'static str) -> Option<&'r Table<'a>> {
        let table = self.request.evidence(query);
        if table.is_none_or(|table| !table.complete || table.rows.iter().any(|row| !row.complete)) {
            self.lacks(query);
        }
        table
    }

    fn row(&self, query: &'static str, name: &str) -> Option<&'r Row<'a>> {
        self.row_behind(query, "", name)
    }

    /// The row of the object that is called `name` behind this prefix.
    fn row_behind(&self, query: &'static str, prefix: &str, name: &str) -> Option<&'r Row<'a>> {
        self.table(query)?.rows.iter().find(|row| row.name.strip_prefix(prefix) == Some(name))
    }

    /// The cluster, of the request or else of the hub.
    pub(crate) fn holder(&self) -> Option<Holder> {
        if let Some(cluster) = self.request.cluster() {
            // Agents write their conditions, and a fact may be behind those that were left out.
            for (member, what) in
                [("conditions", "the conditions of the cluster"), ("annotations", "the annotations of the cluster")]
            {
                if cluster.truncated.iter().any(|cut| cut == member) {
                    self.lacks(what);
                }
            }
            return Some(holder(cluster));
        }
        let values = &self.row(CLUSTERS, self.name)?.values;
        let [accepted, deleted, created, hub_accepted, joined, joined_at, _, by_hub, _] = &values[..] else {
            return None;
        };
        let joined = joined.as_str() == Some("True");
        Some(Holder {
            created: moment(created),
            deleting: !deleted.is_null(),
            accepted: accepted.as_bool().unwrap_or(false),
            accepted_by_hub: is_accepted_by_hub(by_hub.as_str()),
            accepted_before: !hub_accepted.is_null(),
            joined,
            joined_at: moment(joined_at).filter(|_| joined),
        })
    }

    /// The credential that registered the cluster.
    pub(crate) fn registered_by(&self) -> Option<&'r str> {
        match self.request.cluster() {
            Some(cluster) => cluster.annotations.get(CREATOR).map(|id| &**id),
            None => self.row(CLUSTERS, self.name)?.values.get(6)?.as_str(),
        }
    }

    /// The UID of the cluster, of the request or else of the hub.
    fn uid(&self) -> Option<&'r str> {
        match self.request.cluster() {
            Some(cluster) => cluster.uid.as_deref(),
            None => self.row(CLUSTERS, self.name)?.values.get(8)?.as_str(),
        }
    }

    /// What the policy controller has noted of the name.
    fn registration(&self) -> Option<Registration<'r>> {
        let values = &self.row(NOTED, self.name)?.values;
        // What does not tell its end is taken for the worse.
        let until = |until: &Value| until.as_i64().unwrap_or(i64::MAX);
        let ends = values.get(1).filter(|until| !until.is_null()).map(until);
        Some(Registration { cluster_uid: values.first().and_then(Value::as_str), until: ends })
    }

    /// What the hub has under the name.
    pub(crate) fn facts(&self, holder: Option<Holder>) -> Facts<'r> {
        let namespace = match self.row(NAMESPACES, self.name).map(|row| &row.values[..]) {
            None => Namespace::Absent,
            Some([label, created]) if label.as_str() == Some(self.name) => Namespace::Own { created: moment(created) },
            Some(_) => Namespace::Foreign,
        };
        let role = self.row_behind(ROLES, "open-cluster-management:managedcluster:", self.name);
        // One that does not tell its age is taken for an old one.
        let role_created = role.map(|role| role.values.first().and_then(moment).unwrap_or(i64::MIN));
        Facts {
            name: self.name,
            uid: self.uid(),
            holder,
            namespace,
            role_created,
            registration: self.registration(),
            now: Some(self.request.now()),
        }
    }

    /// Who asks, or has asked, for the name.
    pub(crate) fn claimants(&self, settings: &Settings) -> Vec<Claimant<'r>> {
        let rows = self.table(CSRS).map_or(&[][..], |table| &table.rows);
        rows.iter().filter_map(|row| claimant(row, self.name, settings)).collect()
    }
}

fn holder(cluster: &Cluster<'_>) -> Holder {
    let condition = |kind: &str| cluster.conditions.iter().find(|known| known.kind == kind);
    let joined = condition("ManagedClusterJoined").filter(|known| known.status == "True");
    Holder {
        created: cluster.created,
        deleting: cluster.deleting,
        accepted: cluster.accepted,
        accepted_by_hub: is_accepted_by_hub(cluster.annotations.get(ACCEPTED_BY_HUB).map(AsRef::as_ref)),
        accepted_before: condition("HubAcceptedManagedCluster").is_some(),
        joined: joined.is_some(),
        joined_at: joined.and_then(|known| known.since),
    }
}

/// A row of certificate requests as one for the name, if it counts. What it does not tell is as good as empty, and
/// breaks a rule.
fn claimant<'r>(row: &'r Row<'_>, name: &str, settings: &Settings) -> Option<Claimant<'r>> {
    let [
        state,
        decided,
        key,
        cluster_label,
        addon_label,
        grpc_user,
        signer,
        usages,
        lifetime,
        user,
        uid,
        groups,
        credential_ids,
        unreadable,
        common_names,
        organizations,
        other_attributes,
        alternative_names,
        extensions,
        algorithm,
        bits,
        signature,
    ] = &row.values[..]
    else {
        return None;
    };
    let text = |value: &'r Value| value.as_str().unwrap_or_default();
    let state = match text(state) {
        "Approved" | "Issued" => State::Granted { at: decided.as_i64() },
        "Denied" => State::Denied { at: decided.as_i64() },
        "Failed" => State::Failed,
        _ => State::Pending,
    };
    let [groups, credential_ids] = [groups, credential_ids].map(texts);
    let [usages, common_names, organizations, other_attributes, alternative_names, extensions] =
        [usages, common_names, organizations, other_attributes, alternative_names, extensions].map(texts);
    let bits = bits.as_u64().and_then(|bits| u32::try_from(bits).ok());
    let content = Content {
        common_names: &common_names[..],
        organizations: &organizations,
        other_attributes: &other_attributes,
        alternative_names: &alternative_names,
        extensions: &extensions,
        key: Key::of(text(algorithm), bits.unwrap_or_default()),
        signature: match signature.as_str() {
            Some("valid") => Signature::Valid,
            Some("invalid") => Signature::Invalid,
            _ => Signature::Unverifiable,
        },
    };
    let csr = Csr {
        cluster_label: cluster_label.as_str(),
        addon_label: addon_label.as_str(),
        grpc_user: grpc_user.as_str(),
        signer: text(signer),
        usages: &usages,
        lifetime_seconds: lifetime.as_i64(),
        requester: Requester { user: text(user), uid: uid.as_str(), groups: &groups, credential_ids: &credential_ids },
        content: match unreadable.as_str() {
            Some(why) => Err(Unreadable { why, common_names: &common_names, organizations: &organizations }),
            None => Ok(content),
        },
    };
    claim::claimant(&csr, text(key), state, name, settings)
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A time as the API server writes it.
fn moment(value: &Value) -> Option<i64> {
    time::parse(value.as_str()?)
}

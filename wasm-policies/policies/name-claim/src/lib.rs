//! A name belongs to the key that joined with it, also after the cluster is gone.

use ocm_policy_sdk::serde_json::Value;
use ocm_policy_sdk::{
    Answer, Csr, EditGrant, EvidenceSource, ManifestBuilder, Operation, Policy, Request, Row, Table, allow, deny, hold,
    hub, manifest, no_opinion, time,
};
use serde::Deserialize;

/// The policy with its settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NameClaim {
    /// Whether a person decides where another key wants a joined name; otherwise it is refused.
    hold_taken: bool,
    /// Users who may ask for first certificates besides the hub's bootstrap identities.
    requesters: Vec<String>,
    /// Whether the token that registered a cluster is the only one that gets its first certificate.
    same_credential: bool,
}

/// Annotation of a ManagedCluster: the credential that registered it.
const CREATOR: &str = "kubectl-ocm/creator-credential";
const CLUSTERS: &str = "clusters";
const CSRS: &str = "csrs";
const NAMESPACES: &str = "namespaces";
const USED: &str = "used-names";
const LABEL: &str = "/metadata/labels/open-cluster-management.io~1cluster-name";

impl Policy for NameClaim {
    type Settings = Self;

    fn manifest() -> ManifestBuilder {
        let used = EvidenceSource::ConfigMap {
            namespace: "open-cluster-management".to_owned(),
            name: "used-cluster-names".to_owned(),
        };
        let created = "/metadata/creationTimestamp";
        let creator = "/metadata/annotations/kubectl-ocm~1creator-credential";
        let cluster = ["/spec/hubAcceptsClient", "/status/conditions", "/metadata/deletionTimestamp", created, creator];
        manifest(
            "name-claim",
            env!("CARGO_PKG_VERSION"),
            "Keeps the names of clusters for the keys that joined with them",
        )
        .judges([Operation::Create, Operation::Request, Operation::Approve, Operation::Join])
        .may_edit(EditGrant::Annotation { key: CREATOR.to_owned() })
        .needs(CLUSTERS, EvidenceSource::Clusters, &cluster)
        .needs(
            CSRS,
            EvidenceSource::Csrs,
            &[LABEL, "/spkiSha256", "/state", "/labels/open-cluster-management.io~1addon-name"],
        )
        .needs(NAMESPACES, EvidenceSource::Namespaces, &[LABEL, created])
        .needs(USED, used, &[])
        .gives("EvidenceIncomplete", "What the hub holds could not be read to its end")
        .gives("Requester", "Whoever asks may not ask for a first certificate")
        .gives(
            "NotOwnName",
            "Another name is asked for than that of one agent of the cluster, or an agent asks for another's",
        )
        .gives("NotRegistered", "The hub has no such cluster yet")
        .gives("Detaching", "The cluster is being removed")
        .gives("DeniedBefore", "The cluster was denied")
        .gives("NameTaken", "The name belongs to another key")
        .gives("TwoKeys", "Several keys ask for the name at once")
        .gives("NamespaceForeign", "A namespace of this name belongs to somebody else")
        .gives("UsedBefore", "A cluster of this name was here before")
        .gives("CredentialUnknown", "Nobody knows which credential registered the cluster")
        .gives("OtherCredential", "Another credential registered the cluster")
        .settings_schema(include_str!("../settings.schema.json"))
    }

    fn configure(settings: Self) -> Result<Self, Vec<String>> {
        Ok(settings)
    }

    fn decide(&self, request: &Request<'_>) -> Answer {
        match request.operation() {
            Operation::Create => self.remember(request),
            _ => self.judge(request),
        }
    }
}

/// What matters of the cluster.
struct Holder {
    accepted: bool,
    deleting: bool,
    joined: bool,
    denied: bool,
    created: Option<i64>,
    creator: Option<String>,
}

impl NameClaim {
    /// Who registers a cluster with a token of its own leaves its mark.
    fn remember(&self, request: &Request<'_>) -> Answer {
        let requester = request.requester();
        match hub::token_id(requester) {
            Some(id) if self.same_credential && hub::bootstraps(requester, &self.requesters) => {
                allow().annotate(CREATOR, id)
            }
            _ => no_opinion(),
        }
    }

    fn judge(&self, request: &Request<'_>) -> Answer {
        let Some(csr) = request.csr() else { return no_opinion() };
        let agents: Vec<(&str, &str)> = csr.common_names.iter().filter_map(|name| hub::agent(name)).collect();
        let label = csr.labels.get(hub::CLUSTER_NAME).map(|label| &**label);
        let name = match (&agents[..], label) {
            _ if hub::is_denial(request) => return no_opinion(),
            // Somebody asks for the name of an agent: it counts, whatever the label says.
            ([(cluster, _), ..], _) => *cluster,
            // Add-ons have other names, and other approvers.
            ([], Some(label)) if !csr.labels.contains(hub::ADDON_NAME) => label,
            ([], _) => return no_opinion(),
        };
        if request.cluster().is_some_and(|cluster| cluster.name != name)
            || agents.iter().any(|(other, _)| *other != name)
        {
            return deny("NotOwnName", "the common name is that of another cluster's agent").at("spec.request");
        }
        if agents.len() != 1 || csr.common_names.len() != 1 {
            return deny("NotOwnName", "the request does not ask for the name of one agent").at("spec.request");
        }
        let user = hub::asking_user(request);
        if user.starts_with(hub::PREFIX) {
            if !hub::is_renewal(request) {
                return deny("NotOwnName", "an agent may only ask for its own name again").at("spec.username");
            }
            return match holder(request, name) {
                Err(answer) => answer,
                Ok(None) => deny("NotRegistered", "the hub has no cluster of this name any more"),
                Ok(Some(holder)) if holder.deleting => deny("Detaching", "the cluster is being removed"),
                Ok(Some(holder)) if !holder.accepted => deny("DeniedBefore", "the hub does not accept the cluster"),
                Ok(Some(_)) => allow(),
            };
        }
        let asker = &csr.requester;
        let first = match hub::is_grpc_server(asker) {
            true => {
                user == hub::BOOTSTRAP_USER
                    || hub::is_bootstrap_token(user)
                    || self.requesters.iter().any(|known| known == user)
            }
            false => hub::bootstraps(asker, &self.requesters),
        };
        if !first || hub::lacks(asker).is_some() {
            return deny("Requester", "this identity may not ask for a first certificate").at("spec.username");
        }
        match self.first(request, csr, name) {
            Ok(answer) | Err(answer) => answer,
        }
    }

    /// The first certificate for a name.
    fn first(&self, request: &Request<'_>, csr: &Csr<'_>, name: &str) -> Result<Answer, Answer> {
        let Some(holder) = holder(request, name)? else {
            return Err(hold("NotRegistered", "the hub has no cluster of this name yet").again_in(10));
        };
        if holder.deleting {
            return Err(deny("Detaching", "the cluster is being removed"));
        }
        if holder.denied && !holder.accepted {
            return Err(deny("DeniedBefore", "the cluster was denied"));
        }
        if self.same_credential && !holder.joined {
            let Some(creator) = &holder.creator else {
                return Err(hold("CredentialUnknown", "the cluster does not tell which credential registered it")
                    .at("metadata.annotations"));
            };
            if hub::token_id(&csr.requester) != Some(creator) {
                return Err(
                    deny("OtherCredential", "another credential than this one registered the cluster").at("spec.extra")
                );
            }
        }
        let keys = keys(whole(request, CSRS)?, name);
        let mine = |key: &&(Text<'_>, bool)| !key.0.is_empty() && key.0 == &*csr.spki_sha256;
        let issued: Vec<_> = keys.iter().filter(|(_, decided)| *decided).collect();
        let by_other = issued.iter().any(|key| !mine(key));
        if by_other || (holder.joined && !issued.iter().any(&mine)) {
            let message = "the name belongs to another key";
            return Err(if self.hold_taken { hold("NameTaken", message) } else { deny("NameTaken", message) });
        }
        if keys.iter().any(|key| !mine(&key)) {
            return Err(hold("TwoKeys", "several keys ask for this name"));
        }
        let namespaces = whole(request, NAMESPACES)?;
        if let Some(namespace) = namespaces.rows.iter().find(|row| row.name == name) {
            if text(namespace, 0) != Some(name) {
                return Err(deny("NamespaceForeign", "a namespace of this name belongs to somebody else"));
            }
            // The hub makes the namespace after the cluster: one that is older is from a life before.
            let since = |at: Option<i64>| at.zip(holder.created);
            let fresh = since(text(namespace, 1).and_then(time::parse))
                .is_some_and(|(namespace, cluster)| namespace >= cluster);
            if !holder.joined && !fresh {
                return Err(hold("UsedBefore", "a cluster of this name was here before: its certificates may live on"));
            }
        }
        if !holder.joined && whole(request, USED)?.rows.iter().any(|row| row.name == name) {
            return Err(hold("UsedBefore", "a cluster of this name was here before: its certificates may live on"));
        }
        Ok(allow())
    }
}

type Text<'a> = &'a str;

fn text<'r>(row: &'r Row<'_>, index: usize) -> Option<&'r str> {
    row.values.get(index).and_then(Value::as_str)
}

/// A table that is there from its first to its last row.
fn whole<'r, 'a>(request: &'r Request<'a>, name: &str) -> Result<&'r Table<'a>, Answer> {
    let table = request.evidence(name).filter(|table| table.complete);
    table.ok_or_else(|| hold("EvidenceIncomplete", format!("{name} could not be read to the end")).again_in(60))
}

/// The cluster of this name, from the request or else from the hub. Without it the table has to be whole.
fn holder(request: &Request<'_>, name: &str) -> Result<Option<Holder>, Answer> {
    if let Some(cluster) = request.cluster() {
        let is = |kind: &str, status: &str| {
            cluster.conditions.iter().any(|known| known.kind == kind && known.status == status)
        };
        return Ok(Some(Holder {
            accepted: cluster.accepted,
            deleting: cluster.deleting,
            joined: is("ManagedClusterJoined", "True"),
            denied: is("HubAcceptedManagedCluster", "False"),
            created: cluster.created,
            creator: cluster.annotations.get(CREATOR).map(|id| id.to_string()),
        }));
    }
    let row = request.evidence(CLUSTERS).and_then(|table| table.rows.iter().find(|row| row.name == name));
    let Some(row) = row else { return whole(request, CLUSTERS).map(|_| None) };
    let conditions = row.values.get(1).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is =
        |kind: &str, status: &str| conditions.iter().any(|known| known["type"] == kind && known["status"] == status);
    Ok(Some(Holder {
        accepted: row.values.first().and_then(Value::as_bool).unwrap_or(false),
        joined: is("ManagedClusterJoined", "True"),
        denied: is("HubAcceptedManagedCluster", "False"),
        deleting: text(row, 2).is_some(),
        created: text(row, 3).and_then(time::parse),
        creator: text(row, 4).map(str::to_owned),
    }))
}

/// The keys that asked for a name, and whether they got it.
fn keys<'r>(table: &'r Table<'_>, name: &str) -> Vec<(Text<'r>, bool)> {
    let agents = table.rows.iter().filter(|row| text(row, 0) == Some(name) && text(row, 3).is_none());
    agents
        .filter_map(|row| {
            let state = text(row, 2).unwrap_or("Pending");
            let decided = matches!(state, "Approved" | "Issued");
            let key = text(row, 1).unwrap_or_default();
            (decided || state == "Pending").then_some((key, decided))
        })
        .collect()
}

ocm_policy_sdk::export!(NameClaim);

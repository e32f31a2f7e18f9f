//! Requests and decisions as the records of `wasm-policies/wit`: borrowed from the words of `ocm-policy-abi` on the way
//! in, made into them on the way out.
//!
//! Every struct is taken apart member by member, so that none is forgotten on the way.

use std::collections::BTreeMap;

use ocm_policy_abi as abi;
use ocm_policy_abi::{Map, Text};
use ocm_policy_rules::outcome::Fault;
use serde_json::Value as Json;
use wasmtime::component::{ComponentType, Lift, Lower};

#[derive(ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
#[derive(Clone, Copy)]
pub enum Operation {
    #[component(name = "create")]
    Create,
    #[component(name = "update")]
    Update,
    #[component(name = "delete")]
    Delete,
    #[component(name = "approve")]
    Approve,
    #[component(name = "accept")]
    Accept,
    #[component(name = "join")]
    Join,
    #[component(name = "admit")]
    Admit,
}

impl From<abi::Operation> for Operation {
    fn from(operation: abi::Operation) -> Self {
        match operation {
            abi::Operation::Create => Self::Create,
            abi::Operation::Update => Self::Update,
            abi::Operation::Delete => Self::Delete,
            abi::Operation::Approve => Self::Approve,
            abi::Operation::Accept => Self::Accept,
            abi::Operation::Join => Self::Join,
            abi::Operation::Admit => Self::Admit,
        }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Entry<'r> {
    key: &'r str,
    value: &'r str,
}

fn entries<'r>(map: &'r Map<'_, Text<'_>>) -> Vec<Entry<'r>> {
    map.iter().map(|(key, value)| Entry { key, value }).collect()
}

fn texts<'r>(texts: &'r [Text<'_>]) -> Vec<&'r str> {
    texts.iter().map(Text::as_str).collect()
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Entries<'r> {
    key: &'r str,
    values: Vec<&'r str>,
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Requester<'r> {
    username: &'r str,
    uid: Option<&'r str>,
    groups: Vec<&'r str>,
    extra: Vec<Entries<'r>>,
}

impl<'r> From<&'r abi::Requester<'_>> for Requester<'r> {
    fn from(requester: &'r abi::Requester<'_>) -> Self {
        let abi::Requester { username, uid, groups, extra } = requester;
        let extra = extra.iter().map(|(key, values)| Entries { key, values: texts(values) }).collect();
        Self { username, uid: uid.as_deref(), groups: texts(groups), extra }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct ApiObject<'r> {
    group: &'r str,
    version: &'r str,
    kind: &'r str,
    resource: &'r str,
    subresource: Option<&'r str>,
    namespace: Option<&'r str>,
    name: Option<&'r str>,
    operation: &'r str,
    #[component(name = "field-manager")]
    field_manager: Option<&'r str>,
}

impl<'r> From<&'r abi::Resource<'_>> for ApiObject<'r> {
    fn from(object: &'r abi::Resource<'_>) -> Self {
        let abi::Resource { group, version, kind, resource, subresource, namespace, name, operation, field_manager } =
            object;
        Self {
            group,
            version,
            kind,
            resource,
            subresource: subresource.as_deref(),
            namespace: namespace.as_deref(),
            name: name.as_deref(),
            operation,
            field_manager: field_manager.as_deref(),
        }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Owner<'r> {
    #[component(name = "api-version")]
    api_version: &'r str,
    kind: &'r str,
    name: &'r str,
}

impl<'r> From<&'r abi::Owner<'_>> for Owner<'r> {
    fn from(abi::Owner { api_version, kind, name }: &'r abi::Owner<'_>) -> Self {
        Self { api_version, kind, name }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Taint<'r> {
    key: &'r str,
    value: &'r str,
    effect: &'r str,
}

impl<'r> From<&'r abi::Taint<'_>> for Taint<'r> {
    fn from(abi::Taint { key, value, effect }: &'r abi::Taint<'_>) -> Self {
        Self { key, value, effect }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct ClientConfig<'r> {
    url: &'r str,
    #[component(name = "ca-sha256")]
    ca_sha256: Option<&'r str>,
}

impl<'r> From<&'r abi::ClientConfig<'_>> for ClientConfig<'r> {
    fn from(abi::ClientConfig { url, ca_sha256 }: &'r abi::ClientConfig<'_>) -> Self {
        Self { url, ca_sha256: ca_sha256.as_deref() }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Claim<'r> {
    name: &'r str,
    value: &'r str,
}

impl<'r> From<&'r abi::Claim<'_>> for Claim<'r> {
    fn from(abi::Claim { name, value }: &'r abi::Claim<'_>) -> Self {
        Self { name, value }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Condition<'r> {
    kind: &'r str,
    status: &'r str,
    reason: &'r str,
    since: Option<i64>,
}

impl<'r> From<&'r abi::Condition<'_>> for Condition<'r> {
    fn from(abi::Condition { kind, status, reason, since }: &'r abi::Condition<'_>) -> Self {
        Self { kind, status, reason, since: *since }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Cluster<'r> {
    name: &'r str,
    uid: Option<&'r str>,
    labels: Vec<Entry<'r>>,
    annotations: Vec<Entry<'r>>,
    finalizers: Vec<&'r str>,
    owners: Vec<Owner<'r>>,
    created: Option<i64>,
    deleting: bool,
    accepted: bool,
    #[component(name = "lease-duration-seconds")]
    lease_duration_seconds: Option<i64>,
    taints: Vec<Taint<'r>>,
    #[component(name = "client-configs")]
    client_configs: Vec<ClientConfig<'r>>,
    claims: Vec<Claim<'r>>,
    conditions: Vec<Condition<'r>>,
}

impl<'r> From<&'r abi::Cluster<'_>> for Cluster<'r> {
    fn from(cluster: &'r abi::Cluster<'_>) -> Self {
        let abi::Cluster {
            name,
            uid,
            labels,
            annotations,
            finalizers,
            owners,
            created,
            deleting,
            accepted,
            lease_duration_seconds,
            taints,
            client_configs,
            claims,
            conditions,
        } = cluster;
        Self {
            name,
            uid: uid.as_deref(),
            labels: entries(labels),
            annotations: entries(annotations),
            finalizers: texts(finalizers),
            owners: owners.iter().map(Into::into).collect(),
            created: *created,
            deleting: *deleting,
            accepted: *accepted,
            lease_duration_seconds: *lease_duration_seconds,
            taints: taints.iter().map(Into::into).collect(),
            client_configs: client_configs.iter().map(Into::into).collect(),
            claims: claims.iter().map(Into::into).collect(),
            conditions: conditions.iter().map(Into::into).collect(),
        }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Key<'r> {
    algorithm: &'r str,
    bits: u32,
}

#[derive(ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
#[derive(Clone, Copy)]
pub enum Signature {
    #[component(name = "valid")]
    Valid,
    #[component(name = "invalid")]
    Invalid,
    #[component(name = "unverifiable")]
    Unverifiable,
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Csr<'r> {
    name: Option<&'r str>,
    labels: Vec<Entry<'r>>,
    annotations: Vec<Entry<'r>>,
    signer: &'r str,
    usages: Vec<&'r str>,
    #[component(name = "lifetime-seconds")]
    lifetime_seconds: Option<i64>,
    requester: Requester<'r>,
    created: Option<i64>,
    unreadable: Option<&'r str>,
    #[component(name = "common-names")]
    common_names: Vec<&'r str>,
    organizations: Vec<&'r str>,
    #[component(name = "other-attributes")]
    other_attributes: Vec<&'r str>,
    #[component(name = "alternative-names")]
    alternative_names: Vec<&'r str>,
    extensions: Vec<&'r str>,
    key: Key<'r>,
    #[component(name = "spki-sha256")]
    spki_sha256: &'r str,
    signature: Signature,
    #[component(name = "adds-condition")]
    adds_condition: Option<&'r str>,
    state: &'r str,
}

impl<'r> From<&'r abi::Csr<'_>> for Csr<'r> {
    fn from(csr: &'r abi::Csr<'_>) -> Self {
        let abi::Csr {
            name,
            labels,
            annotations,
            signer,
            usages,
            lifetime_seconds,
            requester,
            created,
            unreadable,
            common_names,
            organizations,
            other_attributes,
            alternative_names,
            extensions,
            key: abi::Key { algorithm, bits },
            spki_sha256,
            signature,
            adds_condition,
            state,
        } = csr;
        Self {
            name: name.as_deref(),
            labels: entries(labels),
            annotations: entries(annotations),
            signer,
            usages: texts(usages),
            lifetime_seconds: *lifetime_seconds,
            requester: requester.into(),
            created: *created,
            unreadable: unreadable.as_deref(),
            common_names: texts(common_names),
            organizations: texts(organizations),
            other_attributes: texts(other_attributes),
            alternative_names: texts(alternative_names),
            extensions: texts(extensions),
            key: Key { algorithm, bits: *bits },
            spki_sha256,
            signature: match signature {
                abi::Signature::Valid => Signature::Valid,
                abi::Signature::Invalid => Signature::Invalid,
                abi::Signature::Unverifiable => Signature::Unverifiable,
            },
            adds_condition: adds_condition.as_deref(),
            state,
        }
    }
}

#[derive(ComponentType, Lower)]
#[component(variant)]
pub enum Value<'r> {
    #[component(name = "absent")]
    Absent,
    #[component(name = "boolean")]
    Boolean(bool),
    #[component(name = "integer")]
    Integer(i64),
    #[component(name = "text")]
    Text(&'r str),
    #[component(name = "json")]
    Json(String),
}

impl<'r> From<&'r Json> for Value<'r> {
    fn from(value: &'r Json) -> Self {
        match value {
            Json::Null => Self::Absent,
            Json::Bool(truth) => Self::Boolean(*truth),
            Json::String(text) => Self::Text(text),
            other => other.as_i64().map_or_else(|| Self::Json(other.to_string()), Self::Integer),
        }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Row<'r> {
    namespace: Option<&'r str>,
    name: &'r str,
    values: Vec<Value<'r>>,
}

impl<'r> From<&'r abi::Row<'_>> for Row<'r> {
    fn from(abi::Row { namespace, name, values }: &'r abi::Row<'_>) -> Self {
        Self { namespace: namespace.as_deref(), name, values: values.iter().map(Into::into).collect() }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Table<'r> {
    name: &'r str,
    revision: &'r str,
    complete: bool,
    rows: Vec<Row<'r>>,
}

/// A request.
#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Request<'r> {
    id: &'r str,
    operation: Operation,
    now: i64,
    #[component(name = "dry-run")]
    dry_run: bool,
    attempt: u32,
    requester: Requester<'r>,
    resource: Option<ApiObject<'r>>,
    cluster: Option<Cluster<'r>>,
    previous: Option<Cluster<'r>>,
    csr: Option<Csr<'r>>,
    object: Option<&'r str>,
    #[component(name = "previous-object")]
    previous_object: Option<&'r str>,
    evidence: Vec<Table<'r>>,
}

/// The parts of a request that are not the same for all policies.
#[derive(Default)]
pub(crate) struct Given<'r> {
    /// The whole object as JSON, for a policy that asks for it.
    pub(crate) object: Option<&'r str>,
    /// The whole object before as JSON, likewise.
    pub(crate) previous_object: Option<&'r str>,
    /// Tables by the names of the policy's queries.
    pub(crate) evidence: Vec<(&'r str, &'r abi::Table<'r>)>,
}

impl<'r> Request<'r> {
    /// The request as one policy gets it.
    pub(crate) fn new(request: &'r abi::Request<'_>, given: Given<'r>) -> Self {
        let abi::Request {
            id,
            operation,
            now,
            dry_run,
            attempt,
            requester,
            resource,
            cluster,
            previous,
            csr,
            // These are given, or not.
            object: _,
            previous_object: _,
            evidence: _,
        } = request;
        let Given { object, previous_object, evidence } = given;
        let table = |(name, table): (&'r str, &'r abi::Table<'r>)| {
            let abi::Table { revision, complete, rows } = table;
            Table { name, revision, complete: *complete, rows: rows.iter().map(Into::into).collect() }
        };
        Self {
            id,
            operation: (*operation).into(),
            now: *now,
            dry_run: *dry_run,
            attempt: *attempt,
            requester: requester.into(),
            resource: resource.as_ref().map(Into::into),
            cluster: cluster.as_ref().map(Into::into),
            previous: previous.as_ref().map(Into::into),
            csr: csr.as_ref().map(Into::into),
            object,
            previous_object,
            evidence: evidence.into_iter().map(table).collect(),
        }
    }
}

#[derive(ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[derive(Clone, Copy)]
pub enum Verdict {
    #[component(name = "no-opinion")]
    NoOpinion,
    #[component(name = "allow")]
    Allow,
    #[component(name = "hold")]
    Hold,
    #[component(name = "deny")]
    Deny,
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub struct Reason {
    code: String,
    message: String,
    field: Option<String>,
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub struct Pair {
    key: String,
    value: String,
}

#[derive(ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[derive(Clone, Copy)]
pub enum TaintEffect {
    #[component(name = "no-select")]
    NoSelect,
    #[component(name = "prefer-no-select")]
    PreferNoSelect,
    #[component(name = "no-select-if-new")]
    NoSelectIfNew,
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub struct NewTaint {
    key: String,
    value: String,
    effect: TaintEffect,
}

#[derive(ComponentType, Lift)]
#[component(variant)]
pub enum Edit {
    #[component(name = "set-label")]
    SetLabel(Pair),
    #[component(name = "remove-label")]
    RemoveLabel(String),
    #[component(name = "set-annotation")]
    SetAnnotation(Pair),
    #[component(name = "remove-annotation")]
    RemoveAnnotation(String),
    #[component(name = "add-taint")]
    AddTaint(NewTaint),
    #[component(name = "remove-taint")]
    RemoveTaint(String),
    #[component(name = "set-cluster-set")]
    SetClusterSet(String),
    #[component(name = "set-lease-duration")]
    SetLeaseDuration(u32),
}

impl From<Edit> for abi::Edit {
    fn from(edit: Edit) -> Self {
        match edit {
            Edit::SetLabel(Pair { key, value }) => Self::SetLabel { key, value },
            Edit::RemoveLabel(key) => Self::RemoveLabel { key },
            Edit::SetAnnotation(Pair { key, value }) => Self::SetAnnotation { key, value },
            Edit::RemoveAnnotation(key) => Self::RemoveAnnotation { key },
            Edit::AddTaint(NewTaint { key, value, effect }) => {
                let effect = match effect {
                    TaintEffect::NoSelect => abi::TaintEffect::NoSelect,
                    TaintEffect::PreferNoSelect => abi::TaintEffect::PreferNoSelect,
                    TaintEffect::NoSelectIfNew => abi::TaintEffect::NoSelectIfNew,
                };
                Self::AddTaint { key, value, effect }
            }
            Edit::RemoveTaint(key) => Self::RemoveTaint { key },
            Edit::SetClusterSet(name) => Self::SetClusterSet { name },
            Edit::SetLeaseDuration(seconds) => Self::SetLeaseDuration { seconds },
        }
    }
}

#[derive(ComponentType, Lift)]
#[component(record)]
pub struct Obligation {
    name: String,
    #[component(name = "within-seconds")]
    within_seconds: Option<u32>,
    params: Vec<Pair>,
}

/// A decision.
#[derive(ComponentType, Lift)]
#[component(record)]
pub struct Decision {
    verdict: Verdict,
    #[component(name = "ask-again-seconds")]
    ask_again_seconds: Option<u32>,
    reasons: Vec<Reason>,
    warnings: Vec<String>,
    edits: Vec<Edit>,
    obligations: Vec<Obligation>,
    audit: Vec<Pair>,
}

/// A map of pairs. Which of two equal keys should count, nobody can say.
fn map(what: &str, pairs: Vec<Pair>) -> Result<BTreeMap<String, String>, Fault> {
    let many = pairs.len();
    let map: BTreeMap<String, String> = pairs.into_iter().map(|Pair { key, value }| (key, value)).collect();
    if map.len() == many { Ok(map) } else { Err(Fault::Malformed(format!("a key stands twice among the {what}"))) }
}

impl TryFrom<Decision> for abi::Decision {
    type Error = Fault;

    fn try_from(decision: Decision) -> Result<Self, Fault> {
        let Decision { verdict, ask_again_seconds, reasons, warnings, edits, obligations, audit } = decision;
        let reason = |Reason { code, message, field }| abi::Reason { code, message, field };
        let obligation = |Obligation { name, within_seconds, params }| {
            Ok(abi::Obligation { name, within_seconds, params: map("parameters of an obligation", params)? })
        };
        Ok(Self {
            verdict: match verdict {
                Verdict::NoOpinion => abi::Verdict::NoOpinion,
                Verdict::Allow => abi::Verdict::Allow,
                Verdict::Hold => abi::Verdict::Hold,
                Verdict::Deny => abi::Verdict::Deny,
            },
            ask_again_seconds,
            reasons: reasons.into_iter().map(reason).collect(),
            warnings,
            edits: edits.into_iter().map(Into::into).collect(),
            obligations: obligations.into_iter().map(obligation).collect::<Result<_, Fault>>()?,
            audit: map("audit entries", audit)?,
        })
    }
}

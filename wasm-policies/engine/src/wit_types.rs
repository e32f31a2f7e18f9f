//! Requests and decisions as the records of `wasm-policies/wit`: borrowed from the words of `ocm-policy-abi` on the way
//! in, made into them on the way out.
//!
//! Every struct is taken apart member by member, so that none is forgotten on the way.

mod block;

use std::collections::BTreeMap;

use ocm_policy_abi as abi;
use ocm_policy_abi::{Map, Text};
use ocm_policy_rules::PolicyError;
use serde_json::Value as Json;
use wasmtime::component::{ComponentType, Lift, Lower};

pub(crate) use block::{Block, Whole};

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
    #[component(name = "certificate-sha256")]
    certificate_sha256: Option<&'r str>,
}

impl<'r> From<&'r abi::Requester<'_>> for Requester<'r> {
    fn from(requester: &'r abi::Requester<'_>) -> Self {
        let abi::Requester { username, uid, groups, extra, certificate_sha256 } = requester;
        let extra = extra.iter().map(|(key, values)| Entries { key, values: texts(values) }).collect();
        let certificate_sha256 = certificate_sha256.as_deref();
        Self { username, uid: uid.as_deref(), groups: texts(groups), extra, certificate_sha256 }
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
    options: Vec<Entry<'r>>,
}

impl<'r> From<&'r abi::Resource<'_>> for ApiObject<'r> {
    fn from(object: &'r abi::Resource<'_>) -> Self {
        let abi::Resource {
            group,
            version,
            kind,
            resource,
            subresource,
            namespace,
            name,
            operation,
            field_manager,
            options,
        } = object;
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
            options: entries(options),
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
    uid: &'r str,
    controller: bool,
}

impl<'r> From<&'r abi::Owner<'_>> for Owner<'r> {
    fn from(abi::Owner { api_version, kind, name, uid, controller }: &'r abi::Owner<'_>) -> Self {
        Self { api_version, kind, name, uid, controller: *controller }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Taint<'r> {
    key: &'r str,
    value: &'r str,
    effect: &'r str,
    added: Option<i64>,
}

impl<'r> From<&'r abi::Taint<'_>> for Taint<'r> {
    fn from(abi::Taint { key, value, effect, added }: &'r abi::Taint<'_>) -> Self {
        Self { key, value, effect, added: *added }
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
    message: &'r str,
    since: Option<i64>,
}

impl<'r> From<&'r abi::Condition<'_>> for Condition<'r> {
    fn from(abi::Condition { kind, status, reason, message, since }: &'r abi::Condition<'_>) -> Self {
        Self { kind, status, reason, message, since: *since }
    }
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Cluster<'r> {
    name: &'r str,
    uid: Option<&'r str>,
    #[component(name = "resource-version")]
    resource_version: Option<&'r str>,
    generation: Option<i64>,
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
    #[component(name = "kubernetes-version")]
    kubernetes_version: Option<&'r str>,
    conditions: Vec<Condition<'r>>,
    truncated: Vec<&'r str>,
    more: Vec<(&'r str, Value<'r>)>,
}

impl<'r> From<&'r abi::Cluster<'_>> for Cluster<'r> {
    fn from(cluster: &'r abi::Cluster<'_>) -> Self {
        let abi::Cluster {
            name,
            uid,
            resource_version,
            generation,
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
            kubernetes_version,
            conditions,
            truncated,
            more,
        } = cluster;
        Self {
            name,
            uid: uid.as_deref(),
            resource_version: resource_version.as_deref(),
            generation: *generation,
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
            kubernetes_version: kubernetes_version.as_deref(),
            conditions: conditions.iter().map(Into::into).collect(),
            truncated: texts(truncated),
            more: facts(more),
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
#[component(record)]
pub struct Csr<'r> {
    name: Option<&'r str>,
    uid: Option<&'r str>,
    #[component(name = "resource-version")]
    resource_version: Option<&'r str>,
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
    signature: &'r str,
    #[component(name = "adds-condition")]
    adds_condition: Option<&'r str>,
    state: &'r str,
    more: Vec<(&'r str, Value<'r>)>,
}

impl<'r> From<&'r abi::Csr<'_>> for Csr<'r> {
    fn from(csr: &'r abi::Csr<'_>) -> Self {
        let abi::Csr {
            name,
            uid,
            resource_version,
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
            more,
        } = csr;
        Self {
            name: name.as_deref(),
            uid: uid.as_deref(),
            resource_version: resource_version.as_deref(),
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
            signature: signature.word(),
            adds_condition: adds_condition.as_deref(),
            state,
            more: facts(more),
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
    #[component(name = "texts")]
    Texts(Vec<&'r str>),
}

impl<'r> From<&'r Json> for Value<'r> {
    fn from(value: &'r Json) -> Self {
        match value {
            Json::Null => Self::Absent,
            Json::Bool(truth) => Self::Boolean(*truth),
            Json::String(text) => Self::Text(text),
            Json::Array(items) => match items.iter().map(Json::as_str).collect() {
                Some(texts) => Self::Texts(texts),
                None => Self::Json(value.to_string()),
            },
            other => other.as_i64().map_or_else(|| Self::Json(other.to_string()), Self::Integer),
        }
    }
}

fn facts<'r>(facts: &'r Map<'_, Json>) -> Vec<(&'r str, Value<'r>)> {
    facts.iter().map(|(name, value)| (name, value.into())).collect()
}

#[derive(ComponentType, Lower)]
#[component(record)]
pub struct Row<'r> {
    namespace: Option<&'r str>,
    name: &'r str,
    values: Vec<Value<'r>>,
    complete: bool,
}

impl<'r> From<&'r abi::Row<'_>> for Row<'r> {
    fn from(abi::Row { namespace, name, values, complete }: &'r abi::Row<'_>) -> Self {
        let values = values.iter().map(Into::into).collect();
        Self { namespace: namespace.as_deref(), name, values, complete: *complete }
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
    operation: &'r str,
    now: i64,
    #[component(name = "dry-run")]
    dry_run: bool,
    attempt: u32,
    stage: Option<&'r str>,
    requester: Requester<'r>,
    creator: Option<Requester<'r>>,
    resource: Option<ApiObject<'r>>,
    cluster: Option<Cluster<'r>>,
    previous: Option<Cluster<'r>>,
    csr: Option<Csr<'r>>,
    object: Option<&'r str>,
    #[component(name = "previous-object")]
    previous_object: Option<&'r str>,
    evidence: Vec<Table<'r>>,
    #[component(name = "set-by-policies")]
    set_by_policies: Vec<Entry<'r>>,
    obligations: Vec<&'r str>,
    more: Vec<(&'r str, Value<'r>)>,
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
            stage,
            requester,
            creator,
            resource,
            cluster,
            previous,
            csr,
            set_by_policies,
            obligations,
            more,
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
            operation: operation.word(),
            now: *now,
            dry_run: *dry_run,
            attempt: *attempt,
            stage: stage.map(abi::Stage::word),
            requester: requester.into(),
            creator: creator.as_ref().map(Into::into),
            resource: resource.as_ref().map(Into::into),
            cluster: cluster.as_ref().map(Into::into),
            previous: previous.as_ref().map(Into::into),
            csr: csr.as_ref().map(Into::into),
            object,
            previous_object,
            evidence: evidence.into_iter().map(table).collect(),
            set_by_policies: entries(set_by_policies),
            obligations: texts(obligations),
            more: facts(more),
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
#[component(record)]
pub struct NewTaint {
    key: String,
    value: String,
    effect: String,
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

impl TryFrom<Edit> for abi::Edit {
    type Error = PolicyError;

    fn try_from(edit: Edit) -> Result<Self, PolicyError> {
        Ok(match edit {
            Edit::SetLabel(Pair { key, value }) => Self::SetLabel { key, value },
            Edit::RemoveLabel(key) => Self::RemoveLabel { key },
            Edit::SetAnnotation(Pair { key, value }) => Self::SetAnnotation { key, value },
            Edit::RemoveAnnotation(key) => Self::RemoveAnnotation { key },
            Edit::AddTaint(NewTaint { key, value, effect }) => {
                let effect = abi::TaintEffect::of(&effect)
                    .ok_or_else(|| PolicyError::Malformed("the effect of a taint is not known".to_owned()))?;
                Self::AddTaint { key, value, effect }
            }
            Edit::RemoveTaint(key) => Self::RemoveTaint { key },
            Edit::SetClusterSet(name) => Self::SetClusterSet { name },
            Edit::SetLeaseDuration(seconds) => Self::SetLeaseDuration { seconds },
        })
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
    more: Vec<(String, Fact)>,
}

/// A fact that a policy tells.
#[derive(ComponentType, Lift)]
#[component(variant)]
pub enum Fact {
    #[component(name = "absent")]
    Absent,
    #[component(name = "boolean")]
    Boolean(bool),
    #[component(name = "integer")]
    Integer(i64),
    #[component(name = "text")]
    Text(String),
    #[component(name = "json")]
    Json(String),
    #[component(name = "texts")]
    Texts(Vec<String>),
}

impl TryFrom<Fact> for Json {
    type Error = PolicyError;

    fn try_from(fact: Fact) -> Result<Self, PolicyError> {
        Ok(match fact {
            Fact::Absent => Self::Null,
            Fact::Boolean(truth) => truth.into(),
            Fact::Integer(number) => number.into(),
            Fact::Text(text) => text.into(),
            Fact::Texts(texts) => texts.into(),
            Fact::Json(json) => serde_json::from_str(&json)
                .map_err(|_| PolicyError::Malformed("a fact is not valid JSON".to_owned()))?,
        })
    }
}

/// A map of pairs. Which of two equal keys should count, nobody can say.
fn map(what: &str, pairs: Vec<Pair>) -> Result<BTreeMap<String, String>, PolicyError> {
    let many = pairs.len();
    let map: BTreeMap<String, String> = pairs.into_iter().map(|Pair { key, value }| (key, value)).collect();
    if map.len() == many {
        Ok(map)
    } else {
        Err(PolicyError::Malformed(format!("a key stands twice among the {what}")))
    }
}

fn facts_of(facts: Vec<(String, Fact)>) -> Result<BTreeMap<String, Json>, PolicyError> {
    let many = facts.len();
    let map: BTreeMap<_, _> =
        facts.into_iter().map(|(name, fact)| Ok((name, fact.try_into()?))).collect::<Result<_, PolicyError>>()?;
    if map.len() == many { Ok(map) } else { Err(PolicyError::Malformed("a fact is told twice".to_owned())) }
}

impl TryFrom<Decision> for abi::Decision {
    type Error = PolicyError;

    fn try_from(decision: Decision) -> Result<Self, PolicyError> {
        let Decision { verdict, ask_again_seconds, reasons, warnings, edits, obligations, audit, more } = decision;
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
            edits: edits.into_iter().map(abi::Edit::try_from).collect::<Result<_, PolicyError>>()?,
            obligations: obligations.into_iter().map(obligation).collect::<Result<_, PolicyError>>()?,
            audit: map("audit entries", audit)?,
            more: facts_of(more)?,
        })
    }
}

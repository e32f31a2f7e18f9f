//! Questions to policies: from admission reviews, from plain objects, and back into the form of Kubernetes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_core::csr;
use ocm_policy_abi::{
    Claim, ClientConfig, Cluster, Condition, Csr, Key, Map, Operation, Owner, Request, Requester, Resource, Signature,
    Stage, Taint, Text,
};
use ocm_rules::csr::{CLUSTER_NAME, CSR_USER};
use ocm_rules::identity::{self, Identity};
use serde_json::{Value, json};

use crate::json::sha256_hex;

const CLUSTER_GROUP: &str = "cluster.open-cluster-management.io";
const CLUSTERS: &str = "managedclusters";
const CSR_GROUP: &str = "certificates.k8s.io";
const CSRS: &str = "certificatesigningrequests";
/// Options of operations that are texts.
const TEXT_OPTIONS: [&str; 3] = ["fieldManager", "fieldValidation", "propagationPolicy"];
/// How much of what agents and others write a policy is shown: of each list so many items, of each text so many bytes.
const MOST_ENTRIES: usize = 1024;
const MOST_ITEMS: usize = 128;
const MOST_BYTES: usize = 1024;

/// Why something cannot be made a question of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {wrong}")]
pub struct Unusable {
    /// The field, such as `object.metadata.name`.
    pub path: String,
    /// What is wrong with it.
    pub wrong: String,
}

fn unusable(path: impl Into<String>, wrong: impl Into<String>) -> Unusable {
    Unusable { path: path.into(), wrong: wrong.into() }
}

/// What a question is asked with, besides the object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asking {
    /// Names the question. Of an admission review its own UID counts.
    pub id: String,
    /// The time, in milliseconds since 1970.
    pub now: i64,
    /// How often the same question was answered with `hold` before.
    pub attempt: u32,
    /// Whether nothing will be stored. Of an admission review its own word counts.
    pub dry_run: bool,
    /// Whether the policy's manifest asks for whole objects.
    pub wants_object: bool,
    /// Where in admission it is asked.
    pub stage: Option<Stage>,
    /// Who asked for the certificate that this is about, or else created the cluster, if the hub knows it. Of a
    /// certificate request its own word counts.
    pub creator: Option<Requester<'static>>,
    /// What policies have set in the object at the mutating stage, see [`crate::edits::values`].
    pub set_by_policies: Map<'static, Text<'static>>,
    /// The obligations that the hub knows.
    pub obligations: Vec<Text<'static>>,
}

/// The request inside of an AdmissionReview, `admission.k8s.io/v1` or `v1beta1`: requests of both have the same members.
///
/// # Errors
/// Says what the review lacks.
pub fn request_of(review: &Value) -> Result<&Value, Unusable> {
    let word = |name: &str| review.get(name).and_then(Value::as_str);
    if word("kind") != Some("AdmissionReview") {
        return Err(unusable("kind", "it must be AdmissionReview"));
    }
    if !matches!(word("apiVersion"), Some("admission.k8s.io/v1" | "admission.k8s.io/v1beta1")) {
        return Err(unusable("apiVersion", "it must be admission.k8s.io/v1 or admission.k8s.io/v1beta1"));
    }
    review.get("request").filter(|request| request.is_object()).ok_or_else(|| unusable("request", "there is none"))
}

/// Makes a question of the request of an admission review.
///
/// A ManagedCluster that is created, updated or deleted is asked about as such; writes to its subresources are updates,
/// and an update that sets `hubAcceptsClient` is [`Operation::Accept`]. A certificate request that is created is
/// [`Operation::Request`], one that is written through `approval` is [`Operation::Approve`]; all else is
/// [`Operation::Admit`].
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn from_admission<'a>(request: &'a Value, asking: &Asking) -> Result<Request<'a>, Unusable> {
    let request = At { value: request, path: "request".to_owned() };
    let new = request.member("object")?;
    let old = request.member("oldObject")?;
    // A deletion of many names none of them, and has no object but the old one.
    let subject = new.as_ref().or(old.as_ref());
    let resource = resource(&request, subject)?;
    let place = (&*resource.group, &*resource.version, &*resource.resource);
    let subresource = resource.subresource.as_deref();
    let verb = &*resource.operation;
    let (mut cluster, mut previous, mut certificate) = (None, None, None);
    let user = request.needed("userInfo")?;
    let requester = requester(&user)?;
    let operation = match place {
        (CLUSTER_GROUP, "v1", CLUSTERS) if matches!(verb, "CREATE" | "UPDATE" | "DELETE") => {
            cluster = subject.map(read_cluster).transpose()?;
            previous = old.as_ref().filter(|_| new.is_some()).map(read_cluster).transpose()?;
            match verb {
                "CREATE" => Operation::Create,
                "DELETE" => Operation::Delete,
                // Only the change counts: whoever writes to a cluster that is accepted accepts nobody.
                _ if subresource.is_none() && accepts(previous.as_ref(), cluster.as_ref()) => Operation::Accept,
                _ => Operation::Update,
            }
        }
        (CSR_GROUP, "v1", CSRS) => {
            certificate = subject
                .map(|subject| match (verb, &old) {
                    ("CREATE", _) => created_csr(subject, &requester),
                    ("UPDATE", Some(old)) => updated_csr(subject, old, subresource),
                    _ => read_csr(subject),
                })
                .transpose()?;
            match (verb, subresource) {
                ("CREATE", None) => Operation::Request,
                ("UPDATE", Some("approval")) => Operation::Approve,
                _ => Operation::Admit,
            }
        }
        _ => Operation::Admit,
    };
    let needs_subject = matches!(verb, "CREATE" | "UPDATE" | "DELETE") && operation != Operation::Admit;
    if needs_subject && subject.is_none() {
        return Err(unusable("request.object", "there is none"));
    }
    let object = |at: &Option<At<'a>>| at.as_ref().filter(|_| asking.wants_object).map(|at| at.value.clone());
    let asked = plain(operation, requester, asking);
    let creator = match (&certificate, operation) {
        (Some(csr), Operation::Approve) => Some(csr.requester.clone()),
        (_, Operation::Accept) => asked.creator.clone(),
        // Whoever makes the API request creates what it is about.
        _ => None,
    };
    Ok(Request {
        id: request.text("uid")?.unwrap_or_default().into(),
        dry_run: request.flag("dryRun")?.unwrap_or(false),
        creator,
        object: object(&new),
        previous_object: object(&old),
        resource: Some(resource),
        cluster,
        previous,
        csr: certificate,
        ..asked
    })
}

/// Whether an update accepts a cluster that was not accepted before.
fn accepts(before: Option<&Cluster<'_>>, after: Option<&Cluster<'_>>) -> bool {
    after.is_some_and(|after| after.accepted) && !before.is_some_and(|before| before.accepted)
}

/// Makes a question about a ManagedCluster that no admission review is about: whether it may be accepted
/// ([`Operation::Accept`]), or would pass as if it were created, updated or deleted now. The object does not tell who
/// created it, so whoever knows says it.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn of_cluster<'a>(
    operation: Operation,
    cluster: &'a Value,
    requester: Requester<'a>,
    asking: &Asking,
) -> Result<Request<'a>, Unusable> {
    let verb = match operation {
        Operation::Create => "CREATE",
        Operation::Update | Operation::Accept => "UPDATE",
        Operation::Delete => "DELETE",
        other => return Err(unusable("operation", format!("{} is not about a ManagedCluster alone", other.word()))),
    };
    let facts = read_cluster(&At { value: cluster, path: "object".to_owned() })?;
    let name = Some(facts.name.clone()).filter(|name| !name.is_empty());
    let deleted = operation == Operation::Delete;
    let object = asking.wants_object.then(|| cluster.clone());
    Ok(Request {
        resource: Some(cluster_resource(name, verb)),
        cluster: Some(facts),
        object: object.clone().filter(|_| !deleted),
        previous_object: object.filter(|_| deleted),
        ..plain(operation, requester, asking)
    })
}

/// Makes a question about a CertificateSigningRequest that no admission review is about: whether it may be approved
/// ([`Operation::Approve`]), or would pass as if it were created now ([`Operation::Request`]). Whoever created it is the
/// requester.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn of_csr<'a>(operation: Operation, object: &'a Value, asking: &Asking) -> Result<Request<'a>, Unusable> {
    let (subresource, verb) = match operation {
        Operation::Request => (None, "CREATE"),
        Operation::Approve => (Some("approval".into()), "UPDATE"),
        other => return Err(unusable("operation", format!("{} is not about a certificate request", other.word()))),
    };
    let csr = read_csr(&At { value: object, path: "object".to_owned() })?;
    Ok(Request {
        resource: Some(Resource {
            group: CSR_GROUP.into(),
            version: "v1".into(),
            kind: "CertificateSigningRequest".into(),
            resource: CSRS.into(),
            subresource,
            name: csr.name.clone(),
            operation: verb.into(),
            ..Resource::default()
        }),
        object: asking.wants_object.then(|| object.clone()),
        requester: csr.requester.clone(),
        csr: Some(csr),
        ..plain(operation, Requester::default(), asking)
    })
}

/// Makes one question about a CertificateSigningRequest and the ManagedCluster that it is for. The whole object, if
/// asked for, is the ManagedCluster.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn join<'a>(csr: &'a Value, cluster: &'a Value, asking: &Asking) -> Result<Request<'a>, Unusable> {
    let csr = read_csr(&At { value: csr, path: "csr".to_owned() })?;
    let about = of_cluster(Operation::Accept, cluster, csr.requester.clone(), asking)?;
    Ok(Request { operation: Operation::Join, csr: Some(csr), ..about })
}

fn plain<'a>(operation: Operation, requester: Requester<'a>, asking: &Asking) -> Request<'a> {
    Request {
        id: asking.id.clone().into(),
        now: asking.now,
        dry_run: asking.dry_run,
        attempt: asking.attempt,
        stage: asking.stage,
        creator: asking.creator.clone(),
        set_by_policies: asking.set_by_policies.clone(),
        obligations: asking.obligations.clone(),
        ..Request::new(operation, requester)
    }
}

fn cluster_resource<'a>(name: Option<Text<'a>>, verb: &'static str) -> Resource<'a> {
    Resource {
        group: CLUSTER_GROUP.into(),
        version: "v1".into(),
        kind: "ManagedCluster".into(),
        resource: CLUSTERS.into(),
        name,
        operation: verb.into(),
        ..Resource::default()
    }
}

/// The question as Kubernetes would put it in `request` of an AdmissionReview, for policies that know no other form.
/// `object` stands in where the question carries none.
pub fn admission_request(request: &Request<'_>, object: Option<&Value>) -> Value {
    let assumed = cluster_resource(None, "UPDATE");
    let resource = request.resource.as_ref().unwrap_or(&assumed);
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let plural = json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
    let deleted = &*resource.operation == "DELETE";
    let (mut new, mut old) = (request.object.as_ref(), request.previous_object.as_ref());
    match deleted {
        true => old = old.or(object),
        false => new = new.or(object),
    }
    let options = match &*resource.operation {
        "CREATE" => "CreateOptions",
        "DELETE" => "DeleteOptions",
        _ => "UpdateOptions",
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": options});
    for (name, value) in resource.options.iter() {
        // What was no text is JSON; a text that happens to be JSON stays one where the API has texts.
        options[name] = match serde_json::from_str(value) {
            Ok(value) if !TEXT_OPTIONS.contains(&name) => value,
            _ => json!(value),
        };
    }
    if let Some(manager) = &resource.field_manager {
        options["fieldManager"] = json!(manager);
    }
    let mut out = json!({
        "uid": request.id,
        "kind": kind, "requestKind": kind,
        "resource": plural, "requestResource": plural,
        "operation": resource.operation,
        "userInfo": request.requester,
        "object": new, "oldObject": old,
        "dryRun": request.dry_run,
        "options": options,
    });
    let optional = [
        ("name", &resource.name),
        ("namespace", &resource.namespace),
        ("subResource", &resource.subresource),
        ("requestSubResource", &resource.subresource),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            out[key] = json!(value);
        }
    }
    out
}

/// The facts of a ManagedCluster.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn cluster(object: &Value) -> Result<Cluster<'_>, Unusable> {
    read_cluster(&At { value: object, path: "object".to_owned() })
}

/// The facts of a CertificateSigningRequest as it is stored, and when it was decided about, in milliseconds since 1970.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub(crate) fn certificate_request(object: &Value) -> Result<(Csr<'_>, Option<i64>), Unusable> {
    read_decided_csr(&At { value: object, path: "object".to_owned() })
}

/// The cluster whose agent's name a certificate request asks for, or else the one that its label names: the request
/// counts among those of that cluster. Whether it may have what it asks for is another question.
pub fn cluster_of_csr<'r>(csr: &'r Csr<'_>) -> Option<&'r str> {
    let named = csr.common_names.iter().find_map(|name| Identity::of(name).cluster());
    named.or_else(|| csr.labels.get(CLUSTER_NAME).map(Text::as_str))
}

/// Every cluster that a certificate request names, by its common names or its label.
pub(crate) fn clusters_of_csr<'r>(csr: &'r Csr<'_>) -> BTreeSet<&'r str> {
    let named = csr.common_names.iter().filter_map(|name| Identity::of(name).cluster());
    named.chain(csr.labels.get(CLUSTER_NAME).map(Text::as_str)).collect()
}

/// Who asked for a certificate; behind the hub's gRPC server, and there only, the user that it names.
pub fn asked_by<'r>(csr: &'r Csr<'_>) -> &'r str {
    let requester = &csr.requester;
    let facts = identity::Requester {
        user: &requester.username,
        uid: requester.uid.as_deref(),
        groups: &requester.groups,
        credential_ids: requester.extra.get(identity::CREDENTIAL_ID).map_or(&[], Vec::as_slice),
    };
    match csr.annotations.get(CSR_USER) {
        Some(user) if facts.is_grpc_server() => user,
        _ => &requester.username,
    }
}

/// The cluster that a question is about: whose rows its evidence has.
pub fn cluster_of<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let named = request.cluster.as_ref().map(|cluster| cluster.name.as_str()).filter(|name| !name.is_empty());
    named.or_else(|| cluster_of_csr(request.csr.as_ref()?))
}

/// A value and where it stands.
#[derive(Clone, Debug)]
struct At<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// What a member holds; null is nothing.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Unusable> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| unusable(self.at(name), format!("it is no {what}")))
    }

    fn member(&self, name: &str) -> Result<Option<Self>, Unusable> {
        let value = self.typed(name, "object", |value| value.is_object().then_some(value))?;
        Ok(value.map(|value| Self { value, path: self.at(name) }))
    }

    fn needed(&self, name: &str) -> Result<Self, Unusable> {
        self.member(name)?.ok_or_else(|| unusable(self.at(name), "there is none"))
    }

    /// A text; an empty one is none, as Go writes it.
    fn text(&self, name: &str) -> Result<Option<&'a str>, Unusable> {
        Ok(self.typed(name, "text", Value::as_str)?.filter(|text| !text.is_empty()))
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, Unusable> {
        self.typed(name, "boolean", Value::as_bool)
    }

    fn number(&self, name: &str) -> Result<Option<i64>, Unusable> {
        self.typed(name, "whole number", Value::as_i64)
    }

    fn time(&self, name: &str) -> Result<Option<i64>, Unusable> {
        self.typed(name, "time", |value| Some(value.as_str()?.parse::<Timestamp>().ok()?.as_millisecond()))
    }

    fn items(&self, name: &str) -> Result<Vec<Self>, Unusable> {
        let items = self.typed(name, "list", Value::as_array)?.map(Vec::as_slice).unwrap_or_default();
        let path = |index| format!("{}[{index}]", self.at(name));
        Ok(items.iter().enumerate().map(|(index, value)| Self { value, path: path(index) }).collect())
    }

    fn texts(&self, name: &str) -> Result<Vec<Text<'a>>, Unusable> {
        let text = |item: Self| item.value.as_str().map(Text::from).ok_or_else(|| unusable(item.path, "it is no text"));
        self.items(name)?.into_iter().map(text).collect()
    }

    /// The entries of a map of texts, sorted by key.
    fn map(&self, name: &str) -> Result<Map<'a, Text<'a>>, Unusable> {
        let Some(member) = self.member(name)? else { return Ok(Map::default()) };
        let mut entries = Vec::new();
        for (key, value) in member.value.as_object().into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| unusable(member.at(key), "it is no text"))?;
            entries.push((key.as_str(), Text::from(value)));
        }
        entries.sort_by_key(|(key, _)| *key);
        Ok(entries.into_iter().collect())
    }
}

fn resource<'a>(request: &At<'a>, subject: Option<&At<'a>>) -> Result<Resource<'a>, Unusable> {
    let kind = request.needed("kind")?;
    let plural = request.needed("resource")?;
    let needed = |at: &At<'a>, name: &str| at.text(name)?.ok_or_else(|| unusable(at.at(name), "there is none"));
    let metadata = subject.map(|subject| subject.member("metadata")).transpose()?.flatten();
    let named = |name: &str| -> Result<Option<Text<'a>>, Unusable> {
        let of_object = metadata.as_ref().map(|metadata| metadata.text(name)).transpose()?.flatten();
        Ok(request.text(name)?.or(of_object).map(Text::from))
    };
    let options = request.member("options")?;
    let manager = options.as_ref().map(|options| options.text("fieldManager")).transpose()?.flatten();
    let members = options.as_ref().and_then(|options| options.value.as_object()).into_iter().flatten();
    let mut options: Vec<_> = members
        // Members of every object, and the one that has a name of its own here.
        .filter(|(name, value)| !["apiVersion", "kind", "fieldManager"].contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| match value.as_str() {
            Some(text) => (name.as_str(), Text::from(text)),
            None => (name.as_str(), Text::from(value.to_string())),
        })
        .collect();
    options.sort_by_key(|(name, _)| *name);
    Ok(Resource {
        group: plural.text("group")?.unwrap_or_default().into(),
        version: needed(&plural, "version")?.into(),
        kind: needed(&kind, "kind")?.into(),
        resource: needed(&plural, "resource")?.into(),
        subresource: request.text("subResource")?.map(Text::from),
        namespace: named("namespace")?,
        name: named("name")?,
        operation: needed(request, "operation")?.into(),
        field_manager: manager.map(Text::from),
        options: options.into_iter().collect(),
    })
}

/// `userInfo` of a review and the spec of a certificate request name their members alike.
fn requester<'a>(at: &At<'a>) -> Result<Requester<'a>, Unusable> {
    let mut entries = Vec::new();
    if let Some(extra) = at.member("extra")? {
        for key in extra.value.as_object().into_iter().flat_map(|members| members.keys()) {
            entries.push((key.as_str(), extra.texts(key)?));
        }
    }
    entries.sort_by_key(|(key, _)| *key);
    let extra: Map<'a, Vec<Text<'a>>> = entries.into_iter().collect();
    Ok(Requester {
        username: at.text("username")?.unwrap_or_default().into(),
        uid: at.text("uid")?.map(Text::from),
        groups: at.texts("groups")?,
        certificate_sha256: certificate_sha256(&extra),
        extra,
    })
}

/// The fingerprint of the client certificate that was shown, as the API server tells it.
fn certificate_sha256<'a>(extra: &Map<'a, Vec<Text<'a>>>) -> Option<Text<'a>> {
    let ids = extra.get(identity::CREDENTIAL_ID)?;
    let digest = ids.iter().find_map(|id| id.strip_prefix("X509SHA256="))?;
    Some(digest.to_ascii_lowercase().into())
}

fn read_cluster<'a>(at: &At<'a>) -> Result<Cluster<'a>, Unusable> {
    let metadata = at.needed("metadata")?;
    let nothing = At { value: &Value::Null, path: String::new() };
    let spec = at.member("spec")?.unwrap_or_else(|| nothing.clone());
    let status = at.member("status")?.unwrap_or_else(|| nothing.clone());
    let version = status.member("version")?.unwrap_or(nothing);
    let mut cut = Cut::default();
    let mut cluster = Cluster {
        // Empty where the server has yet to generate it.
        name: metadata.text("name")?.unwrap_or_default().into(),
        uid: metadata.text("uid")?.map(Text::from),
        resource_version: metadata.text("resourceVersion")?.map(Text::from),
        generation: metadata.number("generation")?,
        labels: cut.entries(metadata.map("labels")?, "labels"),
        annotations: cut.entries(metadata.map("annotations")?, "annotations"),
        finalizers: cut.items(metadata.texts("finalizers")?, "finalizers"),
        created: metadata.time("creationTimestamp")?,
        deleting: metadata.time("deletionTimestamp")?.is_some(),
        accepted: spec.flag("hubAcceptsClient")?.unwrap_or(false),
        lease_duration_seconds: spec.number("leaseDurationSeconds")?,
        kubernetes_version: version.text("kubernetes")?.map(|text| cut.text(text.into(), "kubernetesVersion")),
        ..Cluster::default()
    };
    let text = |at: &At<'a>, name: &str| at.text(name).map(|text| Text::from(text.unwrap_or_default()));
    for owner in cut.items(metadata.items("ownerReferences")?, "owners") {
        cluster.owners.push(Owner {
            api_version: text(&owner, "apiVersion")?,
            kind: text(&owner, "kind")?,
            name: text(&owner, "name")?,
            uid: text(&owner, "uid")?,
            controller: owner.flag("controller")?.unwrap_or(false),
        });
    }
    for taint in cut.items(spec.items("taints")?, "taints") {
        cluster.taints.push(Taint {
            key: text(&taint, "key")?,
            value: text(&taint, "value")?,
            effect: text(&taint, "effect")?,
            added: taint.time("timeAdded")?,
        });
    }
    for config in cut.items(spec.items("managedClusterClientConfigs")?, "clientConfigs") {
        let bundle = config.typed("caBundle", "base64", |value| serde_json::from_value(value.clone()).ok())?;
        let bundle = bundle.map(|ByteString(bytes)| bytes).filter(|bytes| !bytes.is_empty());
        cluster.client_configs.push(ClientConfig {
            url: cut.text(text(&config, "url")?, "clientConfigs"),
            ca_sha256: bundle.map(|bytes| sha256_hex(&bytes).into()),
        });
    }
    for claim in cut.items(status.items("clusterClaims")?, "claims") {
        cluster.claims.push(Claim {
            name: cut.text(text(&claim, "name")?, "claims"),
            value: cut.text(text(&claim, "value")?, "claims"),
        });
    }
    for condition in cut.items(status.items("conditions")?, "conditions") {
        cluster.conditions.push(Condition {
            kind: cut.text(text(&condition, "type")?, "conditions"),
            status: cut.text(text(&condition, "status")?, "conditions"),
            reason: cut.text(text(&condition, "reason")?, "conditions"),
            message: cut.text(text(&condition, "message")?, "conditions"),
            since: condition.time("lastTransitionTime")?,
        });
    }
    cluster.truncated = cut.0.into_iter().map(Text::from).collect();
    Ok(cluster)
}

/// Keeps facts within bounds, and remembers what it cut: whoever inflates an object must not make policies run out of
/// fuel when somebody else writes to it.
#[derive(Default)]
struct Cut(BTreeSet<&'static str>);

impl Cut {
    fn items<T>(&mut self, mut items: Vec<T>, member: &'static str) -> Vec<T> {
        if items.len() > MOST_ITEMS {
            items.truncate(MOST_ITEMS);
            self.0.insert(member);
        }
        items
    }

    fn entries<'a>(&mut self, entries: Map<'a, Text<'a>>, member: &'static str) -> Map<'a, Text<'a>> {
        if entries.len() <= MOST_ENTRIES {
            return entries;
        }
        self.0.insert(member);
        entries.into_entries().take(MOST_ENTRIES).collect()
    }

    fn text<'a>(&mut self, text: Text<'a>, member: &'static str) -> Text<'a> {
        if text.len() <= MOST_BYTES {
            return text;
        }
        self.0.insert(member);
        text[..text.floor_char_boundary(MOST_BYTES)].to_owned().into()
    }
}

/// A certificate request that is being created. What only the server may write is not there yet, or is a claim of the
/// client: who asks is who makes the API request, and nobody has decided.
fn created_csr<'a>(at: &At<'a>, requester: &Requester<'a>) -> Result<Csr<'a>, Unusable> {
    Ok(Csr { requester: requester.clone(), state: state_word(csr::State::Pending), ..read_csr(at)? })
}

/// A certificate request that is written again. Its spec never changes, so the stored one counts, and so does what has
/// become of it so far.
fn updated_csr<'a>(new: &At<'a>, old: &At<'a>, subresource: Option<&str>) -> Result<Csr<'a>, Unusable> {
    let stored = read_csr(old)?;
    let metadata = new.needed("metadata")?;
    let adds_condition = match subresource {
        Some("approval" | "status") => added_condition(new, old)?,
        _ => None,
    };
    Ok(Csr { labels: metadata.map("labels")?, annotations: metadata.map("annotations")?, adds_condition, ..stored })
}

/// The condition that is new. If there were several, the most consequential one: a rule for approvals must see it.
fn added_condition<'a>(new: &At<'a>, old: &At<'a>) -> Result<Option<Text<'a>>, Unusable> {
    let types = |at: &At<'a>| -> Result<Vec<&'a str>, Unusable> {
        let Some(status) = at.member("status")? else { return Ok(Vec::new()) };
        Ok(status.items("conditions")?.iter().filter_map(|item| item.value.get("type")?.as_str()).collect())
    };
    let before = types(old)?;
    let added: Vec<&str> = types(new)?.into_iter().filter(|kind| !before.contains(kind)).collect();
    let first = ["Approved", "Denied", "Failed"].into_iter().find(|kind| added.contains(kind));
    Ok(first.or(added.first().copied()).map(Text::from))
}

fn state_word<'a>(state: csr::State) -> Text<'a> {
    state.to_string().into()
}

fn read_csr<'a>(at: &At<'a>) -> Result<Csr<'a>, Unusable> {
    read_decided_csr(at).map(|(csr, _)| csr)
}

fn read_decided_csr<'a>(at: &At<'a>) -> Result<(Csr<'a>, Option<i64>), Unusable> {
    let metadata = at.needed("metadata")?;
    let spec = at.needed("spec")?;
    let object: CertificateSigningRequest =
        serde_json::from_value(at.value.clone()).map_err(|error| unusable(at.path.clone(), error.to_string()))?;
    let read = csr::Request::read(&object);
    let mut csr = Csr {
        name: metadata.text("name")?.map(Text::from),
        uid: metadata.text("uid")?.map(Text::from),
        resource_version: metadata.text("resourceVersion")?.map(Text::from),
        labels: metadata.map("labels")?,
        annotations: metadata.map("annotations")?,
        signer: spec.text("signerName")?.unwrap_or_default().into(),
        usages: spec.texts("usages")?,
        lifetime_seconds: spec.number("expirationSeconds")?,
        requester: requester(&spec)?,
        created: metadata.time("creationTimestamp")?,
        state: state_word(read.state),
        ..Csr::default()
    };
    match read.content {
        Err(error) => csr.unreadable = Some(error.to_string().into()),
        Ok(content) => {
            let owned = |texts: Vec<String>| texts.into_iter().map(Text::from).collect();
            csr.common_names = owned(content.common_names);
            csr.organizations = owned(content.organizations);
            csr.other_attributes = owned(content.other_attributes);
            csr.alternative_names = owned(content.alternative_names);
            csr.extensions = owned(content.extensions);
            csr.key = key(content.key);
            csr.spki_sha256 = content.spki_sha256.into();
            csr.signature = match content.signature {
                csr::Signature::Valid => Signature::Valid,
                csr::Signature::Invalid => Signature::Invalid,
                csr::Signature::Unverifiable => Signature::Unverifiable,
            };
        }
    }
    Ok((csr, read.decided.map(Timestamp::as_millisecond)))
}

fn key<'a>(key: csr::Key) -> Key<'a> {
    let (algorithm, bits) = match key {
        csr::Key::P256 => ("ECDSA".to_owned(), 256),
        csr::Key::P384 => ("ECDSA".to_owned(), 384),
        csr::Key::P521 => ("ECDSA".to_owned(), 521),
        csr::Key::Ed25519 => ("Ed25519".to_owned(), 256),
        csr::Key::Rsa(bits) => ("RSA".to_owned(), u32::try_from(bits).unwrap_or(u32::MAX)),
        csr::Key::Other(name) => (name, 0),
    };
    Key { algorithm: algorithm.into(), bits }
}

#[cfg(test)]
mod tests {
    use serde_json::Map as Object;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "recorded reviews are files")]
    fn sample(name: &str) -> Value {
        let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn asking(wants_object: bool) -> Asking {
        Asking { id: "q".into(), now: 1_700_000_000_000, attempt: 2, wants_object, ..Asking::default() }
    }

    fn with<T>(name: &str, test: impl FnOnce(Request<'_>) -> T) -> T {
        let review = sample(name);
        test(from_admission(request_of(&review).unwrap(), &asking(false)).unwrap())
    }

    #[test]
    fn a_creation() {
        with("cluster-create", |request| {
            assert_eq!((&*request.id, request.operation, request.now), ("1", Operation::Create, 1_700_000_000_000));
            assert_eq!((request.attempt, request.dry_run), (2, false));
            let credentials = request.requester.extra.get("authentication.kubernetes.io/credential-id");
            assert_eq!(credentials.unwrap()[0], "JTI=id-of-token");
            let cluster = request.cluster.unwrap();
            assert_eq!((&*cluster.name, cluster.accepted, cluster.lease_duration_seconds), ("c1", false, Some(60)));
            assert_eq!(cluster.created, Some(1_795_215_756_000));
            assert!(request.previous.is_none() && request.object.is_none());
        });
        with("cluster-apply-dry-run", |request| {
            assert!(request.dry_run);
            assert_eq!(request.resource.unwrap().field_manager.unwrap(), "gitops");
        });
        with("cluster-generate-name", |request| {
            assert_eq!((request.operation, request.resource.unwrap().name), (Operation::Create, None));
            assert_eq!(request.cluster.unwrap().name, "");
        });
    }

    #[test]
    fn acceptance_shows_both_sides_and_who_asked_for_the_certificate() {
        with("cluster-accept", |request| {
            assert_eq!((request.operation, request.creator), (Operation::Accept, None));
            assert!(request.cluster.unwrap().accepted && !request.previous.unwrap().accepted);
        });
        let mut review = sample("cluster-accept");
        let creator = Requester { username: "joiner".into(), ..Requester::default() };
        let knowing = Asking { creator: Some(creator.clone()), ..asking(false) };
        let request = from_admission(&review["request"], &knowing).unwrap();
        assert_eq!((&request.creator, &*request.requester.username == "joiner"), (&Some(creator), false));
        // Only the change is acceptance: later writes to an accepted cluster are updates.
        review["request"]["oldObject"]["spec"]["hubAcceptsClient"] = json!(true);
        let request = from_admission(&review["request"], &knowing).unwrap();
        assert_eq!((request.operation, request.creator), (Operation::Update, None));
        with("cluster-status", |request| {
            assert_eq!(request.operation, Operation::Update);
            assert_eq!(request.resource.unwrap().subresource.unwrap(), "status");
            assert_eq!(request.cluster.unwrap().claims[0].value, "other");
        });
    }

    #[test]
    fn a_deletion_without_a_name_shows_what_is_deleted() {
        with("cluster-delete-collection", |request| {
            assert_eq!(request.operation, Operation::Delete);
            assert_eq!(request.resource.unwrap().name.unwrap(), "c1");
            assert!(request.previous.is_none());
            let cluster = request.cluster.unwrap();
            assert!(cluster.deleting && cluster.accepted);
            assert_eq!(cluster.owners[0].kind, "Namespace");
            assert_eq!(cluster.taints[0].effect, "NoSelect");
            assert_eq!(cluster.client_configs[0].ca_sha256.as_deref(), Some(sha256_hex(b"a bundle").as_str()));
            assert_eq!(cluster.conditions[0].since, Some(1_795_215_893_000));
        });
    }

    #[test]
    fn a_new_certificate_request_is_pending_and_its_requester_is_who_asks() {
        with("csr-create-before-mutation", |request| {
            assert_eq!((request.operation, &request.creator), (Operation::Request, &None));
            let resource = request.resource.unwrap();
            assert_eq!((&*resource.operation, resource.name), ("CREATE", None));
            let csr = request.csr.unwrap();
            // The object claims another requester and that it is approved.
            assert_eq!((&csr.requester, &*csr.state), (&request.requester, "Pending"));
            assert_eq!(csr.common_names, ["system:open-cluster-management:c1:agent-1"]);
            assert_eq!((csr.organizations.len(), csr.signature), (2, Signature::Valid));
            assert_eq!((&*csr.key.algorithm, csr.key.bits, csr.spki_sha256.len()), ("ECDSA", 256, 64));
            assert_eq!((csr.lifetime_seconds, csr.unreadable), (Some(31_536_000), None));
        });
    }

    #[test]
    fn approval_and_denial_are_told_apart() {
        for (name, adds) in [("csr-approval", "Approved"), ("csr-denial", "Denied")] {
            with(name, |request| {
                assert_eq!(request.operation, Operation::Approve);
                let csr = request.csr.unwrap();
                assert_eq!((csr.adds_condition.unwrap(), csr.state), (adds.into(), "Pending".into()));
                assert_ne!(csr.requester, request.requester);
                assert_eq!(request.creator, Some(csr.requester));
            });
        }
        with("csr-signed", |request| {
            assert_eq!(request.operation, Operation::Admit);
            let csr = request.csr.unwrap();
            assert_eq!((csr.adds_condition, csr.state), (None, "Approved".into()));
        });
    }

    #[test]
    fn an_approval_cannot_swap_the_request() {
        let mut review = sample("csr-approval");
        review["request"]["object"]["spec"]["request"] = json!("bm90aGluZw==");
        review["request"]["object"]["spec"]["username"] = json!("system:admin");
        let request = from_admission(&review["request"], &asking(false)).unwrap();
        let csr = request.csr.unwrap();
        assert!(csr.unreadable.is_none() && csr.requester.username.ends_with("agent-registration-bootstrap"));
    }

    #[test]
    fn an_approval_is_never_hidden_behind_another_condition() {
        let mut review = sample("csr-denial");
        let conditions = review["request"]["object"]["status"]["conditions"].as_array_mut().unwrap();
        conditions.push(json!({"type": "Approved", "status": "True"}));
        let request = from_admission(&review["request"], &asking(false)).unwrap();
        assert_eq!(request.csr.unwrap().adds_condition.unwrap(), "Approved");
    }

    #[test]
    fn everything_else_is_admitted() {
        let review = sample("work-create");
        let request = from_admission(&review["request"], &asking(true)).unwrap();
        assert_eq!((request.operation, request.cluster, request.csr), (Operation::Admit, None, None));
        assert_eq!(request.resource.unwrap().namespace.unwrap(), "c1");
        assert_eq!(request.object.unwrap()["kind"], "ManifestWork");
    }

    #[test]
    fn plain_objects_are_asked_about_as_well() {
        let (csr, cluster) = (sample("stored-csr"), sample("stored-cluster"));
        assert!(of_csr(Operation::Join, &csr, &asking(false)).is_err());
        let request = of_csr(Operation::Approve, &csr, &asking(false)).unwrap();
        assert_eq!((&*request.id, request.operation, request.object), ("q", Operation::Approve, None));
        assert_eq!(request.requester, request.csr.unwrap().requester);
        let request = of_cluster(Operation::Accept, &cluster, Requester::default(), &asking(true)).unwrap();
        assert_eq!((request.operation, request.object.as_ref()), (Operation::Accept, Some(&cluster)));
        let request = join(&csr, &cluster, &asking(false)).unwrap();
        assert_eq!((request.operation, request.cluster.unwrap().name), (Operation::Join, "c1".into()));
        assert_eq!(request.requester.username, request.csr.unwrap().requester.username);
        assert!(of_cluster(Operation::Admit, &cluster, Requester::default(), &asking(false)).is_err());
    }

    #[test]
    fn what_is_new_in_the_contract_is_read() {
        let mut review = sample("cluster-delete-collection");
        let request = &mut review["request"];
        request["userInfo"]["extra"] = json!({"authentication.kubernetes.io/credential-id": ["X509SHA256=00FF"]});
        request["options"] =
            json!({"kind": "DeleteOptions", "propagationPolicy": "Foreground", "gracePeriodSeconds": 5});
        let old = &mut request["oldObject"];
        old["metadata"]["resourceVersion"] = json!("12");
        old["metadata"]["generation"] = json!(3);
        old["metadata"]["ownerReferences"][0]["controller"] = json!(true);
        old["spec"]["taints"] = json!([{"key": "k", "effect": "NoSelect", "timeAdded": "2026-11-20T23:04:52Z"}]);
        old["status"]["version"] = json!({"kubernetes": "v1.35.4"});
        old["status"]["conditions"] = json!([{"type": "A", "status": "True", "reason": "B", "message": "told"}]);
        let request = from_admission(request, &asking(false)).unwrap();
        assert_eq!(request.requester.certificate_sha256.as_deref(), Some("00ff"));
        let resource = request.resource.unwrap();
        let options: Vec<_> = resource.options.iter().map(|(name, value)| (name, value.as_str())).collect();
        assert_eq!(options, [("gracePeriodSeconds", "5"), ("propagationPolicy", "Foreground")]);
        let cluster = request.cluster.unwrap();
        assert_eq!((cluster.resource_version.as_deref(), cluster.generation), (Some("12"), Some(3)));
        assert_eq!((cluster.owners[0].uid.as_str(), cluster.owners[0].controller), ("x", true));
        assert_eq!(
            (cluster.taints[0].added, cluster.kubernetes_version.as_deref()),
            (Some(1_795_215_892_000), Some("v1.35.4"))
        );
        assert_eq!((&*cluster.conditions[0].message, cluster.truncated), ("told", Vec::new()));
    }

    #[test]
    fn what_agents_inflate_is_cut_and_said_so() {
        let mut review = sample("cluster-status");
        let claims: Vec<_> = (0..5000).map(|n| json!({"name": format!("c{n}"), "value": "v"})).collect();
        review["request"]["object"]["status"]["clusterClaims"] = json!(claims);
        let message = "ä".repeat(300_000);
        review["request"]["object"]["status"]["conditions"] =
            json!([{"type": "A", "status": "True", "message": message}]);
        let many: Object<_, _> = (0..5000).map(|n| (format!("agent.example.com/{n}"), json!(""))).collect();
        review["request"]["object"]["metadata"]["annotations"] = json!(many);
        let request = from_admission(&review["request"], &asking(false)).unwrap();
        let cluster = request.cluster.unwrap();
        assert_eq!((cluster.claims.len(), cluster.conditions[0].message.len()), (MOST_ITEMS, MOST_BYTES));
        assert_eq!(cluster.annotations.len(), MOST_ENTRIES);
        assert_eq!(cluster.truncated, ["annotations", "claims", "conditions"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut review = sample("cluster-create");
        assert!(request_of(&json!({"kind": "Pod"})).is_err());
        let of = |version: &str| json!({"kind": "AdmissionReview", "apiVersion": version, "request": {"uid": "1"}});
        for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
            assert_eq!(request_of(&of(version)), Ok(&json!({"uid": "1"})), "{version}");
        }
        let said = request_of(&of("admission.k8s.io/v2")).unwrap_err().to_string();
        assert_eq!(said, "apiVersion: it must be admission.k8s.io/v1 or admission.k8s.io/v1beta1");
        review["request"]["object"]["metadata"]["labels"] = json!({"a": 1});
        let error = from_admission(&review["request"], &asking(false)).unwrap_err();
        assert_eq!(error.to_string(), "request.object.metadata.labels.a: it is no text");
        review["request"]["object"] = Value::Null;
        let error = from_admission(&review["request"], &asking(false)).unwrap_err();
        assert_eq!(error.path, "request.object");
        let mut csr = sample("stored-csr");
        csr["spec"]["request"] = json!("bm90aGluZw==");
        let (csr, _) = certificate_request(&csr).unwrap();
        assert!(csr.unreadable.is_some() && csr.signature == Signature::Unverifiable);
    }

    #[test]
    fn questions_survive_the_way_through_the_form_of_kubernetes() {
        for name in [
            "cluster-create",
            "cluster-apply-dry-run",
            "cluster-accept",
            "cluster-status",
            "cluster-delete-collection",
            "csr-create-before-mutation",
            "csr-approval",
            "csr-signed",
            "work-create",
        ] {
            let review = sample(name);
            let request = from_admission(&review["request"], &asking(true)).unwrap();
            let written = admission_request(&request, None);
            assert_eq!(from_admission(&written, &asking(true)).unwrap(), request, "{name}");
        }
        let cluster = sample("stored-cluster");
        let request = of_cluster(Operation::Delete, &cluster, Requester::default(), &asking(false)).unwrap();
        assert_eq!(admission_request(&request, Some(&cluster))["oldObject"], cluster);
    }
}

//! Requests made of admission reviews and of objects, and put back into the form of Kubernetes.

use ocm_policy_abi::{Cluster, Csr, Map, Operation, Request, Requester, Resource, Stage, Text};
use serde_json::{Value, json};

use super::cluster::{read_cluster, read_update};
use super::csr::{asked, asked_by, cluster_label, cluster_of_csr, created_csr, read_csr, updated_csr};
use super::requester::{is_aws_agent, requester, resource};
use super::value::{At, Unusable, unusable};
use crate::obligation;

pub(crate) const CLUSTER_GROUP: &str = "cluster.open-cluster-management.io";
pub(crate) const CLUSTERS: &str = "managedclusters";
pub(crate) const CSR_GROUP: &str = "certificates.k8s.io";
pub(crate) const CSRS: &str = "certificatesigningrequests";

/// Options of operations that are texts.
const TEXT_OPTIONS: [&str; 3] = ["fieldManager", "fieldValidation", "propagationPolicy"];

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
    /// What policies have set in the object at the mutating stage, see [`crate::edits::values`].
    pub set_by_policies: Map<'static, Text<'static>>,
    /// Whether obligations are carried out: a controller acts on the hub, or the question only tries policies.
    pub carries_out: bool,
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
    let possible = operations(place.0, place.2, subresource, verb);
    let operation = match place {
        (CLUSTER_GROUP, "v1", CLUSTERS) if possible != [Operation::Admit] => {
            match (&new, &old) {
                (Some(new), Some(old)) => [cluster, previous] = read_update(new, old)?.map(Some),
                _ => cluster = subject.map(read_cluster).transpose()?,
            }
            // Only the change counts: whoever writes to a cluster that is accepted accepts nobody.
            let accepts = accepts(previous.as_ref(), cluster.as_ref());
            if accepts && possible.contains(&Operation::Accept) { Operation::Accept } else { possible[0] }
        }
        (CSR_GROUP, "v1", CSRS) => {
            certificate = subject
                .map(|subject| match (verb, &old) {
                    ("CREATE", _) => created_csr(subject, &requester),
                    ("UPDATE", Some(old)) => updated_csr(subject, old, subresource),
                    _ => read_csr(subject),
                })
                .transpose()?;
            possible[0]
        }
        _ => Operation::Admit,
    };
    let needs_subject = matches!(verb, "CREATE" | "UPDATE" | "DELETE") && operation != Operation::Admit;
    if needs_subject && subject.is_none() {
        return Err(unusable("request.object", "there is none"));
    }
    let object = |at: &Option<At<'a>>| at.as_ref().filter(|_| asking.wants_object).map(|at| at.value.clone());
    let asked = plain(operation, requester, asking);
    // An acceptance does not say who asked for the certificate, and whoever could add a request of the cluster would choose who is
    // judged in the place of who accepts. Of all else whoever makes the API request creates what it is about.
    let creator = match (&certificate, operation) {
        (Some(csr), Operation::Approve) => Some(csr.requester.clone()),
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

/// What API requests to a resource are asked about: the operations that [`from_admission`] makes of such reviews, the
/// usual one first, and those of a controller's questions that are put in the same form.
pub(crate) fn operations(group: &str, resource: &str, subresource: Option<&str>, verb: &str) -> &'static [Operation] {
    match (group, resource, verb, subresource) {
        (CLUSTER_GROUP, CLUSTERS, "CREATE", _) => &[Operation::Create],
        (CLUSTER_GROUP, CLUSTERS, "UPDATE", None) => &[Operation::Update, Operation::Accept, Operation::Join],
        (CLUSTER_GROUP, CLUSTERS, "UPDATE", Some(_)) => &[Operation::Update],
        (CLUSTER_GROUP, CLUSTERS, "DELETE", _) => &[Operation::Delete],
        (CSR_GROUP, CSRS, "CREATE", None) => &[Operation::Request],
        (CSR_GROUP, CSRS, "UPDATE", Some("approval")) => &[Operation::Approve],
        _ => &[Operation::Admit],
    }
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

/// The question whether a cluster may join with a certificate request, where somebody else than the controller lets it in:
/// about the cluster as it was before. The hub carries out no obligation of such an answer.
pub fn join_of(let_in: &Request<'static>, csr: Csr<'static>) -> Request<'static> {
    let cluster = let_in.previous.clone().or_else(|| let_in.cluster.clone());
    let name = cluster.as_ref().map(|cluster| cluster.name.clone()).filter(|name| !name.is_empty());
    Request {
        operation: Operation::Join,
        stage: None,
        requester: csr.requester.clone(),
        creator: Some(csr.requester.clone()),
        resource: Some(cluster_resource(name, "UPDATE")),
        cluster,
        previous: None,
        object: let_in.previous_object.clone().or_else(|| let_in.object.clone()),
        previous_object: None,
        csr: Some(csr),
        obligations: Vec::new(),
        ..let_in.clone()
    }
}

/// Whether somebody registers an agent with a certificate request, and has not been denied. Renewals, and requests for add-ons,
/// come from agents; a label alone makes no request an add-on's.
pub fn is_registration(csr: &Csr<'_>) -> bool {
    !matches!(&*csr.state, "Denied" | "Failed") && !asked(csr).is_by_agent() && !is_aws_agent(&csr.requester)
}

/// The cluster whose agent a certificate request is for, where all of it says the same: [`ocm_rules::csr::Asked::clearly_of`].
pub fn agents_cluster<'r>(csr: &'r Csr<'_>) -> Option<&'r str> {
    asked(csr).clearly_of(cluster_label(csr))
}

/// Whether the agent of this cluster registers with a certificate request that has not been denied:
/// [`ocm_rules::csr::Asked::registers`].
pub fn registers(csr: &Csr<'_>, cluster: &str) -> bool {
    is_registration(csr) && asked(csr).registers(cluster_label(csr), cluster)
}

fn plain<'a>(operation: Operation, requester: Requester<'a>, asking: &Asking) -> Request<'a> {
    let carried_out = if asking.carries_out { obligation::carried_out(operation) } else { &[] };
    Request {
        id: asking.id.clone().into(),
        now: asking.now,
        dry_run: asking.dry_run,
        attempt: asking.attempt,
        stage: asking.stage,
        set_by_policies: asking.set_by_policies.clone(),
        obligations: carried_out.iter().map(|name| Text::from(*name)).collect(),
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

/// The cluster that a question is about: whose rows its evidence has.
pub fn cluster_of<'r>(request: &'r Request<'_>) -> Option<&'r str> {
    let named = request.cluster.as_ref().map(|cluster| cluster.name.as_str()).filter(|name| !name.is_empty());
    named.or_else(|| cluster_of_csr(request.csr.as_ref()?))
}

/// The user whose wish a question is: of a certificate request whoever asked for it, of all else whoever makes the API request,
/// so of an acceptance who accepts. Where a question itself names a creator, as one from a file may, it is that one.
pub fn asking_user<'r>(request: &'r Request<'_>) -> &'r str {
    match &request.csr {
        Some(csr) => asked_by(csr),
        None => &request.creator.as_ref().unwrap_or(&request.requester).username,
    }
}

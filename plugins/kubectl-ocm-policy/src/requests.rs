//! Questions from files: requests of the contract, admission reviews, objects, records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use ocm_core::Failure;
use ocm_policy_abi::{EvidenceSource, Manifest, Map, Operation, Query, Request, Requester, Table, Text};
use ocm_policy_engine::{Deadline, EvidenceReader, PolicyError};
use ocm_policy_rules::evidence::{self, Budget};
use ocm_policy_rules::obligation;
use ocm_policy_rules::review::{self, Asking};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::args::{AskingArgs, RequestArgs};
use crate::files;

/// A question and where it came from.
pub(crate) struct Asked {
    /// The file, and which of its documents where it has several.
    pub(crate) source: String,
    /// The request with its objects.
    pub(crate) request: Request<'static>,
    /// The text that was recorded, to be given byte by byte as it was.
    pub(crate) recorded: Option<String>,
    /// What is known of the hub.
    answers: Vec<Answer>,
}

/// What the hub answers to a query of a policy.
struct Answer {
    policy: String,
    query: Query,
    table: Arc<Table<'static>>,
}

impl EvidenceReader for Asked {
    fn table(
        &self,
        policy: &str,
        query: &Query,
        _: &Request<'_>,
        _: &Deadline,
    ) -> Result<Arc<Table<'static>>, PolicyError> {
        let found = self.answers.iter().find(|answer| answer.policy == policy && answer.query == *query);
        found
            .map(|answer| answer.table.clone())
            .ok_or_else(|| PolicyError::Evidence(format!("the evidence {:?} is missing", query.name)))
    }
}

impl Asked {
    /// What it is about, for people.
    pub(crate) fn about(&self) -> String {
        let request = &self.request;
        let name = request.cluster.as_ref().map(|cluster| cluster.name.as_str());
        let name = name.or_else(|| request.csr.as_ref()?.name.as_deref());
        let name = name.or_else(|| request.resource.as_ref()?.name.as_deref());
        format!("{} {}", request.operation.word(), name.unwrap_or_default()).trim_end().to_owned()
    }
}

/// Reads all questions.
///
/// # Errors
/// A usage failure that names the file, the document and the member.
pub(crate) fn read(args: &RequestArgs, manifests: &[&Manifest]) -> Result<Vec<Asked>, Failure> {
    let RequestArgs { files, asking } = args;
    read_files(files, asking, manifests)
}

/// A question whose evidence is found among objects of a hub.
///
/// # Errors
/// When a policy asks for something that cannot be found among objects.
pub(crate) fn of_objects(
    request: Request<'static>,
    source: String,
    objects: Vec<Value>,
    manifests: &[&Manifest],
) -> Result<Asked, Failure> {
    finish(request, source, &Hub { objects, told: true, ..Hub::default() }, manifests)
}

/// As [`read`], for files that are named elsewhere.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_files(
    files: &[PathBuf],
    asking: &AskingArgs,
    manifests: &[&Manifest],
) -> Result<Vec<Asked>, Failure> {
    let hub = Hub::read(&asking.about.evidence)?;
    let mut asked = Vec::new();
    for file in files {
        let documents = files::documents(file, "the requests")?;
        if documents.is_empty() {
            return Err(Failure::usage(format!("{} holds no request", file.display())));
        }
        let many = documents.len() > 1;
        if asking.about.operation == Some(Operation::Join) && documents.iter().all(|document| kind(document).is_some())
        {
            let source = file.display().to_string();
            asked.push(finish(
                joined(&documents, asking).map_err(|why| wrong(&source, why))?,
                source,
                &hub,
                manifests,
            )?);
            continue;
        }
        for (index, document) in documents.iter().enumerate() {
            let name = if file == Path::new("-") { "stdin".into() } else { file.to_string_lossy() };
            let source = if many { format!("{name}[{index}]") } else { name.into_owned() };
            if let Some(text) = recorded(document) {
                let cannot = |why: String| wrong(&source, why);
                let value = serde_json::from_str(text).map_err(|error| cannot(error.to_string()))?;
                let request = Request::deserialize::<Value>(value).map_err(|error| cannot(error.to_string()))?;
                asked.push(Asked { source, request, recorded: Some(text.to_owned()), answers: Vec::new() });
                continue;
            }
            let request = one(document, asking, index).map_err(|why| wrong(&source, why))?;
            asked.push(finish(request, source, &hub, manifests)?);
        }
    }
    Ok(asked)
}

/// A request that cannot be used.
pub(crate) fn wrong(source: &str, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{source} cannot be asked")).because(why).hint(
        "a request is an AdmissionReview, a ManagedCluster, a CertificateSigningRequest, or has the members of the \
         contract: operation, requester, cluster, …",
    )
}

/// Adds what is known of the hub.
fn finish(mut request: Request<'static>, source: String, hub: &Hub, manifests: &[&Manifest]) -> Result<Asked, Failure> {
    let answers = hub.answers(&mut request, manifests)?;
    Ok(Asked { source, request, recorded: None, answers })
}

fn kind(document: &Value) -> Option<&str> {
    document["kind"].as_str()
}

/// The request of a record.
fn recorded(document: &Value) -> Option<&str> {
    document.get("requestSha256").and(document["request"].as_str())
}

/// Makes a question of one document.
fn one(document: &Value, args: &AskingArgs, index: usize) -> Result<Request<'static>, String> {
    let asking = asking(args, index);
    let unusable = |error: review::Unusable| error.to_string();
    let made = match kind(document) {
        Some("AdmissionReview") => {
            review::from_admission(review::request_of(document).map_err(unusable)?, &asking).map_err(unusable)?
        }
        Some("ManagedCluster") => {
            let operation = args.about.operation.unwrap_or(Operation::Create);
            if operation == Operation::Join {
                return Err("to join takes a CertificateSigningRequest and a ManagedCluster in one file".to_owned());
            }
            review::of_cluster(operation, document, requester(args), &asking).map_err(unusable)?
        }
        Some("CertificateSigningRequest") => match args.about.operation.unwrap_or(Operation::Approve) {
            operation @ (Operation::Request | Operation::Approve) => {
                review::of_csr(operation, document, &asking).map_err(unusable)?
            }
            other => {
                return Err(format!(
                    "a CertificateSigningRequest is requested or approved, and --operation is {}",
                    other.word()
                ));
            }
        },
        Some(other) => {
            return Err(format!("objects of the kind {other} can only be asked about in an AdmissionReview"));
        }
        None if document.is_object() => return plain(document, args, index),
        None => return Err("it must be an object".to_owned()),
    };
    Ok(made.into_owned())
}

/// A request of the contract. What everybody would write alike may be left out.
fn plain(document: &Value, args: &AskingArgs, index: usize) -> Result<Request<'static>, String> {
    let mut whole = document.clone();
    let asking = asking(args, index);
    if let Some(members) = whole.as_object_mut() {
        members.entry("id").or_insert_with(|| asking.id.clone().into());
        members.entry("requester").or_insert_with(|| json!(requester(args)));
        if let Some(operation) = args.about.operation {
            members.insert("operation".to_owned(), operation.word().into());
        }
        let written = members.get("now").and_then(Value::as_str).map(str::parse::<Timestamp>);
        match (args.about.now, written) {
            (None, Some(Ok(now))) => {
                members.insert("now".to_owned(), now.as_millisecond().into());
            }
            (None, None) if members.contains_key("now") => {}
            _ => {
                members.insert("now".to_owned(), asking.now.into());
            }
        }
    }
    obligation::declare(&mut whole);
    read_request(&mut whole)
}

fn read_request(whole: &mut Value) -> Result<Request<'static>, String> {
    if let Some(tables) = whole.get_mut("evidence").and_then(Value::as_object_mut) {
        tables.values_mut().for_each(evidence::fill_table);
    }
    Request::deserialize(whole.take()).map_err(|error| error.to_string())
}

/// A certificate request and the cluster that it is for.
fn joined(documents: &[Value], args: &AskingArgs) -> Result<Request<'static>, String> {
    let of = |wanted: &str| documents.iter().find(|document| kind(document) == Some(wanted));
    match (of("CertificateSigningRequest"), of("ManagedCluster"), documents.len()) {
        (Some(csr), Some(cluster), 2) => {
            let made = review::join(csr, cluster, &asking(args, 0)).map_err(|error| error.to_string())?;
            Ok(made.into_owned())
        }
        _ => Err("to join takes one CertificateSigningRequest and one ManagedCluster".to_owned()),
    }
}

fn asking(args: &AskingArgs, index: usize) -> Asking {
    let now = args.about.now.unwrap_or_else(Timestamp::now).as_millisecond();
    Asking { id: format!("request-{index}"), now, wants_object: true, carries_out: true, ..Asking::default() }
}

fn requester(args: &AskingArgs) -> Requester<'static> {
    let groups = match args.as_group.as_slice() {
        [] => vec!["system:authenticated".into()],
        groups => groups.iter().map(|group| Text::from(group.clone())).collect(),
    };
    Requester { username: args.about.as_user.clone().into(), groups, ..Requester::default() }
}

/// Whether two policies of one name ask for different tables by the same name.
pub(crate) fn clash(one: &Manifest, other: &Manifest) -> bool {
    one.name == other.name && one.evidence.iter().any(|query| asks_otherwise(other, query))
}

/// Whether a policy asks for the evidence of this name with other fields.
fn asks_otherwise(manifest: &Manifest, query: &Query) -> bool {
    manifest.evidence.iter().any(|other| other.name == query.name && other.fields != query.fields)
}

/// Whether a table that is named as this query can be meant for it alone.
fn alone(query: &Query, of: &Manifest, manifests: &[&Manifest]) -> Result<(), Failure> {
    match manifests.iter().find(|manifest| asks_otherwise(manifest, query)) {
        None => Ok(()),
        Some(other) => Err(Failure::usage(format!(
            "the evidence {:?} is asked for by {} and {}, with other fields",
            query.name, of.name, other.name
        ))
        .hint(format!("name the tables {}/{} and {}/{}", of.name, query.name, other.name, query.name))),
    }
}

/// What files tell of a hub: ready tables, and objects that queries find.
#[derive(Default)]
struct Hub {
    tables: Map<'static, Table<'static>>,
    objects: Vec<Value>,
    told: bool,
}

impl Hub {
    fn read(files: &[PathBuf]) -> Result<Self, Failure> {
        let mut hub = Self { told: !files.is_empty(), ..Self::default() };
        for file in files {
            for document in files::documents(file, "the evidence")? {
                hub.add(document, file)?;
            }
        }
        Ok(hub)
    }

    fn add(&mut self, document: Value, file: &Path) -> Result<(), Failure> {
        let bad = |why: String| {
            Failure::usage(format!("the evidence {} cannot be used", file.display()))
                .because(why)
                .hint("it holds tables by name, {\"clusters\": {\"rows\": […]}}, or objects of Kubernetes")
        };
        if kind(&document).is_some() {
            self.objects.push(document);
            return Ok(());
        }
        let Value::Object(tables) = document else { return Err(bad("it must be an object".to_owned())) };
        for (name, mut table) in tables {
            evidence::fill_table(&mut table);
            let table = Table::deserialize(table).map_err(|error| bad(format!("{name}: {error}")))?;
            self.tables.insert(name, table);
        }
        Ok(())
    }

    /// The tables that the policies ask for. Those that the request brings itself count first.
    fn answers(&self, request: &mut Request<'static>, manifests: &[&Manifest]) -> Result<Vec<Answer>, Failure> {
        let brought = std::mem::take(&mut request.evidence);
        let named = |wanted: &str| {
            let tables = brought.iter().chain(self.tables.iter());
            tables.into_iter().find(|(name, _)| *name == wanted).map(|(_, table)| table.clone())
        };
        let mut answers = Vec::new();
        for manifest in manifests {
            for query in &manifest.evidence {
                let own = format!("{}/{}", manifest.name, query.name);
                let mut table = match named(&own) {
                    Some(table) => table,
                    None => match named(&query.name) {
                        Some(table) => {
                            alone(query, manifest, manifests)?;
                            table
                        }
                        None => self.find(query, manifest, request)?,
                    },
                };
                evidence::fill_columns(&mut table, query);
                answers.push(Answer { policy: manifest.name.clone(), query: query.clone(), table: Arc::new(table) });
            }
        }
        Ok(answers)
    }

    /// What a query finds among the objects.
    fn find(&self, query: &Query, manifest: &Manifest, request: &Request<'_>) -> Result<Table<'static>, Failure> {
        if !self.told {
            return Err(Failure::usage(format!("{} asks for the evidence {:?}", manifest.name, query.name))
                .hint("give it with --evidence FILE: a table of this name, or objects of the hub"));
        }
        evidence::table(query, self.found(query), request, "1", Budget::default()).map_err(|error| {
            Failure::other(format!("{}: its query {:?} cannot be answered", manifest.name, query.name)).because(error)
        })
    }

    /// The objects of a query's source.
    fn found(&self, query: &Query) -> Vec<Value> {
        let of = |wanted: &'static str| self.objects.iter().filter(move |object| kind(object) == Some(wanted)).cloned();
        let text = |object: &Value, at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        match &query.source {
            EvidenceSource::Clusters => of("ManagedCluster").collect(),
            EvidenceSource::ClusterSets => of("ManagedClusterSet").collect(),
            EvidenceSource::Namespaces => of("Namespace").collect(),
            EvidenceSource::Csrs => of("CertificateSigningRequest")
                .filter_map(|object| evidence::certificate_request(&object).ok())
                .collect(),
            EvidenceSource::Approvals => {
                of("RegistrationApproval").filter_map(|object| evidence::approval(&object).ok()).collect()
            }
            EvidenceSource::Registrations => of("Registration").map(|object| evidence::registration(&object)).collect(),
            EvidenceSource::ConfigMap { namespace, name } => of("ConfigMap")
                .filter(|map| text(map, "/metadata/name") == *name && text(map, "/metadata/namespace") == *namespace)
                .flat_map(|map| evidence::entries(&map))
                .collect(),
            EvidenceSource::Objects { api_version, resource, namespace } => {
                let fits = |object: &&Value| {
                    object["apiVersion"].as_str() == Some(api_version)
                        && kind(object).is_some_and(|kind| is_kind_of(kind, resource))
                        && namespace.as_ref().is_none_or(|wanted| text(object, "/metadata/namespace") == *wanted)
                };
                self.objects.iter().filter(fits).cloned().collect()
            }
        }
    }
}

/// Whether a resource is that of a kind. A file has kinds and no plural names, which are formed of them as those of English words.
pub(crate) fn is_kind_of(kind: &str, resource: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let of_y = kind.strip_suffix('y').and_then(|stem| resource.strip_prefix(stem));
    // Some, such as Endpoints, are plural themselves.
    of_y == Some("ies") || matches!(resource.strip_prefix(kind.as_str()), Some("" | "s" | "es"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_versions_that_ask_for_different_tables_by_one_name_clash() {
        let version = |name: &str, query: &str, field: &str| Manifest {
            name: name.to_owned(),
            evidence: vec![Query::new(query, EvidenceSource::Clusters, [field])],
            ..Manifest::default()
        };
        let core = version("core", "clusters", "/metadata/name");
        assert!(clash(&core, &version("core", "clusters", "/spec")));
        for other in [core.clone(), version("core", "sets", "/spec"), version("core-2", "clusters", "/spec")] {
            assert!(!clash(&core, &other), "{other:?}");
        }
    }

    #[test]
    fn a_resource_is_of_one_kind_alone() {
        for (kind, resource) in [
            ("Registration", "registrations"),
            ("ClusterRole", "clusterroles"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Namespace", "namespaces"),
            ("Endpoints", "endpoints"),
        ] {
            assert!(is_kind_of(kind, resource), "{kind}");
        }
        for (kind, resource) in [
            ("RegistrationApproval", "registrations"),
            ("ClusterRoleBinding", "clusterroles"),
            ("ManagedClusterSet", "managedclusters"),
            ("ManagedCluster", "managedclustersets"),
            ("Policy", "policyes1"),
        ] {
            assert!(!is_kind_of(kind, resource), "{kind}");
        }
    }
}

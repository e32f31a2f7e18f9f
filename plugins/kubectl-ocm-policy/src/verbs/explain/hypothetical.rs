//! What the policies of a hub would decide about a cluster if the objects of some files were on the hub.
//!
//! ```text
//! HubPolicies of hub and files ─▶ modules ─▶ policies, each as on the hub ──┐
//! ManagedCluster, certificate request ─▶ the question that is put there ────┼─▶ evaluate ─▶ what would be
//! what policies ask for ─▶ objects of the hub, under those of the files ────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::HubPolicy;
use ocm_api::policy::{Module, ObjectKey};
use ocm_api::registration::RegistrationStatus;
use ocm_cli::explanation::{NOT_ASKED, passed_over};
use ocm_cli::list::NONE;
use ocm_cli::{Format, Table, Ui, clean, document};
use ocm_core::hub_policy::files::{Document, Files, Located};
use ocm_core::{Event, Exit, Failure, Narrator, Reason};
use ocm_flows::objects::{Sought, objects};
use ocm_flows::policies::policies;
use ocm_flows::registrations::registrations;
use ocm_kube::{Cluster, connect};
use ocm_policy_abi::{EvidenceSource, Operation, Query, Request, Requester};
use ocm_policy_distribution::{fetch, file};
use ocm_policy_engine::{Final, NotAsked, PolicyError, digest};
use ocm_policy_rules::review::{self, Asking};
use ocm_policy_rules::{Answer, Enforcement, Outcome, approving};
use serde_json::{Value, json};

use super::cluster::cluster;
use super::modules::why;
use crate::args::{AboutArgs, ExplainArgs};
use crate::evaluation::{self, Policies};
use crate::load::Loader;
use crate::processes::on_thread;
use crate::verbs::registry::{ANSWER, credentials, reference};
use crate::verbs::run::reason;
use crate::{files, requests};

const HEADINGS: &[&str] = &["POLICY", "FROM", "MODE", "VERDICT", "REASONS"];

/// What the files are called in messages.
const FILES: &str = "the objects";

pub(crate) async fn run(args: ExplainArgs, ui: Arc<Ui>) -> Result<Exit, Failure> {
    let ExplainArgs { kind, subjects, settings, files, hypothetical: _, about, record: _, output, client } = args;
    let name = cluster(&subjects)?.to_owned();
    let AboutArgs { operation, as_user, now, evidence } = about;
    let unused = [
        ("--kind", kind.kind.is_some()),
        ("--settings", settings.is_some()),
        ("--operation", operation.is_some()),
        ("--evidence", !evidence.is_empty()),
    ];
    if let Some((flag, _)) = unused.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!("{flag} has no meaning with --hypothetical"))
            .hint("leave it out: HubPolicies and objects of the files say it"));
    }
    let given = on_thread(move |_| Given::read(&files)).await?;
    let hub = connect(&client.connection()?, ui.clone()).await?;
    let today = today(&hub, &name).await?;
    let all = versions(&hub, &given).await?;
    let mut modules = BTreeMap::new();
    for version in &all {
        let name = version.name().to_owned();
        modules.insert(name, module(&hub, &given, version, &ui).await?);
    }
    let loading = all.clone();
    let teller = ui.clone();
    let asked = on_thread(move |_| loaded(&loading, &modules, &teller)).await?;
    let mut overlaid = Overlaid { hub: &hub, given: &given, read: BTreeMap::new() };
    let request = question(&mut overlaid, &name, &as_user, now.unwrap_or_else(Timestamp::now)).await?;
    let mut found = Vec::new();
    for sought in sought(asked.manifests().iter().flat_map(|manifest| &manifest.evidence)) {
        found.extend(overlaid.objects(sought).await?);
    }
    once(&mut found);
    let shown = on_thread(move |_| {
        let asking = requests::of_objects(request, name.clone(), found, &asked.manifests())?;
        let answer = asked.evaluate(&asking).map_err(|error| requests::wrong(&asking.source, error))?;
        let view = Hypothesis { cluster: &name, today: today.as_ref(), all: &all, answer: &answer };
        match output.output {
            format @ (Format::Json | Format::Yaml) => document(format, &view.whole()),
            Format::Name => Ok(format!("{}\n", answer.answer.verdict.word())),
            format => Ok(view.shown(format == Format::Wide)),
        }
    })
    .await?;
    ui.out(&shown);
    // It was asked what would be, and that was found, whatever the answer.
    Ok(Exit::Ok)
}

/// What the files hold.
struct Given {
    policies: Files,
    objects: Vec<Value>,
}

impl Given {
    fn read(paths: &[PathBuf]) -> Result<Self, Failure> {
        let (mut policies, mut objects) = (Vec::new(), Vec::new());
        for path in paths {
            for (index, value) in files::documents(path, FILES)?.into_iter().enumerate() {
                let source = format!("{}, document {}", path.display(), index + 1);
                let Some(kind) = value["kind"].as_str().filter(|_| value["apiVersion"].is_string()) else {
                    return Err(Failure::usage(format!(
                        "{source} must be a Kubernetes object with apiVersion and kind"
                    )));
                };
                let holds_policies = ["HubPolicy", "ConfigMap", "Secret"].contains(&kind);
                if kind != "HubPolicy" {
                    objects.push(value.clone());
                }
                if holds_policies {
                    policies.push(Document { source, value });
                }
            }
        }
        let policies = match policies.is_empty() {
            true => Files::default(),
            false => Files::read(policies).map_err(|error| Failure::usage(error.to_string()))?,
        };
        Ok(Self { policies, objects })
    }
}

/// A HubPolicy as it would be.
#[derive(Clone)]
struct Version {
    policy: HubPolicy,
    is_given: bool,
}

impl Version {
    fn name(&self) -> &str {
        self.policy.metadata.name.as_deref().unwrap_or_default()
    }
}

/// The HubPolicies of the files, and those of the hub that have other names.
async fn versions(hub: &Cluster, given: &Given) -> Result<Vec<Version>, Failure> {
    let mut all: BTreeMap<String, Version> = BTreeMap::new();
    for row in policies(hub, &[], None).await? {
        all.insert(row.name().to_owned(), Version { policy: row.object, is_given: false });
    }
    for one in given.policies.policies() {
        all.insert(one.name().to_owned(), Version { policy: one.policy.clone(), is_given: true });
    }
    Ok(all.into_values().collect())
}

type Loadable = Result<Vec<u8>, PolicyError>;

/// The module of a policy. One that cannot be had is, as on the hub, a policy that answers with its error.
async fn module(hub: &Cluster, given: &Given, version: &Version, ui: &Ui) -> Result<Loadable, Failure> {
    let load = |why: String| PolicyError::Load(why);
    let located = given.policies.module(&version.policy).map_err(|error| Failure::usage(error.to_string()))?;
    let spec = &version.policy.spec;
    let module = match (located, spec.module.module()) {
        (Located::Here(module), _) => Ok(module.to_vec()),
        (Located::Builtin(name), _) => match ocm_policy_builtin::find(name) {
            Some(found) => return Ok(Ok(found.module.to_vec())),
            None => Err(load(format!("there is no built-in policy {name:?} in this release"))),
        },
        (_, Some(Module::ConfigMap(entry))) => entry_of(hub, "configmaps", "binaryData", entry).await.map_err(load),
        (_, Some(Module::Secret(entry))) => entry_of(hub, "secrets", "data", entry).await.map_err(load),
        (_, Some(Module::Oci(image))) => {
            ui.tell(Event::now(format!("fetching {}", image.image)));
            let named = reference(&image.image)?;
            let credentials = on_thread(move |processes| credentials(&named, &processes)).await?;
            let fetched = fetch(image, credentials, ANSWER).await.map(|fetched| fetched.module);
            fetched.map_err(|error| load(error.failure.to_string()))
        }
        (_, Some(Module::Url(url))) => {
            ui.tell(Event::now(format!("fetching {}", url.url)));
            file(url, ANSWER).await.map_err(|error| load(error.failure.to_string()))
        }
        (_, Some(Module::Path(path))) => Err(load(format!(
            "its module is the file {path} of the policy engine's pods, which this machine does not have"
        ))),
        _ => Err(load("its module is of a source that this release does not know".to_owned())),
    };
    let is_wanted = |module: &Vec<u8>| spec.sha256.as_ref().is_none_or(|wanted| *wanted == digest(module));
    Ok(match module {
        Ok(module) if !is_wanted(&module) => Err(load("its module has another SHA-256 than sha256 says".to_owned())),
        module => module,
    })
}

/// A module that an object of the hub holds.
async fn entry_of(hub: &Cluster, resource: &str, member: &str, entry: &ObjectKey) -> Result<Vec<u8>, String> {
    let ObjectKey { namespace, name, key } = entry;
    let sought = Sought {
        api_version: "v1".to_owned(),
        resource: resource.to_owned(),
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
    };
    let found = objects(hub, &sought).await.map_err(|failure| failure.to_string())?;
    let missing = || format!("{resource} {namespace}/{name} holds no {key} in {member}");
    let text = found.first().and_then(|object| object[member][key].as_str()).ok_or_else(missing)?;
    serde_json::from_value::<k8s_openapi::ByteString>(json!(text)).map(|bytes| bytes.0).map_err(|_| missing())
}

/// The policies as the hub would have them.
fn loaded(all: &[Version], modules: &BTreeMap<String, Loadable>, ui: &Ui) -> Result<Policies, Failure> {
    let loader = Loader::new(ui)?;
    let mut policies = Policies::default();
    for version in all {
        let (name, spec) = (version.name(), &version.policy.spec);
        ui.tell(Event::now(format!("loading {name}")));
        let module = modules.get(name).cloned().unwrap_or(Err(PolicyError::Loading));
        let policy = module.and_then(|module| match version.is_given {
            true => loader.of_hub(name, &module, spec),
            // What the hub has in force has passed its test cases, or stays in force all the same.
            false => {
                loader.of_hub_with(name, &module, spec, &ocm_policy_rules::hub_policy::settings(spec.settings.as_ref()))
            }
        });
        policies.of_hub(name, policy, spec.into());
    }
    Ok(policies)
}

/// Objects of the hub under those of the files.
struct Overlaid<'a> {
    hub: &'a Cluster,
    given: &'a Given,
    read: BTreeMap<Sought, Vec<Value>>,
}

impl Overlaid<'_> {
    /// Objects of the hub, those of the files in the place of their former selves.
    async fn objects(&mut self, sought: Sought) -> Result<Vec<Value>, Failure> {
        if let Some(read) = self.read.get(&sought) {
            return Ok(read.clone());
        }
        let mut found = match objects(self.hub, &sought).await {
            // Without a policy controller nobody notes anything.
            Err(failure) if failure.reason == Reason::KindNotServed && sought == all_of(REGISTRATIONS) => Vec::new(),
            found => found?,
        };
        for object in self.given.objects.iter().filter(|object| fits(object, &sought)) {
            found.retain(|other| id(other) != id(object));
            found.push(object.clone());
        }
        self.read.insert(sought, found.clone());
        Ok(found)
    }
}

/// What tells an object from others: version, kind, namespace and name.
fn id(object: &Value) -> [String; 4] {
    ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"]
        .map(|at| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Whether an object of a file is one of those that are looked for.
fn fits(object: &Value, sought: &Sought) -> bool {
    let [api_version, kind, namespace, name] = id(object);
    api_version == sought.api_version
        && requests::is_kind_of(&kind, &sought.resource)
        && sought.namespace.as_ref().is_none_or(|wanted| *wanted == namespace)
        && sought.name.as_ref().is_none_or(|wanted| *wanted == name)
}

/// Leaves each object once, where several queries look at it.
fn once(objects: &mut Vec<Value>) {
    let mut known = BTreeSet::new();
    objects.retain(|object| known.insert(id(object)));
}

const CLUSTERS: (&str, &str) = ("cluster.open-cluster-management.io/v1", "managedclusters");
const REQUESTS: (&str, &str) = ("certificates.k8s.io/v1", "certificatesigningrequests");
const REGISTRATIONS: (&str, &str) = ("policy.kubectl-ocm.dev/v1alpha1", "registrations");

fn all_of((api_version, resource): (&str, &str)) -> Sought {
    Sought { api_version: api_version.to_owned(), resource: resource.to_owned(), namespace: None, name: None }
}

/// What queries look at, each once.
fn sought<'q>(queries: impl Iterator<Item = &'q Query>) -> BTreeSet<Sought> {
    let of = |query: &Query| match &query.source {
        EvidenceSource::Clusters => all_of(CLUSTERS),
        EvidenceSource::ClusterSets => all_of(("cluster.open-cluster-management.io/v1beta2", "managedclustersets")),
        EvidenceSource::Namespaces => all_of(("v1", "namespaces")),
        EvidenceSource::Csrs => all_of(REQUESTS),
        EvidenceSource::Approvals => all_of(("policy.kubectl-ocm.dev/v1alpha1", "registrationapprovals")),
        EvidenceSource::Registrations => all_of(REGISTRATIONS),
        EvidenceSource::ConfigMap { namespace, name } => {
            Sought { namespace: Some(namespace.clone()), name: Some(name.clone()), ..all_of(("v1", "configmaps")) }
        }
        EvidenceSource::Objects { api_version, resource, namespace } => {
            Sought { namespace: namespace.clone(), ..all_of((api_version, resource)) }
        }
    };
    queries.map(of).collect()
}

/// The question that a hub puts: about the join that waits, or about the creation of a cluster that is only in the files.
async fn question(
    overlaid: &mut Overlaid<'_>,
    name: &str,
    as_user: &str,
    now: Timestamp,
) -> Result<Request<'static>, Failure> {
    let unusable = |error: review::Unusable| Failure::usage(format!("{name} cannot be asked about")).because(error);
    let cluster = overlaid.objects(Sought { name: Some(name.to_owned()), ..all_of(CLUSTERS) }).await?.pop();
    let cluster = cluster.ok_or_else(|| {
        Failure::new(Reason::NotFound, format!("neither the hub nor the files have a managed cluster {name:?}"))
            .hint("add its ManagedCluster to the files")
    })?;
    let requests = overlaid.objects(all_of(REQUESTS)).await?;
    let asking = Asking {
        id: "hypothetical".to_owned(),
        now: now.as_millisecond(),
        wants_object: true,
        carries_out: true,
        ..Asking::default()
    };
    if let Some(mut question) = join(&requests, &cluster, name, &asking) {
        question.creator = question.csr.as_ref().map(|csr| csr.requester.clone());
        return Ok(question);
    }
    let is_there = cluster.pointer("/metadata/uid").is_some();
    if is_there {
        return Err(Failure::new(Reason::NotFound, format!("the agent of {name} has not asked for a certificate"))
            .hint("add its CertificateSigningRequest to the files"));
    }
    let requester = Requester {
        username: as_user.to_owned().into(),
        groups: vec!["system:authenticated".into()],
        ..Requester::default()
    };
    Ok(review::of_cluster(Operation::Create, &cluster, requester, &asking).map_err(unusable)?.into_owned())
}

/// The question about the join of a cluster, with the request that its agent registers with: one that waits before one that was
/// decided, and of those the newest. None: there is no such request.
fn join(requests: &[Value], cluster: &Value, name: &str, asking: &Asking) -> Option<Request<'static>> {
    let joins = requests.iter().filter_map(|request| {
        // What cannot be read here registers nobody.
        let question = review::join(request, cluster, asking).ok()?;
        question.csr.as_ref().is_some_and(|csr| review::registers(csr, name)).then_some((request, question))
    });
    let newest = joins.max_by_key(|(request, _)| {
        let waits = request.pointer("/status/conditions").and_then(Value::as_array).is_none_or(Vec::is_empty);
        (waits, request.pointer("/metadata/creationTimestamp").and_then(Value::as_str).unwrap_or("~"))
    });
    newest.map(|(_, question)| question.into_owned())
}

/// What the policy controller has written; none: nothing.
async fn today(hub: &Cluster, name: &str) -> Result<Option<RegistrationStatus>, Failure> {
    match registrations(hub, &[name.to_owned()], None).await {
        Ok(mut rows) => Ok(rows.pop().map(|row| row.status)),
        Err(failure) if matches!(failure.reason, Reason::NotFound | Reason::Forbidden) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// What would be.
struct Hypothesis<'a> {
    cluster: &'a str,
    today: Option<&'a RegistrationStatus>,
    all: &'a [Version],
    answer: &'a Final,
}

impl Hypothesis<'_> {
    fn said(&self) -> impl Iterator<Item = (Enforcement, &Outcome)> {
        self.answer.asked().iter().map(|one| (one.enforcement(), one.outcome()))
    }

    fn lets_in(&self) -> Vec<&str> {
        approving(self.answer.answer.verdict, self.said())
    }

    fn sentence(&self) -> String {
        let (name, combined) = (self.cluster, &self.answer.answer);
        let creation = self.answer.request().operation == Operation::Create;
        let by = combined.deciding.join(", ");
        match combined.verdict {
            Answer::Deny if creation => format!("the creation of {name} would be denied by {by}"),
            Answer::Deny => format!("{name} would be denied by {by}"),
            Answer::Error => format!("{name} would wait: {by} would give no usable answer"),
            Answer::Hold if creation => format!("{name} could be created, and would wait for {by}"),
            Answer::Hold => format!("{name} would wait for {by}"),
            Answer::Allow | Answer::NoOpinion if creation => {
                format!("{name} could be created; who lets it in is decided when its agent asks for a certificate")
            }
            Answer::Allow | Answer::NoOpinion => match self.lets_in().as_slice() {
                [] => format!("{name} would wait for a person: no policy objects, and none with autoApprove allows it"),
                some => format!("{name} would be let in by {}", some.join(", ")),
            },
        }
    }

    fn shown(&self, wide: bool) -> String {
        let combined = &self.answer.answer;
        let mut text = clean(&self.sentence()) + "\n";
        for given in &combined.reasons {
            text += &format!("  {}\n", clean(&reason(&given.reason)));
        }
        for problem in &combined.errors {
            text += &format!("  {}: {}\n", problem.error.code(), clean(&evaluation::why(&problem.error)));
        }
        if let Some(today) = self.today {
            let waits = today.waiting_for.as_ref().map(|waits| format!(", waits for {waits}")).unwrap_or_default();
            text += &format!("Today: {}{}\n", today.verdict, clean(&waits));
        }
        let mut table = Table::new(HEADINGS);
        for one in self.answer.asked() {
            let outcome = one.outcome();
            let reasons: Vec<String> = match &outcome.result {
                Ok(decision) if wide => decision.reasons.iter().map(reason).collect(),
                Ok(decision) => decision.reasons.iter().map(|given| given.code.clone()).collect(),
                Err(error) => vec![if wide { error.to_string() } else { error.code().to_owned() }],
            };
            let reasons = if reasons.is_empty() { NONE.to_owned() } else { clean(&reasons.join("; ")) };
            let mode = one.enforcement().mode.word();
            table.row([one.place(), self.from(one.place()), mode, evaluation::word(&outcome.result), &reasons]);
        }
        for (place, why) in self.answer.not_asked() {
            let because = match why {
                NotAsked::OtherOperations => NONE.to_owned(),
                NotAsked::OtherRequests | NotAsked::Conditions(_) => clean(&passed_over(why.unmet())),
            };
            table.row([place.as_str(), self.from(place), NONE, NOT_ASKED, &because]);
        }
        text + "\n" + &table.render()
    }

    fn from(&self, place: &str) -> &'static str {
        match self.all.iter().any(|version| version.is_given && version.name() == place) {
            true => "file",
            false => "hub",
        }
    }

    fn whole(&self) -> Value {
        let said: Vec<Value> = self
            .answer
            .asked()
            .iter()
            .map(|one| {
                let outcome = one.outcome();
                let mut shown = json!({
                    "policy": one.place(), "from": self.from(one.place()), "mode": one.enforcement().mode.word(),
                    "verdict": evaluation::word(&outcome.result),
                });
                match &outcome.result {
                    Ok(decision) => shown["decision"] = json!(decision),
                    Err(error) => shown["error"] = json!(error),
                }
                shown
            })
            .collect();
        json!({
            "cluster": self.cluster,
            "operation": self.answer.request().operation,
            "sentence": self.sentence(),
            "verdict": self.answer.answer.verdict.word(),
            "letInBy": self.lets_in(),
            "why": why(&self.answer.answer),
            "policies": said,
            "notAsked": self.answer.not_asked().iter().map(
                |(place, why)| json!({"policy": place, "unmetConditions": why.unmet()})
            ).collect::<Vec<_>>(),
            "today": self.today.map(|today| json!({"verdict": today.verdict, "waitingFor": today.waiting_for})),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn objects_of_another_kind_are_not_those_that_are_looked_for() {
        let (api_version, _) = REGISTRATIONS;
        let registrations = all_of(REGISTRATIONS);
        assert!(fits(&object(api_version, "Registration", "c1"), &registrations));
        assert!(!fits(&object(api_version, "RegistrationApproval", "c1"), &registrations));
        let named = Sought { name: Some("c2".to_owned()), ..registrations };
        assert!(!fits(&object(api_version, "Registration", "c1"), &named));
    }

    #[test]
    fn an_object_that_two_queries_look_at_is_there_once() {
        let (one, other) = (object("v1", "ConfigMap", "a"), object("v1", "ConfigMap", "b"));
        let mut found = vec![one.clone(), other.clone(), one.clone()];
        once(&mut found);
        assert_eq!(found, [one, other]);
    }

    /// A certificate request, written at this minute.
    fn request(pem: String, label: &str, signer: &str, minute: u8, conditions: &Value) -> Value {
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {
                "name": format!("r{minute}"), "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
                "labels": {"open-cluster-management.io/cluster-name": label},
            },
            "spec": {
                "request": k8s_openapi::ByteString(pem.into_bytes()), "signerName": signer, "usages": ["client auth"],
                "username": "somebody", "groups": [],
            },
            "status": {"conditions": conditions},
        })
    }

    #[test]
    fn the_request_that_the_agent_registers_with_is_asked_about() {
        let hub = "kubernetes.io/kube-apiserver-client";
        let agent = |cluster: &str| csr_fixtures::Fixture::agent(cluster, "a").pem();
        let addon = csr_fixtures::Fixture::addon("c1", "app").pem();
        let (open, denied) = (json!([]), json!([{"type": "Denied", "status": "True"}]));
        let approved = json!([{"type": "Approved", "status": "True"}]);
        let own = request(agent("c1"), "c1", hub, 1, &open);
        let others = [
            request(agent("c1"), "c1", "example.com/own", 9, &open),
            request(agent("c2"), "c1", hub, 8, &open),
            request(addon, "c1", hub, 7, &open),
            request(agent("c1"), "c1", hub, 6, &denied),
            request("none".to_owned(), "c1", hub, 5, &open),
        ];
        let cluster = object("cluster.open-cluster-management.io/v1", "ManagedCluster", "c1");
        let asked = |requests: &[Value]| {
            let question = join(requests, &cluster, "c1", &Asking::default())?;
            question.csr?.name.map(|name| name.to_string())
        };
        assert_eq!(asked(&others), None);
        assert_eq!(asked(&[&[own.clone()][..], &others].concat()).as_deref(), Some("r1"));
        // One that waits before one that was decided, however new.
        let decided = request(agent("c1"), "c1", hub, 3, &approved);
        let newer = request(agent("c1"), "c1", hub, 2, &open);
        assert_eq!(asked(&[own.clone(), newer, decided.clone()]).as_deref(), Some("r2"));
        assert_eq!(asked(&[decided]).as_deref(), Some("r3"));
    }
}

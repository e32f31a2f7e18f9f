//! From objects to the ManifestWorks that bring them to clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::work::{DeletePropagationPolicy, UpdateStrategyType};
use ocm_api::{Manifest, ManifestWork, ManifestWorkReplicaSet};
use serde_json::{Map, Value, json};

use super::Content;
use super::content::{group, text};
use crate::order::Collect as _;
use crate::plan::{Plan, Stage};

/// Groups of Kubernetes itself whose names have no dot.
const BUILT_IN: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// Kinds of which agents know what tells how they are. Upstream: `DefaultWellKnownStatusRule`.
const WELL_KNOWN: [(&str, &str); 4] = [("apps", "Deployment"), ("apps", "DaemonSet"), ("batch", "Job"), ("", "Pod")];

/// A ServiceAccount on the managed clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executor {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What a work says besides its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkOptions {
    /// How the agent brings objects to what the work says; none: as it does by default, by updates.
    pub strategy: Option<UpdateStrategyType>,
    /// With server-side apply: whether fields that others own are taken over.
    pub force: bool,
    /// Whether the objects stay when the work is deleted.
    pub orphan: bool,
    /// Whether the agent reports what it knows to tell of Deployments, DaemonSets, Jobs and Pods.
    pub feedback: bool,
    /// With whose rights the agent applies the objects; none: with its own.
    pub executor: Option<Executor>,
}

/// Whether objects such as works and add-ons can have this name: a DNS subdomain.
pub fn is_object_name(name: &str) -> bool {
    let is_part = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

/// The spec of a work. Upstream: `ManifestWorkSpec`.
pub fn spec(content: &Content, options: &WorkOptions) -> Value {
    let mut spec = Map::new();
    spec.insert("workload".to_owned(), json!({"manifests": content.manifests()}));
    if options.orphan {
        spec.insert("deleteOption".to_owned(), json!({"propagationPolicy": DeletePropagationPolicy::Orphan}));
    }
    let configs: Vec<Value> = kinds(content).iter().filter_map(|kind| config(kind, options)).collect();
    if !configs.is_empty() {
        spec.insert("manifestConfigs".to_owned(), Value::Array(configs));
    }
    if let Some(Executor { namespace, name }) = &options.executor {
        let account = json!({"namespace": namespace, "name": name});
        spec.insert("executor".to_owned(), json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}}));
    }
    Value::Object(spec)
}

/// One work of this name for each cluster.
pub fn plan(name: &str, clusters: &[String], spec: &Value) -> Plan {
    let work = |cluster: &String| {
        let metadata =
            ObjectMeta { namespace: Some(cluster.clone()), name: Some(name.to_owned()), ..ObjectMeta::default() };
        let mut manifest = Manifest::with::<ManifestWork>(&metadata, Value::Null);
        // As it stands: a null in somebody's object may mean something.
        manifest.body_mut()["spec"] = spec.clone();
        manifest.exactly()
    };
    Plan::new([Stage::new("works", clusters.iter().map(work).collect())])
}

/// A set of works that follows a placement of its namespace. Upstream: `work/v1alpha1.ManifestWorkReplicaSet`.
pub fn replica_set_plan(namespace: &str, name: &str, placement: &str, spec: &Value) -> Plan {
    let metadata =
        ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mut manifest = Manifest::with::<ManifestWorkReplicaSet>(&metadata, Value::Null);
    let placements = json!([{"name": placement, "rolloutStrategy": {"type": "All"}}]);
    manifest.body_mut()["spec"] = json!({"manifestWorkTemplate": spec, "placementRefs": placements});
    Plan::new([Stage::new("sets of works", vec![manifest.exactly()])])
}

/// Whether a set of this name can mark its works: the hub writes both into the value of a label, of 63 characters at most.
/// Upstream: `ManifestWorkReplicaSetControllerNameLabelKey`.
pub fn is_replica_set_name(namespace: &str, name: &str) -> bool {
    namespace.len() + 1 + name.len() <= 63
}

/// Adds to the settings of kinds what the server has filled in, so that a work that is as it was is found to be; of works, and
/// of sets of works.
pub fn with_defaults_of(manifest: &mut Manifest, live: &Value) {
    for settings in ["/spec/manifestConfigs", "/spec/manifestWorkTemplate/manifestConfigs"] {
        let configs = manifest.body_mut().pointer_mut(settings).and_then(Value::as_array_mut);
        let live = live.pointer(settings).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for config in configs.into_iter().flatten() {
            fill_in(config, live);
        }
    }
}

fn fill_in(config: &mut Value, live: &[Value]) {
    let Some(live) = live.iter().find(|live| live["resourceIdentifier"] == config["resourceIdentifier"]) else {
        return;
    };
    for (parent, member) in [("", "feedbackScrapeType"), ("/updateStrategy/serverSideApply", "fieldManager")] {
        let default = live.pointer(parent).and_then(|parent| parent.get(member));
        if let (Some(default), Some(Value::Object(members))) = (default, config.pointer_mut(parent)) {
            members.entry(member).or_insert_with(|| default.clone());
        }
    }
}

/// Resources whose names the settings need and nothing tells: they are made from the names of kinds.
pub fn unsure_resources(content: &Content, options: &WorkOptions) -> Vec<String> {
    let has_settings = |kind: &&Kind| config(kind, options).is_some();
    let all = kinds(content);
    let unsure = all.iter().filter(has_settings).filter(|kind| !kind.is_sure);
    unsure.map(|kind| format!("{}.{}", kind.resource, kind.group)).collect()
}

/// A kind of the objects, and what its resource is called.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    group: String,
    kind: String,
    resource: String,
    is_sure: bool,
}

/// The kinds of the objects, each once.
fn kinds(content: &Content) -> Vec<Kind> {
    let all = content.manifests();
    let defined = |group: &str, kind: &str| {
        let is_it = |object: &&Value| {
            text(object, "/kind") == "CustomResourceDefinition"
                && text(object, "/spec/group") == group
                && text(object, "/spec/names/kind") == kind
        };
        all.iter().find(is_it).map(|object| text(object, "/spec/names/plural").to_owned())
    };
    let kind = |object: &Value| {
        let (group, kind) = (group(object), text(object, "/kind"));
        let defined = defined(group, kind);
        let is_sure = defined.is_some() || BUILT_IN.contains(&group) || group.ends_with(".k8s.io");
        let resource = defined.unwrap_or_else(|| plural(kind));
        Kind { group: group.to_owned(), kind: kind.to_owned(), resource, is_sure }
    };
    all.iter().map(kind).collect_set().into_iter().collect()
}

/// The usual name of a kind's resource.
fn plural(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    match word.strip_suffix('y') {
        _ if word == "endpoints" => word,
        Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if ends(&["s", "x", "ch", "sh"]) => format!("{word}es"),
        _ => format!("{word}s"),
    }
}

/// The settings of all objects of a kind; none where there is nothing to say.
fn config(kind: &Kind, options: &WorkOptions) -> Option<Value> {
    let identifier = json!({"group": kind.group, "resource": kind.resource, "namespace": "*", "name": "*"});
    let mut config = Map::new();
    if let Some(strategy) = &options.strategy {
        let mut value = json!({"type": strategy});
        if options.force {
            value["serverSideApply"] = json!({"force": true});
        }
        config.insert("updateStrategy".to_owned(), value);
    }
    if options.feedback && WELL_KNOWN.contains(&(&*kind.group, &*kind.kind)) {
        config.insert("feedbackRules".to_owned(), json!([{"type": "WellKnownStatus"}]));
    }
    if config.is_empty() {
        return None;
    }
    config.insert("resourceIdentifier".to_owned(), identifier);
    Some(Value::Object(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::is_applied;
    use crate::work::Document;

    fn content(objects: &[Value]) -> Content {
        let document = |value: &Value| Document { source: "f".to_owned(), value: value.clone() };
        Content::read(objects.iter().map(document).collect()).unwrap()
    }

    fn object(api_version: &str, kind: &str, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
    }

    #[test]
    fn without_options_a_work_is_its_objects() {
        let content = content(&[object("v1", "Namespace", "a")]);
        let spec = spec(&content, &WorkOptions::default());
        assert_eq!(spec, json!({"workload": {"manifests": [object("v1", "Namespace", "a")]}}));
        let plan = plan("w", &["c1".to_owned(), "c2".to_owned()], &spec);
        let places: Vec<_> = plan.objects().map(|work| (work.namespace().unwrap(), work.name())).collect();
        assert_eq!(places, [("c1", "w"), ("c2", "w")]);
        assert!(plan.objects().all(|work| work.body()["spec"] == spec && work.is_exact()));
    }

    #[test]
    fn settings_are_those_of_kinds() {
        let content = content(&[
            object("apps/v1", "Deployment", "a"),
            object("apps/v1", "Deployment", "b"),
            object("v1", "ConfigMap", "a"),
        ]);
        let options = WorkOptions {
            strategy: Some(UpdateStrategyType::ServerSideApply),
            force: true,
            orphan: true,
            feedback: true,
            executor: Some(Executor { namespace: "n".to_owned(), name: "s".to_owned() }),
        };
        let spec = spec(&content, &options);
        assert_eq!(spec["deleteOption"]["propagationPolicy"], "Orphan");
        assert_eq!(spec["executor"]["subject"]["serviceAccount"], json!({"namespace": "n", "name": "s"}));
        let configs = spec["manifestConfigs"].as_array().unwrap();
        assert_eq!(configs.len(), 2);
        let every = json!({"group": "", "resource": "configmaps", "namespace": "*", "name": "*"});
        assert_eq!(configs[0]["resourceIdentifier"], every);
        assert_eq!(
            configs[0]["updateStrategy"],
            json!({"type": "ServerSideApply", "serverSideApply": {"force": true}})
        );
        assert_eq!(
            (configs[0].get("feedbackRules"), &configs[1]["feedbackRules"]),
            (None, &json!([{"type": "WellKnownStatus"}]))
        );
    }

    #[test]
    fn names_of_resources_are_told_where_nothing_tells_them() {
        for (kind, resource) in [
            ("ConfigMap", "configmaps"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Endpoints", "endpoints"),
        ] {
            assert_eq!(plural(kind), resource);
        }
        let mut definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "d");
        definition["spec"] = json!({"group": "a.example", "names": {"kind": "Ox", "plural": "oxen"}});
        let content = content(&[definition, object("a.example/v1", "Ox", "o"), object("b.example/v1", "Cat", "c")]);
        let options = WorkOptions { strategy: Some(UpdateStrategyType::CreateOnly), ..WorkOptions::default() };
        assert_eq!(unsure_resources(&content, &options), ["cats.b.example"]);
        assert_eq!(unsure_resources(&content, &WorkOptions::default()), Vec::<String>::new());
        assert!(spec(&content, &options)["manifestConfigs"].to_string().contains("\"oxen\""));
    }

    #[test]
    fn what_a_server_fills_in_is_no_difference() {
        let content = content(&[object("v1", "ConfigMap", "a")]);
        let options =
            WorkOptions { strategy: Some(UpdateStrategyType::ServerSideApply), force: true, ..WorkOptions::default() };
        let plan = plan("w", &["c1".to_owned()], &spec(&content, &options));
        let mut manifest = plan.objects().next().unwrap().clone();
        let mut live = manifest.body().clone();
        live["spec"]["manifestConfigs"][0]["feedbackScrapeType"] = "Poll".into();
        live["spec"]["manifestConfigs"][0]["updateStrategy"]["serverSideApply"]["fieldManager"] = "work-agent".into();
        assert!(!is_applied(&manifest, &live));
        with_defaults_of(&mut manifest, &live);
        assert!(is_applied(&manifest, &live));
        live["spec"]["manifestConfigs"][0]["updateStrategy"]["type"] = "Update".into();
        assert!(!is_applied(&manifest, &live));
    }

    #[test]
    fn a_set_of_works_names_its_placement_and_what_each_cluster_gets() {
        let content = content(&[object("v1", "ConfigMap", "a")]);
        let options = WorkOptions { strategy: Some(UpdateStrategyType::CreateOnly), ..WorkOptions::default() };
        let spec = spec(&content, &options);
        let plan = replica_set_plan("team", "web", "all", &spec);
        let mut manifest = plan.objects().next().unwrap().clone();
        assert_eq!((manifest.namespace(), manifest.name(), manifest.is_exact()), (Some("team"), "web", true));
        assert_eq!(manifest.body()["spec"]["manifestWorkTemplate"], spec);
        assert_eq!(
            manifest.body()["spec"]["placementRefs"],
            json!([{"name": "all", "rolloutStrategy": {"type": "All"}}])
        );
        let mut live = manifest.body().clone();
        live["spec"]["cascadeDeletionPolicy"] = "Background".into();
        live["spec"]["manifestWorkTemplate"]["manifestConfigs"][0]["feedbackScrapeType"] = "Poll".into();
        with_defaults_of(&mut manifest, &live);
        assert!(is_applied(&manifest, &live));
        assert!(
            is_replica_set_name(&"n".repeat(31), &"s".repeat(31))
                && !is_replica_set_name(&"n".repeat(32), &"s".repeat(31))
        );
    }

    #[test]
    fn names_of_works_are_those_of_objects() {
        for name in ["web", "web-1.x", "0"] {
            assert!(is_object_name(name), "{name}");
        }
        for name in ["", "Web", "-a", "a-", "a..b", "a/b"] {
            assert!(!is_object_name(name), "{name}");
        }
    }
}

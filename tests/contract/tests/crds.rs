//! The schemas of our types against upstream's: nothing missing, nothing different, nothing lost.
//!
//! `UPDATE_CRDS=1 cargo test -p contract-tests` rewrites the generated files in `plugins/lib/api/crds/`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test, in helpers, too")]

mod upstream;

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube_core::{ClusterResourceScope, Resource};
use ocm_api::addon::ManagedClusterAddOn;
use ocm_api::cluster::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use ocm_api::placement::{Placement, PlacementDecision};
use ocm_api::work::{AppliedManifestWork, ManifestWork};
use ocm_api::{ClusterManager, HubPolicy, Klusterlet, Registration, RegistrationApproval, crds, schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const CLUSTER_MANAGER: &str = "operator/v1/0000_01_operator.open-cluster-management.io_clustermanagers.crd.yaml";
const KLUSTERLET: &str = "operator/v1/0000_00_operator.open-cluster-management.io_klusterlets.crd.yaml";
const MANAGED_CLUSTER: &str = "cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml";
const SET: &str = "cluster/v1beta2/0000_00_clusters.open-cluster-management.io_managedclustersets.crd.yaml";
const SET_BINDING: &str =
    "cluster/v1beta2/0000_01_clusters.open-cluster-management.io_managedclustersetbindings.crd.yaml";
const PLACEMENT: &str = "cluster/v1beta1/0000_02_clusters.open-cluster-management.io_placements.crd.yaml";
const PLACEMENT_DECISION: &str =
    "cluster/v1beta1/0000_03_clusters.open-cluster-management.io_placementdecisions.crd.yaml";
const MANIFEST_WORK: &str = "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml";
const APPLIED_MANIFEST_WORK: &str = "work/v1/0000_01_work.open-cluster-management.io_appliedmanifestworks.crd.yaml";
const ADD_ON: &str = "addon/v1alpha1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml";

fn upstream(file: &str) -> Value {
    serde_saphyr::from_str(&upstream::text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root_schema(crd: &Value) -> &Value {
    let versions = crd["spec"]["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 1, "more than one version in one file");
    &versions[0]["schema"]["openAPIV3Schema"]
}

// ---------------------------------------------------------------------------------------------------------------------
// What our types say equals upstream. That the checked-in files are what the types say is a test of its own.

#[test]
fn cluster_manager_equals_upstream() {
    assert_same(&upstream(CLUSTER_MANAGER), &schema::cluster_manager_crd());
}

#[test]
fn klusterlet_equals_upstream() {
    assert_same(&upstream(KLUSTERLET), &schema::klusterlet_crd());
}

fn assert_same(upstream: &Value, ours: &Value) {
    let (upstream, ours) = (facts(upstream), facts(ours));
    assert!(upstream.len() > 300, "upstream's definition has only {} facts: was it read?", upstream.len());
    let paths: BTreeSet<&String> = upstream.keys().chain(ours.keys()).collect();
    let differences: Vec<String> = paths
        .into_iter()
        .filter_map(|path| match (upstream.get(path), ours.get(path)) {
            (Some(theirs), Some(ours)) if theirs == ours => None,
            (Some(theirs), Some(ours)) => Some(format!("{path}: upstream has {theirs}, we have {ours}")),
            (Some(theirs), None) => Some(format!("{path}: upstream has {theirs}, we have nothing")),
            (None, Some(ours)) => Some(format!("{path}: upstream has nothing, we have {ours}")),
            (None, None) => unreachable!(),
        })
        .collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Everything that a definition says, one line per statement, without what says nothing: descriptions, the server's
/// `status`, and values that are the API's defaults.
fn facts(crd: &Value) -> BTreeMap<String, String> {
    let mut crd = crd.clone();
    let members = crd.as_object_mut().unwrap();
    members.remove("status");
    members["metadata"].as_object_mut().unwrap().remove("annotations");
    let spec = members["spec"].as_object_mut().unwrap();
    if spec.get("preserveUnknownFields") == Some(&json!(false)) {
        spec.remove("preserveUnknownFields");
    }
    let mut facts = BTreeMap::new();
    collect(&crd, "", Keys::Words, &mut facts);
    facts
}

/// What the keys of an object are.
#[derive(Clone, Copy, PartialEq)]
enum Keys {
    /// Words of the definition.
    Words,
    /// Names of fields, among which `description` is no description.
    Fields,
    /// Parts of a value, such as a default.
    Data,
}

fn collect(value: &Value, path: &str, keys: Keys, facts: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            facts.insert(format!("{path}/"), "object".to_owned());
            for (key, member) in members {
                if keys == Keys::Words && key == "description" {
                    continue;
                }
                let inner = match (keys, key.as_str()) {
                    (Keys::Data, _) | (Keys::Words, "default") => Keys::Data,
                    (Keys::Words, "properties") => Keys::Fields,
                    _ => Keys::Words,
                };
                collect(member, &format!("{path}/{key}"), inner, facts);
            }
        }
        Value::Array(items) => {
            // The order of required fields means nothing, the order of an enumeration is what `kubectl explain` shows.
            let mut items: Vec<&Value> = items.iter().collect();
            if path.ends_with("/required") && keys == Keys::Words {
                items.sort_by_key(|item| item.to_string());
            }
            facts.insert(format!("{path}[]"), format!("{} items", items.len()));
            for (index, item) in items.into_iter().enumerate() {
                collect(item, &format!("{path}[{index}]"), keys, facts);
            }
        }
        Value::Number(number) => {
            facts.insert(path.to_owned(), number.as_f64().unwrap().to_string());
        }
        other => {
            facts.insert(path.to_owned(), other.to_string());
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The generated files are what the types say.

#[test]
fn generated_files_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/lib/api/crds");
    for (name, crd) in [
        ("clustermanagers.json", schema::cluster_manager_crd()),
        ("klusterlets.json", schema::klusterlet_crd()),
        ("hubpolicies.json", schema::hub_policy_crd()),
        ("registrations.json", schema::registration_crd()),
        ("registrationapprovals.json", schema::registration_approval_crd()),
    ] {
        let path = folder.join(name);
        let mut generated = serde_json::to_string_pretty(&crd).unwrap();
        generated.push('\n');
        if std::env::var_os("UPDATE_CRDS").is_some() {
            std::fs::write(&path, &generated).unwrap();
        }
        let checked_in = std::fs::read_to_string(&path).unwrap();
        assert!(
            checked_in == generated,
            "{name} is not what the types say; run UPDATE_CRDS=1 cargo test -p contract-tests"
        );
    }
}

#[test]
fn the_definition_of_our_own_can_be_used() {
    let manifest = crds::hub_policy_manifest();
    assert_eq!(
        manifest.reference(),
        format!("customresourcedefinition.apiextensions.k8s.io/{}", crds::HUB_POLICY_NAME)
    );
    let spec = &manifest.body()["spec"];
    assert_eq!(manifest.name(), format!("{}.{}", HubPolicy::plural(&()), HubPolicy::group(&())));
    assert_eq!(spec["versions"][0]["name"], HubPolicy::version(&()).as_ref());
    assert_eq!(spec["scope"], "Cluster");
    // The controller writes it, and those who write policies do not.
    assert_eq!(spec["versions"][0]["subresources"], json!({ "status": {} }));
    let found = unbounded(&root_schema(manifest.body())["properties"]["spec"], "spec");
    assert!(found.is_empty(), "without bounds: {found:?}");
}

#[test]
fn the_definition_of_registrations_is_bounded_and_has_a_status() {
    let manifest = crds::registration_manifest();
    let spec = &manifest.body()["spec"];
    assert_eq!(manifest.name(), format!("{}.{}", Registration::plural(&()), Registration::group(&())));
    assert_eq!(manifest.name(), crds::REGISTRATION_NAME);
    assert_eq!(spec["versions"][0]["name"], Registration::version(&()).as_ref());
    assert_eq!(spec["scope"], "Cluster");
    assert_eq!(spec["versions"][0]["subresources"], json!({ "status": {} }));
    let found = unbounded(&root_schema(manifest.body())["properties"]["status"], "status");
    assert!(found.is_empty(), "without bounds: {found:?}");
}

#[test]
fn the_definition_of_approvals_is_bounded_and_has_no_status() {
    let manifest = crds::registration_approval_manifest();
    let spec = &manifest.body()["spec"];
    let name = format!("{}.{}", RegistrationApproval::plural(&()), RegistrationApproval::group(&()));
    assert_eq!((manifest.name(), name.as_str()), (crds::REGISTRATION_APPROVAL_NAME, crds::REGISTRATION_APPROVAL_NAME));
    assert_eq!(spec["versions"][0]["name"], RegistrationApproval::version(&()).as_ref());
    assert_eq!(spec["scope"], "Cluster");
    // Whoever may write a status, or leave the spec out, could say what nobody has proved.
    assert!(spec["versions"][0].get("subresources").is_none());
    let schema = root_schema(manifest.body());
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(schema["properties"]["spec"]["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
    let found = unbounded(&schema["properties"]["spec"], "spec");
    assert!(found.is_empty(), "without bounds: {found:?}");
}

/// Texts, lists, numbers and free objects that may be of any size.
fn unbounded(schema: &Value, path: &str) -> Vec<String> {
    let bounds = match schema["type"].as_str().unwrap_or_default() {
        "string" if schema.get("enum").is_some() => &[][..],
        "string" => &["maxLength"],
        "array" => &["maxItems"],
        "integer" => &["minimum", "maximum"],
        "object" if schema.get("properties").is_none() => &["maxProperties"],
        _ => &[],
    };
    let missing = bounds.iter().filter(|bound| schema.get(**bound).is_none());
    let mut found: Vec<_> = missing.map(|bound| format!("{path}: {bound}")).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.extend(unbounded(property, &format!("{path}.{name}")));
    }
    if let Some(items) = schema.get("items") {
        found.extend(unbounded(items, &format!("{path}[]")));
    }
    found
}

#[test]
fn embedded_definitions_can_be_used() {
    for (crd, manifest, name) in [
        (crds::cluster_manager_crd(), crds::cluster_manager_manifest(), crds::CLUSTER_MANAGER_NAME),
        (crds::klusterlet_crd(), crds::klusterlet_manifest(), crds::KLUSTERLET_NAME),
    ] {
        assert_eq!(crd.metadata.name.as_deref(), Some(name));
        assert_eq!(manifest.name(), name);
        // The typed object holds everything that the text holds.
        assert_eq!(facts(ocm_api::Manifest::of(&crd).body()), facts(manifest.body()));
        assert_eq!(manifest.reference(), format!("customresourcedefinition.apiextensions.k8s.io/{name}"));
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Our types hold every field of upstream's schemas.

#[test]
fn cluster_manager_loses_nothing() {
    assert_faithful::<ClusterManager>(CLUSTER_MANAGER, 100);
}

#[test]
fn klusterlet_loses_nothing() {
    assert_faithful::<Klusterlet>(KLUSTERLET, 60);
}

#[test]
fn managed_cluster_loses_nothing() {
    assert_faithful::<ManagedCluster>(MANAGED_CLUSTER, 25);
}

#[test]
fn managed_cluster_set_loses_nothing() {
    assert_faithful::<ManagedClusterSet>(SET, 10);
}

#[test]
fn managed_cluster_set_binding_loses_nothing() {
    assert_faithful::<ManagedClusterSetBinding>(SET_BINDING, 7);
}

#[test]
fn placement_loses_nothing() {
    assert_faithful::<Placement>(PLACEMENT, 60);
}

#[test]
fn placement_decision_loses_nothing() {
    assert_faithful::<PlacementDecision>(PLACEMENT_DECISION, 7);
}

#[test]
fn manifest_work_loses_nothing() {
    assert_faithful::<ManifestWork>(MANIFEST_WORK, 50);
}

#[test]
fn applied_manifest_work_loses_nothing() {
    assert_faithful::<AppliedManifestWork>(APPLIED_MANIFEST_WORK, 10);
}

#[test]
fn managed_cluster_add_on_loses_nothing() {
    assert_faithful::<ManagedClusterAddOn>(ADD_ON, 40);
}

/// The type is addressed as upstream's kind is, keeps a value at every path of its schema, and reads objects that hold
/// only what the schema requires.
fn assert_faithful<K>(file: &str, at_least: usize)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    K::Scope: 'static,
{
    let crd = upstream(file);
    let spec = &crd["spec"];
    assert_eq!(K::group(&()), spec["group"].as_str().unwrap());
    assert_eq!(K::version(&()), spec["versions"][0]["name"].as_str().unwrap());
    assert_eq!(K::kind(&()), spec["names"]["kind"].as_str().unwrap());
    assert_eq!(K::plural(&()), spec["names"]["plural"].as_str().unwrap());
    let cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
    assert_eq!(cluster_scoped, spec["scope"] == "Cluster");

    let object = |mut value: Value| {
        value["apiVersion"] = K::api_version(&()).into();
        value["kind"] = K::kind(&()).into();
        value
    };
    let schema = root_schema(&crd);
    // As many objects as the longest enumeration has words, so that each word is tried once.
    let words = longest_enum(schema);
    for round in 0..words {
        let mut paths = 0;
        let before = object(full(schema, "", round, &mut paths));
        assert!(paths >= at_least, "only {paths} paths in {file}: was the schema walked?");
        let typed: K = serde_json::from_value(before.clone()).unwrap_or_else(|error| panic!("{file}: {error}"));
        let after = serde_json::to_value(&typed).unwrap();
        let (before, after) = (flat(&before), flat(&after));
        let lost: Vec<&String> = before.keys().filter(|path| !after.contains_key(*path)).collect();
        let invented: Vec<&String> = after.keys().filter(|path| !before.contains_key(*path)).collect();
        let changed: Vec<&String> = before
            .iter()
            .filter(|(path, value)| after.get(*path).is_some_and(|v| v != *value))
            .map(|(p, _)| p)
            .collect();
        assert!(
            lost.is_empty() && invented.is_empty() && changed.is_empty(),
            "{file}: lost {lost:#?}, invented {invented:#?}, changed {changed:#?}"
        );
    }

    // What is missing must be what may be missing: an older hub knows fewer defaults, so those may be missing, too.
    for value in [least(schema), json!({ "metadata": { "name": "bare" } })] {
        let value = object(value);
        if let Err(error) = serde_json::from_value::<K>(value.clone()) {
            panic!("{file}: {error}: {value:#}");
        }
    }
}

/// A value with something at every path of the schema; each text and each number names its path.
fn full(schema: &Value, path: &str, round: usize, paths: &mut usize) -> Value {
    *paths += 1;
    if schema.get("x-kubernetes-preserve-unknown-fields").is_some() {
        return json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": path }, "data": { "key": path } });
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words[round % words.len()].clone();
    }
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return json!("1500m");
    }
    match (schema["type"].as_str().unwrap(), schema.get("format").and_then(Value::as_str)) {
        ("object", _) if path == "/metadata" => json!({ "name": "full", "labels": { "a": "b" } }),
        ("object", _) => {
            let mut members = Map::new();
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                members.insert(name.clone(), full(property, &format!("{path}/{name}"), round, paths));
            }
            if let Some(values) = schema.get("additionalProperties") {
                members.insert("key".to_owned(), full(values, &format!("{path}/*"), round, paths));
            }
            assert!(!members.is_empty(), "{path}: an object without members");
            Value::Object(members)
        }
        ("array", _) => json!([full(&schema["items"], &format!("{path}[]"), round, paths)]),
        ("string", Some("date-time")) => json!("2026-01-02T03:04:05Z"),
        ("string", Some("byte")) => json!("aGVsbG8="),
        ("string", None) => json!(path),
        // Different numbers, so that two fields that change places are seen.
        ("integer", Some("int32")) => json!(i32::MAX - *paths as i32),
        ("integer", Some("int64")) => json!(i64::MAX - *paths as i64),
        ("boolean", None) => json!(round.is_multiple_of(2)),
        (kind, format) => panic!("{path}: type {kind} of format {format:?} is new here"),
    }
}

/// A value with every object of the schema, but only the members that are required and have no default.
fn least(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let members = properties.filter(|(name, property)| {
                let holds_members = matches!(property["type"].as_str(), Some("object" | "array"));
                holds_members || (is_required(name) && property.get("default").is_none())
            });
            Value::Object(members.map(|(name, property)| (name.clone(), least(property))).collect())
        }
        Some("array") if schema["items"]["type"] == "object" => json!([least(&schema["items"])]),
        Some("array") => json!([]),
        _ => full(schema, "", 0, &mut 0),
    }
}

fn longest_enum(schema: &Value) -> usize {
    let own = schema.get("enum").and_then(Value::as_array).map_or(1, Vec::len);
    let inner = ["properties", "items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key));
    let inner = inner.flat_map(|inner| match inner {
        Value::Object(members) if inner.get("type").is_none_or(Value::is_object) => members.values().collect(),
        other => vec![other],
    });
    inner.map(longest_enum).chain([own]).max().unwrap()
}

/// Every leaf of a value by its path.
fn flat(value: &Value) -> BTreeMap<String, &Value> {
    fn walk<'a>(value: &'a Value, path: String, leaves: &mut BTreeMap<String, &'a Value>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, member) in members {
                    walk(member, format!("{path}/{key}"), leaves);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, format!("{path}[{index}]"), leaves);
                }
            }
            leaf => {
                leaves.insert(path, leaf);
            }
        }
    }
    let mut leaves = BTreeMap::new();
    walk(value, String::new(), &mut leaves);
    leaves
}

// ---------------------------------------------------------------------------------------------------------------------
// Our enumerations know upstream's words; an unknown one would be kept, but no command would act on it.

#[test]
fn enumerations_know_every_word() {
    let enumeration = |file: &str, pointer: &str| -> Vec<String> {
        let crd = upstream(file);
        let words = root_schema(&crd).pointer(pointer).unwrap_or_else(|| panic!("{file} has no {pointer}"));
        words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    // Those of ClusterManager and Klusterlet are part of the generated definitions.
    for (known, file, pointer) in [
        (
            ocm_api::cluster::TaintEffect::KNOWN,
            MANAGED_CLUSTER,
            "/properties/spec/properties/taints/items/properties/effect/enum",
        ),
        (
            ocm_api::cluster::TaintEffect::KNOWN,
            PLACEMENT,
            "/properties/spec/properties/tolerations/items/properties/effect/enum",
        ),
        (
            ocm_api::cluster::SelectorType::KNOWN,
            SET,
            "/properties/spec/properties/clusterSelector/properties/selectorType/enum",
        ),
        (
            ocm_api::work::DeletePropagationPolicy::KNOWN,
            MANIFEST_WORK,
            "/properties/spec/properties/deleteOption/properties/propagationPolicy/enum",
        ),
        (
            ocm_api::addon::HealthCheckMode::KNOWN,
            ADD_ON,
            "/properties/status/properties/healthCheck/properties/mode/enum",
        ),
    ] {
        assert_eq!(known, enumeration(file, pointer), "{pointer}");
    }
}

#[test]
fn unknown_words_survive() {
    let klusterlet = json!({
        "apiVersion": "operator.open-cluster-management.io/v1",
        "kind": "Klusterlet",
        "metadata": { "name": "klusterlet" },
        "spec": {
            "deployOption": { "mode": "Orbital" },
            "registrationConfiguration": { "registrationDriver": { "authType": "telepathy" } },
        },
    });
    let typed: Klusterlet = serde_json::from_value(klusterlet.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), klusterlet);
}

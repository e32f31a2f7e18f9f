//! The schemas of our types against upstream's: nothing missing, nothing different, nothing lost.
//!
//! `UPDATE_CRDS=1 cargo test -p contract-tests` rewrites the generated files in `plugins/lib/api/crds/`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use ocm_api::addon::ManagedClusterAddOn;
use ocm_api::cluster::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use ocm_api::work::{AppliedManifestWork, ManifestWork};
use ocm_api::{ClusterManager, Klusterlet, crds, schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const CLUSTER_MANAGER: &str = "operator/v1/0000_01_operator.open-cluster-management.io_clustermanagers.crd.yaml";
const KLUSTERLET: &str = "operator/v1/0000_00_operator.open-cluster-management.io_klusterlets.crd.yaml";
const MANAGED_CLUSTER: &str = "cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml";
const SET: &str = "cluster/v1beta2/0000_00_clusters.open-cluster-management.io_managedclustersets.crd.yaml";
const SET_BINDING: &str =
    "cluster/v1beta2/0000_01_clusters.open-cluster-management.io_managedclustersetbindings.crd.yaml";
const MANIFEST_WORK: &str = "work/v1/0000_00_work.open-cluster-management.io_manifestworks.crd.yaml";
const APPLIED_MANIFEST_WORK: &str = "work/v1/0000_01_work.open-cluster-management.io_appliedmanifestworks.crd.yaml";
const ADD_ON: &str = "addon/v1alpha1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml";

/// Where Go keeps upstream's module. `upstream-api/go.mod` names the version and `go.sum` its checksum.
static UPSTREAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let output = Command::new("go")
        .args(["mod", "download", "-json", "open-cluster-management.io/api"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("upstream-api"))
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off")
        .output()
        .expect("this test needs Go to download upstream's schemas");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "go mod download: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    let module: Value = serde_json::from_str(&stdout).unwrap();
    PathBuf::from(module["Dir"].as_str().unwrap())
});

fn upstream(file: &str) -> Value {
    let path = UPSTREAM.join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The one version of a definition that has `version`'s name.
fn version<'a>(crd: &'a Value, name: &str) -> &'a Value {
    let versions = crd["spec"]["versions"].as_array().unwrap();
    versions.iter().find(|version| version["name"] == name).unwrap()
}

fn root_schema<'a>(crd: &'a Value, name: &str) -> &'a Value {
    &version(crd, name)["schema"]["openAPIV3Schema"]
}

// ---------------------------------------------------------------------------------------------------------------------
// Our definitions equal upstream's.

#[test]
fn cluster_manager_equals_upstream() {
    assert_same(&upstream(CLUSTER_MANAGER), &serde_json::from_str(crds::CLUSTER_MANAGER_JSON).unwrap());
}

#[test]
fn klusterlet_equals_upstream() {
    assert_same(&upstream(KLUSTERLET), &serde_json::from_str(crds::KLUSTERLET_JSON).unwrap());
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
    for (name, crd) in
        [("clustermanagers.json", schema::cluster_manager_crd()), ("klusterlets.json", schema::klusterlet_crd())]
    {
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

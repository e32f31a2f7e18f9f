//! What enables an add-on on a cluster, and what its definition on the hub says.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::addon::AddOnConfig;
use ocm_api::names::namespaces;
use ocm_api::{ManagedClusterAddOn, Manifest};
use serde_json::{Value, json};

/// What is said of an add-on of a cluster; what is not stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddOnOptions {
    /// Namespace of its agent on the cluster.
    pub namespace: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Configuration objects on the hub.
    pub configs: Vec<AddOnConfig>,
}

/// Reads `RESOURCE.GROUP/NAMESPACE/NAME`; without a namespace for objects that have none, without a group for the core group.
pub fn parse_config(text: &str) -> Option<AddOnConfig> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts.as_slice() {
        [kind, name] => (kind, None, name),
        [kind, namespace, name] => (kind, Some(namespace), name),
        _ => return None,
    };
    let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
    if resource.is_empty() || name.is_empty() || namespace.is_some_and(|namespace| namespace.is_empty()) {
        return None;
    }
    Some(AddOnConfig {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.map(|namespace| (*namespace).to_owned()),
        name: (*name).to_owned(),
    })
}

/// The add-on of a cluster. Configurations of other kinds that the live one has stay: the server replaces the list as a whole.
///
/// The namespace is always said, as the live one or the server has it: who applies an empty spec would own all that others put
/// there.
pub fn manifest(name: &str, cluster: &str, options: &AddOnOptions, live: Option<&Value>) -> Manifest {
    let AddOnOptions { namespace, labels, annotations, configs } = options;
    let metadata = ObjectMeta {
        namespace: Some(cluster.to_owned()),
        name: Some(name.to_owned()),
        labels: (!labels.is_empty()).then(|| labels.clone()),
        annotations: (!annotations.is_empty()).then(|| annotations.clone()),
        ..ObjectMeta::default()
    };
    let lives_in = live.and_then(|live| live["spec"]["installNamespace"].as_str());
    let mut spec = json!({"installNamespace": namespace.as_deref().or(lives_in).unwrap_or(namespaces::AGENT_ADDON)});
    if !configs.is_empty() {
        spec["configs"] = Value::Array(united(configs, live.map(|live| &live["spec"]["configs"])));
    }
    Manifest::with::<ManagedClusterAddOn>(&metadata, json!({"spec": spec}))
}

/// Configurations and those of other kinds in a live list.
pub(super) fn united(configs: &[AddOnConfig], live: Option<&Value>) -> Vec<Value> {
    let live = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let kind = |config: &Value| (config["group"].as_str().unwrap_or_default().to_owned(), config["resource"].clone());
    let mut given: Vec<Value> = configs.iter().map(|config| json!(config)).collect();
    let kinds: Vec<(String, Value)> = given.iter().map(kind).collect();
    // In the live order, so that nothing changes when nothing is new.
    let mut all: Vec<Value> = Vec::new();
    for old in live {
        match given.iter().position(|new| kind(new) == kind(old)) {
            Some(at) => all.push(given.remove(at)),
            None if kinds.contains(&kind(old)) => {}
            None => all.push(old.clone()),
        }
    }
    all.append(&mut given);
    all
}

/// Kinds of configuration that a definition does not name, `RESOURCE.GROUP`. Upstream:
/// `ClusterManagementAddOnSpec.supportedConfigs`.
pub fn unsupported(definition: &Value, configs: &[AddOnConfig]) -> Vec<String> {
    let supported = definition["spec"]["supportedConfigs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_supported = |config: &&AddOnConfig| {
        supported.iter().any(|kind| {
            kind["resource"] == config.resource.as_str() && kind["group"].as_str().unwrap_or_default() == config.group
        })
    };
    let unsupported = configs.iter().filter(|config| !is_supported(config));
    unsupported.map(|config| format!("{}.{}", config.resource, config.group).trim_end_matches('.').to_owned()).collect()
}

/// The placements by which the hub itself adds an add-on to clusters and takes it from others, `NAMESPACE/NAME`; none where
/// people do. Upstream: `InstallStrategy`.
pub fn placements(definition: &Value) -> Vec<String> {
    let strategy = &definition["spec"]["installStrategy"];
    if strategy["type"] != "Placements" {
        return Vec::new();
    }
    let all = strategy["placements"].as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |placement: &Value, member: &str| placement[member].as_str().unwrap_or_default().to_owned();
    all.iter().map(|placement| format!("{}/{}", word(placement, "namespace"), word(placement, "name"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> AddOnConfig {
        parse_config(text).unwrap()
    }

    #[test]
    fn configurations_are_named_by_kind_namespace_and_name() {
        let whole = config("addondeploymentconfigs.addon.open-cluster-management.io/default/proxied");
        assert_eq!(whole.group, "addon.open-cluster-management.io");
        assert_eq!((whole.namespace.as_deref(), whole.name.as_str()), (Some("default"), "proxied"));
        assert_eq!(config("configmaps/a").group, "");
        for bad in ["", "a", "/a", "a/", "a//b", "a/b/c/d"] {
            assert_eq!(parse_config(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_what_is_said_and_the_namespace_is_in_it() {
        let of = |namespace: Option<&str>, live: Option<&Value>| {
            let options = AddOnOptions { namespace: namespace.map(str::to_owned), ..AddOnOptions::default() };
            let manifest = manifest("a", "c1", &options, live);
            assert_eq!(manifest.body()["metadata"], json!({"name": "a", "namespace": "c1"}));
            manifest.body()["spec"].clone()
        };
        let live = json!({"spec": {"installNamespace": "theirs", "configs": [{"resource": "x", "name": "a"}]}});
        assert_eq!(of(None, None), json!({"installNamespace": namespaces::AGENT_ADDON}));
        assert_eq!(of(None, Some(&live)), json!({"installNamespace": "theirs"}));
        assert_eq!(of(Some("n"), Some(&live)), json!({"installNamespace": "n"}));
    }

    #[test]
    fn labels_and_annotations_are_those_that_are_said() {
        let of = |key: &str| BTreeMap::from([(key.to_owned(), "x".to_owned())]);
        let options = AddOnOptions { labels: of("l"), annotations: of("a"), ..AddOnOptions::default() };
        let metadata = manifest("a", "c1", &options, None).body()["metadata"].clone();
        assert_eq!((&metadata["labels"], &metadata["annotations"]), (&json!({"l": "x"}), &json!({"a": "x"})));
    }

    #[test]
    fn configurations_of_other_kinds_stay() {
        let live = json!({"spec": {"configs": [
            {"group": "g", "resource": "x", "name": "old"}, {"resource": "y", "name": "kept"},
            {"group": "g", "resource": "x", "name": "older"}]}});
        let options = AddOnOptions { configs: vec![config("z.g/new"), config("x.g/new")], ..AddOnOptions::default() };
        let manifest = manifest("a", "c1", &options, Some(&live));
        let named: Vec<&Value> =
            manifest.body()["spec"]["configs"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(named, ["new", "kept", "new"]);
    }

    #[test]
    fn a_definition_tells_what_it_takes_and_who_installs() {
        let definition = json!({"spec": {
            "supportedConfigs": [{"group": "g", "resource": "x"}],
            "installStrategy": {"type": "Placements", "placements": [{"namespace": "n", "name": "p"}]}}});
        assert_eq!(unsupported(&definition, &[config("x.g/a"), config("x/a"), config("y.g/a")]), ["x", "y.g"]);
        assert_eq!(placements(&definition), ["n/p"]);
        let manual =
            json!({"spec": {"installStrategy": {"type": "Manual", "placements": [{"namespace": "n", "name": "p"}]}}});
        assert_eq!(placements(&manual), Vec::<String>::new());
    }
}

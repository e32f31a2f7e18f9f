//! What enables an add-on on a cluster, and what its definition on the hub says.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::addon::AddOnConfig;
use ocm_api::names::{annotations, namespaces};
use ocm_api::{ManagedClusterAddOn, Manifest};
use serde_json::{Value, json};

use super::configuration::{kind_and_object, kind_of};

const GROUP: &str = "addon.open-cluster-management.io";

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

/// The add-on of a cluster. Configurations that the live one has and that are not replaced stay: the server replaces the list as a
/// whole.
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

/// Whether an add-on takes one configuration of a kind: the first that it refers to is in effect. Of other kinds all are. Upstream:
/// `GetAddOnConfigRef`, by which add-ons look for these two, and `addonConfigMap`.
pub fn takes_one(config: &AddOnConfig) -> bool {
    config.group == GROUP && ["addontemplates", "addondeploymentconfigs"].contains(&config.resource.as_str())
}

/// Configurations and those of a live list that they do not replace: those of other kinds, and all of a kind of which there are
/// several and an add-on takes several.
pub(super) fn united(configs: &[AddOnConfig], live: Option<&Value>) -> Vec<Value> {
    let live = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let word = |old: &Value, member: &str| old[member].as_str().unwrap_or_default().to_owned();
    let is_of_kind = |old: &Value, config: &AddOnConfig| {
        word(old, "group") == config.group && word(old, "resource") == config.resource
    };
    let is_it = |old: &Value, config: &AddOnConfig| {
        let namespace = config.namespace.as_deref().unwrap_or_default();
        is_of_kind(old, config) && word(old, "name") == config.name && word(old, "namespace") == namespace
    };
    let mut new: Vec<&AddOnConfig> =
        configs.iter().filter(|config| !live.iter().any(|old| is_it(old, config))).collect();
    // In the live order, so that nothing changes when nothing is new.
    let mut all: Vec<Value> = Vec::new();
    for old in live {
        let is_replaced = configs.iter().find(|config| is_of_kind(old, config)).is_some_and(|config| {
            let is_only = || live.iter().filter(|other| is_of_kind(other, config)).count() == 1;
            !configs.iter().any(|config| is_it(old, config)) && (takes_one(config) || is_only())
        });
        if !is_replaced {
            all.push(old.clone());
        } else if let Some(at) = new.iter().position(|config| is_of_kind(old, config)) {
            all.push(json!(new.remove(at)));
        }
    }
    all.extend(new.into_iter().map(|config| json!(config)));
    all
}

/// Kinds of configuration that a definition names, `RESOURCE.GROUP`. Upstream: `ClusterManagementAddOnSpec.supportedConfigs`.
pub fn supported(definition: &Value) -> Vec<String> {
    let supported = definition["spec"]["supportedConfigs"].as_array().map(Vec::as_slice).unwrap_or_default();
    supported.iter().map(kind_of).collect()
}

/// Kinds of configuration that a definition does not name, `RESOURCE.GROUP`.
pub fn unsupported(definition: &Value, configs: &[AddOnConfig]) -> Vec<String> {
    let supported = supported(definition);
    configs.iter().map(|config| kind_and_object(config).0).filter(|kind| !supported.contains(kind)).collect()
}

/// Whether the hub's add-on manager installs an add-on and rolls out its configurations, and no controller of its own does.
/// Upstream: `ManagedByAddonManager`.
pub fn is_hubs(definition: &Value) -> bool {
    let lifecycle = definition["metadata"]["annotations"][annotations::ADDON_LIFECYCLE].as_str();
    lifecycle.is_none_or(|whose| whose == annotations::ADDON_MANAGER)
}

/// The placements by which the hub itself adds an add-on to clusters and takes it from others, `NAMESPACE/NAME`; none where
/// people do, or a controller of the add-on's own. Upstream: `InstallStrategy`.
pub fn placements(definition: &Value) -> Vec<String> {
    let strategy = &definition["spec"]["installStrategy"];
    if strategy["type"] != "Placements" || !is_hubs(definition) {
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
        let named = |live: &Value, texts: &[&str]| -> Vec<String> {
            let configs = texts.iter().map(|text| config(text)).collect();
            let options = AddOnOptions { configs, ..AddOnOptions::default() };
            let manifest = manifest("a", "c1", &options, Some(live));
            let all = manifest.body()["spec"]["configs"].as_array().unwrap().iter();
            all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        let live = json!({"spec": {"configs": [
            {"group": "g", "resource": "x", "name": "old"}, {"resource": "y", "name": "kept"}]}});
        assert_eq!(named(&live, &["z.g/new", "x.g/newer"]), ["newer", "kept", "new"]);
        assert_eq!(named(&live, &["x.g/old"]), ["old", "kept"]);
        // Several of a kind may be said.
        assert_eq!(named(&live, &["x.g/a", "x.g/b"]), ["a", "kept", "b"]);
        assert_eq!(named(&live, &["x.g/a", "x.g/old"]), ["old", "kept", "a"]);
    }

    #[test]
    fn only_of_kinds_of_which_one_is_in_effect_several_are_replaced() {
        let names = |resource: &str, group: &str, new: &str| -> Vec<String> {
            let of = |name: &str| json!({"group": group, "resource": resource, "namespace": "n", "name": name});
            let new = config(&format!("{resource}.{group}/n/{new}"));
            let all = united(&[new], Some(&json!([of("a"), of("b")])));
            all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        for resource in ["addontemplates", "addondeploymentconfigs"] {
            assert_eq!(names(resource, GROUP, "c"), ["c"]);
            assert_eq!(names(resource, GROUP, "b"), ["b"]);
        }
        assert_eq!(names("addontemplates", "g", "c"), ["a", "b", "c"]);
        assert_eq!(names("configs", GROUP, "b"), ["a", "b"]);
    }

    #[test]
    fn a_definition_tells_what_it_takes_and_who_installs() {
        let definition = json!({"spec": {
            "supportedConfigs": [{"group": "g", "resource": "x"}],
            "installStrategy": {"type": "Placements", "placements": [{"namespace": "n", "name": "p"}]}}});
        assert_eq!(unsupported(&definition, &[config("x.g/a"), config("x/a"), config("y.g/a")]), ["x", "y.g"]);
        assert_eq!(placements(&definition), ["n/p"]);
        // The hub looks at the strategy of those add-ons alone that its own manager looks after.
        for (whose, told) in [(annotations::ADDON_MANAGER, 1), ("self", 0)] {
            let mut definition = definition.clone();
            definition["metadata"] = json!({"annotations": {(annotations::ADDON_LIFECYCLE): whose}});
            assert_eq!(placements(&definition).len(), told, "{whose}");
        }
        let manual =
            json!({"spec": {"installStrategy": {"type": "Manual", "placements": [{"namespace": "n", "name": "p"}]}}});
        assert_eq!(placements(&manual), Vec::<String>::new());
    }
}

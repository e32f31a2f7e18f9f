//! Where an add-on refers to configurations, and how that is changed.
//!
//! ```text
//! supportedConfigs[].defaultConfig      of the ClusterManagementAddOn, for all clusters
//! installStrategy.placements[].configs  of the ClusterManagementAddOn, for those of a placement
//! spec.configs                          of the ManagedClusterAddOn, for one cluster
//! ```

use std::collections::{BTreeMap, BTreeSet};

use ocm_api::addon::AddOnConfig;
use ocm_api::{ClusterManagementAddOn, Manifest};
use serde_json::{Value, json};

use super::configuration::{kind_and_object, last_placement, object_of, text};
use super::enabled::{parse_config, takes_one, united};
use crate::leave::meta;
use crate::order::Collect as _;
use crate::reconcile::owned_by_us;

/// Where a definition refers to a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// As the default of all clusters.
    Default,
    /// For the clusters of a placement by which the hub installs the add-on: namespace and name.
    Placement(String, String),
}

impl Place {
    /// The entry of this place in a list of the definition.
    fn list<'a>(&self, spec: &'a Value) -> &'a Value {
        match self {
            Self::Default => &spec["supportedConfigs"],
            Self::Placement(..) => &spec["installStrategy"]["placements"],
        }
    }

    /// What tells its entry from others.
    fn keys<'a>(&'a self, config: &'a AddOnConfig) -> [(&'static str, &'a str); 2] {
        match self {
            Self::Default => [("group", config.group.as_str()), ("resource", config.resource.as_str())],
            Self::Placement(namespace, name) => [("namespace", namespace.as_str()), ("name", name.as_str())],
        }
    }

    /// The entry of this place in a spec.
    fn find<'a>(&self, spec: &'a Value, config: &AddOnConfig) -> Option<&'a Value> {
        let keys = self.keys(config);
        self.list(spec).as_array()?.iter().find(|entry| has(entry, &keys))
    }
}

fn has(entry: &Value, keys: &[(&'static str, &str)]) -> bool {
    keys.iter().all(|(key, value)| entry[*key].as_str().unwrap_or_default() == *value)
}

/// The configuration of the same kind that a definition refers to in a place; none if there is none, or no such place.
pub fn referred(definition: &Value, place: &Place, config: &AddOnConfig) -> Option<AddOnConfig> {
    let entry = place.find(&definition["spec"], config)?;
    match place {
        Place::Default => {
            let default = entry.get("defaultConfig").filter(|default| default.is_object())?;
            let word = |member: &str| default[member].as_str().map(str::to_owned);
            Some(AddOnConfig { namespace: word("namespace"), name: word("name")?, ..config.clone() })
        }
        Place::Placement(..) => of_kind(&entry["configs"], config),
    }
}

/// The configuration of the same kind in a list of them; of several, one that is another.
pub fn of_kind(configs: &Value, config: &AddOnConfig) -> Option<AddOnConfig> {
    let all = configs.as_array()?.iter().filter_map(read);
    let mut all = all.filter(|one| (&one.group, &one.resource) == (&config.group, &config.resource));
    let first = all.next()?;
    if first != *config {
        return Some(first);
    }
    Some(all.find(|one| one != config).unwrap_or(first))
}

fn read(config: &Value) -> Option<AddOnConfig> {
    serde_json::from_value(config.clone()).ok()
}

/// A definition that refers to configurations in a place, with what we have written of it before and nothing of others.
/// Upstream: `ClusterManagementAddOnSpec`, whose lists the server tells apart by these keys.
pub fn referring(name: &str, definition: &Value, place: &Place, configs: &[AddOnConfig]) -> Manifest {
    let mut spec = ours(definition);
    if let (Place::Placement(..), Some(first)) = (place, configs.first()) {
        let there = place.find(&definition["spec"], first).map(|entry| &entry["configs"]);
        let all = united(configs, there);
        entry(&mut spec["installStrategy"]["placements"], &place.keys(first))["configs"] = Value::Array(all);
    }
    if *place == Place::Default {
        for config in configs {
            let named = json!({"namespace": config.namespace, "name": config.name});
            entry(&mut spec["supportedConfigs"], &place.keys(config))["defaultConfig"] = named;
        }
    }
    Manifest::with::<ClusterManagementAddOn>(&meta(None, name), json!({"spec": spec}))
}

/// References of one kind of which it is not known which one a new one is to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several {
    /// The kind, as a [`Configured`](super::Configured) names it.
    pub kind: String,
    /// The objects.
    pub objects: Vec<String>,
}

/// Those of a list: an add-on takes several of the kind, several are there, and not all of them are said besides a new one. None if
/// it is clear what becomes of each.
pub fn several_in(configs: &[AddOnConfig], there: &Value) -> Option<Several> {
    let there: Vec<(String, String)> =
        there.as_array().into_iter().flatten().filter_map(read).map(|one| kind_and_object(&one)).collect();
    let said: Vec<(String, String)> = configs.iter().map(kind_and_object).collect();
    let new = configs.iter().filter(|config| !takes_one(config)).map(kind_and_object);
    let mut new = new.filter(|config| !there.contains(config));
    new.find_map(|(kind, _)| {
        let of_kind: Vec<&(String, String)> = there.iter().filter(|(of, _)| *of == kind).collect();
        let is_several = of_kind.len() > 1 && of_kind.iter().any(|one| !said.contains(one));
        let objects = of_kind.iter().map(|(_, object)| object.clone()).collect();
        is_several.then_some(Several { kind, objects })
    })
}

/// The same of a place in a definition. There is one default of a kind.
pub fn several_at(definition: &Value, place: &Place, configs: &[AddOnConfig]) -> Option<Several> {
    match place {
        Place::Default => None,
        Place::Placement(..) => several_in(configs, &place.find(&definition["spec"], configs.first()?)?["configs"]),
    }
}

/// Which references are taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// Those to objects of a kind, whichever they are.
    Kind {
        /// API group; empty for the core group.
        group: String,
        /// Plural resource name.
        resource: String,
    },
    /// Those to one object.
    Object(AddOnConfig),
}

impl Unwanted {
    /// Reads `RESOURCE.GROUP` for a kind, and what [`parse_config`] reads for an object.
    pub fn parse(text: &str) -> Option<Self> {
        if text.contains('/') {
            return parse_config(text).map(Self::Object);
        }
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        (!resource.is_empty()).then(|| Self::Kind { group: group.to_owned(), resource: resource.to_owned() })
    }

    /// The kind, as a [`Configured`](super::Configured) names it.
    pub fn kind(&self) -> String {
        match self {
            Self::Kind { group, resource } => format!("{resource}.{group}").trim_end_matches('.').to_owned(),
            Self::Object(config) => kind_and_object(config).0,
        }
    }

    /// Whether it may be a template.
    pub fn is_template(&self) -> bool {
        self.kind() == TEMPLATES
    }

    fn is(&self, config: &AddOnConfig) -> bool {
        let place = |config: &AddOnConfig| config.namespace.clone().unwrap_or_default();
        match self {
            Self::Kind { group, resource } => (group, resource) == (&config.group, &config.resource),
            Self::Object(own) => {
                (&own.group, &own.resource, &own.name) == (&config.group, &config.resource, &config.name)
                    && place(own) == place(config)
            }
        }
    }
}

/// The spec of a live ManagedClusterAddOn without these references.
pub fn addon_without(live: &Value, unwanted: &[Unwanted]) -> Value {
    let mut spec = live["spec"].clone();
    drop_from(&mut spec, unwanted);
    spec
}

/// The spec of a live definition without these references in a place.
pub fn definition_without(live: &Value, place: &Place, unwanted: &[Unwanted]) -> Value {
    let mut spec = live["spec"].clone();
    let list = match place {
        Place::Default => spec.get_mut("supportedConfigs"),
        Place::Placement(..) => spec.pointer_mut("/installStrategy/placements"),
    };
    for entry in list.and_then(Value::as_array_mut).into_iter().flatten() {
        match place {
            Place::Placement(namespace, name) if entry["namespace"] == **namespace && entry["name"] == **name => {
                drop_from(entry, unwanted);
            }
            Place::Placement(..) => {}
            Place::Default => {
                let default = &entry["defaultConfig"];
                let whole = json!({"group": entry["group"].as_str().unwrap_or_default(), "resource": entry["resource"],
                    "namespace": default["namespace"], "name": default["name"]});
                let is_unwanted = read(&whole).is_some_and(|config| unwanted.iter().any(|one| one.is(&config)));
                if let Some(members) = entry.as_object_mut().filter(|_| is_unwanted) {
                    members.remove("defaultConfig");
                }
            }
        }
    }
    spec
}

/// The kind of templates, as an [`Unwanted`] names it.
const TEMPLATES: &str = "addontemplates.addon.open-cluster-management.io";

/// Whether a list of configurations holds a template.
fn names_template(configs: &Value) -> bool {
    configs.as_array().into_iter().flatten().filter_map(read).any(|config| kind_and_object(&config).0 == TEMPLATES)
}

/// The template that the clusters have by default for which no other is said. Upstream: `supportedConfigs[].defaultConfig`.
fn default_template(spec: &Value) -> Option<&str> {
    let all = spec["supportedConfigs"].as_array().into_iter().flatten();
    let mut defaults = all.filter(|kind| format!("{}.{}", text(kind, "resource"), text(kind, "group")) == TEMPLATES);
    defaults.find_map(|kind| kind["defaultConfig"]["name"].as_str())
}

/// Whether a definition says which template clusters have by default.
pub fn has_default_template(definition: &Value) -> bool {
    default_template(&definition["spec"]).is_some()
}

/// Whether the add-on of a cluster refers to a template, and with this spec has none at all any more: the hub's add-on manager
/// looks after it no longer then. `selected` are the clusters of each placement, by its namespace and name. Upstream:
/// `FilterTemplateBasedAddOns`.
pub fn addon_loses_template(
    live: &Value,
    spec: &Value,
    definition: &Value,
    selected: &BTreeMap<String, BTreeSet<String>>,
) -> bool {
    let placement = last_placement(definition, text(&live["metadata"], "namespace"), selected);
    names_template(&live["spec"]["configs"])
        && !names_template(&spec["configs"])
        && !has_default_template(definition)
        && !placement.is_some_and(|placement| names_template(&placement["configs"]))
}

/// Whether a definition refers to a template in a place, and with this spec there are clusters that have none any more unless it
/// is said for each of them.
pub fn definition_loses_template(live: &Value, place: &Place, spec: &Value) -> bool {
    let placements = |spec: &Value| {
        let strategy = &spec["installStrategy"];
        strategy["placements"].as_array().filter(|_| strategy["type"] == "Placements").cloned().unwrap_or_default()
    };
    let lacks = |placement: &Value| !names_template(&placement["configs"]);
    match place {
        Place::Default => {
            let after = placements(spec);
            has_default_template(live)
                && default_template(spec).is_none()
                && (after.is_empty() || after.iter().any(lacks))
        }
        Place::Placement(namespace, name) => {
            let entry = |spec: &Value| {
                let is_it =
                    |one: &Value| text(one, "namespace") == namespace.as_str() && text(one, "name") == name.as_str();
                placements(spec).into_iter().find(is_it).unwrap_or_default()
            };
            !lacks(&entry(&live["spec"])) && lacks(&entry(spec)) && default_template(spec).is_none()
        }
    }
}

/// Drops references from the list `configs` of an object, and the list with the last of them.
fn drop_from(object: &mut Value, unwanted: &[Unwanted]) {
    let Some(all) = object.get_mut("configs").and_then(Value::as_array_mut) else { return };
    let before = all.len();
    all.retain(|config| !read(config).is_some_and(|config| unwanted.iter().any(|one| one.is(&config))));
    if all.is_empty()
        && before > 0
        && let Some(members) = object.as_object_mut()
    {
        members.remove("configs");
    }
}

/// The entry of a list with these keys, made if it is not there.
fn entry<'a>(list: &'a mut Value, keys: &[(&'static str, &str)]) -> &'a mut Value {
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let all = list.as_array_mut().expect("it is an array");
    let found = all.iter().position(|entry| has(entry, keys));
    let at = found.unwrap_or_else(|| {
        all.push(Value::Object(keys.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect_object()));
        all.len() - 1
    });
    &mut all[at]
}

/// Adds to a planned definition the configurations that the live one refers to, but for the default template: who plans a
/// definition anew says nothing of them.
pub fn keep_configurations(planned: &mut Manifest, live: &Value) {
    if planned.kind() != "ClusterManagementAddOn" {
        return;
    }
    let lists = [
        ("/spec/supportedConfigs", ["group", "resource"], "defaultConfig"),
        ("/spec/installStrategy/placements", ["namespace", "name"], "configs"),
    ];
    for (list, keys, member) in lists {
        let there = live.pointer(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let entries = planned.body_mut().pointer_mut(list).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            let is_same = |other: &&Value| keys.iter().all(|key| other[*key] == entry[*key]);
            let kept = there.iter().find(is_same).and_then(|other| other.get(member)).cloned();
            if let (Some(kept), Some(members)) = (kept, entry.as_object_mut()) {
                members.entry(member).or_insert(kept);
            }
        }
    }
}

/// Templates of placements in a definition that take the place of its default there: the placement, `NAMESPACE/NAME`, and the
/// template.
pub fn kept_templates(planned: &Manifest) -> Vec<(String, String)> {
    let spec = &planned.body()["spec"];
    let default = default_template(spec);
    let all = spec["installStrategy"]["placements"].as_array().into_iter().flatten();
    let of = |placement: &Value| {
        let configs = placement["configs"].as_array().into_iter().flatten().filter_map(read);
        let templates = configs.filter(|config| kind_and_object(config).0 == TEMPLATES).map(|config| config.name);
        let others = templates.filter(|name| Some(name.as_str()) != default);
        others.map(|name| (object_of(placement), name)).collect::<Vec<_>>()
    };
    all.flat_map(of).collect()
}

/// What we have written before of a spec.
pub(super) fn ours(live: &Value) -> Value {
    owned_by_us(live).get("spec").filter(|spec| spec.is_object()).cloned().unwrap_or_else(|| json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "addon.open-cluster-management.io";
    const RESOURCE: &str = "addondeploymentconfigs";

    fn config(name: &str) -> AddOnConfig {
        parse_config(&format!("{RESOURCE}.{GROUP}/n/{name}")).unwrap()
    }

    fn unwanted(texts: &[&str]) -> Vec<Unwanted> {
        texts.iter().map(|text| Unwanted::parse(text).unwrap()).collect()
    }

    /// A definition of which we have written the template, and others the placement.
    fn definition() -> Value {
        json!({
            "metadata": {"name": "a", "managedFields": [{"manager": "kubectl-ocm", "operation": "Apply", "fieldsV1": {
                "f:spec": {"f:supportedConfigs": {
                    "k:{\"group\":\"addon.open-cluster-management.io\",\"resource\":\"addontemplates\"}": {
                        ".": {}, "f:group": {}, "f:resource": {}, "f:defaultConfig": {"f:name": {}}}}}}}]},
            "spec": {
                "supportedConfigs": [
                    {"group": GROUP, "resource": "addontemplates", "defaultConfig": {"name": "t"}},
                    {"group": GROUP, "resource": RESOURCE}],
                "installStrategy": {"type": "Placements", "placements": [
                    {"namespace": "p", "name": "x", "configs": [{"group": "g", "resource": "others", "name": "o"}]},
                    {"namespace": "p", "name": "y"}]}},
        })
    }

    #[test]
    fn a_definition_refers_to_it_and_keeps_what_we_have_written() {
        let planned = referring("a", &definition(), &Place::Default, &[config("new")]);
        assert_eq!(
            planned.body()["spec"],
            json!({"supportedConfigs": [
                {"group": GROUP, "resource": "addontemplates", "defaultConfig": {"name": "t"}},
                {"group": GROUP, "resource": RESOURCE, "defaultConfig": {"namespace": "n", "name": "new"}}]})
        );
        let place = Place::Placement("p".to_owned(), "x".to_owned());
        let planned = referring("a", &definition(), &place, &[config("new")]);
        let placements = &planned.body()["spec"]["installStrategy"]["placements"];
        // The list of configurations is one value to the server: those of other kinds are said, too.
        assert_eq!(
            *placements,
            json!([{"namespace": "p", "name": "x", "configs": [
                {"group": "g", "resource": "others", "name": "o"},
                {"group": GROUP, "resource": RESOURCE, "namespace": "n", "name": "new"}]}])
        );
        assert_eq!(planned.body()["spec"]["supportedConfigs"][0]["defaultConfig"]["name"], "t");
        // Of a kind that has no namespaces there is none to say, and all that are given are said.
        let template = parse_config(&format!("addontemplates.{GROUP}/t2")).unwrap();
        let planned = referring("a", &definition(), &Place::Default, &[template, config("new")]);
        let defaults: Vec<&Value> = planned.body()["spec"]["supportedConfigs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["defaultConfig"])
            .collect();
        assert_eq!(defaults, [&json!({"name": "t2"}), &json!({"namespace": "n", "name": "new"})]);
    }

    #[test]
    fn references_are_taken_from_one_place_and_those_of_other_kinds_stay() {
        for bad in ["", ".g", "/a", "x.g/"] {
            assert_eq!(Unwanted::parse(bad), None, "{bad}");
        }
        let kinds: Vec<String> = unwanted(&["x.g", "x.g/n/a", "y", "y/a"]).iter().map(Unwanted::kind).collect();
        assert_eq!(kinds, ["x.g", "x.g", "y", "y"]);
        let live = json!({"spec": {"installNamespace": "i", "configs": [
            {"group": GROUP, "resource": RESOURCE, "namespace": "n", "name": "old"}, {"group": "", "resource": "configmaps",
                "namespace": "n", "name": "old"}]}});
        let names = |spec: &Value| spec["configs"].as_array().map_or(0, Vec::len);
        let kind = format!("{RESOURCE}.{GROUP}");
        let left = addon_without(&live, &unwanted(&[&kind]));
        assert_eq!((names(&left), &left["configs"][0]["resource"]), (1, &json!("configmaps")));
        assert_eq!(addon_without(&live, &unwanted(&[&format!("{kind}/n/old")])), left);
        assert_eq!(addon_without(&live, &unwanted(&[&format!("{kind}/n/other"), "secrets"])), live["spec"]);
        // The list goes with the last one.
        assert_eq!(addon_without(&live, &unwanted(&[&kind, "configmaps"])), json!({"installNamespace": "i"}));

        let mut live = definition();
        live["spec"]["supportedConfigs"][1]["defaultConfig"] = json!({"namespace": "n", "name": "old"});
        live["spec"]["installStrategy"]["placements"][1]["configs"] = json!([config("old")]);
        let place = |name: &str| Place::Placement("p".to_owned(), name.to_owned());
        let left = definition_without(&live, &Place::Default, &unwanted(&[&kind]));
        let mut wanted = live["spec"].clone();
        wanted["supportedConfigs"][1] = json!({"group": GROUP, "resource": RESOURCE});
        assert_eq!(left, wanted);
        let left = definition_without(&live, &place("y"), &unwanted(&[&kind]));
        let mut wanted = live["spec"].clone();
        wanted["installStrategy"]["placements"][1] = json!({"namespace": "p", "name": "y"});
        assert_eq!(left, wanted);
        for place in [place("x"), place("z")] {
            assert_eq!(definition_without(&live, &place, &unwanted(&[&kind])), live["spec"], "{place:?}");
        }
        // A kind without a default has none that could go, and none is made up.
        let other = unwanted(&[&format!("{kind}/n/other")]);
        assert_eq!(definition_without(&live, &Place::Default, &other), live["spec"]);
        assert_eq!(definition_without(&json!({"spec": {}}), &Place::Default, &other), json!({}));
    }

    #[test]
    fn which_of_several_is_replaced_is_not_guessed() {
        let there = json!([
            {"group": "g", "resource": "x", "name": "a"}, {"group": "g", "resource": "x", "namespace": "", "name": "b"},
            {"group": "g", "resource": "y", "name": "c"},
            {"group": GROUP, "resource": RESOURCE, "namespace": "n", "name": "a"},
            {"group": GROUP, "resource": RESOURCE, "namespace": "n", "name": "b"}]);
        let told = |texts: &[&str]| {
            let configs: Vec<AddOnConfig> = texts.iter().map(|text| parse_config(text).unwrap()).collect();
            several_in(&configs, &there)
        };
        let several = Several { kind: "x.g".to_owned(), objects: vec!["a".to_owned(), "b".to_owned()] };
        for texts in [&["x.g/new"][..], &["x.g/a", "x.g/new"], &["y.g/new", "x.g/new"]] {
            assert_eq!(told(texts), Some(several.clone()), "{texts:?}");
        }
        // All are said; nothing is new; there is one; of these one is in effect.
        let of_one = format!("{RESOURCE}.{GROUP}/n/new");
        for texts in [&["x.g/a", "x.g/b", "x.g/new"][..], &["x.g/b"], &["y.g/new"], &[of_one.as_str()], &["z.g/new"]] {
            assert_eq!(told(texts), None, "{texts:?}");
        }
        let mut live = definition();
        live["spec"]["installStrategy"]["placements"][0]["configs"] = there;
        let at = |place: Place| several_at(&live, &place, &[parse_config("x.g/new").unwrap()]);
        assert_eq!(at(Place::Placement("p".to_owned(), "x".to_owned())), Some(several));
        assert_eq!(at(Place::Placement("p".to_owned(), "y".to_owned())), None);
        assert_eq!(at(Place::Default), None);
    }

    #[test]
    fn the_last_template_of_a_cluster_is_told_apart_from_others() {
        let template = |name: &str| json!({"group": GROUP, "resource": "addontemplates", "name": name});
        let kind = unwanted(&[TEMPLATES]);
        assert!(kind[0].is_template() && !unwanted(&["x.g"])[0].is_template());
        let place = |name: &str| Place::Placement("p".to_owned(), name.to_owned());
        let loses = |live: &Value, place: &Place| {
            definition_loses_template(live, place, &definition_without(live, place, &kind))
        };
        let with = definition();
        assert!(loses(&with, &Place::Default));
        let mut all_say = with.clone();
        for placement in 0..2 {
            all_say["spec"]["installStrategy"]["placements"][placement]["configs"] = json!([template("t2")]);
        }
        assert!(!loses(&all_say, &Place::Default) && !loses(&all_say, &place("x")));
        let mut manual = all_say.clone();
        manual["spec"]["installStrategy"]["type"] = json!("Manual");
        assert!(loses(&manual, &Place::Default));
        let mut without = all_say.clone();
        without["spec"]["supportedConfigs"][0] = json!({"group": GROUP, "resource": "addontemplates"});
        assert!(loses(&without, &place("x")));
        // What is not referred to is not lost.
        assert!(!loses(&without, &Place::Default) && !loses(&without, &place("z")));

        let addon = json!({"metadata": {"namespace": "c1"}, "spec": {"configs": [template("own")]}});
        let selected = BTreeMap::from([("p/x".to_owned(), BTreeSet::from(["c1".to_owned()]))]);
        let none = BTreeMap::new();
        let loses = |addon: &Value, definition: &Value, selected: &BTreeMap<String, BTreeSet<String>>| {
            addon_loses_template(addon, &addon_without(addon, &kind), definition, selected)
        };
        assert!(loses(&addon, &without, &none) && !loses(&addon, &without, &selected));
        assert!(!loses(&addon, &with, &none));
        let mut bare = without.clone();
        bare["spec"]["installStrategy"]["placements"][0]["configs"] = Value::Null;
        assert!(loses(&addon, &bare, &selected));
        let other = json!({"metadata": {"namespace": "c1"}, "spec": {}});
        assert!(!loses(&other, &bare, &selected));
    }

    #[test]
    fn what_is_referred_to_already_is_found() {
        let place = |name: &str| Place::Placement("p".to_owned(), name.to_owned());
        let mut live = definition();
        for place in [Place::Default, place("x"), place("y"), place("z")] {
            assert_eq!(referred(&live, &place, &config("new")), None, "{place:?}");
        }
        live["spec"]["supportedConfigs"][1]["defaultConfig"] = json!({"namespace": "n", "name": "old"});
        assert_eq!(referred(&live, &Place::Default, &config("new")), Some(config("old")));
        live["spec"]["installStrategy"]["placements"][1]["configs"] = json!([config("old")]);
        assert_eq!(referred(&live, &place("y"), &config("new")), Some(config("old")));
        // Of two, the one that would be lost.
        let both = json!([config("new"), config("old")]);
        assert_eq!(of_kind(&both, &config("new")), Some(config("old")));
        assert_eq!(of_kind(&json!([config("new")]), &config("new")), Some(config("new")));
    }

    #[test]
    fn a_definition_that_is_planned_anew_keeps_configurations_but_not_its_template() {
        let mut live = definition();
        live["spec"]["supportedConfigs"][1]["defaultConfig"] = json!({"namespace": "n", "name": "old"});
        let spec = json!({
            "supportedConfigs": [
                {"group": GROUP, "resource": "addontemplates", "defaultConfig": {"name": "t2"}},
                {"group": GROUP, "resource": RESOURCE}],
            "installStrategy": {"type": "Placements", "placements": [{"namespace": "p", "name": "x"}]}});
        let mut planned = Manifest::with::<ClusterManagementAddOn>(&meta(None, "a"), json!({"spec": spec}));
        assert!(kept_templates(&planned).is_empty());
        let template = |name: &str| json!({"group": GROUP, "resource": "addontemplates", "name": name});
        let configs = &mut live["spec"]["installStrategy"]["placements"][0]["configs"];
        configs.as_array_mut().unwrap().extend([template("t"), template("t2")]);
        keep_configurations(&mut planned, &live);
        assert_eq!(kept_templates(&planned), [("p/x".to_owned(), "t".to_owned())]);
        let spec = &planned.body()["spec"];
        assert_eq!(spec["supportedConfigs"][0]["defaultConfig"]["name"], "t2");
        assert_eq!(spec["supportedConfigs"][1]["defaultConfig"]["name"], "old");
        assert_eq!(spec["installStrategy"]["placements"][0]["configs"][0]["name"], "o");
    }
}

//! Which configuration of an add-on takes effect on a cluster, and how far a change of it has come.
//!
//! ```text
//! default of the ClusterManagementAddOn ─▶ placement that installs it, the last that selects the cluster ─▶ ManagedClusterAddOn
//! ```
//!
//! Of each kind of configuration, what is said further to the right replaces all of what is said before. Upstream:
//! `pkg/addon/controllers/addonconfiguration`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ocm_api::ManagedClusterAddOn;
use ocm_api::addon::AddOnConfig;
use ocm_api::conditions::managed_cluster_add_on::PROGRESSING;
use serde_json::Value;

use crate::order::Collect as _;

/// Where a configuration is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// In the ClusterManagementAddOn, for all clusters.
    Default,
    /// In its install strategy, for the clusters that a placement selects: namespace and name.
    Placement(String),
    /// In the ManagedClusterAddOn, for one cluster.
    Cluster,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Placement(placement) => write!(f, "placement {placement}"),
            Self::Cluster => f.write_str("cluster"),
        }
    }
}

/// A configuration object and where it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where.
    pub level: Level,
    /// Namespace and name of the object with a slash, or its name alone.
    pub object: String,
}

/// A configuration of an add-on on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Name of the cluster.
    pub cluster: String,
    /// Kind of the configuration, `RESOURCE.GROUP`.
    pub resource: String,
    /// The one that takes effect.
    pub effective: Named,
    /// Those that it replaces, from the left to the right.
    pub replaced: Vec<Named>,
    /// Hash of the spec that the hub wants there; empty before it has found one, none before it has looked.
    pub desired: Option<String>,
    /// Object and hash of the spec that was applied last; none if none was.
    pub applied: Option<(String, String)>,
    /// Whether the add-on of the cluster has been told to take it, as it is now.
    pub is_reached: bool,
    /// What keeps it from being in effect; none if it is.
    pub why: Option<String>,
}

/// What takes effect of the configurations of an add-on on one cluster. `selected` are the clusters of each placement, by its
/// namespace and name.
pub fn configurations(
    definition: &Value,
    addon: &ManagedClusterAddOn,
    selected: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<Configured> {
    let cluster = addon.metadata.namespace.clone().unwrap_or_default();
    let placement = last_placement(definition, &cluster, selected);
    let levels = [defaults(definition), placement.map(of_placement).unwrap_or_default(), of_cluster(addon)];
    let kinds: BTreeSet<&String> = levels.iter().flatten().map(|(kind, _)| kind).collect_set();
    let mut all = Vec::new();
    for kind in kinds {
        let said = levels.iter().map(|level| {
            let of_kind = level.iter().filter(|(of, _)| of == kind).map(|(_, named)| named.clone());
            of_kind.collect::<Vec<Named>>()
        });
        let mut said: Vec<Vec<Named>> = said.filter(|level| !level.is_empty()).collect();
        let effective = said.pop().unwrap_or_default();
        let replaced: Vec<Named> = said.into_iter().flatten().collect();
        all.extend(effective.into_iter().map(|effective| {
            let reference = reference(addon, kind, &effective.object);
            let hash = |member: &str| {
                let config = reference?.get(member).filter(|config| config.is_object())?;
                Some((object_of(config), text(config, "specHash").to_owned()))
            };
            let desired = hash("desiredConfig").map(|(_, hash)| hash);
            let applied = hash("lastAppliedConfig");
            let wanted = wanted_hash(definition, placement, kind, &effective);
            let is_old = wanted.is_some_and(|wanted| desired.as_deref().unwrap_or_default() != wanted);
            let why = match why(reference.is_some(), desired.as_deref(), applied.as_ref(), &effective.object) {
                _ if is_old && reference.is_some() => {
                    Some("its content has changed, and its rollout has not come to the cluster".to_owned())
                }
                why => why,
            };
            let is_reached = reference.is_some() && !is_old;
            let (cluster, resource, replaced) = (cluster.clone(), kind.clone(), replaced.clone());
            Configured { cluster, resource, effective, replaced, desired, applied, is_reached, why }
        }));
    }
    all
}

/// A configuration that an add-on on a cluster does not refer to any more, and that the hub has not taken from it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenAway {
    /// Name of the cluster.
    pub cluster: String,
    /// Kind of the configuration, `RESOURCE.GROUP`.
    pub resource: String,
    /// Namespace and name of the object with a slash, or its name alone.
    pub object: String,
}

impl TakenAway {
    /// What keeps it from being gone, for people.
    pub const WHY: &str = "it was taken away, and that has not come to the cluster";
}

/// What the hub has to take from an add-on on a cluster still. `effective` is what takes effect of its configurations there.
pub fn taken_away(addon: &ManagedClusterAddOn, effective: &[Configured]) -> Vec<TakenAway> {
    let cluster = addon.metadata.namespace.clone().unwrap_or_default();
    let known = addon.status.iter().flat_map(|status| &status.config_references);
    let known = known.filter(|one| one["desiredConfig"].is_object());
    let all = known.map(|one| (kind_of(one), object_of(&one["desiredConfig"])));
    let is_effective = |(kind, object): &(String, String)| {
        effective.iter().any(|one| one.cluster == cluster && one.resource == *kind && one.effective.object == *object)
    };
    let left = all.filter(|one| !is_effective(one));
    left.map(|(resource, object)| TakenAway { cluster: cluster.clone(), resource, object }).collect()
}

fn why(is_known: bool, desired: Option<&str>, applied: Option<&(String, String)>, object: &str) -> Option<String> {
    match (is_known, desired, applied) {
        (false, ..) => Some("the hub has not looked at it yet, or its rollout has not come to the cluster".to_owned()),
        (true, None | Some(""), None) => Some(format!("the hub has not found {object}, or it was not applied yet")),
        (true, None, Some(_)) => Some(format!("the hub has not found {object}")),
        (true, Some(_), None) => Some("it was not applied yet".to_owned()),
        (true, Some(desired), Some((last, hash))) if hash != desired || last != object => Some(match last == object {
            true => "an earlier content of it is applied still".to_owned(),
            false => format!("{last} is applied still"),
        }),
        (true, Some(_), Some(_)) => None,
    }
}

type Said = Vec<(String, Named)>;

/// Upstream: `supportedConfigs[].defaultConfig`.
fn defaults(definition: &Value) -> Said {
    let all = definition.pointer("/spec/supportedConfigs").and_then(Value::as_array);
    let of = |kind: &Value| {
        let default = kind.get("defaultConfig").filter(|default| default.is_object())?;
        Some((kind_of(kind), Named { level: Level::Default, object: object_of(default) }))
    };
    all.into_iter().flatten().filter_map(of).collect()
}

/// The last placement of the install strategy that selects a cluster.
pub(super) fn last_placement<'a>(
    definition: &'a Value,
    cluster: &str,
    selected: &BTreeMap<String, BTreeSet<String>>,
) -> Option<&'a Value> {
    let strategy = &definition["spec"]["installStrategy"];
    let all = strategy["placements"].as_array().filter(|_| strategy["type"] == "Placements");
    let selects =
        |placement: &&Value| selected.get(&object_of(placement)).is_some_and(|clusters| clusters.contains(cluster));
    all.into_iter().flatten().rfind(selects)
}

/// Upstream: `installStrategy.placements[].configs`.
fn of_placement(placement: &Value) -> Said {
    let level = Level::Placement(object_of(placement));
    let configs = placement["configs"].as_array().into_iter().flatten();
    configs.map(|config| (kind_of(config), Named { level: level.clone(), object: object_of(config) })).collect()
}

/// Hash of the spec of a configuration that the hub rolls out; none if the definition tells of none, or it is said for the
/// cluster alone. Upstream: `status.installProgressions[].configReferences`, `status.defaultconfigReferences`.
fn wanted_hash<'a>(definition: &'a Value, placement: Option<&Value>, kind: &str, effective: &Named) -> Option<&'a str> {
    if effective.level == Level::Cluster {
        return None;
    }
    let all = match placement.map(object_of) {
        Some(placement) => progression(definition, &placement)?.get("configReferences"),
        None => definition.pointer("/status/defaultconfigReferences"),
    };
    let mut all = all.and_then(Value::as_array)?.iter();
    let found = all.find(|one| kind_of(one) == kind && object_of(&one["desiredConfig"]) == effective.object)?;
    Some(text(&found["desiredConfig"], "specHash")).filter(|hash| !hash.is_empty())
}

/// What the hub has noted about the clusters of a placement, by its namespace and name. Upstream: `InstallProgression`.
pub(super) fn progression<'a>(definition: &'a Value, placement: &str) -> Option<&'a Value> {
    let all = definition.pointer("/status/installProgressions").and_then(Value::as_array)?;
    all.iter().find(|one| object_of(one) == placement)
}

/// Upstream: `ManagedClusterAddOn.spec.configs`.
fn of_cluster(addon: &ManagedClusterAddOn) -> Said {
    let of = |config: &AddOnConfig| {
        let (kind, object) = kind_and_object(config);
        (kind, Named { level: Level::Cluster, object })
    };
    addon.spec.configs.iter().map(of).collect()
}

/// Kind and object of a configuration, as a [`Configured`] names them.
pub fn kind_and_object(config: &AddOnConfig) -> (String, String) {
    let AddOnConfig { group, resource, namespace, name } = config;
    (named_kind(resource, group), named_object(namespace.as_deref(), name))
}

/// What the hub has noted about a configuration of an add-on. Upstream: `ConfigReference`.
fn reference<'a>(addon: &'a ManagedClusterAddOn, kind: &str, object: &str) -> Option<&'a Value> {
    let mut all = addon.status.iter().flat_map(|status| &status.config_references);
    all.find(|one| kind_of(one) == kind && object_of(&one["desiredConfig"]) == object)
}

pub(super) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object[member].as_str().unwrap_or_default()
}

pub(super) fn kind_of(config: &Value) -> String {
    named_kind(text(config, "resource"), text(config, "group"))
}

fn named_kind(resource: &str, group: &str) -> String {
    format!("{resource}.{group}").trim_end_matches('.').to_owned()
}

pub(super) fn object_of(config: &Value) -> String {
    named_object(config["namespace"].as_str(), text(config, "name"))
}

fn named_object(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}

/// Why the hub does not use a template as the default of an add-on yet; none if it does. Upstream:
/// `status.defaultconfigReferences`.
pub fn unused_template(definition: &Value, template: &str) -> Option<String> {
    let all = definition.pointer("/status/defaultconfigReferences").and_then(Value::as_array);
    let is_it = |one: &&Value| one["resource"] == "addontemplates" && one["desiredConfig"]["name"] == template;
    match all.into_iter().flatten().find(is_it) {
        None => Some("the hub's add-on manager has not looked at it yet".to_owned()),
        Some(one) if text(&one["desiredConfig"], "specHash").is_empty() => {
            Some(format!("the hub's add-on manager has not read AddOnTemplate {template} yet"))
        }
        Some(_) => None,
    }
}

/// How far the hub has come with an add-on on the clusters of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Namespace and name of the placement.
    pub placement: String,
    /// Status of its condition `Progressing`; none if nobody has set it.
    pub progressing: Option<String>,
    /// Reason of the condition.
    pub reason: String,
    /// What it says.
    pub message: String,
}

/// The progress of every placement by which the hub installs an add-on. Upstream: `status.installProgressions`.
pub fn progress(definition: &Value) -> Vec<Progress> {
    let all = definition.pointer("/status/installProgressions").and_then(Value::as_array);
    let of = |one: &Value| {
        let mut conditions = one["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|condition| condition["type"] == PROGRESSING);
        let word = |member: &str| found.map(|found| text(found, member).to_owned());
        Progress {
            placement: object_of(one),
            progressing: word("status"),
            reason: word("reason").unwrap_or_default(),
            message: word("message").unwrap_or_default(),
        }
    };
    all.into_iter().flatten().map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition() -> Value {
        let config =
            |resource: &str, name: &str| json!({"group": "g", "resource": resource, "namespace": "n", "name": name});
        json!({"spec": {
            "supportedConfigs": [
                {"group": "g", "resource": "templates", "defaultConfig": {"name": "t"}},
                {"group": "g", "resource": "settings", "defaultConfig": {"namespace": "n", "name": "all"}},
                {"group": "g", "resource": "others"}],
            "installStrategy": {"type": "Placements", "placements": [
                {"namespace": "p", "name": "first", "configs": [config("settings", "first"), config("others", "first")]},
                {"namespace": "p", "name": "last", "configs": [config("settings", "last")]}]}}})
    }

    fn addon(configs: Value, references: Value) -> ManagedClusterAddOn {
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "c1"}, "spec": {"configs": configs},
            "status": {"configReferences": references}}))
        .unwrap()
    }

    fn selected(placements: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
        placements.iter().map(|name| (format!("p/{name}"), BTreeSet::from(["c1".to_owned()]))).collect()
    }

    fn told(addon: &ManagedClusterAddOn, placements: &[&str]) -> Vec<String> {
        let all = configurations(&definition(), addon, &selected(placements));
        all.iter().map(|one| format!("{} {} {}", one.resource, one.effective.object, one.effective.level)).collect()
    }

    #[test]
    fn what_is_said_closest_to_the_cluster_takes_effect() {
        let none = addon(json!([]), json!([]));
        assert_eq!(told(&none, &[]), ["settings.g n/all default", "templates.g t default"]);
        assert_eq!(
            told(&none, &["first"]),
            ["others.g n/first placement p/first", "settings.g n/first placement p/first", "templates.g t default"]
        );
        // Of two placements only the last counts, also for what it does not say.
        assert_eq!(told(&none, &["first", "last"]), ["settings.g n/last placement p/last", "templates.g t default"]);
        let own = addon(json!([{"group": "g", "resource": "settings", "name": "own"}]), json!([]));
        assert_eq!(told(&own, &["last"]), ["settings.g own cluster", "templates.g t default"]);
        let all = configurations(&definition(), &own, &selected(&["last"]));
        let replaced: Vec<&str> = all[0].replaced.iter().map(|named| named.object.as_str()).collect();
        assert_eq!(replaced, ["n/all", "n/last"]);
    }

    #[test]
    fn it_is_told_what_keeps_a_configuration_from_being_in_effect() {
        let config = |name: &str, hash: &str| json!({"namespace": "n", "name": name, "specHash": hash});
        let why = |desired: Value, applied: Value| {
            let reference =
                json!({"group": "g", "resource": "settings", "desiredConfig": desired, "lastAppliedConfig": applied});
            let all = configurations(&definition(), &addon(json!([]), json!([reference])), &selected(&[]));
            all.into_iter().find(|one| one.resource == "settings.g").unwrap().why
        };
        assert_eq!(why(config("all", "1"), config("all", "1")), None);
        assert_eq!(why(config("all", "1"), Value::Null).unwrap(), "it was not applied yet");
        assert_eq!(
            why(config("all", ""), Value::Null).unwrap(),
            "the hub has not found n/all, or it was not applied yet"
        );
        // Of kinds that nobody on the hub reads there is no hash.
        assert_eq!(why(config("all", ""), config("all", "")), None);
        assert_eq!(why(config("all", "2"), config("all", "1")).unwrap(), "an earlier content of it is applied still");
        assert_eq!(why(config("all", "2"), config("old", "1")).unwrap(), "n/old is applied still");
        assert!(why(config("old", "1"), config("old", "1")).unwrap().starts_with("the hub has not looked"));
    }

    #[test]
    fn a_configuration_that_was_taken_away_is_told_until_the_hub_has_taken_it() {
        let reference = |resource: &str, name: &str| {
            let desired = json!({"namespace": "n", "name": name, "specHash": "1"});
            json!({"group": "g", "resource": resource, "desiredConfig": desired})
        };
        let left = |references: Value| {
            let addon = addon(json!([]), references);
            let all = configurations(&definition(), &addon, &selected(&[]));
            let left = taken_away(&addon, &all);
            assert!(left.iter().all(|one| one.cluster == "c1"));
            left.into_iter().map(|one| format!("{} {}", one.resource, one.object)).collect::<Vec<_>>()
        };
        // Of its kind there is nothing any more, or another one.
        assert_eq!(
            left(json!([reference("settings", "all"), reference("settings", "own"), reference("others", "o")])),
            ["settings.g n/own", "others.g n/o"]
        );
        assert!(left(json!([reference("settings", "all"), {"group": "g", "resource": "others"}])).is_empty());
    }

    #[test]
    fn a_content_that_the_hub_rolls_out_is_in_effect_where_it_has_come_to() {
        let config = |name: &str, hash: &str| json!({"namespace": "n", "name": name, "specHash": hash});
        let reference = |name: &str, hash: &str| {
            json!({"group": "g", "resource": "settings",
            "desiredConfig": config(name, hash), "lastAppliedConfig": config(name, hash)})
        };
        let mut definition = definition();
        definition["status"] = json!({
            "defaultconfigReferences": [reference("all", "2")],
            "installProgressions": [{"namespace": "p", "name": "last", "configReferences": [reference("last", "2")]}]});
        let told = |name: &str, hash: &str, placements: &[&str], own: Value| {
            let addon = addon(own, json!([reference(name, hash)]));
            let all = configurations(&definition, &addon, &selected(placements));
            let one = all.into_iter().find(|one| one.resource == "settings.g").unwrap();
            (one.is_reached, one.why)
        };
        let old = "its content has changed, and its rollout has not come to the cluster";
        for (name, placements) in [("all", &[][..]), ("last", &["last"][..])] {
            assert_eq!(told(name, "2", placements, json!([])), (true, None));
            assert_eq!(told(name, "1", placements, json!([])), (false, Some(old.to_owned())));
        }
        // What is said for the cluster alone is nobody else's to roll out; and of a placement that the hub has not looked at
        // nothing is known.
        let own = json!([{"group": "g", "resource": "settings", "namespace": "n", "name": "last"}]);
        assert_eq!(told("last", "1", &["last"], own), (true, None));
        assert_eq!(told("first", "1", &["first"], json!([])), (true, None));
        assert!(!told("other", "2", &[], json!([])).0);
    }

    #[test]
    fn a_template_is_used_once_the_hub_has_read_it() {
        let told = |hash: Value| {
            let references = json!([{"group": "g", "resource": "addontemplates",
                "desiredConfig": {"name": "hello-2", "specHash": hash}}]);
            unused_template(&json!({"status": {"defaultconfigReferences": references}}), "hello-2")
        };
        assert_eq!(told(json!("1")), None);
        assert!(told(json!("")).unwrap().ends_with("has not read AddOnTemplate hello-2 yet"));
        assert!(unused_template(&json!({}), "hello-2").unwrap().ends_with("has not looked at it yet"));
    }

    #[test]
    fn the_progress_of_each_placement_is_told() {
        let condition = json!({"type": "Progressing", "status": "True", "reason": "Progressing", "message": "1/2"});
        let definition = json!({"status": {"installProgressions": [
            {"namespace": "p", "name": "first", "conditions": [condition]}, {"namespace": "p", "name": "last"}]}});
        let all = progress(&definition);
        assert_eq!((all[0].placement.as_str(), all[0].progressing.as_deref()), ("p/first", Some("True")));
        assert_eq!((all[0].message.as_str(), all[1].progressing.as_deref()), ("1/2", None));
        assert_eq!(progress(&json!({})), []);
    }
}

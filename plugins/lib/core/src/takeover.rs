//! What to do with an object that is there already, perhaps made by another tool: nothing of it may be lost.
//!
//! A server-side apply loses fields in three ways, and each has its rule here:
//!
//! * A field that an earlier apply of ours set and this one does not mention is removed: [`reconcile`] mentions it.
//! * A list that the server treats as one value is replaced: [`reconcile`] keeps the entries that only the live
//!   object has, where the order of the entries allows it (rules, subjects, arguments, feature gates, users).
//! * A default of ours replaces what somebody has chosen: planners lay the live object [`over`] their defaults before
//!   they add what the user typed.

use std::collections::BTreeSet;

use ocm_api::Manifest;
use serde_json::{Map, Value};

/// Our name in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "kubectl-ocm";

/// What to do with an object of a plan, given what the cluster holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Takeover {
    /// Apply this: the planned object, with what must not be lost of the live one carried over.
    Apply(Manifest),
    /// Leave the live object as it is, for this reason.
    Keep(String),
}

/// Decides for one object. `live` is what the cluster holds now.
pub fn reconcile(planned: &Manifest, live: Option<&Value>) -> Takeover {
    let mut planned = planned.clone();
    if planned.kind() == "Namespace" {
        own_something(&mut planned);
    }
    let Some(live) = live else { return Takeover::Apply(planned) };
    if planned.kind() == "CustomResourceDefinition"
        && let Some(reason) = definition_to_keep(planned.body(), live)
    {
        return Takeover::Keep(reason);
    }
    if planned.is_secret() && is_empty_pull_secret(planned.body()) && !is_empty_pull_secret(live) {
        return Takeover::Keep("it holds credentials, and none were given to replace them".to_owned());
    }
    carry(planned.body_mut(), &owned_by_us(live));
    unite(planned.body_mut(), live, "");
    Takeover::Apply(planned)
}

/// An apply that owns no field is forgotten, and the next one changes the object to note down who was there before.
/// A bare namespace therefore says the one label that the server would give it anyhow.
fn own_something(namespace: &mut Manifest) {
    let name = Value::from(namespace.name());
    if let Some(metadata) = namespace.body_mut()["metadata"].as_object_mut() {
        let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
        labels["kubernetes.io/metadata.name"] = name;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Defaults under a live object

/// Members that the server treats as one value although they look like several.
const WHOLE: &[&str] = &["selector", "valueFrom", "roleRef"];

/// Members of which two halves may contradict each other: a probe has one way of asking.
const ONE_OF: &[&str] = &["livenessProbe", "readinessProbe", "startupProbe"];

/// The live object laid over `defaults`: every member of the defaults, with the live value where there is one.
///
/// What only the live object has is left out: it belongs to somebody else, and an apply does not touch it.
pub fn over(defaults: &Value, live: &Value) -> Value {
    lay(defaults, live, "")
}

fn lay(default: &Value, live: &Value, member: &str) -> Value {
    if WHOLE.contains(&member) || (ONE_OF.contains(&member) && !covers(live, default)) {
        return live.clone();
    }
    match (default, live) {
        (Value::Object(default), Value::Object(live)) => {
            let laid = |(key, value): (&String, &Value)| {
                let value = match live.get(key) {
                    Some(live) => lay(value, live, key),
                    None => value.clone(),
                };
                (key.clone(), value)
            };
            Value::Object(default.iter().map(laid).collect())
        }
        (Value::Array(default), Value::Array(live)) => match (keys(member), union(member)) {
            (Some(keys), _) => {
                let laid = |item: &Value| match live.iter().find(|live| same_keys(keys, item, live)) {
                    Some(live) if member == "volumes" => live.clone(),
                    Some(live) => lay(item, live, ""),
                    None => item.clone(),
                };
                Value::Array(default.iter().map(laid).collect())
            }
            (None, Some(same)) => {
                let missing = default.iter().filter(|item| !live.iter().any(|live| same(item, live))).cloned();
                Value::Array(live.iter().cloned().chain(missing).collect())
            }
            // An empty list says no more than a missing one.
            (None, None) if live.is_empty() => Value::Array(default.clone()),
            (None, None) => Value::Array(live.clone()),
        },
        (_, live) => live.clone(),
    }
}

/// Whether `live` has a value wherever `default` has one.
fn covers(live: &Value, default: &Value) -> bool {
    let Value::Object(default) = default else { return true };
    default.iter().all(|(key, value)| live.get(key).is_some_and(|live| covers(live, value)))
}

/// Lists whose entries the server tells apart by these members.
fn keys(member: &str) -> Option<&'static [&'static str]> {
    match member {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" | "secrets" => Some(&["name"]),
        "ports" => Some(&["containerPort", "protocol"]),
        "volumeMounts" => Some(&["mountPath"]),
        "registrationDrivers" => Some(&["authType"]),
        _ => None,
    }
}

fn same_keys(keys: &[&str], left: &Value, right: &Value) -> bool {
    keys.iter().all(|key| left.get(key) == right.get(key))
}

// ---------------------------------------------------------------------------------------------------------------------
// Lists that the server treats as one value

type Same = fn(&Value, &Value) -> bool;

/// Lists whose foreign entries stay, and when two entries are about the same thing.
fn union(member: &str) -> Option<Same> {
    match member {
        "rules" | "subjects" | "autoApproveUsers" => Some(|left, right| left == right),
        "featureGates" => Some(|left, right| left["feature"] == right["feature"]),
        "args" => Some(|left, right| flag(left) == flag(right)),
        _ => None,
    }
}

/// The name of a flag: `--a=b` is about `--a`.
fn flag(argument: &Value) -> &str {
    let text = argument.as_str().unwrap_or_default();
    if text.starts_with("--") { text.split_once('=').map_or(text, |(name, _)| name) } else { text }
}

/// Adds to every list of [`union`] that the plan mentions what only the live one has. The live order stays, so that
/// nothing changes when nothing is new.
fn unite(planned: &mut Value, live: &Value, member: &str) {
    match (planned, live) {
        (Value::Object(planned), Value::Object(live)) => {
            for (key, value) in planned {
                if let Some(live) = live.get(key) {
                    unite(value, live, key);
                }
            }
        }
        (Value::Array(planned), Value::Array(live)) => {
            if let Some(same) = union(member) {
                // Words that are no flags say which program runs and how: those of the plan would come second.
                let is_word = |item: &Value| member == "args" && !flag(item).starts_with("--");
                let replaced = |item: &Value| planned.iter().find(|new| same(new, item)).unwrap_or(item).clone();
                let mut united: Vec<Value> = live.iter().map(replaced).collect();
                let new = |item: &&Value| !is_word(item) && !live.iter().any(|live| same(item, live));
                united.extend(planned.iter().filter(new).cloned());
                *planned = if live.is_empty() { planned.clone() } else { united };
            } else if let Some(keys) = keys(member) {
                for item in planned {
                    if let Some(live) = live.iter().find(|live| same_keys(keys, item, live)) {
                        unite(item, live, "");
                    }
                }
            }
        }
        _ => {}
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// What an earlier apply of ours has set

/// The part of a live object that our earlier applies own.
pub fn owned_by_us(live: &Value) -> Value {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    let ours = entries.into_iter().flatten().find(|entry| {
        entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply" && entry["subresource"].as_str().is_none()
    });
    match ours {
        Some(entry) => extract(&entry["fieldsV1"], live).unwrap_or_default(),
        None => Value::Null,
    }
}

/// The part of `live` that a set of fields names (`f:` a member, `k:` an entry by its keys, `v:` an entry by itself).
fn extract(fields: &Value, live: &Value) -> Option<Value> {
    let fields = fields.as_object()?;
    let below: Vec<(&String, &Value)> = fields.iter().filter(|(name, _)| *name != ".").collect();
    if fields.is_empty() {
        return Some(live.clone());
    }
    match live {
        Value::Object(live) => {
            let members = below.into_iter().filter_map(|(name, fields)| {
                let name = name.strip_prefix("f:")?;
                Some((name.to_owned(), extract(fields, live.get(name)?)?))
            });
            Some(Value::Object(members.collect::<Map<_, _>>()))
        }
        Value::Array(live) => {
            let entries = below.into_iter().filter_map(|(name, fields)| {
                if let Some(value) = name.strip_prefix("v:") {
                    let value: Value = serde_json::from_str(value).ok()?;
                    return live.contains(&value).then_some(value);
                }
                let keys: Map<String, Value> = serde_json::from_str(name.strip_prefix("k:")?).ok()?;
                let entry = live.iter().find(|entry| keys.iter().all(|(key, value)| entry.get(key) == Some(value)))?;
                let mut part = extract(fields, entry)?;
                part.as_object_mut()?.extend(keys);
                Some(part)
            });
            Some(Value::Array(entries.collect()))
        }
        other => Some(other.clone()),
    }
}

/// Adds what the plan does not mention. What it does mention, it decides; of lists, it decides which entries there are.
fn carry(planned: &mut Value, owned: &Value) {
    let (Value::Object(planned), Value::Object(owned)) = (planned, owned) else { return };
    for (key, value) in owned {
        match planned.get_mut(key) {
            None => {
                planned.insert(key.clone(), value.clone());
            }
            Some(Value::Array(items)) => {
                let (Some(keys), Some(owned)) = (keys(key), value.as_array()) else { continue };
                for item in items {
                    if let Some(owned) = owned.iter().find(|owned| same_keys(keys, item, owned)) {
                        carry(item, owned);
                    }
                }
            }
            Some(_) if WHOLE.contains(&key.as_str()) => {}
            Some(member) => carry(member, value),
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Definitions and pull Secrets

/// Why a live definition is to be kept; none if ours has everything that it has.
fn definition_to_keep(planned: &Value, live: &Value) -> Option<String> {
    let (ours, theirs) = (knowledge(planned), knowledge(live));
    let richer: Vec<&String> = theirs.difference(&ours).collect();
    let poorer = ours.difference(&theirs).count();
    match (richer.as_slice(), poorer) {
        // It says the same in other words.
        ([], 0) if owned_by_us(live).is_null() => Some("its schema has everything that ours has".to_owned()),
        ([], _) => None,
        ([first, ..], poorer) => {
            let mut reason = format!("its schema is newer than ours: it knows {} more, such as {first}", richer.len());
            if poorer > 0 {
                reason += &format!("; of ours it lacks {poorer}, which the API server will drop");
            }
            Some(reason)
        }
    }
}

/// Everything that a definition knows: a path per field of each version, and per word of an enumeration.
fn knowledge(definition: &Value) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for version in definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
        let name = version["name"].as_str().unwrap_or_default();
        known.insert(name.to_owned());
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            fields(schema, name, &mut known);
        }
    }
    known
}

fn fields(schema: &Value, path: &str, known: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        fields(property, &path, known);
        known.insert(path);
    }
    for word in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        known.insert(format!("{path}={word}"));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(inner) {
            fields(schema, &format!("{path}[]"), known);
        }
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        known.insert(format!("{path}.*"));
    }
}

/// Whether a Secret is one for pulling images that holds no credentials.
fn is_empty_pull_secret(secret: &Value) -> bool {
    // `{}` with or without white space, in base64.
    secret["type"] == "kubernetes.io/dockerconfigjson"
        && matches!(
            secret["data"][".dockerconfigjson"].as_str(),
            None | Some("" | "e30=" | "e30K" | "eyJhdXRocyI6e319" | "eyJhdXRocyI6IHt9fQ==")
        )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use k8s_openapi::api::rbac::v1::ClusterRole;
    use ocm_api::{ClusterManager, crds};
    use serde_json::json;

    use super::*;

    fn applied(planned: &Manifest, live: &Value) -> Value {
        match reconcile(planned, Some(live)) {
            Takeover::Apply(manifest) => manifest.body().clone(),
            Takeover::Keep(reason) => panic!("kept: {reason}"),
        }
    }

    fn manager(spec: Value) -> Manifest {
        let mut manifest = Manifest::of(&ClusterManager::new("cluster-manager", Default::default()));
        manifest.body_mut()["spec"] = spec;
        manifest
    }

    #[test]
    fn a_new_object_is_applied_as_planned() {
        let planned = manager(json!({"deployOption": {"mode": "Default"}}));
        assert_eq!(reconcile(&planned, None), Takeover::Apply(planned));
    }

    #[test]
    fn foreign_feature_gates_stay_and_ours_win() {
        let planned = manager(json!({"registrationConfiguration": {"featureGates": [
            {"feature": "A", "mode": "Enable"}, {"feature": "B", "mode": "Enable"}]}}));
        let live = json!({"spec": {"registrationConfiguration": {"featureGates": [
            {"feature": "X", "mode": "Enable"}, {"feature": "B", "mode": "Disable"}], "autoApproveUsers": ["u"]}}});
        assert_eq!(
            applied(&planned, &live)["spec"],
            json!({"registrationConfiguration": {"featureGates": [
                {"feature": "X", "mode": "Enable"}, {"feature": "B", "mode": "Enable"}, {"feature": "A", "mode": "Enable"}]}})
        );
    }

    #[test]
    fn rules_are_united_and_nothing_moves_when_nothing_is_new() {
        let mut role = ClusterRole::default();
        role.metadata.name = Some("r".to_owned());
        let mut planned = Manifest::of(&role);
        planned.body_mut()["rules"] = json!([{"verbs": ["get"], "resources": ["pods"]}, {"verbs": ["list"]}]);
        let live =
            json!({"rules": [{"verbs": ["watch"]}, {"verbs": ["list"]}, {"verbs": ["get"], "resources": ["pods"]}]});
        assert_eq!(applied(&planned, &live)["rules"], live["rules"]);
    }

    #[test]
    fn arguments_are_told_apart_by_flag() {
        let mut planned = json!({"args": ["/registration-operator", "hub", "--a=2", "--new"]});
        let live = json!({"args": ["hub", "--a=1", "--own", "-v=4"]});
        unite(&mut planned, &live, "");
        assert_eq!(planned, json!({"args": ["hub", "--a=2", "--own", "-v=4", "--new"]}));
    }

    #[test]
    fn what_we_set_before_and_do_not_mention_now_is_carried() {
        let planned = manager(json!({"registrationConfiguration": {"registrationDrivers": [{"authType": "csr"}]}}));
        let live = json!({
            "metadata": {"managedFields": [{
                "manager": FIELD_MANAGER, "operation": "Apply",
                "fieldsV1": {"f:spec": {
                    "f:serverConfiguration": {"f:endpointsExposure": {}},
                    "f:registrationConfiguration": {"f:registrationDrivers": {
                        "k:{\"authType\":\"csr\"}": {".": {}, "f:authType": {}, "f:csr": {"f:autoApprovedIdentities": {}}},
                        "k:{\"authType\":\"grpc\"}": {".": {}, "f:authType": {}}}}}},
            }]},
            "spec": {
                "nodePlacement": {"nodeSelector": {"a": "b"}},
                "serverConfiguration": {"endpointsExposure": [{"protocol": "grpc"}]},
                "registrationConfiguration": {"registrationDrivers": [
                    {"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}, {"authType": "grpc"}]},
            },
        });
        // The list of drivers is the plan's: grpc was left out on purpose. nodePlacement is somebody else's.
        assert_eq!(
            applied(&planned, &live)["spec"],
            json!({
                "serverConfiguration": {"endpointsExposure": [{"protocol": "grpc"}]},
                "registrationConfiguration": {"registrationDrivers": [
                    {"authType": "csr", "csr": {"autoApprovedIdentities": ["u"]}}]},
            })
        );
    }

    #[test]
    fn live_values_lie_over_defaults() {
        let defaults = json!({"spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "a"}},
            "template": {"spec": {
                "containers": [{"name": "c", "image": "i:1", "livenessProbe": {"httpGet": {"port": 1}},
                    "readinessProbe": {"httpGet": {"port": 1}},
                    "env": [{"name": "E", "value": "1"}]}],
                "volumes": [{"name": "tmp", "emptyDir": {}}]}}}});
        let live = json!({"spec": {
            "replicas": 3, "paused": false, "selector": {"matchLabels": {"b": "c"}},
            "template": {"spec": {
                "containers": [{"name": "side"}, {"name": "c", "image": "i:2", "livenessProbe": {"tcpSocket": {}},
                    "readinessProbe": {"httpGet": {"port": 2}, "timeoutSeconds": 1},
                    "env": [{"name": "F", "value": "2"}]}],
                "volumes": [{"name": "tmp", "hostPath": {}}]}}}});
        assert_eq!(
            over(&defaults, &live),
            json!({"spec": {
                "replicas": 3, "selector": {"matchLabels": {"b": "c"}},
                "template": {"spec": {
                    "containers": [{"name": "c", "image": "i:2", "livenessProbe": {"tcpSocket": {}},
                        "readinessProbe": {"httpGet": {"port": 2}},
                        "env": [{"name": "E", "value": "1"}]}],
                    "volumes": [{"name": "tmp", "hostPath": {}}]}}}})
        );
    }

    #[test]
    fn credentials_are_not_emptied() {
        let secret = |config: &str| {
            let mut secret = Secret { type_: Some("kubernetes.io/dockerconfigjson".to_owned()), ..Secret::default() };
            secret.data = Some([(".dockerconfigjson".to_owned(), ByteString(config.as_bytes().to_vec()))].into());
            Manifest::of(&secret)
        };
        let (empty, real) = (secret("{}"), secret(r#"{"auths":{"r":{"auth":"eA=="}}}"#));
        assert!(matches!(reconcile(&empty, Some(real.body())), Takeover::Keep(_)));
        assert!(matches!(reconcile(&empty, Some(empty.body())), Takeover::Apply(_)));
        assert!(matches!(reconcile(&real, Some(real.body())), Takeover::Apply(_)));
        assert!(matches!(reconcile(&real, Some(empty.body())), Takeover::Apply(_)));
    }

    #[test]
    fn a_definition_is_never_replaced_by_a_poorer_one() {
        let ours = crds::cluster_manager_manifest();
        let same = ours.body().clone();
        assert!(matches!(reconcile(&ours, Some(&same)), Takeover::Keep(reason) if reason.contains("everything")));

        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let mut richer = same.clone();
        let properties = richer.pointer_mut(spec).and_then(Value::as_object_mut).unwrap();
        properties.insert("tomorrow".to_owned(), json!({"type": "string"}));
        properties.remove("nodePlacement");
        let Takeover::Keep(reason) = reconcile(&ours, Some(&richer)) else { panic!("replaced") };
        assert!(reason.contains("v1.spec.tomorrow") && reason.contains("lacks"), "{reason}");

        let mut poorer = same;
        poorer.pointer_mut(spec).and_then(Value::as_object_mut).unwrap().remove("nodePlacement");
        assert!(matches!(reconcile(&ours, Some(&poorer)), Takeover::Apply(_)));
    }
}

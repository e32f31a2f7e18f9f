//! The CustomResourceDefinitions as the Rust types describe them (feature `schema`).
//!
//! The contract tests write the result to `crds/` and compare it with upstream, where it has one; commands read it from
//! there.

use kube_core::{CustomResourceExt, Resource};
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{ClusterManager, HubPolicy, Klusterlet, Registration, RegistrationApproval};

/// The definition of ClusterManager, as JSON with sorted keys.
pub fn cluster_manager_crd() -> Value {
    let mut crd = definition::<ClusterManager>(Contract::Serialize);
    // The default of a whole spec is what lets a ClusterManager without one come to life.
    root_schema(&mut crd)["properties"]["spec"]["default"] = json!({ "deployOption": { "mode": "Default" } });
    crd
}

/// The definition of Klusterlet, as JSON with sorted keys.
pub fn klusterlet_crd() -> Value {
    definition::<Klusterlet>(Contract::Serialize)
}

/// The definition of HubPolicy, as JSON with sorted keys.
pub fn hub_policy_crd() -> Value {
    let mut crd = definition::<HubPolicy>(Contract::Deserialize);
    let root = root_schema(&mut crd);
    root["required"] = json!(["spec"]);
    root["x-kubernetes-validations"] = json!([{
        "rule": "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "message": "metadata.name must be a DNS label: at most 63 lower-case letters, digits and hyphens, \
                    the first and the last no hyphen",
    }]);
    crd
}

/// The definition of Registration, as JSON with sorted keys.
pub fn registration_crd() -> Value {
    definition::<Registration>(Contract::Deserialize)
}

/// The definition of RegistrationApproval, as JSON with sorted keys.
pub fn registration_approval_crd() -> Value {
    let mut crd = definition::<RegistrationApproval>(Contract::Deserialize);
    root_schema(&mut crd)["required"] = json!(["spec"]);
    crd
}

/// `contract` is whether fields are required that are always written (as upstream's schemas have it), or those that have
/// to be read; what has a default need not be.
fn definition<K: CustomResourceExt + JsonSchema + Resource<DynamicType = ()>>(contract: Contract) -> Value {
    let mut crd = serde_json::to_value(K::crd()).expect("a definition is plain JSON");
    // Generating the schema here spares us the rewriting of `anyOf` that kube-derive applies.
    let mut schema = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
            settings.contract = contract;
        })
        .into_generator()
        .into_root_schema_for::<K>()
        .to_value();
    to_structural(&mut schema);
    let root = schema.as_object_mut().expect("the schema of a struct is an object");
    // Upstream requires nothing at the root.
    root.remove("required");
    let properties = root["properties"].as_object_mut().expect("a struct has properties");
    // Defaults of the Rust struct, not of the API.
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        property.remove("default");
    }
    for (name, description, kind) in [
        ("apiVersion", "Version of the schema that this object follows.", "string"),
        ("kind", "Kind of this object.", "string"),
    ] {
        properties.insert(name.to_owned(), json!({ "description": description, "type": kind }));
    }
    properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
    // The server would fill this in; saying it keeps a dry run's diff empty.
    let list_kind = format!("{}List", K::kind(&()));
    crd["spec"]["names"]["listKind"] = Value::from(list_kind);
    sorted(&crd)
}

fn root_schema(crd: &mut Value) -> &mut Value {
    &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Rewrites a schema of schemars into what a structural schema may hold.
///
/// An `Option` means "may be missing" here, never "may be null", so every mention of null goes.
fn to_structural(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("nullable");
    object.remove("title");
    // Lines of a comment are no lines of a sentence.
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.split("\n\n").map(|text| text.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
    if let Some(Value::Array(types)) = object.get("type") {
        let mut types = types.iter().filter(|name| *name != "null").cloned();
        if let (Some(only), None) = (types.next(), types.next()) {
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(to_structural);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            to_structural(inner);
        }
    }
}

/// The same value with the keys of every object in order, whatever map serde_json was built with.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            Value::Object(members.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

//! Objects that queries read and that are not objects of the API as they stand.

use serde_json::{Value, json};

use crate::review::{self, Unusable};

/// The entries of a ConfigMap as objects of a query: each is named as its key, and its value is `/value`.
pub fn entries(config_map: &Value) -> Vec<Value> {
    let namespace = config_map.pointer("/metadata/namespace");
    let data = config_map.get("data").and_then(Value::as_object);
    let entry =
        |(key, value): (&String, &Value)| json!({"metadata": {"name": key, "namespace": namespace}, "value": value});
    data.into_iter().flatten().map(entry).collect()
}

/// A CertificateSigningRequest as an object of a query: the members of [`ocm_policy_abi::Csr`], its metadata, and
/// `cluster`: the one whose agent's name it asks for, or else the one that its label
/// names, and `askedBy`: who asked, behind the hub's gRPC server the user that it names.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn certificate_request(object: &Value) -> Result<Value, Unusable> {
    let facts = review::certificate_request(object)?;
    let mut value = serde_json::to_value(&facts)
        .map_err(|error| Unusable { path: "object".to_owned(), wrong: error.to_string() })?;
    value["metadata"] = json!({"name": facts.name, "labels": facts.labels});
    value["cluster"] = json!(review::cluster_of_csr(&facts));
    value["askedBy"] = json!(review::asked_by(&facts));
    Ok(value)
}

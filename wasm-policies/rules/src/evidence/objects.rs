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
/// `cluster`: the one whose agent's name it asks for, or else the one that its label names; `clusters`: all of both;
/// `askedBy`: who asked, behind the hub's gRPC server the user that it names; and `decided`: when it was approved,
/// denied or failed, in milliseconds since 1970.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn certificate_request(object: &Value) -> Result<Value, Unusable> {
    let (facts, decided) = review::certificate_request(object)?;
    let mut value = serde_json::to_value(&facts)
        .map_err(|error| Unusable { path: "object".to_owned(), wrong: error.to_string() })?;
    value["metadata"] = json!({"name": facts.name, "labels": facts.labels});
    value["cluster"] = json!(review::cluster_of_csr(&facts));
    value["clusters"] = json!(review::clusters_of_csr(&facts));
    value["askedBy"] = json!(review::asked_by(&facts));
    value["decided"] = json!(decided);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "recorded objects are files")]
    fn a_certificate_request_tells_whose_it_is_and_when_it_was_decided() {
        let path = format!("{}/tests/data/stored-csr.json", env!("CARGO_MANIFEST_DIR"));
        let mut object: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["status"] = json!({"conditions": [
            {"type": "Approved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}]});
        // Whoever creates a request labels it as they like.
        object["metadata"]["labels"]["open-cluster-management.io/cluster-name"] = json!("labelled");
        let read = certificate_request(&object).unwrap();
        assert_eq!((&read["state"], &read["decided"]), (&json!("Approved"), &json!(1_767_225_601_000_i64)));
        assert_eq!((&read["cluster"], &read["clusters"]), (&json!("c1"), &json!(["c1", "labelled"])));
        // Nothing is decided before it is asked.
        object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:02Z");
        assert_eq!(certificate_request(&object).unwrap()["decided"], Value::Null);
        object["status"] = json!({});
        let pending = certificate_request(&object).unwrap();
        assert_eq!((&pending["state"], &pending["decided"]), (&json!("Pending"), &Value::Null));
    }
}

//! Objects that queries read and that are not objects of the API as they stand.

use jiff::Timestamp;
use ocm_core::accept;
use ocm_policy_abi::{Csr, Map, Text};
use ocm_rules::csr::{ADDON_NAME, CLUSTER_NAME, CSR_USER};
use serde_json::{Value, json};

use crate::review::{self, Unusable};

/// The labels and annotations of certificate requests that queries are shown. Whoever may ask for a certificate writes any
/// number of others, and the rows of all requests are kept in memory.
const SHOWN: [&str; 3] = [CLUSTER_NAME, ADDON_NAME, CSR_USER];
/// Bytes of a label or an annotation at most: no user has a longer name.
const LONGEST: usize = 1024;

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
/// denied or failed, in milliseconds since 1970. Of its labels and annotations it has those that say whose it is.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn certificate_request(object: &Value) -> Result<Value, Unusable> {
    let (facts, decided) = review::certificate_request(object)?;
    let facts = Csr { labels: shown(facts.labels), annotations: shown(facts.annotations), ..facts };
    let mut value = serde_json::to_value(&facts)
        .map_err(|error| Unusable { path: "object".to_owned(), wrong: error.to_string() })?;
    value["metadata"] = json!({"name": facts.name, "labels": facts.labels});
    value["cluster"] = json!(review::cluster_of_csr(&facts));
    value["clusters"] = json!(review::clusters_of_csr(&facts));
    value["askedBy"] = json!(review::asked_by(&facts));
    value["decided"] = json!(decided);
    Ok(value)
}

/// The entries that queries are shown. One that is too long is empty, which breaks a rule wherever it counts: its beginning
/// could be the name of somebody else, and without it a request would claim nothing. The row itself stays complete, so that
/// nobody keeps policies from judging another request for the same cluster.
fn shown<'a>(entries: Map<'a, Text<'a>>) -> Map<'a, Text<'a>> {
    let known = entries.into_entries().filter(|(key, _)| SHOWN.contains(&key.as_str()));
    known.map(|(key, value)| (key, if value.len() > LONGEST { Text::default() } else { value })).collect()
}

/// A RegistrationApproval as an object of a query: its name, the members of its spec, and its times in milliseconds since
/// 1970.
///
/// # Errors
/// Names the field that is missing or of a wrong type.
pub fn approval(object: &Value) -> Result<Value, Unusable> {
    let unusable = |path: &str, wrong: &str| Unusable { path: format!("object{path}"), wrong: wrong.to_owned() };
    let text = |path: &str| {
        let found = object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.ok_or_else(|| unusable(&path.replace('/', "."), "it must be a string that is not empty"))
    };
    let time = |path: &str| {
        let at: Timestamp = text(path)?.parse().map_err(|_| unusable(&path.replace('/', "."), "it must be a time"))?;
        Ok(at.as_millisecond())
    };
    Ok(json!({
        "metadata": {"name": text("/metadata/name")?},
        "cluster": text("/spec/cluster/name")?,
        "clusterUid": text("/spec/cluster/uid")?,
        "requester": text("/spec/requester")?,
        "approver": text("/spec/approver")?,
        "groups": object.pointer("/spec/groups").cloned().unwrap_or_else(|| json!([])),
        "created": time("/metadata/creationTimestamp")?,
        "expires": time("/spec/expiresAt")?,
        "breakGlass": object.pointer("/spec/breakGlass").and_then(Value::as_bool).unwrap_or_default(),
        "reason": object.pointer("/spec/reason").and_then(Value::as_str).unwrap_or_default(),
    }))
}

/// A Registration as an object of a query: the name that it is about, the UID of the cluster whose keys it lists, until when
/// the last of their certificates may be valid, and since when the hub has no such cluster, in milliseconds since 1970. The
/// largest number is an end that nobody can read. Of the rest, the largest part of a Registration, nothing is kept.
pub fn registration(object: &Value) -> Value {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let keys = object.pointer("/status/keys").and_then(Value::as_array).into_iter().flatten();
    let ends = keys.map(|key| key["until"].as_str().unwrap_or_default());
    let noted = accept::noted(text("/status/clusterUid"), ends);
    let removed = text("/status/removedAt").and_then(|at| at.parse::<Timestamp>().ok()).map(Timestamp::as_millisecond);
    let name = text("/metadata/name").unwrap_or_default();
    json!({
        "metadata": {"name": name}, "cluster": name, "clusterUid": noted.cluster_uid, "until": noted.until, "removed": removed,
    })
}

#[cfg(test)]
mod tests {
    use ocm_rules::identity::{BOOTSTRAP_USER, GRPC_SERVER_USER};

    use super::*;

    /// A certificate request as a hub stores it.
    #[expect(clippy::disallowed_methods, reason = "recorded objects are files")]
    fn stored() -> Value {
        let path = format!("{}/tests/data/stored-csr.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn an_approval_is_its_spec_with_times_as_numbers_and_none_without_all_of_it() {
        let object = json!({
            "metadata": {"name": "c1-x", "creationTimestamp": "1970-01-01T00:00:01Z"},
            "spec": {"cluster": {"name": "c1", "uid": "u"}, "requester": "r", "approver": "ann", "groups": ["g"],
                     "expiresAt": "1970-01-01T00:00:02Z", "breakGlass": true},
        });
        let facts = json!({
            "metadata": {"name": "c1-x"}, "cluster": "c1", "clusterUid": "u", "requester": "r", "approver": "ann",
            "groups": ["g"], "created": 1000, "expires": 2000, "breakGlass": true, "reason": "",
        });
        assert_eq!(approval(&object), Ok(facts));
        for (parent, member) in [
            ("/metadata", "creationTimestamp"),
            ("/spec", "cluster"),
            ("/spec/cluster", "uid"),
            ("/spec", "requester"),
            ("/spec", "approver"),
            ("/spec", "expiresAt"),
        ] {
            let mut lacks = object.clone();
            lacks.pointer_mut(parent).unwrap()[member] = Value::Null;
            assert!(approval(&lacks).is_err(), "{member}");
        }
    }

    #[test]
    fn a_registration_is_whose_keys_until_when_and_nothing_else() {
        let key = |until: Value| json!({"spkiSha256": "aa", "until": until});
        let object = |status: Value| json!({"metadata": {"name": "c1", "uid": "own"}, "spec": {}, "status": status});
        let full = object(json!({
            "verdict": "Allow", "clusterUid": "u", "removedAt": "1970-01-01T00:00:03Z",
            "keys": [key(json!("1970-01-01T00:00:02Z")), key(json!("1970-01-01T00:00:01Z"))],
            "decision": {"at": "1970-01-01T00:00:00Z", "record": "x".repeat(65536)},
        }));
        let facts = json!({
            "metadata": {"name": "c1"}, "cluster": "c1", "clusterUid": "u", "until": 2000, "removed": 3000,
        });
        assert_eq!(registration(&full), facts);
        let nothing = json!({
            "metadata": {"name": "c1"}, "cluster": "c1", "clusterUid": null, "until": null, "removed": null,
        });
        assert_eq!(registration(&object(Value::Null)), nothing);
        for unreadable in [json!("soon"), json!(7), Value::Null] {
            let read = registration(&object(json!({"keys": [key(json!("1970-01-01T00:00:01Z")), key(unreadable)]})));
            assert_eq!(read["until"], json!(i64::MAX), "nobody knows when that one ends");
        }
    }

    #[test]
    fn of_a_certificate_request_only_labels_and_annotations_that_say_whose_it_is_are_kept() {
        let mut object = stored();
        let size = |object: &Value| certificate_request(object).unwrap().to_string().len();
        let least = size(&object);
        let metadata = &mut object["metadata"];
        for number in 0..1000 {
            metadata["labels"][format!("example.com/{number}")] = json!("x".repeat(63));
            metadata["labels"][format!("open-cluster-management.io/{number}")] = json!("x");
        }
        metadata["labels"][ADDON_NAME] = json!("a");
        metadata["annotations"] = json!({"example.com/a": "x".repeat(250 << 10), CSR_USER: "bob"});
        let row = certificate_request(&object).unwrap();
        let labels = json!({CLUSTER_NAME: "c1", ADDON_NAME: "a"});
        assert_eq!((&row["labels"], &row["metadata"]["labels"]), (&labels, &labels));
        assert_eq!(row["annotations"], json!({CSR_USER: "bob"}));
        assert!(size(&object) < least + 512, "{} {least}", size(&object));
    }

    #[test]
    fn a_user_whose_name_is_too_long_is_nobody() {
        let asked_by = |user: &str, named: &str| {
            let mut object = stored();
            object["metadata"]["annotations"] = json!({CSR_USER: named});
            object["spec"]["username"] = json!(user);
            let namespace = user.split(':').nth(2).unwrap();
            let group = format!("system:serviceaccounts:{namespace}");
            object["spec"]["groups"] = json!(["system:serviceaccounts", group]);
            let row = certificate_request(&object).unwrap();
            (row["annotations"][CSR_USER].clone(), row["askedBy"].clone())
        };
        let (longest, longer) = ("x".repeat(LONGEST), "x".repeat(LONGEST + 1));
        assert_eq!(asked_by(GRPC_SERVER_USER, &longest), (json!(longest), json!(longest)));
        // It is there still: only the hub's gRPC server may name anybody, and has to.
        assert_eq!(asked_by(GRPC_SERVER_USER, &longer), (json!(""), json!("")));
        assert_eq!(asked_by(BOOTSTRAP_USER, &longer), (json!(""), json!(BOOTSTRAP_USER)));
    }

    #[test]
    fn a_certificate_request_tells_whose_it_is_and_when_it_was_decided() {
        let mut object = stored();
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

//! A value against the schema of a definition, as an API server validates it and more strictly: fields that it would drop are
//! refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex_lite::Regex;
use serde_json::{Map, Number, Value};

use crate::nearest;

/// A field that cannot be, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct ValuesError {
    /// Where it is: `registrationConfiguration.featureGates[0].mode`; the kind for the whole.
    pub path: String,
    /// What is wrong with it.
    pub why: Wrong,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Its definition has no such field.
    #[error("there is no such field")]
    Unknown {
        /// What was probably meant.
        near: Option<String>,
        /// Whether it is a part of a whole object, of which the spec alone is wanted.
        of_object: bool,
    },
    /// It is of another type.
    #[error("must be {0}")]
    Type(&'static str),
    /// It is none of these words.
    #[error("must be {}", .0.join(" or "))]
    Word(Vec<String>),
    /// A text does not look as it has to.
    #[error("must match {0}")]
    Pattern(String),
    /// It is too small or too large, or there are too few or too many.
    #[error("must be {0}")]
    Bounds(String),
    /// A field that it needs is missing.
    #[error("lacks {0}")]
    Lacks(String),
    /// The operator knows no such feature gate.
    #[error("there is no such feature gate")]
    Gate {
        /// What was probably meant.
        near: Option<String>,
    },
}

/// What objects have beside their spec.
const OF_OBJECTS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// Checks a value. `whole` is how the whole is called where it is wrong itself.
pub(super) fn check(schema: &Value, value: &Value, whole: &'static str) -> Result<(), ValuesError> {
    at(schema, value, &Place { path: "", whole })
}

/// Where a value stands.
struct Place<'a> {
    path: &'a str,
    whole: &'static str,
}

impl Place<'_> {
    fn wrong(&self, why: Wrong) -> Result<(), ValuesError> {
        let path = if self.path.is_empty() { self.whole } else { self.path };
        Err(ValuesError { path: path.to_owned(), why })
    }

    fn member(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn at(schema: &Value, value: &Value, place: &Place<'_>) -> Result<(), ValuesError> {
    if schema["x-kubernetes-int-or-string"] == true {
        return match value {
            Value::String(text) => string(schema, text, place),
            Value::Number(number) if number.is_i64() => string(schema, &number.to_string(), place),
            _ => place.wrong(Wrong::Type("a text or a whole number")),
        };
    }
    match (schema["type"].as_str().unwrap_or_default(), value) {
        ("object", Value::Object(members)) => object(schema, members, place),
        ("array", Value::Array(items)) => array(schema, items, place),
        ("string", Value::String(text)) => string(schema, text, place),
        ("integer", Value::Number(number)) => integer(schema, number, place),
        ("boolean", Value::Bool(_)) => Ok(()),
        ("object", _) => place.wrong(Wrong::Type("an object")),
        ("array", _) => place.wrong(Wrong::Type("a list")),
        ("string", _) => place.wrong(Wrong::Type("a text")),
        ("integer", _) => place.wrong(Wrong::Type("a whole number")),
        ("boolean", _) => place.wrong(Wrong::Type("true or false")),
        _ => Ok(()),
    }
}

fn object(schema: &Value, members: &Map<String, Value>, place: &Place<'_>) -> Result<(), ValuesError> {
    let known = schema["properties"].as_object();
    for (name, value) in members {
        let path = place.member(name);
        let inner = Place { path: &path, whole: place.whole };
        let property = known.and_then(|known| known.get(name)).or_else(|| schema.get("additionalProperties"));
        match property {
            Some(property) => at(property, value, &inner)?,
            None => {
                let names = known.into_iter().flatten().map(|(name, _)| name.as_str());
                let of_object = place.path.is_empty() && OF_OBJECTS.contains(&name.as_str());
                inner.wrong(Wrong::Unknown { near: nearest(name, names).map(str::to_owned), of_object })?;
            }
        }
    }
    // What has a default is filled in by the API server before it looks whether it is there.
    let lacks = |name: &&str| !members.contains_key(*name) && schema["properties"][*name].get("default").is_none();
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match required.find(lacks) {
        Some(name) => place.wrong(Wrong::Lacks(name.to_owned())),
        None => Ok(()),
    }
}

fn array(schema: &Value, items: &[Value], place: &Place<'_>) -> Result<(), ValuesError> {
    for (index, item) in items.iter().enumerate() {
        let path = format!("{}[{index}]", place.path);
        at(&schema["items"], item, &Place { path: &path, whole: place.whole })?;
    }
    if let Some(most) = schema["maxItems"].as_u64().filter(|most| items.len() as u64 > *most) {
        return place.wrong(Wrong::Bounds(format!("{most} entries at most")));
    }
    let keys: Vec<&str> =
        schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let same = |one: &Value, other: &Value| keys.iter().all(|key| one.get(key) == other.get(key));
    let is_twice = |(index, item): (usize, &Value)| items[..index].iter().any(|before| same(before, item));
    match !keys.is_empty() && items.iter().enumerate().any(is_twice) {
        true => place.wrong(Wrong::Bounds(format!("a list in which each {} is once", keys.join(" and ")))),
        false => Ok(()),
    }
}

fn string(schema: &Value, text: &str, place: &Place<'_>) -> Result<(), ValuesError> {
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<String> = words.map(str::to_owned).collect();
    if !words.is_empty() && !words.iter().any(|word| word == text) {
        return place.wrong(Wrong::Word(words));
    }
    let length = text.chars().count() as u64;
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        return place.wrong(Wrong::Bounds(format!("{most} characters at most")));
    }
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        return place.wrong(Wrong::Bounds(format!("{least} characters at least")));
    }
    if schema["format"] == "byte" && STANDARD.decode(text).is_err() {
        return place.wrong(Wrong::Type("base64"));
    }
    match schema["pattern"].as_str() {
        Some(pattern) if Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text)) => {
            place.wrong(Wrong::Pattern(pattern.to_owned()))
        }
        _ => Ok(()),
    }
}

fn integer(schema: &Value, number: &Number, place: &Place<'_>) -> Result<(), ValuesError> {
    let Some(number) = number.as_i64() else { return place.wrong(Wrong::Type("a whole number")) };
    if schema["format"] == "int32" && i32::try_from(number).is_err() {
        return place.wrong(Wrong::Bounds("a number of 32 bits".to_owned()));
    }
    if let Some(least) = schema["minimum"].as_i64().filter(|least| number < *least) {
        return place.wrong(Wrong::Bounds(format!("{least} at least")));
    }
    match schema["maximum"].as_i64().filter(|most| number > *most) {
        Some(most) => place.wrong(Wrong::Bounds(format!("{most} at most"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Kind, Values};
    use super::*;

    fn wrong(value: Value) -> (String, Wrong) {
        let ValuesError { path, why } = Values::read(value, Kind::Klusterlet).unwrap_err();
        (path, why)
    }

    #[test]
    fn what_a_schema_allows_is_read() {
        let klusterlet = json!({
            "hubApiServerHostAlias": {"ip": "10.0.0.1", "hostname": "hub.example"},
            "nodePlacement": {"nodeSelector": {"pool": "infra"}, "tolerations": [{"key": "a", "tolerationSeconds": 5}]},
            "externalServerURLs": [{"url": "https://c1.example", "caBundle": "Y2E="}],
            "registrationConfiguration": {
                "clientCertExpirationSeconds": 7200, "clusterAnnotations": {"agent.open-cluster-management.io/a": "b"},
                "clusterClaimConfiguration": {"reservedClusterClaimSuffixes": ["x"]},
                "addOnKubeClientRegistrationDriver": {"authType": "token", "token": {"expirationSeconds": 86400}},
            },
            "resourceRequirement": {"type": "ResourceRequirement", "resourceRequirements": {"requests": {"cpu": 1, "memory": "1Gi"}}},
            "workConfiguration": {"statusSyncInterval": "30s"},
        });
        assert!(Values::read(klusterlet, Kind::Klusterlet).is_ok());
        let manager = json!({
            "registrationConfiguration": {"registrationDrivers": [{"authType": "csr"}, {"authType": "grpc"}]},
            "serverConfiguration": {"endpointsExposure": [{"protocol": "grpc",
                "grpc": {"type": "hostname", "hostname": {"host": "h.example"}}}]},
        });
        assert_eq!(Values::read(manager.clone(), Kind::ClusterManager).map(|_| ()), Ok(()));
        assert!(Values::read(manager, Kind::Klusterlet).is_err());
    }

    #[test]
    fn unknown_fields_are_refused_with_their_path() {
        let unknown = |near: Option<&str>, of_object| Wrong::Unknown { near: near.map(str::to_owned), of_object };
        let (path, why) = wrong(json!({"registrationConfiguration": {"featureGate": []}}));
        assert_eq!(
            (path.as_str(), why),
            ("registrationConfiguration.featureGate", unknown(Some("featureGates"), false))
        );
        let (path, why) = wrong(json!({"externalServerURLs": [{"url": "u", "ca": ""}]}));
        assert_eq!((path.as_str(), why), ("externalServerURLs[0].ca", unknown(None, false)));
        let (path, why) = wrong(json!({"kind": "Klusterlet", "spec": {}}));
        assert_eq!((path.as_str(), why), ("kind", unknown(None, true)));
    }

    #[test]
    fn types_words_and_bounds_are_those_of_the_schema() {
        let cases = [
            (json!([]), "Klusterlet: must be an object"),
            (json!(null), "Klusterlet: must be an object"),
            (json!({"priorityClassName": null}), "priorityClassName: must be a text"),
            (json!({"externalServerURLs": {}}), "externalServerURLs: must be a list"),
            (
                json!({"registrationConfiguration": {"kubeAPIQPS": 1.5}}),
                "registrationConfiguration.kubeAPIQPS: must be a whole number",
            ),
            (
                json!({"registrationConfiguration": {"kubeAPIQPS": 1u64 << 40}}),
                "registrationConfiguration.kubeAPIQPS: must be a number of 32 bits",
            ),
            (
                json!({"resourceRequirement": {"type": "Small"}}),
                "resourceRequirement.type: must be Default or BestEffort or ResourceRequirement",
            ),
            (json!({"hubApiServerHostAlias": {"ip": "10.0.0.1"}}), "hubApiServerHostAlias: lacks hostname"),
            (
                json!({"externalServerURLs": [{"url": "u", "caBundle": "?"}]}),
                "externalServerURLs[0].caBundle: must be base64",
            ),
            (json!({"clusterName": "a".repeat(64)}), "clusterName: must be 63 characters at most"),
            (
                json!({"registrationConfiguration": {"bootstrapKubeConfigs": {"localSecretsConfig":
                    {"kubeConfigSecrets": [], "hubConnectionTimeoutSeconds": 1}}}}),
                "registrationConfiguration.bootstrapKubeConfigs.localSecretsConfig.hubConnectionTimeoutSeconds: must be 180 at least",
            ),
        ];
        for (value, told) in cases {
            let shown = value.to_string();
            assert_eq!(Values::read(value, Kind::Klusterlet).unwrap_err().to_string(), told, "{shown}");
        }
        let (path, why) = wrong(json!({"hubApiServerHostAlias": {"ip": "10.0.0.256", "hostname": "h"}}));
        assert!(path == "hubApiServerHostAlias.ip" && matches!(why, Wrong::Pattern(_)), "{path}: {why}");
        let twice =
            json!({"registrationConfiguration": {"registrationDrivers": [{"authType": "csr"}, {"authType": "csr"}]}});
        let told = Values::read(twice, Kind::ClusterManager).unwrap_err().to_string();
        assert_eq!(
            told,
            "registrationConfiguration.registrationDrivers: must be a list in which each authType is once"
        );
    }

    /// A pattern that is not understood would let everything through.
    #[test]
    fn every_pattern_of_the_schemas_is_understood() {
        fn patterns(schema: &Value, found: &mut Vec<String>) {
            match schema {
                Value::Object(members) => {
                    found.extend(members.get("pattern").and_then(Value::as_str).map(str::to_owned));
                    members.values().for_each(|inner| patterns(inner, found));
                }
                Value::Array(items) => items.iter().for_each(|inner| patterns(inner, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        for kind in [Kind::ClusterManager, Kind::Klusterlet] {
            patterns(&kind.schema(), &mut found);
        }
        assert!(found.len() > 5, "{found:?}");
        for pattern in found {
            assert!(Regex::new(&pattern).is_ok(), "{pattern}");
        }
    }
}

//! Members of objects that the agent of a managed cluster writes, and that an API server keeps though not everybody can read them: a
//! day that no calendar has, bytes whose last bits say nothing, a number for a text. One cluster must not make a list of all of them
//! unreadable.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde::de::value::{Error, StringDeserializer};
use serde::de::{Deserializer, IntoDeserializer as _};
use serde_json::Value;

use crate::Condition;
use crate::member::{self, Member};

/// A condition as it is written.
#[derive(Member)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    last_transition_time: Option<String>,
    #[serde(default)]
    message: String,
    observed_generation: Option<i64>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    status: String,
    #[serde(rename = "type")]
    type_: String,
}

/// Conditions; a time that cannot be read is the beginning of 1970.
pub(crate) fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let all: Vec<Written> = member::deserialize(deserializer)?;
    let read = |written: Written| {
        let Written { last_transition_time: time, message, observed_generation, reason, status, type_ } = written;
        let time = time.and_then(|time| time.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
        Condition { last_transition_time: Time(time), message, observed_generation, reason, status, type_ }
    };
    Ok(all.into_iter().map(read).collect())
}

/// A time; none where it cannot be read.
pub(crate) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Time))
}

/// Amounts: an API server keeps numbers as they are.
pub(crate) fn quantities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Quantity>, D::Error> {
    let all = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let read = |(name, value)| match value {
        Value::String(text) => (name, Quantity(text)),
        other => (name, Quantity(other.to_string())),
    };
    Ok(all.into_iter().map(read).collect())
}

/// Bytes; none where they cannot be read.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteString>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let read = |text: String| {
        let deserializer: StringDeserializer<Error> = text.into_deserializer();
        ByteString::deserialize(deserializer).ok()
    };
    Ok(text.and_then(read))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ManagedCluster;

    #[test]
    fn a_cluster_can_be_read_whatever_its_agent_writes() {
        let cluster = |time: &str, bundle: &str| -> ManagedCluster {
            let value = json!({
                "metadata": {"name": "c1"},
                "spec": {
                    "hubAcceptsClient": true, "managedClusterClientConfigs": [{"url": "https://a", "caBundle": bundle}],
                    "taints": [{"key": "k", "effect": "NoSelect", "timeAdded": time}],
                },
                "status": {
                    "conditions": [
                        {"type": "HubAcceptedManagedCluster", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": time,
                         "observedGeneration": 2},
                    ],
                    "capacity": {"cpu": "4", "memory": 17_179_869_184_u64},
                    "managedNamespaces": [{"name": "n", "clusterSet": "s", "conditions": [
                        {"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": time},
                    ]}],
                },
            });
            serde_json::from_value(value).unwrap()
        };
        let read = cluster("2026-01-31T12:00:00Z", "AAE=");
        let config = &read.spec.managed_cluster_client_configs[0];
        assert_eq!(config.ca_bundle.as_ref().map(|bytes| bytes.0.as_slice()), Some(&[0, 1][..]));
        let condition = &read.status.as_ref().unwrap().conditions[0];
        assert_eq!(condition.last_transition_time.0.to_string(), "2026-01-31T12:00:00Z");
        assert_eq!((condition.observed_generation, condition.reason.as_str()), (Some(2), "R"));
        assert_eq!(read.spec.taints[0].time_added.as_ref().map(|time| time.0), Some(condition.last_transition_time.0));
        let capacity: Vec<_> =
            read.status.as_ref().unwrap().capacity.values().map(|amount| amount.0.as_str()).collect();
        assert_eq!(capacity, ["4", "17179869184"]);
        for time in ["2026-02-31T00:00:00Z", "2026-01-01T00:00:00+99:99", "9999-12-31T23:59:59Z", "", "soon"] {
            let read = cluster(time, "AB==");
            assert_eq!(read.spec.hub_accepts_client, Some(true));
            assert_eq!(read.spec.managed_cluster_client_configs[0].ca_bundle, None);
            assert_eq!(read.spec.taints[0].time_added, None);
            let condition = &read.status.as_ref().unwrap().conditions[0];
            assert_eq!((condition.status.as_str(), condition.last_transition_time.0.as_second()), ("True", 0));
        }
    }
}

//! What is chosen of a Klusterlet beside its release: a hosts entry for the hub, how add-ons register, a file of values.

use std::net::Ipv4Addr;

use ocm_api::operator::{AddOnAuthType, AddOnRegistrationDriver, HubApiServerHostAlias, TokenConfig};
use serde_json::Value;

use super::plan::{agent_namespace, klusterlet, operator_deployment};
use super::{Live, Settings};
use crate::release::Bundle;
use crate::work::is_object_name;
use crate::{Failure, operator};

/// The first release whose Klusterlet says how add-ons register. Upstream: `api:operator/v1` of 1.2.0; that of 1.1.0 does not
/// have the field.
const ADDON_DRIVER_SINCE: &str = "v1.2.0";
/// Where it says so.
const ADDON_DRIVER: &str = "/registrationConfiguration/addOnKubeClientRegistrationDriver";
/// The shortest life of a ServiceAccount's token in seconds. Upstream: Kubernetes, `ValidateTokenRequest`.
const SHORTEST_TOKEN: i64 = 600;

/// Reads `IP=NAME`, a hosts entry; none for what is none that a Klusterlet can have: its address is one of IPv4. The name comes
/// in lower case: pods with another one are refused. Upstream: Kubernetes, `ValidateHostAliases`.
pub fn host_alias(text: &str) -> Option<HubApiServerHostAlias> {
    let (ip, hostname) = text.split_once('=')?;
    let hostname = hostname.to_ascii_lowercase();
    let is_address = ip.parse::<Ipv4Addr>().is_ok();
    (is_address && is_object_name(&hostname) && hostname.parse::<Ipv4Addr>().is_err())
        .then(|| HubApiServerHostAlias { ip: ip.to_owned(), hostname })
}

/// Why add-ons cannot register so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOnDriverError {
    /// A life of tokens is given, and add-ons do not register by them.
    NotByToken,
    /// Tokens do not live so briefly.
    TooShort {
        /// The shortest life in seconds.
        shortest: i64,
    },
}

/// How add-ons register: by certificates or by tokens, of which the life in seconds can be given; 0 leaves it to the agent.
///
/// # Errors
/// A life without tokens, or one that is too short.
pub fn addon_driver(
    auth: Option<AddOnAuthType>,
    seconds: Option<i64>,
) -> Result<Option<AddOnRegistrationDriver>, AddOnDriverError> {
    let by_token = auth == Some(AddOnAuthType::Token);
    match seconds {
        Some(_) if !by_token => return Err(AddOnDriverError::NotByToken),
        Some(seconds) if seconds != 0 && seconds < SHORTEST_TOKEN => {
            return Err(AddOnDriverError::TooShort { shortest: SHORTEST_TOKEN });
        }
        _ => {}
    }
    let token = seconds.filter(|seconds| *seconds > 0).map(|seconds| TokenConfig { expiration_seconds: Some(seconds) });
    Ok(auth.map(|auth| AddOnRegistrationDriver { auth_type: Some(auth), token }))
}

/// Judges what was chosen beside what the cluster holds, and says what may bite.
///
/// # Errors
/// A refusal of values that name another namespace, and of a way to register add-ons that the release does not know.
pub fn judge(settings: &Settings, live: &Live) -> Result<Vec<String>, Failure> {
    let agent = agent_namespace(settings, live);
    let planned = klusterlet(settings, live, &agent);
    let spec = &planned.body()["spec"];
    let values = &settings.values;
    if let Some(other) = values.text("/namespace").filter(|other| spec["namespace"] != *other) {
        let namespace = spec["namespace"].as_str().unwrap_or_default();
        return Err(Failure::refused(format!(
            "the values name the namespace {other:?}, and that of the agent is {namespace:?}: nothing was changed"
        ))
        .hint("leave namespace out of the values"));
    }
    if settings.addon_driver.is_some() || values.spec().pointer(ADDON_DRIVER).is_some() {
        knows_addon_driver(settings, live, spec)?;
    }
    Ok(values.remarks(spec))
}

/// Refuses releases whose operator or agent would not heed how add-ons are to register.
fn knows_addon_driver(settings: &Settings, live: &Live, spec: &Value) -> Result<(), Failure> {
    let deployment = match (&live.operator, live.is_shared) {
        // It stays as it is.
        (Some(operator), true) => operator.clone(),
        _ => operator_deployment(settings, live).body().clone(),
    };
    let of_operator = operator::container(&deployment).and_then(|container| container["image"].as_str());
    let images = of_operator.into_iter().chain(spec["registrationImagePullSpec"].as_str());
    let since = Bundle::of_tag(ADDON_DRIVER_SINCE).unwrap_or_default();
    match images.filter_map(Bundle::of_image).find(|release| release.is_minor_before(&since)) {
        Some(release) => Err(Failure::refused(format!(
            "{release} does not know how add-ons are to register, which is from {since} on: nothing was changed"
        ))
        .hint(format!("name {since} or a later release, or leave out how add-ons register"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::operator::KlusterletMode;
    use serde_json::json;

    use super::*;
    use crate::join::plan::{Kubeconfigs, plan};
    use crate::values::{Kind, Values};

    fn settings() -> Settings {
        Settings { name: "c1".to_owned(), create_namespace: true, ..Settings::default() }
    }

    fn values(value: Value) -> Values {
        Values::read(value, Kind::Klusterlet).unwrap()
    }

    fn spec(settings: &Settings, live: &Live) -> Value {
        let plan = plan(settings, Kubeconfigs::default(), live);
        let found = plan.objects().find(|object| object.kind() == "Klusterlet").unwrap();
        found.body()["spec"].clone()
    }

    fn by_token(seconds: Option<i64>) -> Settings {
        Settings { addon_driver: addon_driver(Some(AddOnAuthType::Token), seconds).unwrap(), ..settings() }
    }

    #[test]
    fn a_hosts_entry_is_an_address_and_a_name() {
        let read = host_alias("10.0.0.1=Hub.example").unwrap();
        assert_eq!((read.ip.as_str(), read.hostname.as_str()), ("10.0.0.1", "hub.example"));
        for wrong in [
            "",
            "10.0.0.1",
            "10.0.0.1=",
            "hub.example=10.0.0.1",
            "10.0.0.256=h",
            "::1=h",
            "10.0.0.1=h:6443",
            "10.0.0.1=10.0.0.2",
        ] {
            assert_eq!(host_alias(wrong), None, "{wrong:?}");
        }
        let settings = Settings { host_alias: Some(read), ..settings() };
        let alias = json!({"ip": "10.0.0.1", "hostname": "hub.example"});
        assert_eq!(spec(&settings, &Live::default())["hubApiServerHostAlias"], alias);
    }

    #[test]
    fn tokens_of_addons_have_a_life_that_servers_give() {
        assert_eq!(addon_driver(None, None), Ok(None));
        for auth in [None, Some(AddOnAuthType::Csr)] {
            assert_eq!(addon_driver(auth, Some(3600)), Err(AddOnDriverError::NotByToken));
        }
        for short in [-1, 1, 599] {
            let read = addon_driver(Some(AddOnAuthType::Token), Some(short));
            assert_eq!(read, Err(AddOnDriverError::TooShort { shortest: 600 }), "{short}");
        }
        let said = |settings: &Settings| {
            let registration = spec(settings, &Live::default())["registrationConfiguration"].clone();
            registration["addOnKubeClientRegistrationDriver"].clone()
        };
        assert_eq!(said(&by_token(Some(600))), json!({"authType": "token", "token": {"expirationSeconds": 600}}));
        assert_eq!(said(&by_token(Some(0))), json!({"authType": "token"}));
        assert_eq!(said(&settings()), json!(null));
    }

    #[test]
    fn releases_that_do_not_know_how_addons_register_are_refused() {
        let of = |release: &str| Settings { bundle: Bundle::parse(release).ok(), ..by_token(None) };
        let refused = judge(&of("1.1.3"), &Live::default()).unwrap_err();
        assert!(refused.message.starts_with("v1.1.3 does not know"), "{refused}");
        for known in ["1.2.0", "1.3.1", "latest"] {
            assert_eq!(judge(&of(known), &Live::default()), Ok(Vec::new()), "{known}");
        }
        // An operator that serves others stays as it is, whatever release is typed.
        let operator = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "klusterlet", "image": "r/registration-operator:v1.1.0"}]}}}});
        let live = Live { operator: Some(operator), is_shared: true, ..Live::default() };
        let hosted = Settings { mode: Some(KlusterletMode::Hosted), ..of("1.2.0") };
        assert!(judge(&hosted, &live).is_err());
        let driver = json!({"registrationConfiguration": {"addOnKubeClientRegistrationDriver": {"authType": "csr"}}});
        let said = Settings { values: values(driver), bundle: Bundle::parse("1.1.0").ok(), ..settings() };
        assert!(judge(&said, &Live::default()).is_err());
    }

    #[test]
    fn values_lie_over_what_is_there_and_under_what_was_typed() {
        let live = Live {
            klusterlet: Some(json!({"metadata": {"name": "klusterlet"}, "spec": {
                "registrationImagePullSpec": "r.example/registration:v1.2.0",
                "registrationConfiguration": {"clientCertExpirationSeconds": 7200,
                    "featureGates": [{"feature": "ClusterClaim", "mode": "Disable"}]},
            }})),
            published: Some("https://published".to_owned()),
            ..Live::default()
        };
        let said = values(json!({
            "clusterName": "c1",
            "namespace": "open-cluster-management-agent",
            "workImagePullSpec": "mirror.example/work:v1.2.1",
            "externalServerURLs": [{"url": "https://said"}],
            "registrationConfiguration": {"kubeAPIQPS": 60, "featureGates": [{"feature": "ClusterProperty", "mode": "Enable"}]},
        }));
        let settings = Settings { values: said, ..settings() };
        assert_eq!(judge(&settings, &live), Ok(Vec::new()));
        let after = spec(&settings, &live);
        assert_eq!(after["registrationImagePullSpec"], "r.example/registration:v1.2.0");
        assert_eq!(after["workImagePullSpec"], "mirror.example/work:v1.2.1");
        assert_eq!(after["externalServerURLs"], json!([{"url": "https://said"}]));
        let registration = &after["registrationConfiguration"];
        assert_eq!(
            (&registration["kubeAPIQPS"], &registration["clientCertExpirationSeconds"]),
            (&json!(60), &json!(7200))
        );
        assert_eq!(
            registration["featureGates"],
            json!([{"feature": "ClusterClaim", "mode": "Disable"}, {"feature": "AddonManagement", "mode": "Enable"},
                {"feature": "ClusterProperty", "mode": "Enable"}])
        );

        let typed = Settings { name: "c2".to_owned(), bundle: Bundle::parse("1.3.1").ok(), ..settings };
        let mut told = judge(&typed, &live).unwrap();
        told.sort_unstable();
        let told: Vec<&str> = told.iter().filter_map(|told| told.split(' ').next()).collect();
        assert_eq!(told, ["clusterName", "workImagePullSpec"]);
    }

    #[test]
    fn values_do_not_move_the_agent_to_another_namespace() {
        let said = values(json!({"namespace": "open-cluster-management-other"}));
        let settings = Settings { values: said, ..settings() };
        let refused = judge(&settings, &Live::default()).unwrap_err();
        assert_eq!(refused.reason, crate::Reason::Refused);
        assert_eq!(spec(&settings, &Live::default())["namespace"], "open-cluster-management-agent");
    }

    #[test]
    fn images_of_an_agent_are_pinned_and_stay_so() {
        let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
        let names = ["registration", "work", "registration-operator"];
        let file: Value = names.map(|name| (name, digest("a"))).into_iter().collect();
        let digests = crate::images::Digests::read(&file).unwrap();
        let settings = Settings { digests, bundle: Bundle::parse("1.2.0").ok(), ..settings() };
        let pinned = spec(&settings, &Live::default());
        let image = |registry: &str| format!("{registry}/work:v1.2.0@{}", digest("a"));
        assert_eq!(pinned["workImagePullSpec"], image("quay.io/open-cluster-management"));
        let deployment = operator_deployment(&settings, &Live::default());
        let operator = operator::container(deployment.body()).unwrap()["image"].clone();
        assert!(operator.as_str().unwrap().ends_with(&digest("a")), "{operator}");
        let live =
            Live { klusterlet: Some(json!({"metadata": {"name": "klusterlet"}, "spec": pinned})), ..Live::default() };
        let moved =
            Settings { registry: Some("mirror.example".to_owned()), name: "c1".to_owned(), ..Settings::default() };
        assert_eq!(spec(&moved, &live)["workImagePullSpec"], image("mirror.example"));
        let newer = Settings { bundle: Bundle::parse("1.3.1").ok(), name: "c1".to_owned(), ..Settings::default() };
        assert_eq!(spec(&newer, &live)["workImagePullSpec"], "quay.io/open-cluster-management/work:v1.3.1");
    }
}

//! Faults of the hub's webhooks. The operator of the hub puts them right within minutes: they are made again until it is over.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocm_api::names::webhooks::{
    ADDON_SERVICE, MANAGED_CLUSTER_MUTATOR, MANAGED_CLUSTER_VALIDATOR, MANIFEST_WORK_VALIDATOR, REGISTRATION_SERVICE,
    SET_BINDING_VALIDATOR, WORK_SERVICE,
};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::change::Change;
use super::fault::{Fault, fault};
use super::pair::On;
use super::recurring::HUB;

/// How kubectl names what validates.
const VALIDATING: &str = "validatingwebhookconfiguration";
/// How kubectl names what changes.
const MUTATING: &str = "mutatingwebhookconfiguration";

/// A JSON patch of the webhook of a configuration.
fn patched(kind: &'static str, name: &'static str, path: &str, value: &str) -> Vec<Change> {
    let patch = json!([{"op": "add", "path": format!("/webhooks/0/{path}"), "value": value}]);
    let patch = format!("--patch={patch}");
    let words = ["patch", kind, name, "--type=json", &patch].map(str::to_owned).to_vec();
    vec![Change::Restored(On::Hub, vec![kind, name]), Change::Kept(On::Hub, words, vec![])]
}

/// A configuration that is not there.
fn missing(kind: &'static str, name: &'static str) -> Vec<Change> {
    let words = ["delete", kind, name, "--ignore-not-found"].map(str::to_owned).to_vec();
    vec![Change::Restored(On::Hub, vec![kind, name]), Change::Kept(On::Hub, words, vec![])]
}

/// A Service that leads nowhere.
fn without_pods(service: &'static str) -> Vec<Change> {
    let selector: Value = json!({"spec": {"selector": {"no": "such"}}});
    let patch = format!("--patch={selector}");
    let words = ["patch", "service", service, "--namespace", HUB, "--type=merge", &patch].map(str::to_owned).to_vec();
    let what = vec!["service", service, "--namespace", HUB];
    vec![Change::Patch(On::Hub, what, selector), Change::Kept(On::Hub, words, vec![])]
}

/// A caBundle that nothing of the hub comes from.
fn foreign() -> String {
    let key = KeyPair::generate().unwrap();
    STANDARD.encode(CertificateParams::default().self_signed(&key).unwrap().pem())
}

/// What is wrong with the hub's webhooks.
pub(super) fn of_webhooks() -> Vec<Fault> {
    vec![
        fault(
            "a webhook whose failure lets everything through",
            "OCM1113",
            patched(VALIDATING, MANAGED_CLUSTER_VALIDATOR, "failurePolicy", "Ignore"),
        ),
        fault(
            "a webhook in whose place somebody else is asked",
            "OCM1113",
            patched(VALIDATING, MANIFEST_WORK_VALIDATOR, "clientConfig/service/name", "somebody-else"),
        ),
        fault("a validating webhook that is gone", "OCM1107", missing(VALIDATING, SET_BINDING_VALIDATOR)),
        fault("a mutating webhook that is gone", "OCM1107", missing(MUTATING, MANAGED_CLUSTER_MUTATOR)),
        fault(
            "a webhook with another authority than the hub's",
            "OCM1109",
            patched(MUTATING, MANAGED_CLUSTER_MUTATOR, "clientConfig/caBundle", &foreign()),
        ),
        fault("a webhook of clusters with nothing behind it", "OCM1108", without_pods(REGISTRATION_SERVICE)),
        fault("a webhook of works with nothing behind it", "OCM1108", without_pods(WORK_SERVICE)),
        fault("a conversion of add-ons with nothing behind it", "OCM1114", without_pods(ADDON_SERVICE)),
    ]
}

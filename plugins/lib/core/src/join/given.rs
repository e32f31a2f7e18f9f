//! What is typed for a cluster that has joined, beside what it has: it gets that and nothing else, so that defaults of ours which
//! its Klusterlet does not say stay unsaid.

use ocm_api::Manifest;
use serde_json::Value;

use super::plan::{IMAGES, Live, Settings, agent_namespace, klusterlet, operator_deployment};
use crate::images::Digests;
use crate::{Stage, operator, values};

/// What was typed for a cluster that has joined, and what it does not have.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The paths of the fields that its Klusterlet gets.
    fields: Vec<String>,
    /// The Klusterlet with these fields alone.
    klusterlet: Option<Manifest>,
    /// The operator, where its pods are to be others.
    operator: Option<Manifest>,
    /// The Secret with the credentials of image registries, where some were typed.
    credentials: Option<Manifest>,
    /// Whether images were typed that it does not have. They come with an upgrade, which looks whether the hub goes with them.
    pub names_other_images: bool,
}

impl Given {
    /// Compares what was typed with what is there. Nothing, where there is no Klusterlet.
    pub fn of(settings: &Settings, live: &Live) -> Self {
        let Some(has) = &live.klusterlet else { return Self::default() };
        let kept = without_release(settings, live);
        let Settings { name, mode, driver, .. } = settings.clone();
        let plain = Settings { name, mode, driver, ..Settings::default() };
        let agent = agent_namespace(settings, live);
        let spec = |settings: &Settings| klusterlet(settings, live, &agent).body()["spec"].clone();
        let (typed, said) = (spec(settings), spec(&kept));
        // What it has, and what would be said of it without a word.
        let mut there = has["spec"].clone();
        values::lay(&mut there, &spec(&plain), "");
        let klusterlet = differing(&said, &there, "").map(|spec| {
            let mut klusterlet = klusterlet(&plain, live, &agent);
            klusterlet.body_mut()["spec"] = spec;
            klusterlet
        });
        let operator = operator_deployment(&kept, live);
        let is_ours = live.operator.is_some() && !live.is_shared;
        let changes = is_ours && operator.body() != operator_deployment(&plain, live).body();
        let credentials = settings.pull_credentials.as_ref();
        Self {
            fields: values::differences(&said, &there),
            klusterlet,
            operator: changes.then_some(operator),
            credentials: credentials
                .filter(|_| !live.is_shared)
                .map(|given| Manifest::of(&operator::pull_secret(Some(given)))),
            names_other_images: IMAGES.iter().any(|(field, _)| typed[field] != said[field]),
        }
    }

    /// The Secret with the credentials of image registries, where some were typed.
    pub fn credentials(&self) -> Option<&Manifest> {
        self.credentials.as_ref()
    }

    /// The same without the credentials: the cluster has them.
    #[must_use]
    pub fn without_credentials(self) -> Self {
        Self { credentials: None, ..self }
    }

    /// What the cluster gets, in words.
    pub fn words(&self) -> Vec<String> {
        let operator = self.operator.iter().map(|_| "the pods of the operator".to_owned());
        let credentials = self.credentials.iter().map(|_| "the credentials of image registries".to_owned());
        self.fields.iter().cloned().chain(operator).chain(credentials).collect()
    }

    /// Whether it gets anything.
    pub fn is_change(&self) -> bool {
        self.klusterlet.is_some() || self.operator.is_some() || self.credentials.is_some()
    }

    /// What is applied of it, in this order.
    pub fn stages(&self) -> [Stage; 3] {
        let one = |object: &Option<Manifest>| object.iter().cloned().collect();
        [
            Stage::new("the credentials of image registries", one(&self.credentials)),
            Stage::new("the operator", one(&self.operator)),
            Stage::new("the Klusterlet", one(&self.klusterlet)),
        ]
    }
}

/// The settings of a cluster that has joined: those that were typed, but for its images.
pub fn without_release(settings: &Settings, live: &Live) -> Settings {
    // Of what is not there, the images are needed.
    if live.operator.is_none() || live.klusterlet.is_none() {
        return settings.clone();
    }
    let values = settings.values.without(IMAGES.map(|(field, _)| field));
    Settings { bundle: None, registry: None, digests: Digests::default(), values, ..settings.clone() }
}

/// What of a value stands otherwise there, or not at all. Lists, and objects that are one value, are whole.
fn differing(said: &Value, there: &Value, member: &str) -> Option<Value> {
    match (said, there) {
        (Value::Object(said), Value::Object(there)) if !values::is_whole(member) => {
            let other = |(name, value): (&String, &Value)| {
                let there = there.get(name).unwrap_or(&Value::Null);
                Some((name.clone(), differing(value, there, name)?))
            };
            let others: serde_json::Map<_, _> = said.iter().filter_map(other).collect();
            (!others.is_empty()).then_some(Value::Object(others))
        }
        (said, there) => (said != there).then(|| said.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::join::CertificateLife;
    use crate::join::gates::GATES;
    use crate::operator::PullCredentials;
    use crate::release::Bundle;
    use crate::scheduling::Scheduling;
    use crate::values::{Kind, Values};

    fn settings() -> Settings {
        Settings { name: "c1".to_owned(), ..Settings::default() }
    }

    /// A cluster that has joined with these settings.
    fn joined(settings: &Settings) -> Live {
        let agent = agent_namespace(settings, &Live::default());
        let mut klusterlet = klusterlet(settings, &Live::default(), &agent).body().clone();
        // What somebody else has written.
        klusterlet["spec"]["workConfiguration"]["kubeAPIBurst"] = json!(200);
        let operator = operator_deployment(settings, &Live::default()).body().clone();
        Live { klusterlet: Some(klusterlet), operator: Some(operator), ..Live::default() }
    }

    fn values(value: Value) -> Values {
        Values::read(value, Kind::Klusterlet).unwrap()
    }

    #[test]
    fn what_it_has_is_no_change() {
        let typed = Settings {
            certificate_life: CertificateLife::seconds(7200),
            enable_sync_labels: Some(true),
            values: values(json!({"registrationConfiguration": {"kubeAPIQPS": 60}})),
            ..settings()
        };
        for (had, typed) in [(settings(), settings()), (typed.clone(), typed.clone()), (typed, settings())] {
            let given = Given::of(&typed, &joined(&had));
            assert!(!given.is_change() && given.words().is_empty() && !given.names_other_images, "{given:?}");
        }
        assert!(!Given::of(&settings(), &Live::default()).is_change(), "there is none");
    }

    #[test]
    fn it_gets_what_was_typed_and_nothing_else() {
        let (gate, on) = GATES.iter().find(|gate| !gate.default).map(|gate| (gate, true)).unwrap();
        let typed = Settings {
            certificate_life: CertificateLife::seconds(7200),
            feature_gates: vec![(gate, on)],
            values: values(json!({"priorityClassName": "agents"})),
            ..settings()
        };
        let live = joined(&settings());
        let given = Given::of(&typed, &live);
        let part = gate.part.member();
        let gates = format!("{part}.featureGates[{}]", gate.name);
        let mut expected = vec!["registrationConfiguration.clientCertExpirationSeconds", "priorityClassName", &gates];
        let mut words = given.words();
        expected.sort_unstable();
        words.sort_unstable();
        assert_eq!(words, expected);
        let [_, operator, last] = given.stages();
        assert!(operator.objects.is_empty(), "its pods stay");
        let spec = &last.objects[0].body()["spec"];
        assert_eq!(spec["priorityClassName"], "agents");
        assert_eq!(spec["registrationConfiguration"]["clientCertExpirationSeconds"], 7200);
        assert_eq!(spec.get("clusterName"), None, "{spec}");
        assert_eq!(spec.get("registrationImagePullSpec"), None, "{spec}");
        let said = spec[part]["featureGates"].as_array().unwrap();
        let there = live.klusterlet.unwrap()["spec"][part]["featureGates"].as_array().unwrap().clone();
        assert!(there.iter().all(|gate| said.contains(gate)), "a list is whole: {said:?}");
    }

    #[test]
    fn another_release_comes_with_an_upgrade() {
        let live = joined(&settings());
        let typed = Settings {
            bundle: Bundle::parse("1.1.0").ok(),
            registry: Some("mirror.example".to_owned()),
            values: values(json!({"workImagePullSpec": "mirror.example/work:v1", "priorityClassName": "agents"})),
            ..settings()
        };
        let given = Given::of(&typed, &live);
        assert!(given.names_other_images);
        assert_eq!(given.words(), ["priorityClassName"]);
        let spec = given.stages()[2].objects[0].body()["spec"].clone();
        assert_eq!(spec, json!({"priorityClassName": "agents"}));
        // Of an operator that is not there, the images are needed.
        let lacking = Live { operator: None, ..live };
        assert_eq!(without_release(&typed, &lacking).registry, typed.registry);
    }

    #[test]
    fn the_pods_of_an_operator_that_serves_others_stay() {
        let selector = BTreeMap::from([("pool".to_owned(), "infra".to_owned())]);
        let typed = Settings {
            enable_sync_labels: Some(true),
            scheduling: Scheduling { node_selector: selector, ..Scheduling::default() },
            pull_credentials: PullCredentials::parse(br#"{"auths": {}}"#.to_vec()).ok(),
            ..settings()
        };
        let live = joined(&settings());
        let given = Given::of(&typed, &live);
        let words = ["nodePlacement", "the pods of the operator", "the credentials of image registries"];
        assert_eq!(given.words(), words);
        assert_eq!(given.stages().map(|stage| stage.objects.len()), [1, 1, 1]);
        assert_eq!(given.without_credentials().stages().map(|stage| stage.objects.len()), [0, 1, 1]);
        let shared = Given::of(&typed, &Live { is_shared: true, ..live });
        assert_eq!(shared.words(), ["nodePlacement"]);
    }
}

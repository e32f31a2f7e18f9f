//! What is typed for a cluster that has joined, beside what it has: it gets that and nothing else, so that defaults of ours which
//! its Klusterlet does not say stay unsaid.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Manifest;
use serde_json::{Value, json};

use super::plan::{IMAGES, Live, Settings, agent_namespace, klusterlet, operator_deployment, place_typed};
use crate::images::Digests;
use crate::order::Collect as _;
use crate::reconcile::{is_within, owned_by_us};
use crate::{Stage, operator, values};

/// What is one value, by its member and the one above: the labels that nodes of the agent must have, and the amounts of CPU and
/// memory.
const WHOLE: [[&str; 2]; 2] = [["nodePlacement", "nodeSelector"], ["resourceRequirement", "resourceRequirements"]];
/// The fields by which an agent has several hubs: it starts with a token for each of them alone.
const HUBS: [&str; 2] =
    ["registrationConfiguration.bootstrapKubeConfigs", "registrationConfiguration.featureGates[MultipleHubs]"];

/// What was typed for a cluster that has joined, and what it does not have.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The paths of the fields that its Klusterlet gets.
    fields: Vec<String>,
    /// The Klusterlet with these fields alone.
    klusterlet: Option<Manifest>,
    /// The operator with what its pods get, where they are to be others.
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
        for [above, member] in WHOLE {
            let of = |spec: &Value| spec.get(above)?.get(member).cloned();
            let said = of(&said);
            if stays(said.as_ref(), of(&has["spec"]).as_ref(), of(&owned_by_us(has)["spec"]).as_ref()) {
                there[above][member] = said.unwrap_or_default();
            }
        }
        let klusterlet = differing(&said, &there, "").map(|spec| {
            let mut klusterlet = klusterlet(&plain, live, &agent);
            klusterlet.body_mut()["spec"] = spec;
            klusterlet
        });
        let credentials = settings.pull_credentials.as_ref();
        Self {
            fields: values::differences(&said, &there),
            klusterlet,
            operator: operator_with(&kept, live),
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

    /// Whether other hubs were typed for it as fields.
    pub fn lists_hubs(&self) -> bool {
        self.fields.iter().any(|field| HUBS.iter().any(|hubs| field.starts_with(hubs)))
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

/// Whether what is one value needs no change: all that was typed of it is there, and nothing of ours is to go. What others have set
/// of it cannot be taken away by an apply, and stays.
fn stays(typed: Option<&Value>, there: Option<&Value>, ours: Option<&Value>) -> bool {
    let none = json!({});
    let or_none = |value: Option<&Value>| value.filter(|value| value.is_object()).unwrap_or(&none).clone();
    let typed = or_none(typed);
    is_within(&typed, &or_none(there), true) && is_within(&or_none(ours), &typed, true)
}

/// The operator with what was typed of its pods that they do not have, and nothing else.
fn operator_with(settings: &Settings, live: &Live) -> Option<Manifest> {
    let there = live.operator.as_ref().filter(|_| !live.is_shared)?;
    let mut wanted = there.clone();
    place_typed(settings, live, &mut wanted);
    let mut spec = differing(&wanted["spec"], &there["spec"], "")?;
    let containers = "/template/spec/containers";
    if let Some(changed) = spec.pointer_mut(containers).and_then(Value::as_array_mut) {
        let before = there["spec"].pointer(containers).and_then(Value::as_array).cloned().unwrap_or_default();
        changed.retain(|container| !before.contains(container));
        for container in changed {
            *container = json!({"name": container["name"], "args": container["args"]});
        }
    }
    let whole = operator_deployment(settings, live);
    let metadata = ObjectMeta {
        name: Some(whole.name().to_owned()),
        namespace: whole.namespace().map(str::to_owned),
        ..ObjectMeta::default()
    };
    Some(Manifest::with::<Deployment>(&metadata, json!({ "spec": spec })))
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
            let others: serde_json::Map<_, _> = said.iter().filter_map(other).collect_object();
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
    use crate::reconcile::{Reconciled, reconcile};
    use crate::release::Bundle;
    use crate::resources::{Amounts, requirement};
    use crate::scheduling::Scheduling;
    use crate::values::{Kind, Values};
    use ocm_api::operator::ResourceQosClass;

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
    fn the_operator_knows_the_hub_as_its_agent_does_and_no_longer() {
        use crate::reconcile::FIELD_MANAGER;
        let alias =
            |ip: &str| Settings { host_alias: crate::join::choices::host_alias(&format!("{ip}=hub")), ..settings() };
        let hosts = |manifest: &Manifest| manifest.body().pointer("/spec/template/spec/hostAliases").cloned();
        let entry = |ip: &str| json!({"ip": ip, "hostnames": ["hub"]});
        let operator = |given: &Given| given.operator.as_ref().and_then(hosts);
        let had = joined(&settings());
        assert_eq!(operator(&Given::of(&settings(), &had)), None);
        assert_eq!(operator(&Given::of(&alias("10.0.0.1"), &had)), Some(json!([entry("10.0.0.1")])));
        // What others have given its pods stays theirs.
        let mut has = joined(&alias("10.0.0.1"));
        let ours = json!([{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:template": {"f:spec":
            {"f:hostAliases": {"k:{\"ip\":\"10.0.0.1\"}": {".": {}, "f:ip": {}, "f:hostnames": {}}}}}}}}]);
        let object = has.operator.as_mut().unwrap();
        assert_eq!(object.pointer("/spec/template/spec/hostAliases"), Some(&json!([entry("10.0.0.1")])));
        object["metadata"]["managedFields"] = ours;
        let theirs = json!({"ip": "10.0.0.9", "hostnames": ["other"]});
        object["spec"]["template"]["spec"]["hostAliases"] = json!([theirs, entry("10.0.0.1")]);
        assert!(!Given::of(&alias("10.0.0.1"), &has).is_change());
        assert!(!Given::of(&settings(), &has).is_change(), "it stays as the Klusterlet has it");
        assert_eq!(operator(&Given::of(&alias("10.0.0.2"), &has)), Some(json!([entry("10.0.0.2")])));
        let beside = Given::of(&alias("10.0.0.9"), &has);
        assert_eq!(operator(&beside), Some(json!([])), "names of others for the same address stay, and ours goes");
        // An upgrade knows no Klusterlet.
        let upgraded = Live { klusterlet: None, ..has.clone() };
        assert_eq!(hosts(&operator_deployment(&settings(), &upgraded)), None);
        // Where the Klusterlet has it no more, ours goes.
        let spec = &mut has.klusterlet.as_mut().unwrap()["spec"];
        spec.as_object_mut().unwrap().remove("hubApiServerHostAlias");
        assert_eq!(operator(&Given::of(&settings(), &has)), Some(json!([])));
        assert_eq!(hosts(&operator_deployment(&settings(), &has)), Some(json!([])));
        let shared = Live { is_shared: true, ..has };
        assert!(!Given::of(&settings(), &shared).is_change(), "it serves others, too");
    }

    #[test]
    fn what_it_has_is_no_change() {
        let selector = BTreeMap::from([("pool".to_owned(), "infra".to_owned())]);
        let typed = Settings {
            certificate_life: CertificateLife::seconds(7200),
            enable_sync_labels: Some(true),
            scheduling: Scheduling { node_selector: selector, ..Scheduling::default() },
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
    fn labels_of_nodes_that_others_have_written_stay_and_are_no_change() {
        let selector = BTreeMap::from([("pool".to_owned(), "infra".to_owned())]);
        let typed =
            Settings { scheduling: Scheduling { node_selector: selector, ..Scheduling::default() }, ..settings() };
        let mut live = joined(&typed);
        assert!(!Given::of(&typed, &live).is_change(), "again");
        let klusterlet = live.klusterlet.as_mut().unwrap();
        klusterlet["spec"]["nodePlacement"]["nodeSelector"]["disk"] = json!("ssd");
        assert!(!Given::of(&typed, &live).is_change(), "theirs");
        let klusterlet = live.klusterlet.as_mut().unwrap();
        klusterlet["metadata"]["managedFields"] = json!([{"manager": crate::reconcile::FIELD_MANAGER, "operation": "Apply",
            "fieldsV1": {"f:spec": {"f:nodePlacement": {"f:nodeSelector": {"f:disk": {}, "f:pool": {}}}}}}]);
        assert_eq!(Given::of(&typed, &live).words(), ["nodePlacement.nodeSelector"], "ours");
    }

    #[test]
    fn amounts_of_cpu_and_memory_are_one_value() {
        let cpu = |amount: &str| Amounts::from([("cpu".to_owned(), amount.to_owned())]);
        let typed = |limits: &Amounts, requests: &Amounts| Settings {
            resources: requirement(Some(ResourceQosClass::ResourceRequirement), limits, requests).unwrap(),
            ..settings()
        };
        let (limit, request) = (typed(&cpu("1"), &Amounts::new()), typed(&Amounts::new(), &cpu("2")));
        let mut live = joined(&limit);
        let owned = json!([{"manager": crate::reconcile::FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec":
            {"f:resourceRequirement": {"f:type": {}, "f:resourceRequirements": {"f:limits": {"f:cpu": {}}}}}}}]);
        live.klusterlet.as_mut().unwrap()["metadata"]["managedFields"] = owned;
        assert!(!Given::of(&limit, &live).is_change(), "again");
        let given = Given::of(&request, &live);
        assert_eq!(given.words(), ["resourceRequirement.resourceRequirements"]);
        let applied = match reconcile(&given.stages()[2].objects[0], live.klusterlet.as_ref()) {
            Reconciled::Apply(manifest) => manifest.body()["spec"]["resourceRequirement"].clone(),
            Reconciled::Keep(reason) => panic!("kept: {reason}"),
        };
        let expected = json!({"type": "ResourceRequirement", "resourceRequirements": {"requests": {"cpu": "2"}}});
        assert_eq!(applied, expected);
        // What others have set stays, and is no change.
        live.klusterlet.as_mut().unwrap()["spec"]["resourceRequirement"]["resourceRequirements"]["requests"] =
            json!({"memory": "1Gi"});
        assert!(!Given::of(&limit, &live).is_change(), "theirs");
    }

    #[test]
    fn hubs_that_are_typed_as_fields_are_noticed() {
        let list = json!({"registrationConfiguration": {"bootstrapKubeConfigs": {"type": "LocalSecrets",
            "localSecretsConfig": {"kubeConfigSecrets": [{"name": "a"}, {"name": "b"}]}}}});
        let gate = GATES.iter().find(|gate| gate.name == "MultipleHubs").unwrap();
        let listing = Settings { values: values(list), ..settings() };
        let gated = Settings { feature_gates: vec![(gate, true)], ..settings() };
        for typed in [listing, gated] {
            assert!(Given::of(&typed, &joined(&settings())).lists_hubs(), "{typed:?}");
            assert!(!Given::of(&typed, &joined(&typed)).lists_hubs(), "it has them");
        }
    }

    #[test]
    fn an_image_that_the_klusterlet_does_not_name_comes_from_where_its_operator_does() {
        let typed = Settings {
            registry: Some("mirror.example/ocm".to_owned()),
            bundle: Bundle::parse("1.2.0").ok(),
            ..settings()
        };
        let mut live = joined(&typed);
        live.klusterlet.as_mut().unwrap()["spec"].as_object_mut().unwrap().remove("imagePullSpec");
        let kept = without_release(&typed, &live);
        let spec = klusterlet(&kept, &live, "agent").body()["spec"].clone();
        assert_eq!(spec["imagePullSpec"], "mirror.example/ocm/registration-operator:v1.2.0");
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
        let operator = given.stages()[1].objects[0].body().clone();
        let pod = operator["spec"]["template"]["spec"].clone();
        assert_eq!(operator["spec"].as_object().unwrap().len(), 1, "{operator}");
        assert_eq!(operator["metadata"], json!({"name": "klusterlet", "namespace": "open-cluster-management"}));
        let arguments = json!(["/registration-operator", "klusterlet", "--enable-sync-labels"]);
        let container = json!({"name": "klusterlet", "args": arguments});
        assert_eq!(pod, json!({"nodeSelector": {"pool": "infra"}, "containers": [container]}));
        assert_eq!(given.without_credentials().stages().map(|stage| stage.objects.len()), [0, 1, 1]);
        let shared = Given::of(&typed, &Live { is_shared: true, ..live });
        assert_eq!(shared.words(), ["nodePlacement"]);
    }
}

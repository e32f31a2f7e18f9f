//! What runs of Open Cluster Management on a cluster, and how it is: one ClusterManager or Klusterlet with all that its
//! operator has made of it.

use ocm_api::names::namespaces;
use ocm_api::{ClusterManager, Condition, Klusterlet};
use serde_json::Value;

use crate::gates::{self, State};
use crate::install::{self, health};
use crate::join;
use crate::upgrade::Parts;
use crate::upgrade::rollout::{self, Running};
use crate::workload::Health;

/// What runs, and how it is.
#[derive(Clone, Debug)]
pub struct Info {
    /// `ClusterManager` or `Klusterlet`.
    pub kind: &'static str,
    /// The ClusterManager or Klusterlet as it is.
    pub object: Value,
    /// The images that it and its operator name.
    pub parts: Parts,
    /// The Deployments, the operator's first, each with its namespace.
    pub deployments: Vec<(String, Running)>,
    /// What the operator reports.
    pub conditions: Vec<Condition>,
    /// The feature gates.
    pub gates: Vec<State>,
    /// How clusters register, or how this one does.
    pub drivers: Vec<String>,
    /// The definitions that are there.
    pub definitions: Vec<Definition>,
    /// What is missing; nothing where all is as it was asked for.
    pub missing: Vec<String>,
}

impl Info {
    /// The name of the ClusterManager or Klusterlet.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// The mode in which it is deployed.
    pub fn mode(&self) -> &str {
        match self.text("/spec/deployOption/mode") {
            "" => "Default",
            mode => mode,
        }
    }

    /// A text of the object; empty where there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A CustomResourceDefinition and its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The versions that the API server serves.
    pub served: Vec<String>,
    /// The version in which objects are stored from now on.
    pub storage: String,
    /// `status.storedVersions`: those in which objects may be stored.
    pub stored: Vec<String>,
}

impl Definition {
    /// Reads a live definition.
    pub fn read(name: &str, definition: &Value) -> Self {
        let versions = || definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
        let name_of = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
        Self {
            name: name.to_owned(),
            served: versions().filter(|version| version["served"] == true).map(name_of).collect(),
            storage: versions().find(|version| version["storage"] == true).map(name_of).unwrap_or_default(),
            stored: crate::upgrade::stored(name, definition).versions,
        }
    }
}

/// What an operator is that is not there.
fn operator_health(operator: Option<&Running>) -> Health {
    operator.map_or_else(|| Health::NotYet { because: "it does not exist".to_owned() }, |one| one.health.clone())
}

/// Deployments with their namespaces, the operator's first.
fn named(operator: Option<Running>, namespace: &str, others: Vec<Running>) -> Vec<(String, Running)> {
    let operator = operator.map(|one| (namespaces::OPERATOR.to_owned(), one));
    operator.into_iter().chain(others.into_iter().map(|one| (namespace.to_owned(), one))).collect()
}

/// The namespace of a hub's Deployments.
pub fn namespace_of_hub(manager: &ClusterManager) -> String {
    let name = manager.metadata.name.as_deref().unwrap_or_default();
    let namespace = if health::is_hosted(manager) { name } else { namespaces::HUB };
    namespace.to_owned()
}

/// The namespace of the agents of a Klusterlet.
pub fn namespace_of_agents(klusterlet: &Klusterlet) -> String {
    let name = klusterlet.metadata.name.as_deref().unwrap_or_default();
    let own = klusterlet.spec.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let namespace = if klusterlet.mode().is_hosted() { name } else { own.unwrap_or(namespaces::AGENT) };
    namespace.to_owned()
}

/// A hub: its ClusterManager, typed and as it is, its operator, and its Deployments.
pub fn of_hub(
    manager: ClusterManager,
    object: Value,
    parts: Parts,
    operator: Option<Running>,
    running: Vec<Running>,
    definitions: Vec<Definition>,
) -> Info {
    let namespace = namespace_of_hub(&manager);
    let facts = health::HubFacts {
        operator: operator_health(operator.as_ref()),
        gone_leader: None,
        deployments: running.iter().map(|one| (one.name.clone(), one.health.clone())).collect(),
        namespace: namespace.clone(),
        manager,
        // Whether these answer is found out by asking them, which this does not.
        webhooks: Vec::new(),
        probes: Vec::new(),
    };
    let missing = health::judge(&facts).iter().map(ToString::to_string).collect();
    let drivers = object.pointer("/spec/registrationConfiguration/registrationDrivers").and_then(Value::as_array);
    let drivers = drivers.into_iter().flatten().filter_map(|driver| driver["authType"].as_str());
    Info {
        kind: "ClusterManager",
        drivers: or_csr(drivers.map(str::to_owned).collect()),
        conditions: facts.manager.status.map(|status| status.conditions).unwrap_or_default(),
        gates: gates::states(&object["spec"], install::feature_gates::GATES),
        deployments: named(operator, &namespace, running),
        object,
        parts,
        definitions,
        missing,
    }
}

/// A managed cluster: its Klusterlet, typed and as it is, its operator, and the Deployments of its agents.
pub fn of_klusterlet(
    klusterlet: &Klusterlet,
    object: Value,
    parts: Parts,
    operator: Option<Running>,
    running: Vec<Running>,
    definitions: Vec<Definition>,
) -> Info {
    // Which images are wanted is told by the parts; here it is about what runs.
    let images: Vec<String> = running.iter().flat_map(|one| one.images.clone()).collect();
    let health = operator_health(operator.as_ref());
    let missing = rollout::agents_lack(klusterlet, &health, &klusterlet.agents(), &running, &images);
    let driver = object.pointer("/spec/registrationConfiguration/registrationDriver/authType").and_then(Value::as_str);
    Info {
        kind: "Klusterlet",
        drivers: or_csr(driver.into_iter().map(str::to_owned).collect()),
        conditions: klusterlet.status.clone().map(|status| status.conditions).unwrap_or_default(),
        gates: gates::states(&object["spec"], join::gates::GATES),
        deployments: named(operator, &namespace_of_agents(klusterlet), running),
        object,
        parts,
        definitions,
        missing: missing.into_iter().collect(),
    }
}

/// Certificate requests are how clusters register unless the spec says otherwise.
fn or_csr(drivers: Vec<String>) -> Vec<String> {
    if drivers.iter().all(String::is_empty) { vec!["csr".to_owned()] } else { drivers }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn running(name: &str, health: Health) -> Running {
        Running { name: name.to_owned(), health, images: vec!["r/x:v1.2.0".to_owned()], wanted: 1, ready: 1 }
    }

    fn klusterlet(mode: &str) -> (Klusterlet, Value) {
        let object = json!({
            "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
            "metadata": { "name": "k", "generation": 1 },
            "spec": { "namespace": "agents", "deployOption": { "mode": mode },
                "registrationConfiguration": { "registrationDriver": { "authType": "grpc" } } },
            "status": { "observedGeneration": 1, "conditions": [{ "type": "Applied", "status": "True", "reason": "R",
                "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z" }] },
        });
        (serde_json::from_value(object.clone()).unwrap(), object)
    }

    fn of(mode: &str, operator: Option<Running>, agents: &[&str]) -> Info {
        let (typed, object) = klusterlet(mode);
        let agents = agents.iter().map(|name| running(name, Health::Ready)).collect();
        of_klusterlet(&typed, object, Parts::default(), operator, agents, Vec::new())
    }

    #[test]
    fn a_klusterlet_with_all_its_deployments_lacks_nothing() {
        let info = of("Default", Some(running("klusterlet", Health::Ready)), &["k-registration-agent", "k-work-agent"]);
        assert_eq!(info.missing, Vec::<String>::new());
        assert_eq!((info.name(), info.mode(), info.drivers.as_slice()), ("k", "Default", &["grpc".to_owned()][..]));
        let namespaces: Vec<&str> = info.deployments.iter().map(|(namespace, _)| namespace.as_str()).collect();
        assert_eq!(namespaces, ["open-cluster-management", "agents", "agents"]);
        assert_eq!(info.conditions.len(), 1);
    }

    #[test]
    fn what_is_missing_is_told() {
        let info = of("Default", Some(running("klusterlet", Health::Ready)), &["k-work-agent"]);
        assert_eq!(info.missing, ["Deployment k-registration-agent does not exist yet"]);
        assert_eq!(of("Default", None, &[]).missing, ["the operator: it does not exist"]);
    }

    #[test]
    fn agents_of_hosted_clusters_are_in_the_namespace_of_the_klusterlet() {
        assert_eq!(namespace_of_agents(&klusterlet("Hosted").0), "k");
        assert_eq!(namespace_of_agents(&klusterlet("Singleton").0), "agents");
    }

    #[test]
    fn a_definition_tells_its_versions() {
        let definition = json!({
            "spec": { "versions": [
                { "name": "v1alpha1", "served": true, "storage": false },
                { "name": "v1beta1", "served": true, "storage": true },
                { "name": "v1", "served": false, "storage": false },
            ] },
            "status": { "storedVersions": ["v1alpha1", "v1beta1"] },
        });
        let read = Definition::read("x", &definition);
        assert_eq!((read.served.join(","), read.storage.as_str()), ("v1alpha1,v1beta1".to_owned(), "v1beta1"));
        assert_eq!(read.stored, ["v1alpha1", "v1beta1"]);
        assert_eq!(or_csr(Vec::new()), ["csr"]);
    }
}

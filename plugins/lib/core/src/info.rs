//! What runs of Open Cluster Management on a cluster, and how it is: one ClusterManager or Klusterlet with all that its
//! operator has made of it.

use jiff::Timestamp;
use ocm_api::names::namespaces;
use ocm_api::{ClusterManager, Condition, Klusterlet};
use serde_json::Value;

use crate::gates::{self, State};
use crate::install::{feature_gates, health, mode};
use crate::join;
use crate::join::fallback::{self, Known};
use crate::kubeconfig::{HubAddress, Likeness};
use crate::upgrade::Parts;
use crate::upgrade::rollout::{self, Running};
use crate::workload::Health;

/// What runs, and how it is.
#[derive(Clone, Debug, PartialEq)]
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
    /// The hubs that an agent turns to, one after the other; empty where it has one.
    pub hubs: Vec<Hub>,
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

/// One of the hubs that an agent turns to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// Its address; none where the Secret is not there, or may not be read.
    pub server: Option<String>,
    /// The Secret of its kubeconfig.
    pub secret: String,
    /// Whether the agent was let in there; none where that may not be read.
    pub is_current: Option<bool>,
    /// Until when the token is valid with which the agent starts and registers; none where that is not known.
    pub token_ends: Option<Timestamp>,
}

/// The hubs of a list. `current` is the hub that the agent was let in to, if it was, or why nobody knows.
pub fn hubs(listed: &[Known], current: Option<Option<&HubAddress>>) -> Vec<Hub> {
    let hub = |known: &Known| {
        let there = known.kubeconfig.as_ref();
        let is = |current: Option<&HubAddress>| {
            there.zip(current).is_some_and(|(there, current)| current.likeness(&there.hub) != Likeness::OtherHub)
        };
        Hub {
            server: there.map(|there| there.hub.server.clone()),
            secret: known.secret.clone(),
            is_current: current.filter(|_| there.is_some()).map(is),
            token_ends: there.and_then(|there| fallback::ends(&there.token)),
        }
    };
    listed.iter().map(hub).collect()
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
    operator.map_or_else(|| Health::not_yet("it does not exist"), |one| one.health.clone())
}

/// Deployments with their namespaces, the operator's first.
fn named(operator: Option<Running>, namespace: &str, others: Vec<Running>) -> Vec<(String, Running)> {
    let operator = operator.map(|one| (namespaces::OPERATOR.to_owned(), one));
    operator.into_iter().chain(others.into_iter().map(|one| (namespace.to_owned(), one))).collect()
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
    let namespace = mode::namespace_of(&manager).to_owned();
    let facts = health::HubFacts {
        operator: Ok(operator_health(operator.as_ref())),
        gone_leader: None,
        deployments: Ok(running.iter().map(|one| (one.name.clone(), one.health.clone())).collect()),
        manager: Ok(manager),
        // Whether these answer is found out by asking them, which this does not.
        webhooks: Ok(Vec::new()),
        probes: Vec::new(),
    };
    let missing = health::judge(&facts).iter().map(ToString::to_string).collect();
    let status = facts.manager.ok().and_then(|manager| manager.status);
    let drivers = object.pointer("/spec/registrationConfiguration/registrationDrivers").and_then(Value::as_array);
    let drivers = drivers.into_iter().flatten().filter_map(|driver| driver["authType"].as_str());
    Info {
        kind: "ClusterManager",
        drivers: or_csr(drivers.map(str::to_owned).collect()),
        hubs: Vec::new(),
        conditions: status.map(|status| status.conditions).unwrap_or_default(),
        gates: gates::states(&object["spec"], feature_gates::GATES),
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
        hubs: Vec::new(),
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
    use crate::kubeconfig::Bootstrap;

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

    #[test]
    fn the_hubs_of_an_agent_stand_in_their_order() {
        let hub = |name: &str| HubAddress {
            server: format!("https://{name}"),
            ca: vec![name.as_bytes().to_vec()],
            ..HubAddress::default()
        };
        let known = |secret: &str, name: Option<&str>| {
            let kubeconfig = name.map(|name| Bootstrap { hub: hub(name), ..Bootstrap::default() });
            Known { secret: secret.to_owned(), kubeconfig, is_hidden: false }
        };
        let listed = [known("one", Some("a")), known("two", Some("b")), known("three", None)];
        let at = |current: Option<Option<&HubAddress>>| {
            hubs(&listed, current).into_iter().map(|hub| (hub.secret, hub.is_current)).collect::<Vec<_>>()
        };
        let secrets = |are: [Option<bool>; 3]| {
            ["one", "two", "three"].map(str::to_owned).into_iter().zip(are).collect::<Vec<_>>()
        };
        assert_eq!(at(Some(Some(&hub("b")))), secrets([Some(false), Some(true), None]));
        assert_eq!(at(Some(None)), secrets([Some(false), Some(false), None]));
        assert_eq!(at(None), secrets([None, None, None]));
        assert_eq!(hubs(&listed, None)[0].server.as_deref(), Some("https://a"));
    }
}

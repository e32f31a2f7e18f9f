//! A part of a spec: read, asked, and laid over others.

use ocm_api::crds;
use ocm_api::operator::{ClusterManagerMode, KlusterletMode, RegistrationDriver};
use serde_json::Value;

use super::lay::{differences, lay};
use super::schema::{self, ValuesError, Wrong};
use crate::gates::{Gate, Part};
use crate::{install, join, nearest};

/// Of which object the spec is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A hub's.
    ClusterManager,
    /// A managed cluster's.
    Klusterlet,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::ClusterManager => "ClusterManager",
            Self::Klusterlet => "Klusterlet",
        }
    }

    /// The schema of its spec.
    pub(super) fn schema(self) -> Value {
        let definition = match self {
            Self::ClusterManager => crds::cluster_manager_manifest(),
            Self::Klusterlet => crds::klusterlet_manifest(),
        };
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        definition.body().pointer(schema).cloned().unwrap_or_default()
    }

    const fn gates(self) -> &'static [Gate] {
        match self {
            Self::ClusterManager => install::feature_gates::GATES,
            Self::Klusterlet => join::gates::GATES,
        }
    }
}

/// A part of a spec that its schema allows. Nothing, where there is no file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Value);

impl Values {
    /// Checks a part of a spec, strictly: what an API server would drop is refused, too.
    ///
    /// # Errors
    /// The first field that is wrong, with its path.
    pub fn read(value: Value, kind: Kind) -> Result<Self, ValuesError> {
        schema::check(&kind.schema(), &value, kind.word())?;
        let values = Self(value);
        values.check_gates(kind.gates())?;
        let mode = values.text("/deployOption/mode");
        let known = match kind {
            // Of a hub that is hosted elsewhere, more belongs to it than its ClusterManager.
            Kind::ClusterManager => &ClusterManagerMode::KNOWN[..1],
            Kind::Klusterlet => KlusterletMode::KNOWN,
        };
        if mode.is_some_and(|mode| !known.contains(&mode)) {
            let why = Wrong::Word(known.iter().map(|word| (*word).to_owned()).collect());
            return Err(ValuesError { path: "deployOption.mode".to_owned(), why });
        }
        Ok(values)
    }

    /// The feature gates that the operator would drop without a word are refused.
    fn check_gates(&self, gates: &[Gate]) -> Result<(), ValuesError> {
        for part in Part::ALL.map(Part::member) {
            let named = self.0[part]["featureGates"].as_array().into_iter().flatten();
            for (index, name) in named.enumerate().filter_map(|(index, gate)| Some((index, gate["feature"].as_str()?)))
            {
                let of_part = || gates.iter().filter(|gate| gate.part.member() == part).map(|gate| gate.name);
                // AllAlpha and AllBeta are flags of components, and none that the operator passes on. Upstream:
                // `ConvertToFeatureGateFlags`.
                if of_part().any(|known| known == name) {
                    continue;
                }
                return Err(ValuesError {
                    path: format!("{part}.featureGates[{index}].feature"),
                    why: Wrong::Gate { near: nearest(name, of_part()).map(str::to_owned) },
                });
            }
        }
        Ok(())
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.0.as_object().is_none_or(serde_json::Map::is_empty)
    }

    /// The mode of a Klusterlet, if it says one.
    pub fn mode(&self) -> Option<KlusterletMode> {
        self.text("/deployOption/mode").map(KlusterletMode::from)
    }

    /// How an agent registers, if it says that.
    pub fn driver(&self) -> Option<RegistrationDriver> {
        let driver = self.0.pointer("/registrationConfiguration/registrationDriver")?;
        serde_json::from_value(driver.clone()).ok()
    }

    /// The PriorityClass of an agent's pods, if it names one.
    pub fn priority_class(&self) -> Option<&str> {
        self.text("/priorityClassName")
    }

    /// A text of the spec, by its pointer.
    pub(crate) fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Whether a Klusterlet gets a list of hubs by it.
    pub fn lists_hubs(&self) -> bool {
        self.spec().pointer("/registrationConfiguration/bootstrapKubeConfigs").is_some()
    }

    /// The same without these fields of the spec.
    pub(crate) fn without<'a>(&self, fields: impl IntoIterator<Item = &'a str>) -> Self {
        let mut spec = self.0.clone();
        if let Some(spec) = spec.as_object_mut() {
            fields.into_iter().for_each(|field| drop(spec.remove(field)));
        }
        Self(spec)
    }

    /// The spec itself.
    pub(crate) fn spec(&self) -> &Value {
        &self.0
    }

    /// Lays it over a spec: members of objects one by one, feature gates by their names, registration drivers by theirs, of
    /// which there are then no others. Other lists are replaced.
    pub(crate) fn lay(&self, spec: &mut Value) {
        if !self.is_empty() {
            lay(spec, &self.0, "");
        }
    }

    /// The live object, if there is one, with this laid over its spec.
    pub(crate) fn over(&self, live: Option<&Value>) -> Option<Value> {
        if self.is_empty() {
            return live.cloned();
        }
        let mut laid = live.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        if !laid["spec"].is_object() {
            laid["spec"] = Value::Object(serde_json::Map::new());
        }
        self.lay(&mut laid["spec"]);
        Some(laid)
    }

    /// The paths of what stands otherwise in the spec that comes of it all.
    pub(crate) fn contradicted(&self, spec: &Value) -> Vec<String> {
        if self.is_empty() { Vec::new() } else { differences(&self.0, spec) }
    }

    /// The same for people.
    pub(crate) fn remarks(&self, spec: &Value) -> Vec<String> {
        let one = |path: &String| format!("{path} of the values has no effect: what was typed stands in its place");
        self.contradicted(spec).iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(value: Value, kind: Kind) -> (String, Wrong) {
        let ValuesError { path, why } = Values::read(value, kind).unwrap_err();
        (path, why)
    }

    #[test]
    fn feature_gates_are_those_of_their_part() {
        let gates = |part: &str, name: &str| json!({part: {"featureGates": [{"feature": name, "mode": "Enable"}]}});
        assert!(Values::read(gates("workConfiguration", "RawFeedbackJsonString"), Kind::Klusterlet).is_ok());
        assert!(Values::read(gates("registrationConfiguration", "AllAlpha"), Kind::Klusterlet).is_err());
        assert_eq!(
            wrong(gates("registrationConfiguration", "AllGates"), Kind::Klusterlet).1,
            Wrong::Gate { near: None }
        );
        let (path, why) = wrong(gates("registrationConfiguration", "ClusterClaims"), Kind::Klusterlet);
        assert_eq!(path, "registrationConfiguration.featureGates[0].feature");
        assert_eq!(why, Wrong::Gate { near: Some("ClusterClaim".to_owned()) });
        // There, the operator would not look for it.
        let (_, why) = wrong(gates("workConfiguration", "ClusterClaim"), Kind::Klusterlet);
        assert_eq!(why, Wrong::Gate { near: None });
    }

    #[test]
    fn modes_are_those_that_there_are() {
        let mode = |mode: &str| json!({"deployOption": {"mode": mode}});
        let read = Values::read(mode("Singleton"), Kind::Klusterlet).unwrap();
        assert_eq!(read.mode(), Some(KlusterletMode::Singleton));
        assert_eq!(wrong(mode("singleton"), Kind::Klusterlet).0, "deployOption.mode");
        assert!(Values::read(mode("Default"), Kind::ClusterManager).is_ok());
        assert_eq!(wrong(mode("Hosted"), Kind::ClusterManager).1, Wrong::Word(vec!["Default".to_owned()]));
    }

    #[test]
    fn how_an_agent_registers_is_read() {
        let driver = |driver: Value| json!({"registrationConfiguration": {"registrationDriver": driver}});
        let read = Values::read(driver(json!({"authType": "grpc"})), Kind::Klusterlet).unwrap();
        assert_eq!(read.driver().unwrap().auth_type.as_str(), "grpc");
        assert_eq!(Values::default().driver(), None);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        let empty = Values::read(json!({}), Kind::Klusterlet).unwrap();
        assert!(empty.is_empty() && Values::default().is_empty());
        assert_eq!(empty.over(None), None);
        assert_eq!(empty.contradicted(&json!({"a": 1})), [""; 0]);
        let said = Values::read(json!({"priorityClassName": "p"}), Kind::Klusterlet).unwrap();
        assert_eq!(said.over(None), Some(json!({"spec": {"priorityClassName": "p"}})));
        let live = json!({"metadata": {"name": "k"}, "spec": {"clusterName": "c1"}});
        let laid = json!({"metadata": {"name": "k"}, "spec": {"clusterName": "c1", "priorityClassName": "p"}});
        assert_eq!(said.over(Some(&live)), Some(laid));
        let remarks = said.remarks(&json!({"priorityClassName": "typed"}));
        assert!(remarks.len() == 1 && remarks[0].starts_with("priorityClassName of the values"), "{remarks:?}");
    }
}

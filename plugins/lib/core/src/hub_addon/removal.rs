//! What an uninstallation deletes: what was made for the add-on, and nothing else.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::{ManagedClusterAddOn, Manifest};
use serde_json::{Value, json};

use super::mark::{is_marked, was_there};
use super::{Rank, WAS_THERE};
use crate::order;

/// An object that carries the label of an add-on, as a sweep over every kind finds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labelled {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub plural: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl Labelled {
    /// The object by its name alone; none if it has none.
    pub fn manifest(&self) -> Option<Manifest> {
        let mut metadata = json!({"name": self.metadata.name});
        if let Some(namespace) = &self.metadata.namespace {
            metadata["namespace"] = Value::from(namespace.as_str());
        }
        let body = json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata});
        Manifest::written(&self.plural, body)
    }

    /// Its UID.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// What it is for.
    pub fn rank(&self) -> Rank {
        Rank::of(self.api_version.split_once('/').map_or("", |(group, _)| group), &self.kind)
    }

    fn as_value(&self) -> Value {
        json!({"metadata": serde_json::to_value(&self.metadata).unwrap_or_default()})
    }
}

/// What becomes of an object that carries the label of an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes with the add-on.
    Delete,
    /// It stays, for this reason.
    Keep(String),
}

/// Decides for one object. `definitions` lets definitions go, and with them all objects of their kinds, whoever made them.
pub fn fate(found: &Labelled, name: &str, definitions: bool) -> Fate {
    let object = found.as_value();
    if !is_marked(&object, name) {
        return Fate::Keep("somebody else has given it the label of the add-on".to_owned());
    }
    if was_there(&object) {
        return Fate::Keep(format!("it was there before the add-on, as its annotation {WAS_THERE} says"));
    }
    if found.rank() == Rank::Definitions && !definitions {
        return Fate::Keep("with a definition go all objects of its kind, whoever made them".to_owned());
    }
    Fate::Delete
}

/// Puts objects into the order in which they go: what others need goes last.
pub fn order(all: &mut [Labelled]) {
    let place = |found: &Labelled| {
        let metadata = &found.metadata;
        (std::cmp::Reverse(found.rank()), found.kind.clone(), metadata.namespace.clone(), metadata.name.clone())
    };
    order::sort_by_key(all, place);
}

/// On which clusters these add-ons are enabled: the clusters of each, sorted.
pub fn enabled_on(addons: &[ManagedClusterAddOn], names: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for addon in addons {
        let (Some(name), Some(cluster)) = (&addon.metadata.name, &addon.metadata.namespace) else { continue };
        if names.contains(name) {
            all.entry(name.clone()).or_default().push(cluster.clone());
        }
    }
    all.values_mut().for_each(|clusters| order::sort(clusters));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub_addon::LABEL;
    use crate::hub_addon::mark::tests::live;
    use crate::reconcile::FIELD_MANAGER;

    fn found(api_version: &str, kind: &str, object: &Value) -> Labelled {
        Labelled {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_ascii_lowercase()),
            metadata: serde_json::from_value(object["metadata"].clone()).unwrap(),
        }
    }

    #[test]
    fn only_what_was_made_for_the_add_on_is_deleted() {
        let mut object = live(json!({LABEL: "hello"}), &[FIELD_MANAGER]);
        let of = |object: &Value| found("v1", "ConfigMap", object);
        assert_eq!(fate(&of(&object), "hello", false), Fate::Delete);
        assert_ne!(fate(&of(&object), "other", false), Fate::Delete);
        assert_ne!(fate(&of(&live(json!({LABEL: "hello"}), &["kubectl"])), "hello", true), Fate::Delete);
        let definition = found("apiextensions.k8s.io/v1", "CustomResourceDefinition", &object);
        assert_ne!(fate(&definition, "hello", false), Fate::Delete);
        assert_eq!(fate(&definition, "hello", true), Fate::Delete);
        object["metadata"]["annotations"] = json!({WAS_THERE: "true"});
        assert_ne!(fate(&of(&object), "hello", true), Fate::Delete);
        let manifest = of(&object).manifest().unwrap();
        assert_eq!((manifest.plural(), manifest.namespace(), manifest.name()), ("configmaps", Some("n"), "c"));
        assert_eq!(of(&object).uid(), "u");
    }

    #[test]
    fn what_others_need_goes_last() {
        let object = live(json!({LABEL: "hello"}), &[FIELD_MANAGER]);
        let mut all = [
            ("v1", "Namespace"),
            ("apps/v1", "Deployment"),
            ("v1", "ServiceAccount"),
            ("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn"),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        ]
        .map(|(api_version, kind)| found(api_version, kind, &object));
        order(&mut all);
        let kinds: Vec<&str> = all.iter().map(|found| found.kind.as_str()).collect();
        assert_eq!(
            kinds,
            ["ValidatingWebhookConfiguration", "ClusterManagementAddOn", "Deployment", "ServiceAccount", "Namespace"]
        );
    }

    #[test]
    fn clusters_that_have_an_add_on_are_listed() {
        let addon = |cluster: &str, name: &str| -> ManagedClusterAddOn {
            serde_json::from_value(json!({"metadata": {"namespace": cluster, "name": name}})).unwrap()
        };
        let all = [addon("c2", "hello"), addon("c1", "hello"), addon("c1", "other")];
        let found = enabled_on(&all, &["hello".to_owned(), "none".to_owned()]);
        assert_eq!(found, BTreeMap::from([("hello".to_owned(), vec!["c1".to_owned(), "c2".to_owned()])]));
    }
}

//! The objects of an add-on in the order in which they are made.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use ocm_api::Manifest;
use serde_json::Value;

use super::Rank;
use crate::leave::meta;
use crate::order::Collect as _;
use crate::plan::{Plan, Stage};

/// A namespace by its name alone.
pub fn namespace(name: &str) -> Manifest {
    Manifest::with::<Namespace>(&meta(None, name), Value::Null)
}

/// Namespaces in which there are objects, but for those that are among the objects: sorted.
pub fn namespaces(manifests: &[Manifest]) -> Vec<String> {
    let brought: BTreeSet<&str> =
        manifests.iter().filter(|manifest| is_namespace(manifest)).map(Manifest::name).collect_set();
    let used: BTreeSet<&str> = manifests.iter().filter_map(Manifest::namespace).collect_set();
    used.difference(&brought).map(|name| (*name).to_owned()).collect()
}

fn is_namespace(manifest: &Manifest) -> bool {
    manifest.group().is_empty() && manifest.kind() == "Namespace"
}

/// The objects in stages: what others need comes first.
pub fn plan(manifests: &[Manifest]) -> Plan {
    let of = |rank: Rank| {
        let its = |manifest: &&Manifest| Rank::of(manifest.group(), manifest.kind()) == rank;
        Stage::new(rank.name(), manifests.iter().filter(its).cloned().collect())
    };
    Plan::new(Rank::ALL.map(of))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Manifest {
        let metadata = json!({"name": name, "namespace": namespace});
        Manifest::written("plural", json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})).unwrap()
    }

    #[test]
    fn objects_are_made_in_stages() {
        let all = [
            object("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn", None, "a"),
            object("apps/v1", "Deployment", Some("own"), "a"),
            object("v1", "ServiceAccount", Some("own"), "a"),
            object("v1", "ConfigMap", Some("there"), "a"),
            object("v1", "Namespace", None, "own"),
        ];
        let plan = plan(&all);
        let stages: Vec<(&str, usize)> = plan.stages.iter().map(|stage| (stage.name, stage.objects.len())).collect();
        assert_eq!(stages, [("namespaces", 1), ("accounts, rights and settings", 2), ("workloads", 1), ("add-ons", 1)]);
        assert_eq!(namespaces(&all), ["there"]);
        assert_eq!(namespace("there").reference(), "namespace/there");
    }
}

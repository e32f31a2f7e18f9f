//! Sets, their bindings and their clusters, as objects that are known by their names.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Manifest};
use ocm_kube::access::Right;
use serde_json::Value;

/// Their API group.
pub(super) const GROUP: &str = "cluster.open-cluster-management.io";
pub(super) const SETS: &str = "managedclustersets";
pub(super) const BINDINGS: &str = "managedclustersetbindings";
/// How many objects are changed at once.
pub(super) const AT_ONCE: usize = 8;

/// The metadata of an object that is known by its name alone.
pub(crate) fn named(namespace: Option<&str>, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: namespace.map(str::to_owned), name: Some(name.to_owned()), ..ObjectMeta::default() }
}

pub(super) fn set_manifest(name: &str) -> Manifest {
    Manifest::with::<ManagedClusterSet>(&named(None, name), Value::Null)
}

pub(super) fn binding_manifest(namespace: &str, name: &str) -> Manifest {
    Manifest::with::<ManagedClusterSetBinding>(&named(Some(namespace), name), Value::Null)
}

pub(super) fn cluster_manifest(name: &str) -> Manifest {
    Manifest::with::<ManagedCluster>(&named(None, name), Value::Null)
}

pub(super) fn join(set: &str) -> Right {
    Right::new("create", GROUP, "managedclustersets/join").on(set)
}

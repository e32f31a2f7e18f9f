//! A cluster that is managed from another one: its Klusterlet and its agents are on the hosting cluster, and reach it
//! through an account that we make there.
//!
//! The account is in a namespace of its own, which owns the account's rights: whoever deletes the namespace has deleted
//! all of it, also with the rights of the account itself.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ocm_api::Klusterlet;

use super::rbac;
use crate::Plan;
use crate::account;

pub use crate::account::{is_ours, is_token, space, token};

/// What names of Klusterlets of hosted clusters begin with, as with other tools.
const PREFIX: &str = "klusterlet-hosted-";

/// Name of the Klusterlet of a hosted cluster, also of the namespace of its agents and, on the managed cluster, of the
/// account and its namespace: the same in every run. Names that would be too long end with a part of their SHA-256.
pub fn klusterlet_name(cluster: &str) -> String {
    account::short(format!("{PREFIX}{cluster}"), cluster)
}

/// The Klusterlets on a hosting cluster that are of this hosted cluster.
pub fn of_cluster<'a>(klusterlets: &'a [Klusterlet], cluster: &'a str) -> impl Iterator<Item = &'a Klusterlet> {
    klusterlets.iter().filter(move |klusterlet| {
        klusterlet.mode().is_hosted() && klusterlet.spec.cluster_name.as_deref() == Some(cluster)
    })
}

/// The account on the managed cluster, and its rights. `namespace` is its namespace as it is there, which becomes the
/// owner of the rights; none: it is only planned.
pub fn account(klusterlet: &str, namespace: Option<&ObjectMeta>) -> Plan {
    let rights = rbac::hosting_rights(klusterlet, account::subject(klusterlet));
    account::plan(&space(klusterlet), rights, namespace)
}

#[cfg(test)]
mod tests {
    use ocm_api::Manifest;

    use super::*;

    /// The longest name of a namespace: RFC 1123.
    const LONGEST: usize = 63;

    #[test]
    fn a_cluster_has_the_same_klusterlet_in_every_run() {
        assert_eq!(klusterlet_name("c1"), "klusterlet-hosted-c1");
        let long = ["a".repeat(63), format!("{}b", "a".repeat(62))].map(|name| klusterlet_name(&name));
        assert!(long.iter().all(|name| name.len() == LONGEST), "{long:?}");
        assert_ne!(long[0], long[1], "also where they begin alike");
        assert_eq!(long[0], klusterlet_name(&"a".repeat(63)));
        assert_eq!(klusterlet_name(&"a".repeat(45)), format!("{PREFIX}{}", "a".repeat(45)));
    }

    #[test]
    fn the_rights_of_the_account_go_with_its_namespace() {
        let there = ObjectMeta { uid: Some("u1".to_owned()), ..ObjectMeta::default() };
        let plan = account("k", Some(&there));
        let owned: Vec<String> = plan
            .objects()
            .filter(|object| object.body()["metadata"]["ownerReferences"][0]["uid"] == "u1")
            .map(Manifest::reference)
            .collect();
        assert_eq!(
            owned,
            [
                "clusterrole.rbac.authorization.k8s.io/open-cluster-management:hosted:k",
                "clusterrolebinding.rbac.authorization.k8s.io/open-cluster-management:hosted:k"
            ]
        );
        assert!(account("k", None).objects().all(|object| object.body()["metadata"]["ownerReferences"].is_null()));
    }

    #[test]
    fn the_account_binds_nothing_but_what_agents_get() {
        let plan = account("k", None);
        let role = plan.objects().find(|object| object.kind() == "ClusterRole").unwrap().body().clone();
        let rules = role["rules"].as_array().unwrap();
        let binds: Vec<&serde_json::Value> =
            rules.iter().filter(|rule| rule["verbs"].as_array().unwrap().iter().any(|verb| verb == "bind")).collect();
        assert_eq!(binds.len(), 1);
        let names: Vec<&str> =
            binds[0]["resourceNames"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
        assert!(
            names.iter().all(|name| *name == "admin" || name.starts_with("open-cluster-management:k-")),
            "{names:?}"
        );
        assert!(!names.is_empty());
    }
}

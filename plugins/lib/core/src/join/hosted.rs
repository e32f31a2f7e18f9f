//! A cluster that is managed from another one: its Klusterlet and its agents are on the hosting cluster, and reach it
//! through an account that we make there.
//!
//! The account is in a namespace of its own, which owns the account's rights: whoever deletes the namespace has deleted
//! all of it, also with the rights of the account itself.

use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::Subject;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use ocm_api::{Klusterlet, Manifest};
use ring::digest;

use super::rbac;
use crate::token::MANAGED_BY;
use crate::{Plan, Stage};

/// Annotation of a Secret that says of which ServiceAccount its token is. Upstream: Kubernetes, `ServiceAccountNameKey`.
const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// What names of Klusterlets of hosted clusters begin with, as with other tools.
const PREFIX: &str = "klusterlet-hosted-";
/// The longest name of a namespace: RFC 1123.
const LONGEST: usize = 63;

/// Name of the Klusterlet of a hosted cluster, also of the namespace of its agents and, on the managed cluster, of the
/// account and its namespace: the same in every run. Names that would be too long end with a part of their SHA-256.
pub fn klusterlet_name(cluster: &str) -> String {
    let name = format!("{PREFIX}{cluster}");
    if name.len() <= LONGEST {
        return name;
    }
    let sum = digest::digest(&digest::SHA256, cluster.as_bytes());
    let sum: String = sum.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let start: String = name.chars().take(LONGEST - 1 - sum.len()).collect();
    format!("{start}-{sum}")
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
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(klusterlet.to_owned());
    account.metadata.namespace = Some(klusterlet.to_owned());
    let owner = namespace.and_then(|namespace| namespace.uid.clone()).map(|uid| OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: klusterlet.to_owned(),
        uid,
        ..OwnerReference::default()
    });
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: klusterlet.to_owned(),
        namespace: Some(klusterlet.to_owned()),
        ..Subject::default()
    };
    let (mut role, mut binding) = rbac::hosting_rights(klusterlet, subject);
    role.metadata.owner_references = owner.clone().map(|owner| vec![owner]);
    binding.metadata.owner_references = owner.map(|owner| vec![owner]);
    Plan::new([
        Stage::new("the namespace of the operator's account", vec![Manifest::of(&space(klusterlet))]),
        Stage::new(
            "the operator's account and its rights",
            vec![Manifest::of(&account), Manifest::of(&role), Manifest::of(&binding)],
        ),
    ])
}

/// The namespace of the account on the managed cluster.
pub fn space(klusterlet: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(klusterlet.to_owned());
    namespace.metadata.labels = Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into());
    namespace
}

/// Whether a namespace of the account's name is one that we made.
pub fn is_ours(namespace: &ObjectMeta) -> bool {
    namespace.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY.0)).is_some_and(|by| by == MANAGED_BY.1)
}

/// A Secret in which Kubernetes puts a token of the account: it has no end, and is revoked by deleting the Secret.
pub fn token(klusterlet: &str) -> Secret {
    let mut secret = Secret { type_: Some("kubernetes.io/service-account-token".to_owned()), ..Secret::default() };
    secret.metadata.generate_name = Some(format!("{klusterlet}-"));
    secret.metadata.namespace = Some(klusterlet.to_owned());
    secret.metadata.annotations = Some([(ACCOUNT.to_owned(), klusterlet.to_owned())].into());
    secret
}

/// Whether a Secret holds a token of the account.
pub fn is_token(secret: &ObjectMeta, klusterlet: &str) -> bool {
    secret.annotations.as_ref().and_then(|all| all.get(ACCOUNT)).is_some_and(|account| account == klusterlet)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn only_a_namespace_of_ours_is_ours() {
        assert!(is_ours(&space("k").metadata));
        assert!(!is_ours(&ObjectMeta::default()));
        assert!(is_token(&token("k").metadata, "k") && !is_token(&token("k").metadata, "other"));
    }
}

//! An account of ours on one cluster, for an operator that runs on another one.
//!
//! The account is in a namespace of its own, which owns the account's rights: whoever deletes the namespace has deleted
//! all of it, also with the rights of the account itself.

use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use ocm_api::Manifest;
use ring::digest;

use crate::token::MANAGED_BY;
use crate::{Plan, Stage};

/// Annotation of a Secret that says of which ServiceAccount its token is. Upstream: Kubernetes, `ServiceAccountNameKey`.
const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// The longest name of a namespace: RFC 1123.
const LONGEST: usize = 63;

/// A name that a namespace can have: one that is too long ends with a part of the SHA-256 of `of`, what it was made of.
pub(crate) fn short(name: String, of: &str) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    let sum = digest::digest(&digest::SHA256, of.as_bytes());
    let sum: String = sum.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let start: String = name.chars().take(LONGEST - 1 - sum.len()).collect();
    format!("{start}-{sum}")
}

/// The account as somebody to whom rights are given.
pub(crate) fn subject(name: &str) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(name.to_owned()),
        ..Subject::default()
    }
}

/// The account, in a namespace of its own name, and its rights. `live` is its namespace as it is there, which becomes the
/// owner of the rights; none: it is only planned.
pub(crate) fn plan(
    space: &Namespace,
    (mut role, mut binding): (ClusterRole, ClusterRoleBinding),
    live: Option<&ObjectMeta>,
) -> Plan {
    let name = space.metadata.name.clone().unwrap_or_default();
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.clone());
    account.metadata.namespace = Some(name.clone());
    let owner = live.and_then(|live| live.uid.clone()).map(|uid| OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name,
        uid,
        ..OwnerReference::default()
    });
    role.metadata.owner_references = owner.clone().map(|owner| vec![owner]);
    binding.metadata.owner_references = owner.map(|owner| vec![owner]);
    Plan::new([
        Stage::new("the namespace of the operator's account", vec![Manifest::of(space)]),
        Stage::new(
            "the operator's account and its rights",
            vec![Manifest::of(&account), Manifest::of(&role), Manifest::of(&binding)],
        ),
    ])
}

/// The namespace of an account.
pub fn space(name: &str) -> Namespace {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespace.metadata.labels = Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into());
    namespace
}

/// Whether a namespace of an account's name is one that we made.
pub fn is_ours(namespace: &ObjectMeta) -> bool {
    namespace.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY.0)).is_some_and(|by| by == MANAGED_BY.1)
}

/// A Secret in which Kubernetes puts a token of the account: it has no end, and is revoked by deleting the Secret.
pub fn token(name: &str) -> Secret {
    let mut secret = Secret { type_: Some("kubernetes.io/service-account-token".to_owned()), ..Secret::default() };
    secret.metadata.generate_name = Some(format!("{name}-"));
    secret.metadata.namespace = Some(name.to_owned());
    secret.metadata.annotations = Some([(ACCOUNT.to_owned(), name.to_owned())].into());
    secret
}

/// Whether a Secret holds a token of the account.
pub fn is_token(secret: &ObjectMeta, name: &str) -> bool {
    secret.annotations.as_ref().and_then(|all| all.get(ACCOUNT)).is_some_and(|account| account == name)
}

/// Whether a token was made before `own`; not where that cannot be told. Another run of the same command may have made a newer
/// one meanwhile, and be about to hand it over.
pub fn is_former(secret: &ObjectMeta, own: &ObjectMeta) -> bool {
    secret.creation_timestamp.as_ref().zip(own.creation_timestamp.as_ref()).is_some_and(|(one, own)| one.0 < own.0)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn only_a_token_that_was_made_before_is_a_former_one() {
        let at = |second| ObjectMeta {
            creation_timestamp: Some(Time(Timestamp::from_second(second).unwrap())),
            ..ObjectMeta::default()
        };
        assert!(is_former(&at(1), &at(2)));
        for not in [at(2), at(3), ObjectMeta::default()] {
            assert!(!is_former(&not, &at(2)));
        }
        assert!(!is_former(&at(1), &ObjectMeta::default()));
    }

    #[test]
    fn only_a_namespace_of_ours_is_ours() {
        assert!(is_ours(&space("k").metadata));
        assert!(!is_ours(&ObjectMeta::default()));
        assert!(is_token(&token("k").metadata, "k") && !is_token(&token("k").metadata, "other"));
    }
}

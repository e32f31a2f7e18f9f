//! Which service accounts a hub lets register clusters.
//!
//! Hubs that other tools made keep the account under another name or in another namespace. Such a name proves nothing,
//! for whoever owns a namespace gives names in it; a ClusterRoleBinding does, for only administrators write those.

use std::collections::BTreeSet;

use ocm_api::names::{bootstrap, identity};
use ocm_api::parts::ClusterRoleBinding;
use ocm_rules::identity::Identity;

use crate::csr::Request;
use crate::order::Collect as _;

/// The user names of the service accounts that bindings give the role of agents that register. Of groups and users it
/// gives the role to, nothing is taken: a group may hold everybody, and a user's name stands in any certificate.
pub fn bound_accounts<'a>(bindings: impl IntoIterator<Item = &'a ClusterRoleBinding>) -> BTreeSet<String> {
    let registers = |binding: &&ClusterRoleBinding| {
        let role = &binding.role_ref;
        let name = role.name.as_str();
        role.kind == "ClusterRole" && matches!(name, bootstrap::CLUSTER_ROLE | bootstrap::FORMER_CLUSTER_ROLE)
    };
    let subjects = bindings.into_iter().filter(registers).flat_map(|binding| binding.subjects.iter().flatten());
    let accounts = subjects.filter(|subject| subject.kind == "ServiceAccount");
    accounts
        .filter_map(|account| Some(identity::service_account_user(account.namespace.as_deref()?, &account.name)))
        .collect_set()
}

/// Whether only a binding can tell if the one who asked may register clusters.
pub fn needs_binding(request: &Request) -> bool {
    !request.is_addons() && matches!(Identity::of(request.asked_by()), Identity::ServiceAccount { .. })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_service_accounts_that_hold_the_role_on_the_whole_hub_register_clusters() {
        let account = |namespace, name| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
        let binding = |role: &str, subjects: Value| {
            let value = json!({
                "metadata": {"name": "open-cluster-management:bootstrap:agent-registration"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": subjects,
            });
            serde_json::from_value::<ClusterRoleBinding>(value).unwrap()
        };
        let bound = |role: &str, subjects: Value| {
            bound_accounts(&[binding(role, subjects)]).into_iter().collect::<Vec<String>>()
        };
        let hub = "open-cluster-management:bootstrap";
        assert_eq!(
            bound(hub, json!([account("ocm", "agent-registration-bootstrap")])),
            ["system:serviceaccount:ocm:agent-registration-bootstrap"]
        );
        assert_eq!(
            bound(&format!("system:{hub}"), json!([account("open-cluster-management", "cluster-bootstrap")])),
            ["system:serviceaccount:open-cluster-management:cluster-bootstrap"]
        );
        for (role, subjects) in [
            // Another role, also one that lets clusters into a set and nothing else.
            ("view", json!([account("ocm", "x")])),
            (&format!("{hub}:clusterset:prod"), json!([account("ocm", "x")])),
            // Not an account, or not one that can be told.
            (hub, json!([{"kind": "Group", "name": "system:serviceaccounts:ocm"}])),
            (hub, json!([{"kind": "User", "name": "system:serviceaccount:ocm:x"}])),
            (hub, json!([{"kind": "ServiceAccount", "name": "x"}])),
            (hub, Value::Null),
        ] {
            assert_eq!(bound(role, subjects.clone()), [""; 0], "{role}: {subjects}");
        }
        let mut local = binding(hub, json!([account("ocm", "x")]));
        local.role_ref.kind = "Role".to_owned();
        assert!(bound_accounts(&[local]).is_empty());
    }
}

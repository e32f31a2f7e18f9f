//! A hub's own installation: what is in the way of taking it away, what goes along, and what its operator leaves.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use ocm_api::names::{bootstrap, hub, namespaces, operators, secrets, webhooks};
use ocm_api::{ClusterManager, Manifest, crds};
use serde_json::Value;

use super::{meta, some};
use crate::{Failure, Remedy, join::lease};

/// A kind of objects that people make on hubs, and whose definition goes with the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peoples {
    /// API group.
    pub group: &'static str,
    /// Plural resource name.
    pub plural: &'static str,
    /// Names of those that every hub makes itself.
    pub own: &'static [&'static str],
}

/// All of them. ManagedClusters, their add-ons and their works are not among them: while there are any, the hub stays.
/// PlacementDecisions go with their Placements.
pub const PEOPLES: &[Peoples] = &[
    Peoples {
        group: "cluster.open-cluster-management.io",
        plural: "managedclustersets",
        own: &[hub::DEFAULT_CLUSTER_SET, hub::GLOBAL_CLUSTER_SET],
    },
    Peoples { group: "cluster.open-cluster-management.io", plural: "managedclustersetbindings", own: &[] },
    Peoples { group: "cluster.open-cluster-management.io", plural: "placements", own: &[] },
    Peoples { group: "cluster.open-cluster-management.io", plural: "addonplacementscores", own: &[] },
    Peoples { group: "work.open-cluster-management.io", plural: "manifestworkreplicasets", own: &[] },
    Peoples { group: "addon.open-cluster-management.io", plural: "clustermanagementaddons", own: &[] },
    Peoples { group: "addon.open-cluster-management.io", plural: "addontemplates", own: &[] },
    Peoples { group: "addon.open-cluster-management.io", plural: "addondeploymentconfigs", own: &[] },
];

impl Peoples {
    /// Its definition, by its name alone.
    pub fn definition(&self) -> Manifest {
        let name = format!("{}.{}", self.plural, self.group);
        Manifest::with::<CustomResourceDefinition>(&meta(None, &name), Value::Null)
    }
}

/// What there is besides the hub itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Names of the managed clusters.
    pub clusters: Vec<String>,
    /// How many objects people have made, by their plural, none of them zero.
    pub peoples: Vec<(&'static str, usize)>,
    /// What of ours stands on the hub and has a verb of its own that takes it away.
    pub ours: Vec<&'static str>,
}

/// Refuses to take away a hub to which something is attached. `purge` lets what people have made go along; managed clusters
/// never do. `done` is what has been deleted by now: `nothing was deleted`.
///
/// # Errors
/// A refusal with a list.
pub fn may_go(attached: &Attached, purge: bool, label: &str, done: &str) -> Result<(), Failure> {
    let Attached { clusters, peoples, ours } = attached;
    if let Some(first) = clusters.first() {
        let many = match clusters.len() {
            1 => "a managed cluster is".to_owned(),
            many => format!("{many} managed clusters are"),
        };
        return Err(Failure::refused(format!("{many} attached to the hub ({label}): {}; {done}", some(clusters)))
            .hint(Remedy::Unjoin(first.clone()))
            .hint(Remedy::Detach(if clusters.len() == 1 { first.clone() } else { clusters.join(" ") })));
    }
    if let Some(first) = ours.first() {
        let told = ours.join(" and the ");
        return Err(Failure::refused(format!("the {told} of kubectl-ocm is on the hub ({label}): {done}"))
            .hint(Remedy::UninstallFirst(first.to_string())));
    }
    if !peoples.is_empty() && !purge {
        return Err(Failure::refused(format!(
            "people have made {} on the hub ({label}), which would go along: {done}",
            counted(peoples)
        ))
        .hint(Remedy::Purge));
    }
    Ok(())
}

/// `2 placements, 1 addontemplates`, as kubectl names kinds.
pub fn counted(peoples: &[(&'static str, usize)]) -> String {
    peoples.iter().map(|(plural, many)| format!("{many} {plural}")).collect::<Vec<_>>().join(", ")
}

/// A ClusterManager by its name alone.
pub fn cluster_manager(name: &str) -> Manifest {
    Manifest::with::<ClusterManager>(&meta(None, name), Value::Null)
}

/// The operator's Deployment by its name alone.
pub fn operator() -> Manifest {
    Manifest::with::<Deployment>(&meta(Some(namespaces::OPERATOR), operators::CLUSTER_MANAGER), Value::Null)
}

/// The definition of ClusterManagers by its name alone.
pub fn definition() -> Manifest {
    Manifest::with::<CustomResourceDefinition>(&meta(None, crds::CLUSTER_MANAGER_NAME), Value::Null)
}

/// The webhook configurations of a hub by their names alone. The operator of a hosted hub leaves them there: it looks for them on
/// the hosting cluster. Upstream: `webhookReconcile.clean`.
pub fn webhook_configurations() -> Vec<Manifest> {
    let mutating = webhooks::MUTATING
        .iter()
        .map(|(name, _)| Manifest::with::<MutatingWebhookConfiguration>(&meta(None, name), Value::Null));
    let validating = webhooks::VALIDATING
        .iter()
        .map(|(name, _)| Manifest::with::<ValidatingWebhookConfiguration>(&meta(None, name), Value::Null));
    mutating.chain(validating).collect()
}

/// Whether a webhook configuration, as it is there, asks Services of this namespace alone.
pub fn asks_services_of(configuration: &Value, namespace: &str) -> bool {
    let hooks = configuration["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    !hooks.is_empty()
        && hooks
            .iter()
            .all(|hook| hook.pointer("/clientConfig/service/namespace").is_some_and(|asked| asked == namespace))
}

/// The Secret of a bootstrap token by its name alone.
pub fn token_secret(name: &str) -> Manifest {
    Manifest::with::<Secret>(&meta(Some(bootstrap::TOKEN_NAMESPACE), name), Value::Null)
}

/// What lets clusters register, and goes first: from then on no token does. `sets` are the cluster sets for which there are
/// roles of ours.
pub fn registering(sets: &[String]) -> Vec<Manifest> {
    let role = |name: &str| Manifest::with::<ClusterRole>(&meta(None, name), Value::Null);
    let binding = |name: &str| Manifest::with::<ClusterRoleBinding>(&meta(None, name), Value::Null);
    let account = meta(Some(namespaces::OPERATOR), bootstrap::SERVICE_ACCOUNT);
    let mut all = vec![
        binding(bootstrap::SERVICE_ACCOUNT_BINDING),
        binding(bootstrap::TOKEN_BINDING),
        role(bootstrap::CLUSTER_ROLE),
        role(bootstrap::FORMER_CLUSTER_ROLE),
        Manifest::with::<ServiceAccount>(&account, Value::Null),
    ];
    for set in sets {
        let name = bootstrap::cluster_set_role(set);
        all.extend([binding(&name), role(&name)]);
    }
    all
}

/// What the operator leaves when its pods have ended: its rights, its account, its lease, and, unless the operator of a
/// managed cluster uses it too, the credentials of its images.
pub fn of_operator(beside_agent: bool) -> Vec<Manifest> {
    let (space, name) = (Some(namespaces::OPERATOR), operators::CLUSTER_MANAGER);
    let mut all = vec![
        Manifest::with::<ClusterRoleBinding>(&meta(None, name), Value::Null),
        Manifest::with::<ClusterRole>(&meta(None, name), Value::Null),
        Manifest::with::<ServiceAccount>(&meta(space, name), Value::Null),
        lease::manifest(namespaces::OPERATOR, operators::CLUSTER_MANAGER_LOCK),
    ];
    if !beside_agent {
        all.push(Manifest::with::<Secret>(&meta(space, secrets::IMAGE_PULL_CREDENTIALS), Value::Null));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reason;

    #[test]
    fn a_hub_with_something_attached_stays() {
        let mut attached = Attached::default();
        assert_eq!(may_go(&attached, false, "hub", "nothing was deleted"), Ok(()));
        attached.peoples = vec![("placements", 2), ("addontemplates", 1)];
        let failure = may_go(&attached, false, "hub", "nothing was deleted").unwrap_err();
        assert_eq!(failure.reason, Reason::Refused);
        assert!(failure.message.contains("2 placements, 1 addontemplates"), "{failure}");
        assert_eq!(may_go(&attached, true, "hub", "nothing was deleted"), Ok(()));
        // Ours is taken away by its own verb, and clusters are never taken along.
        attached.ours = vec!["policy-engine", "baseline"];
        assert!(
            may_go(&attached, true, "hub", "nothing was deleted")
                .unwrap_err()
                .message
                .contains("the policy-engine and the baseline")
        );
        attached.clusters = vec!["c1".to_owned(), "c2".to_owned()];
        let failure = may_go(&attached, true, "hub", "nothing was deleted").unwrap_err();
        assert_eq!(failure.message, "2 managed clusters are attached to the hub (hub): c1, c2; nothing was deleted");
        assert_eq!(failure.hints[1], crate::Hint::Remedy(Remedy::Detach("c1 c2".to_owned())));
    }

    #[test]
    fn only_configurations_of_the_hub_itself_are_its_own() {
        assert_eq!(webhook_configurations().len(), 4);
        let asks = |namespaces: &[&str]| {
            let hook = |namespace: &&str| json!({"clientConfig": {"service": {"namespace": namespace}}});
            json!({"webhooks": namespaces.iter().map(hook).collect::<Vec<_>>()})
        };
        assert!(asks_services_of(&asks(&["h", "h"]), "h"));
        assert!(!asks_services_of(&asks(&["h", "other"]), "h") && !asks_services_of(&asks(&[]), "h"));
        assert!(!asks_services_of(&json!({"webhooks": [{"clientConfig": {"url": "https://x"}}]}), "h"));
    }

    #[test]
    fn beside_an_agent_its_credentials_stay() {
        let is_secret = |manifest: &Manifest| manifest.kind() == "Secret";
        assert!(of_operator(false).iter().any(is_secret));
        assert!(!of_operator(true).iter().any(is_secret));
        let sets = registering(&["prod".to_owned()]);
        assert!(sets.iter().any(|manifest| manifest.name() == "open-cluster-management:bootstrap:clusterset:prod"));
    }
}

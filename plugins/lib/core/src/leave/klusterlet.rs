//! Which Klusterlet is meant, where its agents are, and what is left of the operator when none is left.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use ocm_api::names::{namespaces, operators, secrets};
use ocm_api::{AppliedManifestWork, Klusterlet, Manifest, crds};
use serde_json::Value;

use super::{meta, some};
use crate::{Failure, Remedy, join::lease};

/// A Klusterlet, and the name of its cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The Klusterlet.
    pub klusterlet: Klusterlet,
    /// The name under which the hub knows the cluster: as the Klusterlet says it, or as its agent has written it down.
    pub cluster: Option<String>,
}

impl Known {
    /// Name of the Klusterlet.
    pub fn name(&self) -> &str {
        self.klusterlet.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether it manages another cluster than the one that it is on.
    pub fn is_hosted(&self) -> bool {
        self.klusterlet.mode().is_hosted()
    }

    /// Namespace of the agents' Deployments, on the cluster that the Klusterlet is on. Upstream: `AgentNamespace`.
    pub fn agents(&self) -> &str {
        if self.is_hosted() { self.name() } else { self.accounts() }
    }

    /// Namespace of the agents' accounts on the managed cluster. Upstream: `KlusterletNamespace`.
    pub fn accounts(&self) -> &str {
        let named = self.klusterlet.spec.namespace.as_deref().filter(|name| !name.is_empty());
        named.unwrap_or(namespaces::AGENT)
    }

    /// `Klusterlet "k" of cluster "c"`, for people.
    pub fn told(&self) -> String {
        let cluster = self
            .cluster
            .as_deref()
            .map_or_else(|| "of an unknown cluster".to_owned(), |name| format!("of cluster {name:?}"));
        format!("Klusterlet {:?} {cluster}", self.name())
    }
}

/// Picks the Klusterlet that is meant: the one of that name, the one of that cluster, or the only one. None where there is
/// none. `label` is how messages name the cluster.
///
/// # Errors
/// When it cannot be told which is meant, or it is another one that is there.
pub fn choose<'a>(
    all: &'a [Known],
    cluster: Option<&str>,
    klusterlet: Option<&str>,
    label: &str,
) -> Result<Option<&'a Known>, Failure> {
    let fits = |known: &&Known| {
        klusterlet.is_none_or(|name| known.name() == name)
            && cluster.is_none_or(|name| known.cluster.as_deref() == Some(name))
    };
    let fitting: Vec<&Known> = all.iter().filter(fits).collect();
    let told = |all: &[&Known]| some(&all.iter().map(|known| known.told()).collect::<Vec<_>>());
    match fitting.as_slice() {
        [one] => Ok(Some(one)),
        [] if all.is_empty() => Ok(None),
        [] => {
            let meant = match (cluster, klusterlet) {
                (Some(cluster), None) => format!("no Klusterlet of cluster {cluster:?}"),
                (Some(cluster), Some(name)) => format!("no Klusterlet {name:?} of cluster {cluster:?}"),
                (None, name) => format!("no Klusterlet {:?}", name.unwrap_or_default()),
            };
            let there = told(&all.iter().collect::<Vec<_>>());
            Err(Failure::refused(format!("{label} has {meant}, but {there}: nothing was changed"))
                .hint(Remedy::NameKlusterlet))
        }
        several => {
            Err(Failure::usage(format!("{label} has several Klusterlets: {}", told(several)))
                .hint(Remedy::NameKlusterlet))
        }
    }
}

/// A namespace by its name alone.
pub fn namespace(name: &str) -> Manifest {
    Manifest::with::<Namespace>(&meta(None, name), Value::Null)
}

/// A Klusterlet by its name alone.
pub fn klusterlet(name: &str) -> Manifest {
    Manifest::with::<Klusterlet>(&meta(None, name), Value::Null)
}

/// An AppliedManifestWork by its name alone.
pub fn applied_work(name: &str) -> Manifest {
    Manifest::with::<AppliedManifestWork>(&meta(None, name), Value::Null)
}

/// The operator's Deployment by its name alone.
pub fn operator() -> Manifest {
    Manifest::with::<Deployment>(&meta(Some(namespaces::OPERATOR), operators::KLUSTERLET), Value::Null)
}

/// The rights of a Klusterlet's agents outside of their namespace, which the operator deletes with it. Upstream:
/// `manifests/klusterlet/{managed,management}`.
pub fn rights_of_agents(klusterlet: &str) -> Vec<Manifest> {
    const PARTS: [&str; 6] = [
        "registration:agent",
        "registration:addon-management",
        "work:agent",
        "work:aggregate",
        "work:execution",
        "work:execution-admin",
    ];
    let managed = PARTS.iter().map(|part| format!("open-cluster-management:{klusterlet}-{part}"));
    let hosting = format!("open-cluster-management:management:{klusterlet}-registration:addon-management");
    let both = |name: String| {
        let metadata = meta(None, &name);
        [
            Manifest::with::<ClusterRoleBinding>(&metadata, Value::Null),
            Manifest::with::<ClusterRole>(&metadata, Value::Null),
        ]
    };
    // How agents verify who asks for their metrics.
    let space = Some("kube-system");
    let management = format!("open-cluster-management:management:{klusterlet}");
    let bindings = ["-registration:agent", "-work:agent"].map(|part| meta(space, &format!("{management}{part}")));
    let role = meta(space, &format!("{management}:extension-apiserver"));
    let system = bindings.iter().map(|binding| Manifest::with::<RoleBinding>(binding, Value::Null));
    let system = system.chain([Manifest::with::<Role>(&role, Value::Null)]);
    managed.chain([hosting]).flat_map(both).chain(system).collect()
}

/// The binding by which the account of a Klusterlet's work agent has its rights, by its name alone.
pub fn binding_of_agent(klusterlet: &str) -> Manifest {
    let name = format!("open-cluster-management:{klusterlet}-work:agent");
    Manifest::with::<ClusterRoleBinding>(&meta(None, &name), Value::Null)
}

/// The Klusterlet whose agents have this ClusterRole on their managed cluster; none of any other role.
pub fn klusterlet_of_role(role: &str) -> Option<&str> {
    let name = role.strip_prefix("open-cluster-management:")?.strip_suffix("-work:agent")?;
    (!name.contains(':')).then_some(name)
}

/// What the operator leaves when its pods have ended: its rights, its account, its lease, and, unless the hub's operator
/// uses it too, the credentials of its images.
pub fn of_operator(beside_hub: bool) -> Vec<Manifest> {
    let (space, name) = (Some(namespaces::OPERATOR), operators::KLUSTERLET);
    let mut all = vec![
        Manifest::with::<ClusterRoleBinding>(&meta(None, name), Value::Null),
        Manifest::with::<ClusterRole>(&meta(None, name), Value::Null),
        Manifest::with::<ServiceAccount>(&meta(space, name), Value::Null),
        lease::manifest(namespaces::OPERATOR, operators::KLUSTERLET_LOCK),
    ];
    if !beside_hub {
        all.push(Manifest::with::<Secret>(&meta(space, secrets::IMAGE_PULL_CREDENTIALS), Value::Null));
    }
    all
}

/// Definitions of a managed cluster, with the plural and the group of each. They stay as long as there are objects of their
/// kind: some are people's own.
pub fn definitions() -> Vec<(Manifest, &'static str, &'static str)> {
    const ALL: [(&str, &str, &str); 3] = [
        (crds::KLUSTERLET_NAME, "klusterlets", "operator.open-cluster-management.io"),
        (
            "appliedmanifestworks.work.open-cluster-management.io",
            "appliedmanifestworks",
            "work.open-cluster-management.io",
        ),
        ("clusterclaims.cluster.open-cluster-management.io", "clusterclaims", "cluster.open-cluster-management.io"),
    ];
    ALL.iter()
        .map(|(name, plural, group)| {
            (Manifest::with::<CustomResourceDefinition>(&meta(None, name), Value::Null), *plural, *group)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reason;

    fn known(name: &str, cluster: &str, mode: &str) -> Known {
        let klusterlet = serde_json::from_value(json!({
            "apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": {"name": name},
            "spec": {"clusterName": cluster, "namespace": "open-cluster-management-x", "deployOption": {"mode": mode}},
        }));
        Known { klusterlet: klusterlet.unwrap(), cluster: Some(cluster.to_owned()) }
    }

    fn chosen<'a>(
        all: &'a [Known],
        cluster: Option<&str>,
        klusterlet: Option<&str>,
    ) -> Result<Option<&'a str>, Reason> {
        choose(all, cluster, klusterlet, "cluster \"a\"")
            .map(|found| found.map(Known::name))
            .map_err(|failure| failure.reason)
    }

    #[test]
    fn the_klusterlet_of_the_cluster_is_chosen_and_never_another_one() {
        let all = [known("klusterlet", "sing", "Singleton"), known("hosted", "sh1", "SingletonHosted")];
        assert_eq!(chosen(&all, Some("sh1"), None), Ok(Some("hosted")));
        assert_eq!(chosen(&all, Some("sing"), None), Ok(Some("klusterlet")));
        assert_eq!(chosen(&all, None, Some("hosted")), Ok(Some("hosted")));
        assert_eq!(chosen(&all, Some("sing"), Some("hosted")), Err(Reason::Refused));
        assert_eq!(chosen(&all, Some("gone"), None), Err(Reason::Refused));
        assert_eq!(chosen(&all, None, None), Err(Reason::Usage));
        assert_eq!(chosen(&all[..1], None, None), Ok(Some("klusterlet")));
        assert_eq!(chosen(&[], Some("c1"), None), Ok(None));
        // Two hubs may know a cluster by the same name.
        let twice = [known("k1", "c1", "Default"), known("k2", "c1", "Default")];
        assert_eq!(chosen(&twice, Some("c1"), None), Err(Reason::Usage));
        assert_eq!(chosen(&twice, Some("c1"), Some("k2")), Ok(Some("k2")));
    }

    #[test]
    fn agents_of_a_hosted_cluster_are_in_a_namespace_of_the_klusterlets_name() {
        let hosted = known("hosted", "c1", "Hosted");
        assert_eq!((hosted.agents(), hosted.accounts()), ("hosted", "open-cluster-management-x"));
        let own = known("klusterlet", "c1", "Default");
        assert_eq!((own.agents(), own.accounts()), ("open-cluster-management-x", "open-cluster-management-x"));
    }

    #[test]
    fn agents_are_known_by_their_rights() {
        assert_eq!(klusterlet_of_role("open-cluster-management:klusterlet-work:agent"), Some("klusterlet"));
        for other in [
            "open-cluster-management:management:k-work:agent",
            "open-cluster-management:k-work:execution",
            "k-work:agent",
        ] {
            assert_eq!(klusterlet_of_role(other), None, "{other}");
        }
        assert!(rights_of_agents("k").iter().any(|manifest| klusterlet_of_role(manifest.name()) == Some("k")));
        let binding = binding_of_agent("k").reference();
        assert!(rights_of_agents("k").iter().any(|manifest| manifest.reference() == binding), "{binding}");
    }

    #[test]
    fn beside_a_hub_its_credentials_stay() {
        let is_secret = |manifest: &Manifest| manifest.kind() == "Secret";
        assert!(of_operator(false).iter().any(is_secret));
        assert!(!of_operator(true).iter().any(is_secret));
    }
}

//! Namespaces that a set manages: the agents of all its clusters make them. Upstream:
//! `pkg/registration/hub/managedcluster.managedNamespaceController`, which writes them into the status of each cluster.

use ocm_api::ManagedClusterSet;
use ocm_api::cluster::ManagedNamespaceConfig;

/// Names of the namespaces that a set manages, in the order of the set.
pub fn managed_namespaces(set: &ManagedClusterSet) -> Vec<String> {
    set.spec.managed_namespaces.iter().map(|namespace| namespace.name.clone()).collect()
}

/// What a set manages with these namespaces besides; none if it manages them already.
pub fn namespaces_with(set: &ManagedClusterSet, names: &[String]) -> Option<Vec<ManagedNamespaceConfig>> {
    let known = &set.spec.managed_namespaces;
    let new = names.iter().filter(|name| !known.iter().any(|one| one.name == **name));
    let new: Vec<ManagedNamespaceConfig> = new.map(|name| ManagedNamespaceConfig { name: name.clone() }).collect();
    (!new.is_empty()).then(|| [known.clone(), new].concat())
}

/// What a set manages without these namespaces; none if it manages none of them.
pub fn namespaces_without(set: &ManagedClusterSet, names: &[String]) -> Option<Vec<ManagedNamespaceConfig>> {
    let known = &set.spec.managed_namespaces;
    let left: Vec<ManagedNamespaceConfig> = known.iter().filter(|one| !names.contains(&one.name)).cloned().collect();
    (left.len() < known.len()).then_some(left)
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::ManagedClusterSetSpec;

    use super::*;

    fn set(names: &[&str]) -> ManagedClusterSet {
        let managed = names.iter().map(|name| ManagedNamespaceConfig { name: (*name).to_owned() });
        let spec = ManagedClusterSetSpec { managed_namespaces: managed.collect(), ..ManagedClusterSetSpec::default() };
        ManagedClusterSet::new("prod", spec)
    }

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn told(all: Option<Vec<ManagedNamespaceConfig>>) -> Option<Vec<String>> {
        all.map(|all| all.into_iter().map(|one| one.name).collect())
    }

    #[test]
    fn namespaces_are_added_once_and_taken_away_by_their_names() {
        let prod = set(&["a", "b"]);
        assert_eq!(managed_namespaces(&prod), ["a", "b"]);
        assert_eq!(told(namespaces_with(&prod, &names(&["b", "c"]))), Some(names(&["a", "b", "c"])));
        assert_eq!(told(namespaces_with(&prod, &names(&["b", "a"]))), None);
        assert_eq!(told(namespaces_without(&prod, &names(&["b", "x"]))), Some(names(&["a"])));
        assert_eq!(told(namespaces_without(&prod, &names(&["a", "b"]))), Some(Vec::new()));
        assert_eq!(told(namespaces_without(&prod, &names(&["x"]))), None);
        assert_eq!(told(namespaces_without(&set(&[]), &names(&["a"]))), None);
    }
}

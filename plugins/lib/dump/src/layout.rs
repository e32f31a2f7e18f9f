//! What a file of a must-gather is, by its path: the layout of `oc adm inspect`.

use crate::kind::{Kind, NAMESPACES, PODS};

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A list of all objects of a kind: in a namespace, or of a kind that is in none.
    List(&'static Kind, Option<String>),
    /// One object of a kind, in the folder of its kind.
    One(&'static Kind, Option<String>),
    /// One object of a kind, which says nothing about others.
    Alone(&'static Kind, Option<String>),
    /// The log of a container.
    Log(LogName),
    /// When it was made.
    Timestamp,
    /// Documents that are not of the layout.
    Plain,
}

/// The name of a container's log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogName {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) container: String,
    /// Whether it is that of the run before the present one.
    pub(crate) is_previous: bool,
}

const CLUSTER: &str = "cluster-scoped-resources";
const NAMESPACED: &str = "namespaces";

/// What the file with these parts of a path is, and how many of them name the folder of the must-gather; none: nothing that
/// is read. There may be folders above the layout, such as one for each image that gathered.
pub(crate) fn place(parts: &[&str]) -> Option<(Place, usize)> {
    if let Some(root) = parts.iter().position(|part| *part == CLUSTER) {
        return of_cluster(&parts[root + 1..]).map(|place| (place, root));
    }
    // A namespace may have the name of the folder.
    let roots = parts.iter().enumerate().filter(|(_, part)| **part == NAMESPACED).map(|(at, _)| at);
    if let Some(found) = roots.clone().find_map(|root| Some((of_namespace(&parts[root + 1..])?, root))) {
        return Some(found);
    }
    if roots.count() > 0 {
        return None;
    }
    let (file, root) = parts.split_last()?;
    match *file {
        "timestamp" => Some((Place::Timestamp, root.len())),
        file => stem(file).map(|_| (Place::Plain, 0)),
    }
}

fn of_cluster(parts: &[&str]) -> Option<Place> {
    match parts {
        [group, file] => Some(Place::List(kind(group, stem(file)?).filter(|kind| !kind.is_namespaced)?, None)),
        // Namespaces are taken one by one.
        [group, plural, file] => {
            let kind = kind(group, plural).filter(|kind| !kind.is_namespaced)?;
            stem(file)?;
            Some(if *kind == NAMESPACES { Place::Alone(kind, None) } else { Place::One(kind, None) })
        }
        _ => None,
    }
}

fn of_namespace(parts: &[&str]) -> Option<Place> {
    match parts {
        [namespace, file] => (stem(file)? == *namespace).then_some(Place::Alone(&NAMESPACES, None)),
        [namespace, "pods", pod, file] => {
            (stem(file)? == *pod).then(|| Place::Alone(&PODS, Some((*namespace).to_owned())))
        }
        [namespace, "pods", pod, container, _, "logs", file] => {
            let is_previous = match *file {
                "current.log" => false,
                "previous.log" => true,
                _ => return None,
            };
            let [namespace, pod, container] = [namespace, pod, container].map(|part| (*part).to_owned());
            Some(Place::Log(LogName { namespace, pod, container, is_previous }))
        }
        [namespace, group, file] => {
            let kind = kind(group, stem(file)?).filter(|kind| kind.is_namespaced)?;
            Some(Place::List(kind, Some((*namespace).to_owned())))
        }
        [namespace, group, plural, file] => {
            let kind = kind(group, plural).filter(|kind| kind.is_namespaced)?;
            stem(file).map(|_| Place::One(kind, Some((*namespace).to_owned())))
        }
        _ => None,
    }
}

fn kind(group: &str, plural: &str) -> Option<&'static Kind> {
    Kind::of_resource(if group == "core" { "" } else { group }, plural)
}

/// The name of a file with objects, without its ending.
fn stem(file: &str) -> Option<&str> {
    let (stem, ending) = file.rsplit_once('.')?;
    (matches!(ending, "yaml" | "yml" | "json") && !stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{CLUSTERS, LEASES, SECRETS, WORKS};

    #[test]
    fn the_files_of_oc_adm_inspect_are_known_by_their_paths() {
        let of = |path: &str| place(&path.split('/').collect::<Vec<_>>());
        let within = |name: &str| Some(name.to_owned());
        let image = "must-gather.local.1/quay-io-x-sha256-0";
        let cluster = "cluster-scoped-resources/cluster.open-cluster-management.io";
        assert_eq!(of(&format!("{image}/{cluster}/managedclusters/c1.yaml")), Some((Place::One(&CLUSTERS, None), 2)));
        assert_eq!(of(&format!("{cluster}/managedclusters.yaml")), Some((Place::List(&CLUSTERS, None), 0)));
        assert_eq!(of("a/namespaces/n/core/secrets.yaml"), Some((Place::List(&SECRETS, within("n")), 1)));
        assert_eq!(of("namespaces/n/coordination.k8s.io/leases.yaml"), Some((Place::List(&LEASES, within("n")), 0)));
        let works = "namespaces/c1/work.open-cluster-management.io/manifestworks/w.json";
        assert_eq!(of(works), Some((Place::One(&WORKS, within("c1")), 0)));
        assert_eq!(of("namespaces/n/n.yaml"), Some((Place::Alone(&NAMESPACES, None), 0)));
        assert_eq!(
            of("namespaces/namespaces/core/secrets.yaml"),
            Some((Place::List(&SECRETS, within("namespaces")), 0))
        );
        assert_eq!(of("cluster-scoped-resources/core/namespaces/n.yaml"), Some((Place::Alone(&NAMESPACES, None), 0)));
        assert_eq!(of("namespaces/n/pods/p/p.yaml"), Some((Place::Alone(&PODS, within("n")), 0)));
        let [namespace, pod, container] = ["n", "p", "c"].map(str::to_owned);
        let log = LogName { namespace, pod, container, is_previous: true };
        assert_eq!(of("namespaces/n/pods/p/c/c/logs/previous.log"), Some((Place::Log(log), 0)));
        assert_eq!(of("x/timestamp"), Some((Place::Timestamp, 1)));
        assert_eq!(of("dumps/hub.yaml"), Some((Place::Plain, 0)));
        for other in [
            "namespaces/n/core/limitranges.yaml",
            "namespaces/n/pods/p/c/c/healthz/index",
            "namespaces/n/core/secrets.txt",
            "namespaces/n/core/namespaces.yaml",
            "cluster-scoped-resources/core/nodes/n.yaml",
            "cluster-scoped-resources/core/secrets.yaml",
            "event-filter.html",
            ".yaml",
            "",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}

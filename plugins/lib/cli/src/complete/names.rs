//! Names that stand in kubeconfigs. Nothing else of them is kept.

use std::path::{Path, PathBuf};

use ocm_core::yaml;
use serde::Deserialize;

use crate::files::MOST;

/// What has names in a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Contexts,
    Clusters,
    Users,
}

/// Where names come from.
pub(super) trait Names {
    /// Names of a kind, from this kubeconfig or from those that kubectl reads without one.
    fn of(&self, kind: Kind, kubeconfig: Option<&str>) -> Vec<String>;
}

/// The files of the machine. What cannot be read has no names: completion has no errors.
pub(super) struct Kubeconfigs;

impl Names for Kubeconfigs {
    fn of(&self, kind: Kind, kubeconfig: Option<&str>) -> Vec<String> {
        let files = match kubeconfig {
            Some(file) => vec![in_home(file)],
            None => default_files(),
        };
        let mut names = Vec::new();
        for name in files.iter().filter_map(|file| read(file)).flat_map(|file| file.names(kind)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// A path as the shell would make it of what is being typed.
fn in_home(file: &str) -> PathBuf {
    match (file.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(file),
    }
}

fn default_files() -> Vec<PathBuf> {
    match std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect(),
    }
}

fn read(file: &Path) -> Option<File> {
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let text = (size <= MOST).then(|| std::fs::read_to_string(file).ok()).flatten()?;
    parse(&text)
}

fn parse(text: &str) -> Option<File> {
    yaml::from_str(text).ok()
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    contexts: Option<Vec<Named>>,
    #[serde(default)]
    clusters: Option<Vec<Named>>,
    #[serde(default)]
    users: Option<Vec<Named>>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl File {
    fn names(self, kind: Kind) -> Vec<String> {
        let entries = match kind {
            Kind::Contexts => self.contexts,
            Kind::Clusters => self.clusters,
            Kind::Users => self.users,
        };
        entries.unwrap_or_default().into_iter().map(|entry| entry.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_nothing_else() {
        let text = "apiVersion: v1\nkind: Config\ncontexts:\n- name: hub\n  context: { cluster: a }\n- name: c1\n\
                    users:\n- name: admin\n  user: { token: secret }\nclusters: null\n";
        let names = |kind| parse(text).unwrap().names(kind);
        assert_eq!(names(Kind::Contexts), ["hub", "c1"]);
        assert_eq!(names(Kind::Users), ["admin"]);
        assert!(names(Kind::Clusters).is_empty());
        assert!(parse("contexts: [").is_none());
    }
}

//! The module of a source, wherever it lies.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use ocm_core::policy_engine::NAMESPACE;
use ocm_kube::explain;
use ocm_policy_engine::PolicyError;

use super::source::{Key, Source};
use super::store::{Lack, take};

/// Bytes of the largest module of a file.
const LARGEST: u64 = 32 << 20;

/// Why there is no module.
pub(super) enum NoModule {
    /// The policy controller has not fetched it yet.
    NotFetched,
    /// Something is wrong.
    Error(PolicyError),
}

impl From<PolicyError> for NoModule {
    fn from(error: PolicyError) -> Self {
        Self::Error(error)
    }
}

impl Source {
    /// The module.
    pub(super) async fn module(&self, client: &Client, folder: Option<&Path>) -> Result<Vec<u8>, NoModule> {
        Ok(match self {
            Self::Builtin(name) => match ocm_policy_builtin::find(name) {
                Some(builtin) => builtin.module.to_vec(),
                None => Err(PolicyError::Load(unknown(name)))?,
            },
            Self::Path(path) => {
                let folder = folder.ok_or_else(|| {
                    PolicyError::Load(format!(
                        "its module is the file {path}, and this process has no directory of modules"
                    ))
                })?;
                let (folder, path) = (folder.to_owned(), path.clone());
                let read = tokio::task::spawn_blocking(move || read(&folder, &path)).await;
                read.unwrap_or_else(|_| Err(PolicyError::Load("reading its module was interrupted".to_owned())))?
            }
            Self::Unknown => Err(PolicyError::Load("this release does not know the source of its module".to_owned()))?,
            Self::ConfigMap(key) => {
                let found = Api::<ConfigMap>::namespaced(client.clone(), &key.namespace).get(&key.name).await;
                let map = found.map_err(|error| cannot("ConfigMap", key, &explain(&error)))?;
                key.of("ConfigMap", map.binary_data.unwrap_or_default())?
            }
            Self::Secret(key) => {
                let found = Api::<Secret>::namespaced(client.clone(), &key.namespace).get(&key.name).await;
                let secret = found.map_err(|error| cannot("Secret", key, &explain(&error)))?;
                key.of("Secret", secret.data.unwrap_or_default())?
            }
            Self::Oci(_) | Self::Url(_) => match take(client, self).await {
                Ok(kept) => kept.module,
                // What is damaged is fetched anew as well.
                Err(Lack::Missing | Lack::Damaged(_)) => return Err(NoModule::NotFetched),
                Err(Lack::Unread(why)) => {
                    Err(PolicyError::Load(format!("the modules in namespace {NAMESPACE} cannot be read: {why}")))?
                }
            },
        })
    }
}

impl Key {
    fn of(&self, kind: &str, mut data: std::collections::BTreeMap<String, ByteString>) -> Result<Vec<u8>, PolicyError> {
        let missing = || cannot(kind, self, &format_args!("it has no key {:?} with a module", self.key));
        data.remove(&self.key).map(|ByteString(bytes)| bytes).ok_or_else(missing)
    }
}

/// A file below a folder. Links are those of whoever filled it, as volumes of Kubernetes have them.
fn read(folder: &Path, path: &str) -> Result<Vec<u8>, PolicyError> {
    let cannot =
        |why: &dyn std::fmt::Display| PolicyError::Load(format!("the file {path} in the directory of modules: {why}"));
    // Not only what the API server lets pass: whoever reads the files of a pod may read its credentials.
    if path.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return Err(cannot(&"it is no path below it"));
    }
    let whole = folder.join(path);
    // Whoever opens what is no file may wait for ever.
    if !std::fs::metadata(&whole).map_err(|error| cannot(&error))?.is_file() {
        return Err(cannot(&"it is no file"));
    }
    let mut module = Vec::new();
    let file = File::open(whole).map_err(|error| cannot(&error))?;
    file.take(LARGEST + 1).read_to_end(&mut module).map_err(|error| cannot(&error))?;
    if module.len() as u64 > LARGEST {
        return Err(cannot(&format_args!("it is larger than {} MiB", LARGEST >> 20)));
    }
    Ok(module)
}

fn cannot(kind: &str, key: &Key, why: &dyn std::fmt::Display) -> PolicyError {
    PolicyError::Load(format!("{kind} {}/{}: {why}", key.namespace, key.name))
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = ocm_policy_builtin::ALL.iter().map(|builtin| builtin.name).collect();
    format!("there is no built-in policy {name:?}; there are: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_below_the_folder_and_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let modules = folder.path().join("modules");
        std::fs::create_dir_all(modules.join("team")).expect("a folder");
        std::fs::write(modules.join("team/names.wasm"), b"m").expect("a file");
        std::fs::write(folder.path().join("token"), b"secret").expect("a file");
        let of = |path: &str| read(&modules, path);
        assert_eq!(of("team/names.wasm"), Ok(b"m".to_vec()));
        let outside = folder.path().join("token").display().to_string();
        for (path, why) in [
            ("../token", "no path below it"),
            ("team/../../token", "no path below it"),
            (&outside, "no path below it"),
            ("team//names.wasm", "no path below it"),
            ("", "no path below it"),
            (".hidden", "no path below it"),
            ("team", "it is no file"),
            ("none.wasm", "No such file"),
        ] {
            let said = of(path).unwrap_err().to_string();
            assert!(said.contains(why) && !said.contains("secret"), "{path}: {said}");
        }
        let large = File::create(modules.join("large.wasm")).expect("a file");
        large.set_len(LARGEST + 1).expect("it grows");
        assert!(of("large.wasm").unwrap_err().to_string().contains("larger than 32 MiB"));
    }
}

//! Where modules come from.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use ocm_kube::explain;
use ocm_policy_engine::PolicyError;

/// Where a module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It comes along.
    Builtin(String),
    /// In a ConfigMap's `binaryData`.
    ConfigMap(Key),
    /// In a Secret's `data`.
    Secret(Key),
    /// Somewhere that this release does not know.
    Unknown,
}

/// A key of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Namespace of the object.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key.
    pub key: String,
}

impl Source {
    /// The module.
    pub(super) async fn module(&self, client: &Client) -> Result<Vec<u8>, PolicyError> {
        match self {
            Self::Builtin(name) => match ocm_policy_builtin::find(name) {
                Some(builtin) => Ok(builtin.module.to_vec()),
                None => Err(PolicyError::Load(unknown(name))),
            },
            Self::Unknown => Err(PolicyError::Load("this release does not know the source of its module".to_owned())),
            Self::ConfigMap(key) => {
                let found = Api::<ConfigMap>::namespaced(client.clone(), &key.namespace).get(&key.name).await;
                let map = found.map_err(|error| cannot("ConfigMap", key, &explain(&error)))?;
                key.of("ConfigMap", map.binary_data.unwrap_or_default())
            }
            Self::Secret(key) => {
                let found = Api::<Secret>::namespaced(client.clone(), &key.namespace).get(&key.name).await;
                let secret = found.map_err(|error| cannot("Secret", key, &explain(&error)))?;
                key.of("Secret", secret.data.unwrap_or_default())
            }
        }
    }
}

impl Key {
    fn of(&self, kind: &str, mut data: std::collections::BTreeMap<String, ByteString>) -> Result<Vec<u8>, PolicyError> {
        let missing = || cannot(kind, self, &format_args!("it has no key {:?} with a module", self.key));
        data.remove(&self.key).map(|ByteString(bytes)| bytes).ok_or_else(missing)
    }
}

fn cannot(kind: &str, key: &Key, why: &dyn std::fmt::Display) -> PolicyError {
    PolicyError::Load(format!("{kind} {}/{}: {why}", key.namespace, key.name))
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = ocm_policy_builtin::ALL.iter().map(|builtin| builtin.name).collect();
    format!("no policy {name:?} comes along; these do: {}", names.join(", "))
}

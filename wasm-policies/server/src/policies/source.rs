//! Where modules come from.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use ocm_api::policy::{OciSource, UrlSource};
use ocm_core::policy_engine::NAMESPACE;
use ocm_kube::explain;
use ocm_policy_engine::PolicyError;

use super::store::{Lack, take};

/// Where a module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It comes along.
    Builtin(String),
    /// In a ConfigMap's `binaryData`.
    ConfigMap(Key),
    /// In a Secret's `data`.
    Secret(Key),
    /// In an image of a registry, from which the policy controller fetches it.
    Oci(Box<OciSource>),
    /// In a file of a web server, from which the policy controller fetches it.
    Url(UrlSource),
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
    /// Whether it is always the same module, so that nobody has to look at it again.
    pub(super) const fn is_fixed(&self) -> bool {
        matches!(self, Self::Builtin(_) | Self::Oci(_) | Self::Url(_))
    }

    /// Whether it lies where the policy controller writes, so that its digest has to be known to whoever loads it.
    pub(super) fn has_to_be_pinned(&self) -> bool {
        matches!(self, Self::ConfigMap(key) | Self::Secret(key) if key.namespace == NAMESPACE)
    }

    /// Whether the policy controller fetches it from elsewhere.
    pub const fn is_fetched(&self) -> bool {
        matches!(self, Self::Oci(_) | Self::Url(_))
    }

    /// The module.
    pub(super) async fn module(&self, client: &Client) -> Result<Vec<u8>, NoModule> {
        Ok(match self {
            Self::Builtin(name) => match ocm_policy_builtin::find(name) {
                Some(builtin) => builtin.module.to_vec(),
                None => Err(PolicyError::Load(unknown(name)))?,
            },
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

fn cannot(kind: &str, key: &Key, why: &dyn std::fmt::Display) -> PolicyError {
    PolicyError::Load(format!("{kind} {}/{}: {why}", key.namespace, key.name))
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = ocm_policy_builtin::ALL.iter().map(|builtin| builtin.name).collect();
    format!("no policy {name:?} comes along; these do: {}", names.join(", "))
}

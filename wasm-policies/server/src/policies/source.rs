//! Where modules come from, and whose they are.

use std::fmt;

use ocm_api::policy::{OciSource, UrlSource};
use ocm_core::policy_engine::NAMESPACE;

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
    /// In a file below the directory of modules.
    Path(String),
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

/// Whose module it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfPolicy {
    /// The name of the policy.
    pub name: String,
    /// Whether it is its candidate's.
    pub candidate: bool,
}

impl fmt::Display for OfPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.candidate { "the candidate of " } else { "" };
        write!(f, "{what}policy {}", self.name)
    }
}

impl Source {
    /// Whether it is always the same module, so that nobody has to look at it again.
    pub(super) const fn is_fixed(&self) -> bool {
        // A file has to have the digest that its policy names.
        matches!(self, Self::Builtin(_) | Self::Oci(_) | Self::Url(_) | Self::Path(_))
    }

    /// Why its digest has to be known to whoever loads it; none: it does not.
    pub(super) fn has_to_be_pinned(&self) -> Option<&'static str> {
        match self {
            Self::ConfigMap(key) | Self::Secret(key) if key.namespace == NAMESPACE => {
                Some("the policy controller may change objects of its namespace")
            }
            Self::Path(_) => Some("each pod has files of its own"),
            _ => None,
        }
    }

    /// Whether the policy controller fetches it from elsewhere.
    pub const fn is_fetched(&self) -> bool {
        matches!(self, Self::Oci(_) | Self::Url(_))
    }
}

//! Why files of policies cannot be applied.

use std::fmt;

/// The most bytes that the entries of a ConfigMap or a Secret may have together, as the API server has it.
pub const MAX_DATA: usize = 1 << 20;

/// What holds modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// `binaryData` of a ConfigMap.
    ConfigMap,
    /// `data` of a Secret.
    Secret,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why files cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// A document is no object of Kubernetes.
    #[error("{document} must be a Kubernetes object with apiVersion and kind")]
    NoObject {
        /// Which one.
        document: String,
    },
    /// It is of a kind that has no place here.
    #[error(
        "{document} is of the kind {kind} of {api_version}, and only HubPolicy, ConfigMap and Secret can be applied"
    )]
    Kind {
        /// Which one.
        document: String,
        /// Its kind.
        kind: String,
        /// Its group and version.
        api_version: String,
    },
    /// It cannot be read as what it says to be.
    #[error("{document} is no {kind}: {why}")]
    Unreadable {
        /// Which one.
        document: String,
        /// What it says to be.
        kind: &'static str,
        /// What the parser said.
        why: String,
    },
    /// It has no name, or no namespace.
    #[error("{document}, a {kind}, has no metadata.{member}")]
    Missing {
        /// Which one.
        document: String,
        /// What it is.
        kind: &'static str,
        /// What is missing.
        member: &'static str,
    },
    /// A policy cannot have this name.
    #[error("{document}: {name:?} cannot be the name of a HubPolicy, which is a DNS label of at most 63 characters")]
    Name {
        /// Which one.
        document: String,
        /// The name.
        name: String,
    },
    /// An object stands there twice.
    #[error("{document}: {reference} stands in the files before")]
    Twice {
        /// The second one.
        document: String,
        /// The object.
        reference: String,
    },
    /// Nothing stands there.
    #[error("the files hold no object")]
    Nothing,
    /// The object that a policy takes its module from is there, and its module is not in it.
    #[error("policy {policy:?} takes its module from the key {key:?} of {holder} {namespace}/{name}, which has {has}")]
    NoKey {
        /// The policy.
        policy: String,
        /// What holds the module.
        holder: Holder,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
        /// The keys that there are, in words.
        has: String,
    },
    /// More than fits into one object.
    #[error("{holder} {namespace}/{name} would hold {bytes} bytes, and at most {MAX_DATA} fit into one")]
    TooLarge {
        /// What it is.
        holder: Holder,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// How many they are.
        bytes: usize,
    },
    /// A module was given for a policy that is not in the files.
    #[error("the files hold no HubPolicy {policy:?} for the module")]
    NoPolicy {
        /// The policy.
        policy: String,
    },
    /// A module was given for a policy that takes it from something else.
    #[error("policy {policy:?} does not take its module from a ConfigMap")]
    NoConfigMap {
        /// The policy.
        policy: String,
    },
}

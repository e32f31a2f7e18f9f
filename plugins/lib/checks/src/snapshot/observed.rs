//! A part of a snapshot: what was read, or why it could not be.

use ocm_api::member::Member;
use ocm_core::redact::redact_start;
use ocm_core::workload::Health;
use ocm_core::{Failure, Reason};
use serde::Serialize;

/// What was read, or why it could not be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Observed<T> {
    /// It was read.
    Read(T),
    /// It could not be read.
    Trouble(Trouble),
    /// Nobody asked for it.
    #[default]
    NotAsked,
}

impl<T> Observed<T> {
    /// What was read.
    pub fn read(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Trouble(_) | Self::NotAsked => None,
        }
    }

    /// The result of a request that needs the right of `rule`.
    pub fn of(result: Result<T, Failure>, rule: PolicyRule) -> Self {
        match result {
            Ok(value) => Self::Read(value),
            Err(failure) => Self::Trouble(Trouble::of(&failure, Some(rule))),
        }
    }
}

impl<T> From<Result<T, Trouble>> for Observed<T> {
    fn from(result: Result<T, Trouble>) -> Self {
        match result {
            Ok(value) => Self::Read(value),
            Err(trouble) => Self::Trouble(trouble),
        }
    }
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// The kind of trouble.
    pub reason: Reason,
    /// One sentence, and what lies behind it.
    pub message: String,
    /// The right that would allow it, where it is for want of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<PolicyRule>,
    /// The part of the message that does not depend on what was asked for; empty: all of it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub behind: String,
}

impl Trouble {
    /// The trouble of a failed request; `rule` is the right that it needs.
    pub fn of(failure: &Failure, rule: Option<PolicyRule>) -> Self {
        let rule = rule.filter(|_| failure.reason == Reason::Forbidden);
        let [message, behind] = [failure.to_string(), failure.causes.join(": ")].map(|text| redact_start(&text));
        Self { reason: failure.reason, message, rule, behind }
    }
}

/// A right, as a role of RBAC grants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// API group; empty: the core group.
    pub group: String,
    /// Resource in the plural.
    pub resource: String,
    /// Verb.
    pub verb: String,
    /// Namespace in which it is needed; none: in all, or the resource has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl PolicyRule {
    /// The right to do `verb` with a resource.
    pub fn new(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }
}

impl std::fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { group, resource, verb, namespace } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{verb} {resource}{dot}{group}")?;
        namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in namespace {namespace}"))
    }
}

/// Which object something was, and how: whoever changes it later changes that one or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The UID, which no other object ever has.
    pub uid: String,
    /// The API server's `resourceVersion`, which every change replaces.
    pub resource_version: String,
}

/// A Deployment: how it is, and from which images it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many pods it is to have.
    pub replicas: i32,
    /// How it is.
    pub health: Health,
    /// The images of its containers.
    #[serde(default)]
    pub images: Vec<String>,
}

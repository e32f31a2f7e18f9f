//! What the hub answers to the credentials of agents, as seen from where the command runs or from beside the agents.

use ocm_api::member::Member;
use serde::Serialize;

use super::observed::Trouble;

/// A question to the hub with a credential of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The Klusterlet whose agents have the credential.
    pub klusterlet: String,
    /// Which credential.
    pub credential: Credential,
    /// The address that was dialled.
    pub server: String,
    /// The proxy on the way, without credentials.
    #[serde(default)]
    pub proxy: Option<String>,
    /// Whether that proxy is the one that this machine's environment names, and not the agent's.
    #[serde(default)]
    pub is_own_proxy: bool,
    /// What came of it.
    pub answer: Answer,
}

/// A credential of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Credential {
    /// What it registers with.
    Bootstrap,
    /// What it was let in with.
    Identity,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The hub knows who asks; or, where no credential was sent, it is one that the agent trusts.
    Known,
    /// No connection, no trust, or the hub does not know who asks: the reason tells which.
    Refused(Trouble),
    /// It could not be asked from there.
    NotAsked(Trouble),
}

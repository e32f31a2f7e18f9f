//! The software that verifies certificates.

use ocm_api::member::Member;
use serde::Serialize;

/// Software that verifies certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub enum Client {
    /// rustls with webpki: our own commands, and the webhook of the policy engine.
    Rustls,
    /// Go: agents, API servers, kubectl.
    Go,
    /// OpenSSL at security level 2, which most systems have.
    OpenSsl,
}

impl Client {
    /// Every client.
    pub const ALL: [Self; 3] = [Self::Rustls, Self::Go, Self::OpenSsl];

    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Rustls => "rustls (kubectl ocm)",
            Self::Go => "Go (agents, API servers, kubectl)",
            Self::OpenSsl => "OpenSSL",
        }
    }
}

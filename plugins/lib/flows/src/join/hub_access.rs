//! How the hub is reached, and why it is believed to be the hub.

use ocm_core::pin::Pin;
use ocm_kube::Cluster;
use secrecy::SecretString;

use crate::hub::AddressOptions;

/// How the hub is reached.
#[derive(Clone)]
pub enum HubAccess {
    /// With a token that somebody else made.
    Token {
        /// The token.
        token: SecretString,
        /// The hub's address as agents dial it.
        server: String,
        /// Why the hub is believed to be the hub.
        trust: Trust,
    },
    /// With access to both clusters: the user holds the hub's kubeconfig too.
    Kubeconfig {
        /// The hub.
        hub: Box<Cluster>,
        /// Where agents find it.
        address: AddressOptions,
    },
}

/// Why a hub is believed to be the hub. Empty: the system's authorities vouch for it.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Keys of authorities.
    pub pins: Vec<Pin>,
    /// Certificates of authorities.
    pub ca: Vec<Vec<u8>>,
    /// Nobody: the user typed that verification be skipped.
    pub skip: bool,
}

/// Why the hub was believed to be the hub in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedBy {
    /// The user's own kubeconfig of it.
    Kubeconfig,
    /// The key of its CA was given.
    Pin,
    /// Its CA was given.
    Ca,
    /// The authorities of this machine's system vouch for it.
    System,
    /// Nothing: the user typed that verification be skipped.
    Nothing,
}

impl Trust {
    /// What of it decides.
    pub(super) fn by(&self) -> TrustedBy {
        match self {
            Self { skip: true, .. } => TrustedBy::Nothing,
            Self { ca, .. } if !ca.is_empty() => TrustedBy::Ca,
            Self { pins, .. } if !pins.is_empty() => TrustedBy::Pin,
            Self { .. } => TrustedBy::System,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_about_a_hub_decides_why_it_is_trusted() {
        let pins = vec![format!("sha256:{}", "0".repeat(64)).parse().unwrap()];
        let trust = Trust::default();
        assert_eq!(trust.by(), TrustedBy::System);
        let trust = Trust { pins, ..trust };
        assert_eq!(trust.by(), TrustedBy::Pin);
        let trust = Trust { ca: vec![Vec::new()], ..trust };
        assert_eq!(trust.by(), TrustedBy::Ca);
        assert_eq!(Trust { skip: true, ..trust }.by(), TrustedBy::Nothing);
    }
}

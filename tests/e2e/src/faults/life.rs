//! For how long an agent's certificate is valid.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ocm_api::names::{identity, secrets};
use serde_json::{Value, json};

use super::pair::Pair;

/// How much is left of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Nothing: it has ended.
    Ended,
    /// Less than a tenth: it should have been renewed long ago.
    NearlyOver,
    /// Less than a fifth: agents renew it.
    Due,
}

impl Life {
    /// When it begins and ends, in days from now.
    const fn days(self) -> Range<i64> {
        match self {
            Self::Ended => -60..-30,
            Self::NearlyOver => -30..1,
            Self::Due => -26..5,
        }
    }

    /// Whether the agent has another one by itself as soon as nothing keeps it from asking.
    pub(super) const fn is_renewed(self) -> bool {
        matches!(self, Self::Due)
    }

    /// A certificate of the agent with this name, with its key, as its Secret has them.
    pub(super) fn certificate(self, pair: &Pair<'_>, agent: &str) -> Value {
        let group = identity::cluster_group(pair.name);
        let (user, groups) = (format!("{group}:{agent}"), [group.as_str(), identity::MANAGED_CLUSTERS_GROUP]);
        let (certificate, key) = pair.hub.user_certificate(&user, &groups, &self.days()).unwrap();
        json!({(secrets::TLS_CERT_KEY): STANDARD.encode(certificate), (secrets::TLS_KEY_KEY): STANDARD.encode(key)})
    }
}

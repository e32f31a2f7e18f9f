//! The profiles that ask for a version of TLS, and the settings of Open Cluster Management's servers.

pub use ocm_core::tls::Version;
use serde::{Deserialize, Serialize};

/// What is asked of a server's TLS. The names are those of Mozilla's recommendations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// TLS 1.3 only.
    Modern,
    /// TLS 1.2 and newer.
    #[default]
    Intermediate,
    /// What the hub's ConfigMap `ocm-tls-profile` says, of every server; where there is none, TLS 1.2 and newer, which is what
    /// servers of Open Cluster Management have by default.
    Ocm,
}

/// What is asked of one server's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Demands {
    /// The oldest version that it may accept.
    pub(super) minimum: Version,
    /// The cipher suites of TLS 1.2 that it may agree on; empty: any.
    pub(super) suites: Vec<String>,
}

impl Demands {
    /// Whether it may agree on a cipher suite of TLS 1.2.
    pub(super) fn allows(&self, suite: &str) -> bool {
        // Go has two names for some.
        let normal = |suite: &str| match suite.strip_suffix("_CHACHA20_POLY1305") {
            Some(start) => format!("{start}_CHACHA20_POLY1305_SHA256"),
            None => suite.to_owned(),
        };
        self.suites.is_empty() || self.suites.iter().any(|named| normal(named) == normal(suite))
    }
}

impl Profile {
    /// The oldest version that it lets a server accept.
    pub const fn minimum(self) -> Version {
        match self {
            Self::Modern => Version::Tls13,
            Self::Intermediate | Self::Ocm => Version::Tls12,
        }
    }

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Intermediate => "intermediate",
            Self::Ocm => "ocm",
        }
    }
}

/// What a ConfigMap `ocm-tls-profile` says, word for word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsSettings {
    /// The oldest version; none: the servers' default, TLS 1.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tls_version: Option<String>,
    /// The cipher suites, separated by commas; none: the servers' default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher_suites: Option<String>,
}

/// The cipher suites of TLS 1.2 and older that Go knows; it refuses other names, and servers do not start with them.
const SUITES: &[&str] = &[
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
];

/// The cipher suites of TLS 1.3, which are always on and are taken as names.
const SUITES_13: &[&str] = &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

impl TlsSettings {
    /// What is wrong with them, a sentence each.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let version = self.min_tls_version.as_deref().filter(|text| !text.is_empty()).map(str::parse::<Version>);
        if let Some(Err(error)) = &version {
            mistakes.push(format!("minTLSVersion: {error}"));
        }
        if let Some(Ok(Version::Tls10 | Version::Tls11)) = version {
            mistakes.push("minTLSVersion allows versions older than TLS 1.2, which are broken".to_owned());
        }
        let suites = self.suites();
        for suite in &suites {
            if !SUITES.contains(suite) && !SUITES_13.contains(suite) {
                mistakes.push(format!("cipherSuites: {suite:?} is no cipher suite by its IANA name"));
            } else if ["_RC4_", "_3DES_"].iter().any(|weak| suite.contains(weak)) {
                mistakes.push(format!("cipherSuites: {suite} is broken"));
            }
        }
        if version == Some(Ok(Version::Tls13)) && suites.iter().any(|suite| !SUITES_13.contains(suite)) {
            mistakes
                .push("cipherSuites count for nothing: TLS 1.3 has its own, and nothing older is allowed".to_owned());
        }
        mistakes
    }

    /// The cipher suites that they name; empty: the servers' default.
    pub fn suites(&self) -> Vec<&str> {
        let all = self.cipher_suites.iter().flat_map(|list| list.split(',')).map(str::trim);
        all.filter(|suite| !suite.is_empty()).collect()
    }

    /// The oldest version that servers accept by them.
    pub fn minimum(&self) -> Version {
        self.min_tls_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(Version::Tls12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(version: &str, suites: &str) -> Vec<String> {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        TlsSettings { min_tls_version: text(version), cipher_suites: text(suites) }.mistakes()
    }

    #[test]
    fn right_settings_have_no_mistakes() {
        for (version, suites) in [
            ("", ""),
            ("VersionTLS12", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256"),
            ("TLSv1.3", "TLS_AES_128_GCM_SHA256"),
        ] {
            assert_eq!(mistakes(version, suites), [""; 0], "{version} {suites}");
        }
    }

    #[test]
    fn each_mistake_is_told() {
        for (version, suites, words) in [
            ("1.2", "", "no version of TLS"),
            ("VersionTLS10", "", "older than TLS 1.2"),
            ("", "ECDHE-RSA-AES128-GCM-SHA256", "IANA name"),
            ("", "TLS_RSA_WITH_RC4_128_SHA", "is broken"),
            ("VersionTLS13", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "count for nothing"),
        ] {
            let found = mistakes(version, suites);
            assert!(matches!(found.as_slice(), [only] if only.contains(words)), "{words:?}: {found:?}");
        }
    }

    #[test]
    fn servers_accept_what_they_are_told() {
        let settings = |text: &str| TlsSettings { min_tls_version: Some(text.to_owned()), cipher_suites: None };
        assert_eq!(settings("VersionTLS13").minimum(), Version::Tls13);
        assert_eq!(settings("new").minimum(), Version::Tls12);
        assert_eq!(TlsSettings::default().minimum(), Version::Tls12);
    }

    #[test]
    fn any_suite_is_allowed_where_none_is_named_and_a_suite_has_both_of_its_names() {
        let demands = |suites: &str| Demands {
            minimum: Version::Tls12,
            suites: suites.split_whitespace().map(str::to_owned).collect(),
        };
        let chacha = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
        for (suites, allowed) in [
            ("", true),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", true),
            (chacha, true),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", false),
            ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", false),
        ] {
            assert_eq!(demands(suites).allows(chacha), allowed, "{suites}");
        }
    }
}

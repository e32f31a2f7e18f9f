//! The profiles that ask for versions and cipher suites of TLS, and the settings of Open Cluster Management's servers.

use ocm_api::member::Member;
pub use ocm_core::tls::Version;
use serde::Serialize;

/// What is asked of a server's TLS. The names `modern`, `intermediate` and `old` are those of Mozilla's recommendations, which
/// OpenShift has, too (`TLSProfiles` of `config/v1` in openshift/api).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// TLS 1.3 only.
    Modern,
    /// TLS 1.2 and newer, with cipher suites that exchange a new key each time and authenticate what they encrypt.
    Intermediate,
    /// TLS 1.0 and newer, with what old clients have.
    Old,
    /// What servers of Kubernetes have by default (`CipherSuites` of `crypto/tls` since Go 1.23): TLS 1.2 and newer, with the
    /// cipher suites of `intermediate` and those that exchange a new key each time and encrypt by AES in CBC mode with SHA-1.
    #[default]
    Kubernetes,
    /// What the hub's ConfigMap `ocm-tls-profile` says, of every server; what it does not say is as in `kubernetes`, which is what
    /// servers of Open Cluster Management have by default.
    Ocm,
}

/// The cipher suites of TLS 1.2 that every profile has which allows it.
const STRONG: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Those which servers written in Go have besides.
const OF_GO: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
];

/// Those which only old clients need besides.
const OF_OLD: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
];

/// What is asked of one server's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Demands<'a> {
    /// The oldest version that it may accept.
    pub(super) minimum: Version,
    /// The profile that asks for it.
    pub(super) profile: Profile,
    /// The cipher suites that the hub's settings name, where they are for this server; empty: they name none.
    pub(super) suites: &'a [String],
}

/// Whether two names are of one cipher suite: Go has two for some.
fn is_same(one: &str, other: &str) -> bool {
    let short =
        |suite: &str| suite.strip_suffix("_CHACHA20_POLY1305_SHA256").map(|start| format!("{start}_CHACHA20_POLY1305"));
    one == other || short(one).is_some_and(|short| short == other) || short(other).is_some_and(|short| short == one)
}

impl Demands<'_> {
    /// The cipher suites of TLS 1.2 that it may accept: those of the profile that the settings name, or all that they name where
    /// they are the profile.
    pub(super) fn allowed(&self) -> Vec<&str> {
        if self.suites.is_empty() {
            return self.profile.suites().collect();
        }
        let named = self.suites.iter().map(String::as_str);
        let has = |suite: &str| self.profile.suites().any(|own| is_same(own, suite));
        named.filter(|suite| self.profile == Profile::Ocm || has(suite)).collect()
    }

    /// Whether it may accept a cipher suite of TLS 1.2.
    pub(super) fn allows(&self, suite: &str) -> bool {
        self.allowed().into_iter().any(|allowed| is_same(allowed, suite))
    }

    /// Who asks for it, in words.
    pub(super) fn source(&self) -> String {
        match self.profile {
            profile if self.suites.is_empty() => format!("the profile {}", profile.word()),
            Profile::Ocm => "the ConfigMap ocm-tls-profile".to_owned(),
            profile => format!("the profile {} with the ConfigMap ocm-tls-profile", profile.word()),
        }
    }
}

impl Profile {
    /// The oldest version that it lets a server accept.
    pub const fn minimum(self) -> Version {
        match self {
            Self::Modern => Version::Tls13,
            Self::Intermediate | Self::Kubernetes | Self::Ocm => Version::Tls12,
            Self::Old => Version::Tls10,
        }
    }

    /// The cipher suites of TLS 1.2 that it lets a server accept, by their IANA names; none: TLS 1.2 is not allowed at all.
    pub fn suites(self) -> impl Iterator<Item = &'static str> {
        let lists: &[&[&str]] = match self {
            Self::Modern => &[],
            Self::Intermediate => &[STRONG],
            Self::Kubernetes | Self::Ocm => &[STRONG, OF_GO],
            Self::Old => &[STRONG, OF_GO, OF_OLD],
        };
        lists.iter().copied().flatten().copied()
    }

    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Intermediate => "intermediate",
            Self::Old => "old",
            Self::Kubernetes => "kubernetes",
            Self::Ocm => "ocm",
        }
    }
}

/// What a ConfigMap `ocm-tls-profile` says, word for word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Member)]
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

/// One of these has to be among the cipher suites of a server with HTTP/2 that accepts TLS 1.2 (RFC 9113 section 9.2.2). Go does
/// not start it otherwise (`ConfigureServer` of `golang.org/x/net/http2`).
const OF_HTTP2: [&str; 2] = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];

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
        let is_known = |suite: &&str| SUITES.contains(suite) || SUITES_13.contains(suite);
        for suite in &suites {
            if !is_known(suite) {
                mistakes.push(format!("cipherSuites: {suite:?} is no cipher suite by its IANA name"));
            } else if ["_RC4_", "_3DES_"].iter().any(|weak| suite.contains(weak)) {
                mistakes.push(format!("cipherSuites: {suite} is broken"));
            }
        }
        if version == Some(Ok(Version::Tls13)) && suites.iter().any(|suite| !SUITES_13.contains(suite)) {
            mistakes
                .push("cipherSuites count for nothing: TLS 1.3 has its own, and nothing older is allowed".to_owned());
        }
        // What is not known is to be corrected first.
        let is_list = !suites.is_empty() && suites.iter().all(is_known) && self.minimum() <= Version::Tls12;
        if is_list && !suites.iter().any(|suite| OF_HTTP2.contains(suite)) {
            let [rsa, ecdsa] = OF_HTTP2;
            mistakes.push(format!(
                "cipherSuites name neither {rsa} nor {ecdsa}: without one of them no server with HTTP/2 starts"
            ));
        }
        mistakes
    }

    /// Whether clients of TLS 1.2 agree with a server whose certificate has a key of this kind: with RSA or, otherwise, ECDSA. So
    /// they do where no cipher suites of TLS 1.2 are named, or TLS 1.2 is not allowed.
    pub fn fits(&self, is_rsa: bool) -> bool {
        let kind = if is_rsa { "_RSA_WITH_" } else { "_ECDSA_WITH_" };
        let suites = self.suites();
        let mut older = suites.iter().filter(|suite| SUITES.contains(suite)).peekable();
        self.minimum() > Version::Tls12 || older.peek().is_none() || older.any(|suite| suite.contains(kind))
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
            ("", "TLS_RSA_WITH_RC4_128_SHA,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "is broken"),
            ("", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "HTTP/2"),
            ("", "TLS_AES_128_GCM_SHA256", "HTTP/2"),
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

    fn demands(profile: Profile, suites: &[String]) -> Demands<'_> {
        Demands { minimum: Version::Tls12, profile, suites }
    }

    fn named(suites: &str) -> Vec<String> {
        suites.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_suites_of_the_profile_are_allowed_where_none_is_named_and_a_suite_has_both_of_its_names() {
        let chacha = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
        for (suites, allowed) in [
            ("", true),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", true),
            (chacha, true),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", false),
            ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", false),
        ] {
            let suites = named(suites);
            for profile in [Profile::Intermediate, Profile::Ocm] {
                assert_eq!(demands(profile, &suites).allows(chacha), allowed, "{suites:?}");
            }
        }
    }

    #[test]
    fn what_settings_name_is_allowed_by_them_alone_and_not_by_a_stricter_profile() {
        let rsa = "TLS_RSA_WITH_AES_128_GCM_SHA256";
        let suites = named(rsa);
        assert!(demands(Profile::Ocm, &suites).allows(rsa));
        assert!(!demands(Profile::Kubernetes, &suites).allows(rsa));
        assert_eq!(demands(Profile::Kubernetes, &suites).allowed(), [""; 0]);
    }

    #[test]
    fn each_profile_has_what_the_stricter_ones_have() {
        let (cbc, rsa) = ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA");
        for (profile, strong, of_go, of_old) in [
            (Profile::Modern, false, false, false),
            (Profile::Intermediate, true, false, false),
            (Profile::Kubernetes, true, true, false),
            (Profile::Ocm, true, true, false),
            (Profile::Old, true, true, true),
        ] {
            let demands = demands(profile, &[]);
            let has = [STRONG[0], cbc, rsa].map(|suite| demands.allows(suite));
            assert_eq!(has, [strong, of_go, of_old], "{profile:?}");
        }
    }

    #[test]
    fn every_suite_of_a_profile_is_one_that_servers_are_asked_for() {
        let asked = |suite: &str| ocm_core::cipher::SUITES.iter().any(|(_, name)| *name == suite);
        let unknown: Vec<&str> = Profile::Old.suites().filter(|suite| !asked(suite)).collect();
        assert_eq!(unknown, [""; 0]);
        // Go has no other name for what is asked for but these.
        let of_go = SUITES.iter().filter(|suite| !suite.ends_with("_CHACHA20_POLY1305") && !asked(suite));
        assert_eq!(of_go.count(), 0);
    }

    #[test]
    fn suites_are_for_certificates_of_one_kind() {
        let fits = |version: &str, suites: &str| {
            let settings =
                TlsSettings { min_tls_version: Some(version.to_owned()), cipher_suites: Some(suites.to_owned()) };
            (settings.fits(true), settings.fits(false))
        };
        let (rsa, ecdsa) = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
        assert_eq!(fits("", rsa), (true, false));
        assert_eq!(fits("", ecdsa), (false, true));
        assert_eq!(fits("", &format!("{rsa},{ecdsa}")), (true, true));
        assert_eq!(fits("", "TLS_RSA_WITH_AES_128_GCM_SHA256"), (true, false));
        assert_eq!(fits("", ""), (true, true));
        assert_eq!(fits("", "TLS_AES_128_GCM_SHA256"), (true, true));
        assert_eq!(fits("VersionTLS13", rsa), (true, true));
    }
}

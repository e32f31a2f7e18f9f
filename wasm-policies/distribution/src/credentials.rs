//! Credentials for registries, as Docker's `config.json` and Secrets of the type `kubernetes.io/dockerconfigjson` hold them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::reference::Reference;

/// Where Docker keeps what is for Docker Hub.
const HUB: &str = "https://index.docker.io/v1/";

/// The user where docker keeps an identity token instead of a password.
const TOKEN: &str = "<token>";

/// A user name and a password. The password never prints.
#[derive(Clone, Debug)]
pub struct Credentials {
    user: String,
    password: SecretString,
}

impl Credentials {
    /// Of this user.
    pub fn new(user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    /// What an `Authorization` header says.
    pub(crate) fn basic(&self) -> SecretString {
        let both = format!("{}:{}", self.user, self.password.expose_secret());
        format!("Basic {}", STANDARD.encode(both)).into()
    }
}

/// What a configuration has for a registry.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Nothing.
    None,
    /// Credentials.
    Credentials(Credentials),
    /// The program `docker-credential-NAME` knows them, by this key.
    Helper {
        /// The last part of the program's name.
        name: String,
        /// What it is asked for.
        key: String,
    },
    /// An identity token, which takes a way of signing in that is not supported: user name and password are needed.
    IdentityToken,
}

/// Docker's configuration.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default, rename = "identitytoken")]
    identity_token: Option<String>,
}

impl DockerConfig {
    /// Reads the file. None: it is no such file; what it holds is not quoted.
    pub fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// What it has for an image: of several entries for its registry the one whose path is the longest that fits.
    pub fn entry(&self, image: &Reference) -> Entry {
        let registry = image.registry.as_str();
        let key = if registry == "docker.io" { HUB } else { registry };
        if let Some(name) = self.cred_helpers.get(key).filter(|name| is_name(name)) {
            return Entry::Helper { name: name.clone(), key: key.to_owned() };
        }
        // Some write it with a scheme, with the path of an old API, or with that of repositories.
        let fitting = |written: &str| if written == key { Some(0) } else { fits(written, image) };
        let found = self.auths.iter().filter_map(|(written, auth)| Some(((fitting(written)?, written == key), auth)));
        let found = found.max_by_key(|(fits, _)| *fits).map(|(_, auth)| auth);
        match found.map(|auth| (auth.credentials(), auth)) {
            Some((Some(credentials), _)) => Entry::Credentials(credentials),
            Some((None, auth)) if auth.identity_token.as_ref().is_some_and(|token| !token.is_empty()) => {
                Entry::IdentityToken
            }
            _ => match self.creds_store.as_ref().filter(|name| is_name(name)) {
                Some(name) => Entry::Helper { name: name.clone(), key: key.to_owned() },
                None => Entry::None,
            },
        }
    }
}

impl Auth {
    fn credentials(&self) -> Option<Credentials> {
        if let (Some(user), Some(password)) = (&self.username, &self.password)
            && !user.is_empty()
        {
            return Some(Credentials::new(user, password.as_str()));
        }
        let both = STANDARD.decode(self.auth.as_ref()?.trim()).ok()?;
        let both = String::from_utf8(both).ok()?;
        let (user, password) = both.split_once(':')?;
        (!user.is_empty() && user != TOKEN).then(|| Credentials::new(user, password.trim_end_matches('\0')))
    }
}

/// Part of a program's name, and nothing of its path.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Of how many bytes the path is of a key that may be a URL; none: it is not for this image.
fn fits(key: &str, image: &Reference) -> Option<usize> {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest).trim_end_matches('/');
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_in_it = |path: &str| {
        image.repository.strip_prefix(path).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    match path {
        _ if host != image.registry => None,
        "" | "v1" | "v2" => Some(0),
        path => is_in_it(path).then_some(path.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn basic(entry: Entry) -> String {
        match entry {
            Entry::Credentials(credentials) => credentials.basic().expose_secret().to_owned(),
            Entry::Helper { name, key } => format!("docker-credential-{name} {key}"),
            Entry::None => "none".to_owned(),
            Entry::IdentityToken => "token".to_owned(),
        }
    }

    #[test]
    fn credentials_are_found_as_docker_finds_them() {
        let config = json!({
            "auths": {
                "r.example": {"auth": STANDARD.encode("user:pass:word")},
                "https://old.example/v1/": {"username": "u", "password": "p"},
                "empty.example": {},
                "https://index.docker.io/v1/": {"auth": STANDARD.encode("hub:secret")},
                "many.example": {"auth": STANDARD.encode("all:p")},
                "many.example/team": {"auth": STANDARD.encode("team:p")},
                "https://many.example/team/inner/": {"auth": STANDARD.encode("inner:p")},
                "many.example/other": {"auth": STANDARD.encode("other:p")},
                "paths.example/team": {"auth": STANDARD.encode("only:p")},
                "token.example": {"auth": STANDARD.encode("<token>:"), "identitytoken": "geheim"},
            },
            "credHelpers": {"cloud.example": "cloud", "evil.example": "../../sh"},
        });
        let text = config.to_string();
        let read = DockerConfig::parse(text.as_bytes()).unwrap();
        let image = |place: &str| Reference::parse(&format!("{place}/p:v1")).unwrap();
        let said = |place: &str| basic(read.entry(&image(place)));
        assert_eq!(said("r.example"), format!("Basic {}", STANDARD.encode("user:pass:word")));
        assert_eq!(said("old.example"), format!("Basic {}", STANDARD.encode("u:p")));
        assert_eq!(said("docker.io"), format!("Basic {}", STANDARD.encode("hub:secret")));
        assert_eq!(said("cloud.example"), "docker-credential-cloud cloud.example");
        // The longest path counts, by whole words.
        for (place, user) in [("", "all"), ("/team", "team"), ("/team/inner/x", "inner"), ("/teams", "all")] {
            let expected = format!("Basic {}", STANDARD.encode(format!("{user}:p")));
            assert_eq!(said(&format!("many.example{place}")), expected, "{place}");
        }
        assert_eq!((said("paths.example/other"), said("token.example")), ("none".into(), "token".into()));
        // A name of a program is no path.
        assert_eq!(
            (said("empty.example"), said("evil.example"), said("r.example:5000")),
            ("none".into(), "none".into(), "none".into())
        );
        let mut store = config;
        store["credsStore"] = json!("desktop");
        let store = DockerConfig::parse(store.to_string().as_bytes()).unwrap();
        assert_eq!(basic(store.entry(&image("empty.example"))), "docker-credential-desktop empty.example");
        assert!(basic(store.entry(&image("r.example"))).starts_with("Basic"));
        assert!(DockerConfig::parse(b"[").is_none());
    }

    #[test]
    fn passwords_do_not_print() {
        let credentials = Credentials::new("user", "geheim");
        assert!(!format!("{credentials:?}").contains("geheim"));
    }
}

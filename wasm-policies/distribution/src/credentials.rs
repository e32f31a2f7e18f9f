//! Credentials for registries, as Docker's `config.json` and Secrets of the type `kubernetes.io/dockerconfigjson` hold them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

/// Where Docker keeps what is for Docker Hub.
const HUB: &str = "https://index.docker.io/v1/";

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
}

impl DockerConfig {
    /// Reads the file. None: it is no such file; what it holds is not quoted.
    pub fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// What it has for a registry, which is a host with its port.
    pub fn entry(&self, registry: &str) -> Entry {
        let key = if registry == "docker.io" { HUB } else { registry };
        if let Some(name) = self.cred_helpers.get(key).filter(|name| is_name(name)) {
            return Entry::Helper { name: name.clone(), key: key.to_owned() };
        }
        // Some write it with a scheme or a path.
        let found = self.auths.iter().find(|(written, _)| *written == key || host(written) == registry);
        match found.and_then(|(_, auth)| auth.credentials()) {
            Some(credentials) => Entry::Credentials(credentials),
            None => match self.creds_store.as_ref().filter(|name| is_name(name)) {
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
        (!user.is_empty()).then(|| Credentials::new(user, password.trim_end_matches('\0')))
    }
}

/// Part of a program's name, and nothing of its path.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Host and port of a key that may be a URL.
fn host(key: &str) -> &str {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
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
            },
            "credHelpers": {"cloud.example": "cloud", "evil.example": "../../sh"},
        });
        let text = config.to_string();
        let read = DockerConfig::parse(text.as_bytes()).unwrap();
        let said = |registry: &str| basic(read.entry(registry));
        assert_eq!(said("r.example"), format!("Basic {}", STANDARD.encode("user:pass:word")));
        assert_eq!(said("old.example"), format!("Basic {}", STANDARD.encode("u:p")));
        assert_eq!(said("docker.io"), format!("Basic {}", STANDARD.encode("hub:secret")));
        assert_eq!(said("cloud.example"), "docker-credential-cloud cloud.example");
        // A name of a program is no path.
        assert_eq!(
            (said("empty.example"), said("evil.example"), said("r.example:5000")),
            ("none".into(), "none".into(), "none".into())
        );
        let mut store = config;
        store["credsStore"] = json!("desktop");
        let store = DockerConfig::parse(store.to_string().as_bytes()).unwrap();
        assert_eq!(basic(store.entry("empty.example")), "docker-credential-desktop empty.example");
        assert!(basic(store.entry("r.example")).starts_with("Basic"));
        assert!(DockerConfig::parse(b"[").is_none());
    }

    #[test]
    fn passwords_do_not_print() {
        let credentials = Credentials::new("user", "geheim");
        assert!(!format!("{credentials:?}").contains("geheim"));
    }
}

//! Bootstrap tokens: how they are made, and how the hub keeps them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ocm_api::Manifest;
use ocm_api::names::bootstrap;

use super::word::{ALPHABET, ID_LENGTH, SECRET_LENGTH};
use crate::order::Collect as _;

/// Type of the Secrets that hold bootstrap tokens.
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Start of their names, before the identifier.
pub const SECRET_PREFIX: &str = "bootstrap-token-";
/// The label that marks what is ours.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kubectl-ocm");

/// A bootstrap token: an identifier that may be shown and a secret that may not.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    /// The public half.
    pub id: String,
    secret: String,
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootstrapToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BootstrapToken {
    /// Makes a token of random bytes. `random` is asked as often as needed.
    pub fn draw(mut random: impl FnMut() -> u8) -> Self {
        let mut word = |length: usize| {
            let mut word = String::with_capacity(length);
            while word.len() < length {
                let byte = usize::from(random());
                // Bytes past the last whole multiple would make the first letters more likely than the others.
                if byte < 256 - 256 % ALPHABET.len() {
                    word.push(char::from(ALPHABET[byte % ALPHABET.len()]));
                }
            }
            word
        };
        Self { id: word(ID_LENGTH), secret: word(SECRET_LENGTH) }
    }

    /// The whole token. Whoever holds it can register clusters.
    pub fn reveal(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The Secret in which the hub finds it. `cluster_sets` are those besides `default` that it may register into.
    pub fn manifest(&self, expires: Option<Timestamp>, description: &str, cluster_sets: &[String]) -> Manifest {
        let mut groups = vec![bootstrap::TOKEN_GROUP.to_owned()];
        groups.extend(cluster_sets.iter().map(|set| bootstrap::cluster_set_group(set)));
        let groups = groups.join(",");
        let mut data: BTreeMap<String, String> = [
            ("token-id", self.id.as_str()),
            ("token-secret", self.secret.as_str()),
            ("description", description),
            ("usage-bootstrap-authentication", "true"),
            ("auth-extra-groups", groups.as_str()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        if let Some(expires) = expires {
            data.insert("expiration".to_owned(), to_the_second(expires).to_string());
        }
        let mut secret = Secret::default();
        secret.metadata.name = Some(format!("{SECRET_PREFIX}{}", self.id));
        secret.metadata.namespace = Some(bootstrap::TOKEN_NAMESPACE.to_owned());
        secret.metadata.labels = Some([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())].into());
        secret.type_ = Some(SECRET_TYPE.to_owned());
        secret.data = Some(data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect_map());
        Manifest::of(&secret)
    }
}

/// The hub reads expiry as RFC 3339 with whole seconds.
pub fn to_the_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A bootstrap token as the hub keeps it, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The public half.
    pub id: String,
    /// Until when it is valid; none: it never expires.
    pub expires: Option<Timestamp>,
    /// What it is for, in its maker's words.
    pub description: String,
    /// Groups that it speaks for, besides the one of all bootstrap tokens.
    pub groups: Vec<String>,
    /// Whether `kubectl ocm token create` made it.
    pub ours: bool,
    /// Why no cluster can register with it, if so.
    pub unusable: Option<String>,
}

impl Kept {
    /// Reads a Secret; none if it is no bootstrap token, or one that does not register clusters at all.
    pub fn read(secret: &Secret, now: Timestamp) -> Option<Self> {
        if secret.type_.as_deref() != Some(SECRET_TYPE) {
            return None;
        }
        let name = secret.metadata.name.as_deref()?;
        let id = value(secret, "token-id").or_else(|| name.strip_prefix(SECRET_PREFIX).map(str::to_owned))?;
        let groups: Vec<String> = value(secret, "auth-extra-groups")
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|group| !group.is_empty())
            .map(str::to_owned)
            .collect();
        let labels = secret.metadata.labels.as_ref();
        let ours = labels.and_then(|labels| labels.get(MANAGED_BY.0)).is_some_and(|value| value == MANAGED_BY.1);
        let member = groups.iter().any(|group| group == bootstrap::TOKEN_GROUP);
        if !ours && !member {
            return None;
        }
        let written = value(secret, "expiration");
        let expires = written.as_deref().and_then(|text| text.parse().ok());
        let unusable = match () {
            () if written.is_some() && expires.is_none() => Some("its expiration must be a time".to_owned()),
            () if expires.is_some_and(|expires: Timestamp| expires <= now) => Some("expired".to_owned()),
            () if !member => Some(format!("not in the group {}", bootstrap::TOKEN_GROUP)),
            () if value(secret, "usage-bootstrap-authentication").as_deref() != Some("true") => {
                Some("not for authentication".to_owned())
            }
            () if format!("{SECRET_PREFIX}{id}") != name => Some("its identifier is not that of its name".to_owned()),
            () => None,
        };
        let description = value(secret, "description").unwrap_or_default();
        Some(Self { id, expires, description, groups, ours, unusable })
    }
}

/// The whole token in a Secret, for the one command that was asked for it.
pub fn reveal(secret: &Secret) -> Option<String> {
    Some(format!("{}.{}", value(secret, "token-id")?, value(secret, "token-secret")?))
}

fn value(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    String::from_utf8(bytes.clone()).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{Content, read};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn drawn_tokens_are_well_formed_and_unbiased() {
        let mut byte = 0u8;
        let token = BootstrapToken::draw(|| {
            byte = byte.wrapping_add(97);
            byte
        });
        assert_eq!(read(&token.reveal()), Content::Bootstrap(token.id.clone()));
        assert!(!format!("{token:?}").contains(&token.secret));
        // 252 and above are thrown away, so the first letter is not drawn from 255.
        let mut bytes = [255, 252, 251].into_iter().chain(std::iter::repeat(0));
        let token = BootstrapToken::draw(|| bytes.next().unwrap());
        assert_eq!(token.reveal(), "9aaaaa.aaaaaaaaaaaaaaaa");
    }

    fn secret(token: &BootstrapToken, expires: Option<Timestamp>) -> Secret {
        let body = token.manifest(expires, "for tests", &[]).body().clone();
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn what_is_kept_is_what_was_made() {
        let token = BootstrapToken::draw(|| 1);
        let kept = Kept::read(&secret(&token, Some(at(5000))), at(10)).unwrap();
        assert_eq!((kept.id.as_str(), kept.expires, kept.ours), (token.id.as_str(), Some(at(5000)), true));
        assert_eq!((kept.description.as_str(), kept.unusable), ("for tests", None));
        assert_eq!(kept.groups, [bootstrap::TOKEN_GROUP]);
        assert_eq!(reveal(&secret(&token, None)), Some(token.reveal()));
        let late = Kept::read(&secret(&token, Some(at(5000))), at(5000)).unwrap();
        assert_eq!(late.unusable.as_deref(), Some("expired"));
    }

    #[test]
    fn others_tokens_are_listed_only_if_clusters_can_register_with_them() {
        let mut other = secret(&BootstrapToken::draw(|| 1), None);
        other.metadata.labels = None;
        assert!(!Kept::read(&other, at(0)).unwrap().ours);
        other
            .data
            .as_mut()
            .unwrap()
            .insert("auth-extra-groups".to_owned(), ByteString(b"system:bootstrappers:x".to_vec()));
        assert_eq!(Kept::read(&other, at(0)), None);
        let mut opaque = secret(&BootstrapToken::draw(|| 1), None);
        opaque.type_ = Some("Opaque".to_owned());
        assert_eq!(Kept::read(&opaque, at(0)), None);
    }
}

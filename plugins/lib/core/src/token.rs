//! Tokens with which clusters register: what can be read off one, and how bootstrap tokens are made and kept.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use ocm_api::Manifest;
use ocm_api::names::bootstrap;
use serde_json::Value;

use crate::duration::human;
use crate::install::rbac;
use crate::{Failure, Reason, Remedy};

/// Type of the Secrets that hold bootstrap tokens.
pub const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// Start of their names, before the identifier.
pub const SECRET_PREFIX: &str = "bootstrap-token-";
/// The label that marks what is ours.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kubectl-ocm");

/// What a token says about itself. Nothing of it is verified; the hub does that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A service account's token.
    Jwt {
        /// Who it is for.
        subject: Option<String>,
        /// Until when it is good.
        expires: Option<Timestamp>,
        /// Its own id, which a hub notes with what it was used for.
        id: Option<String>,
    },
    /// A bootstrap token with this identifier.
    Bootstrap(String),
    /// Some other word that the hub may know.
    Opaque,
}

/// Reads a token.
pub fn read(token: &str) -> Content {
    if let Some((id, secret)) = token.split_once('.')
        && is_word(id, ID_LENGTH)
        && is_word(secret, SECRET_LENGTH)
    {
        return Content::Bootstrap(id.to_owned());
    }
    match claims(token) {
        Some(claims) => Content::Jwt {
            subject: claims.get("sub").and_then(Value::as_str).map(str::to_owned),
            id: claims.get("jti").and_then(Value::as_str).map(str::to_owned),
            expires: claims.get("exp").and_then(time),
        },
        None => Content::Opaque,
    }
}

/// Since when a service account's token is valid, as it says about itself; none of other tokens.
pub fn issued(token: &str) -> Option<Timestamp> {
    let claims = claims(token)?;
    claims.get("iat").or_else(|| claims.get("nbf")).and_then(time)
}

/// What a JSON Web Token claims; none of other tokens.
fn claims(token: &str) -> Option<serde_json::Map<String, Value>> {
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    match serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?) {
        Ok(Value::Object(claims)) => Some(claims),
        _ => None,
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    Timestamp::from_second(seconds(value)?).ok()
}

/// JSON Web Tokens may write a time as a fraction.
fn seconds(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64))
}

/// Checks what can be known of a token before it is sent anywhere.
///
/// # Errors
/// When it cannot be a token, or says itself that it has expired.
pub fn check(token: &str, now: Timestamp) -> Result<Content, Failure> {
    if token.is_empty() {
        return Err(Failure::usage("the hub token is empty"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage("the hub token holds blanks or control characters, so it was not copied whole"));
    }
    let content = read(token);
    if let Content::Jwt { expires: Some(expires), .. } = &content
        && *expires <= now
    {
        return Err(expired(*expires, now));
    }
    Ok(content)
}

/// The sentence for a token that says of itself that it is over.
pub fn expired(expires: Timestamp, now: Timestamp) -> Failure {
    let ago = human(now.duration_since(expires).try_into().unwrap_or_default());
    Failure::new(Reason::Unauthorized, format!("the hub token has expired: it was good until {expires}, {ago} ago"))
        .hint(Remedy::ReplaceExpiredToken)
}

const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

fn is_word(word: &str, length: usize) -> bool {
    word.len() == length && word.bytes().all(|byte| ALPHABET.contains(&byte))
}

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
        secret.data = Some(data.into_iter().map(|(key, value)| (key, ByteString(value.into_bytes()))).collect());
        Manifest::of(&secret)
    }
}

/// The hub reads expiry as RFC 3339 with whole seconds.
pub fn to_the_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The binding that lets bootstrap tokens register clusters.
pub fn token_binding() -> Manifest {
    Manifest::of(&rbac::token_binding())
}

/// What lets the tokens of a cluster set's group register clusters into it: a role and its binding.
pub fn cluster_set_rights(set: &str) -> [Manifest; 2] {
    [Manifest::of(&rbac::cluster_set_role(set)), Manifest::of(&rbac::cluster_set_binding(set))]
}

/// Whether a bootstrap token can be bound to a cluster set of this name: the name becomes a part of a group's, and those
/// of bootstrap tokens have no dots.
pub fn can_name_set(set: &str) -> bool {
    crate::name::is_dns_label(set)
}

/// A bootstrap token as the hub keeps it, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The public half.
    pub id: String,
    /// Until when it is good; none: for ever.
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
            () if written.is_some() && expires.is_none() => Some("its expiration is no time".to_owned()),
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

/// Whether a word can be the identifier of a bootstrap token.
pub fn is_id(word: &str) -> bool {
    is_word(word, ID_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(claims: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn tokens_tell_what_they_are() {
        assert_eq!(read("abcdef.0123456789abcdef"), Content::Bootstrap("abcdef".to_owned()));
        let token = jwt(r#"{"exp":1000,"sub":"system:serviceaccount:ns:name"}"#);
        let subject = Some("system:serviceaccount:ns:name".to_owned());
        assert_eq!(read(&token), Content::Jwt { subject, expires: Some(at(1000)), id: None });
        assert_eq!(read(&jwt(r#"{"exp":1000.5}"#)), Content::Jwt { subject: None, expires: Some(at(1000)), id: None });
        assert_eq!(issued(&jwt(r#"{"exp":1000,"iat":10}"#)), Some(at(10)));
        assert_eq!(issued(&jwt(r#"{"nbf":20}"#)), Some(at(20)));
        assert_eq!((issued(&token), issued("abcdef.0123456789abcdef")), (None, None));
        for opaque in ["", "abc", "a.b.c", "abcdef.short", "ABCDEF.0123456789abcdef", "e30.W10.c"] {
            assert_eq!(read(opaque), Content::Opaque, "{opaque}");
        }
    }

    #[test]
    fn an_expired_token_is_told_before_it_is_sent() {
        let token = jwt(r#"{"exp":1000}"#);
        assert!(check(&token, at(999)).is_ok());
        let failure = check(&token, at(1000 + 7200)).unwrap_err();
        assert_eq!(failure.reason, Reason::Unauthorized);
        assert!(failure.message.contains("1970-01-01T00:16:40Z, 120m ago"), "{failure}");
        assert_eq!(check("", at(0)).unwrap_err().reason, Reason::Usage);
        assert_eq!(check("half a\ntoken", at(0)).unwrap_err().reason, Reason::Usage);
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

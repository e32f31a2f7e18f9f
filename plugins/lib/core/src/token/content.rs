//! What can be read off a token that clusters register with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

use super::word::{ID_LENGTH, SECRET_LENGTH, is_word};
use crate::duration::human;
use crate::{Failure, Reason, Remedy};

/// What a token says about itself. Nothing of it is verified; the hub does that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A service account's token.
    Jwt {
        /// Who it is for.
        subject: Option<String>,
        /// Until when it is valid.
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
    Failure::new(Reason::Unauthorized, format!("the hub token has expired: it was valid until {expires}, {ago} ago"))
        .hint(Remedy::ReplaceExpiredToken)
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
}

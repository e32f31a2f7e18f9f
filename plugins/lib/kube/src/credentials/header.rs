//! Headers that nobody else may read.

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

/// The header with a token; none for what no header can hold.
pub(super) fn bearer(token: &SecretString) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {}", token.expose_secret()))
}

/// The header with a text that is a secret; none for what no header can hold.
pub(super) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

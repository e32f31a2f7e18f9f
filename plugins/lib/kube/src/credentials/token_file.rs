//! A token in a file, as pods have it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

use super::header::bearer;

/// How long a token is sent before its file is read again, as client-go does it (`cachingTokenSource`).
const AGE: Duration = Duration::from_secs(60);

/// A file whose token is replaced before it ends, as the kubelet does it.
pub(crate) struct TokenFile {
    file: String,
    now: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    /// Reads the file; where it cannot be read, `otherwise` is sent.
    pub(super) fn new(file: String, otherwise: Option<SecretString>) -> Result<Self, String> {
        let value = match (read(&file), otherwise.as_ref().and_then(bearer)) {
            (Ok(value), _) | (Err(_), Some(value)) => value,
            (Err(error), None) => return Err(error),
        };
        Ok(Self { file, now: Mutex::new((value, Instant::now())) })
    }

    /// The header with the token. One that was read stays until another one can be.
    pub(super) fn authorization(&self) -> HeaderValue {
        self.authorization_at(Instant::now())
    }

    fn authorization_at(&self, at: Instant) -> HeaderValue {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if at.saturating_duration_since(now.1) >= AGE {
            if let Ok(value) = read(&self.file) {
                now.0 = value;
            }
            now.1 = at;
        }
        now.0.clone()
    }
}

fn read(file: &str) -> Result<HeaderValue, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("its token file {file:?} cannot be read: {error}"))?;
    let token = SecretString::from(text.trim());
    let value = bearer(&token).filter(|_| !token.expose_secret().is_empty());
    value.ok_or_else(|| format!("its token file {file:?} does not hold one token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_again_when_it_is_old_and_stays_while_there_is_no_other() {
        let file = std::env::temp_dir().join(format!("ocm-kube-token-{}", std::process::id()));
        let name = file.display().to_string();
        assert!(TokenFile::new(name.clone(), None).is_err());
        let token = TokenFile::new(name.clone(), Some("other".to_owned().into())).unwrap();
        assert_eq!(token.authorization(), "Bearer other");
        std::fs::write(&file, "one\n").unwrap();
        let begun = Instant::now();
        assert_eq!(token.authorization_at(begun), "Bearer other");
        assert_eq!(token.authorization_at(begun + AGE), "Bearer one");
        std::fs::write(&file, "two\nlines\n").unwrap();
        assert_eq!(token.authorization_at(begun + 2 * AGE), "Bearer one");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(token.authorization_at(begun + 3 * AGE), "Bearer one");
        assert!(token.authorization_at(begun).is_sensitive());
    }
}

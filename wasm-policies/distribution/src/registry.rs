//! The API of registries, as far as modules need it: manifests, blobs, and who may have them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use secrecy::SecretString;
use serde::Deserialize;

use crate::MAX_SIGNATURES;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind};
use crate::http::{Answer, Sent, Target, bounded, send};
use crate::image::{self, Image};
use crate::reference::Reference;
use crate::signature::{ANNOTATION, PAYLOAD, PublicKey, Signature, verify};
use crate::trust::Trust;

/// Bytes of the largest manifest and the largest answer about a token.
pub(crate) const MOST_OF_A_MANIFEST: usize = 256 << 10;
/// Bytes of the largest payload of a signature: all that are looked at fit into one object of a hub.
const MOST_OF_A_PAYLOAD: usize = 8 << 10;
/// Bytes of a signature in base64; one by a key of a kind that is known has at most 144.
const MOST_OF_A_PROOF: usize = 512;

/// A repository of a registry.
pub struct Registry {
    pub(crate) image: Reference,
    trust: Trust,
    credentials: Option<Credentials>,
    /// How long one answer may take.
    limit: Duration,
    /// What the registry has let in with.
    admitted: Mutex<Option<SecretString>>,
}

impl Registry {
    /// The repository of this image. `limit` is how long one answer may take.
    pub fn new(image: Reference, trust: Trust, credentials: Option<Credentials>, limit: Duration) -> Self {
        Self { image, trust, credentials, limit, admitted: Mutex::default() }
    }

    /// The manifest of the image, and its digest, which is the one of the reference where that names one.
    ///
    /// # Errors
    /// When it cannot be had, or is another one.
    pub async fn manifest(&self) -> Result<(Vec<u8>, Digest), Error> {
        let name = self.image.to_string();
        let manifest = self.manifest_of(&self.image.manifest(), &name).await?;
        let found = Digest::of(&manifest);
        match &self.image.digest {
            Some(wanted) if *wanted != found => Err(differs(&format!("the manifest of {name}"), &found, wanted)),
            _ => Ok((manifest, found)),
        }
    }

    /// The same of an image that this key has signed.
    ///
    /// # Errors
    /// When it cannot be had, or the key has not signed it.
    pub async fn verified(&self, key: &PublicKey) -> Result<(Vec<u8>, Digest), Error> {
        let (manifest, digest) = self.manifest().await?;
        verify(&self.image, key, &self.signatures(&digest).await?, &digest)?;
        Ok((manifest, digest))
    }

    async fn manifest_of(&self, word: &str, name: &str) -> Result<Vec<u8>, Error> {
        let sent =
            Sent { headers: vec![(ACCEPT, image::ACCEPT.to_owned())], most: MOST_OF_A_MANIFEST, ..Sent::default() };
        let answer = self.ask(&format!("manifests/{word}"), sent).await?;
        self.expect(answer, &[StatusCode::OK], name).map(|answer| answer.body)
    }

    /// The module of an image of this repository.
    ///
    /// # Errors
    /// When it cannot be had, or is not the one that the image names.
    pub async fn module(&self, image: &Image) -> Result<Vec<u8>, Error> {
        let what = format!("the module of {}", self.image);
        self.blob(&image.module, image.size, &what).await
    }

    async fn blob(&self, digest: &Digest, most: usize, what: &str) -> Result<Vec<u8>, Error> {
        let answer = self.ask(&format!("blobs/{digest}"), Sent { most, ..Sent::default() }).await?;
        let (found, blob) = Digest::of_large(self.expect(answer, &[StatusCode::OK], what)?.body).await;
        if found == *digest { Ok(blob) } else { Err(differs(what, &found, digest)) }
    }

    /// The signatures of the image of this digest that lie beside it. Whose they are is another question.
    ///
    /// # Errors
    /// When it cannot be found out whether there are some.
    pub async fn signatures(&self, digest: &Digest) -> Result<Vec<Signature>, Error> {
        match self.signature_manifest(digest).await? {
            Some(manifest) => self.signatures_of(&manifest, digest).await,
            None => Ok(Vec::new()),
        }
    }

    /// The manifest of the signatures of an image; none: there are none.
    pub(crate) async fn signature_manifest(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        match self.manifest_of(&signature_tag(digest), &self.signatures_name(digest)).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the signatures of an image are called in messages.
    pub(crate) fn signatures_name(&self, digest: &Digest) -> String {
        format!("the signatures of {}@{digest}", self.image.place())
    }

    /// The signatures that a manifest names, the newest first. What is none is passed over: whoever may write beside an image
    /// must not keep others from finding the right one.
    pub(crate) async fn signatures_of(&self, manifest: &[u8], digest: &Digest) -> Result<Vec<Signature>, Error> {
        let what = self.signatures_name(digest);
        let layers = image::layers(manifest).map_err(|why| Error::new(ErrorKind::Refused, format!("{what}: {why}")))?;
        let mut found = Vec::new();
        let payloads = layers.iter().rev().filter(|layer| layer.media_type == PAYLOAD);
        for layer in payloads.take(MAX_SIGNATURES) {
            let proof = layer.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION));
            let proof = proof.filter(|proof| proof.len() <= MOST_OF_A_PROOF);
            let (Some(proof), Some(digest)) = (proof, Digest::parse(&layer.digest)) else { continue };
            match self.blob(&digest, MOST_OF_A_PAYLOAD, &what).await {
                Ok(payload) => found.push(Signature::new(&payload, proof)),
                // Nobody knows then what it is.
                Err(error) if error.kind.may_pass() || error.kind == ErrorKind::Untrusted => return Err(error),
                Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Asks for something of the repository, with credentials as soon as the registry wants some.
    pub(crate) async fn ask(&self, path: &str, sent: Sent) -> Result<Answer, Error> {
        let path = format!("/v2/{}/{path}", self.image.repository);
        let target = Target::of(self.image.server(), &path, &self.trust)?;
        self.ask_at(&target, sent).await
    }

    /// The same of a place that the registry has named. Credentials stay with the registry.
    pub(crate) async fn ask_at(&self, target: &Target, mut sent: Sent) -> Result<Answer, Error> {
        let registry = Target::of(self.image.server(), "/", &self.trust)?;
        if !registry.is_server_of(target) {
            return send(target, &sent, &self.trust, self.limit).await;
        }
        sent.authorization = self.admitted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = send(target, &sent, &self.trust, self.limit).await?;
        // Who else wants credentials, such as a server that the registry has sent on to, gets none.
        if answer.status != StatusCode::UNAUTHORIZED || !registry.is_server_of(&answer.from) {
            return Ok(answer);
        }
        let Some(admitted) = self.admission(&answer).await? else { return Ok(answer) };
        *self.admitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted.clone());
        sent.authorization = Some(admitted);
        send(target, &sent, &self.trust, self.limit).await
    }

    /// What lets in, where a registry has said how.
    async fn admission(&self, answer: &Answer) -> Result<Option<SecretString>, Error> {
        let challenges = answer.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenges: Vec<Challenge> = challenges.map(Challenge::parse).collect();
        if let Some(bearer) = challenges.iter().find(|one| one.scheme == "bearer") {
            return self.token(bearer).await.map(Some);
        }
        let takes_basic = challenges.iter().any(|one| one.scheme == "basic");
        Ok(self.credentials.as_ref().filter(|_| takes_basic).map(Credentials::basic))
    }

    /// A token of the server that the registry names.
    async fn token(&self, challenge: &Challenge) -> Result<SecretString, Error> {
        #[derive(Deserialize)]
        struct Token {
            #[serde(default)]
            token: Option<String>,
            #[serde(default)]
            access_token: Option<String>,
        }
        let registry = &self.image.registry;
        let refused = |why: String| Error::new(ErrorKind::Refused, format!("{registry} gives no token: {why}"));
        let realm = challenge.get("realm").ok_or_else(|| refused("it does not say who does".to_owned()))?;
        // What leads away from TLS would send credentials without it.
        let mut target = Target::of(self.image.server(), "/", &self.trust)?.follow(realm)?;
        for key in ["service", "scope"] {
            if let Some(value) = challenge.get(key) {
                target = target.with_query(key, value);
            }
        }
        let authorization = self.credentials.as_ref().map(Credentials::basic);
        let sent = Sent { method: Method::GET, authorization, most: MOST_OF_A_MANIFEST, ..Sent::default() };
        let answer = send(&target, &sent, &self.trust, self.limit).await?;
        let answer = self.expect(answer, &[StatusCode::OK], &format!("a token for {}", self.image.place()))?;
        let token: Token =
            serde_json::from_slice(&answer.body).map_err(|_| refused("its answer is none".to_owned()))?;
        let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| refused("its answer holds none".to_owned()))?;
        Ok(format!("Bearer {token}").into())
    }

    /// The answer, if it is one of these.
    pub(crate) fn expect(&self, answer: Answer, good: &[StatusCode], what: &str) -> Result<Answer, Error> {
        let registry = &self.image.registry;
        if good.contains(&answer.status) {
            return Ok(answer);
        }
        let status = answer.status;
        let error = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let with =
                    if self.credentials.is_some() { "the credentials that it was given" } else { "no credentials" };
                let why = format!("{registry} does not hand out {what} with {with} (HTTP {})", status.as_u16());
                Error::new(ErrorKind::Unauthorized, why)
            }
            StatusCode::NOT_FOUND => Error::new(ErrorKind::NotFound, format!("{registry} does not have {what}")),
            _ => Error::new(ErrorKind::Refused, format!("{registry} answers HTTP {} for {what}", status.as_u16())),
        };
        Err(match said(&answer.body) {
            Some(said) => error.because(said),
            None => error,
        })
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }
}

/// The tag that the signatures of an image have.
pub(crate) fn signature_tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

fn differs(what: &str, found: &Digest, wanted: &Digest) -> Error {
    Error::new(ErrorKind::WrongDigest, format!("{what} has the digest {found}, and {wanted} is wanted"))
}

/// What a registry says of an error, if it does: without line ends, and not long.
fn said(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        #[serde(default)]
        message: String,
    }
    let errors: Errors = serde_json::from_slice(body).ok()?;
    let said = bounded(&errors.errors.first()?.message);
    (!said.is_empty()).then_some(said)
}

/// How a registry wants to be asked: `Bearer realm="…",service="…",scope="…"`.
#[derive(Debug)]
struct Challenge {
    /// Lower-case.
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    fn parse(text: &str) -> Self {
        let (scheme, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let mut parameters = Vec::new();
        while let Some((key, after)) = rest.split_once('=') {
            // A scope may hold commas, so it stands in quotes.
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => after.split_once(',').unwrap_or((after, "")),
            };
            parameters.push((key.trim_matches([',', ' ']).to_ascii_lowercase(), value.trim().to_owned()));
            rest = after;
        }
        Self { scheme: scheme.to_ascii_lowercase(), parameters }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_they_are_written() {
        let read = Challenge::parse(
            r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a/b:pull,push""#,
        );
        assert_eq!(read.scheme, "bearer");
        assert_eq!(read.get("realm"), Some("https://auth.example/token"));
        assert_eq!(read.get("scope"), Some("repository:a/b:pull,push"));
        assert_eq!(Challenge::parse(r#"Bearer realm="r", service=s, scope=x"#).get("service"), Some("s"));
        let basic = Challenge::parse(r#"Basic realm="Registry""#);
        assert_eq!((basic.scheme.as_str(), basic.get("realm"), basic.get("scope")), ("basic", Some("Registry"), None));
        assert_eq!(Challenge::parse("Negotiate").scheme, "negotiate");
        assert_eq!(Challenge::parse(r#"Bearer realm="open"#).get("realm"), Some("open"));
    }

    #[test]
    fn what_a_registry_says_is_told_within_bounds() {
        let body = format!(r#"{{"errors":[{{"code":"DENIED","message":"a\u001b[31m{}"}}]}}"#, "x".repeat(900));
        let told = said(body.as_bytes()).unwrap();
        assert!(told.starts_with("a[31mx") && told.len() == 200, "{told}");
        assert_eq!((said(b"<html>"), said(br#"{"errors":[]}"#)), (None, None));
    }
}

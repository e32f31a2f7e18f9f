//! From what a HubPolicy names to a module that may be used.

use std::time::Duration;

use ocm_api::policy::OciSource;

use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::{Error, ErrorKind};
use crate::image::Image;
use crate::reference::Reference;
use crate::registry::Registry;
use crate::signature::{PublicKey, Signature, verify};
use crate::trust::Trust;

/// What was fetched of an image: all that is needed to judge it again.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its manifest.
    pub manifest: Vec<u8>,
    /// Its signatures; none where none was wanted.
    pub signatures: Vec<Signature>,
    /// Its module.
    pub module: Vec<u8>,
}

/// Fetches the module of an image: nothing of it before its signature was verified, where one is wanted. `limit` is how
/// long each answer of the registry may take.
///
/// # Errors
/// Why it cannot be had, or may not be used.
pub async fn fetch(source: &OciSource, credentials: Option<Credentials>, limit: Duration) -> Result<Fetched, Error> {
    let image = reference(source)?;
    let trust = source.ca_certificates.as_deref().map_or_else(|| Ok(Trust::default()), Trust::pem)?;
    let registry = Registry::new(image, trust, credentials, limit);
    let (manifest, digest) = registry.manifest().await?;
    let signatures = match source.signature {
        Some(_) => registry.signatures(&digest).await?,
        None => Vec::new(),
    };
    let image = judge(source, &manifest, &signatures)?;
    let module = registry.module(&image).await?;
    Ok(Fetched { manifest, signatures, module })
}

/// What the image of a source is, by a manifest and signatures that may come from anywhere.
///
/// # Errors
/// When the manifest is not the one that the source names, or the image is not signed as it must be.
pub fn judge(source: &OciSource, manifest: &[u8], signatures: &[Signature]) -> Result<Image, Error> {
    let reference = reference(source)?;
    let found = Digest::of(manifest);
    if reference.digest.as_ref() != Some(&found) {
        let why = format!("the manifest of {reference} has another digest, {found}");
        return Err(Error::new(ErrorKind::WrongDigest, why));
    }
    if let Some(wanted) = &source.signature {
        let key = PublicKey::parse(&wanted.public_key).map_err(|why| {
            Error::new(ErrorKind::Invalid, format!("the public key for {reference} cannot be used")).because(why)
        })?;
        verify(&reference, &key, signatures, &found)?;
    }
    Image::read(manifest, &reference.to_string())
}

fn reference(source: &OciSource) -> Result<Reference, Error> {
    let invalid = |why: String| Error::new(ErrorKind::Invalid, why);
    let reference = Reference::parse(&source.image).map_err(|error| invalid(error.to_string()))?;
    if reference.digest.is_none() {
        return Err(invalid(format!("{reference} names no digest, and what a tag names may change")));
    }
    Ok(reference)
}

#[cfg(test)]
mod tests {
    use ocm_api::policy::ModuleSignature;
    use rcgen::KeyPair;

    use super::*;
    use crate::image::{Layout, packed};
    use crate::signature::SigningKey;

    #[test]
    fn what_was_kept_somewhere_is_judged_as_what_comes_from_the_registry() {
        let (_, manifest) = packed(b"\0asm", Layout::Wasm, "p");
        let digest = Digest::of(&manifest);
        let image = format!("r.example/p@{digest}");
        let mut source = OciSource { image: image.clone(), ..OciSource::default() };
        assert_eq!(judge(&source, &manifest, &[]).map(|image| image.module), Ok(Digest::of(b"\0asm")));
        let kind = |source: &OciSource, manifest: &[u8], signatures: &[Signature]| {
            judge(source, manifest, signatures).map_err(|error| error.kind).unwrap_err()
        };
        let (_, other) = packed(b"\0asmx", Layout::Wasm, "p");
        assert_eq!(kind(&source, &other, &[]), ErrorKind::WrongDigest);
        let pair = KeyPair::generate().unwrap();
        let sign = |of: &[u8]| {
            let image = Reference::parse("r.example/p").unwrap().pinned(Digest::of(of));
            SigningKey::parse(&pair.serialize_pem()).unwrap().sign(&image).unwrap()
        };
        source.signature = Some(ModuleSignature { public_key: pair.public_key_pem() });
        assert_eq!(kind(&source, &manifest, &[]), ErrorKind::Unsigned);
        assert_eq!(kind(&source, &manifest, &[sign(&other)]), ErrorKind::WrongSignature);
        assert!(judge(&source, &manifest, &[sign(&other), sign(&manifest)]).is_ok());
        source.signature = Some(ModuleSignature { public_key: KeyPair::generate().unwrap().public_key_pem() });
        assert_eq!(kind(&source, &manifest, &[sign(&manifest)]), ErrorKind::WrongSignature);
        source.signature = Some(ModuleSignature { public_key: "none".to_owned() });
        assert_eq!(kind(&source, &manifest, &[sign(&manifest)]), ErrorKind::Invalid);
        let tag = OciSource { image: "r.example/p:v1".to_owned(), ..OciSource::default() };
        assert_eq!(kind(&tag, &manifest, &[]), ErrorKind::Invalid);
    }
}

//! Putting modules, and signatures of them, into a repository.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{Method, StatusCode};
use ocm_core::{Event, Narrator};
use serde_json::{Map, Value, json};

use crate::digest::Digest;
use crate::error::{Error, ErrorKind};
use crate::http::{Sent, Target};
use crate::image::{self, Descriptor, Layout};
use crate::reference::Reference;
use crate::registry::{MOST_OF_A_MANIFEST, Registry, signature_tag};
use crate::signature::{ANNOTATION, PAYLOAD, SigningKey};

/// What the configuration of a signature's image is called: it has none.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A module that was put into a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The image, with its digest.
    pub image: Reference,
    /// The digest of the module.
    pub module: Digest,
}

impl Registry {
    /// Puts a module into the repository, under the tag of the reference, or only under its digest. `title` is the name of
    /// its file, for people; `narrator` hears what has been written.
    ///
    /// # Errors
    /// Why the registry does not take it.
    pub async fn push(
        &self,
        module: &[u8],
        layout: Layout,
        title: &str,
        narrator: &dyn Narrator,
    ) -> Result<Pushed, Error> {
        let (config, manifest) = image::packed(module, layout, title);
        self.upload(&config, "the configuration", narrator).await?;
        self.upload(module, "the module", narrator).await?;
        let digest = Digest::of(&manifest);
        let word = self.image.tag.clone().unwrap_or_else(|| digest.to_string());
        self.put_manifest(&word, manifest, "the manifest", narrator).await?;
        Ok(Pushed { image: self.image.pinned(digest), module: Digest::of(module) })
    }

    /// Signs an image of this repository, unless the key has signed it before; what else is said of other signatures of it
    /// stays as it is; `narrator` hears what has been written. Whether it was signed now.
    ///
    /// # Errors
    /// Why the registry does not take the signature.
    pub async fn sign(&self, key: &SigningKey, image: &Reference, narrator: &dyn Narrator) -> Result<bool, Error> {
        let cannot = || Error::new(ErrorKind::Invalid, format!("{image} cannot be signed"));
        let digest = image.digest.as_ref().ok_or_else(cannot)?;
        let before = self.signature_manifest(digest).await?;
        if let Some(before) = &before
            && key.public().verify(&self.signatures_of(before, digest).await?, digest).is_ok()
        {
            return Ok(false);
        }
        let signature = key.sign(image).ok_or_else(cannot)?;
        let (payload, proof) = signature.parts();
        self.upload(&payload, "the signature", narrator).await?;
        // As it is written: other tools have certificates and more in it.
        let before = before.and_then(|before| serde_json::from_slice::<Map<String, Value>>(&before).ok());
        let mut manifest = before.unwrap_or_default();
        let layer = Descriptor {
            media_type: PAYLOAD.to_owned(),
            digest: Digest::of(&payload).to_string(),
            size: payload.len() as u64,
            annotations: Some([(ANNOTATION.to_owned(), proof.to_owned())].into()),
        };
        let mut layers = manifest.get("layers").and_then(Value::as_array).cloned().unwrap_or_default();
        // The last is the newest one.
        layers.push(json!(layer));
        let differences: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
        let config = json!({
            "architecture": "", "os": "", "created": "0001-01-01T00:00:00Z", "config": {},
            "rootfs": {"type": "layers", "diff_ids": differences},
        });
        let config = config.to_string().into_bytes();
        self.upload(&config, "the configuration of the signature", narrator).await?;
        let described = json!({"mediaType": CONFIG, "digest": Digest::of(&config).to_string(), "size": config.len()});
        manifest.insert("schemaVersion".to_owned(), json!(2));
        manifest.insert("mediaType".to_owned(), json!(image::MANIFEST));
        manifest.insert("config".to_owned(), described);
        manifest.insert("layers".to_owned(), json!(layers));
        let manifest = json!(manifest).to_string().into_bytes();
        if manifest.len() > MOST_OF_A_MANIFEST {
            let why = format!("{} are too many for one more", self.signatures_name(digest));
            return Err(Error::new(ErrorKind::TooLarge, why));
        }
        self.put_manifest(&signature_tag(digest), manifest, "the manifest of the signature", narrator)
            .await
            .map(|()| true)
    }

    async fn upload(&self, blob: &[u8], name: &str, narrator: &dyn Narrator) -> Result<(), Error> {
        let what = format!("{name} of {}", self.image.place());
        let digest = Digest::of(blob);
        let there = Sent { method: Method::HEAD, ..Sent::default() };
        if self.ask(&format!("blobs/{digest}"), there).await?.status == StatusCode::OK {
            return Ok(());
        }
        let begin = Sent { method: Method::POST, most: MOST_OF_A_MANIFEST, ..Sent::default() };
        let begun = self.expect(self.ask("blobs/uploads/", begin).await?, &[StatusCode::ACCEPTED], &what)?;
        let location = begun.header(&LOCATION).ok_or_else(|| {
            Error::new(ErrorKind::Refused, format!("{} does not say where {what} goes", self.image.registry))
        })?;
        let target = self.server()?.follow(location)?.with_query("digest", &digest.to_string());
        let put = Sent {
            method: Method::PUT,
            headers: vec![(CONTENT_TYPE, "application/octet-stream".to_owned())],
            body: Bytes::copy_from_slice(blob),
            most: MOST_OF_A_MANIFEST,
            ..Sent::default()
        };
        self.expect(self.ask_at(&target, put).await?, &[StatusCode::CREATED], &what)?;
        narrator.tell(Event::done(format!("{name} is in the registry")));
        Ok(())
    }

    async fn put_manifest(
        &self,
        word: &str,
        manifest: Vec<u8>,
        name: &str,
        narrator: &dyn Narrator,
    ) -> Result<(), Error> {
        let put = Sent {
            method: Method::PUT,
            headers: vec![(CONTENT_TYPE, image::MANIFEST.to_owned())],
            body: manifest.into(),
            most: MOST_OF_A_MANIFEST,
            ..Sent::default()
        };
        let what = format!("{name} of {}", self.image.place());
        self.expect(self.ask(&format!("manifests/{word}"), put).await?, &[StatusCode::CREATED], &what)?;
        narrator.tell(Event::done(format!("{name} is in the registry")));
        Ok(())
    }

    fn server(&self) -> Result<Target, Error> {
        Target::of(self.image.server(), "/", self.trust())
    }
}

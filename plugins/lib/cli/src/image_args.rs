//! Which images are meant beside a release, as every command that installs or upgrades takes it.

use std::path::{Path, PathBuf};

use clap::Args;
use ocm_core::Failure;
use ocm_core::images::{Digests, ImagesError, overrides};
use ocm_core::release::{Bundle, Component};
use serde_json::Value;

use crate::{files, options};

/// `--bundle-version-overrides` and `--image-digests`.
#[derive(Args, Clone, Debug, Default)]
pub struct ImageArgs {
    /// File with a tag for all images in the place of the release's: {"ocm": "TAG"}
    #[arg(long, value_name = "FILE", help_heading = "Images")]
    pub bundle_version_overrides: Option<PathBuf>,
    /// File with the digests of the images, {"registration": "sha256:…", …}: every image is pinned by its digest
    #[arg(long, value_name = "FILE", help_heading = "Images")]
    pub image_digests: Option<PathBuf>,
}

impl ImageArgs {
    /// The release that was typed, or the tag of a file in its place; none: neither was given.
    ///
    /// # Errors
    /// A usage failure for what is no release, and for a file that cannot be used.
    pub async fn bundle(&self, typed: Option<&str>) -> Result<Option<Bundle>, Failure> {
        let typed = typed.map(options::release).transpose()?;
        let Some(path) = &self.bundle_version_overrides else { return Ok(typed) };
        let flag = "--bundle-version-overrides";
        overrides(&value(path, flag).await?).map(Some).map_err(|error| unusable(path, flag, &error))
    }

    /// The digests of a file; it has to have those of the images that are `needed`.
    ///
    /// # Errors
    /// A usage failure for a file that cannot be used.
    pub async fn digests(&self, needed: impl IntoIterator<Item = Component>) -> Result<Digests, Failure> {
        let Some(path) = &self.image_digests else { return Ok(Digests::default()) };
        let flag = "--image-digests";
        let digests = Digests::read(&value(path, flag).await?).map_err(|error| unusable(path, flag, &error))?;
        digests.have(needed).map_err(|error| unusable(path, flag, &error))?;
        Ok(digests)
    }
}

/// The one value of a file.
pub(crate) async fn value(path: &Path, flag: &str) -> Result<Value, Failure> {
    let (named, what) = (path.to_owned(), format!("the file of {flag}"));
    let text = files::beside(move || files::text(&named, &what)).await?;
    files::value(&text).map_err(|why| {
        Failure::usage(format!("{}, the file of {flag}, is neither JSON nor YAML", path.display())).because(why)
    })
}

fn unusable(path: &Path, flag: &str, error: &ImagesError) -> Failure {
    let failure = Failure::usage(format!("{}, the file of {flag}, cannot be used", path.display())).because(error);
    match error {
        ImagesError::Unknown { near: Some(near), .. } => failure.hint(format!("did you mean {near}?")),
        ImagesError::Unknown { near: None, known, .. } => failure.hint(format!("there are: {}", known.join(", "))),
        ImagesError::Missing(_) => {
            failure.hint("of every image: docker buildx imagetools inspect IMAGE tells its digest")
        }
        ImagesError::NoTag | ImagesError::NotATag => failure.hint("write it as {\"ocm\": \"v1.3.1-mine\"}"),
        ImagesError::Form | ImagesError::NotADigest(_) => failure,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[tokio::test]
    async fn a_tag_of_a_file_stands_in_the_place_of_a_release() {
        let (_folder, path) = file(r#"{"ocm": "v1.3.1-mine", "policy_addon": "v0.18.0"}"#);
        let tag = async |path: Option<PathBuf>, typed: Option<&str>| {
            let arguments = ImageArgs { bundle_version_overrides: path, image_digests: None };
            arguments.bundle(typed).await.unwrap().map(|bundle| bundle.to_string())
        };
        assert_eq!(tag(Some(path.clone()), Some("1.3.0")).await.as_deref(), Some("v1.3.1-mine"));
        assert_eq!(tag(None, Some("1.3.0")).await.as_deref(), Some("v1.3.0"));
        assert_eq!(tag(None, None).await, None);
        let arguments = ImageArgs { bundle_version_overrides: Some(path), image_digests: None };
        assert!(arguments.bundle(Some("x")).await.unwrap_err().message.contains("--bundle-version"));
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_file_is_told_with_its_flag() {
        let digests = async |text: &str, needed: &[Component]| {
            let (_folder, path) = file(text);
            let arguments = ImageArgs { bundle_version_overrides: None, image_digests: Some(path) };
            arguments.digests(needed.iter().copied()).await
        };
        let digest = format!("sha256:{}", "a".repeat(64));
        let yaml = format!("work: {digest}\nregistration: {digest}\n");
        assert!(digests(&yaml, &[Component::Work]).await.is_ok());
        let missing = digests(&yaml, &Component::AGENT).await.unwrap_err();
        assert!(
            missing.to_string().contains("--image-digests, cannot be used: it has no digest of registration-operator")
        );
        let unknown = digests("worc: x", &[]).await.unwrap_err();
        assert_eq!(unknown.hints, ["did you mean work?"]);
        assert!(digests("{", &[]).await.unwrap_err().message.contains("neither JSON nor YAML"));
    }
}

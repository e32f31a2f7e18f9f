//! Which images are meant beside a release: those of another registry, those with given digests, those with a tag of their own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::nearest;
use crate::order::Collect as _;
use crate::release::{Bundle, Component, Image};

/// Keys of a file of overrides that name what is not installed here. Upstream: `VersionBundle` of clusteradm, of the releases
/// 1.1 to 1.3.
const OF_OTHERS: [&str; 3] = ["policy_addon", "app_addon", "multicluster_controlplane"];
/// The key of such a file whose value is the tag of all images.
const OCM: &str = "ocm";

/// Why a file says nothing of images.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImagesError {
    /// It is no object with texts as values.
    #[error("it is not an object with a text for each key")]
    Form,
    /// There is nothing of this name.
    #[error("it has the key {name:?}, which names nothing")]
    Unknown {
        /// The name.
        name: String,
        /// What was probably meant.
        near: Option<&'static str>,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The value is no digest.
    #[error("what it says of {0} is no digest: sha256: and 64 of 0-9 and a-f")]
    NotADigest(&'static str),
    /// The value is no tag.
    #[error("what it says of ocm is no tag: letters, digits, '_', '.' and '-', 128 at most")]
    NotATag,
    /// It names no tag.
    #[error("it does not say ocm, the tag of the images")]
    NoTag,
    /// Images that are needed are not in it.
    #[error("it has no digest of {}", .0.join(", "))]
    Missing(Vec<&'static str>),
}

/// The digests of images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests(BTreeMap<Component, String>);

impl Digests {
    /// Reads `{"registration": "sha256:…", …}`.
    ///
    /// # Errors
    /// For other forms, and for what is no image of a hub or a managed cluster.
    pub fn read(value: &Value) -> Result<Self, ImagesError> {
        let known = || Component::ALL.into_iter().map(Component::image).collect::<Vec<_>>();
        let one = |(name, value): (&String, &Value)| -> Result<(Component, String), ImagesError> {
            let component = Component::of(name).ok_or_else(|| unknown(name, known()))?;
            let digest = value.as_str().filter(|text| is_digest(text));
            let digest = digest.ok_or_else(|| ImagesError::NotADigest(component.image()))?;
            Ok((component, digest.to_owned()))
        };
        Ok(Self(texts(value)?.iter().map(one).try_collect_map()?))
    }

    /// The digest of a component's image.
    pub fn of(&self, component: Component) -> Option<&str> {
        self.0.get(&component).map(String::as_str)
    }

    /// Checks that it has those of all of them.
    ///
    /// # Errors
    /// [`ImagesError::Missing`], with those that it does not have.
    pub fn have(&self, components: impl IntoIterator<Item = Component>) -> Result<(), ImagesError> {
        let missing: Vec<&str> =
            components.into_iter().filter(|component| !self.0.contains_key(component)).map(Component::image).collect();
        if missing.is_empty() { Ok(()) } else { Err(ImagesError::Missing(missing)) }
    }

    /// An image with its digest, if it has one here. The tag stays: it tells people and us which release it is, and whoever
    /// pulls the image goes by the digest.
    pub(crate) fn pin(&self, component: Component, mut image: Image) -> Image {
        if let Some(digest) = self.of(component) {
            image.digest = Some(digest.to_owned());
        }
        image
    }
}

/// From where an upgrade takes its images. Whatever is empty was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Where all images are.
    pub registry: Option<String>,
    /// Their digests.
    pub digests: Digests,
}

impl Source {
    /// The image of a component, from there.
    pub(crate) fn image(&self, component: Component, mut image: Image) -> String {
        if let Some(registry) = &self.registry {
            image.repository = format!("{registry}/{}", component.image());
        }
        self.digests.pin(component, image).to_string()
    }
}

/// Says which images were pinned by a digest and are not any more: of each its name, as it is, and as it is to be.
pub(crate) fn unpinned<'a>(images: impl IntoIterator<Item = (&'static str, &'a str, &'a str)>) -> Option<String> {
    let is_pinned = |image: &str| Image::parse(image).digest.is_some();
    let gone = |&(_, before, after): &(&str, &str, &str)| is_pinned(before) && !is_pinned(after);
    let names: Vec<&str> = images.into_iter().filter(gone).map(|(name, _, _)| name).collect();
    (!names.is_empty()).then(|| {
        format!("pinned by a digest until now, and by the tag of the release alone from now on: {}", names.join(", "))
    })
}

/// Reads a file of overrides, as clusteradm takes it: `{"ocm": "TAG"}`, the tag of all images in the place of the release's.
/// What it says of other projects' images is passed over.
///
/// # Errors
/// For other forms, for unknown keys, and where it names no tag.
pub fn overrides(value: &Value) -> Result<Bundle, ImagesError> {
    let members = texts(value)?;
    let is_known = |name: &&String| name.as_str() == OCM || OF_OTHERS.contains(&name.as_str());
    if let Some(name) = members.keys().find(|name| !is_known(name)) {
        return Err(unknown(name, [OCM].into_iter().chain(OF_OTHERS).collect()));
    }
    let tag = members.get(OCM).and_then(Value::as_str).ok_or(ImagesError::NoTag)?;
    Bundle::of_tag(tag).ok_or(ImagesError::NotATag)
}

fn texts(value: &Value) -> Result<&Map<String, Value>, ImagesError> {
    value.as_object().filter(|members| members.values().all(Value::is_string)).ok_or(ImagesError::Form)
}

fn unknown(name: &str, known: Vec<&'static str>) -> ImagesError {
    ImagesError::Unknown { name: name.to_owned(), near: nearest(name, known.iter().copied()), known }
}

/// Whether it is a digest of the one algorithm that registries must know. Upstream: the specification of OCI images,
/// "Digests".
fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(letter: &str) -> String {
        format!("sha256:{}", letter.repeat(64))
    }

    #[test]
    fn digests_are_of_images_that_there_are() {
        let read = Digests::read(&json!({"work": digest("a"), "registration": digest("0")})).unwrap();
        assert_eq!((read.of(Component::Work), read.of(Component::Placement)), (Some(digest("a").as_str()), None));
        let missing = read.have(Component::AGENT).unwrap_err();
        assert_eq!(missing, ImagesError::Missing(vec!["registration-operator"]));
        assert_eq!(read.have([Component::Work, Component::Registration]), Ok(()));
        let near = |value: Value| match Digests::read(&value) {
            Err(ImagesError::Unknown { near, .. }) => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near(json!({"registration-operater": digest("a")})), Some("registration-operator"));
        assert_eq!(near(json!({"quay.io/o/work": digest("a")})), None);
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let upper = format!("sha256:{}", "A".repeat(64));
        for wrong in ["", "v1.2.0", "sha256:ab", upper.as_str(), "sha512:ab"] {
            let read = Digests::read(&json!({"work": wrong}));
            assert_eq!(read, Err(ImagesError::NotADigest("work")), "{wrong:?}");
        }
        for wrong in [json!(["work"]), json!("work"), json!({"work": 1}), json!(null)] {
            assert_eq!(Digests::read(&wrong), Err(ImagesError::Form), "{wrong}");
        }
    }

    #[test]
    fn an_image_keeps_its_tag_beside_its_digest() {
        let digests = Digests::read(&json!({"work": digest("a")})).unwrap();
        let source = Source { registry: Some("mirror.example:5000/ocm".to_owned()), digests };
        let image = |component, text| source.image(component, Image::parse(text));
        let pinned = format!("mirror.example:5000/ocm/work:v1.2.0@{}", digest("a"));
        assert_eq!(image(Component::Work, "quay.io/o/my-work:v1.2.0"), pinned);
        assert_eq!(Bundle::of_image(&pinned), Bundle::parse("1.2.0").ok());
        assert_eq!(image(Component::Placement, "q/placement:v1.2.0"), "mirror.example:5000/ocm/placement:v1.2.0");
        assert_eq!(Source::default().image(Component::Work, Image::parse("r/w:v1@sha256:ab")), "r/w:v1@sha256:ab");
    }

    #[test]
    fn images_that_are_not_pinned_any_more_are_told() {
        let told = unpinned([
            ("work", "r/work:v1.1.0@sha256:ab", "r/work:v1.2.0"),
            ("placement", "r/placement:v1.1.0@sha256:ab", "r/placement:v1.2.0@sha256:cd"),
            ("registration", "r/registration:v1.1.0", "r/registration:v1.2.0"),
        ]);
        assert!(told.unwrap().ends_with("from now on: work"));
        assert_eq!(unpinned([("work", "r/work:v1", "r/work:v2")]), None);
    }

    #[test]
    fn overrides_name_the_tag_and_pass_over_what_is_of_others() {
        let tag = |value: Value| overrides(&value).map(|bundle| bundle.to_string());
        assert_eq!(tag(json!({"ocm": "v1.3.1-mine", "policy_addon": "v0.18.0"})), Ok("v1.3.1-mine".to_owned()));
        assert_eq!(tag(json!({"ocm": "main-4f2a"})), Ok("main-4f2a".to_owned()));
        assert_eq!(tag(json!({"policy_addon": "v0.18.0"})), Err(ImagesError::NoTag));
        assert_eq!(tag(json!({"ocm": "a b"})), Err(ImagesError::NotATag));
        assert_eq!(tag(json!({"ocm": 1})), Err(ImagesError::Form));
        let unknown = tag(json!({"policy_adon": "v1", "ocm": "v1"})).unwrap_err();
        assert!(matches!(unknown, ImagesError::Unknown { near: Some("policy_addon"), .. }), "{unknown:?}");
    }
}

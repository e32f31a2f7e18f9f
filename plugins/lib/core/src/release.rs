//! Releases of Open Cluster Management and the images that belong to them.

use std::fmt;

use semver::{Prerelease, Version};

/// The release that is installed unless another one is asked for.
pub const DEFAULT: &str = "v1.3.1";

/// Where the images of the releases are.
pub const REGISTRY: &str = "quay.io/open-cluster-management";

/// The words of suffixes with which a release is called that is not out yet, as `v1.4.0-rc.1`.
const NOT_OUT_YET: [&str; 11] =
    ["alpha", "beta", "rc", "pre", "prerelease", "preview", "dev", "snapshot", "nightly", "canary", "ci"];

/// Why a text names no release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARelease(pub String);

/// A release, or the newest build of the main branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    tag: String,
}

impl Bundle {
    /// Reads what people type: `1.3.1`, `v1.3.1`, `latest`, `default`.
    ///
    /// # Errors
    /// For everything that is not a release.
    pub fn parse(text: &str) -> Result<Self, NotARelease> {
        let text = text.trim();
        match text {
            "default" => Ok(Self::default()),
            "latest" => Ok(Self { tag: text.to_owned() }),
            _ => match Version::parse(text.strip_prefix('v').unwrap_or(text)) {
                Ok(version) => Ok(Self { tag: format!("v{version}") }),
                Err(_) => Err(NotARelease("it is not of the form X.Y.Z".to_owned())),
            },
        }
    }

    /// The release that the tag of an image names, if it names one.
    pub fn of_image(image: &str) -> Option<Self> {
        let tag = Image::parse(image).tag?;
        (tag == "latest" || Version::parse(tag.strip_prefix('v')?).is_ok()).then_some(Self { tag })
    }

    /// A build whose images have a tag of their own, which need not name a release; none for what can be no tag. Upstream: the
    /// specification of OCI distribution, "Pulling manifests".
    pub fn of_tag(tag: &str) -> Option<Self> {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let begins = tag.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (begins && tag.len() <= 128 && tag.bytes().all(is_inner)).then(|| Self { tag: tag.to_owned() })
    }

    /// The tag of its images.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Whether its tag says which release it is, so that others can be compared with it.
    pub fn says_version(&self) -> bool {
        self.version().is_some()
    }

    /// Whether it is a release before `other`, as far as both are releases.
    pub fn is_before(&self, other: &Self) -> bool {
        self.version().zip(other.version()).is_some_and(|(own, other)| own < other)
    }

    /// The release that it is, or, of a build of somebody's own, the one that was built.
    ///
    /// Semantic Versioning calls whatever stands behind a `-` a pre-release. But the tag of an image has no other place for the
    /// name of who has built it: `v1.3.1-mine` is 1.3.1, and neither earlier nor later than another build of it. Only a
    /// suffix that says so is of a release that is not out yet.
    fn version(&self) -> Option<Version> {
        let version = Version::parse(self.tag.strip_prefix('v')?).ok()?;
        let pre = if is_not_out_yet(&version.pre) { version.pre } else { Prerelease::EMPTY };
        Some(Version { pre, ..Version::new(version.major, version.minor, version.patch) })
    }

    /// Whether it is of an earlier minor release than `other`, as far as both are releases.
    pub fn is_minor_before(&self, other: &Self) -> bool {
        let minor = |version: Version| (version.major, version.minor);
        self.version().map(minor).zip(other.version().map(minor)).is_some_and(|(own, other)| own < other)
    }

    /// How many minor releases lie between it and a later release, 0 for the next one; none where one of them is no release,
    /// or `later` is not later.
    pub fn minors_before(&self, later: &Self) -> Option<u64> {
        // The last of the releases 0.x was followed by 1.0.
        const LAST_OF_ZERO: u64 = 16;
        let minor = |version: Version| match version.major {
            0 => version.minor,
            major => LAST_OF_ZERO + major + version.minor,
        };
        let (own, later) = (self.version().map(minor)?, later.version().map(minor)?);
        later.checked_sub(own)?.checked_sub(1)
    }

    /// Whether it lacks the fix of CVE-2026-4740, with which a joined cluster can pass for another one.
    pub fn is_vulnerable(&self) -> bool {
        let Some(version) = self.version() else { return false };
        match (version.major, version.minor, version.patch) {
            (0, _, _) => true,
            (1, 0, patch) => patch < 1,
            (1, 1, patch) => patch < 3,
            (1, 2, patch) => patch < 1,
            _ => false,
        }
    }
}

/// Whether a suffix says that the release is not out yet: by a word, as `rc.1` or `beta2`, or by the zero with which Go names a
/// commit before a release (`0.20260102030405-0123456789ab`).
fn is_not_out_yet(suffix: &Prerelease) -> bool {
    let first = suffix.as_str().split(['.', '-']).next().unwrap_or_default();
    let word = first.trim_end_matches(|character: char| character.is_ascii_digit()).to_ascii_lowercase();
    first == "0" || NOT_OUT_YET.contains(&word.as_str())
}

impl Default for Bundle {
    fn default() -> Self {
        Self { tag: DEFAULT.to_owned() }
    }
}

impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.tag)
    }
}

/// The parts of a hub that have an image of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// Installs and repairs all others.
    Operator,
    /// Registration controller and webhook.
    Registration,
    /// Work controller and webhook.
    Work,
    /// Placement controller.
    Placement,
    /// Add-on manager and conversion webhook.
    AddonManager,
}

impl Component {
    /// Every component.
    pub const ALL: [Self; 5] = [Self::Registration, Self::Work, Self::Placement, Self::AddonManager, Self::Operator];

    /// Those whose images a managed cluster has.
    pub const AGENT: [Self; 3] = [Self::Registration, Self::Work, Self::Operator];

    /// The name of its image.
    pub const fn image(self) -> &'static str {
        match self {
            Self::Operator => "registration-operator",
            Self::Registration => "registration",
            Self::Work => "work",
            Self::Placement => "placement",
            Self::AddonManager => "addon-manager",
        }
    }

    /// The component whose image has this name.
    pub fn of(image: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.image() == image)
    }
}

/// An image reference, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Registry and path: `quay.io/open-cluster-management/work`.
    pub repository: String,
    /// Tag, if there is one.
    pub tag: Option<String>,
    /// Digest, if the image is pinned by one.
    pub digest: Option<String>,
}

impl Image {
    /// Takes a reference apart. Every text is one.
    pub fn parse(text: &str) -> Self {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (text, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let name = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match rest[name..].split_once(':') {
            Some((_, tag)) => (&rest[..rest.len() - tag.len() - 1], Some(tag.to_owned())),
            None => (rest, None),
        };
        Self { repository: repository.to_owned(), tag, digest }
    }

    /// The repository without its last part.
    pub fn registry(&self) -> &str {
        self.repository.rsplit_once('/').map_or("", |(registry, _)| registry)
    }

    /// The same image of a release. A digest stays only where the tag beside it is that of the release already: it is the
    /// digest of one image. A tag that names no release, as `latest`, may be of another image by now.
    #[must_use]
    pub fn of_release(mut self, bundle: &Bundle) -> Self {
        if self.tag.as_deref() != Some(bundle.tag()) || !bundle.says_version() {
            (self.tag, self.digest) = (Some(bundle.tag().to_owned()), None);
        }
        self
    }

    /// The last part of the repository.
    pub fn name(&self) -> &str {
        self.repository.rsplit_once('/').map_or(self.repository.as_str(), |(_, name)| name)
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_as_people_type_them() {
        for (text, tag) in [
            ("1.3.1", "v1.3.1"),
            ("v1.2.0", "v1.2.0"),
            ("latest", "latest"),
            ("default", DEFAULT),
            ("1.4.0-rc.1", "v1.4.0-rc.1"),
        ] {
            assert_eq!(Bundle::parse(text).unwrap().tag(), tag, "{text}");
        }
        for text in ["", "1.3", "newest", "v1.3.1.2", "1.3.x"] {
            assert!(Bundle::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_build_may_have_a_tag_that_names_no_release() {
        let mine = Bundle::of_tag("main-4f2a").unwrap();
        assert_eq!((mine.tag(), mine.says_version()), ("main-4f2a", false));
        assert!(Bundle::of_tag("v1.2.0-mine").unwrap().is_before(&Bundle::default()));
        let long = "a".repeat(129);
        for wrong in ["", "-a", ".a", "a b", "a:b", "a@sha256", long.as_str()] {
            assert_eq!(Bundle::of_tag(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_digest_goes_with_its_release() {
        let of = |text: &str| Image::parse(text).of_release(&Bundle::parse("1.2.0").unwrap()).to_string();
        assert_eq!(of("r/work:v1.1.0@sha256:ab"), "r/work:v1.2.0");
        assert_eq!(of("r/work@sha256:ab"), "r/work:v1.2.0");
        assert_eq!(of("r/work:v1.2.0@sha256:ab"), "r/work:v1.2.0@sha256:ab");
        let newest = Image::parse("r/work:latest@sha256:ab").of_release(&Bundle::parse("latest").unwrap());
        assert_eq!(newest.to_string(), "r/work:latest");
    }

    #[test]
    fn releases_without_the_fix() {
        for (text, vulnerable) in [
            ("0.16.0", true),
            ("1.0.0", true),
            ("1.0.1", false),
            ("1.1.2", true),
            ("1.1.3", false),
            ("1.2.0", true),
            ("1.2.1", false),
            ("1.3.1", false),
            ("latest", false),
        ] {
            assert_eq!(Bundle::parse(text).unwrap().is_vulnerable(), vulnerable, "{text}");
        }
    }

    #[test]
    fn releases_have_an_order() {
        let bundle = |text: &str| Bundle::parse(text).unwrap();
        assert!(bundle("1.2.9").is_before(&bundle("1.10.0")) && bundle("1.3.0-rc.1").is_before(&bundle("1.3.0")));
        assert!(!bundle("1.3.0").is_before(&bundle("1.3.0")) && !bundle("latest").is_before(&bundle("1.3.0")));
    }

    #[test]
    fn a_build_of_somebodys_own_is_the_release_that_was_built() {
        let bundle = |text: &str| Bundle::parse(text).unwrap();
        let release = bundle("1.3.1");
        for own in ["1.3.1-mine", "1.3.1-mirror.2", "1.3.1-1", "1.3.1-fips-rc1", "1.3.1-cited"] {
            let own = bundle(own);
            assert!(!own.is_before(&release) && !release.is_before(&own), "{own}");
            assert!(bundle("1.3.1-rc.1").is_before(&own) && own.is_before(&bundle("1.3.2-mine")), "{own}");
            assert!(own.says_version() && own.tag() != release.tag(), "{own}");
        }
        for early in ["1.3.1-rc.1", "1.3.1-RC1", "1.3.1-alpha", "1.3.1-beta-2", "1.3.1-0.20260102030405-0123456789ab"] {
            assert!(bundle(early).is_before(&release), "{early}");
        }
        assert!(bundle("1.3.1-rc.1").is_before(&bundle("1.3.1-rc.2")));
    }

    #[test]
    fn minor_releases_between_two_are_counted() {
        let between = |old: &str, new: &str| Bundle::parse(old).unwrap().minors_before(&Bundle::parse(new).unwrap());
        assert_eq!(between("1.1.0", "1.2.3"), Some(0));
        assert_eq!(between("1.0.4", "1.3.0"), Some(2));
        assert_eq!(between("0.16.0", "1.0.0"), Some(0));
        assert_eq!(between("0.15.0", "1.1.0"), Some(2));
        for (old, new) in [("1.2.0", "1.2.1"), ("1.3.0", "1.2.0"), ("latest", "1.2.0"), ("1.2.0", "latest")] {
            assert_eq!(between(old, new), None, "{old} {new}");
        }
    }

    #[test]
    fn references_come_apart_and_together() {
        for (text, repository, tag, digest) in [
            ("work", "work", None, None),
            ("quay.io/o/work:v1", "quay.io/o/work", Some("v1"), None),
            ("host:5000/work", "host:5000/work", None, None),
            ("host:5000/o/work:v1@sha256:ab", "host:5000/o/work", Some("v1"), Some("sha256:ab")),
        ] {
            let image = Image::parse(text);
            assert_eq!(image.repository, repository);
            assert_eq!((image.tag.as_deref(), image.digest.as_deref()), (tag, digest), "{text}");
            assert_eq!(image.to_string(), text);
        }
        assert_eq!(Image::parse("host:5000/o/work:v1").registry(), "host:5000/o");
        assert_eq!(Image::parse("host:5000/o/work:v1").name(), "work");
        assert_eq!(Bundle::of_image("quay.io/o/work:v1.2.0").unwrap().tag(), "v1.2.0");
        assert_eq!(Bundle::of_image("quay.io/o/work"), None);
    }
}

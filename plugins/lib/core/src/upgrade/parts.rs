//! What runs: every part of an installation and its image.

use crate::release::{Bundle, Component, Image};

/// A part of an installation, and where its image is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is: `registration-operator`, `work`.
    pub name: &'static str,
    /// Its image.
    pub image: String,
}

impl Part {
    /// The release that its image names, if it names one.
    pub fn release(&self) -> Option<Bundle> {
        Bundle::of_image(&self.image)
    }
}

/// Every part of an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(pub Vec<Part>);

impl Parts {
    /// The release that every part is of; none if they are of several, or one does not tell.
    pub fn release(&self) -> Option<Bundle> {
        let first = self.0.first()?.release()?;
        self.0.iter().all(|part| part.release().as_ref() == Some(&first)).then_some(first)
    }

    /// Whether they are of several releases, as an upgrade leaves them that was killed. Builds of one release are one.
    pub fn is_mixed(&self) -> bool {
        let releases: Vec<Bundle> = self.known().map(|(_, release)| release).collect();
        releases.windows(2).any(|pair| {
            pair[0].is_before(&pair[1])
                || pair[1].is_before(&pair[0])
                || pair[0].says_version() != pair[1].says_version()
        })
    }

    /// The release that leads back from `target`, and whether it is an older one; none where images are told by digests or
    /// tags of their own, so that no release says what ran. Parts of several releases are as an upgrade leaves them that was
    /// killed: it came from the oldest, or, if that is the target, was on its way down from the newest.
    pub fn way_back(&self, target: &Bundle) -> Option<(Bundle, bool)> {
        let is_plain = |part: &Part| part.release().is_some() && Image::parse(&part.image).digest.is_none();
        if !self.0.iter().all(is_plain) {
            return None;
        }
        let (oldest, newest) = (self.oldest()?, self.newest()?);
        let came_from = if target.is_before(&newest) { newest } else { oldest };
        // Builds of one release are neither earlier nor later: among them, it is one that is not the target.
        let builds = self.known().map(|(_, release)| release);
        let release = std::iter::once(came_from).chain(builds).find(|release| release != target)?;
        let is_older = release.is_before(target);
        Some((release, is_older))
    }

    /// The registry where all images are by their usual names; none if they are in several, or have names of their own.
    pub fn registry(&self) -> Option<String> {
        let registry = |part: &Part| {
            let image = Image::parse(&part.image);
            Component::of(image.name())?;
            Some(image.registry().to_owned()).filter(|registry| !registry.is_empty())
        };
        let first = registry(self.0.first()?)?;
        self.0.iter().all(|part| registry(part).as_ref() == Some(&first)).then_some(first)
    }

    /// The parts whose release is told, each with it.
    pub(crate) fn known(&self) -> impl Iterator<Item = (&Part, Bundle)> {
        self.0.iter().filter_map(|part| Some((part, part.release()?)))
    }

    /// The oldest release of a part.
    pub fn oldest(&self) -> Option<Bundle> {
        self.known()
            .map(|(_, bundle)| bundle)
            .reduce(|oldest, next| if next.is_before(&oldest) { next } else { oldest })
    }

    /// The newest release of a part.
    pub fn newest(&self) -> Option<Bundle> {
        self.known()
            .map(|(_, bundle)| bundle)
            .reduce(|newest, next| if newest.is_before(&next) { next } else { newest })
    }

    /// For people: the release, or each part with its own; of a part that names none, the image.
    pub fn told(&self) -> String {
        if let Some(release) = self.release() {
            return release.to_string();
        }
        let one = |part: &Part| {
            format!("{} {}", part.name, part.release().map_or_else(|| part.image.clone(), |bundle| bundle.to_string()))
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
pub(super) fn parts(images: &[(&'static str, &str)]) -> Parts {
    Parts(images.iter().map(|(name, image)| Part { name, image: (*image).to_owned() }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_release_is_told_as_such_and_several_part_by_part() {
        let one = parts(&[("registration", "r/registration:v1.2.0"), ("work", "m/w:v1.2.0")]);
        assert_eq!(one.told(), "v1.2.0");
        let mixed = parts(&[
            ("registration-operator", "r/o:v1.2.0"),
            ("registration", "r/registration:v1.10.0"),
            ("work", "r/work@sha256:ab"),
        ]);
        assert_eq!(mixed.told(), "registration-operator v1.2.0, registration v1.10.0, work r/work@sha256:ab");
        assert_eq!(mixed.release(), None);
        let tag = |bundle: Option<Bundle>| bundle.unwrap().to_string();
        assert_eq!((tag(mixed.oldest()), tag(mixed.newest())), ("v1.2.0".to_owned(), "v1.10.0".to_owned()));
        assert_eq!(Parts::default().release(), None);
    }

    #[test]
    fn parts_of_several_releases_are_mixed_and_builds_of_one_are_not() {
        let mixed = |tags: [&str; 2]| {
            parts(&[("registration-operator", &format!("r/o:{}", tags[0])), ("work", &format!("r/w:{}", tags[1]))])
                .is_mixed()
        };
        for several in [["v1.2.0", "v1.3.1"], ["v1.3.1", "v1.2.0"], ["latest", "v1.2.0"]] {
            assert!(mixed(several), "{several:?}");
        }
        for one in [["v1.2.0", "v1.2.0"], ["v1.2.0-mine", "v1.2.0"], ["v1.2.0", "mine"], ["latest", "latest"]] {
            assert!(!mixed(one), "{one:?}");
        }
    }

    #[test]
    fn a_registry_is_told_where_one_flag_names_it() {
        let registry = |images: &[&str]| {
            let images: Vec<(&'static str, &str)> = images.iter().map(|image| ("a part", *image)).collect();
            parts(&images).registry()
        };
        assert_eq!(registry(&["r:5000/o/work:v1", "r:5000/o/placement:v1"]).as_deref(), Some("r:5000/o"));
        for none in [&["r/work:v1", "q/placement:v1"][..], &["r/my-work:v1"], &["work:v1"], &[]] {
            assert_eq!(registry(none), None, "{none:?}");
        }
    }

    #[test]
    fn the_way_back_is_the_release_before() {
        let target = Bundle::parse("1.2.0").unwrap();
        let back = |images: &[(&'static str, &str)]| {
            parts(images).way_back(&target).map(|(bundle, is_older)| (bundle.to_string(), is_older))
        };
        let old = Some(("v1.1.0".to_owned(), true));
        assert_eq!(back(&[("work", "r/work:v1.1.0")]), old);
        assert_eq!(back(&[("registration-operator", "r/o:v1.2.0"), ("work", "r/work:v1.1.0")]), old);
        assert_eq!(back(&[("work", "r/work:v1.3.1")]), Some(("v1.3.1".to_owned(), false)));
        // Neither is older than the other, so that nothing has to be allowed.
        let build = Some(("v1.2.0-mine".to_owned(), false));
        assert_eq!(back(&[("work", "r/work:v1.2.0-mine")]), build);
        assert_eq!(back(&[("registration-operator", "r/o:v1.2.0"), ("work", "r/work:v1.2.0-mine")]), build);
        for none in ["r/work:v1.2.0", "r/work:v1.1.0@sha256:ab", "r/work:mine", "r/work@sha256:ab"] {
            assert_eq!(back(&[("work", none)]), None, "{none}");
        }
    }
}

//! What a cluster of a fleet file is to run: what was typed for all, and where that says nothing, what the file says of it.

use crate::images::{Digests, Source};
use crate::join::Settings;
use crate::release::Bundle;

/// A release, and from where its images are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The release; none: that of the hub.
    pub bundle: Option<Bundle>,
    /// From where the images are taken.
    pub source: Source,
}

impl Wanted {
    /// With what a fleet file says of a cluster where this says nothing. Digests are of one release: those of the file count for
    /// the release that it names, and for no other.
    #[must_use]
    pub fn or(&self, settings: &Settings) -> Self {
        let Self { bundle, source: Source { registry, digests } } = self.clone();
        let bundle = bundle.or_else(|| settings.bundle.clone());
        let is_of_file = bundle.is_some() && bundle == settings.bundle;
        let digests = if digests == Digests::default() && is_of_file { settings.digests.clone() } else { digests };
        Self { bundle, source: Source { registry: registry.or_else(|| settings.registry.clone()), digests } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digests(letter: char) -> Digests {
        let digest = format!("sha256:{}", letter.to_string().repeat(64));
        Digests::read(&json!({"registration": digest})).unwrap()
    }

    fn release(text: &str) -> Option<Bundle> {
        Some(Bundle::parse(text).unwrap())
    }

    fn of(bundle: Option<Bundle>, registry: Option<&str>, digests: Digests) -> Wanted {
        Wanted { bundle, source: Source { registry: registry.map(str::to_owned), digests } }
    }

    fn file(bundle: Option<Bundle>) -> Settings {
        Settings { bundle, registry: Some("file.example".to_owned()), digests: digests('a'), ..Settings::default() }
    }

    #[test]
    fn what_was_typed_goes_before_the_file() {
        let typed = of(release("1.3.1"), Some("typed.example"), digests('b'));
        assert_eq!(typed.or(&file(release("1.2.0"))), typed);
        let nothing = Wanted::default();
        assert_eq!(nothing.or(&file(release("1.2.0"))), of(release("1.2.0"), Some("file.example"), digests('a')));
        assert_eq!(
            nothing.or(&Settings::default()),
            nothing,
            "the hub says the release, and images stay where they are"
        );
    }

    #[test]
    fn digests_of_the_file_are_of_its_release() {
        let typed = |text: &str| of(release(text), None, Digests::default());
        let of_file = |bundle| of(bundle, Some("file.example"), digests('a'));
        let without = |bundle| of(bundle, Some("file.example"), Digests::default());
        assert_eq!(typed("1.3.1").or(&file(release("1.2.0"))), without(release("1.3.1")));
        assert_eq!(typed("1.2.0").or(&file(release("1.2.0"))), of_file(release("1.2.0")));
        assert_eq!(Wanted::default().or(&file(None)), without(None), "of which release they are, nobody says");
    }
}

//! Which way it goes, and who may be newer than whom.

use super::Parts;
use crate::release::{self, Bundle};
use crate::{Failure, Remedy};

/// Where an upgrade leads.
#[derive(Clone, Debug)]
pub struct Target {
    /// The release.
    pub bundle: Bundle,
    /// Whether it may be older than what runs.
    pub downgrade: bool,
}

/// Judges the way from what runs to the target, and says what may bite. `who` is how messages name what is upgraded.
///
/// # Errors
/// A refusal of an older release that was not asked for.
pub fn direction(before: &Parts, target: &Target, who: &str) -> Result<Vec<String>, Failure> {
    let bundle = &target.bundle;
    let mut warnings = Vec::new();
    if let Some((part, newer)) = before.known().find(|(_, release)| bundle.is_before(release)) {
        if !target.downgrade {
            return Err(Failure::refused(format!(
                "{who} runs {newer} ({}), and {bundle} is older: nothing was changed",
                part.name
            ))
            .hint(Remedy::AllowDowngrade));
        }
        warnings.push(format!(
            "{bundle} is older than {newer}, which {who} runs; this project does not test the way back with binaries of \
             older releases"
        ));
    }
    let untold: Vec<&str> =
        before.0.iter().filter(|part| !says_version(part.release().as_ref())).map(|part| part.image.as_str()).collect();
    if !untold.is_empty() {
        warnings.push(format!("which release {who} runs is not told by {}: it may be a newer one", untold.join(", ")));
    }
    if let Some(oldest) = before.oldest()
        && let Some(skipped @ 1..) = oldest.minors_before(bundle)
    {
        let many = if skipped == 1 { "a minor release".to_owned() } else { format!("{skipped} minor releases") };
        warnings.push(format!("from {oldest} to {bundle} skips {many}: where that fails, go through each of them"));
    }
    if bundle.is_vulnerable() {
        let newest = release::DEFAULT;
        warnings.push(format!(
            "{bundle} lacks the fix of CVE-2026-4740: a joined cluster can pass for another one; choose {newest} or newer"
        ));
    }
    Ok(warnings)
}

/// Whether it is a release that others can be compared with.
fn says_version(release: Option<&Bundle>) -> bool {
    // It is before nothing and after nothing, itself excepted.
    release.is_some_and(|release| release.tag() != "latest")
}

/// Judges the release of an agent beside that of its hub, and says what may bite.
///
/// # Errors
/// A refusal of agents that would be of a later minor release than their hub.
pub fn skew(bundle: &Bundle, hub: &Parts, label: &str) -> Result<Vec<String>, Failure> {
    let Some(oldest) = hub.oldest() else {
        return Ok(vec![format!(
            "which release the hub ({label}) runs is not told by its images: agents should not be newer"
        )]);
    };
    if oldest.is_minor_before(bundle) {
        return Err(Failure::refused(format!(
            "the hub ({label}) runs {}, and agents must not be newer than their hub: nothing was changed",
            hub.told()
        ))
        .hint(Remedy::UpgradeHub(bundle.to_string())));
    }
    Ok(match bundle.minors_before(&oldest) {
        Some(skipped @ 1..) => {
            vec![format!("the hub ({label}) runs {oldest}, which is {} minor releases after {bundle}", skipped + 1)]
        }
        _ => Vec::new(),
    })
}

/// Says which agents on the same cluster are of a later minor release than the hub would be.
pub fn newer_agents<'a>(bundle: &Bundle, agents: impl IntoIterator<Item = (&'a str, &'a Parts)>) -> Vec<String> {
    let newer = |(told, parts): (&'a str, &'a Parts)| {
        let newest = parts.newest().filter(|newest| bundle.is_minor_before(newest))?;
        Some(format!("{told} runs {newest}: if this is its hub, it should be {newest} or newer, too"))
    };
    agents.into_iter().filter_map(newer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::parts::parts;
    use crate::{Hint, Reason};

    fn bundle(text: &str) -> Bundle {
        Bundle::parse(text).unwrap()
    }

    fn judge(images: &[(&'static str, &str)], to: &str, downgrade: bool) -> Result<Vec<String>, Failure> {
        direction(&parts(images), &Target { bundle: bundle(to), downgrade }, "the hub")
    }

    #[test]
    fn the_same_release_and_the_next_are_nothing_to_remark() {
        let before = [("registration", "r/registration:v1.2.1"), ("work", "r/work:v1.2.1")];
        assert_eq!(judge(&before, "1.2.1", false), Ok(Vec::new()));
        assert_eq!(judge(&before, "1.3.1", false), Ok(Vec::new()));
        // Half of an upgrade that was killed.
        let half = [("registration-operator", "r/o:v1.3.1"), ("work", "r/work:v1.2.1")];
        assert_eq!(judge(&half, "1.3.1", false), Ok(Vec::new()));
    }

    #[test]
    fn an_older_release_is_refused_unless_it_was_asked_for() {
        let before = [("registration", "r/registration:v1.2.1"), ("work", "r/work:v1.3.1")];
        let refused = judge(&before, "1.2.1", false).unwrap_err();
        assert_eq!(
            (refused.reason, refused.hints.as_slice()),
            (Reason::Refused, &[Hint::Remedy(Remedy::AllowDowngrade)][..])
        );
        assert!(refused.message.contains("runs v1.3.1 (work), and v1.2.1 is older"), "{refused}");
        let warnings = judge(&before, "1.2.1", true).unwrap();
        assert!(warnings[0].contains("does not test the way back"), "{warnings:?}");
    }

    #[test]
    fn releases_between_and_images_that_tell_none_are_told() {
        let said = |images: &[(&'static str, &str)], to: &str| judge(images, to, false).unwrap().join("\n");
        assert!(said(&[("work", "r/work:v1.1.3")], "1.3.1").contains("skips a minor release"));
        assert!(said(&[("work", "r/work:v1.0.1")], "1.3.1").contains("skips 2 minor releases"));
        assert!(said(&[("work", "r/work@sha256:ab")], "1.3.1").contains("not told by r/work@sha256:ab"));
        assert!(said(&[("work", "r/work:latest")], "1.3.1").contains("not told by r/work:latest"));
        assert!(said(&[("work", "r/work:v1.2.0")], "1.2.0").contains("CVE-2026-4740"));
    }

    #[test]
    fn agents_are_not_of_a_later_minor_release_than_their_hub() {
        let hub = |tag: &str| parts(&[("work", &format!("r/work:{tag}"))]);
        let judged = |agent: &str, tag: &str| skew(&bundle(agent), &hub(tag), "context \"h\"");
        for same in ["1.2.0", "1.2.1", "1.1.3"] {
            assert_eq!(judged(same, "v1.2.0"), Ok(Vec::new()), "{same}");
        }
        let refused = judged("1.3.0", "v1.2.9").unwrap_err();
        assert_eq!(refused.hints, [Hint::Remedy(Remedy::UpgradeHub("v1.3.0".to_owned()))]);
        assert!(judged("1.0.1", "v1.3.0").unwrap()[0].contains("3 minor releases after v1.0.1"));
        assert!(judged("1.0.1", "x").unwrap()[0].contains("not told"));
        let (old, new) = (hub("v1.2.0"), hub("v1.3.1"));
        let told = newer_agents(&bundle("1.2.1"), [("Klusterlet \"a\"", &old), ("Klusterlet \"b\"", &new)]);
        assert!(told.len() == 1 && told[0].starts_with("Klusterlet \"b\" runs v1.3.1"), "{told:?}");
    }
}

//! Another release for a hub that is there: what an upgrade refuses, an installation refuses, too.

use super::images::Images;
use super::{Live, Options};
use crate::release::Bundle;
use crate::upgrade::{self, Parts, Target};
use crate::{Failure, Hint, Remedy};

/// The parts that get another release than they have because one was given for the hub; none of a hub that is not there.
pub fn moved(options: &Options, live: &Live) -> Parts {
    match (&options.bundle, &live.cluster_manager) {
        (Some(_), Some(_)) => Images::of(options, live).moved(),
        _ => Parts::default(),
    }
}

/// Judges the way of these parts to a release, and says what may bite. `who` is how messages name the hub.
///
/// # Errors
/// A refusal of an older release.
pub fn direction(moved: &Parts, bundle: &Bundle, who: &str) -> Result<Vec<String>, Failure> {
    let target = Target { bundle: bundle.clone(), downgrade: false };
    upgrade::direction(moved, &target, who).map_err(|mut failure| {
        failure.hints.retain(|hint| *hint != Hint::Remedy(Remedy::AllowDowngrade));
        failure.hint(Remedy::DowngradeHub(bundle.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::release::Component;

    fn hub(operator: &str, tag: &str) -> Live {
        let image = format!("r/work:{tag}");
        Live {
            cluster_manager: Some(
                json!({"spec": {"workImagePullSpec": image, "registrationImagePullSpec": "r/mine@sha256:ab"}}),
            ),
            operator: Some(json!({"spec": {"template": {"spec": {"containers": [
                {"name": "o", "image": format!("r/registration-operator:{operator}"), "args": ["hub"]}]}}}})),
            nodes: None,
        }
    }

    fn to(version: &str) -> Options {
        Options {
            bundle: Bundle::parse(version).ok(),
            images: [(Component::Registration, "r/mine@sha256:ab".to_owned())].into(),
            ..Options::default()
        }
    }

    fn judged(live: &Live, version: &str) -> Result<Vec<String>, Failure> {
        direction(&moved(&to(version), live), &Bundle::parse(version).unwrap(), "the hub")
    }

    #[test]
    fn the_same_release_again_is_no_other_one() {
        let live = hub("v1.3.1", "v1.3.1");
        assert_eq!(moved(&to("1.3.1"), &live), Parts::default());
        assert_eq!(moved(&Options::default(), &live), Parts::default(), "none was given");
        assert_eq!(moved(&to("1.2.1"), &Live { cluster_manager: None, ..live }), Parts::default(), "there is no hub");
        // An image that was typed says all of itself.
        let mut typed = to("1.3.1");
        typed.images.insert(Component::Work, "r/work:v9.9.9".to_owned());
        assert_eq!(moved(&typed, &hub("v1.3.1", "v9.9.9")), Parts::default());
    }

    #[test]
    fn an_older_release_is_refused_and_a_newer_one_is_not() {
        let refused = judged(&hub("v1.3.1", "v1.3.1"), "1.2.1").unwrap_err();
        assert!(refused.message.contains("runs v1.3.1 (registration-operator), and v1.2.1 is older"), "{refused}");
        assert_eq!(refused.hints, [Hint::Remedy(Remedy::DowngradeHub("v1.2.1".to_owned()))]);
        // On the way back from an upgrade that was killed behind the operator.
        assert!(judged(&hub("v1.3.1", "v1.2.1"), "1.2.1").is_err());
        assert_eq!(judged(&hub("v1.3.1", "v1.2.1"), "1.3.1"), Ok(Vec::new()));
        let said = judged(&hub("v1.1.3", "v1.1.3"), "1.3.1").unwrap();
        assert!(said[0].contains("skips a minor release"), "{said:?}");
    }
}

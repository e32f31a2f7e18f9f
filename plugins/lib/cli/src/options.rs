//! Options that several commands take, from text to value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use ocm_core::cluster_name::{FORM, NameError, check_known};
use ocm_core::cluster_sets::can_name;
use ocm_core::gates::{Gate, GateError, parse};
use ocm_core::operator::{PullCredentials, PullCredentialsError};
use ocm_core::order::Collect as _;
use ocm_core::release::{Bundle, DEFAULT, NotARelease};
use ocm_core::work::is_object_name;
use ocm_core::{Failure, duration, name};

/// `--timeout`.
///
/// # Errors
/// A usage failure for what is no duration.
pub fn timeout(text: &str) -> Result<Duration, Failure> {
    duration::parse(text).map_err(|error| Failure::usage(format!("--timeout: {error}")))
}

/// Names of managed clusters, each once and in the order of the user's.
///
/// # Errors
/// A usage failure for what cannot be one.
pub fn cluster_names(names: Vec<String>) -> Result<Vec<String>, Failure> {
    names.iter().try_for_each(|name| check_known(name)).map_err(NameError::failure)?;
    Ok(once(names))
}

/// The same of other objects: `what` is `a work`, or `an add-on`.
///
/// # Errors
/// A usage failure for what cannot be one.
pub fn object_names(names: Vec<String>, what: &str) -> Result<Vec<String>, Failure> {
    match names.iter().find(|name| !is_object_name(name)) {
        Some(bad) => Err(Failure::usage(format!("{bad:?} cannot be the name of {what}"))
            .hint("names are lower-case letters, digits, '-' and '.', 253 characters at most")),
        None => Ok(once(names)),
    }
}

/// The same of the hub's sides of add-ons, whose names are values of labels.
///
/// # Errors
/// A usage failure for what cannot be one.
pub fn hub_addon_names(names: Vec<String>) -> Result<Vec<String>, Failure> {
    /// How long the value of a label may be: bytes. Kubernetes: `validation.LabelValueMaxLength`.
    const LONGEST: usize = 63;
    let names = object_names(names, "a hub add-on")?;
    match names.iter().find(|name| name.len() > LONGEST) {
        Some(long) => Err(Failure::usage(format!("{long:?} cannot be the name of a hub add-on"))
            .hint(format!("names have {LONGEST} characters at most"))),
        None => Ok(names),
    }
}

/// The same of namespaces.
///
/// # Errors
/// A usage failure for what cannot be one.
pub fn namespaces(names: Vec<String>) -> Result<Vec<String>, Failure> {
    match names.iter().find(|name| !name::is_dns_label(name)) {
        Some(bad) => Err(Failure::usage(format!("{bad:?} cannot be the name of a namespace")).hint(FORM)),
        None => Ok(once(names)),
    }
}

/// The same of sets of clusters.
///
/// # Errors
/// A usage failure for what cannot be one.
pub fn set_names(names: Vec<String>) -> Result<Vec<String>, Failure> {
    match names.iter().find(|name| !can_name(name)) {
        Some(bad) => Err(Failure::usage(format!("{bad:?} cannot be the name of a set of clusters"))
            .hint("names are lower-case letters, digits, '-' and '.', 63 characters at most")),
        None => Ok(once(names)),
    }
}

/// The value of a flag that names an object and its namespace.
///
/// # Errors
/// A usage failure for what names none.
pub fn namespaced(flag: &str, text: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('/').filter(|(namespace, name)| name::is_dns_label(namespace) && is_object_name(name));
    let (namespace, name) = parts.ok_or_else(|| Failure::usage(format!("{flag} {text:?} is not NAMESPACE/NAME")))?;
    Ok((namespace.to_owned(), name.to_owned()))
}

/// The values of a flag that are keys with their values, such as labels.
///
/// # Errors
/// A usage failure for what is none.
pub fn pairs(flag: &str, texts: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!("{flag} {text:?} is not KEY=VALUE"))),
    };
    texts.iter().map(pair).try_collect_map()
}

fn once(mut names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// `--bundle-version`.
///
/// # Errors
/// A usage failure for what is no release.
pub fn release(text: &str) -> Result<Bundle, Failure> {
    Bundle::parse(text).map_err(|NotARelease(why)| {
        Failure::usage(format!("--bundle-version {text:?} is not a release"))
            .because(why)
            .hint(format!("name one such as {DEFAULT}, or latest"))
    })
}

/// `--registry`, which is `--image-registry`, too.
///
/// # Errors
/// A usage failure for what is none.
pub fn registry(text: &str) -> Result<String, Failure> {
    let registry = text.trim().trim_end_matches('/');
    if registry.is_empty() || registry.contains("://") || registry.contains(char::is_whitespace) {
        return Err(Failure::usage(format!("--registry {text:?} is not a registry such as registry.example/ocm")));
    }
    Ok(registry.to_owned())
}

/// `--feature-gates` of `owner`, "a hub" or "a klusterlet", which has these `gates`.
///
/// # Errors
/// A usage failure for what sets none of them.
pub fn feature_gates(
    texts: &[String],
    owner: &str,
    gates: &'static [Gate],
) -> Result<Vec<(&'static Gate, bool)>, Failure> {
    let one = |text: &String| {
        parse(text, gates).map_err(|error| match error {
            GateError::NotAPair => Failure::usage(format!("--feature-gates {text:?} is not NAME=true or NAME=false")),
            GateError::NotABool => {
                Failure::usage(format!("--feature-gates {text}: the value is neither true nor false"))
            }
            GateError::Unknown { name, near, known } => Failure::usage(format!("{owner} has no feature gate {name:?}"))
                .hint(match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it has: {}", known.join(", ")),
                }),
        })
    };
    texts.iter().map(one).collect()
}

/// The file of `--image-pull-credential-file`.
///
/// # Errors
/// A usage failure for a file that cannot be read or names no registries.
pub fn pull_credentials(path: &Path) -> Result<PullCredentials, Failure> {
    let content = std::fs::read(path).map_err(|error| {
        Failure::usage(format!("cannot read {}, the file of --image-pull-credential-file", path.display()))
            .because(error)
    })?;
    PullCredentials::parse(content).map_err(|error| match error {
        PullCredentialsError::NotJson(why) => {
            Failure::usage("the file of --image-pull-credential-file is not JSON").because(why)
        }
        PullCredentialsError::NoRegistries => Failure::usage(
            "the file of --image-pull-credential-file names no registries",
        )
        .hint("it should be a Docker configuration such as {\"auths\": {\"registry.example\": {\"auth\": \"…\"}}}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn names_are_taken_once_in_their_order_and_what_cannot_be_one_is_told() {
        assert_eq!(namespaces(texts(&["b", "a", "b"])), Ok(texts(&["b", "a"])));
        assert_eq!(set_names(texts(&["eu.prod", "b"])), Ok(texts(&["eu.prod", "b"])));
        let bad = |failure: Result<Vec<String>, Failure>| failure.unwrap_err().message;
        assert_eq!(bad(namespaces(texts(&["a", "eu.prod"]))), "\"eu.prod\" cannot be the name of a namespace");
        assert_eq!(bad(set_names(texts(&["Prod"]))), "\"Prod\" cannot be the name of a set of clusters");
    }

    #[test]
    fn what_is_no_pair_is_told_with_its_flag() {
        let labels = pairs("--labels", &texts(&["a=b=c", "d="])).unwrap();
        assert_eq!(labels, [("a", "b=c"), ("d", "")].map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        for wrong in ["novalue", "=x"] {
            let failure = pairs("--labels", &texts(&[wrong])).unwrap_err();
            assert_eq!(failure.message, format!("--labels {wrong:?} is not KEY=VALUE"));
        }
        assert_eq!(namespaced("--placement", "team/web.1"), Ok(("team".to_owned(), "web.1".to_owned())));
        for wrong in ["web", "/web", "Team/web", "team/"] {
            let failure = namespaced("--placement", wrong).unwrap_err();
            assert_eq!(failure.message, format!("--placement {wrong:?} is not NAMESPACE/NAME"));
        }
    }
}

//! Options that several commands take, from text to value.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use ocm_core::gates::{Gate, GateError, parse};
use ocm_core::operator::{PullCredentials, PullCredentialsError};
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
    match names.iter().find(|name| !name::is_cluster_name(name)) {
        Some(bad) => Err(Failure::usage(format!("{bad:?} cannot be the name of a managed cluster"))
            .hint("names are lower-case letters, digits and '-', 63 characters at most")),
        None => Ok(once(names)),
    }
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

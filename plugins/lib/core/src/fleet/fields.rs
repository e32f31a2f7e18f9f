//! Fields that the hub and the clusters of a file have alike.

use std::collections::BTreeMap;

use ocm_api::operator::{ResourceQosClass, ResourceRequirement};
use serde_json::{Value, json};

use super::file::{Access, QosWord, ResourcesEntry};
use super::wrong::{Place, Wrong};
use crate::certificate;
use crate::gates::{self, Gate, GateError};
use crate::images::{Digests, ImagesError};
use crate::operator::{PullCredentials, PullCredentialsError};
use crate::order::Collect as _;
use crate::release::{Bundle, Component, DEFAULT, NotARelease};
use crate::resources::{ResourcesError, requirement};
use crate::scheduling::{self, Scheduling};
use crate::values::{self, Kind, Values};

/// How the files that a fleet file names are read: what stands in the field, and the contents, or why there are none.
pub type Files<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

/// Refuses a cluster that nothing names: the current context of a kubeconfig would be another one tomorrow.
pub(super) fn check_access(access: &Access, before: &str, place: &Place) -> Result<(), Wrong> {
    if access.context.is_none() && access.kubeconfig.is_none() {
        return Err(place
            .wrong(&format!("{before}context"), "nothing says which cluster it is")
            .hint("name its context, or a kubeconfig of its own"));
    }
    if access.act_as.is_none() && !access.as_groups.is_empty() {
        return Err(
            place.wrong(&format!("{before}asGroups"), "groups to act as need a user to act as, in the field as")
        );
    }
    Ok(())
}

pub(super) fn bundle(text: Option<&str>, place: &Place) -> Result<Option<Bundle>, Wrong> {
    let parse = |text: &str| {
        Bundle::parse(text).map_err(|NotARelease(why)| {
            place
                .wrong("bundleVersion", format!("{text:?} is not a release: {why}"))
                .hint(format!("name one such as {DEFAULT}, or latest"))
        })
    };
    text.map(parse).transpose()
}

pub(super) fn registry_of(text: &str, place: &Place) -> Result<String, Wrong> {
    let registry = text.trim().trim_end_matches('/');
    if registry.is_empty() || registry.contains("://") || registry.contains(char::is_whitespace) {
        return Err(place.wrong("registry", format!("{text:?} is not a registry such as registry.example/ocm")));
    }
    Ok(registry.to_owned())
}

pub(super) fn pull_credentials(
    file: Option<&str>,
    place: &Place,
    files: Files<'_>,
) -> Result<Option<PullCredentials>, Wrong> {
    const FIELD: &str = "imagePullCredentialFile";
    let Some(file) = file else { return Ok(None) };
    let content = contents(FIELD, file, place, files)?;
    PullCredentials::parse(content).map(Some).map_err(|error| match error {
        PullCredentialsError::NotJson(why) => place.wrong(FIELD, format!("{file} is not JSON: {why}")),
        PullCredentialsError::NoRegistries => place
            .wrong(FIELD, format!("{file} names no registries"))
            .hint("it should be a Docker configuration such as {\"auths\": {\"registry.example\": {\"auth\": \"…\"}}}"),
    })
}

fn contents(field: &str, file: &str, place: &Place, files: Files<'_>) -> Result<Vec<u8>, Wrong> {
    files(file).map_err(|why| place.wrong(field, format!("cannot read {file}: {why}")))
}

/// The certificates of a file.
pub(super) fn authorities(
    field: &str,
    file: Option<&str>,
    place: &Place,
    files: Files<'_>,
) -> Result<Vec<Vec<u8>>, Wrong> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let pem = contents(field, file, place, files)?;
    certificate::from_pem(&pem).map_err(|error| place.wrong(field, format!("{file} cannot be used: {error}")))
}

pub(super) fn feature_gates(
    wanted: &BTreeMap<String, bool>,
    known: &'static [Gate],
    place: &Place,
) -> Result<Vec<(&'static Gate, bool)>, Wrong> {
    let one = |(name, on): (&String, &bool)| {
        gates::parse(&format!("{name}={on}"), known).map_err(|error| match error {
            GateError::Unknown { name, near, known } => {
                let wrong = place.wrong("featureGates", format!("there is no feature gate {name:?}"));
                wrong.hint(match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("there are: {}", known.join(", ")),
                })
            }
            GateError::NotAPair | GateError::NotABool => {
                place.wrong("featureGates", format!("{name:?} cannot be the name of a feature gate"))
            }
        })
    };
    wanted.iter().map(one).collect()
}

pub(super) fn resources(entry: Option<&ResourcesEntry>, place: &Place) -> Result<Option<ResourceRequirement>, Wrong> {
    let Some(ResourcesEntry { qos_class, limits, requests }) = entry else { return Ok(None) };
    let class = qos_class.map(|word| match word {
        QosWord::Default => ResourceQosClass::Default,
        QosWord::BestEffort => ResourceQosClass::BestEffort,
        QosWord::ResourceRequirement => ResourceQosClass::ResourceRequirement,
    });
    requirement(class, limits, requests).map_err(|error| match error {
        ResourcesError::ClassWithoutAmounts => place
            .wrong("resources", "limits and requests need another class of resources")
            .hint("add: qosClass: ResourceRequirement"),
        ResourcesError::NoAmounts => place.wrong("resources", "qosClass: ResourceRequirement needs limits or requests"),
        ResourcesError::NotAnAmount { name, text, .. } => {
            place.wrong("resources", format!("{name}: {text:?} is not an amount such as 200m or 64Mi"))
        }
        ResourcesError::AboveLimit { name, request, limit } => {
            place.wrong("resources", format!("the request of {name}, {request}, is above its limit, {limit}"))
        }
    })
}

/// On which nodes pods run; of no PriorityClass.
pub(super) fn nodes(
    node_selector: &BTreeMap<String, String>,
    tolerations: &[String],
    place: &Place,
) -> Result<Scheduling, Wrong> {
    let label = |(key, value): (&String, &String)| {
        let text = format!("{key}={value}");
        scheduling::label(&text).map_err(|error| place.wrong("nodeSelector", format!("{text:?}: {error}")))
    };
    let toleration = |text: &String| {
        scheduling::toleration(text)
            .map_err(|error| place.wrong("tolerations", format!("{text:?} is not KEY[=VALUE]:EFFECT: {error}")))
    };
    Ok(Scheduling {
        node_selector: node_selector.iter().map(label).try_collect_map()?,
        tolerations: tolerations.iter().map(toleration).collect::<Result<_, _>>()?,
        priority_class: None,
    })
}

/// The digests of images; where there are any, those of the images that are `needed`.
pub(super) fn digests(
    entry: &BTreeMap<String, String>,
    needed: impl IntoIterator<Item = Component>,
    place: &Place,
) -> Result<Digests, Wrong> {
    if entry.is_empty() {
        return Ok(Digests::default());
    }
    let digests = Digests::read(&json!(entry));
    let digests = digests.and_then(|digests| digests.have(needed).map(|()| digests));
    digests.map_err(|error| {
        let wrong = place.wrong("imageDigests", &error);
        match error {
            ImagesError::Unknown { near: Some(near), .. } => wrong.hint(format!("did you mean {near}?")),
            ImagesError::Unknown { known, .. } => wrong.hint(format!("there are: {}", known.join(", "))),
            _ => wrong,
        }
    })
}

/// A part of the spec of a Klusterlet or a ClusterManager. How the agent runs and registers has fields of the file.
pub(super) fn values(entry: Option<&Value>, kind: Kind, place: &Place) -> Result<Values, Wrong> {
    let Some(entry) = entry else { return Ok(Values::default()) };
    let values = Values::read(entry.clone(), kind).map_err(|error| {
        let wrong = place.wrong("values", &error);
        match error.why {
            values::Wrong::Unknown { near: Some(near), .. } | values::Wrong::Gate { near: Some(near) } => {
                wrong.hint(format!("did you mean {near}?"))
            }
            _ => wrong,
        }
    })?;
    let fields = [("mode", values.mode().is_some()), ("registrationAuth", values.driver().is_some())];
    match fields.into_iter().find(|(_, is_said)| kind == Kind::Klusterlet && *is_said) {
        Some((field, _)) => {
            Err(place.wrong("values", "it says what a field of the file says").hint(format!("use the field {field}")))
        }
        None => Ok(values),
    }
}

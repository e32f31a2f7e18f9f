//! The operator's Deployment: our defaults, under what is there, under what was typed.

use ocm_api::Manifest;
use ocm_api::names::operators;
use serde_json::Value;

use super::images::Images;
use super::{Live, Options};
use crate::operator::Operator;
use crate::release::Component;
use crate::{operator, reconcile};

pub(crate) fn manifest(options: &Options, live: &Live, images: &Images) -> Manifest {
    // The first run decides; afterwards the live number stands.
    let replicas = if live.nodes == Some(1) { 1 } else { 3 };
    let container = live.operator.as_ref().and_then(operator::container);
    let name = container.and_then(|container| container["name"].as_str()).unwrap_or(operator::CONTAINER);
    let image = images.image(Component::Operator);
    let mut manifest = operator::deployment(&Operator {
        name: operators::CLUSTER_MANAGER,
        operates: "hub",
        container: name,
        image: &image,
        agent_image: Some(&images.agent_image()),
        replicas,
        annotations: Value::Null,
        affinity: operator::apart(operators::CLUSTER_MANAGER),
    });
    if let Some(live) = &live.operator {
        let body = reconcile::over(manifest.body(), live);
        *manifest.body_mut() = body;
    }
    let body = manifest.body_mut();
    if let Some(replicas) = options.replicas {
        body["spec"]["replicas"] = Value::from(replicas);
    }
    let containers = body.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        container["image"] = Value::from(image.as_str());
        for variable in container["env"].as_array_mut().into_iter().flatten() {
            if variable["name"] == operator::AGENT_IMAGE && variable.get("valueFrom").is_none() {
                variable["value"] = Value::from(images.agent_image());
            }
        }
        if let Some(on) = options.enable_sync_labels {
            sync_labels(container, on);
        }
    }
    options.scheduling.place(body);
    manifest
}

/// Says whether an operator copies the labels of its object to everything that it creates. Upstream: its flag.
pub(crate) fn sync_labels(container: &mut Value, on: bool) {
    let Some(arguments) = container["args"].as_array_mut() else { return };
    // Said in both directions: the argument of an earlier run must not stay.
    let flag = "--enable-sync-labels";
    let wanted = Value::from(if on { flag.to_owned() } else { format!("{flag}=false") });
    let says = |argument: &Value| argument.as_str().is_some_and(|text| text.split('=').next() == Some(flag));
    if arguments.iter().filter(|argument| says(argument)).eq([&wanted]) {
        return;
    }
    arguments.retain(|argument| !says(argument));
    arguments.push(wanted);
}

//! What goes to stdout.

use ocm_cli::{Format, document};
use ocm_core::install::Installation;
use ocm_core::{Failure, Plan};
use ocm_kube::apply::{Applied, Outcome, without_bookkeeping};
use serde_json::{Value, json};
use similar::TextDiff;

/// What was done, as a document.
pub(crate) struct Report {
    bundle: Option<String>,
    hub: String,
    objects: Vec<Value>,
    /// Whether the hub is usable; none if nobody waited for it.
    pub(crate) usable: Option<bool>,
    names: String,
}

impl Report {
    pub(crate) fn new(installation: &Installation) -> Self {
        let bundle = installation.bundle.as_ref().map(ToString::to_string);
        Self { bundle, hub: installation.hub.clone(), objects: Vec::new(), usable: None, names: String::new() }
    }

    pub(crate) fn add(&mut self, applied: &Applied) {
        let manifest = &applied.manifest;
        let mut object = json!({
            "apiVersion": manifest.api_version(),
            "kind": manifest.kind(),
            "name": manifest.name(),
            "outcome": applied.outcome.word(),
        });
        if let Some(namespace) = manifest.namespace() {
            object["namespace"] = Value::from(namespace);
        }
        if let Outcome::Kept(reason) = &applied.outcome {
            object["reason"] = Value::from(reason.as_str());
        }
        self.objects.push(object);
        self.names += &(manifest.reference() + "\n");
    }

    pub(crate) fn render(self, format: Format) -> Result<String, Failure> {
        if format == Format::Name {
            return Ok(self.names);
        }
        let mut whole = json!({ "clusterManager": self.hub, "objects": self.objects });
        if let Some(bundle) = self.bundle {
            whole["bundleVersion"] = Value::from(bundle);
        }
        if let Some(usable) = self.usable {
            whole["usable"] = Value::from(usable);
        }
        document(format, &whole)
    }
}

/// The manifests of a plan as a stream of YAML documents.
pub(crate) fn manifests(plan: &Plan, show_secrets: bool) -> Result<String, Failure> {
    let mut text = String::new();
    for manifest in plan.objects() {
        // An empty set of credentials is no secret, and without it the manifests are complete.
        let shown = if show_secrets || is_empty_config(manifest.body()) {
            manifest.body().clone()
        } else {
            manifest.redacted()
        };
        text += &format!("---\n{}", document(Format::Yaml, &shown)?);
    }
    Ok(text)
}

/// Whether a pull Secret holds the `{}` that stands for no credentials.
fn is_empty_config(body: &Value) -> bool {
    body["data"][".dockerconfigjson"] == "e30="
}

/// What would change in an object, as a unified diff; none if nothing.
pub(crate) fn diff(applied: &Applied) -> Result<Option<String>, Failure> {
    if !matches!(applied.outcome, Outcome::Created | Outcome::Configured) {
        return Ok(None);
    }
    let empty = Value::Null;
    let before = applied.before.as_ref().unwrap_or(&empty);
    let yaml = |object: &Value| match object {
        Value::Null => Ok(String::new()),
        object => document(Format::Yaml, object),
    };
    let (old, mut new) = (plain(before), plain(&applied.after));
    if applied.manifest.is_secret() {
        mark_changed(before, &applied.after, &mut new);
    }
    let (old, new) = (yaml(&old)?, yaml(&new)?);
    let name = match applied.manifest.namespace() {
        Some(namespace) => format!("{namespace}/{}", applied.manifest.reference()),
        None => applied.manifest.reference(),
    };
    let text = TextDiff::from_lines(&old, &new);
    let text =
        text.unified_diff().context_radius(3).header(&format!("live/{name}"), &format!("planned/{name}")).to_string();
    Ok((!text.is_empty()).then_some(text))
}

/// The object without book-keeping, status and secrets.
fn plain(object: &Value) -> Value {
    let mut object = ocm_api::redacted(&without_bookkeeping(object));
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    object
}

/// Says of each value of a Secret whether it differs: lengths alone may be equal.
fn mark_changed(before: &Value, after: &Value, shown: &mut Value) {
    let Some(Value::Object(values)) = shown.get_mut("data") else { return };
    for (key, text) in values {
        if before["data"][key] != after["data"][key]
            && let Some(length) = text.as_str()
        {
            *text = Value::from(format!("{length}, changed"));
        }
    }
}

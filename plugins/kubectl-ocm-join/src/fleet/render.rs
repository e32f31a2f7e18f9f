//! The manifests of a fleet, for Git: of each cluster for itself, and without secrets.

use ocm_api::Manifest;
use ocm_cli::{Format, Ui, clean, document, holds_secrets, object_list, without_nulls};
use ocm_core::plan::Mode;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::fleet::{BroughtUp, Row};
use serde_json::{Value, json};

use super::view;

/// Prints the manifests of all, or, where those of one are not known, none.
pub(crate) fn render(ui: &Ui, format: Format, brought: &BroughtUp) -> Result<Exit, Failure> {
    let BroughtUp { hub, clusters } = brought;
    if let Some(failure) = view::failure(Mode::Render, hub.as_ref(), clusters) {
        return Err(failure);
    }
    match format {
        Format::Json => ui.out(&document(format, &json_of(brought))?),
        Format::Name => hub.iter().chain(clusters).flat_map(shown).for_each(|object| ui.line(&object.reference())),
        Format::Table | Format::Wide | Format::Yaml => {
            for row in hub.iter().chain(clusters) {
                ui.out(&yaml(row)?);
            }
        }
    }
    let left_out: Vec<String> = hub.iter().chain(clusters).flat_map(left_out).collect();
    if !left_out.is_empty() {
        let which = left_out.join(", ");
        ui.tell(Event::note(format!("Secrets are left out: {which}; the same command without --render makes them")));
    }
    Ok(Exit::Ok)
}

/// The objects that are shown.
fn shown(row: &Row) -> impl Iterator<Item = &Manifest> {
    row.plan.objects().filter(|object| !holds_secrets(object))
}

/// The Secrets that are not, each with its cluster.
fn left_out(row: &Row) -> impl Iterator<Item = String> {
    let of = if row.name.is_empty() { "the hub" } else { row.name.as_str() };
    row.plan
        .objects()
        .filter(|object| holds_secrets(object))
        .map(move |object| format!("{}/{} of {of}", object.namespace().unwrap_or_default(), object.name()))
}

/// A stream of documents, under the cluster that they are of.
fn yaml(row: &Row) -> Result<String, Failure> {
    let of = if row.name.is_empty() { "the hub".to_owned() } else { format!("cluster {}", row.name) };
    let title = clean(&format!("{of}: {}", row.label));
    let mut text = String::new();
    for object in shown(row) {
        text += &format!("---\n# {title}\n{}", document(Format::Yaml, object.body())?);
    }
    Ok(text)
}

fn json_of(BroughtUp { hub, clusters }: &BroughtUp) -> Value {
    let of = |row: &Row| {
        let name = (!row.name.is_empty()).then_some(&row.name);
        let objects = shown(row).map(|object| object.body().clone()).collect();
        without_nulls(json!({"name": name, "cluster": row.label, "manifests": object_list(objects)}))
    };
    without_nulls(json!({
        "hub": hub.as_ref().map(of),
        "clusters": clusters.iter().map(of).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use ocm_core::{Plan, Stage};

    use super::*;

    #[test]
    fn nothing_secret_is_among_the_manifests() {
        let manifest = |body: Value| {
            let metadata = serde_json::from_value(body["metadata"].clone()).unwrap();
            let mut manifest = Manifest::with::<ocm_api::Klusterlet>(&metadata, Value::Null);
            *manifest.body_mut() = body;
            manifest
        };
        let named = |kind: &str, data: Value| {
            manifest(
                json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "n", "namespace": "s"}, "data": data}),
            )
        };
        let objects = vec![named("Secret", json!({"token": "c2VjcmV0"})), named("ConfigMap", json!({"a": "b"}))];
        let row = Row {
            name: "c1".to_owned(),
            label: "context \"c1\"".to_owned(),
            plan: Plan::new([Stage::new("all", objects)]),
            ..Row::default()
        };
        let text = yaml(&row).unwrap();
        assert!(text.starts_with("---\n# cluster c1: context \"c1\"\n") && text.contains("ConfigMap"), "{text}");
        assert!(!text.contains("c2VjcmV0") && !text.contains("kind: Secret"), "{text}");
        assert_eq!(left_out(&row).collect::<Vec<_>>(), ["s/n of c1"]);
        let document = json_of(&BroughtUp { hub: None, clusters: vec![row] });
        assert_eq!(document["clusters"][0]["manifests"]["items"].as_array().map(Vec::len), Some(1));
        assert!(!document.to_string().contains("c2VjcmV0"));
    }
}

//! What a module is, says of itself and may use.

use std::fmt::Write as _;

use ocm_cli::{Format, Ui, clean, document};
use ocm_core::{Exit, Failure};
use ocm_policy_abi::{EditGrant, EvidenceSource, Manifest};
use ocm_policy_engine::{Inspection, Limits};
use serde::Serialize;
use serde_json::Value;

use crate::args::InspectArgs;
use crate::load::{Loader, module, refused, settings};

/// Everything that there is to know.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    file: String,
    #[serde(flatten)]
    inspection: Inspection,
    manifest: Option<Manifest>,
    /// What it gets of what it asks for.
    granted: Option<Limits>,
    /// Why it cannot be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(args: InspectArgs, ui: &Ui) -> Result<Exit, Failure> {
    let InspectArgs { module: file, kind, settings: given, output } = args;
    let bytes = module(&file, kind)?;
    let given = given.as_deref().map(settings).transpose()?;
    let inspection = ocm_policy_engine::inspect(&bytes).map_err(|error| refused(&file, &error))?;
    let loader = Loader::new(ui)?;
    // Settings that were given are tried; without any it is enough that it tells what it needs.
    let made = match given {
        Some(given) => loader.artifact(&bytes, &given).map(|artifact| artifact.header().manifest.clone()),
        None => loader.describe(&bytes),
    };
    let manifest = made.as_ref().ok().cloned().or_else(|| loader.describe(&bytes).ok());
    let seen = Seen {
        file: file.display().to_string(),
        inspection,
        granted: manifest.as_ref().map(|manifest| loader.ceiling.grant(&manifest.limits)),
        manifest,
        error: made.as_ref().err().map(ToString::to_string),
    };
    match output.output {
        format @ (Format::Json | Format::Yaml) => ui.out(&document(format, &seen)?),
        Format::Name => {
            let name = seen.manifest.as_ref().map_or("", |manifest| manifest.name.as_str());
            ui.line(&format!("policy/{name}"));
        }
        format => ui.out(&table(&seen, format == Format::Wide)),
    }
    match made {
        Ok(_) => Ok(Exit::Ok),
        Err(error) => Err(refused(&file, &error)),
    }
}

/// Names and values, as `kubectl describe` has them.
fn table(seen: &Seen, wide: bool) -> String {
    let Seen { file, inspection, manifest, granted, error } = seen;
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", format!("{name:<13} {}", clean(value)).trim_end());
    };
    if let Some(manifest) = manifest {
        row("Name:", &format!("{} {}", manifest.name, manifest.version));
        row("Description:", &manifest.description);
    }
    row("File:", file);
    row("Kind:", inspection.kind.word());
    row("Digest:", &format!("sha256:{}", inspection.digest));
    row("Size:", &size(inspection.shape.bytes as u64));
    row(
        "Shape:",
        &format!(
            "{} functions, {} of code, {} memories",
            inspection.shape.functions,
            size(inspection.shape.code_bytes as u64),
            inspection.shape.memories
        ),
    );
    row("Imports:", &if inspection.imports.is_empty() { "none".to_owned() } else { few(&inspection.imports, wide) });
    row("Exports:", &few(&inspection.exports, wide));
    if let Some(manifest) = manifest {
        let words: Vec<&str> = manifest.operations.iter().map(|operation| operation.word()).collect();
        row("Contract:", &manifest.contract);
        row("Judges:", &words.join(", "));
        row("Objects:", if manifest.wants_object { "whole" } else { "facts only" });
        list(
            &mut row,
            "Evidence:",
            manifest.evidence.iter().map(|query| format!("{}: {}", query.name, source(&query.source))),
        );
        list(&mut row, "Edits:", manifest.edits.iter().map(grant));
        list(
            &mut row,
            "Reasons:",
            manifest.reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.description)),
        );
        list(&mut row, "Settings:", manifest.settings_schema.iter().flat_map(|schema| schema_rows(schema, wide)));
        let asked = |number: Option<u64>| number.map_or("the default".to_owned(), |number| number.to_string());
        if let Some(granted) = granted {
            row("Fuel:", &format!("{} (asks for {})", granted.fuel, asked(manifest.limits.fuel)));
            row(
                "Memory:",
                &format!("{} (asks for {})", size(granted.memory_bytes), asked(manifest.limits.memory_bytes)),
            );
            row("Time:", &format!("{} ms", granted.ticks));
        }
    }
    if let Some(error) = error {
        row("Error:", error);
    }
    text
}

/// Rows under one name; none is said too.
fn list(row: &mut impl FnMut(&str, &str), name: &str, items: impl Iterator<Item = String>) {
    let mut name = name;
    for item in items {
        row(name, &item);
        name = "";
    }
    if !name.is_empty() {
        row(name, "none");
    }
}

fn few(names: &[String], wide: bool) -> String {
    const SHOWN: usize = 4;
    match names.len().checked_sub(SHOWN) {
        Some(more @ 1..) if !wide => format!("{} and {more} more", names[..SHOWN].join(", ")),
        _ => names.join(", "),
    }
}

fn source(source: &EvidenceSource) -> String {
    match source {
        EvidenceSource::Clusters => "the ManagedClusters of the hub".to_owned(),
        EvidenceSource::ClusterSets => "the ManagedClusterSets of the hub".to_owned(),
        EvidenceSource::Namespaces => "the namespaces of the hub".to_owned(),
        EvidenceSource::Csrs => "the certificate requests of the hub".to_owned(),
        EvidenceSource::Approvals => "people's approvals of clusters".to_owned(),
        EvidenceSource::Registrations => "what is noted of the keys of names".to_owned(),
        EvidenceSource::ConfigMap { namespace, name } => format!("the ConfigMap {namespace}/{name}"),
        EvidenceSource::Objects { api_version, resource, namespace } => match namespace {
            Some(namespace) => format!("{resource} of {api_version} in {namespace}"),
            None => format!("{resource} of {api_version}"),
        },
    }
}

fn grant(grant: &EditGrant) -> String {
    match grant {
        EditGrant::Label { key } => format!("label {key}"),
        EditGrant::Annotation { key } => format!("annotation {key}"),
        EditGrant::Taint { key } => format!("taint {key}"),
        EditGrant::ClusterSet => "the cluster set".to_owned(),
        EditGrant::LeaseDuration => "the lease duration".to_owned(),
    }
}

/// The settings of a schema, one row each.
fn schema_rows(schema: &Value, wide: bool) -> Vec<String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return vec![schema.to_string()] };
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|known| known.as_str() == Some(name)))
    };
    let row = |(name, schema): (&String, &Value)| {
        let kind = schema["type"].as_str().unwrap_or("any");
        let must = if required(name) { ", required" } else { "" };
        let about = schema["description"].as_str().map(|about| format!(": {about}")).unwrap_or_default();
        let more = if wide { format!("  {schema}") } else { String::new() };
        format!("{name} ({kind}{must}){about}{more}")
    };
    properties.iter().map(row).collect()
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let number = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", number / 1024.0),
        _ => format!("{:.1} MiB", number / 1_048_576.0),
    }
}

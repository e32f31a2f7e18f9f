//! What runs on a hub or a managed cluster: tables for people, the whole for programs, and a line for each change.

use std::marker::PhantomData;

use jiff::Timestamp;
use ocm_cli::list::{ListArgs, ListFormat, NONE, View, age, show as show_list};
use ocm_cli::{Format, Table, Ui, without_nulls};
use ocm_core::gates::{Part, Source, State};
use ocm_core::info::{Definition, Hub, Info};
use ocm_core::order::Collect as _;
use ocm_core::upgrade::rollout::Running;
use ocm_core::{Exit, Failure, Reason};
use serde_json::{Map, Value, json};

use crate::args::InfoArgs;

/// Whose information it is.
pub(crate) trait Kind {
    /// What is said where there is none.
    const NOTHING: &'static str;
    /// What it is called in messages.
    const WHAT: &'static str;
}

/// Hubs.
pub(crate) struct OfHub;

impl Kind for OfHub {
    const NOTHING: &'static str = "there is no ClusterManager: this cluster is no hub";
    const WHAT: &'static str = "ClusterManager";
}

/// Managed clusters.
pub(crate) struct OfKlusterlet;

impl Kind for OfKlusterlet {
    const NOTHING: &'static str = "there is no Klusterlet: this cluster has not joined a hub";
    const WHAT: &'static str = "Klusterlet";
}

/// A line of what runs.
pub(crate) struct Infos<K>(PhantomData<K>);

impl<K: Kind> View for Infos<K> {
    type Row = Info;

    const HEADINGS: &'static [&'static str] = &["NAME", "MODE", "RELEASE", "READY", "AGE", "MISSING", "REGISTRATION"];
    const NARROW: usize = 6;
    const NOTHING: &'static str = K::NOTHING;
    const COLUMNS: &'static [&'static str] = &["name", "mode", "release", "age"];

    fn cells(info: &Info, now: Timestamp) -> Vec<String> {
        let count = |of: fn(&Running) -> i32| info.deployments.iter().map(|(_, one)| of(one)).sum::<i32>();
        let missing = if info.missing.is_empty() { NONE.to_owned() } else { info.missing.join("; ") };
        vec![
            info.name().to_owned(),
            info.mode().to_owned(),
            info.parts.told(),
            format!("{}/{}", count(|one| one.ready), count(|one| one.wanted)),
            age(now, Self::created(info)),
            missing,
            info.drivers.join(","),
        ]
    }

    fn reference(info: &Info) -> String {
        reference(info)
    }

    fn document(info: &Info) -> Value {
        whole(info)
    }

    fn object(info: &Info) -> Value {
        info.object.clone()
    }

    fn created(info: &Info) -> Option<Timestamp> {
        info.text("/metadata/creationTimestamp").parse().ok()
    }
}

/// What a list of these takes.
pub(crate) fn list(args: InfoArgs) -> ListArgs {
    let InfoArgs { names, watch, no_headers, output } = args;
    ListArgs { names, ..ListArgs::of_all(watch, no_headers, output) }
}

/// Shows what runs: people get tables of all of it.
///
/// # Errors
/// [`Reason::NotFound`] for a name that there is not.
pub(crate) fn show<K: Kind>(ui: &Ui, list: &ListArgs, mut all: Vec<Info>) -> Result<Exit, Failure> {
    if let Some(unknown) = list.names.iter().find(|name| !all.iter().any(|info| info.name() == *name)) {
        return Err(Failure::new(Reason::NotFound, format!("there is no {} {unknown:?}", K::WHAT)));
    }
    all.retain(|info| is_wanted(list, info));
    match &list.output.output {
        ListFormat::As(Format::Table | Format::Wide) | ListFormat::Tree if !all.is_empty() => {
            let wide = list.output.output == ListFormat::As(Format::Wide);
            let texts: Vec<String> = all.iter().map(|info| people(info, wide)).collect();
            ui.out(&texts.join("\n"));
            Ok(Exit::Ok)
        }
        _ => show_list::<Infos<K>>(ui, list, all),
    }
}

/// Whether one is among those that were named.
pub(crate) fn is_wanted(list: &ListArgs, info: &Info) -> bool {
    list.names.is_empty() || list.names.iter().any(|name| name == info.name())
}

fn reference(info: &Info) -> String {
    format!("{}.operator.open-cluster-management.io/{}", info.kind.to_ascii_lowercase(), info.name())
}

/// Everything that was found out; the object itself stands in `object`.
fn whole(info: &Info) -> Value {
    let images: Map<String, Value> =
        info.parts.0.iter().map(|part| (part.name.to_owned(), json!(part.image))).collect_object();
    let deployments: Vec<Value> = info.deployments.iter().map(|(namespace, one)| deployment(namespace, one)).collect();
    let gates: Vec<Value> = info.gates.iter().map(gate).collect();
    let definitions: Vec<Value> = info.definitions.iter().map(definition).collect();
    let hubs: Option<Vec<Value>> = (!info.hubs.is_empty()).then(|| info.hubs.iter().map(hub).collect());
    let mut object = info.object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    without_nulls(json!({
        "kind": info.kind,
        "name": info.name(),
        "mode": info.mode(),
        "release": info.parts.release().map(|release| release.to_string()),
        "images": images,
        "deployments": deployments,
        "conditions": info.conditions,
        "featureGates": gates,
        "registrationDrivers": info.drivers,
        "hubs": hubs,
        "definitions": definitions,
        "missing": info.missing,
        "object": object,
    }))
}

fn deployment(namespace: &str, one: &Running) -> Value {
    without_nulls(json!({
        "namespace": namespace, "name": one.name, "ready": one.ready, "wanted": one.wanted, "images": one.images,
        "because": one.health.because(),
    }))
}

fn gate(state: &State) -> Value {
    json!({
        "name": state.name, "part": state.part.member(), "enabled": state.on, "source": source(state.source),
    })
}

fn definition(definition: &Definition) -> Value {
    let Definition { name, served, storage, stored } = definition;
    json!({ "name": name, "served": served, "storage": storage, "stored": stored })
}

fn hub(hub: &Hub) -> Value {
    let Hub { server, secret, is_current, token_ends } = hub;
    without_nulls(json!({
        "server": server, "secret": secret, "current": is_current, "tokenExpires": token_ends.map(|ends| ends.to_string()),
    }))
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Default => "Default",
        Source::Spec => "Spec",
        Source::Unknown => "Unknown",
    }
}

fn part(part: Part) -> &'static str {
    match part {
        Part::Registration => "Registration",
        Part::Work => "Work",
        Part::Placement => "Placement",
        Part::AddOnManager => "AddOnManager",
    }
}

/// Tables, one below the other; the first row says what it is.
fn people(info: &Info, wide: bool) -> String {
    let heading = info.kind.to_ascii_uppercase();
    let mut tables = vec![table(
        &[heading.as_str(), "MODE", "RELEASE", "REGISTRATION"],
        [vec![info.name().to_owned(), info.mode().to_owned(), info.parts.told(), info.drivers.join(",")]],
    )];
    if wide {
        let images = info.parts.0.iter().map(|part| vec![part.name.to_owned(), part.image.clone()]);
        tables.push(table(&["PART", "IMAGE"], images));
    }
    tables.push(table(
        &["DEPLOYMENT", "READY", "IMAGES", "WHY"],
        info.deployments.iter().map(|(namespace, one)| {
            vec![
                format!("{namespace}/{}", one.name),
                format!("{}/{}", one.ready, one.wanted),
                one.images.join(","),
                one.health.because().unwrap_or_default(),
            ]
        }),
    ));
    tables.push(table(
        &["HUB", "CURRENT", "SECRET", "TOKEN EXPIRES"],
        info.hubs.iter().map(|Hub { server, secret, is_current, token_ends }| {
            let current = match is_current {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            };
            let server = server.clone().unwrap_or_else(|| "Unknown".to_owned());
            let ends = token_ends.map_or_else(|| "Unknown".to_owned(), |ends| ends.to_string());
            vec![server, current.to_owned(), secret.clone(), ends]
        }),
    ));
    tables.push(table(
        &["CONDITION", "STATUS", "REASON", "MESSAGE"],
        info.conditions
            .iter()
            .map(|one| vec![one.type_.clone(), one.status.clone(), one.reason.clone(), one.message.clone()]),
    ));
    tables.push(table(
        &["FEATURE GATE", "PART", "ENABLED", "SOURCE"],
        info.gates.iter().map(|state| {
            let on = if state.on { "True" } else { "False" };
            vec![state.name.clone(), part(state.part).to_owned(), on.to_owned(), source(state.source).to_owned()]
        }),
    ));
    tables.push(table(
        &["DEFINITION", "SERVED", "STORAGE", "STORED"],
        info.definitions
            .iter()
            .map(|one| vec![one.name.clone(), one.served.join(","), one.storage.clone(), one.stored.join(",")]),
    ));
    tables.push(table(&["MISSING"], info.missing.iter().map(|what| vec![what.clone()])));
    tables.retain(|table| !table.is_empty());
    tables.join("\n")
}

/// A table; nothing where it has no rows.
fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    let mut table = Table::new(headings);
    rows.for_each(|row| table.row(row));
    table.render()
}

#[cfg(test)]
mod tests {
    use ocm_core::upgrade::Parts;
    use ocm_core::workload::Health;

    use super::*;

    fn info() -> Info {
        let because = Health::not_yet("0 of 1 pods are ready");
        let running = Running {
            name: "cluster-manager".to_owned(),
            health: because,
            images: vec!["r/o:v1.2.0".to_owned()],
            wanted: 1,
            ready: 0,
        };
        Info {
            kind: "ClusterManager",
            object: json!({ "metadata": { "name": "cm", "managedFields": [] } }),
            parts: Parts::default(),
            deployments: vec![("open-cluster-management".to_owned(), running)],
            conditions: Vec::new(),
            gates: vec![State { name: "A".to_owned(), part: Part::Work, on: true, source: Source::Spec }],
            drivers: vec!["csr".to_owned(), "grpc".to_owned()],
            hubs: vec![Hub {
                server: Some("https://hub".to_owned()),
                secret: "bootstrap-hub-kubeconfig".to_owned(),
                is_current: Some(true),
                token_ends: None,
            }],
            definitions: vec![Definition {
                name: "x".to_owned(),
                served: vec!["v1".to_owned()],
                storage: "v1".to_owned(),
                stored: vec!["v1".to_owned()],
            }],
            missing: vec!["something".to_owned()],
        }
    }

    #[test]
    fn people_see_tables_and_none_that_is_empty() {
        let text = people(&info(), false);
        for part in [
            "CLUSTERMANAGER   MODE",
            "cm               Default",
            "0/1     r/o:v1.2.0   0 of 1 pods are ready",
            "csr,grpc",
            "https://hub   True      bootstrap-hub-kubeconfig   Unknown",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(text.ends_with("MISSING\nsomething\n"), "{text}");
        assert!(!text.contains("CONDITION") && !text.contains("PART   IMAGE"), "{text}");
    }

    #[test]
    fn programs_see_all_of_it() {
        let whole = whole(&info());
        assert_eq!(whole["deployments"][0]["ready"], 0);
        assert_eq!(
            whole["featureGates"][0],
            json!({ "name": "A", "part": "workConfiguration", "enabled": true, "source": "Spec" })
        );
        assert_eq!(whole["object"]["metadata"], json!({ "name": "cm" }));
        let hub = json!({ "server": "https://hub", "current": true, "secret": "bootstrap-hub-kubeconfig" });
        assert_eq!(whole["hubs"], json!([hub]));
        assert_eq!(whole.get("release"), None);
        assert_eq!(reference(&info()), "clustermanager.operator.open-cluster-management.io/cm");
    }
}

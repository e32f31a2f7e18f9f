//! What it looks like.

use ocm_api::conditions::manifest_work;
use ocm_api::{Condition, ManagedCluster, ManifestWork};
use ocm_cli::list::NONE;
use ocm_cli::{Format, PlanView, Table, Ui, document, without_nulls};
use ocm_core::leave::some;
use ocm_core::phase::{Phase, standing};
use ocm_core::plan::{Applied, Mode};
use ocm_core::work::{ObjectStanding, objects};
use ocm_core::{Event, Exit, Failure, Narrator, Remedy, delivery};
use ocm_flows::deliveries::{DeliveryRow, ToDelete};
use ocm_flows::replica_sets::ReplicaSetRequest;
use ocm_flows::works::WorksCreated;
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

type Row = DeliveryRow<ManifestWork>;

fn conditions(row: &Row) -> &[Condition] {
    row.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
}

/// What creating works came to.
pub(crate) fn created(view: &PlanView, ui: &Ui, name: &str, created: WorksCreated) -> Result<Exit, Failure> {
    let WorksCreated { sent, waited } = created;
    let total = sent.len();
    let rows = waited.as_ref().map(|waited| waited.rows.as_slice());
    let of = |(cluster, answer): &(String, Result<Applied, Failure>)| {
        let row = rows.and_then(|rows| rows.iter().find(|row| row.cluster() == cluster));
        without_nulls(json!({
            "cluster": cluster,
            "outcome": answer.as_ref().ok().map(|applied| applied.outcome.word()),
            "error": answer.as_ref().err().map(ToString::to_string),
            "there": rows.map(|_| row.is_some_and(|row| row.why.is_none())),
            "why": row.and_then(|row| row.why.clone()),
        }))
    };
    let clusters: Vec<Value> = sent.iter().map(of).collect();
    let (mut applied, mut failed) = (Vec::new(), Vec::new());
    for (cluster, answer) in sent {
        match answer {
            Ok(one) => applied.push(one),
            Err(failure) => failed.push((cluster, failure)),
        }
    }
    let exit = match view.mode() {
        Mode::Diff => view.diff(&applied)?,
        _ => {
            let mut members = Map::new();
            members.insert("name".to_owned(), json!(name));
            members.insert("clusters".to_owned(), Value::Array(clusters));
            view.document(members)?;
            Exit::Ok
        }
    };
    if let Some(rows) = rows.filter(|_| view.format().is_human()) {
        ui.out(&table(rows));
    }
    let sentence = |failed: usize| format!("work {name:?} could not be sent to {failed} of {total} clusters");
    if let Some(failure) = Failure::of_several(total, failed, sentence) {
        return Err(failure);
    }
    match waited {
        Some(waited) => waited.late.map_or(Ok(exit), |late| Err(late.hint(Remedy::ExplainWork(name.to_owned())))),
        None => {
            if view.mode().changes() && applied.iter().any(|one| one.outcome.is_change()) {
                ui.tell(Event::note(format!("what became of each object tells kubectl ocm work status {name}")));
            }
            Ok(exit)
        }
    }
}

/// What creating a set of works came to.
pub(crate) fn replica_set(
    view: &PlanView,
    ui: &Ui,
    request: &ReplicaSetRequest,
    applied: &[Applied],
) -> Result<Exit, Failure> {
    if view.mode() == Mode::Diff {
        return view.diff(applied);
    }
    let name = applied.first().map(|one| one.manifest.name()).unwrap_or_default();
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(name));
    members.insert("placement".to_owned(), json!(format!("{}/{}", request.namespace, request.placement)));
    view.document(members)?;
    if view.mode().changes() && applied.iter().any(|one| one.outcome.is_change()) {
        ui.tell(Event::note(format!("what becomes of it on each cluster tells kubectl ocm work status {name}")));
    }
    Ok(Exit::Ok)
}

/// One line for each cluster.
fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&["CLUSTER", "NAME", "APPLIED", "AVAILABLE", "OBJECTS", "WHY"]);
    for row in rows {
        let word = |kind: &str| delivery::status(conditions(row), kind).unwrap_or(NONE).to_owned();
        let (available, objects) = delivery::objects(&row.object);
        table.row([
            row.cluster().to_owned(),
            row.name().to_owned(),
            word(manifest_work::APPLIED),
            word(manifest_work::AVAILABLE),
            format!("{available}/{objects}"),
            row.why.clone().unwrap_or_default(),
        ]);
    }
    table.render()
}

/// Every object of every work. [`Exit::Findings`] if one is not there.
pub(crate) fn status(ui: &Ui, format: Format, rows: &[Row], managed: &[ManagedCluster]) -> Result<Exit, Failure> {
    match format {
        Format::Json | Format::Yaml => {
            let works: Vec<Value> = rows.iter().map(|row| work_document(row, managed)).collect();
            ui.out(&document(format, &json!({"works": works}))?);
        }
        Format::Name => rows.iter().flat_map(|row| objects(&row.object)).for_each(|one| ui.line(&one.object)),
        Format::Table | Format::Wide if rows.is_empty() => ui.tell(Event::note("the hub has no works there")),
        Format::Table | Format::Wide => ui.out(&objects_table(rows)),
    }
    for row in rows {
        // Of works that are leaving no object says why.
        if let Some(why) = row.why.as_ref().filter(|_| row.object.metadata.deletion_timestamp.is_some()) {
            ui.tell(Event::warning(format!("work {:?} of cluster {:?} {why}", row.name(), row.cluster())));
        }
    }
    for cluster in managed {
        if let Some(told) = silent(cluster) {
            ui.tell(Event::warning(format!("{told}; what is shown is what its agent has said last")));
        }
    }
    Ok(if rows.iter().any(|row| row.why.is_some()) { Exit::Findings } else { Exit::Ok })
}

/// Why the agent of a cluster may not be there; none if it reports.
fn silent(cluster: &ManagedCluster) -> Option<String> {
    let standing = standing(cluster);
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    (standing.phase != Phase::Available)
        .then(|| format!("cluster {name:?} is {}: {}", standing.phase, standing.message))
}

fn objects_table(rows: &[Row]) -> String {
    let mut table = Table::new(&["CLUSTER", "WORK", "OBJECT", "APPLIED", "AVAILABLE", "WHY", "FEEDBACK"]);
    for row in rows {
        for one in objects(&row.object) {
            let ObjectStanding { object, applied, available, why, feedback, .. } = one;
            let feedback: Vec<String> = feedback.iter().map(|(name, value)| format!("{name}={value}")).collect();
            table.row([
                row.cluster(),
                row.name(),
                &object,
                applied.as_deref().unwrap_or(NONE),
                available.as_deref().unwrap_or(NONE),
                why.as_deref().unwrap_or_default(),
                &feedback.join(", "),
            ]);
        }
    }
    table.render()
}

fn work_document(row: &Row, managed: &[ManagedCluster]) -> Value {
    let of_row = |cluster: &&ManagedCluster| cluster.metadata.name.as_deref() == Some(row.cluster());
    let object = |one: ObjectStanding| {
        let ObjectStanding { object: _, api_version, kind, namespace, name, applied, available, why, feedback } = one;
        let feedback: Map<String, Value> = feedback.into_iter().map(|(name, value)| (name, json!(value))).collect();
        without_nulls(json!({
            "apiVersion": api_version,
            "kind": kind,
            "namespace": (!namespace.is_empty()).then_some(namespace),
            "name": name,
            "applied": applied,
            "available": available,
            "why": why,
            "feedback": (!feedback.is_empty()).then_some(feedback),
        }))
    };
    without_nulls(json!({
        "cluster": row.cluster(),
        "name": row.name(),
        "phase": managed.iter().find(of_row).map(|cluster| standing(cluster).phase.to_string()),
        "why": row.why,
        "objects": objects(&row.object).into_iter().map(object).collect::<Vec<_>>(),
    }))
}

/// What is asked before anything is deleted.
pub(crate) fn question(hub: &Cluster, all: &[ToDelete]) -> String {
    let all = || all.iter().filter(|of_cluster| !of_cluster.remaining.is_empty());
    let of = |of_cluster: &ToDelete| {
        let names: Vec<String> = of_cluster.remaining.iter().map(|one| one.name.clone()).collect();
        format!("{} of {}", some(&names), of_cluster.cluster)
    };
    let stays = all().map(|of_cluster| of_cluster.orphaning.len()).sum::<usize>();
    let goes = all().map(|of_cluster| of_cluster.remaining.len()).sum::<usize>() - stays;
    let lost = match (goes, stays) {
        (0, _) => "What they have put there stays.",
        (_, 0) => "What they have put there is deleted.",
        _ => "What they have put there is deleted, but for works that leave their objects behind.",
    };
    format!("Delete works {} ({})? {lost}", some(&all().map(of).collect::<Vec<_>>()), hub.label())
}

/// What deleting works came to.
pub(crate) fn deleted(
    view: &PlanView,
    ui: &Ui,
    names: &[String],
    all: &[ToDelete],
    answers: Vec<Result<(), Failure>>,
) -> Result<Exit, Failure> {
    let of = |(of_cluster, answer): (&ToDelete, &Result<(), Failure>)| {
        without_nulls(json!({
            "cluster": of_cluster.cluster,
            "deleted": answer.is_ok(),
            "error": answer.as_ref().err().map(ToString::to_string),
        }))
    };
    let mut members = Map::new();
    members.insert("clusters".to_owned(), Value::Array(all.iter().zip(&answers).map(of).collect()));
    view.document(members)?;
    for of_cluster in all {
        let is_missing = |name: &&String| !of_cluster.remaining.iter().any(|one| one.name == **name);
        for name in names.iter().filter(is_missing) {
            ui.tell(Event::note(format!("cluster {:?} has no work {name:?}: nothing was deleted", of_cluster.cluster)));
        }
        if !of_cluster.orphaning.is_empty() {
            let verb = if view.mode().changes() { "stays" } else { "would stay" };
            let names = some(&of_cluster.orphaning);
            ui.tell(Event::note(format!(
                "what {names} has put on cluster {:?} {verb}, as the work says",
                of_cluster.cluster
            )));
        }
    }
    let failed =
        all.iter().zip(answers).filter_map(|(of_cluster, answer)| Some((of_cluster.cluster.clone(), answer.err()?)));
    let total = all.len();
    let sentence = |failed: usize| format!("works of {failed} of {total} clusters are not gone");
    Failure::of_several(total, failed.collect(), sentence).map_or(Ok(Exit::Ok), Err)
}

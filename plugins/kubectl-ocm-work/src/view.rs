//! What it looks like.

use ocm_api::conditions::manifest_work;
use ocm_api::{Condition, ManagedCluster, ManifestWork};
use ocm_cli::list::NONE;
use ocm_cli::{
    Format, PlanView, Sent, SentAll, Table, Ui, WaitedFor, Withdrawn, document, of_clusters, withdrawn, without_nulls,
};
use ocm_core::leave::some;
use ocm_core::order::Collect as _;
use ocm_core::phase::{standing, unavailable};
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
    let rows = waited.as_ref().map(|waited| waited.rows.as_slice()).unwrap_or_default();
    let one = |(cluster, answer): (String, Result<Applied, Failure>)| {
        let row = rows.iter().find(|row| row.cluster() == cluster);
        let is = [("cluster".to_owned(), json!(cluster))].into_iter().collect();
        Sent { told: cluster, is, answer, why: row.map(|row| row.why.clone()) }
    };
    let all = SentAll {
        members: [("name".to_owned(), json!(name))].into_iter().collect(),
        list: "clusters",
        sent: sent.into_iter().map(one).collect(),
        next: format!("what became of each object tells kubectl ocm work status {name}"),
        waited: waited.map(|waited| WaitedFor {
            table: table(&waited.rows),
            word: "there",
            late: waited.late.map(|late| late.hint(Remedy::ExplainWork(name.to_owned()))),
        }),
    };
    all.finish(view, ui, |failed, total| format!("work {name:?} could not be sent to {failed} of {total} clusters"))
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
    if view.has_changed() {
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
        if let Some(told) = unavailable(cluster) {
            ui.tell(Event::warning(format!("{told}; what is shown is what its agent has said last")));
        }
    }
    Ok(if rows.iter().any(|row| row.why.is_some()) { Exit::Findings } else { Exit::Ok })
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
        let feedback: Map<String, Value> =
            feedback.into_iter().map(|(name, value)| (name, json!(value))).collect_object();
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
    let there = || all.iter().filter(|of_cluster| !of_cluster.remaining.is_empty());
    let stays = there().map(|of_cluster| of_cluster.orphaning.len()).sum::<usize>();
    let goes = there().map(|of_cluster| of_cluster.remaining.len()).sum::<usize>() - stays;
    let lost = match (goes, stays) {
        (0, _) => "What they have put there stays.",
        (_, 0) => "What they have put there is deleted.",
        _ => "What they have put there is deleted, but for works that leave their objects behind.",
    };
    format!("Delete works {} ({})? {lost}", of_clusters(all.iter().filter_map(ToDelete::there)), hub.label())
}

/// What deleting works came to.
pub(crate) fn deleted(
    view: &PlanView,
    ui: &Ui,
    names: &[String],
    all: &[ToDelete],
    answers: Vec<Result<(), Failure>>,
) -> Result<Exit, Failure> {
    let of = |(of_cluster, answer): (&ToDelete, Result<(), Failure>)| Withdrawn {
        cluster: of_cluster.cluster.clone(),
        missing: of_cluster.missing(names),
        answer,
    };
    for of_cluster in all.iter().filter(|of_cluster| !of_cluster.orphaning.is_empty()) {
        let verb = if view.mode().changes() { "stays" } else { "would stay" };
        let names = some(&of_cluster.orphaning);
        let told = format!("what {names} has put on cluster {:?} {verb}, as the work says", of_cluster.cluster);
        ui.tell(Event::note(told));
    }
    withdrawn(view, ui, all.iter().zip(answers).map(of).collect(), "work", "deleted")
}

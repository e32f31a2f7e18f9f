//! What it looks like.

use ocm_api::ManagedClusterAddOn;
use ocm_api::conditions::managed_cluster_add_on::AVAILABLE;
use ocm_cli::list::NONE;
use ocm_cli::{PlanView, Table, Ui, without_nulls};
use ocm_core::leave::some;
use ocm_core::plan::{Applied, Mode, Outcome};
use ocm_core::{Event, Exit, Failure, Narrator, Remedy, delivery};
use ocm_flows::addons::{AddOnsEnabled, DefineRequest};
use ocm_flows::deliveries::{DeliveryRow, ToDelete};
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

/// What creating an add-on came to.
pub(crate) fn defined(view: &PlanView, ui: &Ui, request: &DefineRequest, applied: &[Applied]) -> Result<Exit, Failure> {
    if view.mode() == Mode::Diff {
        return view.diff(applied);
    }
    let DefineRequest { name, template, placement, .. } = request;
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(name));
    members.insert("template".to_owned(), json!(template));
    view.document(members)?;
    if view.mode().changes() && placement.is_none() && applied.iter().any(|one| one.outcome == Outcome::Created) {
        ui.tell(Event::note(format!("to have it on clusters: kubectl ocm addon enable {name} --clusters CLUSTER")));
    }
    Ok(Exit::Ok)
}

/// What enabling add-ons came to.
pub(crate) fn enabled(view: &PlanView, ui: &Ui, enabled: AddOnsEnabled) -> Result<Exit, Failure> {
    let AddOnsEnabled { sent, waited } = enabled;
    let total = sent.len();
    let rows = waited.as_ref().map(|waited| waited.rows.as_slice());
    let mut addons = Vec::new();
    let (mut applied, mut failed) = (Vec::new(), Vec::new());
    for (cluster, name, answer) in sent {
        let is_it = |row: &&DeliveryRow<ManagedClusterAddOn>| row.cluster() == cluster && row.name() == name;
        let row = rows.and_then(|rows| rows.iter().find(is_it));
        addons.push(without_nulls(json!({
            "cluster": cluster,
            "name": name,
            "outcome": answer.as_ref().ok().map(|applied| applied.outcome.word()),
            "error": answer.as_ref().err().map(ToString::to_string),
            "available": rows.map(|_| row.is_some_and(|row| row.why.is_none())),
            "why": row.and_then(|row| row.why.clone()),
        })));
        match answer {
            Ok(one) => applied.push(one),
            Err(failure) => failed.push((format!("{name} of {cluster}"), failure)),
        }
    }
    let exit = match view.mode() {
        Mode::Diff => view.diff(&applied)?,
        _ => {
            let mut members = Map::new();
            members.insert("addons".to_owned(), Value::Array(addons));
            view.document(members)?;
            Exit::Ok
        }
    };
    if let Some(rows) = rows.filter(|_| view.format().is_human()) {
        ui.out(&table(rows));
    }
    let sentence = |failed: usize| format!("{failed} of {total} add-ons could not be enabled");
    if let Some(failure) = Failure::of_several(total, failed, sentence) {
        return Err(failure);
    }
    match waited {
        Some(waited) => waited.late.map_or(Ok(exit), |late| Err(late.hint(Remedy::SeeAddOns))),
        None => {
            if view.mode().changes() && applied.iter().any(|one| one.outcome.is_change()) {
                ui.tell(Event::note("where each stands tells kubectl ocm get addons"));
            }
            Ok(exit)
        }
    }
}

fn table(rows: &[DeliveryRow<ManagedClusterAddOn>]) -> String {
    let mut table = Table::new(&["CLUSTER", "NAME", "AVAILABLE", "WHY"]);
    for row in rows {
        let conditions = row.object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let available = delivery::status(conditions, AVAILABLE).unwrap_or(NONE);
        table.row([row.cluster(), row.name(), available, row.why.as_deref().unwrap_or_default()]);
    }
    table.render()
}

/// What is asked before anything is deleted.
pub(crate) fn question(hub: &Cluster, all: &[ToDelete]) -> String {
    let of = |of_cluster: &ToDelete| {
        let names: Vec<String> = of_cluster.remaining.iter().map(|one| one.name.clone()).collect();
        format!("{} of {}", some(&names), of_cluster.cluster)
    };
    let all: Vec<String> = all.iter().filter(|of_cluster| !of_cluster.remaining.is_empty()).map(of).collect();
    format!("Disable add-ons {} ({})? What they have put there is deleted.", some(&all), hub.label())
}

/// What disabling add-ons came to.
pub(crate) fn disabled(
    view: &PlanView,
    ui: &Ui,
    names: &[String],
    all: &[ToDelete],
    answers: Vec<Result<(), Failure>>,
) -> Result<Exit, Failure> {
    let of = |(of_cluster, answer): (&ToDelete, &Result<(), Failure>)| {
        without_nulls(json!({
            "cluster": of_cluster.cluster,
            "disabled": answer.is_ok(),
            "error": answer.as_ref().err().map(ToString::to_string),
        }))
    };
    let mut members = Map::new();
    members.insert("clusters".to_owned(), Value::Array(all.iter().zip(&answers).map(of).collect()));
    view.document(members)?;
    for of_cluster in all {
        let is_missing = |name: &&String| !of_cluster.remaining.iter().any(|one| one.name == **name);
        for name in names.iter().filter(is_missing) {
            ui.tell(Event::note(format!(
                "cluster {:?} has no add-on {name:?}: nothing was deleted",
                of_cluster.cluster
            )));
        }
    }
    let failed =
        all.iter().zip(answers).filter_map(|(of_cluster, answer)| Some((of_cluster.cluster.clone(), answer.err()?)));
    let total = all.len();
    let sentence = |failed: usize| format!("add-ons of {failed} of {total} clusters are not gone");
    Failure::of_several(total, failed.collect(), sentence).map_or(Ok(Exit::Ok), Err)
}

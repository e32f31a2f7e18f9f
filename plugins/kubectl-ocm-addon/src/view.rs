//! What it looks like.

use std::time::Duration;

use ocm_api::ManagedClusterAddOn;
use ocm_api::conditions::managed_cluster_add_on::AVAILABLE;
use ocm_cli::list::NONE;
use ocm_cli::{PlanView, Sent, SentAll, Table, Ui, WaitedFor, Withdrawn, of_clusters, withdrawn, without_nulls};
use ocm_core::leave::some;
use ocm_core::plan::{Applied, Mode, Outcome};
use ocm_core::{Event, Exit, Failure, Narrator, Remedy, delivery};
use ocm_flows::addons::{AddOnFound, AddOnsEnabled, DefineRequest};
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

/// What changing the configurations of add-ons came to: their names, and how long it was waited for.
pub(crate) fn configured(
    view: &PlanView,
    ui: &Ui,
    (names, wait): (&[String], Option<Duration>),
    applied: &[Applied],
) -> Result<Exit, Failure> {
    if view.mode() == Mode::Diff {
        return view.diff(applied);
    }
    let mut members = Map::new();
    members.insert("addons".to_owned(), json!(names));
    view.document(members)?;
    if view.mode().changes() && wait.is_none() && applied.iter().any(|one| one.outcome.is_change()) {
        for name in names {
            ui.tell(Event::note(format!("whether it is in effect tells kubectl ocm addon status {name}")));
        }
    }
    Ok(Exit::Ok)
}

/// What enabling add-ons came to.
pub(crate) fn enabled(view: &PlanView, ui: &Ui, enabled: AddOnsEnabled) -> Result<Exit, Failure> {
    let AddOnsEnabled { sent, waited } = enabled;
    let rows = waited.as_ref().map(|waited| waited.rows.as_slice()).unwrap_or_default();
    let one = |(cluster, name, answer): (String, String, Result<Applied, Failure>)| {
        let row = rows.iter().find(|row| row.cluster() == cluster && row.name() == name);
        let mut is = Map::new();
        is.insert("cluster".to_owned(), json!(cluster));
        is.insert("name".to_owned(), json!(name));
        Sent { told: format!("{name} of {cluster}"), is, answer, why: row.map(|row| row.why.clone()) }
    };
    let all = SentAll {
        members: Map::new(),
        list: "addons",
        sent: sent.into_iter().map(one).collect(),
        next: "where each stands tells kubectl ocm get addons".to_owned(),
        waited: waited.map(|waited| WaitedFor {
            table: table(&waited.rows),
            word: "available",
            late: waited.late.map(|late| late.hint(Remedy::SeeAddOns)),
        }),
    };
    all.finish(view, ui, |failed, total| format!("{failed} of {total} add-ons could not be enabled"))
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
    let names = of_clusters(all.iter().filter_map(ToDelete::there));
    format!("Disable add-ons {names} ({})? What they have put there is deleted.", hub.label())
}

/// What disabling add-ons came to.
pub(crate) fn disabled(
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
    withdrawn(view, ui, all.iter().zip(answers).map(of).collect(), "add-on", "disabled")
}

/// What is known of add-ons that are to go, before anybody is asked.
pub(crate) fn tell_found(ui: &Ui, hub: &Cluster, all: &[AddOnFound]) {
    for one in all {
        let name = &one.name;
        if !one.is_defined() {
            ui.tell(Event::note(format!("the hub has no ClusterManagementAddOn {name:?} ({})", hub.label())));
        }
        if let Some(managers) = &one.written_by {
            ui.tell(Event::warning(format!(
                "ClusterManagementAddOn {name:?} was written by {managers}: whoever installed it may recreate it"
            )));
        }
        if one.is_defined() && !one.placements.is_empty() {
            let placements = some(&one.placements);
            ui.tell(Event::note(format!(
                "the hub installs add-on {name:?} by placements ({placements}): no longer then"
            )));
        }
    }
}

/// What is asked before add-ons are deleted.
pub(crate) fn about_addons(hub: &Cluster, all: &[AddOnFound]) -> String {
    let of = |one: &AddOnFound| {
        let parts = [(one.ours().count(), "template"), (one.clusters.len(), "cluster")];
        let told = parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| match count {
            1 => format!("1 {word}"),
            many => format!("{many} {word}s"),
        });
        match told.collect::<Vec<_>>().as_slice() {
            [] => one.name.clone(),
            told => format!("{} ({})", one.name, told.join(", ")),
        }
    };
    let there: Vec<String> = all.iter().filter(|one| one.is_there()).map(of).collect();
    let lost = match all.iter().any(|one| !one.clusters.is_empty()) {
        true => " What they have put on clusters is deleted.",
        false => "",
    };
    format!("Delete add-on {} from the hub ({})?{lost}", some(&there), hub.label())
}

/// What deleting add-ons came to. `deleted` is whether there was one and it is gone: not in a dry run, and not of one that was not
/// there.
pub(crate) fn deleted(view: &PlanView, all: &[AddOnFound], answers: Vec<Result<(), Failure>>) -> Result<Exit, Failure> {
    let of = |(one, answer): (&AddOnFound, &Result<(), Failure>)| {
        without_nulls(json!({
            "name": one.name,
            "deleted": view.mode().changes() && one.is_there() && answer.is_ok(),
            "templates": one.ours().map(|template| template.name.as_str()).collect::<Vec<_>>(),
            "clusters": one.clusters,
            "error": answer.as_ref().err().map(ToString::to_string),
        }))
    };
    let mut members = Map::new();
    members.insert("addons".to_owned(), Value::Array(all.iter().zip(&answers).map(of).collect()));
    view.document(members)?;
    let failed = all.iter().zip(answers).filter_map(|(one, answer)| Some((one.name.clone(), answer.err()?)));
    let failed: Vec<(String, Failure)> = failed.collect();
    let sentence = |failed: usize| format!("{failed} of {} add-ons are not gone", all.len());
    Failure::of_several(all.len(), failed, sentence).map_or(Ok(Exit::Ok), Err)
}

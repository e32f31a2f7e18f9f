//! What it looks like.

use ocm_api::ManagedClusterAddOn;
use ocm_api::conditions::managed_cluster_add_on::AVAILABLE;
use ocm_cli::list::NONE;
use ocm_cli::{PlanView, Sent, SentAll, Table, Ui, WaitedFor, Withdrawn, of_clusters, withdrawn};
use ocm_core::plan::{Applied, Mode, Outcome};
use ocm_core::{Event, Exit, Failure, Narrator, Remedy, delivery};
use ocm_flows::addons::{AddOnsEnabled, DefineRequest, ProxyRequest};
use ocm_flows::deliveries::{DeliveryRow, ToDelete};
use ocm_kube::Cluster;
use serde_json::{Map, json};

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

/// What setting the proxies of add-ons came to.
pub(crate) fn proxies(view: &PlanView, ui: &Ui, request: &ProxyRequest, applied: &[Applied]) -> Result<Exit, Failure> {
    if view.mode() == Mode::Diff {
        return view.diff(applied);
    }
    let ProxyRequest { names, wait, .. } = request;
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

//! What it looks like.

use ocm_api::conditions::placement::SATISFIED;
use ocm_cli::list::NONE;
use ocm_cli::{PlanView, Table, Ui, without_nulls};
use ocm_core::leave::some;
use ocm_core::plan::Mode;
use ocm_core::{Event, Exit, Failure, Narrator, Remedy, delivery};
use ocm_flows::placements::{CreateRequest, Decided, PlacementCreated, PlacementRow, Removal};
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

/// What creating a placement came to. [`Exit::Findings`] if it was waited for, and selects fewer clusters than it is to.
pub(crate) fn created(
    view: &PlanView,
    ui: &Ui,
    request: &CreateRequest,
    created: PlacementCreated,
) -> Result<Exit, Failure> {
    let PlacementCreated { applied, decided } = created;
    if view.mode() == Mode::Diff {
        return view.diff(&applied);
    }
    let CreateRequest { namespace, name, .. } = request;
    let row = decided.as_ref().and_then(|decided| decided.row.as_ref());
    let mut members = Map::new();
    members.insert("namespace".to_owned(), json!(namespace));
    members.insert("name".to_owned(), json!(name));
    if let Some(row) = row {
        members.insert("clusters".to_owned(), json!(row.selection.clusters));
        members.insert("why".to_owned(), json!(row.why));
    }
    view.document(members)?;
    if let Some(row) = row {
        view.table(&table(row));
    }
    let Some(Decided { row, unread, late }) = decided else {
        if view.has_changed() {
            let told = format!("what it selects tells kubectl ocm get placements {name} -n {namespace}");
            ui.tell(Event::note(told));
        }
        return Ok(Exit::Ok);
    };
    if let Some(unread) = unread {
        ui.tell(Event::note(format!("WHY is only what the placement controller says: {unread}")));
    }
    let explain = || Remedy::ExplainPlacement { namespace: namespace.clone(), name: name.clone() };
    if let Some(late) = late {
        return Err(late.hint(explain()));
    }
    Ok(if row.is_some_and(|row| row.why.is_some()) { Exit::Findings } else { Exit::Ok })
}

/// What a placement selects.
fn table(row: &PlacementRow) -> String {
    let placement = &row.selection.placement;
    let conditions = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let clusters: Vec<String> = row.selection.clusters.iter().cloned().collect();
    let number = match placement.spec.number_of_clusters {
        Some(wanted) => format!("{}/{wanted}", clusters.len()),
        None => clusters.len().to_string(),
    };
    let mut table = Table::new(&["NAMESPACE", "NAME", "SATISFIED", "SELECTED", "CLUSTERS", "WHY"]);
    table.row([
        row.selection.namespace(),
        row.name(),
        delivery::status(conditions, SATISFIED).unwrap_or(NONE),
        &number,
        &if clusters.is_empty() { NONE.to_owned() } else { some(&clusters) },
        row.why.as_deref().unwrap_or_default(),
    ]);
    table.render()
}

/// What uses placements that are to go, before anybody is asked.
pub(crate) fn tell_uses(ui: &Ui, hub: &Cluster, all: &[Removal], unread: &[String]) {
    for Removal { namespace, name, clusters, uses, .. } in all {
        if !uses.is_empty() {
            let selects = if clusters.is_empty() { String::new() } else { format!(", on {}", some(clusters)) };
            ui.tell(Event::warning(format!("placement {namespace}/{name} is used by {}{selects}", some(uses))));
        }
    }
    for why in unread {
        ui.tell(Event::warning(format!("it cannot be told in full what uses them: {why}")));
    }
    for one in all.iter().filter(|one| !one.is_there()) {
        let Removal { namespace, name, .. } = one;
        ui.tell(Event::note(format!("the hub has no placement {namespace}/{name} ({})", hub.label())));
    }
}

/// What is asked before placements are deleted.
pub(crate) fn question(hub: &Cluster, all: &[Removal]) -> String {
    let there = || all.iter().filter(|one| one.is_there());
    let of = |one: &Removal| match one.clusters.len() {
        0 => format!("{}/{}", one.namespace, one.name),
        1 => format!("{}/{} (1 cluster)", one.namespace, one.name),
        many => format!("{}/{} ({many} clusters)", one.namespace, one.name),
    };
    let names = some(&there().map(of).collect::<Vec<_>>());
    let lost = match there().any(|one| !one.uses.is_empty()) {
        true => " What is on clusters because of it may be taken away.",
        false => "",
    };
    format!("Delete placement {names} from the hub ({})?{lost}", hub.label())
}

/// What deleting placements came to.
pub(crate) fn deleted(view: &PlanView, all: &[Removal]) -> Result<Exit, Failure> {
    let of = |one: &Removal| {
        without_nulls(json!({
            "namespace": one.namespace,
            "name": one.name,
            "clusters": one.is_there().then_some(&one.clusters),
            "usedBy": one.is_there().then_some(&one.uses),
        }))
    };
    let mut members = Map::new();
    members.insert("placements".to_owned(), Value::Array(all.iter().map(of).collect()));
    view.document(members)?;
    Ok(Exit::Ok)
}

//! What it looks like.

use ocm_cli::{PlanView, Ui};
use ocm_core::leave::hub::count;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::leave::{Further, FurtherHubs, Seen, UnjoinRequest, Unjoined, Works};
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

/// What is asked before anything is deleted.
pub(crate) fn question(
    managed: &Cluster,
    hub: Option<&Cluster>,
    seen: &Seen,
    further: &FurtherHubs,
    request: &UnjoinRequest,
) -> String {
    let label = managed.label();
    let what = match &seen.known {
        Some(known) if known.is_hosted() => format!("Delete {}, which is hosted there ({label})?", known.told()),
        Some(known) => format!("Delete {} and its agents ({label})?", known.told()),
        None => format!("Delete what is left of the agent ({label})?"),
    };
    let mut all = vec![what];
    if let (Some(hub), Some(held)) = (hub, &seen.held)
        && !held.is_empty()
    {
        all.push(match count(&held.remaining) {
            Some(count) => format!(
                "Cluster {:?} is deleted from the hub ({}) first, with {count} and what these have put on the cluster.",
                held.name,
                hub.label()
            ),
            None => format!("Cluster {:?} is deleted from the hub ({}) first.", held.name, hub.label()),
        });
    }
    for other in further.given.iter().filter(|other| !other.is_empty()) {
        all.push(format!("It is deleted from {}, too.", other.label()));
    }
    if let Some(known) = &seen.known {
        all.push(format!("The namespace {} goes with everything in it.", known.agents()));
        if !known.is_hosted() && seen.others == 0 {
            all.push("So does that of add-ons.".to_owned());
        }
    }
    match (seen.applied.len(), request.works) {
        (0, _) | (_, None) => {}
        (_, Some(Works::Delete)) => all.push("What works have put there is deleted.".to_owned()),
        (_, Some(Works::Keep)) => all.push("What works have put there stays.".to_owned()),
    }
    if seen.operator_goes(request) {
        all.push("The operator goes, too.".to_owned());
    }
    all.join(" ")
}

/// There was nothing.
pub(crate) fn nothing(view: &PlanView, ui: &Ui, managed: &Cluster) -> Result<Exit, Failure> {
    view.document(Map::new())?;
    ui.tell(Event::note(format!("there is no agent ({}): nothing was deleted", managed.label())));
    Ok(Exit::Ok)
}

/// What it came to.
pub(crate) fn finish(
    view: &PlanView,
    ui: &Ui,
    seen: &Seen,
    further: &FurtherHubs,
    request: &UnjoinRequest,
    unjoined: Unjoined,
) -> Result<Exit, Failure> {
    let changes = view.mode().changes();
    let cluster = seen.cluster().or(request.cluster.as_deref());
    let mut members = Map::new();
    members.insert("cluster".to_owned(), json!(cluster));
    members.extend(gone(&unjoined, changes));
    let Unjoined { hub, operator, works, guest, account_left } = unjoined;
    let departure = operator.clone().unwrap_or_default();
    members.insert("namespaceKept".to_owned(), json!(departure.namespace_kept));
    members.insert("definitionsKept".to_owned(), json!([departure.definitions_kept, guest].concat()));
    members.insert("hubNamespaceKept".to_owned(), json!(hub.as_ref().and_then(|hub| hub.kept.clone())));
    if let Some(namespace) = &account_left {
        members.insert("accountMayBeLeft".to_owned(), json!({"namespace": namespace}));
    }
    let detached = further.given.iter().map(Further::label).collect::<Vec<_>>();
    if changes && !detached.is_empty() {
        members.insert("furtherHubsDetached".to_owned(), json!(detached));
    }
    if !further.left.is_empty() {
        members.insert("furtherHubsLeft".to_owned(), json!(further.left));
    }
    view.document(members)?;
    if departure.namespace_kept.is_some() || hub.as_ref().is_some_and(|hub| hub.kept.is_some()) {
        ui.tell(Event::note("--purge deletes such a namespace with whatever else is in it"));
    }
    match works {
        Some((many, Works::Keep)) => ui.tell(Event::note(kept(many, changes))),
        Some((_, Works::Delete)) | None => {}
    }
    if let Some(namespace) = account_left {
        ui.tell(Event::warning(format!(
            "nobody could look at the managed cluster: if `kubectl ocm join` has made the operator's account there, it stays, with a \
             token that does not end; whoever reaches that cluster types kubectl delete namespace {namespace}"
        )));
    }
    match (&operator, seen.others, request.keep_operator) {
        (Some(_), ..) => {}
        // Somebody has made another Klusterlet meanwhile, which was told.
        (None, 0, false) => {}
        (None, _, true) => ui.tell(Event::note("the operator stays, as --keep-operator says")),
        (None, 1, _) => ui.tell(Event::note("the operator stays: there is another Klusterlet")),
        (None, others, _) => ui.tell(Event::note(format!("the operator stays: there are {others} other Klusterlets"))),
    }
    if let (None, Some(cluster)) = (&hub, cluster) {
        ui.tell(Event::note(format!(
            "its hub still knows cluster {cluster:?}: kubectl ocm detach {cluster} --context HUB takes it away there"
        )));
    }
    if let (false, Some(cluster)) = (further.left.is_empty(), cluster) {
        ui.tell(Event::note(format!(
            "its agent could turn to {}, which may know cluster {cluster:?}: kubectl ocm detach {cluster} --context HUB takes it \
             away there",
            further.left.join(", ")
        )));
    }
    Ok(Exit::Ok)
}

/// What is gone, for programs. A dry run gets as far, and does none of it.
fn gone(unjoined: &Unjoined, changes: bool) -> [(String, Value); 2] {
    let gone = |is_gone: bool| json!(changes && is_gone);
    [
        ("detached".to_owned(), gone(unjoined.hub.is_some())),
        ("operatorDeleted".to_owned(), gone(unjoined.operator.is_some())),
    ]
}

/// What is said of what works have put on the cluster, where it stays.
fn kept(many: usize, changes: bool) -> String {
    let who = if many == 1 { "1 work has".to_owned() } else { format!("{many} works have") };
    let stays = if changes { "stays" } else { "would stay" };
    format!("what {who} put there {stays}; nothing looks after it any more")
}

#[cfg(test)]
mod tests {
    use ocm_flows::leave::{Departure, Detached};

    use super::*;

    #[test]
    fn nothing_is_gone_after_a_dry_run() {
        let unjoined =
            Unjoined { hub: Some(Detached::default()), operator: Some(Departure::default()), ..Unjoined::default() };
        assert!(gone(&unjoined, true).iter().all(|(_, is_gone)| *is_gone == json!(true)));
        assert!(gone(&unjoined, false).iter().all(|(_, is_gone)| *is_gone == json!(false)));
        assert!(gone(&Unjoined::default(), true).iter().all(|(_, is_gone)| *is_gone == json!(false)));
    }

    #[test]
    fn one_work_is_told_as_one() {
        assert_eq!(kept(1, true), "what 1 work has put there stays; nothing looks after it any more");
        assert_eq!(kept(2, false), "what 2 works have put there would stay; nothing looks after it any more");
    }
}

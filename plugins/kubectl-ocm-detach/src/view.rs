//! What it looks like.

use ocm_cli::{PlanView, Ui, without_nulls};
use ocm_core::leave::hub::{Agent, count};
use ocm_core::leave::some;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::leave::{Detached, Held};
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

/// What became of one cluster; none where there was nothing of it.
pub(crate) struct Told<'a> {
    pub(crate) held: &'a Held,
    pub(crate) done: Result<Option<Detached>, Failure>,
}

/// What is asked before anything is deleted.
pub(crate) fn question(hub: &Cluster, all: &[&Held]) -> String {
    let of = |held: &&Held| match count(&held.remaining) {
        Some(count) => format!("{} ({count})", held.name),
        None => held.name.clone(),
    };
    let names = some(&all.iter().map(of).collect::<Vec<_>>());
    let works = all.iter().any(|held| !held.remaining.is_empty());
    let lost = if works { " What works and add-ons have put there is deleted." } else { "" };
    format!("Detach {names} from the hub ({})?{lost}", hub.label())
}

/// What it came to.
pub(crate) fn finish(view: &PlanView, ui: &Ui, hub: &Cluster, all: Vec<Told<'_>>) -> Result<Exit, Failure> {
    let of = |told: &Told<'_>| of_cluster(&told.held.name, &told.done, view.mode().changes());
    let mut members = Map::new();
    members.insert("clusters".to_owned(), Value::Array(all.iter().map(of).collect()));
    view.document(members)?;
    let total = all.len();
    let (mut failed, mut kept, mut agents) = (Vec::new(), false, Vec::new());
    for Told { held, done } in all {
        match done {
            Ok(None) => ui.tell(Event::note(format!(
                "the hub holds nothing of a cluster {:?} ({}): nothing was deleted",
                held.name,
                hub.label()
            ))),
            Ok(Some(detached)) => {
                kept |= detached.kept.is_some();
                agents.extend((held.agent == Agent::Heard).then(|| held.name.clone()));
            }
            Err(failure) => failed.push((held.name.clone(), failure)),
        }
    }
    if kept {
        ui.tell(Event::note("--purge deletes a namespace whoever made it, with whatever else is in it"));
    }
    if let Some(first) = agents.first() {
        let verb = if view.mode().changes() { "still runs" } else { "would still run" };
        ui.tell(Event::note(format!(
            "the agent {verb} on {}: kubectl ocm unjoin {first} --context CLUSTER takes it away",
            some(&agents)
        )));
    }
    let sentence = |failed: usize| format!("{failed} of {total} clusters are not detached");
    Failure::of_several(total, failed, sentence).map_or(Ok(Exit::Ok), Err)
}

/// What became of one cluster, for programs. One of which there is nothing is detached, unless nothing is changed at all.
fn of_cluster(name: &str, done: &Result<Option<Detached>, Failure>, changes: bool) -> Value {
    without_nulls(json!({
        "name": name,
        "detached": changes && done.is_ok(),
        "namespaceKept": done.as_ref().ok().and_then(Option::as_ref).and_then(|done| done.kept.clone()),
        "error": done.as_ref().err().map(ToString::to_string),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_detaches_nothing() {
        let gone = || Ok(Some(Detached { kept: None }));
        assert_eq!(of_cluster("c1", &gone(), true), json!({ "name": "c1", "detached": true }));
        assert_eq!(of_cluster("c1", &gone(), false), json!({ "name": "c1", "detached": false }));
        assert_eq!(of_cluster("c1", &Ok(None), true)["detached"], true);
        assert_eq!(of_cluster("c1", &Ok(None), false)["detached"], false);
        assert_eq!(of_cluster("c1", &Err(Failure::refused("no")), true)["detached"], false);
    }
}

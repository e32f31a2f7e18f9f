//! What it looks like.

use ocm_cli::{PlanView, Ui};
use ocm_core::cluster_sets::Lost;
use ocm_core::leave::some;
use ocm_core::{Event, Exit, Failure, Narrator, Remedy};
use ocm_flows::cluster_sets::{Bound, Effects, Moved, Moves, Removal};
use ocm_kube::Cluster;
use serde_json::{Map, Value, json};

/// What placements lose, before anybody is asked.
pub(crate) fn tell_effects(ui: &Ui, effects: &Effects) {
    for Lost { placement, clusters } in &effects.lost {
        ui.tell(Event::warning(format!("placement {placement} selects {} no longer then", some(clusters))));
    }
    if let Some(unread) = &effects.unread {
        ui.tell(Event::warning(format!("it cannot be told which placements select clusters no longer then: {unread}")));
    }
}

/// What is asked before clusters leave sets.
pub(crate) fn about_clusters(hub: &Cluster, set: &str, into: bool, moves: &Moves) -> String {
    let names: Vec<String> = moves.all.iter().map(|step| step.cluster.clone()).collect();
    let what = if into { "Put" } else { "Take" };
    let where_to = if into { format!("into set {set}") } else { format!("out of set {set}") };
    let leave = |(from, names): (&str, Vec<String>)| {
        let verb = if names.len() == 1 { "leaves" } else { "leave" };
        format!(" {} {verb} set {from}.", some(&names))
    };
    let leaving: String = moves.by_origin().into_iter().filter(|_| into).map(leave).collect();
    let (names, lost) = (some(&names), consequence(&moves.effects));
    format!("{what} {names} {where_to} on the hub ({})?{leaving}{lost}", hub.label())
}

/// That a selector chooses among accepted clusters.
pub(crate) fn not_accepted(names: &[String]) -> String {
    let (stay, them) = if names.len() == 1 { ("stays where it is", "it") } else { ("stay where they are", "them") };
    format!(
        "{} {stay}: the hub has not accepted {them}, and whoever registers a cluster chooses its labels; name {them} to put \
         {them} into the set",
        some(names)
    )
}

fn consequence(effects: &Effects) -> &'static str {
    if effects.lost.is_empty() {
        ""
    } else {
        " What was placed on clusters because placements select them is taken away."
    }
}

/// What is asked before bindings are deleted.
pub(crate) fn about_bindings(hub: &Cluster, bound: &Bound) -> String {
    let namespaces: Vec<String> = bound.there.iter().map(|(namespace, _)| namespace.clone()).collect();
    format!(
        "Unbind set {} from namespace {} on the hub ({})?{}",
        bound.set,
        some(&namespaces),
        hub.label(),
        consequence(&bound.effects)
    )
}

/// That a set is not bound.
pub(crate) fn not_bound(bound: &Bound) -> String {
    format!("set {} is not bound to namespace {}", bound.set, some(&bound.absent))
}

/// What is asked before sets are deleted.
pub(crate) fn about_sets(hub: &Cluster, all: &[&Removal]) -> String {
    let of = |removal: &&Removal| {
        let uses = [(removal.clusters.len(), "clusters"), (removal.bound.there.len(), "bindings")];
        let uses: Vec<String> = uses.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        match uses.as_slice() {
            [] => removal.set.clone(),
            uses => format!("{} ({})", removal.set, uses.join(", ")),
        }
    };
    let names = some(&all.iter().map(of).collect::<Vec<_>>());
    let lost = all.iter().find(|removal| !removal.effects.lost.is_empty());
    format!("Delete set {names} from the hub ({})?{}", hub.label(), lost.map_or("", |one| consequence(&one.effects)))
}

/// What placements lose, for machines.
pub(crate) fn lost_by(effects: &Effects) -> Vec<Value> {
    let of = |lost: &Lost| json!({"placement": lost.placement, "clusters": lost.clusters});
    effects.lost.iter().map(of).collect()
}

/// What it came to.
pub(crate) fn finish(view: &PlanView) -> Result<Exit, Failure> {
    view.document(Map::new())?;
    Ok(Exit::Ok)
}

/// The same, with what placements lose.
pub(crate) fn finish_with(view: &PlanView, lost: Vec<Value>) -> Result<Exit, Failure> {
    let mut members = Map::new();
    members.insert("lost".to_owned(), Value::Array(lost));
    view.document(members)?;
    Ok(Exit::Ok)
}

/// What became of clusters that change their set. With the name of the set come the namespaces that it manages, if these were
/// to be changed.
pub(crate) fn finish_moves(
    view: &PlanView,
    ui: &Ui,
    (set, namespaces): (&str, Option<Vec<String>>),
    moves: &Moves,
    moved: Vec<Moved>,
) -> Result<Exit, Failure> {
    let of = |one: &Moved| {
        let mut members = Map::new();
        members.insert("name".to_owned(), json!(one.step.cluster));
        members.insert("from".to_owned(), json!(one.step.from));
        members.insert("clusterSet".to_owned(), json!(one.now));
        members.insert("error".to_owned(), json!(one.done.as_ref().err().map(ToString::to_string)));
        members.retain(|_, value| !value.is_null());
        Value::Object(members)
    };
    let mut members = Map::new();
    members.insert("clusterSet".to_owned(), json!(set));
    members.insert("managedNamespaces".to_owned(), json!(namespaces));
    members.insert("clusters".to_owned(), Value::Array(moved.iter().map(of).collect()));
    members.insert("lost".to_owned(), Value::Array(lost_by(&moves.effects)));
    view.document(members)?;
    tell_where(view, ui, &moved);
    let total = moved.len();
    let mut failed: Vec<(String, Failure)> = Vec::new();
    for Moved { step, done, .. } in moved {
        match done {
            Ok(true) => {}
            Ok(false) => {
                let changed =
                    Failure::other(format!("cluster {:?} is not in the set that it was to be in", step.cluster));
                failed.push((step.cluster, changed.hint(Remedy::RunAgain)));
            }
            Err(failure) => failed.push((step.cluster, failure)),
        }
    }
    let sentence = |many: usize| format!("{many} of {total} clusters are not in the set that they were to be in");
    Failure::of_several(total, failed, sentence).map_or(Ok(Exit::Ok), Err)
}

/// Where clusters are that were only taken out of a set.
fn tell_where(view: &PlanView, ui: &Ui, moved: &[Moved]) {
    let out: Vec<&Moved> = moved.iter().filter(|one| one.step.to.is_none() && matches!(one.done, Ok(true))).collect();
    let (inside, outside): (Vec<_>, Vec<_>) = out.into_iter().partition(|one| one.now.is_some());
    let tell = |all: &[&Moved], set: &str| {
        let names = some(&all.iter().map(|one| one.step.cluster.clone()).collect::<Vec<_>>());
        let verb = match (view.mode().changes(), all.len()) {
            (false, _) => "would be",
            (true, 1) => "is now",
            (true, _) => "are now",
        };
        ui.tell(Event::note(format!("{names} {verb} in {set}")));
    };
    if let Some(set) = inside.first().and_then(|one| one.now.as_deref()) {
        tell(&inside, &format!("set {set}"));
    }
    if !outside.is_empty() {
        tell(&outside, "no set");
    }
}

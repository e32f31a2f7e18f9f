//! What the configuration of an add-on looks like.

use ocm_cli::list::NONE;
use ocm_cli::{Format, Table, Ui, document, without_nulls};
use ocm_core::addon::{Configured, Level, Named, Progress, RolloutStage, TakenAway};
use ocm_core::leave::some;
use ocm_core::order::Collect as _;
use ocm_core::{Event, Exit, Failure, Narrator};
use ocm_flows::addons::AddOnStatus;
use serde_json::{Value, json};

/// Which configuration takes effect where. [`Exit::Findings`] if one does not yet, or one does that was taken away.
pub(crate) fn show(ui: &Ui, format: Format, status: &AddOnStatus) -> Result<Exit, Failure> {
    let AddOnStatus { name, addons, configurations, taken_away, progress, rollout, unread } = status;
    match format {
        Format::Json | Format::Yaml => ui.out(&document(format, &status_document(status))?),
        Format::Name => {
            let named = configurations.iter().map(|one| format!("{}/{}", one.resource, one.effective.object));
            named.collect_set().iter().for_each(|line| ui.line(line));
        }
        Format::Table | Format::Wide if addons.is_empty() => {
            ui.tell(Event::note(format!("no cluster there has add-on {name:?}")));
        }
        Format::Table | Format::Wide if configurations.is_empty() && taken_away.is_empty() => {
            ui.tell(Event::note(format!("add-on {name:?} has no configuration")));
        }
        Format::Table | Format::Wide => ui.out(&table(configurations, taken_away, format == Format::Wide)),
    }
    if format.is_human() && !progress.is_empty() {
        ui.out(&format!("\n{}", progress_table(progress)));
    }
    if format.is_human() && !rollout.is_empty() {
        ui.out(&format!("\n{}", rollout_table(rollout)));
    }
    if let Some(unread) = unread {
        ui.tell(Event::warning(format!("what placements configure is not told: {unread}")));
    }
    for row in addons {
        if let Some(why) = &row.why {
            ui.tell(Event::note(format!("add-on {name:?} of cluster {:?}: {why}", row.cluster())));
        }
    }
    let is_open = configurations.iter().any(|one| one.why.is_some()) || !taken_away.is_empty();
    Ok(if is_open { Exit::Findings } else { Exit::Ok })
}

fn table(all: &[Configured], taken_away: &[TakenAway], is_wide: bool) -> String {
    const HEADINGS: [&str; 9] =
        ["CLUSTER", "CONFIGURATION", "OBJECT", "FROM", "APPLIED", "WHY", "REPLACES", "WANTED", "LAST APPLIED"];
    let columns = if is_wide { HEADINGS.len() } else { 6 };
    let mut table = Table::new(&HEADINGS[..columns]);
    for one in all {
        let Configured { cluster, resource, effective, replaced, desired, applied, is_reached: _, why } = one;
        let replaced: Vec<String> = replaced.iter().map(told).collect();
        let last = applied.as_ref().map(|(object, hash)| format!("{object} {}", short(hash)));
        let cells = [
            cluster.clone(),
            resource.clone(),
            effective.object.clone(),
            effective.level.to_string(),
            if why.is_none() { "True" } else { "False" }.to_owned(),
            why.clone().unwrap_or_default(),
            if replaced.is_empty() { NONE.to_owned() } else { some(&replaced) },
            desired.as_deref().map_or_else(|| NONE.to_owned(), |hash| short(hash).to_owned()),
            last.unwrap_or_else(|| NONE.to_owned()),
        ];
        table.row(&cells[..columns]);
    }
    for TakenAway { cluster, resource, object } in taken_away {
        let (cluster, resource, object) = (cluster.as_str(), resource.as_str(), object.as_str());
        let cells = [cluster, resource, object, NONE, "False", TakenAway::WHY, NONE, NONE, NONE];
        table.row(&cells[..columns]);
    }
    table.render()
}

/// A configuration that is replaced, with where it is said.
fn told(named: &Named) -> String {
    format!("{} ({})", named.object, named.level)
}

/// The beginning of a hash, enough to tell two apart.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

fn progress_table(all: &[Progress]) -> String {
    let mut table = Table::new(&["PLACEMENT", "PROGRESSING", "REASON", "MESSAGE"]);
    for one in all {
        let Progress { placement, progressing, reason, message } = one;
        table.row([placement.as_str(), progressing.as_deref().unwrap_or(NONE), reason, message]);
    }
    table.render()
}

/// A picture of the stages, in their order from the top.
fn rollout_table(all: &[RolloutStage]) -> String {
    let mut table = Table::new(&["PLACEMENT", "ROLLOUT", "STAGE", "CLUSTERS", "DONE", "STATE", "WHY"]);
    for one in all {
        let RolloutStage { placement, strategy, number, group, total, completed, state, why } = one;
        let (number, done) = (number.to_string(), format!("{} {completed}/{total}", bar(*completed, *total)));
        let (state, why) = (state.to_string(), why.as_deref().unwrap_or_default());
        table.row([placement.as_str(), strategy, &number, group, &done, &state, why]);
    }
    table.render()
}

/// How much is done, to be seen at a glance: full only if all is.
fn bar(completed: usize, total: usize) -> String {
    const WIDTH: usize = 10;
    let filled = match total {
        0 => WIDTH,
        total => completed * WIDTH / total,
    };
    format!("[{}{}]", "#".repeat(filled), "-".repeat(WIDTH - filled))
}

fn status_document(status: &AddOnStatus) -> Value {
    let AddOnStatus { name, addons, configurations, taken_away, progress, rollout, unread } = status;
    let configuration = |one: &Configured| {
        let Configured { cluster, resource, effective, replaced, desired, applied, is_reached: _, why } = one;
        without_nulls(json!({
            "cluster": cluster,
            "resource": resource,
            "effective": named(effective),
            "replaced": replaced.iter().map(named).collect::<Vec<Value>>(),
            "desiredHash": desired,
            "lastApplied": applied.as_ref().map(|(object, hash)| json!({"object": object, "hash": hash})),
            "why": why,
        }))
    };
    let taken = |one: &TakenAway| {
        let TakenAway { cluster, resource, object } = one;
        json!({"cluster": cluster, "resource": resource, "object": object, "why": TakenAway::WHY})
    };
    let of_placement = |one: &Progress| {
        let Progress { placement, progressing, reason, message } = one;
        without_nulls(json!({
            "placement": placement, "progressing": progressing, "reason": reason, "message": message,
        }))
    };
    let of_stage = |one: &RolloutStage| {
        let RolloutStage { placement, strategy, number, group, total, completed, state, why } = one;
        without_nulls(json!({
            "placement": placement, "strategy": strategy, "stage": number, "group": group, "total": total,
            "completed": completed, "state": state.to_string(), "why": why,
        }))
    };
    without_nulls(json!({
        "name": name,
        "clusters": addons.iter().map(|row| without_nulls(json!({"name": row.cluster(), "why": row.why}))).collect::<Vec<_>>(),
        "configurations": configurations.iter().map(configuration).collect::<Vec<Value>>(),
        "takenAway": taken_away.iter().map(taken).collect::<Vec<Value>>(),
        "progress": progress.iter().map(of_placement).collect::<Vec<Value>>(),
        "rollout": rollout.iter().map(of_stage).collect::<Vec<Value>>(),
        "unread": unread,
    }))
}

fn named(named: &Named) -> Value {
    let Named { level, object } = named;
    let (word, placement) = match level {
        Level::Default => ("default", None),
        Level::Placement(placement) => ("placement", Some(placement)),
        Level::Cluster => ("cluster", None),
    };
    without_nulls(json!({"object": object, "level": word, "placement": placement}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_if_all_is_done() {
        assert_eq!(bar(0, 3), "[----------]");
        assert_eq!(bar(99, 100), "[#########-]");
        assert_eq!(bar(3, 3), "[##########]");
        assert_eq!(bar(0, 0), "[##########]");
    }
}

//! What a fleet looks like: one row for the hub, and one for each cluster.

use ocm_cli::{Format, Table, Ui, applied_document, document, fleet_file, without_nulls};
use ocm_core::plan::Mode;
use ocm_core::{Exit, Failure};
use ocm_flows::fleet::{BroughtUp, Outcome, Row};
use serde_json::{Value, json};

const HEADINGS: [&str; 7] = ["ROLE", "NAME", "CLUSTER", "PHASE", "SET", "OUTCOME", "BECAUSE"];

/// What the hub's object of a cluster is called where objects are echoed.
const REFERENCE: &str = "managedcluster.cluster.open-cluster-management.io";

/// What it came to. The failures of clusters are told together; the exit code is that of the first.
pub(crate) fn finish(ui: &Ui, format: Format, mode: Mode, brought: &BroughtUp) -> Result<Exit, Failure> {
    let BroughtUp { hub, clusters } = brought;
    match format {
        Format::Json | Format::Yaml => ui.out(&document(format, &json_of(mode, brought))?),
        Format::Name => there(clusters).for_each(|name| ui.line(&format!("{REFERENCE}/{name}"))),
        Format::Table | Format::Wide => ui.out(&table(mode, brought)),
    }
    match failure(mode, hub.as_ref(), clusters) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Ok),
    }
}

/// The clusters that are as the file has them, or would be.
fn there(clusters: &[Row]) -> impl Iterator<Item = &str> {
    let is_there = |row: &&Row| matches!(row.outcome, Outcome::Changed | Outcome::Unchanged);
    clusters.iter().filter(is_there).map(|row| row.name.as_str())
}

fn because(row: &Row) -> Option<String> {
    match &row.outcome {
        Outcome::Failed(failure) => Some(failure.to_string()),
        Outcome::NotTried => Some("the hub was not installed".to_owned()),
        Outcome::Changed | Outcome::Unchanged => None,
    }
}

fn table(mode: Mode, BroughtUp { hub, clusters }: &BroughtUp) -> String {
    let mut table = Table::new(&HEADINGS);
    let mut add = |row: &Row, is_hub: bool| {
        let (role, name) = if is_hub { ("hub", "") } else { ("cluster", row.name.as_str()) };
        let phase = row.phase.map(|phase| phase.to_string()).unwrap_or_default();
        let (set, because) = (row.set.as_deref().unwrap_or_default(), because(row).unwrap_or_default());
        let word = row.outcome.word(mode.changes());
        table.row([role, name, &row.label, &phase, set, word, &because]);
    };
    hub.iter().for_each(|row| add(row, true));
    clusters.iter().for_each(|row| add(row, false));
    table.render()
}

fn json_of(mode: Mode, BroughtUp { hub, clusters }: &BroughtUp) -> Value {
    let of = |row: &Row, is_hub: bool| {
        without_nulls(json!({
            "name": (!is_hub).then_some(&row.name),
            "cluster": row.label,
            "phase": row.phase.map(|phase| phase.to_string()),
            "clusterSet": row.set,
            "outcome": row.outcome.word(mode.changes()),
            "because": because(row),
            "objects": row.applied.iter().map(applied_document).collect::<Vec<_>>(),
        }))
    };
    without_nulls(json!({
        "dryRun": mode.dry_run().word(),
        "hub": hub.as_ref().map(|row| of(row, true)),
        "clusters": clusters.iter().map(|row| of(row, false)).collect::<Vec<_>>(),
    }))
}

/// What the failures come to, in the order of the table.
pub(crate) fn failure(mode: Mode, hub: Option<&Row>, clusters: &[Row]) -> Option<Failure> {
    let named = |row: &Row, name: &str| match &row.outcome {
        Outcome::Failed(failure) => Some((name.to_owned(), failure.clone())),
        _ => None,
    };
    let of_hub = hub.and_then(|row| named(row, "the hub"));
    let failed: Vec<_> = of_hub.into_iter().chain(clusters.iter().filter_map(|row| named(row, &row.name))).collect();
    let total = clusters.len() + usize::from(hub.is_some());
    Failure::of_several(total, failed, |count| match mode.changes() {
        true => format!("{count} of {total} did not get there; the same command goes on where this one has stopped"),
        false => format!("{count} of {total} cannot get there as things are; nothing was changed"),
    })
    .map(fleet_file::of_fields)
}

#[cfg(test)]
mod tests {
    use ocm_core::phase::Phase;
    use ocm_core::{DryRun, Reason};

    use super::*;

    fn row(name: &str, outcome: Outcome) -> Row {
        Row { name: name.to_owned(), label: format!("context {name:?}"), outcome, ..Row::default() }
    }

    fn brought() -> BroughtUp {
        let broken = Failure::new(Reason::Unreachable, "no route").because("down");
        BroughtUp {
            hub: Some(row("", Outcome::Unchanged)),
            clusters: vec![
                Row { phase: Some(Phase::Available), ..row("c1", Outcome::Changed) },
                row("c2", Outcome::Failed(broken)),
                row("c3", Outcome::NotTried),
            ],
        }
    }

    #[test]
    fn each_has_a_row_and_the_failures_are_told_together() {
        let real = Mode::Apply(DryRun::No);
        let text = table(real, &brought());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[1].starts_with("hub ") && lines[1].ends_with("Unchanged"), "{text}");
        assert!(lines[2].contains("Available") && lines[2].ends_with("Changed"), "{text}");
        assert!(lines[3].contains("Failed") && lines[3].ends_with("no route: down"), "{text}");
        assert!(lines[4].contains("NotTried"), "{text}");
        let BroughtUp { hub, clusters } = brought();
        let failure = failure(real, hub.as_ref(), &clusters).unwrap();
        assert_eq!((failure.reason, failure.exit()), (Reason::Unreachable, Exit::Failed));
        assert!(failure.message.starts_with("1 of 4 did not get there"), "{failure}");
        assert_eq!(failure.causes, ["c2: no route: down"]);
        assert_eq!(super::failure(real, hub.as_ref(), &clusters[..1]), None);
        assert_eq!(there(&clusters).collect::<Vec<_>>(), ["c1"]);
    }

    #[test]
    fn machines_read_what_would_become_of_each() {
        let document = json_of(Mode::Apply(DryRun::Client), &brought());
        assert_eq!((&document["dryRun"], &document["hub"]["outcome"]), (&json!("client"), &json!("Unchanged")));
        assert_eq!(document["hub"]["name"], Value::Null);
        let outcomes: Vec<&Value> =
            document["clusters"].as_array().unwrap().iter().map(|cluster| &cluster["outcome"]).collect();
        assert_eq!(outcomes, ["WouldChange", "Failed", "NotTried"]);
        assert_eq!(document["clusters"][0]["phase"], "Available");
    }
}

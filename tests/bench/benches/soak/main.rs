//! Thousands of clusters before webhook and controllers: how fast they get in, against the lower bound, which is a plain
//! loop of the same writes; what it takes in memory; and whether all right ones get in once, and no hostile one, while the
//! leader is killed, the API server is killed, a policy is replaced and the webhook's certificate is rotated. Before that, of the
//! fewest that come at once, as many as a quota has places for.
//!
//! `cargo soak`, which builds what is measured. `SOAK_CLUSTERS` is how many come at once, several numbers with commas
//! between them, at least two; `SOAK_SEED` decides which of them are hostile.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its result, or ends"
)]
#![expect(clippy::cast_precision_loss, reason = "clusters and bytes are few enough")]

mod idle;
mod quota;
mod rate;
mod storm;
mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use e2e_tests::controller_support::Controller;
use e2e_tests::until_within;
use fleet_sim::Plan;

use crate::table::Table;

/// Fewer clusters at once tell nothing.
const LEAST: usize = 100;
/// How many requests of clusters are on their way at once.
const AT_ONCE: usize = 64;

fn main() {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let counts = variable("SOAK_CLUSTERS", "1000,10000");
    let counts = counts_of(&counts).unwrap_or_else(|error| {
        eprintln!("error: SOAK_CLUSTERS={counts}: {error}");
        std::process::exit(2)
    });
    let seed = variable("SOAK_SEED", "1").parse().unwrap();
    let mut table = Table::default();
    let loop_of = idle::measure(&mut table);
    counts.first().into_iter().for_each(|least| quota::run(*least, &mut table));
    let mut peaks = Vec::new();
    for count in counts {
        rate::measure(count, &loop_of, &mut table);
        peaks.push((count, storm::run(count, seed, &mut table)));
    }
    if let [(few, before), .., (many, after)] = &*peaks {
        storm::growth((*few, before), (*many, after), &mut table);
    }
    table.print();
    if !table.is_met() {
        std::process::exit(1);
    }
}

/// The numbers of clusters, the least first: what each of them adds to the memory is told by the first and the last.
fn counts_of(text: &str) -> Result<Vec<usize>, String> {
    let counts = text.split(',').map(|count| count.parse::<usize>().map_err(|error| format!("{count:?}: {error}")));
    let counts: BTreeSet<usize> = counts.collect::<Result<_, _>>()?;
    match counts.first() {
        Some(least) if *least < LEAST => Err(format!("{least} are too few: {LEAST} are the least")),
        _ if counts.len() < 2 => Err("at least two different numbers are needed".to_owned()),
        _ => Ok(counts.into_iter().collect()),
    }
}

/// Right clusters that only join.
fn joining(prefix: &str, clusters: usize) -> Plan {
    Plan { prefix: prefix.to_owned(), clusters, hostile: 0, reports: false, seed: 1 }
}

/// A controller that acts.
fn leading(user: &Path) -> Controller {
    let controller = Controller::start_as(user);
    until_within(Duration::from_secs(30), "it leads", String::new, || controller.leads());
    controller
}

/// How long so many may take.
fn patience(count: usize) -> Duration {
    Duration::from_secs(120) + Duration::from_millis(50) * u32::try_from(count).unwrap()
}

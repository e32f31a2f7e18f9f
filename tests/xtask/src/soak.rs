//! `cargo soak`: what takes too long for `cargo verify`.

use std::process::Command;

use clap::{Args, ValueEnum};

use crate::image;
use crate::places::target;

/// Arguments of `cargo soak`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// What is run
    #[arg(long, value_enum, value_name = "PART,…", value_delimiter = ',',
          default_values_t = [Part::Image, Part::Storm, Part::Faults, Part::Series, Part::Stories])]
    pub parts: Vec<Part>,
    /// How many clusters come at once, at least two different numbers: they are measured one after the other
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1000, 10_000],
          value_parser = clap::value_parser!(u32).range(100..))]
    pub clusters: Vec<u32>,
    /// Decides which clusters are hostile and in which way, and the order
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// What can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The image of the policy engine for every processor, built here and in another folder: whether both are the same, and run
    Image,
    /// Thousands of clusters before the policy engine, while things break
    Storm,
    /// Every fault that troubleshoot has to find, made for real, but those of `cargo verify`
    Faults,
    /// Every case of the series of which `cargo verify` runs a few: writes after which a program is cut off, faults that are alike
    Series,
    /// Long stories on real clusters: commands that are killed at every step, switches there and back, fleets
    Stories,
}

/// Runs the parts, which print what they find.
///
/// # Errors
/// What cannot be built or run, or was not as it should be.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { parts, clusters, seed } = arguments;
    let mut wrong = Vec::new();
    // First: what it finds changed is better said before hours than after them.
    if parts.contains(&Part::Image) {
        wrong.extend(image::twice().err());
    }
    if parts.contains(&Part::Storm) {
        wrong.extend(storm(clusters, *seed).err());
    }
    if parts.contains(&Part::Faults) {
        wrong.extend(on_clusters("faults", "the matrix of faults").err());
    }
    if parts.contains(&Part::Series) {
        wrong.extend(series().err());
    }
    if parts.contains(&Part::Stories) {
        wrong.extend(on_clusters("stories", "the stories").err());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Runs the storm with the webhook as it is shipped.
fn storm(clusters: &[u32], seed: u64) -> Result<(), String> {
    // What each cluster adds to the memory is told by two. Better said before anything is built.
    if clusters.iter().all(|count| Some(count) == clusters.first()) {
        return Err("the storm needs at least two different numbers of clusters: --clusters 1000,10000".to_owned());
    }
    let binaries = cli_tests::build_some(&["ocm-policy-webhook".to_owned()], &target()?, true, false)?;
    let clusters: Vec<String> = clusters.iter().map(u32::to_string).collect();
    let mut command = cli_tests::cargo();
    command.args(["bench", "--quiet", "--package", "bench", "--bench", "soak"]);
    // What is measured is the binary above: what measures it need not be linked for minutes.
    command.envs([("CARGO_PROFILE_BENCH_LTO", "off"), ("CARGO_PROFILE_BENCH_CODEGEN_UNITS", "16")]);
    command.env(cli_tests::BINARIES, binaries);
    command.env("SOAK_CLUSTERS", clusters.join(",")).env("SOAK_SEED", seed.to_string());
    end(command, "the storm")
}

/// Runs what takes too long on real clusters for `cargo verify`. Nothing is measured: what tests are built with will do.
fn on_clusters(bench: &str, what: &str) -> Result<(), String> {
    let mut command = cli_tests::cargo();
    command.args(["bench", "--quiet", "--profile", "dev", "--package", "bench", "--bench", bench]);
    end(command, what)
}

/// The tests of `tests/e2e` that ask `e2e_tests::series` which of their cases are meant.
const SERIES: [&str; 11] = [
    "accept::of_many_clusters_fifty_are_hostile_and_exactly_the_others_come_in",
    "controller::what_the_hub_did_and_did_not_confirm_happens_once",
    "controller::wherever_it_is_cut_off_the_next_one_comes_to_the_same_end",
    "expiry::wherever_a_withdrawal_is_cut_off_it_happens_once",
    "hub_change::a_cluster_goes_to_another_hub_and_comes_back_and_what_works_have_applied_stays",
    "policy_engine::a_run_that_was_killed_goes_on",
    "policy_status::a_policy_is_enforced_where_the_entries_are_whole_that_bring_what_it_judges",
    "policy_status::where_the_hubs_own_webhooks_are_not_asked_or_do_not_answer_it_is_told",
    "troubleshoot::what_keeps_an_agent_from_registering_is_found",
    "uninstall::a_run_that_was_killed_goes_on",
    "wait::hundreds_of_large_requests_take_little_memory_and_few_lines",
];

/// Runs them with all of their cases.
fn series() -> Result<(), String> {
    let mut command = cli_tests::cargo();
    command.args(["test", "--quiet", "--package", "e2e-tests", "--test", "e2e", "--", "--test-threads=1", "--exact"]);
    command.args(SERIES).env("SOAK_SERIES", "whole");
    end(command, "the series")
}

fn end(mut command: Command, what: &str) -> Result<(), String> {
    match command.current_dir(cli_tests::root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("something in {what} is not as it should be: see above")),
        Err(error) => Err(format!("cannot start Cargo: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn every_series_is_run() {
        for entry in fs::read_dir(cli_tests::root().join("tests/e2e/tests/e2e")).unwrap() {
            let path = entry.unwrap().path();
            let Some(module) = path.file_stem().filter(|_| path.extension().is_some_and(|end| end == "rs")) else {
                continue;
            };
            let text = fs::read_to_string(&path).unwrap();
            let asks = |body: &str| body.contains("series::cases(") || body.contains("series::is_whole()");
            // From each name to the next test.
            let tests = text.split("#[test]\nfn ").skip(1).filter(|test| asks(test));
            let found: Vec<String> =
                tests.filter_map(|test| Some(format!("{}::{}", module.display(), test.split_once('(')?.0))).collect();
            let of_module = format!("{}::", module.display());
            let meant: Vec<&str> = SERIES.into_iter().filter(|name| name.starts_with(&of_module)).collect();
            assert_eq!(BTreeSet::from_iter(found.iter().map(String::as_str)), BTreeSet::from_iter(meant));
        }
    }

    #[test]
    fn one_number_of_clusters_tells_nothing_of_what_each_adds() {
        for clusters in [&[1000][..], &[1000, 1000]] {
            assert!(storm(clusters, 1).unwrap_err().contains("two different numbers"), "{clusters:?}");
        }
    }
}

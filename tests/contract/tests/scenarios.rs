//! The scenarios of `tests/e2e/SCENARIOS.md` are tests.

use std::collections::BTreeSet;
use std::fs;

use cli_tests::root;
use contract_tests::sources::has_test;

/// How many scenarios there are.
const SCENARIOS: usize = 25;

/// What is wrong with a table of scenarios.
fn wrong(text: &str) -> Vec<String> {
    let (mut wrong, mut numbers) = (Vec::new(), BTreeSet::new());
    for row in text.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let Some(number) = cells[0].parse::<usize>().ok().filter(|number| numbers.insert(*number)) else { continue };
        let tests = cells.get(2).copied().unwrap_or_default().trim_end_matches(" |");
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            wrong.push(format!("{number}: names no test"));
        }
        for name in names {
            let (file, function) = name.rsplit_once("::").unwrap_or((name, ""));
            let file =
                file.strip_prefix("e2e::").map_or(file.to_owned(), |module| format!("tests/e2e/tests/e2e/{module}.rs"));
            if !has_test(&root().join(&file), function) {
                wrong.push(format!("{number}: {file} has no test {function:?}"));
            }
        }
    }
    if !numbers.iter().copied().eq(1..=SCENARIOS) {
        wrong.push(format!("not the scenarios 1 to {SCENARIOS}: {numbers:?}"));
    }
    wrong
}

#[test]
fn every_scenario_is_a_test() {
    let text = fs::read_to_string(root().join("tests/e2e/SCENARIOS.md")).expect("the table is there");
    assert_eq!(wrong(&text), [""; 0]);
}

#[test]
fn a_scenario_without_its_test_is_noticed() {
    let text = fs::read_to_string(root().join("tests/e2e/SCENARIOS.md")).expect("the table is there");
    let other = text.replacen("e2e::controller::without_a_policy", "e2e::controller::with_a_policy", 1);
    assert!(wrong(&other).iter().any(|line| line.starts_with("1: ")), "{:?}", wrong(&other));
    let less: String = text.lines().filter(|line| !line.starts_with("| 7 ")).map(|line| format!("{line}\n")).collect();
    assert!(wrong(&less).iter().any(|line| line.starts_with("not the scenarios")), "{:?}", wrong(&less));
    // A function that is no test is none.
    assert!(!has_test(&root().join("tests/e2e/tests/e2e/webhook.rs"), "hub_with"));
}

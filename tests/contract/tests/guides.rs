//! `docs/migrating.md` leaves out no command and no flag of clusteradm; it, `docs/seeds.md` and `docs/guarantees.md` name only
//! commands, flags and tests that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use cli_tests::root;
use contract_tests::sources::has_test;

const MIGRATING: &str = "docs/migrating.md";
const PROCEDURES: &str = "docs/seeds.md";
const GUARANTEES: &str = "docs/guarantees.md";

/// How many scenarios there are. Upstream: `test/e2e` of open-cluster-management-io/clusteradm.
const SCENARIOS: usize = 22;
/// The fewest guarantees that stand on their page.
const MANY: usize = 50;

/// The commands of clusteradm 1.3.1 and their flags. Upstream: `pkg/cmd` of open-cluster-management-io/clusteradm. Flags of
/// its logging library stand as `--v`, `config` for the tree that is kubectl's own, and what Helm takes as Helm has it.
const CLUSTERADM: &[(&str, &str)] = &[
    ("", "kubeconfig context dry-run timeout match-server-version v"),
    ("config", ""),
    ("options", ""),
    ("plugin list", ""),
    ("completion", ""),
    ("version", ""),
    (
        "init",
        "feature-gates force wait output output-file output-join-command-file use-bootstrap-token image-registry \
         image-pull-credential-file bundle-version bundle-version-overrides cluster-manager-values-file create-namespace \
         enable-sync-labels resource-qos-class resource-limits resource-requests registration-drivers hub-cluster-arn \
         aws-resource-tags auto-approved-csr-identities auto-approved-arn-patterns auto-approved-grpc-identities \
         grpc-endpoint-type grpc-server singleton singleton-name values set set-string set-file set-json set-literal",
    ),
    (
        "join",
        "hub-token hub-apiserver cluster-name ca-file force-internal-endpoint-lookup \
         force-internal-endpoint-lookup-managed proxy-url proxy-ca-file mode managed-cluster-kubeconfig singleton wait \
         feature-gates image-registry image-pull-credential-file bundle-version bundle-version-overrides \
         resource-qos-class resource-limits resource-requests enable-sync-labels output-file create-namespace \
         client-cert-expiration-seconds registration-auth grpc-server grpc-ca-file hub-cluster-arn managed-cluster-arn \
         klusterlet-annotation klusterlet-values-file addon-kubeclient-registration-auth addon-token-expiration-seconds \
         capi-import capi-cluster-name capi-kubeconfig",
    ),
    ("accept", "cluster clusters wait skip-approve-check requesters"),
    ("unjoin", "cluster-name purge-operator output-file"),
    ("clean", "name purge-operator output-file"),
    (
        "upgrade clustermanager",
        "image-registry bundle-version bundle-version-overrides wait cluster-manager-values-file",
    ),
    ("upgrade klusterlet", "image-registry bundle-version bundle-version-overrides wait klusterlet-values-file"),
    ("get token", "use-bootstrap-token output output-file"),
    ("get clusters", "clusterset output"),
    ("get clustersets", "output"),
    ("get addon", "cluster clusters output"),
    ("get works", "cluster clusters output"),
    ("get placements", "namespace output"),
    ("get hub-info", ""),
    ("get klusterlet-info", ""),
    ("create clusterset", ""),
    ("create placement", "namespace clustersets label-selectors prioritizers count overwrite"),
    ("create work", "filename recursive cluster clusters placement overwrite replicaset"),
    ("create sampleapp", "output-file"),
    ("delete clusterset", ""),
    ("delete work", "cluster clusters force"),
    ("delete token", ""),
    ("clusterset bind", "namespace"),
    ("clusterset unbind", "namespace"),
    ("clusterset set", "clusters namespaces"),
    ("addon create", "version filename recursive overwrite hub-registration cluster-role-bind labels placement-ref"),
    ("addon enable", "names cluster clusters namespace annotate labels config-file output-file"),
    ("addon disable", "names cluster clusters output-file"),
    ("install hub-addon", "names namespace create-namespace bundle-version bundle-version-overrides output-file"),
    ("uninstall hub-addon", "names namespace"),
    (
        "proxy health",
        "cluster clusters in-cluster-proxy-cert-lookup proxy-ca-cert proxy-cert proxy-key proxy-server-host \
         proxy-server-port",
    ),
    ("proxy kubectl", "cluster sa args interactive-mode"),
];

/// The rows of the tables of a page that name something in their cell of this number, without the marks of code.
fn rows<const CELLS: usize>(page: &str) -> Vec<[String; CELLS]> {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let row = |line: &str| {
        let cells: Vec<String> =
            line.strip_prefix("| ")?.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        let (last, cells) = cells.split_last()?;
        last.is_empty().then_some(())?;
        <[String; CELLS]>::try_from(cells.to_vec()).ok()
    };
    text.lines().filter_map(row).collect()
}

/// What was typed, what is typed, the word between them, and the remark.
fn replaced() -> Vec<[String; 4]> {
    rows::<4>(MIGRATING).into_iter().filter(|[old, ..]| old != "clusteradm").collect()
}

#[test]
fn every_command_and_every_flag_of_clusteradm_has_one_row() {
    let of = |(command, flags): &(&str, &str)| {
        let whole = (!command.is_empty()).then(|| (*command).to_owned());
        let flags: Vec<String> =
            flags.split_whitespace().map(|flag| format!("{command} --{flag}").trim().to_owned()).collect();
        whole.into_iter().chain(flags)
    };
    let known: BTreeSet<String> = CLUSTERADM.iter().flat_map(of).collect();
    let mut times: BTreeMap<String, usize> = known.into_iter().map(|old| (old, 0)).collect();
    for [old, ..] in replaced() {
        *times.get_mut(&old).unwrap_or_else(|| panic!("clusteradm has no `{old}`")) += 1;
    }
    times.retain(|_, count| *count != 1);
    assert!(times.is_empty(), "not in one row of {MIGRATING}: {times:?}");
}

#[test]
fn every_row_says_what_became_of_it() {
    for [old, new, word, remark] in replaced() {
        let right = match word.as_str() {
            // The same flag of a command that may be called otherwise.
            "same" => old.rsplit(' ').next() == new.rsplit(' ').next(),
            "renamed" => !new.is_empty() && old != new,
            "differs" => !new.is_empty() && !remark.is_empty(),
            "not yet" => new.is_empty(),
            "dropped" => new.is_empty() && !remark.is_empty(),
            _ => false,
        };
        assert!(right, "`{old}`: {word:?} with {new:?} and {remark:?}");
    }
}

/// The help of a command, from its page.
fn help(command: &str) -> String {
    let verb = command.split(' ').next().unwrap_or_default();
    let page = root().join(format!("docs/commands/{verb}.md"));
    let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let begin = format!("<!-- help: {command} -->");
    let (_, help) = text.split_once(&begin).unwrap_or_else(|| panic!("there is no command `{command}`"));
    help.split("<!-- end help -->").next().unwrap_or_default().to_owned()
}

/// Whether a help has a line for a flag.
fn has(help: &str, flag: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    help.lines().map(str::trim_start).any(|line| {
        // Behind the short form, if there is one.
        let line = line.split_once(", ").filter(|(short, _)| short.len() == 2).map_or(line, |(_, long)| long);
        line.strip_prefix(flag).is_some_and(is_end)
    })
}

/// The help of the command that is typed, of which the flag is checked.
fn typed(old: &str, typed: &str) -> String {
    let (command, flag) = typed.split_once(" --").map_or((typed, None), |(command, flag)| (command, Some(flag)));
    let help = help(command);
    assert!(flag.is_none_or(|flag| has(&help, &format!("--{flag}"))), "{old}: there is no `{typed}`");
    help
}

#[test]
fn what_is_typed_instead_is_there() {
    for [old, new, _, remark] in replaced().into_iter().filter(|[_, new, ..]| !new.is_empty()) {
        let help = typed(&old, &new);
        // Flags of the remark are those of the same command.
        for word in remark.split('`').skip(1).step_by(2).filter(|word| word.starts_with("--")) {
            let word = word.split([' ', '=']).next().unwrap_or_default();
            assert!(has(&help, word), "{old}: `{new}` has no `{word}`");
        }
    }
}

/// Whether there is a test of `tests/e2e` or `tests/cli`, named as the test runner names it behind its program, or
/// a story that `cargo soak --parts stories` tells: its program is `stories`. Other tests stand behind their file.
fn is_there(program: &str, name: &str) -> bool {
    if Path::new(program).extension().is_some_and(|extension| extension == "rs") {
        return has_test(&root().join(program), name);
    }
    let test = |file: String, name: &str| (file, format!("#[test]\nfn {name}() {{"));
    let (file, line) = match (program, name.split_once("::")) {
        // What stands in the list is compiled.
        ("stories", _) => ("tests/e2e/src/stories/table.rs".to_owned(), format!("::{name},\n")),
        (_, Some((module, name))) => test(format!("tests/{program}/tests/{program}/{module}.rs"), name),
        _ => return false,
    };
    let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.contains(&line)
}

#[test]
fn a_test_that_is_not_there_is_noticed() {
    assert!(is_there("e2e", "faults::likely_faults_are_found_and_gone_when_they_are_undone"));
    assert!(!is_there("e2e", "faults::likely_faults_are_found"));
    assert!(is_there("cli", "help::help_of_every_command"));
    assert!(!is_there("cli", "help::help_of_every"));
    assert!(is_there("stories", "a_cluster_goes_from_two_agents_to_one_and_back"));
    assert!(!is_there("stories", "a_cluster_goes_from_two_agents_to_one"));
    assert!(is_there("plugins/lib/core/src/leave/hub.rs", "whoever_waits_hears_what_for"));
    assert!(!is_there("plugins/lib/core/src/leave/hub.rs", "whoever_waits_hears"));
    assert!(!is_there("plugins/lib/core/src/leave/nowhere.rs", "whoever_waits_hears_what_for"));
}

#[test]
fn every_procedure_names_a_command_and_a_test_that_are_there() {
    let is_head = |section: &str| ["Section", "Behaviour"].contains(&section);
    let rows: Vec<[String; 3]> = rows::<3>(PROCEDURES).into_iter().filter(|[section, ..]| !is_head(section)).collect();
    assert!(rows.len() > 40, "{PROCEDURES} has {} rows", rows.len());
    for [section, command, test] in rows {
        if !command.is_empty() {
            typed(&section, &command);
        }
        if !test.is_empty() {
            let (program, name) = test.split_once("::").unwrap_or_else(|| panic!("{section}: {test} is no test"));
            assert!(is_there(program, name), "{section}: there is no test {test}");
        }
        assert!(!command.is_empty() || test.is_empty(), "{section}: {test} is of no command");
    }
}

/// Whether a command is there, and each of the tests of a cell, of which there has to be one.
fn are_there(what: &str, command: &str, tests: &str) {
    typed(what, command);
    // The first and the last mark of the cell are gone.
    let tests: Vec<&str> = tests.split('`').step_by(2).collect();
    assert!(!tests.concat().is_empty(), "{what}: no test");
    for test in tests {
        let (program, name) = test.split_once("::").unwrap_or_else(|| panic!("{what}: {test} is no test"));
        assert!(is_there(program, name), "{what}: there is no test {test}");
    }
}

#[test]
fn every_scenario_and_every_guarantee_has_a_command_and_tests_that_are_there() {
    let mut numbers = BTreeSet::new();
    for [number, scenario, command, tests] in rows::<4>(GUARANTEES) {
        if let Ok(number) = number.parse::<usize>() {
            assert!(numbers.insert(number), "{number} stands there twice");
            are_there(&scenario, &command, &tests);
        }
    }
    assert!(numbers.iter().copied().eq(1..=SCENARIOS), "not the scenarios 1 to {SCENARIOS}: {numbers:?}");
    let guarantees: Vec<[String; 3]> =
        rows::<3>(GUARANTEES).into_iter().filter(|[guarantee, ..]| guarantee != "Guarantee").collect();
    assert!(guarantees.len() >= MANY, "{GUARANTEES} has {} guarantees", guarantees.len());
    for [guarantee, command, tests] in guarantees {
        are_there(&guarantee, &command, &tests);
    }
}

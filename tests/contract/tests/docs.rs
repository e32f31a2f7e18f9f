//! What the documents say agrees with the code.

use std::fs;

use cli_tests::{binaries, docs, root};
use ocm_checks::finding::Id;
use ocm_checks::registry::{check, of_snapshots};
use ocm_core::Exit;
use ocm_core::csr::Code;

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn exit_codes_are_those_of_the_code() {
    let text = page("docs/reference/exit-codes.md");
    let rows: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
            Some((cells.next()?, cells.next()?)).filter(|(code, _)| code.parse::<u8>().is_ok())
        })
        .collect();
    let known: Vec<_> = Exit::ALL.iter().map(|exit| (exit.code().to_string(), exit.word().to_owned())).collect();
    assert_eq!(rows, known, "the table of docs/reference/exit-codes.md begins with code and word");
}

#[test]
fn every_reason_code_of_accept_is_explained() {
    let text = page("docs/reference/accept-codes.md");
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !text.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/accept-codes.md does not name {missing:?}");
}

#[test]
fn the_architecture_names_every_crate() {
    let text = page("ARCHITECTURE.md");
    let members = fs::read_dir(root().join("plugins/lib"))
        .expect("there are libraries")
        .chain(fs::read_dir(root().join("plugins")).expect("there are plugins"))
        .chain(fs::read_dir(root().join("tests")).expect("there are tests"))
        .flatten()
        .map(|entry| entry.path())
        .filter(|folder| folder.join("Cargo.toml").is_file());
    for folder in members {
        let name = folder.strip_prefix(root()).unwrap_or(&folder).display().to_string();
        let named =
            text.contains(&name) || folder.file_name().is_some_and(|last| text.contains(&*last.to_string_lossy()));
        assert!(named, "ARCHITECTURE.md has no line for {name}");
    }
}

/// The members of the contract: the public fields of its types, as JSON has them.
#[test]
fn the_contract_of_policies_is_described() {
    let text = page("docs/policies/contract.md");
    for file in ["decision", "manifest", "request"] {
        let source = page(&format!("wasm-policies/abi/src/{file}.rs"));
        for (index, line) in source.lines().enumerate() {
            if let Some(name) = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum ")) {
                let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
                assert!(text.contains(&format!("### {name}\n")), "contract.md has no section {name}");
            }
            let Some((field, _)) = line.strip_prefix("    pub ").and_then(|field| field.split_once(": ")) else {
                continue;
            };
            // Methods and constants are no members.
            if field.contains([' ', '(']) {
                continue;
            }
            let mut words = field.split('_');
            let first = words.next().unwrap_or_default().to_owned();
            let member = words.fold(first, |member, word| member + &word[..1].to_uppercase() + &word[1..]);
            // `type` is a word of Rust.
            let member =
                if source.lines().nth(index.saturating_sub(1)).is_some_and(|above| above.contains("rename = \"type\""))
                {
                    "type".to_owned()
                } else {
                    member
                };
            assert!(text.contains(&format!("| `{member}`")), "contract.md does not tell of {member}");
        }
    }
}

#[test]
fn the_readme_says_how_to_try_and_how_to_verify() {
    let text = page("README.md");
    for command in ["cargo demo", "cargo verify"] {
        assert!(text.contains(command), "README.md does not say {command:?}");
    }
}

#[test]
fn every_check_has_its_page_and_stands_in_the_index() {
    let pages = docs::check_pages();
    for page in &pages {
        let name = page.file.strip_prefix(root()).unwrap_or(&page.file).display().to_string();
        assert!(page.is == page.should_be, "{name} is not what the registry says: run `cargo xtask generate`");
    }
    let known: Vec<_> = pages.iter().map(|page| page.file.clone()).collect();
    let coverage = root().join(COVERAGE);
    for entry in fs::read_dir(root().join("docs/checks")).expect("there are pages").flatten() {
        if entry.path() == coverage {
            continue;
        }
        assert!(known.contains(&entry.path()), "{} is the page of no check", entry.path().display());
    }
    assert!(pages.len() > 50, "the registry is not empty");
}

/// Which check finds which failure.
const COVERAGE: &str = "docs/checks/coverage.md";
/// How many rows the catalogue of failures has under each letter.
const FAILURES: [(char, usize); 11] = [
    ('H', 22),
    ('J', 29),
    ('A', 18),
    ('P', 7),
    ('G', 11),
    ('W', 4),
    ('M', 9),
    ('D', 10),
    ('X', 10),
    ('V', 10),
    ('T', 18),
];

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').and_then(|rest| rest.trim_end().strip_suffix('|')).unwrap_or_default();
    inner.split('|').map(str::trim).collect()
}

/// The ids that a text names, each with the address of its link.
fn linked(text: &str) -> Vec<(&str, &str)> {
    let links = text.split("[OCM").skip(1).filter_map(|rest| {
        let (digits, rest) = rest.split_once("](")?;
        Some((digits, rest.split_once(')')?.0))
    });
    links.collect()
}

#[test]
fn every_known_failure_has_a_check_or_a_command_that_shows_it() {
    let text = page(COVERAGE);
    let is_id = |cell: &str| cell.len() == 3 && cell.as_bytes()[1..].iter().all(u8::is_ascii_digit);
    let rows: Vec<Vec<&str>> = text.lines().map(cells).filter(|row| is_id(row[0])).collect();
    let named: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let wanted: Vec<String> = FAILURES
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number:02}")))
        .collect();
    assert_eq!(named, wanted, "{COVERAGE} has each row of the catalogue once, in its order");
    for row in rows {
        let [id, what, found, note] = row[..] else { panic!("{COVERAGE}: {row:?} has four cells") };
        assert!(!what.is_empty(), "{id}");
        assert!(
            !linked(found).is_empty() || note.contains("`kubectl "),
            "{id}: nothing finds it, and nothing shows it"
        );
    }
}

/// Whether a check has the id with these digits.
fn is_known(digits: &str) -> bool {
    format!("OCM{digits}").parse::<Id>().is_ok_and(|id| check(id).is_some())
}

#[test]
fn coverage_names_checks_that_there_are_and_every_check_of_snapshots() {
    let text = page(COVERAGE);
    for (digits, target) in linked(&text) {
        assert!(is_known(digits), "{COVERAGE} names OCM{digits}, which there is not");
        assert_eq!(target, format!("OCM{digits}.md"));
    }
    // What stands in words is a check, too.
    for rest in text.split("OCM").skip(1) {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        assert!(digits.len() < 4 || is_known(&digits), "{COVERAGE} names OCM{digits}, which there is not");
    }
    let is_named = |id: String| text.contains(&format!("[{id}]({id}.md)"));
    let missing: Vec<String> =
        of_snapshots().map(|check| check.id.to_string()).filter(|id| !is_named(id.clone())).collect();
    assert_eq!(missing, Vec::<String>::new(), "checks of troubleshoot that {COVERAGE} names for no failure");
}

#[test]
fn every_verb_has_a_page_with_its_help() {
    for page in docs::pages() {
        let name = page.file.strip_prefix(root()).unwrap_or(&page.file).display().to_string();
        assert!(page.is == page.should_be, "{name} is not what the command says of itself: run `cargo xtask generate`");
    }
    let verbs = binaries().len() - 1 + docs::OF_THE_DISPATCHER.len();
    assert_eq!(docs::pages().len(), verbs);
}

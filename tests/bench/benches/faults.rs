//! The faults that `troubleshoot` has to find, but those of `cargo verify`: `cargo soak --parts faults`. With words behind `--`,
//! only those that one of them is about: `cargo bench --profile dev -p bench --bench faults -- quota "a work"`

#![expect(clippy::print_stderr, reason = "a benchmark says why it does nothing")]

use std::process::ExitCode;

use e2e_tests::faults::{is_about, matrix};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let Some(word) = words.iter().find(|word| !is_about(word)) {
        eprintln!("error: no fault is about {word:?}");
        return ExitCode::from(2);
    }
    match &*words {
        [] => matrix(|fault| !fault.is_likely),
        words => matrix(|fault| words.iter().any(|word| fault.words.contains(word))),
    }
    ExitCode::SUCCESS
}

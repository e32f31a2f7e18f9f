//! Stories that take too long for `cargo verify`: `cargo soak --parts stories`. With words behind `--`, only those whose names
//! contain one of them: `cargo bench --profile dev -p bench --bench stories -- grpc`

#![expect(clippy::print_stderr, reason = "a program without a test harness says itself what it cannot do")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let is_meant = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    match e2e_tests::stories::tell(is_meant) {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            eprintln!("no story has one of these words in its name: {}", words.join(", "));
            ExitCode::from(2)
        }
    }
}

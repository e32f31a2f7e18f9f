//! The faults that `troubleshoot` has to find, but those of `cargo verify`: `cargo soak --parts faults`. With words behind `--`,
//! only those that one of them is about: `cargo bench --profile dev -p bench --bench faults -- quota "a work"`

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    match &*words {
        [] => e2e_tests::faults::matrix(|fault| !fault.is_likely),
        words => e2e_tests::faults::matrix(|fault| words.iter().any(|word| fault.words.contains(word))),
    }
}

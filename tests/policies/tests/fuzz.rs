//! Damaged modules, answers, certificate requests and files: whatever they are, nobody panics, and nothing is allowed
//! that was not said.
//!
//! Each part tries as many inputs as fit into a check of every change, always the same ones. For more, or others:
//! `OCM_FUZZ_ITERATIONS=1000000 OCM_FUZZ_SEED=7 cargo test -p policy-tests --test fuzz`

#[path = "../../../wasm-policies/engine/tests/support/mod.rs"]
mod guests;
mod support;

#[path = "fuzz/answers.rs"]
mod answers;
#[path = "fuzz/files.rs"]
mod files;
#[path = "fuzz/modules.rs"]
mod modules;
#[path = "fuzz/mutate.rs"]
mod mutate;
#[path = "fuzz/requests.rs"]
mod requests;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::{env, fs};

use support::Random;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// Lets inputs be made and tried. What fails is kept in a file, and how to make it again is said.
fn fuzz(part: &str, usually: u64, mut make: impl FnMut(&mut Random) -> Vec<u8>, mut attempt: impl FnMut(u64, &[u8])) {
    let seed = number("OCM_FUZZ_SEED").unwrap_or(0x006f_636d);
    let iterations = number("OCM_FUZZ_ITERATIONS").unwrap_or(usually);
    let own = part.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{part}"));
    for iteration in 0..iterations {
        let input = make(&mut Random::nth(own, iteration));
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| attempt(iteration, &input))) {
            let kept = fs::write(&file, &input).map_or_else(|error| error.to_string(), |()| file.display().to_string());
            let told = format!("OCM_FUZZ_SEED={seed} OCM_FUZZ_ITERATIONS={}", iteration + 1);
            say(&format!("{part} failed: {told} fails again, and the input is in {kept}"));
            resume_unwind(panic);
        }
    }
}

#[expect(clippy::print_stderr, reason = "whoever runs the tests has to learn how to fail again")]
fn say(text: &str) {
    eprintln!("{text}");
}

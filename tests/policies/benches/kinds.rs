//! How long policies of other contracts take: `cargo bench -p policy-tests`
//!
//! Each is built by its own tools and decides the same question, every time in a fresh instance with limits on.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ocm_policy_abi::Verdict;
use ocm_policy_engine::{Ceiling, Engine, EngineSettings, Policy, PolicyError, Question, compile_here};
use serde_json::{Value, json};

#[path = "../tests/support/asked.rs"]
mod asked;

/// What Kubewarden's own host was measured to spend in the guest, in microseconds: the peer of the waPC host.
const KUBEWARDEN: f64 = 80.0;

const MANY: usize = 5_000;

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it starts.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), PolicyError> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let engine = Engine::new(&EngineSettings::default())?;
    let prefix = json!({"prefix": "prod-"});
    let [called, program] = asked::kubewarden(cache);
    let kubewarden = decide(&engine, "Kubewarden, waPC", &called, &prefix)?;
    println!(
        "{:24} {:>9.2} times the {KUBEWARDEN} µs of guest time that its own host spends",
        "",
        kubewarden / KUBEWARDEN
    );
    decide(&engine, "Kubewarden, WASI", &program, &prefix)?;
    decide(&engine, "Rego", &policy_tests::rego(cache, "plain.rego", "ocm/decision").0, &prefix)?;
    decide(&engine, "WASI command in Rust", &policy_tests::rust(cache), &json!({}))?;
    decide(&engine, "WASI command in Go", &policy_tests::go(cache), &prefix)?;
    Ok(())
}

/// The median in microseconds.
fn decide(engine: &Engine, what: &str, module: &[u8], settings: &Value) -> Result<f64, PolicyError> {
    let ceiling = Ceiling::default();
    let artifact = compile_here(module, &settings.to_string(), &ceiling)?;
    let policy: Arc<Policy> = Policy::load(engine, &artifact, &ceiling, &[])?;
    let question = Question::new(asked::request("prod-1", &json!({"region": "eu", "env": "prod"})));
    let first = policy.decide(&question).outcome.clone();
    if first.result.as_ref().map(|decision| decision.verdict) != Ok(Verdict::Allow) {
        return Err(PolicyError::Malformed(format!("{what} does not allow: {:?}", first.result)));
    }
    let mut times: Vec<f64> = (0..MANY)
        .map(|_| {
            let begun = Instant::now();
            let answered = policy.decide(&question);
            let took = begun.elapsed().as_secs_f64() * 1e6;
            drop(answered);
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{what:24} p50 {:>9.2} µs   p99 {:>9.2} µs   fuel {}",
        times[MANY / 2],
        times[MANY * 99 / 100],
        first.fuel
    );
    Ok(times[MANY / 2])
}

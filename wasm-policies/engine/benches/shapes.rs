//! What JSON texts would cost beside the records of the contract:
//! `cargo bench -p ocm-policy-engine --bench shapes`
//!
//! The same decision of the same facts. The records go through the engine as on a hub; the texts through as few steps
//! as possible, in the same engine, a fresh instance for each decision, fuel, time and memory limited.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use ocm_policy_abi::Verdict;
use ocm_policy_engine::{
    Ceiling, Engine, EngineSettings, Limits, Policy, PolicyError, Question, compile_here, componentize,
};
use ocm_policy_rules::{Bounds, read_decision};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, TypedFunc, WasmStr};
use wasmtime::{Store, StoreLimits, StoreLimitsBuilder};

use support::request;

mod support;

/// Decisions of one measurement.
const MANY: usize = 100_000;

/// Settings of the policy behind records; the one behind texts has the same as constants.
const SETTINGS: &str = r#"{"prefixes":["prod-","team-0-"]}"#;

/// What the other policy exports.
const TEXTS: &str = "ocm:texts/policy@0.1.0";

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it starts.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    // In a build without optimisation, a few decisions tell whether it works.
    let many = if cfg!(debug_assertions) { 200 } else { MANY };
    match measure(many) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(many: usize) -> Result<(), String> {
    let said = |error: PolicyError| error.to_string();
    println!("Building both policies; the first time takes a minute.");
    let records_module = read(&cli_tests::guests(&cli_tests::target(), &["name-pattern"])?[0])?;
    let texts_module = texts_guest()?;
    let ceiling = Ceiling::default();
    let artifact = compile_here(&records_module, SETTINGS, &ceiling).map_err(said)?;
    let limits = ceiling.grant(&artifact.header().manifest.limits);
    let engine = Engine::new(&EngineSettings::default()).map_err(said)?;
    let records = Policy::load(&engine, &artifact, &ceiling, &[]).map_err(said)?;
    let texts = Texts::new(engine.below(), &componentize(&texts_module).map_err(said)?, limits)?;
    println!(
        "\nmodule, records      {:>8} bytes, machine code {:>8} bytes\nmodule, JSON texts   {:>8} bytes, machine code {:>8} bytes",
        records_module.len(),
        artifact.bytes().len(),
        texts_module.len(),
        texts.code
    );

    for name in ["prod-1", "dev-1"] {
        let question = Question::new(request(name)?);
        let asked = question.text_for(records.manifest()).map_err(said)?;
        let (verdict, fuel) = texts.once(&asked)?;
        let outcome = records.decide(&question).outcome.clone();
        let same = outcome.result.map_err(said)?.verdict;
        if verdict != same {
            return Err(format!("{name}: the texts say {}, and the records {}", verdict.word(), same.word()));
        }
        println!("\n{name}: {}, a request of {} bytes as JSON", verdict.word(), asked.len());
        let (decide, cycle) = sample(many, || {
            let begun = Instant::now();
            let answered = records.decide(&question);
            let decided = begun.elapsed();
            drop(answered);
            Ok((decided, begun.elapsed()))
        })?;
        println!(
            "records              decide p50 {decide:>7.2} µs   whole cycle p50 {cycle:>7.2} µs   fuel {}",
            outcome.fuel
        );
        let (decide, cycle) = sample(many, || texts.timed(&asked))?;
        println!("JSON texts           decide p50 {decide:>7.2} µs   whole cycle p50 {cycle:>7.2} µs   fuel {fuel}");
        let (written, _) = sample(many, || {
            let begun = Instant::now();
            std::hint::black_box(serde_json::to_string(question.request()).map_err(|error| error.to_string())?);
            Ok((begun.elapsed(), Duration::ZERO))
        })?;
        println!("JSON texts, once a request: written p50 {written:>7.2} µs");
    }
    Ok(())
}

/// Medians of both times in microseconds.
fn sample(many: usize, mut once: impl FnMut() -> Result<(Duration, Duration), String>) -> Result<(f64, f64), String> {
    let (mut some, mut all) = (Vec::with_capacity(many), Vec::with_capacity(many));
    for _ in 0..many {
        let (decide, cycle) = once()?;
        some.push(decide);
        all.push(cycle);
    }
    some.sort_unstable();
    all.sort_unstable();
    Ok((some[many / 2].as_secs_f64() * 1e6, all[many / 2].as_secs_f64() * 1e6))
}

type Limited = Store<StoreLimits>;

/// An instance behind JSON texts that waits for its request.
type Waiting = (Limited, TypedFunc<(Arc<str>,), (WasmStr,)>);

fn store(engine: &wasmtime::Engine, limits: &Limits) -> wasmtime::Result<Limited> {
    let small = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let guard = StoreLimitsBuilder::new()
        .memory_size(small(limits.memory_bytes))
        .table_elements(small(limits.table_elements))
        .memories(1)
        .tables(16)
        .instances(64)
        .trap_on_grow_failure(true)
        .build();
    let mut store = Store::new(engine, guard);
    store.limiter(|limits| limits);
    store.set_hostcall_fuel(small(limits.host_bytes));
    store.epoch_deadline_trap();
    fill(&mut store, limits)?;
    Ok(store)
}

fn fill(store: &mut Limited, limits: &Limits) -> wasmtime::Result<()> {
    store.set_epoch_deadline(limits.ticks);
    store.set_fuel(limits.fuel)
}

fn told(error: wasmtime::Error) -> String {
    format!("{error:#}")
}

/// The policy behind JSON texts.
struct Texts {
    engine: wasmtime::Engine,
    pre: InstancePre<StoreLimits>,
    decide: ComponentExportIndex,
    limits: Limits,
    code: usize,
}

impl Texts {
    fn new(engine: &wasmtime::Engine, component: &[u8], limits: Limits) -> Result<Self, String> {
        let component = Component::from_binary(engine, component).map_err(told)?;
        let code = component.serialize().map_err(told)?.len();
        let decide = component
            .get_export_index(None, TEXTS)
            .and_then(|interface| component.get_export_index(Some(&interface), "decide"))
            .ok_or("it does not decide")?;
        let pre = Linker::new(engine).instantiate_pre(&component).map_err(told)?;
        Ok(Self { engine: engine.clone(), pre, decide, limits, code })
    }

    fn ready(&self) -> Result<Waiting, String> {
        let mut store = store(&self.engine, &self.limits).map_err(told)?;
        let instance = self.pre.instantiate(&mut store).map_err(told)?;
        let decide = instance.get_typed_func(&mut store, self.decide).map_err(told)?;
        Ok((store, decide))
    }

    fn ask(&self, (store, decide): &mut Waiting, text: &Arc<str>) -> Result<Verdict, String> {
        fill(store, &self.limits).map_err(told)?;
        let (answer,) = decide.call(&mut *store, (text.clone(),)).map_err(told)?;
        let answer = answer.to_str(&*store).map_err(told)?;
        read_decision(answer.as_bytes(), &Bounds::default())
            .map(|decision| decision.verdict)
            .map_err(|error| error.to_string())
    }

    fn once(&self, text: &Arc<str>) -> Result<(Verdict, u64), String> {
        let mut ready = self.ready()?;
        let verdict = self.ask(&mut ready, text)?;
        Ok((verdict, self.limits.fuel - ready.0.get_fuel().map_err(told)?))
    }

    /// How long deciding takes with an instance that is ready, and that together with making the next one.
    fn timed(&self, text: &Arc<str>) -> Result<(Duration, Duration), String> {
        let begun = Instant::now();
        let mut ready = self.ready()?;
        let asked = Instant::now();
        let verdict = self.ask(&mut ready, text);
        let decided = asked.elapsed();
        drop(ready);
        let all = begun.elapsed();
        std::hint::black_box(verdict?);
        Ok((decided, all))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Builds the policy behind texts with the flags that the workspace has for policies.
fn texts_guest() -> Result<Vec<u8>, String> {
    const TRIPLE: &str = "wasm32-unknown-unknown";
    let target = cli_tests::target().join("shapes");
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--locked", "--target", TRIPLE, "--target-dir"])
        .arg(&target)
        // From here the configuration of the workspace is found.
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/shapes/guest"))
        .env_remove("RUSTFLAGS")
        .output()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if !built.status.success() {
        return Err(format!("the policy behind texts cannot be built:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    read(&target.join(TRIPLE).join("release/texts_guest.wasm"))
}

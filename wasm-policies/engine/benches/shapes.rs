//! What JSON texts cost beside typed records: `cargo bench -p ocm-policy-engine --bench shapes`
//!
//! The same decision of the same facts behind both contracts. Machine code, limits and instances are equal: one engine
//! with the settings of [`ocm_policy_engine::Engine`], a fresh instance for each decision, fuel, time and memory limited.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use ocm_policy_abi::{INTERFACE, Manifest, Operation, Request, Verdict};
use ocm_policy_engine::{Ceiling, Engine, EngineSettings, Fault, Limits, Policy, Question, compile_here, encode};
use ocm_policy_rules::outcome::{Bounds, read_decision};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, TypedFunc, WasmStr};
use wasmtime::{
    Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Store, StoreLimits, StoreLimitsBuilder,
};

use support::request;
use typed::exports::ocm::typed::policy as words;

mod support;

mod typed {
    #![allow(missing_docs, clippy::all, unused_qualifications, reason = "made by a macro")]
    wasmtime::component::bindgen!({ path: "benches/shapes/typed.wit", world: "gate" });
}

/// Decisions of one measurement.
const MANY: usize = 100_000;

/// Settings of the other policy; the typed one has the same as constants.
const SETTINGS: &str = r#"{"prefixes":["prod-","team-0-"]}"#;

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
    let said = |fault: Fault| fault.to_string();
    println!("Building both policies; the first time takes a minute.");
    let text_module = read(&cli_tests::guests(&cli_tests::target(), &["name-pattern"])?[0])?;
    let typed_module = typed_guest()?;
    let ceiling = Ceiling::default();
    let artifact = compile_here(&text_module, SETTINGS, &ceiling).map_err(said)?;
    let limits = ceiling.grant(&artifact.header().manifest.limits);
    let engine = engine(&EngineSettings::default()).map_err(told)?;
    let text = Text::new(&engine, artifact.bytes(), artifact.header().manifest.clone(), limits)?;
    let typed = Typed::new(&engine, &encode(&typed_module).map_err(said)?, limits)?;
    println!(
        "\nmodule, JSON texts   {:>8} bytes, machine code {:>8} bytes\nmodule, records      {:>8} bytes, machine code {:>8} bytes",
        text_module.len(),
        text.code,
        typed_module.len(),
        typed.code
    );
    tick(&engine);

    for name in ["prod-1", "dev-1"] {
        let request = request(name)?;
        let question = Question::new(request.clone()).map_err(said)?;
        let asked = question.text_for(&text.manifest).map_err(said)?;
        let records = records(&request);
        let (verdict, fuel) = text.once(&asked)?;
        let (same, typed_fuel) = typed.once(&records)?;
        if verdict != same {
            return Err(format!("{name}: the texts say {}, and the records {}", verdict.word(), same.word()));
        }
        // What the engine itself does is what is measured here.
        let own = Engine::new(&EngineSettings::default()).map_err(said)?;
        let loaded = Policy::load(&own, &artifact, &ceiling, &[]).map_err(said)?;
        let outcome = loaded.decide(&question).outcome.clone();
        if outcome.fuel != fuel || outcome.result.map(|decision| decision.verdict) != Ok(verdict) {
            return Err(format!(
                "{name}: the engine decides otherwise, or for {} fuel instead of {fuel}",
                outcome.fuel
            ));
        }
        println!("\n{name}: {}, a request of {} bytes as JSON", verdict.word(), asked.len());
        let (decide, cycle) = sample(many, || text.timed(&asked))?;
        println!("JSON texts           decide p50 {decide:>7.2} µs   whole cycle p50 {cycle:>7.2} µs   fuel {fuel}");
        let (decide, cycle) = sample(many, || typed.timed(&records))?;
        println!(
            "records              decide p50 {decide:>7.2} µs   whole cycle p50 {cycle:>7.2} µs   fuel {typed_fuel}"
        );
        // Once for each request, however many policies are asked.
        let (written, _) = sample(many, || {
            let begun = Instant::now();
            std::hint::black_box(serde_json::to_string(question.request()).map_err(|error| error.to_string())?);
            Ok((begun.elapsed(), Duration::ZERO))
        })?;
        let (made, _) = sample(many, || {
            let begun = Instant::now();
            std::hint::black_box(self::records(question.request()));
            Ok((begun.elapsed(), Duration::ZERO))
        })?;
        println!("once a request       JSON written p50 {written:>7.2} µs   records made p50 {made:>7.2} µs");
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

/// The policy behind JSON texts, with the steps that the engine takes.
struct Text {
    engine: wasmtime::Engine,
    pre: InstancePre<StoreLimits>,
    decide: ComponentExportIndex,
    manifest: Manifest,
    limits: Limits,
    code: usize,
}

impl Text {
    #[expect(unsafe_code, reason = "machine code is run as it is")]
    fn new(engine: &wasmtime::Engine, artifact: &[u8], manifest: Manifest, limits: Limits) -> Result<Self, String> {
        // Eight letters, the length of the header, the header, and the code.
        let length = artifact.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        let code = length.and_then(|length| artifact.get(12 + length as usize..)).ok_or("this is no artifact")?;
        // SAFETY: it was compiled by this process. Where the settings of both engines differ it is refused.
        let component = unsafe { Component::deserialize(engine, code) }.map_err(told)?;
        let decide = component
            .get_export_index(None, INTERFACE)
            .and_then(|interface| component.get_export_index(Some(&interface), "decide"))
            .ok_or("it does not decide")?;
        let pre = Linker::new(engine).instantiate_pre(&component).map_err(told)?;
        Ok(Self { engine: engine.clone(), pre, decide, manifest, limits, code: code.len() })
    }

    fn ready(&self) -> wasmtime::Result<Waiting> {
        let mut store = store(&self.engine, &self.limits)?;
        let instance = self.pre.instantiate(&mut store)?;
        let decide = instance.get_typed_func(&mut store, self.decide)?;
        Ok((store, decide))
    }

    fn ask(&self, (store, decide): &mut Waiting, text: &Arc<str>) -> Result<Verdict, String> {
        fill(store, &self.limits).map_err(told)?;
        let (answer,) = decide.call(&mut *store, (text.clone(),)).map_err(told)?;
        let answer = answer.to_str(&*store).map_err(told)?;
        read_decision(answer.as_bytes(), &Bounds::default())
            .map(|decision| decision.verdict)
            .map_err(|fault| fault.to_string())
    }

    fn once(&self, text: &Arc<str>) -> Result<(Verdict, u64), String> {
        let mut ready = self.ready().map_err(told)?;
        let verdict = self.ask(&mut ready, text)?;
        Ok((verdict, self.limits.fuel - ready.0.get_fuel().map_err(told)?))
    }

    fn timed(&self, text: &Arc<str>) -> Result<(Duration, Duration), String> {
        cycle(|| self.ready().map_err(told), |ready| self.ask(ready, text))
    }
}

/// The policy behind records.
struct Typed {
    engine: wasmtime::Engine,
    pre: typed::GatePre<StoreLimits>,
    limits: Limits,
    code: usize,
}

impl Typed {
    fn new(engine: &wasmtime::Engine, component: &[u8], limits: Limits) -> Result<Self, String> {
        let component = Component::from_binary(engine, component).map_err(told)?;
        let code = component.serialize().map_err(told)?.len();
        let pre = Linker::new(engine).instantiate_pre(&component).map_err(told)?;
        let pre = typed::GatePre::new(pre).map_err(told)?;
        Ok(Self { engine: engine.clone(), pre, limits, code })
    }

    fn ready(&self) -> wasmtime::Result<(Limited, typed::Gate)> {
        let mut store = store(&self.engine, &self.limits)?;
        let gate = self.pre.instantiate(&mut store)?;
        Ok((store, gate))
    }

    fn ask(&self, (store, gate): &mut (Limited, typed::Gate), request: &words::Request) -> Result<Verdict, String> {
        fill(store, &self.limits).map_err(told)?;
        let decision = gate.ocm_typed_policy().call_decide(&mut *store, request).map_err(told)?;
        Ok(match decision {
            words::Decision::NoOpinion => Verdict::NoOpinion,
            words::Decision::Allow(_) => Verdict::Allow,
            words::Decision::Hold(_) => Verdict::Hold,
            words::Decision::Deny(_) => Verdict::Deny,
        })
    }

    fn once(&self, request: &words::Request) -> Result<(Verdict, u64), String> {
        let mut ready = self.ready().map_err(told)?;
        let verdict = self.ask(&mut ready, request)?;
        Ok((verdict, self.limits.fuel - ready.0.get_fuel().map_err(told)?))
    }

    fn timed(&self, request: &words::Request) -> Result<(Duration, Duration), String> {
        cycle(|| self.ready().map_err(told), |ready| self.ask(ready, request))
    }
}

/// How long deciding takes, and all of it: making an instance, deciding, taking it apart.
fn cycle<R>(
    ready: impl FnOnce() -> Result<R, String>,
    ask: impl FnOnce(&mut R) -> Result<Verdict, String>,
) -> Result<(Duration, Duration), String> {
    let begun = Instant::now();
    let mut ready = ready()?;
    let asked = Instant::now();
    let verdict = ask(&mut ready);
    let decided = asked.elapsed();
    drop(ready);
    let all = begun.elapsed();
    std::hint::black_box(verdict?);
    Ok((decided, all))
}

/// An engine with the settings of `src/config.rs`; code of the one would not load into the other if they differed.
fn engine(settings: &EngineSettings) -> wasmtime::Result<wasmtime::Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(settings.instances)
        .total_core_instances(settings.instances * 2)
        .total_memories(settings.instances)
        .total_tables(settings.instances * 2)
        .max_core_instances_per_component(64)
        .max_memories_per_component(1)
        .max_memories_per_module(1)
        .max_tables_per_component(8)
        .max_tables_per_module(4)
        .max_memory_size(settings.memory_bytes)
        .table_elements(100_000)
        .linear_memory_keep_resident(128 << 10)
        .table_keep_resident(8 << 10)
        .max_unused_warm_slots(settings.instances);
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(256 << 10)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .relaxed_simd_deterministic(true)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .concurrency_support(false)
        .generate_address_map(false)
        .wasm_backtrace_max_frames(None)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    wasmtime::Engine::new(&config)
}

/// Lets time pass until the program ends.
fn tick(engine: &wasmtime::Engine) {
    let engine = engine.clone();
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(1));
            engine.increment_epoch();
        }
    });
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Builds the typed policy with the flags that the workspace has for policies.
fn typed_guest() -> Result<Vec<u8>, String> {
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
        return Err(format!("the typed policy cannot be built:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    read(&target.join(TRIPLE).join("release/typed_guest.wasm"))
}

/// The same facts as records.
fn records(request: &Request<'_>) -> words::Request {
    let pairs = |map: &ocm_policy_abi::Map<'_, ocm_policy_abi::Text<'_>>| {
        map.iter().map(|(key, value)| words::Pair { key: key.to_string(), value: value.to_string() }).collect()
    };
    words::Request {
        id: request.id.to_string(),
        operation: match request.operation {
            Operation::Create => words::Operation::Create,
            Operation::Update => words::Operation::Update,
            Operation::Delete => words::Operation::Delete,
            Operation::Approve => words::Operation::Approve,
            Operation::Accept => words::Operation::Accept,
            Operation::Join => words::Operation::Join,
            Operation::Admit => words::Operation::Admit,
        },
        now: request.now,
        dry_run: request.dry_run,
        attempt: request.attempt,
        requester: words::Requester {
            username: request.requester.username.to_string(),
            uid: request.requester.uid.as_ref().map(ToString::to_string),
            groups: request.requester.groups.iter().map(ToString::to_string).collect(),
            extra: request
                .requester
                .extra
                .iter()
                .map(|(key, values)| words::Many {
                    key: key.to_string(),
                    values: values.iter().map(ToString::to_string).collect(),
                })
                .collect(),
        },
        object: request.resource.as_ref().map(|resource| words::ApiObject {
            group: resource.group.to_string(),
            version: resource.version.to_string(),
            kind: resource.kind.to_string(),
            plural: resource.resource.to_string(),
            name: resource.name.as_ref().map(ToString::to_string),
            operation: resource.operation.to_string(),
        }),
        cluster: request.cluster.as_ref().map(|cluster| words::Cluster {
            name: cluster.name.to_string(),
            labels: pairs(&cluster.labels),
            annotations: pairs(&cluster.annotations),
            accepted: cluster.accepted,
            lease_duration_seconds: cluster.lease_duration_seconds,
            taints: cluster
                .taints
                .iter()
                .map(|taint| words::Taint {
                    key: taint.key.to_string(),
                    value: taint.value.to_string(),
                    effect: taint.effect.to_string(),
                })
                .collect(),
            client_configs: cluster
                .client_configs
                .iter()
                .map(|config| words::ClientConfig {
                    url: config.url.to_string(),
                    ca_sha256: config.ca_sha256.as_ref().map(ToString::to_string),
                })
                .collect(),
        }),
    }
}

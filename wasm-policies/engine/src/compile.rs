//! From a module to an artifact: machine code together with what the policy says of itself.
//!
//! Compiling a hostile module can take seconds and hundreds of megabytes, and neither fuel nor epochs see it. Therefore
//! a host lets [`Compiler::Process`] do it: a process of its own whose processor time and memory the kernel limits.

use std::future::Future;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Scope};
use std::time::Duration;

use ocm_policy_abi::{CONTRACT, Manifest};
use ocm_policy_rules::adapt::KUBEWARDEN_CONTRACT;
use ocm_policy_rules::outcome::Fault;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use wasmtime::component::{Component, Instance, WasmList};
use wasmtime::{Module, Store};
use wasmtime_wizer::{ComponentInstanceState, Wizer};

use crate::code::Code;
use crate::config::{compiling, config};
use crate::kind::{Anatomy, Kind, anatomy};
use crate::limits::{Ceiling, Limits};
use crate::program::component::{Exports, configure, decide, describe, link};
use crate::program::{Guarded, examine, fault, fill, opa, store};
use crate::shape::{self, ShapeLimits};
use crate::trim::trim;
use crate::world::encode;

/// What an artifact is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The kind of the module.
    pub kind: Kind,
    /// What the policy says of itself.
    pub manifest: Manifest,
    /// SHA-256 over the module, lower-case hex.
    pub module_digest: String,
    /// SHA-256 over the settings, lower-case hex.
    pub settings_digest: String,
    /// The settings, where they are not part of the code already.
    pub settings: Option<String>,
    /// For which engine the code is.
    pub compatibility: String,
}

/// Machine code and what it is of. Whoever runs one trusts where it came from: it must be the answer of a [`Compiler`]
/// or of a [`crate::Cache`].
#[derive(Clone)]
pub struct Artifact {
    header: Header,
    bytes: Vec<u8>,
    code: usize,
}

const MAGIC: &[u8; 8] = b"ocmpol01";

impl Artifact {
    fn new(header: Header, code: &[u8]) -> Result<Self, Fault> {
        let json = serde_json::to_vec(&header)
            .map_err(|error| Fault::Load(format!("its manifest cannot be kept: {error}")))?;
        let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + json.len() + code.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&json);
        let at = bytes.len();
        bytes.extend_from_slice(code);
        Ok(Self { header, bytes, code: at })
    }

    /// What [`Artifact::bytes`] gave. `None` when it is anything else.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let header: Header = serde_json::from_slice(rest.get(..length)?).ok()?;
        let code = MAGIC.len() + 4 + length;
        (header.compatibility == compatibility()).then_some(Self { header, bytes, code })
    }

    /// What it is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The machine code, for shards to run.
    pub(crate) fn code(&self) -> Code {
        Code::new(&self.bytes[self.code..])
    }
}

/// Tells engines and versions of this crate apart whose code is not interchangeable.
pub(crate) fn compatibility() -> String {
    let mut hasher = DefaultHasher::new();
    if let Ok(engine) = wasmtime::Engine::new(&config()) {
        engine.precompile_compatibility_hash().hash(&mut hasher);
    }
    format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
}

/// SHA-256, lower-case hex.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |text, byte| text + &format!("{byte:02x}"))
}

/// What is compiled, besides the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    /// None: only what the policy says of itself is asked for.
    settings: Option<String>,
    ceiling: Ceiling,
    cpu_seconds: u64,
    memory_bytes: u64,
}

/// Who compiles.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// This process. For modules of one's own.
    Here,
    /// A process of its own for each module: a program that calls [`serve`] when it is started with these arguments.
    Process {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// Seconds of processor time that it may use. By the clock it may take five times as long.
        cpu_seconds: u64,
        /// Bytes of memory that it may use.
        memory_bytes: u64,
    },
}

impl Compiler {
    /// A program that compiles, with the usual limits: a minute of processor time, two gigabytes.
    pub fn process(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = String>) -> Self {
        Self::Process {
            program: program.into(),
            arguments: arguments.into_iter().collect(),
            cpu_seconds: 60,
            memory_bytes: 2 << 30,
        }
    }

    /// Makes an artifact of a module and its settings (JSON).
    ///
    /// # Errors
    /// When the module is not one that decides, refuses the settings, or cannot be compiled within the limits.
    pub fn compile(&self, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, Fault> {
        match self {
            Self::Here => compile_here(module, settings, ceiling),
            Self::Process { .. } => Artifact::from_bytes(self.order(module, Some(settings), ceiling)?)
                .filter(|made| {
                    let Header { module_digest, settings_digest, .. } = made.header();
                    *module_digest == digest(module) && *settings_digest == digest(settings.as_bytes())
                })
                .ok_or_else(|| Fault::Load("it cannot be compiled: what came back cannot be used".to_owned())),
        }
    }

    /// What a module says of itself, without giving it any settings: it may refuse to be without.
    ///
    /// # Errors
    /// When it is not one that decides, or cannot be compiled within the limits.
    pub fn describe(&self, module: &[u8], ceiling: &Ceiling) -> Result<Manifest, Fault> {
        match self {
            Self::Here => describe_here(module, ceiling),
            Self::Process { .. } => serde_json::from_slice(&self.order(module, None, ceiling)?)
                .map_err(|error| Fault::Load(format!("its manifest cannot be read: {error}"))),
        }
    }

    /// Has another process answer.
    fn order(&self, module: &[u8], settings: Option<&str>, ceiling: &Ceiling) -> Result<Vec<u8>, Fault> {
        let failed = |why: &dyn std::fmt::Display| Fault::Load(format!("it cannot be compiled: {why}"));
        let Self::Process { program, arguments, cpu_seconds, memory_bytes } = self else {
            return Err(failed(&"there is no other process"));
        };
        // What is no module at all needs no process.
        shape::check(module, &ShapeLimits::default())?;
        let order = Order {
            settings: settings.map(str::to_owned),
            ceiling: *ceiling,
            cpu_seconds: *cpu_seconds,
            memory_bytes: *memory_bytes,
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut answer = Vec::new();
        let longest = Duration::from_secs(cpu_seconds.saturating_mul(PATIENCE));
        // Both at once: who answers before it has read everything must not be waited for at the wrong end.
        let (sent, read) = within(&child, longest, |scope| {
            let sender = scope.spawn(|| input.map(|pipe| send(pipe, &order, module)));
            let read = output.map(|pipe| pipe.take(MOST_CODE).read_to_end(&mut answer));
            (sender.join(), read)
        });
        let status = child.wait().map_err(|error| failed(&error))?;
        match answer.split_first() {
            Some((0, bytes)) if matches!(sent, Ok(Some(Ok(())))) && status.success() => Ok(bytes.to_vec()),
            Some((1, fault)) => Err(serde_json::from_slice(fault).unwrap_or_else(|error| failed(&error))),
            _ => Err(match read {
                Some(Err(error)) => failed(&error),
                _ => failed(&format_args!(
                    "it took more than {cpu_seconds} s of processor time, {} s altogether or {} MiB of memory ({status})",
                    longest.as_secs(),
                    memory_bytes >> 20
                )),
            }),
        }
    }
}

/// How many times its processor time a process may take by the clock: others are at work on this machine as well.
const PATIENCE: u64 = 5;

/// Does something with a process, and ends the process when that takes too long.
#[cfg(unix)]
fn within<'e, T>(child: &Child, longest: Duration, work: impl for<'s> FnOnce(&'s Scope<'s, 'e>) -> T) -> T {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    let pid = Pid::from_child(child);
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            if end.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                // Nobody has asked for its end yet, so nobody else has its number.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let done = work(scope);
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        drop(ended);
        done
    })
}

#[cfg(not(unix))]
fn within<'e, T>(_: &Child, _: Duration, work: impl for<'s> FnOnce(&'s Scope<'s, 'e>) -> T) -> T {
    thread::scope(work)
}

/// No artifact is larger.
const MOST_CODE: u64 = 512 << 20;

fn send(mut pipe: impl Write, order: &Order, module: &[u8]) -> io::Result<()> {
    let order = serde_json::to_vec(order)?;
    pipe.write_all(&u32::try_from(order.len()).unwrap_or(u32::MAX).to_le_bytes())?;
    pipe.write_all(&order)?;
    pipe.write_all(module)
}

/// Compiles one module that comes on `input` and writes the artifact to `output`: the other side of
/// [`Compiler::Process`]. The process limits itself to what the order says before it looks at the module.
///
/// # Errors
/// When the pipes break.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut order = Vec::new();
    input.by_ref().take(u32::from_le_bytes(length).into()).read_to_end(&mut order)?;
    let order: Order = serde_json::from_slice(&order)?;
    restrain(&order);
    let mut module = Vec::new();
    input.read_to_end(&mut module)?;
    let made = match &order.settings {
        Some(settings) => compile_here(&module, settings, &order.ceiling).map(|artifact| artifact.bytes),
        None => {
            describe_here(&module, &order.ceiling).map(|manifest| serde_json::to_vec(&manifest).unwrap_or_default())
        }
    };
    match made {
        Ok(bytes) => {
            output.write_all(&[0])?;
            output.write_all(&bytes)
        }
        Err(fault) => {
            output.write_all(&[1])?;
            output.write_all(&serde_json::to_vec(&fault)?)
        }
    }
}

/// Address space is not limited: memories of WebAssembly reserve gigabytes of it and use none.
#[cfg(unix)]
fn restrain(order: &Order) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    // A limit that cannot be set is one that the process is under already.
    let _ = setrlimit(Resource::Cpu, limit(order.cpu_seconds));
    let _ = setrlimit(Resource::Data, limit(order.memory_bytes));
    let _ = setrlimit(Resource::Core, limit(0));
}

#[cfg(not(unix))]
fn restrain(_: &Order) {}

/// Makes an artifact in this process.
///
/// # Errors
/// As [`Compiler::compile`].
pub fn compile_here(module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, Fault> {
    shape::check(module, &ShapeLimits::default())?;
    serde_json::from_str::<serde::de::IgnoredAny>(settings)
        .map_err(|error| Fault::Load(format!("the settings are no JSON: {error}")))?;
    let anatomy = anatomy(module)?;
    let kind = anatomy.kind()?;
    let engine = compiling()?;
    let (manifest, settings_left, code) = match kind {
        Kind::Component => component(&engine, module, settings, ceiling)?,
        Kind::Core => component(&engine, &encode(module)?, settings, ceiling)?,
        _ => foreign(&engine, module, kind, &anatomy, settings, ceiling)?,
    };
    let known = match kind {
        Kind::KubewardenWapc | Kind::KubewardenWasi | Kind::Gatekeeper => &[CONTRACT, KUBEWARDEN_CONTRACT][..],
        _ => &[CONTRACT],
    };
    if !known.contains(&manifest.contract.as_str()) {
        return Err(Fault::Load(format!(
            "it was written for the contract {:?}, and this engine knows {CONTRACT}",
            manifest.contract
        )));
    }
    let header = Header {
        kind,
        manifest,
        module_digest: digest(module),
        settings_digest: digest(settings.as_bytes()),
        settings: settings_left,
        compatibility: compatibility(),
    };
    Artifact::new(header, &code)
}

fn describe_here(module: &[u8], ceiling: &Ceiling) -> Result<Manifest, Fault> {
    shape::check(module, &ShapeLimits::default())?;
    let anatomy = anatomy(module)?;
    let kind = anatomy.kind()?;
    let engine = compiling()?;
    let component = match kind {
        Kind::Component => Component::from_binary(&engine, module),
        Kind::Core => Component::from_binary(&engine, &encode(module)?),
        // These have no settings before they decide, or say themselves which they need.
        _ => return Ok(foreign(&engine, module, kind, &anatomy, "{}", ceiling)?.0),
    };
    let component = component.map_err(|error| Fault::Load(format!("it cannot be compiled: {error:#}")))?;
    let exports = Exports::find(&component)?;
    let mut store = store(&engine, &ceiling.most, ())?;
    let instance = link(&engine, &component)?.instantiate(&mut store).map_err(fault)?;
    describe(&mut store, &instance, &exports)
}

type Made = (Manifest, Option<String>, Vec<u8>);

/// A module of another contract: its settings go with every request.
fn foreign(
    engine: &wasmtime::Engine,
    module: &[u8],
    kind: Kind,
    anatomy: &Anatomy<'_>,
    settings: &str,
    ceiling: &Ceiling,
) -> Result<Made, Fault> {
    let cannot = |error: wasmtime::Error| Fault::Load(format!("it cannot be compiled: {error:#}"));
    let (code, settings) = match kind {
        Kind::Opa | Kind::Gatekeeper => (
            Module::from_binary(engine, &opa::own_memory(module)?).map_err(cannot)?,
            opa::documents(kind, anatomy.data, settings)?,
        ),
        _ => (Module::from_binary(engine, module).map_err(cannot)?, settings.to_owned()),
    };
    let manifest = examine(engine, &code, kind, anatomy, &digest(module), &settings, ceiling)?;
    Ok((manifest, Some(settings), code.serialize().map_err(cannot)?))
}

/// A component of our contract. The memory that `configure` leaves behind becomes part of the code, so that no decision
/// reads the settings again.
fn component(engine: &wasmtime::Engine, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Made, Fault> {
    let limits = ceiling.most;
    let cannot = |error: wasmtime::Error| Fault::Load(format!("it cannot be compiled: {error:#}"));
    // Refuse what cannot be a policy before the more expensive steps.
    let plain = Component::from_binary(engine, module).map_err(cannot)?;
    let exports = Exports::find(&plain)?;
    let pre = link(engine, &plain)?;
    let mut first = store(engine, &limits, ())?;
    let instance = pre.instantiate(&mut first).map_err(fault)?;
    let manifest = describe(&mut first, &instance, &exports)?;
    fill(&mut first, &limits)?;
    configure(&mut first, &instance, &exports, settings)?;
    decide(&mut first, &instance, &exports)?;
    drop(first);
    // Of some valid components Wizer makes one that is not.
    let compiled = snapshot(engine, module, settings, &limits).and_then(|mut with_settings| {
        trim(&mut with_settings);
        engine.precompile_component(&with_settings).map_err(cannot)
    });
    match compiled {
        Ok(code) => Ok((manifest, None, code)),
        // Not every component can be taken a snapshot of; then each instance is configured while it gets ready.
        Err(_) => Ok((manifest, Some(settings.to_owned()), plain.serialize().map_err(cannot)?)),
    }
}

fn snapshot(engine: &wasmtime::Engine, module: &[u8], settings: &str, limits: &Limits) -> Result<Vec<u8>, Fault> {
    let wizer = Wizer::new();
    let (context, instrumented) = wizer.instrument_component(module).map_err(fault)?;
    let component = Component::from_binary(engine, &instrumented).map_err(fault)?;
    let exports = Exports::find(&component)?;
    let pre = link(engine, &component)?;
    // Whole memories are read through the copy of answers.
    let limits = Limits { host_bytes: limits.memory_bytes * 2, ..*limits };
    let mut store = store(engine, &limits, ())?;
    let instance = pre.instantiate(&mut store).map_err(fault)?;
    fill(&mut store, &limits)?;
    configure(&mut store, &instance, &exports, settings)?;
    let mut state = State { store, instance, limits, failed: None };
    let module = at_once(wizer.snapshot_component(&context, &mut state)).map_err(fault)?;
    match state.failed {
        Some(fault) => Err(fault),
        None => Ok(module),
    }
}

/// An instance whose memory and globals are read.
struct State {
    store: Store<Guarded<()>>,
    instance: Instance,
    limits: Limits,
    /// What went wrong first: the trait has no way to say so.
    failed: Option<Fault>,
}

impl State {
    fn call<R, U: Default>(
        &mut self,
        interface: &str,
        function: &str,
        take: impl FnOnce(&Store<Guarded<()>>, R) -> U,
    ) -> U
    where
        R: wasmtime::component::Lift + Send + Sync + 'static,
    {
        let mut attempt = || {
            fill(&mut self.store, &self.limits)?;
            let missing = || Fault::Load(format!("{interface}.{function} is missing"));
            let interface = self.instance.get_export_index(&mut self.store, None, interface).ok_or_else(missing)?;
            let index =
                self.instance.get_export_index(&mut self.store, Some(&interface), function).ok_or_else(missing)?;
            let function = self.instance.get_typed_func::<(), (R,)>(&mut self.store, index).map_err(fault)?;
            function.call(&mut self.store, ()).map_err(fault)
        };
        match attempt() {
            Ok((answer,)) => take(&self.store, answer),
            Err(fault) => {
                self.failed.get_or_insert(fault);
                U::default()
            }
        }
    }
}

impl ComponentInstanceState for State {
    async fn call_func_ret_list_u8(&mut self, instance: &str, func: &str, contents: impl FnOnce(&[u8]) + Send) {
        self.call(instance, func, |store, list: WasmList<u8>| contents(list.as_le_slice(store)));
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.call(instance, func, |_, number| number)
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.call(instance, func, |_, number| number)
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.call(instance, func, |_, number: f32| number.to_bits())
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.call(instance, func, |_, number: f64| number.to_bits())
    }
}

/// The result of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(wasmtime::Error::msg("taking the snapshot waits for something")),
    }
}

/// What a module says, cut to what a message can hold.
pub(crate) fn sentences(errors: &[String]) -> String {
    let text = errors.iter().take(8).map(|error| error.trim()).collect::<Vec<_>>().join("; ");
    text.chars().filter(|c| !c.is_control()).take(1_000).collect()
}

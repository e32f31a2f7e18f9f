//! Rego, compiled to WebAssembly by OPA (ABI 1.x).
//!
//! Such a module imports its memory; it gets one of its own before it is compiled, so that an instance is one thing that
//! the pool can keep. Its data, with the settings, is parsed while an instance gets ready; the request is written behind
//! it. Built-in functions that the module expects of its host are few here, and none of them looks at the world: a module
//! that needs another one is refused when it is loaded.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use ocm_policy_abi::{Decision, Manifest};
use ocm_policy_rules::adapt::{gatekeeper_result, opa_result};
use ocm_policy_rules::{Bounds, PolicyError};
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_encoder::{
    EntityType, ExportKind, ExportSection, ImportSection, MemorySection, MemoryType, RawSection, SectionId,
};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};
use wasmtime::{
    AsContextMut, Caller, Extern, Instance, InstancePre, Linker, Memory, Module, Store, TypedFunc, WasmParams,
    WasmResults,
};

use crate::limits::Limits;
use crate::module::Kind;
use crate::question::Question;
use crate::runtime::errors::{policy_error, sentences, stop, unloadable};
use crate::runtime::guest_memory::{c_text, charged_text, memory, memory_of, put};
use crate::runtime::program::{Program, Ready};
use crate::runtime::rego::{Builtin, Work};
use crate::runtime::store::{CALL, Clock, Guarded, charge, fill, fuel_used, price, reading_price, store};

const MODULE: &str = "env";

/// What the host computes for a module, by the numbers that the module gave it.
pub(crate) type Builtins = BTreeMap<i32, Builtin>;

/// Gives a module the memory that it wants to import, and lets it export that.
pub(crate) fn own_memory(module: &[u8]) -> Result<Vec<u8>, PolicyError> {
    let broken =
        |error: wasmparser::BinaryReaderError| PolicyError::Load(format!("this is no WebAssembly module: {error}"));
    let mut out = wasm_encoder::Module::new();
    let mut wanted = None;
    let mut placed = false;
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(broken)?;
        // A memory stands behind the tables and before everything else.
        let after_tables = payload.as_section().is_some_and(|(id, _)| id > SectionId::Table as u8);
        if let (Some(memory), false, true) = (wanted, placed, after_tables) {
            out.section(MemorySection::new().memory(memory));
            placed = true;
        }
        match payload {
            Payload::ImportSection(imports) => {
                let mut kept = ImportSection::new();
                for import in imports.into_imports() {
                    let import = import.map_err(broken)?;
                    match import.ty {
                        TypeRef::Func(index) => {
                            kept.import(import.module, import.name, EntityType::Function(index));
                        }
                        TypeRef::Memory(memory) if !memory.memory64 && !memory.shared && wanted.is_none() => {
                            wanted = Some(MemoryType {
                                minimum: memory.initial,
                                maximum: memory.maximum,
                                memory64: false,
                                shared: false,
                                page_size_log2: None,
                            });
                        }
                        _ => {
                            let name = format!("{}.{}", import.module, import.name);
                            return Err(PolicyError::Load(format!("it imports {name}, which Rego does not")));
                        }
                    }
                }
                out.section(&kept);
            }
            Payload::ExportSection(exports) if wanted.is_some() => {
                let mut kept = ExportSection::new();
                let mut has_memory = false;
                for export in exports {
                    let export = export.map_err(broken)?;
                    let kind = match export.kind {
                        ExternalKind::Func | ExternalKind::FuncExact => ExportKind::Func,
                        ExternalKind::Table => ExportKind::Table,
                        ExternalKind::Memory => ExportKind::Memory,
                        ExternalKind::Global => ExportKind::Global,
                        ExternalKind::Tag => ExportKind::Tag,
                    };
                    has_memory |= export.name == "memory";
                    kept.export(export.name, kind, export.index);
                }
                if !has_memory {
                    kept.export("memory", ExportKind::Memory, 0);
                }
                out.section(&kept);
            }
            other => {
                if let Some((id, range)) = other.as_section() {
                    out.section(&RawSection { id, data: &module[range] });
                }
            }
        }
    }
    Ok(out.finish())
}

/// The data document and the settings of a policy, as they are kept with its code.
pub(crate) fn documents(kind: Kind, section: Option<&[u8]>, settings: &str) -> Result<String, PolicyError> {
    let data = section.map_or(Ok(json!({})), serde_json::from_slice::<Value>);
    let mut data = data.map_err(|error| PolicyError::Load(format!("its data cannot be read: {error}")))?;
    let settings: Value = serde_json::from_str(settings)
        .map_err(|error| PolicyError::Load(format!("the settings are no JSON: {error}")))?;
    let Some(members) = data.as_object_mut() else {
        return Err(PolicyError::Load("its data must be an object".to_owned()));
    };
    let given = !matches!(&settings, Value::Null) && settings.as_object().is_none_or(|members| !members.is_empty());
    // What the bundle says of its settings is what counts where nothing else is said.
    if kind == Kind::Opa && (given || !members.contains_key("settings")) {
        members.insert("settings".to_owned(), settings.clone());
    }
    Ok(json!({"data": data, "parameters": settings}).to_string())
}

type Call<'c> = Caller<'c, Guarded<Host>>;

fn link(linker: &mut Linker<Guarded<Host>>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "opa_abort", |mut caller: Call<'_>, at: u32| -> wasmtime::Result<()> {
        let memory = memory(&mut caller)?;
        let text = c_text(memory.data(&caller), at, 1_000)?;
        stop(PolicyError::Trap(sentences(&[String::from_utf8_lossy(text).into_owned()])))
    })?;
    linker.func_wrap(MODULE, "opa_println", |caller: Call<'_>, _: u32| charge(caller, CALL))?;
    linker.func_wrap(MODULE, "opa_builtin0", |caller: Call<'_>, id: i32, _: u32| builtin(caller, id, &[]))?;
    linker.func_wrap(MODULE, "opa_builtin1", |caller: Call<'_>, id: i32, _: u32, a: u32| builtin(caller, id, &[a]))?;
    linker.func_wrap(MODULE, "opa_builtin2", |caller: Call<'_>, id: i32, _: u32, a: u32, b: u32| {
        builtin(caller, id, &[a, b])
    })?;
    linker.func_wrap(MODULE, "opa_builtin3", |caller: Call<'_>, id: i32, _: u32, a: u32, b: u32, c: u32| {
        builtin(caller, id, &[a, b, c])
    })?;
    linker.func_wrap(MODULE, "opa_builtin4", |caller: Call<'_>, id: i32, _: u32, a: u32, b: u32, c: u32, d: u32| {
        builtin(caller, id, &[a, b, c, d])
    })?;
    Ok(())
}

/// The host of such a module.
struct Host {
    builtins: Arc<Builtins>,
    /// Bytes of each value.
    most: usize,
    /// Milliseconds since 1970, as the request says.
    now: i64,
}

type Guest = Store<Guarded<Host>>;

/// Computes what a module asks for. Whatever cannot be computed ends the decision: a value that is missing could make a
/// rule that denies silent.
fn builtin(mut caller: Call<'_>, id: i32, arguments: &[u32]) -> wasmtime::Result<u32> {
    let Some(builtin) = caller.data().host.builtins.get(&id).copied() else {
        return stop(PolicyError::HostCall(format!("built-in function {id}")));
    };
    if builtin.arguments() != arguments.len() {
        return stop(PolicyError::HostCall(format!(
            "built-in function {} with {} values",
            builtin.name(),
            arguments.len()
        )));
    }
    let mut texts = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let at = call(&mut caller, "opa_value_dump", *argument)?;
        let most = caller.data().host.most;
        texts.push(charged_text(&mut caller, at, most)?);
    }
    charge(&mut caller, builtin.price(&texts))?;
    let failed = |why: String| stop(PolicyError::Trap(format!("{}: {}", builtin.name(), sentences(&[why]))));
    let mut work = Work::new(caller.as_context_mut().get_fuel()?);
    let answer = builtin.compute(&texts, caller.data().host.now, &mut work);
    // Work that needed more fuel than there was ends here.
    charge(&mut caller, work.spent())?;
    let (answer, json) = match answer {
        Ok(answer) => (answer.text, answer.json),
        Err(why) => return failed(why),
    };
    let length = u32::try_from(answer.len()).unwrap_or(u32::MAX);
    if answer.len() > caller.data().host.most {
        return stop(PolicyError::TooLarge(format!("{} makes {length} bytes", builtin.name())));
    }
    charge(&mut caller, price(answer.len()))?;
    let at = call(&mut caller, "opa_malloc", length)?;
    let memory = memory(&mut caller)?;
    put(memory.data_mut(&mut caller), at, answer.as_bytes())?;
    let read = call(&mut caller, if json { "opa_json_parse" } else { "opa_value_parse" }, (at, length))?;
    match read {
        // To the module this would be undefined, and a rule that denies would be silent.
        0 => failed("its answer cannot be read by the module".to_owned()),
        value => Ok(value),
    }
}

/// Calls a function that the calling guest exports.
fn call<P: WasmParams>(caller: &mut Call<'_>, name: &str, parameters: P) -> wasmtime::Result<u32> {
    match caller.get_export(name) {
        Some(Extern::Func(function)) => function.typed::<P, u32>(&*caller)?.call(caller.as_context_mut(), parameters),
        _ => stop(PolicyError::Load(format!("it does not export {name}"))),
    }
}

/// A policy of this kind.
pub(crate) struct RegoProgram {
    pre: InstancePre<Guarded<Host>>,
    kind: Kind,
    data: Arc<str>,
    parameters: Arc<str>,
    plan: OnceLock<Plan>,
}

/// What the first instance told.
#[derive(Clone)]
struct Plan {
    entry: Arc<str>,
    number: i32,
    builtins: Arc<Builtins>,
}

#[derive(Deserialize)]
struct Documents {
    data: Value,
    parameters: Value,
}

impl RegoProgram {
    /// `documents` is what [`documents`] made.
    pub(crate) fn new(module: &Module, kind: Kind, documents: &str) -> Result<Self, PolicyError> {
        let documents: Documents = serde_json::from_str(documents)
            .map_err(|error| PolicyError::Load(format!("its data cannot be read: {error}")))?;
        let mut linker = Linker::new(module.engine());
        link(&mut linker).map_err(policy_error)?;
        let pre = linker.instantiate_pre(module).map_err(unloadable)?;
        Ok(Self {
            pre,
            kind,
            data: documents.data.to_string().into(),
            parameters: documents.parameters.to_string().into(),
            plan: OnceLock::new(),
        })
    }

    /// Makes an instance and lets it parse the data.
    pub(crate) fn try_out(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<(), PolicyError> {
        self.instance(engine, limits).map(drop)
    }

    fn instance(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<RegoInstance, PolicyError> {
        let fresh = || {
            let most = usize::try_from(limits.host_bytes).unwrap_or(usize::MAX);
            let mut store = store(engine, limits, Host { builtins: Arc::default(), most, now: 0 })?;
            let instance = self.pre.instantiate(&mut store).map_err(unloadable)?;
            let memory = memory_of(&mut store, &instance)?;
            Ok::<_, PolicyError>(Rego { store, instance, memory })
        };
        let plan = match self.plan.get() {
            Some(plan) => plan.clone(),
            // An instance that was asked for its names has another heap, and would use other fuel than all others.
            None => {
                let plan = fresh()?.plan(self.kind)?;
                self.plan.get_or_init(|| plan).clone()
            }
        };
        let mut rego = fresh()?;
        rego.store.data_mut().host.builtins = plan.builtins.clone();
        let data = rego.parse(self.data.as_bytes())?;
        let heap = rego.call("opa_heap_ptr_get", ())?;
        let eval = rego.instance.get_typed_func(&mut rego.store, "opa_eval").ok();
        Ok(RegoInstance {
            rego,
            eval,
            data,
            heap,
            plan,
            kind: self.kind,
            documents: self.data.clone(),
            parameters: self.parameters.clone(),
            fuel: 0,
        })
    }
}

impl Program for RegoProgram {
    fn prepare(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Box<dyn Ready>, PolicyError> {
        Ok(Box::new(self.instance(engine, limits)?))
    }
}

struct Rego {
    store: Guest,
    instance: Instance,
    memory: Memory,
}

impl Rego {
    fn call<P: WasmParams, R: WasmResults>(&mut self, name: &str, parameters: P) -> Result<R, PolicyError> {
        let function = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, name)
            .map_err(|_| PolicyError::Load(format!("it does not export {name} as Rego does")))?;
        function.call(&mut self.store, parameters).map_err(policy_error)
    }

    /// Writes bytes behind everything that is on the heap.
    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), PolicyError> {
        const PAGE: usize = 1 << 16;
        let missing = (at as usize + bytes.len()).saturating_sub(self.memory.data_size(&self.store));
        if missing > 0 {
            let pages = missing.div_ceil(PAGE) as u64;
            self.memory.grow(&mut self.store, pages).map_err(|_| PolicyError::OutOfMemory)?;
        }
        put(self.memory.data_mut(&mut self.store), at, bytes)
    }

    /// Makes a value of JSON.
    fn parse(&mut self, json: &[u8]) -> Result<u32, PolicyError> {
        let length = u32::try_from(json.len()).map_err(|_| PolicyError::OutOfMemory)?;
        let at = self.call("opa_malloc", length)?;
        put(self.memory.data_mut(&mut self.store), at, json)?;
        match self.call("opa_json_parse", (at, length))? {
            0 => Err(PolicyError::Trap("it cannot parse JSON".to_owned())),
            value => Ok(value),
        }
    }

    /// The JSON of a value.
    fn dump(&mut self, value: u32) -> Result<&[u8], PolicyError> {
        let at = self.call("opa_json_dump", value)?;
        self.text(at)
    }

    fn text(&self, at: u32) -> Result<&[u8], PolicyError> {
        c_text(self.memory.data(&self.store), at, self.store.data().host.most)
    }

    /// Numbers by their names, as `builtins` and `entrypoints` tell them.
    fn names(&mut self, function: &str) -> Result<BTreeMap<String, i32>, PolicyError> {
        let value = self.call(function, ())?;
        serde_json::from_slice(self.dump(value)?)
            .map_err(|error| PolicyError::Load(format!("what it tells of its {function} cannot be read: {error}")))
    }

    fn plan(&mut self, kind: Kind) -> Result<Plan, PolicyError> {
        let mut builtins = Builtins::new();
        let mut unknown = Vec::new();
        for (name, number) in self.names("builtins")? {
            match Builtin::named(&name) {
                Some(builtin) => drop(builtins.insert(number, builtin)),
                None => unknown.push(name),
            }
        }
        if !unknown.is_empty() {
            return Err(PolicyError::Load(format!(
                "it needs built-in functions that are not there: {}",
                sentences(&[unknown.join(", ")])
            )));
        }
        let entries = match self.instance.get_func(&mut self.store, "entrypoints") {
            Some(_) => self.names("entrypoints")?,
            None => BTreeMap::from([(String::from("policy"), 0)]),
        };
        let (entry, number) = choose(kind, &entries)?;
        Ok(Plan { entry: entry.as_str().into(), number, builtins: Arc::new(builtins) })
    }
}

/// Which entry point decides: the only one, or the one whose name says so.
fn choose(kind: Kind, entries: &BTreeMap<String, i32>) -> Result<(&String, i32), PolicyError> {
    let telling = if kind == Kind::Gatekeeper { "violation" } else { "decision" };
    let mut named = entries.iter().filter(|(name, _)| name.rsplit(['/', '.']).next() == Some(telling));
    let chosen = match (entries.len(), named.next(), named.next()) {
        (1, ..) => entries.iter().next(),
        (_, Some(one), None) => Some(one),
        _ => None,
    };
    chosen.map(|(name, number)| (name, *number)).ok_or_else(|| {
        let names = entries.keys().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
        let names = sentences(&[if names.is_empty() { "none".to_owned() } else { names }]);
        PolicyError::Load(format!("it must have one entry point, or one that is called {telling}; it has {names}"))
    })
}

/// `opa_eval`: reserved, entry point, data, input, its length, heap, form of the result.
type Eval = TypedFunc<(u32, i32, u32, u32, u32, u32, u32), u32>;

struct RegoInstance {
    rego: Rego,
    eval: Option<Eval>,
    data: u32,
    heap: u32,
    plan: Plan,
    kind: Kind,
    /// The data that was parsed, as JSON.
    documents: Arc<str>,
    parameters: Arc<str>,
    fuel: u64,
}

impl RegoInstance {
    /// Takes what is known of the hub into the data. The module chooses how much data there is to read and to write again.
    fn know(&mut self, inventory: Option<Value>) -> Result<(), PolicyError> {
        let Some(inventory) = inventory else { return Ok(()) };
        charge(&mut self.rego.store, reading_price(self.documents.len())).map_err(policy_error)?;
        let mut data: Value = serde_json::from_str(&self.documents)
            .map_err(|error| PolicyError::Load(format!("its data cannot be read: {error}")))?;
        data["inventory"] = inventory;
        let text = data.to_string();
        charge(&mut self.rego.store, price(text.len())).map_err(policy_error)?;
        self.data = self.rego.parse(text.as_bytes())?;
        self.heap = self.rego.call("opa_heap_ptr_get", ())?;
        Ok(())
    }

    /// Evaluates the entry point; where the result set stands as JSON.
    fn evaluate(&mut self, input: &[u8]) -> Result<u32, PolicyError> {
        let rego = &mut self.rego;
        let length = u32::try_from(input.len()).map_err(|_| PolicyError::OutOfMemory)?;
        if let Some(eval) = &self.eval {
            rego.write(self.heap, input)?;
            let heap = self.heap.checked_add(length).ok_or(PolicyError::OutOfMemory)?;
            let parameters = (0, self.plan.number, self.data, self.heap, length, heap, 0);
            return eval.call(&mut rego.store, parameters).map_err(policy_error);
        }
        // Before ABI 1.2.
        let value = rego.parse(input)?;
        let context: u32 = rego.call("opa_eval_ctx_new", ())?;
        rego.call::<_, ()>("opa_eval_ctx_set_input", (context, value))?;
        rego.call::<_, ()>("opa_eval_ctx_set_data", (context, self.data))?;
        if self.plan.number != 0 {
            rego.call::<_, ()>("opa_eval_ctx_set_entrypoint", (context, self.plan.number))?;
        }
        rego.call::<_, i32>("eval", context)?;
        let result: u32 = rego.call("opa_eval_ctx_get_result", context)?;
        rego.call("opa_json_dump", result)
    }
}

impl Ready for RegoInstance {
    fn decide(&mut self, question: &Question, manifest: &Manifest, limits: &Limits) -> Result<Decision, PolicyError> {
        let input = match self.kind {
            Kind::Gatekeeper => question.gatekeeper_input(&self.parameters)?.into(),
            _ => question.text_for(manifest)?,
        };
        let inventory = match self.kind {
            Kind::Gatekeeper => question.inventory(manifest)?,
            _ => None,
        };
        fill(&mut self.rego.store, limits)?;
        self.rego.store.data_mut().host.now = question.request().now;
        let bounds = Bounds::default();
        let result = self.know(inventory).and_then(|()| self.evaluate(input.as_bytes())).and_then(|at| {
            // Looking for the end of the answer is done once, and no further than an answer may reach.
            let length = c_text(self.rego.memory.data(&self.rego.store), at, bounds.bytes)?.len();
            charge(&mut self.rego.store, reading_price(length)).map(|()| at).map_err(policy_error)
        });
        self.fuel = fuel_used(&self.rego.store, limits);
        let answer = c_text(self.rego.memory.data(&self.rego.store), result?, bounds.bytes)?;
        match self.kind {
            Kind::Gatekeeper => gatekeeper_result(answer, &bounds),
            _ => opa_result(answer, &self.plan.entry, &bounds),
        }
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.rego.store.data_mut().clock
    }

    fn fuel_used(&self) -> u64 {
        self.fuel
    }
}

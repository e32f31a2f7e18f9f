//! WASI commands, preview 1: programs that read the request from stdin and print the answer.

use std::sync::Arc;

use ocm_policy_abi::{Decision, Manifest};
use ocm_policy_rules::adapt::{Settings, kubewarden_response, kubewarden_settings};
use ocm_policy_rules::{Bounds, PolicyError, read_decision, read_manifest};
use wasmtime::{Caller, InstancePre, Linker, Module, Store, TypedFunc};

use crate::limits::Limits;
use crate::module::Kind;
use crate::question::Question;
use crate::runtime::errors::{ended, policy_error, unloadable};
use crate::runtime::guest_memory::{memory_and_host, name};
use crate::runtime::host_calls::HostCalls;
use crate::runtime::program::{Program, Ready};
use crate::runtime::store::{Clock, Guarded, charge, fill, fuel_used, reading_price, store};
use crate::runtime::wasi_imports::{self, Wasi};

/// The host of a command.
struct Host {
    wasi: Wasi,
    calls: HostCalls,
}

impl AsMut<Wasi> for Host {
    fn as_mut(&mut self) -> &mut Wasi {
        &mut self.wasi
    }
}

/// The way of Kubewarden policies of this kind to ask their host: what it answers can be read from stdin.
fn link_host_calls(linker: &mut Linker<Guarded<Host>>) -> wasmtime::Result<()> {
    for module in ["host", "kubewarden:javy/host"] {
        linker.func_wrap(
            module,
            "call",
            |mut caller: Caller<'_, Guarded<Host>>,
             _binding: u32,
             _: u32,
             space: u32,
             space_length: u32,
             operation: u32,
             operation_length: u32,
             _payload: u32,
             _: u32|
             -> wasmtime::Result<i32> {
                charge(&mut caller, 100)?;
                let (memory, host) = memory_and_host(&mut caller)?;
                let (space, operation) =
                    (name(memory, space, space_length)?, name(memory, operation, operation_length)?);
                let answer = host.calls.answer(&space, &operation);
                host.wasi.offer(answer.as_deref().unwrap_or_else(|why| why.as_bytes()))?;
                Ok(answer.is_err().into())
            },
        )?;
    }
    Ok(())
}

/// A command that is started anew for every request.
pub(crate) struct WasiProgram {
    pre: InstancePre<Guarded<Host>>,
    kind: Kind,
    settings: Arc<str>,
}

impl WasiProgram {
    pub(crate) fn new(module: &Module, kind: Kind, settings: &str) -> Result<Self, PolicyError> {
        let mut linker = Linker::new(module.engine());
        wasi_imports::link(&mut linker).map_err(policy_error)?;
        if kind == Kind::KubewardenWasi {
            link_host_calls(&mut linker).map_err(policy_error)?;
        }
        let pre = linker.instantiate_pre(module).map_err(unloadable)?;
        Ok(Self { pre, kind, settings: settings.into() })
    }

    fn instance(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<WasiInstance, PolicyError> {
        let mut store =
            store(engine, limits, Host { wasi: Wasi::new(limits.host_bytes), calls: HostCalls::default() })?;
        let instance = self.pre.instantiate(&mut store).map_err(unloadable)?;
        let start = instance
            .get_typed_func(&mut store, "_start")
            .map_err(|_| PolicyError::Load("it exports no function _start without parameters".to_owned()))?;
        Ok(WasiInstance { store, start, kind: self.kind, settings: self.settings.clone(), fuel: 0 })
    }

    /// What it says of itself. A command that does not know the question is still one that may decide.
    pub(crate) fn describe(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Option<Manifest>, PolicyError> {
        let mut run = self.instance(engine, limits)?;
        match run.run(&["policy", "describe"], "", 0, Vec::new(), limits) {
            Ok(text) if text.iter().all(u8::is_ascii_whitespace) => Ok(None),
            Ok(text) => read_manifest(&text).map(Some),
            Err(PolicyError::Exit(_) | PolicyError::Trap(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks a Kubewarden policy whether it can use its settings.
    pub(crate) fn validate_settings(
        &self,
        engine: &wasmtime::Engine,
        limits: &Limits,
    ) -> Result<Settings, PolicyError> {
        let mut run = self.instance(engine, limits)?;
        let settings = self.settings.as_bytes().to_vec();
        let answer = run.run(&["policy.wasm", "validate-settings"], "", 0, settings, limits)?;
        kubewarden_settings(&answer, &Bounds::default())
    }
}

impl Program for WasiProgram {
    fn prepare(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Box<dyn Ready>, PolicyError> {
        Ok(Box::new(self.instance(engine, limits)?))
    }
}

struct WasiInstance {
    store: Store<Guarded<Host>>,
    start: TypedFunc<(), ()>,
    kind: Kind,
    settings: Arc<str>,
    fuel: u64,
}

impl WasiInstance {
    /// Runs the command to its end; what it printed.
    fn run(
        &mut self,
        arguments: &'static [&'static str],
        request: &str,
        now: i64,
        stdin: Vec<u8>,
        limits: &Limits,
    ) -> Result<Vec<u8>, PolicyError> {
        fill(&mut self.store, limits)?;
        let host = &mut self.store.data_mut().host;
        host.wasi.arguments = arguments;
        host.wasi.begin(request, now, stdin);
        let result = ended(self.start.call(&mut self.store, ()));
        self.fuel = fuel_used(&self.store, limits);
        let host = &mut self.store.data_mut().host;
        let ended = result.map_err(|error| host.wasi.log.explain(error));
        // A denied call comes first: whatever else went wrong may well be its consequence.
        host.calls.check()?;
        ended?;
        Ok(std::mem::take(&mut host.wasi.stdout))
    }

    /// Takes fuel for what is done with an answer.
    fn charge(&mut self, fuel: u64, limits: &Limits) -> Result<(), PolicyError> {
        let charged = charge(&mut self.store, fuel);
        self.fuel = fuel_used(&self.store, limits);
        charged.map_err(policy_error)
    }
}

impl Ready for WasiInstance {
    fn decide(&mut self, question: &Question, manifest: &Manifest, limits: &Limits) -> Result<Decision, PolicyError> {
        let now = question.request().now;
        let bounds = Bounds::default();
        if self.kind == Kind::KubewardenWasi {
            let request = question.admission()?;
            let input = question.kubewarden_input(&self.settings)?;
            let answer = self.run(&["policy.wasm", "validate"], &request, now, input.into_bytes(), limits)?;
            // The object and what became of it are read and compared.
            self.charge(reading_price(answer.len() + request.len()), limits)?;
            return kubewarden_response(&answer, question.request().operation, question.given_object(), &bounds);
        }
        let request = question.text_for(manifest)?;
        let input = with_member(&request, "settings", &self.settings);
        let answer = self.run(&["policy", "decide"], &request, now, input.into_bytes(), limits)?;
        self.charge(reading_price(answer.len().min(bounds.bytes)), limits)?;
        read_decision(&answer, &bounds)
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.store.data_mut().clock
    }

    fn fuel_used(&self) -> u64 {
        self.fuel
    }
}

/// A JSON object with one member more.
fn with_member(object: &str, name: &str, value: &str) -> String {
    let start = object.trim_end().strip_suffix('}').unwrap_or(object);
    format!("{start},\"{name}\":{value}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_one_member_more() {
        assert_eq!(with_member(r#"{"a":1}"#, "settings", "{}"), r#"{"a":1,"settings":{}}"#);
    }
}

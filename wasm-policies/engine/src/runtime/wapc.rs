//! Kubewarden policies that are called through waPC: the host leaves a request, calls, and the guest fetches it.

use std::sync::Arc;

use ocm_policy_abi::{Decision, Manifest};
use ocm_policy_rules::adapt::{Settings, kubewarden_response, kubewarden_settings};
use ocm_policy_rules::{Bounds, PolicyError};
use wasmtime::{Caller, Instance, InstancePre, Linker, Module, Store, TypedFunc};

use crate::limits::Limits;
use crate::question::Question;
use crate::runtime::errors::{ended, policy_error, sentences, stop, unloadable};
use crate::runtime::guest_memory::{memory_and_host, name, piece, put};
use crate::runtime::host_calls::HostCalls;
use crate::runtime::program::{Program, Ready};
use crate::runtime::store::{CALL, Clock, Guarded, charge, fill, fuel_used, price, reading_price, store};
use crate::runtime::wasi_imports::{self, Wasi};

const MODULE: &str = "wapc";

/// What is said during one call.
#[derive(Default)]
struct CallState {
    operation: &'static str,
    request: Vec<u8>,
    response: Option<Vec<u8>>,
    error: Option<Vec<u8>>,
    /// What the last call of the host came to.
    answer: Option<Result<Vec<u8>, String>>,
}

impl CallState {
    /// What the last call of the host returned.
    fn told(&self) -> &[u8] {
        self.answer.as_ref().and_then(|answer| answer.as_deref().ok()).unwrap_or_default()
    }

    /// Why the last call of the host was denied.
    fn refused(&self) -> &[u8] {
        self.answer.as_ref().and_then(|answer| answer.as_ref().err()).map_or(&[], |why| why.as_bytes())
    }
}

/// The host of such a module. It may use what languages import of WASI as well.
struct Host {
    wasi: Wasi,
    calls: HostCalls,
    call: CallState,
}

impl AsMut<Wasi> for Host {
    fn as_mut(&mut self) -> &mut Wasi {
        &mut self.wasi
    }
}

type Guest = Store<Guarded<Host>>;

type Call<'c> = Caller<'c, Guarded<Host>>;

/// Takes fuel for so many bytes of a guest, if they are not too many.
fn charge_taken(caller: &mut Call<'_>, length: u32) -> wasmtime::Result<()> {
    let most = caller.data().host.wasi.most;
    if length as usize > most {
        return stop(PolicyError::TooLarge(format!("{length} bytes, {most} allowed")));
    }
    charge(caller, price(length as usize))
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn link(linker: &mut Linker<Guarded<Host>>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "__guest_request", |mut caller: Call<'_>, operation: u32, request: u32| {
        let call = &caller.data().host.call;
        let fuel = price(call.request.len() + call.operation.len());
        charge(&mut caller, fuel)?;
        let (memory, host) = memory_and_host(&mut caller)?;
        put(memory, operation, host.call.operation.as_bytes())?;
        wasmtime::Result::Ok(put(memory, request, &host.call.request)?)
    })?;
    linker.func_wrap(MODULE, "__guest_response", |mut caller: Call<'_>, at: u32, length: u32| {
        charge_taken(&mut caller, length)?;
        let (memory, host) = memory_and_host(&mut caller)?;
        host.call.response = Some(piece(memory, at, length)?.to_vec());
        wasmtime::Result::Ok(())
    })?;
    linker.func_wrap(MODULE, "__guest_error", |mut caller: Call<'_>, at: u32, length: u32| {
        charge_taken(&mut caller, length)?;
        let (memory, host) = memory_and_host(&mut caller)?;
        host.call.error = Some(piece(memory, at, length)?.to_vec());
        wasmtime::Result::Ok(())
    })?;
    linker.func_wrap(
        MODULE,
        "__host_call",
        |mut caller: Call<'_>,
         _binding: u32,
         _: u32,
         space: u32,
         space_length: u32,
         operation: u32,
         operation_length: u32,
         payload: u32,
         payload_length: u32|
         -> wasmtime::Result<u32> {
            charge_taken(&mut caller, payload_length)?;
            let (memory, host) = memory_and_host(&mut caller)?;
            piece(memory, payload, payload_length)?;
            let answer =
                host.calls.answer(&name(memory, space, space_length)?, &name(memory, operation, operation_length)?);
            let granted = answer.is_ok();
            host.call.answer = Some(answer);
            Ok(granted.into())
        },
    )?;
    linker.func_wrap(MODULE, "__host_response_len", |mut caller: Call<'_>| {
        charge(&mut caller, CALL)?;
        wasmtime::Result::Ok(length(caller.data().host.call.told()))
    })?;
    linker.func_wrap(MODULE, "__host_error_len", |mut caller: Call<'_>| {
        charge(&mut caller, CALL)?;
        wasmtime::Result::Ok(length(caller.data().host.call.refused()))
    })?;
    linker.func_wrap(MODULE, "__host_response", |mut caller: Call<'_>, at: u32| {
        let fuel = price(caller.data().host.call.told().len());
        charge(&mut caller, fuel)?;
        let (memory, host) = memory_and_host(&mut caller)?;
        Ok(put(memory, at, host.call.told())?)
    })?;
    linker.func_wrap(MODULE, "__host_error", |mut caller: Call<'_>, at: u32| {
        let fuel = price(caller.data().host.call.refused().len());
        charge(&mut caller, fuel)?;
        let (memory, host) = memory_and_host(&mut caller)?;
        Ok(put(memory, at, host.call.refused())?)
    })?;
    linker.func_wrap(MODULE, "__console_log", |mut caller: Call<'_>, at: u32, length: u32| {
        charge(&mut caller, CALL)?;
        let (memory, host) = memory_and_host(&mut caller)?;
        host.wasi.log.record(piece(memory, at, length)?);
        wasmtime::Result::Ok(())
    })?;
    Ok(())
}

/// A policy of this kind.
pub(crate) struct WapcProgram {
    pre: InstancePre<Guarded<Host>>,
    settings: Arc<str>,
}

impl WapcProgram {
    pub(crate) fn new(module: &Module, settings: &str) -> Result<Self, PolicyError> {
        let mut linker = Linker::new(module.engine());
        link(&mut linker).map_err(policy_error)?;
        wasi_imports::link(&mut linker).map_err(policy_error)?;
        let pre = linker.instantiate_pre(module).map_err(unloadable)?;
        Ok(Self { pre, settings: settings.into() })
    }

    fn instance(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<WapcInstance, PolicyError> {
        let wasi = Wasi::new(limits.host_bytes);
        let host = Host { wasi, calls: HostCalls::default(), call: CallState::default() };
        let mut store = store(engine, limits, host)?;
        let instance = self.pre.instantiate(&mut store).map_err(unloadable)?;
        // Modules are started in one of these ways, according to the language that they were written in.
        for name in ["_initialize", "_start", "wapc_init"] {
            start(&mut store, &instance, name)?;
        }
        let call = instance
            .get_typed_func(&mut store, "__guest_call")
            .map_err(|error| PolicyError::Load(format!("its __guest_call cannot be used: {error}")))?;
        Ok(WapcInstance { store, call, settings: self.settings.clone(), fuel: 0 })
    }

    /// The version of the protocol that it says it speaks.
    pub(crate) fn protocol(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<String, PolicyError> {
        let answer = self.instance(engine, limits)?.call("protocol_version", "", 0, Vec::new(), limits)?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text.trim().trim_matches('"').to_owned())
    }

    /// Asks it whether it can use its settings.
    pub(crate) fn validate_settings(
        &self,
        engine: &wasmtime::Engine,
        limits: &Limits,
    ) -> Result<Settings, PolicyError> {
        let settings = self.settings.as_bytes().to_vec();
        let answer = self.instance(engine, limits)?.call("validate_settings", "", 0, settings, limits)?;
        kubewarden_settings(&answer, &Bounds::default())
    }
}

fn start(store: &mut Guest, instance: &Instance, name: &str) -> Result<(), PolicyError> {
    if let Ok(function) = instance.get_typed_func::<(), ()>(&mut *store, name) {
        let result = ended(function.call(&mut *store, ()));
        result.map_err(|error| store.data().host.wasi.log.explain(error))?;
    }
    Ok(())
}

impl Program for WapcProgram {
    fn prepare(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Box<dyn Ready>, PolicyError> {
        Ok(Box::new(self.instance(engine, limits)?))
    }
}

struct WapcInstance {
    store: Guest,
    call: TypedFunc<(u32, u32), u32>,
    settings: Arc<str>,
    fuel: u64,
}

impl WapcInstance {
    /// Calls one of its operations.
    fn call(
        &mut self,
        operation: &'static str,
        request: &str,
        now: i64,
        payload: Vec<u8>,
        limits: &Limits,
    ) -> Result<Vec<u8>, PolicyError> {
        fill(&mut self.store, limits)?;
        let sizes = (length(operation.as_bytes()), length(&payload));
        let host = &mut self.store.data_mut().host;
        host.wasi.begin(request, now, Vec::new());
        host.call = CallState { operation, request: payload, ..CallState::default() };
        let result = ended(self.call.call(&mut self.store, sizes));
        self.fuel = fuel_used(&self.store, limits);
        let host = &mut self.store.data_mut().host;
        let succeeded = result.map_err(|error| host.wasi.log.explain(error));
        // A denied call comes first: whatever else went wrong may well be its consequence.
        host.calls.check()?;
        match (succeeded?, host.call.response.take()) {
            (Some(1), Some(response)) => Ok(response),
            (Some(1), None) => Err(PolicyError::Malformed(format!("{operation} has no response"))),
            (Some(_), _) => {
                let error = host.call.error.take().unwrap_or_default();
                let error = sentences(&[String::from_utf8_lossy(&error).into_owned()]);
                Err(PolicyError::Trap(format!(
                    "{operation} fails: {}",
                    if error.is_empty() { "no error is told" } else { &error }
                )))
            }
            (None, _) => Err(PolicyError::Malformed(format!("it ends itself during {operation}"))),
        }
    }
}

impl Ready for WapcInstance {
    fn decide(&mut self, question: &Question, _: &Manifest, limits: &Limits) -> Result<Decision, PolicyError> {
        let request = question.admission()?;
        let input = question.kubewarden_input(&self.settings)?;
        let answer = self.call("validate", &request, question.request().now, input.into_bytes(), limits)?;
        // The object and what became of it are read and compared.
        let charged = charge(&mut self.store, reading_price(answer.len() + request.len()));
        self.fuel = fuel_used(&self.store, limits);
        charged.map_err(policy_error)?;
        kubewarden_response(&answer, question.request().operation, question.given_object(), &Bounds::default())
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.store.data_mut().clock
    }

    fn fuel_used(&self) -> u64 {
        self.fuel
    }
}

//! The memory that `configure` leaves behind, as part of the module.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use ocm_policy_rules::PolicyError;
use wasmtime::Store;
use wasmtime::component::{Component, Instance, WasmList};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

use crate::limits::Limits;
use crate::runtime::component::{Exports, configure, link};
use crate::runtime::errors::policy_error;
use crate::runtime::store::{Guarded, fill, store};

/// A component of which a snapshot can be taken, compiled for that: it does what the component does, and its memory and its
/// globals can be read.
pub(super) struct Readable<'a> {
    context: ComponentContext<'a>,
    pub(super) component: Component,
}

impl<'a> Readable<'a> {
    /// Not every component can be made so; a module that is no valid component cannot.
    pub(super) fn new(engine: &wasmtime::Engine, module: &'a [u8]) -> Result<Self, PolicyError> {
        let (context, instrumented) = Wizer::new().instrument_component(module).map_err(policy_error)?;
        let component = Component::from_binary(engine, &instrumented).map_err(policy_error)?;
        Ok(Self { context, component })
    }

    /// The component once it has been configured, as bytes.
    pub(super) fn snapshot(
        &self,
        engine: &wasmtime::Engine,
        settings: &str,
        limits: &Limits,
    ) -> Result<Vec<u8>, PolicyError> {
        let exports = Exports::find(&self.component)?;
        let pre = link(engine, &self.component)?;
        // Whole memories are read through the copy of answers.
        let limits = Limits { host_bytes: limits.memory_bytes * 2, ..*limits };
        let mut store = store(engine, &limits, ())?;
        let instance = pre.instantiate(&mut store).map_err(policy_error)?;
        fill(&mut store, &limits)?;
        configure(&mut store, &instance, &exports, settings)?;
        let mut state = State { store, instance, limits, failed: None };
        let module = at_once(Wizer::new().snapshot_component(&self.context, &mut state)).map_err(policy_error)?;
        match state.failed {
            Some(error) => Err(error),
            None => Ok(module),
        }
    }
}

/// An instance whose memory and globals are read.
struct State {
    store: Store<Guarded<()>>,
    instance: Instance,
    limits: Limits,
    /// What went wrong first: the trait has no way to say so.
    failed: Option<PolicyError>,
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
            let missing = || PolicyError::Load(format!("{interface}.{function} is missing"));
            let interface = self.instance.get_export_index(&mut self.store, None, interface).ok_or_else(missing)?;
            let index =
                self.instance.get_export_index(&mut self.store, Some(&interface), function).ok_or_else(missing)?;
            let function = self.instance.get_typed_func::<(), (R,)>(&mut self.store, index).map_err(policy_error)?;
            function.call(&mut self.store, ()).map_err(policy_error)
        };
        match attempt() {
            Ok((answer,)) => take(&self.store, answer),
            Err(error) => {
                self.failed.get_or_insert(error);
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

//! Policies of our own contract.

use std::sync::atomic::{AtomicBool, Ordering};

use ocm_policy_abi::{Decision, INTERFACE, Manifest};
use ocm_policy_rules::{Bounds, PolicyError, read_manifest};
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Func, Instance, InstancePre, Linker, TypedFunc, WasmStr};

use crate::limits::Limits;
use crate::question::Question;
use crate::runtime::errors::{policy_error, sentences};
use crate::runtime::program::{Program, Ready};
use crate::runtime::store::{Clock, Guarded, fill, fuel_used, store};
use crate::wit_types;

/// `decide` of the contract.
type Decide<'r> = TypedFunc<(&'r wit_types::Request<'r>,), (wit_types::Decision,)>;
/// The same, for whoever takes a request in one block.
type DecideBlock<'q> = TypedFunc<(wit_types::Whole<'q>,), (wit_types::Decision,)>;
/// `configure` of the contract.
type Configure = TypedFunc<(String,), (Result<(), Vec<String>>,)>;
/// `describe` of the contract.
type Describe = TypedFunc<(), (WasmStr,)>;

/// The functions of the contract in a component.
#[derive(Clone, Copy)]
pub(crate) struct Exports {
    pub(crate) describe: ComponentExportIndex,
    pub(crate) configure: ComponentExportIndex,
    pub(crate) decide: ComponentExportIndex,
}

impl Exports {
    pub(crate) fn find(component: &Component) -> Result<Self, PolicyError> {
        let missing = |what: &str| PolicyError::Load(format!("the component does not export {what}"));
        let interface = component.get_export_index(None, INTERFACE).ok_or_else(|| missing(INTERFACE))?;
        let function = |name: &str| {
            component.get_export_index(Some(&interface), name).ok_or_else(|| missing(&format!("{INTERFACE}.{name}")))
        };
        Ok(Self { describe: function("describe")?, configure: function("configure")?, decide: function("decide")? })
    }
}

/// A component that can be instantiated, because it imports nothing.
pub(crate) fn link(engine: &wasmtime::Engine, component: &Component) -> Result<InstancePre<Guarded<()>>, PolicyError> {
    let imports: Vec<String> = component.component_type().imports(engine).map(|(name, _)| name.to_string()).collect();
    if !imports.is_empty() {
        return Err(PolicyError::Load(format!(
            "a policy must import nothing, and this one imports {}",
            imports.join(", ")
        )));
    }
    Linker::new(engine).instantiate_pre(component).map_err(policy_error)
}

/// Asks a policy what it is.
pub(crate) fn describe(
    store: &mut Store<Guarded<()>>,
    instance: &Instance,
    exports: &Exports,
) -> Result<Manifest, PolicyError> {
    let describe: Describe = instance.get_typed_func(&mut *store, exports.describe).map_err(policy_error)?;
    let (text,) = describe.call(&mut *store, ()).map_err(policy_error)?;
    let text = text.to_str(&*store).map_err(policy_error)?;
    read_manifest(text.as_bytes())
}

/// Gives a policy its settings.
pub(crate) fn configure(
    store: &mut Store<Guarded<()>>,
    instance: &Instance,
    exports: &Exports,
    settings: &str,
) -> Result<(), PolicyError> {
    let configure: Configure = instance.get_typed_func(&mut *store, exports.configure).map_err(policy_error)?;
    let (answer,) = configure.call(&mut *store, (settings.to_owned(),)).map_err(policy_error)?;
    answer.map_err(|errors| PolicyError::Settings(sentences(&errors)))
}

/// `decide` of an instance, if it is the one of the contract.
pub(crate) fn decide(
    store: &mut Store<Guarded<()>>,
    instance: &Instance,
    exports: &Exports,
) -> Result<Func, PolicyError> {
    let decide: Result<Decide<'_>, _> = instance.get_typed_func(&mut *store, exports.decide);
    decide
        .map(|decide| *decide.func())
        .map_err(|error| PolicyError::Load(format!("its `decide` is not that of the contract: {error:#}")))
}

/// Compiled code of a policy of our contract.
pub(crate) struct ComponentProgram {
    pre: InstancePre<Guarded<()>>,
    exports: Exports,
    /// The settings, where they could not be made part of the code.
    settings: Option<String>,
    /// Whether `decide` has been found to be that of the contract.
    checked: AtomicBool,
}

impl ComponentProgram {
    pub(crate) fn new(
        engine: &wasmtime::Engine,
        component: &Component,
        settings: Option<String>,
    ) -> Result<Self, PolicyError> {
        let exports = Exports::find(component)?;
        let pre = link(engine, component)?;
        Ok(Self { pre, exports, settings, checked: AtomicBool::new(false) })
    }
}

impl Program for ComponentProgram {
    fn prepares_with_guest_code(&self) -> bool {
        // Of a component whose memory is that after `configure`, nothing runs any more before `decide`: taking the
        // snapshot removes what modules run when they start, and `compiler::local` keeps none where something is left.
        self.settings.is_some()
    }

    fn prepare(&self, engine: &wasmtime::Engine, limits: &Limits) -> Result<Box<dyn Ready>, PolicyError> {
        let mut store = store(engine, limits, ())?;
        let instance = self.pre.instantiate(&mut store).map_err(policy_error)?;
        if let Some(settings) = &self.settings {
            configure(&mut store, &instance, &self.exports, settings)?;
        }
        // All instances have the functions of one component: comparing two dozen records once is enough.
        let decide = if self.checked.load(Ordering::Acquire) {
            instance.get_func(&mut store, self.exports.decide)
        } else {
            let decide = decide(&mut store, &instance, &self.exports)?;
            self.checked.store(true, Ordering::Release);
            Some(decide)
        };
        let decide =
            decide.ok_or_else(|| PolicyError::Load(format!("the component does not export {INTERFACE}.decide")))?;
        Ok(Box::new(ComponentInstance { store, decide, fuel: 0 }))
    }
}

struct ComponentInstance {
    store: Store<Guarded<()>>,
    /// Of the type that the contract says: [`ComponentProgram::prepare`] gives no other.
    decide: Func,
    fuel: u64,
}

impl Ready for ComponentInstance {
    #[expect(unsafe_code, reason = "the type of `decide` is compared once, not for each instance")]
    fn decide(&mut self, question: &Question, manifest: &Manifest, limits: &Limits) -> Result<Decision, PolicyError> {
        let answer = if manifest.request_in_one_block {
            let request = question.block_for(manifest)?;
            fill(&mut self.store, limits)?;
            // SAFETY: the function is of this type.
            let decide: DecideBlock<'_> = unsafe { TypedFunc::new_unchecked(self.decide) };
            decide.call(&mut self.store, (wit_types::Whole(&request),))
        } else {
            let request = question.records_for(manifest)?;
            fill(&mut self.store, limits)?;
            // SAFETY: the function is of this type.
            let decide: Decide<'_> = unsafe { TypedFunc::new_unchecked(self.decide) };
            decide.call(&mut self.store, (&request,))
        };
        self.fuel = fuel_used(&self.store, limits);
        let (answer,) = answer.map_err(policy_error)?;
        let decision = Decision::try_from(answer)?;
        let bounds = Bounds::default();
        bounds.check(&decision)?;
        // Measured as all other kinds of modules write it.
        match json_bytes(&decision) {
            bytes if bytes <= bounds.bytes => Ok(decision),
            bytes => Err(PolicyError::TooLarge(format!("{bytes} bytes, {} allowed", bounds.bytes))),
        }
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.store.data_mut().clock
    }

    fn fuel_used(&self) -> u64 {
        self.fuel
    }
}

/// The length of an answer as JSON, counted without writing it.
fn json_bytes(decision: &Decision) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, decision).map_or(usize::MAX, |()| count.0)
}

#[cfg(test)]
mod tests {
    use ocm_policy_abi::Edit;

    use super::*;

    #[test]
    fn an_answer_is_as_long_as_its_json() {
        let note = Edit::SetAnnotation { key: "a".to_owned(), value: "ä\"\n".repeat(1000) };
        let decision = Decision { edits: vec![note], ..Decision::default() };
        assert_eq!(json_bytes(&decision), serde_json::to_string(&decision).unwrap().len());
    }
}

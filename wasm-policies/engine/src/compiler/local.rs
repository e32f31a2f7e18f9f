//! From a module to an artifact, in this process.

use ocm_policy_abi::{CONTRACT, Manifest};
use ocm_policy_rules::PolicyError;
use ocm_policy_rules::adapt::KUBEWARDEN_CONTRACT;
use wasmtime::Module;
use wasmtime::component::Component;

use crate::artifact::{Artifact, Header, compatibility};
use crate::compiler::snapshot::Readable;
use crate::digest::digest;
use crate::engine::{compiling, compiling_quickly};
use crate::limits::Ceiling;
use crate::module::{Anatomy, Kind, ShapeLimits, anatomy, check_shape, componentize, prune, starts_with_guest_code};
use crate::runtime::component::{Exports, configure, decide, describe, link};
use crate::runtime::errors::policy_error;
use crate::runtime::foreign::{check_inputs, examine};
use crate::runtime::opa;
use crate::runtime::store::{fill, store};

/// Makes an artifact in this process.
///
/// # Errors
/// As [`Compiler::compile`](crate::Compiler::compile).
pub fn compile_here(module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, PolicyError> {
    check_shape(module, &ShapeLimits::default())?;
    serde_json::from_str::<serde::de::IgnoredAny>(settings)
        .map_err(|error| PolicyError::Load(format!("the settings are no JSON: {error}")))?;
    let anatomy = anatomy(module)?;
    let kind = Kind::of(&anatomy)?;
    let engine = compiling()?;
    let (manifest, settings_for_instances, code) = match kind {
        Kind::Component => component(&engine, module, settings, ceiling)?,
        Kind::Core => component(&engine, &componentize(module)?, settings, ceiling)?,
        _ => foreign(&engine, module, kind, &anatomy, settings, ceiling)?,
    };
    let known = match kind {
        Kind::KubewardenWapc | Kind::KubewardenWasi | Kind::Gatekeeper => &[CONTRACT, KUBEWARDEN_CONTRACT][..],
        _ => &[CONTRACT],
    };
    if !known.contains(&manifest.contract.as_str()) {
        return Err(PolicyError::Load(format!(
            "it was written for the contract {:?}, and this engine knows {CONTRACT}",
            manifest.contract
        )));
    }
    let header = Header {
        kind,
        manifest,
        module_digest: digest(module),
        settings_digest: digest(settings.as_bytes()),
        settings: settings.to_owned(),
        settings_for_instances,
        compatibility: compatibility(),
    };
    Artifact::new(header, &code)
}

/// What a module says of itself, asked in this process.
pub(super) fn describe_here(module: &[u8], ceiling: &Ceiling) -> Result<Manifest, PolicyError> {
    check_shape(module, &ShapeLimits::default())?;
    let anatomy = anatomy(module)?;
    let kind = Kind::of(&anatomy)?;
    let engine = compiling_quickly()?;
    let component = match kind {
        Kind::Component => Component::from_binary(&engine, module),
        Kind::Core => Component::from_binary(&engine, &componentize(module)?),
        // These have no settings before they decide, or say themselves which they need.
        _ => return Ok(foreign(&engine, module, kind, &anatomy, "{}", ceiling)?.0),
    };
    let component = component.map_err(|error| PolicyError::Load(format!("it cannot be compiled: {error:#}")))?;
    let exports = Exports::find(&component)?;
    let mut store = store(&engine, &ceiling.most, ())?;
    let instance = link(&engine, &component)?.instantiate(&mut store).map_err(policy_error)?;
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
) -> Result<Made, PolicyError> {
    let cannot = |error: wasmtime::Error| PolicyError::Load(format!("it cannot be compiled: {error:#}"));
    let (code, settings) = match kind {
        Kind::Opa | Kind::Gatekeeper => (
            Module::from_binary(engine, &opa::own_memory(module)?).map_err(cannot)?,
            opa::documents(kind, anatomy.data, settings)?,
        ),
        _ => (Module::from_binary(engine, module).map_err(cannot)?, settings.to_owned()),
    };
    let manifest = examine(engine, &code, kind, anatomy, &digest(module), &settings, ceiling)?;
    if matches!(kind, Kind::Opa | Kind::Gatekeeper) {
        check_inputs(module, kind, anatomy.declares_kind()?, &manifest)?;
    }
    Ok((manifest, Some(settings), code.serialize().map_err(cannot)?))
}

/// A component of our contract. The memory that `configure` leaves behind becomes part of the code, so that no decision
/// reads the settings again.
fn component(engine: &wasmtime::Engine, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Made, PolicyError> {
    let limits = ceiling.most;
    let cannot = |error: wasmtime::Error| PolicyError::Load(format!("it cannot be compiled: {error:#}"));
    // Refuse what cannot be a policy before the more expensive steps.
    let quick = compiling_quickly()?;
    let readable = Readable::new(&quick, module);
    let plain;
    let asked = match &readable {
        Ok(readable) => &readable.component,
        Err(_) => {
            plain = Component::from_binary(&quick, module).map_err(cannot)?;
            &plain
        }
    };
    let exports = Exports::find(asked)?;
    let pre = link(&quick, asked)?;
    let mut first = store(&quick, &limits, ())?;
    let instance = pre.instantiate(&mut first).map_err(policy_error)?;
    let manifest = describe(&mut first, &instance, &exports)?;
    fill(&mut first, &limits)?;
    configure(&mut first, &instance, &exports, settings)?;
    decide(&mut first, &instance, &exports)?;
    drop(first);
    // Of some valid components Wizer makes one that is not.
    let compiled = readable.and_then(|readable| readable.snapshot(&quick, settings, &limits)).and_then(|mut module| {
        if starts_with_guest_code(&module) {
            return Err(PolicyError::Load("it runs code when it starts".to_owned()));
        }
        prune(&mut module);
        engine.precompile_component(&module).map_err(cannot)
    });
    match compiled {
        Ok(code) => Ok((manifest, None, code)),
        // Not every component can be taken a snapshot of; then each instance is configured while it gets ready.
        Err(_) => Ok((manifest, Some(settings.to_owned()), engine.precompile_component(module).map_err(cannot)?)),
    }
}

//! From machine code to a program, by the kind of its module.

use ocm_policy_rules::PolicyError;

use crate::artifact::Header;
use crate::module::Kind;
use crate::runtime::machine_code::MachineCode;
use crate::runtime::program::Program;
use crate::runtime::{component, foreign};

/// Makes a program of machine code and what it is of.
pub(crate) fn load(
    engine: &wasmtime::Engine,
    header: &Header,
    code: &MachineCode,
) -> Result<Box<dyn Program>, PolicyError> {
    let Header { kind, settings_for_instances: settings, .. } = header;
    match kind {
        Kind::Component | Kind::Core => {
            Ok(Box::new(component::ComponentProgram::new(engine, &code.component(engine)?, settings.clone())?))
        }
        kind => {
            let module = code.module(engine)?;
            foreign::load(&module, *kind, settings.as_deref().unwrap_or("null"))
        }
    }
}

//! The compiling subprocess: the other side of [`Compiler::Process`](crate::Compiler::Process).

use std::io::{self, Read, Write};

use ocm_policy_rules::PolicyError;

use crate::artifact::Artifact;
use crate::compiler::confine::confine;
use crate::compiler::local::{compile_here, describe_here};
use crate::compiler::protocol::Order;
use crate::limits::Ceiling;

/// Compiles one module that comes on `input` and writes the artifact to `output`: the other side of
/// [`Compiler::Process`](crate::Compiler::Process). The process confines itself
/// before it looks at the module, so nothing else can be done in it afterwards;
/// it must have no other threads.
///
/// # Errors
/// When the pipes break.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut order = Vec::new();
    input.by_ref().take(u32::from_le_bytes(length).into()).read_to_end(&mut order)?;
    let order: Order = serde_json::from_slice(&order)?;
    if let Err(error) = confine(&order) {
        output.write_all(&[1])?;
        let error = PolicyError::Load(format!("this system cannot confine the process that compiles: {error}"));
        return output.write_all(&serde_json::to_vec(&error)?);
    }
    let mut module = Vec::new();
    input.read_to_end(&mut module)?;
    let made = match &order.settings {
        Some(settings) => compile_here(&module, settings, &order.ceiling).map(Artifact::into_bytes),
        None => {
            describe_here(&module, &order.ceiling).map(|manifest| serde_json::to_vec(&manifest).unwrap_or_default())
        }
    };
    match made {
        Ok(bytes) => {
            output.write_all(&[0])?;
            output.write_all(&bytes)
        }
        Err(error) => {
            output.write_all(&[1])?;
            output.write_all(&serde_json::to_vec(&error.bounded())?)
        }
    }
}

/// Confines this process as if it was about to compile, for tests of what it can do afterwards.
///
/// # Errors
/// When the system cannot do that.
#[doc(hidden)]
pub fn confine_for_tests() -> io::Result<()> {
    let (ceiling, settings) = (Ceiling::default(), None);
    confine(&Order { settings, ceiling, cpu_seconds: 60, memory_bytes: 1 << 30 })
}

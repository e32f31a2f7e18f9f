//! The compiling subprocess: the other side of [`Compiler::Process`](crate::Compiler::Process).

use std::io::{self, Read, Write};

use crate::artifact::Artifact;
use crate::compiler::local::{compile_here, describe_here};
use crate::compiler::protocol::Order;

/// Compiles one module that comes on `input` and writes the artifact to `output`: the other side of
/// [`Compiler::Process`](crate::Compiler::Process). The process limits itself to what the order says before it looks at the module.
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

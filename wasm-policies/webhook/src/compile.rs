//! Modules are compiled by this binary in a process of its own.

use std::io::Write as _;
use std::process::ExitCode;

use ocm_core::{Exit, Failure};
use ocm_policy_engine::Compiler;

/// The argument with which this binary starts itself to compile.
const COMPILE: &str = "compile-module";

/// Compiles the module that comes on stdin, when this process was started for that; none otherwise.
pub(crate) fn serve() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|argument| argument != COMPILE) {
        return None;
    }
    Some(match ocm_policy_engine::serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: ocm-policy-webhook starts this itself: {error}");
            ExitCode::from(Exit::Usage.code())
        }
    })
}

/// What starts it.
pub(crate) fn compiler() -> Result<Compiler, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::other("the program that compiles modules cannot be found").because(error))?;
    Ok(Compiler::process(own, [COMPILE.to_owned()]))
}

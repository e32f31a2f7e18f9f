//! The verbs.

use ocm_core::{Exit, Failure};

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod new;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod test;

/// Compiles what comes on stdin, within the limits that come with it.
pub(crate) fn compile_module() -> Result<Exit, Failure> {
    let done = ocm_policy_engine::serve(std::io::stdin().lock(), std::io::stdout().lock());
    done.map(|()| Exit::Ok).map_err(|error| Failure::usage("this verb is started by the others").because(error))
}

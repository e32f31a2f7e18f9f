//! `kubectl ocm policy`: policies from the first line to the last measurement, and those of a hub.

use std::process::ExitCode;

mod args;
mod bundle;
mod evaluation;
mod files;
mod histogram;
mod load;
mod processes;
mod requests;
mod run;
mod templates;
mod verbs;

fn main() -> ExitCode {
    // Before there is any other thread or descriptor: the process that compiles gives both up.
    load::compile_module().unwrap_or_else(|| ocm_cli::run_main("kubectl-ocm-policy", args::about(), run::run))
}

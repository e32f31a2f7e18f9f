//! `kubectl ocm policy`: policies from the first line to the last measurement, without a cluster.

use std::io::Write as _;
use std::process::ExitCode;

mod args;
mod ask;
mod bundle;
mod child;
mod files;
mod histogram;
mod load;
mod requests;
mod run;
mod templates;
mod verbs;

fn main() -> ExitCode {
    // Before there is any other thread or descriptor: the process that compiles gives both up.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == load::COMPILE) {
        return compile_module();
    }
    ocm_cli::run_main("kubectl-ocm-policy", args::about(), run::run)
}

/// Compiles the module that comes on stdin.
fn compile_module() -> ExitCode {
    match ocm_policy_engine::serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: this is started by the verbs of kubectl ocm policy: {error}");
            ExitCode::from(2)
        }
    }
}

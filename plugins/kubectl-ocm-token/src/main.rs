//! `kubectl ocm token`: tokens with which clusters register.

use std::process::ExitCode;

mod args;
mod run;
mod view;

fn main() -> ExitCode {
    ocm_cli::run_main("kubectl-ocm-token", args::about(), run::run)
}

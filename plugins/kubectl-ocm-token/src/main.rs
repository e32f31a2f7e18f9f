//! `kubectl ocm token`: tokens with which clusters register.

use std::process::ExitCode;

mod args;
mod run;
mod view;

fn main() -> ExitCode {
    ocm_cli::door("kubectl-ocm-token", args::about(), run::run)
}

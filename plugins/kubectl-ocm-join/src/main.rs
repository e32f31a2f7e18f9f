//! `kubectl ocm join`: registers a cluster at a hub.

use std::process::ExitCode;

mod args;
mod driver;
mod files;
mod fleet;
mod former;
mod further;
mod run;
mod view;

fn main() -> ExitCode {
    ocm_cli::run_main("kubectl-ocm-join", args::about(), run::run)
}

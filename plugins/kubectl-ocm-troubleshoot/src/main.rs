//! `kubectl ocm troubleshoot`: why a cluster is not joined, and whether it stays joined.

use std::process::ExitCode;

mod args;
mod bundle;
mod ci;
mod html;
mod run;
mod view;

fn main() -> ExitCode {
    ocm_cli::run_main("kubectl-ocm-troubleshoot", args::about(), run::run)
}

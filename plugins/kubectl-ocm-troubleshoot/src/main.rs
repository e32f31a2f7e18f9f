//! `kubectl ocm troubleshoot`: why a cluster is not joined, and whether it stays joined.

use std::process::ExitCode;

mod args;
mod bundle;
mod exit;
mod files;
mod fix;
mod html;
mod inspection;
mod run;
mod view;
mod watch;
mod words;

fn main() -> ExitCode {
    ocm_cli::serve_main("kubectl-ocm-troubleshoot", args::about(), run::run)
}

//! `kubectl ocm get`: managed clusters, certificate requests and registrations, with where they stand.

use std::process::ExitCode;

mod args;
mod delivery;
mod run;
mod view;

fn main() -> ExitCode {
    ocm_cli::run_main("kubectl-ocm-get", args::about(), run::run)
}

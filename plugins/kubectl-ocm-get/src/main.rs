//! `kubectl ocm get`: managed clusters and what a hub holds about them, with where it stands.

use std::process::ExitCode;

mod args;
mod delivery;
mod hub_addon;
mod info;
mod run;
mod selection;
mod view;

fn main() -> ExitCode {
    ocm_cli::run_main("kubectl-ocm-get", args::about(), run::run)
}

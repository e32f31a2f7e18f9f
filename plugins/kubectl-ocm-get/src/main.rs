//! `kubectl ocm get`: managed clusters and certificate requests, with where they stand.

use std::process::ExitCode;

mod args;
mod run;
mod sort;
mod view;

fn main() -> ExitCode {
    ocm_cli::door("kubectl-ocm-get", args::about(), run::run)
}

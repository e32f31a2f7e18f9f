//! `kubectl ocm accept`: verifies the certificate requests of clusters that want to join, and accepts them.

use std::process::ExitCode;

mod args;
mod explained;
mod help;
mod run;
#[cfg(test)]
mod samples;
mod view;

fn main() -> ExitCode {
    ocm_cli::run_main("kubectl-ocm-accept", args::about(), run::run)
}

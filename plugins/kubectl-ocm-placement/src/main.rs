//! `kubectl ocm placement`: creates placements, waits until they are decided, and deletes them.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-placement", args::about(), run::run)
}

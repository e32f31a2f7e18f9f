//! `kubectl ocm install`: makes a cluster a hub, and keeps wrong registrations out of it.

mod args;
mod run;
mod view;
mod words;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-install", args::about(), run::run)
}

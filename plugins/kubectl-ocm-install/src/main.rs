//! `kubectl ocm install`: makes a cluster a hub, keeps wrong registrations out of it, and adds what offers add-ons.

mod args;
mod run;
mod view;
mod words;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-install", args::about(), run::run)
}

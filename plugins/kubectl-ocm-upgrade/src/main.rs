//! `kubectl ocm upgrade`: brings hubs and managed clusters to a newer release, and keeps every setting.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-upgrade", args::about(), run::run)
}

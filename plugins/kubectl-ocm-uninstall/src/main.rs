//! `kubectl ocm uninstall`: takes away from a hub what `kubectl ocm install` added to it.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-uninstall", args::about(), run::run)
}

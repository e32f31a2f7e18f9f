//! `kubectl ocm install`: makes a cluster a hub.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::door("kubectl-ocm-install", args::about(), run::run)
}

//! `kubectl ocm clusterset`: sets of managed clusters, which clusters are in them, and where placements may use them.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-clusterset", args::about(), run::run)
}

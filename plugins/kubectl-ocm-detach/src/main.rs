//! `kubectl ocm detach`: takes clusters away from a hub, from the hub's side.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-detach", args::about(), run::run)
}

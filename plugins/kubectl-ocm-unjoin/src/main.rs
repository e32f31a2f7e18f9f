//! `kubectl ocm unjoin`: takes the agent away from a cluster, and with access to the hub the cluster from it.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-unjoin", args::about(), run::run)
}

//! `kubectl ocm proxy`: says which clusters can be reached through the add-on cluster-proxy, and runs kubectl on one.

mod args;
mod kubectl;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::serve_main("kubectl-ocm-proxy", args::about(), run::run)
}

//! `kubectl ocm addon`: enables add-ons on clusters, and disables them.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-addon", args::about(), run::run)
}

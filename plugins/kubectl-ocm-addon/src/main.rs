//! `kubectl ocm addon`: creates add-ons, enables them on clusters, configures them, says what takes effect, disables and
//! deletes them.

mod args;
mod config;
mod delete;
mod proxy;
mod run;
mod status;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-addon", args::about(), run::run)
}

//! `kubectl ocm addon`: creates add-ons, enables them on clusters, says which configuration takes effect, sets proxies, and
//! disables them.

mod args;
mod proxy;
mod run;
mod status;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-addon", args::about(), run::run)
}

//! `kubectl ocm work`: brings objects to clusters, says what became of them, and takes them away.

mod args;
mod run;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-work", args::about(), run::run)
}

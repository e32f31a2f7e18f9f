//! `kubectl ocm tls-check`: whether certificates do what they are for, and for how long they will.

mod args;
mod prometheus;
mod run;
mod shown;
mod tables;
mod view;

fn main() -> std::process::ExitCode {
    ocm_cli::run_main("kubectl-ocm-tls-check", args::about(), run::run)
}

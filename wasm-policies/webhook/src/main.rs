//! `ocm-policy-webhook`: judges registrations by the policies of the hub.

use std::process::ExitCode;

mod args;
mod certificates;
mod compile;
mod controller;
mod parts;
mod run;
mod webhook;

/// Threads answer reviews at once; the allocator of musl, with which images are linked, has one wait for the other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before there is any other thread or descriptor: the process that compiles gives both up.
    compile::serve().unwrap_or_else(|| ocm_cli::serve_main("ocm-policy-webhook", args::about(), run::run))
}

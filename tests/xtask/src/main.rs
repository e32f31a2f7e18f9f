//! `cargo demo`, `cargo verify`, `cargo soak`, `cargo xtask`.
#![expect(clippy::print_stderr, reason = "a command speaks on its standard streams")]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{demo, generate, image, package, prepare, soak, verify};

/// The tools of this repository.
#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// A hub and three managed clusters, installed, joined, accepted by people and by a policy, and available, by kubectl
    Demo(demo::Arguments),
    /// Everything that must hold: format, layers, lints, tests of all kinds, documents
    Verify(verify::Arguments),
    /// What takes too long for `cargo verify`: the image built twice, thousands of clusters while things break, faults, stories
    Soak(soak::Arguments),
    /// Write what is generated: the help in docs/commands
    Generate,
    /// Pack the binaries of this platform, for krew and for people
    Package(package::Arguments),
    /// Build a container image, as an archive for registries and nodes
    Image(image::Arguments),
    /// Build and install what test clusters run
    Prepare,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Demo(arguments) => demo::run(&arguments),
        Verb::Verify(arguments) => verify::run(arguments),
        Verb::Soak(arguments) => soak::run(&arguments),
        Verb::Generate => generate::run(),
        Verb::Package(arguments) => package::run(&arguments),
        Verb::Image(arguments) => image::run(&arguments),
        Verb::Prepare => prepare::here(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

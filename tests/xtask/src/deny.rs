//! cargo-deny, which judges by `deny.toml` what may be linked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::places;

/// The version that is run.
const VERSION: &str = "0.20.2";

/// What it judges. Advisories are left out: they stand in a database on the network, and change without a commit.
pub const CHECKS: [&str; 4] = ["check", "bans", "licenses", "sources"];

/// Where it is installed, below the folder of tools.
fn folder(tools: &Path) -> PathBuf {
    tools.join(format!("cargo-deny-{VERSION}"))
}

/// The program in its folder.
fn program_in(folder: &Path) -> PathBuf {
    folder.join("bin/cargo-deny")
}

fn tools() -> Result<PathBuf, String> {
    Ok(places::cache()?.join("tools"))
}

/// Whether the program has been compiled already.
pub fn is_there() -> bool {
    tools().is_ok_and(|tools| program_in(&folder(&tools)).exists())
}

/// The program, compiled where it is missing.
///
/// # Errors
/// When it cannot be compiled, and why.
pub fn program() -> Result<PathBuf, String> {
    let tools = tools()?;
    let folder = folder(&tools);
    let program = program_in(&folder);
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&tools).map_err(|error| failed(&tools, error))?;
    // Of several that find it missing, one compiles.
    let lock = tools.join("cargo-deny.lock");
    let turn = File::create(&lock).map_err(|error| failed(&lock, error))?;
    turn.lock().map_err(|error| failed(&lock, error))?;
    if !program.exists() {
        let mut install = Command::new("cargo");
        // A debug build takes a third of the time, and it judges within seconds all the same. Nobody debugs it.
        install.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--quiet", "--root"]);
        install.env("CARGO_PROFILE_DEV_DEBUG", "0");
        let status = install.arg(&folder).status().map_err(|error| format!("cargo cannot be started: {error}"))?;
        if !status.success() {
            return Err(format!("cargo-deny {VERSION} cannot be compiled ({status})"));
        }
    }
    Ok(program)
}

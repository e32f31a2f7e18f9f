//! cargo-deny, which judges by `deny.toml` what may be linked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::places;

/// The version that is run.
const VERSION: &str = "0.20.2";

/// What it judges. Advisories are left out: they stand in a database on the network, and change without a commit.
pub const CHECKS: [&str; 4] = ["check", "bans", "licenses", "sources"];

/// The program, compiled where it is missing.
///
/// # Errors
/// When it cannot be compiled, and why.
pub fn program() -> Result<PathBuf, String> {
    let tools = places::cache()?.join("tools");
    let folder = tools.join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin/cargo-deny");
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&tools).map_err(|error| failed(&tools, error))?;
    // Of several that find it missing, one compiles.
    let lock = tools.join("cargo-deny.lock");
    let turn = File::create(&lock).map_err(|error| failed(&lock, error))?;
    turn.lock().map_err(|error| failed(&lock, error))?;
    if !program.exists() {
        let mut install = Command::new("cargo");
        // A debug build takes a third of the time, and it judges within seconds all the same.
        install.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--quiet", "--root"]);
        let status = install.arg(&folder).status().map_err(|error| format!("cargo cannot be started: {error}"))?;
        if !status.success() {
            return Err(format!("cargo-deny {VERSION} cannot be compiled ({status})"));
        }
    }
    Ok(program)
}

//! Policies of this workspace as WebAssembly.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use launcher::cargo;

use crate::binaries::root;
use crate::remap::remap_setting;
use crate::run::Run;

/// Builds the policies of these names, `name-pattern` for `wasm-policies/policies/name-pattern`, and returns their core
/// modules in the same order. The build goes into a folder of its own inside `target`, which serves every profile.
///
/// # Errors
/// What the compiler said, when they cannot be built.
pub fn guests(target: &Path, names: &[&str]) -> Result<Vec<PathBuf>, String> {
    let target = target.join("policies");
    // The toolchain file names the target, but not every rustup adds it to a toolchain that is there already. Without
    // rustup the build says what is missing.
    let _ = Command::new("rustup").args(["target", "add", TRIPLE]).current_dir(root()).output();
    let mut command = cargo();
    command.args(["build", "--quiet", "--profile", "policy", "--target", TRIPLE, "--target-dir"]).arg(&target);
    // Flags for the tests are not for the guests.
    command.current_dir(root()).env_remove("RUSTFLAGS");
    // As `ocm-policy-builtin` builds them, into the same folder.
    command.args(["--config", &remap_setting(TRIPLE)]);
    for name in names {
        command.args(["--package", &format!("policy-{name}")]);
    }
    let run = Run::of(&mut command);
    if run.exit != 0 {
        return Err(format!("the policies cannot be built:\n{}", run.stderr));
    }
    let folder = target.join(TRIPLE).join("policy");
    Ok(names.iter().map(|name| folder.join(format!("policy_{}.wasm", name.replace('-', "_")))).collect())
}

const TRIPLE: &str = "wasm32-unknown-unknown";

/// The target directory that the running test or benchmark was built into.
pub fn target() -> PathBuf {
    let own = env::current_exe().unwrap_or_default();
    let profile = own
        .ancestors()
        .skip(1)
        .find(|folder| folder.file_name().is_none_or(|name| name != "deps" && name != "examples"));
    profile.and_then(Path::parent).unwrap_or(Path::new("/")).to_path_buf()
}

//! The binary, linked with everything that it needs: Rust's target of musl, and zig as compiler and linker of C.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use control_plane::Package;

use super::architecture::Architecture;
use crate::places::target;

/// cargo-zigbuild has Cargo compile and link C for another machine with zig. Exactly these, because another compiler
/// makes another binary of the same sources.
const ZIGBUILD: Package<'static> = Package {
    folder: "cargo-zigbuild-0.24.0-zig-0.17.1",
    requirement: "cargo-zigbuild==0.24.0 ziglang==0.17.1",
    finish,
    good,
};

/// Builds the binary of a package.
///
/// # Errors
/// What is missing and cannot be had, or that it cannot be compiled.
pub fn binary(package: &str, architecture: Architecture, release: bool) -> Result<PathBuf, String> {
    let (target, triple) = (target()?, architecture.triple());
    let tools = ZIGBUILD.install().map_err(|error| error.to_string())?;
    standard_library(triple)?;
    let root = cli_tests::root();
    let mut cargo = cli_tests::cargo();
    cargo
        .args(["zigbuild", "--locked", "--bins", "--package", package, "--target", triple, "--target-dir"])
        .arg(&target);
    if release {
        cargo.arg("--release");
    }
    let path = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
    let path = env::join_paths([tools.join("bin")].into_iter().chain(path)).map_err(|error| error.to_string())?;
    cargo
        .current_dir(root)
        .env("PATH", path)
        .env("CARGO_ZIGBUILD_ZIG_PATH", zig(&tools))
        .env("CARGO_ENCODED_RUSTFLAGS", flags(&root.display().to_string(), &home()?))
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null());
    match cargo.status() {
        Ok(status) if status.success() => {
            let profile = if release { "release" } else { "debug" };
            Ok(target.join(triple).join(profile).join(package))
        }
        Ok(_) => Err(format!("{package} cannot be built for {triple}")),
        Err(error) => Err(format!("cannot start Cargo: {error}")),
    }
}

/// What the compiler of Rust is told.
fn flags(root: &str, home: &str) -> String {
    [
        // Where the sources lie is in the messages of panics; the same sources elsewhere are the same binary.
        format!("--remap-path-prefix={root}=/src"),
        format!("--remap-path-prefix={home}=/cargo"),
        // Without it zig links to fixed addresses, which whoever attacks the process knows beforehand.
        "-Clink-arg=-pie".to_owned(),
    ]
    .join("\u{1f}")
}

/// Makes sure that Rust's library for these machines is there.
fn standard_library(triple: &str) -> Result<(), String> {
    let installed = Command::new("rustc").args(["--print", "target-libdir", "--target", triple]).output();
    let installed = installed.map_err(|error| format!("rustc cannot be started: {error}"))?;
    let folder = String::from_utf8_lossy(&installed.stdout).trim().to_owned();
    if installed.status.success() && Path::new(&folder).is_dir() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", triple]).current_dir(cli_tests::root()).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("rustup cannot add the target {triple}")),
        Err(error) => Err(format!("the target {triple} is not installed, and rustup cannot be started: {error}")),
    }
}

/// Where Cargo keeps the sources of crates.
fn home() -> Result<String, String> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")));
    Ok(home.ok_or("neither CARGO_HOME nor HOME is set")?.display().to_string())
}

fn zig(tools: &Path) -> PathBuf {
    tools.join("ziglang/zig")
}

/// Some versions of pip drop the executable bit of files that are data to them.
fn finish(tools: &Path) -> io::Result<()> {
    use std::fs::{metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let file = zig(tools);
    let mut permissions = metadata(&file)?.permissions();
    permissions.set_mode(0o755);
    set_permissions(file, permissions)
}

fn good(tools: &Path) -> bool {
    let runs = |program: PathBuf, word: &str| {
        let mut command = Command::new(program);
        command.arg(word).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    runs(zig(tools), "version") && runs(tools.join("bin/cargo-zigbuild"), "--version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_spaces_are_one_flag() {
        let flags = flags("/home/some one/src", "/home/some one/.cargo");
        let flags: Vec<_> = flags.split('\u{1f}').collect();
        assert_eq!(
            flags[..2],
            ["--remap-path-prefix=/home/some one/src=/src", "--remap-path-prefix=/home/some one/.cargo=/cargo"]
        );
        assert_eq!(flags.len(), 3);
    }
}

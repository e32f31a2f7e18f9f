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

/// What zig is told as compiler of C. A library may tell when it was compiled, as mimalloc does: the same sources later are the
/// same binary. These are words of `CFLAGS`, which no shell reads: the quotes reach the compiler.
const NO_TIME: &str = r#"-Wno-builtin-macro-redefined -D__DATE__="" -D__TIME__="" -D__TIMESTAMP__="""#;

/// How the names of variables begin by which other builds of this machine are told what to make, and with which tools.
const OF_OTHERS: [&str; 7] = ["AR_", "CARGO_PROFILE_", "CARGO_TARGET_", "CC_", "CFLAGS", "RUSTFLAGS", "TARGET_CFLAGS"];

/// Builds the binary of a package.
///
/// # Errors
/// What is missing and cannot be had, or that it cannot be compiled.
pub fn binary(package: &str, architecture: Architecture, release: bool) -> Result<PathBuf, String> {
    let (target, triple) = (target()?, architecture.triple());
    let tools = ZIGBUILD.install().map_err(|error| error.to_string())?;
    standard_library(triple)?;
    let root = cli_tests::root();
    if cli_tests::cargo_home().is_none() {
        return Err("Cargo's folder of crates is not known: neither CARGO_HOME nor HOME is set".to_owned());
    }
    let mut folders = cli_tests::source_folders();
    folders.extend([(root.to_owned(), "/src".to_owned()), (target.clone(), "/target".to_owned())]);
    let mut cargo = cli_tests::cargo();
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| OF_OTHERS.iter().any(|begin| name.starts_with(begin))) {
            cargo.env_remove(name);
        }
    }
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
        .env("CARGO_ENCODED_RUSTFLAGS", flags(folders))
        // Parts of a build before would decide how the code is divided.
        .env("CARGO_INCREMENTAL", "0")
        .env(format!("CFLAGS_{}", triple.replace('-', "_")), NO_TIME)
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

/// What the compiler of Rust is told. Where sources lie, those that build scripts write among them, is in the messages of
/// panics: each of these folders gets a name that is the same everywhere.
fn flags(mut folders: Vec<(PathBuf, String)>) -> String {
    // Of several that a file is in, the last one counts.
    folders.sort_by_key(|(folder, _)| folder.components().count());
    let remapped = folders.iter().map(|(folder, name)| cli_tests::remap_flag(folder, name));
    // Without it zig links to fixed addresses, which whoever attacks the process knows beforehand.
    remapped.chain(["-Clink-arg=-pie".to_owned()]).collect::<Vec<_>>().join("\u{1f}")
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
        Ok(_) => Err(format!(
            "Rust's library for {triple} is missing, and rustup could not add it, as it says above; once it can, type the same \
             again"
        )),
        Err(error) => Err(format!(
            "Rust's library for {triple} is missing, and there is no rustup to add it ({error}); install it the way that Rust \
             was installed, and type the same again"
        )),
    }
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
    fn folders_with_spaces_are_one_flag_and_the_innermost_one_counts() {
        let of = |folders: &[(&str, &str)]| {
            let folders = folders.iter().map(|(folder, name)| (PathBuf::from(folder), (*name).to_owned())).collect();
            flags(folders).split('\u{1f}').map(str::to_owned).collect::<Vec<_>>()
        };
        let [root, target, home] =
            [("/home/some one/src", "/src"), ("/home/some one/src/target", "/target"), ("/home/some one", "/cargo")];
        let expected = [
            "--remap-path-prefix=/home/some one=/cargo",
            "--remap-path-prefix=/home/some one/src=/src",
            "--remap-path-prefix=/home/some one/src/target=/target",
            "-Clink-arg=-pie",
        ];
        assert_eq!(of(&[root, target, home]), expected);
        assert_eq!(of(&[target, home, root]), expected);
    }

    #[test]
    fn words_about_times_are_not_taken_apart() {
        // As the crate `cc` takes them apart.
        let words: Vec<_> = NO_TIME.split_ascii_whitespace().collect();
        assert_eq!(words[1..], [r#"-D__DATE__="""#, r#"-D__TIME__="""#, r#"-D__TIMESTAMP__="""#]);
    }
}

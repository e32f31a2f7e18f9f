//! Names of folders that are the same on every machine. Messages of panics name the file that they come from; what is compiled of
//! the same sources elsewhere must be the same. Part of whatever has Cargo compile such binaries.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder in which Cargo keeps the sources of crates; none where there is no home.
pub fn cargo_home() -> Option<PathBuf> {
    let named = env::var_os("CARGO_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// The folders outside of the workspace that hold sources, and the names that are the same everywhere.
pub fn source_folders() -> Vec<(PathBuf, String)> {
    let crates = cargo_home().map(|home| (home, "/cargo".to_owned()));
    crates.into_iter().chain(standard_library()).collect()
}

/// The flag by which the compiler names a folder so.
pub fn remap_flag(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

/// The setting of Cargo by which a target gets these flags besides those of `.cargo/config.toml`, which a variable would
/// replace. Whoever builds into a folder that others build into gives the same one: with another, all of it is compiled again.
pub fn remap_setting(triple: &str) -> String {
    let flags: Vec<_> = source_folders().iter().map(|(folder, name)| remap_flag(folder, name)).collect();
    format!("target.{triple}.rustflags={flags:?}")
}

/// Where the sources of Rust's own library lie if somebody has installed them, and what they are called everywhere else.
fn standard_library() -> Option<(PathBuf, String)> {
    let ask = |words: &[&str]| {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        String::from_utf8(Command::new(rustc).args(words).output().ok()?.stdout).ok()
    };
    let (root, version) = (ask(&["--print", "sysroot"])?, ask(&["-vV"])?);
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "))?;
    Some((Path::new(root.trim()).join("lib/rustlib/src/rust"), format!("/rustc/{commit}")))
}

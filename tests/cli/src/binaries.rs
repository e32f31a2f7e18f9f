//! The binaries of the suite, built of their sources.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::{env, fs};

use launcher::{BINARIES, cargo};

use crate::run::Run;

/// The hub's webhook, which is no command of people.
const WEBHOOK: &str = "ocm-policy-webhook";

/// The binaries: packages of the workspace that are people's commands, from their folders. The dispatcher comes first.
///
/// # Panics
/// When the folder of the plugins cannot be read.
pub fn binaries() -> Vec<String> {
    let folder = root().join("plugins");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("kubectl-ocm"))
        .collect();
    names.sort();
    names
}

/// The file name of a binary, as kubectl has it: `-` inside a verb becomes `_`.
pub fn file_name(name: &str) -> String {
    match name.strip_prefix("kubectl-ocm-") {
        Some(verb) => format!("kubectl-ocm-{}", verb.replace('-', "_")),
        None => name.to_owned(),
    }
}

/// The folder of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// The path of a binary, as new as its sources.
pub fn binary(name: &str) -> PathBuf {
    folder().join(file_name(name))
}

/// The folder that holds the binaries of all of them: the one that [`BINARIES`] names, or else built of the profile of this
/// process.
///
/// # Panics
/// When they cannot be built.
pub fn folder() -> &'static Path {
    // A build that failed once fails for all.
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = FOLDER.get_or_init(|| {
        if let Some(folder) = env::var_os(BINARIES) {
            return Ok(folder.into());
        }
        let own = env::current_exe().expect("a process has an executable");
        // A test is TARGET/PROFILE/deps/NAME-HASH, another command is TARGET/PROFILE/NAME.
        let mut profile = own.parent().unwrap_or(Path::new("/"));
        if profile.file_name().is_some_and(|name| name == "deps" || name == "examples") {
            profile = profile.parent().unwrap_or(profile);
        }
        let release = profile.file_name().is_some_and(|name| name == "release");
        let names = [binaries(), vec![WEBHOOK.to_owned()]].concat();
        build_some(&names, profile.parent().unwrap_or(profile), release, true)
    });
    built.as_ref().unwrap_or_else(|why| panic!("{why}"))
}

/// Builds the binaries of all of them into a target directory and returns their folder. Cargo is quick when nothing
/// changed.
///
/// # Errors
/// What the compiler said, when they cannot be built.
pub fn build(target: &Path, release: bool, quiet: bool) -> Result<PathBuf, String> {
    build_some(&binaries(), target, release, quiet)
}

/// The same for some of them.
///
/// # Errors
/// What the compiler said, when they cannot be built.
pub fn build_some(names: &[String], target: &Path, release: bool, quiet: bool) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--bins", "--target-dir"]).arg(target).current_dir(root());
    for name in names {
        command.args(["--package", name]);
    }
    if release {
        command.arg("--release");
    }
    if !quiet {
        return match command.stdin(Stdio::null()).status() {
            Ok(status) if status.success() => Ok(target.join(if release { "release" } else { "debug" })),
            Ok(_) => Err("the commands cannot be built".to_owned()),
            Err(error) => Err(format!("cannot start Cargo: {error}")),
        };
    }
    let run = Run::of(command.arg("--quiet"));
    match run.exit {
        0 => Ok(target.join(if release { "release" } else { "debug" })),
        _ => Err(format!("the commands cannot be built:\n{}", run.stderr)),
    }
}

//! Finding our own program: the library is linked into test executables, which cannot be process 1 of a cluster.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{env, fs};

use crate::error::{Error, Trying as _};
use crate::run::last_lines;

const NAME: &str = "control-plane";

/// The program `control-plane`, as new as its sources: Cargo is asked once per process, and is quick when nothing
/// changed.
pub(crate) fn tool() -> Result<PathBuf, Error> {
    static FOUND: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(tool) = &*found {
        return Ok(tool.clone());
    }
    let tool = find()?;
    *found = Some(tool.clone());
    Ok(tool)
}

fn find() -> Result<PathBuf, Error> {
    let own = env::current_exe().trying(|| "finding our own program".into())?;
    if own.file_name().is_some_and(|name| name == NAME) {
        return Ok(own);
    }
    if let Some(built) = env::var_os(launcher::BINARIES).map(|folder| PathBuf::from(folder).join(NAME))
        && built.is_file()
    {
        return Ok(built);
    }
    // A test is TARGET/PROFILE/deps/NAME-HASH, another command is TARGET/PROFILE/NAME.
    let mut profile = own.parent().unwrap_or(Path::new("/"));
    if profile.file_name().is_some_and(|name| name == "deps" || name == "examples") {
        profile = profile.parent().unwrap_or(profile);
    }
    let beside = profile.join(NAME);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    if !manifest.is_file() {
        // The sources are gone, so what was built beside us is all there is.
        return if beside.is_file() {
            Ok(beside)
        } else {
            Err(Error::host(format!("there is no {NAME} beside {}; build it first", own.display())))
        };
    }
    let mut command = launcher::cargo();
    command.args(["build", "--quiet", "--package", NAME, "--bin", NAME, "--manifest-path"]).arg(&manifest);
    if let Some(target) = profile.parent() {
        command.arg("--target-dir").arg(target);
    }
    match profile.file_name().and_then(|name| name.to_str()) {
        Some("release") => drop(command.arg("--release")),
        Some("debug") | None => {}
        Some(other) => drop(command.args(["--profile", other])),
    }
    match command.output() {
        Ok(done) if done.status.success() => {}
        Ok(done) => {
            let why = last_lines(&String::from_utf8_lossy(&done.stderr), 8);
            return Err(Error::host(format!("building {NAME} failed: {why}")));
        }
        // Without Cargo, as where tests run from an archive, the one beside us was built together with us.
        Err(_) if beside.is_file() => return Ok(beside),
        Err(error) => return Err(error).trying(|| format!("starting Cargo to build {NAME}")),
    }
    fs::canonicalize(&beside).trying(|| format!("finding {}", beside.display()))
}

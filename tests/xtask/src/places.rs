//! Where things are.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The target directory that this process was built into.
///
/// # Errors
/// When the process does not know its own executable.
pub fn target() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("finding our own program: {error}"))?;
    // TARGET/PROFILE/NAME, and for benches TARGET/PROFILE/deps/NAME-HASH.
    let target = own.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_path_buf);
    target.ok_or_else(|| format!("{} is not in a target directory", own.display()))
}

/// The cache of this project, outside the clone.
///
/// # Errors
/// When there is no place for one.
pub fn cache() -> Result<PathBuf, String> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(cache.ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("kubectl-ocm"))
}

/// Where a running demo keeps its kubeconfig and the number of its process.
///
/// # Errors
/// When there is no place for a cache, or it cannot be made.
pub fn state() -> Result<PathBuf, String> {
    let folder = cache()?.join("demo");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

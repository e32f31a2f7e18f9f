//! The cache of this project: where it is, what its entries are named by, and locks between the processes that make them.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;

use crate::error::{Error, Trying as _};
use crate::progress::{Observer, Progress};

/// The cache directory of this project.
pub(crate) fn cache() -> Result<PathBuf, Error> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => match env::var_os("HOME").filter(|v| !v.is_empty()) {
            Some(home) => PathBuf::from(home).join(".cache"),
            None => {
                return Err(Error::host(
                    "neither XDG_CACHE_HOME nor HOME is set, so there is no place for the binaries of the test \
                     clusters; set XDG_CACHE_HOME to a directory",
                ));
            }
        },
    };
    let dir = base.join("kubectl-ocm");
    fs::create_dir_all(&dir).trying(|| format!("creating {}", dir.display()))?;
    Ok(dir)
}

/// Removes entries of the cache that begin so and were not used for a while. The caller holds the lock under which
/// they are made, so a fresh one that is half made belongs to a dead run.
pub(crate) fn remove_entries(cache: &Path, prefix: &str, unused: Duration) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let old = || entry.metadata().and_then(|meta| meta.modified()).ok()?.elapsed().ok();
        if entry.file_name().to_string_lossy().starts_with(prefix)
            && entry.path().is_dir()
            && old().is_some_and(|age| age >= unused)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A short digest that names a cache entry by what it was made from.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    hex(context.finish().as_ref())[..16].to_owned()
}

/// Hexadecimal digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A lock between processes; it is released when it is dropped, or when the process ends in any way.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Waits for a lock between processes; `waiting` is told when another one holds it.
pub(crate) fn lock(file: &Path, waiting: &str, observe: Observer<'_>) -> Result<Lock, Error> {
    let open = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(file)
        .trying(|| format!("opening {}", file.display()))?;
    if rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive).is_err() {
        observe(Progress::Said(waiting));
        rustix::fs::flock(&open, FlockOperation::LockExclusive).trying(|| format!("locking {}", file.display()))?;
    }
    Ok(Lock(open))
}

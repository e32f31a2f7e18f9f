//! Artifacts on disk, so that a restart takes milliseconds.
//!
//! A file of the cache is code that will be run. It is believed only when it carries a code (HMAC-SHA-256, RFC 2104)
//! made with a key that nobody else can read, for exactly the module, the settings, the limits and the engine that are
//! asked for; and the folder is used only when nobody else can write to it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tempfile::{NamedTempFile, PersistError};

use crate::artifact::{Artifact, compatibility};
use crate::compiler::process::Compiler;
use crate::digest::digest;
use crate::limits::Ceiling;
use ocm_policy_rules::PolicyError;

/// Why a folder cannot hold a cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Others can write to it, or to a file in it.
    #[error("{0} can be written by others, and what lies there would be run: make it yours alone (chmod go-w)")]
    Shared(PathBuf),
    /// Others can read its key, with which everything in it is authenticated.
    #[error(
        "{0} can be read by others, who could make code with it that would be run: make it yours alone (chmod 600)"
    )]
    KeyExposed(PathBuf),
    /// It belongs to somebody else.
    #[error("{0} belongs to another user, and what lies there would be run")]
    Foreign(PathBuf),
    /// It cannot be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
}

/// A folder of artifacts.
pub struct Cache {
    folder: PathBuf,
    key: [u8; 32],
    compatibility: String,
    most_bytes: u64,
    /// What is being compiled now, by name: of several that want the same, one compiles.
    compiling: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// Bytes that a cache may hold before it forgets what was not used for the longest time.
const MOST_BYTES: u64 = 512 << 20;

/// Bytes of the code in front of an artifact.
const CODE: usize = 32;

impl Cache {
    /// Opens a folder, and makes it where it is missing.
    ///
    /// A folder of ours that the members of its group can write to is one in a volume whose permissions are set anew at
    /// every start (`fsGroup`). It is made private again, and what lay there is forgotten: anybody could have put it
    /// there.
    ///
    /// # Errors
    /// When it cannot be used, or anybody else could write to it or read its key.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let folder = folder.into();
        let failed = |error| CacheError::Io(folder.clone(), error);
        make_folder(&folder).map_err(failed)?;
        reclaim(&folder)?;
        own(&folder)?;
        let path = folder.join("key");
        let key = match read_own(&path)? {
            Some(bytes) => {
                private(&path)?;
                bytes.try_into().map_err(|_| failed(io::Error::other("its key is damaged: remove the folder")))?
            }
            None => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(|error| failed(io::Error::other(error)))?;
                // Of two that begin at once, the second takes the key of the first.
                write_new(&folder, &path, &key).map_err(failed)?;
                let kept = read_own(&path)?.unwrap_or_default();
                kept.try_into().map_err(|_| failed(io::Error::other("its key is damaged: remove the folder")))?
            }
        };
        let compiling = Mutex::default();
        Ok(Self { folder, key, compatibility: compatibility(), most_bytes: MOST_BYTES, compiling })
    }

    /// The same with another bound for what it holds.
    #[must_use]
    pub fn with_most_bytes(self, most_bytes: u64) -> Self {
        Self { most_bytes, ..self }
    }

    /// The artifact of a module with these settings: from the folder, or compiled and kept.
    ///
    /// # Errors
    /// When it has to be compiled and that fails. A folder that cannot be written to is no failure.
    pub fn artifact(
        &self,
        compiler: &Compiler,
        module: &[u8],
        settings: &str,
        ceiling: &Ceiling,
    ) -> Result<Artifact, PolicyError> {
        let name = self.name(module, settings, ceiling);
        if let Some(artifact) = self.get(&name) {
            return Ok(artifact);
        }
        let alone = locked(&self.compiling).entry(name.clone()).or_default().clone();
        let turn = locked(&alone);
        // Another one may have done it meanwhile.
        let made = match self.get(&name) {
            Some(artifact) => Ok(artifact),
            None => compiler.compile(module, settings, ceiling).inspect(|artifact| {
                let _ = self.put(&name, artifact);
                let _ = self.evict(&name);
            }),
        };
        drop(turn);
        locked(&self.compiling).retain(|_, waiting| Arc::strong_count(waiting) > 1 || !Arc::ptr_eq(waiting, &alone));
        made
    }

    /// Forgets what was not used for the longest time until the rest is small enough, and what others left unfinished.
    fn evict(&self, newest: &str) -> io::Result<()> {
        const ABANDONED: Duration = Duration::from_secs(3600);
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let (path, metadata) = (entry.path(), entry.metadata()?);
            let used = metadata.modified()?;
            if path.extension().is_some_and(|extension| extension == "policy") {
                kept.push((used, metadata.len(), path));
            } else if entry.file_name() != "key" && used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(path);
            }
        }
        kept.sort();
        let mut bytes: u64 = kept.iter().map(|(_, length, _)| length).sum();
        let newest = self.path(newest);
        for (_, length, path) in kept {
            if bytes <= self.most_bytes {
                break;
            }
            if path != newest && fs::remove_file(path).is_ok() {
                bytes -= length;
            }
        }
        Ok(())
    }

    fn name(&self, module: &[u8], settings: &str, ceiling: &Ceiling) -> String {
        let ceiling = serde_json::to_string(ceiling).unwrap_or_default();
        digest(
            format!("{}\n{}\n{ceiling}\n{}", digest(module), digest(settings.as_bytes()), self.compatibility)
                .as_bytes(),
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.policy"))
    }

    fn code(&self, name: &str) -> Hmac<Sha256> {
        // A key of any length will do for HMAC.
        let mut code = Hmac::<Sha256>::new_from_slice(&self.key).unwrap_or_else(|_| unreachable!());
        code.update(name.as_bytes());
        code
    }

    /// What lies under a name; nothing where it is damaged, forged, or another one's.
    fn get(&self, name: &str) -> Option<Artifact> {
        let path = self.path(name);
        let mut bytes = read_own(&path).ok().flatten()?;
        let (given, rest) = bytes.split_first_chunk::<CODE>()?;
        self.code(name).chain_update(rest).verify_slice(given).ok()?;
        bytes.drain(..CODE);
        // For eviction: it has been used.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Artifact::from_bytes(bytes)
    }

    fn put(&self, name: &str, artifact: &Artifact) -> io::Result<()> {
        let code = self.code(name).chain_update(artifact.bytes()).finalize().into_bytes();
        let mut file = NamedTempFile::new_in(&self.folder)?;
        file.write_all(&code)?;
        file.write_all(artifact.bytes())?;
        file.persist(self.path(name))?;
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a folder of ours private that only its group could write to besides, and empties it.
#[cfg(unix)]
fn reclaim(folder: &Path) -> Result<(), CacheError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let failed = |error| CacheError::Io(folder.to_owned(), error);
    let metadata = fs::metadata(folder).map_err(failed)?;
    let only_the_group = metadata.mode() & 0o022 == 0o020 && metadata.uid() == rustix::process::geteuid().as_raw();
    if !only_the_group {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let ours = path.file_name().is_some_and(|name| name == "key")
            || path.extension().is_some_and(|extension| extension == "policy");
        if ours {
            fs::remove_file(&path).map_err(|error| CacheError::Io(path, error))?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn reclaim(_: &Path) -> Result<(), CacheError> {
    Ok(())
}

/// Whether nobody else can read a file.
#[cfg(unix)]
fn private(path: &Path) -> Result<(), CacheError> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).map_err(|error| CacheError::Io(path.to_owned(), error))?;
    if metadata.mode() & 0o077 == 0 { Ok(()) } else { Err(CacheError::KeyExposed(path.to_owned())) }
}

#[cfg(not(unix))]
fn private(_: &Path) -> Result<(), CacheError> {
    Ok(())
}

/// Writes a file unless there is one. It appears whole, and is its owner's alone.
fn write_new(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Each writer, also in the same process, has a file of its own until then.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    match file.persist_noclobber(path) {
        Err(PersistError { error, .. }) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The content of a file that only we can have written; none if it is not there.
fn read_own(path: &Path) -> Result<Option<Vec<u8>>, CacheError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CacheError::Io(path.to_owned(), error)),
    };
    let failed = |error| CacheError::Io(path.to_owned(), error);
    let metadata = file.metadata().map_err(failed)?;
    belongs(path, &metadata)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

fn own(path: &Path) -> Result<(), CacheError> {
    belongs(path, &fs::metadata(path).map_err(|error| CacheError::Io(path.to_owned(), error))?)
}

#[cfg(unix)]
fn belongs(path: &Path, metadata: &fs::Metadata) -> Result<(), CacheError> {
    use std::os::unix::fs::MetadataExt as _;
    if metadata.mode() & 0o022 != 0 {
        return Err(CacheError::Shared(path.to_owned()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(CacheError::Foreign(path.to_owned()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn belongs(_: &Path, _: &fs::Metadata) -> Result<(), CacheError> {
    Ok(())
}

//! Artifacts on disk, so that a restart takes milliseconds.
//!
//! A file of the cache is code that will be run. It is believed only when it carries a code (HMAC-SHA-256, RFC 2104)
//! made with a key that nobody else can read, for exactly the module, the settings, the limits and the engine that are
//! asked for; and the folder is used only when nobody else can write to it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::artifact::{Artifact, compatibility};
use crate::compiler::process::Compiler;
use crate::digest::digest;
use crate::limits::Ceiling;
use ocm_policy_rules::outcome::Fault;

/// Why a folder cannot hold a cache.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Others can write to it, or to a file in it.
    #[error("{0} can be written by others, and what lies there would be run: make it yours alone (chmod go-w)")]
    Shared(PathBuf),
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
}

/// Bytes of the code in front of an artifact.
const CODE: usize = 32;

impl Cache {
    /// Opens a folder, and makes it where it is missing.
    ///
    /// # Errors
    /// When it cannot be used, or others could write to it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, CacheError> {
        let folder = folder.into();
        let failed = |error| CacheError::Io(folder.clone(), error);
        make_folder(&folder).map_err(failed)?;
        own(&folder)?;
        let path = folder.join("key");
        let key = match read_own(&path)? {
            Some(bytes) => {
                bytes.try_into().map_err(|_| failed(io::Error::other("its key is damaged: remove the folder")))?
            }
            None => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(|error| failed(io::Error::other(error)))?;
                // Of two processes that begin at once, the second takes the key of the first.
                write_new(&path, &key).map_err(failed)?;
                let kept = read_own(&path)?.unwrap_or_default();
                kept.try_into().map_err(|_| failed(io::Error::other("its key is damaged: remove the folder")))?
            }
        };
        Ok(Self { folder, key, compatibility: compatibility() })
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
    ) -> Result<Artifact, Fault> {
        let name = self.name(module, settings, ceiling);
        if let Some(artifact) = self.get(&name) {
            return Ok(artifact);
        }
        let artifact = compiler.compile(module, settings, ceiling)?;
        let _ = self.put(&name, &artifact);
        Ok(artifact)
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
        let mut bytes = read_own(&self.path(name)).ok().flatten()?;
        let (given, rest) = bytes.split_first_chunk::<CODE>()?;
        self.code(name).chain_update(rest).verify_slice(given).ok()?;
        bytes.drain(..CODE);
        Artifact::from_bytes(bytes)
    }

    fn put(&self, name: &str, artifact: &Artifact) -> io::Result<()> {
        let code = self.code(name).chain_update(artifact.bytes()).finalize().into_bytes();
        let path = self.path(name);
        let beside = self.folder.join(format!("{name}.{}", std::process::id()));
        let _ = fs::remove_file(&beside);
        let mut file = open_new(&beside)?;
        file.write_all(&code)?;
        file.write_all(artifact.bytes())?;
        drop(file);
        fs::rename(beside, path)
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}", std::process::id()));
    let _ = fs::remove_file(&beside);
    open_new(&beside)?.write_all(bytes)?;
    // A link, unlike a renaming, leaves alone what is there already.
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn open_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
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

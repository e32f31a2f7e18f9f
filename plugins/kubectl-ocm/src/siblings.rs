//! The binaries of verbs: where they are, beside this one first, then on PATH, and how this process becomes one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::output::{FAILED, SUITE, fail};

/// What every binary of a verb begins with. kubectl looks for the same names.
pub(crate) const PREFIX: &str = "kubectl-ocm-";

/// Where a binary was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Beside this binary: of the same installation.
    Sibling,
    /// On PATH.
    Path,
}

/// The folder of this binary, symbolic links resolved: krew links only the dispatcher into its folder on PATH.
pub(crate) fn own_folder() -> Option<PathBuf> {
    let canonical = std::env::current_exe().and_then(|path| path.canonicalize()).ok()?;
    canonical.parent().map(Path::to_path_buf)
}

/// The folders of a PATH that mean the same wherever somebody is. An empty element is the working directory, where a file of
/// anybody may lie.
fn on_path(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
}

/// The binary of a verb. kubectl turns `-` inside a word into `_` in file names, and so do we.
pub(crate) fn find(verb: &str) -> Option<PathBuf> {
    let file = format!("{PREFIX}{}{}", verb.replace('-', "_"), std::env::consts::EXE_SUFFIX);
    let folders = own_folder().into_iter().chain(on_path(&std::env::var_os("PATH").unwrap_or_default()));
    folders.map(|folder| folder.join(&file)).find(|candidate| is_executable(candidate))
}

/// Every verb with the binaries that answer to it, the one that is run first.
pub(crate) fn all() -> BTreeMap<String, Vec<(PathBuf, Origin)>> {
    let mut verbs: BTreeMap<String, Vec<(PathBuf, Origin)>> = BTreeMap::new();
    let own = own_folder();
    let on_path = on_path(&std::env::var_os("PATH").unwrap_or_default());
    let on_path = on_path.into_iter().filter(|folder| folder.canonicalize().ok() != own);
    let folders = own.clone().into_iter().map(|folder| (folder, Origin::Sibling));
    for (folder, origin) in folders.chain(on_path.map(|folder| (folder, Origin::Path))) {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Some(verb) = verb_of(&entry.file_name()) else { continue };
            let found = verbs.entry(verb).or_default();
            let file = entry.path();
            if is_executable(&file) && !found.iter().any(|(known, _)| *known == file) {
                found.push((file, origin));
            }
        }
    }
    verbs.retain(|_, found| !found.is_empty());
    verbs
}

/// The verb that a file name answers to: `kubectl-ocm-tls_check` is `tls-check`.
fn verb_of(file: &OsStr) -> Option<String> {
    let name = file.to_str()?;
    let word = name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(name).strip_prefix(PREFIX)?;
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then(|| word.replace('_', "-"))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Replaces this process by the binary, so that signals, terminal and exit code are its own.
#[cfg(unix)]
pub(crate) fn become_it(binary: &Path, arguments: &[OsString]) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let error = Command::new(binary).args(arguments).env(SUITE, env!("CARGO_PKG_VERSION")).exec();
    fail(FAILED, &format!("cannot run {}: {error}", binary.display()), "install kubectl-ocm again")
}

#[cfg(not(unix))]
pub(crate) fn become_it(binary: &Path, arguments: &[OsString]) -> ExitCode {
    match Command::new(binary).args(arguments).env(SUITE, env!("CARGO_PKG_VERSION")).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)),
        Err(error) => fail(FAILED, &format!("cannot run {}: {error}", binary.display()), "install kubectl-ocm again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn nothing_is_looked_for_in_the_working_directory() {
        for path in ["", ":", ".", ":/usr/bin::bin:.:../x:/opt/bin:"] {
            let found = on_path(OsStr::new(path));
            let expected: &[&str] = if path.contains("usr") { &["/usr/bin", "/opt/bin"] } else { &[] };
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{path:?}");
        }
    }

    #[test]
    fn file_names_answer_to_verbs_as_kubectl_has_it() {
        assert_eq!(verb_of(OsStr::new("kubectl-ocm-tls_check")).as_deref(), Some("tls-check"));
        assert_eq!(verb_of(OsStr::new("kubectl-ocm-join")).as_deref(), Some("join"));
        assert_eq!(verb_of(OsStr::new("kubectl-ocm")), None);
        assert_eq!(verb_of(OsStr::new("kubectl-ocm-join.d")), None);
    }
}

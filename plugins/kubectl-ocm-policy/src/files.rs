//! Files that people name: read within bounds, and written as a whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

pub(crate) use ocm_cli::files::{MOST, documents, read, text, value};
use ocm_core::shell::shell;

/// A path as a word of a command line to type. One that begins with a hyphen would be taken for a flag.
pub(crate) fn word(path: &Path) -> String {
    let text = path.display().to_string();
    shell(&if text.starts_with('-') { format!("./{text}") } else { text })
}

/// Writes a file. Its readers see the old content or the new one, never half of it. It keeps its permissions, and stays where a
/// link to it leads. What is there and is no file, such as a device or a pipe, is written to.
pub(crate) fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    // Renaming would put a file into the place of the device.
    if fs::metadata(file).is_ok_and(|before| !before.is_file()) {
        return OpenOptions::new().write(true).open(file)?.write_all(content);
    }
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = file.with_file_name(name);
    let like_before = || match fs::metadata(&file) {
        Ok(before) => fs::set_permissions(&beside, before.permissions()),
        Err(_) => Ok(()),
    };
    let written = fs::write(&beside, content).and_then(|()| like_before()).and_then(|()| fs::rename(&beside, &file));
    if written.is_err() {
        // What cannot be removed either is told by the error itself.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_stays_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("kept/tests.yaml"), folder.path().join("link.yaml"));
        write(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path().join("kept")).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn paths_are_words_of_a_shell() {
        for (path, told) in [("a/b.wasm", "a/b.wasm"), ("my policies/p", "'my policies/p'"), ("-p", "./-p")] {
            assert_eq!(word(Path::new(path)), told);
        }
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays() {
        use std::io::Read as _;

        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        // Opened for both, so that neither side waits for the other.
        let mut reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        for target in [&pipe, &link] {
            write(target, b"one").unwrap();
            let mut read = [0; 3];
            assert!(fs::metadata(target).unwrap().file_type().is_fifo(), "{}", target.display());
            reader.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"one");
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(write(folder.path(), b"one").is_err(), "a folder is nothing to write to");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside them");
    }
}

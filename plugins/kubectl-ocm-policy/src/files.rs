//! Files that people name: read within bounds, and written as a whole.

use std::fs;
use std::io;
use std::path::Path;

pub(crate) use ocm_cli::files::{MOST, documents, read, text, value};

/// Writes a module. Readers of the file see the old one or the new one, never half of it.
pub(crate) fn write(file: &Path, module: &[u8]) -> io::Result<()> {
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    let beside = file.with_extension(format!("wasm.{}", std::process::id()));
    let written = fs::write(&beside, module).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        // What cannot be removed either is told by the error itself.
        let _ = fs::remove_file(&beside);
    }
    written
}

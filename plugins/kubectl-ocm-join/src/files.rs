//! Files that flags name.

use std::path::Path;

use ocm_core::Failure;

/// Reads the file that a flag names.
pub(crate) fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::usage(format!("cannot read {flag} {}", path.display())).because(error))
}

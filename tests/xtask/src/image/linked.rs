//! An image of a binary as it was built for this machine, with the libraries that it is linked with: to try it on a test
//! cluster, without the minutes that linking everything in takes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::{Image, Platform, archive};

/// The archive of such an image.
///
/// # Errors
/// When the binary or one of its libraries cannot be read.
pub fn linked(name: &'static str, reference: &str, binary: &Path) -> Result<Vec<u8>, String> {
    let read = |file: &Path| fs::read(file).map_err(|error| format!("reading {}: {error}", file.display()));
    let files = libraries(binary)?.into_iter().map(|file| {
        let path = file.to_str().ok_or_else(|| format!("the path {} must be UTF-8", file.display()))?;
        Ok((path.trim_start_matches('/').to_owned(), read(&file)?))
    });
    let image = Image {
        name,
        reference: reference.to_owned(),
        labels: Vec::new(),
        platforms: vec![Platform {
            architecture: if env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" },
            binary: read(binary)?,
            files: files.collect::<Result<_, String>>()?,
        }],
        packed: false,
    };
    archive(&image).map(|archive| archive.bytes).map_err(|error| format!("the image {reference}: {error}"))
}

/// The files that the dynamic linker loads for a program, itself among them.
fn libraries(binary: &Path) -> Result<Vec<PathBuf>, String> {
    let said = Command::new("ldd").arg(binary).output().map_err(|error| format!("starting ldd: {error}"))?;
    let said = String::from_utf8_lossy(&said.stdout);
    Ok(said.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

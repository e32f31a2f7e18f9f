//! From a package to an archive and its lists.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum as _};

use super::architecture::Architecture;
use super::archive::{Image, Platform, archive};
use super::smoke::smoke;
use super::{build, program, sbom};
use crate::places::target;

/// The program of the policy engine.
const PACKAGE: &str = "ocm-policy-webhook";
/// Where an image is that is in no registry.
const NOWHERE: &str = "localhost";

/// Arguments of `cargo xtask image`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The package whose binary becomes the image's entry point
    #[arg(long, value_name = "NAME", default_value = PACKAGE)]
    pub package: String,
    /// Processors to build for
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME", default_value = "amd64")]
    pub arch: Vec<Architecture>,
    /// Registry and repository that the image is named after
    #[arg(long, value_name = "NAME", default_value = NOWHERE)]
    pub registry: String,
    /// Build with the dev profile, to try the packaging
    #[arg(long)]
    pub dev: bool,
    /// Also run the image as a pod on a test cluster; needs root
    #[arg(long = "try")]
    pub try_it: bool,
}

impl Arguments {
    /// Those of the policy engine as it is shipped.
    pub(super) fn for_every_processor() -> Self {
        Self {
            package: PACKAGE.to_owned(),
            arch: Architecture::value_variants().to_vec(),
            registry: NOWHERE.to_owned(),
            dev: false,
            try_it: false,
        }
    }
}

/// What was built and written.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// The binary for each processor.
    pub(super) binaries: Vec<(Architecture, PathBuf)>,
    /// What is linked into each of them.
    pub(super) lists: Vec<PathBuf>,
    /// The image.
    pub(super) archive: PathBuf,
    /// Its name, without its digest.
    pub(super) reference: String,
}

/// Builds the binary for each processor, and writes the archive and the lists.
///
/// # Errors
/// What could not be had, built or written, and why.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let made = make(arguments)?;
    if arguments.try_it {
        let said = smoke(&made.archive, &made.reference, &["--version"])?;
        println!("ran as a pod and said: {}", said.trim());
    }
    Ok(())
}

/// The same without trying it.
pub(super) fn make(arguments: &Arguments) -> Result<Made, String> {
    let Arguments { package, arch, registry, dev, try_it: _ } = arguments;
    let folder = target()?.join("image");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let write = |name: String, bytes: &[u8]| -> Result<PathBuf, String> {
        let file = folder.join(name);
        fs::write(&file, bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("wrote {}", file.display());
        Ok(file)
    };
    let version = env!("CARGO_PKG_VERSION");
    // Before the minutes of the build, in which somebody may check out another commit.
    let labels = labels(package)?;
    let (mut platforms, mut binaries, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for architecture in arch {
        let binary = build::binary(package, *architecture, !dev)?;
        let bytes = fs::read(&binary).map_err(|error| format!("{}: {error}", binary.display()))?;
        program::check(&bytes, *architecture).map_err(|why| format!("{}: {why}", binary.display()))?;
        let listed = sbom::of(package, architecture.triple())?;
        let name = format!("{package}-{version}-linux-{}.cdx.json", architecture.name());
        lists.push(write(name, listed.as_bytes())?);
        platforms.push(Platform { architecture: architecture.name(), binary: bytes, files: Vec::new() });
        binaries.push((*architecture, binary));
    }
    let image =
        Image { name: package, reference: format!("{registry}/{package}:{version}"), labels, platforms, packed: true };
    let written = archive(&image).map_err(|error| format!("writing the archive: {error}"))?;
    let archive = write(format!("{package}-{version}.tar"), &written.bytes)?;
    println!("image {}@{}", image.reference, written.digest);
    Ok(Made { binaries, lists, archive, reference: image.reference })
}

/// What the image says of itself, in the words of the OCI specification.
fn labels(package: &str) -> Result<Vec<(&'static str, String)>, String> {
    let found = sbom::package(package)?;
    Ok(vec![
        ("org.opencontainers.image.title", package.to_owned()),
        ("org.opencontainers.image.description", found.description),
        ("org.opencontainers.image.version", found.version),
        ("org.opencontainers.image.licenses", found.licence),
        ("org.opencontainers.image.revision", revision()?),
    ])
}

/// The commit, and whether something is changed beside it.
fn revision() -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]).current_dir(cli_tests::root());
    let done = git.output().map_err(|error| format!("git cannot be started: {error}"))?;
    if !done.status.success() {
        return Err(format!("git does not tell the commit: {}", String::from_utf8_lossy(&done.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

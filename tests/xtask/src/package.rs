//! `cargo xtask package`: the archive of this platform, and the manifest for krew.

use std::fs;

use clap::Args;
use flate2::Compression;

use crate::archive::{archive, digest, manifest};
use crate::krew;
use crate::places::target;

/// Arguments of `cargo xtask package`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Also write the manifest for krew, for releases of the repository at this address
    #[arg(long, value_name = "URL")]
    pub repository: Option<String>,
    /// Pack binaries of the dev profile, to try the packaging
    #[arg(long)]
    pub dev: bool,
    /// Also install the archive with the real krew into an empty directory, run every verb, and uninstall it
    #[arg(long = "try")]
    pub try_it: bool,
}

/// Builds the binaries and packs them.
///
/// # Errors
/// When they cannot be built, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let Arguments { repository, dev, try_it } = arguments;
    let target = target()?;
    let binaries = cli_tests::build(&target, !dev, false)?;
    let folder = target.join("package");
    let archive = archive(&binaries, &folder, if *dev { Compression::fast() } else { Compression::best() })?;
    println!("wrote {}\nsha256 {}", archive.display(), digest(&archive)?);
    if let Some(repository) = repository {
        let text = manifest(&folder, repository)?;
        let file = folder.join("plugins/ocm.yaml");
        fs::create_dir_all(folder.join("plugins")).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("wrote {}", file.display());
    }
    if *try_it {
        let kubectl = control_plane::binaries().map_err(|error| error.to_string())?.kubectl();
        krew::smoke(&binaries, kubectl)?;
    }
    Ok(())
}

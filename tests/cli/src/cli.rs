//! A person who runs the commands.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::binaries::{binary, folder};
use crate::run::Run;
use crate::snapshot::escape;

/// A person with a home of their own and nothing in the environment.
#[derive(Debug)]
pub struct Cli {
    home: TempDir,
    envs: Vec<(OsString, OsString)>,
}

impl Default for Cli {
    fn default() -> Self {
        Self::new()
    }
}

impl Cli {
    /// A new home, without a kubeconfig.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    pub fn new() -> Self {
        let home = tempfile::Builder::new().prefix("ocm-cli-").tempdir().expect("a home can be made");
        Self { home, envs: Vec::new() }
    }

    /// A new home with a kubeconfig in its usual place.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn with_kubeconfig(text: &str) -> Self {
        let cli = Self::new();
        cli.write(".kube/config", text);
        cli
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.envs.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file below the home and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.home().join(name);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).expect("a folder can be made");
        }
        fs::write(&file, text).expect("a file can be written");
        file
    }

    /// Runs `kubectl ocm` with these words, by the dispatcher.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Run {
        self.run_file(&binary("kubectl-ocm"), words)
    }

    /// Runs a binary by its path.
    pub fn run_file<S: AsRef<OsStr>>(&self, file: &Path, words: impl IntoIterator<Item = S>) -> Run {
        Run::of(self.command(file).args(words))
    }

    /// The command that `run_file` runs.
    pub fn command(&self, file: &Path) -> Command {
        let mut command = Command::new(file);
        command.env_clear().env("HOME", self.home()).env("PATH", "/usr/bin:/bin").current_dir(self.home());
        for (name, value) in &self.envs {
            command.env(name, value);
        }
        command
    }

    /// What differs between machines and runs, and what stands in its place in a snapshot.
    pub fn filters(&self) -> Vec<(String, &'static str)> {
        let folder = folder();
        vec![
            (escape(&self.home().display().to_string()), "[HOME]"),
            (escape(&folder.display().to_string()), "[BIN]"),
            (escape(&fs::canonicalize(folder).unwrap_or_default().display().to_string()), "[BIN]"),
            (r"\b127\.\d+\.\d+\.\d+:\d+".to_owned(), "[SERVER]"),
        ]
    }
}

//! Running the commands as people do, and looking at exit code, stdout and stderr.
//!
//! ```text
//! Cli::new()            a home of its own, a clean environment, the binaries just built
//!   .kubeconfig(text)   what the commands read
//!   .env(name, value)
//!   .run(["accept", "c1"]) ─▶ Run { exit, stdout, stderr } ─▶ snapshot
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

mod binaries;
pub mod docs;
mod guest;
pub mod proxy;
mod run;
pub mod server;
pub mod terminal;
pub mod tree;

pub use binaries::{binaries, binary, build, build_some, file_name, folder, root};
pub use guest::{guests, target};
pub use launcher::{BINARIES, cargo};
pub use run::Run;

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

/// Compares a text with its snapshot, with what differs between machines replaced. Who uses it depends on `insta`.
#[macro_export]
macro_rules! check {
    ($name:expr, $cli:expr, $text:expr) => {{
        let filters = $cli.filters();
        let filters: Vec<(&str, &str)> = filters.iter().map(|(from, to)| (from.as_str(), *to)).collect();
        insta::with_settings!({ filters => filters, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name.to_string(), $text.to_string());
        });
    }};
}

/// A text that a regular expression takes by the letter.
pub fn escape(text: &str) -> String {
    text.chars().flat_map(|c| (!c.is_alphanumeric() && c.is_ascii()).then_some('\\').into_iter().chain([c])).collect()
}

/// A kubeconfig with one cluster, user and context for each name, all with this server. The first is the current one.
pub fn kubeconfig(server: &str, names: &[&str]) -> String {
    let list = |entry: &dyn Fn(&str) -> String| names.iter().map(|name| entry(name)).collect::<String>();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {}\nclusters:\n{}users:\n{}contexts:\n{}",
        names.first().copied().unwrap_or_default(),
        list(&|name| format!("- name: {name}\n  cluster: {{ server: \"{server}\" }}\n")),
        list(&|name| format!("- name: {name}-admin\n  user: {{ token: secret }}\n")),
        list(&|name| format!("- name: {name}\n  context: {{ cluster: {name}, user: {name}-admin }}\n")),
    )
}

/// The certificate of an authority that is valid from 2025 to 2035, in PEM: one in each program.
///
/// # Panics
/// When it cannot be made.
pub fn authority() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2025, 1, 1), rcgen::date_time_ymd(2035, 1, 1));
        params.self_signed(&key).expect("a certificate").pem()
    })
}

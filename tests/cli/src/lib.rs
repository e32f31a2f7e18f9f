//! Running the commands as people do, and looking at exit code, stdout and stderr.
//!
//! ```text
//! Cli::new()            a home of its own, a clean environment, the binaries just built
//!   .kubeconfig(text)   what the commands read
//!   .env(name, value)
//!   .run(["accept", "c1"]) ─▶ Run { exit, stdout, stderr } ─▶ snapshot
//! ```

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use tempfile::TempDir;

pub mod docs;
mod guest;
pub mod proxy;
pub mod server;
pub mod terminal;
pub mod tree;

pub use guest::{guests, target};
pub use launcher::{BINARIES, cargo};

/// How a command ended and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The exit code; -1 when a signal ended it.
    pub exit: i32,
    /// What is data.
    pub stdout: String,
    /// What is narration.
    pub stderr: String,
}

impl Run {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn of(command: &mut Command) -> Self {
        command.stdin(Stdio::null());
        let mut done = command.output();
        // A program that a test has just written is still open in children that other tests start in that moment.
        for _ in 0..100 {
            if !done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            done = command.output();
        }
        let done = done.unwrap_or_else(|error| panic!("cannot start {}: {error}", command.get_program().display()));
        Self {
            exit: done.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        }
    }
}

/// The form of snapshots.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit: {}\n--- stdout\n{}--- stderr\n{}", self.exit, self.stdout, self.stderr)
    }
}

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

/// The hub's webhook, which is no command of people.
const WEBHOOK: &str = "ocm-policy-webhook";

/// The binaries: packages of the workspace that are people's commands, from their folders. The dispatcher comes first.
///
/// # Panics
/// When the folder of the plugins cannot be read.
pub fn binaries() -> Vec<String> {
    let folder = root().join("plugins");
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("kubectl-ocm"))
        .collect();
    names.sort();
    names
}

/// The file name of a binary, as kubectl has it: `-` inside a verb becomes `_`.
pub fn file_name(name: &str) -> String {
    match name.strip_prefix("kubectl-ocm-") {
        Some(verb) => format!("kubectl-ocm-{}", verb.replace('-', "_")),
        None => name.to_owned(),
    }
}

/// The folder of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(Path::parent).unwrap_or(here)
}

/// The path of a binary, as new as its sources.
pub fn binary(name: &str) -> PathBuf {
    folder().join(file_name(name))
}

/// The folder that holds the binaries of all of them: the one that [`BINARIES`] names, or else built of the profile of this
/// process.
///
/// # Panics
/// When they cannot be built.
pub fn folder() -> &'static Path {
    // A build that failed once fails for all.
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = FOLDER.get_or_init(|| {
        if let Some(folder) = env::var_os(BINARIES) {
            return Ok(folder.into());
        }
        let own = env::current_exe().expect("a process has an executable");
        // A test is TARGET/PROFILE/deps/NAME-HASH, another command is TARGET/PROFILE/NAME.
        let mut profile = own.parent().unwrap_or(Path::new("/"));
        if profile.file_name().is_some_and(|name| name == "deps" || name == "examples") {
            profile = profile.parent().unwrap_or(profile);
        }
        let release = profile.file_name().is_some_and(|name| name == "release");
        let names = [binaries(), vec![WEBHOOK.to_owned()]].concat();
        build_some(&names, profile.parent().unwrap_or(profile), release, true)
    });
    built.as_ref().unwrap_or_else(|why| panic!("{why}"))
}

/// Builds the binaries of all of them into a target directory and returns their folder. Cargo is quick when nothing
/// changed.
///
/// # Errors
/// What the compiler said, when they cannot be built.
pub fn build(target: &Path, release: bool, quiet: bool) -> Result<PathBuf, String> {
    build_some(&binaries(), target, release, quiet)
}

/// The same for some of them.
///
/// # Errors
/// What the compiler said, when they cannot be built.
pub fn build_some(names: &[String], target: &Path, release: bool, quiet: bool) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--bins", "--target-dir"]).arg(target).current_dir(root());
    for name in names {
        command.args(["--package", name]);
    }
    if release {
        command.arg("--release");
    }
    if !quiet {
        return match command.stdin(Stdio::null()).status() {
            Ok(status) if status.success() => Ok(target.join(if release { "release" } else { "debug" })),
            Ok(_) => Err("the commands cannot be built".to_owned()),
            Err(error) => Err(format!("cannot start Cargo: {error}")),
        };
    }
    let run = Run::of(command.arg("--quiet"));
    match run.exit {
        0 => Ok(target.join(if release { "release" } else { "debug" })),
        _ => Err(format!("the commands cannot be built:\n{}", run.stderr)),
    }
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

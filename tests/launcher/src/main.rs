//! `cargo demo`, `cargo verify`, `cargo soak`: builds xtask and becomes it.
#![expect(clippy::print_stderr, reason = "a command speaks on its standard streams")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use launcher::{BINARIES, Progress, Step, cargo};

/// The policy engine takes minutes to compile. It is shown only on clusters that the demo starts: to put an image on the
/// nodes of others is not ours.
const POLICY_ENGINE: [&str; 2] = ["kubectl-ocm-policy", "ocm-policy-webhook"];
/// How the demo is built otherwise than tests: nobody debugs it. The compiler of modules stays optimised all the same: without that
/// the demo is built a minute sooner, and shows its policies a minute later.
const UNDEBUGGED: &str = "profile.dev.debug=0";
/// The flags of a demo.
const FLAGS: [&str; 5] = ["--hub-context", "--managed-context", "--kubeconfig", "--bundle-version", "--exit"];

fn main() -> ExitCode {
    match run() {
        Ok(never) => match never {},
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<std::convert::Infallible, String> {
    let own = env::current_exe().map_err(|error| format!("finding our own program: {error}"))?;
    // TARGET/PROFILE/launcher.
    let folder = own.parent().ok_or("this program is in no directory")?;
    let target = folder.parent().ok_or("this program is in no target directory")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("this program has no workspace")?;
    let words: Vec<_> = env::args_os().skip(1).collect();
    let demo = is_a_demo(&words);
    let clusters = demo && !words.iter().any(|word| word.to_string_lossy().starts_with("--hub-context"));
    let mut packages = vec!["xtask".to_owned()];
    if clusters {
        download(root);
    }
    if demo {
        packages.push("control-plane".to_owned());
        packages.extend(commands(&root.join("plugins"))?);
        if clusters {
            packages.extend(POLICY_ENGINE.map(str::to_owned));
        }
    }
    let step = Step {
        number: 1,
        of: if clusters { 4 } else { 1 },
        what: if demo { "building the commands" } else { "building the tools of this repository" },
        usual: Duration::from_secs(if clusters {
            300
        } else if demo {
            150
        } else {
            60
        }),
    };
    build(root, target, &packages, demo.then_some(UNDEBUGGED), step)?;
    let mut tool = Command::new(folder.join("xtask"));
    tool.args(words);
    if demo {
        tool.env(BINARIES, folder);
    }
    Err(format!("starting {}: {}", folder.join("xtask").display(), tool.exec()))
}

/// Whether the words begin a demo. Not with `--down`, with a question for help, or with a flag that xtask does not know and
/// refuses: then xtask is all that is needed.
fn is_a_demo(words: &[OsString]) -> bool {
    let [verb, rest @ ..] = words else { return false };
    let flags = rest.iter().map(|word| word.to_string_lossy()).filter(|word| word.starts_with('-'));
    verb == "demo" && flags.into_iter().all(|flag| FLAGS.contains(&flag.split('=').next().unwrap_or_default()))
}

/// Downloads the Go modules of Kubernetes and Open Cluster Management, which the processor does not notice. What is
/// needed in the end, and a mistake in it, is found out by the step that compiles them.
fn download(root: &Path) {
    let folder = root.join("tests/control-plane/binaries");
    thread::spawn(move || {
        let mut go = Command::new("go");
        go.args(["list", "-deps", "tool"]).current_dir(folder).env("GOWORK", "off").env("GOFLAGS", "");
        go.env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0");
        go.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    });
}

/// The packages of the commands that the demo shows, but for the policy engine's.
fn commands(plugins: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(plugins).map_err(|error| format!("reading {}: {error}", plugins.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("kubectl-ocm") && !POLICY_ENGINE.contains(&name.as_str()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds packages in one go, so that none of what they share is compiled twice with other features.
fn build(
    root: &Path,
    target: &Path,
    packages: &[String],
    setting: Option<&str>,
    step: Step,
) -> Result<PathBuf, String> {
    let progress = Progress::begin(step);
    let selected = || packages.iter().flat_map(|package| ["--package", package.as_str()]);
    let mut command = cargo();
    command.current_dir(root).stdin(Stdio::null());
    command.args(["build", "--quiet", "--bins", "--message-format", "json-render-diagnostics", "--target-dir"]);
    command.arg(target).args(selected()).args(setting.into_iter().flat_map(|setting| ["--config", setting]));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start Cargo: {error}"))?;
    let errors = child.stderr.take().map(|mut stderr| {
        thread::spawn(move || {
            let mut said = String::new();
            // What cannot be read cannot be shown.
            let _ = stderr.read_to_string(&mut said);
            said
        })
    });
    let total = total(root, &selected().collect::<Vec<_>>());
    let mut built = BTreeSet::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok)) {
        if let Some(package) = artifact(&line) {
            built.insert(package.to_owned());
            progress.at(match total {
                Some(total) => format!("{} of {total} crates", built.len().min(total)),
                None => format!("{} crates", built.len()),
            });
        }
    }
    let done = child.wait().map_err(|error| format!("waiting for Cargo: {error}"))?;
    drop(progress);
    if done.success() {
        return Ok(target.to_path_buf());
    }
    let said = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Err(format!("the tools of this repository cannot be built:\n{said}"))
}

/// The package of which a message of Cargo says that it is compiled.
fn artifact(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(r#"{"reason":"compiler-artifact","package_id":""#)?;
    rest.split('"').next()
}

/// How many crates there are to compile; none when Cargo does not say.
fn total(root: &Path, selected: &[&str]) -> Option<usize> {
    let mut command = cargo();
    command.current_dir(root).stdin(Stdio::null());
    command.args(["tree", "--quiet", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]).args(selected);
    let output = command.stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let crates: BTreeSet<_> =
        text.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty()).collect();
    (!crates.is_empty()).then_some(crates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_demo_needs_the_commands() {
        let demo = |words: &str| is_a_demo(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        for words in
            ["demo", "demo --exit", "demo --hub-context=h --managed-context c1 --bundle-version v1 --kubeconfig f"]
        {
            assert!(demo(words), "{words}");
        }
        for words in ["verify", "demo --help", "demo -h", "demo --down", "demo --keep --down", "demo --frobnicate"] {
            assert!(!demo(words), "{words}");
        }
    }

    #[test]
    fn compiled_crates_are_counted() {
        let line =
            r#"{"reason":"compiler-artifact","package_id":"registry+https://x#serde@1.0.0","manifest_path":"…"}"#;
        assert_eq!(artifact(line), Some("registry+https://x#serde@1.0.0"));
        assert_eq!(artifact(r#"{"reason":"build-script-executed","package_id":"x"}"#), None);
    }
}

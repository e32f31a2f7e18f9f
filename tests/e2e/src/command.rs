//! Commands, and how they ended.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The command `kubectl ocm VERB` as it is in the sources now, against a cluster.
///
/// # Panics
///
/// When it cannot be built.
pub fn kubectl_ocm(verb: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(cli_tests::binary(&format!("kubectl-ocm-{verb}")));
    command.env("KUBECONFIG", kubeconfig).env("KUBECTL_OCM_PROGRESS", "never").stdin(Stdio::null());
    command
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Data.
    pub stdout: String,
    /// Narration.
    pub stderr: String,
}

/// Runs a command to its end.
///
/// # Panics
///
/// When it cannot be started.
pub fn run(command: &mut Command) -> Said {
    said(command.output().expect("the command starts"))
}

/// Starts a command.
///
/// # Panics
///
/// When it cannot be started.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")
}

/// Waits until a command has ended.
///
/// # Panics
///
/// When what it says cannot be read.
pub fn ended(child: Child) -> Said {
    said(child.wait_with_output().expect("it ends"))
}

fn said(output: Output) -> Said {
    let Output { status, stdout, stderr } = output;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Said {
    /// How it ended and its last words, for snapshots: what it told on the way depends on how quick everything was.
    pub fn ending(&self) -> String {
        let error = self.stderr.find("error: ").map_or(&*self.stderr, |at| &self.stderr[at..]);
        let code = self.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string());
        format!("exit: {code}\n--- stdout\n{}--- stderr\n{error}", self.stdout)
    }
}

/// What differs between runs and releases in the ending of a command, and what stands there instead.
pub const VARYING: [(&str, &str); 5] = [
    (r"https://\d+\.\d+\.\d+\.\d+:\d+", "https://[SERVER]"),
    (r"\b(cluster-manager|klusterlet)-[a-z0-9]{6,10}-[a-z0-9]{5}\b", "[POD]"),
    (r"after \d+s\b", "after [TIME]"),
    // The words of the scheduler and of the container runtime.
    (r"nodes are available: .*", "nodes are available: [WHY]"),
    (r"cannot be pulled: .*", "cannot be pulled: [WHY]"),
];

/// Compares the ending of a command with its snapshot. Who uses it depends on `insta`.
#[macro_export]
macro_rules! ends_as {
    ($name:expr, $said:expr) => {
        insta::with_settings!({ filters => $crate::VARYING, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($name.to_string(), $said.ending());
        })
    };
}

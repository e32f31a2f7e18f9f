//! One run of a command.

use std::fmt;
use std::process::{Command, Stdio};

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

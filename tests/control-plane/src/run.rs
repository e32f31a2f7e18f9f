//! Running other programs, and what they said last.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Trying as _};

/// Runs a command to its end and returns what it wrote, or its error output as the error.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.output().trying(|| format!("starting {name}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    Err(Error::host(format!(
        "{name} {} failed ({}): {}",
        arguments.join(" "),
        out.status,
        last_lines(&String::from_utf8_lossy(&out.stderr), 5)
    )))
}

/// The last lines of a text: what a person needs to see of a log.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The last lines of a log file, or a note that there is none.
pub(crate) fn tail(file: &Path, count: usize) -> String {
    match fs::read(file) {
        Ok(bytes) => {
            let from = bytes.len().saturating_sub(16 * 1024);
            last_lines(&String::from_utf8_lossy(&bytes[from..]), count)
        }
        Err(error) => format!("(no log: {error})"),
    }
}

/// Whether we are root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

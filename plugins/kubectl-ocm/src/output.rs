//! What the dispatcher prints, and how it ends.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::visible::is_visible;

/// The documented exit codes that the dispatcher itself uses.
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;

/// Passes the dispatcher's version to the binary of a verb, so that it can warn when its own is another.
pub(crate) const SUITE: &str = "KUBECTL_OCM_SUITE";

/// Writes data to stdout. A reader that went away has seen enough.
pub(crate) fn show(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// Text in which a terminal finds nothing but characters to show.
pub(crate) fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if is_visible(c) { vec![c] } else { c.escape_default().collect() }).collect()
}

/// Writes an error in the suite's form.
pub(crate) fn fail(code: u8, message: &str, hint: &str) -> ExitCode {
    // There is nobody left to tell when stderr is gone.
    let _ = writeln!(io::stderr(), "error: {}\n  hint: {}", plain(message), plain(hint));
    ExitCode::from(code)
}

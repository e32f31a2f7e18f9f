//! How far long preparations are.

use std::io::{self, Write as _};

/// Something to tell about a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// What begins, or is waited for.
    Said(&'a str),
    /// How many Go packages were compiled or begun, and how many there are in all. Those that were compiled in an
    /// earlier run count as left until the end.
    Compiled {
        /// Compiled so far.
        done: usize,
        /// All.
        total: usize,
    },
}

/// Who hears how far a preparation is; from several threads.
pub type Observer<'a> = &'a (dyn Fn(Progress<'_>) + Sync);

/// Prints what is said. Progress is never a reason to fail.
pub fn print(progress: Progress<'_>) {
    if let Progress::Said(text) = progress {
        let _ = writeln!(io::stderr(), "{text}");
    }
}

//! `kubectl ocm`: finds the binary of a verb and becomes it. Standard library only, so that it starts in no time.

use std::process::ExitCode;

mod completion;
mod dispatch;
mod output;
mod siblings;
mod stamp;
mod version;
// The rule for "did you mean" is the suite's own; compiled in here, because this binary links nothing else.
#[path = "../../lib/core/src/nearest.rs"]
mod nearest;

fn main() -> ExitCode {
    dispatch::main(std::env::args_os())
}

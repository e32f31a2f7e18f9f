//! `kubectl ocm`: finds the binary of a verb and becomes it. Standard library only, so that it starts in no time.

use std::process::ExitCode;

mod completion;
mod dispatch;
mod nearest;
mod output;
mod siblings;
mod stamp;
mod verbs;
mod version;
mod visible;

fn main() -> ExitCode {
    dispatch::main(std::env::args_os())
}

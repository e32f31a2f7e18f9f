//! What is done to a cluster again and again, as by somebody whose word stands against another one's.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two turns.
const PAUSE: Duration = Duration::from_millis(500);

/// A command that is run again and again, until this ends.
pub(super) struct Keeper {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Runs the command with these words behind its own.
    pub(super) fn start(command: &Command, words: Vec<String>) -> Self {
        let program = command.get_program().to_owned();
        let first: Vec<OsString> = command.get_args().map(OsStr::to_owned).collect();
        let (end, ended) = channel();
        let thread = thread::spawn(move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                // What is refused now is done at the next turn.
                let _ = Command::new(&program).args(&first).args(&words).stdin(Stdio::null()).output();
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Keeper {
    /// Ends it, and waits until nothing of it is on its way.
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until;

    #[test]
    fn a_command_is_run_until_its_keeper_ends_and_not_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("turns");
        let turns = || std::fs::read_to_string(&file).unwrap_or_default().len();
        let mut command = Command::new("sh");
        command.args(["-c", "printf x >> \"$0\""]);
        let keeper = Keeper::start(&command, vec![file.display().to_string()]);
        until("it has been run twice", || turns() >= 2);
        drop(keeper);
        let last = turns();
        thread::sleep(PAUSE * 3);
        assert_eq!(turns(), last);
    }
}

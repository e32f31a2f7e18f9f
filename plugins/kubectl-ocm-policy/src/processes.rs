//! Programs that a verb starts, and that do not outlive it.

use std::io::{self, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ocm_core::Failure;

/// The programs that are running.
#[derive(Clone, Default)]
pub(crate) struct Processes(Arc<Mutex<Vec<u32>>>);

/// Ends them when it is dropped: when the verb is done, or was interrupted.
#[derive(Default)]
pub(crate) struct Guard(Processes);

impl Guard {
    pub(crate) fn processes(&self) -> Processes {
        self.0.clone()
    }
}

/// Runs and compiles modules on another thread, so that this one notices Ctrl-C whatever they do.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce(Processes) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let guard = Guard::default();
    let processes = guard.processes();
    let done = tokio::task::spawn_blocking(move || work(processes)).await;
    let done = done.map_err(|error| Failure::other("this is a defect of kubectl ocm policy").because(error));
    drop(guard);
    done?
}

impl Drop for Guard {
    fn drop(&mut self) {
        for child in self.0.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            end(child);
        }
    }
}

impl Processes {
    /// Runs a program to its end and returns what it wrote to stdout; its stderr is ours.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn output(&self, command: &mut Command) -> io::Result<Output> {
        // A group of its own, so that a tool ends together with what it has started.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let child = self.spawn(child)?;
        let id = child.id();
        let output = child.wait_with_output();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != id);
        output
    }

    /// Runs a program that reads `input` to its end, and returns what it wrote to stdout; its stderr is ours.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn answer(&self, command: &mut Command, input: &[u8]) -> io::Result<Output> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = self.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()))?;
        let id = child.id();
        // One that does not want to read says what it has to say all the same.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
        let output = child.wait_with_output();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != id);
        output
    }

    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // Held while it starts, so that an interruption in between cannot miss it.
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn()?;
        running.push(child.id());
        Ok(child)
    }
}

#[cfg(unix)]
fn end(child: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(child).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process_group(group, Signal::TERM);
        std::thread::sleep(Duration::from_millis(50));
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end(_: u32) {
    std::thread::sleep(Duration::ZERO);
}

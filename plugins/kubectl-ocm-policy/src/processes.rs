//! Programs that a verb starts and folders that it makes for them: neither outlives it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ocm_core::Failure;
use tempfile::TempDir;

/// The programs that are running.
#[derive(Clone, Default)]
pub(crate) struct Processes(Arc<Mutex<Running>>);

/// Programs, and the folders that they work in.
#[derive(Default)]
struct Running {
    programs: Vec<u32>,
    folders: Vec<PathBuf>,
}

/// A folder for what programs leave behind. It is gone when this is dropped.
pub(crate) struct Folder {
    folder: TempDir,
    processes: Processes,
}

/// Ends them, and removes their folders, when it is dropped: when the verb is done, or was interrupted.
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
        let mut running = self.0.running();
        for child in running.programs.drain(..) {
            end(child);
        }
        // The thread that made them may not come to it any more: the process ends without waiting for it.
        for folder in running.folders.drain(..) {
            // What cannot be removed is the system's to clean.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whoever makes a folder of this name later keeps it.
        self.processes.running().folders.retain(|known| known != self.folder.path());
    }
}

impl Processes {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a folder that is for this user alone: what lies in it becomes part of a policy.
    ///
    /// # Errors
    /// When there can be none in the folder for temporary files.
    pub(crate) fn folder(&self) -> io::Result<Folder> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("kubectl-ocm-policy-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        // Held meanwhile, so that an interruption in between cannot miss it.
        let mut running = self.running();
        let folder = builder.tempdir()?;
        running.folders.push(folder.path().to_owned());
        Ok(Folder { folder, processes: self.clone() })
    }

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
        self.running().programs.retain(|known| *known != id);
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
        self.running().programs.retain(|known| *known != id);
        output
    }

    fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // Held while it starts, so that an interruption in between cannot miss it.
        let mut running = self.running();
        let child = command.spawn()?;
        running.programs.push(child.id());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_do_not_outlive_a_verb_that_is_interrupted() {
        let guard = Guard::default();
        let processes = guard.processes();
        let (done, open) = (processes.folder().unwrap(), processes.folder().unwrap());
        assert_ne!(done.path(), open.path(), "processes of one number have folders of their own");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(open.path()).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let before = done.path().to_owned();
        drop(done);
        assert!(!before.exists());
        fs::create_dir(&before).unwrap();
        fs::write(open.path().join("left"), "").unwrap();
        // The thread that holds the folder goes on for a while.
        drop(guard);
        assert!(!open.path().exists() && before.exists(), "what is made anew under a name is not ours");
        fs::remove_dir(before).unwrap();
    }
}

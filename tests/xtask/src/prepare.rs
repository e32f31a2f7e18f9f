//! What test clusters run, and tools: minutes of compiling on a new machine, so it goes on beside everything else.

use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, thread};

use control_plane::{Binaries, Observer};

use crate::deny;

/// Builds and installs what is missing, behind everything else that this machine does.
///
/// # Errors
/// What cannot be had, and why.
pub fn here() -> Result<(), String> {
    // Without the right to step back we are merely in the way of others.
    let _ = rustix::process::nice(10);
    everything(&control_plane::print)?;
    if rustix::process::geteuid().is_root() {
        control_plane::proxy_program(&control_plane::print).map_err(|error| error.to_string())?;
    }
    deny::program().map(drop)
}

/// Builds the binaries of the clusters, and installs the packages that nodes need beside that, where we may.
///
/// # Errors
/// What cannot be had, and why.
pub fn everything(observe: Observer<'_>) -> Result<&'static Binaries, String> {
    let packages = || match rustix::process::geteuid().is_root() {
        true => control_plane::packages(observe),
        false => Ok(()),
    };
    let (packages, binaries) = both(packages, || control_plane::binaries_observed(observe));
    packages.map_err(|error| error.to_string())?;
    binaries.map_err(|error| error.to_string())
}

/// The preparation as a process of its own.
#[derive(Debug)]
pub struct Beside {
    child: Child,
    begun: Instant,
}

impl Beside {
    /// Starts it.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn start() -> Result<Self, String> {
        let own = env::current_exe().map_err(|error| format!("finding our own program: {error}"))?;
        let child = Command::new(own).arg("prepare").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Self { child: child.map_err(|error| format!("starting ourselves: {error}"))?, begun: Instant::now() })
    }

    /// Waits for its end, and says how long it took all in all.
    ///
    /// # Errors
    /// When something could not be had; it has said what.
    pub fn wait(mut self) -> Result<f32, String> {
        let done = self.child.wait().map_err(|error| format!("waiting for the preparation: {error}"))?;
        let took = self.begun.elapsed().as_secs_f32();
        if done.success() { Ok(took) } else { Err("what the test clusters run could not be prepared".to_owned()) }
    }
}

/// Runs two things at the same time and returns both results.
pub fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

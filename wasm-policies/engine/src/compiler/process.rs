//! Compiling in a process of its own.
//!
//! Compiling a hostile module can take seconds and hundreds of megabytes, and neither fuel nor epochs see it. Therefore
//! a host lets [`Compiler::Process`] do it: a process of its own whose processor time and memory the kernel limits.

use std::io::{self, Read as _, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Scope};
use std::time::Duration;

use ocm_policy_abi::Manifest;
use ocm_policy_rules::outcome::Fault;

use crate::artifact::{Artifact, Header};
use crate::compiler::local::{compile_here, describe_here};
use crate::compiler::protocol::Order;
use crate::digest::digest;
use crate::limits::Ceiling;
use crate::module::{ShapeLimits, check_shape};

/// Who compiles.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// This process. For modules of one's own.
    Here,
    /// A process of its own for each module: a program that calls [`serve`] when it is started with these arguments.
    Process {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// Seconds of processor time that it may use. By the clock it may take five times as long.
        cpu_seconds: u64,
        /// Bytes of memory that it may use.
        memory_bytes: u64,
    },
}

impl Compiler {
    /// A program that compiles, with the usual limits: a minute of processor time, two gigabytes.
    pub fn process(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = String>) -> Self {
        Self::Process {
            program: program.into(),
            arguments: arguments.into_iter().collect(),
            cpu_seconds: 60,
            memory_bytes: 2 << 30,
        }
    }

    /// Makes an artifact of a module and its settings (JSON).
    ///
    /// # Errors
    /// When the module is not one that decides, refuses the settings, or cannot be compiled within the limits.
    pub fn compile(&self, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, Fault> {
        match self {
            Self::Here => compile_here(module, settings, ceiling),
            Self::Process { .. } => Artifact::from_bytes(self.order(module, Some(settings), ceiling)?)
                .filter(|made| {
                    let Header { module_digest, settings_digest, .. } = made.header();
                    *module_digest == digest(module) && *settings_digest == digest(settings.as_bytes())
                })
                .ok_or_else(|| Fault::Load("it cannot be compiled: what came back cannot be used".to_owned())),
        }
    }

    /// What a module says of itself, without giving it any settings: it may refuse to be without.
    ///
    /// # Errors
    /// When it is not one that decides, or cannot be compiled within the limits.
    pub fn describe(&self, module: &[u8], ceiling: &Ceiling) -> Result<Manifest, Fault> {
        match self {
            Self::Here => describe_here(module, ceiling),
            Self::Process { .. } => serde_json::from_slice(&self.order(module, None, ceiling)?)
                .map_err(|error| Fault::Load(format!("its manifest cannot be read: {error}"))),
        }
    }

    /// Has another process answer.
    fn order(&self, module: &[u8], settings: Option<&str>, ceiling: &Ceiling) -> Result<Vec<u8>, Fault> {
        let failed = |why: &dyn std::fmt::Display| Fault::Load(format!("it cannot be compiled: {why}"));
        let Self::Process { program, arguments, cpu_seconds, memory_bytes } = self else {
            return Err(failed(&"there is no other process"));
        };
        // What is no module at all needs no process.
        check_shape(module, &ShapeLimits::default())?;
        let order = Order {
            settings: settings.map(str::to_owned),
            ceiling: *ceiling,
            cpu_seconds: *cpu_seconds,
            memory_bytes: *memory_bytes,
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut answer = Vec::new();
        let longest = Duration::from_secs(cpu_seconds.saturating_mul(PATIENCE));
        // Both at once: who answers before it has read everything must not be waited for at the wrong end.
        let (sent, read) = within(&child, longest, |scope| {
            let sender = scope.spawn(|| input.map(|pipe| send(pipe, &order, module)));
            let read = output.map(|pipe| pipe.take(MOST_CODE).read_to_end(&mut answer));
            (sender.join(), read)
        });
        let status = child.wait().map_err(|error| failed(&error))?;
        match answer.split_first() {
            Some((0, bytes)) if matches!(sent, Ok(Some(Ok(())))) && status.success() => Ok(bytes.to_vec()),
            Some((1, fault)) => Err(serde_json::from_slice(fault).unwrap_or_else(|error| failed(&error))),
            _ => Err(match read {
                Some(Err(error)) => failed(&error),
                _ => failed(&format_args!(
                    "it took more than {cpu_seconds} s of processor time, {} s altogether or {} MiB of memory ({status})",
                    longest.as_secs(),
                    memory_bytes >> 20
                )),
            }),
        }
    }
}

/// How many times its processor time a process may take by the clock: others are at work on this machine as well.
const PATIENCE: u64 = 5;

/// Does something with a process, and ends the process when that takes too long.
#[cfg(unix)]
fn within<'e, T>(child: &Child, longest: Duration, work: impl for<'s> FnOnce(&'s Scope<'s, 'e>) -> T) -> T {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    let pid = Pid::from_child(child);
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            if end.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                // Nobody has asked for its end yet, so nobody else has its number.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let done = work(scope);
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        drop(ended);
        done
    })
}

#[cfg(not(unix))]
fn within<'e, T>(_: &Child, _: Duration, work: impl for<'s> FnOnce(&'s Scope<'s, 'e>) -> T) -> T {
    thread::scope(work)
}

/// No artifact is larger.
const MOST_CODE: u64 = 512 << 20;

fn send(mut pipe: impl Write, order: &Order, module: &[u8]) -> io::Result<()> {
    let order = serde_json::to_vec(order)?;
    pipe.write_all(&u32::try_from(order.len()).unwrap_or(u32::MAX).to_le_bytes())?;
    pipe.write_all(&order)?;
    pipe.write_all(module)
}

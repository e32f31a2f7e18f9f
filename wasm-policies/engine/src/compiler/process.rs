//! Compiling in a process of its own.
//!
//! Compiling a hostile module can take seconds and hundreds of megabytes, and neither fuel nor epochs see it. Therefore
//! a host lets [`Compiler::Process`] do it: a process of its own whose processor time and memory the kernel limits.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ocm_policy_abi::Manifest;
use ocm_policy_rules::{PolicyError, read_manifest};

use crate::artifact::{Artifact, Header, MOST_CODE, too_much_code};
use crate::compiler::local::{compile_here, describe_here};
use crate::compiler::pipes::exchange;
use crate::compiler::protocol::Order;
use crate::digest::digest;
use crate::limits::Ceiling;
use crate::module::{ShapeLimits, check_shape};

/// Who compiles.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// This process. For modules of one's own.
    Here,
    /// A process of its own for each module: a program that calls [`serve`](crate::serve) when it is started with these arguments.
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
    pub fn compile(&self, module: &[u8], settings: &str, ceiling: &Ceiling) -> Result<Artifact, PolicyError> {
        let made = match self {
            Self::Here => compile_here(module, settings, ceiling),
            Self::Process { .. } => self.order(module, Some(settings), ceiling).and_then(|answer| {
                let is_asked_for = |made: &Artifact| {
                    let Header { module_digest, settings_digest, .. } = made.header();
                    *module_digest == digest(module) && *settings_digest == digest(settings.as_bytes())
                };
                let made = Artifact::from_bytes(answer).filter(is_asked_for);
                made.ok_or_else(|| PolicyError::Load(UNUSABLE.to_owned()))
            }),
        };
        made.map_err(PolicyError::bounded)
    }

    /// What a module says of itself, without giving it any settings: it may refuse to be without.
    ///
    /// # Errors
    /// When it is not one that decides, or cannot be compiled within the limits.
    pub fn describe(&self, module: &[u8], ceiling: &Ceiling) -> Result<Manifest, PolicyError> {
        let described = match self {
            Self::Here => describe_here(module, ceiling),
            Self::Process { .. } => self.order(module, None, ceiling).and_then(|answer| read_manifest(&answer)),
        };
        described.map_err(PolicyError::bounded)
    }

    /// Has another process answer.
    fn order(&self, module: &[u8], settings: Option<&str>, ceiling: &Ceiling) -> Result<Vec<u8>, PolicyError> {
        let failed = |why: &dyn std::fmt::Display| PolicyError::Load(format!("it cannot be compiled: {why}"));
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
        let longest = Duration::from_secs(cpu_seconds.saturating_mul(PATIENCE));
        let question = question(&order, module).map_err(|error| failed(&error))?;
        let told = exchange(&mut child, &question, MOST_ANSWER, longest);
        if told.is_err() {
            let _ = child.kill();
        }
        let status = end(&mut child).map_err(|error| failed(&error))?;
        let mut answer = told.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => failed(&format_args!("it took more than {} s altogether", longest.as_secs())),
            io::ErrorKind::FileTooLarge => too_much_code(),
            _ => failed(&error),
        })?;
        match answer.first() {
            Some(0) if status.success() => {
                // In place: machine code is large, and held once is enough.
                answer.drain(..1);
                Ok(answer)
            }
            Some(1) if answer.len() > MOST_ERROR => Err(PolicyError::Load(UNUSABLE.to_owned())),
            Some(1) => Err(serde_json::from_slice(&answer[1..]).unwrap_or_else(|error| failed(&error))),
            _ => Err(failed(&format_args!(
                "it took more than {cpu_seconds} s of processor time or {} MiB of memory ({status})",
                memory_bytes >> 20
            ))),
        }
    }
}

/// How many times its processor time a process may take by the clock: others are at work on this machine as well.
const PATIENCE: u64 = 5;

/// The largest artifact that is taken, and what stands around it.
const MOST_ANSWER: usize = MOST_CODE + (1 << 20);

/// The largest error that is taken: what the other side cuts its own to, escaped.
const MOST_ERROR: usize = 64 << 10;

/// Why a module is refused whose answer is none.
const UNUSABLE: &str = "it cannot be compiled: what came back cannot be used";

/// Waits for the end of a process that has closed its output, and ends it if that is not at once.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    const GRACE: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    while begun.elapsed() < GRACE {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    child.wait()
}

/// What the subprocess reads: an order and a module.
fn question(order: &Order, module: &[u8]) -> io::Result<Vec<u8>> {
    let order = serde_json::to_vec(order)?;
    let mut question = Vec::with_capacity(4 + order.len() + module.len());
    question.extend_from_slice(&u32::try_from(order.len()).unwrap_or(u32::MAX).to_le_bytes());
    question.extend_from_slice(&order);
    question.extend_from_slice(module);
    Ok(question)
}

//! The way in and out of every binary: parse, run until done or interrupted, say what happened, exit with its code.

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
#[cfg(unix)]
use std::task::Poll;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Id, Parser};
use ocm_core::{Event, Exit, Failure, Narrator, Reason};
use tokio::runtime::{Builder, Runtime};

use crate::{Ui, UiArgs, complete};

/// The version of the suite: all binaries are built and shipped together.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version once more, in a section of the file: the dispatcher reads it there, without starting anybody.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "naming a section is unsafe; nothing else has this name, and the bytes are only read")]
#[unsafe(link_section = ".ocm.version")]
static STAMP: [u8; VERSION.len()] = *VERSION.as_bytes().first_chunk().expect("an array of its own length");

/// Longer than anything runs, and not so long that a time after it could not be told.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How the dispatcher tells its version to the binaries that it becomes.
const SUITE: &str = "KUBECTL_OCM_SUITE";

// No doc comment: clap would take it for the text of the help.
#[derive(Parser)]
struct Whole<A: Args> {
    #[command(flatten)]
    own: A,
    #[command(flatten)]
    ui: UiArgs,
}

/// Arguments of a command which its own text describes, not the comments of the structs that they are made of.
///
/// clap takes those comments for the text of a command whose arguments are made late (`defer`).
#[derive(Clone, Debug)]
pub struct Described<A>(pub A);

/// Adds arguments and keeps the text that the command has.
fn described(command: Command, augment: fn(Command) -> Command) -> Command {
    let (short, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    augment(command).about(Resettable::from(short)).long_about(Resettable::from(long))
}

impl<A: Args> Args for Described<A> {
    fn augment_args(command: Command) -> Command {
        described(command, A::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        described(command, A::augment_args_for_update)
    }

    fn group_id() -> Option<Id> {
        A::group_id()
    }
}

impl<A: FromArgMatches> FromArgMatches for Described<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

/// Runs one verb. `name` is the binary's, `kubectl-ocm-<verb>`; help and errors call it `kubectl ocm <verb>`.
///
/// Returns the documented exit code, or that of another program which it has run. The first Ctrl-C, SIGTERM, SIGHUP or
/// SIGQUIT drops the work, says what was done and how to go on.
pub fn run_main<A, F, E>(name: &'static str, about: Command, run: F) -> ExitCode
where
    A: Args,
    F: AsyncFnOnce(A, Arc<Ui>) -> Result<E, Failure>,
    E: Into<u8>,
{
    serve_main(name, about, async |own, ui, interrupted: Stop| {
        tokio::select! {
            result = run(own, ui) => result,
            () = interrupted => Err(Failure::new(Reason::Interrupted, "interrupted")),
        }
    })
}

/// What ends with the first Ctrl-C, SIGTERM, SIGHUP or SIGQUIT.
pub type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a server: it is told when it shall end, and ends by itself.
pub fn serve_main<A, F, E>(name: &'static str, about: Command, serve: F) -> ExitCode
where
    A: Args,
    F: AsyncFnOnce(A, Arc<Ui>, Stop) -> Result<E, Failure>,
    E: Into<u8>,
{
    // A static that nobody uses would be dropped by the linker.
    #[cfg(target_os = "linux")]
    std::hint::black_box(&STAMP);
    let shown = name.replacen("kubectl-ocm-", "kubectl ocm ", 1).replace('_', "-");
    let command =
        Described::<Whole<A>>::augment_args(about).name(name).bin_name(shown).display_name(name).version(VERSION);
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == complete::WORD) {
        return complete::main(command, words);
    }
    let matches = match command.try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    let whole = match Whole::<A>::from_arg_matches(&matches) {
        Ok(whole) => whole,
        Err(error) => return usage(&error.format(&mut Whole::<A>::command())),
    };
    work(name, whole, serve)
}

/// Does what the command line says. Not inlined: the work is large, and help and versions need no memory for it.
#[inline(never)]
fn work<A, F, E>(name: &'static str, whole: Whole<A>, serve: F) -> ExitCode
where
    A: Args,
    F: AsyncFnOnce(A, Arc<Ui>, Stop) -> Result<E, Failure>,
    E: Into<u8>,
{
    let ui = Arc::new(Ui::new(&whole.ui));
    if let Some(suite) = std::env::var_os(SUITE).filter(|suite| suite != VERSION) {
        let suite = suite.to_string_lossy();
        ui.tell(Event::warning(format!("{name} is version {VERSION}, but kubectl-ocm is {suite}: reinstall both")));
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return finish(&ui, Err(Failure::other("cannot start").because(error))),
    };
    // Before the work begins: a signal that comes while it starts must not be missed.
    let result = runtime.block_on(async { serve(whole.own, ui.clone(), Box::pin(interrupted())).await });
    // A look-up of a name that hangs must not keep the process alive.
    runtime.shutdown_background();
    finish(&ui, result.map(Into::into))
}

/// The runtime of a binary. Threads that it has started for work that would hold it up stay: where the system lets it start no
/// other, `spawn_blocking` has work wait for them, and panics where there is none. A server would end so after each pause in
/// which the last one had ended, looking up a name for instance.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().thread_keep_alive(FOR_EVER).build()
}

fn finish(ui: &Ui, result: Result<u8, Failure>) -> ExitCode {
    // What could not be printed is an error of its own, unless the work failed: then that is what counts.
    let result = match (result, ui.stdout_failure()) {
        (Ok(code), Some(failure)) if code <= failure.exit().code() => Err(failure),
        (result, _) => result,
    };
    let code = match result {
        Ok(code) => {
            ui.quiet_down();
            code
        }
        Err(failure) => {
            ui.fail(&failure);
            failure.exit().code()
        }
    };
    ExitCode::from(code)
}

/// Help and version go to stdout and are a success; everything else is a usage error.
fn usage(error: &clap::Error) -> ExitCode {
    // A reader that went away has seen enough.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(Exit::Usage.code()) } else { ExitCode::SUCCESS }
}

/// Listens for Ctrl-C, SIGTERM, SIGHUP and SIGQUIT from now on; the future ends with the first. A terminal that is closed
/// sends SIGHUP: what the work has written for its own time must go then, too.
#[cfg(unix)]
fn interrupted() -> impl Future<Output = ()> + Send + use<> {
    use tokio::signal::unix::{SignalKind, signal};
    let always = [SignalKind::interrupt(), SignalKind::terminate()];
    // Who has started us may have these ignored, as nohup does and shells do for what runs in the background: that stays so.
    let unless_ignored = [SignalKind::hangup(), SignalKind::quit()].into_iter().filter(|kind| !is_ignored(*kind));
    let mut signals: Vec<_> = always.into_iter().chain(unless_ignored).filter_map(|kind| signal(kind).ok()).collect();
    std::future::poll_fn(move |context| {
        let received = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if received { Poll::Ready(()) } else { Poll::Pending }
    })
}

/// Whether a signal is ignored; a program inherits that from the one that has started it.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "sigaction(2) is a call of C; without a new action it only writes the old one to the place given"
)]
fn is_ignored(kind: tokio::signal::unix::SignalKind) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the place is as large as the action; where the call succeeds it is written, and all zeros are one, too.
    let action = unsafe {
        let done = libc::sigaction(kind.as_raw_value(), std::ptr::null(), action.as_mut_ptr());
        (done == 0).then(|| action.assume_init())
    };
    action.is_some_and(|action| action.sa_sigaction == libc::SIG_IGN)
}

#[cfg(not(unix))]
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_thread_that_was_started_for_work_is_there_for_the_next_however_long_that_takes() {
        let runtime = runtime().unwrap();
        let by = || runtime.block_on(runtime.spawn_blocking(|| std::thread::current().id())).unwrap();
        let first = by();
        // Longer than such threads stay where nothing else is said.
        std::thread::sleep(Duration::from_secs(12));
        assert_eq!(by(), first);
    }
    /// Says, in a process of its own, which signals it is to be sent.
    #[cfg(unix)]
    const SIGNALS: &str = "OCM_TEST_SIGNALS";

    /// Whether signals that this test's program is sent end the work, where a shell does something before.
    #[cfg(unix)]
    fn ends(before: &str, signals: &str) -> String {
        let test = "entry::tests::a_program_that_is_sent_signals";
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("{before} exec \"$0\" --exact {test} --nocapture")])
            .arg(std::env::current_exe().unwrap())
            .env(SIGNALS, signals)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.split(['<', '>']).nth(1).unwrap_or("killed").to_owned()
    }

    /// What [`ends`] starts; by itself it does nothing.
    #[cfg(unix)]
    #[test]
    fn a_program_that_is_sent_signals() {
        use rustix::process::{Signal, getpid, kill_process};
        let Ok(signals) = std::env::var(SIGNALS) else { return };
        let ended = runtime().unwrap().block_on(async {
            let interrupted = interrupted();
            for signal in signals.split(',') {
                let signal = match signal {
                    "HUP" => Signal::HUP,
                    "QUIT" => Signal::QUIT,
                    "INT" => Signal::INT,
                    _ => Signal::TERM,
                };
                kill_process(getpid(), signal).unwrap();
            }
            tokio::time::timeout(Duration::from_millis(500), interrupted).await.is_ok()
        });
        writeln!(std::io::stdout(), "<{}>", if ended { "interrupted" } else { "goes on" }).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn signals_that_end_a_program_interrupt_the_work_unless_they_are_ignored() {
        use tokio::signal::unix::SignalKind;
        for signal in ["INT", "TERM"] {
            assert_eq!(ends("", signal), "interrupted", "{signal}");
        }
        for (signal, kind) in [("HUP", SignalKind::hangup()), ("QUIT", SignalKind::quit())] {
            // Whoever has started the tests may have had them ignored, which no shell takes back.
            let expected = if is_ignored(kind) { "goes on" } else { "interrupted" };
            assert_eq!(ends("", signal), expected, "{signal}");
        }
        assert_eq!(ends("trap '' HUP QUIT;", "HUP,QUIT"), "goes on");
        assert_eq!(ends("trap '' HUP QUIT;", "HUP,TERM"), "interrupted");
    }
}

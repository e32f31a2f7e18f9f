//! The terminal, or what stands in its place.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use ocm_core::{Event, Failure, Narrator, One, Reason};

use crate::rows::Rows;
use crate::screen::Screen;
use crate::{clean, remedy};

/// How much is said, and how.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct UiArgs {
    /// Say nothing on stderr but errors and questions
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Show progress as a line that changes in place
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", env = "KUBECTL_OCM_PROGRESS", global = true)]
    #[arg(hide_short_help = true, hide_env_values = true)]
    pub progress: When,
}

/// When to use what only a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal that is not a CI job's
    #[default]
    Auto,
    /// Always
    Always,
    /// Never: one line per event
    Never,
}

/// The one function that progress bars need of C's mathematics. Where the binary has it, no start loads a library for it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "naming a symbol is unsafe; this does what everybody expects of the name")]
#[unsafe(no_mangle)]
extern "C" fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

/// The line that changes in place, under the rows of many if they are shown.
const LINE: &str = "{rows}{spinner} {wide_msg} {elapsed}";

/// How many lines of a terminal are not for rows: that line, and one for what was written before.
const NOT_FOR_ROWS: usize = 2;

/// How often the line that changes in place is drawn.
const TICK: Duration = Duration::from_millis(120);

/// How often it may be drawn in a second.
const RATE: u8 = 20;

/// How long a wait may be silent where its line cannot change in place.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Where a command speaks: data on stdout, narration on stderr.
pub struct Ui {
    quiet: bool,
    line: Option<ProgressBar>,
    /// The rows above that line, while many are worked on. Whoever draws the line takes this lock, so that nobody may touch the
    /// line who holds it.
    rows: Arc<Mutex<Option<Rows>>>,
    state: Mutex<State>,
    stdout: Mutex<Stdout>,
}

/// Whether stdout still takes data.
#[derive(Default)]
enum Stdout {
    #[default]
    Open,
    /// The reader went away: it has seen enough, and what is left to print is dropped.
    Closed,
    /// It cannot be written, e.g. because the disk is full.
    Broken(io::Error),
}

#[derive(Default)]
struct State {
    /// What is going on, and when it was last said.
    now: Option<(String, Instant)>,
    /// What is done and stays done.
    done: Vec<String>,
    /// Whether a question is open: the cursor stands behind it.
    asking: bool,
    /// Whether the command shows what changes until the user ends it.
    watching: bool,
}

impl Ui {
    /// Looks at the flags, the terminal and the environment once.
    pub fn new(args: &UiArgs) -> Self {
        let able = io::stderr().is_terminal()
            && std::env::var_os("CI").is_none()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let animated = !args.quiet
            && match args.progress {
                When::Auto => able,
                When::Always => true,
                When::Never => false,
            };
        let rows = Arc::new(Mutex::new(None));
        let screen = animated.then(Screen::stderr).flatten();
        let line = screen.map(|screen| {
            let bar =
                ProgressBar::with_draw_target(None, ProgressDrawTarget::term_like_with_hz(Box::new(screen), RATE));
            if let Ok(style) = ProgressStyle::with_template(LINE) {
                bar.set_style(style.with_key("rows", drawn(rows.clone())));
            }
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { quiet: args.quiet, line, rows, state: Mutex::default(), stdout: Mutex::default() }
    }

    /// Shows a row for each of many that are worked on at once, until the answer is dropped: where a line can change in place,
    /// a table of what each is at; elsewhere every event remains a line.
    pub fn rows(&self, names: impl IntoIterator<Item = String>) -> Shown<'_> {
        if let Some(line) = &self.line {
            let rows = Rows::new(names);
            let so_far = rows.so_far();
            self.set_rows(Some(rows));
            line.set_message(so_far);
        }
        Shown(self)
    }

    fn set_rows(&self, to: Option<Rows>) {
        if let Ok(mut rows) = self.rows.lock() {
            *rows = to;
        }
    }

    /// Does something with the rows, if they are shown.
    fn with_rows<T>(&self, act: impl FnOnce(&mut Rows) -> T) -> Option<T> {
        self.rows.lock().ok()?.as_mut().map(act)
    }

    /// Remembers what is going on, for who breaks it off. Whether it was not said of late.
    fn is_news(&self, text: &str) -> bool {
        self.state.lock().is_ok_and(|mut state| {
            let is_news = state.now.as_ref().is_none_or(|(last, at)| last != text || at.elapsed() >= HEARTBEAT);
            if is_news {
                state.now = Some((text.to_owned(), Instant::now()));
            }
            is_news
        })
    }

    /// Writes data to stdout.
    ///
    /// What cannot be written must not end the work half-way: after the first error nothing more is written, the command
    /// goes on, and the entry point reports the error when the work is done. A closed pipe is not an error.
    pub fn out(&self, text: &str) {
        let Ok(mut state) = self.stdout.lock() else { return };
        if !matches!(*state, Stdout::Open) {
            return;
        }
        let write = || {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()
        };
        let written = match &self.line {
            Some(line) => line.suspend(write),
            None => write(),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => *state = Stdout::Closed,
            Err(error) => *state = Stdout::Broken(error),
        }
    }

    /// Whether nothing more can reach stdout. A command that only prints, e.g. for as long as something is watched, ends.
    pub fn is_stdout_gone(&self) -> bool {
        self.stdout.lock().is_ok_and(|state| !matches!(*state, Stdout::Open))
    }

    /// Why stdout could not be written, if that is an error.
    pub(crate) fn stdout_failure(&self) -> Option<Failure> {
        match &*self.stdout.lock().ok()? {
            Stdout::Broken(error) => Some(Failure::other("cannot write to stdout").because(error)),
            Stdout::Open | Stdout::Closed => None,
        }
    }

    /// Writes one line of human-readable data to stdout, with control characters made visible.
    pub fn line(&self, text: &str) {
        self.out(&(clean(text) + "\n"));
    }

    /// Writes one line of narration to stderr, unless `--quiet`.
    pub fn say_line(&self, text: &str) {
        self.say(&clean(text));
    }

    /// Writes text of several lines, made by us and cleaned, to stderr: what a question is about, so never quiet.
    pub fn say_text(&self, text: &str) {
        self.err(text.trim_end());
    }

    /// Asks a yes-or-no question on the terminal.
    ///
    /// The answer is read beside the caller's work, so that Ctrl-C ends the command while the question is open.
    ///
    /// # Errors
    /// A usage failure when stdin or stderr is not a terminal.
    pub async fn confirm(&self, question: &str) -> Result<bool, Failure> {
        if !self.can_ask() {
            return Err(
                Failure::usage("cannot prompt: stdin is not a terminal").hint("add --yes to skip the confirmation")
            );
        }
        self.pause();
        let failed = |error: &dyn fmt::Display| Failure::other("cannot ask").because(error);
        write!(io::stderr(), "{} [y/N] ", clean(question)).map_err(|error| failed(&error))?;
        io::stderr().flush().map_err(|error| failed(&error))?;
        let reading = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            io::stdin().read_line(&mut answer).map(|_| answer)
        });
        let answer = reading.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        self.resume();
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Whether somebody is there to answer a question.
    pub fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// From now on the command shows what changes until the user ends it. Ctrl-C is how that ends, as with kubectl: there is
    /// no error to tell, nothing was left undone, and only the exit code says so.
    pub fn watches(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.watching = true;
        }
    }

    /// Whether a failure is the end that the user gave to a watch.
    fn is_end_of_watch(&self, failure: &Failure) -> bool {
        failure.reason == Reason::Interrupted && self.state.lock().is_ok_and(|state| state.watching)
    }

    /// Renders a failure on stderr: the sentence, what lies behind it, what to do next.
    pub fn fail(&self, failure: &Failure) {
        self.quiet_down();
        if self.is_end_of_watch(failure) {
            return;
        }
        let asking = self.state.lock().is_ok_and(|mut state| std::mem::take(&mut state.asking));
        let line = if asking { "\n" } else { "" };
        let mut text = format!("{line}error: {}", clean(&failure.message));
        for cause in &failure.causes {
            text += &format!("\n  because: {}", clean(cause));
        }
        for hint in &failure.hints {
            text += &format!("\n  hint: {}", clean(&remedy::words(hint)));
        }
        self.err(&text);
        if failure.reason == Reason::Interrupted {
            self.err(&self.interrupted());
        }
    }

    /// Removes the line that changes in place.
    pub fn quiet_down(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }

    /// Clears the line that changes in place, and what it was about: a question is alone on the screen.
    fn pause(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.now = None;
            state.asking = true;
        }
        if let Some(line) = &self.line {
            line.disable_steady_tick();
            line.set_message("");
            line.finish_and_clear();
        }
    }

    fn resume(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.asking = false;
        }
        if let Some(line) = &self.line {
            line.reset();
            line.enable_steady_tick(TICK);
        }
    }

    /// What was done when the user broke off, and how to go on.
    fn interrupted(&self) -> String {
        let Ok(state) = self.state.lock() else { return String::new() };
        let during = match &state.now {
            Some((now, _)) => format!(" while {now}"),
            None => String::new(),
        };
        match state.done.as_slice() {
            [] => format!("Stopped{during}; nothing was changed. Run the same command again to start over."),
            [only] => format!("Stopped{during}. Done: {only}. Run the same command again: it goes on from there."),
            [.., last] => format!(
                "Stopped{during}. Done: {} steps, the last one: {last}. Run the same command again: it goes on from there.",
                state.done.len()
            ),
        }
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            self.err(text);
        }
    }

    fn err(&self, text: &str) {
        let write = || {
            // There is nobody left to tell when stderr is gone.
            let _ = writeln!(io::stderr().lock(), "{text}");
        };
        match &self.line {
            Some(line) => line.suspend(write),
            None => write(),
        }
    }
}

impl Narrator for Ui {
    fn tell(&self, event: Event) {
        match event {
            Event::Now { doing, because } => {
                let text = sentence(&doing, because.as_deref());
                let is_news = self.is_news(&text);
                match &self.line {
                    Some(line) => line.set_message(text),
                    None if is_news => self.say(&text),
                    None => {}
                }
            }
            Event::Done(what) => {
                if let Ok(mut state) = self.state.lock() {
                    state.done.push(clean(&what));
                }
            }
            Event::Note(text) => self.say(&format!("note: {}", clean(&text))),
            Event::Warning(text) => self.say(&format!("warning: {}", clean(&text))),
        }
    }

    fn tell_of(&self, one: &One, event: Event) {
        let has_row = self.with_rows(|rows| rows.told(one.place, &event, Instant::now())).is_some();
        match event.of(&one.name) {
            // Its row says it.
            Event::Now { doing, because } if has_row => {
                self.is_news(&sentence(&doing, because.as_deref()));
            }
            event => self.tell(event),
        }
    }

    fn end_of(&self, one: &One, outcome: &str, event: Event) {
        let so_far = self.with_rows(|rows| {
            rows.ended(one.place, outcome, &event, Instant::now());
            rows.so_far()
        });
        let (Some(so_far), Some(line)) = (so_far, &self.line) else { return self.tell_of(one, event) };
        line.set_message(so_far);
        // Its row says how it has ended. What went wrong is still to be read when the rows are gone.
        if matches!(event, Event::Warning(_)) {
            self.tell(event.of(&one.name));
        }
    }
}

/// What is going on, as people read it.
fn sentence(doing: &str, because: Option<&str>) -> String {
    match because {
        Some(because) => clean(&format!("{doing}: {because}")),
        None => clean(doing),
    }
}

/// Writes the rows, each with the end of its line, as they are when the line is drawn.
fn drawn(
    rows: Arc<Mutex<Option<Rows>>>,
) -> impl Fn(&ProgressState, &mut dyn fmt::Write) + Send + Sync + Clone + 'static {
    move |_, line| {
        let Ok(rows) = rows.lock() else { return };
        let Some(rows) = rows.as_ref() else { return };
        let (height, width) = Term::stderr().size();
        let room = usize::from(height).saturating_sub(NOT_FOR_ROWS);
        for row in rows.lines(Instant::now(), width.into(), room) {
            // The one who writes is a text, which takes everything.
            let _ = writeln!(line, "{row}");
        }
    }
}

/// Rows that are shown; dropped, they go.
#[must_use]
pub struct Shown<'a>(&'a Ui);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.set_rows(None);
        if let Some(line) = &self.0.line {
            line.set_message("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_watch_ends_without_a_word_when_it_is_interrupted() {
        let ui = Ui::new(&UiArgs { quiet: true, progress: When::Never });
        let interrupted = Failure::new(Reason::Interrupted, "interrupted");
        assert!(!ui.is_end_of_watch(&interrupted), "there is more to say of other commands");
        ui.watches();
        assert!(ui.is_end_of_watch(&interrupted));
        assert!(!ui.is_end_of_watch(&Failure::other("the hub does not answer")));
    }
}

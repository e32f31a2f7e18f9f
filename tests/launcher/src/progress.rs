//! How far a step is: which of how many, what it does, how long it has taken, and how long it takes usually.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is over before this is not worth a line.
const QUICK: Duration = Duration::from_secs(1);
/// How often the line of a terminal is drawn again.
const REDRAW: Duration = Duration::from_millis(250);
/// How often a line is printed where nothing can be drawn again.
const REPEAT: Duration = Duration::from_secs(30);

/// One step of a preparation.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its place: from one.
    pub number: usize,
    /// The number of steps in all.
    pub of: usize,
    /// What it does, such as "building the commands".
    pub what: &'static str,
    /// How long it takes on two cores when nothing is there yet.
    pub usual: Duration,
}

impl Step {
    /// The line: everything that a person who waits wants to know.
    fn line(&self, detail: &str, elapsed: Duration) -> String {
        let detail = if detail.is_empty() { String::new() } else { format!(", {detail}") };
        let Self { number, of, what, usual } = self;
        format!("step {number} of {of}: {what}{detail}; {} (usually {})", spoken(elapsed), spoken(*usual))
    }

    fn end(&self, elapsed: Duration) -> String {
        format!("step {} of {}: {}; took {}", self.number, self.of, self.what, spoken(elapsed))
    }
}

/// A duration as people say it: `45 s`, `3 min 5 s`, `7 min`.
fn spoken(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// The progress of a step, on standard error: on a terminal a line that is drawn again and again, elsewhere a line every
/// half minute. A step that is over at once shows nothing.
#[derive(Debug)]
pub struct Progress {
    detail: Arc<Mutex<String>>,
    end: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins a step.
    pub fn begin(step: Step) -> Self {
        let detail = Arc::new(Mutex::new(String::new()));
        let (end, ended) = channel();
        let shown = Arc::clone(&detail);
        let terminal = io::stderr().is_terminal();
        let drawing = thread::spawn(move || {
            let begun = Instant::now();
            let mut pause = QUICK;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = step.line(&shown.lock().unwrap_or_else(PoisonError::into_inner), begun.elapsed());
                write(&draw(&line, terminal));
                pause = if terminal { REDRAW } else { REPEAT };
            }
            if begun.elapsed() >= QUICK {
                write(&format!("{}\n", draw(&step.end(begun.elapsed()), terminal).trim_end_matches('\n')));
            }
        });
        Self { detail, end: Some(end), drawing: Some(drawing) }
    }

    /// How far the step is, such as `12 of 40 crates`.
    pub fn at(&self, detail: impl Into<String>) {
        *self.detail.lock().unwrap_or_else(PoisonError::into_inner) = detail.into();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(drawing) = self.drawing.take() {
            let _ = drawing.join();
        }
    }
}

/// A line in the place of the former one. A terminal must not wrap it: half of it would be left behind.
fn draw(line: &str, terminal: bool) -> String {
    if terminal { format!("\r\x1b[2K\x1b[?7l{line}\x1b[?7h") } else { format!("{line}\n") }
}

/// Progress is never a reason to fail.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step { number: 2, of: 4, what: "building Kubernetes", usual: Duration::from_secs(420) };

    #[test]
    fn a_line_says_step_state_and_times() {
        assert_eq!(
            STEP.line("812 of 2430 packages", Duration::from_secs(192)),
            "step 2 of 4: building Kubernetes, 812 of 2430 packages; 3 min 12 s (usually 7 min)"
        );
        assert_eq!(STEP.line("", Duration::from_secs(2)), "step 2 of 4: building Kubernetes; 2 s (usually 7 min)");
        assert_eq!(STEP.end(Duration::from_secs(400)), "step 2 of 4: building Kubernetes; took 6 min 40 s");
    }

    #[test]
    fn only_a_terminal_gets_control_sequences() {
        assert_eq!(draw("a", false), "a\n");
        assert!(draw("a", true).starts_with("\r\x1b[2K"));
        assert!(!draw("a", true).ends_with('\n'));
    }
}

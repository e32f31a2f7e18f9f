//! The decision log: lines that wait for whoever writes them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whoever has taken lines takes the next ones after this: waking it for each line costs more than the line.
const PAUSE: Duration = Duration::from_millis(20);

/// Lines that were not written yet, and not more than so many.
pub struct DecisionLog {
    lines: Mutex<Lines>,
    /// There are lines, or there will be none any more.
    more: Condvar,
    /// Lines were taken.
    less: Condvar,
    most: usize,
}

#[derive(Default)]
struct Lines {
    waiting: VecDeque<String>,
    closed: bool,
}

impl DecisionLog {
    /// A log of which so many lines may wait.
    pub fn new(most: usize) -> Self {
        Self { lines: Mutex::default(), more: Condvar::new(), less: Condvar::new(), most }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. Where too many wait, it waits as well, for so long; whether there was room.
    pub fn add(&self, line: String, patience: Duration) -> bool {
        let mut lines = self.lines();
        let until = Instant::now() + patience;
        while lines.waiting.len() >= self.most && !lines.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            lines = self.less.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        // Nobody may read it any more.
        if lines.closed {
            return false;
        }
        lines.waiting.push_back(line);
        // Whoever takes them looks again before it rests.
        let first = lines.waiting.len() == 1;
        drop(lines);
        if first {
            self.more.notify_one();
        }
        true
    }

    /// Nothing comes any more.
    pub fn close(&self) {
        self.lines().closed = true;
        self.more.notify_all();
        self.less.notify_all();
    }

    /// Gives lines to a writer, many at a time, until nothing comes any more.
    pub fn write(&self, mut writer: impl FnMut(&VecDeque<String>)) {
        loop {
            let mut lines = self.lines();
            while lines.waiting.is_empty() {
                if lines.closed {
                    return;
                }
                lines = self.more.wait(lines).unwrap_or_else(PoisonError::into_inner);
            }
            let (taken, closed) = (std::mem::take(&mut lines.waiting), lines.closed);
            drop(lines);
            self.less.notify_all();
            writer(&taken);
            if !closed {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_line_is_written_once_and_in_order() {
        let log = Arc::new(DecisionLog::new(4));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (reader, kept) = (log.clone(), written.clone());
        let writer = std::thread::spawn(move || reader.write(|lines| kept.lock().unwrap().extend(lines.clone())));
        for number in 0..100 {
            assert!(log.add(number.to_string(), Duration::from_secs(30)));
        }
        log.close();
        writer.join().unwrap();
        assert_eq!(*written.lock().unwrap(), (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn where_nobody_reads_lines_are_refused_in_time() {
        let log = DecisionLog::new(1);
        assert!(log.add("one".to_owned(), Duration::ZERO));
        assert!(!log.add("two".to_owned(), Duration::ZERO));
        let begun = Instant::now();
        assert!(!log.add("two".to_owned(), Duration::from_millis(20)));
        assert!(begun.elapsed() >= Duration::from_millis(20));
        log.close();
        assert!(!log.add("three".to_owned(), Duration::from_secs(30)));
        let mut written = Vec::new();
        log.write(|lines| written.extend(lines.clone()));
        assert_eq!(written, ["one"]);
    }
}

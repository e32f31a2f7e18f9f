//! stderr as a terminal on which lines change in place.

use std::io;

use console::{Term, is_dumb};
use indicatif::TermLike;

/// A terminal whose cursor rests at the beginning of the last line. At its end, the `^C` that a terminal echoes would begin
/// another line, and of those that are cleared afterwards one would stay.
#[derive(Debug)]
pub(crate) struct Screen(Term);

impl Screen {
    /// stderr; none where lines cannot change in place there.
    pub(crate) fn stderr() -> Option<Self> {
        let term = Term::buffered_stderr();
        (term.is_term() && !is_dumb()).then_some(Self(term))
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        self.0.size().1
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    /// Every frame ends with it.
    fn flush(&self) -> io::Result<()> {
        self.0.write_str("\r")?;
        self.0.flush()
    }
}

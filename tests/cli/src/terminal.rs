//! A terminal that a command runs at, and a keyboard.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::Cli;

/// Runs a command, tells with which code it ended, and stays until it is killed. The kernel throws away what was not read yet
/// when the first process of a terminal ends: that must not be the command.
const SHELL: &str = r#"trap : INT TERM; "$@"; printf '\0%s\0' "$?"; exec sleep 600"#;
/// What stands before and behind the exit code. Commands never write it.
const MARK: char = '\0';

/// The size that programs take a terminal to have that tells none.
const SIZE: (usize, usize) = (24, 80);

/// What such a terminal shows after all of this, line by line, without blanks at the ends.
///
/// # Panics
/// When something is asked of it that it does not know.
pub fn screen(written: &str) -> Vec<String> {
    let (height, width) = SIZE;
    let mut lines = vec![vec![' '; width]; height];
    let (mut line, mut column) = (0, 0);
    let next = |lines: &mut Vec<Vec<char>>, line: &mut usize| {
        *line += 1;
        if *line == height {
            *line -= 1;
            lines.remove(0);
            lines.push(vec![' '; width]);
        }
    };
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        match character {
            '\r' => column = 0,
            '\n' => next(&mut lines, &mut line),
            '\u{1b}' => {
                assert_eq!(characters.next(), Some('['), "another sequence");
                let (mut number, mut command) = (String::new(), characters.next());
                while let Some(digit) = command.filter(char::is_ascii_digit) {
                    number.push(digit);
                    command = characters.next();
                }
                match (command, number.parse().unwrap_or(1)) {
                    (Some('A'), count) => line = line.saturating_sub(count),
                    (Some('B'), count) => line = (line + count).min(height - 1),
                    (Some('K'), 2) => lines[line].fill(' '),
                    other => panic!("{other:?} is not known"),
                }
            }
            character => {
                // A terminal goes on to the next line when it has to, not before.
                if column == width {
                    column = 0;
                    next(&mut lines, &mut line);
                }
                lines[line][column] = character;
                column += 1;
            }
        }
    }
    let mut shown: Vec<String> =
        lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect();
    let end = shown.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    shown.truncate(end);
    shown
}

/// A command at a terminal of its own.
pub struct Terminal {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    seen: String,
    /// Up to here it was waited for.
    read: usize,
}

impl Terminal {
    /// Starts a program there, with the home and the environment of somebody.
    ///
    /// # Panics
    /// When there is no terminal, or no `setsid`.
    pub fn run(cli: &Cli, program: &Path, words: &[&str]) -> Self {
        let keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal can be had"));
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("it can be opened");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name").into_string().expect("the name is text");
        let open = || OpenOptions::new().read(true).write(true).open(&name).expect("it opens");
        // It makes the terminal the command's own, so that Ctrl-C there is a signal to the command.
        let mut command = cli.command(Path::new("/usr/bin/setsid"));
        command.args(["--ctty", "sh", "-c", SHELL, "sh"]).arg(program).args(words).env("TERM", "xterm");
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().expect("setsid starts");
        drop(command);
        let mut screen = keyboard.try_clone().expect("a terminal has several hands");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last hand of the other side gone is an error here.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, output, seen: String::new(), read: 0 }
    }

    /// Reads until a text is on the screen, after what was waited for before.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_for(&mut self, text: &str) {
        let end = loop {
            if let Some(at) = self.seen[self.read..].find(text) {
                break self.read + at + text.len();
            }
            let bytes = self.output.recv_timeout(Duration::from_secs(60));
            let bytes = bytes.unwrap_or_else(|_| panic!("{text:?} does not come: {:?}", self.seen));
            self.seen += &String::from_utf8_lossy(&bytes);
        };
        self.read = end;
    }

    /// Reads until what was shown so far is as it should be. It is looked at after each piece that comes.
    ///
    /// # Panics
    /// When it does not come to that.
    pub fn wait_until(&mut self, holds: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !holds(&self.seen) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to that: {:#?}", screen(&self.seen));
            let bytes = self.output.recv_timeout(Duration::from_secs(60));
            let bytes = bytes.unwrap_or_else(|_| panic!("it does not come to that: {:#?}", screen(&self.seen)));
            self.seen += &String::from_utf8_lossy(&bytes);
        }
        self.read = self.seen.len();
    }

    /// Waits until the command hears of Ctrl-C itself: before that it would end as any program does.
    ///
    /// # Panics
    /// When it does not come to that.
    pub fn wait_until_it_listens(&self) {
        const INTERRUPT: u64 = 1 << 1;
        let shell = self.child.id();
        let children = || std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap_or_default();
        let caught = |process: &str| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        };
        let listens = || children().split_whitespace().filter_map(caught).any(|caught| caught & INTERRUPT != 0);
        let begun = Instant::now();
        while !listens() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not listen: {:?}", self.seen);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Everything that was shown so far.
    pub fn seen(&self) -> &str {
        &self.seen
    }

    /// Types something.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a key can be pressed");
    }

    /// Waits until the command has ended: its exit code, and everything that was shown.
    ///
    /// # Panics
    /// When it does not end.
    pub fn end(mut self) -> (i32, String) {
        let code = loop {
            let mut parts = self.seen.split(MARK).skip(1);
            if let (Some(code), Some(_)) = (parts.next(), parts.next()) {
                break code.parse().expect("the shell tells a number");
            }
            let bytes = self.output.recv_timeout(Duration::from_secs(60));
            let bytes = bytes.unwrap_or_else(|_| panic!("it does not end: {:?}", self.seen));
            self.seen += &String::from_utf8_lossy(&bytes);
        };
        self.child.kill().and_then(|()| self.child.wait()).expect("the shell ends");
        let shown = self.seen.split(MARK).next().unwrap_or_default().to_owned();
        (code, shown)
    }
}

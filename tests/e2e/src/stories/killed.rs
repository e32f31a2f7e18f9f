//! Commands that are killed at every step, and go on.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, pipe};
use std::process::Command;

use crate::Said;

/// More steps than any command has.
const MANY: usize = 300;

/// Runs a command again and again, and kills it as soon as it says what no run before has said, until a run says nothing new and
/// comes to its end. How often it was killed, and how it ended; all that it said stands in `stderr`.
///
/// # Panics
///
/// When it cannot be run, or never comes to its end.
pub fn at_every_step(command: impl Fn() -> Command) -> (usize, Said) {
    let mut known = BTreeSet::new();
    for kills in 0..MANY {
        if let Some(said) = until_news(command(), &mut known) {
            return (kills, said);
        }
    }
    panic!("was killed {MANY} times, and still says something new: {known:#?}");
}

/// Runs a command until it says something new, and kills it then. None: it was killed.
fn until_news(mut command: Command, known: &mut BTreeSet<String>) -> Option<Said> {
    let (reader, writer) = pipe().expect("a pipe can be had");
    command.stdout(writer.try_clone().expect("a pipe can be had")).stderr(writer);
    let mut child = command.spawn().expect("the command starts");
    // It holds the end of the pipe that is written to, too.
    drop(command);
    let mut told = String::new();
    for line in BufReader::new(reader).lines() {
        let line = line.expect("it says text");
        let is_news = known.insert(step(&line));
        told += &(line + "\n");
        if is_news {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
            return None;
        }
    }
    let code = child.wait().expect("it ends").code();
    Some(Said { code, stdout: String::new(), stderr: told })
}

/// The step that a line is about: without what became of an object, which differs in the next run, and without counts and times.
fn step(line: &str) -> String {
    let object =
        line.rsplit_once(' ').filter(|(_, word)| ["created", "configured", "unchanged", "deleted"].contains(word));
    let line = object.map_or(line, |(object, _)| object);
    line.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_killed_once_for_each_line_that_is_new() {
        let of = |script: &str| {
            at_every_step(|| {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            })
        };
        let (kills, said) = of("echo a; echo b >&2; echo 1 c; echo 2 c; exit 3");
        assert_eq!((kills, said.code), (3, Some(3)));
        assert_eq!(said.stderr, "a\nb\n1 c\n2 c\n");
    }

    #[test]
    fn the_same_object_is_the_same_step_whatever_became_of_it() {
        assert_eq!(step("namespace/a created"), step("namespace/a unchanged"));
        assert_ne!(step("namespace/a created"), step("namespace/b created"));
        assert_ne!(step("waiting for a: 0 of 1"), step("waiting for b: 0 of 1"));
        assert_eq!(step("waiting for a: 0 of 1 ready"), step("waiting for a: 1 of 1 ready"));
    }
}

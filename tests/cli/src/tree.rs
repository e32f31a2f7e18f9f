//! The tree of commands, as their own help tells it.

use crate::{Cli, Run, binaries, binary};

/// One command: the words after `kubectl ocm`.
pub type Words = Vec<String>;

/// Every verb with its subcommands, from the help of each.
///
/// # Panics
/// When a binary cannot be run.
pub fn commands() -> Vec<Words> {
    let cli = Cli::new();
    let mut all = Vec::new();
    for name in binaries() {
        let Some(verb) = name.strip_prefix("kubectl-ocm-") else { continue };
        add(&cli, &name, vec![verb.to_owned()], &mut all);
    }
    all
}

fn add(cli: &Cli, name: &str, words: Words, all: &mut Vec<Words>) {
    let help = help(cli, name, &words, "--help").stdout;
    all.push(words.clone());
    for below in subcommands(&help) {
        let mut words = words.clone();
        words.push(below);
        add(cli, name, words, all);
    }
}

/// The help of one command.
pub fn help(cli: &Cli, name: &str, words: &[String], flag: &str) -> Run {
    let below = words.iter().skip(1).map(String::as_str).chain([flag]);
    cli.run_file(&binary(name), below)
}

/// The names under the heading `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let under = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    under
        .take_while(|line| !line.is_empty())
        // Longer descriptions go on in lines that are indented more.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

//! The pages of `docs/commands`: people write them, and the synopsis in them is the commands' own help.
//!
//! ```text
//! <!-- help: get clusters -->
//! (what `kubectl ocm get clusters --help` prints; generated)
//! <!-- end help -->
//! ```

use std::fs;
use std::path::PathBuf;

use crate::{Cli, root, tree};

const BEGIN: &str = "<!-- help: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end help -->";
/// Verbs without a binary of their own: the dispatcher has them.
pub const OF_THE_DISPATCHER: [&str; 2] = ["completion", "version"];

/// A page as it is, and as it should be.
#[derive(Debug)]
pub struct Page {
    /// Where it is.
    pub file: PathBuf,
    /// Its text; empty when there is none.
    pub is: String,
    /// Its text with the help of today.
    pub should_be: String,
}

/// One page for each verb.
///
/// # Panics
/// When a command cannot be run.
pub fn pages() -> Vec<Page> {
    let mut commands = tree::commands();
    commands.extend(OF_THE_DISPATCHER.map(|verb| vec![verb.to_owned()]));
    let verbs: Vec<&str> = commands
        .iter()
        .filter(|words| words.len() == 1)
        .filter_map(|words| words.first())
        .map(String::as_str)
        .collect();
    verbs
        .iter()
        .map(|verb| {
            let file = root().join("docs/commands").join(format!("{verb}.md"));
            let is = fs::read_to_string(&file).unwrap_or_default();
            let mut text = if is.is_empty() { format!("# kubectl ocm {verb}\n") } else { is.clone() };
            for words in commands.iter().filter(|words| words.first().is_some_and(|first| first == verb)) {
                let words = words.join(" ");
                if !text.contains(&format!("{BEGIN}{words}{CLOSE}")) {
                    text = format!("{}\n\n{BEGIN}{words}{CLOSE}\n{END}\n", text.trim_end());
                }
            }
            Page { file, is, should_be: fill(&text) }
        })
        .collect()
}

/// The pages of checks, and their index: all of it is in the registry.
///
/// # Panics
/// When the command cannot be run.
pub fn check_pages() -> Vec<Page> {
    let run = |words: &[&str]| {
        let run = Cli::new().run([&["troubleshoot"], words].concat());
        assert_eq!(run.exit, 0, "{run}");
        run.stdout
    };
    let page = |name: String, should_be: String| {
        let file = root().join("docs/checks").join(name);
        let is = fs::read_to_string(&file).unwrap_or_default();
        Page { file, is, should_be }
    };
    let mut pages = vec![page("README.md".to_owned(), run(&["--list", "--output=markdown"]))];
    let ids = run(&["--list", "--output=name"]);
    pages.extend(ids.lines().map(|id| page(format!("{id}.md"), run(&["--explain", id]))));
    pages
}

/// What a command says of itself.
fn help(words: &[String]) -> String {
    let verb = words.first().map_or("", String::as_str);
    let cli = Cli::new();
    match OF_THE_DISPATCHER.contains(&verb) {
        true => cli.run([verb, "--help"]).stdout,
        false => tree::help(&cli, &format!("kubectl-ocm-{verb}"), words, "--help").stdout,
    }
}

/// Puts the help of today between the markers.
fn fill(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out += line;
        out += "\n";
        let Some(words) = line.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(CLOSE)) else { continue };
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let help = help(&words);
        out += &format!("```text\n{}\n```\n{END}\n", help.trim_end());
        // What stood there before goes.
        for old in lines.by_ref() {
            if old.trim() == END {
                break;
            }
        }
    }
    out
}

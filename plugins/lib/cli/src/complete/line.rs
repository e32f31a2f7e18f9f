//! A command line that is being typed, and what may come next.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, Command, ValueHint};

use super::candidate::{Answer, Candidate};
use super::names::{Kind, Names};

/// What the words before the last one have said.
pub(super) struct Line<'a> {
    /// The command or subcommand that they lead to.
    command: &'a Command,
    /// The flags that they gave, by their ids, with the last value of each.
    given: BTreeMap<&'a str, Option<String>>,
    /// The flag whose value comes next.
    pending: Option<&'a Arg>,
    /// How many words were no flags.
    positionals: usize,
    /// Whether `--` has ended the flags.
    only_positionals: bool,
}

impl<'a> Line<'a> {
    pub(super) fn read(command: &'a Command, words: &[String]) -> Self {
        let begin = Self { command, given: BTreeMap::new(), pending: None, positionals: 0, only_positionals: false };
        words.iter().fold(begin, |mut line, word| {
            line.take(word);
            line
        })
    }

    fn take(&mut self, word: &str) {
        if let Some(arg) = self.pending.take() {
            self.given.insert(arg.get_id().as_str(), Some(word.to_owned()));
        } else if !self.only_positionals && word == "--" {
            self.only_positionals = true;
        } else if let Some(long) = word.strip_prefix("--").filter(|_| !self.only_positionals) {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if let Some(arg) = self.long(name) {
                self.give(arg, value);
            }
        } else if let Some(shorts) = word.strip_prefix('-').filter(|rest| !rest.is_empty() && !self.only_positionals) {
            self.take_shorts(shorts);
        } else if let Some(below) = self.subcommand(word) {
            self.command = below;
        } else {
            self.positionals += 1;
        }
    }

    /// Letters of flags: the first one that takes a value has all that stands behind it.
    fn take_shorts(&mut self, shorts: &str) {
        for (at, letter) in shorts.char_indices() {
            let Some(arg) = self.short(letter) else { return };
            let rest = &shorts[at + letter.len_utf8()..];
            if arg.get_action().takes_values() {
                let value = rest.strip_prefix('=').unwrap_or(rest);
                return self.give(arg, Some(value).filter(|value| !value.is_empty()));
            }
            self.give(arg, None);
        }
    }

    fn give(&mut self, arg: &'a Arg, value: Option<&str>) {
        // A value that may be left out stands behind an equals sign, if anywhere.
        let may_be_left_out = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
        let waits = arg.get_action().takes_values() && value.is_none() && !may_be_left_out;
        self.pending = waits.then_some(arg);
        self.given.insert(arg.get_id().as_str(), value.map(str::to_owned));
    }

    fn subcommand(&self, word: &str) -> Option<&'a Command> {
        let command = self.command;
        if self.positionals == 0 && !self.only_positionals { command.find_subcommand(word) } else { None }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        self.command.get_arguments().find(|arg| {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        })
    }

    fn short(&self, letter: char) -> Option<&'a Arg> {
        self.command.get_arguments().find(|arg| {
            arg.get_short() == Some(letter)
                || arg.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&letter))
        })
    }

    /// What may stand in the place of the word that is being typed.
    pub(super) fn complete(&self, typed: &str, names: &dyn Names) -> Answer {
        if let Some(arg) = self.pending {
            return self.values(arg, typed, names);
        }
        if self.only_positionals || !typed.starts_with('-') {
            let mut answer = self.subcommands(typed);
            if let Some(arg) = self.positional() {
                let values = self.values(arg, typed, names);
                answer.candidates.extend(values.candidates);
                answer.files = values.files;
            }
            return answer;
        }
        // As with Cobra, what stands before the equals sign is not repeated.
        if let Some((flag, value)) = typed.split_once('=') {
            let arg = flag.strip_prefix("--").and_then(|name| self.long(name));
            return arg.map(|arg| self.values(arg, value, names)).unwrap_or_default();
        }
        self.flags(typed)
    }

    /// The argument without a name that comes next. The last one may take many.
    fn positional(&self) -> Option<&'a Arg> {
        let mut positionals = self.command.get_positionals();
        let last = self.command.get_positionals().last();
        let many = |arg: &&Arg| {
            matches!(arg.get_action(), ArgAction::Append)
                || arg.get_num_args().is_some_and(|range| range.max_values() > 1)
        };
        positionals.nth(self.positionals).or_else(|| last.filter(many))
    }

    fn subcommands(&self, typed: &str) -> Answer {
        if self.positionals > 0 || self.only_positionals {
            return Answer::default();
        }
        let shown = self.command.get_subcommands().filter(|below| !below.is_hide_set());
        let candidates = shown.filter(|below| below.get_name().starts_with(typed)).map(|below| Candidate {
            value: below.get_name().to_owned(),
            about: below.get_about().map(|about| first_line(&about.to_string())).unwrap_or_default(),
        });
        Answer { candidates: candidates.collect(), files: false }
    }

    fn flags(&self, typed: &str) -> Answer {
        let may_come_again = |arg: &Arg| matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
        let open = |arg: &&Arg| {
            let given = self.given.contains_key(arg.get_id().as_str()) && !may_come_again(arg);
            !arg.is_positional() && !arg.is_hide_set() && !given
        };
        let candidates = self.command.get_arguments().filter(open).flat_map(|arg| {
            let about = arg.get_help().map(|help| first_line(&help.to_string())).unwrap_or_default();
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            let names = long.into_iter().chain(short).filter(|name| name.starts_with(typed));
            names.map(move |value| Candidate { value, about: about.clone() })
        });
        Answer { candidates: candidates.collect(), files: false }
    }

    /// What may be the value of an argument.
    fn values(&self, arg: &Arg, typed: &str, names: &dyn Names) -> Answer {
        let hint = arg.get_value_hint();
        let files = matches!(hint, ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
        // Of several values in one word, the last is being typed.
        let before =
            arg.get_value_delimiter().and_then(|delimiter| typed.rfind(delimiter).map(|at| at + delimiter.len_utf8()));
        let (before, typed) = typed.split_at(before.unwrap_or_default());
        let known = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).map(|value| {
            let about = value.get_help().map(|help| first_line(&help.to_string())).unwrap_or_default();
            // What stands behind an equals sign is only a word for what people write there.
            let name = value.get_name();
            (name.find('=').map_or(name, |at| &name[..=at]).to_owned(), about)
        });
        let named = self.named(arg, names).into_iter().map(|name| (name, String::new()));
        let candidates = known.chain(named).filter(|(value, _)| value.starts_with(typed));
        let candidates = candidates.map(|(value, about)| Candidate { value: format!("{before}{value}"), about });
        Answer { candidates: candidates.collect(), files }
    }

    /// Names of a kubeconfig: the one that belongs to the same cluster as the flag.
    fn named(&self, arg: &Arg, names: &dyn Names) -> Vec<String> {
        let id = arg.get_id().as_str();
        let (which, kind) = match id {
            "cluster" if is_of_connection(arg) => ("", Kind::Clusters),
            "user" if is_of_connection(arg) => ("", Kind::Users),
            "context" | "contexts" => ("", Kind::Contexts),
            id => match id.strip_suffix("_context") {
                Some(which) => (which, Kind::Contexts),
                None => return Vec::new(),
            },
        };
        let file = |id: &str| self.given.get(id).and_then(Option::as_deref);
        names.of(kind, file(&format!("{which}_kubeconfig")).or_else(|| file("kubeconfig")))
    }
}

/// Whether it is one of kubectl's flags: others of the same name mean clusters of a hub.
fn is_of_connection(arg: &Arg) -> bool {
    arg.get_help_heading() == Some("Connection")
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

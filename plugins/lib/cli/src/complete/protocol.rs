//! Cobra's protocol: what asks for candidates, and what is answered.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Command;

use super::candidate::Answer;
use super::names::Kubeconfigs;
use super::{line, names};

/// What asks for candidates, in the place of the first word. The dispatcher has the same.
pub(crate) const WORD: &str = "__complete";

/// Answers for a command: words, of which the last one is being typed.
pub(crate) fn main(command: Command, words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let text = answer(command, words, &Kubeconfigs).to_string();
    // A shell that went away has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn answer(mut command: Command, mut words: Vec<String>, names: &dyn names::Names) -> Answer {
    // Flags of the whole command belong to its subcommands, too.
    command.build();
    // Some shells cannot pass an empty argument: they pass two quotes.
    let typed = words.pop().filter(|word| word != "\"\"").unwrap_or_default();
    line::Line::read(&command, &words).complete(&typed, names)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::{Arg, ArgAction, value_parser};

    use super::*;

    struct Fixed;

    impl names::Names for Fixed {
        fn of(&self, kind: names::Kind, kubeconfig: Option<&str>) -> Vec<String> {
            match (kind, kubeconfig) {
                (names::Kind::Contexts, None) => vec!["hub".to_owned(), "c1".to_owned()],
                (names::Kind::Contexts, Some(file)) => vec![format!("of-{file}")],
                (kind, _) => vec![format!("{kind:?}")],
            }
        }
    }

    fn command() -> Command {
        let global = |id: &'static str, long: &'static str| Arg::new(id).long(long).global(true);
        let clusters = Command::new("clusters")
            .about("Managed clusters\nand more")
            .visible_alias("cluster")
            .arg(Arg::new("names").num_args(1..))
            .arg(Arg::new("output").short('o').long("output").value_parser(["table", "json", "jsonpath=TEMPLATE"]))
            .arg(Arg::new("contexts").long("contexts").value_delimiter(','))
            .arg(Arg::new("only").short('c').long("only").value_delimiter(',').value_parser(["a1", "a2"]))
            .arg(Arg::new("watch").short('w').long("watch").action(ArgAction::SetTrue).help("Go on"))
            .arg(Arg::new("file").long("file").value_parser(value_parser!(PathBuf)))
            .arg(Arg::new("secret").long("secret").hide(true));
        let mode = Command::new("mode").arg(Arg::new("mode").value_parser(["on", "off"]));
        Command::new("get")
            .arg(global("context", "context"))
            .arg(global("kubeconfig", "kubeconfig"))
            .arg(global("hub_context", "hub-context"))
            .arg(global("hub_kubeconfig", "hub-kubeconfig"))
            .subcommand(clusters)
            .subcommand(mode)
            .subcommand(Command::new("inner").hide(true))
    }

    fn ask(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        answer(command(), words, &Fixed).candidates.into_iter().map(|one| one.value).collect()
    }

    #[test]
    fn subcommands_flags_and_values_are_offered() {
        assert_eq!(ask(&[""]), ["clusters", "mode", "help"]);
        assert_eq!(ask(&["cl"]), ["clusters"]);
        assert_eq!(ask(&["clusters", "--w"]), ["--watch"]);
        assert_eq!(ask(&["clusters", "--o"]), ["--output", "--only"]);
        assert_eq!(ask(&["clusters", "-o", ""]), ["table", "json", "jsonpath="]);
        assert_eq!(ask(&["cluster", "--output", "j"]), ["json", "jsonpath="]);
        assert_eq!(ask(&["clusters", "--output=t"]), ["table"]);
        assert_eq!(ask(&["clusters", "-c", "a1,"]), ["a1,a1", "a1,a2"]);
        assert_eq!(ask(&["mode", "o"]), ["on", "off"]);
        assert_eq!(ask(&["mode", "on", "o"]), [""; 0]);
        assert_eq!(ask(&["clusters", "--", "--w"]), [""; 0]);
    }

    #[test]
    fn what_was_given_or_is_hidden_is_not_offered() {
        assert!(!ask(&["clusters", "--watch", "--"]).contains(&"--watch".to_owned()));
        assert!(!ask(&["clusters", "-w", "--"]).contains(&"--watch".to_owned()));
        assert!(!ask(&["clusters", "--"]).contains(&"--secret".to_owned()));
        // A value that looks like a subcommand is none.
        assert_eq!(ask(&["--context", "mode", "mo"]), ["mode"]);
        assert_eq!(ask(&["clusters", "-wo", "ta"]), ["table"]);
        assert_eq!(ask(&["clusters", "-ojson", "--w"]), ["--watch"]);
    }

    #[test]
    fn contexts_are_those_of_the_kubeconfig_that_is_named() {
        assert_eq!(ask(&["clusters", "--context", ""]), ["hub", "c1"]);
        assert_eq!(ask(&["--context=h"]), ["hub"]);
        assert_eq!(ask(&["clusters", "--contexts", "c1,h"]), ["c1,hub"]);
        assert_eq!(ask(&["clusters", "--kubeconfig", "k", "--context", ""]), ["of-k"]);
        assert_eq!(ask(&["clusters", "--kubeconfig=k", "--hub-context", ""]), ["of-k"]);
        assert_eq!(ask(&["--hub-kubeconfig", "h", "--kubeconfig=k", "clusters", "--hub-context", ""]), ["of-h"]);
        assert_eq!(ask(&["--hub-kubeconfig", "h", "clusters", "--context", ""]), ["hub", "c1"]);
    }

    #[test]
    fn answers_have_the_form_that_kubectl_reads() {
        let text = |words: &[&str]| {
            answer(command(), words.iter().map(|word| (*word).to_owned()).collect(), &Fixed).to_string()
        };
        assert_eq!(text(&["cl"]), "clusters\tManaged clusters\n:4\n");
        assert_eq!(text(&["clusters", "-o", "jsonp"]), "jsonpath=\n:6\n");
        assert_eq!(text(&["clusters", "--file", ""]), ":0\n");
        assert_eq!(text(&["clusters", "\"\""]), ":4\n");
        assert_eq!(text(&[]), text(&[""]));
    }
}

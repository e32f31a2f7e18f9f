//! From words to a binary.

use std::collections::BTreeMap;
use std::env::ArgsOs;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::nearest::nearest;
use crate::output::{USAGE, fail, plain, show};
use crate::siblings::{Origin, become_it};
use crate::verbs::VERBS;
use crate::{completion, siblings, version};

/// Runs what the arguments ask for; the first is the name of this program.
pub(crate) fn main(mut arguments: ArgsOs) -> ExitCode {
    let program = arguments.next().unwrap_or_default();
    let words: Vec<OsString> = arguments.collect();
    match completion::called_by_kubectl(&program, &words) {
        Some(words) => completion::answer(&words),
        None => run(words),
    }
}

fn run(mut arguments: Vec<OsString>) -> ExitCode {
    if arguments.is_empty() {
        return show(&help());
    }
    let word = arguments.remove(0);
    let Some(word) = word.to_str().map(str::to_owned) else {
        return fail(USAGE, &format!("{word:?} is no verb"), "kubectl ocm --help lists the verbs");
    };
    match word.as_str() {
        "-h" | "--help" => show(&help()),
        "help" => match arguments.first() {
            None => show(&help()),
            Some(verb) if verb == "completion" => completion::main(&["--help".into()]),
            Some(verb) => match verb.to_str().and_then(siblings::find) {
                Some(binary) => become_it(&binary, &asking_for_help(&arguments)),
                None => unknown(&verb.to_string_lossy()),
            },
        },
        "version" | "--version" | "-V" => version::main(&arguments),
        "completion" => completion::main(&arguments),
        completion::WORD => completion::answer(&arguments),
        flag if flag.starts_with('-') => fail(
            USAGE,
            &format!("the flag {flag} stands before the verb"),
            "flags come after the verb: kubectl ocm join --context NAME",
        ),
        verb => match siblings::find(verb) {
            Some(binary) => become_it(&binary, &arguments),
            None => unknown(verb),
        },
    }
}

/// What the binary of a verb is given for `help VERB WORD…`: the words, which may name a subcommand of it, and `--help`. Behind
/// `--` that would be no flag.
fn asking_for_help(words: &[OsString]) -> Vec<OsString> {
    words.iter().skip(1).take_while(|word| *word != "--").cloned().chain(["--help".into()]).collect()
}

fn help() -> String {
    help_of(&siblings::all())
}

/// The help where there are these binaries.
fn help_of(found: &BTreeMap<String, Vec<(PathBuf, Origin)>>) -> String {
    let width = found.keys().map(String::len).max().unwrap_or_default().max("completion".len());
    let mut text =
        "Register Kubernetes clusters to an Open Cluster Management hub\n\nUsage: kubectl ocm VERB [FLAGS]\n\nVerbs:\n"
            .to_owned();
    for (verb, about) in VERBS.iter().filter(|(verb, _)| found.contains_key(*verb)) {
        text += &format!("  {verb:width$}  {about}\n");
    }
    text += &format!("  {:width$}  {}\n", "completion", completion::ABOUT);
    text += &format!("  {:width$}  Show the version of every binary\n", "version");
    for (verb, binaries) in found.iter().filter(|(verb, _)| !VERBS.iter().any(|(known, _)| known == verb)) {
        let shown = binaries.first().map(|(path, _)| plain(&path.to_string_lossy())).unwrap_or_default();
        text += &format!("  {verb:width$}  {shown}\n");
    }
    text += "\nTo begin with: install a hub, create a token there, join a cluster with it, accept the cluster:\n";
    text += "  kubectl ocm install hub --context hub --wait\n";
    text += "  kubectl ocm token create --context hub\n";
    text += "  kubectl ocm join c1 --context c1 --hub-token TOKEN --hub-apiserver URL --wait\n";
    text += "  kubectl ocm accept c1 --context hub\n";
    text += "With access to both clusters from one kubeconfig:\n";
    text += "  kubectl ocm join c1 --context c1 --hub-context hub --accept --wait\n";
    text += "\nkubectl ocm VERB --help tells more about a verb.\n";
    text
}

fn unknown(verb: &str) -> ExitCode {
    let found = siblings::all();
    let known = found.keys().map(String::as_str).chain(["completion", "version", "help"]);
    let hint = match nearest(verb, known) {
        Some(near) => format!("did you mean: kubectl ocm {near}"),
        None => "kubectl ocm --help lists the verbs".to_owned(),
    };
    fail(USAGE, &format!("kubectl ocm has no verb {verb:?}"), &hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_sent_nothing_of_a_folder_that_it_obeys() {
        let binary = PathBuf::from("/a\u{1b}[2J\u{202e}/kubectl-ocm-x");
        let text = help_of(&BTreeMap::from([("x".to_owned(), vec![(binary, Origin::Path)])]));
        assert!(text.contains(r"/a\u{1b}[2J\u{202e}/kubectl-ocm-x"), "{text}");
    }

    #[test]
    fn help_is_about_the_subcommand_that_is_named() {
        let asked = |words: &[&str]| asking_for_help(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked(&["get"]), ["--help"]);
        assert_eq!(asked(&["get", "clusters"]), ["clusters", "--help"]);
        assert_eq!(asked(&["proxy", "kubectl", "--", "get", "pods"]), ["kubectl", "--help"]);
    }
}

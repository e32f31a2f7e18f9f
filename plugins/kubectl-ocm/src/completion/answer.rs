//! What may stand at the end of a command line, in the words of Cobra's protocol: one candidate a line, its description
//! behind a tab, and `:4` for "no files" in the end.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use super::scripts::{self, SHELLS};
use crate::output::show;
use crate::siblings::{self, become_it};
use crate::verbs::VERBS;

/// What asks for candidates, in the place of the verb. The binaries of verbs have the same.
pub(crate) const WORD: &str = "__complete";

/// What kubectl's completion calls programs that complete a plugin.
const COMPLETER: &str = "kubectl_complete-ocm";

/// The words to complete if this program was called as kubectl's completion calls one: by the name `kubectl_complete-ocm`
/// with the words behind `kubectl ocm`, or `kubectl_complete-ocm-VERB` with those behind the verb. kubectl does the latter
/// where the binaries of verbs are on PATH.
pub(crate) fn called_by_kubectl(program: &OsStr, words: &[OsString]) -> Option<Vec<OsString>> {
    let name = Path::new(program).file_name()?.to_str()?;
    let name = name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(name);
    match name.strip_prefix(COMPLETER)? {
        "" => Some(words.to_vec()),
        verb => {
            let verb = verb.strip_prefix('-')?.replace('_', "-");
            Some([OsString::from(verb)].into_iter().chain(words.iter().cloned()).collect())
        }
    }
}

/// Answers: the last word is the one that is being typed.
pub(crate) fn answer(words: &[OsString]) -> ExitCode {
    let [verb, rest @ ..] = words else { return offer(verbs(), "") };
    let Some(verb) = verb.to_str() else { return offer(Vec::new(), "") };
    match (verb, rest) {
        (typed, []) => offer(verbs(), typed),
        ("completion", [typed]) => offer(SHELLS.iter().map(|(name, about, _)| (*name, *about)).collect(), &word(typed)),
        ("help", [typed]) => offer(verbs(), &word(typed)),
        ("version", [typed]) => offer(vec![("-o", "Format of stdout"), ("--help", "Print help")], &word(typed)),
        ("version", [flag, typed]) if flag == "-o" => offer(vec![("json", "One JSON document")], &word(typed)),
        // Programs of others are not started while somebody types.
        (verb, rest) => match siblings::find(verb).filter(|_| VERBS.iter().any(|(known, _)| *known == verb)) {
            Some(binary) => become_it(&binary, &[&[OsString::from(WORD)], rest].concat()),
            None => offer(Vec::new(), ""),
        },
    }
}

fn verbs() -> Vec<(&'static str, &'static str)> {
    let found = siblings::all();
    let verbs = VERBS.iter().copied().filter(|(verb, _)| found.contains_key(*verb));
    let own = [
        ("completion", scripts::ABOUT),
        ("version", "Show the version of every binary"),
        ("help", "Tell more about a verb"),
    ];
    verbs.chain(own).collect()
}

/// A word that is being typed. Some shells cannot pass an empty one: they pass two quotes.
fn word(typed: &OsStr) -> String {
    let typed = typed.to_string_lossy();
    if typed == "\"\"" { String::new() } else { typed.into_owned() }
}

fn offer(candidates: Vec<(&str, &str)>, typed: &str) -> ExitCode {
    show(&answered(&candidates, typed))
}

fn answered(candidates: &[(&str, &str)], typed: &str) -> String {
    let typed = if typed == "\"\"" { "" } else { typed };
    let mut text = String::new();
    for (value, about) in candidates.iter().filter(|(value, _)| value.starts_with(typed)) {
        text += &format!("{value}\t{about}\n");
    }
    text + ":4\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_begin_with_what_was_typed() {
        let candidates = [("join", "Register a cluster"), ("get", "List")];
        assert_eq!(answered(&candidates, "j"), "join\tRegister a cluster\n:4\n");
        assert_eq!(answered(&candidates, "\"\""), "join\tRegister a cluster\nget\tList\n:4\n");
        assert_eq!(answered(&candidates, "x"), ":4\n");
    }

    #[test]
    fn the_name_says_whether_kubectl_asks() {
        let asked = |program: &str, words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            called_by_kubectl(OsStr::new(program), &words)
                .map(|words| words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(asked("/usr/bin/kubectl-ocm", &["join"]), None);
        assert_eq!(asked("/usr/bin/kubectl_complete-ocm", &["join", "--c"]).as_deref(), Some("join --c"));
        assert_eq!(asked("kubectl_complete-ocm-tls_check", &["--c"]).as_deref(), Some("tls-check --c"));
        assert_eq!(asked("kubectl_complete-ocmx", &["--c"]), None);
    }
}

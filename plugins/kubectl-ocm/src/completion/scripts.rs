//! `kubectl ocm completion`: the scripts.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::nearest::nearest;
use crate::output::{USAGE, fail, show};

/// What the verb does, for lists of verbs.
pub(crate) const ABOUT: &str = "Print the script that completes kubectl ocm in a shell";

/// What there are scripts for, what each is for, and the script.
pub(crate) const SHELLS: [(&str, &str, &str); 5] = [
    ("bash", "For bash", include_str!("bash.sh")),
    ("zsh", "For zsh", include_str!("zsh.zsh")),
    ("fish", "For fish", include_str!("fish.fish")),
    ("powershell", "For PowerShell", include_str!("powershell.ps1")),
    ("kubectl", "The program kubectl_complete-ocm, which kubectl's own completion asks", include_str!("kubectl.sh")),
];

const HELP: &str = "
To load it in every shell that is started:
  bash        echo 'source <(kubectl ocm completion bash)' >> ~/.bashrc
  zsh         echo 'source <(kubectl ocm completion zsh)' >> ~/.zshrc
  fish        kubectl ocm completion fish > ~/.config/fish/completions/kubectl-ocm.fish
  powershell  kubectl ocm completion powershell >> $PROFILE

In bash and zsh it stands behind kubectl's own completion, if that is loaded, too.

Instead, kubectl 1.26 or newer can ask for candidates itself, in every shell in which its own completion is loaded.
It looks for a program kubectl_complete-ocm on PATH; the archive of a release has one. Without it:
  kubectl ocm completion kubectl > ~/.local/bin/kubectl_complete-ocm
  chmod +x ~/.local/bin/kubectl_complete-ocm

Exit codes: 0 ok, 2 usage.
";

pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    match words.iter().map(|word| &**word).collect::<Vec<&str>>().as_slice() {
        ["-h" | "--help"] => show(&help()),
        [shell] => match SHELLS.iter().find(|(name, ..)| name == shell) {
            Some((_, _, script)) => show(script),
            None => unknown(shell),
        },
        [] => fail(USAGE, "completion needs the name of a shell", &hint()),
        several => fail(USAGE, &format!("completion takes one shell, not {}", several.join(" ")), &hint()),
    }
}

fn unknown(word: &str) -> ExitCode {
    let hint = match nearest(word, SHELLS.iter().map(|(name, ..)| *name)) {
        Some(near) => format!("did you mean: kubectl ocm completion {near}"),
        None => hint(),
    };
    fail(USAGE, &format!("there is no completion for {word:?}"), &hint)
}

fn hint() -> String {
    let names: Vec<&str> = SHELLS.iter().map(|(name, ..)| *name).collect();
    format!("name one: {}", names.join(", "))
}

fn help() -> String {
    let mut text = format!("{ABOUT}\n\nUsage: kubectl ocm completion SHELL\n\nShells:\n");
    for (name, about, _) in SHELLS {
        text += &format!("  {name:10}  {about}\n");
    }
    text + HELP
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::process::Command;

    /// What bash is offered at the end of a line, where the answer holds names that would be commands; behind it, what was asked.
    fn offered(line: &str) -> Vec<String> {
        let names = ["hub", "$(touch x)y", "prod; touch x", "it's `x` \"!\"", "me@c:1 a", "a,b"];
        let words = names.map(|name| format!("{name}\tA context")).join("\n");
        let script = format!(
            "COMP_WORDBREAKS=$' \\t\\n\"\\'@><=;|&(:'; source {}/src/completion/bash.sh; \
             kubectl-ocm() {{ printf '%s\\n' \"$WORDS\" :4; printf '<%s>' \"$@\" >&3; }}; \
             COMP_POINT=${{#COMP_LINE}}; {{ _kubectl_ocm; }} 3>&1; printf '\\n%s' \"${{COMPREPLY[@]}}\"",
            env!("CARGO_MANIFEST_DIR")
        );
        // What is asked goes out by another descriptor: the script minds no errors.
        let out = Command::new("bash")
            .args(["--norc", "-c", &script])
            .env("COMP_LINE", line)
            .env("WORDS", words)
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_is_offered_words_that_run_nothing() {
        let all = offered("kubectl ocm get --context ");
        assert_eq!(
            all,
            [
                "<__complete><get><--context><>",
                "hub",
                r"\$\(touch\ x\)y",
                r"prod\;\ touch\ x",
                r#"it\'s\ \`x\`\ \"\!\""#,
                r"me@c:1\ a",
                "a,b",
            ]
        );
        assert_eq!(offered("kubectl-ocm get --context 'i")[1..], [r#"it'\''s `x` "!""#]);
        assert_eq!(offered("kubectl-ocm get --context \"i")[1..], [r#"it's \`x\` \""\!"\""#]);
        assert_eq!(offered(r#"kubectl-ocm get --context "$"#)[1..], [r"\$(touch x)y"]);
    }

    #[test]
    fn bash_reads_quotes_and_replaces_what_it_takes_for_a_word() {
        for (line, asked, offer) in [
            // Behind = and : bash replaces the rest alone, and from @ on, but for what is quoted.
            ("kubectl ocm get --context=me@c:", "<__complete><get><--context=me@c:>", r"1\ a"),
            ("kubectl ocm get --context m", "<__complete><get><--context><m>", r"me@c:1\ a"),
            ("kubectl ocm get --context me'@c:1 ", "<__complete><get><--context><me@c:1 >", "@c:1 a"),
            ("kubectl ocm get --context 'me@c:1'", "<__complete><get><--context><me@c:1>", r"me@c:1\ a"),
            (r"kubectl ocm get --context me@c\:1\ ", "<__complete><get><--context><me@c:1 >", r"@c:1\ a"),
            (r#"kubectl ocm get "/x \"y" --context h"#, r#"<__complete><get></x "y><--context><h>"#, "hub"),
        ] {
            assert_eq!(offered(line), [asked, offer], "{line}");
        }
    }
}

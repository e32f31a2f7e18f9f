//! Shell completion: what kubectl's completion and the scripts of shells are answered. No cluster is asked.

use std::os::unix::fs::symlink;
use std::process::Command;

use cli_tests::{Cli, Run, binary, check, kubeconfig};

/// The candidates of an answer, without their descriptions, and the directive.
fn read(run: &Run) -> (Vec<String>, String) {
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{run}");
    let mut lines: Vec<String> =
        run.stdout.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
    let directive = lines.pop().expect("a directive");
    assert!(directive.starts_with(':'), "{run}");
    (lines, directive)
}

fn complete(cli: &Cli, words: &[&str]) -> (Vec<String>, String) {
    read(&cli.run([&["__complete"], words].concat()))
}

#[test]
fn verbs_subcommands_flags_and_values_are_completed() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub", "c1"]));
    let one = |words: &[&str]| complete(&cli, words).0;
    assert_eq!(one(&["tok"]), ["token"]);
    assert_eq!(one(&["tls"]), ["tls-check"]);
    assert_eq!(one(&["completion", "p"]), ["powershell"]);
    assert_eq!(one(&["help", "acc"]), ["accept"]);
    assert_eq!(one(&["get", "clusters", "--show-l"]), ["--show-labels"]);
    assert_eq!(one(&["get", "works", "--all"]), ["--all-namespaces"]);
    assert_eq!(one(&["tls-check", "--contex"]), ["--contexts", "--context"]);
    assert_eq!(one(&["get", "clusters", "-o", "j"]), ["json", "jsonpath="]);
    assert_eq!(one(&["get", "clusters", "-o", "t"]), ["table", "tree"]);
    assert_eq!(one(&["get", "csr", "-o", "t"]), ["table"]);
    assert_eq!(one(&["get", "clusters", "--cluster-"]), ["--cluster-set"]);
    assert_eq!(one(&["get", "tokens", "--wat"]), ["--watch"]);
    assert_eq!(one(&["clusterset", "unset", "--names"]), ["--namespaces"]);
    assert_eq!(one(&["install", "hu"]), ["hub", "hub-addon"]);
    assert_eq!(one(&["policy", "li"]), ["list"]);
    // All verbs, ours last.
    let (verbs, directive) = complete(&cli, &[""]);
    assert!(verbs.len() > 10 && verbs.ends_with(&["completion".into(), "version".into(), "help".into()]), "{verbs:?}");
    assert_eq!(directive, ":4");
    // Words that nobody knows have no candidates, and are no errors.
    assert_eq!(complete(&cli, &["nosuch", "x"]), (Vec::new(), ":4".to_owned()));
    assert_eq!(complete(&cli, &["get", "clusters", "--nosuch=x"]), (Vec::new(), ":4".to_owned()));
}

#[test]
fn contexts_are_those_of_the_kubeconfig() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub", "c1"]));
    let other = cli.write("other.yaml", &kubeconfig("https://127.0.0.1:1", &["elsewhere"]));
    let other = other.to_str().expect("a path of text");
    let one = |words: &[&str]| complete(&cli, words).0;
    assert_eq!(one(&["get", "clusters", "--context", ""]), ["hub", "c1"]);
    assert_eq!(one(&["get", "--context=h"]), ["hub"]);
    assert_eq!(one(&["get", "clusters", "--cluster", "c"]), ["c1"]);
    assert_eq!(one(&["get", "clusters", "--user", "h"]), ["hub-admin"]);
    assert_eq!(one(&["join", "--hub-context", "h"]), ["hub"]);
    assert_eq!(one(&["get", "clusters", "--kubeconfig", other, "--context", ""]), ["elsewhere"]);
    assert_eq!(one(&["join", "--hub-kubeconfig", other, "--hub-context", ""]), ["elsewhere"]);
    assert_eq!(complete(&cli, &["get", "--kubeconfig", ""]), (Vec::new(), ":0".to_owned()));
    // Without a kubeconfig there are no names.
    assert_eq!(complete(&Cli::new(), &["get", "--context", ""]), (Vec::new(), ":4".to_owned()));
}

#[test]
fn kubectl_asks_by_the_name_of_the_program() {
    let cli = Cli::new();
    let link = |name: &str| {
        let link = cli.home().join(name);
        symlink(binary("kubectl-ocm"), &link).expect("a link can be made");
        link
    };
    let whole = link("kubectl_complete-ocm");
    assert_eq!(read(&cli.run_file(&whole, ["get", "clus"])).0, ["clusters", "clustersets"]);
    assert_eq!(read(&cli.run_file(&whole, ["upg"])).0, ["upgrade"]);
    let verb = link("kubectl_complete-ocm-tls_check");
    assert_eq!(read(&cli.run_file(&verb, ["--contex"])).0, ["--contexts", "--context"]);
}

#[test]
fn scripts_are_printed_for_every_shell() {
    let cli = Cli::new();
    check!("completion-help", cli, cli.run(["completion", "--help"]));
    check!("completion-nothing", cli, cli.run(["completion"]));
    check!("completion-unknown", cli, cli.run(["completion", "bsh"]));
    for shell in ["bash", "zsh", "fish", "powershell", "kubectl"] {
        let run = cli.run(["completion", shell]);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{run}");
        assert!(run.stdout.contains("kubectl-ocm __complete"), "{run}");
    }
}

#[test]
fn bash_completes_what_is_typed() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub", "c:1"]));
    let script = cli.write("completion.bash", &cli.run(["completion", "bash"]).stdout);
    let folder = cli_tests::folder().display().to_string();
    // As readline calls it: the line, where the cursor is, and the words as bash splits them.
    let typed = |line: &str, words: &str| {
        let program = format!(
            "PATH={folder}:$PATH; source {}; COMP_LINE={line:?}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _kubectl_or_ocm; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let run = Run::of(
            Command::new("/bin/bash")
                .args(["--norc", "-c", &program])
                .env_clear()
                .envs([("HOME", cli.home().to_str().expect("a path of text")), ("PATH", "/usr/bin:/bin")]),
        );
        assert_eq!(run.exit, 0, "{run}");
        run.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(typed("kubectl ocm tok", "kubectl ocm tok"), ["token"]);
    assert_eq!(typed("kubectl ocm get clusters --wat", "kubectl ocm get clusters --wat"), ["--watch"]);
    assert_eq!(typed("kubectl ocm get clusters --context=h", "kubectl ocm get clusters --context = h"), ["hub"]);
    // Behind a colon bash replaces only the rest.
    assert_eq!(typed("kubectl ocm get clusters --context c:", "kubectl ocm get clusters --context c :"), ["1"]);
    assert_eq!(typed("kubectl ocm get clusters --context ", "kubectl ocm get clusters --context ''").len(), 2);
}

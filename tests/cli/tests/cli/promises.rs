//! What holds of every command: which cluster it asks, and what it refuses before it asks anybody.

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};

/// Nobody may do anything.
const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"nobody may",
    "reason":"Forbidden","code":403}"#;

fn closed() -> Server {
    Server::start(|_, _| Reply::Json(403, FORBIDDEN.to_owned()))
}

#[test]
fn of_two_contexts_the_one_that_is_named_is_asked_and_no_other() {
    let (current, named) = (closed(), closed());
    let text = kubeconfig(&current.url(), &["current", "named"]);
    let of_named = |server: &Server| format!("- name: named\n  cluster: {{ server: \"{}\" }}\n", server.url());
    let text = text.replace(&of_named(&current), &of_named(&named));
    assert!(
        text.starts_with("apiVersion: v1\nkind: Config\ncurrent-context: current\n") && text.contains(&named.url())
    );
    let cli = Cli::with_kubeconfig(&text);
    let commands: [&[&str]; 22] = [
        &["install", "hub", "--dry-run=client"],
        &["install", "baseline", "--dry-run=client"],
        &["uninstall", "hub", "--dry-run"],
        &["uninstall", "baseline", "--dry-run"],
        &["uninstall", "policy-engine", "--dry-run"],
        &["uninstall", "hub-addon", "a", "--dry-run"],
        &["upgrade", "hub", "--dry-run"],
        &["upgrade", "klusterlet", "--dry-run"],
        &["token", "list"],
        &["accept", "c1"],
        &["detach", "c1", "--dry-run"],
        &["unjoin", "c1", "--dry-run"],
        &["get", "clusters"],
        &["clusterset", "delete", "s", "--dry-run"],
        &["placement", "delete", "p", "--dry-run"],
        &["work", "delete", "w", "--clusters=c1", "--dry-run"],
        &["addon", "enable", "a", "--clusters=c1", "--dry-run"],
        &["addon", "disable", "a", "--clusters=c1", "--dry-run"],
        &["addon", "delete", "a", "--dry-run"],
        &["addon", "config", "unset", "a", "--default", "--config=x.g", "--dry-run"],
        &["proxy", "health"],
        &["troubleshoot"],
    ];
    for words in commands {
        let before = named.asked().len();
        let run = cli.run([words, &["--context", "named"]].concat());
        assert_ne!(run.exit, 0, "{words:?}: {run}");
        assert!(named.asked().len() > before, "{words:?} has asked nobody: {run}");
        assert!(current.asked().is_empty(), "{words:?}: {:?}", current.lines());
    }
}

/// Each is a usage error, with this word in its sentence, and nobody is asked.
fn are_refused(commands: &[(&[&str], &str)]) {
    let server = closed();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for (words, said) in commands {
        let run = cli.run(*words);
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{words:?}: {run}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(*said), "{words:?}: {run}");
    }
    assert!(server.asked().is_empty(), "{:?}", server.lines());
}

#[test]
fn what_is_malformed_or_too_much_is_refused_before_anybody_is_asked() {
    let token = ["join", "c1", "--hub-token=abcdef.0123456789abcdef", "--hub-apiserver=https://hub.example:6443"];
    let annotated = [&token[..], &["--klusterlet-annotation=nonsense"]].concat();
    let gated = [&token[..], &["--feature-gates=NoSuchGate=true"]].concat();
    are_refused(&[
        (&annotated, "--klusterlet-annotation \"nonsense\" is not KEY=VALUE"),
        (&gated, "NoSuchGate"),
        (&["install", "hub", "more"], "more"),
        (&["uninstall", "hub", "more"], "more"),
        (&["upgrade", "hub", "more"], "more"),
        (&["token", "create", "more"], "more"),
        (&["join", "c1", "more"], "more"),
        (&["unjoin", "c1", "more"], "more"),
        (&["clusterset", "bind", "set", "more"], "more"),
        (&["placement", "create", "placement", "more"], "more"),
        (&["addon", "create", "hello", "more"], "more"),
    ]);
}

#[test]
fn a_fleet_file_that_is_upgraded_says_alone_which_clusters_there_are_and_how_they_are_reached() {
    fn beside(words: &[&'static str]) -> Vec<&'static str> {
        [&["upgrade", "klusterlet", "-f", "fleet.yaml"][..], words].concat()
    }
    let cases: [(&[&str], &str); 11] = [
        (&["c1"], "cannot be used with"),
        (&["--klusterlet", "k"], "--klusterlet"),
        (&["--contexts", "c1,c2"], "--contexts"),
        (&["--hub-context", "hub"], "--hub-context"),
        (&["--hub-kubeconfig", "hub.yaml"], "--hub-kubeconfig"),
        (&["--diff"], "--diff"),
        (&["--render"], "--render"),
        (&["--stage", "none"], "--stage \"none\" is neither a number nor a share"),
        (&["--context", "c1"], "--filename says how each cluster is reached"),
        (&["--as-group", "g"], "--filename says how each cluster is reached"),
        (&[], "cannot read the fleet file fleet.yaml"),
    ];
    let commands: Vec<(Vec<&str>, &str)> = cases.iter().map(|(words, said)| (beside(words), *said)).collect();
    let commands: Vec<(&[&str], &str)> = commands.iter().map(|(words, said)| (words.as_slice(), *said)).collect();
    are_refused(&commands);
    are_refused(&[
        (&["upgrade", "klusterlet", "--stage", "1"], "--contexts <NAME,...>|--filename <FILE>"),
        (&["upgrade", "klusterlet", "--cluster-sets", "s"], "--contexts <NAME,...>|--filename <FILE>"),
    ]);
}

#[test]
fn what_is_wrong_with_a_fleet_file_that_is_upgraded_is_told_in_its_words() {
    let server = closed();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let upgrade = |cluster: &str| {
        let head = "apiVersion: kubectl-ocm.dev/v1alpha1\nkind: Fleet\nhub: {context: hub}\nclusters:\n";
        cli.write("fleet.yaml", &format!("{head}- {{name: c1, {cluster}}}\n"));
        cli.run(["upgrade", "klusterlet", "-f", "fleet.yaml"])
    };
    for (cluster, told) in [
        ("context: c1, lables: {a: b}", "did you mean labels?"),
        ("context: hup", "hint: did you mean context: hub?"),
        ("context: hup", "c1 of the fleet file cannot be reached; nothing was changed"),
    ] {
        let run = upgrade(cluster);
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{run}");
        assert!(run.stderr.contains(told), "{run}");
    }
    assert!(server.asked().is_empty(), "{:?}", server.lines());
}

#[test]
fn clusters_are_named_before_anything_is_taken_from_them() {
    are_refused(&[
        (&["addon", "disable", "hello"], "--clusters"),
        (&["addon", "disable", "hello", "--yes"], "--clusters"),
        (&["addon", "delete", "--yes"], "NAME"),
        (&["addon", "config", "unset", "hello", "--config=x.g"], "--clusters"),
        (&["work", "delete", "story"], "--clusters"),
        (&["detach"], "CLUSTER"),
    ]);
}

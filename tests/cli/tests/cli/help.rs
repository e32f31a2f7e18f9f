//! What every command says of itself.

use cli_tests::{Cli, binaries, binary, check, tree};

#[test]
fn help_of_every_command() {
    let cli = Cli::new();
    for words in tree::commands() {
        let name = format!("kubectl-ocm-{}", words[0]);
        for (flag, kind) in [("--help", "long"), ("-h", "short")] {
            check!(format!("help-{kind}-{}", words.join("-")), cli, tree::help(&cli, &name, &words, flag));
        }
    }
}

#[test]
fn help_of_the_suite() {
    let cli = Cli::new();
    let help = cli.run(["--help"]);
    check!("help-suite", cli, help);
    for same in [&[][..], &["-h"], &["help"]] {
        assert_eq!(cli.run(same), help, "{same:?}");
    }
    check!("help-version", cli, cli.run(["version", "--help"]));
}

#[test]
fn help_by_the_dispatcher_is_the_commands_own() {
    let cli = Cli::new();
    for words in tree::commands() {
        let own = tree::help(&cli, &format!("kubectl-ocm-{}", words[0]), &words, "--help");
        assert_eq!(cli.run(words.iter().map(String::as_str).chain(["--help"])), own, "{words:?}");
        if let [verb] = words.as_slice() {
            assert_eq!(cli.run(["help", verb]), own, "help {verb}");
        }
    }
}

#[test]
fn every_command_tells_its_version() {
    let cli = Cli::new();
    for name in binaries() {
        let run = cli.run_file(&binary(&name), ["--version"]);
        assert_eq!(run.exit, 0, "{name}: {run}");
        if name != "kubectl-ocm" {
            assert_eq!(run.stdout, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
        }
    }
}

#[test]
fn an_unknown_flag_is_a_usage_error_of_every_command() {
    let cli = Cli::new();
    for words in tree::commands() {
        let run = cli.run(words.iter().map(String::as_str).chain(["--no-such-flag"]));
        assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{words:?}: {run}");
        assert!(run.stderr.starts_with("error: "), "{words:?}: {run}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let cli = Cli::new();
    for name in binaries() {
        let shell = format!("{} --help | true; exit ${{PIPESTATUS[0]}}", binary(&name).display());
        let run = cli.run_file("/bin/bash".as_ref(), ["-c", &shell]);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{name}: {run}");
    }
}

//! `kubectl ocm` finds the binary of a verb.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use cli_tests::{Cli, binaries, binary, check, escape, file_name};

/// A command of somebody else's that says how it was called.
fn third_party(cli: &Cli, folder: &str, verb: &str) -> PathBuf {
    let file = cli.write(&format!("{folder}/kubectl-ocm-{verb}"), "#!/bin/sh\necho \"own $*\"\nexit 7\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    file
}

#[test]
fn what_is_no_verb() {
    let cli = Cli::new();
    check!("dispatch-unknown-verb", cli, cli.run(["acept", "c1"]));
    check!("dispatch-swapped-letters", cli, cli.run(["jion", "c1"]));
    check!("dispatch-unlike-any-verb", cli, cli.run(["zzzzzzzz"]));
    check!("dispatch-help-of-unknown-verb", cli, cli.run(["help", "instal"]));
    check!("dispatch-flag-before-verb", cli, cli.run(["--context", "hub", "accept"]));
    check!("dispatch-version-with-word", cli, cli.run(["version", "now"]));
    // What a file name could be made of must not become a path.
    check!("dispatch-path-as-verb", cli, cli.run(["../../bin/true"]));
}

#[test]
fn versions_of_everything_in_one_folder() {
    let cli = Cli::new();
    check!("version-table", cli, cli.run(["version"]));
    check!("version-json", cli, cli.run(["version", "-o", "json"]));
}

#[test]
fn a_verb_of_somebody_else_is_found_on_path() {
    let cli = Cli::new();
    third_party(&cli, "tools", "node_drain");
    let cli = with_path(cli, "tools");
    check!("dispatch-third-party", cli, cli.run(["node-drain", "--flag", "word"]));
    check!("dispatch-third-party-in-help", cli, cli.run(["--help"]));
}

#[test]
fn our_own_verb_comes_before_one_on_path() {
    let cli = Cli::new();
    third_party(&cli, "tools", "accept");
    let cli = with_path(cli, "tools");
    let run = cli.run(["accept", "--version"]);
    assert_eq!(run.stdout, format!("kubectl-ocm-accept {}\n", env!("CARGO_PKG_VERSION")));
    check!("version-shadowed", cli, cli.run(["version"]));
}

#[test]
fn krew_links_only_the_dispatcher() {
    let cli = Cli::new();
    let store = cli.home().join("store/v0.1.0");
    fs::create_dir_all(&store).expect("a folder can be made");
    for name in binaries() {
        fs::copy(binary(&name), store.join(file_name(&name))).expect("a binary can be copied");
    }
    fs::create_dir_all(cli.home().join("krew/bin")).expect("a folder can be made");
    let link = cli.home().join("krew/bin/kubectl-ocm");
    symlink(store.join("kubectl-ocm"), &link).expect("a link can be made");
    let run = cli.run_file(&link, ["accept", "--version"]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{run}");
    check!("version-krew", cli, cli.run_file(&link, ["version"]));
}

#[test]
fn a_binary_of_another_version_is_told_apart() {
    let cli = Cli::new();
    let store = cli.home().join("store");
    fs::create_dir_all(&store).expect("a folder can be made");
    fs::copy(binary("kubectl-ocm"), store.join("kubectl-ocm")).expect("a binary can be copied");
    for (verb, body) in [("join", "echo kubectl-ocm-join 9.9.9"), ("get", "exit 1")] {
        let file = cli.write(&format!("store/kubectl-ocm-{verb}"), &format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    }
    check!("version-mixed", cli, cli.run_file(&store.join("kubectl-ocm"), ["version"]));
}

#[test]
#[cfg(target_os = "linux")]
fn versions_are_read_without_starting_anybody() {
    let cli = Cli::new();
    let store = cli.home().join("store");
    fs::create_dir_all(&store).expect("a folder can be made");
    fs::copy(binary("kubectl-ocm"), store.join("kubectl-ocm")).expect("a binary can be copied");
    for name in binaries().iter().filter(|name| *name != "kubectl-ocm") {
        let mut bytes = fs::read(binary(name)).expect("a binary can be read");
        // A machine that does not exist: the kernel will not start it.
        bytes[0x12..0x14].fill(0xee);
        fs::write(store.join(file_name(name)), bytes).expect("a file can be written");
        fs::set_permissions(store.join(file_name(name)), fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    }
    let run = cli.run_file(&store.join("kubectl-ocm"), ["version"]);
    let told = run.stdout.lines().filter(|line| line.contains(concat!(" ", env!("CARGO_PKG_VERSION"), " "))).count();
    assert_eq!((run.exit, told), (0, binaries().len()), "{run}");
}

fn with_path(cli: Cli, folder: &str) -> Cli {
    let path = format!("{}:/usr/bin:/bin", cli.home().join(folder).display());
    cli.env("PATH", path)
}

#[test]
fn a_filter_takes_a_path_by_the_letter() {
    assert_eq!(escape("/a.b-c"), r"\/a\.b\-c");
    assert!(Path::new("/").is_absolute());
}

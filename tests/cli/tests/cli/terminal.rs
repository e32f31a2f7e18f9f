//! What happens at a terminal, and where stdout leads nowhere.

use std::fs::OpenOptions;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Reply, Server};
use cli_tests::terminal::{Terminal, screen};
use cli_tests::{Cli, binary, kubeconfig};
use serde_json::json;

fn cli() -> Cli {
    Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]))
}

const QUESTION: &str =
    "End every token of the service account (context \"hub\")? Clusters that have joined stay joined. [y/N] ";

#[test]
fn ctrl_c_ends_the_command_at_a_question() {
    let cli = cli();
    let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &["token", "revoke", "--service-account"]);
    terminal.wait_for("[y/N] ");
    terminal.press("\u{3}");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 130, "{seen}");
    let after = seen.split_once("[y/N] ").expect("it was asked").1.replace('\r', "");
    assert_eq!(
        after,
        "^C\nerror: interrupted\nStopped; nothing was changed. Run the same command again to start over.\n"
    );
}

#[test]
fn ctrl_c_ends_the_command_while_it_reads_stdin() {
    let cli = cli();
    let token = ["join", "c1", "--context", "hub", "--hub-token", "-", "--hub-apiserver", "https://127.0.0.1:1"];
    let files = ["-f", "-", "--context", "hub"];
    let of = |verb: &[&'static str]| [verb, &files[..]].concat();
    for words in [
        token.to_vec(),
        vec!["join", "--filename", "-"],
        vec!["upgrade", "klusterlet", "--filename", "-"],
        vec!["join", "c1", "--image-digests", "-"],
        vec!["install", "hub", "--values", "-"],
        vec!["upgrade", "hub", "--bundle-version-overrides", "-"],
        vec!["addon", "proxy-config", "a", "--clusters", "c1", "--proxy-ca-file", "-"],
        vec!["tls-check", "-"],
        vec!["troubleshoot", "--from", "-"],
        of(&["policy", "apply"]),
        of(&["work", "create", "w", "--clusters", "c1"]),
        of(&["addon", "create", "a", "--version", "1"]),
        of(&["install", "hub-addon", "a"]),
    ] {
        let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &words);
        terminal.wait_until_it_listens();
        // It comes to stdin a moment later.
        std::thread::sleep(Duration::from_millis(300));
        terminal.press("\u{3}");
        let (exit, seen) = terminal.end();
        assert_eq!(exit, 130, "{words:?}: {seen}");
        assert!(seen.contains("error: interrupted") && seen.contains("nothing was changed"), "{words:?}: {seen}");
    }
}

#[test]
fn a_question_is_alone_on_the_screen() {
    let cli = cli();
    let mut terminal =
        Terminal::run(&cli, &binary("kubectl-ocm"), &["token", "revoke", "--service-account", "--progress", "always"]);
    terminal.wait_for("[y/N] ");
    // What stood on the line before was cleared, and nothing comes after the question.
    let visible = terminal.seen().rsplit("\u{1b}[2K").next().unwrap_or_default().trim_start_matches('\r').to_owned();
    assert_eq!(visible, QUESTION);
    terminal.press("n\n");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 3, "{seen}");
    assert!(seen.contains("error: no token was revoked"), "{seen}");
}

#[test]
fn ctrl_c_ends_a_list_that_is_watched() {
    let secret = |id: &str| {
        let data = json!({"token-id": STANDARD.encode(id), "token-secret": STANDARD.encode("secret-of-token")});
        json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "data": data,
            "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system", "uid": id,
                "resourceVersion": "2", "labels": {"app.kubernetes.io/managed-by": "kubectl-ocm"}}})
    };
    let server = Server::start(move |_, asked| match asked.line.contains("watch=true") {
        true => Reply::Stall(format!("{}\n", json!({"type": "ADDED", "object": secret("def456")}))),
        false => {
            let list = json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": "1"},
                "items": [secret("abc123")]});
            Reply::Json(200, list.to_string())
        }
    });
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    for words in [["get", "tokens", "--watch"], ["token", "list", "-w"]] {
        let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &words);
        for part in ["ID ", "abc123", "def456"] {
            terminal.wait_for(part);
        }
        terminal.press("\u{3}");
        let (exit, seen) = terminal.end();
        assert_eq!(exit, 130, "{seen}");
        assert!(["error", "Stopped", "secret-of-token"].iter().all(|word| !seen.contains(word)), "{seen}");
    }
    assert!(server.lines().iter().all(|line| line.contains("fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken")));
}

/// How many clusters there are in the fleet: more than a terminal has lines.
const MANY: usize = 30;

/// Somebody with a fleet file, whose hub and clusters are at this server.
fn with_a_fleet(server: &Server) -> Cli {
    let names: Vec<String> = (0..MANY).map(|index| format!("c{index}")).collect();
    let contexts: Vec<&str> = std::iter::once("hub").chain(names.iter().map(String::as_str)).collect();
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &contexts));
    let clusters: Vec<_> = names.iter().map(|name| json!({"name": name, "context": name})).collect();
    let fleet = json!({"apiVersion": "kubectl-ocm.dev/v1alpha1", "kind": "Fleet", "hub": {"context": "hub"},
        "clusters": clusters});
    cli.write("fleet.yaml", &fleet.to_string());
    cli
}

const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"nobody may",
    "reason":"Forbidden","code":403}"#;

#[test]
fn the_clusters_of_a_fleet_have_a_row_each_that_changes_in_place_and_ctrl_c_leaves_nothing_of_it() {
    // Each and the hub are looked at once before all are worked on; then nobody answers any more.
    let server = Server::start(|number, _| match number <= MANY {
        true => Reply::Json(403, FORBIDDEN.to_owned()),
        false => Reply::Stall(String::new()),
    });
    let cli = with_a_fleet(&server);
    let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &["join", "-f", "fleet.yaml"]);
    // What is told of one may come before what is told of another: the frame is looked at that has it all.
    terminal.wait_until(|seen| {
        // A frame ends with the cursor at the beginning of its last line.
        let Some(end) = seen.rfind(" have ended").filter(|end| seen[*end..].contains('\r')) else { return false };
        let frame = screen(&seen[..end + " have ended".len()]);
        let row = |index: usize, row: &String| {
            row.starts_with(&format!("c{index} ")) && row.ends_with(&format!("looking at context \"c{index}\""))
        };
        frame.len() == 23
            && frame[0].starts_with("NAME   OUTCOME   SINCE   STEP")
            && frame[1..21].iter().enumerate().all(|(index, line)| row(index, line))
            && frame[21].starts_with("and 10 more: 10 at work")
            && frame[22].contains("0 of 30 have ended")
    });
    terminal.press("\u{3}");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 130, "{seen}");
    let left = screen(&seen);
    assert_eq!(left[0], "error: interrupted", "{left:#?}");
    let told = left[1..].concat();
    assert!(told.starts_with("Stopped while c") && told.ends_with("to start over."), "{left:#?}");
}

#[test]
fn where_no_line_can_change_in_place_each_event_of_a_fleet_is_a_line() {
    let server = Server::start(|_, _| Reply::Json(403, FORBIDDEN.to_owned()));
    let cli = with_a_fleet(&server);
    let run = cli.run(["join", "-f", "fleet.yaml"]);
    assert_eq!(run.exit, 3, "{run}");
    for part in ["\nc29: looking at context \"c29\"\n", "\nwarning: c29: context \"c29\" is the hub itself"] {
        assert!(run.stderr.contains(part), "{run}");
    }
    assert!(!run.stderr.contains('\u{1b}') && run.stdout.starts_with("ROLE "), "{run}");
    let run = cli.run(["join", "-f", "fleet.yaml", "--quiet"]);
    assert!(run.exit == 3 && run.stderr.starts_with("error: 30 of 30 "), "{run}");
    // Neither can a terminal that is none, whatever was asked for.
    let run = cli.run(["join", "-f", "fleet.yaml", "--progress", "always"]);
    assert!(run.stderr.contains("\nc29: looking at context \"c29\"\n") && !run.stderr.contains('\u{1b}'), "{run}");
}

/// A list of one cluster.
const LIST: &str = r#"{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList","metadata":{},
"items":[{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1"},"spec":{}}]}"#;

#[test]
fn a_full_disk_is_an_error() {
    let server = Server::start(|_, _| Reply::Json(200, LIST.to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let full = OpenOptions::new().write(true).open("/dev/full").expect("there is a full device");
    let run = cli.command(&binary("kubectl-ocm")).args(["get", "clusters"]).stdout(full).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: cannot write to stdout\n  because: No space left"), "{stderr}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let server = Server::start(|_, _| Reply::Json(200, LIST.to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let (reader, writer) = std::io::pipe().expect("a pipe can be had");
    drop(reader);
    let mut command = cli.command(&binary("kubectl-ocm"));
    let run = command.args(["get", "clusters"]).stdin(Stdio::null()).stdout(writer).output().expect("it runs");
    assert_eq!((run.status.code(), String::from_utf8_lossy(&run.stderr).as_ref()), (Some(0), ""));
}

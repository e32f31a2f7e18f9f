//! How commands come to a cluster and prove who they are, against a server that does what a test says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, kubeconfig};
use serde_json::json;

const NONE: &str =
    r#"{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList","metadata":{},"items":[]}"#;

/// A home with a kubeconfig whose user has a credential plugin: a shell script.
fn with_plugin(server: &Server, script: &str) -> Cli {
    let cli = Cli::new();
    let file = cli.write("plugin", &format!("#!/bin/sh\necho run >> \"$HOME/runs\"\n{script}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
    let user = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": file, "interactiveMode": "Never",
        "provideClusterInfo": true,
    } });
    let text = kubeconfig(&server.url(), &["hub"]).replace("{ token: secret }", &user.to_string());
    cli.write(".kube/config", &text);
    cli
}

fn runs(cli: &Cli) -> usize {
    fs::read_to_string(cli.home().join("runs")).unwrap_or_default().lines().count()
}

#[test]
fn a_credential_plugin_runs_once() {
    for expiry in ["", r#","expirationTimestamp":"2999-01-01T00:00:00Z""#] {
        let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
        let status = format!(r#"{{"kind":"ExecCredential","status":{{"token":"t0ken"{expiry}}}}}"#);
        let cli = with_plugin(&server, &format!("echo \"$KUBERNETES_EXEC_INFO\" > \"$HOME/info\"\necho '{status}'"));
        let run = cli.run(["get", "clusters"]);
        assert_eq!((run.exit, runs(&cli)), (0, 1), "{run}");
        assert_eq!(server.asked()[0].header("authorization"), ["Bearer t0ken"]);
        let information = fs::read_to_string(cli.home().join("info")).expect("the plugin was told");
        assert!(information.contains(&format!("\"server\":\"{}\"", server.url())), "{information}");
    }
}

#[test]
fn a_token_that_ends_is_fetched_anew() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let status = r#"{"kind":"ExecCredential","status":{"token":"t0ken","expirationTimestamp":"2001-01-01T00:00:00Z"}}"#;
    let cli = with_plugin(&server, &format!("echo '{status}'"));
    let run = cli.run(["get", "clusters"]);
    assert_eq!((run.exit, runs(&cli)), (0, 2), "{run}");
}

#[test]
fn what_a_credential_plugin_prints_is_never_shown() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    for (script, expected) in [
        ("echo '{\"status\":{\"token\":\"t0ken\"}}'; exit 3", "failed"),
        ("echo 't0ken: ['", "printed no credentials"),
        ("echo 't0ken'", "printed no credentials"),
        ("echo '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"\"}}'", "printed no credentials"),
        ("echo '{\"kind\":\"ExecCredential\"}'", "printed no credentials"),
    ] {
        let cli = with_plugin(&server, script);
        let run = cli.run(["get", "clusters"]);
        assert_eq!((run.exit, runs(&cli)), (1, 1), "{run}");
        assert!(run.stderr.contains("error: the credential plugin") && run.stderr.contains(expected), "{run}");
        assert!(!run.stderr.contains("t0ken") && run.stdout.is_empty(), "{run}");
    }
    assert!(server.lines().is_empty());
}

/// A home with a kubeconfig whose user is this one.
fn with_user(server: &Server, user: &str) -> Cli {
    Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]).replace("{ token: secret }", user))
}

#[test]
fn each_kind_of_credentials_is_sent() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let home = Cli::new();
    let file = home.write("token", "from-a-file\n");
    let file = file.display();
    for (user, expected) in [
        ("{ token: t0ken }".to_owned(), Some("Bearer t0ken")),
        ("{ token: \"\" }".to_owned(), None),
        ("{ username: ann, password: pass }".to_owned(), Some("Basic YW5uOnBhc3M=")),
        ("{ username: ann }".to_owned(), Some("Basic YW5uOg==")),
        (format!("{{ tokenFile: {file}, token: other }}"), Some("Bearer from-a-file")),
        (format!("{{ tokenFile: {file}.old, token: other }}"), Some("Bearer other")),
        ("{ auth-provider: { name: oidc, config: { id-token: from-oidc } } }".to_owned(), Some("Bearer from-oidc")),
        ("{ token: t0ken, auth-provider: { name: oidc, config: {} } }".to_owned(), Some("Bearer t0ken")),
        // What is empty is missing.
        ("{ username: ann, password: pass, tokenFile: \"\" }".to_owned(), Some("Basic YW5uOnBhc3M=")),
        ("{ token: t0ken, client-certificate: \"\", client-key: \"\" }".to_owned(), Some("Bearer t0ken")),
    ] {
        let run = with_user(&server, &user).run(["get", "clusters"]);
        assert_eq!(run.exit, 0, "{user}: {run}");
        let asked = server.asked();
        let sent = asked.last().expect("it asked").header("authorization");
        assert_eq!(sent, expected.into_iter().collect::<Vec<_>>(), "{user}");
    }
    let run = with_user(&server, "{ username: ann, password: pass }").run(["get", "clusters", "--token", "typed"]);
    assert_eq!((run.exit, server.asked().last().expect("it asked").header("authorization")[0]), (0, "Bearer typed"));
}

#[test]
fn credentials_that_cannot_be_used_are_told_and_nothing_is_sent() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let home = Cli::new();
    let program = home.write("program", "#!/bin/sh\necho run >> \"$HOME/runs\"\n");
    let (program, missing) = (program.display(), home.home().join("missing"));
    let (missing, text) = (missing.display(), "czNjcmV0"); // `s3cret` in base64
    for (user, expected) in [
        ("{ username: ann, password: s3cret, token: s3cret }".to_owned(), "a user name and a token"),
        ("{ token: \"s3cret\\ns3cret\" }".to_owned(), "it is not one line"),
        (format!("{{ tokenFile: {missing} }}"), "cannot be read"),
        (format!("{{ tokenFile: {program} }}"), "does not hold one token"),
        (
            format!("{{ auth-provider: {{ name: gcp, config: {{ cmd-path: {program}, token-key: s3cret }} }} }}"),
            "its auth-provider \"gcp\" is not supported",
        ),
        ("{ auth-provider: { name: oidc, config: { refresh-token: s3cret } } }".to_owned(), "has no id-token"),
        ("{ client-certificate-data: s3cret= }".to_owned(), "its client-certificate-data is not base64"),
        (format!("{{ client-certificate-data: {text} }}"), "no key of it"),
        (format!("{{ client-key-data: {text} }}"), "no certificate of it"),
        (format!("{{ client-certificate: {missing}, client-key-data: {text} }}"), "cannot be read"),
        (
            format!("{{ client-certificate-data: {text}, client-key-data: {text} }}"),
            "there is no certificate in its client-certificate",
        ),
    ] {
        let cli = with_user(&server, &user);
        let run = cli.run(["get", "clusters"]);
        assert_eq!((run.exit, runs(&cli)), (2, 0), "{user}: {run}");
        let of = "error: context \"hub\" of ";
        assert!(run.stderr.starts_with(of) && run.stderr.contains(expected), "{user}: {run}");
        assert!(!run.stderr.contains("s3cret") && !run.stderr.contains(text) && run.stdout.is_empty(), "{user}: {run}");
    }
    assert!(server.lines().is_empty());
}

#[test]
fn a_server_that_must_not_be_talked_to_so_is_told() {
    let user = |text: &str, user: &str| text.replace("{ token: secret }", user);
    let plain = kubeconfig("http://hub.example:6443", &["hub"]);
    for (text, expected) in [
        (plain.clone(), "its user's credentials would travel in the clear"),
        (user(&plain, "{ username: ann, password: s3cret }"), "would travel in the clear"),
        // A DNS server may say anything of such a name, and a proxy is asked for such an address.
        (kubeconfig("http://kind.localhost:1", &["hub"]), "would travel in the clear"),
        (kubeconfig("http://0.0.0.0:1", &["hub"]), "would travel in the clear"),
        (user(&plain, "{ exec: { apiVersion: client.authentication.k8s.io/v1, command: \"false\" } }"), "in the clear"),
        (
            kubeconfig("http://127.0.0.1:1", &["hub"]).replace("{ server", "{ proxy-url: 'http://127.0.0.1:1', server"),
            "in the clear",
        ),
        (kubeconfig("127.0.0.1:6443", &["hub"]), "does not begin with https://"),
        (kubeconfig("localhost:6443", &["hub"]), "does not begin with https://"),
        (kubeconfig("https://ann:s3cret@127.0.0.1:1", &["hub"]), "@127.0.0.1:1\" holds credentials"),
        (kubeconfig("https://s3cret@127.0.0.1:1", &["hub"]), "@127.0.0.1:1\" holds credentials"),
        (kubeconfig("ann:s3cret@127.0.0.1:1", &["hub"]), "@127.0.0.1:1\""),
        (kubeconfig("https://ann:s3cret@127.0.0.1: 1", &["hub"]), "is not a URL"),
        (
            kubeconfig("https://127.0.0.1:1", &["hub"])
                .replace("{ server", "{ insecure-skip-tls-verify: true, certificate-authority-data: eA==, server"),
            "exclude each other",
        ),
        (
            kubeconfig("https://127.0.0.1:1", &["hub"]).replace("{ server", "{ tls-server-name: \"a b\", server"),
            "its tls-server-name \"a b\" is no name of a host",
        ),
    ] {
        let run = Cli::with_kubeconfig(&text).run(["get", "clusters"]);
        assert!(run.exit == 2 && run.stderr.contains(expected) && run.stdout.is_empty(), "{text}{run}");
        assert!(!run.stderr.contains("s3cret"), "{run}");
    }
}

#[test]
fn the_first_file_that_names_a_current_context_counts() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let cli = Cli::new();
    let first =
        kubeconfig("https://127.0.0.1:1", &["other"]).replace("current-context: other", "current-context: \"\"");
    let (first, second) = (cli.write("a", &first), cli.write("b", &kubeconfig(&server.url(), &["hub"])));
    let cli = cli.env("KUBECONFIG", format!("{}:{}", first.display(), second.display()));
    let run = cli.run(["get", "clusters"]);
    assert_eq!((run.exit, run.stderr.as_str()), (0, "note: the hub has no managed clusters\n"), "{run}");
}

#[test]
fn a_file_of_the_list_that_cannot_be_read_is_not_passed_over() {
    let server = Server::start(|_, _| Reply::Json(200, NONE.to_owned()));
    let of_list = |first: &str| {
        let cli = Cli::new();
        let second = cli.write("b", &kubeconfig(&server.url(), &["hub"]));
        let first = cli.home().join(first);
        cli.env("KUBECONFIG", format!("{}:{}", first.display(), second.display())).run(["get", "clusters"])
    };
    let run = of_list("missing");
    assert_eq!(run.exit, 0, "{run}");
    // What is beside it may be another cluster's.
    let run = of_list("b/below-a-file");
    assert!(run.exit == 2 && run.stderr.contains("cannot read the kubeconfig"), "{run}");
}

#[test]
fn groups_without_a_user_to_act_as_are_refused() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub", "c1"]));
    let run = cli.run(["join", "c1", "--context", "c1", "--hub-context", "hub", "--hub-as-group", "viewers"]);
    assert!(run.exit == 2 && run.stderr.contains("--hub-as <USER>"), "{run}");
}

#[test]
fn who_acts_on_a_hub_that_is_not_named_is_refused() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub", "c1"]));
    for flag in ["--hub-as=viewer", "--hub-tls-server-name=hub.example"] {
        let run = cli.run(["troubleshoot", "c1", "--context", "c1", flag]);
        assert!(run.exit == 2 && run.stderr.contains("--hub-context"), "{flag}: {run}");
    }
    let run = cli.run(["addon", "proxy-config", "x", "--default", "--context", "hub", "--managed-as=viewer"]);
    assert!(run.exit == 2 && run.stderr.contains("--managed-context"), "{run}");
}

#[test]
fn an_answer_that_never_ends_is_given_up() {
    let server = Server::start(|_, _| Reply::Stall("{\"kind\":".to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["get", "clusters", "--request-timeout", "1s"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("because: no answer within 1s"), "{run}");
}

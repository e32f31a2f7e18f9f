//! What goes wrong before an API server has answered.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use cli_tests::{Cli, check, kubeconfig};

/// The commands that read from one cluster, with the fewest words.
const READS: &[&[&str]] = &[&["accept", "c1", "--dry-run=client"], &["get", "clusters"], &["policy", "list"]];

/// Runs every reading command with more words, one snapshot for all.
fn each(name: &str, cli: &Cli, more: &[&str]) {
    let all: String = READS
        .iter()
        .map(|words| {
            let words: Vec<&str> = words.iter().chain(more).copied().collect();
            format!("$ kubectl ocm {}\n{}", words.join(" "), cli.run(&words))
        })
        .collect();
    check!(name, cli, all);
}

/// An address where nothing listens.
fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
    format!("https://{}", listener.local_addr().expect("it has an address"))
}

#[test]
fn no_kubeconfig() {
    each("error-no-kubeconfig", &Cli::new(), &[]);
    each("error-no-such-kubeconfig", &Cli::new(), &["--kubeconfig", "nowhere.yaml"]);
}

#[test]
fn a_kubeconfig_that_cannot_be_read() {
    each("error-malformed-kubeconfig", &Cli::with_kubeconfig("clusters: [\n"), &[]);
    // What is wrong stands beside a secret more often than not: the line is named, never quoted.
    for (case, user) in [("list", "token: [s3cret"), ("escape", "token: \"s3cret \\q\""), ("flow", "exec: s3cret")] {
        let text = format!("kind: Config\nusers:\n- name: u\n  user:\n    {user}\n");
        for run in
            [Cli::with_kubeconfig(&text).run(["get", "clusters"]), Cli::with_kubeconfig(&text).run(["accept", "c1"])]
        {
            assert!(run.exit == 2 && run.stderr.contains("line 5"), "{case}: {run}");
            assert!(!format!("{}{}", run.stdout, run.stderr).contains("s3cret"), "{case}: {run}");
        }
    }
    each("error-kubeconfig-of-another-kind", &Cli::with_kubeconfig("just words\n"), &[]);
    let cli = Cli::new();
    std::fs::create_dir_all(cli.home().join("folder")).expect("a folder can be made");
    each("error-kubeconfig-is-a-folder", &cli, &["--kubeconfig", "folder"]);
}

#[test]
fn a_context_that_is_not_there() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub", "cluster-1"]));
    each("error-wrong-context", &cli, &["--context", "hubb"]);
    each("error-wrong-context-unlike-any", &cli, &["--context", "production"]);
    each("error-wrong-user", &cli, &["--user", "hub-admn"]);
    each("error-wrong-cluster", &cli, &["--cluster", "hup"]);
}

#[test]
fn no_current_context() {
    let text = kubeconfig("https://127.0.0.1:1", &["hub"]).replace("current-context: hub", "current-context: \"\"");
    each("error-no-current-context", &Cli::with_kubeconfig(&text), &[]);
}

#[test]
fn nothing_listens() {
    each("error-refused", &Cli::with_kubeconfig(&kubeconfig(&closed(), &["hub"])), &[]);
}

#[test]
fn no_such_host() {
    // RFC 2606 keeps `.invalid` from ever being a name; but what a resolver says of it differs, so only our words count.
    let cli = Cli::with_kubeconfig(&kubeconfig("https://hub.invalid:6443", &["hub"]));
    let run = cli.run(["get", "clusters"]);
    assert_eq!(run.exit, 1, "{run}");
    assert!(run.stderr.contains("the cluster's address cannot be reached: its name cannot be resolved"), "{run}");
}

/// A server that answers every connection with these bytes.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // What the client thinks of it is what is tested.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(bytes);
        }
    });
    address.to_string()
}

#[test]
fn a_server_that_does_not_speak_tls() {
    let server = answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    each("error-no-tls", &Cli::with_kubeconfig(&kubeconfig(&format!("https://{server}"), &["hub"])), &[]);
}

#[test]
fn a_server_that_is_no_api_server() {
    let server = answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nhello\n");
    each("error-no-api-server", &Cli::with_kubeconfig(&kubeconfig(&format!("http://{server}"), &["hub"])), &[]);
}

#[test]
fn a_server_that_says_not_found() {
    let server = answering(
        b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 19\r\n\r\n404 page not found\n",
    );
    each("error-page-not-found", &Cli::with_kubeconfig(&kubeconfig(&format!("http://{server}"), &["hub"])), &[]);
}

#[test]
fn a_server_that_falls_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
    let server = listener.local_addr().expect("it has an address");
    let cli = Cli::with_kubeconfig(&kubeconfig(&format!("http://{server}"), &["hub"]));
    each("error-silent", &cli, &["--request-timeout", "1s"]);
}

#[test]
fn a_name_beside_a_fleet_file_is_told_with_what_to_type_instead() {
    for name in [&["c1"][..], &["--cluster-name", "c1"]] {
        let run = Cli::new().run([&["join"][..], name, &["-f", "fleet.yaml"]].concat());
        assert_eq!(run.exit, 2, "{run}");
        assert!(run.stderr.starts_with("error: c1 and --filename cannot be typed together: "), "{run}");
        assert!(
            run.stderr.contains("\n  hint: all clusters of the file: kubectl ocm join --filename fleet.yaml\n"),
            "{run}"
        );
    }
}

#[test]
fn what_is_of_one_cluster_cannot_be_typed_beside_a_fleet_file() {
    for (flag, beside, why) in [
        ("--diff", &[][..], "a diff is of one cluster"),
        ("--show-secrets", &["--render"], "the manifests of a fleet file leave Secrets out"),
    ] {
        let run = Cli::new().run([&["join", "--filename", "fleet.yaml", flag][..], beside].concat());
        let sentence = format!("error: {flag} and --filename cannot be typed together: {why}\n");
        assert!(run.exit == 2 && run.stderr.starts_with(&sentence), "{run}");
    }
}

#[test]
fn a_name_that_no_cluster_can_register_as_is_refused_before_anything_is_connected_to() {
    let cli = Cli::with_kubeconfig(&kubeconfig(&closed(), &["hub", "c1"]));
    for name in ["C_1", "kube-system"] {
        for way in [&["--hub-token", "x", "--hub-apiserver", "https://127.0.0.1:1"][..], &["--hub-context", "hub"]] {
            let run = cli.run([&["join", name, "--context", "c1"][..], way].concat());
            let sentence = format!("error: {name:?} cannot be the name of a managed cluster\n");
            assert!(run.exit == 2 && run.stderr.starts_with(&sentence), "{run}");
        }
    }
}

#[test]
fn a_former_hub_that_is_no_address_is_refused_before_anything_is_connected_to() {
    let cli = Cli::with_kubeconfig(&kubeconfig(&closed(), &["hub", "c1"]));
    let run = cli.run(["join", "c1", "--context", "c1", "--hub-context", "hub", "--former-hub", "nonsense"]);
    let sentence = "error: --former-hub \"nonsense\" is no address of an API server: it does not begin with https://\n";
    assert!(run.exit == 2 && run.stderr.starts_with(sentence), "{run}");
}

#[test]
fn what_is_wrong_with_the_kubeconfig_of_a_former_hub_names_its_flags() {
    let cli = Cli::with_kubeconfig(&kubeconfig(&closed(), &["hub", "c1"]));
    for (flag, value, told) in [
        ("--former-hub-context", "hubb", "did you mean --former-hub-context hub?"),
        ("--former-hub-context", "elsewhere", "say which cluster: --former-hub-context NAME (it knows: hub, c1)"),
        ("--former-hub-kubeconfig", "missing", "point --former-hub-kubeconfig at the kubeconfig of the cluster"),
    ] {
        let run = cli.run(["join", "c1", "--context", "c1", "--hub-context", "hub", flag, value]);
        assert!(run.exit == 2 && run.stderr.contains(&format!("\n  hint: {told}\n")), "{flag} {value}: {run}");
    }
}

#[test]
fn flags_that_cannot_be() {
    let cli = Cli::with_kubeconfig(&kubeconfig("https://127.0.0.1:1", &["hub"]));
    let cases: &[(&str, &[&str])] = &[
        ("usage-accept-nothing", &["accept"]),
        ("usage-accept-name-and-all", &["accept", "c1", "--all-pending"]),
        ("usage-accept-bad-name", &["accept", "C_1"]),
        ("usage-accept-all-without-yes", &["accept", "--all-pending"]),
        ("usage-accept-half-fingerprint", &["accept", "c1", "--fingerprint", "sha256:ab"]),
        ("usage-accept-bad-timeout", &["accept", "c1", "--wait", "--timeout", "soon"]),
        ("usage-accept-misspelt-flag", &["accept", "c1", "--dryrun"]),
        ("usage-get-nothing", &["get"]),
        ("usage-get-unknown", &["get", "nodes"]),
        ("usage-get-bad-format", &["get", "clusters", "-o", "xml"]),
        ("usage-bad-request-timeout", &["get", "clusters", "--request-timeout", "soon"]),
        ("usage-policy-describe-nothing", &["policy", "describe"]),
        ("usage-policy-disable-nothing", &["policy", "disable"]),
        ("usage-bad-server", &["get", "clusters", "--server", "not a url"]),
    ];
    for (name, words) in cases {
        check!(name, cli, cli.run(*words));
    }
}

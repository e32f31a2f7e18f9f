//! Tokens that are revoked, against a server that does what a test says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::proxy::{BEHIND, CREDENTIALS, Kind, Manner, Proxy};
use cli_tests::server::{Reply, Server};
use cli_tests::terminal::Terminal;
use cli_tests::{Cli, binary, kubeconfig};
use serde_json::{Value, json};

/// A hub with a bootstrap token of each identifier that is asked for. `special` says what it does otherwise.
fn hub(special: fn(&str) -> Option<Reply>) -> Server {
    Server::start(move |_, asked| {
        if let Some(reply) = special(&asked.line) {
            return reply;
        }
        let path = asked.line.split([' ', '?']).nth(1).unwrap_or_default();
        let id = path.rsplit_once("/bootstrap-token-").map_or("", |(_, id)| id);
        let encoded = |text: &str| STANDARD.encode(text);
        let data = json!({ "token-id": encoded(id), "token-secret": encoded("0123456789abcdef"),
            "usage-bootstrap-authentication": encoded("true"),
            "auth-extra-groups": encoded("system:bootstrappers:managedcluster") });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": { "name": format!("bootstrap-token-{id}"), "namespace": "kube-system", "uid": id }, "data": data });
        Reply::Json(200, secret.to_string())
    })
}

#[test]
fn of_an_address_that_only_the_hubs_proxy_reaches_the_authorities_that_vouch_for_it_are_told_and_no_others() {
    let hub = hub(|line| line.contains("/configmaps/").then(|| Reply::Json(404, status(404, "NotFound"))));
    let [agents, other] = [(); 2].map(|()| Proxy::start(Kind::Https, Manner::Connects));
    let port = agents.address().rsplit_once(':').map(|(_, port)| port.to_owned()).expect("a port");
    let authorities = STANDARD.encode(format!("{}{}", agents.authority(), other.authority()));
    let address = format!("--hub-apiserver=https://{BEHIND}:{port}");
    let proxy = Proxy::start(Kind::Http, Manner::Connects);
    // Without TLS no credentials travel to the hub.
    let text = kubeconfig(&hub.url(), &["hub"]).replace("{ token: secret }", "{}");
    let (url, ca) = (proxy.url(CREDENTIALS), format!("certificate-authority-data: {authorities}"));
    let cli = Cli::with_kubeconfig(&text.replace("{ server", &format!("{{ proxy-url: \"{url}\", {ca}, server")));
    let run = cli.run(["token", "show", "abc123", &address, "--output=json"]);
    let found: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    let pins = |found: &Value| found["hub-ca-pin"].as_str().map(|pins| pins.split(',').count());
    assert_eq!((run.exit, pins(&found)), (0, Some(1)), "{run}");
    assert!(!run.stderr.contains("cannot be checked") && proxy.passed().contains(&format!("{BEHIND}:{port}")), "{run}");
}

fn status(code: u16, reason: &str) -> String {
    json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no" })
        .to_string()
}

fn forbidden() -> Reply {
    Reply::Json(403, status(403, "Forbidden"))
}

#[test]
fn what_cannot_be_revoked_keeps_no_other_token_alive_and_all_of_it_is_told() {
    let server = hub(|line| (line.starts_with("DELETE ") && line.contains("abc123")).then(forbidden));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["token", "revoke", "abc123", "def456", "-o", "json"]);
    assert_eq!(run.exit, 1, "{run}");
    let document: Value = serde_json::from_str(&run.stdout).expect("a document");
    let tokens = &document["tokens"];
    assert_eq!((&tokens[0]["name"], &tokens[0]["revoked"]), (&json!("bootstrap-token/abc123"), &json!(false)), "{run}");
    assert!(tokens[0]["error"].is_string(), "{run}");
    assert_eq!(tokens[1], json!({ "name": "bootstrap-token/def456", "revoked": true }), "{run}");
    assert!(run.stderr.contains("error: 1 of 2 could not be revoked"), "{run}");
    assert!(run.stderr.contains("because: bootstrap-token/abc123: "), "{run}");
}

#[test]
fn one_word_that_is_no_identifier_leaves_every_token_alone() {
    let server = hub(|_| None);
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let run = cli.run(["token", "revoke", "abc123", "secret-word"]);
    assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{run}");
    assert!(!run.stderr.contains("secret-word"), "{run}");
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[test]
fn a_ca_beside_the_word_that_nobody_verifies_the_hub_is_refused_before_anything_is_sent() {
    let server = hub(|_| None);
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let unverified = "--insecure-skip-tls-verify";
    for words in [
        &["token", "create", "--ca-file=hub.crt", unverified][..],
        &["token", unverified, "create", "--ca-file=hub.crt"],
        &["token", "show", "abc123", "--ca-file=hub.crt", unverified],
    ] {
        let run = cli.run(words);
        let sentence = "error: --ca-file and --insecure-skip-tls-verify exclude each other\n";
        assert!(run.exit == 2 && run.stderr.starts_with(sentence), "{run}");
    }
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[test]
fn who_breaks_off_is_told_what_was_revoked() {
    let server = hub(|line| (line.starts_with("GET ") && line.contains("def456")).then(|| Reply::Stall(String::new())));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]));
    let mut terminal = Terminal::run(&cli, &binary("kubectl-ocm"), &["token", "revoke", "abc123", "def456"]);
    terminal.wait_for("bootstrap-token/abc123 revoked");
    terminal.press("\u{3}");
    let (exit, seen) = terminal.end();
    assert_eq!(exit, 130, "{seen}");
    assert!(seen.contains("Done: bootstrap-token/abc123 revoked."), "{seen}");
    assert!(!seen.contains("nothing was changed"), "{seen}");
}

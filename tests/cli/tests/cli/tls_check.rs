//! `kubectl ocm tls-check` of what needs no real cluster: servers, also through proxies, files, stdin and kubeconfigs, and the
//! hubs of several ClusterManagers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::proxy::{CREDENTIALS, Kind, Manner, Proxy};
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run, authority, binary, kubeconfig};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

/// A TLS server, which nobody asks anything after the handshake.
fn server() -> Proxy {
    Proxy::start(Kind::Https, Manner::Connects)
}

#[track_caller]
fn document(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The ids of the findings of a document.
fn ids(document: &Value) -> Vec<&str> {
    document["findings"].as_array().into_iter().flatten().filter_map(|finding| finding["id"].as_str()).collect()
}

/// A certificate of the present for a host, and its key, both as PEM.
fn certificate() -> (String, String) {
    let key = KeyPair::generate().expect("a key is made");
    let params = CertificateParams::new(vec!["hub.example".to_owned()]).expect("a host is a name");
    let mut params = params;
    let now = std::time::SystemTime::now();
    let days = |days: u64| std::time::Duration::from_secs(days * 86_400);
    (params.not_before, params.not_after) = ((now - days(10)).into(), (now + days(20)).into());
    (params.self_signed(&key).expect("a certificate is made").pem(), key.serialize_pem())
}

#[test]
fn a_server_is_verified_with_the_authority_that_is_named() {
    let (server, other) = (server(), server());
    let cli = Cli::new();
    let (own, foreign) = (cli.write("own.pem", server.authority()), cli.write("other.pem", other.authority()));
    let check = |file: &std::path::Path, words: &[&str]| {
        let address = server.address();
        let file = format!("--ca-file={}", file.display());
        cli.run(["tls-check", &address, &file, "--output=json"].iter().chain(words))
    };
    let right = check(&own, &[]);
    let seen = document(&right);
    assert_eq!((right.exit, ids(&seen), &seen["verdict"]), (0, vec![], &"ok".into()), "{right}");
    let handshake = &seen["inventory"]["relations"][0]["handshake"];
    assert_eq!((&handshake["version"], &handshake["accepted"][0]), (&"TLS1.3".into(), &"TLS1.2".into()), "{right}");
    let wrong = check(&foreign, &[]);
    assert_eq!((wrong.exit, ids(&document(&wrong))), (3, vec!["OCM4001"]), "{wrong}");
    let named = check(&own, &["--tls-server-name=hub.example"]);
    assert_eq!((named.exit, ids(&document(&named))), (3, vec!["OCM4004"]), "{named}");
    let modern = check(&own, &["--profile=modern"]);
    assert_eq!((modern.exit, ids(&document(&modern))), (0, vec!["OCM4030"]), "a warning: {modern}");
    let strict = check(&own, &["--profile=modern", "--fail-on=warning"]);
    assert_eq!(strict.exit, 3, "{strict}");
}

/// The first record that somebody sends.
fn record(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut record = vec![0; 5];
    stream.read_exact(&mut record)?;
    let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
    record.resize(5 + length, 0);
    stream.read_exact(&mut record[5..])?;
    Ok(record)
}

/// By this alert a server refuses all cipher suites that it is offered.
const REFUSAL: &[u8] = &[21, 3, 3, 0, 2, 2, 40];

/// The address of a server that is another one, but chooses by TLS 1.2 the first one of these cipher suites that it is offered, or
/// says this. It warns everybody that it does not know the name.
fn choosing(behind: &Proxy, own: &'static [u16], refusal: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let (address, behind) = (listener.local_addr().expect("it has one").to_string(), behind.address());
    let serve = move |mut client: TcpStream| -> std::io::Result<()> {
        let hello = record(&mut client)?;
        // Whoever speaks TLS 1.3 too sends a session, which stands before the list.
        if hello[9..11] == [3, 3] && hello[43] == 0 {
            client.write_all(&[21, 3, 3, 0, 2, 1, 112])?;
            let list = &hello[46..46 + usize::from(u16::from_be_bytes([hello[44], hello[45]]))];
            let offered: Vec<u16> = list.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            return match own.iter().find(|suite| offered.contains(suite)) {
                Some(suite) => {
                    let random = [7; 32];
                    let message = [&[2, 0, 0, 38, 3, 3][..], &random, &[0], &suite.to_be_bytes(), &[0]].concat();
                    client.write_all(&[&[22, 3, 3, 0, 42][..], &message].concat())
                }
                None => client.write_all(refusal),
            };
        }
        let mut server = TcpStream::connect(&behind)?;
        server.write_all(&hello)?;
        let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        std::io::copy(&mut server, &mut client)?;
        // The thread that reads from the client has a handle of its own, which would keep the connection open.
        client.shutdown(Shutdown::Both)
    };
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let serve = serve.clone();
            // A client that goes away in the middle is none of the server's business.
            std::thread::spawn(move || serve(client).ok());
        }
    });
    address
}

#[test]
fn every_cipher_suite_that_a_server_accepts_is_judged_by_the_profile() {
    const STRONG: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    const CBC: &str = "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA";
    const BROKEN: &str = "TLS_RSA_WITH_3DES_EDE_CBC_SHA";
    let behind = server();
    let cli = Cli::new();
    let ca = format!("--ca-file={}", cli.write("own.pem", behind.authority()).display());
    let check = |address: &str, profile: &str| {
        let profile = format!("--profile={profile}");
        let run = cli.run(["tls-check", address, &ca, &profile, "--output=json", "--fail-on=warning"]);
        let seen = document(&run);
        let told = seen["findings"][0]["summary"].as_str().unwrap_or_default().to_owned();
        (run.exit, ids(&seen).into_iter().map(str::to_owned).collect::<Vec<_>>(), told, seen)
    };
    let strict = choosing(&behind, &[0xc02b], REFUSAL);
    for profile in ["intermediate", "kubernetes", "old", "ocm"] {
        let (exit, found, _, seen) = check(&strict, profile);
        assert_eq!((exit, found.len()), (0, 0), "{profile}: {seen:#}");
        assert_eq!(seen["inventory"]["relations"][0]["handshake"]["suites"], json!([STRONG]));
    }
    // It prefers what is broken, and has the others all the same.
    let lenient = choosing(&behind, &[0x000a, 0xc009, 0xc02b], REFUSAL);
    for (profile, foreign) in
        [("intermediate", vec![BROKEN, CBC]), ("kubernetes", vec![BROKEN]), ("old", vec![]), ("ocm", vec![BROKEN])]
    {
        let (exit, found, told, seen) = check(&lenient, profile);
        assert_eq!(seen["inventory"]["relations"][0]["handshake"]["suites"], json!([BROKEN, CBC, STRONG]));
        let expected = if foreign.is_empty() { (0, vec![]) } else { (3, vec!["OCM4033".to_owned()]) };
        assert_eq!((exit, found), expected, "{profile}: {seen:#}");
        assert!(told.contains(&foreign.join(", ")) && !told.contains(STRONG), "{profile}: {told}");
    }
    let wide = cli.run(["tls-check", &lenient, &ca, "--output=wide"]);
    assert!(wide.stdout.contains("CIPHERS OF TLS 1.2") && wide.stdout.contains(BROKEN), "{wide}");
    assert_eq!(wide.exit, 0, "a warning: {wide}");
    // Where TLS 1.2 is not allowed, that alone is told of.
    let (_, found, ..) = check(&lenient, "modern");
    assert_eq!(found, ["OCM4030"]);
}

#[test]
fn what_a_server_accepts_is_open_where_the_connection_breaks() {
    let behind = server();
    let cli = Cli::new();
    let ca = format!("--ca-file={}", cli.write("own.pem", behind.authority()).display());
    let breaking = choosing(&behind, &[0xc02b], &[]);
    let run = cli.run(["tls-check", &breaking, &ca, "--output=json"]);
    let seen = document(&run);
    assert_eq!((run.exit, &seen["verdict"], ids(&seen)), (4, &json!("inconclusive"), vec![]), "{run}");
    let what = format!("which cipher suites of TLS 1.2 https://{breaking} accepts");
    assert_eq!(seen["unseen"][0]["what"], json!(what), "{run}");
    let found = &seen["inventory"]["relations"][0]["handshake"]["suites"];
    assert_eq!(*found, json!(["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]), "{run}");
}

#[test]
fn nobody_vouches_for_a_stranger() {
    let run = Cli::new().run(["tls-check", &server().address(), "--output=json"]);
    assert_eq!((run.exit, ids(&document(&run))), (3, vec!["OCM4001"]), "{run}");
}

#[test]
fn a_server_that_is_not_there_is_told_apart_from_a_wrong_one() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it has one");
    let run = Cli::new().run(["tls-check", &nobody.to_string()]);
    assert_eq!(run.exit, 4, "{run}");
    assert!(run.stderr.contains("was not looked at") && run.stderr.contains("connection refused"), "{run}");
    let lenient = Cli::new().run(["tls-check", &nobody.to_string(), "--fail-on=never"]);
    assert_eq!(lenient.exit, 0, "{lenient}");
}

#[test]
fn the_servers_of_a_kubeconfig_are_reached_through_its_proxies() {
    for kind in [Kind::Http, Kind::Https, Kind::Socks] {
        let (server, proxy) = (server(), Proxy::start(kind, Manner::Connects));
        // An https proxy is verified with the authority of the server behind it.
        let authorities = format!("{}{}", server.authority(), proxy.authority());
        let port = server.address().rsplit_once(':').map(|(_, port)| port.to_owned()).expect("a port");
        let (address, url) = (format!("hub.example:{port}"), proxy.url(CREDENTIALS));
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: hub\n  cluster:\n    server: https://{address}\n    \
             tls-server-name: 127.0.0.1\n    proxy-url: \"{url}\"\n    certificate-authority-data: {}\n",
            STANDARD.encode(authorities)
        );
        let cli = Cli::new();
        let file = cli.write("hub.kubeconfig", &kubeconfig);
        let run = cli.run(["tls-check", &file.display().to_string(), "--output=json"]);
        let seen = document(&run);
        assert_eq!((run.exit, ids(&seen)), (0, vec![]), "{kind:?}: {run}");
        let handshake = &seen["inventory"]["relations"][0]["handshake"];
        assert_eq!(handshake["proxy"], proxy.address(), "{run}");
        // One for what it presents, one for TLS 1.0 and 1.1 each, and those for the cipher suites of TLS 1.2: three, and no more.
        assert_eq!(proxy.passed(), vec![address; 7], "{kind:?}");
        assert!(!run.to_string().contains("s3cr"), "a password is shown: {run}");
    }
}

#[test]
fn files_and_stdin_are_read_and_keys_are_not_shown() {
    let (certificate, key) = certificate();
    let cli = Cli::new();
    let file = cli.write("pair.pem", &format!("{certificate}{key}"));
    let file = file.display().to_string();
    let run = cli.run(["tls-check", &file, "--output=json"]);
    let seen = document(&run);
    assert_eq!((run.exit, ids(&seen)), (0, vec![]), "{run}");
    assert_eq!(seen["inventory"]["relations"][0]["holdsKey"], true, "{run}");
    let secret: String = key.lines().nth(1).expect("a key has lines").to_owned();
    for output in ["table", "wide", "json", "yaml", "name", "prometheus", "junit", "sarif", "markdown"] {
        let run = cli.run(["tls-check", &file, &format!("--output={output}")]);
        assert!(run.exit == 0 && !run.to_string().contains(&secret), "{output}: {run}");
    }
    let foreign = KeyPair::generate().expect("a key is made").serialize_pem();
    let file = cli.write("foreign.pem", &format!("{certificate}{foreign}"));
    let run = cli.run(["tls-check", &file.display().to_string(), "--output=name"]);
    assert_eq!((run.exit, run.stdout.as_str()), (3, "OCM4011\n"), "{run}");

    let mut command = cli.command(&binary("kubectl-ocm"));
    command.args(["tls-check", "-", "--expires-in=30d", "--output=name"]);
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    running.stdin.take().expect("it reads").write_all(certificate.as_bytes()).expect("it takes it");
    let done = running.wait_with_output().expect("it ends");
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stdout).as_ref()), (Some(3), "OCM4009\n"));
}

#[test]
fn pipelines_and_issues_get_the_same_findings() {
    let (server, other) = (server(), server());
    let cli = Cli::new();
    let foreign = format!("--ca-file={}", cli.write("other.pem", other.authority()).display());
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it has one");
    let nobody = nobody.to_string();
    let address = server.address();
    let check = |words: &[&str]| cli.run(["tls-check", &address, &nobody, &foreign].iter().chain(words));

    let sarif = document(&check(&["--output=sarif"]));
    let run = &sarif["runs"][0];
    assert_eq!(run["results"][0]["ruleId"], "OCM4001", "{sarif:#}");
    assert_eq!(run["tool"]["driver"]["name"], "kubectl-ocm-tls-check");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false, "{sarif:#}");
    let checks = run["tool"]["driver"]["rules"].as_array().map_or(0, Vec::len);
    assert!(checks > 20, "{sarif:#}");

    let junit = check(&["--output=junit"]);
    let head = format!("tests=\"{}\" failures=\"1\" errors=\"1\" skipped=\"0\"", checks + 1);
    assert!(junit.exit == 3 && junit.stdout.contains(&head), "{junit}");
    assert!(
        junit.stdout.contains("<testcase name=\"OCM4001 ") && junit.stdout.contains("connection refused"),
        "{junit}"
    );
    // What does not count for the exit code is no failure either.
    let lenient = check(&["--output=junit", "--fail-on=never"]);
    let head = format!("tests=\"{checks}\" failures=\"0\" errors=\"0\"");
    assert!(lenient.exit == 0 && lenient.stdout.contains(&head), "{lenient}");
    assert!(lenient.stdout.contains("<system-out>error: OCM4001: "), "{lenient}");

    let markdown = check(&["--output=markdown"]);
    assert!(markdown.stdout.contains("### OCM4001 error: `"), "{markdown}");
    assert!(markdown.stdout.contains("- not looked at: `"), "{markdown}");
    assert!(markdown.stdout.contains("\n| expires in | left | for | cluster | where |\n"), "{markdown}");
    for output in ["junit", "sarif", "markdown"] {
        let refused = check(&["--watch", &format!("--output={output}")]);
        assert!(refused.exit == 2 && refused.stderr.contains("--watch has no such format"), "{refused}");
    }
}

#[test]
fn the_end_of_certificates_is_a_metric() {
    let (certificate, _) = certificate();
    let cli = Cli::new();
    let file = cli.write("it.pem", &certificate);
    let run = cli.run(["tls-check", &file.display().to_string(), "--output=prometheus", "--expires-in=50%"]);
    assert_eq!(run.exit, 0, "two thirds are left: {run}");
    let line = run.stdout.lines().find(|line| line.starts_with("ocm_tls_certificate_expiry_timestamp_seconds{"));
    let (labels, value) = line.and_then(|line| line.rsplit_once(' ')).expect("there is one");
    assert!(labels.contains("for=\"given\",part=\"own\",cluster=\"\""), "{labels}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let left = value.parse::<u64>().expect("a number") - now;
    assert!((19 * 86_400..=20 * 86_400).contains(&left), "{left}");
}

/// A certificate for `hub.example` of the present, with this common name.
fn named(common_name: &str) -> String {
    let key = KeyPair::generate().expect("a key is made");
    let mut params = CertificateParams::new(vec!["hub.example".to_owned()]).expect("a host is a name");
    params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
    params.self_signed(&key).expect("a certificate is made").pem()
}

#[test]
fn names_of_strangers_do_not_steer_the_terminal() {
    let cli = Cli::new();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}hub\r\nocm_tls_findings 0";
    let (file, other) = (cli.write("evil.pem", &named(evil)), cli.write("ca.pem", server().authority()));
    let file = file.display().to_string();
    let ca = format!("--ca-file={}", other.display());
    for output in ["table", "wide", "prometheus", "name"] {
        let run = cli.run(["tls-check", &file, &ca, "--expires-in=100%", &format!("--output={output}")]);
        assert_eq!(run.exit, 3, "{run}");
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{output}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("ocm_tls_findings 0")), "{output}: {text:?}");
        assert!(output == "name" || text.contains("owned"), "{output}: {text:?}");
    }
}

#[test]
fn credentials_in_addresses_are_not_shown() {
    let cli = Cli::new();
    let kubeconfig = "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {server: 'https://me:canary@hub.example:1'}\n\
                      - name: b\n  cluster: {server: 'https://127.0.0.1:1', proxy-url: 'http://me:canary@127.0.0.1:1'}\nusers:\n\
                      - name: u\n  user: {token: canary, client-key-data: Y2FuYXJ5}\n";
    let file = cli.write("kubeconfig", kubeconfig).display().to_string();
    let typed = cli.run(["tls-check", "https://me:canary@hub.example:1"]);
    assert!(typed.exit == 2 && !typed.to_string().contains("canary"), "{typed}");
    for output in ["table", "json"] {
        let run = cli.run(["tls-check", &file, &format!("--output={output}")]);
        assert_eq!(run.exit, 4, "{run}");
        assert!(!run.to_string().contains("canary") && !run.to_string().contains("Y2FuYXJ5"), "{run}");
    }
}

#[test]
fn a_kubeconfig_says_who_is_trusted_and_what_it_says_counts() {
    let (server, other) = (server(), server());
    let cli = Cli::new();
    let check = |lines: &str| {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: hub\n  cluster:\n    server: https://{}\n{lines}",
            server.address()
        );
        let file = cli.write("hub.kubeconfig", &kubeconfig);
        cli.run(["tls-check", &file.display().to_string(), "--output=json", "--fail-on=warning"])
    };
    let data = |pem: &str| format!("    certificate-authority-data: {}\n", STANDARD.encode(pem));
    let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let own = server.authority();
    for (lines, exit, found) in [
        (data(own), 0, vec![]),
        // Go passes over what it cannot read.
        (data(&format!("{broken}{own}")), 0, vec![]),
        (data(other.authority()), 3, vec!["OCM4001"]),
        (data(broken), 3, vec!["OCM4001"]),
        (data("hello"), 3, vec!["OCM4001"]),
        ("    insecure-skip-tls-verify: true\n".to_owned(), 3, vec!["OCM4001"]),
        ("    certificate-authority-data: '%'\n".to_owned(), 4, vec![]),
        ("    certificate-authority: not-there.pem\n".to_owned(), 4, vec![]),
        (String::new(), 3, vec!["OCM4001"]),
        (format!("{}    tls-server-name: hub.example\n", data(own)), 3, vec!["OCM4004"]),
    ] {
        let run = check(&lines);
        let seen = document(&run);
        assert_eq!((run.exit, ids(&seen)), (exit, found), "{lines}: {run}");
        // Whom nobody verifies, nobody refuses.
        let severity = if lines.contains("insecure") { "warning" } else { "error" };
        assert!(seen["findings"].as_array().into_iter().flatten().all(|one| one["severity"] == severity), "{run}");
    }
}

#[test]
fn a_list_of_authorities_is_judged_one_by_one() {
    let cli = Cli::new();
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    let key = KeyPair::generate().expect("a key is made");
    let expired = params.self_signed(&key).expect("a certificate is made").pem();
    let file = cli.write("bundle.pem", &format!("{}{expired}", server().authority()));
    let run = cli.run(["tls-check", &file.display().to_string(), "--output=name"]);
    assert_eq!((run.exit, run.stdout.as_str()), (3, "OCM4002\n"), "{run}");
}

#[test]
fn a_server_that_says_nothing_ends_in_time_and_many_are_asked_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = silent.local_addr().expect("it has one");
    let clusters: String =
        (0..8).map(|n| format!("- name: c{n}\n  cluster: {{server: 'https://{address}'}}\n")).collect();
    let cli = Cli::new();
    let file = cli.write("many", &format!("apiVersion: v1\nkind: Config\nclusters:\n{clusters}"));
    let begin = std::time::Instant::now();
    let run = cli.run(["tls-check", &file.display().to_string(), "--output=json"]);
    assert_eq!((run.exit, document(&run)["unseen"].as_array().map(Vec::len)), (4, Some(8)), "{run}");
    assert!(begin.elapsed() < std::time::Duration::from_secs(25), "{:?}", begin.elapsed());
}

#[test]
fn what_is_known_is_suppressed_and_findings_lead_to_their_page() {
    let (server, other) = (server(), server());
    let cli = Cli::new();
    let ca = format!("--ca-file={}", cli.write("other.pem", other.authority()).display());
    let check = |words: &[&str]| cli.run([&["tls-check", &server.address(), &ca], words].concat());
    let found = check(&[]);
    assert_eq!(found.exit, 3, "{found}");
    assert!(found.stdout.contains("  next: ") && found.stderr.contains("troubleshoot --explain OCM4001"), "{found}");
    let page = cli.run(["troubleshoot", "--explain", "OCM4001"]);
    assert!(page.exit == 0 && page.stdout.starts_with("# OCM4001 issuer-is-trusted\n"), "{page}");
    let known = check(&["--suppress=OCM4001=2999-12-31,replaced soon", "--output=json"]);
    assert_eq!((known.exit, ids(&document(&known))), (0, vec![]), "{known}");
    assert_eq!(document(&known)["suppressed"][0]["reason"], "replaced soon", "{known}");
    let ended = check(&["--suppress=OCM4001=2020-12-31,replaced soon"]);
    assert_eq!(ended.exit, 3, "{ended}");
    let unknown = check(&["--suppress=OCM4999=2999-12-31,x"]);
    assert!(unknown.exit == 2 && unknown.stderr.contains("there is no check OCM4999"), "{unknown}");
}

#[test]
fn what_cannot_be_looked_at_is_a_sentence() {
    let cli = Cli::new();
    let file = cli.write("text", "hello");
    let file = file.display().to_string();
    for (words, sentence) in [
        (vec!["nowhere"], "is neither a file that is there, nor HOST:PORT"),
        (vec!["secret/x"], "names no Secret"),
        (vec!["pod/x/y"], "names no port of a server"),
        (vec!["service/x:443"], "names no port of a server"),
        (vec!["service/x/y:https"], "names no port of a server"),
        (vec![file.as_str()], "holds neither certificates as PEM nor a kubeconfig"),
        (vec!["a:1", "--expires-in=soon"], "neither a time such as 30d"),
        (vec!["a:1", "--interval=0"], "longer than none"),
        (vec!["a:1", "--ca-file=nowhere"], "the file of --ca-file, cannot be used"),
        (vec!["--ca-file=nowhere"], "<TARGET>"),
        (vec!["a:1", "--expires-in=-1%"], "neither a time such as 30d"),
    ] {
        let run = cli.run(["tls-check"].iter().chain(&words));
        assert_eq!(run.exit, 2, "{words:?}: {run}");
        assert!(run.stdout.is_empty() && run.stderr.contains(sentence), "{words:?}: {run}");
    }
}

#[test]
fn a_file_that_is_watched_is_read_again_and_may_be_away_for_a_while() {
    let cli = Cli::new();
    let (first, second) = (certificate().0, certificate().0);
    let file = cli.write("own.pem", &first);
    let words = ["tls-check", &file.display().to_string(), "--watch", "--interval=1s", "--output=json"];
    let mut command = cli.command(&binary("kubectl-ocm"));
    let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let stdout = child.stdout.take().expect("it is piped");
    let mut documents = serde_json::Deserializer::from_reader(std::io::BufReader::new(stdout)).into_iter::<Value>();
    let mut until = |what: fn(&Value) -> bool| {
        let seen = documents.by_ref().take(20).find_map(|document| document.ok().filter(what));
        seen.unwrap_or_else(|| panic!("it was not seen"))
    };
    let serial = |document: &Value| document["expiries"][0]["serial"].clone();
    let before = serial(&until(|document| document["expiries"][0].is_object()));
    std::fs::remove_file(&file).expect("it is removed");
    let away = until(|document| document["unseen"][0].is_object());
    assert!(away["unseen"][0]["trouble"]["message"].as_str().is_some_and(|why| why.contains("cannot read")), "{away}");
    cli.write("own.pem", &second);
    let after = serial(&until(|document| document["expiries"][0].is_object()));
    assert_ne!(before, after);
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
}

/// The API server of a cluster on which the pods of two hosted hubs run, which have this signer, for somebody who may list
/// ClusterManagers or not.
fn hosting(may_list: bool, signer: &str) -> Server {
    let signer = STANDARD.encode(signer);
    Server::start(move |_, asked| {
        let path = asked.line.strip_prefix("GET ").unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let status = |code: u16, reason: &str| {
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code,
                "reason": reason, "message": reason});
            Reply::Json(code, status.to_string())
        };
        let manager = |name: &str| {
            json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManager",
                "metadata": {"name": name}, "spec": {"deployOption": {"mode": "Hosted"}}})
        };
        let usual = "open-cluster-management-hub";
        let managers = "/apis/operator.open-cluster-management.io/v1/clustermanagers";
        match path.strip_prefix(managers) {
            Some("") if may_list => {
                let list = json!({"apiVersion": "operator.open-cluster-management.io/v1", "kind": "ClusterManagerList",
                    "metadata": {"resourceVersion": "1"}, "items": [manager("hub1"), manager(usual)]});
                Reply::Json(200, list.to_string())
            }
            Some("") => status(403, "Forbidden"),
            Some(name) if name.strip_prefix('/') == Some(usual) => Reply::Json(200, manager(usual).to_string()),
            _ => match path.strip_prefix("/api/v1/namespaces/").and_then(|rest| rest.split_once('/')) {
                Some((namespace, "secrets/signer-secret")) => {
                    let secret = json!({"apiVersion": "v1", "kind": "Secret",
                        "metadata": {"name": "signer-secret", "namespace": namespace},
                        "data": {"tls.crt": signer}});
                    Reply::Json(200, secret.to_string())
                }
                _ => status(404, "NotFound"),
            },
        }
    })
}

#[test]
fn the_hub_of_every_cluster_manager_is_looked_at() {
    for (may_list, expected) in
        [(true, vec!["hub1", "open-cluster-management-hub"]), (false, vec!["open-cluster-management-hub"])]
    {
        let server = hosting(may_list, authority());
        let run = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"])).run(["tls-check", "--output=json"]);
        let seen = document(&run);
        let relations = seen["inventory"]["relations"].as_array().into_iter().flatten();
        let signers = relations.filter(|relation| relation["purpose"] == "signer");
        let namespaces: Vec<&str> =
            signers.filter_map(|signer| signer["place"]["object"]["namespace"].as_str()).collect();
        assert_eq!(namespaces, expected, "{run}");
    }
}

#[test]
fn a_hub_of_another_kubeconfig_is_not_taken_for_a_cluster_with_its_context() {
    let (ended, valid) = (hosting(false, &authority_until(2021)), hosting(false, &authority_until(2099)));
    let cli = Cli::with_kubeconfig(&contexts(&[("admin", valid.url())]));
    let other = cli.write("other", &contexts(&[("admin", ended.url())]));
    let file = format!("--hub-kubeconfig={}", other.display());
    let run = cli.run(["tls-check", "--contexts=admin", &file, "--hub-context=admin", "--output=name"]);
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("OCM4002:")).collect();
    assert_eq!(told, [format!("OCM4002:{}/", ended.url())], "{run}");
}

#[test]
fn a_context_that_is_not_there_is_refused_before_any_cluster_is_asked() {
    let server = Server::start(|_, _| Reply::Json(404, "{}".to_owned()));
    let cli = Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub", "cluster-1"]));
    for (contexts, hint) in [
        ("hub,cluster-2", "did you mean cluster-1 in --contexts?"),
        ("nowhere,hub", "name some that it has in --contexts: hub, cluster-1"),
    ] {
        for verb in [&["tls-check"][..], &["upgrade", "klusterlet"]] {
            let contexts = format!("--contexts={contexts}");
            let run = cli.run([verb, &[contexts.as_str(), "--hub-context=hub"]].concat());
            assert!(run.exit == 2 && run.stdout.is_empty() && run.stderr.contains(" has no context "), "{run}");
            assert!(run.stderr.contains(&format!("\n  hint: {hint}\n")), "{run}");
        }
    }
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

/// A kubeconfig with a context for each of these servers.
fn contexts(servers: &[(&str, String)]) -> String {
    let each = |entry: &dyn Fn(&str, &str) -> String| {
        servers.iter().map(|(name, server)| entry(name, server)).collect::<String>()
    };
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n{}users:\n- name: u\n  user: {{ token: secret }}\ncontexts:\n{}",
        each(&|name, server| format!("- name: {name}\n  cluster: {{ server: \"{server}\" }}\n")),
        each(&|name, _| format!("- name: {name}\n  context: {{ cluster: {name}, user: u }}\n")),
    )
}

/// The certificate of an authority, as PEM, that is valid from 2020 until this year.
fn authority_until(year: i32) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(year, 1, 1));
    params.self_signed(&KeyPair::generate().expect("a key is made")).expect("a certificate is made").pem()
}

#[test]
fn many_clusters_come_to_one_report_and_one_that_is_not_there_hides_no_other() {
    let (ended, valid) = (hosting(false, &authority_until(2021)), hosting(false, &authority_until(2099)));
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().expect("it has one");
    let servers = [("a", ended.url()), ("b", valid.url()), ("c", format!("http://{nobody}"))];
    let cli = Cli::with_kubeconfig(&contexts(&servers));
    let check = |contexts: &str, words: &[&str]| {
        let contexts = format!("--contexts={contexts}");
        cli.run([&["tls-check", &contexts], words].concat())
    };
    let run = check("c,a,b,a", &["--output=json"]);
    let seen = document(&run);
    assert_eq!((run.exit, ids(&seen), &seen["verdict"]), (3, vec!["OCM4002"], &"findings".into()), "{run}");
    assert_eq!(seen["findings"][0]["context"], "a", "{run}");
    let list = |key: &str| seen[key].as_array().cloned().unwrap_or_default();
    let of = |list: Vec<Value>| list.iter().map(|one| one["context"].as_str().map(str::to_owned)).collect::<Vec<_>>();
    let named = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(of(list("inventories")), named(&["c", "a", "b"]), "{run}");
    let own: Vec<Value> = list("expiries").into_iter().filter(|expiry| expiry["part"] == "own").collect();
    assert_eq!(of(own), named(&["a", "b"]), "what ends first: {run}");
    let unseen = of(list("unseen"));
    assert!(unseen.contains(&Some("c".to_owned())) && !unseen.contains(&None), "{run}");

    // Nothing is wrong with b; of c nothing is known.
    let unknown = check("b,c", &[]);
    assert_eq!(unknown.exit, 4, "{unknown}");
    assert_eq!(check("b,c", &["--fail-on=never"]).exit, 0);
    let table = check("a,b,c", &[]);
    let head = table.stdout.lines().next().unwrap_or_default();
    assert!(head.contains("CONTEXT") && table.stdout.contains("\n  context: a\n"), "{table}");
    assert!(table.stderr.contains("context \"c\": ") && table.stderr.contains("3 contexts, "), "{table}");
    let wide = check("a,b", &["--output=wide"]);
    assert!(wide.stdout.contains("\nContext \"b\"\n"), "{wide}");
    let names = check("b,a", &["--output=name"]);
    assert_eq!(names.stdout, "OCM4002:a\n", "{names}");
    let metrics = check("a,b,c", &["--output=prometheus"]).stdout;
    assert!(metrics.contains("ocm_tls_findings{context=\"a\",id=\"OCM4002\","), "{metrics}");
    assert!(metrics.contains("ocm_tls_observed_timestamp_seconds{context=\"c\"} "), "{metrics}");
    let sarif = document(&check("a,b", &["--output=sarif"]));
    let text = sarif["runs"][0]["results"][0]["message"]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("a: "), "{sarif:#}");
    let markdown = check("a,b", &["--output=markdown"]).stdout;
    assert!(markdown.contains("\nContext `a`\n") && markdown.contains("| left | context | for |"), "{markdown}");

    for (words, sentence) in [
        (vec!["--contexts=a", "--context=b"], "leave out --context"),
        (vec!["--contexts=a,"], "--contexts has an empty name"),
        (vec!["--contexts=a", "hub:1"], "cannot be used with"),
    ] {
        let run = cli.run(["tls-check"].iter().chain(&words));
        assert!(run.exit == 2 && run.stdout.is_empty() && run.stderr.contains(sentence), "{words:?}: {run}");
    }
}

//! Our commands go through the same proxies as kubectl. The real kubectl decides what is right, and a real API server
//! whether it is reached.
//!
//! Nothing leaves the machine: what is compared with kubectl runs again in a network namespace of its own, whose only
//! interface is the loopback one with a few more addresses.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::proxy::{CREDENTIALS, Kind, Manner, Proxy};
use cli_tests::{Cli, binary};
use e2e_tests::accept_support::Hub;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// Variables of the environment, the `proxy-url` of the kubeconfig, and the server's address.
type Row = (&'static [(&'static str, &'static str)], Option<&'static str>, &'static str);

/// `P`, `S` and `T` stand for the ports of the plain proxy, the SOCKS proxy and the one with TLS.
const ROWS: &[Row] = &[
    (&[], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://hub.example"),
    (&[("https_proxy", "http://127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://me:s3cr%40t@127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://me@127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "https://me:s3cr%40t@127.0.0.1:T")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "socks5://me:s3cr%40t@127.0.0.1:S")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "socks5://me@127.0.0.1:S")], None, "https://hub.example"),
    (&[("HTTP_PROXY", "http://127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTP_PROXY", "http://127.0.0.1:P")], None, "http://hub.example:8080"),
    (&[("ALL_PROXY", "http://127.0.0.1:P")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "https://127.0.0.1:T")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "socks5://127.0.0.1:S")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://[fd00::70]:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://127.0.0.1:1"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://127.8.8.8:1"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://localhost:1"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], None, "https://[::1]:1"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "10.0.0.0/8")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("no_proxy", "10.201.0.0/16")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "192.168.0.0/16")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "10.201.0.70")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "10.201.0.70:6443")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "10.201.0.70:443")], None, "https://10.201.0.70:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "fd00::/8")], None, "https://[fd00::70]:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "[fd00::70]:6443")], None, "https://[fd00::70]:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "127.0.0.1")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "a,")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "*")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "example")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", ".example")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "*.example")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", " HUB.example ,x")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", ".hub.example")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "ub.example")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "hub.example:443")], None, "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P"), ("NO_PROXY", "hub.example:443")], None, "https://hub.example"),
    // What the kubeconfig says is for this cluster, and no variable takes it back.
    (&[], Some("http://127.0.0.1:P"), "https://hub.example:6443"),
    (&[], Some("http://127.0.0.1:P"), "https://127.0.0.1:1"),
    (&[("NO_PROXY", "*")], Some("http://127.0.0.1:P"), "https://hub.example:6443"),
    (&[("HTTPS_PROXY", "http://127.0.0.1:P")], Some("socks5://127.0.0.1:S"), "https://hub.example:6443"),
    (&[], Some("https://127.0.0.1:T"), "https://hub.example:6443"),
    (&[], Some("http://me:s3cr%40t@127.0.0.1:P"), "https://hub.example:6443"),
    (&[], Some("https://me:s3cr%40t@127.0.0.1:T"), "https://hub.example:6443"),
    (&[], Some("socks5://me:s3cr%40t@127.0.0.1:S"), "https://hub.example:6443"),
    (&[], Some("socks5://me:s3cr%40t@127.0.0.1:S"), "https://[fd00::70]:6443"),
];

#[test]
fn proxies_are_those_of_kubectl() {
    const INSIDE: &str = "OCM_TEST_NETWORK_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        return compare();
    }
    // Built and prepared where there is a network.
    let kubectl = control_plane::binaries().expect("the binaries of the control plane are there").kubectl();
    assert!(kubectl.is_file() && binary("kubectl-ocm-get").is_file());
    // The name is one that this machine knows, so that no resolver is asked.
    let hosts = tempfile::NamedTempFile::new().expect("a file can be made");
    std::fs::write(hosts.path(), "127.0.0.1 localhost\n10.201.0.70 hub.example\n").expect("it can be written");
    let script = "ip link set lo up && ip addr add 10.201.0.70/32 dev lo && ip addr add fd00::70/128 dev lo \
                  && mount --bind \"$HOSTS\" /etc/hosts && exec \"$0\" \"$@\"";
    let own = std::env::current_exe().expect("a process has an executable");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", script]).arg(own).args([
        "--exact",
        "proxy::proxies_are_those_of_kubectl",
        "--nocapture",
    ]);
    command.env("HOSTS", hosts.path()).env(INSIDE, "1").env(cli_tests::BINARIES, cli_tests::folder());
    let output = command.stdin(Stdio::null()).output().expect("unshare starts");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// A user whose token a program prints.
fn plugin(cli: &Cli, token: &str) -> Value {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": token },
    });
    let file = cli.write("credential.json", &credential.to_string());
    let (version, never) = ("client.authentication.k8s.io/v1", "Never");
    json!({ "exec": { "apiVersion": version, "command": "cat", "args": [file], "interactiveMode": never } })
}

#[test]
fn a_real_api_server_is_reached_through_every_kind_of_proxy() {
    let hub = Hub::start("proxies");
    hub.register("c1");
    let kubectl = control_plane::binaries().expect("the binaries of the control plane are there").kubectl();
    let token = hub.cluster.kubectl(&["create", "token", "default"]).expect("a service account gets a token");
    let admin =
        ["create", "clusterrolebinding", "proxied", "--clusterrole=cluster-admin", "--serviceaccount=default:default"];
    hub.cluster.kubectl(&admin).expect("the service account gets rights");
    let address = hub.cluster.server().strip_prefix("https://").expect("it speaks TLS");
    let port = address.rsplit_once(':').expect("it has a port").1;
    for kind in Kind::ALL {
        let proxy = Proxy::start(kind, Manner::Connects);
        let cli = Cli::new();
        // kubectl trusts an https proxy and the cluster by the same authorities.
        let authorities = STANDARD.encode(format!("{}\n{}", hub.cluster.ca_pem(), proxy.authority()));
        let kubeconfig = |server: &str, proxy_url: Option<&str>, user: &Value| {
            let mut cluster = json!({ "server": server, "certificate-authority-data": authorities });
            cluster["proxy-url"] = json!(proxy_url);
            let text = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "hub",
                "clusters": [{ "name": "hub", "cluster": cluster }],
                "users": [{ "name": "me", "user": user }],
                "contexts": [{ "name": "hub", "context": { "cluster": "hub", "user": "me" } }],
            });
            cli.write("kubeconfig", &text.to_string()).display().to_string()
        };
        let ours = binary("kubectl-ocm-get");
        for user in [json!({ "token": token.trim() }), plugin(&cli, token.trim())] {
            let file = kubeconfig(hub.cluster.server(), Some(&proxy.url(CREDENTIALS)), &user);
            let theirs = cli.run_file(kubectl, ["get", "managedclusters", "-o", "name", "--kubeconfig", &file]);
            let run = cli.run_file(&ours, ["clusters", "-o", "name", "--kubeconfig", &file]);
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{kind:?} {user}: {run}");
            assert_eq!(run.stdout, theirs.stdout, "{kind:?} {user}: {theirs}");
            assert_eq!(run.stdout, "managedcluster.cluster.open-cluster-management.io/c1\n");
        }
        // The administrator's credentials are a certificate.
        let text = std::fs::read_to_string(hub.cluster.kubeconfig()).expect("a cluster has a kubeconfig");
        let text = text.replace("server: ", &format!("proxy-url: {}\n    server: ", proxy.url(CREDENTIALS)));
        let file = cli.write("admin", &text.replace(&STANDARD.encode(hub.cluster.ca_pem()), &authorities));
        let run = cli.run_file(&ours, ["clusters".as_ref(), "--kubeconfig".as_ref(), file.as_os_str()]);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{kind:?}: {run}");
        assert!(proxy.passed().len() >= 5 && proxy.passed().iter().all(|server| server == address), "{kind:?}");

        // A name that only the proxy knows; the certificate is for another one, and the proxy's for neither.
        let file = kubeconfig(&format!("https://hub.example:{port}"), None, &json!({ "token": token.trim() }));
        let words = ["clusters", "-o", "name", "--tls-server-name", "127.0.0.1", "--kubeconfig", &file];
        for variable in ["HTTPS_PROXY", "https_proxy"] {
            let cli = Cli::new().env(variable, proxy.url(CREDENTIALS));
            let run = cli.run_file(&ours, words);
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{kind:?} {variable}: {run}");
            let bypass = cli.env("NO_PROXY", "hub.example").run_file(&ours, words);
            assert!(bypass.exit == 1 && bypass.stderr.contains("cannot be resolved"), "{kind:?}: {bypass}");
        }
        assert_eq!(
            proxy.passed().iter().filter(|server| **server == format!("hub.example:{port}")).count(),
            2,
            "{kind:?}"
        );

        // The server behind the proxy is verified as without one, and messages say which of the two is meant.
        let stranger = STANDARD.encode(proxy.authority());
        let text = std::fs::read_to_string(&file).expect("it was written").replace(&authorities, &stranger);
        let file = cli.write("stranger", &text).display().to_string();
        let cli = Cli::new().env("HTTPS_PROXY", proxy.url(CREDENTIALS));
        let words = ["clusters", "--tls-server-name", "127.0.0.1", "--kubeconfig", &file];
        let run = cli.run_file(&ours, words);
        let sentence = "the server presents a certificate that the trusted CA did not sign";
        assert!(run.exit == 1 && run.stderr.contains(sentence), "{kind:?}: {run}");
    }
}

/// Every way that a proxy was asked for, without how often.
type Seen = Arc<Mutex<BTreeSet<String>>>;

fn compare() {
    let seen = Seen::default();
    let ports = [("P", listen(&seen, plain)), ("S", listen(&seen, socks)), ("T", listen(&seen, secure))];
    let fill = |text: &str| {
        ports
            .iter()
            .fold(text.to_owned(), |text, (letter, port)| text.replace(&format!(":{letter}"), &format!(":{port}")))
    };
    let kubectl = control_plane::binaries().expect("they were there before").kubectl();
    let mut wrong = Vec::new();
    let mut ways = BTreeSet::new();
    for (variables, proxy, server) in ROWS {
        let mut cluster = json!({ "server": server, "insecure-skip-tls-verify": server.starts_with("https") });
        if let Some(proxy) = proxy {
            cluster["proxy-url"] = json!(fill(proxy));
        }
        // Without TLS kubectl leaves a token out, and ours refuses to go on with one.
        let user = if server.starts_with("https") { json!({ "token": "secret" }) } else { json!({}) };
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "hub",
            "clusters": [{ "name": "hub", "cluster": cluster }],
            "users": [{ "name": "me", "user": user }],
            "contexts": [{ "name": "hub", "context": { "cluster": "hub", "user": "me" } }],
        });
        let cli = variables
            .iter()
            .fold(Cli::with_kubeconfig(&kubeconfig.to_string()), |cli, (name, value)| cli.env(name, fill(value)));
        let way = |file: &std::path::Path, words: &[&str]| {
            let run = cli.run_file(file, words);
            assert_ne!(run.exit, 0, "there is no server: {run}");
            let shown = run.stdout.contains("s3cr") || run.stderr.contains("s3cr");
            assert!(!shown || file == kubectl, "a password is shown: {run}");
            std::mem::take(&mut *seen.lock().expect("nobody panics"))
        };
        let theirs = way(kubectl, &["get", "--raw", "/api", "--request-timeout", "10s"]);
        let ours = way(&binary("kubectl-ocm-get"), &["clusters", "--request-timeout", "10s"]);
        if theirs != ours {
            wrong.push(format!("{variables:?} {proxy:?} {server}: kubectl {theirs:?}, ours {ours:?}"));
        }
        ways.extend(theirs);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A test whose proxies nobody reaches would agree too.
    for kind in ["http ", "https ", "socks5 ", "socks5 me:s3cr@t ", "socks5 me: "] {
        assert!(ways.iter().any(|way| way.starts_with(kind)), "{ways:?}");
    }
}

/// Notes a way before the client has its answer, and may end.
type Note<'a> = &'a dyn Fn(String);

fn listen(seen: &Seen, serve: fn(TcpStream, Note<'_>) -> std::io::Result<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
    let port = listener.local_addr().expect("it has an address").port();
    let seen = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // What is no request, like a connection that is closed at once, is not noted.
            let _ = serve(stream, &|way| {
                seen.lock().expect("nobody panics").insert(way);
            });
        }
    });
    port
}

/// Reads the head of a request, refuses it, and says whom it is for.
fn http(kind: &str, mut stream: impl Read + Write, note: Note<'_>) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let target = target.strip_prefix("http://").unwrap_or(target).split('/').next().unwrap_or_default();
    let authorization = head.lines().find(|line| line.to_ascii_lowercase().starts_with("proxy-authorization:"));
    let authorization = authorization.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value);
    note(format!("{kind} {target} {authorization}"));
    stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn plain(stream: TcpStream, note: Note<'_>) -> std::io::Result<()> {
    http("http", stream, note)
}

fn secure(stream: TcpStream, note: Note<'_>) -> std::io::Result<()> {
    let key = rcgen::KeyPair::generate().expect("a key is made");
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters are made");
    let certificate = params.self_signed(&key).expect("a certificate is made");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions are known")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the certificate fits its key");
    let connection = ServerConnection::new(Arc::new(config)).expect("a connection can be made");
    http("https", StreamOwned::new(connection, stream), note)
}

/// RFC 1928 and 1929, as far as a request. Who offers a user name and a password is asked for them.
fn socks(mut stream: TcpStream, note: Note<'_>) -> std::io::Result<()> {
    let text = |stream: &mut TcpStream| -> std::io::Result<Vec<u8>> {
        let mut length = [0];
        stream.read_exact(&mut length)?;
        let mut bytes = vec![0; length[0].into()];
        stream.read_exact(&mut bytes).map(|()| bytes)
    };
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    let mut way = "socks5 ".to_owned();
    if text(&mut stream)?.contains(&2) {
        stream.write_all(&[5, 2])?;
        stream.read_exact(&mut byte)?;
        for end in [":", " "] {
            way += &(String::from_utf8_lossy(&text(&mut stream)?).into_owned() + end);
        }
        stream.write_all(&[1, 0])?;
    } else {
        stream.write_all(&[5, 0])?;
    }
    let mut request = [0; 4];
    stream.read_exact(&mut request)?;
    let host = match request[3] {
        1 | 4 => {
            let mut address = vec![0; if request[3] == 1 { 4 } else { 16 }];
            stream.read_exact(&mut address)?;
            format!("{address:?}")
        }
        _ => String::from_utf8_lossy(&text(&mut stream)?).into_owned(),
    };
    let mut port = [0; 2];
    stream.read_exact(&mut port)?;
    note(format!("{way}{host}:{}", u16::from_be_bytes(port)));
    stream.write_all(&[5, 1, 0, 1, 0, 0, 0, 0, 0, 0])
}

//! Proxies that want a user name and a password: they get them, and nobody else does.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run, kubeconfig};

const CLUSTERS: &str = r#"{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList","metadata":{},
"items":[{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1"},"spec":{}}]}"#;

/// What the proxies know their user by, and how a URL has it.
const USER: &str = "me";
const PASSWORD: &str = "s3cr@t:/%";
const WRITTEN: &str = "s3cr%40t%3A%2F%25";

/// A proxy on a port of its own, and how many connections it let through.
struct Proxy {
    port: u16,
    passed: Arc<AtomicUsize>,
}

impl Proxy {
    /// `greet` returns the server that is asked for, if the credentials are right.
    fn start(greet: fn(&mut TcpStream) -> io::Result<Option<String>>, granted: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
        let port = listener.local_addr().expect("it has an address").port();
        let passed = Arc::new(AtomicUsize::new(0));
        let count = passed.clone();
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let count = count.clone();
                thread::spawn(move || -> io::Result<()> {
                    let Some(server) = greet(&mut client)? else { return Ok(()) };
                    let server = TcpStream::connect(server)?;
                    count.fetch_add(1, Ordering::SeqCst);
                    client.write_all(granted)?;
                    let (back, forth) = ((server.try_clone()?, client.try_clone()?), (client, server));
                    let answers = thread::spawn(move || pass(back));
                    pass(forth)?;
                    answers.join().expect("nobody panics")
                });
            }
        });
        Self { port, passed }
    }
}

fn pass((mut from, mut to): (TcpStream, TcpStream)) -> io::Result<()> {
    io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Write)
}

/// RFC 9110, section 9.3.6, with the credentials of RFC 7617.
fn http(client: &mut TcpStream) -> io::Result<Option<String>> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut first, mut line, mut shown) = (String::new(), String::new(), String::new());
    reader.read_line(&mut first)?;
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("proxy-authorization: basic ") {
            let start = line.len() - value.len();
            line[start..].trim().clone_into(&mut shown);
        }
    }
    if shown == STANDARD.encode(format!("{USER}:{PASSWORD}")) {
        return Ok(first.split(' ').nth(1).map(str::to_owned));
    }
    client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")?;
    Ok(None)
}

/// RFC 1928 with RFC 1929, for a server whose address is IPv4.
fn socks(client: &mut TcpStream) -> io::Result<Option<String>> {
    fn read<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        client.read_exact(&mut bytes).map(|()| bytes)
    }
    let text = |client: &mut TcpStream| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::from(read::<1>(client)?[0])];
        client.read_exact(&mut bytes).map(|()| bytes)
    };
    read::<1>(client)?;
    if !text(client)?.contains(&2) {
        client.write_all(&[5, 255])?;
        return Ok(None);
    }
    client.write_all(&[5, 2])?;
    read::<1>(client)?;
    let right = (text(client)?, text(client)?) == (USER.into(), PASSWORD.into());
    client.write_all(&[1, u8::from(!right)])?;
    if !right {
        return Ok(None);
    }
    let [_, _, _, _, a, b, c, d, high, low] = read::<10>(client)?;
    Ok(Some(format!("{a}.{b}.{c}.{d}:{}", u16::from_be_bytes([high, low]))))
}

#[test]
fn proxies_get_the_credentials_that_their_urls_hold() {
    let server = Server::start(|_, _| Reply::Json(200, CLUSTERS.to_owned()));
    for (scheme, proxy, refused) in [
        (
            "http",
            Proxy::start(http, b"HTTP/1.1 200 OK\r\n\r\n"),
            ["the connection to the cluster failed", "authorization"],
        ),
        (
            "socks5",
            Proxy::start(socks, &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
            ["does not let it through", "does not accept the user name and the password"],
        ),
    ] {
        let run = |credentials: &str| -> Run {
            let entry = format!("proxy-url: \"{scheme}://{credentials}127.0.0.1:{}\", server", proxy.port);
            Cli::with_kubeconfig(&kubeconfig(&server.url(), &["hub"]).replace("{ server", &format!("{{ {entry}")))
                .run(["get", "clusters", "-o", "name"])
        };
        let right = run(&format!("{USER}:{WRITTEN}@"));
        assert_eq!((right.exit, right.stderr.as_str()), (0, ""), "{scheme}: {right}");
        assert_eq!(right.stdout, "managedcluster.cluster.open-cluster-management.io/c1\n");
        assert_eq!(proxy.passed.load(Ordering::SeqCst), 1, "{scheme}");
        for wrong in ["me:wr0ng-s3cr3t@", "me@", ""] {
            let run = run(wrong);
            assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{scheme} {wrong:?}: {run}");
            assert!(wrong != "me:wr0ng-s3cr3t@" || refused.iter().all(|words| run.stderr.contains(words)), "{run}");
            assert!(!run.stderr.contains("s3cr"), "a password is shown: {run}");
        }
        assert_eq!(proxy.passed.load(Ordering::SeqCst), 1, "{scheme}");
    }
    assert_eq!(server.lines().len(), 2);
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_without_its_password() {
    for url in ["ftp://me:s3cret@p:1", "http://me:s3cret@", "socks5://me:s3cret@p:port", "http://me:s3cret@a b"] {
        let text = kubeconfig("https://hub.example", &["hub"]);
        let cli = Cli::with_kubeconfig(&text.replace("{ server", &format!("{{ proxy-url: \"{url}\", server")));
        let variable = Cli::with_kubeconfig(&text).env("HTTPS_PROXY", url);
        for cli in [cli, variable] {
            let run = cli.run(["get", "clusters"]);
            assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{url}: {run}");
            assert!(run.stderr.contains("cannot be used") && !run.stderr.contains("s3cret"), "{url}: {run}");
        }
    }
    // Nobody listens there.
    for scheme in ["http", "https", "socks5"] {
        let proxy = format!("proxy-url: \"{scheme}://me:s3cret@127.0.0.1:1\", server");
        let text = kubeconfig("https://hub.example", &["hub"]);
        let run = Cli::with_kubeconfig(&text.replace("{ server", &format!("{{ {proxy}"))).run(["get", "clusters"]);
        assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
        assert!(!run.stderr.contains("s3cret"), "{run}");
    }
}

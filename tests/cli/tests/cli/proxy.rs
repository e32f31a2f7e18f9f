//! Every kind of proxy: it gets the credentials of its URL and nobody else does, and whatever goes wrong with it is said
//! of it and not of the cluster.

use std::net::TcpListener;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cli_tests::proxy::{CREDENTIALS, Kind, Manner, Proxy};
use cli_tests::server::{Reply, Server};
use cli_tests::{Cli, Run, kubeconfig};

const CLUSTERS: &str = r#"{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedClusterList","metadata":{},
"items":[{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1"},"spec":{}}]}"#;

/// Who names the proxy.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Kubeconfig,
    Variable(&'static str),
}

/// `get clusters` of `server` through the proxy of this URL, which `authority` vouches for.
fn get(server: &str, origin: Origin, url: &str, authority: Option<&str>, words: &[&str]) -> Run {
    let mut entry = String::new();
    if let Origin::Kubeconfig = origin {
        entry += &format!("proxy-url: \"{url}\", ");
    }
    if let Some(authority) = authority {
        entry += &format!("certificate-authority-data: {}, ", STANDARD.encode(authority));
    }
    // Without TLS no credentials travel.
    let text = kubeconfig(server, &["hub"]).replace("{ token: secret }", "{}");
    let text = text.replace("{ server", &format!("{{ {entry}server"));
    let cli = Cli::with_kubeconfig(&text);
    let cli = match origin {
        Origin::Kubeconfig => cli,
        Origin::Variable(name) => cli.env(name, url),
    };
    cli.run(["get", "clusters", "-o", "name"].iter().chain(words))
}

/// It failed, with these words and without a password.
#[track_caller]
fn failed(run: &Run, words: &[&str]) {
    assert_eq!((run.exit, run.stdout.as_str()), (1, ""), "{run}");
    for words in words {
        assert!(run.stderr.contains(words), "{words:?}: {run}");
    }
    assert!(!run.stderr.contains("s3cr"), "a password is shown: {run}");
}

#[test]
fn proxies_get_the_credentials_that_their_urls_hold() {
    let server = Server::start(|_, _| Reply::Json(200, CLUSTERS.to_owned()));
    let named = server.url().replace("127.0.0.1", "hub.example");
    for kind in Kind::ALL {
        let proxy = Proxy::start(kind, Manner::Connects);
        let address = proxy.address();
        // The environment's proxies are not for addresses of this machine; the name is one that only the proxy knows.
        let ways = [
            (Origin::Kubeconfig, server.url(), "write them into the proxy-url of the kubeconfig"),
            (Origin::Variable("HTTP_PROXY"), named.clone(), "write them into HTTP_PROXY"),
            (Origin::Variable("http_proxy"), named.clone(), "write them into http_proxy"),
        ];
        for (origin, url, place) in &ways {
            let run = |credentials: &str| get(url, *origin, &proxy.url(credentials), Some(proxy.authority()), &[]);
            let right = run(CREDENTIALS);
            assert_eq!((right.exit, right.stderr.as_str()), (0, ""), "{kind:?} {origin:?}: {right}");
            assert_eq!(right.stdout, "managedcluster.cluster.open-cluster-management.io/c1\n");
            let refused = format!("the proxy {address} does not accept the user name and the password");
            failed(&run("me:wr0ng-s3cr3t@"), &[&refused, "special characters are percent-encoded"]);
            failed(&run("me@"), &[&refused]);
            let example = format!("{place}, percent-encoded: {}://USER:PASSWORD@{address}", kind.scheme());
            failed(&run(""), &[&format!("the proxy {address} wants a user name and a password"), &example]);
        }
        let asked: Vec<String> = ways.iter().map(|(_, url, _)| url.replace("http://", "")).collect();
        assert_eq!(proxy.passed(), asked, "{kind:?}");
    }
    let asked = server.asked();
    assert_eq!(asked.len(), 9);
    assert!(asked.iter().all(|asked| asked.header("proxy-authorization").is_empty()), "{asked:?}");
    assert!(asked.iter().all(|asked| asked.line.starts_with("GET /apis/")), "{asked:?}");
}

#[test]
fn what_is_wrong_with_a_proxy_is_said_of_the_proxy() {
    const SERVER: &str = "http://hub.example:6443";
    const VARIABLE: &str = "it comes from HTTP_PROXY: correct it, or add hub.example:6443 to NO_PROXY";
    const KUBECONFIG: &str = "kubectl config set clusters.NAME.proxy-url URL";
    let rows: &[(Kind, Manner, &[&str])] = &[
        (
            Kind::Http,
            Manner::Forbids,
            &["forbids connections to hub.example:6443", "allow CONNECT to hub.example:6443"],
        ),
        (Kind::Https, Manner::Forbids, &["forbids connections to hub.example:6443", "HTTP 403"]),
        (
            Kind::Socks,
            Manner::Forbids,
            &["does not let a connection to hub.example:6443 through", "not allowed by ruleset"],
        ),
        (Kind::Http, Manner::Fails, &["cannot connect to hub.example:6443", "HTTP 502 Bad Gateway"]),
        (Kind::Https, Manner::Fails, &["cannot connect to hub.example:6443", "HTTP 502 Bad Gateway"]),
        (
            Kind::Socks,
            Manner::Fails,
            &["does not let a connection to hub.example:6443 through", "it says: connection refused"],
        ),
        (Kind::Http, Manner::Closes, &["closed the connection"]),
        (Kind::Https, Manner::Closes, &["closed the connection"]),
        (Kind::Socks, Manner::Closes, &["closed the connection"]),
        (Kind::Http, Manner::Babbles, &["does not speak HTTP", "https:// or socks5://"]),
        (Kind::Https, Manner::Babbles, &["does not speak TLS", "begins with http://"]),
        (Kind::Socks, Manner::Babbles, &["does not speak SOCKS 5"]),
    ];
    for (kind, manner, words) in rows {
        let proxy = Proxy::start(*kind, *manner);
        let (url, named) = (proxy.url(CREDENTIALS), format!("the proxy {} ", proxy.address()));
        for (origin, hint) in [(Origin::Variable("HTTP_PROXY"), VARIABLE), (Origin::Kubeconfig, KUBECONFIG)] {
            let run = get(SERVER, origin, &url, Some(proxy.authority()), &[]);
            failed(&run, &[words, &[named.as_str(), hint][..]].concat());
        }
        assert!(proxy.passed().is_empty());
    }
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let closed = closed.expect("a port can be had").to_string();
    for kind in Kind::ALL {
        for (address, what) in
            [(closed.as_str(), "connection refused"), ("p.invalid:3128", "its name cannot be resolved")]
        {
            let url = format!("{}://{CREDENTIALS}{address}", kind.scheme());
            let sentence = format!("the proxy {address} cannot be reached: {what}");
            failed(&get(SERVER, Origin::Variable("HTTP_PROXY"), &url, None, &[]), &[&sentence, VARIABLE]);
        }
    }
}

#[test]
fn a_silent_proxy_is_not_waited_for_long() {
    let tests = Kind::ALL.map(|kind| {
        std::thread::spawn(move || {
            let proxy = Proxy::start(kind, Manner::Silent);
            let (url, address) = (proxy.url(CREDENTIALS), proxy.address());
            let run = |words: &[&str]| {
                let origin = Origin::Variable("HTTPS_PROXY");
                get("https://hub.example:6443", origin, &url, Some(proxy.authority()), words)
            };
            failed(
                &run(&[]),
                &[&format!("the proxy {address} does not answer"), "nothing within 8s", "it comes from HTTPS_PROXY"],
            );
            let sentence = format!("the cluster does not answer through the proxy {address} (HTTPS_PROXY)");
            failed(&run(&["--request-timeout", "1s"]), &[&sentence, "no answer within 1s"]);
        })
    });
    // The proxy connects, and the server behind it says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
    let server = format!("https://hub.example:{}", listener.local_addr().expect("it has an address").port());
    let proxy = Proxy::start(Kind::Http, Manner::Connects);
    let run = get(&server, Origin::Variable("HTTPS_PROXY"), &proxy.url(CREDENTIALS), None, &[]);
    let sentence = format!("the cluster's address does not answer through the proxy {} (HTTPS_PROXY)", proxy.address());
    failed(&run, &[&sentence, "no connection within 10s"]);
    assert_eq!(proxy.passed().len(), 1);
    for test in tests {
        test.join().expect("the proxy is named");
    }
}

#[test]
fn an_https_proxy_is_trusted_like_the_cluster() {
    let server = Server::start(|_, _| Reply::Json(200, CLUSTERS.to_owned()));
    let (proxy, other) = (Proxy::start(Kind::Https, Manner::Connects), Proxy::start(Kind::Https, Manner::Connects));
    let (url, named) = (proxy.url(CREDENTIALS), format!("the proxy {}", proxy.address()));
    let sentence = format!("{named} presents a certificate that the trusted CA did not sign");
    for authority in [Some(other.authority()), None] {
        let run = get(&server.url(), Origin::Kubeconfig, &url, authority, &[]);
        failed(&run, &[&sentence, "verified with the same CA as the server", "clusters.NAME.proxy-url"]);
    }
    let localhost = url.replace("127.0.0.1", "localhost");
    failed(
        &get(&server.url(), Origin::Kubeconfig, &localhost, Some(proxy.authority()), &[]),
        &[
            "the proxy localhost:",
            "presents a certificate that is not valid for this hostname",
            "as its certificate does",
        ],
    );
    assert!(proxy.passed().is_empty() && server.lines().is_empty());
    // Whoever asks for no verification gets none, as with kubectl; another name is the server's and not the proxy's.
    let unverified = get(&server.url(), Origin::Kubeconfig, &url, None, &["--insecure-skip-tls-verify"]);
    assert_eq!((unverified.exit, unverified.stderr.as_str()), (0, ""), "{unverified}");
    let renamed =
        get(&server.url(), Origin::Kubeconfig, &url, Some(proxy.authority()), &["--tls-server-name", "hub.example"]);
    assert_eq!((renamed.exit, renamed.stderr.as_str()), (0, ""), "{renamed}");
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_without_its_password() {
    for url in ["ftp://me:s3cret@p:1", "http://me:s3cret@", "socks5://me:s3cret@p:port", "http://me:s3cret@a b"] {
        for (origin, words) in [(Origin::Kubeconfig, "its proxy-url"), (Origin::Variable("HTTPS_PROXY"), "HTTPS_PROXY")]
        {
            let run = get("https://hub.example", origin, url, None, &[]);
            assert_eq!((run.exit, run.stdout.as_str()), (2, ""), "{url}: {run}");
            assert!(run.stderr.contains("cannot be used") && run.stderr.contains(words), "{url}: {run}");
            assert!(!run.stderr.contains("s3cret"), "{url}: {run}");
        }
    }
}

//! Against real TLS servers on this machine.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ocm_core::pin::Pin;
use ocm_core::tls::TlsError;
use ocm_core::{Failure, Reason};
use ocm_net::{ConnectError, Endpoint, Source, VERSIONS, Way, learn, present, present_by};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

const LIMIT: Duration = Duration::from_secs(5);

struct Authority {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { der, issuer: Issuer::new(params, key) }
    }

    fn pin(&self) -> Pin {
        Pin::of(&self.der).unwrap()
    }

    /// A certificate for `name` and its key.
    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().der().to_vec(), key)
    }
}

/// What a server does after its handshake.
#[derive(Clone, Copy)]
enum Then {
    Publishes,
    Forbids,
    Babbles,
}

/// A TLS server that presents `chain` and, when asked, answers with the first 2 KiB of what it was asked and `body`.
async fn serve(chain: Vec<Vec<u8>>, key: KeyPair, then: Then, body: Vec<u8>) -> SocketAddr {
    let chain = chain.into_iter().map(CertificateDer::from).collect();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut asked = [0; 2048];
            let Ok(length) = stream.read(&mut asked).await else { continue };
            let request = String::from_utf8_lossy(&asked[..length]).to_ascii_lowercase();
            assert!(!request.contains("authorization"), "a credential came along: {request}");
            let answer = match then {
                Then::Publishes => [b"HTTP/1.0 200 OK\r\nContent-Type: x\r\n\r\n".as_slice(), &body].concat(),
                Then::Forbids => b"HTTP/1.0 403 Forbidden\r\n\r\n".to_vec(),
                Then::Babbles => b"hello".to_vec(),
            };
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::parse(&format!("https://127.0.0.1:{}", address.port()), Some("hub.example")).unwrap()
}

/// The body is certificates one after the other, each behind its length.
fn pack(certificates: &[&[u8]]) -> Vec<u8> {
    certificates.iter().flat_map(|der| [&u32::try_from(der.len()).unwrap().to_be_bytes()[..], der].concat()).collect()
}

fn unpack(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let (der, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        found.push(der.to_vec());
        body = rest;
    }
    found
}

async fn learned(address: SocketAddr, pin: Pin) -> Result<ocm_net::Learned, Failure> {
    learn(&endpoint(address), &[pin], "/public", unpack, LIMIT).await
}

/// Whether these authorities vouch for what the server presents.
async fn verify(endpoint: &Endpoint, authorities: &[Vec<u8>], limit: Duration) -> Result<(), Failure> {
    let presented = present(endpoint, authorities, limit).await.map_err(|error| error.failure(endpoint))?;
    presented.verify(authorities).map_err(|fault| fault.failure(endpoint))
}

#[tokio::test]
async fn what_others_have_named_is_not_dialled_where_it_is_this_machine() {
    let (der, key) = Authority::new("own").sign("hub.example", |_| {});
    let address = serve(vec![der], key, Then::Forbids, Vec::new()).await;
    let by = async |host: &str, way: Way| {
        let endpoint = Endpoint::parse(&format!("https://{host}:{}", address.port()), Some("hub.example")).unwrap();
        present_by(&endpoint, &way, &VERSIONS, &[], LIMIT).await.map(|presented| presented.chain.len())
    };
    assert_eq!(by("127.0.0.1", Way::Direct).await, Ok(1));
    // No address as it is written, and one where it is resolved.
    for host in ["127.0.0.1", "0x7f000001", "localhost", "169.254.169.254"] {
        let refused = by(host, Way::Remote).await;
        assert!(matches!(refused, Err(ConnectError::Failed(_) | ConnectError::Unresolved(_))), "{host}: {refused:?}");
    }
}

#[tokio::test]
async fn what_a_server_presents_is_seen_whoever_vouches_for_it() {
    let ca = Authority::new("hub");
    let (leaf, key) = ca.sign("else.example", |_| {});
    let chain = vec![leaf, ca.der.clone()];
    let address = serve(chain.clone(), key, Then::Publishes, Vec::new()).await;
    let presented = present(&endpoint(address), &[], LIMIT).await.unwrap();
    assert_eq!((presented.chain.clone(), presented.proxy.clone()), (chain, None));
    let kind = |authorities: &[Vec<u8>]| presented.verify(authorities).unwrap_err().kind;
    assert_eq!(kind(&[ca.der]), TlsError::WrongName);
    assert_eq!(kind(&[Authority::new("other").der]), TlsError::UnknownIssuer);
    assert_eq!(kind(&[]), TlsError::UnusableAuthority);
    assert_eq!(kind(&[b"no certificate".to_vec()]), TlsError::UnusableAuthority);

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(matches!(present(&endpoint(closed), &[], LIMIT).await, Err(ConnectError::Refused(_))));
}

#[tokio::test]
async fn a_server_is_verified_by_its_authority() {
    let ca = Authority::new("hub");
    let (leaf, key) = ca.sign("hub.example", |_| {});
    let address = serve(vec![leaf], key, Then::Publishes, Vec::new()).await;
    verify(&endpoint(address), std::slice::from_ref(&ca.der), LIMIT).await.unwrap();

    let other = verify(&endpoint(address), &[Authority::new("other").der], LIMIT).await.unwrap_err();
    assert_eq!(other.reason, Reason::Tls);
    assert!(other.message.contains("the trusted CA did not sign"), "{other}");
}

#[tokio::test]
async fn names_and_times_count() {
    let ca = Authority::new("hub");
    let (leaf, key) = ca.sign("else.example", |_| {});
    let address = serve(vec![leaf, ca.der.clone()], key, Then::Publishes, Vec::new()).await;
    let wrong = verify(&endpoint(address), std::slice::from_ref(&ca.der), LIMIT).await.unwrap_err();
    assert!(wrong.message.contains("not valid for this hostname"), "{wrong}");
    // The pin is right, but the certificate is not this server's.
    let wrong = learned(address, ca.pin()).await.unwrap_err();
    assert!(wrong.message.contains("does not vouch"), "{wrong}");

    let (leaf, key) = ca.sign("hub.example", |params| params.not_after = date_time_ymd(2001, 1, 1));
    let address = serve(vec![leaf], key, Then::Publishes, Vec::new()).await;
    let late = verify(&endpoint(address), std::slice::from_ref(&ca.der), LIMIT).await.unwrap_err();
    assert!(late.message.contains("has expired"), "{late}");

    let (leaf, key) = ca.sign("hub.example", |params| params.not_before = date_time_ymd(2300, 1, 1));
    let address = serve(vec![leaf], key, Then::Publishes, Vec::new()).await;
    let early = verify(&endpoint(address), std::slice::from_ref(&ca.der), LIMIT).await.unwrap_err();
    assert!(early.message.contains("not valid yet"), "{early}");
}

#[tokio::test]
async fn a_pinned_authority_in_the_chain_is_learned() {
    let ca = Authority::new("hub");
    let (leaf, key) = ca.sign("hub.example", |_| {});
    let address = serve(vec![leaf, ca.der.clone()], key, Then::Forbids, Vec::new()).await;
    let learned = learned(address, ca.pin()).await.unwrap();
    assert_eq!((learned.authorities, learned.source), (vec![ca.der], Source::Handshake));
}

#[tokio::test]
async fn a_pinned_authority_that_is_published_is_learned() {
    let (ca, noise) = (Authority::new("hub"), Authority::new("noise"));
    let (leaf, key) = ca.sign("hub.example", |_| {});
    let body = pack(&[&noise.der, &ca.der]);
    let address = serve(vec![leaf], key, Then::Publishes, body).await;
    let learned = learned(address, ca.pin()).await.unwrap();
    assert_eq!((learned.authorities, learned.source), (vec![ca.der], Source::Published));
}

#[tokio::test]
async fn somebody_in_between_is_not_believed() {
    let (hub, between) = (Authority::new("hub"), Authority::new("between"));
    // It presents its own certificate and passes the real hub's authority on: the pin is right, the chain is not.
    let (leaf, key) = between.sign("hub.example", |_| {});
    let body = pack(&[&hub.der]);
    let address = serve(vec![leaf, between.der.clone()], key, Then::Publishes, body).await;
    let caught = learned(address, hub.pin()).await.unwrap_err();
    assert_eq!(caught.reason, Reason::Tls);
    assert!(caught.message.contains("does not vouch"), "{caught}");
    // It also puts the hub's authority into its chain.
    let (leaf, key) = between.sign("hub.example", |_| {});
    let address = serve(vec![leaf, hub.der.clone()], key, Then::Publishes, Vec::new()).await;
    assert!(learned(address, hub.pin()).await.unwrap_err().message.contains("does not vouch"));
    // It publishes an authority of its own.
    let (leaf, key) = between.sign("hub.example", |_| {});
    let body = pack(&[&between.der]);
    let address = serve(vec![leaf], key, Then::Publishes, body).await;
    let caught = learned(address, hub.pin()).await.unwrap_err();
    assert!(caught.message.contains("not the hub that was meant"), "{caught}");
}

#[tokio::test]
async fn an_authority_that_cannot_be_fetched_is_asked_for() {
    let ca = Authority::new("hub");
    for (then, why) in [(Then::Forbids, "HTTP 403"), (Then::Babbles, "not HTTP")] {
        let (leaf, key) = ca.sign("hub.example", |_| {});
        let address = serve(vec![leaf], key, then, Vec::new()).await;
        let failure = learned(address, ca.pin()).await.unwrap_err();
        assert!(failure.message.contains("neither presents nor publishes"), "{failure}");
        assert!(failure.causes[0].contains(why), "{failure}");
        assert_eq!(failure.hints, [ocm_core::Hint::from(ocm_core::Remedy::HubCa)]);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").await;
        }
    });
    let failure = verify(&endpoint(address), &[Authority::new("hub").der], LIMIT).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Tls);
    assert!(failure.message.contains("does not speak TLS"), "{failure}");
}

#[tokio::test]
async fn who_does_not_listen_or_answer_is_unreachable() {
    let ca = Authority::new("hub").der;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    let failure = verify(&endpoint(silent), std::slice::from_ref(&ca), Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Unreachable);
    assert!(failure.message.contains("does not answer"), "{failure}");
    drop(listener);
    let failure = verify(&endpoint(silent), &[ca], LIMIT).await.unwrap_err();
    assert!(failure.message.contains("connection refused"), "{failure}");
}

/// A proxy that opens one tunnel to `server`, whatever it is asked for, and tells what it was asked for.
async fn tunnel(listener: TcpListener, server: SocketAddr) -> String {
    let (mut client, _) = listener.accept().await.unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        asked.push(client.read_u8().await.unwrap());
    }
    let mut server = TcpStream::connect(server).await.unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    // How they part is theirs.
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    String::from_utf8(asked).unwrap()
}

/// What the environment says is for a whole process, so this test is two: it starts itself with a proxy.
#[tokio::test]
async fn the_proxy_of_the_environment_is_used() {
    const CA: &str = "OCM_NET_TEST_CA";
    const NAME: &str = "hub.invalid";
    let url = format!("https://{NAME}:6443");
    if let Some(ca) = std::env::var_os(CA) {
        let authority = std::fs::read(ca).unwrap();
        let checked = verify(&Endpoint::parse(&url, None).unwrap(), &[authority], LIMIT).await;
        assert_eq!(checked, Ok(()), "no machine knows the name, so only a proxy can have led there");
        return;
    }
    let authority = Authority::new("ca");
    let (certificate, key) = authority.sign(NAME, |_| {});
    let server = serve(vec![certificate], key, Then::Babbles, Vec::new()).await;
    let ca = std::env::temp_dir().join(format!("ocm-net-{}", std::process::id()));
    std::fs::write(&ca, &authority.der).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let tunnel = tokio::spawn(tunnel(listener, server));
    let child = |proxy: String| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "the_proxy_of_the_environment_is_used"]).env(CA, &ca).env("HTTPS_PROXY", proxy);
        child.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("https_proxy");
        let output = tokio::task::spawn_blocking(move || child.output().unwrap());
        async {
            output.await.map(|output| (output.status.success(), String::from_utf8(output.stdout).unwrap())).unwrap()
        }
    };
    let (held, said) = child(format!("http://me:secret@{proxy}")).await;
    assert!(held, "{said}");
    let asked = tunnel.await.unwrap().to_ascii_lowercase();
    assert!(asked.starts_with("connect hub.invalid:6443 http/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nproxy-authorization: basic bwu6c2vjcmv0\r\n"), "{asked}");

    // Nobody listens there any more.
    for scheme in ["http", "https", "socks5"] {
        let (held, said) = child(format!("{scheme}://{proxy}")).await;
        assert!(!held && said.contains(&format!("the proxy {proxy} cannot be reached")), "{said}");
    }
    // Somebody listens and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = silent.local_addr().unwrap();
    let (held, said) = child(format!("http://me:secret@{proxy}")).await;
    assert!(
        !held && said.contains(&format!("the proxy {proxy} does not answer")) && !said.contains("secret"),
        "{said}"
    );
    let (held, said) = child(format!("ftp://me:secret@{proxy}")).await;
    assert!(!held && said.contains("the proxy of HTTPS_PROXY cannot be used") && !said.contains("secret"), "{said}");
    std::fs::remove_file(&ca).unwrap();
}

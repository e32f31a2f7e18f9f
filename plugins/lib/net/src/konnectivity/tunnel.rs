//! A connection through a proxy server: one stream of gRPC, whose packets carry its bytes.

use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::{BuildHasher as _, Hasher as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http::{Method, Request, StatusCode, Version};
use ocm_core::redact::redact_start;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::TlsConnector;

use super::packet::{self, Packet};
use crate::client::{Identity, Trust, client_config};
use crate::stream::Stream;

/// How many bytes are on their way in one direction.
const BUFFER: usize = 64 << 10;

/// How many bytes are sent in one packet; servers read packets of 4 MiB at most, which is the default of gRPC.
const PACKET: usize = 16 << 10;

/// How many bytes a proxy server may send before it hears that they were read.
const WINDOW: u32 = 1 << 20;

/// How long it is waited for the agent to say that it has ended a connection. Upstream: `CloseTimeout`.
const CLOSE: Duration = Duration::from_secs(10);

/// The name that the certificate of every proxy server is valid for, besides others. Upstream: `ensureRotation`.
const SERVER: &str = "localhost";

/// Why there is no connection by a proxy server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
    /// Its client certificate or CA cannot be used.
    #[error("its credentials cannot be used: {0}")]
    Credentials(String),
    /// There is no TLS connection to it.
    #[error("there is no TLS connection to the proxy server: {0}")]
    Tls(String),
    /// It does not speak the protocol, or broke off.
    #[error("the proxy server does not speak gRPC as expected: {0}")]
    Protocol(String),
    /// It was asked for a connection, and says why there is none.
    #[error("the proxy server says: {0}")]
    NotDialled(String),
    /// It does not answer in this time.
    #[error("no answer within {}", ocm_core::duration::human(*.0))]
    Unanswered(Duration),
}

/// What a client shows a proxy server, and whom it trusts.
#[derive(Clone)]
pub struct Client {
    tls: Arc<ClientConfig>,
}

impl Client {
    /// A client that trusts who these authorities (DER) vouch for.
    ///
    /// # Errors
    /// When an authority or the certificate cannot be used.
    pub fn new(authorities: &[Vec<u8>], identity: Identity) -> Result<Self, TunnelError> {
        let config = client_config(Trust::Authorities(authorities), Some(identity));
        let mut config = config.map_err(|error| TunnelError::Credentials(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { tls: Arc::new(config) })
    }

    /// Has a proxy server, to which `stream` leads, open a connection to an address: host and port, as the agent resolves them.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn open(
        &self,
        stream: Box<dyn Stream>,
        address: &str,
        limit: Duration,
    ) -> Result<Box<dyn Stream>, TunnelError> {
        let opened = tokio::time::timeout(limit, async {
            let name = ServerName::try_from(SERVER).map_err(|error| TunnelError::Tls(error.to_string()))?;
            let secure = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
            let secure = secure.map_err(|error| TunnelError::Tls(error.to_string()))?;
            dial(secure, address).await
        });
        let opened = opened.await.map_err(|_| TunnelError::Unanswered(limit))?;
        Ok(Box::new(opened?))
    }
}

fn protocol(error: impl std::fmt::Display) -> TunnelError {
    TunnelError::Protocol(error.to_string())
}

/// Opens a connection over one to a proxy server.
async fn dial<S>(server: S, address: &str) -> Result<DuplexStream, TunnelError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut client = h2::client::Builder::new();
    client.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let (requests, connection) = client.handshake::<_, Bytes>(server).await.map_err(protocol)?;
    // It ends with the last stream.
    tokio::spawn(connection);
    let mut requests = requests.ready().await.map_err(protocol)?;
    let request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri("https://localhost/ProxyService/Proxy")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .map_err(protocol)?;
    let (answer, mut sender) = requests.send_request(request, false).map_err(protocol)?;
    // Servers answer once they have something to say.
    let random = RandomState::new().build_hasher().finish() >> 1;
    send(&mut sender, &Packet::DialRequest { address: address.to_owned(), random }).await?;
    let answer = answer.await.map_err(protocol)?;
    if answer.status() != StatusCode::OK {
        return Err(protocol(format_args!("status {}", answer.status())));
    }
    if let Some(message) = answer.headers().get("grpc-message") {
        return Err(protocol(redact_start(&String::from_utf8_lossy(message.as_bytes()))));
    }
    let mut receiver = Receiver { stream: answer.into_body(), received: Vec::new() };
    let id = loop {
        match receiver.next().await? {
            Some(Packet::DialResponse { error, id }) if error.is_empty() => break id,
            Some(Packet::DialResponse { error, .. }) => return Err(TunnelError::NotDialled(redact_start(&error))),
            Some(Packet::CloseDial) => return Err(TunnelError::NotDialled("it has given up".to_owned())),
            Some(_) => {}
            None => return Err(protocol("it closed the stream")),
        }
    };
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(async move {
        let mut inward = pin!(inward(receiver, writer, id));
        tokio::select! {
            () = &mut inward => {}
            // An agent that is gone does not answer.
            () = outward(reader, sender, id) => drop(tokio::time::timeout(CLOSE, inward).await),
        }
    });
    Ok(ours)
}

/// What is written here goes to the agent, until nobody writes any more.
async fn outward(mut from: impl AsyncRead + Unpin, mut sender: SendStream<Bytes>, id: u64) {
    let mut buffer = vec![0; PACKET];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if send(&mut sender, &Packet::Data { id, bytes: buffer[..count].to_vec() }).await.is_err() {
            return;
        }
    }
    // Whoever is gone has no use for an error. The stream ends with the answer, behind what is on its way.
    let _ = send(&mut sender, &Packet::CloseRequest { id }).await;
}

/// What the agent sends comes here, until one of both ends it.
async fn inward(mut receiver: Receiver, mut to: impl AsyncWrite + Unpin, id: u64) {
    loop {
        match receiver.next().await {
            Ok(Some(Packet::Data { id: of, bytes })) if of == id => {
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Ok(Some(Packet::CloseResponse { .. } | Packet::CloseRequest { .. }) | None) | Err(_) => break,
            Ok(Some(_)) => {}
        }
    }
    let _ = to.shutdown().await;
}

/// Sends a packet, as fast as the server takes it.
async fn send(sender: &mut SendStream<Bytes>, packet: &Packet) -> Result<(), TunnelError> {
    let mut rest = Bytes::from(packet.frame());
    while !rest.is_empty() {
        sender.reserve_capacity(rest.len());
        while sender.capacity() == 0 {
            match poll_fn(|context| sender.poll_capacity(context)).await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(protocol(error)),
                None => return Err(protocol("it closed the stream")),
            }
        }
        let part = rest.split_to(sender.capacity().min(rest.len()));
        sender.send_data(part, false).map_err(protocol)?;
    }
    Ok(())
}

/// The packets that come.
struct Receiver {
    stream: RecvStream,
    received: Vec<u8>,
}

impl Receiver {
    /// The next packet; none at the end.
    async fn next(&mut self) -> Result<Option<Packet>, TunnelError> {
        loop {
            if let Some(packet) = packet::next(&mut self.received).map_err(protocol)? {
                return Ok(Some(packet));
            }
            let Some(bytes) = self.stream.data().await else { return self.end().await };
            let bytes = bytes.map_err(protocol)?;
            self.stream.flow_control().release_capacity(bytes.len()).map_err(protocol)?;
            self.received.extend_from_slice(&bytes);
        }
    }

    /// What the server says at the end: why, if it has not ended well.
    async fn end(&mut self) -> Result<Option<Packet>, TunnelError> {
        let trailers = self.stream.trailers().await.map_err(protocol)?.unwrap_or_default();
        let text = |name: &str| trailers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        match text("grpc-status").as_deref() {
            None | Some("0") => Ok(None),
            Some(status) => {
                let message = text("grpc-message").unwrap_or_default();
                Err(protocol(redact_start(&format!("status {status}: {message}"))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::server::WebPkiClientVerifier;
    use rustls::{RootCertStore, ServerConfig};
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// A proxy server that knows one cluster, and passes back what it gets.
    async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(stream: S) {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(request) = connection.accept().await {
            let (request, mut respond) = request.unwrap();
            assert_eq!(request.uri().path(), "/ProxyService/Proxy");
            assert_eq!(request.headers()["content-type"], "application/grpc");
            tokio::spawn(async move {
                let mut receiver = Receiver { stream: request.into_body(), received: Vec::new() };
                let Ok(Some(Packet::DialRequest { address, .. })) = receiver.next().await else { panic!("no dial") };
                let mut sender = respond.send_response(http::Response::new(()), false).unwrap();
                if address == "mute:443" {
                    let mut trailers = http::HeaderMap::new();
                    trailers.insert("grpc-status", "14".parse().unwrap());
                    trailers.insert("grpc-message", "going away".parse().unwrap());
                    return sender.send_trailers(trailers).unwrap();
                }
                let known = address != "c2:443";
                let error = if known { String::new() } else { "No agent available".to_owned() };
                send(&mut sender, &Packet::DialResponse { error, id: 7 }).await.unwrap();
                if address == "closing:443" {
                    send(&mut sender, &Packet::Data { id: 7, bytes: b"bye".to_vec() }).await.unwrap();
                    send(&mut sender, &Packet::CloseResponse { error: String::new() }).await.unwrap();
                }
                while let Ok(Some(packet)) = receiver.next().await {
                    match packet {
                        Packet::Data { .. } => send(&mut sender, &packet).await.unwrap(),
                        Packet::CloseRequest { id: 7 } => {
                            send(&mut sender, &Packet::CloseResponse { error: String::new() }).await.unwrap();
                        }
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    }

    async fn dialled(address: &str) -> Result<DuplexStream, TunnelError> {
        let (client, server) = tokio::io::duplex(BUFFER);
        tokio::spawn(serve(server));
        dial(client, address).await
    }

    #[tokio::test]
    async fn bytes_go_through_the_tunnel_and_come_back() {
        let stream = dialled("c1:443").await.unwrap();
        // More than the server takes at once without having read any.
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
        let (mut reader, mut writer) = tokio::io::split(stream);
        let all = sent.clone();
        let writing = tokio::spawn(async move {
            writer.write_all(&all).await.unwrap();
            writer
        });
        let mut received = vec![0; sent.len()];
        reader.read_exact(&mut received).await.unwrap();
        assert!(received == sent);
        // Whoever stops writing gets the end.
        writing.await.unwrap().shutdown().await.unwrap();
        assert_eq!(reader.read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_connection_that_the_agent_ends_is_at_its_end_and_takes_no_more() {
        let mut stream = dialled("closing:443").await.unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"bye");
        // What ends it may be a moment later than what is read.
        while stream.write_all(b"more").await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn it_is_told_why_there_is_no_connection() {
        let error = dialled("c2:443").await.unwrap_err();
        assert_eq!(error, TunnelError::NotDialled("No agent available".to_owned()));
        let error = dialled("mute:443").await.unwrap_err();
        assert!(error.to_string().ends_with("status 14: going away"), "{error}");
        let (client, server) = tokio::io::duplex(BUFFER);
        drop(server);
        assert!(matches!(dial(client, "c1:443").await, Err(TunnelError::Protocol(_))));
    }

    #[tokio::test]
    async fn the_proxy_server_is_verified_and_asks_for_a_certificate() {
        let made = rcgen::generate_simple_self_signed(vec![SERVER.to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let open = async |authority: Vec<u8>| {
            let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
            let client = Client::new(&[authority], identity).unwrap();
            let (near, far) = tokio::io::duplex(BUFFER);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(far).await {
                    // Servers in Go refuse a client that does not say so.
                    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                    serve(stream).await;
                }
            });
            client.open(Box::new(near), "c1:443", Duration::from_secs(10)).await
        };
        let Ok(mut stream) = open(made.cert.der().to_vec()).await else { panic!("it is not reached") };
        stream.write_all(b"hello").await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hello");
        let other = rcgen::generate_simple_self_signed(vec![SERVER.to_owned()]).unwrap();
        assert!(matches!(open(other.cert.der().to_vec()).await, Err(TunnelError::Tls(_))));
    }
}

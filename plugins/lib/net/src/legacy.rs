//! Whether a server accepts versions of TLS that rustls does not speak: one ClientHello is sent, and the first answer read.

use std::time::Duration;

use ocm_core::tls::Version;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Endpoint;
use crate::connect::{Way, reach};
use crate::connect_error::ConnectError;
use crate::stream::Stream;

/// Whether a server agrees on exactly this version of TLS, one before 1.2. The connection ends behind its answer; an https
/// proxy on the way is trusted by `authorities`, or by those of the system where there are none.
///
/// # Errors
/// Why there was no answer.
pub async fn accepts(
    endpoint: &Endpoint,
    way: &Way,
    version: Version,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<bool, ConnectError> {
    let until = tokio::time::Instant::now() + limit;
    let (mut stream, _) = reach(endpoint, way, authorities, limit).await?;
    match tokio::time::timeout_at(until, ask(&mut *stream, &endpoint.name, version)).await {
        Ok(answer) => Ok(answer),
        Err(_) => Err(ConnectError::Unanswered(limit)),
    }
}

/// Sends the question and reads the answer. Whoever ends the connection does not accept it.
async fn ask(stream: &mut dyn Stream, name: &ServerName<'_>, version: Version) -> bool {
    let mut answer = [0; ANSWER];
    let hello = client_hello(name, version);
    stream.write_all(&hello).await.is_ok()
        && stream.read_exact(&mut answer).await.is_ok()
        && is_server_hello(&answer, version)
}

/// As much of an answer tells the version: the heads of record and message, and the first field.
const ANSWER: usize = 11;

/// Types of records and messages of TLS (RFC 5246 sections 6.2.1 and 7.4).
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The cipher suites of TLS 1.0 that servers had most: ECDHE and RSA with AES in CBC mode, and RSA with 3DES.
const SUITES: [u16; 7] = [0xc00a, 0xc009, 0xc014, 0xc013, 0x0035, 0x002f, 0x000a];

/// How a version is written.
const fn number(version: Version) -> [u8; 2] {
    match version {
        Version::Tls10 => [3, 1],
        Version::Tls11 => [3, 2],
        Version::Tls12 => [3, 3],
        Version::Tls13 => [3, 4],
    }
}

fn is_server_hello(answer: &[u8; ANSWER], version: Version) -> bool {
    answer[0] == HANDSHAKE && answer[5] == SERVER_HELLO && answer[9..] == number(version)
}

/// Bytes with their length before them, in so many bytes.
fn with_length(bytes: &[u8], width: usize) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[4 - width..], bytes].concat()
}

/// A ClientHello (RFC 5246 section 7.4.1.2) in a record of its own.
fn client_hello(name: &ServerName<'_>, version: Version) -> Vec<u8> {
    let suites: Vec<u8> = SUITES.iter().flat_map(|suite| suite.to_be_bytes()).collect();
    // x25519, P-256 and P-384; points that are not compressed.
    let mut extensions = [&[0, 10, 0, 8, 0, 6, 0, 29, 0, 23, 0, 24][..], &[0, 11, 0, 2, 1, 0]].concat();
    // Addresses are not told (RFC 6066 section 3).
    if let ServerName::DnsName(name) = name {
        let host = [&[0][..], &with_length(name.as_ref().as_bytes(), 2)].concat();
        extensions.extend([&[0, 0][..], &with_length(&with_length(&host, 2), 2)].concat());
    }
    // Nothing is encrypted by this connection, so nobody has to be unable to guess its random bytes.
    let random = [0x5a; 32];
    let no_session = [0];
    let no_compression = [1, 0];
    let hello = [
        &number(version)[..],
        &random,
        &no_session,
        &with_length(&suites, 2),
        &no_compression,
        &with_length(&extensions, 2),
    ]
    .concat();
    let message = [&[CLIENT_HELLO][..], &with_length(&hello, 3)].concat();
    [&[HANDSHAKE, 3, 1][..], &with_length(&message, 2)].concat()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers every connection with these bytes, and whether it accepts TLS 1.0.
    async fn of(answer: &'static [u8]) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 5];
            stream.read_exact(&mut head).await.unwrap();
            let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let mut message = vec![0; length];
            stream.read_exact(&mut message).await.unwrap();
            assert_eq!((head[0], message[0], &message[4..6]), (HANDSHAKE, CLIENT_HELLO, &[3, 1][..]));
            stream.write_all(answer).await.unwrap();
        });
        let endpoint = Endpoint::of("127.0.0.1", port).unwrap();
        accepts(&endpoint, &Way::Direct, Version::Tls10, &[], Duration::from_secs(5)).await.unwrap()
    }

    #[tokio::test]
    async fn only_an_agreement_on_the_version_is_one() {
        assert!(of(&[22, 3, 1, 0, 80, 2, 0, 0, 76, 3, 1]).await);
        // Another version, an alert, and silence.
        assert!(!of(&[22, 3, 3, 0, 80, 2, 0, 0, 76, 3, 3]).await);
        assert!(!of(&[21, 3, 1, 0, 2, 2, 70]).await);
        assert!(!of(&[]).await);
    }

    #[tokio::test]
    async fn who_says_nothing_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::of("127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
        let limit = Duration::from_millis(50);
        let answer = accepts(&endpoint, &Way::Direct, Version::Tls11, &[], limit).await;
        assert!(matches!(answer, Err(ConnectError::Unanswered(_))), "{answer:?}");
    }
}

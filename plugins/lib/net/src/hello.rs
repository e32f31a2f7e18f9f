//! What a server accepts that rustls does not speak, older versions of TLS and cipher suites: one ClientHello is sent by a
//! connection of its own, and the first answer read.

use std::time::Duration;

use ocm_core::cipher;
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

/// How many cipher suites of one server are asked for: some accept whatever their library has.
const MOST: usize = 64;

/// The cipher suites of [`cipher::SUITES`] that a server agrees on by TLS 1.2, by their names and in the order in which it chose
/// them; empty: it does not accept TLS 1.2. Whenever it has chosen one, it is asked again without that one. Of a server that takes
/// longer than `limit` for all of it, those that were found until then.
pub async fn suites(endpoint: &Endpoint, way: &Way, authorities: &[Vec<u8>], limit: Duration) -> Vec<&'static str> {
    let mut offered: Vec<u16> = cipher::SUITES.iter().map(|(number, _)| *number).collect();
    let mut accepted = Vec::new();
    let all = async {
        while let Some(number) = choice(endpoint, way, authorities, limit, &offered).await {
            // Whoever chooses what was not offered is asked no more.
            let Some(index) = offered.iter().position(|offer| *offer == number) else { break };
            offered.remove(index);
            accepted.extend(cipher::name(number));
            if accepted.len() == MOST {
                break;
            }
        }
    };
    // What was found until then counts.
    let _ = tokio::time::timeout(limit, all).await;
    accepted
}

/// Which of these cipher suites a server chooses by TLS 1.2; none: it accepts none of them, or does not answer.
async fn choice(
    endpoint: &Endpoint,
    way: &Way,
    authorities: &[Vec<u8>],
    limit: Duration,
    offered: &[u16],
) -> Option<u16> {
    let (mut stream, _) = reach(endpoint, way, authorities, limit).await.ok()?;
    stream.write_all(&client_hello(&endpoint.name, Version::Tls12, offered)).await.ok()?;
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).await.ok()?;
    if head[0] != HANDSHAKE {
        return None;
    }
    let mut message = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    stream.read_exact(&mut message).await.ok()?;
    chosen(&message)
}

/// The cipher suite in a ServerHello of TLS 1.2: it stands behind version, random bytes and session.
fn chosen(message: &[u8]) -> Option<u16> {
    let (kind, version) = (message.first()?, message.get(4..6)?);
    if *kind != SERVER_HELLO || *version != number(Version::Tls12) {
        return None;
    }
    let session = usize::from(*message.get(38)?);
    let suite = message.get(39 + session..41 + session)?;
    Some(u16::from_be_bytes([suite[0], suite[1]]))
}

/// Sends the question and reads the answer. Whoever ends the connection does not accept it.
async fn ask(stream: &mut dyn Stream, name: &ServerName<'_>, version: Version) -> bool {
    let mut answer = [0; ANSWER];
    let hello = client_hello(name, version, &OLDER);
    stream.write_all(&hello).await.is_ok()
        && stream.read_exact(&mut answer).await.is_ok()
        && is_server_hello(&answer, version)
}

/// The head of a record: type, version and length.
const HEAD: usize = 5;

/// As much of an answer tells the version: the heads of record and message, and the first field.
const ANSWER: usize = 11;

/// Types of records and messages of TLS (RFC 5246 sections 6.2.1 and 7.4).
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The cipher suites of TLS 1.0 that servers had most: ECDHE and RSA with AES in CBC mode, and RSA with 3DES.
const OLDER: [u16; 7] = [0xc00a, 0xc009, 0xc014, 0xc013, 0x0035, 0x002f, 0x000a];

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

/// The algorithms of signatures that servers of TLS 1.2 may use: ECDSA and EdDSA, RSA as PSS and as PKCS #1, and SHA-1.
const SIGNATURES: [u16; 12] =
    [0x0403, 0x0503, 0x0603, 0x0807, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0203, 0x0201];

/// Numbers of two bytes each.
fn numbers(list: &[u16]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// A ClientHello (RFC 5246 section 7.4.1.2) in a record of its own, which offers these cipher suites.
fn client_hello(name: &ServerName<'_>, version: Version, suites: &[u16]) -> Vec<u8> {
    // x25519, P-256, P-384 and P-521; points that are not compressed.
    let mut extensions = [&[0, 10, 0, 10, 0, 8, 0, 29, 0, 23, 0, 24, 0, 25][..], &[0, 11, 0, 2, 1, 0]].concat();
    if version == Version::Tls12 {
        // Some servers answer nobody who does not tell of these (RFC 5246 section 7.4.1.4.1, RFC 7627, RFC 5746).
        let signatures = with_length(&numbers(&SIGNATURES), 2);
        extensions.extend([&[0, 13][..], &with_length(&signatures, 2)].concat());
        extensions.extend([0, 23, 0, 0, 255, 1, 0, 1, 0]);
    }
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
        &with_length(&numbers(suites), 2),
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

    /// A server that has these cipher suites and prefers the first ones, and what it was seen to accept.
    async fn of_suites(own: &'static [u16]) -> Vec<&'static str> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; HEAD];
                stream.read_exact(&mut head).await.unwrap();
                let mut message = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
                stream.read_exact(&mut message).await.unwrap();
                let length = usize::from(u16::from_be_bytes([message[39], message[40]]));
                let offered: Vec<u16> =
                    message[41..41 + length].chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
                // One that nobody offers is chosen all the same.
                let answer = match own.iter().find(|suite| offered.contains(suite) || **suite == 0xffff) {
                    Some(suite) => {
                        let hello = [&[3, 3][..], &[7; 32], &[2, 9, 9], &suite.to_be_bytes(), &[0]].concat();
                        let message = [&[SERVER_HELLO][..], &with_length(&hello, 3)].concat();
                        [&[HANDSHAKE, 3, 3][..], &with_length(&message, 2)].concat()
                    }
                    None => vec![21, 3, 3, 0, 2, 2, 40],
                };
                stream.write_all(&answer).await.unwrap();
            }
        });
        let endpoint = Endpoint::of("hub.example", port).unwrap();
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), ..endpoint };
        suites(&endpoint, &Way::Direct, &[], Duration::from_secs(5)).await
    }

    #[tokio::test]
    async fn every_suite_that_a_server_has_is_found_once() {
        let found = of_suites(&[0xc02f, 0x000a, 0xc030]).await;
        let names = [
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ];
        assert_eq!(found, names);
        // It does not accept TLS 1.2, or chooses what it was not offered.
        assert_eq!(of_suites(&[]).await, [""; 0]);
        assert_eq!(of_suites(&[0xffff]).await, [""; 0]);
    }

    #[test]
    fn only_a_whole_server_hello_of_tls_1_2_chooses() {
        let hello = |version: [u8; 2]| [&[2, 0, 0, 38][..], &version, &[7; 32], &[0, 0xc0, 0x2f, 0]].concat();
        assert_eq!(chosen(&hello([3, 3])), Some(0xc02f));
        assert_eq!(chosen(&hello([3, 2])), None);
        for length in 0..41 {
            assert_eq!(chosen(&hello([3, 3])[..length]), None, "{length}");
        }
    }

    #[tokio::test]
    async fn who_says_nothing_is_no_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::of("127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
        let limit = Duration::from_millis(50);
        let answer = accepts(&endpoint, &Way::Direct, Version::Tls11, &[], limit).await;
        assert!(matches!(answer, Err(ConnectError::Unanswered(_))), "{answer:?}");
        assert_eq!(suites(&endpoint, &Way::Direct, &[], limit).await, [""; 0]);
    }
}

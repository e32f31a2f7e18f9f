//! What a server accepts that rustls does not speak, older versions of TLS and cipher suites: one ClientHello is sent by a
//! connection of its own, and the first answer read.

use std::time::Duration;

use ocm_core::cipher;
use ocm_core::tls::Version;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Endpoint;
use crate::connect::{Way, reach};
use crate::connect_error::{ConnectError, handshake};
use crate::stream::Stream;

/// Whether a server agrees on exactly this version of TLS, one before 1.2. The connection ends behind its answer; an https
/// proxy on the way is trusted by `authorities`, or by those of the system where there are none.
///
/// # Errors
/// Why there was no answer. A connection that breaks is none: whoever refuses says so by an alert.
pub async fn accepts(
    endpoint: &Endpoint,
    way: &Way,
    version: Version,
    authorities: &[Vec<u8>],
    limit: Duration,
) -> Result<bool, ConnectError> {
    let until = tokio::time::Instant::now() + limit;
    let (mut stream, _) = reach(endpoint, way, authorities, limit).await?;
    let hello = client_hello(&endpoint.name, version, &OLDER);
    match tokio::time::timeout_at(until, ask(&mut *stream, &hello)).await {
        Ok(Ok(Answer::Refused)) => Ok(false),
        Ok(Ok(Answer::Message(message))) => Ok(version_of(&message).ok_or_else(no_answer)? == number(version)),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ConnectError::Unanswered(limit)),
    }
}

/// How many cipher suites of one server are asked for: some accept whatever their library has.
const MOST: usize = 64;

/// The cipher suites of TLS 1.2 that a server was seen to accept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suites {
    /// Their IANA names, in the order in which it chose them; empty: it accepts none, and so not TLS 1.2, unless that is open.
    pub accepted: Vec<&'static str>,
    /// Why it is not known whether it accepts others; none: it has refused them, or is not asked any further.
    pub open: Option<ConnectError>,
}

/// The cipher suites of [`cipher::SUITES`] that a server agrees on by TLS 1.2. Whenever it has chosen one, it is asked again
/// without that one. Of a server that takes longer than `limit` for all of it, those that were found until then.
pub async fn suites(endpoint: &Endpoint, way: &Way, authorities: &[Vec<u8>], limit: Duration) -> Suites {
    let mut offered: Vec<u16> = cipher::SUITES.iter().map(|(number, _)| *number).collect();
    let mut found = Suites::default();
    let all = async {
        loop {
            let number = match choice(endpoint, way, authorities, limit, &offered).await {
                Ok(Some(number)) => number,
                Ok(None) => break,
                Err(error) => {
                    found.open = Some(error);
                    break;
                }
            };
            // Whoever chooses what was not offered is asked no more.
            let Some(index) = offered.iter().position(|offer| *offer == number) else { break };
            offered.remove(index);
            found.accepted.extend(cipher::name(number));
            if found.accepted.len() == MOST {
                break;
            }
        }
    };
    // What was found until then counts.
    let is_over = tokio::time::timeout(limit, all).await.is_err();
    if is_over && found.accepted.is_empty() {
        found.open = Some(ConnectError::Unanswered(limit));
    }
    found
}

/// Which of these cipher suites a server chooses by TLS 1.2; none: it refuses all of them.
async fn choice(
    endpoint: &Endpoint,
    way: &Way,
    authorities: &[Vec<u8>],
    limit: Duration,
    offered: &[u16],
) -> Result<Option<u16>, ConnectError> {
    let (mut stream, _) = reach(endpoint, way, authorities, limit).await?;
    let hello = client_hello(&endpoint.name, Version::Tls12, offered);
    let Answer::Message(message) = ask(&mut *stream, &hello).await? else { return Ok(None) };
    match (chosen(&message), version_of(&message)) {
        (Some(suite), _) => Ok(Some(suite)),
        (None, Some(version)) if version != number(Version::Tls12) => Ok(None),
        _ => Err(no_answer()),
    }
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

/// What a server says to a ClientHello.
enum Answer {
    /// The beginning of its first message: as much of it as there is in the first record.
    Message(Vec<u8>),
    /// It refuses, by an alert that ends the connection.
    Refused,
}

/// Sends a ClientHello and reads the answer. Warnings in front of it are passed over: the connection goes on behind them, as behind
/// that of a server which does not know the name (RFC 5246 section 7.2, RFC 6066 section 3).
///
/// # Errors
/// The connection breaks, or what comes is no TLS.
async fn ask(stream: &mut dyn Stream, hello: &[u8]) -> Result<Answer, ConnectError> {
    stream.write_all(hello).await.map_err(handshake)?;
    loop {
        let mut head = [0; HEAD];
        stream.read_exact(&mut head).await.map_err(handshake)?;
        if ![HANDSHAKE, ALERT].contains(&head[0]) {
            return Err(no_answer());
        }
        let mut record = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        stream.read_exact(&mut record).await.map_err(handshake)?;
        if head[0] == HANDSHAKE {
            return Ok(Answer::Message(record));
        }
        if ends(&record) {
            return Ok(Answer::Refused);
        }
    }
}

/// Whether alerts end the connection: one that is fatal does, and one that closes it (RFC 5246 sections 7.2.1 and 7.2.2).
fn ends(alerts: &[u8]) -> bool {
    alerts.as_chunks::<2>().0.iter().any(|[level, alert]| *level != WARNING || *alert == CLOSE_NOTIFY)
}

/// What comes is neither a ServerHello nor an alert.
fn no_answer() -> ConnectError {
    ConnectError::Broken("what it answers is no TLS".to_owned())
}

/// The head of a record: type, version and length.
const HEAD: usize = 5;

/// Types of records and messages of TLS (RFC 5246 sections 6.2.1 and 7.4).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The level of alerts behind which a connection may go on, and the alert that ends it all the same (RFC 5246 section 7.2).
const WARNING: u8 = 1;
const CLOSE_NOTIFY: u8 = 0;

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

/// The version that a ServerHello chooses; none: the message is no ServerHello.
fn version_of(message: &[u8]) -> Option<[u8; 2]> {
    match message {
        [SERVER_HELLO, _, _, _, major, minor, ..] => Some([*major, *minor]),
        _ => None,
    }
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

    /// An alert by which a server refuses, and one that it does not know the name.
    const REFUSAL: &[u8] = &[21, 3, 1, 0, 2, 2, 70];
    const UNKNOWN_NAME: &[u8] = &[21, 3, 1, 0, 2, 1, 112];

    /// A ServerHello in a record of its own.
    fn server_hello(version: [u8; 2], suite: u16) -> Vec<u8> {
        let hello = [&version[..], &[7; 32], &[2, 9, 9], &suite.to_be_bytes(), &[0]].concat();
        let message = [&[SERVER_HELLO][..], &with_length(&hello, 3)].concat();
        [&[HANDSHAKE, 3, 3][..], &with_length(&message, 2)].concat()
    }

    /// Whether a server that answers every connection with these bytes, and ends it, accepts TLS 1.0.
    async fn of(answer: &[&[u8]]) -> Result<bool, ConnectError> {
        let answer = answer.concat();
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
            stream.write_all(&answer).await.unwrap();
        });
        let endpoint = Endpoint::of("127.0.0.1", port).unwrap();
        accepts(&endpoint, &Way::Direct, Version::Tls10, &[], Duration::from_secs(5)).await
    }

    #[tokio::test]
    async fn only_an_agreement_on_the_version_is_one() {
        let agreed = server_hello([3, 1], 0x002f);
        assert_eq!(of(&[&agreed]).await, Ok(true));
        // Another version, an alert, and an end in good order.
        assert_eq!(of(&[&server_hello([3, 3], 0x002f)]).await, Ok(false));
        assert_eq!(of(&[REFUSAL]).await, Ok(false));
        assert_eq!(of(&[&[21, 3, 1, 0, 2, 1, 0]]).await, Ok(false));
    }

    #[tokio::test]
    async fn behind_a_warning_a_server_still_answers() {
        let agreed = server_hello([3, 1], 0x002f);
        assert_eq!(of(&[UNKNOWN_NAME, &agreed]).await, Ok(true));
        assert_eq!(of(&[UNKNOWN_NAME, UNKNOWN_NAME, REFUSAL]).await, Ok(false));
        assert_eq!(of(&[&[21, 3, 1, 0, 4, 1, 112, 2, 40]]).await, Ok(false), "two in one record");
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_no_refusal() {
        let agreed = server_hello([3, 1], 0x002f);
        for answer in [&[][..], UNKNOWN_NAME, &agreed[..20], b"HTTP/1.1 400 Bad Request\r\n\r\n", &[22, 3, 1, 0, 1, 2]]
        {
            let seen = of(&[answer]).await;
            assert!(matches!(seen, Err(ConnectError::Closed(_) | ConnectError::Broken(_))), "{answer:?}: {seen:?}");
        }
    }

    /// A server that has these cipher suites and prefers the first ones, and what it was seen to accept. It warns whoever it talks
    /// to, and says this to those who offer none of its own.
    async fn of_suites(own: &'static [u16], refusal: &'static [u8]) -> Suites {
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
                    Some(suite) => server_hello([3, 3], *suite),
                    None => refusal.to_vec(),
                };
                stream.write_all(&[UNKNOWN_NAME, &answer].concat()).await.unwrap();
            }
        });
        let endpoint = Endpoint::of("hub.example", port).unwrap();
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), ..endpoint };
        suites(&endpoint, &Way::Direct, &[], Duration::from_secs(5)).await
    }

    #[tokio::test]
    async fn every_suite_that_a_server_has_is_found_once() {
        let found = of_suites(&[0xc02f, 0x000a, 0xc030], REFUSAL).await;
        let names = [
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        ];
        assert_eq!(found, Suites { accepted: names.to_vec(), open: None });
        // It does not accept TLS 1.2, or chooses what it was not offered.
        assert_eq!(of_suites(&[], REFUSAL).await, Suites::default());
        assert_eq!(of_suites(&[0xffff], REFUSAL).await, Suites::default());
    }

    #[tokio::test]
    async fn whether_a_server_has_more_suites_is_open_where_the_connection_breaks() {
        let found = of_suites(&[0xc02f], &[]).await;
        assert_eq!(found.accepted, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
        assert!(matches!(found.open, Some(ConnectError::Closed(_))), "{found:?}");
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
        let open = Some(ConnectError::Unanswered(limit));
        assert_eq!(suites(&endpoint, &Way::Direct, &[], limit).await, Suites { accepted: Vec::new(), open });
    }
}

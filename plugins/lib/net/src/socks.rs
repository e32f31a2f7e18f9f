//! Connections through a SOCKS 5 proxy (RFC 1928), with a user name and a password where it wants them (RFC 1929).
//!
//! As Go does it, which kubectl uses: who has credentials offers to go without, too, and the proxy chooses.

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Why a SOCKS proxy does not let a connection through.
#[derive(Debug, thiserror::Error)]
pub enum SocksError {
    /// The connection to it broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It speaks something else.
    #[error("it does not speak SOCKS 5")]
    NotSocks,
    /// It takes none of the ways of authentication that were offered.
    #[error("it lets nobody in without a user name and a password")]
    NeedsCredentials,
    /// The same, and there were credentials.
    #[error("it takes no user name and password")]
    OtherMethod,
    /// They are too long, or there is no user name.
    #[error("user names have 1 to 255 bytes, and passwords at most 255")]
    Length,
    /// It does not accept them.
    #[error("it does not accept the user name and the password")]
    Credentials,
    /// The name of the server is too long.
    #[error("it takes no host name of more than 255 bytes")]
    Host,
    /// It says that it cannot, or will not.
    #[error("it says: {0}")]
    Refused(&'static str),
}

const VERSION: u8 = 5;
const WITHOUT: u8 = 0;
const PASSWORD: u8 = 2;
const NOTHING: u8 = 0xff;

/// Asks the proxy at the other end of a connection for one to a server, whose name it resolves.
pub(crate) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    credentials: Option<(&str, &str)>,
    host: &str,
    port: u16,
) -> Result<(), SocksError> {
    let methods: &[u8] = if credentials.is_some() { &[VERSION, 2, WITHOUT, PASSWORD] } else { &[VERSION, 1, WITHOUT] };
    stream.write_all(methods).await?;
    match (read(stream).await?, credentials) {
        ([VERSION, WITHOUT], _) => {}
        ([VERSION, PASSWORD], Some((user, password))) => authenticate(stream, user, password).await?,
        ([VERSION, NOTHING], None) => return Err(SocksError::NeedsCredentials),
        ([VERSION, NOTHING], Some(_)) => return Err(SocksError::OtherMethod),
        _ => return Err(SocksError::NotSocks),
    }
    let mut request = vec![VERSION, 1, 0];
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            request.push(1);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(4);
            request.extend(address.octets());
        }
        Err(_) => {
            request.extend([3, u8::try_from(host.len()).map_err(|_| SocksError::Host)?]);
            request.extend(host.as_bytes());
        }
    }
    request.extend(port.to_be_bytes());
    stream.write_all(&request).await?;
    let [version, reply, _, kind] = read(stream).await?;
    match (version, reply) {
        (VERSION, 0) => {}
        (VERSION, reply) => return Err(SocksError::Refused(reason(reply))),
        _ => return Err(SocksError::NotSocks),
    }
    // The address that it connects from, which is of no use here.
    let length = match kind {
        1 => 4,
        3 => usize::from(read::<1>(stream).await?[0]),
        4 => 16,
        _ => return Err(SocksError::NotSocks),
    };
    stream.read_exact(&mut vec![0; length + 2]).await?;
    Ok(())
}

async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    user: &str,
    password: &str,
) -> Result<(), SocksError> {
    let length = |text: &str| u8::try_from(text.len()).map_err(|_| SocksError::Length);
    if user.is_empty() {
        return Err(SocksError::Length);
    }
    let request = [&[1, length(user)?], user.as_bytes(), &[length(password)?], password.as_bytes()].concat();
    stream.write_all(&request).await?;
    match read(stream).await? {
        [1, 0] => Ok(()),
        [1, _] => Err(SocksError::Credentials),
        _ => Err(SocksError::NotSocks),
    }
}

async fn read<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> Result<[u8; N], SocksError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn reason(reply: u8) -> &'static str {
    match reply {
        2 => "connection not allowed by ruleset",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "general SOCKS server failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a proxy that sends these bytes makes of a connection, and what it was sent.
    async fn asked(answers: &[u8], credentials: Option<(&str, &str)>, host: &str) -> (Result<(), String>, Vec<u8>) {
        let (mut ours, mut theirs) = tokio::io::duplex(1024);
        theirs.write_all(answers).await.unwrap();
        let outcome = connect(&mut ours, credentials, host, 6443).await.map_err(|error| error.to_string());
        drop(ours);
        let mut sent = Vec::new();
        theirs.read_to_end(&mut sent).await.unwrap();
        (outcome, sent)
    }

    const GRANTED: [u8; 10] = [5, 0, 0, 1, 10, 0, 0, 1, 0, 80];

    #[tokio::test]
    async fn servers_are_asked_for_as_the_rfc_says() {
        let (outcome, sent) = asked(&[&[5, 0], &GRANTED[..]].concat(), None, "hub").await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(sent, [&[5, 1, 0, 5, 1, 0, 3, 3], &b"hub"[..], &[0x19, 0x2b]].concat());
        let named = [&[5, 0, 5, 0, 0, 3, 1], &b"x"[..], &[0, 80]].concat();
        let (outcome, sent) = asked(&named, None, "10.1.2.3").await;
        assert_eq!((outcome, &sent[3..]), (Ok(()), &[5, 1, 0, 1, 10, 1, 2, 3, 0x19, 0x2b][..]));
        let (outcome, sent) = asked(&[&[5, 0, 5, 0, 0, 4], &[0; 18][..]].concat(), None, "fd00::1").await;
        assert_eq!((outcome, sent[6], sent.len()), (Ok(()), 4, 3 + 4 + 16 + 2));
    }

    #[tokio::test]
    async fn the_proxy_chooses_whether_it_wants_the_credentials() {
        let me = Some(("me", "s:t"));
        let (outcome, sent) = asked(&[&[5, 2, 1, 0], &GRANTED[..]].concat(), me, "hub").await;
        assert_eq!(outcome, Ok(()));
        assert!(sent.starts_with(&[&[5, 2, 0, 2, 1, 2], &b"me"[..], &[3], &b"s:t"[..], &[5, 1]].concat()), "{sent:?}");
        let (outcome, sent) = asked(&[&[5, 0], &GRANTED[..]].concat(), me, "hub").await;
        assert_eq!(outcome, Ok(()));
        assert!(!sent.windows(3).any(|bytes| bytes == b"s:t"), "{sent:?}");
        let (outcome, _) = asked(&[&[5, 2, 1, 0], &GRANTED[..]].concat(), Some(("me", "")), "hub").await;
        assert_eq!(outcome, Ok(()), "a user name alone");
    }

    #[tokio::test]
    async fn each_trouble_has_its_sentence() {
        let (long, me) = ("x".repeat(256), Some(("me", "secret")));
        for (answers, credentials, host, words) in [
            (&[5, 2, 1, 1][..], me, "hub", "does not accept the user name and the password"),
            (&[5, 255], None, "hub", "without a user name and a password"),
            (&[5, 255], me, "hub", "takes no user name and password"),
            (&[5, 2], None, "hub", "does not speak SOCKS 5"),
            (b"HT", None, "hub", "does not speak SOCKS 5"),
            (&[5, 0, 5, 5, 0, 1], None, "hub", "it says: connection refused"),
            (&[5, 0], None, &long, "no host name of more than 255 bytes"),
            (&[5, 2], Some(("me", &long)), "hub", "at most 255"),
            (&[5, 2], Some(("", "secret")), "hub", "1 to 255 bytes"),
        ] {
            let (outcome, _) = asked(answers, credentials, host).await;
            assert!(outcome.as_ref().is_err_and(|error| error.contains(words)), "{words:?}: {outcome:?}");
        }
    }
}

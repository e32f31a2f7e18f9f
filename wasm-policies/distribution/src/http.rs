//! One request and its answer, over TLS, through the proxy of the environment, within bounds.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ocm_core::Failure;
use ocm_net::{ConnectError, Endpoint, Stream};
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::{Error, ErrorKind};
use crate::trust::Trust;

/// How long a server may take for the TCP and TLS handshakes.
const CONNECT: Duration = Duration::from_secs(10);
/// How often a server may send on to another one.
const REDIRECTS: usize = 5;
/// Characters of others' words that are told.
const MOST_OF_WORDS: usize = 200;
/// What is read of an answer that is none.
const MOST_OF_A_REFUSAL: usize = 16 << 10;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    secure: bool,
    /// Without brackets.
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// A path of a server, which is `HOST[:PORT]`. One on this machine is spoken to without TLS, unless CAs are named for it.
    pub(crate) fn of(server: &str, path: &str, trust: &Trust) -> Result<Self, Error> {
        let host = server.parse::<http::uri::Authority>().ok();
        let local = host.as_ref().is_some_and(|host| ocm_core::address::is_loopback(bare(host.host())));
        let scheme = if local && trust.authorities.is_empty() { "http" } else { "https" };
        Self::parse(&format!("{scheme}://{server}{path}"))
    }

    /// Takes a URL apart: https, or http of an address of this machine.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::new(ErrorKind::Invalid, format!("{:?} cannot be fetched: {why}", shown(url)));
        let uri: Uri = url.parse().map_err(|_| wrong("it is no URL"))?;
        let host = bare(uri.host().ok_or_else(|| wrong("it names no host"))?).to_owned();
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            // The URL holds a password then, which nobody has to read.
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("the URL of {host} holds credentials, which are not sent"),
            ));
        }
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if ocm_core::address::is_loopback(&host) => false,
            Some("http") => return Err(wrong("only loopback addresses are reached by http; write https")),
            _ => return Err(wrong("it does not begin with https://")),
        };
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { secure, host, port, path })
    }

    /// Where a server sends on to. From TLS it leads to TLS.
    pub(crate) fn follow(&self, location: &str) -> Result<Self, Error> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Ok(Self { path: location.to_owned(), ..self.clone() });
        }
        let next = Self::parse(location)?;
        if self.secure && !next.secure {
            let why = format!("{} sends on to {}, which is reached without TLS", self.server(), next.server());
            return Err(Error::new(ErrorKind::Refused, why));
        }
        Ok(next)
    }

    /// Whether it is the same server.
    pub(crate) fn is_server_of(&self, other: &Self) -> bool {
        (self.secure, &self.host, self.port) == (other.secure, &other.host, other.port)
    }

    /// Host and port, as messages have them.
    pub(crate) fn server(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.secure, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The same with more in its query.
    pub(crate) fn with_query(&self, key: &str, value: &str) -> Self {
        let sign = if self.path.contains('?') { '&' } else { '?' };
        Self { path: format!("{}{sign}{key}={}", self.path, encoded(value)), ..self.clone() }
    }

    async fn connect(&self, trust: &Trust) -> Result<Box<dyn Stream>, Error> {
        let endpoint = Endpoint::of(&self.host, self.port).map_err(|_| {
            Error::new(ErrorKind::Invalid, format!("{:?} is no host that a certificate can be for", self.host))
        })?;
        let opened = match self.secure {
            true => ocm_net::secure(&endpoint, &trust.authorities, CONNECT).await,
            false => ocm_net::plain(&self.host, self.port, CONNECT).await,
        };
        opened.map_err(|error| self.not_connected(&error))
    }

    fn not_connected(&self, error: &ConnectError) -> Error {
        let failure = error.failure(self.server());
        let kind = match error {
            ConnectError::Tls(_) | ConnectError::Setup(_) | ConnectError::Closed(_) => ErrorKind::Untrusted,
            _ => ErrorKind::Unreachable,
        };
        let hints = if matches!(error, ConnectError::Refused(_)) { Vec::new() } else { failure.hints };
        Error::of(kind, Failure { hints, ..failure })
    }
}

/// Scheme, host and path of a URL: what stands elsewhere in it may let in whoever knows it.
pub(crate) fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url.trim_start_matches('/')));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    bounded(&format!("{scheme}{host}{path}"))
}

/// What somebody else has written: without line ends, and not long.
pub(crate) fn bounded(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(MOST_OF_WORDS).collect()
}

/// An IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// What a query may hold as it is stays; everything else is encoded.
fn encoded(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                text.push(char::from(byte))
            }
            byte => text += &format!("%{byte:02X}"),
        }
        text
    })
}

/// What is sent besides the path.
#[derive(Clone, Default)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) headers: Vec<(http::HeaderName, String)>,
    pub(crate) authorization: Option<SecretString>,
    pub(crate) body: Bytes,
    /// The most bytes that an answer may have.
    pub(crate) most: usize,
}

/// What came back.
pub(crate) struct Answer {
    /// Who has answered: a redirect may have led to another server.
    pub(crate) from: Target,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header as text.
    pub(crate) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Sends a request and reads the answer. A GET follows where the server sends on to; credentials stay with the server that
/// they are for.
pub(crate) async fn send(target: &Target, sent: &Sent, trust: &Trust, limit: Duration) -> Result<Answer, Error> {
    let late = |_| {
        let why =
            format!("{} does not answer: nothing whole within {}", target.server(), ocm_core::duration::human(limit));
        Error::new(ErrorKind::Unreachable, why)
    };
    let work = async {
        let (mut at, mut sent) = (target.clone(), sent.clone());
        for _ in 0..=REDIRECTS {
            let answer = exchange(&at, &sent, trust).await?;
            let moved = sent.method == Method::GET && answer.status.is_redirection();
            let Some(location) = answer.header(&LOCATION).filter(|_| moved) else { return Ok(answer) };
            let next = at.follow(location)?;
            if !next.is_server_of(target) {
                sent.authorization = None;
            }
            at = next;
        }
        Err(Error::new(ErrorKind::Refused, format!("{} sends on more than {REDIRECTS} times", target.server())))
    };
    tokio::time::timeout(limit, work).await.map_err(late)?
}

async fn exchange(target: &Target, sent: &Sent, trust: &Trust) -> Result<Answer, Error> {
    let broken = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Unreachable, format!("the connection to {} broke", target.server())).because(error)
    };
    let stream = target.connect(trust).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    // It ends with the sender.
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(sent.method.clone())
        .uri(&target.path)
        .header(HOST, target.server())
        .header(USER_AGENT, "kubectl-ocm");
    for (name, value) in &sent.headers {
        request = request.header(name, value);
    }
    if let Some(authorization) = &sent.authorization {
        let value = HeaderValue::from_str(authorization.expose_secret());
        let mut value = value.map_err(|_| {
            Error::new(
                ErrorKind::Invalid,
                format!("the credentials for {} cannot be sent in a header", target.server()),
            )
        })?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let request = request.body(Full::new(sent.body.clone())).map_err(|error| broken(&error))?;
    let (head, mut body) = sender.send_request(request).await.map_err(|error| broken(&error))?.into_parts();
    let most = if head.status.is_success() { sent.most } else { MOST_OF_A_REFUSAL };
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Some(data) = frame.data_ref() else { continue };
        if read.len() + data.len() > most {
            if head.status.is_success() {
                let why = format!("{} answers with more than the {most} bytes that are read of it", target.server());
                return Err(Error::new(ErrorKind::TooLarge, why));
            }
            break;
        }
        read.extend_from_slice(data);
    }
    Ok(Answer { from: target.clone(), status: head.status, headers: head.headers, body: read })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_reached_without_tls() {
        let trust = Trust::default();
        let secure = |server: &str| Target::of(server, "/v2/", &trust).unwrap().secure;
        assert!(secure("r.example") && secure("10.0.0.1:5000") && secure("localhost.example:5000"));
        assert!(!secure("127.0.0.1:5000") && !secure("localhost:5000") && !secure("[::1]:5000"));
        let named = Trust { authorities: vec![vec![1]] };
        assert!(Target::of("localhost:5000", "/", &named).unwrap().secure);
        assert!(Target::parse("http://r.example/p").is_err() && Target::parse("http://127.0.0.1:1/p").is_ok());
        for wrong in ["ftp://r.example/p", "r.example/p", "https:///p", "https://u:geheim@r.example/p"] {
            let error = Target::parse(wrong).unwrap_err();
            assert!(error.kind == ErrorKind::Invalid && !error.to_string().contains("geheim"), "{error}");
        }
    }

    #[test]
    fn what_lets_in_whoever_knows_it_is_not_told() {
        for (url, expected) in [
            ("https://r.example:5000/a/p.wasm?X-Signature=geheim#geheim", "https://r.example:5000/a/p.wasm"),
            ("https://u:geheim@r.example/p", "https://r.example/p"),
            ("https://r.example?geheim", "https://r.example"),
            ("//u:geheim@r.example/p?geheim", "r.example/p"),
            ("ftp://r.example/p@1", "ftp://r.example/p@1"),
        ] {
            assert_eq!(shown(url), expected);
        }
        let at = Target::parse("https://r.example/v2/p").unwrap();
        let error = at.follow("http://cdn.example/b?geheim").unwrap_err();
        assert!(error.to_string().contains("http://cdn.example/b") && !error.to_string().contains("geheim"), "{error}");
        assert_eq!(bounded(&"x\n".repeat(900)), "x".repeat(200));
    }

    #[test]
    fn a_server_sends_on_within_tls() {
        let at = Target::parse("https://r.example/v2/p").unwrap();
        assert_eq!(at.follow("/blob?x=1").unwrap(), Target::parse("https://r.example/blob?x=1").unwrap());
        let other = at.follow("https://cdn.example/b").unwrap();
        assert!(!other.is_server_of(&at) && at.follow("/b").unwrap().is_server_of(&at));
        assert!(at.follow("http://127.0.0.1/b").is_err() && at.follow("//cdn.example/b").is_err());
        assert_eq!(at.with_query("digest", "sha256:a+b").path, "/v2/p?digest=sha256:a%2Bb");
        assert_eq!(at.with_query("a", "1").with_query("b", "2").path, "/v2/p?a=1&b=2");
    }
}

//! From the pin of an authority's key to the authority's certificate.
//!
//! ```text
//! handshake, chain recorded ─▶ a pinned certificate in the chain vouches for the server ─▶ learned
//!        │ not there
//!        └─▶ one anonymous GET on that connection ─▶ a pinned certificate in the answer does ─▶ learned
//! ```
//!
//! Nothing of the answer is believed but a certificate that has the pinned key and vouches for the very connection on
//! which the answer came. Somebody in between would need the authority's private key.

use std::time::Duration;

use ocm_core::pin::Pin;
use ocm_core::{Failure, Reason, Remedy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::Endpoint;
use crate::client::Recorder;
use crate::connect::{open, verify_chain};

/// An answer longer than this is not what was asked for.
const LONGEST: u64 = 1 << 20;

/// What was learned about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Certificates with a pinned key that vouch for the server.
    pub authorities: Vec<Vec<u8>>,
    /// Where they were found.
    pub source: Source,
}

/// Where an authority's certificate was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The server presents it in its handshake.
    Handshake,
    /// The server publishes it.
    Published,
}

/// Finds the certificate of the authority whose key has one of the `pins` and that vouches for the server.
///
/// If the server does not present it, `path` is fetched without any credential and `candidates` takes certificates out
/// of the answer's body. The body comes from a stranger: `candidates` must only parse.
///
/// # Errors
/// [`Reason::Unreachable`]; or [`Reason::Tls`] when no such certificate is found, or it does not vouch for the server.
pub async fn learn(
    endpoint: &Endpoint,
    pins: &[Pin],
    path: &str,
    candidates: impl Fn(&[u8]) -> Vec<Vec<u8>>,
    limit: Duration,
) -> Result<Learned, Failure> {
    let recorder = Recorder::new();
    let opened = open(endpoint, recorder.clone(), &[], limit).await;
    let mut stream = opened.map_err(|error| error.failure(endpoint))?.stream;
    let chain = recorder.chain();
    if let Some(authorities) = judge(endpoint, &chain, &chain, pins)? {
        return Ok(Learned { authorities, source: Source::Handshake });
    }
    let ask = async {
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {}\r\nAccept: application/json\r\nUser-Agent: kubectl-ocm\r\n\r\n",
            endpoint.authority()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // A server that closes without a farewell has still said all that it had to say.
        match stream.take(LONGEST).read_to_end(&mut answer).await {
            Ok(_) => Ok(answer),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(answer),
            Err(error) => Err(error),
        }
    };
    let answer = match tokio::time::timeout(limit, ask).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(not_found(endpoint, &format!("the connection broke: {error}"))),
        Err(_) => return Err(not_found(endpoint, "it does not answer")),
    };
    match body(&answer) {
        Ok(body) => match judge(endpoint, &chain, &candidates(body), pins)? {
            Some(authorities) => Ok(Learned { authorities, source: Source::Published }),
            None => Err(wrong_pin(endpoint, &chain)),
        },
        Err(Unusable::Status(status)) => Err(not_found(endpoint, &format!("it answers HTTP {status}"))),
        Err(Unusable::NotHttp) => Err(not_found(endpoint, "its answer is not HTTP")),
    }
}

/// The pinned ones of `found` that vouch for the connection; none if no certificate of `found` is pinned.
fn judge(
    endpoint: &Endpoint,
    chain: &[Vec<u8>],
    found: &[Vec<u8>],
    pins: &[Pin],
) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let pinned: Vec<Vec<u8>> =
        found.iter().filter(|der| Pin::of(der).is_some_and(|pin| pins.contains(&pin))).cloned().collect();
    if pinned.is_empty() {
        return Ok(None);
    }
    verify_chain(endpoint, chain, &pinned).map_err(|fault| {
        Failure { hints: Vec::new(), ..fault.failure(endpoint) }
            .context(format!("the CA with the pinned key does not vouch for {endpoint}"))
            .hint(Remedy::TokenForAddress)
    })?;
    Ok(Some(pinned))
}

/// The pinned certificate could not be fetched.
fn not_found(endpoint: &Endpoint, why: &str) -> Failure {
    let sentence = format!("{endpoint} neither presents nor publishes the certificate of the CA with the pinned key");
    Failure::new(Reason::Tls, sentence)
        .because(format!("asked for kube-public/cluster-info without credentials, {why}"))
        .hint(Remedy::HubCa)
}

/// Certificates were there, but none with the pinned key: this may be somebody in between.
fn wrong_pin(endpoint: &Endpoint, chain: &[Vec<u8>]) -> Failure {
    let seen: Vec<String> = chain.iter().filter_map(|der| Pin::of(der)).map(|pin| pin.to_string()).collect();
    Failure::new(Reason::Tls, format!("no CA of {endpoint} has the pinned key, so it is not the hub that was meant"))
        .because(format!("it presents keys {}", seen.join(", ")))
        .hint(Remedy::ComparePin)
}

enum Unusable {
    NotHttp,
    Status(u16),
}

/// The body of an HTTP answer with status 200.
fn body(answer: &[u8]) -> Result<&[u8], Unusable> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(Unusable::NotHttp)?;
    let line = answer.split(|byte| *byte == b'\r').next().and_then(|line| std::str::from_utf8(line).ok());
    let status = line.filter(|line| line.starts_with("HTTP/1.")).and_then(|line| line.split(' ').nth(1));
    match status.and_then(|status| status.parse().ok()) {
        Some(200) => Ok(&answer[end + 4..]),
        Some(status) => Err(Unusable::Status(status)),
        None => Err(Unusable::NotHttp),
    }
}

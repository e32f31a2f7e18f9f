//! Where a server listens, and what its certificate must say.

use ocm_core::Failure;
use ocm_core::address::is_loopback;
use ocm_core::redact::redact;
use rustls::pki_types::ServerName;

use crate::proxy::{self, Proxy, UnusableProxy};

/// An https address taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The name that its certificate is checked against.
    pub name: ServerName<'static>,
}

impl Endpoint {
    /// Takes an https URL apart. `name` replaces the host where the certificate is for another name.
    ///
    /// # Errors
    /// A usage failure for anything but an https URL of a server.
    pub fn parse(url: &str, name: Option<&str>) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::usage(format!("{:?} is no address of an API server: {why}", redact(url)))
                .hint("write it as https://HOST:PORT")
        };
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
            Some(("http" | "HTTP", _)) => return Err(wrong("tokens do not travel over plain http")),
            Some(_) => return Err(wrong("its scheme is not https")),
            None => return Err(wrong("it does not begin with https://")),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(wrong("it holds credentials"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']').ok_or_else(|| wrong("its bracket does not close"))?;
                (host, after.strip_prefix(':').or((!after.is_empty()).then_some(after)))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        let port = match port {
            None | Some("") => 443,
            Some(port) => port.parse().map_err(|_| wrong("its port must be a number"))?,
        };
        let checked = name.unwrap_or(host);
        let name = ServerName::try_from(checked.to_owned())
            .map_err(|_| wrong(&format!("{checked:?} is not a name that a certificate can have")))?;
        Ok(Self { host: host.to_owned(), port, name })
    }

    /// The server of a host, without brackets, and a port.
    ///
    /// # Errors
    /// When no certificate can be for the host.
    pub fn of(host: &str, port: u16) -> Result<Self, rustls::pki_types::InvalidDnsNameError> {
        let name = ServerName::try_from(host)?.to_owned();
        Ok(Self { host: host.to_owned(), port, name })
    }

    /// Whether only the machine itself reaches the address: a pod that dials it finds itself.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// The proxy that the environment names for this address.
    pub(crate) fn proxy(&self) -> Result<Option<Proxy>, UnusableProxy> {
        proxy::from_environment(true, &self.host, self.port)
    }

    /// Host and port as an address line has them.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "https://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parse = |url: &str| Endpoint::parse(url, None).map(|endpoint| (endpoint.host, endpoint.port));
        assert_eq!(parse("https://hub.example"), Ok(("hub.example".to_owned(), 443)));
        assert_eq!(parse("HTTPS://10.0.0.1:6443/"), Ok(("10.0.0.1".to_owned(), 6443)));
        assert_eq!(parse("https://[fd00::1]:6443/path"), Ok(("fd00::1".to_owned(), 6443)));
        for wrong in
            ["hub:6443", "http://hub", "https://", "https://u:p@hub", "https://hub:port", "https://[::1", "ftp://x"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let other = Endpoint::parse("https://10.0.0.1", Some("hub.example")).unwrap();
        assert_eq!(other.name, ServerName::try_from("hub.example").unwrap());
    }

    #[test]
    fn loopback_is_seen_in_every_form() {
        for url in [
            "https://127.0.0.1:6443",
            "https://127.9.9.9",
            "https://localhost:1",
            "https://LOCALHOST.",
            "https://[::1]:6443",
            "https://0.0.0.0:6443",
            "https://[::ffff:127.0.0.1]",
            "https://kind.localhost",
        ] {
            assert!(Endpoint::parse(url, None).unwrap().is_loopback(), "{url}");
        }
        for url in ["https://10.0.0.1", "https://localhost.example", "https://[fd00::1]"] {
            assert!(!Endpoint::parse(url, None).unwrap().is_loopback(), "{url}");
        }
    }
}

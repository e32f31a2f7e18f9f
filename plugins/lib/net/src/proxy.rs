//! Which proxy a connection goes through, from the environment: the rules of Go's `httpproxy`, which kubectl follows.
//!
//! The crates that read these variables follow curl: they take `ALL_PROXY`, know no ports in `NO_PROXY` and proxy
//! loopback addresses. With them our commands would take another way than kubectl on the same machine.

use std::fmt;
use std::net::IpAddr;

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use ipnet::IpNet;

/// Why a connection cannot go through a proxy that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableProxy {
    /// It is not the URL of a server.
    #[error("it is not a URL such as http://proxy.example:3128")]
    NotAUrl,
    /// It is none of http, https and socks5.
    #[error("its scheme is none of http, https and socks5")]
    Scheme,
    /// Where its credentials end cannot be told.
    #[error("it has more than one @: within its user name and password write it as %40")]
    Credentials,
}

/// Who named a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The `proxy-url` of a kubeconfig.
    Kubeconfig,
    /// This variable of the environment.
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubeconfig => f.write_str("the proxy-url of the kubeconfig"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// How messages name a proxy: without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyName {
    /// The scheme of its URL.
    pub scheme: String,
    /// Host and port.
    pub address: String,
    /// Who named it.
    pub origin: Origin,
}

impl ProxyName {
    /// What to look at when `server` cannot be reached through it.
    pub fn hint(&self, server: &str) -> String {
        match self.origin {
            Origin::Kubeconfig => "it is the proxy-url of the cluster in the kubeconfig: \
                                   kubectl config set clusters.NAME.proxy-url URL"
                .to_owned(),
            Origin::Variable(name) => {
                format!("it comes from {name}: correct it, or add {server} to NO_PROXY if it needs no proxy")
            }
        }
    }
}

impl fmt::Display for ProxyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}", self.address)
    }
}

/// A proxy that connections can go through. It prints without credentials.
#[derive(Clone)]
pub struct Proxy {
    intercept: Intercept,
    origin: Origin,
}

impl Proxy {
    /// Reads the URL of a proxy.
    ///
    /// # Errors
    /// When connections cannot go through it. The URL may hold a password and is not in the message.
    pub fn parse(url: &str, origin: Origin) -> Result<Self, UnusableProxy> {
        let (scheme, rest) = url.split_once("://").ok_or(UnusableProxy::NotAUrl)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            // The proxy resolves names in both.
            "socks5" | "socks5h" => "socks5",
            "http" => "http",
            "https" => "https",
            _ => return Err(UnusableProxy::Scheme),
        };
        // Which of several ends the credentials, programs do not agree about: within them it is written %40.
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.matches('@').count() > 1 {
            return Err(UnusableProxy::Credentials);
        }
        // A user name alone has an empty password.
        let url = match rest.split_once('@') {
            Some((user, rest)) if !user.contains([':', '/']) => format!("{scheme}://{user}:@{rest}"),
            _ => format!("{scheme}://{rest}"),
        };
        // It takes credentials out of the URL; which servers it is for was decided before.
        let matcher = Matcher::builder().all(url.clone()).build();
        let any = http::Uri::from_static("https://any");
        match matcher.intercept(&any) {
            Some(intercept) if url.parse::<http::Uri>().is_ok() && has_port(intercept.uri()) => {
                Ok(Self { intercept, origin })
            }
            _ => Err(UnusableProxy::NotAUrl),
        }
    }

    /// How messages name it.
    pub fn name(&self) -> ProxyName {
        let scheme = self.address().scheme_str().unwrap_or_default().to_owned();
        ProxyName { scheme, address: self.to_string(), origin: self.origin }
    }

    /// Its URL without credentials: scheme, host, and the port if it names one.
    pub fn url(&self) -> String {
        format!("{}://{self}", self.address().scheme_str().unwrap_or_default())
    }

    /// Host, without brackets, and port.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        let address = self.address();
        let port = address.port_u16().unwrap_or(match address.scheme_str() {
            Some("https") => 443,
            Some("socks5") => 1080,
            _ => 80,
        });
        (without_brackets(address.host().unwrap_or_default()), port)
    }

    /// The URL without credentials.
    fn address(&self) -> &http::Uri {
        self.intercept.uri()
    }

    /// Its credentials.
    pub(crate) fn intercept(&self) -> &Intercept {
        &self.intercept
    }

    /// Whether it speaks SOCKS.
    pub(crate) fn is_socks(&self) -> bool {
        self.address().scheme_str() == Some("socks5")
    }

    /// Whether connections to it are TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.address().scheme_str() == Some("https")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address().authority().map_or("", http::uri::Authority::as_str))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Whether what stands behind the host is a port, or nothing.
fn has_port(url: &http::Uri) -> bool {
    let nothing = |authority: &http::uri::Authority| authority.as_str().trim_end_matches(':') == authority.host();
    url.port_u16().is_some() || url.authority().is_some_and(nothing)
}

/// An IPv6 address as a URL has it, without its brackets.
pub(crate) fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// What this process's environment says of a server: the proxy, or none when it is dialled directly.
///
/// # Errors
/// When the environment names a proxy that cannot be used.
pub fn from_environment(is_https: bool, host: &str, port: u16) -> Result<Option<Proxy>, UnusableProxy> {
    let environment = Environment::read(|name| std::env::var(name).ok());
    let proxy = environment.proxy_for(is_https, host, port);
    proxy.map(|(variable, url)| Proxy::parse(url, Origin::Variable(variable))).transpose()
}

/// What another environment than this process's says of a server, by `get`: the URL of the proxy as it stands there, which may
/// hold credentials.
pub fn of_environment(get: impl Fn(&str) -> Option<String>, is_https: bool, host: &str, port: u16) -> Option<String> {
    Environment::read(get).proxy_for(is_https, host, port).map(|(_, url)| url.to_owned())
}

/// What the environment says of proxies.
#[derive(Clone, Debug, Default)]
struct Environment {
    /// URLs, with the variables that have them.
    https: Option<(&'static str, String)>,
    http: Option<(&'static str, String)>,
    /// A CGI server passes the header `Proxy` of a request on as `HTTP_PROXY`.
    is_cgi: bool,
    exceptions: Exceptions,
}

/// What `NO_PROXY` names.
#[derive(Clone, Debug, Default)]
struct Exceptions {
    all: bool,
    networks: Vec<IpNet>,
    addresses: Vec<(IpAddr, Option<String>)>,
    domains: Vec<Domain>,
}

#[derive(Clone, Debug)]
struct Domain {
    /// Begins with a dot.
    suffix: String,
    /// Whether the name without the dot is meant too.
    itself: bool,
    port: Option<String>,
}

impl Environment {
    /// Reads the variables by `get`. The first of two spellings that is not empty counts.
    fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&'static str; 2]| {
            names.into_iter().filter_map(|name| Some((name, get(name)?))).find(|(_, value)| !value.is_empty())
        };
        let proxy = |names| first(names).map(|(name, value)| (name, with_scheme(&value)));
        Self {
            https: proxy(["HTTPS_PROXY", "https_proxy"]),
            http: proxy(["HTTP_PROXY", "http_proxy"]),
            is_cgi: get("REQUEST_METHOD").is_some_and(|value| !value.is_empty()),
            exceptions: first(["NO_PROXY", "no_proxy"]).map(|(_, list)| Exceptions::parse(&list)).unwrap_or_default(),
        }
    }

    /// The variable and the URL of the proxy for a server; none: it is dialled directly. `host` is without brackets.
    fn proxy_for(&self, is_https: bool, host: &str, port: u16) -> Option<(&'static str, &str)> {
        let proxy = match is_https {
            true => self.https.as_ref(),
            false => self.http.as_ref().filter(|_| !self.is_cgi),
        };
        proxy.filter(|_| !self.exceptions.include(host, port)).map(|(variable, url)| (*variable, url.as_str()))
    }
}

/// Proxies are often written without the scheme, `proxy.example:3128`.
fn with_scheme(proxy: &str) -> String {
    match proxy.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() => proxy.to_owned(),
        _ => format!("http://{proxy}"),
    }
}

impl Exceptions {
    fn parse(list: &str) -> Self {
        let mut exceptions = Self::default();
        for entry in list.split(',').map(|entry| entry.trim().to_lowercase()).filter(|entry| !entry.is_empty()) {
            if entry == "*" {
                return Self { all: true, ..Self::default() };
            }
            if let Ok(network) = entry.parse() {
                exceptions.networks.push(network);
                continue;
            }
            let (host, port) = split_port(&entry);
            if let Ok(address) = host.parse::<IpAddr>() {
                exceptions.addresses.push((address.to_canonical(), port));
            } else if let Some(name) = host.strip_prefix('*').filter(|name| name.starts_with('.')).or(Some(host)) {
                let (suffix, itself) =
                    if name.starts_with('.') { (name.to_owned(), false) } else { (format!(".{name}"), true) };
                if suffix.len() > 1 {
                    exceptions.domains.push(Domain { suffix, itself, port });
                }
            }
        }
        exceptions
    }

    fn include(&self, host: &str, port: u16) -> bool {
        if self.all || host == "localhost" {
            return true;
        }
        let is_port = |wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| *wanted == port.to_string());
        if let Ok(address) = host.parse::<IpAddr>() {
            let address = address.to_canonical();
            return address.is_loopback()
                || self.networks.iter().any(|network| network.contains(&address))
                || self.addresses.iter().any(|(known, port)| *known == address && is_port(port));
        }
        let host = host.trim().to_lowercase();
        self.domains.iter().any(|domain| {
            let named = host.ends_with(&domain.suffix) || (domain.itself && host == domain.suffix[1..]);
            named && is_port(&domain.port)
        })
    }
}

/// Takes `host:port` and `[address]:port` apart; a bare IPv6 address has no port.
fn split_port(entry: &str) -> (&str, Option<String>) {
    let bracketed = entry.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    let plain = entry.split_once(':').filter(|(_, port)| !port.contains(':'));
    match bracketed.or(plain) {
        Some((host, port)) => (host, Some(port.to_owned()).filter(|port| !port.is_empty())),
        None => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::read(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn is_proxied(no_proxy: &str, host: &str) -> bool {
        let environment = environment(&[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", no_proxy)]);
        environment.proxy_for(true, host, 6443).is_some()
    }

    #[test]
    fn the_target_decides_never_the_proxy() {
        for (no_proxy, host, expected) in [
            ("", "hub.example", true),
            ("proxy", "hub.example", true),
            ("127.0.0.1", "hub.example", true),
            ("hub.example", "hub.example", false),
            ("HUB.example", "hub.EXAMPLE", false),
            ("example", "hub.example", false),
            (".example", "hub.example", false),
            ("*.example", "hub.example", false),
            (".hub.example", "hub.example", true),
            ("ub.example", "hub.example", true),
            ("hub.example:6443", "hub.example", false),
            ("hub.example:443", "hub.example", true),
            ("*", "hub.example", false),
            ("a,", "hub.example", true),
            (" , hub.example ,", "hub.example", false),
            ("10.0.0.0/8", "10.201.0.70", false),
            ("10.0.0.0/16", "10.201.0.70", true),
            ("10.201.0.70", "10.201.0.70", false),
            ("10.201.0.70:6443", "10.201.0.70", false),
            ("10.201.0.70:443", "10.201.0.70", true),
            ("0.70", "10.201.0.70", true),
            ("fd00::/8", "fd00::1", false),
            ("[fd00::1]:6443", "fd00::1", false),
            ("fd00::1", "fd00::1", false),
            ("fd00::2", "fd00::1", true),
            ("", "127.0.0.1", false),
            ("", "127.8.8.8", false),
            ("", "::1", false),
            ("", "localhost", false),
        ] {
            assert_eq!(is_proxied(no_proxy, host), expected, "NO_PROXY={no_proxy:?} {host}");
        }
    }

    #[test]
    fn variables_are_those_of_the_scheme_in_both_spellings() {
        let of = |variables: &[(&str, &str)], is_https| {
            let environment = environment(variables);
            let proxy = environment.proxy_for(is_https, "hub.example", 6443);
            proxy.map(|(variable, url)| format!("{variable} {url}"))
        };
        assert_eq!(of(&[("HTTPS_PROXY", ""), ("https_proxy", "p:1")], true).as_deref(), Some("https_proxy http://p:1"));
        let both = [("HTTPS_PROXY", "socks5://p:1"), ("https_proxy", "q")];
        assert_eq!(of(&both, true).as_deref(), Some("HTTPS_PROXY socks5://p:1"));
        assert_eq!(of(&[("HTTP_PROXY", "p:1")], true), None);
        assert_eq!(of(&[("http_proxy", "10.0.0.1:1")], false).as_deref(), Some("http_proxy http://10.0.0.1:1"));
        assert_eq!(of(&[("HTTP_PROXY", "p:1"), ("REQUEST_METHOD", "GET")], false), None);
        assert_eq!(of(&[("ALL_PROXY", "p:1")], true), None);
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_being_quoted() {
        let parse = |url: &str| Proxy::parse(url, Origin::Kubeconfig);
        assert_eq!(parse("ftp://me:secret@p").unwrap_err(), UnusableProxy::Scheme);
        assert_eq!(parse("http://").unwrap_err(), UnusableProxy::NotAUrl);
        assert_eq!(parse("http://a b").unwrap_err(), UnusableProxy::NotAUrl);
        assert_eq!(parse("http://p:port").unwrap_err(), UnusableProxy::NotAUrl);
        assert_eq!(parse("http://me:pa@ss@p:1").unwrap_err(), UnusableProxy::Credentials);
        assert_eq!(parse("http://me:pa%40ss@p:1/x@y").map(|proxy| proxy.to_string()), Ok("p:1".to_owned()));
        assert!(["http://p:", "http://[fd00::1]", "http://[fd00::1]:1"].iter().all(|url| parse(url).is_ok()));
        assert!(parse("SOCKS5H://p:1").unwrap().is_socks());
        let proxy = parse("socks5://me:secret@p").unwrap();
        assert_eq!((proxy.to_string(), format!("{proxy:?}")), ("p".to_owned(), "Proxy(p)".to_owned()));
        assert_eq!((proxy.host_and_port(), proxy.name().to_string()), (("p", 1080), "the proxy p".to_owned()));
        assert_eq!(parse("socks5://me@p").unwrap().intercept().raw_auth(), Some(("me", "")));
    }
}

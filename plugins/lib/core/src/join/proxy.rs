//! The proxy on the agent's way to its hub: what was typed, over what its bootstrap kubeconfig has.
//!
//! An https proxy is verified with the certificates that the hub is verified with: a kubeconfig has one list of them.

use std::fmt;
use std::net::IpAddr;

use crate::address::is_loopback;
use crate::kubeconfig::HubAddress;
use crate::redact::redact;

/// What is to become of the agent's proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentProxy {
    /// The bootstrap kubeconfig keeps the one that it has, if it has one.
    #[default]
    AsItIs,
    /// The agent reaches the hub without a proxy.
    Without,
    /// The agent reaches the hub through this one.
    Through {
        /// Its URL.
        url: ProxyUrl,
        /// Certificates (DER) that vouch for it, besides those of the hub; none: those that are there stay.
        ca: Vec<Vec<u8>>,
    },
}

/// The URL of a proxy that pods can go through. It may hold a password, and prints without.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(String);

/// Why agents cannot go through a proxy. The URL may hold a password and is not in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableProxyUrl {
    /// It is not the URL of a server.
    #[error("it is not a URL such as http://proxy.example:3128")]
    NotAUrl,
    /// It is neither http nor https.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// Agents run in pods.
    #[error("to a pod that is the pod itself")]
    Loopback,
}

/// The hub is verified with the authorities of the agent's system. With the CA of a proxy beside it, with that one alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubCaUnknown;

impl ProxyUrl {
    /// Reads the URL of a proxy.
    ///
    /// # Errors
    /// When agents cannot go through it.
    pub fn parse(url: &str) -> Result<Self, UnusableProxyUrl> {
        let (scheme, rest) = url.trim().split_once("://").ok_or(UnusableProxyUrl::NotAUrl)?;
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(UnusableProxyUrl::Scheme);
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (user, server) = authority.rsplit_once('@').unwrap_or(("", authority));
        let host = host(server).ok_or(UnusableProxyUrl::NotAUrl)?;
        if !is_escaped(user) {
            return Err(UnusableProxyUrl::NotAUrl);
        }
        if is_loopback(host) {
            return Err(UnusableProxyUrl::Loopback);
        }
        Ok(Self(format!("{scheme}://{authority}")))
    }

    /// As the kubeconfig has it, with a password if it has one.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether connections to it are TLS.
    pub fn is_https(&self) -> bool {
        is_https(&self.0)
    }

    /// Whether a URL that somebody wrote is of the same proxy, with the same user.
    fn is(&self, written: &str) -> bool {
        Self::parse(written).is_ok_and(|written| written == *self)
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.0))
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// The host of `host`, `host:port`, `[address]` or `[address]:port`, without brackets.
fn host(server: &str) -> Option<&str> {
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None => server.split_once(':').map_or((server, None), |(host, port)| (host, Some(port))),
    };
    let is_host = match server.starts_with('[') {
        true => host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()),
        false => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')),
    };
    let is_port =
        |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    (is_host && port.is_none_or(is_port)).then_some(host)
}

/// Whether user name and password are written as URLs have them (RFC 3986, section 3.2.1).
fn is_escaped(user: &str) -> bool {
    let is_hex = |at: usize| user.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    user.bytes().enumerate().all(|(at, byte)| match byte {
        b'%' => is_hex(at + 1) && is_hex(at + 2),
        _ => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte),
    })
}

fn is_https(proxy: &str) -> bool {
    proxy.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

impl AgentProxy {
    /// The certificates that were typed for it.
    fn typed_ca(&self) -> &[Vec<u8>] {
        match self {
            Self::Through { url, ca } if url.is_https() => ca,
            _ => &[],
        }
    }

    /// The way of an agent to the hub. `there` is the way of its bootstrap kubeconfig, if it has one, and `hub` how the hub is
    /// reached and trusted without a proxy.
    ///
    /// # Errors
    /// When a CA of the proxy was typed and that of the hub is not known.
    pub fn way(&self, there: Option<&HubAddress>, hub: &HubAddress) -> Result<HubAddress, HubCaUnknown> {
        let present = there.and_then(|there| there.proxy.as_deref());
        let proxy = match self {
            Self::AsItIs => present,
            Self::Without => None,
            Self::Through { url, .. } => present.filter(|present| url.is(present)).or(Some(url.as_str())),
        };
        let typed = self.typed_ca();
        if hub.ca.is_empty() && !typed.is_empty() {
            return Err(HubCaUnknown);
        }
        // Which of the certificates that are there are the proxy's, nothing says: as long as there is an https proxy, those
        // that are not the hub's stay.
        let kept = there.filter(|there| there.proxy.as_deref().is_some_and(is_https));
        let kept = kept.map_or(&[][..], |there| there.ca.as_slice());
        let beside = match (proxy.is_some_and(is_https), typed) {
            (false, _) => &[][..],
            (true, []) => kept,
            (true, typed) => typed,
        };
        let mut way = HubAddress { proxy: proxy.map(str::to_owned), ..hub.clone() };
        for certificate in beside {
            if !way.ca.contains(certificate) {
                way.ca.push(certificate.clone());
            }
        }
        Ok(way)
    }

    /// The same of an agent that has registered: its way stays as it is, unless its proxy changes, or a certificate for it is
    /// not there yet.
    ///
    /// # Errors
    /// As [`way`](Self::way).
    pub fn way_of_registered(&self, there: &HubAddress, hub: &HubAddress) -> Result<HubAddress, HubCaUnknown> {
        let stays = match self {
            Self::AsItIs => true,
            Self::Without => there.proxy.is_none(),
            Self::Through { url, .. } => there.proxy.as_deref().is_some_and(|present| url.is(present)),
        };
        let known = self.typed_ca().iter().all(|certificate| there.ca.contains(certificate));
        if stays && known { Ok(there.clone()) } else { self.way(Some(there), hub) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(url: &str, ca: &[&[u8]]) -> AgentProxy {
        AgentProxy::Through { url: ProxyUrl::parse(url).unwrap(), ca: ca.iter().map(|ca| ca.to_vec()).collect() }
    }

    fn address(proxy: Option<&str>, ca: &[&[u8]]) -> HubAddress {
        HubAddress {
            server: "https://hub:6443".to_owned(),
            ca: ca.iter().map(|ca| ca.to_vec()).collect(),
            proxy: proxy.map(str::to_owned),
            ..HubAddress::default()
        }
    }

    #[test]
    fn agents_go_through_http_and_https_proxies_that_pods_can_reach() {
        for (url, read) in [
            ("http://proxy.example:3128", "http://proxy.example:3128"),
            ("HTTPS://10.0.0.1:3129/", "https://10.0.0.1:3129"),
            ("http://me:s3cr%40t@proxy", "http://me:s3cr%40t@proxy"),
            ("https://[fd00::1]:3129", "https://[fd00::1]:3129"),
        ] {
            assert_eq!(ProxyUrl::parse(url).unwrap().as_str(), read);
        }
        for (url, why) in [
            ("proxy.example:3128", UnusableProxyUrl::NotAUrl),
            ("", UnusableProxyUrl::NotAUrl),
            ("none", UnusableProxyUrl::NotAUrl),
            ("socks5://proxy.example:1080", UnusableProxyUrl::Scheme),
            ("ftp://proxy.example", UnusableProxyUrl::Scheme),
            ("http://", UnusableProxyUrl::NotAUrl),
            ("http://:3128", UnusableProxyUrl::NotAUrl),
            ("http://proxy:", UnusableProxyUrl::NotAUrl),
            ("http://proxy:0", UnusableProxyUrl::NotAUrl),
            ("http://proxy:70000", UnusableProxyUrl::NotAUrl),
            ("http://proxy:3128/path", UnusableProxyUrl::NotAUrl),
            ("http://a b:3128", UnusableProxyUrl::NotAUrl),
            ("http://fd00::1", UnusableProxyUrl::NotAUrl),
            ("http://[proxy]:3128", UnusableProxyUrl::NotAUrl),
            ("http://me:p%zz@proxy", UnusableProxyUrl::NotAUrl),
            ("http://me:p/w@proxy", UnusableProxyUrl::NotAUrl),
            ("http://localhost:3128", UnusableProxyUrl::Loopback),
            ("http://127.0.0.1:3128", UnusableProxyUrl::Loopback),
            ("https://[::1]", UnusableProxyUrl::Loopback),
            ("http://LOCALHOST:1", UnusableProxyUrl::Loopback),
            ("http://localhost.:1", UnusableProxyUrl::Loopback),
            ("http://a.localhost:1", UnusableProxyUrl::Loopback),
            ("http://0.0.0.0:1", UnusableProxyUrl::Loopback),
            ("http://[::]:1", UnusableProxyUrl::Loopback),
        ] {
            assert_eq!(ProxyUrl::parse(url), Err(why), "{url}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let proxy = through("http://me:s3cr%40t@proxy:3128", &[]);
        assert!(!format!("{proxy:?}").contains("s3cr") && format!("{proxy:?}").contains("proxy:3128"), "{proxy:?}");
    }

    #[test]
    fn what_was_not_typed_stays_with_the_certificates_of_the_proxy() {
        let hub = address(None, &[b"hub"]);
        assert_eq!(AgentProxy::AsItIs.way(None, &hub), Ok(hub.clone()));
        let there = address(Some("https://proxy:3129"), &[b"hub", b"proxy"]);
        assert_eq!(AgentProxy::AsItIs.way(Some(&there), &hub), Ok(there.clone()));
        // The same proxy, typed without its CA, also at another port.
        assert_eq!(through("https://proxy:3129", &[]).way(Some(&there), &hub), Ok(there.clone()));
        let moved = through("https://proxy:3130", &[]).way(Some(&there), &hub).unwrap();
        assert_eq!(moved, HubAddress { proxy: Some("https://proxy:3130".to_owned()), ..there.clone() });
        // Certificates that nothing says are of a proxy are not carried along.
        let plain = address(Some("http://proxy:3128"), &[b"hub", b"other"]);
        assert_eq!(AgentProxy::AsItIs.way(Some(&plain), &hub), Ok(HubAddress { ca: hub.ca.clone(), ..plain }));
    }

    #[test]
    fn what_was_typed_replaces_what_was_there() {
        let hub = address(None, &[b"hub"]);
        let there = address(Some("https://proxy:3129"), &[b"hub", b"proxy"]);
        assert_eq!(AgentProxy::Without.way(Some(&there), &hub), Ok(hub.clone()));
        let plain = through("http://proxy:3128", &[]).way(Some(&there), &hub).unwrap();
        assert_eq!(plain, address(Some("http://proxy:3128"), &[b"hub"]));
        let new = through("https://proxy:3129", &[b"new", b"hub", b"new"]).way(Some(&there), &hub).unwrap();
        assert_eq!(new, address(Some("https://proxy:3129"), &[b"hub", b"new"]), "each once");
    }

    #[test]
    fn the_ca_of_a_proxy_does_not_take_the_place_of_the_systems() {
        let hub = address(None, &[]);
        assert_eq!(through("https://proxy:3129", &[b"proxy"]).way(None, &hub), Err(HubCaUnknown));
        assert!(through("https://proxy:3129", &[]).way(None, &hub).is_ok());
    }

    #[test]
    fn an_agent_that_has_registered_keeps_its_way_where_the_proxy_is_the_same() {
        // As the command sees the hub now, with more authorities than the agent was given.
        let hub = address(None, &[b"hub", b"more"]);
        let there = address(Some("https://proxy:3129/"), &[b"proxy", b"hub"]);
        for same in [AgentProxy::AsItIs, through("https://proxy:3129", &[]), through("HTTPS://proxy:3129", &[b"proxy"])]
        {
            assert_eq!(same.way_of_registered(&there, &hub), Ok(there.clone()), "{same:?}");
        }
        let direct = address(None, &[b"hub"]);
        assert_eq!(AgentProxy::Without.way_of_registered(&direct, &hub), Ok(direct.clone()));
        assert_eq!(AgentProxy::Without.way_of_registered(&there, &hub), Ok(hub.clone()));
        let renamed = HubAddress { entry: Some("hub-2".to_owned()), ..there.clone() };
        assert_eq!(AgentProxy::AsItIs.way_of_registered(&renamed, &hub), Ok(renamed), "the name stays, too");
        for other in [
            through("https://proxy:3130", &[]),
            through("http://proxy:3129", &[]),
            through("https://me@proxy:3129", &[]),
            through("https://proxy:3129", &[b"new"]),
        ] {
            let way = other.way_of_registered(&there, &hub).unwrap();
            assert!(!way.is_same_way(&there), "{other:?}");
        }
    }
}

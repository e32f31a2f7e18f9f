//! What can be chosen about the cluster on which a hub's pods run.

use crate::grpc;
use crate::kubeconfig::Bootstrap;

/// The port at which the webhooks' pods listen unless something else is said. Upstream: `defaultWebhookPort`.
pub const WEBHOOK_PORT: u16 = 9443;

/// On which cluster the hub's pods run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HubMode {
    /// On the hub itself.
    #[default]
    Default,
    /// On another cluster, the hosting one.
    Hosted,
}

impl HubMode {
    /// The word in the ClusterManager.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::Hosted => "Hosted",
        }
    }
}

/// A Service that leads from outside of the hosting cluster to the pods of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookExposure {
    /// At the port of its address, one of the cluster's nodes.
    NodePort,
    /// By a load balancer.
    LoadBalancer,
}

/// Where the hub's API server finds a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// IPv4 address or host name.
    pub host: String,
    /// Port; none: the one that is there, else the usual one of what leads there.
    pub port: Option<u16>,
}

impl Webhook {
    /// Takes `HOST[:PORT]` apart; none where it is not that, or no address that a ClusterManager can hold.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = grpc::Address::parse(text)?;
        let is_part = |part: &str| {
            let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let bytes = part.as_bytes();
            is_end(bytes.first()) && is_end(bytes.last()) && !part.contains(':')
        };
        let is_host = !text.contains("://") && !text.ends_with('/') && host.split('.').all(is_part);
        is_host.then_some(Self { host, port })
    }
}

/// What was typed about the cluster on which the hub's pods run. Whatever is empty was not.
#[derive(Clone, Debug, Default)]
pub struct Hosting {
    /// On which cluster they run.
    pub mode: Option<HubMode>,
    /// Where the hub's API server finds the webhook of registration.
    pub registration: Option<Webhook>,
    /// Where it finds that of works.
    pub work: Option<Webhook>,
    /// By which Services of ours it reaches them there; none: by none.
    pub expose: Option<WebhookExposure>,
    /// How the operator reaches the hub. It is found out, and none as long as no cluster was looked at.
    pub kubeconfig: Option<Bootstrap>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Webhook> {
        Webhook::parse(text)
    }

    #[test]
    fn an_address_is_what_a_cluster_manager_can_hold() {
        assert_eq!(at("10.0.0.1"), Some(Webhook { host: "10.0.0.1".to_owned(), port: None }));
        assert_eq!(at("hooks.example:443"), Some(Webhook { host: "hooks.example".to_owned(), port: Some(443) }));
        for wrong in
            ["", "https://hooks.example", "hooks.example/", "-a.example", "a..b", "a_b", "[::1]:443", "h:0", "h:x"]
        {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}

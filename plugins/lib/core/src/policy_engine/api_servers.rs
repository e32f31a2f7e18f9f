//! From where API servers connect to the webhook, as its NetworkPolicy says.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

/// Why something is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotANetwork {
    /// It is an address, whose network has so many bits at most.
    Address(u8),
    /// It is something else.
    Other,
}

/// A network as people write it, in CIDR notation: `10.0.0.0/24`. Bits beyond its own say nothing.
///
/// # Errors
/// Says what it is instead.
pub fn read_network(text: &str) -> Result<IpNet, NotANetwork> {
    text.parse::<IpNet>().map(|network| network.trunc()).map_err(|_| match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => NotANetwork::Address(32),
        Ok(IpAddr::V6(_)) => NotANetwork::Address(128),
        Err(_) => NotANetwork::Other,
    })
}

/// What lets these networks in and nobody else, as `from` of a rule; none where none is named.
pub(super) fn blocks(networks: &[IpNet]) -> Option<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    for network in networks {
        let block = json!({"ipBlock": {"cidr": network.to_string()}});
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    (!blocks.is_empty()).then_some(Value::Array(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_people_write_them_and_addresses_are_told_from_them() {
        let read = |text: &str| read_network(text).map(|network| network.to_string());
        for (text, network) in [
            ("10.0.0.0/24", "10.0.0.0/24"),
            ("10.0.0.7/24", "10.0.0.0/24"),
            ("192.0.2.1/32", "192.0.2.1/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("fd00:1::5/64", "fd00:1::/64"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(network), "{text}");
        }
        assert_eq!(read("192.0.2.1"), Err(NotANetwork::Address(32)));
        assert_eq!(read("fd00::1"), Err(NotANetwork::Address(128)));
        for wrong in ["", "/", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "hub.example/24", "10.0.0.0/24 ", "10.0.0.0/-1"]
        {
            assert_eq!(read(wrong), Err(NotANetwork::Other), "{wrong}");
        }
    }

    #[test]
    fn a_network_is_named_once_and_none_narrows_nothing() {
        let networks = ["10.0.0.0/8", "10.1.2.3/8", "fd00::/64"].map(|text| read_network(text).unwrap());
        let both = json!([{"ipBlock": {"cidr": "10.0.0.0/8"}}, {"ipBlock": {"cidr": "fd00::/64"}}]);
        assert_eq!((blocks(&networks), blocks(&[])), (Some(both), None));
    }
}

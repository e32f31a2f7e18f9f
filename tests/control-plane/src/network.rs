//! Names and addresses of the network on which the clusters of this machine meet.

use std::net::Ipv4Addr;

/// The bridge on which the nodes of all clusters of this machine meet.
pub(crate) const BRIDGE: &str = "ocmbr0";

/// The bridge of the node's pods.
pub(crate) const PODS_BRIDGE: &str = "cni0";

/// The address of the host on the bridge, and of node `number`.
pub(crate) fn gateway() -> Ipv4Addr {
    Ipv4Addr::new(10, 201, 0, 1)
}

pub(crate) fn node_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 201, 0, 10 + number)
}

/// The host's end of the wire to a node.
pub(crate) fn wire(number: u8) -> String {
    format!("ocmv{number}")
}

/// The hardware address of a node's end of the wire; of number 0, the bridge's. Locally administered (IEEE 802 bit 1).
pub(crate) fn hardware_address(number: u8) -> String {
    format!("02:0a:c9:00:00:{number:02x}")
}

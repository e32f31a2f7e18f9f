//! Addresses under which a machine finds only itself, or its neighbours.

use std::net::IpAddr;

/// Whether only the machine itself is found under a host name or address, which is without brackets.
pub fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(ip) => is_local(ip),
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

/// Whether only the machine itself is found under an address.
pub fn is_local(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback() || ip.to_canonical().is_unspecified()
}

/// Whether an address is of the link that a machine is on, where others are found from every machine: in clouds what hands out
/// the credentials of a machine.
pub fn is_link_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_link_are_told_from_others() {
        for (address, wanted) in [
            ("169.254.169.254", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("10.0.0.1", false),
            ("127.0.0.1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_link_local(address.parse().unwrap()), wanted, "{address}");
        }
    }
}

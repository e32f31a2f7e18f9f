//! Addresses under which a machine finds only itself.

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

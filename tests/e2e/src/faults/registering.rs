//! What keeps an agent from registering: proxies, certificates and tokens.

use std::time::Duration;

use cli_tests::proxy::{CREDENTIALS, Kind, Manner};

use super::change::Change;
use super::fault::{Fault, Of};
use super::ways::Way;
use crate::trouble_support::TIME;

/// Faults of a cluster whose agent has to register.
pub(super) fn of_registering() -> Vec<Fault> {
    let fault = |words, id, way| Fault {
        words,
        id,
        of: Of::Registering,
        is_likely: false,
        // An agent may have come a moment before what it registers with was replaced, and starts anew meanwhile.
        patience: TIME + Duration::from_secs(60),
        changes: vec![Change::Registers(way)],
    };
    let proxy = |words, kind, manner, credentials| fault(words, "OCM2111", Way::Proxy(kind, manner, credentials));
    vec![
        fault("a proxy that does not run", "OCM2111", Way::NoProxy),
        proxy("a proxy that refuses", Kind::Http, Manner::Forbids, CREDENTIALS),
        proxy("a proxy that demands credentials", Kind::Http, Manner::Connects, ""),
        proxy("a proxy that does not take the credentials", Kind::Http, Manner::Connects, "me:wrong@"),
        proxy("a proxy that cannot reach the hub", Kind::Http, Manner::Fails, CREDENTIALS),
        proxy("a proxy whose certificate nobody trusts", Kind::Https, Manner::Connects, CREDENTIALS),
        fault("a proxy that intercepts", "OCM2112", Way::Intercepted),
        fault("an address that the hub's certificate does not name", "OCM2112", Way::Unnamed),
        fault("a token that was revoked", "OCM2113", Way::Revoked),
        fault("another cluster's token", "OCM2113", Way::Foreign),
        fault("a token that is for something else", "OCM2117", Way::Powerless),
    ]
}

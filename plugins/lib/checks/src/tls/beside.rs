//! A cluster beside a hub that is judged for itself, as one of several.

use std::collections::BTreeSet;

use ocm_core::order::Collect as _;

use super::expiry::{Within, expiries};
use super::inventory::{Copied, Copy, Inventory};
use super::profile::Profile;
use super::report::{Report, judge};
use crate::suppress::Suppression;

/// What a cluster has, with what a hub knows of it: how the hub verifies it, its TLS profile, its present signer, and what agents
/// of that cluster have reported to it.
pub fn beside(own: &Inventory, hub: &Inventory) -> Inventory {
    let of_relations = own.relations.iter().filter_map(|relation| relation.cluster.as_deref());
    let names: BTreeSet<&str> =
        own.copies.iter().filter_map(|copy| copy.cluster.as_deref()).chain(of_relations).collect_set();
    // The signer of one hub is not compared with the bundle of another, and its settings are not for the servers of another.
    let is_hub = own.has_hub();
    let is_known = |copy: &&Copy| match copy.what {
        Copied::Signer => !is_hub,
        Copied::Reported => copy.cluster.as_deref().is_some_and(|cluster| names.contains(cluster)),
        _ => false,
    };
    let mut whole = own.clone();
    whole.copies.extend(hub.copies.iter().filter(is_known).cloned());
    whole.settings.extend(hub.settings.iter().filter(|_| !is_hub).cloned());
    whole.clients = whole.clients.or_else(|| hub.clients.clone());
    whole
}

/// Judges a cluster [`beside`] a hub. What the report of the hub says is left out, and the time line is that of the cluster alone:
/// `own` is its inventory, and `whole` the same with what the hub knows of it.
pub fn judge_beside(
    whole: &Inventory,
    own: &Inventory,
    hub: &Report,
    profile: Profile,
    within: Option<Within>,
    suppressions: &[Suppression],
) -> Report {
    let Report { mut findings, mut suppressed, unseen, expiries: _ } = judge(whole, profile, within, suppressions);
    findings.retain(|finding| !hub.findings.contains(finding));
    suppressed.retain(|finding| !hub.suppressed.contains(finding));
    Report { findings, suppressed, unseen, expiries: expiries(own) }
}

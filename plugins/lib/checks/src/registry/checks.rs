//! Every check, and which of them judge what.

use super::definition::{Check, Rule};
use super::{
    addons, addresses, admission, agent, exposure, hub, joining, leaving, life, policies, reporting, safety, serving,
    settings, storage, tls, ways, webhooks, works,
};
use crate::finding::Id;

/// Every check, by id.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let all = [
        hub::CHECKS,
        serving::CHECKS,
        storage::OF_HUB,
        admission::CHECKS,
        webhooks::CHECKS,
        agent::CHECKS,
        settings::CHECKS,
        ways::CHECKS,
        joining::CHECKS,
        life::CHECKS,
        reporting::CHECKS,
        storage::OF_MANAGED,
        addresses::CHECKS,
        tls::CHECKS,
        works::CHECKS,
        addons::CHECKS,
        leaving::CHECKS,
        safety::CHECKS,
        exposure::CHECKS,
        policies::CHECKS,
    ];
    all.into_iter().flatten()
}

/// Every check of snapshots, by id: those that a report of one tells of.
pub fn of_snapshots() -> impl Iterator<Item = &'static Check> {
    checks().filter(|check| !matches!(check.rule, Rule::Certificates))
}

/// The checks of certificates and TLS, which judge inventories.
pub fn of_certificates() -> impl Iterator<Item = &'static Check> {
    checks().filter(|check| matches!(check.rule, Rule::Certificates))
}

/// The check of an id.
pub fn check(id: Id) -> Option<&'static Check> {
    checks().find(|check| check.id == id)
}

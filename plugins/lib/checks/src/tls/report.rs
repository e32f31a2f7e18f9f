//! From an inventory to a report: everything that is wrong, what could not be looked at, and the time line.

use std::cmp::Reverse;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use ocm_core::certificate::Certificate;
use ocm_core::duration::human;
use ocm_core::key::Key;
use ocm_core::kubeconfig::{HubAddress, Likeness};
use ocm_core::order;
use serde::Serialize;

use super::expiry::{Expiry, Within, expiries};
use super::inventory::{Clients, Copied, Inventory, ObjectKind, Place, Purpose, Relation, Setting, Trust, Unseen};
use super::profile::{Demands, Profile, Version};
use super::{copies, judge as relations};
use crate::finding::Finding;
use crate::registry::tls as checks;
use crate::suppress::{self, Suppressed, Suppression};

/// What an inventory comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Everything that is wrong: errors first, and then by id and cluster.
    pub findings: Vec<Finding>,
    /// What was found and is not to be reported.
    pub suppressed: Vec<Suppressed>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
    /// Every certificate, and every token that ends, what expires first at the front.
    pub expiries: Vec<Expiry>,
}

/// Judges an inventory at the time when it was made.
///
/// A server may accept what the profile allows, or what the hub's own settings do where those are stricter.
pub fn judge(inventory: &Inventory, profile: Profile, within: Option<Within>, suppressions: &[Suppression]) -> Report {
    let now = inventory.observed.0;
    let strictest =
        inventory.settings.iter().filter(|setting| setting.is_read).map(|setting| setting.settings.minimum());
    let own = strictest.max().unwrap_or(Version::Tls10);
    let read = inventory.settings.iter().filter(|setting| setting.is_read);
    let suites: Vec<String> = read.flat_map(|setting| setting.settings.suites()).map(str::to_owned).collect();
    let mut findings = Vec::new();
    for relation in &inventory.relations {
        let with_trust = by_hub(inventory, relation);
        let relation = with_trust.as_ref().unwrap_or(relation);
        // The hub's settings are not for API servers, and not for what was named on the command line, unless somebody asks for it.
        let demands = match relation.purpose.follows_settings() || profile == Profile::Ocm {
            true => Demands { minimum: own.max(profile.minimum()), profile, suites: &suites },
            false => Demands { minimum: profile.minimum(), profile, suites: &[] },
        };
        findings.extend(relations::relation(relation, now, &demands));
    }
    // What the hub verifies is judged by its clock; those of other clusters are not known.
    let ahead = inventory.clients.as_ref().map_or(0, |clients| clients.clock_ahead_seconds);
    let at_hub = now.checked_add(SignedDuration::from_secs(ahead)).unwrap_or(now);
    findings.extend(inventory.tokens.iter().filter_map(|token| {
        let is_for_hub = matches!(token.purpose, Purpose::Agent | Purpose::AddOn);
        relations::token(token, if is_for_hub { at_hub } else { now })
    }));
    findings.extend(copies::judge(&inventory.copies, &inventory.relations, now));
    findings.extend(inventory.settings.iter().flat_map(|setting| settings(setting, &inventory.relations)));
    let expiries = expiries(inventory);
    if let Some(within) = within {
        let soon = expiries.iter().filter(|expiry| expiry.in_use && expiry.is_within(within, now));
        findings.extend(soon.map(|expiry| {
            let left = expiry.not_after.0.duration_since(now);
            let left = if left.is_negative() { "no time".to_owned() } else { human(left.unsigned_abs()) };
            let words = format!("{} in {} has {left} left", expiry.subject, expiry.place);
            let found = Finding::warning(words)
                .seen(format!("expires at {}; asked was whether {within}", expiry.not_after.0))
                .advise("have it renewed, or ask about a shorter time")
                .at(&expiry.place);
            Finding { id: checks::LASTS, cluster: expiry.cluster.clone(), ..found }
        }));
    }
    let key =
        |finding: &Finding| (Reverse(finding.severity), finding.id, finding.cluster.clone(), finding.summary.clone());
    order::sort_by_key(&mut findings, key);
    // Two verifiers of one certificate may say the same.
    findings.dedup();
    let (suppressed, findings) = suppress::apply(findings, suppressions, now);
    Report { findings, suppressed, unseen: inventory.unseen.clone(), expiries }
}

/// The relation of a client of the hub with what is known of how the hub verifies it; none for others.
fn by_hub(inventory: &Inventory, relation: &Relation) -> Option<Relation> {
    let clients = inventory.clients.as_ref();
    let authorities = match relation.trust {
        // Whom another hub trusts is not known.
        Trust::HubClients => {
            clients.filter(|clients| !is_elsewhere(inventory, relation, clients)).map(|clients| &clients.authorities)
        }
        Trust::GrpcClients => clients.map(|clients| &clients.grpc_authorities),
        _ => return None,
    };
    let trust =
        authorities.filter(|list| !list.is_empty()).map_or(Trust::Unknown, |list| Trust::Authorities(list.clone()));
    let clock_ahead_seconds = clients.map_or(0, |clients| clients.clock_ahead_seconds);
    Some(Relation { trust, clock_ahead_seconds, ..relation.clone() })
}

/// Whether a client may be one of another hub than the one that was looked at: its agent, or one of the agents if it is nobody's in
/// particular, dials another address, which other authorities vouch for. On one cluster there may be agents of several hubs, and
/// one that turns to several may be at any of them.
fn is_elsewhere(inventory: &Inventory, relation: &Relation, clients: &Clients) -> bool {
    let address = |server: &str, authorities: &[ByteString]| HubAddress {
        server: server.to_owned(),
        ca: authorities.iter().map(|der| der.0.clone()).collect(),
        ..HubAddress::default()
    };
    let hub = address(&clients.server, &clients.server_authorities);
    let dialled = inventory.copies.iter().filter(|copy| copy.what == Copied::Accepted);
    let mut dialled = dialled.filter(|copy| relation.cluster.is_none() || relation.cluster == copy.cluster);
    !hub.server.is_empty()
        && dialled.any(|copy| {
            let server = copy.server.as_deref().unwrap_or_default();
            address(server, &copy.authorities).likeness(&hub) == Likeness::OtherHub
        })
}

/// What is wrong with the settings of TLS servers, which present the certificates of `relations`.
fn settings(setting: &Setting, relations: &[Relation]) -> Vec<Finding> {
    let mut mistakes = setting.settings.mistakes();
    if mistakes.is_empty() && setting.is_read {
        mistakes.extend(unfit(setting, relations));
    }
    let mut found: Vec<Finding> = mistakes
        .into_iter()
        .map(|mistake| {
            let words = format!("{} cannot be followed: {mistake}", setting.place);
            let words = Finding::warning(words).at(&setting.place).advise("correct it there: the operator follows it");
            Finding { id: checks::SETTINGS, ..words }
        })
        .collect();
    if !setting.is_read {
        let words = format!("{} is read by no operator: it is in the wrong namespace", setting.place);
        let words = Finding::warning(words)
            .at(&setting.place)
            .advise("create it in the namespace of the operator, open-cluster-management");
        found.push(Finding { id: checks::SETTINGS_PLACE, ..words });
    }
    found
}

/// Why no client of TLS 1.2 gets to a server that follows these settings: none of the cipher suites is for its certificate.
fn unfit(setting: &Setting, relations: &[Relation]) -> Option<String> {
    let servers = relations.iter().filter(|relation| relation.purpose.follows_settings());
    let mut servers = servers.filter_map(|relation| Some((relation, Certificate::read(&relation.chain.first()?.0)?)));
    servers.find_map(|(relation, own)| {
        let (kind, is_rsa) = match own.key {
            Key::Rsa(_) => ("RSA", true),
            Key::P256 | Key::P384 | Key::P521 => ("ECDSA", false),
            Key::Ed25519 | Key::Other(_) => return None,
        };
        (!setting.settings.fits(is_rsa)).then(|| {
            let presenter = &relation.presenter;
            format!("none of its cipherSuites is for the {kind} certificate of {presenter}, so no client of TLS 1.2 gets there")
        })
    })
}

impl Finding {
    /// Adds the object that is at this place.
    #[must_use]
    pub(super) fn at(self, place: &Place) -> Self {
        match place {
            Place::Object { side, kind, namespace, name, key: _ } => {
                self.on(*side, ObjectKind::word(*kind), namespace.as_deref(), name)
            }
            Place::Address(_) | Place::Input(_) => self,
        }
    }
}

//! Whether certificates do what they are for: who presents what to whom, judged as whoever verifies it would.
//!
//! ```text
//! Inventory ─▶ relations: a chain, the authorities of its verifier, the names that are dialled ─▶ verdict per client ─┐
//! (observed,  copies: of authorities and addresses that have to be the same ──────────────────────────────────────────┼▶ Report
//!  or a file) settings: TLS profiles ─────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The verifier of rustls decides for our own commands. Agents and API servers are written in Go, and many tools use OpenSSL:
//! where one of them decides otherwise, the finding says for which it fails. Private keys are never part of an inventory.

mod algorithm;
mod beside;
mod chain;
mod client;
mod copies;
mod expiry;
mod inventory;
mod judge;
mod profile;
mod report;
#[cfg(test)]
mod tests;

pub use beside::{beside, judge_beside};
pub use chain::{Question, Refusal, Whose, verdict};
pub use client::Client;
pub use copies::is_foreign;
pub use expiry::{Expiry, NotWithin, Part, Within};
pub use inventory::{
    Clients, Copied, Copy, FORMAT, Handshake, Identity, Inventory, ObjectKind, Place, Purpose, Relation, Renewal,
    Setting, Token, Trust, Unseen, Use,
};
pub use profile::{Profile, TlsSettings, Version};
pub use report::{Report, judge};

pub use crate::registry::tls::LASTS;

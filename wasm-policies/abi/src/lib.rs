//! The words between a hub and its policies, `ocm:policy@0.1.0`: what is asked, what is answered, what a policy says of
//! itself. Hosts write requests and read decisions with these types, guests the other way round.
//!
//! ```text
//! Request { operation, requester, cluster, previous, csr, object, evidence, now … } ─▶ policy ─▶ Decision
//!                                                                                         │ describe
//!                                                                                         ▼
//!                                                                                      Manifest
//! ```
//!
//! Components get and give the same as the records of `wasm-policies/wit`. As JSON they are what WASI commands read, what
//! people write, and what records of decisions keep; there, readers pass over members that they do not know. New facts
//! come as entries of `more`, so that they need no new version; words that may become more are texts in the records.

mod contract;
mod decision;
mod manifest;
mod owned;
mod request;
mod text;

pub use contract::{CONTRACT, INTERFACE};
pub use decision::{Decision, Edit, OBLIGATIONS, Obligation, Reason, TaintEffect, Verdict};
pub use manifest::{EditGrant, EvidenceSource, LimitsAsked, Manifest, Query, QuotaKey, ReasonDoc};
pub use request::{
    CHANGES_SHOWN, Claim, ClientConfig, Cluster, Condition, Csr, Key, Operation, Owner, Request, Requester, Resource,
    Row, Signature, Stage, Table, Taint,
};
pub use text::{Map, Text};

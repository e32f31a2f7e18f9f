//! What becomes of a policy's answer: everything about deciding that needs neither an engine nor a hub.
//!
//! ```text
//! AdmissionReview, objects ─▶ review ─▶ Request ─▶ (a policy runs elsewhere) ─▶ bytes
//!         evidence ─▶ Table ──────────────┘                                       │
//!                                             validate::read_decision, adapt ◀─────┘
//!                                                           │
//!                       canary decides who counts ─▶ conclude ─▶ Combined: verdict, obligations, JSON patch
//!                                                           └──▶ record
//! ```
//!
//! No clock, environment, network or threads: the time and the state of the hub are handed in as values. A broken
//! policy is a [`PolicyError`], and no way leads from an error to [`Answer::Allow`].

pub mod adapt;
mod approval;
mod break_glass;
pub mod canary;
pub mod combine;
pub mod edits;
mod enforcement;
mod error;
pub mod evidence;
pub mod hub_policy;
mod json;
mod manifest;
pub mod obligation;
mod outcome;
pub mod record;
pub mod review;
mod scope;
pub mod syntax;
mod validate;

pub use approval::approving;
pub use break_glass::break_glass_approval;
pub use combine::{Answer, Combined, combine, conclude};
pub use enforcement::{Enforcement, Mode, OnError, POLICY_FAILED};
pub use error::PolicyError;
pub use manifest::{check_manifest, read_manifest};
pub use outcome::{Outcome, PolicyId};
pub use scope::{CONDITION_FALSE, CONDITION_UNKNOWN, CONDITIONS, Coverage, Scope};
pub use validate::{Bounds, read_decision};

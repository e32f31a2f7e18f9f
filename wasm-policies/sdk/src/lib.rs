//! For authors of policies in Rust.
//!
//! A policy is a type with settings, a manifest and one function. [`export!`] makes a WebAssembly module of it that
//! exports `ocm:policy/policy@0.1.0` and imports nothing:
//!
//! ```
//! use ocm_policy_sdk::{Answer, ManifestBuilder, Operation, Policy, Request, allow, deny, manifest};
//!
//! struct OnlyProd;
//!
//! impl Policy for OnlyProd {
//!     type Settings = ();
//!
//!     fn manifest() -> ManifestBuilder {
//!         manifest("only-prod", "0.1.0", "Lets in clusters whose names begin with prod-")
//!             .judges([Operation::Create])
//!             .gives("NameOther", "The name does not begin with prod-")
//!     }
//!
//!     fn configure((): ()) -> Result<Self, Vec<String>> {
//!         Ok(Self)
//!     }
//!
//!     fn decide(&self, request: &Request<'_>) -> Answer {
//!         match request.cluster() {
//!             Some(cluster) if cluster.name.starts_with("prod-") => allow(),
//!             _ => deny("NameOther", "the name does not begin with prod-").at("metadata.name"),
//!         }
//!     }
//! }
//!
//! ocm_policy_sdk::export!(OnlyProd);
//! # assert_eq!(ocm_policy_sdk::Manifest::from(OnlyProd::manifest()).name, "only-prod");
//! ```
//!
//! Every decision is made by a fresh copy of the memory that `configure` left behind, so nothing survives a decision and
//! nothing has to be freed: the allocator only ever moves forward, which is what makes small modules fast.

mod build;
#[cfg(target_family = "wasm")]
mod bump;
pub mod guest;
pub mod hub;
mod policy;
mod request;
pub mod time;
#[doc(hidden)]
pub mod wit_types;

pub use build::{Answer, ManifestBuilder, allow, deny, hold, manifest, no_opinion};
pub use ocm_policy_abi::{
    CHANGES_SHOWN, CONTRACT, Claim, ClientConfig, Cluster, Condition, Csr, Decision, Edit, EditGrant, EvidenceSource,
    INTERFACE, Key, LimitsAsked, Manifest, Map, Obligation, Operation, Owner, Query, QuotaKey, Reason, ReasonDoc,
    Requester, Resource, Row, Signature, Stage, Table, Taint, TaintEffect, Text, Verdict,
};
pub use ocm_rules::{self as rules, glob};
pub use policy::Policy;
pub use request::Request;
pub use serde;
pub use serde_json;

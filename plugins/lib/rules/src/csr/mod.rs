//! Certificate requests: which cluster one is about, and whether it asks for exactly what an agent needs (rules R1 to
//! R7).
//!
//! A certificate is an identity for a year: its common name and organizations decide what its holder may do on the
//! hub. Labels, annotations and the name of the object are claims of whoever created it; the requester is what the API
//! server recorded; the content is what the request's own signature covers.

mod about;
mod facts;
mod field;
mod rules;
#[cfg(test)]
pub(crate) mod samples;
mod violations;

pub use about::{About, about};
pub use facts::{
    ADDON_NAME, API_SIGNER, Asked, CLUSTER_NAME, CSR_USER, Content, Csr, GRPC_SIGNER, Key, Signature, Unreadable,
};
pub use rules::{AddonFacts, Judgement, Kind, Settings, YEAR, first_certificate, judge};

//! Faults that are made for real on a hub and a managed cluster that has joined it, and what `kubectl ocm troubleshoot` has to
//! say about them.

#![expect(clippy::unwrap_used, reason = "what a test needs and cannot get must end it")]

mod change;
mod fault;
mod hubs;
mod identities;
mod keeper;
mod life;
mod matrix;
mod operators;
mod pair;
mod recurring;
mod refusal;
mod registering;
mod reports;
mod requests;
mod table;
mod ways;
mod webhooks;
mod works;

pub use fault::Fault;
pub use matrix::{is_about, matrix};

//! Obligations: which ones are carried out, and what follows from those that end an acceptance.

mod declared;
mod expiry;

pub(crate) use declared::check;
pub use declared::{EXPIRE_ACCEPTANCE, REASON, SECONDS, carried_out, declare};
pub use expiry::{Allows, Limit, Step, allowing, limits, step};

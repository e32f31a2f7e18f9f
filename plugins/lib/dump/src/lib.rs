//! The edge to dumps: files that somebody has taken from a cluster, read as a cluster that answers requests with what they
//! hold. Whoever reads clusters reads dumps by the same code.
//!
//! ```text
//! directory · tar · tar.gz ─▶ layout ─▶ ┐
//! YAML · JSON · stdin ────────────────▶ ├─▶ store: objects, and of which kinds all are there ─▶ server ─▶ Cluster
//!                                       └─▶ times: the newest is the dump's clock ─────────────▲
//! ```
//!
//! What a dump does not hold is unknown and never missing: a request for it fails with [`ocm_core::Reason::NotInDump`].
//! That an object does not exist is known only where all of its kind are there, in its namespace or as a whole. Of which
//! kinds that is, the module `store` decides.

mod document;
mod kind;
mod layout;
mod open;
mod query;
mod read;
mod room;
mod secret;
mod server;
mod store;
mod times;

pub use open::{Input, LARGEST, Side, open};
pub use read::{Dump, read};

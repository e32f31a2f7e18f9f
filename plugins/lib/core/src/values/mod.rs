//! A part of the spec of a ClusterManager or a Klusterlet, from a file: what it may say, and how it is laid between what is
//! there and what was typed.
//!
//! ```text
//! a file ─▶ Values::read (schema, gates) ─▶ Values ─▶ over what is there ─▶ what was typed over it ─▶ what contradicts it
//! ```

mod lay;
mod schema;
mod spec;

pub(crate) use lay::{differences, is_whole, lay};
pub use schema::{ValuesError, Wrong};
pub use spec::{Kind, Values};

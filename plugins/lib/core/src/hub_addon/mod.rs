//! The hub's side of add-ons, as somebody has rendered it: what stands in the files, what has no place in them, whose an
//! object is that is there, in which order objects are made, and which of them an uninstallation deletes.
//!
//! ```text
//! documents ─▶ Content ─▶ settled: kinds, namespaces, refusals ─▶ standing of each ─▶ plan
//! objects with our label ─▶ fate of each ─▶ those that are deleted, in the opposite order
//! ```
//!
//! What belongs to an add-on is written down in its objects alone, by the request that makes each of them. A run that was
//! killed has labelled what it has made, and there is nothing that two runs could overwrite.

mod content;
mod guard;
mod kinds;
mod listed;
mod mark;
mod plan;
mod removal;
mod settled;

pub use content::Content;
pub use kinds::{Kind, Kinds, Rank};
pub use listed::{display_name, installed_by, strategy};
pub use mark::{LABEL, Standing, WAS_THERE, is_marked, labelled, maker, standing, tried};
pub use plan::{namespace, namespaces, plan};
pub use removal::{Fate, Labelled, enabled_on, fate, order};
pub use settled::{Settled, settled};

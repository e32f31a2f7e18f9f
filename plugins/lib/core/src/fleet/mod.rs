//! A fleet file: a hub and the clusters that join it, as people write them down.
//!
//! ```text
//! text ─▶ File (strict: no unknown fields) ─▶ defaults under each cluster ─▶ Fleet { Hub, Members }
//! ```

mod cluster;
mod document;
mod fields;
mod file;
mod hub;
mod labels;
mod wrong;

pub use cluster::{GrpcServer, Member};
pub use document::{Fleet, read};
pub use fields::Files;
pub use file::{API_VERSION, Access, KIND};
pub use hub::{Address, Hub, options_failure};
pub use labels::missing_labels;
pub use wrong::Wrong;

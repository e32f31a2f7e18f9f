//! Upgrading hubs and managed clusters: from what runs there to a newer release.
//!
//! ```text
//! live objects ─▶ Parts (what runs) ─▶ direction, skew ─▶ refused, or remarks
//! live objects ─▶ hub::plan, klusterlet::plan ─▶ the operator's Plan ─▶ the custom resource's Plan   (images, nothing else)
//! definitions ─▶ unknown versions ─▶ refused
//! what rolls out ─▶ rollout ─▶ what is missing
//! ```

mod definitions;
mod fields;
pub mod hub;
pub mod klusterlet;
mod parts;
mod plans;
mod releases;
pub mod rollout;
pub mod staging;
mod wanted;

pub use definitions::{HUB_DEFINITIONS, KLUSTERLET_DEFINITIONS, Stored, check, stored};
pub use fields::{of_addons, of_klusterlet, of_manager};
pub use parts::{Part, Parts};
pub use plans::Upgrade;
pub use releases::{Target, direction, newer_agents, skew};
pub use wanted::Wanted;

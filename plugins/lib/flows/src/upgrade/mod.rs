//! `upgrade hub`, `upgrade klusterlet`: one cluster, or many in stages.
//!
//! ```text
//! survey (what runs) ─▶ direction, skew, definitions, fields ─▶ refused, or remarks
//!    └─▶ plan ─▶ render · diff · dry run
//!          └──▶ rights ─▶ apply the operator ─▶ it has rolled out ─▶ apply the custom resource ─▶ all has rolled out
//! ```

mod apply;
mod fleet;
mod hub;
pub(crate) mod installed;
mod klusterlet;

pub use fleet::{Fleet, Member, Outcome, Row, upgrade_fleet};
pub use hub::{HubRequest, HubUpgraded, upgrade_hub};
pub use klusterlet::{KlusterletRequest, KlusterletUpgraded, Prepared, prepare, upgrade_klusterlet};

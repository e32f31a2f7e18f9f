//! The managed cluster's side: its Klusterlet goes, what the agent has put there, and the operator if nobody needs it; with
//! access to the hub, all that this holds of the cluster first, while the agent is there to clean up.

mod accounts;
mod definitions;
mod its_hub;
mod klusterlet;
mod operator;
mod records;
mod request;
mod run;
mod see;
mod seen;
mod works;

pub(crate) use its_hub::{agents_hub, all_known, is_hub_at};
pub use request::{Departure, UnjoinRequest, Unjoined, Works};
pub use run::unjoin;
pub(super) use see::is_passed_over;
pub use see::see;
pub use seen::Seen;
pub(super) use seen::is_being_deleted;

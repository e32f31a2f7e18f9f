//! Leaving: `detach` from the hub's side, `unjoin` from the managed cluster's, and both in the order that leaves nothing.
//!
//! ```text
//! look (what is there, whose is it?) ─▶ may it go? ─▶ the caller asks ─▶ drain ─▶ residue
//! ```

mod further;
mod guest;
mod hub;
mod leaving;
mod namespace;
pub(crate) mod operator;
mod unjoin;

pub use further::{Further, FurtherHubs, detach_further, see_further};
pub use hub::{Detached, Held, check_rights_to_detach, detach, inspect, refuse};
pub(crate) use hub::{last_heard, metadata};
pub use leaving::Leaving;
pub(crate) use leaving::noted;
pub(crate) use namespace::{PAUSE, namespace_gone};
pub use unjoin::{Departure, Seen, UnjoinRequest, Unjoined, Works, see, unjoin};
pub(crate) use unjoin::{agents_hub, all_known, is_hub_at};

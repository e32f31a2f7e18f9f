//! `join`: find the hub and its authority, look at both clusters, plan, apply, and follow the agent.
//!
//! ```text
//! HubAccess ─▶ reach (hub, address, authority) ─▶ survey (managed cluster) ─▶ belonging
//!                                                         │
//!                 preflight on both sides, nothing touched ┴─▶ plan ─▶ render · diff · dry run
//!                                                               └──▶ token ─▶ apply ─▶ follow ─▶ leave the former hub
//! ```

mod bootstrap;
mod carry_out;
mod claimed;
mod client;
mod coming;
mod driver;
mod fallback;
mod follow;
mod former_hub;
mod from_host;
mod handover;
mod hosted;
mod hub_access;
mod hub_change;
mod known;
mod moving;
mod on_hub;
mod preflight;
mod prepare;
mod prepared;
mod reach;
mod registered;
mod request;
mod session;
mod survey;
mod tidy;
mod way;
mod webhooks;

pub use carry_out::{Joined, join};
pub use coming::Coming;
pub use former_hub::{LeftHub, Still};
pub use hub_access::{HubAccess, Trust, TrustedBy};
pub use reach::{are_one, is_itself};
pub use request::{FallbackOptions, FormerHubOptions, GrpcOptions, Request};
pub(crate) use session::serves;

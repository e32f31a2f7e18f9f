//! `join`: find the hub and its authority, look at both clusters, plan, apply, and follow the agent.
//!
//! ```text
//! HubAccess ─▶ reach (hub, address, authority) ─▶ survey (managed cluster) ─▶ belonging
//!                                                         │
//!                 preflight on both sides, nothing touched ┴─▶ plan ─▶ render · diff · dry run
//!                                                               └──▶ token ─▶ apply ─▶ follow
//! ```

mod carry_out;
mod claimed;
mod coming;
mod driver;
mod fallback;
mod follow;
mod handover;
mod hosted;
mod moving;
mod on_hub;
mod preflight;
mod prepare;
mod reach;
mod registered;
mod session;
mod survey;
mod tidy;

pub use carry_out::{Joined, Request, join};
pub use coming::Coming;
pub use driver::GrpcOptions;
pub use fallback::FallbackOptions;
pub use reach::{HubAccess, Trust, TrustedBy, are_one, is_itself};
pub(crate) use session::serves;

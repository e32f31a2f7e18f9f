//! The policy webhook's certificates: an authority of its own, what it has signed, and what the API server trusts.
//!
//! ```text
//! hub ─▶ Found + now ─▶ renew: all of it at once, for an installation
//!                  └──▶ next: the next write, for a run ─▶ hub ─▶ Found …
//! ```
//!
//! An authority signs nothing before every API server trusts it. What is to be done follows from what the hub holds alone,
//! so a run that was killed between any two writes is completed by the next one.

mod make;
mod next;
mod run;

pub use make::{Found, renew};
pub use next::{Step, foreign, next, unusable_soon};
pub use run::{LEARNS, Seen, look, run, trust_also};

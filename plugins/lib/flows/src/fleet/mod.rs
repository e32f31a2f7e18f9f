//! A hub and many clusters, brought up together: the hub's installation and all joins begin at once, and none of them stops
//! the others.
//!
//! ```text
//! hub:      install ─────────────▶ served ─────────────▶ usable
//! cluster:  look, check ▶ wait ───────┴▶ join ▶ accept ────┴▶ labels ▶ set
//! ```

mod bring_up;
mod hub;
mod member;
mod outcome;
mod placing;
mod reach;
mod request;

pub use bring_up::bring_up;
pub use outcome::{BroughtUp, Outcome, Row};
pub use reach::Reach;
pub use request::{Fleet, Member, Request};

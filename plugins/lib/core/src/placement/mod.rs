//! Placements that people create: what their words select, and what uses a placement that is there.
//!
//! ```text
//! selectors, prioritizers, tolerations ─▶ PlacementOptions ─▶ plan: one Placement
//! ```

mod prioritizer;
mod selector;
mod spec;
mod toleration;
mod uses;

pub use prioritizer::{Prioritizer, PrioritizerError, Score};
pub use selector::{SelectorError, label_selector, requirements};
pub use spec::{PlacementOptions, plan, unbound};
pub use toleration::{of_taint, parse_toleration};
pub use uses::uses;

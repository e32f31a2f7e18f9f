//! "Did you mean", by the rule of the suite. It is compiled in here, because this binary links nothing else.

#[path = "../../lib/core/src/nearest.rs"]
mod rule;

pub(crate) use rule::nearest;

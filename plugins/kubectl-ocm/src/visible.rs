//! Which characters can be seen, by the rule of the suite. It is compiled in here, because this binary links nothing else.

#[path = "../../lib/core/src/visible.rs"]
mod rule;

pub(crate) use rule::is_visible;

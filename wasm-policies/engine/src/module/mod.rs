//! Modules, before anybody compiles them.

mod componentize;
mod inspect;
mod kind;
mod prune;
mod sections;
mod shape;

pub(crate) use componentize::WORLD;
pub use componentize::componentize;
pub use inspect::{Inspection, inspect};
pub use kind::Kind;
pub(crate) use prune::prune;
pub use sections::annotate;
pub(crate) use sections::{Anatomy, anatomy, starts_with_guest_code};
pub(crate) use shape::check as check_shape;
pub use shape::{Shape, ShapeLimits};

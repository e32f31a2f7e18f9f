//! Findings that somebody knows of: until when, and why they are not to be reported. It is said to a command, or stands in an
//! annotation of what they are about.

mod annotation;
mod suppression;
mod written;

pub use annotation::ANNOTATION;
pub(crate) use annotation::clusters_with;
pub use suppression::{Suppressed, Suppression};
pub(crate) use suppression::{annotated, apply, idle};
pub use written::NotASuppression;

//! Changes to a cluster: who may make which, what becomes of several, and how they are written down.

mod merge;
mod permission;
mod render;
#[cfg(test)]
pub(crate) mod tests;

pub use merge::{Conflict, Target, clash, merge, target};
pub use permission::check;
pub use render::{apply, render, values, written};

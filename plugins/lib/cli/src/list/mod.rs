//! Lists of objects of a hub, as every command that has one takes and prints them.

mod args;
mod cell;
mod format;
#[cfg(test)]
mod samples;
mod show;
mod sort;
mod tree;
mod view;

pub use args::{ListArgs, ListOutputArgs};
pub use cell::{NONE, age};
pub use format::{ListFormat, with_tree};
pub use show::{follow, show};
pub use tree::Tree;
pub use view::View;

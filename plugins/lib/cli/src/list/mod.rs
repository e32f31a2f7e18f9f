//! Lists of objects of a hub, as every command that has one takes and prints them.

mod args;
mod format;
mod show;
mod sort;
mod view;

pub use args::{ListArgs, ListOutputArgs};
pub use format::ListFormat;
pub use show::{follow, show};
pub use view::{NONE, View, age};

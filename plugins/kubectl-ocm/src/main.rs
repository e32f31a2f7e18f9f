//! The dispatcher.
fn main() {}

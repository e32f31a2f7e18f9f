//! Not measured yet.
fn main() {}

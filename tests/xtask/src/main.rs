//! demo, verify, generate.
fn main() {}

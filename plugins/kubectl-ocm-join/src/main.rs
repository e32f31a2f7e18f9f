//! `kubectl ocm join`.
fn main() {}

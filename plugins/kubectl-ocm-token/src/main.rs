//! `kubectl ocm token`.
fn main() {}

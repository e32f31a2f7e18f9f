//! `kubectl ocm install`.
fn main() {}

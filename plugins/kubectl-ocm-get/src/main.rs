//! `kubectl ocm get`.
fn main() {}

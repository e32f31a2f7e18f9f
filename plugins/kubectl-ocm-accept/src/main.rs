//! `kubectl ocm accept`.
fn main() {}

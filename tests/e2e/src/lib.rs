//! Stories on real clusters.

pub mod accept_support;

//! Recorded requests are decided again: those of a file to see whether they are repeated, those of a hub to see what
//! another version would have decided.

mod candidates;
pub(crate) mod file;
pub(crate) mod hub;

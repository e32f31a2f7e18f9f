//! Ratios against named peers and lower bounds.

mod rounds;

pub use rounds::{Verdict, quartiles, verdict};

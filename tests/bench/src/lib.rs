//! Ratios against named peers and lower bounds.

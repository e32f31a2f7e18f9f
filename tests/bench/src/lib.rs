//! Ratios against named peers and floors.

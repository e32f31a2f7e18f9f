//! Stories on real clusters.

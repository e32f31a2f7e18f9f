//! The flows.

//! The TLS edge.

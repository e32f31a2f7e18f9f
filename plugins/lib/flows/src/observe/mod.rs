//! What clusters show, as typed facts; what they amount to is judged in `ocm_core`.

pub mod conversion;
pub mod hub;
pub mod logs;
pub mod managed;
pub mod registration;
pub mod snapshot;
pub mod tls;

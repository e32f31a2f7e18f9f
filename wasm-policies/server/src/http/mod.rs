//! HTTPS for the API server, and plain HTTP for probes and scrapes.

mod accept;
mod budget;
mod connection;
mod deciders;
mod files;
mod health;
mod review;
mod server;
mod spare;
mod workers;

pub use accept::serve_health;
pub use health::Health;
pub use server::{Bounds, Server};

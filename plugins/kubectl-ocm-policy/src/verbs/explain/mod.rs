//! Why: of modules that are asked about a request, and of a cluster of a hub.

pub(crate) mod cluster;
pub(crate) mod modules;
mod view;

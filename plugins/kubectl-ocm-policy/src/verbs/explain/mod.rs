//! Why: of modules that are asked about a request, of a cluster of a hub, and of one as it would be.

pub(crate) mod cluster;
pub(crate) mod hypothetical;
pub(crate) mod modules;
mod view;

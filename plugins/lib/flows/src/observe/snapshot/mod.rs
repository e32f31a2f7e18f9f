//! Everything that checks look at, in as few requests as there are kinds: none per cluster, but for a single one that is
//! named.

mod facts;
mod hub;
mod kinds;
mod listing;
mod managed;
mod probe;
mod secret;
mod storage;
mod webhooks;
mod workloads;

pub use hub::{observe as hub, serves};
pub use managed::{observe as managed, registered_names};
pub use probe::{Question, grpc_probes, in_cluster, probes, questions};

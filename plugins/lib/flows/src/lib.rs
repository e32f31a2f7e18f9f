//! What commands do, as functions that emit events: no flags, no printing. Binaries hand in settings and a narrator and
//! render what comes back.

pub mod accept;
mod account;
pub mod addons;
pub mod cluster_proxy;
pub mod cluster_sets;
pub mod deliveries;
pub mod explanation;
pub mod fix;
pub mod fleet;
pub mod get;
mod gone;
mod grpc_server;
#[cfg(test)]
mod heard;
pub mod hub;
pub mod hub_addons;
pub mod in_cluster;
pub mod info;
pub mod install;
pub mod join;
pub mod leave;
mod named;
pub mod objects;
pub mod observe;
pub mod placements;
pub mod policies;
pub mod registrations;
pub mod registry;
pub mod replica_sets;
mod served;
pub mod tls;
pub mod token;
pub mod troubleshoot;
pub mod uninstall;
pub mod upgrade;
mod usable;
mod watch;
mod watched_rows;
mod whole;
pub mod workload;
pub mod works;

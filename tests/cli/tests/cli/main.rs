//! The commands, as somebody types them, without a cluster: by what they are about. One program, since each links everything.

mod accept;
mod addon;
mod cluster_proxy;
mod completion;
mod connection;
mod dispatch;
mod errors;
mod explain;
mod get;
mod get_sets;
#[path = "../../../../wasm-policies/engine/tests/support/guest.rs"]
mod guest;
mod help;
mod hub_addon;
mod install;
mod placement;
mod policy;
mod policy_hub;
mod policy_registry;
mod promises;
mod proxy;
mod terminal;
mod tls_check;
mod token;
mod troubleshoot;
mod troubleshoot_dump;
mod work;

//! Inventories of certificates: of a hub, of a managed cluster, and of whatever the user names. What is wrong with them is
//! judged in `ocm_checks`.
//!
//! Only what is public is kept of Secrets: certificates, addresses, whether a private key belongs to its certificate, and of
//! tokens who they are of and how long they are valid.

mod clock;
mod cluster;
mod fleet;
mod given;
mod grpc;
mod handshake;
mod hub;
mod inside;
mod kubeconfig;
mod managed;
mod material;
mod proxies;
mod reported;
mod unreadable;

pub use cluster::both;
pub use fleet::{Fleet, Member, Seen, fleet};
pub use given::{address, content, secret};
pub(crate) use grpc::{GrpcConfig, grpc_config};
pub use hub::hub;
pub use inside::{By, Inside, inside};
pub use managed::managed;
pub use reported::reported;

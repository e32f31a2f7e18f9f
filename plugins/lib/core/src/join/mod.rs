//! Joining a cluster to a hub.
//!
//! ```text
//! what was typed ─▶ Settings ─┐
//! what the cluster holds ─▶ Live ─┴─▶ plan ─▶ Plan        (plan)
//! what the cluster belongs to ─▶ Found ─▶ belonging        (state)
//! what both clusters show ─▶ Snapshot ─▶ judge ─▶ Step     (progress)
//! requests on the hub ─▶ the agent's own key              (agent)
//! what a cluster holds ─▶ whether its name may go to a new key  (handover)
//! the IAM roles of a registration by AWS                 (aws)
//! the driver to register by, as it is and as it is to be  (driver)
//! leader leases and pods ─▶ stale leases                   (lease)
//! a cluster that is managed from another one               (hosted)
//! what was typed of a proxy ─▶ the agent's way to its hub  (proxy)
//! hubs to turn to, one after the other                   (fallback)
//! a cluster on its way from one hub to another            (hub_change)
//! a hosts entry, how add-ons register, a file of values    (choices)
//! what is typed for a cluster that has joined              (given)
//! ```

pub mod agent;
mod asking;
pub mod aws;
mod bootstrap_secrets;
pub mod choices;
mod driver;
pub mod fallback;
pub mod gates;
mod given;
pub mod handover;
pub mod hosted;
pub mod hub_change;
pub mod lease;
pub mod membership;
pub(crate) mod plan;
pub mod progress;
pub mod proxy;
mod rbac;
mod snapshot;

pub use bootstrap_secrets::{bootstrap_secret, bootstrap_secret_of, external_secret};
pub use driver::{driver_of, registers_anew};
pub use given::{Given, without_release};
pub use plan::{CertificateLife, DEFAULT_CERTIFICATE_SECONDS, Kubeconfigs, Live, Settings, plan};
pub use rbac::operator_rights;

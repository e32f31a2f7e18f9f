//! Joining a cluster to a hub.
//!
//! ```text
//! what was typed ─▶ Settings ─┐
//! what the cluster holds ─▶ Live ─┴─▶ plan ─▶ Plan        (plan)
//! what the cluster belongs to ─▶ Found ─▶ belonging        (state)
//! what both clusters show ─▶ Snapshot ─▶ judge ─▶ Step     (progress)
//! requests on the hub ─▶ the agent's own key              (agent)
//! leader leases and pods ─▶ stale leases                   (lease)
//! a cluster that is managed from another one               (hosted)
//! what was typed of a proxy ─▶ the agent's way to its hub  (proxy)
//! ```

pub mod agent;
mod asking;
pub mod gates;
pub mod hosted;
pub mod lease;
pub(crate) mod plan;
pub mod progress;
pub mod proxy;
mod rbac;
pub mod state;

pub use plan::{
    CertificateLife, DEFAULT_CERTIFICATE_SECONDS, Kubeconfigs, Live, Settings, bootstrap_secret, bootstrap_secret_of,
    external_secret, plan,
};
pub use rbac::operator_rights;

//! Installing a hub.
//!
//! ```text
//! what was typed ─▶ Options ─┐
//! what the cluster holds ─▶ Live ─┴─▶ plan ─▶ Installation
//! ```

pub(crate) mod cluster_manager;
pub(crate) mod deployment;
mod error;
mod expose;
pub mod feature_gates;
pub mod gateway;
pub mod health;
pub mod hosted;
mod hosting;
pub(crate) mod images;
mod live;
pub mod mode;
mod options;
mod plan;
pub(crate) mod rbac;
mod releases;

pub use error::{DriverSetting, OptionsError};
pub use hosting::HubMode;
pub use live::Live;
pub use options::{Driver, GrpcEndpoint, GrpcExposure, Options};
pub use plan::{Installation, check, plan};
pub use rbac::{bootstrap_rights, operator_rights};
pub use releases::{direction, moved};

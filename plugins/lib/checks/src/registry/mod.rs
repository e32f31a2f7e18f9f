//! The registry: every check as data. What explains what, what is documented and what is run stand here once.

mod addons;
mod addresses;
mod admission;
mod agent;
mod checks;
mod definition;
mod exposure;
mod hub;
mod joining;
mod leaving;
mod life;
mod next;
mod policies;
mod reporting;
mod safety;
mod serving;
mod settings;
mod storage;
mod subject;
pub(crate) mod tls;
mod ways;
mod webhooks;
mod workload;
mod works;

pub(crate) use agent::difference;
pub use checks::{check, checks, of_certificates, of_snapshots};
pub use definition::{Category, Check, Input, Page, Rule};

//! The rules of kubectl-ocm: everything that can be decided without looking at a clock, the environment,
//! a network or a terminal. What a rule needs of those is handed in as a value.
//!
//! ```text
//! arguments ─▶ settings ─▶ Plan (a value) ─▶ apply / diff / render / dry-run
//!                             │
//!   observed objects ─────────┘      facts ─▶ ocm-rules ─▶ violations
//! ```

pub mod accept;
pub mod account;
pub mod addon;
pub mod address;
pub mod admission;
pub mod agent_lease;
pub mod baseline;
pub mod bootstrap;
pub mod certificate;
mod changed;
pub mod cipher;
pub mod cluster_name;
pub mod cluster_proxy;
pub mod cluster_sets;
pub mod csr;
pub mod delivery;
mod dry_run;
pub mod duration;
pub mod event;
pub mod explanation;
pub mod failure;
pub mod fleet;
pub mod gates;
pub mod grpc;
pub mod hub_addon;
pub mod hub_policy;
pub mod images;
pub mod info;
pub mod install;
pub mod join;
pub mod join_command;
pub mod key;
pub mod kubeconfig;
pub mod leave;
pub mod managed;
mod nearest;
pub mod operator;
pub mod order;
pub mod phase;
pub mod pin;
pub mod placement;
pub mod plan;
pub mod policy_engine;
pub mod probe_job;
pub mod reconcile;
pub mod redact;
pub mod registration;
pub mod release;
pub mod remedy;
pub mod resources;
pub mod scheduling;
pub mod shell;
pub mod tls;
pub mod token;
pub mod upgrade;
pub mod values;
mod visible;
pub mod work;
pub mod workload;
pub mod written;
pub mod yaml;

pub use changed::Changed;
pub use dry_run::DryRun;
pub use event::{Event, Narrator, One, Silent};
pub use failure::{Exit, Failure, Named, Reason};
pub use nearest::nearest;
pub use ocm_rules::{glob, name};
pub use plan::{Applied, Mode, Outcome, Plan, Stage};
pub use remedy::{Hint, Remedy, Role};
pub use visible::is_visible;

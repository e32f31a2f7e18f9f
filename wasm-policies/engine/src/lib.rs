//! Policies as WebAssembly: loaded, limited and run.
//!
//! ```text
//! module ─▶ shape ─▶ kind ─▶ compile (a process of its own) ─▶ Artifact ─▶ cache
//!                                                                 │
//!   Question ─▶ Registry: active · former · candidate · canary ─▶ Policy: fresh instance, fuel, time, memory
//!                                                                 │
//!                                                              Outcome ─▶ combine, record (ocm-policy-rules)
//! ```
//!
//! A policy can compute and nothing else. It has no clock, no randomness and no network unless an administrator grants a
//! host call, every decision is made by an instance that has made no other, and whatever goes wrong is a [`Fault`], which
//! never allows anything. This crate knows no cluster and no clock either: what a decision depends on is handed in, and
//! time passes when [`Engine::tick`] is called.

mod cache;
mod code;
mod compile;
mod config;
mod kind;
mod lanes;
mod limits;
mod look;
mod policy;
mod program;
mod question;
mod records;
mod registry;
mod shape;
mod trim;
mod world;

pub use cache::{Cache, CacheError};
pub use compile::{Artifact, Compiler, Header, compile_here, digest, serve};
pub use config::{Engine, EngineSettings};
pub use kind::{Kind, annotate};
pub use limits::{Ceiling, Limits};
pub use look::Look;
pub use ocm_policy_rules::outcome::{Fault, Outcome};
pub use policy::{Answered, Policy};
pub use question::Question;
pub use registry::{Decided, Difference, Registry, Slot};
pub use shape::{Shape, ShapeLimits};
pub use world::encode;
